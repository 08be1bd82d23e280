"""Bootstrap of a table that lies on several workers: each draws for its own rows.

What is drawn is that of `margrove.ensemble.bootstrap.draws`: draw k of resample b is a function of
(seed, b, k), so that every worker can make all draws, block by block, and count those that fall on
its rows. No row travels. Making draws is the part that does not become faster with more workers.

Conventions: a shard holds rows start .. stop - 1 of the table as float64 (n, d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.ensemble.bootstrap.draws import _permuted, uniforms
from margrove.ensemble.bootstrap.resampling import stream

__all__ = ["Draws", "RankRows", "joined", "rank_counts", "rank_rows", "row_facts", "row_sums"]

_BLOCK = 1 << 18  # draws that are made at a time, small enough for the caches of a core
# of `bootstrap.resampling._mixed`, which begins with key * _OF_KEY + salt * _OF_SALT
_OF_KEY, _OF_SALT = 0xD1342543DE82EF95, 0x9E3779B97F4A7C15
_SHIFT = _OF_SALT * pow(_OF_KEY, -1, 2**64) % 2**64
_SPLITTERS = 4096
_COUNTED_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Draws:
    """Which rows are drawn, as `ResamplingPlan` has it without strata, groups and blocks."""

    n_rows: int
    n_resamples: int
    seed: int
    scheme: str
    n_draws: int

    def counts(self, number: int, start: int, stop: int) -> np.ndarray:
        """How often each of some rows is in resample `number`, float64; with "bayesian", shares.

        Shares are to be divided by their sum over all rows.
        """
        if self.scheme == "bayesian":
            return -np.log(uniforms(_moved(self._key(number), start), stop - start))
        counts = np.zeros(stop - start, np.int64)
        waiting: list[np.ndarray] = []
        for first in range(0, self.n_draws, _BLOCK):
            rows = self._rows(number, first, min(_BLOCK, self.n_draws - first))
            waiting.append(rows[(rows >= start) & (rows < stop)] - start)
            if sum(map(len, waiting)) > _COUNTED_AT_ONCE:
                counts += np.bincount(np.concatenate(waiting), minlength=len(counts))
                waiting = []
        if waiting:
            counts += np.bincount(np.concatenate(waiting), minlength=len(counts))
        return counts.astype(np.float64)

    def _rows(self, number: int, first: int, count: int) -> np.ndarray:
        if self.scheme == "balanced":
            size, key = self.n_resamples * self.n_draws, stream(self.seed, 0)
            return _permuted(number * self.n_draws + first, count, size, key) % self.n_rows
        drawn = uniforms(_moved(self._key(number), first), count) * self.n_rows
        return np.minimum(drawn.astype(np.int64), self.n_rows - 1)

    def _key(self, number: int) -> np.uint64:
        return stream(int(stream(self.seed, number)), 0)


def _moved(key: np.uint64, first: int) -> np.uint64:
    """The key whose numbers 0, 1, ... are `first`, `first` + 1, ... of another."""
    return np.uint64((int(key) + first * _SHIFT) % 2**64)


def joined(pieces: list[Any], cuts: list[tuple[int, int]]) -> np.ndarray:
    """The rows of a shard, from the parts that it is pieces of."""
    chosen = [
        np.asarray(piece, np.float64)[first:last]
        for piece, (first, last) in zip(pieces, cuts, strict=True)
    ]
    return np.concatenate(chosen) if len(chosen) > 1 else chosen[0]


# -- sums --


def row_facts(X: np.ndarray) -> dict[str, Any]:
    """Sums of the columns, and whether all is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = X.sum(axis=0)
    return {"n": len(X), "sum": total, "is_finite": bool(np.isfinite(total).all())}


def row_moments(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Sums of the powers 1 to 6 of x - centre, (6, d)."""
    deviation = X - centre
    power = np.ones_like(deviation)
    sums = []
    for _ in range(6):
        power = power * deviation
        sums.append(power.sum(axis=0))
    return np.array(sums)


def row_sums(
    X: np.ndarray, start: int, draws: Draws, numbers: range, centre: np.ndarray, squares: bool
) -> np.ndarray:
    """Of each resample: how many rows are drawn here, and their sums and squares, (k, 1 + 2d)."""
    deviation = X - centre
    table = [np.ones((len(X), 1)), deviation, *([deviation**2] if squares else [])]
    columns = np.hstack(table)
    return np.stack([draws.counts(b, start, start + len(X)) @ columns for b in numbers])


def std_powers(X: np.ndarray, centre: np.ndarray, whole: np.ndarray, share: float) -> np.ndarray:
    """Sums (3, d) of powers 1 to 3 of what leaving out each row does to the root of `whole`.

    whole is the sum of squares of all rows; without a row it is less by `share` times its square.
    """
    square = share * (X - centre) ** 2
    change = -square / (np.sqrt(np.maximum(whole - square, 0.0)) + np.sqrt(whole))
    return np.array([(change**k).sum(axis=0) for k in (1, 2, 3)])


# -- ranks --


def splitters(X: np.ndarray) -> np.ndarray:
    """Values that cut the rows into equal runs, (s, d), ascending; the ends are among them."""
    return np.sort(X, axis=0)[splitter_places(len(X))]


def splitter_places(n: int) -> np.ndarray:
    return np.rint(np.linspace(0, n - 1, min(n, _SPLITTERS))).astype(np.int64)


@dataclass(frozen=True)
class RankRows:
    """Of the rows of a shard, for one column and one window of values.

    below    bool (n,): those below the window
    inside   int64: those inside it, and `codes`, which of `values` (ascending) each has
    """

    below: np.ndarray
    inside: np.ndarray
    codes: np.ndarray
    values: np.ndarray


def rank_rows(X: np.ndarray, windows: list[tuple[int, float, float]]) -> list[RankRows]:
    """windows: column, least and largest value of each."""
    found = []
    for column, low, high in windows:
        x = X[:, column]
        inside = np.flatnonzero((x >= low) & (x <= high))
        values, codes = np.unique(x[inside], return_inverse=True)
        found.append(RankRows(x < low, inside, codes, values))
    return found


def rank_values(rows: list[RankRows]) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Of each window: how many rows are below it, its values, and how many rows have each."""
    return [
        (
            int(np.count_nonzero(own.below)),
            own.values,
            np.bincount(own.codes, minlength=len(own.values)),
        )
        for own in rows
    ]


def rank_counts(
    rows: list[RankRows], n: int, start: int, draws: Draws, numbers: range
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each window, how many draws of each resample are below it (k,), and have each value."""
    below = np.zeros((len(rows), len(numbers)))
    inside = [np.zeros((len(numbers), len(own.values))) for own in rows]
    for place, number in enumerate(numbers):
        counts = draws.counts(number, start, start + n)
        for w, own in enumerate(rows):
            below[w, place] = counts[own.below].sum()
            inside[w][place] = np.bincount(
                own.codes, weights=counts[own.inside], minlength=len(own.values)
            )
    return list(zip(below, inside, strict=True))
