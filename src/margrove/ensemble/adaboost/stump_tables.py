"""Tables as boosted stumps read them.

A stump asks for the weights of the classes in each bin of each feature, round after round, and
from one round to the next only the weights of the misclassified rows change. So a row carries the
list of its bins, but for the most frequent one of each feature, which is what the others leave of
the whole: of one-hot columns and of texts that is nearly nothing. A feature of so many values that
its bins hold a few rows each is read in its order instead, row by row.
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
    "parts_of_equal_cost",
    "read_stump_table",
    "write_sides",
]

ROWS_OF_A_BIN = 4  # of stumps; fewer on average, and a feature is read in its order
_CELLS_OF_A_GROUP = 1 << 18
_MOST_GROUPS = 8


class FeatureGroup(NamedTuple):
    """Some neighbouring features; a core works on one group at a time.

    features   int64 (m,)  their numbers
    first      int64 (m + 1,)  the bins of feature k are first[k] .. first[k + 1]
    omitted    int64 (m,)  the code without entries; -1: the feature is read in its order
    place      int64 (m,)  where its order is, else -1
    starts     int64 (n + 1,)  the entries of row i are bins[starts[i] : starts[i + 1]]
    bins       uint32
    orders     uint32 (ordered features, n)  rows by rising value; the last of each value has the
               highest bit
    """

    features: np.ndarray
    first: np.ndarray
    omitted: np.ndarray
    place: np.ndarray
    starts: np.ndarray
    bins: np.ndarray
    orders: np.ndarray


class StumpColumns(NamedTuple):
    """The codes of a feature, to tell on which side of a stump the rows are.

    dense      as trees have them
    indptr     int64 (d + 1,), rows int32, codes uint32: those that are not zero, column by column,
               of a sparse table; of a dense one indptr is empty
    zeros      int64 (d,)  the code of zero
    """

    dense: Columns
    indptr: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    zeros: np.ndarray


class StumpTable(NamedTuple):
    """All features of n rows; `values` are what the codes of each feature stand for."""

    n_rows: int
    groups: list[FeatureGroup]
    columns: StumpColumns
    values: list[np.ndarray]

    def threshold(self, feature: int, code: int, next_code: int | None = None) -> float:
        """Halfway between two codes, by default neighbours."""
        values = self.values[feature]
        return midpoint(float(values[code]), float(values[next_code or code + 1]))


def read_stump_table(
    X: Any, n_threads: int = 1, *, rows_of_a_bin: float = ROWS_OF_A_BIN
) -> StumpTable:
    """From a checked table without missing values.

    rows_of_a_bin: a dense feature whose values have fewer rows on average is read in its order.
    Which way a feature is read does not show in what is found.
    """
    if sp.issparse(X):
        return _of_sparse(sp.csc_array(X))
    return _of_dense(bin_columns(X, n_threads=n_threads), n_threads, rows_of_a_bin)


def _of_dense(data: BinnedDataset, n_threads: int, rows_of_a_bin: float) -> StumpTable:
    n, columns = data.n_rows, columns_of(data)
    empty = np.empty(0, np.int64)
    read = StumpColumns(
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
    parts = parts_of_equal_cost(cost, _CELLS_OF_A_GROUP, _MOST_GROUPS)
    groups: list[Any] = [None] * len(parts)

    def build(k: int) -> None:
        groups[k] = _dense_group(data, columns, parts[k], is_ordered, most)

    run_tiles(build, len(parts), n_threads)
    return StumpTable(n, groups, read, list(data.lows))


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


def parts_of_equal_cost(cost: np.ndarray, cells: int, most: int) -> list[np.ndarray]:
    """Neighbouring features of about equal cost: a part for so many cells, `most` at most."""
    total = float(cost.sum())
    n_parts = int(np.clip(total // cells, 1, min(most, max(len(cost), 1))))
    middle = np.cumsum(cost) - cost / 2
    number = np.minimum((middle * n_parts / max(total, 1.0)).astype(int), n_parts - 1)
    return [own for k in range(n_parts) if len(own := np.flatnonzero(number == k))]


def _of_sparse(X: sp.csc_array) -> StumpTable:
    """Zero is the code without entries, whether or not a column has one."""
    n, d = X.shape
    X.sum_duplicates()
    X.eliminate_zeros()
    indptr = X.indptr.astype(np.int64)
    codes = np.empty(X.nnz, np.uint32)
    zeros, n_codes = np.zeros(d, np.int64), np.zeros(d, np.int64)
    values: list[np.ndarray] = []
    for j in range(d):
        part = slice(indptr[j], indptr[j + 1])
        own = X.data[part].astype(np.float64)
        distinct = np.unique(own if len(own) == n else np.append(own, 0.0))
        codes[part] = np.searchsorted(distinct, own)
        zeros[j] = np.searchsorted(distinct, 0.0) if len(own) < n else -2  # no row is there
        n_codes[j] = len(distinct)
        values.append(distinct)
    columns = StumpColumns(
        _no_columns(), indptr, X.indices.astype(np.int32), codes, np.maximum(zeros, 0)
    )
    cost = np.diff(indptr) + n_codes
    groups = [
        _sparse_group(X, codes, features, n_codes, zeros)
        for features in parts_of_equal_cost(cost, _CELLS_OF_A_GROUP, _MOST_GROUPS)
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
    """Rows by rising code, the last of each with the highest bit."""
    places = np.zeros(n_codes + 1, np.int64)
    for i in range(len(codes)):
        places[np.int64(codes[i]) + 1] += 1
    for code in range(n_codes):
        places[code + 1] += places[code]
    for i in range(len(codes)):
        code = np.int64(codes[i])
        order[places[code]] = np.uint32(i)
        places[code] += 1
    for code in range(n_codes):  # each now says where the next one begins
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
    """on_left[i]: whether the code of row i is at most `code`."""
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
