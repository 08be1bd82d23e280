"""Trees of histogram boosting whose rows are in several places: the part of who leads.

The leader has the nodes of a tree and the sums of all shards (`shards`), no rows, and splits the
nodes in the order and by the functions of `trees`: sums are integers, so that the tree is the same
bit for bit.

Messages take time. So the leader orders several nodes to be partitioned at once, also ones of which
it does not know yet whether it will come to split them: such a node may stay a leaf, and its rows
are still side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, record_type, records
from margrove.ensemble.gradient.hist.children import (
    allow_features_of_children,
    join_children,
    place_of_next,
    search_children,
    take_next,
    write_children,
)
from margrove.ensemble.gradient.hist.histograms import fill_omitted, subtract
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
from margrove.ensemble.gradient.hist.shards import ORDER
from margrove.ensemble.gradient.hist.tables import GradientTable

__all__ = ["Expansions", "begin_root", "choose_scales", "go_on", "in_usual_order", "new_expansions",
           "search_root", "write_values"]  # fmt: skip

WAITING = record_type(
    [
        ("n_orders", np.int64),
        ("reply_size", np.int64),  # of the reply to these
        ("n_partitioned", np.int64),  # nodes, before these
    ]
)

UNKNOWN, UNCOUNTED = -1, -2  # of nodes that were not partitioned; or no child of which was counted
_LIKELY = 0.1  # share of the gain of the next split, from which on a node may be split soon
_CHEAP = 16384  # samples that are partitioned sooner than one more message is answered
_SLOTS_OF_A_PATH = 48  # see `rounds`


class Expansions(NamedTuple):
    """What the leader knows of the nodes on the shards; by its own numbers of nodes.

    handles    int64 (nodes,)  the number there
    entries    int64 (nodes,)  where in the pool the sums of a child are; UNKNOWN or UNCOUNTED
    children   int64 (nodes,)  the number of the left child there
    rows_left  int64 (nodes,)  rows that have gone left
    counted    int64 (nodes,)  0 or 1: which child was counted
    pool       int64 (entries, 3, cells)
    free       int64 (entries,)  places in the pool that are not in use; n_free int64 (1,) of them
    orders     ORDER (most,)  what the shards are to do next
    waiting    WAITING (1,)  what the tree is waiting for
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
    """scales float64 (2,): what gradients and hessians are multiplied by; see
    `find_largest_of_rows`."""
    bits = bits_of_gradients(tree, is_wide, counts[0])
    scales[0], scales[1] = power_for(largest[0], bits), power_for(largest[1], bits)


@kernel(bare=True)
def begin_root(rules, tree, expansions, n, is_wide, largest, counts, totals):
    """The root of n rows, if the integers are precise enough; the phase of the tree."""
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
    """Search the best split of the root, whose sums were counted."""
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
    """The best splits of the nodes `state.small` and `state.large`."""
    allow_features_of_children(table, rules, tree, space)
    search_children(np.int64(0), table, rules, tree, space, np.int64(0),
                     np.int64(len(table.features)))  # fmt: skip
    tree.state[0].n_searchers = 1
    join_children(table, rules, tree, space)


@kernel(bare=True)
def go_on(table, rules, tree, space, expansions, in_any_order, reply):
    """Take the reply to the last orders, split what can be split, and give new orders; whether the
    tree is grown.

    in_any_order: where all that can be split will be, and nothing depends on its number.
    """
    _take_reply(table, expansions, reply)
    state, waiting = tree.state[0], expansions.waiting[0]
    waiting.n_orders = waiting.reply_size = 0
    while state.n_frontier > 0 and state.n_leaves < rules.max_leaves:
        if in_any_order:
            node = _take_known(tree, expansions)
            if node < 0:
                _give_orders(table, rules, tree, expansions, in_any_order)
                return False
        else:
            if expansions.entries[tree.frontier[place_of_next(rules, tree)]] == UNKNOWN:
                _give_orders(table, rules, tree, expansions, in_any_order)
                return False
            node = take_next(rules, tree)
        _split(table, rules, tree, space, expansions, node)
    state.phase = GROWN
    return True


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
            own = expansions.pool[entry, row]
            for cell in range(cells):
                own[cell] = reply[at + cell]
            at += cells
    waiting.n_partitioned += waiting.n_orders


@kernel(inner=True)
def _give_orders(table, rules, tree, expansions, in_any_order):
    """Orders for the node that is split next, and for others that are likely to be split soon.

    One place in the pool is kept for the next one, which gives it back at once.
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
    """In the order in which nodes would be split, the next one last."""
    frontier = tree.frontier
    for k in range(1, tree.state[0].n_frontier):
        own, place = frontier[k], k
        while place > 0 and _is_sooner(rules, tree, frontier[place - 1], own):
            frontier[place] = frontier[place - 1]
            place -= 1
        frontier[place] = own


@kernel(inner=True)
def _is_sooner(rules, tree, node, other):
    if rules.order == LEVEL_BY_LEVEL:
        return node < other
    gain, most = tree.nodes.gain[node], tree.nodes.gain[other]
    return gain > most or (gain == most and node < other)


@kernel(inner=True)
def _give_order(rules, tree, expansions, node, k, is_last):
    """The child that has fewer samples is counted, if one of them may be split further."""
    own, order = tree.nodes[node], expansions.orders[k]
    order.node, order.number = expansions.handles[node], node
    order.place, order.code = own.place, own.code
    order.missing_left, order.is_set = own.missing_left, own.is_set
    for word in range(len(order.codes_left)):
        order.codes_left[word] = own.codes_left[word]
    n_left, n_right = own.left_count, own.count - own.left_count
    is_packed = min(n_left, n_right) <= SAMPLES_OF_A_WORD and tree.state[0].is_wide == 0
    order.is_packed = np.int64(is_packed)
    order.counted = np.int64(n_right < n_left)
    is_deep = own.depth + 1 >= rules.max_depth
    if is_last or is_deep or max(n_left, n_right) < 2 * rules.min_samples:
        order.counted = -1


@kernel(inner=True)
def _take_known(tree, expansions):
    """The last one of the frontier whose rows were partitioned; the others stay in their order."""
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
    """The sums of the child that was counted, and of the other what is left of their parent's.

    Which one has fewer rows is not known before: the large one may be counted.
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
    """The values of leaves by the sums of all shards, int64 (leaves, 2)."""
    for k in range(len(leaves)):
        write_value(rules, tree, leaves[k], sums[k])


@kernel(bare=True)
def _number_anew(tree, numbers):
    """The numbers that nodes have where the smaller one of two children is always split first."""
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
    """Number the nodes of a grown tree as if it had been grown smaller children first."""
    n = tree.n_nodes
    numbers = np.empty(n, np.int64)
    _number_anew(tree, numbers)
    order = np.argsort(numbers)
    tree.nodes[:n] = tree.nodes[order]
    left = tree.nodes.left[:n]
    left[left >= 0] = numbers[left[left >= 0]]
    expansions.handles[:n] = expansions.handles[order]
