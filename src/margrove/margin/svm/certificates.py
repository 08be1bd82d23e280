"""Proof of how good a fitted support vector machine is, in float64 and from its public face alone.

Nothing of a solver's bookkeeping is used: decision values of the training rows are computed from
support vectors, dual coefficients and intercept, and from them the primal objective, the dual one,
their difference, which bounds the error of both, and the largest violation of the KKT conditions.
So scikit-learn's machines can be certified as well as ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_table, check_targets, check_weights, moderate
from margrove._runtime import available_cores
from margrove.exceptions import InvalidDataError
from margrove.margin.kernels import (
    Kernel,
    Linear,
    Points,
    Precomputed,
    dual_coefficients,
    kernel_sums,
    resolve_kernel,
)
from margrove.margin.solvers.dual import TracePoint
from margrove.margin.svm.gaps import gap_terms
from margrove.margin.svm.multiclass import machine_coefs, pairs_of
from margrove.margin.svm.problems import (
    LARGEST_BOUND,
    DualProblem,
    c_svc,
    epsilon_svr,
    one_class,
)

__all__ = ["Certificate", "MachineCertificate", "certificate"]

_AT_BOUND = 1e-9  # relative
_LINEAR = ("LinearSVC", "LinearSVR")


@dataclass(frozen=True)
class MachineCertificate:
    """What can be proved of one machine.

    Attributes
    ----------
    name : which classes it tells apart
    primal, dual : float
        Objectives. The best possible value lies between them.
    gap : float
        primal - dual >= 0.
    violation : float
        The largest KKT violation; 0 is optimal.
    violating_rows : tuple of two rows of X between which it is found
    norm : float
        ||w|| in feature space.
    rows : ndarray of the rows of X that took part
    alpha : ndarray, the dual variables of these rows; for regression alpha - alpha*
    decision : ndarray, f(x) of these rows
    errors : ndarray, the slack xi of these rows
    is_bounded : ndarray of bool, whether alpha is at its upper bound
    trace : list of TracePoint, how the solver came there, as far as it is known
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
        """Where the largest violation is, in words."""
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
        """Support vectors on the right side of the plane but too close: 0 < xi <= 1."""
        return self.rows[self._kind(lambda xi: (xi > self._resolution) & (xi <= 1.0))]

    @property
    def misclassified(self) -> np.ndarray:
        """Support vectors on the wrong side of the plane: xi > 1."""
        return self.rows[self._kind(lambda xi: xi > 1.0)]

    @property
    def _resolution(self) -> float:
        """Slack below it cannot be told from none, given how exactly the problem was solved."""
        return max(self.violation, 1e-9)

    def _kind(self, where: Any) -> np.ndarray:
        return (self.alpha != 0) & where(self.errors)

    def slack(self, row: int) -> float:
        """xi of a row of X: by how much it misses its margin (or its tube)."""
        places = np.flatnonzero(self.rows == row)
        if not len(places):
            raise InvalidDataError(f"Row {row} did not take part in this machine ({self.name}).")
        return float(self.errors[places[0]])


@dataclass(frozen=True)
class Certificate:
    """What can be proved of a fitted support vector machine; see `machines` for its parts.

    Objectives and gap are sums over the machines, the violation is the largest of theirs.
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
        """What only one machine has, of the only machine."""
        if name.startswith("_") or (
            not hasattr(MachineCertificate, name)
            and (name not in MachineCertificate.__dataclass_fields__)
        ):
            raise AttributeError(f"Certificate has no attribute {name!r}")
        if len(self.machines) != 1:
            raise AttributeError(
                f"There are {len(self.machines)} machines, each with its own {name!r}: use "
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
    """Prove how good a fitted support vector machine is, ours or scikit-learn's.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
    X, y, sample_weight : what it was fitted to

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
    kind = next((cls.__name__ for cls in type(model).__mro__ if cls.__name__ in _VIEWS), None)
    if kind is None:
        raise TypeError(
            f"certificate knows {', '.join(sorted([*_VIEWS, *_LINEAR]))}, of margrove and of "
            f"scikit-learn. Got {type(model).__name__}."
        )
    kernel = _kernel_of(model)
    table = check_table(X, model, accept_sparse=not isinstance(kernel, Precomputed))
    n_rows = table.X.shape[0]
    weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
    values = _KernelValues(kernel, model, table.X)
    _require_same_rows(model, table.X)
    parts = _VIEWS[kind](model, X, y, weight, dual_coefficients(model))
    return Certificate(tuple(_certify(part, values) for part in parts))


def _require_same_rows(model: Any, X: Any) -> None:
    """The support vectors are rows of X, or X is not what the model was fitted to."""
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


@dataclass(frozen=True)
class _View:
    """One machine seen from outside: its problem over `rows`, its point, its offset."""

    name: str
    rows: np.ndarray
    problem: DualProblem
    alpha: np.ndarray
    coef: np.ndarray  # of all rows of X
    rho: float
    r: float = 0.0
    constant: float = 0.0  # of the primal objective


