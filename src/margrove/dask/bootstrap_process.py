"""The process that computes a known statistic on resamples of a table that lies on workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.dask import bootstrap_shards as on_worker
from margrove.dask.bootstrap_shards import Draws
from margrove.dask.bootstrap_statistics import Statistic, between, interpolated
from margrove.dask.parts import Parts
from margrove.dask.shards import plan_shards
from margrove.dask.waiting import gathered
from margrove.ensemble.bootstrap.intervals import moments_of

__all__ = ["RanksOnShards", "Rows", "SumsOnShards", "rows_on_workers"]

_DRAWS_OF_A_TASK = 2e8
_NUMBERS_OF_A_TASK = 2e6
_IN_FLIGHT = 2  # batches of tasks, so that no worker waits for this process
_DEVIATIONS = 8.0  # of a rank in a resample, that a window spans to both sides


@dataclass(frozen=True)
class Rows:
    """A table as one array a shard, on the workers, and what is known of it.

    centre   the means of the columns
    """

    client: Any
    arrays: list[Any]
    starts: list[int]
    lengths: list[int]
    n_rows: int
    centre: np.ndarray
    is_finite: bool

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Results of function(array, *arguments) of all shards, in order."""
        submit = self.client.submit
        return gathered(
            self.client,
            [submit(function, own, *arguments, pure=False) for own in self.arrays],
        )


def rows_on_workers(parts: Parts, workers: list[str]) -> Rows:
    client, shards = parts.client, plan_shards(parts.lengths, workers, parts.where())
    arrays = [
        client.submit(
            on_worker.joined,
            [parts.X[number] for number, _, _ in shard.pieces],
            [(first, last) for _, first, last in shard.pieces],
            workers=[shard.worker],
            allow_other_workers=True,
            pure=False,
        )
        for shard in shards
    ]
    facts = gathered(client, [client.submit(on_worker.row_facts, own) for own in arrays])
    n_rows = sum(own["n"] for own in facts)
    is_finite = all(own["is_finite"] for own in facts)
    with np.errstate(invalid="ignore", over="ignore"):
        centre = np.sum([own["sum"] for own in facts], axis=0) / n_rows
    starts = [shard.start for shard in shards]
    lengths = [own["n"] for own in facts]
    return Rows(client, arrays, starts, lengths, n_rows, centre, is_finite)


class _OnShards:
    """What both share: batches of resamples as tasks; see `margrove._runtime.slices.Process`."""

    unit = "evaluation"

    def __init__(self, rows: Rows, draws: Draws, statistic: Statistic, shape: tuple[int, ...]):
        """`shape` is that of the statistic."""
        self._rows, self._draws, self._statistic, self._shape = rows, draws, statistic, shape
        self.total: int | None = draws.n_resamples
        self._done: list[np.ndarray] = []
        self._restart()

    def _restart(self) -> None:
        size = int(_DRAWS_OF_A_TASK / self._draws.n_draws)
        size = max(1, min(size, int(_NUMBERS_OF_A_TASK / self._numbers_of_a_resample())))
        edges = [*range(0, self._draws.n_resamples, size), self._draws.n_resamples]
        self._batches = [range(*ends) for ends in itertools.pairwise(edges)]
        self._flying: list[tuple[range, list[Any]]] = []
        self._done = []

    @property
    def resamples(self) -> np.ndarray:
        """The values of the resamples that are done, in their order."""
        if not self._done:
            return np.empty((0, *self._shape))
        return np.concatenate(self._done)

    @property
    def rounds(self) -> int:
        return sum(map(len, self._done))

    @property
    def finished(self) -> bool:
        return not self._batches and not self._flying

    def advance(self, work: float) -> float:
        """One batch of resamples, on all shards."""
        while self._batches and len(self._flying) < _IN_FLIGHT:
            batch = self._batches.pop(0)
            self._flying.append((batch, self._tasks(batch)))
        batch, tasks = self._flying.pop(0)
        values = self._values(gathered(self._rows.client, tasks))
        if values is None:
            self._restart()
        else:
            self._done.append(values.reshape(len(batch), *self._shape))
        return work

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        if self._shape or not self._done:
            return {}
        return {"standard error": float(moments_of(self.resamples[:, None]).standard_error[0])}

    def closing_figures(self) -> dict[str, float]:
        return {"resamples": self.rounds, **self.figures()}

    def _numbers_of_a_resample(self) -> int:
        raise NotImplementedError

    def _tasks(self, batch: range) -> list[Any]:
        raise NotImplementedError

    def _values(self, told: list[Any]) -> np.ndarray | None:
        raise NotImplementedError


