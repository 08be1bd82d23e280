"""Estimator: LinearSVCCV, a linear machine whose C is cross-validated along a path."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils._param_validation import StrOptions

from margrove._data import check_table, check_training_labels
from margrove._runtime import drive, resolve_n_jobs
from margrove.margin.linear import LinearSVC
from margrove.select.held_out import folds_of
from margrove.select.machines.c_search import GRID, ClassifierSearch, check_grid, log_grid
from margrove.select.machines.warm_paths import LinearGrid, warm_paths

__all__ = ["LinearSVCCV"]

_C_RANGE = (-4.0, 4.0)  # powers of ten
_MACHINE_PARAMETERS = (
    "penalty",
    "loss",
    "dual",
    "tol",
    "multi_class",
    "fit_intercept",
    "intercept_scaling",
    "class_weight",
    "random_state",
    "max_iter",
    "solver",
)


class LinearSVCCV(ClassifierSearch):
    """Linear support vector classifier whose C is chosen by cross-validation.

    In each fold, machines are fitted in ascending order of C, each started from the one before.
    Folds are spread over the cores.

    Parameters
    ----------
    Cs : int or array-like, default=10
        Values of C, or how many of them from 0.0001 to 10000, evenly on a logarithmic scale.
    cv : int, splitter, iterable or None, default=None
        Folds; None is five, stratified.
    scoring : str, callable or None, default=None
        None is the accuracy.
    refit : {"best", "1se", True, False}, default="best"
        What is fitted to all rows at the end: the C of the best mean score (also True), or the
        smallest whose mean is within one standard error of it. False fits nothing.
    penalty : {"l2", "l1"}, default="l2"
        For this and the parameters below, see `LinearSVC`.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    dual : "auto" or bool, default="auto"
    tol : float, default=1e-4
        The duality gap, relative to the objective, at which a machine is done.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
    class_weight : dict, "balanced" or None, default=None
    random_state : int, RandomState, Generator or None, default=None
    max_iter : int, default=10000
    solver : {"auto", "cd", "newton", "sgd"}, default="auto"
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The result does not depend on it.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    best_estimator_ : LinearSVC
        Fitted to all rows with the chosen C.
    best_params_ : dict
    best_score_ : float
        The mean score over the folds of the chosen C.
    best_index_ : int
    C_ : float
    cv_results_ : dict
        Columns as those of `GridSearchCV`, and `relative_gap`, the largest of any machine, and
        `n_iter`, passes or steps over all folds.
    scores_ : ndarray of shape (n_Cs, 1, n_folds)
    Cs_ : ndarray
    cells_ : Cells
    coef_ : ndarray of shape (1 or n_classes, n_features)
    intercept_ : ndarray of shape (1 or n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_splits_ : int
    n_iter_ : int
        Of the machine that was fitted at the end.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import LinearSVCCV
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearSVCCV(Cs=5).fit(X, y).best_score_ > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "Cs": GRID,
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "refit": [StrOptions({"best", "1se"}), "boolean"],
        **{name: LinearSVC._parameter_constraints[name] for name in _MACHINE_PARAMETERS},
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        Cs: Any = 10,
        *,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        refit: Literal["best", "1se"] | bool = "best",
        penalty: Literal["l2", "l1"] = "l2",
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        dual: Literal["auto"] | bool = "auto",
        tol: float = 1e-4,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        random_state: Any = None,
        max_iter: int = 10_000,
        solver: Literal["auto", "cd", "newton", "sgd"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Cross-validate all C, then fit the best machine to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
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
        given = check_grid("Cs", self.Cs, type(self).__name__)
        Cs = log_grid(*_C_RANGE, given) if isinstance(given, int) else given
        table = check_table(X, self)
        n_rows = table.X.shape[0]
        labels = check_training_labels(
            y, sample_weight, self.class_weight, n_rows, leave_out_negative=True
        )
        folds = folds_of(self.cv, table.X, labels.codes, labels.weight, groups, classifier=True)
        names = labels.classes[np.clip(labels.codes, 0, len(labels.classes) - 1)]
        machine = self._machine()
        scorer = check_scoring(machine, scoring=self.scoring)
        n_threads = resolve_n_jobs(self.n_jobs, unset="all")
        grid = LinearGrid(machine, table.X, names, labels.weight, folds, Cs, scorer)
        paths = warm_paths(grid, self, n_threads)
        drive(paths, self, verbose=int(self.verbose))
        cells = paths.cells()
        c, _ = cells.best("1se" if self.refit == "1se" else "best")
        found = cells.findings(c, 0) | {"classes_": labels.classes}
        if self.refit is not False:
            best = machine.set_params(C=float(Cs[c]), n_jobs=self.n_jobs)
            found["best_estimator_"] = best.fit(X, y, sample_weight)
            found["n_iter_"] = best.n_iter_
        self._commit(table.attributes | found)
        return self

    @property
    def coef_(self) -> np.ndarray:
        return np.asarray(self._best().coef_)

    @property
    def intercept_(self) -> np.ndarray:
        return np.asarray(self._best().intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _machine(self) -> LinearSVC:
        return LinearSVC(**{name: getattr(self, name) for name in _MACHINE_PARAMETERS})
