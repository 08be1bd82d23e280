"""Tables as histogram boosting reads them: codes of at most 255 values, row by row.

Rows are visited in small parts of the table, node by node, and asked for all features at once, so
the codes of a row lie side by side. Columns that have the same code in most rows (one-hot columns,
counts of words) are sparse: that code is left out, being what the rest leaves of the node. Sparse
columns which never have an entry in the same row share a byte; if too few of them do, rows have
lists of entries instead. Sparse matrices are read without being filled up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import kernel, require_memory, run_tiles
from margrove.ensemble.gradient.hist.columns import (
    CodedColumn,
    code_column,
    code_sparse_column,
)
from margrove.grove.table import copy_columns

__all__ = [
    "BYTES_OF_AN_ENTRY",
    "BYTES_OF_A_LIST",
    "COLUMNS_OF_A_BLOCK",
    "MOST_BINS",
    "GradientBins",
    "GradientTable",
    "bins_and_table",
    "fill_bundle",
    "find_bundles",
    "lay_out",
    "layout_of",
    "lists_of",
]

MOST_BINS = 255  # and one for what is missing
COLUMNS_OF_A_BLOCK = 256  # whose cells have numbers of 16 bits
_COLUMNS_AT_ONCE = 8  # a cache line of float64
_CELLS_AT_ONCE = 1 << 24  # fewer columns of many rows, between which an interrupt is heard
# Reading a row's list takes as long as some bytes, and so does each entry of it.
BYTES_OF_A_LIST = 4
BYTES_OF_AN_ENTRY = 2


@dataclass(frozen=True)
class GradientBins:
    """What the codes of d features stand for.

    lows, highs      the smallest and largest value of each code, a pair of arrays a feature; of
                     categories their numbers, where each has a code of its own
    codes            of categories, int64 (categories,): their codes, -1 of those without rows;
                     None for numbers
    n_codes          int64 (d,)  codes of values that are there; code n_codes[j] is "missing"
    """

    lows: list[np.ndarray]
    highs: list[np.ndarray]
    codes: list[np.ndarray | None]
    n_codes: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.n_codes)


class GradientTable(NamedTuple):
    """n rows, d features: each has a place, the dense ones first.

    n_rows
    n_dense        features that have a byte of their own; the others are sparse
    features       int64 (d,)  which feature is at a place; places int64 (d,): the reverse
    by_columns     uint8 (m, n)  bytes that stand for codes
    cells_at       int64 (m,)  the cell of byte 0 of a column
    by_rows        uint16 (n, m)  cells of each row, counted from the first of a block of columns
    columns        int64 (d,)  in which column a feature is, -1 for those that are in lists
    bytes_at       int64 (d,)  the byte that stands for its code 0
    places_at      int64 (m + 1,)  the first place of a column
    starts         int64 (n + 1,)  entries[starts[i] : starts[i + 1]] are the other cells of row i
    entries        uint32
    list_starts    int64 (lists + 1,)  rows and codes of a feature that is in a list
    list_rows      int32, ascending; list_codes uint8
    first          int64 (d + 1,)  where the cells of the feature at a place begin
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


