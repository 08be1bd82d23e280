"""Estimator: KernelPerceptron, the perceptron in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import (
    CanonicalForm,
    canonical_form,
    check_batch,
    check_training_labels,
    given_order,
    seed_of,
)
from margrove._runtime import (
    RANDOM_STATE,
    RUN_CONTROL,
    require_memory,
    resolve_n_jobs,
    using_checkpoints,
)
from margrove.margin.decisions import finite_decisions, n_problems_of, require_shape
from margrove.margin.kernels import KERNELS, Kernel, Points
from margrove.margin.perceptron.mistake_driven import (
    MistakeDriven,
    mistake_attributes,
    separation_attributes,
)
from margrove.margin.solvers.perceptron import DualRule, KernelPerceptronProcess
from margrove.margin.svm import KERNEL_PARAMETERS, KernelMachine

__all__ = ["KernelPerceptron"]


class KernelPerceptron(MistakeDriven, KernelMachine):
    """The perceptron in dual form: it stores the examples on which it made mistakes.

    f(x) = sum_i alpha_i y_i K(x_i, x) + b, where alpha_i counts the mistakes on example i. With
    `kernel="linear"` it makes exactly the same updates as `Perceptron`.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name in `margrove.kernels.KERNELS`, "precomputed", a kernel object such as
        `margrove.kernels.RBF(sigma=2.0)`, or a function of two matrices. Objects and functions
        have their own parameters: `gamma`, `degree` and `coef0` are then not used.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        As in scikit-learn: 1 / (n_features * X.var()), 1 / n_features, or a number.
    coef0 : float, default=0
        Of the polynomial and sigmoid kernels.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1 to the feature space.
    margin : float, default=0
        A row is a mistake if y f(x) <= margin.
    max_support : int or None, default=None
        Maximum number of support vectors; if there are more, the least important are removed.
    max_iter : int, default=100
        Maximum number of epochs.
    tol : float or None, default=1e-3
        Stop a class when its mean loss has improved by less than `tol` in `n_iter_no_change`
        epochs.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
        Visit the rows in a new order in each epoch. With False, and for precomputed kernels, the
        order of the rows matters, and a row with weight 2 is not the same as the row twice.
    class_weight : dict, "balanced" or None, default=None
    n_jobs : int or None, default=None
        Threads; None means all available cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=0
    max_time : float or None, default=None
        Seconds after which `fit` keeps what it has learnt, with a warning.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: leave the estimator as it was, or keep what has been learnt so far.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Mistakes on each training row (after `fit` only). Identical rows share theirs in
        proportion to their weights.
    support_ : ndarray of shape (n_support,)
        Training rows with a mistake, one of each set of identical rows. After `partial_fit`, -1
        for rows of earlier batches.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features)
    dual_coef_ : ndarray of shape (1 or n_classes, n_support)
        Signed: alpha_i y_i.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
        The kernel with its parameters.
    n_iter_, mistakes_, class_mistakes_, separated_, margin_, class_margins_, radius_,
    novikoff_bound_
        As for `Perceptron`, with distances in the feature space.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import KernelPerceptron
    >>> xor = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> KernelPerceptron(kernel="poly", degree=2, coef0=1).fit(xor, [0, 1, 1, 0]).predict(xor)
    array([0, 1, 1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KERNEL_PARAMETERS,
        "fit_intercept": ["boolean"],
        "margin": [Interval(Real, 0, None, closed="left")],
        "max_support": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "n_jobs": [Integral, None],
        **RANDOM_STATE,
        **RUN_CONTROL,
    }

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        margin: float = 0.0,
        max_support: int | None = None,
        max_iter: int = 100,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.margin = margin
        self.max_support = max_support
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from mistakes until there are none, or until the loss does not improve.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Or the Gram matrix (n_samples, n_samples) for kernel="precomputed".
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none.

        Returns
        -------
        self
        """
        self._check_parameters()
        table = self._check_training_table(X)
        labels = check_training_labels(y, sample_weight, self.class_weight, table.X.shape[0])
        form = self._presented_rows(table.X, labels.codes, labels.weight)
        rows, codes = form.rows, labels.codes[form.rows]
        kernel = self._resolved_kernel(table.X[rows], form.weight)
        points = _training_points(kernel, table.X, rows)
        n_problems = n_problems_of(labels.classes)
        self._require_memory(table.X, n_problems)
        coef, intercept = np.zeros((len(rows), n_problems)), np.zeros(n_problems)
        weight, visited = labels.counted(form), np.arange(len(rows))
        process = self._process(kernel, points, codes, weight, visited, coef, intercept, rows)
        ending = self._drive(
            process,
            X,
            y,
            sample_weight,
            lambda: table.attributes | self._learnt(process, labels.classes, kernel, table.X, rows),
        )
        if ending == "interrupt":
            process.recompute_values()
        learnt = self._learnt(process, labels.classes, kernel, table.X, rows)
        learnt["alpha_"] = _mistakes_per_row(form, process.coef)
        mistakes = mistake_attributes(process.mistakes)
        self._commit(table.attributes | learnt | mistakes | self._separation(process))
        self._warn_unless_converged(ending, process.stopping)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch, in one epoch; the first batch determines the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            An empty batch changes nothing.
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All classes that can occur in the stream; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        if self._is_precomputed() or self.class_weight == "balanced":
            raise ValueError(
                "partial_fit does not support kernel='precomputed' and class_weight='balanced', "
                "which need all rows at once. Use fit."
            )
        batch = check_batch(self, X, y, classes, sample_weight, self.class_weight)
        if batch is None:
            return self
        labels = batch.labels
        form = self._presented_rows(batch.X, labels.codes, labels.weight)
        rows = form.rows
        is_first = not hasattr(self, "kernel_")
        if is_first:
            kernel = self._resolved_kernel(batch.X[rows], form.weight)
        else:
            kernel = self._kernel_of_stream()
        n_problems = n_problems_of(labels.classes)
        old = batch.X[:0] if is_first else self.support_vectors_
        n_old = old.shape[0]
        X_all = _stacked(old, batch.X[rows])
        coef, intercept = np.zeros((n_old + len(rows), n_problems)), np.zeros(n_problems)
        if not is_first:
            coef[:n_old] = self.dual_coef_.T
            intercept[:] = self.intercept_
        codes = np.r_[np.zeros(n_old, dtype=np.int64), labels.codes[rows]]
        weight = np.r_[np.ones(n_old), labels.counted(form)]
        points = _training_points(kernel, X_all, np.arange(n_old + len(rows)))
        visited = np.arange(n_old, n_old + len(rows))
        origin = np.r_[np.full(n_old, -1), rows]
        process = self._process(
            kernel, points, codes, weight, visited, coef, intercept, origin, stream=True
        )
        all_rows = np.arange(len(origin))

        def fitted() -> dict[str, Any]:
            learnt = self._learnt(process, labels.classes, kernel, X_all, all_rows)
            return batch.attributes | learnt

        with using_checkpoints(None):  # no checkpoint for each batch of a stream
            self._drive(process, X, y, sample_weight, fitted)
        learnt = self._learnt(process, labels.classes, kernel, X_all, all_rows)
        learnt["support_"] = origin[learnt["support_"]]
        if not is_first:
            learnt["n_iter_"] += self.n_iter_
        mistakes = mistake_attributes(process.mistakes, earlier=self)
        self._commit(batch.attributes | learnt | mistakes)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) = sum_i alpha_i y_i K(x_i, x) + b.

        Shape (n_samples,) for two classes, positive for `classes_[1]`, else
        (n_samples, n_classes). The value of a row does not depend on the other rows.
        """
        self._require_fitted()
        n_problems = n_problems_of(self.classes_)
        require_shape(self, "intercept_", (n_problems,))
        require_shape(self, "dual_coef_", (n_problems, len(self.support_)))
        require_shape(self, "support_vectors_", (len(self.support_), self.n_features_in_))
        return finite_decisions(
            self._expansion(self._checked_rows(X), self.dual_coef_.T) + self.intercept_
        )

    # -- the steps of fit --

    def _kernel_of_stream(self) -> Kernel:
        """The kernel of the first batch, if the parameters still describe the same kernel."""
        fitted = self.kernel_
        wanted = self.kernel if not isinstance(self.kernel, str) else KERNELS.get(self.kernel)
        same = wanted in (fitted, type(fitted)) or wanted is getattr(fitted, "function", None)
        if not same:
            raise ValueError(
                f"kernel={self.kernel!r} differs from the kernel of the earlier batches, "
                f"{fitted!r}. Use fit to start again."
            )
        return fitted

    def _presented_rows(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> CanonicalForm:
        if not self.shuffle or self._is_precomputed():
            return given_order(weight)
        return canonical_form(X, codes, weight)

    def _require_memory(self, X: Any, n_problems: int) -> None:
        cells = X.data.size if sp.issparse(X) else X.size
        require_memory(
            4.0 * 8 * X.shape[0] * n_problems + 3.0 * X.dtype.itemsize * cells,
            f"KernelPerceptron with {X.shape[0]} rows and {n_problems} one-vs-rest problems",
            "Use fewer rows (max_support does not help here) or merge classes, or Perceptron.",
        )

    def _process(
        self,
        kernel: Kernel,
        points: Points,
        codes: np.ndarray,
        weight: np.ndarray,
        visited: np.ndarray,
        coef: np.ndarray,
        intercept: np.ndarray,
        origin: np.ndarray,
        *,
        stream: bool = False,
    ) -> KernelPerceptronProcess:
        kernel.require_finite(points)
        rule = DualRule(
            margin=float(self.margin),
            fit_intercept=self.fit_intercept,
            budget=self.max_support,
            shuffle=self.shuffle,
            seed=seed_of(self.random_state),
            shuffle_key=getattr(self, "n_iter_", 0) if stream else 0,
            max_epochs=1 if stream else self.max_iter,
            tol=None if stream else self.tol,
            patience=self.n_iter_no_change,
        )
        n_threads = resolve_n_jobs(self.n_jobs, unset="all")
        return KernelPerceptronProcess(
            kernel,
            points,
            codes,
            weight,
            visited,
            coef,
            intercept,
            rule,
            origin=origin,
            n_threads=n_threads,
        )

    def _learnt(
        self,
        process: KernelPerceptronProcess,
        classes: np.ndarray,
        kernel: Kernel,
        X: Any,
        rows: np.ndarray,
    ) -> dict[str, Any]:
        found = process.attributes()
        support = rows[found["support_"]]
        return {
            "support_": support,
            "support_vectors_": X[support],
            "dual_coef_": found["dual_coef_"],
            "intercept_": found["intercept_"],
            "classes_": classes,
            "kernel_": kernel,
            "n_iter_": max(1, int(process.stopping.n_iter.max())),
        }

    def _separation(self, process: KernelPerceptronProcess) -> dict[str, Any]:
        return separation_attributes(
            process.margins(),
            process.radius,
            extra_room=2.0 * self.margin,
            theorem_applies=self.max_support is None and process.kernel.positive_definite,
        )


def _training_points(kernel: Kernel, X: Any, rows: np.ndarray) -> Points:
    """The chosen rows as points, shifted to their mean; `columns` are their positions in X."""
    chosen = X[rows]
    points = kernel.points(chosen, shift=kernel.centre(chosen))
    return Points(points.X, points.squared_norms, rows)


def _mistakes_per_row(form: CanonicalForm, coef: np.ndarray) -> np.ndarray:
    alpha = form.share_out(np.abs(coef))
    return alpha.ravel() if alpha.shape[1] == 1 else alpha


def _stacked(old: Any, new: Any) -> Any:
    if sp.issparse(old) or sp.issparse(new):
        return sp.vstack([sp.csr_array(old), sp.csr_array(new)], format="csr")
    return np.vstack([old, new])
