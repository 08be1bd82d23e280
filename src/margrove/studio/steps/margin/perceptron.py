"""The perceptron, mistake by mistake: the line before and after each."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.studio.content import Scene
from margrove.studio.pictures import plane_of
from margrove.studio.steps.traces import (
    GridShape,
    Trace,
    curve_over_steps,
    point_number,
    require_few_points,
    require_two_classes,
    shown_numbers,
    state_of,
    step_record,
)
from margrove.teaching.facts import PerceptronSteps, perceptron_steps

__all__ = ["trace"]

_MOST_POINTS = 5_000


@dataclass(frozen=True, eq=False)
class _Fit:
    """The steps without averaging, and the fitted estimator of the scene, which may average."""

    scene: Scene
    found: PerceptronSteps
    fitted: Any
    numbers: list[int]

    def line(self, number: int, role: str) -> dict[str, Any]:
        weights, intercept = self.found.weights[number], self.found.intercepts[number]
        return {"weights": weights.tolist(), "intercept": float(intercept), "role": role}

    def model(self, number: int) -> Any:
        """The estimator with the weights that it had after a step."""
        model = copy(self.fitted)
        model.coef_ = self.found.weights[number][None, :]
        model.intercept_ = self.found.intercepts[[number]]
        return model

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        number, is_last = self.numbers[position], position == len(self.numbers) - 1
        lines = [] if position == 0 else [self.line(self.numbers[position - 1], "before")]
        lines.append(self.line(number, "after"))
        lines = [line for line in lines if any(line["weights"])]  # weights of 0 give no line
        is_averaged = is_last and bool(self.fitted.average)
        if is_averaged:
            weights, intercept = self.fitted.coef_[0], self.fitted.intercept_[0]
            lines.append(
                {"weights": weights.tolist(), "intercept": float(intercept), "role": "average"}
            )
        model = self.fitted if is_averaged else self.model(number)
        has_boundary = bool(model.coef_.any() or model.intercept_.any())
        row = [] if position == 0 else [int(self.found.mistaken[number - 1])]
        return state_of(
            position,
            plane=plane_of(model, self.scene, grid) if has_boundary else None,
            highlighted=[point_number(self.scene, mistake) for mistake in row],
            lines=lines,
        )


def trace(scene: Scene) -> Trace:
    require_two_classes(scene, "The perceptron, step by step,")
    require_few_points(scene, "The perceptron, step by step,", _MOST_POINTS)
    X, y = scene.training()
    unaveraged = scene.estimator().set_params(average=False)
    found = perceptron_steps(X, y, estimator=unaveraged)
    fitted = scene.estimator().fit(X, y)
    fit = _Fit(scene, found, fitted, shown_numbers(len(found)))
    wrong = _wrong_sides(found, fit.numbers)
    return Trace(
        steps=[_describe(fit, k, int(wrong[k])) for k in range(1, len(fit.numbers))],
        total=len(found),
        curves=[curve_over_steps("points on the wrong side", wrong)],
        state=fit.state,
    )


def _wrong_sides(found: PerceptronSteps, numbers: list[int]) -> np.ndarray:
    """The number of misclassified points at the start and after each step."""
    values = found.rows.points @ found.weights[numbers].T + found.intercepts[numbers]
    wrong: np.ndarray = (values * found.rows.signs[:, None] <= 0.0).sum(axis=0)
    return wrong


def _describe(fit: _Fit, position: int, wrong: int) -> dict[str, Any]:
    found, number = fit.found, fit.numbers[position]
    row = int(found.mistaken[number - 1])
    point = point_number(fit.scene, row) + 1
    sign = found.rows.signs[row]
    value = float(found.values[number - 1])
    label = fit.scene.classes[int(fit.scene.y[point - 1])]
    where = "on the wrong side" if value < 0 else "on neither side yet"
    if value > 0:
        where = "on the right side, but within the margin"
    text = (
        f"Point {point} ({label}) is {where}: y f(x) = {value:.3g}. It is "
        f"{'added to' if sign > 0 else 'subtracted from'} the weights."
    )
    skipped = number - fit.numbers[position - 1] - 1
    if skipped:
        text = f"{skipped} mistakes later, the last one. {text}"
    w = found.weights[number]
    return step_record(
        text,
        epoch=int(found.epochs[number - 1]) + 1,
        point=point,
        y_f=value,
        w1=w[0],
        w2=w[1],
        b=found.intercepts[number],
        wrong=wrong,
    )
