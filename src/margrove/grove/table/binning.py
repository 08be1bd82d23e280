"""The columns of a table as rank codes; all trees are grown on these.

A column becomes the ranks of its distinct values, 0, 1, 2, ... in the smallest unsigned type that
holds them, missing values last. Ranks lose nothing: a split between two ranks is an exact split
between two values, whatever their scale. With `max_bins`, neighbouring values share a code.

A `BinnedDataset` is made once and used for every tree of a forest and every round of boosting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import kernel, region, require_memory, run_tiles
from margrove.grove.table.column_codes import CodedColumns, code_dense
from margrove.grove.table.sparse_columns import code_sparse

__all__ = [
    "BinnedDataset",
    "Codes",
    "Columns",
    "are_few_integers",
    "bin_columns",
    "bins_of_counts",
    "code_column",
    "code_of",
    "copy_columns",
    "empty_codes",
    "in_order",
    "midpoint",
    "sorted_by_digits",
]

_COLUMNS_AT_ONCE = 8  # a cache line of float64
_CELLS_AT_ONCE = 1 << 22  # of a tile: interrupts are noticed between two tiles
_FEW_CELLS = 1 << 12  # of a table that is coded column by column
_LARGEST_TABLE = 1 << 22  # integers in a longer range are sorted, not looked up


class Codes(NamedTuple):
    """The codes of all columns, grouped by the width of their type, for compiled code.

    narrow uint8, medium uint16, wide uint32, each (columns of that width, rows).
    width int8 (d,)  0, 1 or 2: where column j is; place int64 (d,): its row there.
    """

    narrow: np.ndarray
    medium: np.ndarray
    wide: np.ndarray
    width: np.ndarray
    place: np.ndarray


class Columns(NamedTuple):
    """The features of a training set, as the loops that grow trees take them.

    narrow, medium, wide, width, place   see `Codes`
    n_codes       int64 (d,)
    has_missing   bool (d,)
    categorical   bool (d,)
    values        float64: the values of feature j are values[first[j]:first[j + 1]]; empty unless
                  thresholds are drawn at random
    first         int64 (d + 1,)
    row_major        uint8 (rows, columns): `narrow` transposed; only filled for forests of many
                  columns, whose small nodes read many features of few rows
    """

    narrow: np.ndarray
    medium: np.ndarray
    wide: np.ndarray
    width: np.ndarray
    place: np.ndarray
    n_codes: np.ndarray
    has_missing: np.ndarray
    categorical: np.ndarray
    values: np.ndarray
    first: np.ndarray
    row_major: np.ndarray


@kernel(inner=True)
def code_of(columns, feature, row):
    width, place = columns.width[feature], columns.place[feature]
    if width == 0:
        return np.int64(columns.narrow[place, row])
    if width == 1:
        return np.int64(columns.medium[place, row])
    return np.int64(columns.wide[place, row])


@dataclass(frozen=True)
class BinnedDataset:
    """A table as codes, and what the codes stand for.

    codes          see `Codes`
    n_codes        int64 (d,)  the number of codes of values; code n_codes[j] means missing
    lows, highs    the smallest and largest value of each code, a pair of arrays for each column;
                   for categorical columns the number of the category
    has_missing    bool (d,)
    categorical    bool (d,)
    """

    codes: Codes
    n_rows: int
    n_codes: np.ndarray
    lows: list[np.ndarray]
    highs: list[np.ndarray]
    has_missing: np.ndarray
    categorical: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.n_codes)

    def column(self, j: int) -> np.ndarray:
        """The codes of one column."""
        arrays = (self.codes.narrow, self.codes.medium, self.codes.wide)
        column: np.ndarray = arrays[self.codes.width[j]][self.codes.place[j]]
        return column

    @property
    def extremes(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each column, the lowest and highest values of its codes."""
        return zip(self.lows, self.highs, strict=True)

    @property
    def has_infinity(self) -> bool:
        """Whether a column has an infinite value, which is its first or last one."""
        return any(
            len(low) and (low[0] == -np.inf or high[-1] == np.inf) for low, high in self.extremes
        )

    def is_merged(self, feature: int) -> bool:
        """Whether codes of the column stand for several values."""
        return self.lows[feature] is not self.highs[feature]

    def threshold(self, feature: int, code: int, next_code: int) -> float:
        """The value halfway between two codes; infinity if the next code is "missing"."""
        if self.is_merged(feature):
            next_code = code + 1
        if next_code >= self.n_codes[feature]:
            return float("inf")
        return midpoint(float(self.highs[feature][code]), float(self.lows[feature][next_code]))


def midpoint(a: float, b: float) -> float:
    """A number t with a <= t < b, halfway where floating point has one."""
    middle = 0.5 * a + 0.5 * b
    if not a <= middle < b:
        middle = a + 0.5 * (b - a) if np.isfinite(b - a) else a
    return middle if a <= middle < b else a


