"""Forests and bagging: the number of trees, and the number of features of a split.

More trees only cost time, so there is no best number of them. The number is doubled until a step
gains no more than its noise. Scores come from out-of-bag rows, so nothing is held out or refitted.

    gain    score of 2 m trees - score of m trees, on the same rows
    noise   standard error of the gain: from the jackknife that leaves out each of 20 groups of
            rows; with folds, from how much the gains of the folds differ

Where out-of-bag scores are impossible or biased (no bootstrap samples, steps of a pipeline that
have seen all rows, groups), cross-validation is used instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from margrove.ensemble.forest import Forest
from margrove.select.autotune.scores import Scoring
from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, Trials, described
from margrove.select.held_out import known_answers

__all__ = ["tune_forest"]

_TUNED = ("n_estimators",)
_FIRST_SIZE = 50
_GROUPS = 20  # of the jackknife


def tune_forest(task: TuningTask) -> Choice:
    """`n_estimators`, and `max_features` of a forest."""
    scoring = task.scoring("accuracy" if task.is_classifier else "neg_mean_squared_error")
    task.extra_settings({}, _TUNED)  # raises now if a setting cannot be tried
    by_oob = task.last.bootstrap and not task.has_steps_before and not task.has_groups
    scores: _Scores = _OobScores(task, scoring) if by_oob else _FoldScores(task, scoring)
    grown = _grown(task, scores)
    others = _others(task, scores, grown) if by_oob or task.also else _Others([], "")
    measured = [*grown.steps, *others.tried]
    trials = scores.trials(measured)
    chosen = len(grown.steps) - 1
    if others.tried:
        chosen = _best_of(task, scores, grown.steps[-1], others.tried, chosen)
    rows = "out-of-bag rows" if by_oob else "cross-validation"
    return Choice(
        measured[chosen].candidate,
        trials,
        chosen,
        (
            f"The number of trees was doubled in each step and scored by {rows}.",
            grown.reason,
            *([others.reason] if others.tried else []),
            f"The choice is {described(trials, chosen, scoring.name)}.",
            _trust(by_oob, bool(others.tried)),
        ),
        scoring.name,
        rows,
    )


@dataclass(frozen=True)
class _Measured:
    """A forest that was scored: `values` are its out-of-bag predictions or its fold scores."""

    candidate: dict[str, Any]
    values: Any


class _Scores(Protocol):
    """Grows forests and compares their scores.

    `gain` returns the difference of two scores and its standard error.
    """

    def measure(self, model: Any, size: int, candidate: dict[str, Any]) -> _Measured: ...
    def start(self, setting: dict[str, Any]) -> Any: ...
    def gain(self, before: _Measured, after: _Measured) -> tuple[float, float]: ...
    def trials(self, measured: list[_Measured]) -> Trials: ...


# -- how many trees ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grown:
    steps: list[_Measured]
    model: Any
    reason: str


def _grown(task: TuningTask, scores: _Scores) -> _Grown:
    model = scores.start({})
    size = min(_FIRST_SIZE, task.max_estimators)
    steps = [scores.measure(model, size, {"n_estimators": size})]
    while size < task.max_estimators and not task.clock.is_up:
        last, size = size, min(2 * size, task.max_estimators)
        steps.append(scores.measure(model, size, {"n_estimators": size}))
        gain, noise = scores.gain(steps[-2], steps[-1])
        if gain <= noise:
            reason = (
                f"From {last} to {size} trees the score changed by {gain:.2g}, where {noise:.2g} "
                "would be noise: it has levelled off."
            )
            return _Grown(steps, model, reason)
    if size < task.max_estimators:
        return _Grown(steps, model, f"It stopped at {size} trees because the time was up.")
    reason = f"It stopped at max_estimators={size}, before the score had levelled off."
    return _Grown(steps, model, reason)


# -- other parameters ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Others:
    tried: list[_Measured]
    reason: str


def _others(task: TuningTask, scores: _Scores, grown: _Grown) -> _Others:
    """Score forests of the same size and the same draws with other parameters."""
    size = grown.steps[-1].candidate["n_estimators"]
    default = _halved_and_doubled(grown.model) if isinstance(task.last, Forest) else {}
    tried: list[_Measured] = []
    settings = [setting for setting in task.extra_settings(default, _TUNED) if setting]
    for setting in settings:
        if task.clock.is_up:
            break
        candidate = {"n_estimators": size} | setting
        tried.append(scores.measure(scores.start(setting), size, candidate))
    names = " and ".join(dict.fromkeys(name for setting in settings for name in setting))
    settings_of = "another setting" if len(tried) == 1 else f"{len(tried)} other settings"
    return _Others(tried, f"As many trees were grown with {settings_of} of {names}.")


def _halved_and_doubled(model: Any) -> dict[str, list[int]]:
    """Half and twice the number of features that a split considers, within the possible range."""
    if not hasattr(model, "max_features_"):
        return {}
    used, most = int(model.max_features_), int(model.n_features_in_)
    around = {max(1, used // 2), min(most, 2 * used)} - {used}
    return {"max_features": sorted(around)} if around else {}


def _best_of(
    task: TuningTask, scores: _Scores, given: _Measured, tried: list[_Measured], place: int
) -> int:
    """The index of the choice: the given setting, unless the rule prefers another one."""
    chosen, most = place, 0.0
    for k, other in enumerate(tried):
        gain, noise = scores.gain(given, other)
        if gain > most and (task.rule("one_standard_error") == "best" or gain > noise):
            chosen, most = place + 1 + k, gain
    return chosen


def _trust(by_oob: bool, has_others: bool) -> str:
    if not has_others:
        return "The number of trees was not chosen for its score, so this score is unbiased."
    rows = "the same out-of-bag rows" if by_oob else "the same folds"
    return (
        f"Settings were compared on {rows}: if a setting other than the given one was chosen, its "
        "score is somewhat too good for new rows."
    )


# -- scores --------------------------------------------------------------------------------------


class _OobScores:
    """Scores of out-of-bag predictions.

    `values` of a forest are these predictions, NaN for rows that every tree has seen.
    """

    def __init__(self, task: TuningTask, scoring: Scoring) -> None:
        self._task, self._scoring = task, scoring
        n_rows = len(task.rows)
        shuffled = np.random.default_rng(task.seed).permutation(n_rows)
        self._group = shuffled % min(_GROUPS, n_rows)

    def start(self, setting: dict[str, Any]) -> Any:
        return clone(self._task.last).set_params(warm_start=True, oob_score=True, **setting)

    def measure(self, model: Any, size: int, candidate: dict[str, Any]) -> _Measured:
        self._task.all_rows.fit(model.set_params(n_estimators=size))
        name = "oob_decision_function_" if self._task.is_classifier else "oob_prediction_"
        return _Measured(candidate, np.array(getattr(model, name)))

    def gain(self, before: _Measured, after: _Measured) -> tuple[float, float]:
        known = self._known(before) & self._known(after)
        return self._jackknife(
            lambda rows: self._score(after, rows) - self._score(before, rows), known
        )

    def trials(self, measured: list[_Measured]) -> Trials:
        found = [self._jackknife(partial(self._score, one), self._known(one)) for one in measured]
        return Trials(
            tuple(one.candidate for one in measured),
            np.array([score for score, _ in found]),
            np.array([error for _, error in found]),
            None,
        )

    def _known(self, forest: _Measured) -> np.ndarray:
        """The rows of positive weight that have out-of-bag predictions, bool (n,)."""
        known = np.isfinite(forest.values.reshape(len(forest.values), -1)).all(axis=1)
        weight = self._task.rows.weight
        return np.asarray(known if weight is None else known & (weight > 0))

    def _jackknife(
        self, figure: Callable[[np.ndarray], float], known: np.ndarray
    ) -> tuple[float, float]:
        """A figure of all known rows, and its standard error."""
        groups = [group for group in np.unique(self._group) if known[self._group == group].any()]
        if len(groups) < 2:
            raise ValueError(
                "There are too few out-of-bag rows to choose n_estimators. Use bootstrap=False, "
                "which is tuned by cross-validation, or more rows."
            )
        without = [figure(np.flatnonzero(known & (self._group != group))) for group in groups]
        n = len(groups)
        error = np.sqrt((n - 1) / n * ((np.array(without) - np.mean(without)) ** 2).sum())
        return figure(np.flatnonzero(known)), float(error)

    def _score(self, forest: _Measured, rows: np.ndarray) -> float:
        predicted, classes = forest.values[rows], self._task.rows.classes

        def answer(method: str) -> np.ndarray:
            if classes is None or method == "predict_proba":
                return np.asarray(predicted)
            if method == "decision_function":
                return np.asarray(predicted[:, 1] if len(classes) == 2 else predicted)
            return np.asarray(classes[predicted.argmax(axis=1)])

        weight = self._task.rows.weight
        model = known_answers(answer, classes)
        row_weight = None if weight is None else weight[rows]
        return self._scoring(model, rows[:, None], self._task.rows.y[rows], row_weight)


class _FoldScores:
    """Scores of held-out rows; `values` of a forest are the scores of the folds."""

    def __init__(self, task: TuningTask, scoring: Scoring) -> None:
        self._task, self._scoring = task, scoring

    def start(self, setting: dict[str, Any]) -> Any:
        forest = clone(self._task.last).set_params(warm_start=True, **setting)
        return [clone(forest) for _ in self._task.fold_rows]

    def measure(self, model: Any, size: int, candidate: dict[str, Any]) -> _Measured:
        def score(k: int) -> float:
            fold = self._task.fold_rows[k]
            forest = fold.fit(model[k].set_params(n_estimators=size))
            return self._scoring(forest, fold.X_test, fold.y_test, fold.test_weight)

        calls = [(k,) for k in range(len(model))]
        return _Measured(candidate, np.array(self._task.run_calls(score, calls)))

    def gain(self, before: _Measured, after: _Measured) -> tuple[float, float]:
        gains = (after.values - before.values)[None, :]
        found = Trials.of_folds([{}], gains, self._task.totals)
        return float(found.scores[0]), float(found.standard_errors[0])

    def trials(self, measured: list[_Measured]) -> Trials:
        by_fold = np.array([one.values for one in measured])
        return Trials.of_folds([one.candidate for one in measured], by_fold, self._task.totals)
