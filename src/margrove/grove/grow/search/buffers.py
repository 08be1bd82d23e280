"""The arrays in which a search works, and in which it leaves the best split so far.

A found split is in two small arrays,

    best    feature (-1: none), four numbers of `scores.consider`, position, side of missing values
    score   the score

position counts the entries, or the groups in their order, that go left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove.grove.grow.search.scores import ABSOLUTE, GAIN_RATIO

__all__ = ["MISSING_LEFT", "POSITION", "GeneralBuffers", "SearchBuffers", "SortedRows",
           "new_general_buffers", "new_search_buffers"]  # fmt: skip

POSITION, MISSING_LEFT = 5, 6  # places in `best`
_BEST_SIZE = 7


class SearchBuffers(NamedTuple):
    """For every search.

    left, right    int64 (n_stats,)  sums of the rows on both sides
    offset         int64 (n_stats,)  mean of the node, in units of the numbers
    features       int64 (d,)  in the order in which they are looked at
    best, score    int64 (7,), float64 (1,)  see the module
    """

    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    features: np.ndarray
    best: np.ndarray
    score: np.ndarray


class GeneralBuffers(NamedTuple):
    """The same arrays, and those that only some searches need.

    lower, upper   float64 (n_stats,)  extremes of the targets
    group_...      sums of groups of rows with one code
    order, means, spare    for sorting
    chosen         the codes that go left; their number + 1 in counts[0], 0: a threshold
    ranks, by_rank int64 (n_outputs, rows); tree_weight, tree_sum, errors, again, group_order: for
                   medians
    records        float64 (d, 2)  gain and split information of each feature, for gain ratios
    """

    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    features: np.ndarray
    best: np.ndarray
    score: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group_stats: np.ndarray
    group_weight: np.ndarray
    group_samples: np.ndarray
    group_code: np.ndarray
    order: np.ndarray
    means: np.ndarray
    spare: np.ndarray
    chosen: np.ndarray
    counts: np.ndarray
    ranks: np.ndarray
    by_rank: np.ndarray
    tree_weight: np.ndarray
    tree_sum: np.ndarray
    errors: np.ndarray
    again: np.ndarray
    group_order: np.ndarray
    records: np.ndarray


class SortedRows(NamedTuple):
    """The rows of a node in the order of a feature.

    An entry is an integer: rank of the value << shift | place of the row, which is entry & mask.
    Entries start .. stop - 1 have a value, stop .. end - 1 have none.
    """

    entries: np.ndarray
    start: int
    stop: int
    end: int
    shift: np.unsignedinteger
    mask: np.integer


def new_search_buffers(n_features: int, n_stats: int) -> SearchBuffers:
    """Buffers without a split."""
    return SearchBuffers(
        np.zeros(n_stats, np.int64),
        np.zeros(n_stats, np.int64),
        np.zeros(n_stats, np.int64),
        np.arange(n_features),
        np.zeros(_BEST_SIZE, np.int64),
        np.zeros(1),
    )


def new_general_buffers(
    buffers: SearchBuffers, n_rows: int, n_groups: int, criterion: int
) -> GeneralBuffers:
    """Buffers for so many rows of a node and groups of a feature, on top of given ones."""
    n_stats = len(buffers.left)
    ranked = n_rows if criterion == ABSOLUTE else 0
    longest = max(ranked, n_groups)
    return GeneralBuffers(
        *buffers,
        lower=np.zeros(n_stats),
        upper=np.zeros(n_stats),
        group_stats=np.zeros((n_groups, n_stats), np.int64),
        group_weight=np.zeros(n_groups, np.int64),
        group_samples=np.zeros(n_groups, np.int64),
        group_code=np.zeros(n_groups, np.int64),
        order=np.zeros(longest, np.int64),
        means=np.zeros(longest),
        spare=np.zeros(longest, np.int64),
        chosen=np.zeros(n_groups, np.int64),
        counts=np.zeros(1, np.int64),
        ranks=np.zeros((n_stats, ranked), np.int64),
        by_rank=np.zeros((n_stats, ranked), np.int64),
        tree_weight=np.zeros(ranked + 1, np.int64),
        tree_sum=np.zeros(ranked + 1, np.int64),
        errors=np.zeros(ranked, np.int64),
        again=np.zeros(ranked, np.uint64),
        group_order=np.zeros(n_groups, np.int64),
        records=np.zeros((len(buffers.features) if criterion == GAIN_RATIO else 0, 2)),
    )
