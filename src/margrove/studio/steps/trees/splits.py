"""A tree, split by split: the candidate splits of each node, and the tree so far.

For points of a scene, and for the tables of the lectures.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.studio.content import LectureTable, Scene
from margrove.studio.pictures import curve_of, plane_of
from margrove.studio.steps.shown_trees import tree_of_scene, tree_of_table
from margrove.studio.steps.traces import (
    GridShape,
    Trace,
    curve_over_steps,
    shown_numbers,
    state_of,
    step_record,
)
from margrove.studio.steps.trees.candidate_splits import gains_at, question_at
from margrove.studio.steps.trees.tree_growth import Growth

__all__ = ["trace"]


@dataclass(frozen=True, eq=False)
class _Fit:
    source: Scene | LectureTable
    growth: Growth
    features: Sequence[str]
    numbers: list[int]

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        number = self.numbers[position]
        model = self.growth.after(number)
        fields: dict[str, Any] = self._drawn(model, grid)
        if position > 0:
            node = self.growth.order[number - 1]
            shown_as = self.growth.number_of(node, number)
            fields["gains"] = gains_at(self.growth, node, shown_as, self.features)
            fields["highlighted"] = self._points(self.growth.rows_of(node))
        return state_of(position, **fields)

    def _drawn(self, model: Any, grid: GridShape) -> dict[str, Any]:
        if isinstance(self.source, LectureTable):
            return {"tree": tree_of_table(model, self.source)}
        drawn: dict[str, Any] = {"tree": tree_of_scene(model, self.source)}
        if self.source.task == "regression":
            return drawn | {"curve": curve_of(model, self.source)}
        return drawn | {"plane": plane_of(model, self.source, grid)}

    def _points(self, rows: np.ndarray) -> list[int]:
        if isinstance(self.source, Scene):
            rows = self.source.training_rows[rows]
        found: list[int] = rows.tolist()
        return found


def trace(source: Scene | LectureTable) -> Trace:
    """The trace of the tree of a scene, or of a table of the lectures."""
    growth, features = _grown(source)
    numbers = shown_numbers(len(growth.order))
    fit = _Fit(source, growth, features, numbers)
    is_number = isinstance(source, Scene) and source.task == "regression"
    name = "root mean squared error" if is_number else "error"

    def errors(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        losses = growth.losses(X, y)[numbers]
        return np.sqrt(losses) if is_number else losses

    training = errors(growth.X, growth.y)
    curves = [curve_over_steps(f"training {name}", training)]
    testing = None
    if isinstance(source, Scene) and source.is_test.any():
        testing = errors(*source.testing())
        curves.append(curve_over_steps(f"test {name}", testing))
    return Trace(
        steps=[
            _describe(fit, k, training[k], None if testing is None else testing[k])
            for k in range(1, len(numbers))
        ],
        total=len(growth.order),
        curves=curves,
        state=fit.state,
    )


def _grown(source: Scene | LectureTable) -> tuple[Growth, Sequence[str]]:
    if isinstance(source, LectureTable):
        return Growth(source.fitted(), source.rows, source.target), source.columns
    X, y = source.training()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows the warnings
        model = source.estimator().fit(X, y)
    return Growth(model, X, y), source.features[: X.shape[1]]


def _describe(fit: _Fit, position: int, training: float, testing: float | None) -> dict[str, Any]:
    number = fit.numbers[position]
    node = fit.growth.order[number - 1]
    tree = fit.growth.arrays
    asked = question_at(fit.growth, node, fit.features)
    gain, impurity = fit.growth.gain_of(node), float(tree.impurity[node])
    rows = int(tree.n_samples[node])
    what = "rows" if isinstance(fit.source, LectureTable) else "points"
    text = (
        f"A leaf of {rows} {what} asks {asked}. Its impurity, {impurity:.3f}, falls by {gain:.3f}."
    )
    skipped = number - fit.numbers[position - 1] - 1
    if skipped:
        text = f"{skipped} splits later, the last one. {text}"
    figures: dict[str, Any] = {
        "question": asked,
        what: rows,
        "impurity": impurity,
        "gain": gain,
        "leaves": _leaves(fit.growth, number),
        "training error": training,
    }
    if testing is not None:
        figures["test error"] = testing
    return step_record(text, **figures)


def _leaves(growth: Growth, number: int) -> int:
    """Leaves after so many splits: a split into k branches turns one leaf into k."""
    return 1 + int((growth.arrays.n_children[growth.order[:number]] - 1).sum())