def _certify(view: _View, values_of: _KernelValues) -> MachineCertificate:
    problem = view.problem
    values = values_of(view.coef, view.rows)
    f = values[problem.rows] + problem.y * problem.p
    quadratic = float(view.coef[view.rows] @ values)
    dual = -(0.5 * quadratic + float(problem.p @ view.alpha))
    reduced = problem.y * f - view.rho * problem.y - view.r
    gap = float(gap_terms(problem, view.alpha, values, view.rho, view.r).sum())
    if np.isinf(gap):  # a hard margin: slack is not for sale, but w can be made longer
        smallest = 1.0 - float(np.maximum(-reduced, 0.0).max())
        gap = 0.5 * quadratic / smallest**2 - dual if smallest > 0 else np.inf
    # A bound is met if nothing worth mentioning is missing.
    at_upper = view.alpha >= problem.u * (1.0 - _AT_BOUND)
    above_zero = view.alpha > 0
    positive = problem.y > 0
    up = np.where(positive, ~at_upper, above_zero)
    low = np.where(positive, above_zero, ~at_upper)
    violation, where = 0.0, (-1, -1)
    if not problem.has_bias:
        misses = np.where(up & low, np.abs(f), np.where(up, -f, np.where(low, f, 0.0)))
        worst = int(misses.argmax())
        violation = max(0.0, float(misses[worst]))
        where = (int(view.rows[problem.rows[worst]]),) * 2
    groups = [np.ones(len(positive), dtype=bool)] if problem.has_bias else []
    for group in groups:
        if (up & group).any() and (low & group).any():
            i = int(np.argmin(np.where(up & group, f, np.inf)))
            j = int(np.argmax(np.where(low & group, f, -np.inf)))
            if f[j] - f[i] > violation:
                violation = float(f[j] - f[i])
                where = (
                    int(view.rows[problem.rows[i]]),
                    int(view.rows[problem.rows[j]]),
                )
    n = len(view.rows)
    errors = np.zeros(n)
    np.maximum.at(errors, problem.rows, np.maximum(-reduced, 0.0))
    bounded = np.zeros(n, dtype=bool)
    bounded[problem.rows[at_upper & (view.alpha > 0)]] = True
    coef = view.coef[view.rows]
    return MachineCertificate(
        name=view.name,
        primal=dual + gap,
        dual=dual,
        gap=gap,
        violation=violation,
        violating_rows=where,
        norm=float(np.sqrt(max(quadratic, 0.0))),
        rows=view.rows,
        alpha=coef if len(problem) > n else np.abs(coef),
        decision=values - view.rho,
        errors=errors,
        is_bounded=bounded,
    )


class _KernelValues:
    """(K c) at some rows of X, for coefficients c of all rows."""

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


# -- how each kind of machine is seen ------------------------------------------------------------


def _classifier_views(
    model: Any, X: Any, y: Any, weight: np.ndarray, dual_coef: np.ndarray
) -> Iterator[_View]:
    classes = model.classes_
    labels = np.asarray(y)
    codes = np.searchsorted(classes, labels)
    known = (codes < len(classes)) & (weight > 0)
    known[known] = classes[codes[known]] == labels[known]
    if not known[weight > 0].all():
        row = int(np.flatnonzero((weight > 0) & ~known)[0])
        raise InvalidDataError(
            f"y has {labels[row]!r} at row {row}, which the model does not know."
        )
    counted = moderate(weight * np.asarray(model.class_weight_)[np.where(known, codes, 0)])
    n = len(labels)
    for name, members, positive, coef, rho in _binary_parts(model, codes, known, dual_coef, n):
        signs = np.where(positive, 1.0, -1.0)
        alpha = coef[members] * signs
        bounds = counted[members]
        if "nu" in model.get_params():  # the C-SVC with C = 1 / r that has the same solution
            total = float(np.minimum(bounds.sum() * model.nu, 2 * _lighter(bounds, positive)))
            scale = float(alpha.sum())
            bounds = bounds * (scale / total if scale > 0 else 1.0)
        else:
            bounds = _bounds(model, bounds)
        _require_feasible(model, alpha, bounds)
        problem = c_svc(signs, bounds, has_bias=getattr(model, "fit_intercept", True))
        yield _View(name, members, problem, alpha, coef, rho)


def _require_feasible(model: Any, alpha: np.ndarray, bounds: np.ndarray) -> None:
    """Dual variables of another y or sample_weight prove nothing about these.

    With an indefinite kernel r can be negative, and with it all coefficients of a nu machine.
    """
    if not _kernel_of(model).positive_definite:
        return
    slip = 1e-6 * float(np.abs(alpha).max(initial=0.0))
    if (alpha < -slip).any() or (alpha > bounds * (1.0 + 1e-6) + slip).any():
        raise InvalidDataError(
            "The dual coefficients of the model are not feasible for these data. Pass the y and "
            "the sample_weight that it was fitted to."
        )


