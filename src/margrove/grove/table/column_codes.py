"""The columns of a dense table as codes, over tiles of its rows.

Columns of whole numbers in a short range are looked up in a table; tiles of rows go through all of
them. The other columns are sorted, a column in each tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, region, run_tiles

__all__ = ["CodedColumns", "Survey", "code_dense", "copy_codes", "new_codes", "survey_rows"]

_CELLS_OF_TILE = 1 << 15
_CELLS_AT_ONCE = 1 << 26  # of a region and a thread: interrupts are noticed between two regions
_LONGEST_RANGE = 1 << 16  # of columns that are looked up together


class Survey(NamedTuple):
    """For each column: the smallest and largest value, the number of missing ones, and whether all
    are whole."""

    low: np.ndarray
    high: np.ndarray
    n_missing: np.ndarray
    whole: np.ndarray


class CodedColumns(NamedTuple):
    """For each column its codes, its distinct values, and whether any is missing. `arrays` has the
    codes of all columns of one type, uint8, uint16 or uint32, one after the other."""

    codes: list[np.ndarray]
    values: list[np.ndarray]
    missing: np.ndarray
    arrays: list[np.ndarray]
    width: np.ndarray
    place: np.ndarray


class _Tables(NamedTuple):
    """The tables of the columns `which`: that of column k begins at first[k], for the value low[k];
    n_values[k] is the code of missing ones."""

    which: np.ndarray
    first: np.ndarray
    low: np.ndarray
    n_values: np.ndarray
    seen: np.ndarray
    rank: np.ndarray


def code_dense(
    X: np.ndarray,
    is_short: Callable[[int, float, float, int, bool], bool],
    sort: Callable[[np.ndarray, tuple[float, int] | None], tuple[np.ndarray, np.ndarray]],
    n_threads: int,
) -> CodedColumns:
    """Code all columns of X, float64 or float32 (n, d) in C order.

    is_short(n, low, high, n_missing, whole) says whether a column is looked up instead of sorted.
    sort(column, range) codes the others: uint32 codes and distinct values. Its range is the lowest
    value and the length, for columns that need a long table.
    """
    n, d = X.shape
    X = read_only(X)
    survey = survey_rows(X, n_threads)
    columns = zip(*(part.tolist() for part in survey), strict=True)
    found = [is_short(n, *of_column) for of_column in columns]
    ranges = [
        (low, int(high - low) + 1) if short else None
        for short, low, high in zip(found, survey.low.tolist(), survey.high.tolist(), strict=True)
    ]
    span = np.where(found, survey.high - np.where(found, survey.low, 0.0) + 1.0, np.inf)
    is_looked_up = span <= _LONGEST_RANGE
    codes: list[np.ndarray] = [np.empty(0, np.uint8)] * d
    values: list[np.ndarray] = [np.empty(0)] * d
    others = np.flatnonzero(~is_looked_up)

    def code(tile: int) -> None:
        j = int(others[tile])
        codes[j], values[j] = sort(X[:, j].astype(np.float64), ranges[j])

    run_tiles(code, len(others), n_threads)
    which = np.flatnonzero(is_looked_up)
    tables = _tables(X, which, survey.low[which], span[which].astype(np.int64), values, n_threads)
    width = np.searchsorted([255, 65535], [len(one) for one in values]).astype(np.int8)
    place, arrays = new_codes(width, n)
    order = np.argsort(width[which], kind="stable")
    groups = np.append(0, np.cumsum(np.bincount(width[which], minlength=3)))
    tables = tables._replace(
        which=which[order], first=tables.first[:-1][order], low=tables.low[order],
        n_values=tables.n_values[order],
    )  # fmt: skip
    _by_rows(_code_rows, X, n_threads, tables, groups, place[which[order]], *arrays)
    for j in others.tolist():
        copy_codes(codes[j], arrays[width[j]][place[j]], n_threads)
    codes = [arrays[width[j]][place[j]] for j in range(d)]
    return CodedColumns(codes, values, survey.n_missing > 0, arrays, width, place)


def survey_rows(X: np.ndarray, n_threads: int) -> Survey:
    """Survey the columns of X, float64 or float32 in C order."""
    n, d = X.shape
    n_tiles = -(-n // _rows_of_tile(d))
    low, high = np.empty((n_tiles, d)), np.empty((n_tiles, d))
    missing, parts = np.empty((n_tiles, d), np.int64), np.empty((n_tiles, d), np.int64)
    _by_rows(_survey_tile, read_only(X), n_threads, low, high, missing, parts)
    n_missing = missing.sum(axis=0)
    return Survey(low.min(axis=0), high.max(axis=0), n_missing, parts.sum(axis=0) == n_missing)


def _rows_of_tile(d: int) -> int:
    return max(64, _CELLS_OF_TILE // max(d, 1))


def _by_rows(work: Callable[..., None], X: np.ndarray, n_threads: int, *given: object) -> None:
    """Call work(n_tiles, n_threads, first tile, rows of a tile, X, ...) for tiles of all rows."""
    n, d = X.shape
    size = _rows_of_tile(d)
    n_tiles = -(-n // size)
    at_once = max(1, _CELLS_AT_ONCE * n_threads // (size * max(d, 1)))
    for first in range(0, n_tiles, at_once):
        work(min(at_once, n_tiles - first), n_threads, first, size, X, *given)


def _tables(
    X: np.ndarray, which: np.ndarray, low: np.ndarray, span: np.ndarray, values: list[np.ndarray],
    n_threads: int,
) -> _Tables:  # fmt: skip
    """Tables from values to codes; `values` gets the distinct values of the columns."""
    first = np.append(0, np.cumsum(span))
    size = int(first[-1])
    tables = _Tables(which, first, low, np.zeros(len(which), np.int64),
                     np.zeros(size, np.uint8), np.empty(size, np.uint32))  # fmt: skip
    if not len(which):
        return tables
    _by_rows(_see_rows, X, n_threads, tables)
    distinct = np.empty(size)
    _rank_values(tables, distinct)
    for k, j in enumerate(which.tolist()):
        values[j] = distinct[first[k] : first[k] + tables.n_values[k]].copy()
    return tables


def new_codes(width: np.ndarray, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The place of each column among those of its type, and an array for each type."""
    place = np.zeros(len(width), dtype=np.int64)
    arrays = []
    for kind, dtype in enumerate((np.uint8, np.uint16, np.uint32)):
        of_width = np.flatnonzero(width == kind)
        place[of_width] = np.arange(len(of_width))
        arrays.append(np.empty((len(of_width), n), dtype=dtype))
    return place, arrays


