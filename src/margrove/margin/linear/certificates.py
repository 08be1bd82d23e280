"""Proofs of how good a fitted linear machine is, margrove's or scikit-learn's.

The primal objective is computed from `coef_` and `intercept_` only. The dual objective is computed
from dual variables: those of our fit, or, for a model without dual variables, those of a margrove
fit to the same data. After they are made feasible, their objective is a lower bound on the optimum,
so the difference of the two objectives proves how good the model is.
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
    "certificate_of_linear",
    "certificate_of_members",
    "certificate_of_record",
    "is_at_bound",
    "machine_names",
    "objective_unit",
    "row_losses",
    "worst_violation",
]

_AT_BOUND = 1e-9  # relative
_PROOF_TOL = 1e-6  # of our fit, if the model has no dual variables


def certificate_of_record(model: Any, record: LinearRecord) -> Certificate:
    """The certificate of a margrove model, with the dual variables of its fit."""
    return _certified(model, record)


def certificate_of_linear(model: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """The certificate of any model with the parameters and attributes of scikit-learn."""
    from margrove.margin.linear.linear_svc import LinearSVC
    from margrove.margin.linear.linear_svr import LinearSVR

    parameters = model.get_params()
    kind = LinearSVC if hasattr(model, "classes_") else LinearSVR
    names = kind._parameter_constraints
    settings = {name: value for name, value in parameters.items() if name in names}
    settings |= {"tol": _PROOF_TOL, "max_iter": 100_000, "verbose": 0, "solver": "auto"}
    settings.pop("warm_start", None)
    reference = kind(**settings).fit(X, y, sample_weight)
    if hasattr(model, "classes_") and not np.array_equal(reference.classes_, model.classes_):
        raise InvalidDataError(
            f"y has the classes {reference.classes_.tolist()}, but the model has "
            f"{np.asarray(model.classes_).tolist()}. Pass the y that it was fitted to."
        )
    return _certified(model, reference._record)


def _certified(model: Any, record: LinearRecord) -> Certificate:
    """Certify all machines of a model, in the units of the solver, in which nothing overflows."""
    problem = record.problem
    X = _matrix(problem)
    coef, intercept = _in_solver_units(model, record)
    if record.kind == "crammer_singer":
        return Certificate((_certify_joint(record, X, coef, intercept),))
    values = np.asarray(X @ coef.T) + intercept
    machines = []
    for k, (name, single) in enumerate(_machines(model, problem)):
        machine = _Machine(name, single, coef[k], float(intercept[k]), values[:, k])
        machines.append(_certify(machine, X, record.result.beta[:, k], record))
    return Certificate(tuple(machines))


def _matrix(problem: LinearProblem | OneVsRest) -> Any:
    """The rows of a problem, in float64, dense or CSR."""
    X = problem.X
    if X.is_dense:
        return X.dense[problem.rows].astype(np.float64, copy=False)
    shape = (len(X.indptr) - 1, problem.n_features)
    table = sp.csr_array((X.data, X.indices, X.indptr), shape=shape)
    return table[problem.rows].astype(np.float64, copy=False)


def _in_solver_units(model: Any, record: LinearRecord) -> tuple[np.ndarray, np.ndarray]:
    """Weights (K, d) and intercepts (K,) of the model, in the units of the solver."""
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
    for k, name in enumerate(machine_names(model.classes_)):
        yield name, problem.machine(k)


def machine_names(classes: np.ndarray | None) -> list[str]:
    """The name of each machine; without classes, of regression."""
    if classes is None:
        return ["regression"]
    labels = np.asarray(classes).tolist()
    if len(labels) == 2:
        return [f"{labels[1]!r} against {labels[0]!r}"]
    return [f"{label!r} against the rest" for label in labels]


@dataclass(frozen=True)
class _Machine:
    """One machine in the units of the solver: its problem, weights and values w.x + b."""

    name: str
    problem: LinearProblem
    w: np.ndarray
    b: float
    values: np.ndarray


def _certify(
    machine: _Machine, X: Any, beta: np.ndarray, record: LinearRecord
) -> MachineCertificate:
    loss, price = machine.problem.loss, machine.problem.bias_price
    slack, losses = row_losses(loss, loss.target - machine.values)
    beta = np.clip(beta, loss.low, loss.high)
    beta = balanced(beta, loss.low, loss.high) if price == 0.0 else beta
    is_l1 = record.kind == "l1"
    combined = np.asarray(beta @ X).ravel()
    if is_l1:
        beta = beta / _l1_excess(combined, float(beta.sum()), price)
        dual = 0.0
        primal = float(np.abs(machine.w).sum()) + _primal_bias_term(price, abs(machine.b))
    else:
        dual = -0.5 * float(combined @ combined) - _dual_bias_term(
            price, float(beta.sum()) ** 2 / 2
        )
        primal = 0.5 * float(machine.w @ machine.w) + _primal_bias_term(price, machine.b**2 / 2)
    primal += float(losses.sum())
    linear = loss.target * beta - loss.tube * np.abs(beta)
    dual += float((linear - 0.5 * loss.damping * beta**2).sum())
    violation, worst = worst_violation(loss, beta, loss.target - machine.values)
    kept, unit = np.flatnonzero(record.form.group_of >= 0), objective_unit(record, primal)
    group = record.form.group_of[kept]
    factor = record.target_scale.factor
    at_bound = is_at_bound(loss, beta)
    signed = beta if isinstance(record.problem, LinearProblem) else np.abs(beta)
    return MachineCertificate(
        name=machine.name,
        primal=primal * unit,
        dual=dual * unit,
        gap=max(primal - dual, 0.0) * unit,
        violation=violation / factor,
        violating_rows=(int(record.form.rows[worst]),) * 2,
        norm=float(np.sqrt(machine.w @ machine.w)) * record.units[0] / factor,
        rows=kept,
        alpha=_dual_variables(record, signed)[kept],
        decision=machine.values[group] / factor + record.target_scale.centre,
        errors=slack[group] / factor,
        is_bounded=at_bound[group],
    )


def is_at_bound(loss: LossOfRows, beta: np.ndarray) -> np.ndarray:
    bound = np.maximum(loss.high, -loss.low)
    found: np.ndarray = np.isfinite(bound) & (np.abs(beta) >= bound * (1 - _AT_BOUND)) & (beta != 0)
    return found


def row_losses(loss: LossOfRows, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slack and the loss of each row, both float64 (m,)."""
    above = np.where(loss.high > 0, np.maximum(residual - loss.tube, 0.0), 0.0)
    below = np.where(loss.low < 0, np.maximum(-residual - loss.tube, 0.0), 0.0)
    slack = above + below
    if loss.damping[0] > 0:
        return slack, 0.5 * slack**2 / loss.damping
    bound = np.maximum(loss.high, -loss.low)
    return slack, np.where(slack > 0, bound * slack, 0.0)


