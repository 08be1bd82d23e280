"""The machines of a fitted model, reconstructed from its public attributes and the training data.

A certificate is computed from these views, so scikit-learn's machines can be certified as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import check_targets, moderate
from margrove.exceptions import InvalidDataError
from margrove.margin.kernels import Kernel, Linear, resolve_kernel
from margrove.margin.svm.multiclass import machine_coefs, pairs_of
from margrove.margin.svm.problems import (
    LARGEST_BOUND,
    DualProblem,
    c_svc,
    epsilon_svr,
    one_class,
)

__all__ = ["AT_BOUND", "VIEWS", "MachineView", "kernel_of"]

AT_BOUND = 1e-9  # relative


@dataclass(frozen=True)
class MachineView:
    """One machine: its dual problem over `rows`, its dual variables, its offset."""

    name: str
    rows: np.ndarray
    problem: DualProblem
    alpha: np.ndarray
    coef: np.ndarray  # float64 (n,), of all rows of X
    rho: float


def _classifier_views(
    model: Any, X: Any, y: Any, weight: np.ndarray, dual_coef: np.ndarray
) -> Iterator[MachineView]:
    classes = model.classes_
    labels = np.asarray(y)
    codes = np.searchsorted(classes, labels)
    known = (codes < len(classes)) & (weight > 0)
    known[known] = classes[codes[known]] == labels[known]
    if not known[weight > 0].all():
        row = int(np.flatnonzero((weight > 0) & ~known)[0])
        raise InvalidDataError(
            f"y has {labels[row]!r} at row {row}, which is not a class of the model. Pass the y "
            "that it was fitted to."
        )
    counted = moderate(weight * np.asarray(model.class_weight_)[np.where(known, codes, 0)])
    n = len(labels)
    for name, members, positive, coef, rho in _binary_machines(model, codes, known, dual_coef, n):
        signs = np.where(positive, 1.0, -1.0)
        alpha = coef[members] * signs
        bounds = counted[members]
        if "nu" in model.get_params():  # the C-SVC with C = 1 / r that has the same solution
            total = float(
                np.minimum(bounds.sum() * model.nu, 2 * _smaller_weight(bounds, positive))
            )
            scale = float(alpha.sum())
            bounds = bounds * (scale / total if scale > 0 else 1.0)
        else:
            bounds = _bounds(model, bounds)
        _require_feasible(model, alpha, bounds)
        problem = c_svc(signs, bounds, has_bias=getattr(model, "fit_intercept", True))
        yield MachineView(name, members, problem, alpha, coef, rho)


def _require_feasible(model: Any, alpha: np.ndarray, bounds: np.ndarray) -> None:
    """Raise InvalidDataError if the dual variables belong to another y or sample_weight.

    Not for indefinite kernels: there r, and with it all coefficients of a nu machine, can be
    negative.
    """
    if not kernel_of(model).positive_definite:
        return
    tolerance = 1e-6 * float(np.abs(alpha).max(initial=0.0))
    if (alpha < -tolerance).any() or (alpha > bounds * (1.0 + 1e-6) + tolerance).any():
        raise InvalidDataError(
            "The dual coefficients of the model are not feasible for these data. Pass the y and "
            "the sample_weight that it was fitted to."
        )


def _bounds(model: Any, weight: np.ndarray) -> np.ndarray:
    """C times the weights; for a linear kernel, C follows the scale of the features."""
    bounds = float(model.C) * weight
    if isinstance(getattr(model, "kernel_", None), Linear):
        scale = float(model.feature_scale_)
        with np.errstate(over="ignore"):
            bounds = bounds / scale / scale
    return bounds if np.isinf(model.C) else np.clip(bounds, 1 / LARGEST_BOUND, LARGEST_BOUND)


def _smaller_weight(weight: np.ndarray, positive: np.ndarray) -> float:
    return min(float(weight[positive].sum()), float(weight[~positive].sum()))


def _binary_machines(
    model: Any, codes: np.ndarray, known: np.ndarray, dual_coef: np.ndarray, n: int
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, float]]:
    """Yield name, members, which of them are positive, coefficients of all rows, and rho."""
    names = model.classes_.tolist()
    coefs = machine_coefs(dual_coef, model.support_, codes[model.support_], len(names), n)
    rho = (-np.asarray(model.intercept_)).tolist()
    if len(names) > 2 and len(dual_coef) < len(names):
        for (i, j), coef, offset in zip(pairs_of(len(names)), coefs, rho, strict=True):
            members = np.flatnonzero(known & ((codes == i) | (codes == j)))
            yield f"{names[i]!r} against {names[j]!r}", members, codes[members] == i, coef, offset
        return
    members = np.flatnonzero(known)
    positives = [1] if len(names) == 2 else range(len(names))
    for k, coef, offset in zip(positives, coefs, rho, strict=True):
        others = repr(names[0]) if len(names) == 2 else "the rest"
        yield f"{names[k]!r} against {others}", members, codes[members] == k, coef, offset


def _regressor_views(
    model: Any, X: Any, y: Any, weight: np.ndarray, dual_coef: np.ndarray
) -> Iterator[MachineView]:
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
    yield MachineView("regression", rows, problem, alpha, coef, rho)


def _tube_of(
    model: Any, X: Any, targets: np.ndarray, rows: np.ndarray, shares: np.ndarray
) -> float:
    """Half the width of the tube; NuSVR finds it, but scikit-learn's NuSVR does not store it.

    `shares` are the dual variables of the rows, as shares of their bounds. Rows with shares between
    0 and 1 lie on the edge of the tube. If there are none, the edge is assumed halfway between the
    rows inside and the rows outside.
    """
    if "nu" not in model.get_params():
        return float(model.epsilon)
    if np.isfinite(getattr(model, "epsilon_", np.nan)):
        return float(model.epsilon_)
    distances = np.abs(targets - model.predict(X))[rows]
    on_edge = (shares > 0.0) & (shares < 1.0 - AT_BOUND)
    if on_edge.any():
        return float(np.median(distances[on_edge]))
    inside = float(distances[shares == 0.0].max(initial=0.0))
    outside = distances[shares > 0.0]
    return 0.5 * (inside + float(outside.min())) if len(outside) else inside


def _one_class_views(
    model: Any, X: Any, y: Any, weight: np.ndarray, dual_coef: np.ndarray
) -> Iterator[MachineView]:
    rows = np.flatnonzero(weight > 0)
    coef = np.zeros(len(weight))
    coef[model.support_] = dual_coef[0]
    rho = -float(np.asarray(model.intercept_)[0])
    yield MachineView(
        "one class", rows, one_class(weight[rows], float(model.nu)), coef[rows], coef, rho
    )


VIEWS = {
    "SVC": _classifier_views,
    "NuSVC": _classifier_views,
    "SVR": _regressor_views,
    "NuSVR": _regressor_views,
    "OneClassSVM": _one_class_views,
}


def kernel_of(model: Any) -> Kernel:
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
