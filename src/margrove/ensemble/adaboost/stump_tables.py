"""The table that boosted stumps and small trees are grown on.

A stump needs the weights of the classes in each bin of each feature. From one round to the next
only the weights of the misclassified rows change. There are three ways to read a feature:

by column   the code of each changed row, for features without a dominant value
listed      for each row the list of its bins, without the most frequent bin of each feature, whose
            weight is the total minus the other bins. For one-hot columns and texts this list is
            very short.
ordered     row by row in sorted order, for features with so many values that bins have few rows
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import kernel, region
from margrove.grove.grow import columns_of
from margrove.grove.table import BinnedDataset, Columns, bin_columns, code_of, midpoint

__all__ = [
    "ROWS_OF_A_BIN",
    "TILE_ROWS",
    "FeatureTable",
    "StumpColumns",
    "StumpTable",
    "groups_of_equal_cost",
    "read_stump_table",
    "rows_of_tile",
    "tiles_of_rows",
    "write_sides",
]

TILE_ROWS = 4096
ROWS_OF_A_BIN = 4  # of stumps: with fewer rows on average, a feature is read in sorted order
_LISTED_BELOW = 0.4  # share of the rows with another value than the most frequent one
_BINS_OF_A_GROUP = 1 << 16
_MOST_GROUPS = 8
_TILES_OF_A_THREAD = 4
_ENTRIES_OF_A_THREAD = 1 << 17
_MOST_PARTS = 16
_ENTRIES_OF_A_CELL = 10  # with fewer, a histogram of a part takes longer to add up than to fill


class FeatureTable(NamedTuple):
    """How the bins of rows are found.

    first      int64 (d + 1,)  the bins of feature j are first[j] .. first[j + 1]; an ordered
               feature has none
    omitted    int64 (d,)  the code that is not listed; -1 if all are counted
    place      int64 (d,)  the row of an ordered feature in `orders`, or -1
    by_column  int64 (m,)  the features that are read by column
    starts     int64 (groups, n + 1)  the entries of row i are bins[starts[g, i] : starts[g, i + 1]]
               for each group g of listed features
    bins       uint32
    orders     uint32 (ordered features, n)  rows in ascending order of their values; the highest
               bit marks the last row of each value
    """

    first: np.ndarray
    omitted: np.ndarray
    place: np.ndarray
    by_column: np.ndarray
    starts: np.ndarray
    bins: np.ndarray
    orders: np.ndarray


class StumpColumns(NamedTuple):
    """The codes by column, which tell on which side of a stump each row is.

    dense      the codes of a dense table
    indptr     int64 (d + 1,), rows int32, codes uint32: the nonzero codes of a sparse table in CSC
               format; for a dense table indptr is empty
    zeros      int64 (d,)  the code of zero
    """

    dense: Columns
    indptr: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    zeros: np.ndarray


class StumpTable(NamedTuple):
    """All features of n rows; `values[j][code]` is the value of a code of feature j."""

    n_rows: int
    features: FeatureTable
    columns: StumpColumns
    values: list[np.ndarray]

    def threshold(self, feature: int, code: int, next_code: int | None = None) -> float:
        """The midpoint between the values of two codes; the second is code + 1 by default."""
        values = self.values[feature]
        return midpoint(float(values[code]), float(values[next_code or code + 1]))

    @property
    def n_entries(self) -> int:
        """The number of cells that one pass over all rows and features reads."""
        features = self.features
        of_columns = len(features.by_column) * self.n_rows
        return of_columns + len(features.bins) + int(features.orders.size)

    def threads_for(self, n_threads: int) -> int:
        """How many threads are worth their while for one pass over the table."""
        return max(1, min(n_threads, self.n_entries // _ENTRIES_OF_A_THREAD))

    def parts_of_rows(self, n_cells: int, n_threads: int) -> int:
        """Into how many parts rows are divided, each with a histogram of `n_cells`.

        Sums are whole numbers, so results do not depend on it.
        """
        n_units = len(self.features.by_column) + len(self.features.starts)
        if n_threads == 1 or not n_units or not n_cells:
            return 1
        wanted = -(-_TILES_OF_A_THREAD * n_threads // n_units)
        worthwhile = int(self.n_entries / (_ENTRIES_OF_A_CELL * n_cells))
        return max(1, min(wanted, worthwhile, _MOST_PARTS, tiles_of_rows(self.n_rows)))


def tiles_of_rows(n_rows: int) -> int:
    """The number of tiles of TILE_ROWS rows."""
    return -(-n_rows // TILE_ROWS)


def read_stump_table(
    X: Any, n_threads: int = 1, *, rows_of_a_bin: float = ROWS_OF_A_BIN
) -> StumpTable:
    """The table for a checked X without missing values.

    rows_of_a_bin: a dense feature with fewer rows for each value on average is read in sorted
    order. This does not change the stumps.
    """
    if sp.issparse(X):
        return _of_sparse(sp.csc_array(X))
    return _of_dense(bin_columns(X, n_threads=n_threads), n_threads, rows_of_a_bin)


def _of_dense(data: BinnedDataset, n_threads: int, rows_of_a_bin: float) -> StumpTable:
    n, d, columns = data.n_rows, data.n_features, columns_of(data)
    empty = np.empty(0, np.int64)
    stump_columns = StumpColumns(
        columns, empty, np.empty(0, np.int32), np.empty(0, np.uint32), np.zeros(d, np.int64)
    )
    is_ordered = data.n_codes * rows_of_a_bin > n
    binned, ordered = np.flatnonzero(~is_ordered), np.flatnonzero(is_ordered)
    most, others = np.zeros(d, np.int64), np.zeros(d, np.int64)
    _find_most_frequent(len(binned), n_threads, columns, binned, most, others)
    is_listed = ~is_ordered & (others < _LISTED_BELOW * n)
    n_bins = np.where(is_ordered, 0, data.n_codes)
    first = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    place = np.full(d, -1, np.int64)
    place[ordered] = np.arange(len(ordered))
    omitted = np.where(is_listed, most, -1)
    starts, bins = _list_entries(columns, np.flatnonzero(is_listed), omitted, first, n, n_threads)
    orders = np.empty((len(ordered), n), np.uint32)
    _order_rows(len(ordered), n_threads, columns, ordered, orders)
    features = FeatureTable(
        first, omitted, place, np.flatnonzero(~is_ordered & ~is_listed), starts, bins, orders
    )
    return StumpTable(n, features, stump_columns, list(data.lows))


def _list_entries(
    columns: Columns,
    listed: np.ndarray,
    omitted: np.ndarray,
    first: np.ndarray,
    n_rows: int,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The `starts` and `bins` of the listed features."""
    sizes = first[listed + 1] - first[listed]
    groups = groups_of_equal_cost(sizes, _BINS_OF_A_GROUP, _MOST_GROUPS)
    n_tiles, n_groups = tiles_of_rows(n_rows), len(groups)
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    counts = np.zeros((n_groups, n_tiles), np.int64)
    _count_entries(n_tiles, n_threads, columns, listed, ends, omitted, n_rows, counts)
    begins = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    starts = np.empty((n_groups, n_rows + 1), np.int64)
    bins = np.empty(int(counts.sum()), np.uint32)
    starts[:, -1] = np.cumsum(counts.sum(axis=1))
    _write_entries(n_tiles, n_threads, columns, listed, ends, omitted, first, begins, starts, bins)
    return starts, bins


