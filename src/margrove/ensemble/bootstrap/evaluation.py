"""The user's statistic, evaluated on resamples: on threads, in slices, its errors with a note."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import numpy as np

from margrove._runtime import run_tiles, spread, unwatched
from margrove.ensemble.bootstrap.arguments import Sample
from margrove.ensemble.bootstrap.draws import Resample, ResamplingPlan
from margrove.ensemble.bootstrap.intervals import moments_of

__all__ = ["Bootstrap", "Evaluation", "SpreadBootstrap"]

_CELLS_OF_A_BATCH = 2**18  # small enough for the caches of a core, large enough to amortise a call
_TASKS_OF_A_WORKER = 8  # of other processes
_WORK_OF_A_TILE = 1e6  # what a statistic costs is seen when it runs: start with two


class Evaluation:
    """The user's statistic, and what has been checked about it."""

    def __init__(self, statistic: Callable[..., Any], sample: Sample, vectorized: bool) -> None:
        self._statistic = statistic
        self._sample = sample
        self.vectorized = vectorized

    @property
    def resamples_per_batch(self) -> int:
        if not self.vectorized:
            return 1
        return max(1, _CELLS_OF_A_BATCH // max(1, self._sample.n_cells))

    def require_weights(self) -> None:
        try:
            parameters = inspect.signature(self._statistic).parameters
        except (TypeError, ValueError):  # written in C: only calling it can tell
            return
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        if "weights" not in parameters and not takes_any:
            raise TypeError(
                "resampling='bayesian' weights the rows, so the statistic must take a keyword "
                f"'weights', as numpy.average does. {_name_of(self._statistic)} takes "
                f"({', '.join(parameters)}). Use such a statistic, or resampling='ordinary'."
            )

    def of(self, resamples: Sequence[Resample], what: str) -> np.ndarray:
        """The statistic of each, float64 (k, ...); `what` they are is for errors."""
        try:
            if not self.vectorized:
                return np.stack([self._of_one(resample, what) for resample in resamples])
            if len({len(resample.rows) for resample in resamples}) == 1:
                return self._of_batch(resamples, what)
            return np.concatenate([self._of_batch([resample], what) for resample in resamples])
        except Exception as error:
            error.add_note(f"The statistic was being computed for {what}.")
            raise

    def _of_one(self, resample: Resample, what: str) -> np.ndarray:
        parts = self._sample.take(resample.rows)
        if resample.weights is None:
            return _as_numbers(self._statistic(*parts), what)
        return _as_numbers(self._statistic(*parts, weights=resample.weights), what)

    def _of_batch(self, resamples: Sequence[Resample], what: str) -> np.ndarray:
        parts = self._sample.take_batch(np.stack([resample.rows for resample in resamples]))
        options: dict[str, Any] = {"axis": -1}
        if resamples[0].weights is not None:
            options["weights"] = np.stack([r.weights for r in resamples if r.weights is not None])
        values = _as_numbers(self._statistic(*parts, **options), what)
        if values.ndim == 0 or len(values) != len(resamples):
            raise ValueError(
                f"With vectorized=True the statistic must return {len(resamples)} values for "
                f"{len(resamples)} resamples, as the first axis of its result. Got shape "
                f"{values.shape} instead. Use vectorized=False if it takes one at a time."
            )
        return values


class Bootstrap:
    """The process that evaluates the statistic on resamples, and then on the jackknife's parts.

    A tile is a batch of evaluations. Which they are does not depend on the number of threads, nor
    on where slices end. Its name is read by people who use up their time or interrupt it.
    """

    unit = "evaluation"

    def __init__(
        self,
        evaluation: Evaluation,
        plan: ResamplingPlan,
        estimate: np.ndarray,
        wants_jackknife: bool,
        n_threads: int,
    ) -> None:
        self._evaluation = evaluation
        self._plan = plan
        self._n_threads = n_threads
        self._deletions = plan.deletions() if wants_jackknife else None
        n_parts = 0 if self._deletions is None else len(self._deletions.parts)
        self.total: int | None = plan.n_resamples + n_parts
        self._values = np.empty((self.total, *estimate.shape))
        self._is_done = np.zeros(self.total, bool)
        size = evaluation.resamples_per_batch
        self._tiles = [
            (first, min(first + size, end))
            for start, end in ((0, plan.n_resamples), (plan.n_resamples, self.total))
            for first in range(start, end, size)
        ]
        self._next_tile = 0
        with unwatched():  # fits inside of the statistic are parts of this one
            self._context = copy_context()

    @property
    def resamples(self) -> np.ndarray:
        """The values of the resamples that are done, in their order."""
        n_resamples = self._plan.n_resamples
        return self._values[:n_resamples][self._is_done[:n_resamples]]

    def jackknife(self) -> np.ndarray | None:
        """The values without each part, (m, k); None if not asked for, or not complete."""
        n_resamples = self._plan.n_resamples
        if self._deletions is None or not self._is_done[n_resamples:].all():
            return None
        without = self._values[n_resamples:]
        return without.reshape(len(without), int(np.prod(without.shape[1:])))

    @property
    def strata(self) -> np.ndarray:
        """The stratum of each part that the jackknife leaves out."""
        return np.empty(0, np.int64) if self._deletions is None else self._deletions.strata

    @property
    def rounds(self) -> int:
        return int(np.count_nonzero(self._is_done))

    @property
    def finished(self) -> bool:
        return self._next_tile == len(self._tiles)

    def advance(self, work: float) -> float:
        first = self._next_tile
        count = min(len(self._tiles) - first, max(self._n_threads, int(work / _WORK_OF_A_TILE)))

        def evaluate(tile: int) -> None:
            # threads start with an empty context: numpy.errstate and the like would be lost
            self._context.copy().run(self._evaluate, *self._tiles[first + tile])

        run_tiles(evaluate, count, self._n_threads)
        self._next_tile = first + count
        return count * _WORK_OF_A_TILE

    def _evaluate(self, first: int, last: int) -> None:
        self._values[first:last] = self.values_of(first, last)
        self._is_done[first:last] = True

    def values_of(self, first: int, last: int) -> np.ndarray:
        """The values of evaluations first .. last - 1: of resamples, or of the data less a part."""
        n_resamples = self._plan.n_resamples
        if first < n_resamples:
            what = f"resample {first}" + (f" to {last - 1}" if last - first > 1 else "")
            made = [self._plan.resample(number) for number in range(first, last)]
        else:
            assert self._deletions is not None
            parts = self._deletions.parts[first - n_resamples : last - n_resamples]
            span = f"{parts[0]}" + (f" (or one up to {parts[-1]})" if len(parts) > 1 else "")
            what = f"the data without {self._plan.part} {span}, for method='bca'"
            made = [self._plan.without(int(part)) for part in parts]
        values = self._evaluation.of(made, what)
        if values.shape[1:] != self._values.shape[1:]:
            raise ValueError(
                f"The statistic must always return the same shape. For the data it was "
                f"{self._values.shape[1:]}, for {what} {values.shape[1:]}."
            )
        return values

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        if self._values.ndim > 1:
            return {}
        resamples = self.resamples
        return {"standard error": float(moments_of(resamples[:, None]).standard_error[0])}

    def closing_figures(self) -> dict[str, float]:
        return {"resamples": len(self.resamples), **self.figures()}


class SpreadBootstrap(Bootstrap):
    """The same, its tiles evaluated by the workers of the joblib backend in effect."""

    def __init__(self, *given: Any, n_workers: int) -> None:
        super().__init__(*given)
        self._given, self._n_workers = given, n_workers
        self._coming: Iterator[list[tuple[int, int, np.ndarray]]] | None = None

    def advance(self, work: float) -> float:
        if self._coming is None:
            n_tasks = _TASKS_OF_A_WORKER * self._n_workers
            size = max(1, -(-len(self._tiles) // n_tasks))
            runs = [self._tiles[k : k + size] for k in range(0, len(self._tiles), size)]
            calls = [(run,) for run in runs]
            self._coming = spread(_evaluated, self._given, calls, self._n_workers)
        for first, last, values in next(self._coming):
            self._values[first:last] = values
            self._is_done[first:last] = True
            self._next_tile += 1
        return work


def _evaluated(
    given: tuple[Any, ...], tiles: list[tuple[int, int]]
) -> list[tuple[int, int, np.ndarray]]:
    """What a worker does."""
    own = Bootstrap(*given)
    with unwatched():
        return [(first, last, own.values_of(first, last)) for first, last in tiles]


def _as_numbers(value: Any, what: str) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype == object and not any(number is None for number in array.flat):
        with suppress(TypeError, ValueError):  # fractions and the like are numbers
            array = array.astype(np.float64)
    if array.dtype.kind not in "biuf" or not array.size:
        raise TypeError(
            f"The statistic must return a number or an array of numbers. For {what} it returned "
            f"{value!r}."
        )
    return array.astype(np.float64, copy=False)


def _name_of(statistic: Callable[..., Any]) -> str:
    return str(getattr(statistic, "__name__", repr(statistic)))
