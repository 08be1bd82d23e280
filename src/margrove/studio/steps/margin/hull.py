"""The hard margin as geometry: the nearest points of two hulls, move by move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from margrove._runtime import watch
from margrove.exceptions import NotSeparableError
from margrove.studio.content import Scene, StudioError
from margrove.studio.pictures import plane_of
from margrove.studio.steps.margin.stepwise_solver import ended_after
from margrove.studio.steps.traces import (
    FirstAndLast,
    GridShape,
    Trace,
    curve_over_steps,
    require_few_points,
    require_two_classes,
    state_of,
    step_record,
)
from margrove.studio.worker import LruCache
from margrove.teaching.facts import hull_facts

__all__ = ["trace"]

_MOST_POINTS = 1_000
_MODELS = 64
_MOST_MARKED = 12  # points with a weight; at the start all points have one


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit; `corners` are those of the hulls in the plane, None for a kernel."""

    scene: Scene
    fitted: Any
    recorded: FirstAndLast
    corners: list[list[list[float]]] | None
    models: LruCache[Any]

    def model(self, number: int) -> Any:
        if number == self.recorded.total:
            return self.fitted
        return self.models.get(number, partial(self._ended, number))

    def _ended(self, number: int) -> Any:
        return ended_after(_estimator(self.scene), *self.scene.training(), number)

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        model = self.model(self.recorded.numbers[position])
        plane = plane_of(model, self.scene, grid)
        lines = []
        if self.corners is not None:
            nearest = nearest_points(model)
            plane["hulls"] = {
                "corners": self.corners,
                "nearest": nearest.tolist(),
                "distance": float(np.linalg.norm(nearest[1] - nearest[0])),
            }
            lines = [_line(model, "after")]
            if position > 0:
                before = self.model(self.recorded.numbers[position - 1])
                lines.insert(0, _line(before, "before"))
        rows = model.support_ if len(model.support_) <= _MOST_MARKED else model.support_[:0]
        marked = self.scene.training_rows[rows].tolist()
        return state_of(position, plane=plane, highlighted=marked, lines=lines)


def trace(scene: Scene) -> Trace:
    require_two_classes(scene, "The nearest points of hulls")
    require_few_points(scene, "The search for the nearest points of hulls", _MOST_POINTS)
    X, y = scene.training()
    recorded = FirstAndLast()
    try:
        with watch(on_step=recorded):
            fitted = _estimator(scene).fit(X, y)
    except NotSeparableError as error:
        raise StudioError(
            "The hulls of the two classes overlap, so there are no nearest points and no margin. "
            "Move the points apart, or choose a kernel that separates the classes."
        ) from error
    is_linear = fitted.kernel == "linear"
    corners = [X[rows].tolist() for rows in hull_facts(X, y).corners] if is_linear else None
    fit = _Fit(scene, fitted, recorded, corners, LruCache(_MODELS))
    moves = [recorded.at(k) for k in range(1, len(recorded.numbers))]
    distances = [_width(fit.model(0)), *(float(np.sqrt(2.0 * move.objective)) for move in moves)]
    return Trace(
        steps=[_describe(fit, k, distances[k]) for k in range(1, len(distances))],
        total=recorded.total,
        curves=[curve_over_steps("distance between the nearest points", distances)],
        state=fit.state,
    )


def _estimator(scene: Scene) -> Any:
    return scene.estimator().set_params(solver="hull", C=np.inf, class_weight=None)


def nearest_points(model: Any) -> np.ndarray:
    """The weighted mean of the support vectors of each class, shape (2, 2)."""
    signed = model.dual_coef_[0]
    found = []
    for is_class in (signed < 0, signed > 0):
        shares = np.abs(signed[is_class])
        found.append(shares / shares.sum() @ model.support_vectors_[is_class])
    return np.array(found)


def _width(model: Any) -> float:
    """The width of the margin: of a hard margin, the distance of the nearest points, 2 / ||w||."""
    signed = model.dual_coef_[0]
    K = model.kernel_(model.support_vectors_ * model.feature_scale_)
    return float(2.0 / np.sqrt(signed @ K @ signed))


def _line(model: Any, role: str) -> dict[str, Any]:
    return {
        "weights": model.coef_[0].tolist(),
        "intercept": float(model.intercept_[0]),
        "role": role,
    }


def _describe(fit: _Fit, position: int, distance: float) -> dict[str, Any]:
    move, numbers = fit.recorded.at(position), fit.recorded.numbers
    how = (
        "along a face of the hulls, where the weights at a bound stay"
        if move.on_face
        else "down the gradient, projected onto the hulls"
    )
    text = f"Both points move {how}: {move.moved} weights change. Their distance is {distance:.4g}."
    skipped = numbers[position] - numbers[position - 1] - 1
    if skipped:
        text = f"{skipped} moves later, the last one. {text}"
    return step_record(
        text,
        distance=distance,
        weights_moved=int(move.moved),
        on_a_face=bool(move.on_face),
        violation=float(move.violation),
    )
