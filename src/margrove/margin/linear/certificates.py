"""Proof of how good a fitted linear machine is, ours or scikit-learn's.

The primal objective comes from `coef_` and `intercept_` alone. The dual one comes from dual
variables: those that our fit found or, for a model that has none, those of a fit of our own to the
same data. Whatever they are, once they are made feasible their objective is a lower bound on the
best possible, so that the difference of the two proves how good the model is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from margrove.exceptions import InvalidDataError
from margrove.margin.decisions import dense_coefficients
from margrove.margin.linear.problems import LinearProblem, LossOfRows, OneVsRest, balanced
from margrove.margin.svm import Certificate, MachineCertificate

if TYPE_CHECKING:
    from margrove.margin.linear.linear_machine import LinearRecord

__all__ = [
    "AT_BOUND",
    "certificate_of_linear",
    "certificate_of_record",
    "objective_unit",
    "row_losses",
    "worst_violation",
]

AT_BOUND = 1e-9  # relative
_PROOF_TOL = 1e-6  # of our own fit, where the model brings no dual variables


def certificate_of_record(model: Any, record: LinearRecord) -> Certificate:
    """Of a model of ours, with the dual variables that its fit found."""
    return _certified(model, record)


def certificate_of_linear(model: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """Of any model with the parameters and attributes of scikit-learn's."""
    from margrove.margin.linear.linear_svc import LinearSVC
    from margrove.margin.linear.linear_svr import LinearSVR

    parameters = model.get_params()
    own = LinearSVC if hasattr(model, "classes_") else LinearSVR
    names = own._parameter_constraints
    settings = {name: value for name, value in parameters.items() if name in names}
    settings |= {"tol": _PROOF_TOL, "max_iter": 100_000, "verbose": 0, "solver": "auto"}
    settings.pop("warm_start", None)
    reference = own(**settings).fit(X, y, sample_weight)
    if hasattr(model, "classes_") and not np.array_equal(reference.classes_, model.classes_):
        raise InvalidDataError(
            f"y has the classes {reference.classes_.tolist()}, the model "
            f"{np.asarray(model.classes_).tolist()}."
        )
    return _certified(model, reference._record)


def _certified(model: Any, record: LinearRecord) -> Certificate:
    """Objectives are taken in the units of the solver, in which nothing overflows."""
    problem = record.problem
    X = _matrix(problem)
    coef, intercept = _in_solver_units(model, record)
    if record.kind == "crammer_singer":
        return Certificate((_certify_joint(record, X, coef, intercept),))
    values = np.asarray(X @ coef.T) + intercept
    machines = []
    for k, (name, single) in enumerate(_machines(model, problem)):
        part = _Part(name, single, coef[k], float(intercept[k]), values[:, k])
        machines.append(_certify(part, X, record.result.beta[:, k], record))
    return Certificate(tuple(machines))


def _matrix(problem: LinearProblem | OneVsRest) -> Any:
    """The rows of a problem, in float64."""
    X = problem.X
    if X.is_dense:
        return X.dense[problem.rows].astype(np.float64, copy=False)
    shape = (len(X.indptr) - 1, problem.n_features)
    whole = sp.csr_array((X.data, X.indices, X.indptr), shape=shape)
    return whole[problem.rows].astype(np.float64, copy=False)


def _in_solver_units(model: Any, record: LinearRecord) -> tuple[np.ndarray, np.ndarray]:
    """Weights (K, d) and intercepts (K,) of the model."""
    coef = np.atleast_2d(dense_coefficients(model))
    factor = record.target_scale.factor
    intercept = (np.ravel(model.intercept_) - record.target_scale.centre) * factor
    intercept = np.broadcast_to(intercept, len(coef))
    if record.kind == "crammer_singer" and len(coef) == 1:  # the difference of its two classes
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    if coef.shape != (len(intercept), record.problem.n_features):
        raise InvalidDataError(
            f"The model has weights of shape {coef.shape}, but X has {record.problem.n_features} "
            "features. Pass the X that it was fitted to."
        )
    return coef / record.units[0] * factor, intercept


def _machines(
    model: Any, problem: LinearProblem | OneVsRest
) -> Iterator[tuple[str, LinearProblem]]:
    if isinstance(problem, LinearProblem):
        yield "regression", problem
        return
    classes = np.asarray(model.classes_).tolist()
    for k in range(problem.n_machines):
        name = (
            f"{classes[1]!r} against {classes[0]!r}"
            if len(classes) == 2
            else f"{classes[k]!r} against the rest"
        )
        yield name, problem.machine(k)


@dataclass(frozen=True)
class _Part:
    """One machine in the units of the solver: its problem, its weights, its values w.x + b."""

    name: str
    problem: LinearProblem
    w: np.ndarray
    b: float
    values: np.ndarray


