"""The codes of large dense tables, in a few passes over the rows on several threads.

Columns of whole numbers in a short range need three passes over the rows, all columns at once: for
the range of each column, for the number of rows of each value, and for the codes. Other columns are
coded one by one, see `columns`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import atomic_add, region, run_tiles
from margrove.ensemble.gradient.hist.binning.columns import (
    RARE,
    CodedColumn,
    bin_categories,
    bin_numbers,
    code_numbers,
)

__all__ = ["code_table", "is_worth_passes"]

_LEAST_CELLS = 1 << 20  # of a table that is coded in passes
_CELLS_AT_ONCE = 1 << 24  # of a thread, between two checks for an interrupt
_ROWS_OF_A_TILE = 4096
_ROWS_OF_A_BLOCK = 128
_LONGEST_RANGE, _MOST_COUNTS = 1 << 16, 1 << 18
_COLUMNS_AT_ONCE = 8  # a cache line of float64
_LOW, _HIGH, _MISSING, _BROKEN = range(4)


@dataclass(frozen=True)
class _Counted:
    """Columns of whole numbers, with the counts of their values.

    columns    int64 (k,)
    lows       float64 (k,)  the smallest value of each
    first      int64 (k + 1,)  where the counts of a column begin
    rows       int64  the number of rows of each value
    weight     float64  their weight
    """

    columns: np.ndarray
    lows: np.ndarray
    first: np.ndarray
    rows: np.ndarray
    weight: np.ndarray


def is_worth_passes(X: Any) -> bool:
    """Whether a dense table is large enough, and its cells are where compiled code expects them."""
    return X.size >= _LEAST_CELLS and X.flags.c_contiguous and X.shape[0] >= _ROWS_OF_A_TILE


def code_table(
    X: np.ndarray,
    n_categories: np.ndarray,
    max_bins: int,
    weight: np.ndarray | None,
    n_threads: int,
) -> tuple[list[CodedColumn], np.ndarray]:
    """All columns with the codes of all rows, uint8 (d, n), even if a code could be omitted."""
    n, d = X.shape
    X = read_only(X)
    codes = np.empty((d, n), np.uint8)
    columns: list[Any] = [None] * d
    found = _survey(X, n_threads)
    counted = _count(X, found, weight, n_threads)
    tables, missing = [np.empty(0, np.uint8)], np.zeros(len(counted.columns), np.uint8)
    for k, j in enumerate(counted.columns):
        table, columns[j] = _bins_of(counted, k, found[_MISSING, j], codes[j],
                                     int(n_categories[j]), max_bins)  # fmt: skip
        tables.append(table[:-1])
        missing[k] = table[-1]
    given = (counted.columns, counted.lows, counted.first, np.concatenate(tables), missing, codes)
    _in_batches(X, n_threads, lambda *batch: _write_codes(*batch, *given))
    others = [j for j in range(d) if columns[j] is None]
    n_at_once = max(_COLUMNS_AT_ONCE, n_threads)
    values = np.empty((min(n_at_once, len(others)), n))
    for start in range(0, len(others), n_at_once):
        numbers = others[start : start + n_at_once]
        _copy_all(X, numbers, values, n_threads)

        def code(place: int, numbers: list[int] = numbers) -> None:
            j = numbers[place]
            own, lows, highs, of_categories = code_numbers(
                values[place], int(n_categories[j]), max_bins, weight,
                may_be_whole=not found[_BROKEN, j],
            )  # fmt: skip
            codes[j] = own
            omitted = _code_to_omit(np.bincount(own).astype(np.float64))
            columns[j] = CodedColumn(codes[j], None, omitted, lows, highs, of_categories)

        run_tiles(code, len(numbers), n_threads)
    return columns, codes


def _in_batches(X: np.ndarray, n_threads: int, run: Callable[..., None]) -> None:
    """Call run(number of tiles, number of threads, first row, X) for all rows."""
    n, d = X.shape
    n_tiles = max(1, _CELLS_AT_ONCE * n_threads // (_ROWS_OF_A_TILE * d))
    for start in range(0, n, n_tiles * _ROWS_OF_A_TILE):
        left = -(-(n - start) // _ROWS_OF_A_TILE)
        run(min(n_tiles, left), n_threads, start, X)


def _survey(X: np.ndarray, n_threads: int) -> np.ndarray:
    """float64 (4, d): smallest and largest value, number of missing ones, and whether some are not
    whole."""
    n, d = X.shape
    tiles = np.empty((-(-n // _ROWS_OF_A_TILE), 4, d))
    _in_batches(X, n_threads, lambda *batch: _survey_tile(*batch, tiles))
    return np.stack([tiles[:, _LOW].min(axis=0), tiles[:, _HIGH].max(axis=0),
                     tiles[:, _MISSING].sum(axis=0), tiles[:, _BROKEN].max(axis=0)])  # fmt: skip


@region(bare=True)
def _survey_tile(tile, first, X, found):
    start = first + tile * _ROWS_OF_A_TILE
    end, d = min(start + _ROWS_OF_A_TILE, X.shape[0]), X.shape[1]
    result = found[start // _ROWS_OF_A_TILE]
    low, high, missing, broken = result[_LOW], result[_HIGH], result[_MISSING], result[_BROKEN]
    for j in range(d):
        low[j], high[j], missing[j], broken[j] = np.inf, -np.inf, 0.0, 0.0
    for i in range(start, end):
        for j in range(d):
            value = np.float64(X[i, j])
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]
            is_missing = value != value  # noqa: PLR0124
            missing[j] += 1.0 if is_missing else 0.0
            broken[j] = broken[j] if (value == np.floor(value)) | is_missing else 1.0


def _count(X: np.ndarray, found: np.ndarray, weight: np.ndarray | None, n_threads: int) -> _Counted:
    """Count the values of the columns for which that is fast."""
    low, high = found[_LOW], found[_HIGH]
    is_short = (found[_BROKEN] == 0.0) & (found[_MISSING] < len(X))
    is_short[is_short] = high[is_short] - low[is_short] < min(4.0 * len(X), _LONGEST_RANGE)
    columns = np.flatnonzero(is_short)
    spans = (high[columns] - low[columns]).astype(np.int64) + 1
    columns = columns[np.cumsum(spans) <= _MOST_COUNTS]
    first = np.concatenate([[0], np.cumsum(spans[: len(columns)])]).astype(np.int64)
    lows = low[columns]
    n_workers = max(1, min(n_threads, len(X) // _ROWS_OF_A_TILE))
    rows = np.zeros((n_workers, first[-1]), np.int32)
    weights = np.zeros((n_workers, 0 if weight is None else first[-1]))
    of_rows = read_only(np.empty(0) if weight is None else weight)
    most = max(1, _CELLS_AT_ONCE * n_threads // max(X.shape[1], 1))
    for start in range(0, len(X), most):
        queue = np.array([start])
        _count_values(n_workers, n_workers, queue, min(start + most, len(X)), X, columns, lows,
                      first, of_rows, rows, weights)  # fmt: skip
    counts = rows.sum(axis=0, dtype=np.int64)
    return _Counted(
        columns, lows, first, counts, counts * 1.0 if weight is None else weights.sum(axis=0)
    )


@region(bare=True)
def _count_values(worker, queue, end, X, columns, lows, first, weight, rows, weights):
    """A worker takes rows until there are no more, and counts their values."""
    counts, has_weight = rows[worker], len(weight) > 0
    start = atomic_add(queue, 0, _ROWS_OF_A_TILE)
    while start < end:
        for i in range(start, min(start + _ROWS_OF_A_TILE, end)):
            for k in range(len(columns)):
                value = X[i, np.uint64(columns[k])]
                if value == value:  # noqa: PLR0124
                    cell = np.uint64(first[k] + np.int64(value - lows[k]))
                    counts[cell] += 1
                    if has_weight:
                        weights[worker, cell] += weight[i]
        start = atomic_add(queue, 0, _ROWS_OF_A_TILE)


def _bins_of(
    counted: _Counted,
    k: int,
    n_missing: float,
    codes: np.ndarray,
    n_categories: int,
    max_bins: int,
) -> tuple[np.ndarray, CodedColumn]:
    """(the code of each value of the range, and last of missing ones; the column)."""
    cells = slice(counted.first[k], counted.first[k + 1])
    rows = counted.rows[cells]
    present = np.flatnonzero(rows)
    values = counted.lows[k] + present
    places = np.arange(len(values) + 1)  # the last one is "missing"
    weight = np.append(counted.weight[cells][present], 0.0)
    if n_categories:
        code_of, lows, of_categories = bin_categories(
            places, values, n_categories, max_bins, weight
        )
        highs = lows
    else:
        code_of, lows, highs = bin_numbers(places, values, max_bins, weight)
        of_categories = None
    table = np.zeros(len(rows) + 1, np.uint8)
    table[present], table[-1] = code_of[:-1], code_of[-1]
    sizes = np.bincount(code_of, weights=np.append(rows[present], n_missing))
    return table, CodedColumn(codes, None, _code_to_omit(sizes), lows, highs, of_categories)


def _code_to_omit(sizes: np.ndarray) -> int:
    """The code that most rows have, if others are rare; else -1."""
    most, n = int(np.argmax(sizes)), sizes.sum()
    return most if n - sizes[most] < RARE * n else -1


@region
def _write_codes(tile, first_row, X, columns, lows, first, table, missing, codes):
    """Codes of a block of rows are written row by row to a buffer, which stays in the cache."""
    begin = first_row + tile * _ROWS_OF_A_TILE
    stop = min(begin + _ROWS_OF_A_TILE, X.shape[0])
    block = np.empty((len(columns), _ROWS_OF_A_BLOCK), np.uint8)
    for start in range(begin, stop, _ROWS_OF_A_BLOCK):
        size = min(_ROWS_OF_A_BLOCK, stop - start)
        for i in range(size):
            for k in range(len(columns)):
                value = X[start + i, np.uint64(columns[k])]
                code = missing[k]
                if value == value:  # noqa: PLR0124
                    code = table[np.uint64(first[k] + np.int64(value - lows[k]))]
                block[k, np.uint64(i)] = code
        for k in range(len(columns)):
            written = codes[columns[k], start : start + size]
            for i in range(size):
                written[i] = block[k, i]


def _copy_all(X: np.ndarray, numbers: list[int], values: np.ndarray, n_threads: int) -> None:
    chosen = np.array(numbers, np.int64)
    _in_batches(X, n_threads, lambda *batch: _copy_columns(*batch, chosen, values))


@region(bare=True)
def _copy_columns(tile, first_row, X, columns, values):
    start = first_row + tile * _ROWS_OF_A_TILE
    for i in range(start, min(start + _ROWS_OF_A_TILE, X.shape[0])):
        for k in range(len(columns)):
            values[np.uint64(k), np.uint64(i)] = X[i, np.uint64(columns[k])]
