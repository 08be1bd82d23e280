"""Proofs of how good a fitted support vector machine is, in float64, from public attributes only.

No internal state of a solver is used. Decision values of the training rows are computed from
support vectors, dual coefficients and intercept. From these follow the primal objective, the dual
objective, their difference, which bounds the error of both, and the largest violation of the KKT
conditions. So scikit-learn's machines can be certified as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_table, check_weights, moderate
from margrove._runtime import available_cores
from margrove.exceptions import InvalidDataError
from margrove.margin.kernels import Kernel, Points, Precomputed, dual_coefficients, kernel_sums
from margrove.margin.solvers.dual import TracePoint
from margrove.margin.svm.machine_views import AT_BOUND, VIEWS, MachineView, kernel_of
from margrove.margin.svm.problems import duality_gap

__all__ = ["Certificate", "MachineCertificate", "certificate"]

_LINEAR = ("LinearSVC", "LinearSVR")


@dataclass(frozen=True)
class MachineCertificate:
    """The proof for one machine.

    Attributes
    ----------
    name : the classes that it separates
    primal, dual : float
        Objectives. The optimal value lies between them.
    gap : float
        primal - dual >= 0.
    violation : float
        The largest KKT violation; 0 is optimal.
    violating_rows : tuple of two rows of X between which it is found
    norm : float
        ||w|| in feature space.
    rows : ndarray, the rows of X that the machine was fitted to
    alpha : ndarray, the dual variables of these rows; for regression alpha - alpha*
    decision : ndarray, f(x) of these rows
    errors : ndarray, the slack xi of these rows
    is_bounded : ndarray of bool, whether alpha is at its upper bound
    trace : list of TracePoint, the progress of the solver, if it is known
    """

    name: str
    primal: float
    dual: float
    gap: float
    violation: float
    violating_rows: tuple[int, int]
    norm: float
    rows: np.ndarray
    alpha: np.ndarray
    decision: np.ndarray
    errors: np.ndarray
    is_bounded: np.ndarray
    trace: list[TracePoint] = field(default_factory=list)

    @property
    def margin_width(self) -> float:
        """2 / ||w||, the distance between the two margins."""
        return 2.0 / self.norm if self.norm > 0 else np.inf

    @property
    def relative_gap(self) -> float:
        scale = max(abs(self.primal), abs(self.dual))
        return self.gap / scale if scale > 0 else 0.0

    @property
    def place(self) -> str:
        """Where the largest violation is, as text."""
        first, second = self.violating_rows
        if self.violation == 0 or first < 0:
            return ""
        return f"at row {first}" if first == second else f"between rows {first} and {second}"

    @property
    def support(self) -> np.ndarray:
        return self.rows[self.alpha != 0]

    @property
    def free(self) -> np.ndarray:
        """Support vectors below their bound."""
        return self.rows[(self.alpha != 0) & ~self.is_bounded]

    @property
    def bounded(self) -> np.ndarray:
        """Support vectors at their bound C."""
        return self.rows[(self.alpha != 0) & self.is_bounded]

    @property
    def on_margin(self) -> np.ndarray:
        """Support vectors without slack: y f(x) = 1."""
        return self.rows[self._kind(lambda xi: xi <= self._resolution)]

    @property
    def inside_margin(self) -> np.ndarray:
        """Support vectors on the right side of the hyperplane, inside the margin: 0 < xi <= 1."""
        return self.rows[self._kind(lambda xi: (xi > self._resolution) & (xi <= 1.0))]

    @property
    def misclassified(self) -> np.ndarray:
        """Support vectors on the wrong side of the hyperplane: xi > 1."""
        return self.rows[self._kind(lambda xi: xi > 1.0)]

    @property
    def _resolution(self) -> float:
        """Slack below this is zero within the precision of the solution."""
        return max(self.violation, 1e-9)

    def _kind(self, where: Any) -> np.ndarray:
        return (self.alpha != 0) & where(self.errors)

    def slack(self, row: int) -> float:
        """The slack xi of a row of X: its distance beyond the margin (or the tube)."""
        places = np.flatnonzero(self.rows == row)
        if not len(places):
            raise InvalidDataError(f"This machine ({self.name}) was not fitted to row {row}.")
        return float(self.errors[places[0]])


@dataclass(frozen=True)
class Certificate:
    """The proof for a fitted support vector machine; see `machines` for each binary machine.

    Objectives and gap are sums over the machines, the violation is the maximum.
    """

    machines: tuple[MachineCertificate, ...]

    @property
    def primal(self) -> float:
        return sum(machine.primal for machine in self.machines)

    @property
    def dual(self) -> float:
        return sum(machine.dual for machine in self.machines)

    @property
    def gap(self) -> float:
        return sum(machine.gap for machine in self.machines)

    @property
    def relative_gap(self) -> float:
        scale = max(abs(self.primal), abs(self.dual))
        return self.gap / scale if scale > 0 else 0.0

    @property
    def violation(self) -> float:
        return max(machine.violation for machine in self.machines)

    @property
    def worst(self) -> MachineCertificate:
        """The machine with the largest violation."""
        return max(self.machines, key=lambda machine: machine.violation)

    def __getattr__(self, name: str) -> Any:
        """Attributes of MachineCertificate, if there is only one machine."""
        if name.startswith("_") or (
            not hasattr(MachineCertificate, name)
            and (name not in MachineCertificate.__dataclass_fields__)
        ):
            raise AttributeError(f"Certificate has no attribute {name!r}")
        if len(self.machines) != 1:
            raise AttributeError(
                f"There are {len(self.machines)} machines, and each has its {name!r}: use "
                f"certificate.machines[k].{name}."
            )
        return getattr(self.machines[0], name)

    def __str__(self) -> str:
        lines = [
            f"primal objective  {self.primal:.10g}",
            f"dual objective    {self.dual:.10g}",
            f"duality gap       {self.gap:.3g}  ({100 * self.relative_gap:.2g} %)",
            f"KKT violation     {self.violation:.3g}  {self.worst.place}",
        ]
        if len(self.machines) == 1:
            only = self.machines[0]
            lines += [
                f"margin width      {only.margin_width:.6g}",
                f"support vectors   {len(only.support)}, {len(only.bounded)} of them at the bound",
            ]
        else:
            lines.append(f"machines          {len(self.machines)}, worst: {self.worst.name}")
        return "\n".join(lines)


def certificate(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """Prove how good a fitted support vector machine is, margrove's or scikit-learn's.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
    X, y, sample_weight : the data that it was fitted to

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import margrove
    >>> from sklearn.svm import SVC
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> proof = margrove.certificate(SVC(kernel="linear").fit(X[:100], y[:100]), X[:100], y[:100])
    >>> proof.relative_gap < 1e-3
    True
    """
    check_is_fitted(model)
    if any(cls.__name__ in _LINEAR for cls in type(model).__mro__):
        from margrove.margin.linear import certificate_of_linear

        return certificate_of_linear(model, X, y, sample_weight)
    kind = next((cls.__name__ for cls in type(model).__mro__ if cls.__name__ in VIEWS), None)
    if kind is None:
        raise TypeError(
            f"model must be one of {', '.join(sorted([*VIEWS, *_LINEAR]))}, of margrove or of "
            f"scikit-learn. Got {type(model).__name__}."
        )
    kernel = kernel_of(model)
    table = check_table(X, model, accept_sparse=not isinstance(kernel, Precomputed))
    n_rows = table.X.shape[0]
    weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
    values = _KernelValues(kernel, model, table.X)
    _require_same_rows(model, table.X)
    views = VIEWS[kind](model, X, y, weight, dual_coefficients(model))
    return Certificate(tuple(_certify(view, values) for view in views))


def _require_same_rows(model: Any, X: Any) -> None:
    """Raise InvalidDataError unless the support vectors are rows of X."""
    support, vectors = np.asarray(model.support_), model.support_vectors_
    if len(support) and support.max() >= X.shape[0]:
        raise InvalidDataError(
            f"The model has row {support.max()} among its support vectors, but X has only "
            f"{X.shape[0]} rows. Pass the X that it was fitted to."
        )
    if vectors.shape[0] == 0:  # precomputed
        return
    difference = X[support] - vectors
    differs = difference.nnz > 0 if sp.issparse(difference) else np.any(difference != 0)
    if differs:
        raise InvalidDataError(
            "The support vectors of the model are not rows of X. Pass the X that it was fitted to, "
            "unchanged."
        )


def _certify(view: MachineView, values_of: _KernelValues) -> MachineCertificate:
    problem = view.problem
    values = values_of(view.coef, view.rows)
    f = values[problem.rows] + problem.y * problem.p
    quadratic = float(view.coef[view.rows] @ values)
    dual = -(0.5 * quadratic + float(problem.p @ view.alpha))
    reduced = problem.y * f - view.rho * problem.y
    gap = duality_gap(problem, view.alpha, values, view.rho)
    if np.isinf(gap):  # a hard margin: no slack is allowed, but a longer w is feasible
        smallest = 1.0 - float(np.maximum(-reduced, 0.0).max())
        gap = 0.5 * quadratic / smallest**2 - dual if smallest > 0 else np.inf
    at_upper = view.alpha >= problem.u * (1.0 - AT_BOUND)
    above_zero = view.alpha > 0
    positive = problem.y > 0
    up = np.where(positive, ~at_upper, above_zero)
    low = np.where(positive, above_zero, ~at_upper)
    violation, worst = _worst_violation(f, up, low, has_bias=problem.has_bias)
    n = len(view.rows)
    errors = np.zeros(n)
    np.maximum.at(errors, problem.rows, np.maximum(-reduced, 0.0))
    bounded = np.zeros(n, dtype=bool)
    bounded[problem.rows[at_upper & (view.alpha > 0)]] = True
    coef = view.coef[view.rows]

    def rows_of(i: int, j: int) -> tuple[int, int]:
        return int(view.rows[problem.rows[i]]), int(view.rows[problem.rows[j]])

    return MachineCertificate(
        name=view.name,
        primal=dual + gap,
        dual=dual,
        gap=gap,
        violation=violation,
        violating_rows=(-1, -1) if worst is None else rows_of(*worst),
        norm=float(np.sqrt(max(quadratic, 0.0))),
        rows=view.rows,
        alpha=coef if len(problem) > n else np.abs(coef),
        decision=values - view.rho,
        errors=errors,
        is_bounded=bounded,
    )


def _worst_violation(
    f: np.ndarray, up: np.ndarray, low: np.ndarray, *, has_bias: bool
) -> tuple[float, tuple[int, int] | None]:
    """The largest KKT violation, and the two variables between which it is found.

    f are the values y_i G_i of the variables; `up` and `low` say where y_i a_i can grow and shrink.
    Without a bias each variable has its own violation.
    """
    if not has_bias:
        misses = np.where(up & low, np.abs(f), np.where(up, -f, np.where(low, f, 0.0)))
        worst = int(misses.argmax())
        return max(0.0, float(misses[worst])), (worst, worst)
    if up.any() and low.any():
        i = int(np.argmin(np.where(up, f, np.inf)))
        j = int(np.argmax(np.where(low, f, -np.inf)))
        if f[j] - f[i] > 0.0:
            return float(f[j] - f[i]), (i, j)
    return 0.0, None


class _KernelValues:
    """Computes (K c)_i of some rows of X, for coefficients c of all rows."""

    def __init__(self, kernel: Kernel, model: Any, X: Any) -> None:
        self._kernel = kernel
        X = X.astype(np.float64, copy=False) * float(getattr(model, "feature_scale_", 1.0))
        points = kernel.points(X, shift=kernel.centre(X))
        self._points = Points(points.X, points.squared_norms, np.arange(X.shape[0]))

    def __call__(self, coef: np.ndarray, rows: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(coef)
        return kernel_sums(
            self._kernel,
            self._points.take(rows),
            self._points.take(support),
            coef[support, None],
            n_threads=available_cores(),
        )[:, 0]
