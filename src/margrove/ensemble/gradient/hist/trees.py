"""Grows a tree of histogram boosting in one compiled loop, on one thread or several.

A row has a gradient g and a hessian h as integers, see `root`. The histogram of the smaller of two
children is counted; that of the other is the difference to their parent. Threads share a step by
features: each counts and searches its own features. For a large node, they share the rows instead
and add their counts.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import (
    join_team,
    kernel,
    release_helpers,
    report_done,
    size_of_step,
    start_step,
    wait_for_helpers,
    wait_for_step,
    wake_helpers,
)
from margrove.ensemble.gradient.hist.children import (
    allow_features_of_children,
    join_children,
    search_children,
    take_next,
    write_children,
)
from margrove.ensemble.gradient.hist.histograms import count_small, subtract
from margrove.ensemble.gradient.hist.leaves import fill_leaves
from margrove.ensemble.gradient.hist.nodes import (
    ADDED,
    ASSISTS,
    GROWN,
    LEADS,
    NEW,
    TOO_UNEVEN,
    BoostedTree,
)
from margrove.ensemble.gradient.hist.partitioning import mark_codes, partition_rows
from margrove.ensemble.gradient.hist.root import make_root

__all__ = ["FILL_LEAVES", "MAKE_ROOT", "NO_JOB", "PARTITION", "SEARCH", "begin", "grow"]

_ROWS_TO_PARTITION = 16000  # with more rows, threads partition a node together
_COST_OF_FEATURE = 16  # cost of searching a feature, in addition to its cells

# steps that threads may share
NO_JOB, MAKE_ROOT, PARTITION, SEARCH, FILL_LEAVES = range(5)


def begin(tree: BoostedTree) -> None:
    """Reset a tree, so that a new one can be grown."""
    tree.state.phase[0], tree.state.job[0] = NEW, MAKE_ROOT


@kernel(bare=True)
def grow(last_call, call, team, role, table, source, rules, tree, space, work):
    """Grow a tree for about `work` cells; returns its phase afterwards.

    `begin` prepares a new tree. If it is TOO_UNEVEN, begin again with arrays for the integers g and
    h in the source. `role` is ALONE, or the role of a thread in a team; a thread that ASSISTS does
    its share of the steps until the leader is done.
    """
    state = tree.state[0]
    order, rank, size = np.int64(0), np.int64(0), np.int64(1)
    if role == ASSISTS:
        rank = join_team(team)
        if rank < 0:
            return np.int64(-1)
    elif role == LEADS:
        state.step = 0
        wake_helpers(last_call, call)
    while True:
        if role == ASSISTS:
            order = wait_for_step(team, order)
            size = size_of_step(order)
            if order < 0:
                report_done(team)
                return np.int64(-1)
        elif state.job == NO_JOB or work <= 0.0:
            break
        elif role == LEADS and _is_worth_sharing(tree):
            state.step += 1
            size = start_step(team, state.step)
        else:
            size = np.int64(1)
        if rank < size:
            _do(team, rank, size, table, source, rules, tree, space)
        if role == ASSISTS:
            if rank < size:
                report_done(team)
            continue
        if size > 1:
            wait_for_helpers(team, size - 1)
        work -= float(_cells_of_job(table, tree))
        state.job = _next_job(table, rules, tree, space)
    if role == LEADS:
        release_helpers(team)
    return state.phase


@kernel(inner=True)
def _is_worth_sharing(tree):
    state = tree.state[0]
    is_small = _n_rows(tree, state.node) < _ROWS_TO_PARTITION
    return state.job != PARTITION or not is_small


@kernel(inner=True)
def _n_rows(tree, node):
    return tree.nodes.end[node] - tree.nodes.start[node]


@kernel(inner=True)
def _cells_of_job(table, tree):
    """The approximate cost of a step."""
    state = tree.state[0]
    if state.job == SEARCH:
        return _n_rows(tree, state.small) * len(table.features) + table.first[-1]
    if state.job == PARTITION:
        return _n_rows(tree, state.node)
    return 4 * len(tree.rows)


@kernel(inner=True)
def _next_job(table, rules, tree, space):
    """Store the results of the step that was done, and return the next step."""
    state = tree.state[0]
    if state.job == MAKE_ROOT:
        if state.phase == TOO_UNEVEN:
            return NO_JOB
        state.small, state.large = 0, -1
        allow_features_of_children(table, rules, tree, space)
        return SEARCH
    if state.job == FILL_LEAVES:
        state.phase = ADDED
        return NO_JOB
    if state.job == SEARCH:
        join_children(table, rules, tree, space)
    else:
        write_children(rules, tree, state.node, state.middle)
        if state.small >= 0:
            allow_features_of_children(table, rules, tree, space)
            return SEARCH
    if state.n_frontier > 0 and state.n_leaves < rules.max_leaves:
        state.node = take_next(rules, tree)
        mark_codes(table, tree.nodes[state.node], space.goes_left)
        return PARTITION
    state.phase = GROWN
    return FILL_LEAVES if rules.adds else NO_JOB


@kernel(inner=True)
def _do(team, rank, size, table, source, rules, tree, space):
    job = tree.state[0].job
    if job == MAKE_ROOT:
        make_root(team, rank, size, source, rules, tree, space)
    elif job == PARTITION:
        partition_rows(team, rank, size, table, tree, space)
    elif job == SEARCH:
        _search(team, rank, size, table, source, rules, tree, space)
    else:
        fill_leaves(team, rank, size, source, rules, tree, space)


@kernel(inner=True)
def _search(team, rank, size, table, source, rules, tree, space):
    """A thread's share of a search: histograms and best splits of its features."""
    nodes, state = tree.nodes, tree.state[0]
    small, large = state.small, state.large
    first, last = _first_place(table, rank, size), _first_place(table, rank + 1, size)
    count_small(team, rank, size, table, source, tree, space, first, last)
    if large >= 0:
        subtract(space.sums[nodes.slot[large]], nodes.is_packed[state.node] == 1,
                 space.sums[nodes.slot[small]], nodes.is_packed[small] == 1,
                 nodes.is_packed[large] == 1, table.first[first], table.first[last])  # fmt: skip
    search_children(rank, table, rules, tree, space, first, last)
    if rank == 0:
        state.n_searchers = size


@kernel(inner=True)
def _first_place(table, rank, size):
    """The first place of a thread: all threads have about as many cells, and do not share bytes."""
    d = len(table.features)
    wanted = ((table.first[d] + _COST_OF_FEATURE * d) * rank) // size
    low, high = 0, d
    while low < high:
        middle = (low + high) // 2
        if table.first[middle] + _COST_OF_FEATURE * middle < wanted:
            low = middle + 1
        else:
            high = middle
    if low < d and table.columns[low] >= 0:
        column = table.columns[low]
        if low > table.places_at[column]:
            low = table.places_at[column + 1]
    return low
