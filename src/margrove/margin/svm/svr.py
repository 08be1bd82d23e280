"""Estimators: SVR and NuSVR, support vector machines for regression."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import check_targets, check_weights, moderate
from margrove._runtime import single_threaded_blas
from margrove.exceptions import DataWarning, NotSeparableError
from margrove.margin.kernels import Kernel, takes_objects
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.problems import DualProblem, epsilon_svr, nu_svr
from margrove.margin.svm.single_machine import SingleMachine, TargetScale
from margrove.margin.svm.support_vector_machine import SVM_PARAMETERS, StatedFit

__all__ = ["SVR", "NuSVR"]

_NO_BOUND = 1e10  # limit of C K / range(y) that has no effect on the solution


def _tube_too_narrow(training: TrainingSet, result: SolverResult) -> NotSeparableError:
    """The error for C=inf without a solution; it names the rows whose dual variables diverge."""
    n = len(training.rows)
    pull = np.abs(result.alpha[:n] - result.alpha[n:]) if len(result.alpha) > n else result.alpha
    worst = np.argsort(-pull, kind="stable")[:10]
    worst = worst[pull[worst] > 1e-3 * pull.max()]
    rows = training.rows[worst]
    return NotSeparableError(
        "No function of this kernel passes within epsilon of all targets, so C=inf has no "
        f"solution: rows {', '.join(str(row) for row in rows[:5].tolist())} contradict each "
        "other. Use a finite C, a larger epsilon or a more flexible kernel.",
        rows,
        pull[worst] / pull.sum(),
    )


class SupportVectorRegressor(RegressorMixin, SingleMachine):
    """The base class of SVR and NuSVR: everything except the dual problem."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a function with a tube around it to the targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Or the Gram matrix (n_samples, n_samples) for kernel="precomputed", or a sequence of
            objects for a kernel function.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none.

        Returns
        -------
        self
        """
        if takes_objects(self.kernel, X):
            return self._fit_to_objects(X, y=y, sample_weight=sample_weight)
        with single_threaded_blas():  # once, because its limits take a while to set
            stated = self._stated(X, y, sample_weight)
            self._commit(stated.attributes(self._solve(stated)))
        return self

    def _stated(self, X: Any, y: Any, sample_weight: Any = None) -> StatedFit:
        self._check_parameters()
        table = self._check_training_table(X)
        targets = check_targets(y, table.X.shape[0])
        n_rows = table.X.shape[0]
        weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
        form = self._canonical_rows(table.X, targets, weight)
        training = self._training_set(table.X, form, np.arange(len(form.rows)))
        has_bias = getattr(self, "fit_intercept", True)
        scale = TargetScale.of(targets[training.rows], centred=has_bias)
        bounds = self._bounds(training, form.weight * scale.factor)
        if np.isinf(self.C) or scale.factor != 1.0:
            # A bound that has no effect on the solution, within the precision of float64.
            spread = float(np.abs(scale.apply(targets[training.rows])).max()) or 1.0
            typical = float(np.abs(training.kernel.diagonal(training.points)).mean()) or 1.0
            limit = _NO_BOUND * spread / typical
            if np.isfinite(self.C) and bounds.max() > limit:
                warnings.warn(
                    f"C={self.C:g} is too large for floating point with targets of this size, and "
                    f"is reduced to {limit / scale.factor:.3g}. Scale y.",
                    DataWarning,
                    stacklevel=3,
                )
            bounds = np.minimum(bounds, limit)
        problem = self._dual_problem(scale.apply(targets[training.rows]), bounds, scale)
        return self._stated_one(training, problem, scale, table, (X, y, sample_weight))

    def predict(self, X: Any) -> np.ndarray:
        """The value of the function at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._values(X)

    def _require_solution(
        self, training: TrainingSet, problem: DualProblem, result: SolverResult
    ) -> None:
        if np.isinf(self.C) and (result.alpha >= problem.u * (1.0 - 1e-9)).any():
            raise _tube_too_narrow(training, result)

    @abstractmethod
    def _dual_problem(
        self, targets: np.ndarray, bounds: np.ndarray, scale: TargetScale
    ) -> DualProblem:
        """The dual problem, for scaled targets and bounds."""


