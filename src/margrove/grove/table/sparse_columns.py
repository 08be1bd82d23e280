"""The columns of a sparse table as codes, over tiles of columns.

Columns of few distinct values, which most are, are coded in compiled loops that read stored values
only. The others are written out and coded one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, region, run_tiles
from margrove.grove.table.column_codes import CodedColumns, copy_codes, new_codes

__all__ = ["code_sparse"]

_COLUMNS_OF_TILE = 64
_FEW_VALUES = 255  # of a column whose codes fit in a byte, with one for missing values


class _Stored(NamedTuple):
    """The stored values of a CSC table: those of column j are data[indptr[j]:indptr[j + 1]], in the
    rows indices[...]."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


def code_sparse(
    X: Any,
    code_column: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, bool]],
    n_threads: int,
) -> CodedColumns:
    """Code all columns of a checked sparse X, (n, d). `code_column` codes a dense one."""
    n, d = X.shape
    X = X.tocsc()
    stored = _Stored(
        read_only(X.indptr.astype(np.int64, copy=False)),
        read_only(X.indices.astype(np.int32, copy=False)),
        read_only(X.data.astype(np.float64, copy=False)),
    )
    n_stored = np.diff(stored.indptr)
    first = np.append(0, np.cumsum(np.minimum(n_stored + 1, _FEW_VALUES)))
    room = np.empty(int(first[-1]))
    counts, missing = np.empty(d, np.int64), np.zeros(d, dtype=bool)
    n_tiles = -(-d // _COLUMNS_OF_TILE)
    _find_values(n_tiles, n_threads, n, stored, first, room, counts, missing)

    begins, ends = first.tolist(), (first[:-1] + counts).tolist()
    values = [room[begin:end] for begin, end in zip(begins, ends, strict=False)]
    others = np.flatnonzero(counts < 0)
    coded: dict[int, np.ndarray] = {}

    def code(tile: int) -> None:
        j = int(others[tile])
        column, own = np.zeros(n), slice(stored.indptr[j], stored.indptr[j + 1])
        column[stored.indices[own]] = stored.data[own]
        coded[j], values[j], missing[j] = code_column(column)

    run_tiles(code, len(others), n_threads)
    width = np.zeros(d, np.int8)
    for j, one in coded.items():
        width[j] = (1, 2, 4).index(one.itemsize)
    place, arrays = new_codes(width, n)
    for j, one in coded.items():
        copy_codes(one, arrays[width[j]][place[j]], n_threads)
    _write_codes(n_tiles, n_threads, stored, first, room, counts, place, arrays[0])
    codes = [arrays[kind][at] for kind, at in zip(width.tolist(), place.tolist(), strict=True)]
    return CodedColumns(codes, values, missing, arrays, width, place)


@region(bare=True)
def _find_values(tile, n, stored, first, room, counts, missing):
    """The distinct values of each column in ascending order, and how many; -1: too many."""
    begin = tile * _COLUMNS_OF_TILE
    for j in range(begin, min(begin + _COLUMNS_OF_TILE, len(counts))):
        values, count = room[first[j] : first[j + 1]], 0
        if stored.indptr[j + 1] - stored.indptr[j] < n:
            values[0], count = 0.0, 1
        for p in range(stored.indptr[j], stored.indptr[j + 1]):
            value = stored.data[p] + 0.0  # -0.0 is 0.0
            if value != value:  # noqa: PLR0124
                missing[j] = True
                continue
            at = _number_below(values, count, value)
            if at < count and values[at] == value:
                continue
            if count == len(values):
                count = -1
                break
            for k in range(count, at, -1):
                values[k] = values[k - 1]
            values[at] = value
            count += 1
        counts[j] = count


@kernel(inner=True)
def _number_below(values, count, value):
    """How many of the first values, which ascend, are below this one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@region(bare=True)
def _write_codes(tile, stored, first, room, counts, place, narrow):
    """The codes of columns of few values; that of zero where nothing is stored."""
    begin = tile * _COLUMNS_OF_TILE
    for j in range(begin, min(begin + _COLUMNS_OF_TILE, len(counts))):
        count = counts[j]
        if count < 0:
            continue
        values, codes = room[first[j] : first[j + 1]], narrow[place[j]]
        codes[:] = np.uint8(_number_below(values, count, 0.0))
        for p in range(stored.indptr[j], stored.indptr[j + 1]):
            value = stored.data[p]
            code = count
            if value == value:  # noqa: PLR0124
                code = _number_below(values, count, value)
            codes[stored.indices[p]] = np.uint8(code)
