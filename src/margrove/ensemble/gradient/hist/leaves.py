"""Leaf values from exact sums of gradients, and their addition to the scores of the rows."""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import atomic_add, fetch, kernel, region, row_ahead, share_tiles
from margrove.ensemble.gradient.hist.nodes import (
    LARGEST_VALUE,
    LEAST_CHUNK,
    BoostedTree,
    share_of,
    tiles_of_rows,
)
from margrove.ensemble.gradient.hist.partitioning import code_of, is_code_left

__all__ = [
    "add_leaves",
    "add_to_others",
    "add_up_leaf",
    "add_up_leaves",
    "add_values",
    "list_leaves",
    "make_monotonic",
    "write_value",
    "write_values",
]


@kernel(inner=True)
def list_leaves(tree, space):
    """Write the leaves in the order of their rows; returns their number."""
    nodes, ends, stack = tree.nodes, space.ends, space.stack
    n_ends, n_stack, node = np.int64(0), np.int64(0), np.int64(0)
    while True:
        left = nodes.left[node]
        if left >= 0:
            stack[n_stack] = left + 1
            n_stack += 1
            node = left
            continue
        ends[n_ends] = node
        n_ends += 1
        if n_stack == 0:
            return n_ends
        n_stack -= 1
        node = stack[n_stack]


@kernel(inner=True)
def _first_leaf(tree, space, n_leaves, start):
    """The place in `ends` of the leaf that has the row at `start`."""
    low, high = np.int64(0), n_leaves - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tree.nodes.start[space.ends[middle]] <= start:
            low = middle
        else:
            high = middle - 1
    return low


@kernel(inner=True)
def add_up_leaves(tile, n_tiles, n_leaves, source, tree, space):
    """Add the gradients and hessians of a tile of rows to the sums of their leaves."""
    n = len(tree.rows)
    start, end = share_of(n, tile, n_tiles), share_of(n, tile + 1, n_tiles)
    for k in range(_first_leaf(tree, space, n_leaves, start), n_leaves):
        node = space.ends[k]
        begin, stop = max(tree.nodes.start[node], start), min(tree.nodes.end[node], end)
        if begin >= stop:
            break
        g, h = _sums_of_rows(source, tree.rows, begin, stop, tree.scales)
        atomic_add(space.leaf_sums, 2 * node, g)
        atomic_add(space.leaf_sums, 2 * node + 1, h)


@kernel(inner=True)
def write_values(tile, n_tiles, n_leaves, rules, tree, space):
    """Write the values of some of the leaves."""
    for k in range(share_of(n_leaves, tile, n_tiles), share_of(n_leaves, tile + 1, n_tiles)):
        node = space.ends[k]
        write_value(rules, tree, node, space.leaf_sums[2 * node : 2 * node + 2])


@kernel(inner=True)
def add_leaves(tile, n_tiles, n_leaves, tree, space, raw):
    """Add the values of the leaves to the scores of a tile of rows."""
    n = len(tree.rows)
    start, end = share_of(n, tile, n_tiles), share_of(n, tile + 1, n_tiles)
    for k in range(_first_leaf(tree, space, n_leaves, start), n_leaves):
        node = space.ends[k]
        begin, stop = max(tree.nodes.start[node], start), min(tree.nodes.end[node], end)
        if begin >= stop:
            break
        value = tree.nodes.value[node]
        for p in range(begin, stop):
            raw[np.uint64(tree.rows[p])] += value


@kernel(inner=True)
def add_up_leaf(source, rows, begin, stop, scales, sums):
    """Write sums int64 (2,) of gradients and hessians of rows[begin:stop], times scales (2,)."""
    sums[0], sums[1] = _sums_of_rows(source, rows, begin, stop, scales)


@kernel(inner=True)
def _sums_of_rows(source, rows, begin, stop, scales):
    g, h = np.int64(0), np.int64(0)
    has_copies = len(source.copies) > 0
    for p in range(begin, stop):
        ahead = np.uint64(row_ahead(rows, p, stop))
        fetch(source.gradient, ahead)
        fetch(source.hessian, ahead)
        row = np.uint64(rows[p])
        times = source.copies[row] if has_copies else np.int64(1)
        g += times * np.int64(np.rint(source.gradient[row] * scales[0]))
        h += times * np.int64(np.rint(source.hessian[row] * scales[1]))
    return g, h


@kernel(inner=True)
def write_value(rules, tree, node, sums):
    """Write the value of a leaf from the sums of its gradients and hessians, int64 (2,)."""
    record, hessian = tree.nodes[node], float(sums[1]) / tree.scales[1]
    record.hessian = hessian
    total = hessian + rules.l2
    value = -(float(sums[0]) / tree.scales[0]) / total if total > 0.0 else 0.0
    if abs(value) > rules.longest_step:
        beyond = math.log1p(abs(value) - rules.longest_step)
        value = math.copysign(rules.longest_step + beyond, value)
    value = min(max(value, record.low), record.high)
    record.value = min(max(rules.rate * value, -LARGEST_VALUE), LARGEST_VALUE)


@kernel(bare=True)
def add_values(pool, n_threads, tree, space, raw):
    """raw[i] += the value of row i's leaf, for the rows that the tree was grown on."""
    n_leaves = list_leaves(tree, space)
    n_tiles = tiles_of_rows(len(tree.rows), n_threads)
    share_tiles(pool, n_tiles, n_threads, add_leaves, (n_tiles, n_leaves, tree, space, raw))


@region(bare=True)
def add_to_others(tile, table, tree, rows, raw):
    """raw[i] += the value of row i's leaf, for a tile of the rows that the tree was not grown
    on."""
    for p in range(tile * LEAST_CHUNK, min((tile + 1) * LEAST_CHUNK, len(rows))):
        row = np.int64(rows[p])
        node = np.int64(0)
        while tree.nodes.left[node] >= 0:
            record = tree.nodes[node]
            code = code_of(table, record.place, row)
            is_left = is_code_left(record, code, table.n_codes[record.place])
            node = record.left + 1 - np.int64(is_left)
        raw[row] += tree.nodes.value[node]


def make_monotonic(tree: BoostedTree, signs: np.ndarray) -> None:
    """Clip leaves on the two sides of a monotonic split at the middle if their order is wrong.

    Nodes are visited from the bottom up: clipping a side does not change the order within it.
    """
    grown = tree.grown_nodes
    value, is_leaf = grown.value, grown.left < 0
    for node in np.flatnonzero(~is_leaf)[::-1]:
        sign = signs[grown.place[node]]
        if sign == 0:
            continue
        below = [
            np.flatnonzero(
                is_leaf & (grown.start >= grown.start[child]) & (grown.end <= grown.end[child])
            )
            for child in (grown.left[node], grown.left[node] + 1)
        ]
        low, high = below if sign > 0 else below[::-1]
        if value[low].max() > value[high].min():
            middle = 0.5 * value[low].max() + 0.5 * value[high].min()
            value[low] = np.minimum(value[low], middle)
            value[high] = np.maximum(value[high], middle)
