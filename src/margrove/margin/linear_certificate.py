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

from margrove._data import (
    check_table,
    check_targets,
    check_training_labels,
    check_weights,
    moderate,
)
from margrove.exceptions import InvalidDataError
from margrove.margin.certificate import Certificate, MachineCertificate
from margrove.margin.decisions import n_problems_of
from margrove.margin.linear_problems import LossOfRows, hinge_loss, tube_loss

if TYPE_CHECKING:
    from margrove.margin.linear_machine import LinearRecord

__all__ = ["certificate_of_linear", "certificate_of_record"]

_AT_BOUND = 1e-9  # relative
_PROOF_TOL = 1e-6  # of our own fit, where the model brings no dual variables


def certificate_of_record(model: Any, record: LinearRecord) -> Certificate:
    """Of a model of ours, with the dual variables that its fit found."""
    given = (record.X, record.y, record.sample_weight)
    return _certified(model, record.parameters, record, given)


def certificate_of_linear(model: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """Of any model with the parameters and attributes of scikit-learn's."""
    from margrove.margin.linear_svc import LinearSVC
    from margrove.margin.linear_svr import LinearSVR

    parameters = model.get_params()
    own = LinearSVC if hasattr(model, "classes_") else LinearSVR
    names = own._parameter_constraints
    settings = {name: value for name, value in parameters.items() if name in names}
    settings |= {"tol": _PROOF_TOL, "max_iter": 100_000, "verbose": 0, "solver": "auto"}
    settings.pop("warm_start", None)
    record = own(**settings).fit(X, y, sample_weight)._record
    return _certified(model, settings, record, (X, y, sample_weight))


def _certified(
    model: Any, parameters: dict[str, Any], record: LinearRecord, given: tuple[Any, Any, Any]
) -> Certificate:
    X, y, sample_weight = given
    table = check_table(X, model).X
    values = _times(table, np.atleast_2d(_dense(model.coef_))) + model.intercept_
    beta = record.form.share_out(record.result.beta) * record.dual_unit
    if hasattr(model, "classes_"):
        labels = check_training_labels(y, sample_weight, parameters["class_weight"], table.shape[0])
        if not np.array_equal(labels.classes, model.classes_):
            raise InvalidDataError(
                f"y has the classes {labels.classes.tolist()}, the model {model.classes_.tolist()}."
            )
        weight = moderate(labels.weight * labels.factors[labels.codes])
        price = float(parameters["C"]) * weight
        parts = _classifier_parts(labels, price, parameters)
    else:
        targets = check_targets(y, table.shape[0])
        price = float(parameters["C"]) * moderate(check_weights(sample_weight, table.shape[0]))
        squared = parameters["loss"].startswith("squared")
        loss = tube_loss(targets, price, float(parameters["epsilon"]), squared=squared)
        parts = iter([("regression", loss)])
    kept = np.flatnonzero(price > 0)
    if record.kind == "crammer_singer":
        return Certificate((_certify_joint(model, table, labels, price, values, beta, record),))
    bias = _Bias.of(parameters, power=1 if record.kind == "l1" else 2)
    machines = [
        _certify(
            name, table[kept], loss.in_order(kept), np.atleast_2d(_dense(model.coef_))[k],
            float(np.ravel(model.intercept_)[k]), values[kept, k], beta[kept, k], kept, bias,
            is_l1=record.kind == "l1",
        )
        for k, (name, loss) in enumerate(parts)
    ]  # fmt: skip
    return Certificate(tuple(machines))


@dataclass(frozen=True)
class _Bias:
    """The price of the intercept: 0 if it is free, infinite if there is none."""

    price: float

    @classmethod
    def of(cls, parameters: dict[str, Any], power: int) -> _Bias:
        if not parameters["fit_intercept"]:
            return cls(np.inf)
        scaling = parameters["intercept_scaling"]
        return cls(0.0 if scaling is None else 1.0 / float(scaling) ** power)


def _classifier_parts(
    labels: Any, price: np.ndarray, parameters: dict[str, Any]
) -> Iterator[tuple[str, LossOfRows]]:
    squared = parameters["loss"] == "squared_hinge"
    classes = labels.classes.tolist()
    for k in range(n_problems_of(labels.classes)):
        positive = labels.codes == (1 if len(classes) == 2 else k)
        name = (
            f"{classes[1]!r} against {classes[0]!r}"
            if len(classes) == 2
            else f"{classes[k]!r} against the rest"
        )
        with np.errstate(divide="ignore"):
            yield name, hinge_loss(np.where(positive, 1.0, -1.0), price, squared=squared)


def _certify(
    name: str,
    X: Any,
    loss: LossOfRows,
    w: np.ndarray,
    b: float,
    values: np.ndarray,
    beta: np.ndarray,
    rows: np.ndarray,
    bias: _Bias,
    *,
    is_l1: bool,
) -> MachineCertificate:
    target, low, high, damping, tube = loss
    residual = target - values
    above, below = np.maximum(residual - tube, 0.0), np.maximum(-residual - tube, 0.0)
    slack = np.where(high > 0, above, 0.0) + np.where(low < 0, below, 0.0)
    squared = bool(damping[0] > 0)
    with np.errstate(invalid="ignore"):
        losses = (
            0.5 * slack**2 / damping
            if squared
            else np.where(above > 0, high * above, 0.0) + np.where(below > 0, -low * below, 0.0)
        )
    priced = 0.0 < bias.price < np.inf
    beta = np.clip(beta, low, high)
    beta = _balanced(beta) if bias.price == 0.0 else beta
    combined = np.asarray(beta @ X).ravel()
    if is_l1:
        largest = float(np.abs(combined).max(initial=0.0))
        largest = max(largest, abs(float(beta.sum())) / bias.price) if priced else largest
        beta = beta / max(1.0, largest)
        primal = float(np.abs(w).sum() + losses.sum()) + (bias.price * abs(b) if priced else 0.0)
        dual = 0.0
    else:
        primal = float(0.5 * (w @ w) + losses.sum()) + (0.5 * bias.price * b**2 if priced else 0.0)
        dual = -0.5 * float(combined @ combined)
        dual -= 0.5 * float(beta.sum()) ** 2 / bias.price if priced else 0.0
    dual += float((target * beta - tube * np.abs(beta) - 0.5 * damping * beta**2).sum())
    violation, worst = _violation(loss, beta, residual)
    at_bound = ~np.isinf(high - low) & (np.abs(beta) >= np.maximum(high, -low) * (1 - _AT_BOUND))
    return MachineCertificate(
        name=name,
        primal=primal,
        dual=dual,
        gap=max(primal - dual, 0.0),
        violation=violation,
        violating_rows=(int(rows[worst]),) * 2,
        norm=float(np.sqrt(w @ w)),
        rows=rows,
        alpha=beta if (low < 0).any() and (high > 0).all() else np.abs(beta),
        decision=values,
        errors=slack,
        is_bounded=at_bound & (beta != 0),
    )


def _balanced(beta: np.ndarray) -> np.ndarray:
    """The heavier sign scaled down, so that the sum is zero."""
    positive, negative = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if positive == negative:
        return beta
    smaller, larger = sorted((positive, negative))
    heavier = beta > 0 if positive > negative else beta < 0
    return np.where(heavier, beta * (smaller / larger), beta)


def _violation(loss: LossOfRows, beta: np.ndarray, residual: np.ndarray) -> tuple[float, int]:
    """The largest violation of the optimality conditions, and its row."""
    gradient = loss.damping * beta - residual
    left = np.where(beta > 0, gradient + loss.tube, gradient - loss.tube)
    right = np.where(beta < 0, gradient - loss.tube, gradient + loss.tube)
    slip = _AT_BOUND * np.where(np.isinf(loss.high - loss.low), 0.0, loss.high - loss.low)
    down = np.where(beta > loss.low + slip, left, 0.0)
    up = np.where(beta < loss.high - slip, -right, 0.0)
    misses = np.maximum(np.maximum(down, up), 0.0)
    worst = int(misses.argmax())
    return float(misses[worst]), worst


def _certify_joint(
    model: Any,
    X: Any,
    labels: Any,
    price: np.ndarray,
    values: np.ndarray,
    alpha: np.ndarray,
    record: LinearRecord,
) -> MachineCertificate:
    """Crammer and Singer's machine, from the weights of all classes."""
    coef, intercept = record.result.coef, record.result.intercept
    n, K = len(price), len(labels.classes)
    own = np.arange(n), labels.codes
    coef = coef * record.feature_scale
    scores = _times(X, coef) + intercept
    rivals = scores + 1.0
    rivals[own] = scores[own]
    slack = rivals.max(axis=1) - scores[own]
    kept = np.flatnonzero(price > 0)
    bias = _Bias.of(record.parameters, power=2).price
    b_term = 0.5 * bias * float(intercept @ intercept) if 0.0 < bias < np.inf else 0.0
    primal = 0.5 * float((coef**2).sum()) + b_term + float(price @ slack)
    W = np.asarray(X.T @ alpha)
    dual = float(alpha[own].sum()) - 0.5 * float((W**2).sum())
    if 0.0 < bias < np.inf:
        dual -= 0.5 * float((alpha.sum(axis=0) ** 2).sum()) / bias
    others = scores.copy()
    others[own] = -np.inf
    bounded = (alpha[own] >= price * (1 - _AT_BOUND)) & (price > 0)
    return MachineCertificate(
        name=f"all {K} classes",
        primal=primal,
        dual=dual,
        gap=max(primal - dual, 0.0),
        violation=float(record.result.violation[0]),
        violating_rows=(-1, -1),
        norm=float(np.sqrt((coef**2).sum())),
        rows=kept,
        alpha=alpha[own][kept],
        decision=(scores[own] - others.max(axis=1))[kept],
        errors=slack[kept],
        is_bounded=bounded[kept],
    )


def _times(X: Any, coef: np.ndarray) -> np.ndarray:
    """X @ coef.T in float64."""
    return np.asarray(X.astype(np.float64, copy=False) @ coef.T)


def _dense(coef: Any) -> np.ndarray:
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef)
