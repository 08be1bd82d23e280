"""Convex hulls of two separable classes, beside the line of a linear machine."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from margrove.exceptions import NotSeparableError
from margrove.studio.content import Scene
from margrove.teaching.facts import hull_facts

__all__ = ["hulls_of"]

_FEW = 100  # points, of which none need to be left out


def hulls_of(model: Any, scene: Scene) -> dict[str, Any] | None:
    """Of a linear support vector machine; None for others, and where no line separates."""
    if not _is_linear(model):
        return None
    X, y = scene.training()
    if len(np.unique(y)) != 2:
        return None
    kept = _outermost(X, y)
    X, y = X[kept], y[kept]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = hull_facts(X, y)
    except (NotSeparableError, ValueError, ArithmeticError):
        return None
    return {
        "corners": [X[rows].tolist() for rows in found.corners],
        "nearest": found.nearest.tolist(),
        "distance": float(found.distance),
    }


def _is_linear(model: Any) -> bool:
    name = type(model).__name__
    return name == "LinearSVC" or (name in ("SVC", "NuSVC") and model.kernel == "linear")


def _outermost(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """If there are many rows, only those at the corners of the hulls."""
    if len(y) <= _FEW:
        return np.arange(len(y))
    kept = []
    for label in np.unique(y).tolist():
        members = np.flatnonzero(y == label)
        try:
            kept.append(members[ConvexHull(X[members]).vertices] if len(members) > 3 else members)
        except QhullError:  # all on a line
            along = (X[members] - X[members].mean(axis=0)) @ _direction(X[members])
            kept.append(members[np.unique([np.argmin(along), np.argmax(along)])])
    return np.sort(np.concatenate(kept))


def _direction(points: np.ndarray) -> np.ndarray:
    centred = points - points.mean(axis=0)
    found: np.ndarray = np.linalg.svd(centred, full_matrices=False)[2][0]
    return found