def bins_and_table(
    X: Any,
    n_categories: np.ndarray,
    *,
    max_bins: int = MOST_BINS,
    weight: np.ndarray | None = None,
    n_threads: int = 1,
) -> tuple[GradientBins, GradientTable]:
    """Code a checked table, dense or CSR, in which NaN is missing.

    n_categories int64 (d,): of categorical columns, 0 of numbers. Values share bins of about equal
    weight where there are more than `max_bins`.
    """
    n, d = X.shape
    require_memory(3.0 * n * d, "The codes of all columns", "Drop columns, or use fewer rows.")
    columns: list[Any] = [None] * d
    weight = None if weight is None else _whole_weights(weight)
    is_sparse = sp.issparse(X)
    if is_sparse:
        X = X.tocsc()
        X.sort_indices()
    step = 1 if is_sparse else max(1, min(_COLUMNS_AT_ONCE, _CELLS_AT_ONCE // max(n, 1)))
    rooms: list[np.ndarray] = []  # of threads that have done a tile: new memory is slow

    def code(tile: int) -> None:
        first = tile * step
        if is_sparse:
            part = slice(X.indptr[first], X.indptr[first + 1])
            columns[first] = code_sparse_column(X.data[part], X.indices[part], n, max_bins, weight)
            return
        room = rooms.pop() if rooms else np.empty((step, n))
        block = room[: min(step, d - first)]
        copy_columns(X, first, block)
        for j, values in enumerate(block, start=first):
            columns[j] = code_column(values, int(n_categories[j]), max_bins, weight)
        rooms.append(room)

    run_tiles(code, -(-d // step), n_threads)
    bins = GradientBins(
        [own.lows for own in columns],
        [own.highs for own in columns],
        [own.of_categories for own in columns],
        np.array([len(own.lows) for own in columns], np.int64),
    )
    return bins, _table(columns, n, n_categories > 0)


def _whole_weights(weight: np.ndarray) -> np.ndarray:
    """In units so small that hardly any weight is lost, but sums are exact in any order."""
    largest = float(weight.max())
    bits = 52 - len(weight).bit_length() - int(np.frexp(largest)[1])
    return np.asarray(np.rint(np.ldexp(weight, bits)))


def _table(columns: list[CodedColumn], n: int, is_category: np.ndarray) -> GradientTable:
    sparse = [j for j, own in enumerate(columns) if own.rows is not None]
    return lay_out(columns, find_bundles(columns, sparse, n), n, is_category)


def lay_out(
    columns: list[CodedColumn], bundles: list[list[int]], n: int, is_category: np.ndarray
) -> GradientTable:
    """Sparse columns are in bundles; in lists, if there are no bundles."""
    dense = [j for j, own in enumerate(columns) if own.rows is None]
    sparse = [j for j, own in enumerate(columns) if own.rows is not None]
    bundled = [j for bundle in bundles for j in bundle]
    listed = [] if bundled else sparse
    features = np.array(dense + bundled + listed, np.int64)
    layout = layout_of(columns, dense, bundles, listed)
    by_columns = np.empty((len(dense) + len(bundles), n), np.uint8)
    for k, j in enumerate(dense):
        by_columns[k] = columns[j].codes
    for k, bundle in enumerate(bundles, start=len(dense)):
        fill_bundle(columns, bundle, by_columns[k])
    by_rows = np.empty((n, len(by_columns)), np.uint16)
    _transpose(by_columns, layout["cells_at"], by_rows)
    places = np.empty(len(columns), np.int64)
    places[features] = np.arange(len(columns))
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
    """Cells: its codes, and missing."""
    return len(column.lows) + 1


def find_bundles(columns: list[CodedColumn], sparse: list[int], n: int) -> list[list[int]]:
    """Sparse columns of which no two have an entry in the same row, and room in a byte; none, if
    that takes more bytes than lists take time."""
    entries = sum(len(columns[j].codes) for j in sparse)
    most = int(BYTES_OF_A_LIST + BYTES_OF_AN_ENTRY * entries / max(n, 1))
    bundles: list[list[int]] = []
    sizes: list[int] = []
    taken: list[np.ndarray] = []
    for j in sparse:
        rows, size = columns[j].rows, _size(columns[j])
        for k in range(len(bundles)):
            if sizes[k] + size <= MOST_BINS and not taken[k][rows].any():
                break
        else:
            if len(bundles) == most or size > MOST_BINS:
                return []
            bundles.append([])
            sizes.append(0)
            taken.append(np.zeros(n, np.bool_))
            k = len(bundles) - 1
        bundles[k].append(j)
        sizes[k] += size
        taken[k][rows] = True
    return bundles


def fill_bundle(columns: list[CodedColumn], bundle: list[int], found: np.ndarray) -> None:
    """The cell of each row's entry, counted from the first of the bundle; the last is for none."""
    found[:] = sum(_size(columns[j]) for j in bundle)
    begin = 0
    for j in bundle:
        found[columns[j].rows] = columns[j].codes + np.uint8(begin)
        begin += _size(columns[j])


def layout_of(
    columns: list[CodedColumn], dense: list[int], bundles: list[list[int]], listed: list[int]
) -> dict[str, np.ndarray]:
    """Where cells, bytes and places begin."""
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
        cell += int(k >= len(dense))  # for rows without an entry
    places_at.append(len(first))
    for j in listed:
        first.append(cell)
        column_of.append(-1)
        bytes_at.append(0)
        cell += _size(columns[j])
    found = {
        "first": [*first, cell],
        "columns": column_of,
        "bytes_at": bytes_at,
        "cells_at": cells_at,
        "places_at": places_at,
    }
    return {name: np.array(own, np.int64) for name, own in found.items()}


def lists_of(columns: list[CodedColumn], n: int, first: np.ndarray) -> dict[str, np.ndarray]:
    """Entries column by column, and their cells row by row."""
    rows: list[Any] = [own.rows for own in columns]
    list_rows = np.concatenate([*rows, np.empty(0, np.int32)]).astype(np.int32)
    list_codes = np.concatenate([*(own.codes for own in columns), np.empty(0, np.uint8)])
    list_starts = np.cumsum([0] + [len(own.codes) for own in columns]).astype(np.int64)
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


@kernel
def _transpose(columns, cells_at, rows):
    """Bytes as cells; some rows at a time, which stay in the cache."""
    d, n = columns.shape
    for start in range(0, n, 512):
        for k in range(d):
            at = cells_at[k] - cells_at[k - k % COLUMNS_OF_A_BLOCK]
            for i in range(start, min(start + 512, n)):
                rows[i, k] = np.uint16(at + np.int64(columns[k, i]))


@kernel
def _by_rows(list_starts, list_rows, list_codes, first, places, entries):
    for k in range(len(list_starts) - 1):
        for p in range(list_starts[k], list_starts[k + 1]):
            row = list_rows[p]
            entries[places[row]] = np.uint32(first[k] + np.int64(list_codes[p]))
            places[row] += 1
