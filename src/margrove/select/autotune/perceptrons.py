"""Perceptrons: how often to go through the rows, and whether to average on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, Trials, choice_among

__all__ = ["tune_perceptron"]

_EPOCHS = (1, 2, 5, 10, 20, 50, 100)


def tune_perceptron(task: TuningTask) -> Choice:
    """`max_iter` of both perceptrons, `average` of the linear one."""
    scoring, rule = task.scoring("accuracy"), task.rule("best")
    has_averages = "average" in task.last.get_params(deep=False)
    usual = {"average": [False, True]} if has_averages else {}
    all_epochs = {"tol": None}  # stopping by itself would hide what epochs do
    task = replace(task, last=clone(task.last).set_params(**all_epochs))

    def epochs_of(setting: dict[str, Any]) -> Trials:
        return task.tried([setting | {"max_iter": epochs} for epochs in _EPOCHS], scoring)

    parts = task.of_each_setting(usual, ("max_iter",), epochs_of)
    done = (
        f"{_EPOCHS[0]} to {_EPOCHS[-1]} epochs were tried on each of {len(task.folds)} folds"
        f"{', with and without averaging' if has_averages else ''}."
    )
    choice = choice_among(parts, rule, scoring.name, done).saying(*task.remarks)
    return replace(choice, parameters=all_epochs | choice.parameters)
