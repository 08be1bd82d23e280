"""Linear machines: the price C of mistakes, along a path for each fold.

Prices ascend, and each solution starts from the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from margrove.select.autotune.scores import Scoring
from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, Trials, choice_among
from margrove.select.held_out import in_threads

__all__ = ["tune_linear"]

_PRICES = tuple(float(f"{price:.4g}") for price in np.logspace(-3, 3, 13))


def tune_linear(task: TuningTask) -> Choice:
    """`C` of LinearSVC and LinearSVR."""
    scoring = task.scoring("accuracy" if task.is_classifier else "neg_mean_squared_error")
    rule = task.rule("best")
    parts = task.of_each_setting({}, ("C",), lambda setting: _path(task, setting, scoring))
    done = (
        f"Prices C from {_PRICES[0]:g} to {_PRICES[-1]:g} were solved one from the other for each "
        f"of {len(task.folds)} folds."
    )
    choice = choice_among(parts, rule, scoring.name, done)
    return choice.saying(*task.remarks, *_at_an_end(choice.parameters["C"]))


def _path(task: TuningTask, setting: dict[str, Any], scoring: Scoring) -> Trials:
    def score(k: int) -> list[float]:
        fold = task.fold_rows[k]
        model = clone(task.last).set_params(warm_start=True, **setting)
        found = []
        for price in _PRICES:
            fold.fit(model.set_params(C=price))
            found.append(scoring(model, fold.X_test, fold.y_test, fold.test_weight))
        return found

    by_fold = in_threads(score, [(k,) for k in range(len(task.fold_rows))], task.n_jobs)
    candidates = [setting | {"C": price} for price in _PRICES]
    return Trials.of_folds(candidates, np.array(by_fold).T, task.totals)


def _at_an_end(price: float) -> list[str]:
    if price not in (_PRICES[0], _PRICES[-1]):
        return []
    return ["This C is the last that was tried: scaled features may help, or a C further out."]
