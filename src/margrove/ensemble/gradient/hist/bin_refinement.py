"""Bins of columns of many rows, by refinement: only a sample and a few values are sorted.

    splitters   a sample of the rows divides a column into cells: the values of the sample, each by
                itself, and what lies between two of them
    cells       one pass counts what is in each cell
    opening     where a bin begins inside of a cell, or a value in it may be heavy enough for a bin
                of its own, another pass looks up which values it holds; all other cells are as
                good as one value each

Bins are exactly those of all distinct values (`columns.bin_numbers`), whatever the sample:
a bad one costs more values to be looked up, not precision. What parts of a table have counted adds
up to what the table has, so that the same functions serve where rows are in many places.
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
_TILE = 512  # values that are searched for together
_NO_WEIGHT = np.empty(0)
_LOW, _HIGH, _ROWS, _WEIGHT, _N_COUNTS = range(5)  # of a cell, side by side


@dataclass(frozen=True)
class Cells:
    """Stretches of the values of one column, ascending; some may be empty.

    lows, highs   float64, the smallest and the largest value
    rows, weight  float64, whole numbers
    n_missing     rows without a value
    """

    lows: np.ndarray
    highs: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    n_missing: int

    @property
    def are_open(self) -> np.ndarray:
        """Those which hold several values."""
        return self.lows < self.highs


def splitters_of(sample: np.ndarray) -> np.ndarray:
    return np.unique(sample[~np.isnan(sample)] + 0.0)


# -- rows --


class CellCounter:
    """Counts what a column has in the cells 2 k, before splitter k, and 2 k + 1, splitter k itself,
    some rows after the others."""

    def __init__(self, splitters: np.ndarray, *, is_weighted: bool = False) -> None:
        self._splitters, self._is_weighted = splitters, is_weighted
        self._counts = np.zeros((2 * len(splitters) + 1, _N_COUNTS))
        self._counts[:, _LOW], self._counts[:, _HIGH] = np.inf, -np.inf
        self._n_missing = 0

    def add(self, values: np.ndarray, weight: np.ndarray | None = None) -> None:
        own = _NO_WEIGHT if weight is None else weight
        self._n_missing += _count_cells(values, self._splitters, own, self._counts)

    def cells(self) -> Cells:
        lows, highs, rows, weight = self._counts.T.copy()
        weight = weight if self._is_weighted else rows
        return Cells(lows, highs, rows, weight, int(self._n_missing))


class ValueFinder:
    """Looks up the values of a column that lie in some stretches, some rows after the others."""

    def __init__(self, lows: np.ndarray, highs: np.ndarray, *, is_weighted: bool = False) -> None:
        self._lows, self._highs = lows, highs
        self._values = [np.empty(0)]
        self._weights = [np.empty(0)] if is_weighted else None

    def add(self, values: np.ndarray, weight: np.ndarray | None = None) -> None:
        places = np.empty(len(values), np.int64)
        places = places[: _find_within(values, self._lows, self._highs, places)]
        self._values.append(values[places] + 0.0)
        if self._weights is not None and weight is not None:
            self._weights.append(weight[places])

    def cells(self) -> Cells:
        """Of one value each."""
        weight = None if self._weights is None else np.concatenate(self._weights)
        return _known(np.concatenate(self._values), weight)


def code_values(values: np.ndarray, lows: np.ndarray) -> np.ndarray:
    """Codes uint8 (n,): the last of the bins that begin at or below a value; of those that are
    missing the number of bins."""
    codes = np.empty(len(values), np.uint8)
    _code(values, lows, codes)
    return codes


@kernel
def _count_below(values, borders, or_equal, counts):
    """How many of the borders, which ascend, are less than each value, or not greater.

    All values take a step of their search before any takes the next: nothing waits for a branch.
    """
    for i in range(len(values)):
        counts[i] = 0
    left = len(borders)
    while left > 0:
        half = max(left >> 1, 1)
        part = borders[half - 1 :]
        if or_equal:
            for i in range(len(values)):
                border = part[np.uint32(counts[i])]
                counts[i] = counts[i] + half if border <= values[i] else counts[i]
        else:
            for i in range(len(values)):
                border = part[np.uint32(counts[i])]
                counts[i] = counts[i] + half if border < values[i] else counts[i]
        left = left - half if left > 1 else 0


@kernel
def _count_cells(values, splitters, weight, counts):
    n_missing, has_weight = 0, len(weight) > 0
    room = np.empty(_TILE, np.int32)
    for start in range(0, len(values), _TILE):
        own = values[start : start + _TILE]
        places = room[: len(own)]
        _count_below(own, splitters, False, places)
        for i in range(len(own)):
            value = own[i] + 0.0  # -0.0 is 0.0
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
    """Where the values are that lie in one of the stretches; how many there are."""
    n_found, room = 0, np.empty(_TILE, np.int32)
    for start in range(0, len(values), _TILE):
        own = values[start : start + _TILE]
        places = room[: len(own)]
        _count_below(own, lows, True, places)
        for i in range(len(own)):
            k = places[i] - 1
            found[n_found] = start + i
            n_found += np.int64(k >= 0 and own[i] <= highs[k])
    return n_found


@kernel
def _code(values, lows, codes):
    n, room = len(lows), np.empty(_TILE, np.int32)
    for start in range(0, len(values), _TILE):
        own = values[start : start + _TILE]
        places = room[: len(own)]
        _count_below(own, lows, True, places)
        for i in range(len(own)):
            codes[start + i] = places[i] - 1 if own[i] == own[i] else n


# -- cells --


def merged_cells(pieces: Sequence[Cells]) -> Cells:
    """What several parts of a table have in the same cells."""
    return Cells(
        np.minimum.reduce([own.lows for own in pieces]),
        np.maximum.reduce([own.highs for own in pieces]),
        np.add.reduce([own.rows for own in pieces]),
        np.add.reduce([own.weight for own in pieces]),
        sum(own.n_missing for own in pieces),
    )


def merged_values(pieces: Sequence[Cells]) -> Cells:
    """The same of values that were looked up: each once."""
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
    """Values that ascend, each with its rows and weight; how many there are together."""
    i, j, n = 0, 0, 0
    while i < len(values) or j < len(others):
        is_mine = j == len(others) or (i < len(values) and values[i] <= others[j])
        is_theirs = i == len(values) or (j < len(others) and others[j] <= values[i])
        to_rows[n] = to_weight[n] = 0.0
        if is_mine:
            to[n] = values[i]
            to_rows[n] += rows[i]
            to_weight[n] += weight[i]
            i += 1
        if is_theirs:
            to[n] = others[j]
            to_rows[n] += rows_of_others[j]
            to_weight[n] += weight_of_others[j]
            j += 1
        n += 1
    return n


def _known(values: np.ndarray, weight: np.ndarray | None) -> Cells:
    """Values, each once, and their weight, which by default is how often they are there."""
    distinct, places = np.unique(values, return_inverse=True)
    n = len(distinct)
    counts = np.bincount(places, minlength=n).astype(np.float64)
    weights = counts if weight is None else np.bincount(places, weights=weight, minlength=n)
    return Cells(distinct, distinct, counts, weights, 0)


def cells_to_open(cells: Cells, max_bins: int) -> np.ndarray:
    """bool: the cells whose values have to be known.

    See `columns._begins_of_bins`: values of at least `limit` have a bin each, and others
    share the rest evenly. What is heavy lowers the limit, never raises it; so a value that is not
    known yet and heavy in the end is in a cell of at least the limit that is found without it.
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
    """The same, with values in the place of cells that were opened."""
    names = ("lows", "highs", "rows", "weight")
    together = {
        name: np.concatenate([getattr(cells, name)[~opened], getattr(values, name)])
        for name in names
    }
    order = np.argsort(together["lows"], kind="stable")
    lows, highs, rows, weight = (together[name][order] for name in names)
    return Cells(lows, highs, rows, weight, cells.n_missing)


def refined_cells(values: np.ndarray, max_bins: int, weight: np.ndarray | None = None) -> Cells:
    """Cells of a column that no bin begins inside of."""
    step, is_weighted = max(1, len(values) // N_SPLITTERS), weight is not None

    def counted(by: CellCounter | ValueFinder) -> Cells:
        for start in range(0, len(values), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            by.add(values[part], None if weight is None else weight[part])
        return by.cells()

    splitters = splitters_of(values[::step])
    cells = without_empty(counted(CellCounter(splitters, is_weighted=is_weighted)))
    while (opened := cells_to_open(cells, max_bins)).any():
        stretches = cells.lows[opened], cells.highs[opened]
        found = counted(ValueFinder(*stretches, is_weighted=is_weighted))
        cells = with_values(cells, opened, found)
    return cells
