"""Estimator: OneClassSVM, which finds the region of the data."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval

from margrove._data import check_weights, moderate
from margrove._runtime import single_threaded_blas
from margrove.margin.kernels import Kernel, takes_objects
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.problems import DualProblem, one_class
from margrove.margin.svm.single_machine import SingleMachine, TargetScale
from margrove.margin.svm.support_vector_machine import SVM_PARAMETERS, StatedFit, power_of_two_near

__all__ = ["OneClassSVM"]


class OneClassSVM(OutlierMixin, SingleMachine):
    """The region of feature space that contains all but a share nu of the data.

    It is a half-space of the kernel's feature space, as far from the origin as possible.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        A name in `margrove.kernels.KERNELS`, "precomputed", a kernel object such as
        `margrove.kernels.RBF(sigma=2.0)`, or a function of two matrices. Objects and functions
        have their own parameters: `gamma`, `degree` and `coef0` are then not used.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        1 / (n_features * X.var()), 1 / n_features, or a number.
    coef0 : float, default=0
        Of the polynomial and sigmoid kernels.
    tol : float, default=1e-3
        The largest KKT violation that is accepted, over all rows.
    cache_size : float or None, default=None
        Megabytes for rows of the Gram matrix; None means 40 % of the free memory. The result does
        not depend on it.
    nu : float, default=0.5
        An upper bound on the share of outliers and a lower bound on the share of support vectors.
    shrinking : bool, default=True
        Accepted for compatibility, without effect: the solver works on blocks of the variables that
        violate the optimality conditions.
    warm_start : bool, default=False
        Start from the solution of the last fit, if it had as many rows and the same classes.
    n_jobs : int or None, default=None
        Threads; None means all available cores. The result does not depend on it.
    max_time : float or None, default=None
        Seconds after which `fit` stops and keeps its current solution, with a warning.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: leave the estimator as it was, or keep what has been learnt so far.
    verbose : int, default=0
        Show a progress bar.
    max_iter : int, default=-1
        Maximum number of pair steps of a machine; -1 means a limit that is hardly ever reached.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Training rows that are support vectors.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features)
        Empty for kernel="precomputed".
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_support)
        alpha_i, at most the weight of the row; the sum is nu * n_samples.
    intercept_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, n_features)
        Of the linear kernel only.
    kernel_ : Kernel
        The kernel with its parameters, for rows times `feature_scale_`.
    feature_scale_ : float
        1, or a power of two if features are so large or small that their squares overflow or
        underflow.
    n_iter_ : int
        Pair steps.
    certificate_ : Certificate
        A proof of how good the fit is: objectives, duality gap, KKT violation, kinds of support
        vectors. It is computed at the first access.
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    shape_fit_ : tuple
    n_features_in_ : int
    feature_names_in_ : ndarray
    offset_ : ndarray of shape (1,)
        Minus the intercept: decision_function is score_samples minus the offset.

    Examples
    --------
    >>> from margrove import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> OneClassSVM(gamma="auto", nu=0.4).fit_predict(X)
    array([-1,  1,  1,  1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SVM_PARAMETERS,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float | None = None,
        verbose: int = 0,
        max_iter: int = -1,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the region of the data.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Or the Gram matrix (n_samples, n_samples) for kernel="precomputed".
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none.

        Returns
        -------
        self
        """
        if takes_objects(self.kernel, X):
            return self._fit_to_objects(X, sample_weight=sample_weight)
        with single_threaded_blas():  # once, because its limits take a while to set
            stated = self._stated(X, y, sample_weight)
            self._commit(stated.attributes(self._solve(stated)))
        return self

    def _stated(self, X: Any, y: Any = None, sample_weight: Any = None) -> StatedFit:
        self._check_parameters()
        table = self._check_training_table(X)
        n_rows = table.X.shape[0]
        weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
        form = self._canonical_rows(table.X, np.zeros(table.X.shape[0]), weight)
        training = self._training_set(table.X, form, np.arange(len(form.rows)))
        unit = power_of_two_near(form.weight)
        problem = one_class(form.weight / unit, float(self.nu))
        scale = TargetScale(0.0, 1.0 / unit)
        return self._stated_one(training, problem, scale, table, (X, y, sample_weight))

    def _learnt(
        self, training: TrainingSet, problem: DualProblem, result: SolverResult, scale: TargetScale
    ) -> dict[str, Any]:
        found = super()._learnt(training, problem, result, scale)
        return found | {"offset_": -found["intercept_"]}

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance to the boundary in feature space, up to scale: positive inside.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._values(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """The decision function without its offset.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._values(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows in the region, -1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self._sound_rows(X)
        values = self._signed_values(X)
        return np.where((self._values_of(X) if values is None else values) >= 0, 1, -1)

    def _signed_values(self, X: Any) -> np.ndarray | None:
        """Values of few rows with the right signs; None if the signs are not proved."""
        found = self._bounded_expansion(X, np.array([0, len(self.support_)]))
        if found is None:
            return None
        sums, bounds = found
        values = sums[0, :, 0] + self.intercept_[0]
        return values if (np.abs(values) > bounds[0, :, 0]).all() else None