def _certify(part: _Part, X: Any, beta: np.ndarray, record: LinearRecord) -> MachineCertificate:
    loss, price = part.problem.loss, part.problem.bias_price
    slack, losses = row_losses(loss, loss.target - part.values)
    beta = np.clip(beta, loss.low, loss.high)
    beta = balanced(beta, loss.low, loss.high) if price == 0.0 else beta
    is_l1 = record.kind == "l1"
    combined = np.asarray(beta @ X).ravel()
    if is_l1:
        beta = beta / _l1_excess(combined, float(beta.sum()), price)
        dual = 0.0
        primal = float(np.abs(part.w).sum()) + _priced(price, abs(part.b))
    else:
        dual = -0.5 * float(combined @ combined) - _shared(price, float(beta.sum()) ** 2 / 2)
        primal = 0.5 * float(part.w @ part.w) + _priced(price, part.b**2 / 2)
    primal += float(losses.sum())
    linear = loss.target * beta - loss.tube * np.abs(beta)
    dual += float((linear - 0.5 * loss.damping * beta**2).sum())
    violation, worst = worst_violation(loss, beta, loss.target - part.values)
    kept, unit = np.flatnonzero(record.form.group_of >= 0), objective_unit(record, primal)
    group = record.form.group_of[kept]
    factor = record.target_scale.factor
    bound = np.maximum(loss.high, -loss.low)
    at_bound = np.isfinite(bound) & (np.abs(beta) >= bound * (1 - AT_BOUND)) & (beta != 0)
    signed = beta if isinstance(record.problem, LinearProblem) else np.abs(beta)
    return MachineCertificate(
        name=part.name,
        primal=primal * unit,
        dual=dual * unit,
        gap=max(primal - dual, 0.0) * unit,
        violation=violation / factor,
        violating_rows=(int(record.form.rows[worst]),) * 2,
        norm=float(np.sqrt(part.w @ part.w)) * record.units[0] / factor,
        rows=kept,
        alpha=_dual_variables(record, signed)[kept],
        decision=part.values[group] / factor + record.target_scale.centre,
        errors=slack[group] / factor,
        is_bounded=at_bound[group],
    )


def row_losses(loss: LossOfRows, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much each row misses, and what that costs."""
    above = np.where(loss.high > 0, np.maximum(residual - loss.tube, 0.0), 0.0)
    below = np.where(loss.low < 0, np.maximum(-residual - loss.tube, 0.0), 0.0)
    slack = above + below
    if loss.damping[0] > 0:
        return slack, 0.5 * slack**2 / loss.damping
    bound = np.maximum(loss.high, -loss.low)
    return slack, np.where(slack > 0, bound * slack, 0.0)


def _priced(price: float, amount: float) -> float:
    """What an intercept costs in the primal: nothing if it is free, nothing if there is none."""
    if np.isinf(price):
        return 0.0 if amount == 0.0 else np.inf
    return price * amount


def _shared(price: float, amount: float) -> float:
    """What it costs in the dual."""
    return amount / price if price > 0.0 else 0.0


def _l1_excess(combined: np.ndarray, total: float, price: float) -> float:
    """How many times too large dual variables are for the L1 penalty; at least one."""
    largest = float(np.abs(combined).max(initial=0.0))
    return max(1.0, largest, _shared(price, abs(total)))


def objective_unit(record: LinearRecord, primal: float) -> float:
    """The factor from the solver's objective to that of the data, 1 where it is beyond numbers."""
    factor = np.float64(record.target_scale.factor)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        unit = float(np.prod(record.units) / factor / factor)
        return unit if 0.0 < primal * unit < np.inf else 1.0


def _dual_variables(record: LinearRecord, beta: np.ndarray) -> np.ndarray:
    """Of all rows of X, in the units of the data."""
    with np.errstate(over="ignore", under="ignore"):
        unit = float(np.prod(record.units)) / record.target_scale.factor
    return record.form.share_out(beta) * (unit if 0.0 < unit < np.inf else 1.0)


def worst_violation(loss: LossOfRows, beta: np.ndarray, residual: np.ndarray) -> tuple[float, int]:
    """The largest violation of the optimality conditions, and its row."""
    gradient = loss.damping * beta - residual
    left = np.where(beta > 0, gradient + loss.tube, gradient - loss.tube)
    right = np.where(beta < 0, gradient - loss.tube, gradient + loss.tube)
    slip = AT_BOUND * np.where(np.isinf(loss.high - loss.low), 0.0, loss.high - loss.low)
    down = np.where(beta > loss.low + slip, left, 0.0)
    up = np.where(beta < loss.high - slip, -right, 0.0)
    misses = np.maximum(np.maximum(down, up), 0.0)
    worst = int(misses.argmax())
    return float(misses[worst]), worst


def _certify_joint(
    record: LinearRecord, X: Any, coef: np.ndarray, intercept: np.ndarray
) -> MachineCertificate:
    """Crammer and Singer's machine, from the weights of all classes."""
    problem: Any = record.problem
    price = problem.bias_price
    own = np.arange(len(problem)), problem.codes
    scores = np.asarray(X @ coef.T) + intercept
    rivals = scores + 1.0
    rivals[own] = scores[own]
    slack = rivals.max(axis=1) - scores[own]
    primal = 0.5 * float((coef**2).sum()) + float(problem.C @ slack)
    primal += _priced(price, float(intercept @ intercept) / 2)
    alpha = np.minimum(record.result.beta, 0.0)
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    alpha /= np.maximum(1.0, alpha[own] / problem.C)[:, None]
    W = np.asarray(X.T @ alpha)
    dual = float(alpha[own].sum()) - 0.5 * float((W**2).sum())
    dual -= _shared(price, float((alpha.sum(axis=0) ** 2).sum()) / 2)
    others = scores.copy()
    others[own] = -np.inf
    kept, unit = np.flatnonzero(record.form.group_of >= 0), objective_unit(record, primal)
    group = record.form.group_of[kept]
    return MachineCertificate(
        name=f"all {problem.n_machines} classes",
        primal=primal * unit,
        dual=dual * unit,
        gap=max(primal - dual, 0.0) * unit,
        violation=float(record.result.violation[0]),
        violating_rows=(-1, -1),
        norm=float(np.sqrt((coef**2).sum())) * record.units[0],
        rows=kept,
        alpha=_dual_variables(record, alpha[own])[kept],
        decision=(scores[own] - others.max(axis=1))[group],
        errors=slack[group],
        is_bounded=(alpha[own] >= problem.C * (1 - AT_BOUND))[group],
    )
