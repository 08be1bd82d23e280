"""Sequential minimal optimisation, pair by pair: the box of each step, and the machine after it.

The machine after k steps is fitted with a limit of k steps, `SVC(max_iter=k)`: the solver is
deterministic and takes the same steps.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._runtime import watch
from margrove.studio.content import Scene, StudioError
from margrove.studio.pictures import plane_of
from margrove.studio.steps.traces import (
    MOST_STEPS,
    FirstAndLast,
    GridShape,
    Trace,
    curve_over_steps,
    point_number,
    require_few_points,
    require_two_classes,
    state_of,
    step_record,
)
from margrove.studio.worker import LruCache
from margrove.teaching.facts import SmoBox, smo_boxes

__all__ = ["trace"]

_MOST_POINTS = 2_000
_MODELS = 64


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit; `boxes` are those of the first steps, as far as the formula of the lectures holds."""

    scene: Scene
    fitted: Any
    boxes: tuple[SmoBox, ...]
    recorded: FirstAndLast
    models: LruCache[Any]

    def model(self, number: int) -> Any:
        if number == self.recorded.total:
            return self.fitted
        return self.models.get(number, partial(self._limited, number))

    def _limited(self, number: int) -> Any:
        estimator = self.scene.estimator().set_params(solver="smo", max_iter=number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the limit was reached
            return estimator.fit(*self.scene.training())

    def box(self, number: int) -> SmoBox | None:
        return self.boxes[number - 1] if 1 <= number <= len(self.boxes) else None

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        if position == 0:
            return state_of(0)
        number = self.recorded.numbers[position]
        step, box = self.recorded.at(position), self.box(number)
        return state_of(
            position,
            plane=plane_of(self.model(number), self.scene, grid),
            highlighted=[point_number(self.scene, row) for row in (step.first, step.second)],
            box=None if box is None else _box(self.scene, box),
        )


def trace(scene: Scene) -> Trace:
    require_two_classes(scene, "SMO, step by step,")
    require_few_points(scene, "SMO, step by step,", _MOST_POINTS)
    estimator = scene.estimator().set_params(solver="smo")
    _require_boxes(estimator)
    X, y = scene.training()
    recorded = FirstAndLast()
    with warnings.catch_warnings(), watch(on_step=recorded):
        warnings.simplefilter("ignore")
        fitted = estimator.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = clone(estimator).set_params(max_iter=MOST_STEPS)
        boxes = smo_boxes(X, y, estimator=first).boxes
    fit = _Fit(scene, fitted, boxes[: recorded.total], recorded, LruCache(_MODELS))
    objectives = _objectives(fit)
    return Trace(
        steps=[_describe(fit, k, float(objectives[k])) for k in range(1, len(recorded.numbers))],
        total=recorded.total,
        curves=[curve_over_steps("dual objective", objectives)],
        state=fit.state,
    )


def _require_boxes(estimator: Any) -> None:
    if not np.isfinite(estimator.C):
        raise StudioError(
            "SMO needs a finite C: without slack the boxes are unbounded. Choose a finite C, or "
            "the steps of the nearest points of two hulls."
        )
    if estimator.class_weight is not None:
        raise StudioError("SMO is shown for points of equal weight. Remove the class weights.")


def _objectives(fit: _Fit) -> np.ndarray:
    """The dual objective at the start and after each shown step; NaN where it is unknown."""
    gains = np.array([float(box.gain(*box.after)) for box in fit.boxes])
    known = np.concatenate([[0.0], np.cumsum(gains)])
    numbers = np.array(fit.recorded.numbers)
    found = np.where(numbers < len(known), known[np.minimum(numbers, len(known) - 1)], np.nan)
    if np.isnan(found[-1]):
        found[-1] = fit.fitted.certificate_.machines[0].dual
    return found


def _box(scene: Scene, box: SmoBox) -> dict[str, Any]:
    ends = box.on_line([box.low, box.high])
    unclipped = box.unclipped if np.isfinite(box.unclipped) else None
    return {
        "first": point_number(scene, box.first),
        "second": point_number(scene, box.second),
        "signs": list(box.signs),
        "bounds": list(box.bounds),
        "before": box.before.tolist(),
        "after": box.after.tolist(),
        # Without curvature it is infinite: the end that it was clipped to is drawn.
        "unclipped": float(box.after[1]) if unclipped is None else unclipped,
        "low": box.low,
        "high": box.high,
        "line": ends.tolist(),
    }


def _describe(fit: _Fit, position: int, objective: float) -> dict[str, Any]:
    number = fit.recorded.numbers[position]
    step, box = fit.recorded.at(position), fit.box(number)
    first, second = (point_number(fit.scene, row) + 1 for row in (step.first, step.second))
    figures: dict[str, Any] = {"first": first, "second": second}
    skipped = number - fit.recorded.numbers[position - 1] - 1
    if skipped:
        text = f"{skipped + 1} steps at once, to the end of the fit; the last is"
    else:
        text = "A step"
    text = f"{text} on points {first} and {second}"
    if box is None:  # the last of very many steps, or a kernel that is not positive definite
        text = f"{text}."
    else:
        went = f"alpha of point {second} goes from {box.before[1]:.3g} to {box.after[1]:.3g}"
        if box.is_clipped:
            end = box.low if box.unclipped < box.low else box.high
            went = f"{went}: it is clipped to its bound {end:.3g}"
        text = f"{text}: {went}."
        figures |= {
            "alpha_1": box.after[0],
            "alpha_2": box.after[1],
            "unclipped": box.unclipped,
            "L": box.low,
            "H": box.high,
            "clipped": box.is_clipped,
        }
    return step_record(text, **figures, objective=objective)
