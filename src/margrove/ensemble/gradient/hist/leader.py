"""Trees of histogram boosting whose rows are in several places: the part of who leads.

The leader has the nodes of a tree and the sums of all shards (`gradient_shards`), no rows, and
splits the nodes in the order and by the functions of `gradient_trees`: sums are whole numbers, so
that the tree is the same bit for bit.

Messages take time. So the leader orders several nodes to be parted at once, also ones of which it
does not know yet whether it will come to split them: a node that was parted in vain stays a leaf,
and its rows are still side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime.jit import kernel
from margrove.ensemble.gradient.hist.histograms import _fill_omitted, subtract
from margrove.ensemble.gradient.hist.nodes import (
    BEST_FIRST,
    CODE,
    COUNT,
    DEPTH,
    END,
    GAIN,
    GROWN,
    IS_PACKED,
    IS_SET,
    IS_WIDE,
    LARGE,
    LEFT,
    LEFT_COUNT,
    LEVEL_BY_LEVEL,
    MISSING_LEFT,
    N_FREE,
    N_FRONTIER,
    N_LEAVES,
    N_NODES,
    NODE,
    PHASE,
    PLACE,
    SHARERS,
    SLOT,
    SMALL,
    SMALL_FIRST,
    START,
    BoostedTree,
)
from margrove.ensemble.gradient.hist.packed_words import SAMPLES_OF_A_WORD
from margrove.ensemble.gradient.hist.shards import (
    AT,
    CODED_AS_SET,
    COUNTED,
    HANDLE,
    N_OF_ORDER,
    OF_LEADER,
    SPLIT_CODE,
    SPLIT_MISSING,
    SPLIT_PLACE,
    WORDS,
)
from margrove.ensemble.gradient.hist.tables import GradientTable
from margrove.ensemble.gradient.hist.trees import (
    _allow_features_of_children,
    _bits_of_gradients,
    _join_children,
    _judge,
    _place_of_next,
    _power_for,
    _search_children,
    _take_next,
    _write_children,
    _write_value,
)

__all__ = ["N_ORDERS", "SIZE_OF_REPLY", "Expansions", "choose_scales", "go_on", "in_usual_order",
           "judge", "look_at_root", "new_expansions", "write_values"]  # fmt: skip

# what a tree is waiting for: orders, the size of the reply to them; and nodes parted before
N_ORDERS, SIZE_OF_REPLY, N_PARTED, N_WAITING = range(4)

UNKNOWN, UNCOUNTED = -1, -2  # of nodes that were not parted; or parted, and no child counted
_LIKELY = 0.1  # share of the gain of the next split, from which on a node may be split soon
_CHEAP = 16384  # samples that are parted sooner than one more message is answered
_SLOTS_OF_A_PATH = 48  # see `gradient_rounds`


class Expansions(NamedTuple):
    """What the leader knows of the nodes on the shards; by its own numbers of nodes.

    handles    int64 (nodes,)  the number there
    entries    int64 (nodes,)  where in the pool the sums of a child are; UNKNOWN or UNCOUNTED
    children   int64 (nodes,)  the number of the left child there
    rows_left  int64 (nodes,)  rows that have gone left
    counted    int64 (nodes,)  0 or 1: which child was counted
    pool       int64 (entries, 3, cells)
    free       int64 (entries,)  places in the pool that are not in use; n_free int64 (1,) of them
    orders     int64 (most, 9), sets uint32 (most, 8): what the shards are to do next
    waiting    int64 (3,)  see the names of the places
    """

    handles: np.ndarray
    entries: np.ndarray
    children: np.ndarray
    rows_left: np.ndarray
    counted: np.ndarray
    pool: np.ndarray
    free: np.ndarray
    n_free: np.ndarray
    orders: np.ndarray
    sets: np.ndarray
    waiting: np.ndarray


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
        orders=np.zeros((min(n_orders, nodes), N_OF_ORDER), np.int64),
        sets=np.zeros((min(n_orders, nodes), 8), np.uint32),
        waiting=np.zeros(N_WAITING, np.int64),
    )


@kernel(bare=True)
def choose_scales(tree, is_wide, largest, counts, scales):
    """scales float64 (2,): what gradients and hessians are multiplied by; see `survey_rows`."""
    bits = _bits_of_gradients(tree, is_wide, counts[0])
    scales[0], scales[1] = _power_for(largest[0], bits), _power_for(largest[1], bits)


@kernel(bare=True)
def judge(rules, tree, expansions, n, is_wide, largest, counts, totals):
    """Whether the whole numbers do, and if so the root of n rows; the phase of the tree."""
    _judge(rules, tree, n, is_wide, largest[0], largest[1], counts[0], counts[1], totals[0],
           totals[1], totals[2])  # fmt: skip
    expansions.handles[0], expansions.entries[0] = 0, UNKNOWN
    expansions.n_free[0] = len(expansions.free)
    for k in range(len(expansions.free)):
        expansions.free[k] = k
    for k in range(N_WAITING):
        expansions.waiting[k] = 0
    return tree.state[PHASE]


@kernel(bare=True)
def look_at_root(table, rules, tree, room, reply):
    """Search the best split of the root, whose sums were counted."""
    sums, cells = room.sums[tree.whole[0, SLOT]], table.first[len(table.features)]
    for k in range(1 if tree.whole[0, IS_PACKED] == 1 else 3):
        for cell in range(cells):
            sums[k, cell] = reply[k * cells + cell]
    _fill_omitted(table, np.int64(0), np.int64(len(table.features)), sums, tree.whole[0])
    tree.state[SMALL], tree.state[LARGE] = 0, -1
    _search(table, rules, tree, room)


@kernel(inner=True)
def _search(table, rules, tree, room):
    """The best splits of the nodes SMALL and LARGE."""
    _allow_features_of_children(table, rules, tree, room)
    _search_children(np.int64(0), table, rules, tree, room, np.int64(0),
                     np.int64(len(table.features)))  # fmt: skip
    tree.state[SHARERS] = 1
    _join_children(table, rules, tree, room)


@kernel(bare=True)
def go_on(table, rules, tree, room, expansions, in_any_order, reply):
    """Take the reply to the last orders, split what can be split, and give new orders; whether the
    tree is grown.

    in_any_order: where all that can be split will be, and nothing depends on its number.
    """
    _take_reply(table, expansions, reply)
    state, waiting = tree.state, expansions.waiting
    waiting[N_ORDERS] = waiting[SIZE_OF_REPLY] = 0
    while state[N_FRONTIER] > 0 and state[N_LEAVES] < rules.max_leaves:
        if in_any_order:
            node = _take_known(tree, expansions)
            if node < 0:
                _give_orders(table, rules, tree, expansions, in_any_order)
                return False
        else:
            if expansions.entries[tree.frontier[_place_of_next(rules, tree)]] == UNKNOWN:
                _give_orders(table, rules, tree, expansions, in_any_order)
                return False
            node = _take_next(rules, tree)
        _split(table, rules, tree, room, expansions, node)
    state[PHASE] = GROWN
    return True


@kernel(inner=True)
def _take_reply(table, expansions, reply):
    waiting, cells = expansions.waiting, table.first[len(table.features)]
    for k in range(waiting[N_ORDERS]):
        order = expansions.orders[k]
        node = order[OF_LEADER]
        expansions.rows_left[node] = reply[k]
        expansions.children[node] = 2 * (waiting[N_PARTED] + k) + 1
        expansions.counted[node] = order[COUNTED]
        expansions.entries[node] = UNCOUNTED
        if order[COUNTED] < 0:
            continue
        expansions.n_free[0] -= 1
        entry = expansions.free[expansions.n_free[0]]
        expansions.entries[node] = entry
        at = order[AT]
        for row in range(1 if order[WORDS] == 1 else 3):
            own = expansions.pool[entry, row]
            for cell in range(cells):
                own[cell] = reply[at + cell]
            at += cells
    waiting[N_PARTED] += waiting[N_ORDERS]


@kernel(inner=True)
def _give_orders(table, rules, tree, expansions, in_any_order):
    """Orders for the node that is split next, and for others that are likely to be split soon.

    One place in the pool is kept for the next one, which gives it back at once.
    """
    state, frontier, orders = tree.state, tree.frontier, expansions.orders
    left, n_frontier = rules.max_leaves - state[N_LEAVES], state[N_FRONTIER]
    most = min(n_frontier, len(orders))
    if rules.order != SMALL_FIRST:
        most = min(most, left)
        _sort_frontier(rules, tree)
    elif in_any_order and len(tree.free) <= rules.max_leaves:
        most = min(most, max(1, state[N_FREE] - _SLOTS_OF_A_PATH))
    least = -np.inf
    if rules.order == BEST_FIRST:
        least = _LIKELY * tree.real[frontier[n_frontier - 1], GAIN]
    n, at_most = np.int64(0), max(expansions.n_free[0] - 1, 1)
    for k in range(most):
        node = frontier[n_frontier - 1 - k]
        is_known = expansions.entries[node] != UNKNOWN
        is_early = tree.real[node, GAIN] < least and tree.whole[node, COUNT] > _CHEAP
        if is_known or is_early or n >= at_most:
            continue
        _give_order(rules, tree, expansions, node, n, left == 1)
        n += 1
    size, cells = n, table.first[len(table.features)]
    for k in range(n):
        orders[k, AT] = size
        if orders[k, COUNTED] >= 0:
            size += cells if orders[k, WORDS] == 1 else 3 * cells
    expansions.waiting[N_ORDERS], expansions.waiting[SIZE_OF_REPLY] = n, size


@kernel(inner=True)
def _sort_frontier(rules, tree):
    """In the order in which nodes would be split, the next one last."""
    frontier = tree.frontier
    for k in range(1, tree.state[N_FRONTIER]):
        own, place = frontier[k], k
        while place > 0 and _is_sooner(rules, tree, frontier[place - 1], own):
            frontier[place] = frontier[place - 1]
            place -= 1
        frontier[place] = own


@kernel(inner=True)
def _is_sooner(rules, tree, node, other):
    if rules.order == LEVEL_BY_LEVEL:
        return node < other
    gain, most = tree.real[node, GAIN], tree.real[other, GAIN]
    return gain > most or (gain == most and node < other)


@kernel(inner=True)
def _give_order(rules, tree, expansions, node, k, is_last):
    """The child that has fewer samples is counted, if one of them may be split further."""
    own, order = tree.whole[node], expansions.orders[k]
    order[HANDLE], order[OF_LEADER] = expansions.handles[node], node
    order[SPLIT_PLACE], order[SPLIT_CODE] = own[PLACE], own[CODE]
    order[SPLIT_MISSING], order[CODED_AS_SET] = own[MISSING_LEFT], own[IS_SET]
    for word in range(8):
        expansions.sets[k, word] = tree.sets[node, word]
    n_left, n_right = own[LEFT_COUNT], own[COUNT] - own[LEFT_COUNT]
    is_packed = min(n_left, n_right) <= SAMPLES_OF_A_WORD and tree.state[IS_WIDE] == 0
    order[WORDS] = np.int64(is_packed)
    order[COUNTED] = np.int64(n_right < n_left)
    is_deep = own[DEPTH] + 1 >= rules.max_depth
    if is_last or is_deep or max(n_left, n_right) < 2 * rules.min_samples:
        order[COUNTED] = -1


@kernel(inner=True)
def _take_known(tree, expansions):
    """The last one of the frontier whose rows were parted; the others stay in their order."""
    frontier, state = tree.frontier, tree.state
    k = state[N_FRONTIER] - 1
    while k >= 0 and expansions.entries[frontier[k]] == UNKNOWN:
        k -= 1
    if k < 0:
        return np.int64(-1)
    node = frontier[k]
    state[N_FRONTIER] -= 1
    for other in range(k, state[N_FRONTIER]):
        frontier[other] = frontier[other + 1]
    return node


@kernel(inner=True)
def _split(table, rules, tree, room, expansions, node):
    state, whole = tree.state, tree.whole
    first, entry = state[N_NODES], expansions.entries[node]
    state[NODE] = node
    _write_children(rules, tree, node, whole[node, START] + expansions.rows_left[node])
    for side in range(2):
        expansions.handles[first + side] = expansions.children[node] + side
        expansions.entries[first + side] = UNKNOWN
    if state[SMALL] >= 0:
        _take_sums(table, tree, room, expansions, entry, first + expansions.counted[node])
        _search(table, rules, tree, room)
    if entry >= 0:
        expansions.free[expansions.n_free[0]] = entry
        expansions.n_free[0] += 1


@kernel(inner=True)
def _take_sums(table, tree, room, expansions, entry, counted):
    """The sums of the child that was counted, and of the other what is left of their parent's.

    Which one is small in rows is not known before they are parted: the large one may be counted.
    """
    whole, state = tree.whole, tree.state
    other = state[SMALL] + state[LARGE] - counted
    if counted == state[LARGE]:
        whole[counted, SLOT], whole[other, SLOT] = whole[other, SLOT], whole[counted, SLOT]
    sums, cells = room.sums[whole[counted, SLOT]], table.first[len(table.features)]
    for k in range(1 if whole[counted, IS_PACKED] == 1 else 3):
        for cell in range(cells):
            sums[k, cell] = expansions.pool[entry, k, cell]
    _fill_omitted(table, np.int64(0), np.int64(len(table.features)), sums, whole[counted])
    subtract(room.sums[whole[other, SLOT]], whole[state[NODE], IS_PACKED] == 1, sums,
             whole[counted, IS_PACKED] == 1, whole[other, IS_PACKED] == 1, np.int64(0),
             cells)  # fmt: skip


@kernel(bare=True)
def write_values(rules, tree, leaves, sums):
    """The values of leaves by the sums of all shards, int64 (leaves, 2)."""
    for k in range(len(leaves)):
        _write_value(rules, tree, leaves[k], sums[k])


@kernel(bare=True)
def _number_anew(tree, numbers):
    """The numbers that nodes have where the smaller one of two children is always split first."""
    whole, stack = tree.whole, tree.frontier
    numbers[0] = 0
    n, n_waiting = np.int64(1), np.int64(0)
    if whole[0, LEFT] >= 0:
        stack[0], n_waiting = 0, np.int64(1)
    while n_waiting > 0:
        n_waiting -= 1
        node = stack[n_waiting]
        left = whole[node, LEFT]
        numbers[left], numbers[left + 1] = n, n + 1
        n += 2
        n_left = whole[left, END] - whole[left, START]
        small = left if 2 * n_left <= whole[node, END] - whole[node, START] else left + 1
        for child in (2 * left + 1 - small, small):
            if whole[child, LEFT] >= 0:
                stack[n_waiting] = child
                n_waiting += 1


def in_usual_order(tree: BoostedTree, expansions: Expansions) -> None:
    """Number the nodes of a grown tree as if it had been grown smaller children first."""
    n = int(tree.state[N_NODES])
    numbers = np.empty(n, np.int64)
    _number_anew(tree, numbers)
    order = np.argsort(numbers)
    tree.whole[:n] = tree.whole[order]
    inner = tree.whole[:n, LEFT] >= 0
    tree.whole[:n, LEFT][inner] = numbers[tree.whole[:n, LEFT][inner]]
    for own in (tree.real, tree.sets, expansions.handles):
        own[:n] = own[order]
