"""The children of a split: their sums and bounds, and the search for their splits.

The frontier are the leaves for which a split was found. One of them at a time is split.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.gradient.hist.nodes import LEVEL_BY_LEVEL, SMALL_FIRST
from margrove.ensemble.gradient.hist.root import is_packed_node
from margrove.ensemble.gradient.hist.split_search import (
    MISSING_UNSEEN,
    gain_of_node,
    search_features,
    value_of,
)

__all__ = [
    "allow_features_of_children",
    "are_searched",
    "join_children",
    "may_be_split",
    "place_of_next",
    "search_children",
    "take_next",
    "write_children",
]


@kernel(inner=True)
def place_of_next(rules, tree):
    """The place in the frontier of the leaf that is split next: the one with the largest gain (the
    oldest of equal ones), or the oldest, or the last."""
    frontier, n_frontier = tree.frontier, tree.state[0].n_frontier
    best = n_frontier - 1
    if rules.order != SMALL_FIRST:
        for k in range(n_frontier - 1):
            leaf, other = frontier[k], frontier[best]
            gain, most = tree.nodes.gain[leaf], tree.nodes.gain[other]
            is_older = leaf < other
            if rules.order == LEVEL_BY_LEVEL:
                best = k if is_older else best
            elif gain > most or (gain == most and is_older):
                best = k
    return best


@kernel(inner=True)
def take_next(rules, tree):
    """Remove the leaf that is split next from the frontier and return it."""
    frontier, state = tree.frontier, tree.state[0]
    best = place_of_next(rules, tree)
    node = frontier[best]
    state.n_frontier -= 1
    frontier[best] = frontier[state.n_frontier]
    return node


@kernel(inner=True)
def are_searched(rules, tree, node):
    """Whether splits of the children are searched, once the node is split."""
    parent, state = tree.nodes[node], tree.state[0]
    may_go_on = state.n_leaves + 1 < rules.max_leaves and parent.depth + 1 < rules.max_depth
    largest = max(parent.left_count, parent.count - parent.left_count)
    return may_go_on and largest >= 2 * rules.min_samples


@kernel(inner=True)
def write_children(rules, tree, node, middle):
    """Write the children of a node; `state.small` and `state.large` are the children that are
    searched, or -1."""
    nodes, parent, state = tree.nodes, tree.nodes[node], tree.state[0]
    first = state.n_nodes
    parent.left = first
    state.n_nodes += 2
    is_searched = are_searched(rules, tree, node)
    state.n_leaves += 1
    for side in range(2):
        child, is_left = nodes[first + side], side == 0
        child.start = parent.start if is_left else middle
        child.end = middle if is_left else parent.end
        child.depth = parent.depth + 1
        child.left = child.place = -1
        child.total_g = parent.left_g if is_left else parent.total_g - parent.left_g
        child.total_h = parent.left_h if is_left else parent.total_h - parent.left_h
        child.count = parent.left_count if is_left else parent.count - parent.left_count
        child.is_packed = is_packed_node(tree, first + side)
        child.low, child.high = parent.low, parent.high
    _bound_children(rules, tree, node, first)
    for k in range(tree.open_sets.shape[1]):
        is_open = tree.open_sets[node, k] and rules.sets[k, parent.place]
        tree.open_sets[first, k] = tree.open_sets[first + 1, k] = is_open
    if not is_searched:
        tree.free[state.n_free] = parent.slot
        state.n_free += 1
        state.small = state.large = -1
        return
    is_left_small = 2 * (middle - parent.start) <= parent.end - parent.start
    small = first if is_left_small else first + 1
    large = 2 * first + 1 - small
    state.n_free -= 1
    nodes.slot[large], nodes.slot[small] = parent.slot, tree.free[state.n_free]
    state.small, state.large = small, large


@kernel(inner=True)
def _bound_children(rules, tree, node, first):
    """Bound the values of the children of a monotonic split by the middle of their values."""
    if len(rules.signs) == 0:
        return
    nodes = tree.nodes
    sign = rules.signs[nodes.place[node]]
    if sign == 0:
        return
    low, high = nodes.low[node], nodes.high[node]
    middle = 0.0
    for child in range(first, first + 2):
        g, h = nodes.total_g[child], nodes.total_h[child]
        middle += 0.5 * value_of(g, h, rules, tree.units, low, high)
    lower, higher = (first, first + 1) if sign > 0 else (first + 1, first)
    nodes.high[lower] = nodes.low[higher] = middle


# -- features --


@kernel(inner=True)
def allow_features_of_children(table, rules, tree, space):
    """Choose the features by which the children may be split."""
    if tree.open_sets.shape[1] == 0 and rules.tried >= 1.0:
        return
    for k in range(2):
        node = tree.state[0].small if k == 0 else tree.state[0].large
        if node >= 0:
            _allow_features(table, rules, tree, space, node, k)


@kernel(inner=True)
def _allow_features(table, rules, tree, space, node, k):
    """The features of open sets, and a random subset of these."""
    allowed = space.allowed[k]
    n_sets = tree.open_sets.shape[1]
    d = len(allowed)
    if n_sets > 0:
        for place in range(d):
            allowed[place] = False
        for group in range(n_sets):
            if tree.open_sets[node, group]:
                for place in range(d):
                    allowed[place] |= rules.sets[group, place]
    if rules.tried >= 1.0:
        return
    n = 0
    for feature in range(d):  # in the order of the features, not of their places
        place = table.places[feature]
        if n_sets == 0 or allowed[place]:
            space.shuffle[n] = place
            n += 1
        allowed[place] = False
    key = np.uint64(rules.seed) + np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    for step in range(math.ceil(rules.tried * n)):
        key += np.uint64(0xD1B54A32D192ED03)
        drawn = step + np.int64(_scrambled(key) % np.uint64(n - step))
        chosen = space.shuffle[drawn]
        space.shuffle[drawn] = space.shuffle[step]
        allowed[chosen] = True


@kernel(inner=True)
def _scrambled(key):
    """splitmix64"""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


# -- splits of the children --


@kernel(inner=True)
def search_children(group, table, rules, tree, space, first, last):
    """Find the best splits of both children by a group of features, at the places first ..
    last - 1."""
    for k in range(2):
        node = tree.state[0].small if k == 0 else tree.state[0].large
        space.best.place[group, k] = -1
        if not may_be_split(rules, tree, node):
            continue
        search_features(table, rules, tree.units, tree.nodes[node],
                        space.sums[tree.nodes.slot[node]], first, last, space.allowed[k],
                        space.scratch[group], space.order[group], space.best[group, k])  # fmt: skip


@kernel(inner=True)
def may_be_split(rules, tree, node):
    """Whether splits of a child are searched; -1 is none."""
    if node < 0 or tree.nodes.count[node] < 2 * rules.min_samples:
        return False
    return tree.nodes.depth[node] < rules.max_depth


@kernel(inner=True)
def join_children(table, rules, tree, space):
    """Take the best splits of all groups of features; children with a split join the frontier."""
    state = tree.state[0]
    for group in range(1, state.n_searchers):
        _take_better(table, space, group)
    for k in range(1, -1, -1):  # the small child last: it may be split first
        node = state.small if k == 0 else state.large
        if node >= 0:
            _join(rules, tree, space, node, k)


@kernel(inner=True)
def _take_better(table, space, group):
    """Replace the best splits of the first group if those of another group are better."""
    for k in range(2):
        best, other = space.best[0, k], space.best[group, k]
        if other.place < 0:
            continue
        is_even = (
            other.gain == best.gain and table.features[other.place] < table.features[best.place]
        )
        if best.place < 0 or other.gain > best.gain or is_even:
            best.gain = other.gain
            _copy_split(other, best)


@kernel(inner=True)
def _copy_split(split, to):
    """Copy a split except for its gain; `to` may be a node."""
    to.place, to.code = split.place, split.code
    to.missing_left, to.is_set = split.missing_left, split.is_set
    to.left_g, to.left_h, to.left_count = split.left_g, split.left_h, split.left_count
    for word in range(len(split.codes_left)):
        to.codes_left[word] = split.codes_left[word]


@kernel(inner=True)
def _join(rules, tree, space, node, k):
    """Add a node to the frontier if a split was found; otherwise free its histogram."""
    record, state, best = tree.nodes[node], tree.state[0], space.best[0, k]
    if best.place < 0:
        tree.free[state.n_free] = record.slot
        state.n_free += 1
        return
    _copy_split(best, record)
    if best.missing_left == MISSING_UNSEEN:
        record.missing_left = np.int64(2 * best.left_count > record.count)
    record.gain = best.gain - gain_of_node(record, rules, tree.units)
    tree.frontier[state.n_frontier] = node
    state.n_frontier += 1
