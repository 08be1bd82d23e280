"""Learners that bring a grid of values to try: all combinations, by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, choice_among

__all__ = ["tune_grid"]


def tune_grid(task: TuningTask, grid: Mapping[str, Sequence[Any]]) -> Choice:
    """Try all combinations of the grid; values are in the order of the size of the model."""
    usual = "accuracy" if task.is_classifier else "neg_mean_squared_error"
    scoring, rule = task.scoring(usual), task.rule("best")
    candidates = [
        dict(zip(grid, values, strict=True)) for values in product(*map(list, grid.values()))
    ]
    parts = task.of_each_setting(
        {},
        tuple(grid),
        lambda setting: task.tried([setting | own for own in candidates], scoring),
    )
    done = (
        f"{len(candidates)} settings of {', '.join(grid)} were tried on each of "
        f"{len(task.folds)} folds."
    )
    return choice_among(parts, rule, scoring.name, done).saying(*task.remarks)
