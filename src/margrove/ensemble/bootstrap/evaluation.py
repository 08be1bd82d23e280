"""The user's statistic, evaluated on resamples by threads or processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from margrove._runtime import run_calls, spread, unwatched
from margrove.ensemble.bootstrap.arguments import Sample
from margrove.ensemble.bootstrap.draws import Resample, ResamplingPlan
from margrove.ensemble.bootstrap.intervals import moments_of

__all__ = ["Bootstrap", "Evaluation", "SpreadBootstrap"]

_CELLS_OF_A_BATCH = 2**18  # small enough for the caches of a core, large enough to amortise a call
_TASKS_OF_A_WORKER = 8  # of other processes
_WORK_OF_A_TILE = 1e6  # the cost of a statistic is unknown before it runs: start with few tiles


class Evaluation:
    """Calls the user's statistic on resamples and checks what it returns."""

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
        except (TypeError, ValueError):  # written in C: the signature is unknown
            return
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        if "weights" not in parameters and not takes_any:
            raise TypeError(
                "resampling='bayesian' weights the rows, so the statistic must have a keyword "
                f"'weights', as numpy.average has. {_name_of(self._statistic)} has the parameters "
                f"({', '.join(parameters)}). Use such a statistic, or resampling='ordinary'."
            )

    def of(self, resamples: Sequence[Resample], what: str) -> np.ndarray:
        """The statistic of each of k resamples, float64 (k, ...); `what` names them in errors."""
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
                f"{values.shape} instead. Use vectorized=False if it takes one resample at a time."
            )
        return values


class Bootstrap:
    """The process that evaluates the statistic on the resamples, and then for the jackknife.

    A tile is a batch of evaluations. Tiles do not depend on the number of threads, nor on where
    slices end. The name of the class appears in messages about interrupts and time limits.
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
        n_deletions = 0 if self._deletions is None else len(self._deletions.units)
        self.total: int | None = plan.n_resamples + n_deletions
        self._values = np.empty((self.total, *estimate.shape))
        self._is_done = np.zeros(self.total, bool)
        size = evaluation.resamples_per_batch
        self._tiles = [
            (first, min(first + size, end))
            for start, end in ((0, plan.n_resamples), (plan.n_resamples, self.total))
            for first in range(start, end, size)
        ]
        self._next_tile = 0

    @property
    def resamples(self) -> np.ndarray:
        """The values of the resamples that are done, in the order of their numbers."""
        n_resamples = self._plan.n_resamples
        return self._values[:n_resamples][self._is_done[:n_resamples]]

    def jackknife(self) -> np.ndarray | None:
        """The values without each unit, (m, k); None if not requested, or not complete."""
        n_resamples = self._plan.n_resamples
        if self._deletions is None or not self._is_done[n_resamples:].all():
            return None
        without = self._values[n_resamples:]
        return without.reshape(len(without), int(np.prod(without.shape[1:])))

    @property
    def strata(self) -> np.ndarray:
        """The stratum of each unit that the jackknife leaves out."""
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
        with unwatched():  # fits inside of the statistic do not report progress
            run_calls(self._evaluate, self._tiles[first : first + count], self._n_threads)
        self._next_tile = first + count
        return count * _WORK_OF_A_TILE

    def _evaluate(self, first: int, last: int) -> None:
        self._values[first:last] = self.values_of(first, last)
        self._is_done[first:last] = True

    def values_of(self, first: int, last: int) -> np.ndarray:
        """The values of evaluations first .. last - 1: resamples, or the data without a unit."""
        n_resamples = self._plan.n_resamples
        if first < n_resamples:
            what = f"resample {first}" + (f" to {last - 1}" if last - first > 1 else "")
            resamples = [self._plan.resample(number) for number in range(first, last)]
        else:
            assert self._deletions is not None
            units = self._deletions.units[first - n_resamples : last - n_resamples]
            span = f"{units[0]}" + (f" (or one up to {units[-1]})" if len(units) > 1 else "")
            what = f"the data without {self._plan.deletion_unit} {span}, for method='bca'"
            resamples = [self._plan.without(int(unit)) for unit in units]
        values = self._evaluation.of(resamples, what)
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
    """The same process, whose tiles are evaluated by the workers of the active joblib backend."""

    def __init__(self, *given: Any, n_workers: int) -> None:
        super().__init__(*given)
        self._given, self._n_workers = given, n_workers
        self._results: Iterator[list[tuple[int, int, np.ndarray]]] | None = None

    def advance(self, work: float) -> float:
        if self._results is None:
            n_tasks = _TASKS_OF_A_WORKER * self._n_workers
            size = max(1, -(-len(self._tiles) // n_tasks))
            calls = [(self._tiles[k : k + size],) for k in range(0, len(self._tiles), size)]
            self._results = spread(_evaluated, self._given, calls, self._n_workers)
        for first, last, values in next(self._results):
            self._values[first:last] = values
            self._is_done[first:last] = True
            self._next_tile += 1
        return work


def _evaluated(
    given: tuple[Any, ...], tiles: list[tuple[int, int]]
) -> list[tuple[int, int, np.ndarray]]:
    """Evaluate some tiles in a worker process: (first, last, values) of each."""
    process = Bootstrap(*given)
    with unwatched():
        return [(first, last, process.values_of(first, last)) for first, last in tiles]


def _as_numbers(value: Any, what: str) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype == object and not any(number is None for number in array.flat):
        with suppress(TypeError, ValueError):  # objects such as Fraction are numbers
            array = array.astype(np.float64)
    if array.dtype.kind not in "biuf" or not array.size:
        raise TypeError(
            f"The statistic must return a number or an array of numbers. For {what} it returned "
            f"{value!r}."
        )
    return array.astype(np.float64, copy=False)


def _name_of(statistic: Callable[..., Any]) -> str:
    return str(getattr(statistic, "__name__", repr(statistic)))
