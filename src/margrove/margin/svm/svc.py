"""Estimators: SVC and NuSVC, support vector machines for classification."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import OneClassLeftError, TrainingLabels
from margrove.exceptions import DataWarning, InfeasibleNuError
from margrove.margin.kernels import Kernel
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.problems import DualProblem, c_svc, largest_feasible_nu, nu_svc
from margrove.margin.svm.support_vector_classifier import (
    CLASSIFIER_PARAMETERS,
    SupportVectorClassifier,
)
from margrove.margin.svm.support_vector_machine import Machine, power_of_two_near

__all__ = ["SVC", "NuSVC"]

_LARGE_PRICE = 1e6  # up to which no kernel value is looked at
_LARGEST_PULL = 1e16  # of C K: 1 over the precision of float64
_NO_MARGIN = 1e-9


class SVC(SupportVectorClassifier):
    """Support vector classifier with a penalty C on margin errors.

    Minimises 1/2 ||w||^2 + C sum_i xi_i subject to y_i f(x_i) >= 1 - xi_i, xi_i >= 0, through its
    dual, by sequential minimal optimisation on blocks.

    Parameters
    ----------
    C : float, default=1
        Penalty on slack. `inf` means the hard margin: no slack, or a `NotSeparableError` that
        proves that no hyperplane separates the classes; with many classes, of each pair.
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
    class_weight : dict, "balanced" or None, default=None
        Factors on C of the rows of each class.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes, one machine for each pair, or one for each class against the
        rest.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of one-vs-one machines: a column for each class, or for each pair.
    break_ties : bool, default=False
        Break ties between classes with equally many votes by their decision values.
    probability : bool, default=False
        Calibrate probabilities by five-fold cross-validation inside `fit`. They always agree with
        `predict`.
    random_state : int, RandomState, Generator or None, default=0
        For the folds of `probability=True`.
    solver : {"auto", "smo", "hull", "cd", "sgd"}, default="auto"
        "smo" works for every size. The others need the full Gram matrix: "hull" finds the nearest
        points of the (reduced) convex hulls of the two classes, "cd" is dual coordinate descent for
        `fit_intercept=False`, "sgd" takes stochastic subgradient steps on the primal until the
        relative duality gap is 1 %. "auto" is "hull" for C=inf, "cd" without a bias, else "smo".
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
        Training rows that are support vectors, class by class.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features)
        Empty for kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    dual_coef_ : ndarray of shape (1 or n_classes - 1, n_support)
        alpha_i y_i. With more than two classes in LIBSVM's layout: the coefficients of a vector in
        its pairs with the other classes, in order. For "ovr", shape (n_classes, n_support).
    intercept_ : ndarray of shape (n_machines,)
    coef_ : ndarray of shape (n_machines, n_features)
        Of the linear kernel only.
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
        The kernel with its parameters, for rows times `feature_scale_`.
    feature_scale_ : float
        1, or a power of two if features are so large or small that their squares overflow or
        underflow.
    n_iter_ : ndarray of shape (n_machines,)
        Pair steps.
    probA_, probB_ : ndarray of shape (n_machines,)
        With `probability=True`: P(positive side) = ``1 / (1 + exp(probA_ * f + probB_))``. The
        offset is 0, so that the probability is one half at f = 0. Deprecated, as in scikit-learn
        1.9.
    price_of_agreement_ : PriceOfAgreement
        With `probability=True`: the log-loss, and the log-loss of probabilities that do not have to
        agree with `predict`.
    certificate_ : Certificate
        A proof of how good the fit is: objectives, duality gap, KKT violation, kinds of support
        vectors. It is computed at the first access.
    fit_status_ : int
        0 if all machines reached the tolerance, else 1.
    shape_fit_ : tuple
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import SVC
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> SVC(C=10).fit(X, y).score(X, y) > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0.0, None, closed="right")],
        "solver": [StrOptions({"auto", "smo", "hull", "cd", "sgd"})],
        "fit_intercept": ["boolean"],
        **CLASSIFIER_PARAMETERS,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float | None = None,
        class_weight: Any = None,
        verbose: int = 0,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: Any = 0,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        solver: Literal["auto", "smo", "hull", "cd", "sgd"] = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _dual_problem(self, signs: np.ndarray, bounds: np.ndarray) -> DualProblem:
        return c_svc(signs, bounds, has_bias=self.fit_intercept)

    def _bounds_of(self, training: TrainingSet, weight: np.ndarray) -> np.ndarray:
        """C times the weights, up to where a margin of 1 is lost in the rounding of C K."""
        bounds, price = self._bounds(training, weight), float(self.C)
        if price <= _LARGE_PRICE or price == np.inf:
            return bounds
        largest = float(np.abs(training.kernel.diagonal(training.points)).max())
        return np.minimum(bounds, _LARGEST_PULL / largest) if largest > 0.0 else bounds

    def _unscaled(self, machine: Machine, result: SolverResult) -> tuple[np.ndarray, float]:
        return result.alpha, result.rho

    def _scale_of(self, problem: DualProblem, result: SolverResult) -> float:
        return 1.0