def bin_columns(
    X: Any,
    *,
    categorical: np.ndarray | None = None,
    max_bins: int | None = None,
    weight: np.ndarray | None = None,
    n_threads: int = 1,
) -> BinnedDataset:
    """Code the columns of a checked table, dense or CSR, in which NaN is missing.

    With max_bins, bins have about equal sums of `weight`, float64 (n,).
    """
    n, d = X.shape
    require_memory(2.0 * n * d, "The codes of all columns", "Drop columns, or use fewer rows.")
    is_category = np.zeros(d, dtype=bool) if categorical is None else categorical
    if sp.issparse(X):
        coded = code_sparse(X, code_column, n_threads)
    elif n * d < _FEW_CELLS or not X.flags.c_contiguous:
        coded = _code_by_columns(X, n_threads)
    else:
        coded = code_dense(X, _is_short_range, _sorted_codes, n_threads)
    columns, values = coded.codes, coded.values
    lows, highs = list(values), list(values)

    codes = Codes(coded.arrays[0], coded.arrays[1], coded.arrays[2], coded.width, coded.place)
    if max_bins is not None:
        most: int = max_bins

        def group(j: int) -> None:
            if not is_category[j]:
                columns[j], lows[j], highs[j] = _grouped(columns[j], values[j], most, weight)

        run_tiles(group, d, n_threads)
        codes = _stacked(columns, n)
    n_codes = np.array([len(low) for low in lows], dtype=np.int64)
    return BinnedDataset(codes, n, n_codes, lows, highs, coded.missing, is_category)


