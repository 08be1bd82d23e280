"""Values and classes on all cells of a grid, from one call of a public method."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from margrove.margin.svm import SVC, NuSVC, per_class_decisions, votes_of
from margrove.studio.pictures.grids import Cells

__all__ = ["Surface", "SurfaceKind", "Wanted", "range_of", "surface_of", "within_domain"]

SurfaceKind = Literal["score", "probability", "confidence"]
Wanted = Literal["score", "probability"]

_WITH_MARGINS = ("SVC", "NuSVC", "LinearSVC")
_SPANNED = 95.0  # percent of the cells within the range of the colours
_LEAST_RANGE = 1e-12


@dataclass(frozen=True, eq=False)
class Surface:
    """Values and classes of cells, both of shape (rows, columns); see `Plane` of the protocol."""

    values: np.ndarray
    winner: np.ndarray
    kind: SurfaceKind
    low: float
    high: float
    classes: tuple[int, ...]
    has_margins: bool


def surface_of(model: Any, cells: Cells, wanted: Wanted = "score") -> Surface:
    """Values and classes of the cells from a fitted classifier."""
    classes = np.asarray(model.classes_)
    points = within_domain(model, cells.points)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows the warnings of the fit
        if len(classes) == 2:
            values, kind = _of_two(model, points, wanted)
            winner = classes[(values > (0.5 if kind == "probability" else 0.0)).astype(int)]
        else:
            values, winner = _of_more(model, points, classes)
            kind = "confidence"
    values, winner = values.reshape(cells.shape), winner.reshape(cells.shape)
    has_margins = kind == "score" and type(model).__name__ in _WITH_MARGINS
    low, high = range_of(values, kind, has_margins=has_margins)
    return Surface(values, winner, kind, low, high, tuple(classes.tolist()), has_margins)


def within_domain(model: Any, points: np.ndarray) -> np.ndarray:
    """Points where the kernel is defined: histogram kernels need features >= 0."""
    from margrove.margin.kernels import needs_nonnegative

    is_positive = needs_nonnegative(getattr(model, "kernel", None))
    return np.maximum(points, 0.0) if is_positive else points


def range_of(
    values: np.ndarray, kind: SurfaceKind, *, has_margins: bool = False
) -> tuple[float, float]:
    """The range of the colours: 0 to 1 for probabilities, most scores with 0 in the middle."""
    if kind != "score":
        return 0.0, 1.0
    finite = np.abs(values[np.isfinite(values)])
    limit = float(np.percentile(finite, _SPANNED)) if finite.size else 0.0
    limit = limit if limit > _LEAST_RANGE else float(finite.max(initial=0.0))
    limit = max(limit, 1.0 if has_margins else _LEAST_RANGE)
    return -limit, limit


def _of_two(model: Any, points: np.ndarray, wanted: Wanted) -> tuple[np.ndarray, SurfaceKind]:
    has_scores = hasattr(model, "decision_function")
    if hasattr(model, "predict_proba") and (wanted == "probability" or not has_scores):
        return np.asarray(model.predict_proba(points))[:, 1], "probability"
    return np.asarray(model.decision_function(points)).ravel(), "score"


def _of_more(model: Any, points: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and class: a probability, or the lead of the best score over the next."""
    if len(classes) == 1:
        return np.ones(len(points)), np.repeat(classes, len(points))
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(points))
        return shares.max(axis=1), classes[np.argmax(shares, axis=1)]
    if isinstance(model, SVC | NuSVC):
        # The class with most votes of pairs can differ from the class with the best score.
        of_pairs = copy(model)
        of_pairs.decision_function_shape = "ovo"
        decisions = of_pairs.decision_function(points)
        scores = per_class_decisions(decisions, len(classes))
        won = votes_of(decisions, len(classes))
    else:
        won = scores = np.asarray(model.decision_function(points))
    best = np.partition(scores, -2, axis=1)[:, -2:]
    ahead = best[:, 1] - best[:, 0]
    return ahead / (1.0 + ahead), classes[np.argmax(won, axis=1)]
