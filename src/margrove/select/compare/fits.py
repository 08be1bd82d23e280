"""Fits of all models to all folds, on threads and in slices, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

from margrove._runtime import run_tiles, spread, unwatched
from margrove.ensemble.bagging import seeded_clone
from margrove.ensemble.bootstrap import stream
from margrove.exceptions import FitCancelled
from margrove.select.compare.blending import BLENDS, BlendSettings, fit_blends
from margrove.select.compare.contestants import Scoring
from margrove.select.compare.early_ends import EarlyEnds
from margrove.select.compare.examples import Examples, Task, fit
from margrove.select.compare.result import FailedModel
from margrove.select.held_out import Fold

__all__ = ["Comparing", "Contest", "FoldResult", "SpreadComparing"]

_AT_ONCE = 4  # fits for each thread: they differ in length, and threads wait for the last one


@dataclass(frozen=True)
class Contest:
    """What is compared, on what, and how."""

    models: Mapping[str, Any]
    examples: Examples
    task: Task
    splits: list[Fold]
    scoring: Scoring
    seed: int
    blend: BlendSettings | None
    wants_rows: bool

    def key(self, fold: int) -> int:
        """The seed of a fold's random numbers; the same for all models."""
        return int(stream(self.seed, fold))

    def result(
        self, model: Any, tested: Examples, fit_seconds: float, *, stopped_early: bool
    ) -> FoldResult:
        """The score of a fitted model on the test part of a fold."""
        start = time.perf_counter()
        score = self.scoring.of_model(model, tested)
        predict_seconds = time.perf_counter() - start
        rows = None
        if self.wants_rows and self.scoring.by_rows is not None:
            weight = np.ones(len(tested)) if tested.weight is None else tested.weight
            rows = self.scoring.by_rows.of_model(model, tested.X, tested.y, weight)
        return FoldResult(score, rows, fit_seconds, predict_seconds, stopped_early)


class FoldResult(NamedTuple):
    """`rows` are the scores of the rows of the test part, where they are wanted.

    `stopped_early`: whether the fit ended before it had converged.
    """

    score: float
    rows: np.ndarray | None
    fit_seconds: float
    predict_seconds: float
    stopped_early: bool


