"""Leaf values from exact sums of gradients, and their addition to the scores of the rows."""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import barrier, fetch, kernel, row_ahead
from margrove.ensemble.gradient.hist.nodes import LARGEST_VALUE, BoostedTree, share_of
from margrove.ensemble.gradient.hist.partitioning import code_of, is_code_left

__all__ = [
    "add_to_others",
    "add_up_leaf",
    "add_values",
    "fill_leaves",
    "make_monotonic",
    "write_value",
]


@kernel(inner=True)
def fill_leaves(team, rank, size, source, rules, tree, space):
    """A thread's share of computing leaf values and adding them to the scores."""
    nodes, n, n_nodes = tree.nodes, len(tree.rows), tree.state[0].n_nodes
    start, end = share_of(n, rank, size), share_of(n, rank + 1, size)
    sums = space.leaf_sums[rank]
    for node in range(n_nodes):
        sums[node, 0] = sums[node, 1] = 0
        begin, stop = max(nodes.start[node], start), min(nodes.end[node], end)
        if nodes.left[node] < 0 and begin < stop:
            add_up_leaf(source, tree.rows, begin, stop, tree.scales, sums[node])
    barrier(team, size)
    if rank == 0:
        for other in range(1, size):
            for node in range(n_nodes):
                sums[node, 0] += space.leaf_sums[other, node, 0]
                sums[node, 1] += space.leaf_sums[other, node, 1]
        for node in range(n_nodes):
            if nodes.left[node] < 0:
                write_value(rules, tree, node, sums[node])
    barrier(team, size)
    _add_to(tree, start, end, source.raw)


@kernel(inner=True)
def add_up_leaf(source, rows, begin, stop, scales, sums):
    """Write sums int64 (2,) of gradients and hessians of rows[begin:stop], times scales (2,)."""
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
    sums[0], sums[1] = g, h


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


@kernel(inner=True)
def _add_to(tree, start, end, raw):
    nodes = tree.nodes
    for node in range(tree.state[0].n_nodes):
        if nodes.left[node] < 0:
            value = nodes.value[node]
            for p in range(max(nodes.start[node], start), min(nodes.end[node], end)):
                raw[np.uint64(tree.rows[p])] += value


@kernel(bare=True)
def add_values(tree, raw):
    """raw[i] += the value of row i's leaf, for the rows that the tree was grown on."""
    _add_to(tree, 0, len(tree.rows), raw)


@kernel(bare=True)
def add_to_others(table, tree, rows, raw):
    """raw[i] += the value of row i's leaf, for rows that the tree was not grown on."""
    for p in range(len(rows)):
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
