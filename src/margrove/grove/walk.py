"""Rows on their way through the trees of a forest, and what they gather there."""

from __future__ import annotations

import numpy as np

from margrove._jit import kernel
from margrove.grove.packed import Kind, PackedTree

__all__ = ["add_values", "add_votes", "leaves_of_rows", "leaves_of_some"]

_ROWS_AT_ONCE = 4096
_NO_ROWS = np.empty((0, 1))


def leaves_of_rows(tree: PackedTree, X: np.ndarray, kind: Kind, found: np.ndarray) -> None:
    """The leaf of each row of a dense X (NaN is missing), int32 (n,), in the tree's numbers."""
    thresholds = tree.nodes.view(np.float64)
    if not len(tree.words) and _walk(X, thresholds, tree.nodes, found):
        return
    _walk_carefully(X, thresholds, tree.nodes, tree.words, kind.n_categories, found)


def leaves_of_some(
    tree: PackedTree, X: np.ndarray, rows: np.ndarray, kind: Kind, found: np.ndarray
) -> None:
    """The same for some rows, in pieces: found[rows]."""
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        own = rows[begin : begin + _ROWS_AT_ONCE]
        part = X[own]
        leaves = np.empty(len(own), np.int32)
        leaves_of_rows(tree, part.toarray() if hasattr(part, "toarray") else part, kind, leaves)
        found[own] = leaves


def add_values(
    tree: PackedTree, leaves: np.ndarray, kind: Kind, amount: np.ndarray | None, sums: np.ndarray
) -> None:
    """sums[i] += the value of leaf leaves[i], `amount[i]` times; leaves below 0 are passed over.

    Of classes, the value is the shares of each output.
    """
    thresholds = tree.nodes.view(np.float64)
    if not kind.has_rows:
        _add_numbers(thresholds, leaves, amount, sums)
        return
    starts = np.concatenate([[0], np.cumsum(kind.n_classes)]) if kind.n_classes else _NO_STARTS
    _add_rows(thresholds, leaves, tree.values, kind.n_pure, starts.astype(np.int64), amount, sums)


_NO_STARTS = np.empty(0, np.int64)


def add_votes(
    tree: PackedTree, leaves: np.ndarray, kind: Kind, amount: np.ndarray | None, sums: np.ndarray
) -> None:
    """The same with one vote for the largest class of each output."""
    starts = np.concatenate([[0], np.cumsum(kind.n_classes)]).astype(np.int64)
    _add_votes(tree.nodes.view(np.float64), leaves, tree.values, kind.n_pure, starts, amount, sums)


@kernel
def _walk(X, thresholds, links, found):
    """For numbers that are all there: sixteen rows at a time, so that none waits for memory.

    False, at the first NaN that is asked for.
    """
    n, width = X.shape[0], 16
    at = np.zeros(width, np.int64)
    low, bits = np.int64(0xFFFFFFFF), np.int64(0xFFFFFFF)
    seen = 0.0
    for begin in range(0, n, width):
        size = min(width, n - begin)
        for k in range(width):
            at[k] = 0
        changed = np.int64(1)
        while changed:
            changed = np.int64(0)
            for k in range(size):
                node = np.uint64(2 * at[k])
                link = links[node + np.uint64(1)]
                value = X[np.uint64(begin + k), np.uint64((link >> 32) & bits)]
                seen += value - value  # NaN, if it is
                left = link & low
                inner = np.int64(left != at[k])
                changed |= inner
                at[k] = left + (inner & np.int64(value > thresholds[node]))
        if seen != 0.0:
            return False
        for k in range(size):
            found[begin + k] = at[k]
    return True


@kernel
def _walk_carefully(X, thresholds, links, words, n_categories, found):
    low, bits = np.int64(0xFFFFFFFF), np.int64(0xFFFFFFF)
    for i in range(X.shape[0]):
        node = np.int64(0)
        while True:
            link = links[2 * node + 1]
            left = link & low
            if left == node:
                break
            feature = (link >> 32) & bits
            value = X[i, feature]
            goes_left = value <= thresholds[2 * node]
            if value != value:  # noqa: PLR0124
                goes_left = (link >> 61) & 1 == 1
            elif (link >> 60) & 1 == 1:
                goes_left = (link >> 61) & 1 == 1
                if value < n_categories[feature]:
                    category = np.int64(value)
                    word = words[np.int64(thresholds[2 * node]) + category // 32]
                    goes_left = (word >> np.uint32(category % 32)) & np.uint32(1) == 1
            node = left if goes_left else left + 1
        found[i] = node


@kernel
def _add_numbers(thresholds, leaves, amount, sums):
    for i in range(len(leaves)):
        if leaves[i] >= 0:
            own = thresholds[2 * leaves[i]]
            sums[i, 0] += own if amount is None else own * amount[i]


@kernel
def _add_rows(thresholds, leaves, values, n_pure, starts, amount, sums):
    n_values = sums.shape[1]
    for i in range(len(leaves)):
        if leaves[i] < 0:
            continue
        row = np.int64(thresholds[2 * leaves[i]])
        times = 1.0 if amount is None else float(amount[i])
        if row < n_pure:
            sums[i, row] += times
            continue
        row -= n_pure
        if len(starts) == 0:
            for k in range(n_values):
                sums[i, k] += times * values[row, k]
            continue
        for o in range(len(starts) - 1):
            total = 0.0
            for k in range(starts[o], starts[o + 1]):
                total += values[row, k]
            for k in range(starts[o], starts[o + 1]):
                sums[i, k] += times * (values[row, k] / total)


@kernel
def _add_votes(thresholds, leaves, values, n_pure, starts, amount, sums):
    for i in range(len(leaves)):
        if leaves[i] < 0:
            continue
        row = np.int64(thresholds[2 * leaves[i]])
        times = 1.0 if amount is None else float(amount[i])
        if row < n_pure:
            sums[i, row] += times
            continue
        row -= n_pure
        for o in range(len(starts) - 1):
            winner = starts[o]
            for k in range(starts[o], starts[o + 1]):
                if values[row, k] > values[row, winner]:
                    winner = k
            sums[i, winner] += times
