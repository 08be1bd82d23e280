"""Predictions of a classifier over two features, as the page draws them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from margrove.exceptions import NotSeparableError
from margrove.facts import tree_regions
from margrove.grove import DecisionTree
from margrove.grove.serve import OBLIQUE
from margrove.studio.content import Scene, View
from margrove.studio.pictures.grids import as_float32, as_grid, cells_of
from margrove.studio.pictures.member_pictures import classes_of_members
from margrove.studio.pictures.point_facts import boosting_weights, support_of
from margrove.studio.pictures.surfaces import SurfaceKind, Wanted, range_of, surface_of
from margrove.teaching.facts import hull_facts

__all__ = ["plane_from_values", "plane_of"]

_FEW_POINTS = 100  # up to which all points are used to find hulls


def plane_of(
    model: Any,
    scene: Scene,
    grid: Sequence[int],
    surface: Wanted = "score",
    *,
    support: bool = True,
    members: bool = True,
    facts: Any = None,
) -> dict[str, Any]:
    """Predictions of a fitted classifier over the view of a scene, and facts about its points.

    Parameters
    ----------
    model : fitted classifier of two features
        Fitted to `scene.training()`, or to some of it; its classes are numbers as in the scene.
    scene : Scene
    grid : pair of int
        Rows and columns.
    surface : "score" or "probability"
        What to draw for two classes; of a learner that has only one of them, that one.
    support : bool, default=True
        Whether support vectors, slack, hulls and weights of boosting are included: only if the
        model was fitted to all training points of the scene.
    members : bool, default=True
        Whether the members of an ensemble are drawn.
    facts : optional
        `margrove.facts.describe(model)`, if it is known already.

    Returns
    -------
    dict
        A `Plane` of the protocol.
    """
    cells = cells_of(scene.view, grid)
    found = surface_of(model, cells, surface)
    facts_of_points = support_of(model, scene, facts) if support else None
    return plane_from_values(
        scene,
        values=found.values,
        labels=found.winner,
        classes=found.classes,
        kind=found.kind,
        has_margins=found.has_margins,
        ends=(found.low, found.high),
        alpha=None if facts_of_points is None else facts_of_points.alpha,
        slack=None if facts_of_points is None else facts_of_points.slack,
        support_kind=None if facts_of_points is None else facts_of_points.kind,
        weight=boosting_weights(model, scene) if support else None,
        hulls=_hulls_of(model, scene) if support else None,
        regions=_regions_of(model, scene.view),
        members=classes_of_members(model, scene.view, cells) if members else None,
    )


def plane_from_values(
    scene: Scene,
    values: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    *,
    classes: Sequence[int] = (0, 1),
    kind: SurfaceKind = "score",
    has_margins: bool = False,
    ends: tuple[float, float] | None = None,
    alpha: np.ndarray | None = None,
    slack: np.ndarray | None = None,
    support_kind: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    hulls: dict[str, Any] | None = None,
    regions: Sequence[dict[str, Any]] = (),
    members: np.ndarray | None = None,
) -> dict[str, Any]:
    """A `Plane` of the protocol from values on the cells of `cells_of(scene.view, grid)`.

    Parameters
    ----------
    scene : Scene
    values : ndarray of shape (rows, columns), optional
        Scores of two classes, positive for the second, or probabilities of the second; of more
        classes, confidences. Without values, only the labels are drawn.
    labels : ndarray of shape (rows, columns), optional
        The class of each cell, as in the scene. By default the class that the values give.
    classes : sequence of int
        The classes of the model.
    kind : "score", "probability" or "confidence"
    has_margins : bool, default=False
        Whether -1 and 1 are margins.
    ends : pair of float, optional
        The range of the colours; by default that of the values.
    alpha, slack, support_kind, weight : ndarray of shape (n_points,), optional
        For all points of the scene, test points included.
    hulls : dict, optional
    regions : sequence of dict
    members : ndarray of shape (members, rows, columns), optional
        Classes on a coarser grid.
    """
    if values is None:
        if labels is None:
            raise TypeError("plane_from_values needs values, or labels, or both.")
        is_pair = len(classes) == 2
        kind = "score" if is_pair else "confidence"
        second = classes[-1]
        values = np.where(labels == second, 1.0, -1.0) if is_pair else np.ones(labels.shape)
    values = np.asarray(values, dtype=np.float64)
    if labels is None:
        middle = 0.5 if kind == "probability" else 0.0
        labels = np.where(values > middle, classes[1], classes[0])
    low, high = range_of(values, kind, has_margins=has_margins) if ends is None else ends
    return {
        "surface": as_grid(values),
        "low": float(low),
        "high": float(high),
        "kind": kind,
        "winner": as_grid(np.asarray(labels), np.uint8),
        "classes": [int(label) for label in classes],
        "hasMargins": bool(has_margins),
        "alpha": as_float32(alpha),
        "slack": as_float32(slack),
        "supportKind": None if support_kind is None else np.asarray(support_kind, dtype=np.uint8),
        "weight": as_float32(weight),
        "hulls": hulls,
        "regions": list(regions),
        "members": None if members is None else as_grid(members, np.uint8),
    }


# -- what is drawn beside the surface --------------------------------------------------------------


def _hulls_of(model: Any, scene: Scene) -> dict[str, Any] | None:
    """Convex hulls of two classes that the line of a linear machine separates; None of others."""
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
    """The rows to find hulls of: only the corners of the hulls if there are many rows."""
    if len(y) <= _FEW_POINTS:
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


def _regions_of(model: Any, view: View) -> list[dict[str, Any]]:
    """The rectangles of a tree with threshold splits, within the view; [] for other models."""
    if not isinstance(model, DecisionTree) or np.any(model.arrays_.kind == OBLIQUE):
        return []
    found = tree_regions(model)
    low = np.maximum(found.low, [view.x[0], view.y[0]])
    high = np.minimum(found.high, [view.x[1], view.y[1]])
    is_seen = np.all(low < high, axis=1)
    classes = np.asarray(model.classes_)[found.values]
    return [
        {"x": [lows[0], highs[0]], "y": [lows[1], highs[1]], "class": label}
        for lows, highs, label in zip(
            low[is_seen].tolist(), high[is_seen].tolist(), classes[is_seen].tolist(), strict=True
        )
    ]