def _bounds(model: Any, weight: np.ndarray) -> np.ndarray:
    """C times the weights; scaled features divide a linear kernel, and so multiply C."""
    bounds = float(model.C) * weight
    if isinstance(getattr(model, "kernel_", None), Linear):
        scale = float(model.feature_scale_)
        with np.errstate(over="ignore"):
            bounds = bounds / scale / scale
    return bounds if np.isinf(model.C) else np.clip(bounds, 1 / LARGEST_BOUND, LARGEST_BOUND)


def _lighter(weight: np.ndarray, positive: np.ndarray) -> float:
    return min(float(weight[positive].sum()), float(weight[~positive].sum()))


def _binary_parts(
    model: Any, codes: np.ndarray, known: np.ndarray, dual_coef: np.ndarray, n: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, float]]:
    """Name, members, which of them are positive, coefficients of all rows and rho."""
    names = model.classes_.tolist()
    coefs = machine_coefs(dual_coef, model.support_, codes[model.support_], len(names), n)
    rho = (-np.asarray(model.intercept_)).tolist()
    if len(names) > 2 and len(dual_coef) < len(names):
        for (i, j), coef, own_rho in zip(pairs_of(len(names)), coefs, rho, strict=True):
            members = np.flatnonzero(known & ((codes == i) | (codes == j)))
            yield f"{names[i]!r} against {names[j]!r}", members, codes[members] == i, coef, own_rho
        return
    members = np.flatnonzero(known)
    positives = [1] if len(names) == 2 else range(len(names))
    for k, coef, own_rho in zip(positives, coefs, rho, strict=True):
        others = repr(names[0]) if len(names) == 2 else "the rest"
        yield f"{names[k]!r} against {others}", members, codes[members] == k, coef, own_rho


def _regressor_views(
    model: Any, X: Any, y: Any, weight: np.ndarray, dual_coef: np.ndarray
) -> Iterator[_View]:
    targets = check_targets(y, len(weight))
    rows = np.flatnonzero(weight > 0)
    coef = np.zeros(len(weight))
    coef[model.support_] = dual_coef[0]
    rho = -float(np.asarray(model.intercept_)[0])
    has_bias = getattr(model, "fit_intercept", True)
    bounds = _bounds(model, weight[rows])
    epsilon = _tube_of(model, X, targets, rows, np.abs(coef[rows]) / bounds)
    problem = epsilon_svr(targets[rows], bounds, epsilon, has_bias=has_bias)
    alpha = np.r_[np.maximum(coef[rows], 0.0), np.maximum(-coef[rows], 0.0)]
    _require_feasible(model, alpha, problem.u)
    yield _View("regression", rows, problem, alpha, coef, rho)


def _tube_of(
    model: Any, X: Any, targets: np.ndarray, rows: np.ndarray, shares: np.ndarray
) -> float:
    """Half the width of the tube; NuSVR finds its own, and scikit-learn's does not tell.

    `shares` are the dual variables of the rows, as shares of their bounds: rows with shares between
    0 and 1 lie on the edge of the tube. Without any, the edge is between those inside and outside.
    """
    if "nu" not in model.get_params():
        return float(model.epsilon)
    if np.isfinite(getattr(model, "epsilon_", np.nan)):
        return float(model.epsilon_)
    distances = np.abs(targets - model.predict(X))[rows]
    on_edge = (shares > 0.0) & (shares < 1.0 - _AT_BOUND)
    if on_edge.any():
        return float(np.median(distances[on_edge]))
    inside = float(distances[shares == 0.0].max(initial=0.0))
    outside = distances[shares > 0.0]
    return 0.5 * (inside + float(outside.min())) if len(outside) else inside


def _one_class_views(
    model: Any, X: Any, y: Any, weight: np.ndarray, dual_coef: np.ndarray
) -> Iterator[_View]:
    rows = np.flatnonzero(weight > 0)
    coef = np.zeros(len(weight))
    coef[model.support_] = dual_coef[0]
    rho = -float(np.asarray(model.intercept_)[0])
    yield _View("one class", rows, one_class(weight[rows], float(model.nu)), coef[rows], coef, rho)


_VIEWS = {
    "SVC": _classifier_views,
    "NuSVC": _classifier_views,
    "SVR": _regressor_views,
    "NuSVR": _regressor_views,
    "OneClassSVM": _one_class_views,
}


def _kernel_of(model: Any) -> Kernel:
    if hasattr(model, "kernel_"):
        return model.kernel_
    return resolve_kernel(
        model.kernel,
        gamma=float(model._gamma),
        degree=model.degree,
        coef0=float(model.coef0),
        X=None,
        weight=np.ones(1),
    )
