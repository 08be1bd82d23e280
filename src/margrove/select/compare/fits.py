"""Comparing: fits all models to all folds, on threads or in worker processes, in slices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from margrove._runtime import run_calls, spread, unwatched
from margrove.ensemble.bagging import seeded_clone
from margrove.ensemble.bootstrap import stream
from margrove.exceptions import FitCancelled
from margrove.select.compare.blending import BLENDS, BlendSettings, fit_blends
from margrove.select.compare.compared_models import Scoring
from margrove.select.compare.convergence_warnings import ConvergenceWarnings
from margrove.select.compare.examples import Examples, Task, fit
from margrove.select.compare.result import FailedModel
from margrove.select.held_out import Fold

__all__ = ["Comparing", "ComparisonSetup", "FoldResult", "SpreadComparing"]

_FITS_PER_THREAD = 4  # in a slice, at the end of which threads wait for the longest fit


@dataclass(frozen=True)
class ComparisonSetup:
    """The models, rows, folds and score of a comparison."""

    models: Mapping[str, Any]
    examples: Examples
    task: Task
    splits: list[Fold]
    scoring: Scoring
    seed: int
    blend: BlendSettings | None
    wants_rows: bool

    def key(self, fold: int) -> int:
        """The seed of the random numbers of a fold, the same for all models."""
        return int(stream(self.seed, fold))

    def result(
        self, model: Any, tested: Examples, fit_seconds: float, *, stopped_early: bool
    ) -> FoldResult:
        """The score of a fitted model on the test rows of a fold."""
        start = time.perf_counter()
        score = self.scoring.of_model(model, tested)
        predict_seconds = time.perf_counter() - start
        rows = None
        if self.wants_rows and self.scoring.by_rows is not None:
            weight = np.ones(len(tested)) if tested.weight is None else tested.weight
            rows = self.scoring.by_rows.of_model(model, tested.X, tested.y, weight)
        return FoldResult(score, rows, fit_seconds, predict_seconds, stopped_early)


class FoldResult(NamedTuple):
    """The result of one fit.

    `rows` are the scores of the test rows, if they are needed. `stopped_early` is whether the fit
    ended before it had converged.
    """

    score: float
    rows: np.ndarray | None
    fit_seconds: float
    predict_seconds: float
    stopped_early: bool


class Comparing:
    """The process that fits all models to all folds, and then the blends of those that worked.

    It goes fold by fold, so that complete folds are left if it stops early. Its name appears in the
    messages about time limits and Ctrl-C.
    """

    unit = "fit"

    def __init__(self, setup: ComparisonSetup, n_threads: int) -> None:
        self._setup, self._n_threads = setup, n_threads
        self._n_single = len(setup.splits) * len(setup.models)
        self._end = self._n_single + (len(setup.splits) if setup.blend else 0)
        self.total: int | None = self._end
        self._next = 0
        self._results: dict[tuple[str, int], FoldResult] = {}
        self._errors: dict[tuple[str, int], Exception] = {}
        self.weights: dict[int, dict[str, float]] = {}  # of selected votes, by fold
        self._names = list(setup.models)
        self._warnings = ConvergenceWarnings()

    @property
    def rounds(self) -> int:
        return self._next

    @property
    def finished(self) -> bool:
        return self._next == self._end

    @property
    def _survivors(self) -> dict[str, Any]:
        broken = {name for name, _ in self._errors}
        return {n: model for n, model in self._setup.models.items() if n not in broken}

    def advance(self, work: float) -> float:
        first, is_single = self._next, self._next < self._n_single
        batch = (
            1 if self._n_threads == 1 else self._n_threads * (_FITS_PER_THREAD if is_single else 1)
        )
        count = min((self._n_single if is_single else self._end) - first, batch)
        members = self._survivors
        calls = [(number, members) for number in range(first, first + count)]
        with self._warnings.recording(), unwatched():  # callbacks see one process, not its fits
            run_calls(self._run, calls, self._n_threads)
        self._issue_warnings()
        self._next = first + count
        return work

    def outcome_of(
        self, number: int, members: Mapping[str, Any]
    ) -> tuple[dict[Any, FoldResult], dict[Any, Exception], dict[int, dict[str, float]]]:
        """Results, errors and weights of one fit, or of the blends of one fold."""
        with self._warnings.recording():
            self._run(number, members)
        self._issue_warnings()
        return self._results, self._errors, self.weights

    def _issue_warnings(self) -> None:
        """Issue the recorded warnings; if warnings are errors, such a fit counts as failed."""
        for fit_, issue in self._warnings.take():
            with self._recording_errors(fit_.names, fit_.fold):
                issue()

    def _run(self, number: int, members: Mapping[str, Any]) -> None:
        if number >= self._n_single:
            self._blend(number - self._n_single, members)
            return
        fold, place = divmod(number, len(self._names))
        if self._names[place] in members:
            self._fit(self._names[place], fold)

    def _fit(self, name: str, fold: int) -> None:
        setup = self._setup
        with self._recording_errors((name,), fold):
            split = setup.splits[fold]
            model = seeded_clone(
                setup.models[name], setup.key(fold), one_thread=self._n_threads > 1
            )
            training = setup.examples.take(split.train)
            start = time.perf_counter()
            with self._warnings.of_fit((name,), fold):
                fit(model, training)
            seconds = time.perf_counter() - start
            tested = setup.examples.take(split.test)
            self._results[name, fold] = setup.result(
                model, tested, seconds, stopped_early=self._warnings.has(name, fold)
            )

    def _blend(self, fold: int, members: Mapping[str, Any]) -> None:
        setup = self._setup
        if len(members) < 2 or setup.blend is None:
            return
        with self._recording_errors(BLENDS, fold):
            split = setup.splits[fold]
            with self._warnings.of_fit(BLENDS, fold):
                blends = fit_blends(
                    members, setup.examples.take(split.train), setup.task,
                    setup.scoring.scorer, setup.key(fold), setup.blend,
                    one_thread=self._n_threads > 1,
                )  # fmt: skip
            self.weights[fold] = blends["selection"].weights
            tested = setup.examples.take(split.test)
            for name, blend in blends.items():
                with self._recording_errors((name,), fold):
                    self._results[name, fold] = setup.result(
                        blend.model,
                        tested,
                        blend.seconds,
                        stopped_early=self._warnings.has(name, fold),
                    )

    @contextmanager
    def _recording_errors(self, names: tuple[str, ...], fold: int) -> Iterator[None]:
        try:
            yield
        except FitCancelled:
            raise
        except Exception as error:
            self._errors.update({(name, fold): error for name in names})

    # -- results --

    def complete_folds(self, n_needed: int) -> tuple[list[int], list[str]]:
        """Folds that all remaining models have done, and the names of these models.

        Blends are among them only if at least `n_needed` folds of theirs are done.
        """
        if not self._survivors:
            name, fold = min(self._errors, key=lambda place: place[::-1])
            error = self._errors[name, fold]
            raise ValueError(f"All models failed; {FailedModel(name, error, fold)}") from error
        compared = list(self._survivors)
        folds = self._folds_of(compared)
        if self._setup.blend is not None and len(compared) > 1:
            broken = {name for name, _ in self._errors}
            with_blends = compared + [name for name in BLENDS if name not in broken]
            if len(self._folds_of(with_blends)) >= n_needed:
                return self._folds_of(with_blends), with_blends
        return folds, compared

    def _folds_of(self, names: list[str]) -> list[int]:
        every = range(len(self._setup.splits))
        return [fold for fold in every if all((name, fold) in self._results for name in names)]

    def failed(self, compared: list[str]) -> tuple[FailedModel, ...]:
        """Models that failed, with their first errors; blends can also lack time or members."""
        wanted = [*self._names, *(BLENDS if self._setup.blend is not None else ())]
        first: dict[str, int] = {}
        for name, fold in self._errors:
            first[name] = min(fold, first.get(name, fold))
        missing: Exception = TimeoutError("The comparison ended before the blends were done")
        if len(self._survivors) < 2:
            missing = ValueError("Only one model is left, so there is nothing to blend")
        return tuple(
            FailedModel(name, self._errors[name, first[name]], first[name])
            if name in first
            else FailedModel(name, missing, None)
            for name in wanted
            if name not in compared
        )

    def scores(self, names: list[str], folds: list[int]) -> np.ndarray:
        """Scores of these folds and models, float64 (n_folds, n_models)."""
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
    """`Comparing` with the fits run by the workers of the current joblib backend."""

    def __init__(self, setup: ComparisonSetup, n_workers: int) -> None:
        super().__init__(setup, 1)
        self._n_workers = n_workers
        self._outcomes: Iterator[Any] | None = None

    def advance(self, work: float) -> float:
        if self._next == self._n_single:  # blends are made of the models that did not fail
            self._outcomes = None
        if self._outcomes is None:
            is_single = self._next < self._n_single
            numbers = range(self._next, self._n_single if is_single else self._end)
            calls = [(number, list(self._survivors)) for number in numbers]
            self._outcomes = spread(_run_one, self._setup, calls, self._n_workers)
        results, errors, weights = next(self._outcomes)
        self._results |= results
        self._errors |= errors
        self.weights |= weights
        self._next += 1
        return work


def _run_one(setup: ComparisonSetup, number: int, survivors: list[str]) -> Any:
    """One fit and its score, in a worker process."""
    process = Comparing(setup, 2)  # with several "threads", each fit uses one core
    with unwatched():
        return process.outcome_of(number, {name: setup.models[name] for name in survivors})
