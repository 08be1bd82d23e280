"""Gradient boosting, round by round: each tree is fitted to the residuals of the earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.facts.models import LossCurve, loss_curve, round_facts
from margrove.studio.content import Scene
from margrove.studio.pictures import curve_from_values, curve_of, places_of, plane_of
from margrove.studio.steps.ensembles.boosted_models import Boosted, boosted
from margrove.studio.steps.shown_trees import tree_of_scene
from margrove.studio.steps.traces import (
    GridShape,
    Trace,
    curve_over_steps,
    shown_numbers,
    state_of,
    step_record,
)

__all__ = ["trace"]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Fit(Boosted):
    losses: LossCurve

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        number = self.numbers[position]
        is_number = self.scene.task == "regression"
        if number == 0:
            return state_of(position, curve=self._start() if is_number else None)
        model = self.after(number)
        drawn: dict[str, Any] = (
            {"curve": curve_of(model, self.scene)}
            if is_number
            else {"plane": plane_of(model, self.scene, grid)}
        )
        each = int(self.model.n_trees_per_iteration_)
        drawn["tree"] = tree_of_scene(self.model, self.scene, (number - 1) * each)
        return state_of(position, **drawn)

    def _start(self) -> dict[str, Any]:
        """The constant that the first tree is added to."""
        constant = float(self.model._loss.link_inverse(self.model._scores.start[:, None])[0])
        x = places_of(self.scene)
        at_points = np.full(len(self.scene.y), constant)
        return curve_from_values(self.scene, x, np.full(len(x), constant), at_points=at_points)


def trace(scene: Scene) -> Trace:
    model = boosted(scene)
    has_test = bool(scene.is_test.any())
    losses = loss_curve(model, *(scene.testing() if has_test else (None, None)))
    numbers = shown_numbers(len(model))
    fit = _Fit(scene, model, numbers, losses=losses)
    curves = [curve_over_steps("training loss", losses.training[numbers])]
    if losses.test is not None:
        curves.append(curve_over_steps("test loss", losses.test[numbers]))
    return Trace(
        steps=[_describe(fit, k) for k in range(1, len(numbers))],
        total=len(model),
        curves=curves,
        state=fit.state,
        scale=_scale(losses),
    )


def _scale(losses: LossCurve) -> Any:
    """Logarithmic if losses stay positive and fall by a factor of 20."""
    values = losses.training[np.isfinite(losses.training)]
    return (
        "log" if len(values) and values.min() > 0 and values.max() > 20 * values.min() else "linear"
    )


def _describe(fit: _Fit, position: int) -> dict[str, Any]:
    number = fit.numbers[position]
    found = round_facts(fit.model, number)
    trees = (
        "a tree" if len(found.leaves) == 1 else f"{len(found.leaves)} trees, one for each class,"
    )
    drawn = (
        f" The tree of class {fit.scene.classes[int(fit.model.classes_[0])]} is drawn."
        if len(found.leaves) > 1
        else ""
    )
    leaves = " + ".join(str(count) for count in found.leaves)
    text = (
        f"Round {number} fits {trees} of {leaves} leaves to the residuals. The loss falls from "
        f"{found.loss_before:.4g} to {found.loss_after:.4g}."
    )
    if found.loss_after > found.loss_before:
        text = text.replace("falls from", "rises from")
    text += drawn
    skipped = number - fit.numbers[position - 1] - 1
    if skipped:
        text = f"{skipped} rounds later, the last one. {text}"
    if fit.losses.test is not None and number == fit.losses.best_round:
        text = f"{text} After this round the test loss is smallest."
    figures: dict[str, Any] = {
        "round": number,
        "leaves": sum(found.leaves),
        "largest step": found.largest_step,
        "training loss": found.loss_after,
    }
    if fit.losses.test is not None:
        figures["test loss"] = fit.losses.test[number]
    return step_record(text, **figures)
