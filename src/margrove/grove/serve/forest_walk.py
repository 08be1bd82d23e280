"""Rows walk through the packed trees of a forest and collect values or votes of their leaves."""

from __future__ import annotations

import functools

import numpy as np

from margrove._runtime import kernel
from margrove.grove.serve.packed_trees import Kind, PackedTree

__all__ = [
    "add_numbers",
    "add_rows",
    "add_values",
    "add_votes",
    "add_votes_of_rows",
    "leaves_of_rows",
    "leaves_of_some",
    "starts_of_outputs",
    "walk",
    "walk_any",
]

_ROWS_AT_ONCE = 4096
_WALKS_AT_ONCE = 8
_NO_ROWS = np.empty((0, 1))


def leaves_of_rows(
    tree: PackedTree, X: np.ndarray, kind: Kind, found: np.ndarray, *, has_nan: bool
) -> None:
    """Write the leaf of each row of a dense X (NaN is missing) to found, int32 (n,)."""
    thresholds = tree.nodes.view(np.float64)
    if has_nan or len(tree.words) or len(X) < _WALKS_AT_ONCE:
        walk_any(X, thresholds, tree.nodes, tree.words, kind.n_categories, found)
    else:
        walk(np.ravel(X), X.shape[1], thresholds, tree.nodes, found)


def leaves_of_some(
    tree: PackedTree, X: np.ndarray, rows: np.ndarray, kind: Kind, found: np.ndarray
) -> None:
    """Write the leaves of some rows of X, dense or CSR, to found[rows]."""
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[begin : begin + _ROWS_AT_ONCE]
        cells = X[block].toarray() if hasattr(X, "toarray") else X[block]
        leaves = np.empty(len(block), np.int32)
        leaves_of_rows(tree, cells, kind, leaves, has_nan=bool(np.isnan(cells).any()))
        found[block] = leaves


def add_values(
    tree: PackedTree, leaves: np.ndarray, kind: Kind, amount: np.ndarray | None, sums: np.ndarray
) -> None:
    """sums[i] += amount[i] times the value of leaf leaves[i]; negative leaves are skipped.

    For classes, the value is the class shares of each output.
    """
    thresholds = tree.nodes.view(np.float64)
    if not kind.has_rows:
        add_numbers(thresholds, leaves, amount, sums)
        return
    starts = starts_of_outputs(kind.n_classes)
    add_rows(thresholds, leaves, tree.values, kind.n_pure, starts, amount, sums)


def add_votes(
    tree: PackedTree, leaves: np.ndarray, kind: Kind, amount: np.ndarray | None, sums: np.ndarray
) -> None:
    """Like `add_values`, with one vote for the most frequent class of each output as value."""
    starts = starts_of_outputs(kind.n_classes)
    add_votes_of_rows(
        tree.nodes.view(np.float64), leaves, tree.values, kind.n_pure, starts, amount, sums
    )


@functools.lru_cache(64)
def starts_of_outputs(n_classes: tuple[int, ...]) -> np.ndarray:
    """Where the columns of each output begin and end; empty for regression."""
    if not n_classes:
        return np.empty(0, np.int64)
    return np.concatenate([[0], np.cumsum(n_classes)]).astype(np.int64)


@kernel
def walk(cells, n_features, thresholds, links, found):
    """Find the leaves of rows without missing values and categories.

    Eight rows walk at a time: while one waits for memory, the others go on. `cells` are the rows,
    at least eight, one after the other.
    """
    at = np.zeros(_WALKS_AT_ONCE, np.int64)
    low, bits = np.int64(0xFFFFFFFF), np.int64(0xFFFFFFF)
    n = len(found)
    for start in range(0, n, _WALKS_AT_ONCE):
        begin = min(start, n - _WALKS_AT_ONCE)  # the last eight may overlap those before
        for k in range(_WALKS_AT_ONCE):
            at[k] = 0
        is_walking = np.int64(1)
        while is_walking:
            is_walking = np.int64(0)
            row = np.uint64(begin * n_features)
            for k in range(_WALKS_AT_ONCE):  # a constant, so that the compiler unrolls the loop
                node = at[k]
                link = links[np.uint64(2 * node + 1)]
                value = cells[row + np.uint64((link >> 32) & bits)]
                left = link & low
                inner = np.int64(left != node)
                at[k] = left + (inner & np.int64(value > thresholds[np.uint64(2 * node)]))
                is_walking |= inner
                row += np.uint64(n_features)
        for k in range(_WALKS_AT_ONCE):
            found[begin + k] = at[k]


@kernel
def walk_any(X, thresholds, links, words, n_categories, found):
    """Find the leaves of rows that may have missing values and categories, one by one."""
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
def add_numbers(thresholds, leaves, amount, sums):
    for i in range(len(leaves)):
        if leaves[i] >= 0:
            value = thresholds[2 * leaves[i]]
            sums[i, 0] += value if amount is None else value * amount[i]


@kernel
def add_rows(thresholds, leaves, values, n_pure, starts, amount, sums):
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
def add_votes_of_rows(thresholds, leaves, values, n_pure, starts, amount, sums):
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