def copy_codes(codes: np.ndarray, to: np.ndarray, n_threads: int) -> None:
    _copy_tile(-(-len(codes) // _CELLS_OF_TILE), n_threads, codes, to)


@region(bare=True)
def _copy_tile(tile, codes, to):
    begin = tile * _CELLS_OF_TILE
    for i in range(begin, min(begin + _CELLS_OF_TILE, len(codes))):
        to[i] = codes[i]


@region(bare=True)
def _survey_tile(tile, first, size, X, low, high, missing, parts):
    """Row after row, all columns at once: so the compiler uses vector registers."""
    at = first + tile
    d = np.uint64(X.shape[1])
    least, most, n_missing, n_parts = low[at], high[at], missing[at], parts[at]
    for j in range(d):
        least[j], most[j], n_missing[j], n_parts[j] = np.inf, -np.inf, 0, 0
    for i in range(at * size, min((at + 1) * size, X.shape[0])):
        row = X[i]
        for j in range(d):
            value = np.float64(row[j])
            least[j] = value if value < least[j] else least[j]
            most[j] = value if value > most[j] else most[j]
            n_missing[j] += value != value  # noqa: PLR0124
            n_parts[j] += np.floor(value) != value  # also those that are missing


@region(bare=True)
def _see_rows(tile, first, size, X, tables):
    """Mark the values of a tile. Marks are read before they are written: threads that write to one
    cache line wait for each other."""
    begin = (first + tile) * size
    seen, which, low, start = tables.seen, tables.which, tables.low, tables.first
    for i in range(begin, min(begin + size, X.shape[0])):
        row = X[i]
        for k in range(np.uint64(len(which))):
            value = np.float64(row[np.uint64(which[k])])
            if value == value:  # noqa: PLR0124
                place = np.uint64(start[k]) + np.uint64(np.int64(value - low[k]))
                if seen[place] == 0:
                    seen[place] = 1


@kernel
def _rank_values(tables, distinct):
    """The rank of each value that was seen; distinct[first[k]:] become those of column k."""
    for k in range(len(tables.which)):
        first, rank = tables.first[k], 0
        for cell in range(first, tables.first[k + 1]):
            tables.rank[cell] = rank
            if tables.seen[cell]:
                distinct[first + rank] = tables.low[k] + (cell - first)
                rank += 1
        tables.n_values[k] = rank


@region(bare=True)
def _code_rows(tile, first, size, X, tables, groups, place, narrow, medium, wide):
    begin = (first + tile) * size
    end = min(begin + size, X.shape[0])
    _look_up(X, begin, end, tables, groups, 0, place, narrow)
    _look_up(X, begin, end, tables, groups, 1, place, medium)
    _look_up(X, begin, end, tables, groups, 2, place, wide)


@kernel(inner=True)
def _look_up(X, begin, end, tables, groups, width, place, codes):
    """The codes of the columns of one type, row after row."""
    which, low, start, rank = tables.which, tables.low, tables.first, tables.rank
    for i in range(begin, end):
        row = X[i]
        for p in range(np.uint64(groups[width]), np.uint64(groups[width + 1])):
            value = np.float64(row[np.uint64(which[p])])
            code = np.uint32(tables.n_values[p])
            if value == value:  # noqa: PLR0124
                code = rank[np.uint64(start[p]) + np.uint64(np.int64(value - low[p]))]
            codes[np.uint64(place[p]), np.uint64(i)] = code
