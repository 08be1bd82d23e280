"""TuningTask: what a tuner gets, the estimator with its rows, folds and scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split

from margrove._runtime import resolve_n_jobs, run_calls
from margrove.exceptions import InfeasibleNuError
from margrove.select.autotune.scores import Scoring
from margrove.select.autotune.tuning import Rule, Trials
from margrove.select.held_out import Folds, LearningRows, weight_arguments

__all__ = ["Clock", "FoldRows", "TuningTask"]


class Clock:
    """The seconds since the start, and whether the time limit is reached."""

    def __init__(self, max_time: float | None) -> None:
        self._start = time.perf_counter()
        self._max_time = max_time

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def has_limit(self) -> bool:
        return self._max_time is not None

    @property
    def is_up(self) -> bool:
        return self._max_time is not None and self.seconds >= self._max_time


@dataclass(frozen=True)
class FoldRows:
    """The rows of a fold after the steps before the last one, which are fitted to X_train.

    Weights are None or float64.
    """

    X_train: Any
    y_train: np.ndarray
    train_weight: np.ndarray | None
    X_test: Any
    y_test: np.ndarray
    test_weight: np.ndarray | None

    @property
    def total(self) -> float:
        return float(len(self.y_test) if self.test_weight is None else self.test_weight.sum())

    def fit(self, model: Any) -> Any:
        """Fit this model itself, not a clone, so that a warm start can continue an earlier fit."""
        return model.fit(self.X_train, self.y_train, **weight_arguments(model, self.train_weight))


@dataclass(frozen=True)
class TuningTask:
    """The arguments of `autotune` for a tuner.

    estimator                    as given; it can be a pipeline
    last                         a clone of its last step, which is tuned; it has a seed
    given_scoring, given_rule    as given, or None for the default of the tuner
    also                         parameters to try as well, or None for the default of the tuner
    make_folds                   called once, when folds are first needed
    """

    estimator: Any
    last: Any
    rows: LearningRows
    make_folds: Callable[[], Folds]
    given_scoring: Any
    given_rule: Rule | None
    also: Mapping[str, Sequence[Any]] | None
    max_estimators: int
    has_groups: bool
    seed: int
    n_jobs: int | None
    clock: Clock

    def run_calls(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """The results of several calls, on the threads that `n_jobs` allows."""
        return run_calls(function, calls, resolve_n_jobs(self.n_jobs))

    def scoring(self, default: Any) -> Scoring:
        return Scoring(default if self.given_scoring is None else self.given_scoring)

    def rule(self, default: Rule) -> Rule:
        return self.given_rule or default

    @property
    def is_classifier(self) -> bool:
        return self.rows.codes is not None

    @cached_property
    def folds(self) -> Folds:
        return self.make_folds()

    @cached_property
    def has_steps_before(self) -> bool:
        return bool(_steps_before(self.estimator))

    @cached_property
    def fold_rows(self) -> list[FoldRows]:
        found = self.run_calls(self._prepared, self.folds)
        for k, fold in enumerate(found):
            if not fold.total > 0:
                raise ValueError(f"Fold {k} of cv holds out no row of positive weight.")
        return found

    def _prepared(self, train: np.ndarray, test: np.ndarray) -> FoldRows:
        X_train, y_train = _safe_split(self.estimator, self.rows.X, self.rows.y, train)
        X_test, y_test = _safe_split(self.estimator, self.rows.X, self.rows.y, test, train)
        steps = _steps_before(self.estimator)
        if steps:
            before = Pipeline([(str(k), clone(step)) for k, step in enumerate(steps)])
            X_train = before.fit_transform(X_train, y_train)
            X_test = before.transform(X_test)
        weight = self.rows.weight
        return FoldRows(
            X_train, y_train, None if weight is None else weight[train],
            X_test, y_test, None if weight is None else weight[test],
        )  # fmt: skip

    @cached_property
    def all_rows(self) -> FoldRows:
        """All rows as training rows, after the steps before the last one; no test rows."""
        X, y = self.rows.X, self.rows.y
        steps = _steps_before(self.estimator)
        if steps:
            before = Pipeline([(str(k), clone(step)) for k, step in enumerate(steps)])
            X = before.fit_transform(X, y)
        return FoldRows(X, y, self.rows.weight, None, y[:0], None)

    @property
    def totals(self) -> np.ndarray:
        return np.array([fold.total for fold in self.fold_rows])

    def extra_settings(
        self, default: Mapping[str, Sequence[Any]], tuned: tuple[str, ...]
    ) -> list[dict[str, Any]]:
        """All combinations of the parameters in `also`; without any, one empty setting.

        `default` replaces `also` if it is None; `tuned` are the parameters that the tuner chooses.
        """
        chosen = default if self.also is None else self.also
        known = self.last.get_params(deep=True)
        for name, values in chosen.items():
            if name not in known:
                raise ValueError(
                    f"also has {name!r}, which is not a parameter of {type(self.last).__name__}."
                )
            if name in tuned:
                raise ValueError(
                    f"also has {name!r}, which autotune chooses itself. Leave it out; to try given "
                    "values, use sklearn.model_selection.GridSearchCV."
                )
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise ValueError(f"also[{name!r}] must be a list of values. Got {values!r}.")
            if not list(values):
                raise ValueError(f"also[{name!r}] is empty: there is nothing to try.")
        return [
            dict(zip(chosen, values, strict=True))
            for values in product(*map(list, chosen.values()))
        ]

    def of_each_setting(
        self,
        default: Mapping[str, Sequence[Any]],
        tuned: tuple[str, ...],
        try_it: Callable[[dict[str, Any]], Trials],
    ) -> list[Trials]:
        """The trials of each extra setting, until the time is up; see `extra_settings`."""
        trials: list[Trials] = []
        for setting in self.extra_settings(default, tuned):
            if not trials or not self.clock.is_up:
                trials.append(try_it(setting))
        return trials

    def tried(self, candidates: Sequence[dict[str, Any]], scoring: Scoring) -> Trials:
        """Fit each candidate to each fold, until the time is up."""
        by_candidate: list[list[float]] = []
        for candidate in candidates:
            if by_candidate and self.clock.is_up:
                break

            def score(k: int, candidate: dict[str, Any] = candidate) -> float:
                fold = self.fold_rows[k]
                try:
                    model = fold.fit(clone(self.last).set_params(**candidate))
                except InfeasibleNuError:  # another nu may be feasible
                    return float("nan")
                return scoring(model, fold.X_test, fold.y_test, fold.test_weight)

            calls = [(k,) for k in range(len(self.fold_rows))]
            by_candidate.append(self.run_calls(score, calls))
        done = candidates[: len(by_candidate)]
        return Trials.of_folds(done, np.array(by_candidate), self.totals)

    @property
    def remarks(self) -> tuple[str, ...]:
        return (
            ("Some settings were not tried, because the time was up.",) if self.clock.is_up else ()
        )


def _steps_before(estimator: Any) -> list[Any]:
    """The steps of a pipeline, and of pipelines at its end, before the last one."""
    steps: list[Any] = []
    while isinstance(estimator, Pipeline):
        steps += [step for _, step in estimator.steps[:-1]]
        estimator = estimator.steps[-1][1]
    return [step for step in steps if step is not None and not isinstance(step, str)]