def _primal_bias_term(price: float, amount: float) -> float:
    """The penalty of the intercept in the primal; zero if it is free or if there is none."""
    if np.isinf(price):
        return 0.0 if amount == 0.0 else np.inf
    return price * amount


def _dual_bias_term(price: float, amount: float) -> float:
    """The term of the intercept in the dual."""
    return amount / price if price > 0.0 else 0.0


def _l1_excess(combined: np.ndarray, total: float, price: float) -> float:
    """The factor by which dual variables are too large for the L1 penalty; at least one."""
    largest = float(np.abs(combined).max(initial=0.0))
    return max(1.0, largest, _dual_bias_term(price, abs(total)))


def objective_unit(record: LinearRecord, primal: float) -> float:
    """The factor from the solver's objective to that of the data; 1 if it would overflow."""
    factor = np.float64(record.target_scale.factor)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        unit = float(np.prod(record.units) / factor / factor)
        return unit if 0.0 < primal * unit < np.inf else 1.0


def _dual_variables(record: LinearRecord, beta: np.ndarray) -> np.ndarray:
    """The dual variables of all rows of X, in the units of the data."""
    return record.form.share_out(beta) * _unit_of_alpha(record)


def _unit_of_alpha(record: LinearRecord) -> float:
    """The factor from the solver's dual variables to those of the data; 1 if it would overflow."""
    with np.errstate(over="ignore", under="ignore"):
        unit = float(np.prod(record.units)) / record.target_scale.factor
    return unit if 0.0 < unit < np.inf else 1.0


def worst_violation(loss: LossOfRows, beta: np.ndarray, residual: np.ndarray) -> tuple[float, int]:
    """The largest violation of the optimality conditions, and its row."""
    gradient = loss.damping * beta - residual
    left = np.where(beta > 0, gradient + loss.tube, gradient - loss.tube)
    right = np.where(beta < 0, gradient - loss.tube, gradient + loss.tube)
    slack = _AT_BOUND * np.where(np.isinf(loss.high - loss.low), 0.0, loss.high - loss.low)
    down = np.where(beta > loss.low + slack, left, 0.0)
    up = np.where(beta < loss.high - slack, -right, 0.0)
    misses = np.maximum(np.maximum(down, up), 0.0)
    worst = int(misses.argmax())
    return float(misses[worst]), worst


