"""Growing a tree whose rows are with several members: the rows of one member.

Orders (`joint_splits`) say which nodes to partition, and which child of each to count. Node numbers
differ from those of the tree, because not all of them become nodes of the tree: the root is 0, and
the children of the k-th node that is partitioned are 2 k + 1 and 2 k + 2.

The table has one byte for each cell: `by_rows` is uint8 (n, columns), and `by_columns` is empty.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import are_scattered, fetch, kernel, record_type, row_ahead, row_behind
from margrove.ensemble.gradient.hist.histograms import clear, count_entries
from margrove.ensemble.gradient.hist.leaves import add_up_leaf
from margrove.ensemble.gradient.hist.packed_words import SAMPLES_OF_A_WORD, unpacked
from margrove.ensemble.gradient.hist.partitioning import (
    advance_to,
    is_code_left,
    mark_codes,
    partition_by_list,
)
from margrove.ensemble.gradient.hist.root import find_largest, write_packed, write_wide

__all__ = [
    "ORDER",
    "add_leaves",
    "add_to_others",
    "add_up_leaves",
    "count_root",
    "find_largest_of_rows",
    "split_nodes",
    "write_rows",
]

# an order to partition the rows of a node, and to count one of its children
ORDER = record_type(
    [
        ("node", np.int64),  # its number here
        ("number", np.int64),  # its number in the tree
        ("place", np.int64),  # the split: see `nodes.SPLIT`
        ("code", np.int64),
        ("missing_left", np.int64),
        ("is_set", np.int64),
        ("codes_left", np.uint32, (8,)),
        ("counted", np.int64),  # which child is counted: 0 or 1, -1 for none
        ("is_packed", np.int64),  # whether it is counted in packed words
        ("at", np.int64),  # where its sums begin in the reply
    ]
)

_BEYOND_CACHES = 1 << 24  # bytes


@kernel(bare=True)
def find_largest_of_rows(source, largest, counts):
    """Write largest float64 (2,), of gradients and hessians, and counts int64 (2,): the number of
    samples, and the largest number that a row represents."""
    find_largest(source, 0, len(source.rows), largest, counts)


@kernel(bare=True)
def write_rows(source, is_wide, copies, g_scale, h_scale, tree, totals):
    """Write gradients as integers, the root, and totals int64 (3,), see `root.write_packed`."""
    n = len(source.rows)
    if is_wide:
        write_wide(source, 0, n, g_scale, h_scale, tree.rows, totals)
    else:
        write_packed(source, 0, n, g_scale, h_scale, tree.rows, totals)
    state = tree.state[0]
    state.is_wide, state.copies = np.int64(is_wide), copies
    state.n_nodes = 1
    tree.nodes.start[0], tree.nodes.end[0] = 0, n


@kernel(bare=True)
def count_root(table, source, tree, space, in_words, reply):
    _count_node(table, source, tree, space, 0, in_words, reply)


@kernel(bare=True)
def split_nodes(table, source, tree, space, orders, n_orders, reply):
    """Partition the rows of nodes, one after the other, and count a child of each.

    orders ORDER (n_orders, or more). reply int64: numbers of rows that go left, then sums at
    `order.at`.
    """
    state, nodes = tree.state[0], tree.nodes
    for k in range(n_orders):
        order = orders[k]
        record, first = nodes[order.node], state.n_nodes
        record.place, record.code = order.place, order.code
        record.missing_left, record.is_set = order.missing_left, order.is_set
        for word in range(len(order.codes_left)):
            record.codes_left[word] = order.codes_left[word]
        mark_codes(table, record, space.goes_left)
        middle = _partition_node(table, tree, record, space.goes_left, order.counted == 0)
        nodes.start[first], nodes.end[first] = record.start, middle
        nodes.start[first + 1], nodes.end[first + 1] = middle, record.end
        state.n_nodes += 2
        reply[k] = middle - record.start
        if order.counted >= 0:
            counted = first + order.counted
            in_words = order.is_packed == 1
            _count_node(table, source, tree, space, counted, in_words, reply[order.at :])


@kernel(inner=True)
def _count_node(table, source, tree, space, node, in_words, reply):
    """Count the histogram of a node, without omitted codes: packed words, or three sums."""
    start, end = tree.nodes.start[node], tree.nodes.end[node]
    cells, words = table.first[len(table.features)], space.words[0]
    if in_words:
        clear(reply, 0, cells)
        _count_words(table, source.packed, tree.rows, start, end, reply)
        return
    clear(reply, 0, 3 * cells)
    if tree.state[0].is_wide == 1:
        _count_widely(table, source, tree.rows, start, end, reply)
        return
    step = SAMPLES_OF_A_WORD // tree.state[0].copies
    for begin in range(start, end, step):
        clear(words, 0, cells)
        _count_words(table, source.packed, tree.rows, begin, min(begin + step, end), words)
        for cell in range(cells):
            g, h, count = unpacked(words[cell])
            reply[cell] += g
            reply[cells + cell] += h
            reply[2 * cells + cell] += count


@kernel(inner=True)
def _count_words(table, packed, rows, start, end, words):
    """The hottest loop: one addition for each row and column."""
    by_rows, cells_at = table.by_rows, table.cells_at
    n_columns, is_scattered = len(cells_at), are_scattered(rows, start, end)
    for p in range(start, end):
        if is_scattered:
            ahead = np.uint64(row_ahead(rows, p, end))
            fetch(packed, ahead)
            fetch(by_rows[ahead], 0)
        row = np.uint64(rows[p])
        word = packed[row]
        for k in range(n_columns):
            column = np.uint64(k)
            words[np.uint64(cells_at[column]) + np.uint64(by_rows[row, column])] += word
    if len(table.list_starts) > 1:
        low, high = np.int64(0), table.first[len(table.features)]
        count_entries(table, packed, rows, start, end, low, high, words)


@kernel(inner=True)
def _count_widely(table, source, rows, start, end, sums):
    """Add to sums: those of gradients, then of hessians, then of samples."""
    cells = np.uint64(table.first[len(table.features)])
    has_copies, has_lists = len(source.copies) > 0, len(table.list_starts) > 1
    two = np.uint64(2)
    for p in range(start, end):
        row = np.uint64(rows[p])
        g, h = source.g[row], source.h[row]
        times = source.copies[row] if has_copies else np.int64(1)
        for k in range(len(table.cells_at)):
            column = np.uint64(k)
            cell = np.uint64(table.cells_at[column]) + np.uint64(table.by_rows[row, column])
            sums[cell] += g
            sums[cells + cell] += h
            sums[two * cells + cell] += times
        if has_lists:
            for q in range(table.starts[row], table.starts[row + np.uint64(1)]):
                cell = np.uint64(table.entries[q])
                sums[cell] += g
                sums[cells + cell] += h
                sums[two * cells + cell] += times


@kernel(inner=True)
def _partition_node(table, tree, node, goes_left, is_left_small):
    """Move rows that go left to the front; both sides keep their order. Returns where the others
    begin.

    Rows of the child that is probably larger are moved in place; the others go to a buffer first.
    """
    start, end, place = node.start, node.end, node.place
    rows, spare, column = tree.rows, tree.spare, table.columns[place]
    if column < 0:
        n_left = partition_by_list(table, place, goes_left, rows, spare, start, end)
        for k in range(n_left):
            rows[start + k] = spare[start + k]
        for k in range(end - start - n_left):
            rows[start + n_left + k] = spare[end - 1 - k]
        return start + n_left
    is_scattered = table.by_rows.size > _BEYOND_CACHES and are_scattered(rows, start, end)
    if is_left_small:
        n_left = _partition_backwards(table.by_rows, column, goes_left, rows, spare, start, end,
                                      is_scattered)  # fmt: skip
        for k in range(n_left):
            rows[start + k] = spare[n_left - 1 - k]
        return start + n_left
    middle = _partition_forwards(table.by_rows, column, goes_left, rows, spare, start, end,
                                 is_scattered)  # fmt: skip
    for k in range(end - middle):
        rows[middle + k] = spare[k]
    return middle


@kernel(inner=True)
def _partition_forwards(by_rows, column, goes_left, rows, spare, start, end, is_scattered):
    """Move rows that go left to the front, and others to the buffer. Without a branch: each row is
    written to both places, and one of the positions advances."""
    place, aside = np.uint64(start), np.uint64(0)
    one, at = np.uint64(1), np.uint64(column)
    for p in range(start, end):
        if is_scattered:
            fetch(by_rows[np.uint64(row_ahead(rows, p, end))], at)
        row = rows[p]
        is_left = np.uint64(goes_left[by_rows[np.uint64(row), at]])
        rows[place] = row
        spare[aside] = row
        place += is_left
        aside += one - is_left
    return np.int64(place)


@kernel(inner=True)
def _partition_backwards(by_rows, column, goes_left, rows, spare, start, end, is_scattered):
    """Move rows that go right to the end, and others to the buffer in reverse order."""
    place, aside = np.uint64(end), np.uint64(0)
    one, at = np.uint64(1), np.uint64(column)
    for k in range(end - start):
        p = end - 1 - k
        if is_scattered:
            fetch(by_rows[np.uint64(row_behind(rows, p, start))], at)
        row = rows[np.uint64(p)]
        is_left = np.uint64(goes_left[by_rows[np.uint64(row), at]])
        rows[place - one] = row
        spare[aside] = row
        place -= one - is_left
        aside += is_left
    return np.int64(aside)


@kernel(bare=True)
def add_to_others(table, tree, rows, raw):
    """raw[i] += the value of row i's leaf, for rows that the tree was not grown on."""
    for p in range(len(rows)):
        row = np.int64(rows[p])
        node = np.int64(0)
        while tree.nodes.left[node] >= 0:
            record = tree.nodes[node]
            code = _code_of(table, record.place, row)
            is_left = is_code_left(record, code, table.n_codes[record.place])
            node = record.left + 1 - np.int64(is_left)
        raw[row] += tree.nodes.value[node]


