"""Tables as histogram boosting reads them: codes of at most 256 values, row by row.

Rows are visited in small parts of the table, node by node, and asked for all features at once, so
the codes of a row lie side by side. Columns that have the same code in most rows (one-hot columns,
counts of words) are kept as lists of the others instead: their commonest code is what the rest
leaves of the node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._jit import kernel
from margrove.ensemble.stump_tables import parts_of_equal_cost
from margrove.grove.binning import BinnedDataset

__all__ = ["BINS", "GradientGroup", "GradientTable", "read_gradient_table"]

BINS = 256  # room of a dense feature in a histogram
_RARE = 0.3  # share of other codes up to which the commonest is left out


class GradientGroup(NamedTuple):
    """Some features; a core works on one group at a time.

    features   int64 (m,)  their numbers: the dense ones first
    dense      uint8 (n, dense features)
    starts     int64 (n + 1,)  bins[starts[i] : starts[i + 1]] are the entries of row i
    bins       uint32  places in the histogram
    first      int64 (m,)  where the histogram of a feature begins
    n_codes    int64 (m,)  values; the code n_codes is "missing"
    omitted    int64 (m,)  the code without entries, -1 for dense features
    has_missing, is_category    bool (m,)
    size       int  cells of the histogram
    """

    features: np.ndarray
    dense: np.ndarray
    starts: np.ndarray
    bins: np.ndarray
    first: np.ndarray
    n_codes: np.ndarray
    omitted: np.ndarray
    has_missing: np.ndarray
    is_category: np.ndarray
    size: int


class GradientTable(NamedTuple):
    """n rows, d features in groups; `columns` are the codes column by column, uint8 (d, n)."""

    n_rows: int
    groups: list[GradientGroup]
    columns: np.ndarray


def read_gradient_table(data: BinnedDataset, n_groups: int = 1) -> GradientTable:
    """From codes of at most 255 values a column; in so many groups at most.

    What is found does not depend on the groups: the more features a group has, the less is spent
    on each row, but only one core works on it.
    """
    n, d = data.n_rows, data.n_features
    columns = data.codes.narrow
    commonest, rest = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for j in range(d):
        sizes = np.bincount(columns[j], minlength=1)
        commonest[j] = np.argmax(sizes)
        rest[j] = n - sizes[commonest[j]]
    is_sparse = rest < _RARE * n
    cost = np.where(is_sparse, rest, n) + 1
    groups = [
        _group(data, columns, features, is_sparse, commonest)
        for features in parts_of_equal_cost(cost, 1, n_groups)
    ]
    return GradientTable(n, groups, columns)


def _group(
    data: BinnedDataset,
    columns: np.ndarray,
    features: np.ndarray,
    is_sparse: np.ndarray,
    commonest: np.ndarray,
) -> GradientGroup:
    n = data.n_rows
    dense, sparse = features[~is_sparse[features]], features[is_sparse[features]]
    chosen = np.concatenate([dense, sparse])
    n_codes = data.n_codes[chosen]
    begins = np.cumsum(n_codes[len(dense) :] + 1) - (n_codes[len(dense) :] + 1)
    first = np.concatenate([BINS * np.arange(len(dense)), BINS * len(dense) + begins])
    size = BINS * len(dense) + int((n_codes[len(dense) :] + 1).sum())
    starts = np.zeros(n + 1, np.int64)
    _count_entries(columns, sparse, commonest[sparse], starts)
    np.cumsum(starts, out=starts)
    bins = np.empty(int(starts[-1]), np.uint32)
    _write_entries(columns, sparse, commonest[sparse], first[len(dense) :].astype(np.int64),
                   starts[:-1].copy(), bins)  # fmt: skip
    return GradientGroup(
        chosen.astype(np.int64),
        np.ascontiguousarray(columns[dense].T),
        starts,
        bins,
        first.astype(np.int64),
        n_codes.astype(np.int64),
        np.concatenate([np.full(len(dense), -1), commonest[sparse]]).astype(np.int64),
        data.has_missing[chosen],
        data.categorical[chosen],
        size,
    )


@kernel
def _count_entries(columns, features, commonest, starts):
    for k in range(len(features)):
        column = columns[features[k]]
        for i in range(len(column)):
            starts[i + 1] += np.int64(np.int64(column[i]) != commonest[k])


@kernel
def _write_entries(columns, features, commonest, first, places, bins):
    for k in range(len(features)):
        column = columns[features[k]]
        for i in range(len(column)):
            if np.int64(column[i]) != commonest[k]:
                bins[places[i]] = np.uint32(first[k] + np.int64(column[i]))
                places[i] += 1