class SVR(SupportVectorRegressor):
    """Support vector regression: errors below epsilon cost nothing.

    Minimises ``1/2 ||w||^2 + C sum_i max(0, |y_i - f(x_i)| - epsilon)``.

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
    C : float, default=1
        Penalty on errors beyond the tube. `inf` means a function within epsilon of all targets, or
        a `NotSeparableError` if the kernel has no such function.
    epsilon : float, default=0.1
        Half the width of the tube in which errors cost nothing.
    shrinking : bool, default=True
        Accepted for compatibility, without effect: the solver works on blocks of the variables that
        violate the optimality conditions.
    solver : {"auto", "smo", "cd"}, default="auto"
        "smo" works for every size. "cd", which needs the full Gram matrix, is dual coordinate
        descent for `fit_intercept=False`. "auto" is "cd" without a bias, else "smo".
    fit_intercept : bool, default=True
        Whether the machine has a bias.
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
        alpha_i - alpha_i*: positive where the target lies above the tube.
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

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SVR
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = SVR(C=10, epsilon=0.01).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.0]]) - np.sin(1.0)) < 0.02)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SVM_PARAMETERS,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "solver": [StrOptions({"auto", "smo", "cd"})],
        "fit_intercept": ["boolean"],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float | None = None,
        verbose: int = 0,
        max_iter: int = -1,
        solver: Literal["auto", "smo", "cd"] = "auto",
        fit_intercept: bool = True,
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
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _dual_problem(
        self, targets: np.ndarray, bounds: np.ndarray, scale: TargetScale
    ) -> DualProblem:
        spread = float(targets.max() - targets.min())
        if 0.0 < spread <= 2.0 * self.epsilon * scale.factor:
            warnings.warn(
                f"epsilon={self.epsilon:g} is at least half the range of y, so that a constant "
                "function has no errors and there are no support vectors. Use a smaller epsilon, "
                "or scale y.",
                DataWarning,
                stacklevel=4,
            )
        epsilon = float(self.epsilon) * scale.factor
        return epsilon_svr(targets, bounds, epsilon, has_bias=self.fit_intercept)


class NuSVR(SupportVectorRegressor):
    """Support vector regression with a bound nu on the share of rows outside the tube.

    The tube is as narrow as this bound allows.

    Parameters
    ----------
    nu : float, default=0.5
        An upper bound on the share of rows outside the tube and a lower bound on the share of
        support vectors.
    C : float, default=1
        Penalty on errors beyond the tube.
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
    shrinking : bool, default=True
        Accepted for compatibility, without effect: the solver works on blocks of the variables that
        violate the optimality conditions.
    tol : float, default=1e-3
        The largest KKT violation that is accepted, over all rows.
    cache_size : float or None, default=None
        Megabytes for rows of the Gram matrix; None means 40 % of the free memory. The result does
        not depend on it.
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
        alpha_i - alpha_i*: positive where the target lies above the tube.
    intercept_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, n_features)
        Of the linear kernel only.
    epsilon_ : float
        Half the width of the tube that was found.
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

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import NuSVR
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = NuSVR(C=10, nu=0.5).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.0]]) - np.sin(1.0)) < 0.02)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SVM_PARAMETERS,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float | None = None,
        verbose: int = 0,
        max_iter: int = -1,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _dual_problem(
        self, targets: np.ndarray, bounds: np.ndarray, scale: TargetScale
    ) -> DualProblem:
        return nu_svr(targets, bounds, float(self.nu))

    def _learnt(
        self, training: TrainingSet, problem: DualProblem, result: SolverResult, scale: TargetScale
    ) -> dict[str, Any]:
        tube = max(0.0, -result.r / scale.factor)
        return super()._learnt(training, problem, result, scale) | {"epsilon_": tube}