def groups_of_equal_cost(cost: np.ndarray, cells: int, most: int) -> list[np.ndarray]:
    """Groups of consecutive features of about equal cost: one for each `cells`, at most `most`."""
    total = float(cost.sum())
    n_groups = int(np.clip(total // cells, 1, min(most, max(len(cost), 1))))
    middle = np.cumsum(cost) - cost / 2
    number = np.minimum((middle * n_groups / max(total, 1.0)).astype(int), n_groups - 1)
    return [group for k in range(n_groups) if len(group := np.flatnonzero(number == k))]


def _of_sparse(X: sp.csc_array) -> StumpTable:
    """The table for a sparse X. Entries of zero are omitted; zeros[j] is the code of zero."""
    n, d = X.shape
    X.sum_duplicates()
    X.eliminate_zeros()
    indptr = X.indptr.astype(np.int64)
    codes = np.empty(X.nnz, np.uint32)
    zeros, n_codes = np.zeros(d, np.int64), np.zeros(d, np.int64)
    values: list[np.ndarray] = []
    for j in range(d):
        column = slice(indptr[j], indptr[j + 1])
        nonzero = X.data[column].astype(np.float64)
        distinct = np.unique(nonzero if len(nonzero) == n else np.append(nonzero, 0.0))
        codes[column] = np.searchsorted(distinct, nonzero)
        zeros[j] = np.searchsorted(distinct, 0.0) if len(nonzero) < n else -2  # there are no zeros
        n_codes[j] = len(distinct)
        values.append(distinct)
    columns = StumpColumns(
        _no_columns(), indptr, X.indices.astype(np.int32), codes, np.maximum(zeros, 0)
    )
    first = np.concatenate([[0], np.cumsum(n_codes)]).astype(np.int64)
    groups = groups_of_equal_cost(n_codes, _BINS_OF_A_GROUP, _MOST_GROUPS)
    starts, bins = np.empty((len(groups), n + 1), np.int64), np.empty(X.nnz, np.uint32)
    for k, features in enumerate(groups):
        _write_group(X, codes, features, first, starts[k], bins)
    table = FeatureTable(
        first, zeros, np.full(d, -1, np.int64), np.empty(0, np.int64), starts, bins,
        np.empty((0, n), np.uint32),
    )  # fmt: skip
    return StumpTable(n, table, columns, values)


def _write_group(
    X: sp.csc_array,
    codes: np.ndarray,
    features: np.ndarray,
    first: np.ndarray,
    starts: np.ndarray,
    bins: np.ndarray,
) -> None:
    """Write the entries of a group of consecutive features."""
    begin, end = int(X.indptr[features[0]]), int(X.indptr[features[-1] + 1])
    sizes = np.diff(X.indptr)[features]
    numbers = np.repeat(first[features], sizes) + codes[begin:end]
    rows = X.indices[begin:end]
    counts = np.bincount(rows, minlength=X.shape[0])
    starts[:] = begin + np.concatenate([[0], np.cumsum(counts)])
    bins[begin:end] = numbers[np.argsort(rows, kind="stable")]


def _no_columns() -> Columns:
    return Columns(
        np.empty((0, 0), np.uint8), np.empty((0, 0), np.uint16), np.empty((0, 0), np.uint32),
        np.empty(0, np.int8), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool),
        np.empty(0, bool), np.empty(0), np.zeros(1, np.int64), np.empty((0, 0), np.uint8),
    )  # fmt: skip


@kernel(inner=True)
def rows_of_tile(tile, n_rows):
    """The first row of a tile, and the end."""
    begin = tile * TILE_ROWS
    return begin, min(begin + TILE_ROWS, n_rows)


@region
def _find_most_frequent(tile, columns, features, most, others):
    """The most frequent code of a feature, and how many rows have another one."""
    feature = features[tile]
    counts = np.zeros(columns.n_codes[feature] + 1, np.int64)
    n = max(columns.narrow.shape[1], columns.medium.shape[1], columns.wide.shape[1])
    for i in range(n):
        counts[code_of(columns, feature, i)] += 1
    best = 0
    for code in range(len(counts)):
        if counts[code] > counts[best]:
            best = code
    most[feature], others[feature] = best, n - counts[best]


@region
def _order_rows(tile, columns, features, orders):
    """Sort rows by the code of a feature; the highest bit marks the last row of each code."""
    feature, order = features[tile], orders[tile]
    n_codes = columns.n_codes[feature]
    places = np.zeros(n_codes + 1, np.int64)
    for i in range(len(order)):
        places[code_of(columns, feature, i) + 1] += 1
    for code in range(n_codes):
        places[code + 1] += places[code]
    for i in range(len(order)):
        code = code_of(columns, feature, i)
        order[places[code]] = np.uint32(i)
        places[code] += 1
    for code in range(n_codes):  # places[code] is now the begin of the next code
        order[places[code] - 1] |= np.uint32(0x80000000)


@region(bare=True)
def _count_entries(tile, columns, listed, ends, omitted, n_rows, counts):
    """The number of entries of a tile of rows in each group."""
    begin, end = rows_of_tile(tile, n_rows)
    k = 0
    for group in range(len(ends)):
        total = np.int64(0)
        while k < ends[group]:
            feature = listed[k]
            for i in range(begin, end):
                total += np.int64(code_of(columns, feature, i) != omitted[feature])
            k += 1
        counts[group, tile] = total


@region
def _write_entries(tile, columns, listed, ends, omitted, first, begins, starts, bins):
    """Write the entries of a tile of rows, and where those of each row start."""
    begin, end = rows_of_tile(tile, starts.shape[1] - 1)
    places = np.empty(end - begin, np.int64)
    k = 0
    for group in range(len(ends)):
        places[:] = 0
        for at in range(k, ends[group]):
            feature = listed[at]
            for i in range(begin, end):
                places[i - begin] += np.int64(code_of(columns, feature, i) != omitted[feature])
        next_place = begins[group, tile]
        for i in range(begin, end):
            starts[group, i] = next_place
            next_place += places[i - begin]
            places[i - begin] = starts[group, i]
        while k < ends[group]:
            feature = listed[k]
            for i in range(begin, end):
                code = code_of(columns, feature, i)
                if code != omitted[feature]:
                    bins[places[i - begin]] = np.uint32(first[feature] + code)
                    places[i - begin] += 1
            k += 1


@kernel(bare=True)
def write_sides(columns, feature, code, begin, end, on_left):
    """Set on_left[i] = whether the code of row i is at most `code`, for rows begin .. end - 1."""
    if len(columns.indptr):
        _write_sparse_sides(columns, feature, code, begin, end, on_left)
        return
    dense = columns.dense
    place = dense.place[feature]
    if dense.width[feature] == 0:
        narrow = dense.narrow[place]
        for i in range(begin, end):
            on_left[i] = np.int64(narrow[i]) <= code
    elif dense.width[feature] == 1:
        medium = dense.medium[place]
        for i in range(begin, end):
            on_left[i] = np.int64(medium[i]) <= code
    else:
        wide = dense.wide[place]
        for i in range(begin, end):
            on_left[i] = np.int64(wide[i]) <= code


@kernel(inner=True)
def _write_sparse_sides(columns, feature, code, begin, end, on_left):
    zero = columns.zeros[feature] <= code
    for i in range(begin, end):
        on_left[i] = zero
    p, last = columns.indptr[feature], columns.indptr[feature + 1]
    high = last
    while p < high:  # the first entry of these rows
        middle = (p + high) // 2
        if columns.rows[middle] < begin:
            p = middle + 1
        else:
            high = middle
    while p < last and columns.rows[p] < end:
        on_left[columns.rows[p]] = np.int64(columns.codes[p]) <= code
        p += 1
