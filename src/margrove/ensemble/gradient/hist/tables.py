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

from margrove._runtime.jit import kernel
from margrove._runtime.memory import require_memory
from margrove._runtime.threads import run_tiles
from margrove.ensemble.gradient.hist.bin_refinement import code_values, refined_cells
from margrove.grove.table.binning import are_few_integers, code_column, copy_columns

__all__ = ["COLUMNS_OF_A_BLOCK", "MOST_BINS", "GradientBins", "GradientTable", "bins_and_table"]

MOST_BINS = 255  # and one for what is missing
COLUMNS_OF_A_BLOCK = 256  # whose cells have numbers of 16 bits
_MANY_ROWS = 1 << 17  # from which on columns are not sorted, see `gradient_cells`
_RARE = 0.3  # share of other codes up to which the commonest is left out
_COLUMNS_AT_ONCE = 8  # a cache line of float64
_CELLS_AT_ONCE = 1 << 24  # fewer columns of many rows, between which an interrupt is heard
# Reading a row's list takes as long as some bytes, and so does each entry of it.
_BYTES_OF_A_LIST = 4
_BYTES_OF_AN_ENTRY = 2


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


@dataclass(frozen=True)
class _Column:
    """A coded column: codes uint8 of all rows; or of some, all others having the code `omitted`."""

    codes: np.ndarray
    rows: np.ndarray | None
    omitted: int
    lows: np.ndarray
    highs: np.ndarray
    of_categories: np.ndarray | None


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
            columns[first] = _code_sparse(X.data[part], X.indices[part], n, max_bins, weight)
            return
        room = rooms.pop() if rooms else np.empty((step, n))
        block = room[: min(step, d - first)]
        copy_columns(X, first, block)
        for j, values in enumerate(block, start=first):
            columns[j] = _code(values, int(n_categories[j]), max_bins, weight)
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


def _code(
    values: np.ndarray, n_categories: int, max_bins: int, weight: np.ndarray | None
) -> _Column:
    if len(values) > _MANY_ROWS and not n_categories and not are_few_integers(values):
        codes, lows, highs = _refined_numbers(values, max_bins, weight)
        return _rare_apart(codes, lows, highs, None)
    codes, distinct, _ = code_column(values)
    if n_categories:
        codes, numbers, of_categories = _few_categories(
            codes, distinct, n_categories, max_bins, weight
        )
        lows = highs = numbers
    else:
        of_categories = None
        codes, lows, highs = _few_numbers(codes, distinct, max_bins, weight)
    return _rare_apart(codes, lows, highs, of_categories)


def _rare_apart(
    codes: np.ndarray, lows: np.ndarray, highs: np.ndarray, of_categories: np.ndarray | None
) -> _Column:
    """The commonest code is left out where others are rare."""
    sizes = np.bincount(codes, minlength=1)
    omitted = int(np.argmax(sizes))
    if len(codes) - sizes[omitted] >= _RARE * len(codes):
        return _Column(codes, None, -1, lows, highs, of_categories)
    rows = np.flatnonzero(codes != omitted).astype(np.int32)
    return _Column(codes[rows], rows, omitted, lows, highs, of_categories)


def _code_sparse(
    data: np.ndarray, rows: np.ndarray, n: int, max_bins: int, weight: np.ndarray | None
) -> _Column:
    """A column of a sparse matrix, in which what is not stored is zero."""
    if len(data) >= _RARE * n:
        values = np.zeros(n)
        values[rows] = data
        return _code(values, 0, max_bins, weight)
    # Zero comes last, with the weight of all rows that are not stored.
    values = np.append(np.asarray(data, np.float64), 0.0)
    own = np.ones(len(data)) if weight is None else weight[rows]
    total = float(n) if weight is None else float(weight.sum())
    codes, distinct, _ = code_column(values)
    weights = np.append(own, max(total - own.sum(), 0.0))
    codes, lows, highs = _few_numbers(codes, distinct, max_bins, weights)
    zero = int(codes[-1])
    others = np.flatnonzero(codes[:-1] != zero)
    return _Column(codes[others], rows[others].astype(np.int32), zero, lows, highs, None)


