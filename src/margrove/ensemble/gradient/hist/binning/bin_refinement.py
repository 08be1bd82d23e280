"""Bins of columns with many rows, by refinement: only a sample and a few values are sorted.

    splitters   a sample of the rows divides a column into cells: each value of the sample, and the
                intervals between two of them
    cells       one pass counts the rows in each cell
    opening     if a bin begins inside of a cell, or a value in it may be heavy enough for its own
                bin, another pass collects the values of the cell; all other cells are treated as
                one value each

The bins are exactly those of all distinct values (`columns.bin_numbers`) for every sample; with a
bad sample more values have to be collected. Counts of several parts of a table can be added, so the
same functions are used for rows on several workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margrove._runtime import kernel

__all__ = [
    "N_SPLITTERS",
    "CellCounter",
    "Cells",
    "ValueFinder",
    "cells_to_open",
    "code_values",
    "merged_cells",
    "merged_values",
    "refined_cells",
    "splitters_of",
    "with_values",
    "without_empty",
]

N_SPLITTERS = 8192
_ROWS_AT_ONCE = 1 << 16
_TILE = 512  # values that are searched together
_NO_WEIGHT = np.empty(0)
_LOW, _HIGH, _ROWS, _WEIGHT, _N_COUNTS = range(5)  # columns of the counts of a cell


@dataclass(frozen=True)
class Cells:
    """Intervals of the values of one column, ascending; some may be empty.

    lows, highs   float64, the smallest and the largest value in each cell
    rows, weight  float64, whole numbers
    n_missing     number of rows without a value
    """

    lows: np.ndarray
    highs: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    n_missing: int

    @property
    def are_open(self) -> np.ndarray:
        """Whether a cell has several values, bool."""
        return self.lows < self.highs


def splitters_of(sample: np.ndarray) -> np.ndarray:
    """The distinct values of a sample, ascending."""
    return np.unique(sample[~np.isnan(sample)] + 0.0)


# -- rows --


class CellCounter:
    """Counts the rows of a column in its cells, batch by batch: cell 2 k is before splitter k, and
    cell 2 k + 1 is splitter k itself."""

    def __init__(self, splitters: np.ndarray, *, is_weighted: bool = False) -> None:
        self._splitters, self._is_weighted = splitters, is_weighted
        self._counts = np.zeros((2 * len(splitters) + 1, _N_COUNTS))
        self._counts[:, _LOW], self._counts[:, _HIGH] = np.inf, -np.inf
        self._n_missing = 0

    def add(self, values: np.ndarray, weight: np.ndarray | None = None) -> None:
        weights = _NO_WEIGHT if weight is None else weight
        self._n_missing += _count_cells(values, self._splitters, weights, self._counts)

    def cells(self) -> Cells:
        lows, highs, rows, weight = self._counts.T.copy()
        weight = weight if self._is_weighted else rows
        return Cells(lows, highs, rows, weight, int(self._n_missing))


class ValueFinder:
    """Collects the values of a column that are in some intervals, batch by batch."""

    def __init__(self, lows: np.ndarray, highs: np.ndarray, *, is_weighted: bool = False) -> None:
        self._lows, self._highs = lows, highs
        self._values = _Collected()
        self._weights = _Collected() if is_weighted else None

    def add(self, values: np.ndarray, weight: np.ndarray | None = None) -> None:
        places = np.empty(len(values), np.int64)
        places = places[: _find_within(values, self._lows, self._highs, places)]
        self._values.add(values[places] + 0.0)
        if self._weights is not None and weight is not None:
            self._weights.add(weight[places])

    def cells(self) -> Cells:
        """Cells of one value each."""
        weight = None if self._weights is None else self._weights.numbers
        return _known(self._values.numbers, weight)


class _Collected:
    """Numbers that arrive a few at a time, in one array: thousands of small arrays that stay
    between large ones that go would leave gaps in memory, several times as large as themselves."""

    def __init__(self) -> None:
        self._array, self._size = np.empty(1024), 0

    def add(self, numbers: np.ndarray) -> None:
        end = self._size + len(numbers)
        if end > len(self._array):
            larger = np.empty(max(end, len(self._array) * 3 // 2))
            larger[: self._size] = self.numbers
            self._array = larger
        self._array[self._size : end] = numbers
        self._size = end

    @property
    def numbers(self) -> np.ndarray:
        return self._array[: self._size]


def code_values(values: np.ndarray, lows: np.ndarray) -> np.ndarray:
    """Codes uint8 (n,): the last bin that begins at or below each value; the number of bins if it
    is missing."""
    codes = np.empty(len(values), np.uint8)
    _code(values, lows, codes)
    return codes


@kernel
def _count_below(values, borders, or_equal, counts):
    """How many of the ascending borders are less than each value, or not greater.

    A binary search of all values at the same time, step by step, which needs no branches.
    """
    for i in range(len(values)):
        counts[i] = 0
    left = len(borders)
    while left > 0:
        half = max(left >> 1, 1)
        upper = borders[half - 1 :]
        if or_equal:
            for i in range(len(values)):
                border = upper[np.uint32(counts[i])]
                counts[i] = counts[i] + half if border <= values[i] else counts[i]
        else:
            for i in range(len(values)):
                border = upper[np.uint32(counts[i])]
                counts[i] = counts[i] + half if border < values[i] else counts[i]
        left = left - half if left > 1 else 0


@kernel
def _count_cells(values, splitters, weight, counts):
    n_missing, has_weight = 0, len(weight) > 0
    buffer = np.empty(_TILE, np.int32)
    for start in range(0, len(values), _TILE):
        tile = values[start : start + _TILE]
        places = buffer[: len(tile)]
        _count_below(tile, splitters, False, places)
        for i in range(len(tile)):
            value = tile[i] + 0.0  # -0.0 is 0.0
            if value != value:  # noqa: PLR0124
                n_missing += 1
                continue
            at = places[i]
            cell = np.uint64(2 * at + np.int32(at < len(splitters) and splitters[at] == value))
            counts[cell, _LOW] = min(counts[cell, _LOW], value)
            counts[cell, _HIGH] = max(counts[cell, _HIGH], value)
            counts[cell, _ROWS] += 1.0
            if has_weight:
                counts[cell, _WEIGHT] += weight[start + i]
    return n_missing


@kernel
def _find_within(values, lows, highs, found):
    """Write the places of the values that are in one of the intervals; returns their number."""
    n_found, buffer = 0, np.empty(_TILE, np.int32)
    for start in range(0, len(values), _TILE):
        tile = values[start : start + _TILE]
        places = buffer[: len(tile)]
        _count_below(tile, lows, True, places)
        for i in range(len(tile)):
            k = places[i] - 1
            found[n_found] = start + i
            n_found += np.int64(k >= 0 and tile[i] <= highs[k])
    return n_found


@kernel
def _code(values, lows, codes):
    n, buffer = len(lows), np.empty(_TILE, np.int32)
    for start in range(0, len(values), _TILE):
        tile = values[start : start + _TILE]
        places = buffer[: len(tile)]
        _count_below(tile, lows, True, places)
        for i in range(len(tile)):
            codes[start + i] = places[i] - 1 if tile[i] == tile[i] else n


# -- cells --


def merged_cells(pieces: Sequence[Cells]) -> Cells:
    """The cells of several parts of a table together."""
    return Cells(
        np.minimum.reduce([piece.lows for piece in pieces]),
        np.maximum.reduce([piece.highs for piece in pieces]),
        np.add.reduce([piece.rows for piece in pieces]),
        np.add.reduce([piece.weight for piece in pieces]),
        sum(piece.n_missing for piece in pieces),
    )


def merged_values(pieces: Sequence[Cells]) -> Cells:
    """The collected values of several parts of a table together, each once."""
    left = list(pieces)
    while len(left) > 1:
        left = [_merged_two(*left[k : k + 2]) for k in range(0, len(left), 2)]
    return left[0]


def _merged_two(one: Cells, other: Cells | None = None) -> Cells:
    if other is None:
        return one
    size = len(one.lows) + len(other.lows)
    values, rows, weight = np.empty(size), np.empty(size), np.empty(size)
    n = _merge(
        one.lows, one.rows, one.weight, other.lows, other.rows, other.weight, values, rows, weight
    )
    return Cells(values[:n], values[:n], rows[:n], weight[:n], 0)


@kernel
def _merge(values, rows, weight, others, rows_of_others, weight_of_others, to, to_rows, to_weight):
    """Merge two ascending lists of values with their rows and weights; returns the length."""
    i, j, n = 0, 0, 0
    while i < len(values) or j < len(others):
        is_first = j == len(others) or (i < len(values) and values[i] <= others[j])
        is_second = i == len(values) or (j < len(others) and others[j] <= values[i])
        to_rows[n] = to_weight[n] = 0.0
        if is_first:
            to[n] = values[i]
            to_rows[n] += rows[i]
            to_weight[n] += weight[i]
            i += 1
        if is_second:
            to[n] = others[j]
            to_rows[n] += rows_of_others[j]
            to_weight[n] += weight_of_others[j]
            j += 1
        n += 1
    return n


def _known(values: np.ndarray, weight: np.ndarray | None) -> Cells:
    """The distinct values and their weights, which by default are their counts."""
    distinct, places = np.unique(values, return_inverse=True)
    n = len(distinct)
    counts = np.bincount(places, minlength=n).astype(np.float64)
    weights = counts if weight is None else np.bincount(places, weights=weight, minlength=n)
    return Cells(distinct, distinct, counts, weights, 0)


def cells_to_open(cells: Cells, max_bins: int) -> np.ndarray:
    """Which cells need to be opened, bool, because their single values matter for the bins.

    See `columns._begins_of_bins`: a value with a weight of at least `limit` has its own bin, and
    other values share the remaining bins evenly. Heavy values lower the limit and never raise it.
    So an unknown value that is heavy in the end is in a cell whose weight is at least the limit
    that is computed without it.
    """
    are_open = cells.are_open
    if len(cells.lows) <= max_bins:
        return are_open
    is_heavy, limit = _heavy_and_limit(cells.weight, ~are_open, max_bins)
    light = np.where(is_heavy, 0.0, cells.weight)
    until = np.cumsum(light)
    is_cut = np.floor((until - light) / limit) != np.floor(until / limit)
    return are_open & (is_cut | (cells.weight >= limit))


def _heavy_and_limit(
    counts: np.ndarray, may_be_heavy: np.ndarray, max_bins: int
) -> tuple[np.ndarray, float]:
    is_heavy = np.zeros(len(counts), np.bool_)
    rest, bins_left = float(counts.sum()), max_bins
    while bins_left > 1:
        heavy = np.flatnonzero(may_be_heavy & ~is_heavy & (counts >= rest / bins_left))
        heavy = heavy[: bins_left - 1]
        if not len(heavy):
            break
        is_heavy[heavy] = True
        rest -= float(counts[heavy].sum())
        bins_left -= len(heavy)
    return is_heavy, max(rest / bins_left, 1e-300)


def without_empty(cells: Cells) -> Cells:
    filled = cells.rows > 0
    return Cells(
        cells.lows[filled],
        cells.highs[filled],
        cells.rows[filled],
        cells.weight[filled],
        cells.n_missing,
    )


def with_values(cells: Cells, opened: np.ndarray, values: Cells) -> Cells:
    """The cells, where opened ones are replaced by their values."""
    names = ("lows", "highs", "rows", "weight")
    together = {
        name: np.concatenate([getattr(cells, name)[~opened], getattr(values, name)])
        for name in names
    }
    order = np.argsort(together["lows"], kind="stable")
    lows, highs, rows, weight = (together[name][order] for name in names)
    return Cells(lows, highs, rows, weight, cells.n_missing)


def refined_cells(values: np.ndarray, max_bins: int, weight: np.ndarray | None = None) -> Cells:
    """Cells of a column such that no bin begins inside of a cell."""
    step, is_weighted = max(1, len(values) // N_SPLITTERS), weight is not None

    def counted(by: CellCounter | ValueFinder) -> Cells:
        for start in range(0, len(values), _ROWS_AT_ONCE):
            batch = slice(start, start + _ROWS_AT_ONCE)
            by.add(values[batch], None if weight is None else weight[batch])
        return by.cells()

    splitters = splitters_of(values[::step])
    cells = without_empty(counted(CellCounter(splitters, is_weighted=is_weighted)))
    while (opened := cells_to_open(cells, max_bins)).any():
        intervals = cells.lows[opened], cells.highs[opened]
        single = counted(ValueFinder(*intervals, is_weighted=is_weighted))
        cells = with_values(cells, opened, single)
    return cells