@kernel(inner=True)
def _code_of(table, place, row):
    column = table.columns[place]
    if column >= 0:
        code = np.int64(table.by_rows[row, column]) - table.bytes_at[place]
        is_there = 0 <= code <= table.n_codes[place]
        return code if is_there else table.omitted[place]
    k = place - table.places_at[-1]
    stop = table.list_starts[k + 1]
    at = advance_to(table.list_rows, table.list_starts[k], stop, row)
    is_there = at < stop and table.list_rows[at] == row
    return np.int64(table.list_codes[at]) if is_there else table.omitted[place]


@kernel(bare=True)
def add_up_leaves(source, tree, handles, scales, sums):
    """Write sums int64 (leaves, 2) of gradients and hessians, times scales float64 (2,)."""
    for k in range(len(handles)):
        node = handles[k]
        start, end = tree.nodes.start[node], tree.nodes.end[node]
        add_up_leaf(source, tree.rows, start, end, scales, sums[k])


@kernel(bare=True)
def add_leaves(tree, handles, values, raw):
    """raw[i] += the value of row i's leaf."""
    for k in range(len(handles)):
        node, value = handles[k], values[k]
        for p in range(tree.nodes.start[node], tree.nodes.end[node]):
            raw[np.uint64(tree.rows[p])] += value
