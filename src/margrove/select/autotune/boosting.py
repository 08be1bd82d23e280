"""Boosting: the number of rounds, from the mean of the curves of the folds.

One model is boosted for each fold and scored on its held-out rows after every round. Rounds are
added until the best number is in the first half, so that twice as many rounds have gained nothing.
The last fit, to all rows, uses the same number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_pinball_loss

from margrove.ensemble.adaboost import AdaBoostClassifier, AdaBoostRegressor
from margrove.ensemble.gradient.losses import GRADIENT_LOSSES
from margrove.select.autotune.scores import Scoring, stages_of
from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, Trials, choice_among, chosen_place

__all__ = ["tune_boosting"]

_FIRST_ROUNDS = 100
_NEAR_THE_END = 0.9  # as a share of the rounds that were tried


def tune_boosting(task: TuningTask) -> Choice:
    """The number of rounds: `max_iter` or `n_estimators`."""
    scoring, rule = task.scoring(_default_score(task)), task.rule("best")
    rounds = "max_iter" if "max_iter" in task.last.get_params(deep=False) else "n_estimators"
    no_early_stopping = _without_early_stopping(task.last)

    def curve_of(setting: dict[str, Any]) -> Trials:
        model = clone(task.last).set_params(**no_early_stopping, **setting)
        return _curve(task, model, rounds, setting, scoring)

    curves = task.of_each_setting({}, (rounds,), curve_of)
    most = max(len(curve.scores) for curve in curves)
    done = (
        f"A model was boosted for each of {len(task.folds)} folds, up to {most} rounds, and scored "
        "on the held-out rows after each round."
    )
    choice = choice_among(curves, rule, scoring.name, done)
    reason = _why_it_ended(task, most, int(choice.parameters[rounds]))
    return replace(choice.saying(reason), parameters=no_early_stopping | choice.parameters)


def _default_score(task: TuningTask) -> Any:
    if isinstance(task.last, AdaBoostClassifier):
        return "accuracy"
    if task.is_classifier:
        return "neg_log_loss"
    loss = "" if isinstance(task.last, AdaBoostRegressor) else task.last.loss
    if loss == "quantile":
        level = getattr(task.last, "quantile", None)
        level = task.last.alpha if level is None else level
        return make_scorer(mean_pinball_loss, alpha=level, greater_is_better=False)
    if isinstance(loss, str) and loss in GRADIENT_LOSSES:
        return GRADIENT_LOSSES[loss].scoring
    return "neg_mean_squared_error"


def _without_early_stopping(model: Any) -> dict[str, Any]:
    """Parameters that switch off the early stopping of a model."""
    known = model.get_params(deep=False)
    if "early_stopping" in known:
        return {"early_stopping": False}
    return {"n_iter_no_change": None} if "n_iter_no_change" in known else {}


def _curve(
    task: TuningTask, model: Any, rounds: str, setting: dict[str, Any], scoring: Scoring
) -> Trials:
    """Scores after each round, by_fold (rounds, folds), for as many rounds as are needed."""
    models = [clone(model).set_params(warm_start=True) for _ in task.fold_rows]
    curves = np.empty((0, len(models)))
    n = min(_FIRST_ROUNDS, task.max_estimators)
    while True:
        first = len(curves) + 1

        def score(k: int, first: int = first, n: int = n) -> list[float]:
            fold = task.fold_rows[k]
            boosted = fold.fit(models[k].set_params(**{rounds: n}))
            return [
                scoring(stage, fold.X_test, fold.y_test, fold.test_weight)
                for stage in stages_of(boosted, fold.X_test, first, n)
            ]

        new = task.run_calls(score, [(k,) for k in range(len(models))])
        curves = np.concatenate([curves, np.array(new).T])
        candidates = [setting | {rounds: t} for t in range(1, n + 1)]
        found = Trials.of_folds(candidates, curves, task.totals)
        best = 1 + chosen_place(found.scores, found.standard_errors, "best")
        if 2 * best <= n or n >= task.max_estimators or task.clock.is_up:
            return found
        n = min(2 * n, task.max_estimators)


def _why_it_ended(task: TuningTask, most: int, chosen: int) -> str:
    if 2 * chosen <= most:
        return f"The best number is in the first half of {most} rounds: more are not worth trying."
    if chosen < _NEAR_THE_END * most:
        return f"The best number is before the end: the score of {most} rounds is lower."
    if most >= task.max_estimators:
        return (
            f"It stopped at max_estimators={most}, where the scores may still be rising: allow "
            "more, or use a greater learning_rate."
        )
    return f"It stopped after {most} rounds because the time was up."