def _code_by_columns(X: np.ndarray, n_threads: int) -> CodedColumns:
    """Code a small table, or one that is not in C order."""
    n, d = X.shape
    columns: list[np.ndarray] = [np.empty(0, np.uint8)] * d
    values: list[np.ndarray] = [np.empty(0)] * d
    missing = np.zeros(d, dtype=bool)
    step = max(1, min(_COLUMNS_AT_ONCE, _CELLS_AT_ONCE // max(n, 1)))

    def code(tile: int) -> None:
        first = tile * step
        last = min(first + step, d)
        block = np.zeros((last - first, n))
        copy_columns(X, first, block)
        for j in range(first, last):
            columns[j], values[j], missing[j] = code_column(block[j - first])

    run_tiles(code, -(-d // step), n_threads)
    narrow, medium, wide, width, place = _stacked(columns, n)
    return CodedColumns(columns, values, missing, [narrow, medium, wide], width, place)


def _sorted_codes(
    column: np.ndarray, numbers: tuple[float, int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """uint32 codes and distinct values of a column. numbers: the lowest whole number and the length
    of their range, None for other columns."""
    codes = np.empty(len(column), np.uint32)
    if numbers is not None:
        return codes, _code_integers(column, *numbers, codes)
    return codes, _code_by_sorting(column, codes)


def code_column(column: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """The codes of a column in the smallest type, its distinct values, and if any is missing."""
    codes = np.empty(len(column), np.uint32)
    low, high, n_missing, whole = _survey(column)
    if _is_short_range(len(column), low, high, n_missing, whole):
        values = _code_integers(column, low, int(high - low) + 1, codes)
    else:
        values = _code_by_sorting(column, codes)
    kind = np.uint8 if len(values) < 256 else np.uint16 if len(values) < 65536 else np.uint32
    return codes.astype(kind), values, n_missing > 0


def _is_short_range(n: int, low: float, high: float, n_missing: int, whole: bool) -> bool:
    """Whether values are whole numbers in a range that is not much longer than the column."""
    length = float(high) - float(low)  # of Python's floats: inf - inf is NaN, without a warning
    return whole and n_missing < n and length < min(4.0 * n + 1024.0, _LARGEST_TABLE)


def are_few_integers(column: np.ndarray) -> bool:
    """Whether a column is coded without being sorted."""
    return _is_short_range(len(column), *_survey(column))


def _grouped(
    codes: np.ndarray, values: np.ndarray, max_bins: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most `max_bins` codes of about equal weight, which neighbouring values share.

    Returned are the codes, and the lowest and highest value of each code.
    """
    if len(values) <= max_bins:
        return codes, values, values
    counts = np.bincount(codes, weights=weight, minlength=len(values))[: len(values)]
    starts, ends = bins_of_counts(counts, max_bins)
    rank = np.repeat(np.arange(len(starts)), ends - starts + 1)
    table = np.append(rank, len(starts)).astype(np.uint8 if len(starts) < 256 else np.uint16)
    return table[codes], values[starts], values[ends]


def bins_of_counts(counts: np.ndarray, max_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `max_bins` bins of values with these weights, in ascending order of the values.

    Returned are the places of the first and the last value of each bin.
    """
    before = np.cumsum(counts) - counts
    bins = np.minimum((before * max_bins) // counts.sum(), max_bins - 1)
    starts = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
    return starts, np.append(starts[1:], len(counts)) - 1


def _stacked(columns: list[np.ndarray], n: int) -> Codes:
    """Columns of one width in one array; `columns` become views of these."""
    width = np.array([(1, 2, 4).index(column.dtype.itemsize) for column in columns], dtype=np.int8)
    codes = empty_codes(width, n)
    for j, column in enumerate(columns):
        codes[width[j]][codes.place[j]] = column
        columns[j] = codes[width[j]][codes.place[j]]
    return codes


def empty_codes(width: np.ndarray, n: int) -> Codes:
    """Arrays without values for the codes of n rows, in columns of these widths; see `Codes`."""
    place = np.zeros(len(width), dtype=np.int64)
    arrays = []
    for kind, dtype in enumerate((np.uint8, np.uint16, np.uint32)):
        of_width = np.flatnonzero(width == kind)
        place[of_width] = np.arange(len(of_width))
        arrays.append(np.empty((len(of_width), n), dtype=dtype))
    return Codes(arrays[0], arrays[1], arrays[2], width, place)


def in_order(codes: Codes, rows: np.ndarray, n_threads: int = 1) -> Codes:
    """The codes of some rows, in this order."""
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    arrays = []
    for array in codes[:3]:
        taken = np.empty((len(array), len(rows)), array.dtype)
        _take_rows(len(array), n_threads, array, rows, taken)
        arrays.append(taken)
    return Codes(arrays[0], arrays[1], arrays[2], codes.width, codes.place)


@region(bare=True)
def _take_rows(tile, codes, rows, taken):
    source, target = codes[tile], taken[tile]
    for i in range(np.uint64(len(rows))):
        target[i] = source[np.uint64(rows[i])]


@kernel
def copy_columns(X, first, block):
    """block[k, i] = X[i, first + k]"""
    for i in range(X.shape[0]):
        for k in range(block.shape[0]):
            block[k, i] = X[i, first + k]


@kernel
def _survey(column):
    """The smallest and largest value, the number of missing ones, and whether all are whole."""
    low, high, missing = np.inf, -np.inf, 0
    whole = True
    for i in range(len(column)):
        value = column[i]
        if value != value:  # noqa: PLR0124
            missing += 1
        else:
            low = min(low, value)
            high = max(high, value)
            whole &= value == np.floor(value)
    return low, high, missing, whole


@kernel
def _code_integers(column, low, span, codes):
    """Code whole numbers of a short range with a table; returns the distinct values."""
    table = np.zeros(span, np.uint32)
    for i in range(len(column)):
        if column[i] == column[i]:
            table[np.uint64(column[i] - low)] = 1
    n_values = np.uint32(0)
    for k in range(span):
        n_values += table[k]
    values = np.empty(n_values)
    rank = np.uint32(0)
    for k in range(span):
        if table[k]:
            values[rank] = low + k
            table[k] = rank
            rank += np.uint32(1)
    for i in range(len(column)):
        codes[i] = table[np.uint64(column[i] - low)] if column[i] == column[i] else n_values
    return values


@kernel
def _code_by_sorting(column, codes):
    """Code any numbers by sorting them as integers of the same order; returns distinct values."""
    n = len(column)
    keys = np.empty(n, np.uint64)
    bits = column.view(np.uint64)
    top = np.uint64(1) << np.uint64(63)
    missing = ~np.uint64(0)
    for i in range(n):
        key = bits[i] if column[i] != 0.0 else np.uint64(0)  # -0.0 is 0.0
        key = ~key if key & top else key | top
        keys[i] = key if column[i] == column[i] else missing
    order = sorted_by_digits(keys)
    values = np.empty(n)
    rank = -1
    for p in range(n):
        i = order[p]
        if keys[i] == missing:
            codes[i] = rank + 1
        else:
            if p == 0 or keys[i] != keys[order[p - 1]]:
                rank += 1
                values[rank] = column[i] + 0.0
            codes[i] = rank
    return values[: rank + 1].copy()


@kernel
def sorted_by_digits(keys):
    """uint32 (n,): the stable order that sorts uint64 keys, by radix sort, byte by byte."""
    n = len(keys)
    counts = np.zeros((8, 256), np.int64)
    byte = np.uint64(255)
    for i in range(n):
        key = keys[i]
        for digit in range(8):
            counts[digit, (key >> np.uint64(8 * digit)) & byte] += 1
    order = np.arange(n).astype(np.uint32)
    other = np.empty(n, np.uint32)
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if counts[digit, (keys[0] >> shift) & byte] == n:
            continue
        total = 0
        for k in range(256):
            count = counts[digit, k]
            counts[digit, k] = total
            total += count
        for p in range(n):
            i = order[p]
            k = (keys[i] >> shift) & byte
            other[counts[digit, k]] = i
            counts[digit, k] += 1
        order, other = other, order
    return order
