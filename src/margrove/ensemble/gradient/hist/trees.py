"""Grows a tree of histogram boosting in one compiled loop, on one thread or several.

A row has a gradient g and a hessian h as integers, see `root`. The histogram of the smaller of two
children is counted; that of the other is the difference to their parent. A split takes two regions:
its rows are partitioned and counted, and then the features are searched. A small node has fewer
threads, or one.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel, share_tiles
from margrove.ensemble.gradient.hist.children import (
    allow_features_of_children,
    are_searched,
    join_children,
    take_next,
    write_children,
)
from margrove.ensemble.gradient.hist.leaves import (
    add_leaves,
    add_up_leaves,
    list_leaves,
    write_values,
)
from margrove.ensemble.gradient.hist.nodes import (
    ADDED,
    COST_OF_FEATURE,
    GROWN,
    LEAST_CHUNK,
    NEW,
    TOO_UNEVEN,
    tiles_of_rows,
)
from margrove.ensemble.gradient.hist.packed_words import SAMPLES_OF_A_WORD
from margrove.ensemble.gradient.hist.partitioning import mark_codes
from margrove.ensemble.gradient.hist.root import (
    FEW_SAMPLES,
    bits_of_gradients,
    may_be_packed,
    power_for,
    start_root,
)
from margrove.ensemble.gradient.hist.tiles import (
    CHUNKS_OF_A_MOVE,
    find_largest_of_worker,
    move_rows_back,
    partition_and_count,
    search_or_move,
    write_and_count,
)

__all__ = ["FILL_LEAVES", "MAKE_ROOT", "NO_JOB", "PARTITION", "SEARCH", "begin", "fill_leaves",
           "grow"]  # fmt: skip

# steps
NO_JOB, MAKE_ROOT, PARTITION, SEARCH, FILL_LEAVES = range(5)

# Costs of rows and cells; a unit is about half a nanosecond.
_COST_OF_A_THREAD = 16384
_COST_OF_A_ROW, _COST_OF_A_MOVE, _COST_OF_A_CELL = 8, 2, 12
_CHUNKS_OF_A_WORKER = 6
_MANY_LEAVES = 1024


@kernel(bare=True)
def begin(tree):
    """Reset a tree, so that a new one can be grown."""
    tree.state.phase[0], tree.state.job[0] = NEW, MAKE_ROOT


@kernel(bare=True)
def grow(pool, n_threads, table, source, rules, tree, space, work):
    """Grow a tree for about `work` cells; returns its phase afterwards.

    `begin` prepares a new tree. If it is TOO_UNEVEN, begin again with arrays for the integers g and
    h in the source. `pool` are the words of the pool.
    """
    state = tree.state[0]
    while state.job != NO_JOB and work > 0.0:
        work -= float(_cells_of_job(table, tree))
        if state.job == MAKE_ROOT:
            _make_root(pool, n_threads, table, source, rules, tree, space)
        elif state.job == PARTITION:
            _partition(pool, n_threads, table, source, rules, tree, space)
        elif state.job == SEARCH:
            _search(pool, n_threads, table, rules, tree, space)
        else:
            fill_leaves(pool, n_threads, source, rules, tree, space)
        state.job = _next_job(table, rules, tree, space)
    return state.phase


@kernel(inner=True)
def _n_rows(tree, node):
    return tree.nodes.end[node] - tree.nodes.start[node]


@kernel(inner=True)
def _cells_of_job(table, tree):
    """The approximate cost of a step."""
    state = tree.state[0]
    if state.job == SEARCH:
        return table.first[-1]
    if state.job == PARTITION:
        return _n_rows(tree, state.node) * (1 + len(table.features) // 2)
    if state.job == MAKE_ROOT:
        return len(tree.rows) * (4 + len(table.features))
    return 4 * len(tree.rows)


@kernel(inner=True)
def _next_job(table, rules, tree, space):
    """The step after the one that was done; the node that is split is chosen."""
    state = tree.state[0]
    if state.phase in (TOO_UNEVEN, ADDED):
        return NO_JOB
    if state.job != SEARCH and state.small >= 0:
        return SEARCH
    if state.n_frontier > 0 and state.n_leaves < rules.max_leaves:
        state.node = take_next(rules, tree)
        mark_codes(table, tree.nodes[state.node], space.goes_left)
        return PARTITION
    state.phase = GROWN
    return FILL_LEAVES if rules.adds else NO_JOB


@kernel(inner=True)
def _threads_for(cost, n_threads):
    """How many threads should share work of this cost."""
    return max(np.int64(1), min(cost // _COST_OF_A_THREAD, np.int64(n_threads)))


@kernel(inner=True)
def _workers_for(table, tree, space, n_rows, n_threads):
    """How many workers should count this number of rows; a queue of chunks is prepared."""
    cost_of_row = _COST_OF_A_ROW + len(table.cells_at)
    if len(table.list_starts) > 1:
        cost_of_row += len(table.entries) // max(table.n_rows, 1)
    size = _threads_for(n_rows * cost_of_row, min(n_threads, 1 + n_rows // LEAST_CHUNK))
    chunk = n_rows // (_CHUNKS_OF_A_WORKER * size) if size > 1 else n_rows
    tree.state[0].chunk = max(np.int64(LEAST_CHUNK), chunk)
    space.queue[0] = 0
    return size


# -- the root --


@kernel(inner=True)
def _make_root(pool, n_threads, table, source, rules, tree, space):
    """Write gradients as integers, and the root, and count it."""
    n, state, is_wide = len(source.rows), tree.state[0], len(source.g) > 0
    size = _workers_for(table, tree, space, n, n_threads)
    share_tiles(pool, size, size, find_largest_of_worker, (size, source, tree, space))
    largest_g, largest_h, count, copies = 0.0, 0.0, np.int64(0), np.int64(1)
    for worker in range(size):
        largest_g = max(largest_g, space.largest[worker, 0])
        largest_h = max(largest_h, space.largest[worker, 1])
        count += space.counts[worker, 0]
        copies = max(copies, space.counts[worker, 1])
    state.is_wide, state.copies = np.int64(is_wide), copies
    if count <= FEW_SAMPLES:
        state.is_uneven = 1
    bits = bits_of_gradients(tree, is_wide, count)
    g_scale, h_scale = power_for(largest_g, bits), power_for(largest_h, bits)
    in_words = not is_wide and count <= SAMPLES_OF_A_WORD
    counts_root = is_wide or may_be_packed(count, copies)
    size = _workers_for(table, tree, space, n, n_threads)
    share_tiles(pool, size, size, write_and_count,
                (size, counts_root, in_words, g_scale, h_scale, table, source, tree,
                 space))  # fmt: skip
    g, h, size_of_g = np.int64(0), np.int64(0), np.int64(0)
    for worker in range(size):
        g += space.counts[worker, 0]
        h += space.counts[worker, 1]
        size_of_g += space.counts[worker, 2]
    start_root(rules, tree, n, is_wide, (largest_g, largest_h), (count, copies), (g, h, size_of_g))
    state.small, state.large, state.counted, state.n_workers = 0, -1, 0, size
    if state.phase != TOO_UNEVEN:
        allow_features_of_children(table, rules, tree, space)


# -- a split --


@kernel(inner=True)
def _partition(pool, n_threads, table, source, rules, tree, space):
    """Split a node: partition its rows, and count a child if the children are searched."""
    state = tree.state[0]
    node = tree.nodes[state.node]
    n_left, n_right = node.left_count, node.count - node.left_count
    state.counted = -1
    if are_searched(rules, tree, state.node):
        state.counted = np.int64(n_left > n_right)
    in_words = tree.state[0].is_wide == 0 and min(n_left, n_right) <= SAMPLES_OF_A_WORD
    length = node.end - node.start
    state.n_workers = size = _workers_for(table, tree, space, length, n_threads)
    share_tiles(pool, size, size, partition_and_count,
                (size, in_words, table, source, tree, space))  # fmt: skip
    n_chunks, lefts = -(-length // state.chunk), space.lefts
    for chunk in range(n_chunks):
        lefts[chunk + 1] += lefts[chunk]
    write_children(rules, tree, state.node, node.start + lefts[n_chunks])
    if state.small < 0:
        n_tiles = -(-n_chunks // CHUNKS_OF_A_MOVE)
        size = _threads_for(_COST_OF_A_MOVE * length, n_threads)
        share_tiles(pool, n_tiles, size, move_rows_back, (state.node, tree, space))
        return
    counted = node.left + state.counted
    if counted == state.large:  # copies: the larger child may have fewer rows
        small, large = tree.nodes[state.small], tree.nodes[state.large]
        small.slot, large.slot = large.slot, small.slot
    allow_features_of_children(table, rules, tree, space)


@kernel(inner=True)
def _search(pool, n_threads, table, rules, tree, space):
    """Complete the histograms of the children, or of the root, and find their best splits."""
    state, n_moves, cost = tree.state[0], np.int64(0), np.int64(0)
    counted, other = np.int64(0), np.int64(-1)
    if state.large >= 0:
        counted = tree.nodes.left[state.node] + state.counted
        other = state.small + state.large - counted
        cost = _COST_OF_A_MOVE * _n_rows(tree, state.node)
        n_moves = -(-_n_rows(tree, state.node) // (state.chunk * CHUNKS_OF_A_MOVE))
    d = len(table.features)
    cost += _COST_OF_A_CELL * (table.first[d] + COST_OF_FEATURE * d)
    size = _threads_for(cost, n_threads)
    n_groups = np.int64(1) if size == 1 else np.int64(len(space.groups) - 1)
    share_tiles(pool, n_groups + n_moves, size, search_or_move,
                (n_groups, counted, other, state.node, table, rules, tree, space))  # fmt: skip
    state.n_searchers = n_groups
    join_children(table, rules, tree, space)


# -- leaves --


@kernel(inner=True)
def fill_leaves(pool, n_threads, source, rules, tree, space):
    """Compute the values of the leaves, and add them to the scores."""
    n_leaves, n_nodes = list_leaves(tree, space), tree.state[0].n_nodes
    for k in range(2 * n_nodes):
        space.leaf_sums[k] = 0
    n_tiles = tiles_of_rows(len(tree.rows), n_threads)
    share_tiles(pool, n_tiles, n_threads, add_up_leaves, (n_tiles, n_leaves, source, tree, space))
    n_parts = 1 + n_leaves // _MANY_LEAVES
    share_tiles(pool, n_parts, n_threads, write_values, (n_parts, n_leaves, rules, tree, space))
    share_tiles(pool, n_tiles, n_threads, add_leaves,
                (n_tiles, n_leaves, tree, space, source.raw))  # fmt: skip
    tree.state[0].phase = ADDED