class NuSVC(SupportVectorClassifier):
    """Support vector classifier with a bound nu on the share of margin errors.

    nu in (0, 1] is an upper bound on the share of margin errors and a lower bound on the share of
    support vectors. The solution is that of an `SVC` with a certain C, which need not be known.

    Parameters
    ----------
    nu : float, default=0.5
        At most twice the share of the smaller class.
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
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes, one machine for each pair, or one for each class against the
        rest.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of one-vs-one machines: a column for each class, or for each pair.
    break_ties : bool, default=False
        Break ties between classes with equally many votes by their decision values.
    probability : bool, default=False
        Calibrate probabilities by five-fold cross-validation inside `fit`. They always agree with
        `predict`.
    random_state : int, RandomState, Generator or None, default=0
        For the folds of `probability=True`.
    solver : {"auto", "smo", "hull"}, default="auto"
        "smo" works for every size. "hull", which needs the full Gram matrix, finds the nearest
        points of the reduced convex hulls of the two classes. "auto" is "smo".
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
        Training rows that are support vectors, class by class.
    support_vectors_ : ndarray or CSR of shape (n_support, n_features)
        Empty for kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    dual_coef_ : ndarray of shape (1 or n_classes - 1, n_support)
        alpha_i y_i. With more than two classes in LIBSVM's layout: the coefficients of a vector in
        its pairs with the other classes, in order. For "ovr", shape (n_classes, n_support).
    intercept_ : ndarray of shape (n_machines,)
    coef_ : ndarray of shape (n_machines, n_features)
        Of the linear kernel only.
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
        The kernel with its parameters, for rows times `feature_scale_`.
    feature_scale_ : float
        1, or a power of two if features are so large or small that their squares overflow or
        underflow.
    n_iter_ : ndarray of shape (n_machines,)
        Pair steps.
    probA_, probB_ : ndarray of shape (n_machines,)
        With `probability=True`: P(positive side) = ``1 / (1 + exp(probA_ * f + probB_))``. The
        offset is 0, so that the probability is one half at f = 0. Deprecated, as in scikit-learn
        1.9.
    price_of_agreement_ : PriceOfAgreement
        With `probability=True`: the log-loss, and the log-loss of probabilities that do not have to
        agree with `predict`.
    certificate_ : Certificate
        A proof of how good the fit is: objectives, duality gap, KKT violation, kinds of support
        vectors. It is computed at the first access.
    fit_status_ : int
        0 if all machines reached the tolerance, else 1.
    shape_fit_ : tuple
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import NuSVC
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> NuSVC(nu=0.1).fit(X, y).score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "solver": [StrOptions({"auto", "smo", "hull"})],
        **CLASSIFIER_PARAMETERS,
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: str | Kernel | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float | None = None,
        class_weight: Any = None,
        verbose: int = 0,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: Any = 0,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        solver: Literal["auto", "smo", "hull"] = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    _keeps_sums = True

    def _labels(self, y: Any, sample_weight: Any, n_rows: int) -> TrainingLabels:
        try:
            return super()._labels(y, sample_weight, n_rows)
        except OneClassLeftError as error:  # with one class, no nu > 0 is feasible
            raise InfeasibleNuError(float(self.nu), 0.0) from error

    def _dual_problem(self, signs: np.ndarray, weight: np.ndarray) -> DualProblem:
        nu = float(self.nu)
        feasible = largest_feasible_nu(signs, weight)
        # Repeated rows have been merged, so they are weights as well.
        if nu > feasible and np.any(weight != 1.0):
            warnings.warn(
                f"nu={nu:g} is infeasible with these weights and repeated rows: it is reduced to "
                f"{feasible:.6g}, twice the share of the lighter class.",
                DataWarning,
                stacklevel=3,
            )
            nu = feasible
        return nu_svc(signs, nu, weight)

    def _bounds_of(self, training: TrainingSet, weight: np.ndarray) -> np.ndarray:
        return weight / power_of_two_near(weight)  # the solution does not depend on their unit

    def _unscaled(self, machine: Machine, result: SolverResult) -> tuple[np.ndarray, float]:
        problem = machine.problem
        if result.r <= _NO_MARGIN * _class_sum(problem):
            warnings.warn(
                f"nu={self.nu:g} leaves no margin{machine.name and f' for {machine.name}'}: so few "
                "margin errors are not possible, and the class with the larger weight is predicted "
                "for all rows. Use a larger nu.",
                DataWarning,
                stacklevel=4,
            )
            return np.zeros(len(problem)), -float(np.sign(problem.u @ problem.y) or 1.0)
        r = self._scale_of(problem, result)
        heavier = float(np.sign(problem.u @ problem.y))
        return result.alpha / r, (result.rho - heavier * (r - result.r)) / r

    def _scale_of(self, problem: DualProblem, result: SolverResult) -> float:
        """r, or more if nu was reduced.

        Then all rows of the lighter class are at their bound, and the hyperplane can be moved
        towards this class without leaving the optimum, by the amount by which nu was reduced.
        """
        shortfall = max(0.0, 1.0 - float(problem.start.sum() / problem.u.sum()) / float(self.nu))
        return (1.0 + shortfall) * result.r


def _class_sum(problem: DualProblem) -> float:
    """The sum of the alphas of each class of a nu-SVC."""
    return 0.5 * float(problem.start.sum())
