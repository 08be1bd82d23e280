"""The binned table of histogram boosting: codes of at most 255 values, by rows and by columns.

Histograms read all features of the rows of a node, so the codes of a row are contiguous. Columns
that have the same code in most rows (one-hot columns, counts of words) are sparse: that code is
omitted, and its sums are those of the node minus the others. Sparse columns that never have an
entry in the same row share a byte; if too few of them do, rows have lists of entries instead.
Sparse matrices are never converted to dense ones.

Columns that can never be split may be left out: with a minimum number of samples of a leaf, that is
most columns of a table of words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import kernel, region, require_memory, run_tiles
from margrove.ensemble.gradient.hist.binning.columns import (
    ALL_ZERO,
    CodedColumn,
    code_column,
    code_sparse_column,
    without_most_frequent,
)
from margrove.ensemble.gradient.hist.binning.dense_codes import code_table, is_worth_passes
from margrove.grove.table import copy_columns

__all__ = [
    "BYTES_OF_AN_ENTRY",
    "BYTES_OF_A_LIST",
    "COLUMNS_OF_A_BLOCK",
    "MOST_BINS",
    "GradientBins",
    "GradientTable",
    "bins_and_table",
    "bins_of",
    "choose_bundles",
    "fill_bundle",
    "find_bundles",
    "lay_out",
    "layout_of",
    "lists_of",
]

MOST_BINS = 255  # and one for missing values
COLUMNS_OF_A_BLOCK = 256  # the cells of a block have numbers of 16 bits
_ROWS_OF_A_TILE, _ROWS_OF_A_BLOCK, _MOST_TILES = 4096, 512, 64
_WORDS_OF_COLUMNS = 2
MOST_COMPARED = 64 * _WORDS_OF_COLUMNS  # sparse columns, of which all pairs are compared
_COLUMNS_AT_ONCE = 8  # a cache line of float64
_BITS_AT_ONCE = 256  # sparse columns whose rows are kept as bits
_MOST_BYTES_OF_LISTS = 1 << 24
_CELLS_AT_ONCE = 1 << 24  # limit between two checks for an interrupt
# Reading the list of a row takes as long as reading some bytes, and so does each entry.
BYTES_OF_A_LIST = 4
BYTES_OF_AN_ENTRY = 2


@dataclass(frozen=True)
class GradientBins:
    """The values of the codes of d features.

    lows, highs      for each feature, the smallest and the largest value of each code; for
                     categories, their numbers
    codes            for each categorical feature, int64 (categories,): the code of each category,
                     -1 for those without rows; None for numbers
    n_codes          int64 (d,)  number of codes of values; the code n_codes[j] is "missing"
    """

    lows: list[np.ndarray]
    highs: list[np.ndarray]
    codes: list[np.ndarray | None]
    n_codes: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.n_codes)


class GradientTable(NamedTuple):
    """A table of n rows and d features. Each feature has a place, dense features first, except for
    those that are left out, which have the place -1.

    n_rows
    n_dense        number of features that have their own byte; the others are sparse
    features       int64 (d,)  the feature at each place; places int64: the place of each feature
    by_columns     uint8 (m, n) or more  bytes that represent codes; then those of features that are
                   stored as lists, if they are not too many: rows are partitioned by bytes faster
    cells_at       int64 (m,)  the cell of byte 0 of each column
    by_rows        uint16 (n, m)  cells of each row, relative to the first of a block of columns
    columns        int64 (d,)  the column of each feature, -1 for features that only have lists
    bytes_at       int64 (d,)  the byte that represents code 0 of each feature
    places_at      int64 (m + 1,)  the first place of each column
    starts         int64 (n + 1,)  entries[starts[i] : starts[i + 1]] are the other cells of row i
    entries        uint32
    list_starts    int64 (lists + 1,)  where the rows and codes of each listed feature begin
    list_rows      int32, ascending; list_codes uint8
    first          int64 (d + 1,)  the first cell of the feature at each place
    n_codes        int64 (d,)  of the feature at a place; the code n_codes is "missing"
    omitted        int64 (d,)  the code without entries, -1 for dense features
    is_category    bool (d,)
    """

    n_rows: int
    n_dense: int
    features: np.ndarray
    places: np.ndarray
    by_columns: np.ndarray
    cells_at: np.ndarray
    by_rows: np.ndarray
    columns: np.ndarray
    bytes_at: np.ndarray
    places_at: np.ndarray
    starts: np.ndarray
    entries: np.ndarray
    list_starts: np.ndarray
    list_rows: np.ndarray
    list_codes: np.ndarray
    first: np.ndarray
    n_codes: np.ndarray
    omitted: np.ndarray
    is_category: np.ndarray

    @property
    def n_cells(self) -> int:
        return int(self.first[-1])

    @property
    def is_joint(self) -> bool:
        """Whether it has the rows of one member, see `joint_tables`."""
        return bool(self.by_rows.dtype == np.uint8)


def bins_and_table(
    X: Any,
    n_categories: np.ndarray,
    *,
    max_bins: int = MOST_BINS,
    weight: np.ndarray | None = None,
    copies: np.ndarray | None = None,
    least_samples: int = 0,
    n_threads: int = 1,
) -> tuple[GradientBins, GradientTable]:
    """Bin a checked table, dense or CSR, where NaN is missing.

    n_categories int64 (d,): 0 for numeric columns. If a column has more than `max_bins` different
    values, bins have about equal weight.

    Columns are left out of the table if fewer than `least_samples` samples have another code than
    the most frequent one: no split leaves so many on both sides. copies int64 (n,) are the samples
    of each row, one if None. The bins of a column that is left out mean nothing.
    """
    n, d = X.shape
    require_memory(3.0 * n * d, "The codes of all columns", "Drop columns, or use fewer rows.")
    weight = None if weight is None else _whole_weights(weight)
    if sp.issparse(X):
        columns = _sparse_columns(X.tocsc(), max_bins, weight, copies, least_samples, n_threads)
    elif is_worth_passes(X):
        columns, codes = code_table(X, n_categories, max_bins, weight, n_threads)
        kept = columns_to_keep(columns, copies, least_samples)
        return bins_of(columns), table_of_codes(columns, kept, codes, n_categories > 0, n_threads)
    else:
        columns = _dense_columns(X, n_categories, max_bins, weight, n_threads)
    kept = columns_to_keep(columns, copies, least_samples)
    return bins_of(columns), _table(columns, kept, n, n_categories > 0)


def _dense_columns(
    X: Any, n_categories: np.ndarray, max_bins: int, weight: np.ndarray | None, n_threads: int
) -> list[CodedColumn]:
    n, d = X.shape
    columns: list[Any] = [None] * d
    step = max(1, min(_COLUMNS_AT_ONCE, _CELLS_AT_ONCE // max(n, 1)))
    buffers: list[np.ndarray] = []  # reused by the threads, because new memory is slow

    def code(tile: int) -> None:
        first = tile * step
        buffer = buffers.pop() if buffers else np.empty((step, n))
        block = buffer[: min(step, d - first)]
        copy_columns(X, first, block)
        for j, values in enumerate(block, start=first):
            columns[j] = code_column(values, int(n_categories[j]), max_bins, weight)
        buffers.append(buffer)

    run_tiles(code, -(-d // step), n_threads)
    return columns


def _sparse_columns(
    X: sp.csc_matrix,
    max_bins: int,
    weight: np.ndarray | None,
    copies: np.ndarray | None,
    least_samples: int,
    n_threads: int,
) -> list[CodedColumn]:
    """The columns; those with entries in fewer than `least_samples` samples are not coded."""
    X.sort_indices()
    ones = np.ones(X.nnz, np.int64) if copies is None else copies[X.indices]
    samples = np.diff(np.concatenate([[0], np.cumsum(ones)])[X.indptr])
    columns, coded = [ALL_ZERO] * X.shape[1], np.flatnonzero(samples >= least_samples)

    def code(place: int) -> None:
        j = coded[place]
        column = slice(X.indptr[j], X.indptr[j + 1])
        columns[j] = code_sparse_column(
            X.data[column], X.indices[column], X.shape[0], max_bins, weight
        )

    run_tiles(code, len(coded), n_threads)
    return columns


def bins_of(columns: list[CodedColumn]) -> GradientBins:
    return GradientBins(
        [column.lows for column in columns],
        [column.highs for column in columns],
        [column.of_categories for column in columns],
        np.array([len(column.lows) for column in columns], np.int64),
    )


def _whole_weights(weight: np.ndarray) -> np.ndarray:
    """Weights as whole numbers of a very small unit, whose sums are exact in any order."""
    largest = float(weight.max())
    bits = 52 - len(weight).bit_length() - int(np.frexp(largest)[1])
    return np.asarray(np.rint(np.ldexp(weight, bits)))


def columns_to_keep(
    columns: list[CodedColumn], copies: np.ndarray | None, least_samples: int
) -> list[int]:
    """The columns that may be split such that both sides have so many samples."""

    def samples_of(column: CodedColumn) -> int:
        if column.rows is not None:
            return len(column.rows) if copies is None else int(copies[column.rows].sum())
        is_other = column.codes != column.omitted
        return int(np.count_nonzero(is_other) if copies is None else copies[is_other].sum())

    return [
        j
        for j, column in enumerate(columns)
        if column.omitted < 0 or not least_samples or samples_of(column) >= least_samples
    ]


def _table(
    columns: list[CodedColumn], kept: list[int], n: int, is_category: np.ndarray
) -> GradientTable:
    sparse = [j for j in kept if columns[j].rows is not None]
    return lay_out(columns, kept, find_bundles(columns, sparse, n), n, is_category)


def table_of_codes(
    columns: list[CodedColumn],
    kept: list[int],
    codes: np.ndarray,
    is_category: np.ndarray,
    n_threads: int,
) -> GradientTable:
    """The table of columns with the codes of all rows, uint8 (d, n), see `code_table`."""
    n = codes.shape[1]
    sparse = [j for j in kept if columns[j].omitted >= 0]
    if len(sparse) <= MOST_COMPARED:
        bundles = bundles_of_codes(columns, sparse, codes, n_threads)
        if bundles or not sparse:
            return lay_out(columns, kept, bundles, n, is_category, codes=codes, n_threads=n_threads)
    lists: list[Any] = list(columns)

    def make_list(place: int) -> None:
        column = columns[sparse[place]]
        lists[sparse[place]] = without_most_frequent(
            column.codes, column.lows, column.highs, column.of_categories
        )

    run_tiles(make_list, len(sparse), n_threads)
    bundles = find_bundles(lists, sparse, n) if len(sparse) > MOST_COMPARED else []
    return lay_out(lists, kept, bundles, n, is_category, n_threads=n_threads)


def lay_out(
    columns: list[CodedColumn],
    kept: list[int],
    bundles: list[list[int]],
    n: int,
    is_category: np.ndarray,
    *,
    codes: np.ndarray | None = None,
    n_threads: int = 1,
) -> GradientTable:
    """The table of the columns that are kept; sparse ones are stored in bundles, or as lists if
    there are no bundles.

    `codes` uint8 (d, n) are the codes of all rows, if columns have them.
    """
    dense = [j for j in kept if columns[j].omitted < 0]
    bundled = [j for bundle in bundles for j in bundle]
    listed = [] if bundled else [j for j in kept if columns[j].omitted >= 0]
    features = np.array(dense + bundled + listed, np.int64)
    layout = layout_of(columns, dense, bundles, listed)
    m = len(dense) + len(bundles)
    n_bytes = len(listed) if n * len(listed) <= _MOST_BYTES_OF_LISTS else 0
    by_columns = np.empty((m + n_bytes, n), np.uint8)

    if codes is None:
        for k, j in enumerate(dense):
            by_columns[k] = columns[j].codes
        for k, bundle in enumerate(bundles, start=len(dense)):
            fill_bundle(columns, bundle, by_columns[k])
    else:
        members = [[j] for j in dense] + bundles
        _fill_columns(-(-n // _ROWS_OF_A_TILE), n_threads, codes,
                      *_members(columns, members), by_columns[:m])  # fmt: skip
    for k, j in enumerate(listed[:n_bytes], start=m):
        by_columns[k] = columns[j].omitted
        by_columns[k, columns[j].rows] = columns[j].codes
        layout["columns"][len(features) - len(listed) + k - m] = k
    by_rows = np.empty((n, m), np.uint16)
    _transpose(-(-n // _ROWS_OF_A_TILE), n_threads, by_columns[:m], layout["cells_at"], by_rows)
    places = np.full(len(columns), -1, np.int64)
    places[features] = np.arange(len(features))
    return GradientTable(
        n_rows=n,
        n_dense=len(dense),
        features=features,
        places=places,
        by_rows=by_rows,
        by_columns=by_columns,
        n_codes=np.array([len(columns[j].lows) for j in features], np.int64),
        omitted=np.array([columns[j].omitted for j in features], np.int64),
        is_category=is_category[features],
        **layout,
        **lists_of([columns[j] for j in listed], n, layout["first"][len(dense) + len(bundled) :]),
    )


def _size(column: CodedColumn) -> int:
    """The number of cells of a column: its codes, and missing."""
    return len(column.lows) + 1


def find_bundles(columns: list[CodedColumn], sparse: list[int], n: int) -> list[list[int]]:
    """Bundles of sparse columns that never have an entry in the same row and whose codes fit into a
    byte; no bundles if lists are faster."""
    taken: list[int] = []  # the rows that have an entry of a bundle, as bits
    n_taken: list[int] = []  # the number of its columns that `taken` knows

    @lru_cache(_BITS_AT_ONCE)
    def bits_of(place: int) -> int:
        has_entry = np.zeros(n, np.bool_)
        has_entry[columns[sparse[place]].rows] = True
        return int.from_bytes(np.packbits(has_entry).tobytes(), "big")

    def meets(place: int, k: int, bundle: list[int]) -> bool:
        while k >= len(taken):
            taken.append(0)
            n_taken.append(0)
        for member in bundle[n_taken[k] :]:
            taken[k] |= bits_of(member)
        n_taken[k] = len(bundle)
        return taken[k] & bits_of(place) != 0

    entries = sum(len(columns[j].codes) for j in sparse)
    chosen = choose_bundles([_size(columns[j]) for j in sparse], meets, entries, n)
    return [[sparse[place] for place in bundle] for bundle in chosen]


def choose_bundles(
    sizes: list[int], meets: Callable[[int, int, list[int]], bool], entries: int, n: int
) -> list[list[int]]:
    """Bundles of columns with this number of cells each; no bundles if lists are faster.

    meets(place, k, bundle)   whether a column has an entry in a row where a column of bundle k has
    entries                   the number of entries of all columns
    """
    # With more bundles, lists of this number of entries are faster.
    most = int(BYTES_OF_A_LIST + BYTES_OF_AN_ENTRY * entries / max(n, 1))
    bundles: list[list[int]] = []
    filled: list[int] = []
    for place, size in enumerate(sizes):
        for k, bundle in enumerate(bundles):
            if filled[k] + size <= MOST_BINS and not meets(place, k, bundle):
                bundle.append(place)
                filled[k] += size
                break
        else:
            if len(bundles) == most or size > MOST_BINS:
                return []
            bundles.append([place])
            filled.append(size)
    return bundles


def bundles_of_codes(
    columns: list[CodedColumn], sparse: list[int], codes: np.ndarray, n_threads: int
) -> list[list[int]]:
    """The bundles that `find_bundles` finds, from the codes of all rows."""
    n = codes.shape[1]
    n_tiles = max(1, min(n // _ROWS_OF_A_TILE, _MOST_TILES))
    found = np.zeros((n_tiles, len(sparse), _WORDS_OF_COLUMNS), np.uint64)
    entries = np.zeros((n_tiles, len(sparse)), np.int64)
    omitted = np.array([columns[j].omitted for j in sparse], np.uint8)
    _find_meetings(n_tiles, n_threads, n_tiles, codes, np.array(sparse, np.int64), omitted, found,
                   entries)  # fmt: skip
    words = np.bitwise_or.reduce(found, axis=0)
    met = [int(low) | int(high) << 64 for low, high in words]  # earlier columns, as bits

    def meets(place: int, k: int, bundle: list[int]) -> bool:
        return any(met[place] >> member & 1 for member in bundle)

    sizes = [_size(columns[j]) for j in sparse]
    chosen = choose_bundles(sizes, meets, int(entries.sum()), n)
    return [[sparse[place] for place in bundle] for bundle in chosen]


def _members(columns: list[CodedColumn], members: list[list[int]]) -> tuple[np.ndarray, ...]:
    """Arrays for `_fill_columns`: where the members of each column of bytes begin; the features,
    the first byte of each, and the code that has none (-1 for dense features); the byte of no
    entry."""
    sizes = [[_size(columns[j]) for j in bundle] for bundle in members]
    begins = [np.cumsum(own) - own for own in sizes]
    joined = [j for bundle in members for j in bundle]
    return (
        np.cumsum([0] + [len(bundle) for bundle in members]),
        np.array(joined, np.int64),
        np.concatenate([*begins, np.empty(0, np.int64)]).astype(np.uint8),
        np.array([columns[j].omitted for j in joined], np.int64),
        np.array([sum(own) % 256 for own in sizes], np.uint8),
    )


def fill_bundle(columns: list[CodedColumn], bundle: list[int], cells: np.ndarray) -> None:
    """Write the cell of each row's entry, relative to the first cell of the bundle; the last cell
    means no entry."""
    cells[:] = sum(_size(columns[j]) for j in bundle)
    begin = 0
    for j in bundle:
        cells[columns[j].rows] = columns[j].codes + np.uint8(begin)
        begin += _size(columns[j])


def layout_of(
    columns: list[CodedColumn], dense: list[int], bundles: list[list[int]], listed: list[int]
) -> dict[str, np.ndarray]:
    """Where the cells, bytes and places of features and columns begin, see `GradientTable`."""
    first: list[int] = []
    column_of, bytes_at, cells_at, places_at = [], [], [], []
    cell = 0
    for k, members in enumerate([*([j] for j in dense), *bundles]):
        cells_at.append(cell)
        places_at.append(len(first))
        for j in members:
            first.append(cell)
            column_of.append(k)
            bytes_at.append(cell - cells_at[-1])
            cell += _size(columns[j])
        cell += int(k >= len(dense))  # the cell of rows without an entry
    places_at.append(len(first))
    for j in listed:
        first.append(cell)
        column_of.append(-1)
        bytes_at.append(0)
        cell += _size(columns[j])
    layout = {
        "first": [*first, cell],
        "columns": column_of,
        "bytes_at": bytes_at,
        "cells_at": cells_at,
        "places_at": places_at,
    }
    return {name: np.array(numbers, np.int64) for name, numbers in layout.items()}


def lists_of(columns: list[CodedColumn], n: int, first: np.ndarray) -> dict[str, np.ndarray]:
    """The entries by columns, and their cells by rows, see `GradientTable`."""
    rows: list[Any] = [column.rows for column in columns]
    list_rows = np.concatenate([*rows, np.empty(0, np.int32)]).astype(np.int32)
    list_codes = np.concatenate([*(column.codes for column in columns), np.empty(0, np.uint8)])
    list_starts = np.cumsum([0] + [len(column.codes) for column in columns]).astype(np.int64)
    starts = np.zeros(n + 1 if columns else 1, np.int64)
    entries = np.empty(len(list_rows), np.uint32)
    if columns:
        np.cumsum(np.bincount(list_rows, minlength=n), out=starts[1:])
        _by_rows(list_starts, list_rows, list_codes, first, starts[:-1].copy(), entries)
    return {
        "starts": starts,
        "entries": entries,
        "list_starts": list_starts,
        "list_rows": list_rows,
        "list_codes": list_codes.astype(np.uint8),
    }


@region
def _find_meetings(tile, n_tiles, codes, sparse, omitted, meets, entries):
    """Write a bit for each pair of sparse columns that have entries in the same row, for the pairs
    of a column and an earlier one."""
    n, found = codes.shape[1], np.empty((_WORDS_OF_COLUMNS, _ROWS_OF_A_BLOCK), np.uint64)
    end = n * (tile + 1) // n_tiles
    for start in range(n * tile // n_tiles, end, _ROWS_OF_A_BLOCK):
        size = min(_ROWS_OF_A_BLOCK, end - start)
        for word in range(_WORDS_OF_COLUMNS):
            for i in range(size):
                found[word, i] = 0
        for k in range(len(sparse)):
            own, most = codes[sparse[k], start : start + size], omitted[k]
            for word in range(k // 64 + 1):
                row, met = found[word], np.uint64(0)
                for i in range(size):
                    met |= row[i] if own[i] != most else np.uint64(0)
                meets[tile, k, word] |= met
            row, bit, count = found[k // 64], np.uint64(1) << np.uint64(k % 64), 0
            for i in range(size):
                row[i] |= bit if own[i] != most else np.uint64(0)
                count += np.int64(own[i] != most)
            entries[tile, k] += count


@region(bare=True)
def _fill_columns(tile, codes, first, members, begins, omitted, empty, by_columns):
    """Write the bytes of all columns for a tile of rows."""
    start = tile * _ROWS_OF_A_TILE
    end = min(start + _ROWS_OF_A_TILE, codes.shape[1])
    for k in range(len(by_columns)):
        written = by_columns[k, start:end]
        for i in range(len(written)):
            written[i] = empty[k]
        for member in range(first[k], first[k + 1]):
            own, begin, most = codes[members[member], start:end], begins[member], omitted[member]
            if most < 0:
                for i in range(len(written)):
                    written[i] = own[i]
            else:
                none = np.uint8(most)
                for i in range(len(written)):
                    written[i] = own[i] + begin if own[i] != none else written[i]


@region(bare=True)
def _transpose(tile, columns, cells_at, rows):
    """Write bytes as cells by rows; some rows at a time, which stay in the cache."""
    d, n = columns.shape
    begin = tile * _ROWS_OF_A_TILE
    for start in range(begin, min(begin + _ROWS_OF_A_TILE, n), 512):
        for k in range(d):
            at = cells_at[k] - cells_at[k - k % COLUMNS_OF_A_BLOCK]
            for i in range(start, min(start + 512, begin + _ROWS_OF_A_TILE, n)):
                rows[i, k] = np.uint16(at + np.int64(columns[k, i]))


@kernel
def _by_rows(list_starts, list_rows, list_codes, first, places, entries):
    for k in range(len(list_starts) - 1):
        for p in range(list_starts[k], list_starts[k + 1]):
            row = list_rows[p]
            entries[places[row]] = np.uint32(first[k] + np.int64(list_codes[p]))
            places[row] += 1