def _few_numbers(
    codes: np.ndarray, values: np.ndarray, max_bins: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most `max_bins` codes of about equal weight; neighbouring values share one."""
    if len(values) <= max_bins:
        return codes.astype(np.uint8), values, values
    counts = np.bincount(codes, weights=weight, minlength=len(values))[: len(values)]
    begins = _begins_of_bins(counts.astype(np.float64), max_bins)
    starts = np.flatnonzero(begins)
    table = np.append(np.cumsum(begins) - 1, len(starts)).astype(np.uint8)
    ends = np.append(starts[1:], len(values)) - 1
    return table[codes], values[starts], values[ends]


def _refined_numbers(
    values: np.ndarray, max_bins: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a column that has not been sorted."""
    cells = refined_cells(values, max_bins, weight)
    places = np.arange(len(cells.lows))
    _, starts, ends = _few_numbers(places, places, max_bins, cells.weight)
    lows, highs = cells.lows[starts], cells.highs[ends]
    return code_values(values, lows), lows, highs


@kernel
def _begins_of_bins(counts, max_bins):
    """Which values open a bin: heavy ones have one for themselves, others share the rest evenly."""
    begins = np.zeros(len(counts), np.bool_)
    heavy = np.zeros(len(counts), np.bool_)
    rest, bins_left = counts.sum(), max_bins
    is_settled = False
    while not is_settled and bins_left > 1:
        is_settled = True
        limit = rest / bins_left
        for k in range(len(counts)):
            if not heavy[k] and counts[k] >= limit and bins_left > 1:
                heavy[k] = True
                rest -= counts[k]
                bins_left -= 1
                is_settled = False
    limit = max(rest / bins_left, 1e-300)
    filled, last = 0.0, -1
    for k in range(len(counts)):
        if heavy[k]:
            begins[k] = True
            last = -1  # what follows opens another one
            continue
        own = int(filled / limit)
        begins[k] = own != last
        last = own
        filled += counts[k]
    return _limited(begins, heavy, max_bins)


@kernel
def _limited(begins, heavy, max_bins):
    """Stretches between heavy values may open a few bins too many: bins of light values are joined
    to the one before, evenly spread; if there are none such any more, any."""
    for only_light in (True, False):
        extra = np.int64(begins.sum()) - max_bins
        if extra <= 0:
            break
        total = np.int64(0)
        for k in range(1, len(begins)):
            total += np.int64(_may_be_joined(begins, heavy, k, only_light))
        extra = min(extra, total)
        seen = np.int64(0)
        kept = begins.copy()
        for k in range(1, len(begins)):
            if _may_be_joined(kept, heavy, k, only_light):
                begins[k] = (seen + 1) * extra // total == seen * extra // total
                seen += 1
    return begins


@kernel
def _may_be_joined(begins, heavy, k, only_light):
    return begins[k] and not (only_light and (heavy[k] or heavy[k - 1]))


def _few_categories(
    codes: np.ndarray,
    numbers: np.ndarray,
    n_categories: int,
    max_bins: int,
    weight: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A code for each category; if they are too many, the rare ones share the last code."""
    of_categories = np.full(n_categories, -1, np.int64)
    numbers = numbers.astype(np.int64)
    new = np.arange(len(numbers) + 1)
    if len(numbers) > max_bins:
        counts = np.bincount(codes, weights=weight, minlength=len(numbers))[: len(numbers)]
        frequent = np.sort(np.lexsort((numbers, -counts))[: max_bins - 1])
        new = np.full(len(numbers) + 1, max_bins - 1)
        new[frequent] = np.arange(len(frequent))
        new[-1] = max_bins
    of_categories[numbers] = new[:-1]
    n_codes = min(len(numbers), max_bins)
    return new.astype(np.uint8)[codes], np.arange(n_codes, dtype=np.float64), of_categories


def _table(columns: list[_Column], n: int, is_category: np.ndarray) -> GradientTable:
    sparse = [j for j, own in enumerate(columns) if own.rows is not None]
    return _laid_out(columns, _bundles(columns, sparse, n), n, is_category)


def _laid_out(
    columns: list[_Column], bundles: list[list[int]], n: int, is_category: np.ndarray
) -> GradientTable:
    """Sparse columns are in bundles; in lists, if there are no bundles."""
    dense = [j for j, own in enumerate(columns) if own.rows is None]
    sparse = [j for j, own in enumerate(columns) if own.rows is not None]
    bundled = [j for bundle in bundles for j in bundle]
    listed = [] if bundled else sparse
    features = np.array(dense + bundled + listed, np.int64)
    layout = _layout(columns, dense, bundles, listed)
    by_columns = np.empty((len(dense) + len(bundles), n), np.uint8)
    for k, j in enumerate(dense):
        by_columns[k] = columns[j].codes
    for k, bundle in enumerate(bundles, start=len(dense)):
        _fill_bundle(columns, bundle, by_columns[k])
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
        **_lists([columns[j] for j in listed], n, layout["first"][len(dense) + len(bundled) :]),
    )


def _size(column: _Column) -> int:
    """Cells: its codes, and missing."""
    return len(column.lows) + 1


def _bundles(columns: list[_Column], sparse: list[int], n: int) -> list[list[int]]:
    """Sparse columns of which no two have an entry in the same row, and room in a byte; none, if
    that takes more bytes than lists take time."""
    entries = sum(len(columns[j].codes) for j in sparse)
    most = int(_BYTES_OF_A_LIST + _BYTES_OF_AN_ENTRY * entries / max(n, 1))
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


def _fill_bundle(columns: list[_Column], bundle: list[int], found: np.ndarray) -> None:
    """The cell of each row's entry, counted from the first of the bundle; the last is for none."""
    found[:] = sum(_size(columns[j]) for j in bundle)
    begin = 0
    for j in bundle:
        found[columns[j].rows] = columns[j].codes + np.uint8(begin)
        begin += _size(columns[j])


def _layout(
    columns: list[_Column], dense: list[int], bundles: list[list[int]], listed: list[int]
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


def _lists(columns: list[_Column], n: int, first: np.ndarray) -> dict[str, np.ndarray]:
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