class Comparing:
    """The process that fits all models to all folds, and then the blends of those that worked.

    Fold by fold, so that an early end leaves whole folds. Its name is read by people who use up
    their time.
    """

    unit = "fit"

    def __init__(self, contest: Contest, n_threads: int) -> None:
        self._contest, self._n_threads = contest, n_threads
        self._n_single = len(contest.splits) * len(contest.models)
        self._end = self._n_single + (len(contest.splits) if contest.blend else 0)
        self.total: int | None = self._end
        self._next = 0
        self._results: dict[tuple[str, int], FoldResult] = {}
        self._errors: dict[tuple[str, int], Exception] = {}
        self.weights: dict[int, dict[str, float]] = {}  # of selected votes, by fold
        self._names = list(contest.models)
        self._settings = get_config()
        self._early_ends = EarlyEnds()
        with unwatched():  # these fits are parts of one
            self._context = copy_context()

    @property
    def rounds(self) -> int:
        return self._next

    @property
    def finished(self) -> bool:
        return self._next == self._end

    @property
    def _survivors(self) -> dict[str, Any]:
        broken = {name for name, _ in self._errors}
        return {n: model for n, model in self._contest.models.items() if n not in broken}

    def advance(self, work: float) -> float:
        first, is_single = self._next, self._next < self._n_single
        batch = 1 if self._n_threads == 1 else self._n_threads * (_AT_ONCE if is_single else 1)
        count = min((self._n_single if is_single else self._end) - first, batch)
        members = self._survivors

        def run(tile: int) -> None:
            self._context.copy().run(self._run, first + tile, members)

        with self._early_ends.noting():
            run_tiles(run, count, self._n_threads)
        self._tell_early_ends()
        self._next = first + count
        return work

    def outcome_of(
        self, number: int, members: Mapping[str, Any]
    ) -> tuple[dict[Any, FoldResult], dict[Any, Exception], dict[int, dict[str, float]]]:
        """Results, errors and weights of one fit, or of the blends of one fold."""
        with self._early_ends.noting():
            self._run(number, members)
        self._tell_early_ends()
        return self._results, self._errors, self.weights

    def _tell_early_ends(self) -> None:
        """Where warnings are errors, a fit that has not converged is one that failed."""
        for own, give_again in self._early_ends.take():
            with self._noting_errors(own.names, own.fold):
                give_again()

    def _run(self, number: int, members: Mapping[str, Any]) -> None:
        # threads know neither scikit-learn's settings nor that the cores are spoken for
        with config_context(**self._settings), _one_core(self._n_threads > 1):
            if number >= self._n_single:
                self._blend(number - self._n_single, members)
                return
            fold, place = divmod(number, len(self._names))
            if self._names[place] in members:
                self._fit(self._names[place], fold)

    def _fit(self, name: str, fold: int) -> None:
        contest = self._contest
        with self._noting_errors((name,), fold):
            split = contest.splits[fold]
            model = seeded_clone(
                contest.models[name], contest.key(fold), one_thread=self._n_threads > 1
            )
            training = contest.examples.take(split.train)
            start = time.perf_counter()
            with self._early_ends.of_fit((name,), fold):
                fit(model, training)
            seconds = time.perf_counter() - start
            tested = contest.examples.take(split.test)
            self._results[name, fold] = contest.result(
                model, tested, seconds, stopped_early=self._early_ends.has(name, fold)
            )

    def _blend(self, fold: int, members: Mapping[str, Any]) -> None:
        contest = self._contest
        if len(members) < 2 or contest.blend is None:
            return
        with self._noting_errors(BLENDS, fold):
            split = contest.splits[fold]
            with self._early_ends.of_fit(BLENDS, fold):
                blends = fit_blends(
                    members, contest.examples.take(split.train), contest.task,
                    contest.scoring.scorer, contest.key(fold), contest.blend,
                    one_thread=self._n_threads > 1,
                )  # fmt: skip
            self.weights[fold] = blends["selection"].weights
            tested = contest.examples.take(split.test)
            for name, blend in blends.items():
                with self._noting_errors((name,), fold):
                    self._results[name, fold] = contest.result(
                        blend.model,
                        tested,
                        blend.seconds,
                        stopped_early=self._early_ends.has(name, fold),
                    )

    @contextmanager
    def _noting_errors(self, names: tuple[str, ...], fold: int) -> Iterator[None]:
        try:
            yield
        except FitCancelled:
            raise
        except Exception as error:
            self._errors.update({(name, fold): error for name in names})

    # what came of it

    def complete_folds(self, n_needed: int) -> tuple[list[int], list[str]]:
        """Folds that all remaining models have done, and these models; not unfinished blends."""
        if not self._survivors:
            name, fold = min(self._errors, key=lambda place: place[::-1])
            error = self._errors[name, fold]
            raise ValueError(f"All models failed; {FailedModel(name, error, fold)}") from error
        entered = list(self._survivors)
        folds = self._folds_of(entered)
        if self._contest.blend is not None and len(entered) > 1:
            broken = {name for name, _ in self._errors}
            with_blends = entered + [name for name in BLENDS if name not in broken]
            if len(self._folds_of(with_blends)) >= n_needed:
                return self._folds_of(with_blends), with_blends
        return folds, entered

    def _folds_of(self, names: list[str]) -> list[int]:
        every = range(len(self._contest.splits))
        return [fold for fold in every if all((name, fold) in self._results for name in names)]

    def failed(self, entered: list[str]) -> tuple[FailedModel, ...]:
        """Models that failed, with their first errors; blends without one had no time or member."""
        wanted = [*self._names, *(BLENDS if self._contest.blend is not None else ())]
        first: dict[str, int] = {}
        for name, fold in self._errors:
            first[name] = min(fold, first.get(name, fold))
        missing: Exception = TimeoutError("The comparison ended before the blends were done")
        if len(self._survivors) < 2:
            missing = ValueError("Only one model is left, which is nothing to blend")
        return tuple(
            FailedModel(name, self._errors[name, first[name]], first[name])
            if name in first
            else FailedModel(name, missing, None)
            for name in wanted
            if name not in entered
        )

    def scores(self, names: list[str], folds: list[int]) -> np.ndarray:
        """Scores of all folds and models, float64 (J, M)."""
        return np.array([[self._results[name, fold].score for name in names] for fold in folds])

    def rows(self, name: str, fold: int) -> np.ndarray | None:
        return self._results[name, fold].rows

    def seconds(self, name: str, folds: list[int]) -> tuple[float, float]:
        results = [self._results[name, fold] for fold in folds]
        return (
            float(np.median([result.fit_seconds for result in results])),
            float(np.median([result.predict_seconds for result in results])),
        )

    def stopped_early(self, name: str, folds: list[int]) -> bool:
        """Whether some fit of a model ended before it had converged."""
        return any(self._results[name, fold].stopped_early for fold in folds)

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        return {"failed": len({name for name, _ in self._errors})} if self._errors else {}


class SpreadComparing(Comparing):
    """`Comparing` with the fits run by the workers of the joblib backend in effect."""

    def __init__(self, contest: Contest, n_workers: int) -> None:
        super().__init__(contest, 1)
        self._n_workers = n_workers
        self._coming: Iterator[Any] | None = None

    def advance(self, work: float) -> float:
        if self._next == self._n_single:  # blends need to know who is left
            self._coming = None
        if self._coming is None:
            is_single = self._next < self._n_single
            numbers = range(self._next, self._n_single if is_single else self._end)
            calls = [(number, list(self._survivors), self._settings) for number in numbers]
            self._coming = spread(_compared, self._contest, calls, self._n_workers)
        results, errors, weights = next(self._coming)
        self._results |= results
        self._errors |= errors
        self.weights |= weights
        self._next += 1
        return work


def _compared(contest: Contest, number: int, survivors: list[str], settings: dict[str, Any]) -> Any:
    """One fit and its score, as a worker process runs it."""
    own = Comparing(contest, 2)  # as one of several: with one core
    own._settings = settings
    with unwatched():
        return own.outcome_of(number, {name: contest.models[name] for name in survivors})


@contextmanager
def _one_core(is_one_of_many: bool) -> Iterator[None]:
    if not is_one_of_many:
        yield
        return
    with joblib.parallel_config(n_jobs=1), threadpool_limits(1, user_api="openmp"):
        yield
