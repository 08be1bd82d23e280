"""Compiled loops for importances and proximities: permuted values, gains, pairs of rows.

Trees are in the format of `grove.serve.packed_trees`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.bootstrap import mixed_bits, number_below
from margrove.grove.serve import Kind, PackedTree

__all__ = [
    "ROWS_OF_A_TILE",
    "TableRows",
    "TreeWords",
    "add_gains",
    "count_shared",
    "group_by_leaf",
    "rises_of_features",
    "votes_of_leaves",
    "words_of",
]

ROWS_OF_A_TILE = 32  # of a table of pairs


class TableRows(NamedTuple):
    """Some rows of a table: the value of row i is X[rows[i], column_of[feature]].

    X           float64 or float32
    rows        int64 (m,)
    column_of   int64 (d,)
    """

    X: np.ndarray
    rows: np.ndarray
    column_of: np.ndarray


class TreeWords(NamedTuple):
    """A packed tree of N nodes.

    thresholds     float64 (2N,), links int64 (2N,): the same words, see `PackedTree.nodes`
    words          uint32  sets of categories, as bits
    n_categories   int64 (d,)
    """

    thresholds: np.ndarray
    links: np.ndarray
    words: np.ndarray
    n_categories: np.ndarray


def words_of(tree: PackedTree, kind: Kind) -> TreeWords:
    return TreeWords(tree.nodes.view(np.float64), tree.nodes, tree.words, kind.n_categories)


_LOW_WORD = np.int64(0xFFFFFFFF)
_FEATURE_BITS = np.int64(0xFFFFFFF)


@kernel(inner=True)
def _feature(tree, node):
    """The feature that a node tests; -1 for a leaf."""
    link = tree.links[2 * node + 1]
    return np.int64(-1) if link & _LOW_WORD == node else (link >> 32) & _FEATURE_BITS


@kernel(inner=True)
def _child(tree, node, feature, value):
    """The child to which a node sends a value; see `walk`."""
    link = tree.links[2 * node + 1]
    goes_left = value <= tree.thresholds[2 * node]
    if value != value:  # noqa: PLR0124
        goes_left = (link >> 61) & 1 == 1
    elif (link >> 60) & 1 == 1:
        goes_left = (link >> 61) & 1 == 1
        if value < tree.n_categories[feature]:
            category = np.int64(value)
            word = tree.words[np.int64(tree.thresholds[2 * node]) + category // 32]
            goes_left = (word >> np.uint32(category % 32)) & np.uint32(1) == 1
    left = link & _LOW_WORD
    return left if goes_left else left + 1


# -- permutations --


@kernel
def rises_of_features(
    table, tree, units, key, n_repeats, predicted, targets, weight, is_class, rises
):
    """rises[feature] += the mean increase of the loss when the values of the feature are permuted.

    Unit u is row units[u], with targets[units[u]] and weight[units[u]]. The path with a permuted
    value differs from the original path only after the first node that tests the feature. So each
    unit is walked again from that node, and not at all for features that its path does not test.
    Returns the mean loss without permutation.
    """
    X, rows, column_of = table
    n_features = len(rises)
    leaves = np.empty(len(units), np.int64)
    begins = np.zeros(n_features + 1, np.int64)
    last = np.full(n_features, -1, np.int64)
    total, error = 0.0, 0.0
    for u in range(len(units)):
        row, node = units[u], np.int64(0)
        feature = _feature(tree, node)
        while feature >= 0:
            if last[feature] != u:
                last[feature] = u
                begins[feature + 1] += 1
            value = X[rows[row], column_of[feature]]
            node = _child(tree, node, feature, value)
            feature = _feature(tree, node)
        leaves[u] = node
        total += weight[row]
        error += weight[row] * _loss(predicted, node, targets, row, is_class)
    if not total > 0.0:
        return np.nan
    for feature in range(n_features):
        begins[feature + 1] += begins[feature]
    asked, first = np.empty(begins[-1], np.int64), np.empty(begins[-1], np.int64)
    _first_tests(table, tree, units, begins, asked, first)
    order = np.empty(len(units), np.int64)
    for changed in range(n_features):
        if begins[changed] == begins[changed + 1]:
            continue
        rise = 0.0
        for repeat in range(n_repeats):
            _shuffle(mixed_bits(mixed_bits(key, np.uint64(changed)), np.uint64(repeat)), order)
            for k in range(begins[changed], begins[changed + 1]):
                u, node = asked[k], first[k]
                row, other = units[u], units[order[u]]
                feature = changed
                while feature >= 0:
                    source = other if feature == changed else row
                    value = X[rows[source], column_of[feature]]
                    node = _child(tree, node, feature, value)
                    feature = _feature(tree, node)
                if node != leaves[u]:
                    rise += weight[row] * (
                        _loss(predicted, node, targets, row, is_class)
                        - _loss(predicted, leaves[u], targets, row, is_class)
                    )
        rises[changed] += rise / n_repeats / total
    return error / total


@kernel
def _first_tests(table, tree, units, begins, asked, first):
    """For each feature, from begins[feature]: units whose paths test it, and the first node."""
    X, rows, column_of = table
    n_features = len(begins) - 1
    following = begins[:-1].copy()
    last = np.full(n_features, -1, np.int64)
    for u in range(len(units)):
        node = np.int64(0)
        feature = _feature(tree, node)
        while feature >= 0:
            if last[feature] != u:
                last[feature] = u
                asked[following[feature]] = u
                first[following[feature]] = node
                following[feature] += 1
            value = X[rows[units[u]], column_of[feature]]
            node = _child(tree, node, feature, value)
            feature = _feature(tree, node)


@kernel(inner=True)
def _loss(predicted, leaf, targets, row, is_class):
    """The share of wrong outputs, or the mean squared error over the outputs."""
    total = 0.0
    for o in range(targets.shape[1]):
        gap = predicted[leaf, o] - targets[row, o]
        if is_class:
            total += 1.0 if gap != 0.0 else 0.0
        else:
            total += gap * gap
    return total / targets.shape[1]


@kernel(inner=True)
def _shuffle(key, order):
    """A permutation of 0 .. n - 1 (Fisher and Yates)."""
    for k in range(len(order)):
        order[k] = k
    for k in range(len(order) - 1, 0, -1):
        other = np.int64(number_below(mixed_bits(key, np.uint64(k)), np.uint64(k + 1)))
        order[k], order[other] = order[other], order[k]


# -- impurity --


@kernel
def add_gains(table, tree, amount, values, shift, labels, numbers, gains):
    """gains[feature] += for each row, amount * (value of child - value of node) . target, summed
    over the nodes on its path that test the feature; `shift` (N,) is subtracted from the products.
    """
    X, rows, column_of = table
    is_class = labels.shape[0] > 0
    n_outputs = labels.shape[1] if is_class else numbers.shape[1]
    for i in range(len(rows)):
        node = np.int64(0)
        feature = _feature(tree, node)
        while feature >= 0:
            value = X[rows[i], column_of[feature]]
            child = _child(tree, node, feature, value)
            gain = shift[node] - shift[child]
            for o in range(n_outputs):
                if is_class:
                    gain += values[child, labels[i, o]] - values[node, labels[i, o]]
                else:
                    gain += (values[child, o] - values[node, o]) * numbers[i, o]
            gains[feature] += amount[i] * gain / n_outputs
            node = child
            feature = _feature(tree, node)


# -- votes and pairs --


@kernel
def votes_of_leaves(thresholds, leaves, values, n_pure, starts, votes):
    """votes[i, o]: the column of the largest class in leaf leaves[i]; the first of equal ones."""
    for i in range(len(leaves)):
        row = np.int64(thresholds[2 * leaves[i]])
        if row < n_pure:
            votes[i, 0] = row
            continue
        row -= n_pure
        for o in range(len(starts) - 1):
            winner = starts[o]
            for k in range(starts[o], starts[o + 1]):
                if values[row, k] > values[row, winner]:
                    winner = k
            votes[i, o] = winner


@region
def group_by_leaf(tree, leaves, first, begins, order):
    """Sort the rows by their leaf in a tree: those of leaf k are order[tree, begins[first + k] :
    begins[first + k + 1]], with first[tree].

    leaves and order are (T, m); begins is zero before the call. Rows with a leaf below 0 are left
    out.
    """
    own = begins[first[tree] : first[tree + 1]]
    for leaf in leaves[tree]:
        if leaf >= 0:
            own[leaf + 1] += 1
    for k in range(1, len(own)):
        own[k] += own[k - 1]
    following = own[:-1].copy()
    for i in range(leaves.shape[1]):
        leaf = leaves[tree, i]
        if leaf >= 0:
            order[tree, following[leaf]] = i
            following[leaf] += 1


@region(bare=True)
def count_shared(tile, row, leaves, begins, first, order, divisor, shares):
    """shares[i, j] = the number of trees in which rows row + i and j share a leaf, over `divisor`.

    leaves (T, n) of the rows i; first, begins and order from `group_by_leaf` of the rows j. The
    outer loop is over i, so shares[i], zero before the call, stays in the cache.
    """
    for i in range(tile * ROWS_OF_A_TILE, min((tile + 1) * ROWS_OF_A_TILE, len(shares))):
        for t in range(leaves.shape[0]):
            leaf = leaves[t, row + i]
            if leaf < 0:
                continue
            at = first[t] + leaf
            for k in range(begins[at], begins[at + 1]):
                shares[i, order[t, k]] += 1.0
        for j in range(shares.shape[1]):
            shares[i, j] /= divisor
