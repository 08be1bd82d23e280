"""The table that boosted stumps and small trees are grown on.

A stump needs the weights of the classes in each bin of each feature. From one round to the next
only the weights of the misclassified rows change. So the table stores for each row the list of its
bins, without the most frequent bin of each feature, whose weight is the total minus the other bins.
For one-hot columns and texts this list is very short. A feature with many different values, whose
bins have few rows each, is read row by row in sorted order instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import kernel, run_tiles
from margrove.grove.grow import columns_of
from margrove.grove.table import BinnedDataset, Columns, bin_columns, code_of, midpoint

__all__ = [
    "ROWS_OF_A_BIN",
    "FeatureGroup",
    "StumpColumns",
    "StumpTable",
    "groups_of_equal_cost",
    "read_stump_table",
    "write_sides",
]

ROWS_OF_A_BIN = 4  # of stumps: with fewer rows on average, a feature is read in sorted order
_CELLS_OF_A_GROUP = 1 << 18
_MOST_GROUPS = 8


class FeatureGroup(NamedTuple):
    """Some consecutive features; a thread works on one group at a time.

    features   int64 (m,)  their numbers
    first      int64 (m + 1,)  the bins of feature k are first[k] .. first[k + 1]
    omitted    int64 (m,)  the code without entries; -1 if the feature is read in sorted order
    place      int64 (m,)  its row in `orders`, or -1
    starts     int64 (n + 1,)  the entries of row i are bins[starts[i] : starts[i + 1]]
    bins       uint32
    orders     uint32 (ordered features, n)  rows in ascending order of their values; the highest
               bit marks the last row of each value
    """

    features: np.ndarray
    first: np.ndarray
    omitted: np.ndarray
    place: np.ndarray
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
    groups: list[FeatureGroup]
    columns: StumpColumns
    values: list[np.ndarray]

    def threshold(self, feature: int, code: int, next_code: int | None = None) -> float:
        """The midpoint between the values of two codes; the second is code + 1 by default."""
        values = self.values[feature]
        return midpoint(float(values[code]), float(values[next_code or code + 1]))


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
    n, columns = data.n_rows, columns_of(data)
    empty = np.empty(0, np.int64)
    stump_columns = StumpColumns(
        columns, empty, np.empty(0, np.int32), np.empty(0, np.uint32),
        np.zeros(data.n_features, np.int64),
    )  # fmt: skip
    is_ordered = data.n_codes * rows_of_a_bin > n
    most = np.zeros(data.n_features, np.int64)
    counts = np.zeros(data.n_features, np.int64)  # of entries
    for j in range(data.n_features):
        if not is_ordered[j]:
            sizes = np.bincount(data.column(j), minlength=1)
            most[j] = np.argmax(sizes)
            counts[j] = n - sizes[most[j]]
    cost = np.where(is_ordered, n, counts + data.n_codes)
    features = groups_of_equal_cost(cost, _CELLS_OF_A_GROUP, _MOST_GROUPS)
    groups: list[Any] = [None] * len(features)

    def build(k: int) -> None:
        groups[k] = _dense_group(data, columns, features[k], is_ordered, most)

    run_tiles(build, len(features), n_threads)
    return StumpTable(n, groups, stump_columns, list(data.lows))


def _dense_group(
    data: BinnedDataset,
    columns: Columns,
    features: np.ndarray,
    is_ordered: np.ndarray,
    most: np.ndarray,
) -> FeatureGroup:
    n = data.n_rows
    ordered = features[is_ordered[features]]
    place = np.full(len(features), -1, np.int64)
    place[is_ordered[features]] = np.arange(len(ordered))
    omitted = np.where(is_ordered[features], -1, most[features])
    n_bins = np.where(is_ordered[features], 0, data.n_codes[features])
    first = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    starts = np.zeros(n + 1, np.int64)
    _count_entries(columns, features, omitted, starts)
    np.cumsum(starts, out=starts)
    bins = np.empty(int(starts[-1]), np.uint32)
    _write_entries(columns, features, omitted, first, starts[:-1].copy(), bins)
    orders = np.empty((len(ordered), n), np.uint32)
    for k, j in enumerate(ordered):
        _order_rows(data.column(j), int(data.n_codes[j]), orders[k])
    return FeatureGroup(
        features.astype(np.int64), first, omitted.astype(np.int64), place, starts, bins, orders
    )


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
    cost = np.diff(indptr) + n_codes
    groups = [
        _sparse_group(X, codes, features, n_codes, zeros)
        for features in groups_of_equal_cost(cost, _CELLS_OF_A_GROUP, _MOST_GROUPS)
    ]
    return StumpTable(n, groups, columns, values)


def _sparse_group(
    X: sp.csc_array, codes: np.ndarray, features: np.ndarray, n_codes: np.ndarray, zeros: np.ndarray
) -> FeatureGroup:
    n = X.shape[0]
    first = np.concatenate([[0], np.cumsum(n_codes[features])]).astype(np.int64)
    begin, end = X.indptr[features[0]], X.indptr[features[-1] + 1]
    sizes = np.diff(X.indptr)[features]
    numbers = np.repeat(first[:-1], sizes) + codes[begin:end]
    rows = X.indices[begin:end]
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)
    return FeatureGroup(
        features.astype(np.int64),
        first,
        zeros[features],
        np.full(len(features), -1, np.int64),
        starts,
        numbers[order].astype(np.uint32),
        np.empty((0, n), np.uint32),
    )


def _no_columns() -> Columns:
    return Columns(
        np.empty((0, 0), np.uint8), np.empty((0, 0), np.uint16), np.empty((0, 0), np.uint32),
        np.empty(0, np.int8), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool),
        np.empty(0, bool), np.empty(0), np.zeros(1, np.int64), np.empty((0, 0), np.uint8),
    )  # fmt: skip


@kernel
def _order_rows(codes, n_codes, order):
    """Sort rows by code; the highest bit marks the last row of each code."""
    places = np.zeros(n_codes + 1, np.int64)
    for i in range(len(codes)):
        places[np.int64(codes[i]) + 1] += 1
    for code in range(n_codes):
        places[code + 1] += places[code]
    for i in range(len(codes)):
        code = np.int64(codes[i])
        order[places[code]] = np.uint32(i)
        places[code] += 1
    for code in range(n_codes):  # places[code] is now the begin of the next code
        order[places[code] - 1] |= np.uint32(0x80000000)


@kernel
def _count_entries(columns, features, omitted, starts):
    for k in range(len(features)):
        if omitted[k] >= 0:
            for i in range(len(starts) - 1):
                starts[i + 1] += np.int64(code_of(columns, features[k], i) != omitted[k])


@kernel
def _write_entries(columns, features, omitted, first, places, bins):
    for k in range(len(features)):
        if omitted[k] >= 0:
            for i in range(len(places)):
                code = code_of(columns, features[k], i)
                if code != omitted[k]:
                    bins[places[i]] = np.uint32(first[k] + code)
                    places[i] += 1


@kernel(bare=True)
def write_sides(columns, feature, code, on_left):
    """Set on_left[i] = whether the code of row i is at most `code`."""
    if len(columns.indptr):
        zero = columns.zeros[feature] <= code
        for i in range(len(on_left)):
            on_left[i] = zero
        for p in range(columns.indptr[feature], columns.indptr[feature + 1]):
            on_left[columns.rows[p]] = np.int64(columns.codes[p]) <= code
        return
    dense = columns.dense
    place = dense.place[feature]
    if dense.width[feature] == 0:
        narrow = dense.narrow[place]
        for i in range(len(on_left)):
            on_left[i] = np.int64(narrow[i]) <= code
    elif dense.width[feature] == 1:
        medium = dense.medium[place]
        for i in range(len(on_left)):
            on_left[i] = np.int64(medium[i]) <= code
    else:
        wide = dense.wide[place]
        for i in range(len(on_left)):
            on_left[i] = np.int64(wide[i]) <= code