_OF_ROWS = frozenset({"rows", "alpha", "decision", "errors", "is_bounded"})


class SummedCertificate(MachineCertificate):
    """The certificate of a machine whose values of single rows were not kept."""

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_ROWS:
            raise InvalidDataError(
                f"The certificate has no {name!r}: it was computed from sums over rows that stayed "
                "on the cluster, because there are many rows or the fit was stopped early. Its "
                "objectives and gap are those of all rows. For single rows use "
                "margrove.certificate(model.to_local(), X, y) with rows that fit into memory."
            )
        return super().__getattribute__(name)


@dataclass(frozen=True)
class MembersCertificate(Certificate):
    """The certificate of a model whose rows were on several machines."""

    def __str__(self) -> str:
        if not isinstance(self.machines[0], SummedCertificate):
            return super().__str__()
        lines = [
            f"primal objective  {self.primal:.10g}",
            f"dual objective    {self.dual:.10g}",
            f"duality gap       {self.gap:.3g}  ({100 * self.relative_gap:.2g} %)",
            f"KKT violation     {self.violation:.3g}",
            f"machines          {len(self.machines)}",
        ]
        return "\n".join(lines)


def certificate_of_members(
    record: LinearRecord, classes: np.ndarray | None, members: list[list[dict[str, Any]]]
) -> Certificate:
    """The certificate of the joint result of members; see `member_rows.MemberResult`.

    members   for each member and machine the values of single rows; no members if they are unknown
    """
    machines = [
        _certify_members(record, k, name, [rows[k] for rows in members])
        for k, name in enumerate(machine_names(classes))
    ]
    return MembersCertificate(tuple(machines))


def _certify_members(
    record: LinearRecord, k: int, name: str, parts: list[dict[str, Any]]
) -> MachineCertificate:
    result, factor = record.result, record.target_scale.factor
    primal, dual = float(result.primal[k]), float(result.dual[k])
    unit, names = objective_unit(record, primal), sorted(_OF_ROWS)
    rows: dict[str, Any] = {
        each: np.concatenate([part[each] for part in parts]) for each in names if parts
    }
    if rows:  # members may have rows between those of others
        order = np.argsort(rows["rows"])
        rows = {each: values[order] for each, values in rows.items()}
        rows["alpha"] = rows["alpha"] * _unit_of_alpha(record)
        if name != "regression":
            rows["alpha"] = np.abs(rows["alpha"])
        rows["decision"] = rows["decision"] / factor + record.target_scale.centre
        rows["errors"] = rows["errors"] / factor
    known = [part["worst"] for part in parts]
    violation, worst = max(known, default=(float(result.violation[k]), -1))
    kind = MachineCertificate if rows else SummedCertificate
    return kind(
        name=name,
        primal=primal * unit,
        dual=dual * unit,
        gap=max(primal - dual, 0.0) * unit,
        violation=violation / factor,
        violating_rows=(worst, worst),
        norm=float(np.linalg.norm(result.coef[k])) * record.units[0] / factor,
        **(rows or dict.fromkeys(names, np.empty(0))),
    )


def _certify_joint(
    record: LinearRecord, X: Any, coef: np.ndarray, intercept: np.ndarray
) -> MachineCertificate:
    """The certificate of Crammer and Singer's machine, from the weights of all classes."""
    problem: Any = record.problem
    price = problem.bias_price
    true_class = np.arange(len(problem)), problem.codes
    scores = np.asarray(X @ coef.T) + intercept
    rivals = scores + 1.0
    rivals[true_class] = scores[true_class]
    slack = rivals.max(axis=1) - scores[true_class]
    primal = 0.5 * float((coef**2).sum()) + float(problem.C @ slack)
    primal += _primal_bias_term(price, float(intercept @ intercept) / 2)
    alpha = np.minimum(record.result.beta, 0.0)
    alpha[true_class] = 0.0
    alpha[true_class] = -alpha.sum(axis=1)
    alpha /= np.maximum(1.0, alpha[true_class] / problem.C)[:, None]
    W = np.asarray(X.T @ alpha)
    dual = float(alpha[true_class].sum()) - 0.5 * float((W**2).sum())
    dual -= _dual_bias_term(price, float((alpha.sum(axis=0) ** 2).sum()) / 2)
    others = scores.copy()
    others[true_class] = -np.inf
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
        alpha=_dual_variables(record, alpha[true_class])[kept],
        decision=(scores[true_class] - others.max(axis=1))[group],
        errors=slack[group],
        is_bounded=(alpha[true_class] >= problem.C * (1 - _AT_BOUND))[group],
    )
