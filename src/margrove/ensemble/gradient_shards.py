"""Shards of the rows of histogram boosting: what a machine does that has some of the rows.

It does as the leader says (`gradient_leader`): parts the rows of a node, and counts the histogram
of one of its children. Its nodes have numbers of their own, as they may be parted in vain: the root
is 0, and the children of the k-th node that is parted are 2 k + 1 and 2 k + 2.
"""

from __future__ import annotations

import numpy as np

from margrove._jit import kernel
from margrove.ensemble.gradient_histograms import _clear, _count, _count_words
from margrove.ensemble.gradient_nodes import (
    CODE,
    COPIES,
    END,
    IS_SET,
    IS_WIDE,
    MIDDLE,
    MISSING_LEFT,
    N_NODES,
    NODE,
    PLACE,
    START,
)
from margrove.ensemble.gradient_parting import part_rows, say_who_goes_left
from margrove.ensemble.gradient_trees import _add_up, _survey, _write_packed, _write_wide

__all__ = [
    "AT",
    "CODED_AS_SET",
    "COUNTED",
    "HANDLE",
    "N_OF_ORDER",
    "OF_LEADER",
    "SPLIT_CODE",
    "SPLIT_MISSING",
    "SPLIT_PLACE",
    "WORDS",
    "add_leaves",
    "add_up_leaves",
    "count_root",
    "expand",
    "survey_rows",
    "write_rows",
]

# columns of an order to part the rows of a node: which one, by what, which child is counted (0 or
# 1, -1 for none), whether in words, where in the reply its sums begin; and the leader's number
(HANDLE, SPLIT_PLACE, SPLIT_CODE, SPLIT_MISSING, CODED_AS_SET, COUNTED, WORDS, AT, OF_LEADER,
 N_OF_ORDER) = range(10)  # fmt: skip


@kernel(bare=True)
def survey_rows(source, largest, counts):
    """largest float64 (2,): gradient and hessian; counts int64 (2,): samples, and the most that a
    row stands for."""
    _survey(source, 0, len(source.rows), largest, counts)


@kernel(bare=True)
def write_rows(source, is_wide, copies, g_scale, h_scale, tree, totals):
    """Gradients as whole numbers, and a root of all rows; totals int64 (3,)."""
    n = len(source.rows)
    if is_wide:
        _write_wide(source, 0, n, g_scale, h_scale, tree.rows, totals)
    else:
        _write_packed(source, 0, n, g_scale, h_scale, tree.rows, totals)
    tree.state[IS_WIDE], tree.state[COPIES] = np.int64(is_wide), copies
    tree.state[N_NODES] = 1
    tree.whole[0, START], tree.whole[0, END] = 0, n


@kernel(bare=True)
def count_root(table, source, tree, room, in_words, reply):
    _count_node(table, source, tree, room, 0, in_words, reply)


@kernel(bare=True)
def expand(table, source, tree, room, team, orders, sets, reply):
    """Part the rows of nodes, one after the other, and count a child of each.

    orders int64 (k, 9), see the names of the columns; sets uint32 (k, 8). reply int64: rows that go
    left, and sums from where the orders say.
    """
    zero, one = np.int64(0), np.int64(1)
    state, whole = tree.state, tree.whole
    for k in range(len(orders)):
        order = orders[k]
        node, first = order[HANDLE], state[N_NODES]
        whole[node, PLACE], whole[node, CODE] = order[SPLIT_PLACE], order[SPLIT_CODE]
        whole[node, MISSING_LEFT], whole[node, IS_SET] = order[SPLIT_MISSING], order[CODED_AS_SET]
        for word in range(8):
            tree.sets[node, word] = sets[k, word]
        state[NODE] = node
        say_who_goes_left(table, tree, node, room.goes_left)
        part_rows(team, zero, one, table, tree, room)
        middle = state[MIDDLE]
        whole[first, START], whole[first, END] = whole[node, START], middle
        whole[first + 1, START], whole[first + 1, END] = middle, whole[node, END]
        state[N_NODES] += 2
        reply[k] = middle - whole[node, START]
        if order[COUNTED] >= 0:
            counted = first + order[COUNTED]
            _count_node(table, source, tree, room, counted, order[WORDS] == 1, reply[order[AT] :])


@kernel(inner=True)
def _count_node(table, source, tree, room, node, in_words, reply):
    """The histogram of a node, without the codes that have no entries: words, or sums of three."""
    start, end = tree.whole[node, START], tree.whole[node, END]
    d, cells = np.int64(len(table.features)), table.first[len(table.features)]
    sums = room.sums[0]
    if in_words:
        _clear(sums[0], 0, cells)
        _count_words(table, source.packed, tree.rows, start, end, np.int64(0), d, sums[0])
    else:
        _count(table, source, tree, start, end, room.words[0], sums)
    for k in range(1 if in_words else 3):
        for cell in range(cells):
            reply[k * cells + cell] = sums[k, cell]


@kernel(bare=True)
def add_up_leaves(source, tree, handles, scales, sums):
    """sums int64 (leaves, 2): of gradients and hessians, by scales float64 (2,)."""
    for k in range(len(handles)):
        node = handles[k]
        start, end = tree.whole[node, START], tree.whole[node, END]
        _add_up(source, tree.rows, start, end, scales, sums[k])


@kernel(bare=True)
def add_leaves(tree, handles, values, raw):
    """raw[i] += the value of row i's leaf."""
    for k in range(len(handles)):
        node, value = handles[k], values[k]
        for p in range(tree.whole[node, START], tree.whole[node, END]):
            raw[np.uint64(tree.rows[p])] += value
