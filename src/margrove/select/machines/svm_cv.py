"""Estimators: SVCCV and SVRCV, kernel machines whose C and gamma are cross-validated."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from margrove.exceptions import ConvergenceWarning
from margrove.margin.kernels import Kernel, Precomputed, has_width, needs_nonnegative, tuned_widths
from margrove.margin.svm import KERNEL_PARAMETERS, SVC, SVR, SupportVectorMachine
from margrove.select.held_out import (
    ClassifierFoldScorer,
    Fold,
    FoldScorer,
    RegressorFoldScorer,
    ScoredRows,
    folds_of,
)
from margrove.select.machines.c_search import GRID, ClassifierSearch, Search, check_grid, log_grid
from margrove.select.machines.grid_cells import Cells
from margrove.select.machines.svm_problems import ClassifierTask, RegressorTask, SvmTask
from margrove.select.machines.svm_search import default_gamma, search_cells

__all__ = ["SVCCV", "SVRCV"]

_C_RANGE = (-2.0, 4.0)  # powers of ten

SEARCH_PARAMETERS: dict[str, list[Any]] = {
    "Cs": GRID,
    "gammas": GRID,
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "refit": [StrOptions({"best", "1se"}), "boolean"],
    "drop": ["boolean"],
    **{name: KERNEL_PARAMETERS[name] for name in ("kernel", "degree", "coef0")},
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


class SupportVectorSearch(Search):
    """What SVCCV and SVRCV share: everything but the kind of machine."""

    Cs: Any
    gammas: Any
    cv: Any
    scoring: Any
    refit: Any
    drop: Any
    kernel: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Cross-validate the grid, then fit the best machine to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Or the Gram matrix (n_samples, n_samples) for kernel="precomputed".
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none; in scores as in fits.
        groups : array-like of shape (n_samples,), optional
            For splitters that keep groups together.

        Returns
        -------
        self
        """
        self._check_parameters()
        given_Cs = check_grid("Cs", self.Cs, type(self).__name__)
        given_gammas = check_grid("gammas", self.gammas, type(self).__name__)
        machine = self._machine()
        task = self._task(machine, X, y, sample_weight)
        Cs = log_grid(*_C_RANGE, given_Cs) if isinstance(given_Cs, int) else given_Cs
        gammas = self._gammas(task, given_gammas)
        folds = folds_of(
            self.cv, task.training.X, task.target, task.weight, groups,
            classifier=isinstance(self, ClassifierMixin),
        )  # fmt: skip
        fold_scorer = self._fold_scorer(task, folds, (len(Cs), len(gammas)))
        cells, search = search_cells(self, task, Cs, gammas, folds, fold_scorer)
        self._warn_unless_converged(cells)
        chosen = cells.best("1se" if self.refit == "1se" else "best")
        found = cells.findings(*chosen) | {"paths_": search.paths}
        if self.refit is not False:
            machine.set_params(**cells.parameters(*chosen))
            found["best_estimator_"] = machine.fit(X, y, sample_weight)
            found["n_iter_"] = machine.n_iter_
        self._commit(task.attributes | self._target_attributes(task) | found)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.sparse = not precomputed
        tags.input_tags.pairwise = precomputed
        tags.input_tags.positive_only = needs_nonnegative(self.kernel)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The state without `paths_`: the machines of all folds are too many to pickle."""
        return {name: value for name, value in super().__getstate__().items() if name != "paths_"}

    # -- the steps of fit --

    @abstractmethod
    def _machine(self) -> SupportVectorMachine:
        """The machine to be tuned, with the parameters that are not searched."""

    @abstractmethod
    def _task(self, machine: Any, X: Any, y: Any, sample_weight: Any) -> SvmTask:
        """The rows as points of the kernel."""

    @abstractmethod
    def _fold_scorer(self, task: Any, folds: list[Fold], shape: tuple[int, int]) -> FoldScorer:
        """The object that scores the machines of a fold on its held-out rows."""

    @abstractmethod
    def _target_attributes(self, task: Any) -> dict[str, Any]:
        """Fitted attributes that depend on y, such as `classes_`."""

    def _gammas(self, task: SvmTask, given: np.ndarray | int) -> np.ndarray:
        if not has_width(self.kernel):
            return np.array([np.nan])
        if isinstance(given, int):
            widths = tuned_widths(self.kernel)
            grid = np.ones(1) if widths is None else log_grid(*widths, given)
            return default_gamma(task) * grid
        return given

    def _warn_unless_converged(self, cells: Cells) -> None:
        is_short = cells.proofs["ending"] == "broken off"
        if is_short.any():
            violation = np.nanmax(cells.proofs["kkt_violation"])
            warnings.warn(
                f"In {is_short.sum()} of {is_short.size} cells the solver stopped before it "
                f"reached the tolerance (largest KKT violation {violation:.3g}, tol={self.tol:g}): "
                "they are marked 'broken off' in cv_results_['ending']. Scale the features, "
                "leave out the largest Cs, or raise max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _has_probabilities(model: Any) -> bool:
    if not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class SVCCV(ClassifierSearch, SupportVectorSearch):
    """Support vector classifier whose C and gamma are chosen by cross-validation.

    The grid is one computation. Inner products are computed once, for all folds, C and gamma; a
    machine starts from that of the next smaller C; folds and gammas are spread over the cores. Each
    machine is still solved to `tol`: a cell is what `SVC` would have found.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C, or how many of them from 0.01 to 10000, evenly on a logarithmic scale.
    gammas : int or array-like, default=10
        Widths of the kernel to try, or how many from 0.001 to 100 times what `gamma="scale"` means
        for the data. Kernels without a gamma have only their C searched.
    cv : int, splitter, iterable or None, default=None
        Folds; None is five, stratified.
    scoring : str, callable or None, default=None
        A scorer that needs `predict` or `decision_function`. None is the accuracy with the weights
        of the fits, class_weight included; "accuracy" leaves class_weight out.
    refit : {"best", "1se", True, False}, default="best"
        What is fitted to all rows at the end: the cell of the best mean score (also True), or the
        one of the smallest C (then gamma) whose mean is within one standard error of it. False
        fits nothing.
    drop : bool, default=False
        Whether to drop cells that cannot win. Cells are solved fold by fold; after some folds, a
        cell is given up if it could not reach the best mean with perfect scores in the others, or,
        where scores are accuracies, if it is behind by more than five standard deviations of what
        chance does to shuffled rows. The choice is that of the complete grid, in the first case for
        certain. A dropped cell is NaN in `cv_results_`, and its ending is "dropped". The Gram
        matrices of all gammas must fit into memory.
    kernel : str, Kernel or callable, default="rbf"
        As for `SVC`. Objects and functions have their own parameters: only C is searched.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0
        Of the polynomial and sigmoid kernels.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class; "balanced" is computed in each fold.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes, one machine for each pair, or one for each class.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of the machine that is fitted at the end.
    break_ties : bool, default=False
        Of the machine that is fitted at the end.
    probability : bool, default=False
        Whether the machine that is fitted at the end has probabilities.
    random_state : int, RandomState, Generator or None, default=0
        For the folds of `probability=True`.
    tol : float, default=1e-3
        The largest KKT violation of every machine.
    max_iter : int, default=-1
        The most pair steps for a machine; -1 means a generous limit that grows with the rows.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The result does not depend on it.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    best_estimator_ : SVC
        Fitted to all rows with the chosen C and gamma.
    best_params_ : dict
    best_score_ : float
        The mean score over the folds of the chosen cell. It is the best of many scores, so it is a
        little too high; for an unbiased score, cross-validate the `SVCCV`.
    best_index_ : int
    C_, gamma_ : float
        The chosen ones.
    cv_results_ : dict
        Columns as those of `GridSearchCV`, and four more: `kkt_violation`, the largest of any
        machine of the cell; `n_steps`; `mean_n_support`; `ending`, which is "unchanged" where the
        machines are bit for bit those of the next smaller C.
    scores_ : ndarray of shape (n_Cs, n_gammas, n_folds)
    Cs_, gammas_ : ndarray
    cells_ : Cells
        The same values as arrays over the grid.
    paths_ : list
        The solutions themselves: `paths_[gamma][fold][machine]` has the dual variables, offsets,
        violations and objectives of all C. Not kept in pickles and files.
    classes_ : ndarray of shape (n_classes,)
    n_splits_ : int
    n_iter_ : ndarray or int
        Pair steps of the machine that was fitted at the end.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import SVCCV
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVCCV(Cs=5, gammas=5).fit(X, y)
    >>> model.best_score_ > 0.96
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SEARCH_PARAMETERS,
        **{
            name: SVC._parameter_constraints[name]
            for name in (
                "class_weight",
                "multi_class",
                "decision_function_shape",
                "break_ties",
                "probability",
                "random_state",
            )
        },
    }

    def __init__(
        self,
        Cs: Any = 10,
        gammas: Any = 10,
        *,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        refit: Literal["best", "1se"] | bool = "best",
        drop: bool = False,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        probability: bool = False,
        random_state: Any = 0,
        tol: float = 1e-3,
        max_iter: int = -1,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.drop = drop
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.probability = probability
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The calibrated probability of each class; the largest is that of `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._best().predict_proba(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._best().predict_log_proba(X))

    def _machine(self) -> SVC:
        return SVC(
            kernel=self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            class_weight=self.class_weight,
            multi_class=self.multi_class,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            probability=self.probability,
            random_state=self.random_state,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )

    def _task(self, machine: SVC, X: Any, y: Any, sample_weight: Any) -> ClassifierTask:
        return ClassifierTask.of(machine, X, y, sample_weight)

    def _fold_scorer(
        self, task: ClassifierTask, folds: list[Fold], shape: tuple[int, int]
    ) -> FoldScorer:
        y = task.classes[np.clip(task.target, 0, len(task.classes) - 1)]
        rows = ScoredRows(task.training.X, y, task.weight, task.position, folds)
        factors = np.array([task.factors(fold) for fold in folds])
        return ClassifierFoldScorer(
            rows, shape, self.scoring, task.classes, factors, task.one_vs_one
        )

    def _target_attributes(self, task: ClassifierTask) -> dict[str, Any]:
        return {"classes_": task.classes}


class SVRCV(RegressorMixin, SupportVectorSearch):
    """Support vector regression whose C and gamma are chosen by cross-validation.

    The grid is one computation; see `SVCCV`.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C, or how many of them from 0.01 to 10000, evenly on a logarithmic scale.
    gammas : int or array-like, default=10
        Widths of the kernel to try, or how many from 0.001 to 100 times what `gamma="scale"` means
        for the data. Kernels without a gamma have only their C searched.
    epsilon : float, default=0.1
        Half the width of the tube.
    cv : int, splitter, iterable or None, default=None
        Folds; None is five.
    scoring : str, callable or None, default=None
        None is the coefficient of determination.
    refit : {"best", "1se", True, False}, default="best"
        What is fitted to all rows at the end: the cell of the best mean score (also True), or the
        one of the smallest C (then gamma) whose mean is within one standard error of it. False
        fits nothing.
    drop : bool, default=False
        Whether to drop cells that cannot win; see `SVCCV`. Scores of regressions are not counts of
        rows, so a cell is dropped only if perfect scores in the other folds would not be enough.
    kernel : str, Kernel or callable, default="rbf"
        As for `SVR`. Objects and functions have their own parameters: only C is searched.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0
        Of the polynomial and sigmoid kernels.
    tol : float, default=1e-3
        The largest KKT violation of every machine.
    max_iter : int, default=-1
        The most pair steps for a machine; -1 means a generous limit that grows with the rows.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The result does not depend on it.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    best_estimator_ : SVR
        Fitted to all rows with the chosen C and gamma.
    best_params_ : dict
    best_score_ : float
        The mean score over the folds of the chosen cell.
    best_index_ : int
    C_, gamma_ : float
        The chosen ones.
    cv_results_ : dict
        Columns as those of `GridSearchCV`, and `kkt_violation`, `n_steps`, `mean_n_support` and
        `ending`; see `SVCCV`.
    scores_ : ndarray of shape (n_Cs, n_gammas, n_folds)
    Cs_, gammas_ : ndarray
    cells_ : Cells
        The same values as arrays over the grid.
    paths_ : list
        The solutions themselves: `paths_[gamma][fold][0]`. Not kept in pickles and files.
    n_splits_ : int
    n_iter_ : ndarray or int
        Pair steps of the machine that was fitted at the end.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SVRCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = SVRCV(Cs=5, gammas=5, epsilon=0.01).fit(X[::-1], np.sin(X[::-1]).ravel())
    >>> bool(abs(model.predict([[1.0]]) - np.sin(1.0)) < 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SEARCH_PARAMETERS,
        "epsilon": SVR._parameter_constraints["epsilon"],
    }

    def __init__(
        self,
        Cs: Any = 10,
        gammas: Any = 10,
        *,
        epsilon: float = 0.1,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        refit: Literal["best", "1se"] | bool = "best",
        drop: bool = False,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = -1,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilon = epsilon
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.drop = drop
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _machine(self) -> SVR:
        return SVR(
            kernel=self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            epsilon=self.epsilon,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )

    def _task(self, machine: SVR, X: Any, y: Any, sample_weight: Any) -> RegressorTask:
        return RegressorTask.of(machine, X, y, sample_weight)

    def _fold_scorer(
        self, task: RegressorTask, folds: list[Fold], shape: tuple[int, int]
    ) -> FoldScorer:
        rows = ScoredRows(task.training.X, task.target, task.weight, task.position, folds)
        return RegressorFoldScorer(rows, shape, self.scoring, task.scale)

    def _target_attributes(self, task: RegressorTask) -> dict[str, Any]:
        return {}
