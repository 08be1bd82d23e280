"""AdaBoost, round by round: errors, weights of members and of points, and the bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from margrove.facts.models import boosting_errors, boosting_sketches
from margrove.studio.content import Scene
from margrove.studio.pictures import plane_of
from margrove.studio.steps.ensembles.boosted_models import Boosted, boosted
from margrove.studio.steps.shown_trees import rule_of, tree_of_scene
from margrove.studio.steps.traces import (
    GridShape,
    Trace,
    curve_over_steps,
    shown_numbers,
    state_of,
    step_record,
)

__all__ = ["trace"]


@dataclass(frozen=True, eq=False)
class _Fit(Boosted):
    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        number = self.numbers[position]
        if number == 0:
            return state_of(position)
        return state_of(
            position,
            plane=plane_of(self.after(number), self.scene, grid),
            highlighted=self.scene.training_rows[self.wrong(number)].tolist(),
            tree=tree_of_scene(self.model, self.scene, number - 1),
        )

    @cached_property
    def _mistakes(self) -> dict[int, np.ndarray]:
        X, y = self.scene.training()
        found = boosting_sketches(self.model, X, y, rounds=self.numbers[1:], resolution=2)
        return dict(
            zip(self.numbers[1:], (sketch.is_wrong for sketch in found.rounds), strict=False)
        )

    def wrong(self, number: int) -> np.ndarray:
        """The training rows that the member of a round gets wrong."""
        return np.flatnonzero(self._mistakes[number])


def trace(scene: Scene) -> Trace:
    model = boosted(scene)
    numbers = shown_numbers(len(model))
    fit = _Fit(scene, model, numbers)
    has_test = bool(scene.is_test.any())
    errors = boosting_errors(model, *(scene.testing() if has_test else (None, None)))
    start = _share_of_smaller_classes(scene)
    curves = [_curve("training error", errors.training, numbers, start)]
    if errors.test is not None:
        curves.append(_curve("test error", errors.test, numbers))
    if errors.bound is not None:
        curves.append(_curve("bound: product of Z", errors.bound, numbers, 1.0))
    if errors.edge_bound is not None:
        curves.append(
            _curve("bound: exp(-2 sum of squared edges)", errors.edge_bound, numbers, 1.0)
        )
    return Trace(
        steps=[_describe(fit, k) for k in range(1, len(numbers))],
        total=len(model),
        curves=curves,
        state=fit.state,
    )


def _share_of_smaller_classes(scene: Scene) -> float:
    """The error before the first round, if the largest class is predicted for all points."""
    counts = np.bincount(scene.training()[1])
    return float(1.0 - counts.max() / counts.sum())


def _curve(
    name: str, values: np.ndarray, numbers: list[int], start: float = np.nan
) -> dict[str, Any]:
    return curve_over_steps(name, np.concatenate([[start], values])[numbers])


def _describe(fit: _Fit, position: int) -> dict[str, Any]:
    number = fit.numbers[position]
    t = number - 1
    history = fit.model.history_
    n_wrong = len(fit.wrong(number))
    error, beta = float(history.error[t]), float(history.beta[t])
    text = f"Round {number} misclassifies {n_wrong} points, whose weights sum to {error:.3f}"
    text = f"{text}. Its weight is beta = {beta:.3f}." if np.isfinite(beta) else f"{text}."
    if n_wrong and np.isfinite(beta) and number < len(fit.model):
        text = f"{text} These points weigh more in the next round."
    skipped = number - fit.numbers[position - 1] - 1
    if skipped:
        text = f"{skipped} rounds later, the last one. {text}"
    if number == len(fit.model) and history.outcome not in ("complete", "interrupted"):
        text = f"{text} It ends here: {history.outcome}."
    figures: dict[str, Any] = {
        "round": number,
        "rule": rule_of(tree_of_scene(fit.model, fit.scene, t)),
        "epsilon": error,
        "beta": beta,
        "Z": history.normaliser[t],
        "bound": history.bound[t],
        "training error": history.training_error[t],
    }
    return step_record(text, **figures)
