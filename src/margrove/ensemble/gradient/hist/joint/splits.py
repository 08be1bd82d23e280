"""Growing a tree whose rows are with several members: the splits.

Every member has the nodes of the tree and the sums over the rows of all members (`joint_rows`), so
all of them find the same splits. Nodes are split in the same order and with the same functions as
in `trees`. Sums are integers, so the tree is the same bit for bit.

Exchanges take time. So several nodes are partitioned at once, including nodes that may not be split
in the end: such a node stays a leaf, and its rows are still contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, record_type, records
from margrove.ensemble.gradient.hist.binning import GradientTable
from margrove.ensemble.gradient.hist.children import (
    allow_features_of_children,
    join_children,
    place_of_next,
    search_children,
    take_next,
    write_children,
)
from margrove.ensemble.gradient.hist.histograms import fill_omitted, subtract
from margrove.ensemble.gradient.hist.joint.rows import ORDER
from margrove.ensemble.gradient.hist.leaves import write_value
from margrove.ensemble.gradient.hist.nodes import (
    BEST_FIRST,
    GROWN,
    LEVEL_BY_LEVEL,
    SMALL_FIRST,
    BoostedTree,
)
from margrove.ensemble.gradient.hist.packed_words import SAMPLES_OF_A_WORD
from margrove.ensemble.gradient.hist.root import bits_of_gradients, power_for, start_root

__all__ = ["Expansions", "begin_root", "choose_scales", "go_on", "in_usual_order", "new_expansions",
           "search_root", "write_values"]  # fmt: skip

WAITING = record_type(
    [
        ("n_orders", np.int64),
        ("reply_size", np.int64),  # size of the reply to these orders
        ("n_partitioned", np.int64),  # number of nodes partitioned before these orders
    ]
)

UNKNOWN, UNCOUNTED = -1, -2  # the node was not partitioned; or none of its children was counted
_LIKELY = 0.1  # a node with this share of the gain of the next split is likely to be split soon
_CHEAP = 16384  # partitioning this number of samples is faster than one more message
_SLOTS_OF_A_PATH = 48  # see `rounds`


class Expansions(NamedTuple):
    """What is known about nodes whose rows are partitioned, indexed by the nodes of the tree.

    handles    int64 (nodes,)  the number of the node in `joint_rows`
    entries    int64 (nodes,)  the place in the pool of the sums of a child; UNKNOWN or UNCOUNTED
    children   int64 (nodes,)  the number of the left child there
    rows_left  int64 (nodes,)  number of rows that went left
    counted    int64 (nodes,)  0 or 1: which child was counted
    pool       int64 (entries, 3, cells)
    free       int64 (entries,)  free places in the pool; n_free int64 (1,) is their number
    orders     ORDER (most,)  the next nodes to be partitioned
    waiting    WAITING (1,)  the orders that the tree waits for
    """

    handles: np.ndarray
    entries: np.ndarray
    children: np.ndarray
    rows_left: np.ndarray
    counted: np.ndarray
    pool: np.ndarray
    free: np.ndarray
    n_free: np.ndarray
    orders: np.recarray
    waiting: np.recarray


def new_expansions(
    table: GradientTable, max_leaves: int, n_entries: int, n_orders: int
) -> Expansions:
    nodes = 2 * max_leaves + 1
    return Expansions(
        handles=np.zeros(nodes, np.int64),
        entries=np.zeros(nodes, np.int64),
        children=np.zeros(nodes, np.int64),
        rows_left=np.zeros(nodes, np.int64),
        counted=np.zeros(nodes, np.int64),
        pool=np.zeros((n_entries, 3, table.n_cells), np.int64),
        free=np.arange(n_entries),
        n_free=np.full(1, n_entries),
        orders=records(min(n_orders, nodes), ORDER),
        waiting=records(1, WAITING),
    )


@kernel(bare=True)
def choose_scales(tree, is_wide, largest, counts, scales):
    """Write scales float64 (2,), the factors on gradients and hessians; see
    `find_largest_of_rows`."""
    bits = bits_of_gradients(tree, is_wide, counts[0])
    scales[0], scales[1] = power_for(largest[0], bits), power_for(largest[1], bits)


@kernel(bare=True)
def begin_root(rules, tree, expansions, n, is_wide, largest, counts, totals):
    """Write the root of n rows if the integers are precise enough; returns the phase."""
    start_root(rules, tree, n, is_wide, largest, counts, totals)
    expansions.handles[0], expansions.entries[0] = 0, UNKNOWN
    expansions.n_free[0] = len(expansions.free)
    for k in range(len(expansions.free)):
        expansions.free[k] = k
    waiting = expansions.waiting[0]
    waiting.n_orders = waiting.reply_size = waiting.n_partitioned = 0
    return tree.state[0].phase


@kernel(bare=True)
def search_root(table, rules, tree, space, reply):
    """Search the best split of the root from its sums in `reply`."""
    root = tree.nodes[0]
    sums, cells = space.sums[root.slot], table.first[len(table.features)]
    for k in range(1 if root.is_packed == 1 else 3):
        for cell in range(cells):
            sums[k, cell] = reply[k * cells + cell]
    fill_omitted(table, np.int64(0), np.int64(len(table.features)), sums, root)
    tree.state[0].small, tree.state[0].large = 0, -1
    _search(table, rules, tree, space)


@kernel(inner=True)
def _search(table, rules, tree, space):
    """Find the best splits of the nodes `state.small` and `state.large`."""
    allow_features_of_children(table, rules, tree, space)
    search_children(np.int64(0), table, rules, tree, space, np.int64(0),
                     np.int64(len(table.features)))  # fmt: skip
    tree.state[0].n_searchers = 1
    join_children(table, rules, tree, space)


@kernel(bare=True)
def go_on(table, rules, tree, space, expansions, in_any_order, reply):
    """Read the reply to the last orders, split nodes, and give new orders; returns their number, 0
    if the tree is grown, and the size of the reply to them.

    in_any_order: all nodes that can be split will be split, and their order does not matter.
    """
    _take_reply(table, expansions, reply)
    state, waiting = tree.state[0], expansions.waiting[0]
    waiting.n_orders = waiting.reply_size = 0
    while state.n_frontier > 0 and state.n_leaves < rules.max_leaves:
        if in_any_order:
            node = _take_known(tree, expansions)
            if node < 0:
                _give_orders(table, rules, tree, expansions, in_any_order)
                break
        else:
            if expansions.entries[tree.frontier[place_of_next(rules, tree)]] == UNKNOWN:
                _give_orders(table, rules, tree, expansions, in_any_order)
                break
            node = take_next(rules, tree)
        _split(table, rules, tree, space, expansions, node)
    if waiting.n_orders == 0:
        state.phase = GROWN
    return waiting.n_orders, waiting.reply_size


@kernel(inner=True)
def _take_reply(table, expansions, reply):
    waiting, cells = expansions.waiting[0], table.first[len(table.features)]
    for k in range(waiting.n_orders):
        order = expansions.orders[k]
        node = order.number
        expansions.rows_left[node] = reply[k]
        expansions.children[node] = 2 * (waiting.n_partitioned + k) + 1
        expansions.counted[node] = order.counted
        expansions.entries[node] = UNCOUNTED
        if order.counted < 0:
            continue
        expansions.n_free[0] -= 1
        entry = expansions.free[expansions.n_free[0]]
        expansions.entries[node] = entry
        at = order.at
        for row in range(1 if order.is_packed == 1 else 3):
            sums = expansions.pool[entry, row]
            for cell in range(cells):
                sums[cell] = reply[at + cell]
            at += cells
    waiting.n_partitioned += waiting.n_orders


@kernel(inner=True)
def _give_orders(table, rules, tree, expansions, in_any_order):
    """Write orders for the node that is split next, and for others that are likely to follow.

    One place in the pool is reserved for the next node, which frees it immediately.
    """
    state, frontier, orders = tree.state[0], tree.frontier, expansions.orders
    left, n_frontier = rules.max_leaves - state.n_leaves, state.n_frontier
    most = min(n_frontier, len(orders))
    if rules.order != SMALL_FIRST:
        most = min(most, left)
        _sort_frontier(rules, tree)
    elif in_any_order and len(tree.free) <= rules.max_leaves:
        most = min(most, max(1, state.n_free - _SLOTS_OF_A_PATH))
    least = -np.inf
    if rules.order == BEST_FIRST:
        least = _LIKELY * tree.nodes.gain[frontier[n_frontier - 1]]
    n, at_most = np.int64(0), max(expansions.n_free[0] - 1, 1)
    for k in range(most):
        node = frontier[n_frontier - 1 - k]
        is_known = expansions.entries[node] != UNKNOWN
        is_early = tree.nodes.gain[node] < least and tree.nodes.count[node] > _CHEAP
        if is_known or is_early or n >= at_most:
            continue
        _give_order(rules, tree, expansions, node, n, left == 1)
        n += 1
    size, cells = n, table.first[len(table.features)]
    for k in range(n):
        orders[k].at = size
        if orders[k].counted >= 0:
            size += cells if orders[k].is_packed == 1 else 3 * cells
    expansions.waiting[0].n_orders, expansions.waiting[0].reply_size = n, size


@kernel(inner=True)
def _sort_frontier(rules, tree):
    """Sort the frontier in the order in which nodes would be split, the next one last."""
    frontier = tree.frontier
    for k in range(1, tree.state[0].n_frontier):
        node, place = frontier[k], k
        while place > 0 and _is_sooner(rules, tree, frontier[place - 1], node):
            frontier[place] = frontier[place - 1]
            place -= 1
        frontier[place] = node


@kernel(inner=True)
def _is_sooner(rules, tree, node, other):
    if rules.order == LEVEL_BY_LEVEL:
        return node < other
    gain, most = tree.nodes.gain[node], tree.nodes.gain[other]
    return gain > most or (gain == most and node < other)


@kernel(inner=True)
def _give_order(rules, tree, expansions, node, k, is_last):
    """Write an order; the child with fewer samples is counted, if a child may be split."""
    record, order = tree.nodes[node], expansions.orders[k]
    order.node, order.number = expansions.handles[node], node
    order.place, order.code = record.place, record.code
    order.missing_left, order.is_set = record.missing_left, record.is_set
    for word in range(len(order.codes_left)):
        order.codes_left[word] = record.codes_left[word]
    n_left, n_right = record.left_count, record.count - record.left_count
    is_packed = min(n_left, n_right) <= SAMPLES_OF_A_WORD and tree.state[0].is_wide == 0
    order.is_packed = np.int64(is_packed)
    order.counted = np.int64(n_right < n_left)
    is_deep = record.depth + 1 >= rules.max_depth
    if is_last or is_deep or max(n_left, n_right) < 2 * rules.min_samples:
        order.counted = -1


@kernel(inner=True)
def _take_known(tree, expansions):
    """Remove and return the last node of the frontier that was partitioned, or -1; the others stay
    in order."""
    frontier, state = tree.frontier, tree.state[0]
    k = state.n_frontier - 1
    while k >= 0 and expansions.entries[frontier[k]] == UNKNOWN:
        k -= 1
    if k < 0:
        return np.int64(-1)
    node = frontier[k]
    state.n_frontier -= 1
    for other in range(k, state.n_frontier):
        frontier[other] = frontier[other + 1]
    return node


@kernel(inner=True)
def _split(table, rules, tree, space, expansions, node):
    state, nodes = tree.state[0], tree.nodes
    first, entry = state.n_nodes, expansions.entries[node]
    state.node = node
    write_children(rules, tree, node, nodes.start[node] + expansions.rows_left[node])
    for side in range(2):
        expansions.handles[first + side] = expansions.children[node] + side
        expansions.entries[first + side] = UNKNOWN
    if state.small >= 0:
        _take_sums(table, tree, space, expansions, entry, first + expansions.counted[node])
        _search(table, rules, tree, space)
    if entry >= 0:
        expansions.free[expansions.n_free[0]] = entry
        expansions.n_free[0] += 1


@kernel(inner=True)
def _take_sums(table, tree, space, expansions, entry, counted):
    """Set the histograms of both children: one was counted, the other is the difference.

    The counted child may be the larger one, because numbers of rows are not known in advance.
    """
    nodes, state = tree.nodes, tree.state[0]
    other = state.small + state.large - counted
    if counted == state.large:
        nodes.slot[counted], nodes.slot[other] = nodes.slot[other], nodes.slot[counted]
    sums, cells = space.sums[nodes.slot[counted]], table.first[len(table.features)]
    for k in range(1 if nodes.is_packed[counted] == 1 else 3):
        for cell in range(cells):
            sums[k, cell] = expansions.pool[entry, k, cell]
    fill_omitted(table, np.int64(0), np.int64(len(table.features)), sums, nodes[counted])
    subtract(space.sums[nodes.slot[other]], nodes.is_packed[state.node] == 1, sums,
             nodes.is_packed[counted] == 1, nodes.is_packed[other] == 1, np.int64(0),
             cells)  # fmt: skip


@kernel(bare=True)
def write_values(rules, tree, leaves, sums):
    """Write the values of leaves from their sums, int64 (leaves, 2)."""
    for k in range(len(leaves)):
        write_value(rules, tree, leaves[k], sums[k])


@kernel(bare=True)
def _renumber(tree, numbers):
    """Write the numbers that nodes have if the smaller of two children is always split first."""
    nodes, stack = tree.nodes, tree.frontier
    numbers[0] = 0
    n, n_waiting = np.int64(1), np.int64(0)
    if nodes.left[0] >= 0:
        stack[0], n_waiting = 0, np.int64(1)
    while n_waiting > 0:
        n_waiting -= 1
        node = stack[n_waiting]
        left = nodes.left[node]
        numbers[left], numbers[left + 1] = n, n + 1
        n += 2
        n_left = nodes.end[left] - nodes.start[left]
        small = left if 2 * n_left <= nodes.end[node] - nodes.start[node] else left + 1
        for child in (2 * left + 1 - small, small):
            if nodes.left[child] >= 0:
                stack[n_waiting] = child
                n_waiting += 1


def in_usual_order(tree: BoostedTree, expansions: Expansions) -> None:
    """Renumber the nodes of a grown tree as if smaller children had been split first."""
    n = tree.n_nodes
    numbers = np.empty(n, np.int64)
    _renumber(tree, numbers)
    order = np.argsort(numbers)
    tree.nodes[:n] = tree.nodes[order]
    left = tree.nodes.left[:n]
    left[left >= 0] = numbers[left[left >= 0]]
    expansions.handles[:n] = expansions.handles[order]