class SumsOnShards(_OnShards):
    """Means, sums, variances and their roots."""

    @property
    def _wants_squares(self) -> bool:
        return self._statistic.kind in ("var", "std")

    def _numbers_of_a_resample(self) -> int:
        return 1 + 2 * len(self._rows.centre)

    def estimate(self) -> np.ndarray:
        """Of the data."""
        moments = self._moments()
        n = np.array([float(self._rows.n_rows)])
        return self._from_sums(n, moments[:1], moments[1:2])[0].reshape(self._shape)

    def acceleration(self) -> np.ndarray:
        """What method="bca" wants to know, (d,)."""
        n, kind = self._rows.n_rows, self._statistic.kind
        one, two, three, four, _, six = self._moments() / n
        if kind in ("mean", "sum"):
            second = two - one**2
            third = three - 3.0 * one * two + 2.0 * one**3
        elif kind == "var":
            second = four - two**2
            third = six - 3.0 * two * four + 2.0 * two**3
        else:
            second, third = self._std_without(two)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = third / (6.0 * np.sqrt(n) * second**1.5)
        return np.where(second > 0.0, found, np.nan)

    def _moments(self) -> np.ndarray:
        """Sums of the powers 1 to 6 of the deviations, (6, d)."""
        return np.sum(self._rows.map(on_worker.row_moments, self._rows.centre), axis=0)

    def _std_without(self, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second and third central moment of minus the root of the variance without each row."""
        n = self._rows.n_rows
        told = self._rows.map(on_worker.std_powers, self._rows.centre, n * variance, n / (n - 1.0))
        one, two, three = np.sum(told, axis=0) / n
        second = two - one**2
        return second, -(three - 3.0 * one * two + 2.0 * one**3)

    def _tasks(self, batch: range) -> list[Any]:
        rows = self._rows
        return [
            rows.client.submit(
                on_worker.row_sums, own, start, self._draws, batch, rows.centre,
                self._wants_squares, pure=False,
            )
            for own, start in zip(rows.arrays, rows.starts, strict=True)
        ]  # fmt: skip

    def _values(self, told: list[Any]) -> np.ndarray:
        sums = np.sum(told, axis=0)
        d = len(self._rows.centre)
        return self._from_sums(sums[:, 0], sums[:, 1 : 1 + d], sums[:, 1 + d :])

    def _from_sums(self, n: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """n (k,), sums of deviations and of their squares (k, d)."""
        n = n[:, None]
        mean = first / n
        kind, centre = self._statistic.kind, self._rows.centre
        if kind == "mean":
            return centre + mean
        if kind == "sum":
            return n * centre + first
        degrees = n - self._statistic.ddof
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.maximum(second / n - mean**2, 0.0) * n / degrees
        return variance if kind == "var" else np.sqrt(variance)


class RanksOnShards(_OnShards):
    """Medians and quantiles: values at ranks, found in windows of values about those of the data.

    A resample whose rank is outside of a window makes all windows wider, and is done again.
    """

    def __init__(self, rows: Rows, draws: Draws, statistic: Statistic, shape: tuple[int, ...]):
        self._deviations = _DEVIATIONS
        self._splitters = rows.map(on_worker.splitters)
        self._rows, self._draws, self._statistic = rows, draws, statistic
        self._look()
        super().__init__(rows, draws, statistic, shape)

    def _look(self) -> None:
        """Sets: _held (rows of each window, on the workers) and _windows."""
        rows = self._rows
        n_columns = len(rows.centre)
        ranges = [
            (column, *self._range(column, float(level)))
            for level in self._statistic.shares
            for column in range(n_columns)
        ]
        submit = rows.client.submit
        self._held = [submit(on_worker.rank_rows, own, ranges) for own in rows.arrays]
        told = gathered(rows.client, [submit(on_worker.rank_values, own) for own in self._held])
        self._windows = [_Window.of([own[w] for own in told]) for w in range(len(ranges))]

    def _range(self, column: int, level: float) -> tuple[float, float]:
        """Values between which the quantile of any resample lies, most likely."""
        n = self._rows.n_rows
        n_draws = self._draws.n_draws
        # about the least and the largest value, gaps between drawn rows matter
        spread = n * np.sqrt(level * (1.0 - level) / n_draws) + 4.0 * n / n_draws
        spread = spread * self._deviations + 3.0
        first, last = level * (n - 1) - spread, level * (n - 1) + spread
        values, least, most = self._rank_bounds(column)
        below, above = values[most <= first], values[least > last]
        low = float(below[-1]) if len(below) else -np.inf
        return low, float(above[0]) if len(above) else np.inf

    def _rank_bounds(self, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, and between which numbers the number of rows below or at each of them lies."""
        own = [splitters[:, column] for splitters in self._splitters]
        values = np.unique(np.concatenate(own))
        least, most = np.zeros(len(values)), np.zeros(len(values))
        for splitters, n in zip(own, self._rows.lengths, strict=True):
            places = on_worker.splitter_places(n)  # of the sorted rows
            up_to = np.searchsorted(splitters, values, side="right")
            most += np.append(places, n)[up_to]
            least += np.where(up_to > 0, places[np.maximum(up_to - 1, 0)] + 1, 0)
        return values, least, most

    def _numbers_of_a_resample(self) -> int:
        return sum(1 + len(window.values) for window in self._windows)

    def estimate(self) -> np.ndarray:
        found = [
            self._quantiles(window, level, self._rows.n_rows, *window.of_data())
            for window, level in self._each()
        ]
        assert all(own is not None for own in found)
        return np.array(found).reshape(self._shape)

    def _each(self) -> list[tuple[_Window, float]]:
        n_columns = len(self._rows.centre)
        levels = np.repeat(self._statistic.shares, n_columns)
        return list(zip(self._windows, levels.tolist(), strict=True))

    def _quantiles(
        self, window: _Window, level: float, count: int, below: np.ndarray, inside: np.ndarray
    ) -> np.ndarray | None:
        """Of `count` values each, from how many are below and have each value; None: not there."""
        kind = self._statistic.kind
        low, high, part = interpolated(kind, level, count)
        ends = below[:, None] + np.cumsum(inside, axis=1)
        found = [_at_rank(window.values, below, ends, rank) for rank in (low, high)]
        if found[0] is None or found[1] is None:
            return None
        return np.asarray(between(kind, found[0], found[1], part))

    def acceleration(self) -> np.ndarray:
        """From the three values that leaving out a row can give, (k,)."""
        return np.array([self._acceleration(window, level) for window, level in self._each()])

    def _acceleration(self, window: _Window, level: float) -> float:
        n, kind = self._rows.n_rows, self._statistic.kind
        low, high, part = interpolated(kind, level, n - 1)
        below, inside = window.of_data()
        ends = below[:, None] + np.cumsum(inside, axis=1)

        def value(rank: int) -> float:
            found = _at_rank(window.values, below, ends, rank)
            assert found is not None
            return float(found[0])

        def without(first: int, second: int) -> float:
            return float(between(kind, value(first), value(second), part))

        values = [without(low + 1, high + 1), without(low, high)]
        numbers = [low + 1, n - 1 - high]
        if high > low:  # the row between them
            values.append(without(low, high + 1))
            numbers.append(high - low)
        return _weighted_acceleration(np.array(values), np.array(numbers, float))

    def _tasks(self, batch: range) -> list[Any]:
        rows = self._rows
        return [
            rows.client.submit(
                on_worker.rank_counts, held, n, start, self._draws, batch, pure=False
            )
            for held, n, start in zip(self._held, rows.lengths, rows.starts, strict=True)
        ]

    def _values(self, told: list[Any]) -> np.ndarray | None:
        found = []
        for w, (window, level) in enumerate(self._each()):
            below = np.sum([own[w][0] for own in told], axis=0)
            inside = window.added_up([own[w][1] for own in told])
            values = self._quantiles(window, level, self._draws.n_draws, below, inside)
            if values is None:
                self._deviations *= 4.0
                self._look()
                return None
            found.append(values)
        return np.stack(found, axis=1)


@dataclass(frozen=True)
class _Window:
    """Values of a column, ascending, with the places of each shard's own among them.

    n_below   rows of the data below the window
    counts    rows of the data that have each value
    """

    values: np.ndarray
    places: list[np.ndarray]
    n_below: int
    counts: np.ndarray

    @classmethod
    def of(cls, told: list[tuple[int, np.ndarray, np.ndarray]]) -> _Window:
        values = np.unique(np.concatenate([own for _, own, _ in told]))
        places = [np.searchsorted(values, own) for _, own, _ in told]
        counts = np.zeros(len(values))
        for place, (_, _, own) in zip(places, told, strict=True):
            counts[place] += own
        return cls(values, places, sum(below for below, _, _ in told), counts)

    def of_data(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([float(self.n_below)]), self.counts[None]

    def added_up(self, told: list[np.ndarray]) -> np.ndarray:
        """Counts (k, values) from those of each shard's own values."""
        total = np.zeros((len(told[0]), len(self.values)))
        for place, own in zip(self.places, told, strict=True):
            total[:, place] += own
        return total


def _at_rank(
    values: np.ndarray, below: np.ndarray, ends: np.ndarray, rank: int
) -> np.ndarray | None:
    """The value of a rank, 0 for the least, in each of k samples; None if one is not there."""
    if (below > rank).any() or not len(values) or (ends[:, -1] <= rank).any():
        return None
    return np.asarray(values[(ends <= rank).sum(axis=1)])


def _weighted_acceleration(values: np.ndarray, numbers: np.ndarray) -> float:
    if values.min() == values.max():
        return float("nan")
    influence = np.average(values, weights=numbers) - values
    influence /= np.abs(influence).max()
    return float((numbers @ influence**3) / (6.0 * (numbers @ influence**2) ** 1.5))
