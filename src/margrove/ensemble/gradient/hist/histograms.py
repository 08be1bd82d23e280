"""Histograms: sums of gradients, hessians and samples for each code.

The histogram of the smaller of two children is counted; that of the other is the difference to
their parent. The histogram of a small node consists of packed words, see `packed_words`.

Several workers may count the rows of a node; each has a histogram of its own.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import are_scattered, fetch, kernel, row_ahead
from margrove.ensemble.gradient.hist.binning import COLUMNS_OF_A_BLOCK
from margrove.ensemble.gradient.hist.packed_words import (
    SAMPLES_OF_A_WORD,
    packed_word,
    sums_of_cell,
    unpacked,
)

__all__ = [
    "begin_count",
    "clear",
    "count_entries",
    "count_rows",
    "end_count",
    "fill_omitted",
    "join_counts",
    "subtract",
]


# The words of a worker in `Workspace.fill`: how many samples its packed words may have, and whether
# it has counted rows.
_SAMPLES, _HAS_ROWS = 0, 1


@kernel(inner=True)
def begin_count(worker, table, space, slot, in_words):
    """Prepare a worker. The first one counts in the histogram of the node, others in their own."""
    fill = space.fill[worker]
    fill[_SAMPLES] = fill[_HAS_ROWS] = 0
    if worker == 0:
        for k in range(1 if in_words else 3):
            clear(space.sums[slot, k], 0, table.first[len(table.features)])


@kernel(inner=True)
def count_rows(worker, table, source, tree, rows, start, end, space, slot, in_words):
    """Add rows[start:end] to the histogram of a worker."""
    if start >= end:
        return
    if space.fill[worker, _HAS_ROWS] == 0:
        space.fill[worker, _HAS_ROWS] = 1
        _clear_own(worker, table, space, in_words)
    if in_words:
        words = space.sums[slot, 0] if worker == 0 else space.words[worker]
        _count_words(table, source.packed, rows, start, end, words)
        return
    sums = space.sums[slot] if worker == 0 else space.partial[worker - 1]
    if tree.state[0].is_wide == 1:
        _count_widely(table, source, rows, start, end, sums)
        return
    words, copies = space.words[worker], tree.state[0].copies
    while start < end:
        free = (SAMPLES_OF_A_WORD - space.fill[worker, _SAMPLES]) // copies
        if free == 0:
            _move_words(worker, table, space, sums)
            continue
        stop = min(start + free, end)
        _count_words(table, source.packed, rows, start, stop, words)
        space.fill[worker, _SAMPLES] += (stop - start) * copies
        start = stop


@kernel(inner=True)
def _clear_own(worker, table, space, in_words):
    cells = table.first[len(table.features)]
    clear(space.words[worker], 0, cells)
    if worker > 0 and not in_words:
        for k in range(3):
            clear(space.partial[worker - 1, k], 0, cells)


@kernel(inner=True)
def _move_words(worker, table, space, sums):
    """Add the packed words of a worker to its sums, and clear them."""
    words = space.words[worker]
    for cell in range(table.first[len(table.features)]):
        g, h, count = unpacked(words[cell])
        sums[0, cell] += g
        sums[1, cell] += h
        sums[2, cell] += count
        words[cell] = 0
    space.fill[worker, _SAMPLES] = 0


@kernel(inner=True)
def end_count(worker, table, space, slot):
    """All rows of a worker have been counted."""
    if space.fill[worker, _SAMPLES] > 0:
        sums = space.sums[slot] if worker == 0 else space.partial[worker - 1]
        _move_words(worker, table, space, sums)


@kernel(inner=True)
def join_counts(n_workers, space, slot, in_words, low, high):
    """Add the histograms of the other workers to that of the first, in the cells low .. high - 1.

    Sums are integers, so it does not matter who has counted which rows.
    """
    sums = space.sums[slot]
    for worker in range(1, n_workers):
        if space.fill[worker, _HAS_ROWS] == 0:
            continue
        if in_words:
            words = space.words[worker]
            for cell in range(low, high):
                sums[0, cell] += words[cell]
            continue
        for k in range(3):
            others = space.partial[worker - 1, k]
            for cell in range(low, high):
                sums[k, cell] += others[cell]


@kernel(inner=True)
def clear(words, low, high):
    """Set words[low:high] to zero."""
    for cell in range(low, high):
        words[cell] = 0


@kernel(inner=True)
def _count_words(table, packed, rows, start, end, words):
    """Add packed words of some rows."""
    _count_bytes(table, packed, rows, start, end, words)
    if len(table.list_starts) > 1:
        _count_all_entries(table.starts, table.entries, packed, rows[start:end], words)


@kernel(inner=True)
def _count_bytes(table, packed, rows, start, end, words):
    """The hottest loop: one addition for each row and column."""
    by_rows, is_scattered = table.by_rows, are_scattered(rows, start, end)
    n_columns = len(table.cells_at)
    for begin in range(0, n_columns, COLUMNS_OF_A_BLOCK):
        last = min(n_columns, begin + COLUMNS_OF_A_BLOCK)
        words_of_block = words[table.cells_at[begin] :]
        for p in range(start, end):
            if is_scattered:
                ahead = np.uint64(row_ahead(rows, p, end))
                fetch(packed, ahead)
                fetch(by_rows[ahead], begin)
            row = np.uint64(rows[p])
            word = packed[row]
            for k in range(begin, last):
                words_of_block[np.uint64(by_rows[row, np.uint64(k)])] += word


@kernel(inner=True)
def _count_all_entries(starts, entries, packed, rows, words):
    """The same for features that are stored as lists."""
    for p in range(len(rows)):
        row = np.uint64(rows[p])
        word = packed[row]
        of_row = entries[starts[row] : starts[row + np.uint64(1)]]
        for q in range(len(of_row)):
            words[np.uint64(of_row[q])] += word


@kernel(inner=True)
def count_entries(table, packed, rows, start, end, low, high, words):
    """The same in the cells low .. high - 1."""
    for p in range(start, end):
        row = np.uint64(rows[p])
        word = packed[row]
        for q in range(table.starts[row], table.starts[row + np.uint64(1)]):
            cell = np.int64(table.entries[q])
            if low <= cell < high:
                words[cell] += word


@kernel(inner=True)
def _count_widely(table, source, rows, start, end, sums):
    has_copies = len(source.copies) > 0
    has_lists = len(table.list_starts) > 1
    n_columns = len(table.cells_at)
    for p in range(start, end):
        row = np.uint64(rows[p])
        g, h = source.g[row], source.h[row]
        times = source.copies[row] if has_copies else np.int64(1)
        for k in range(n_columns):
            column = np.uint64(k)
            block = table.cells_at[k - k % COLUMNS_OF_A_BLOCK]
            cell = np.uint64(block) + np.uint64(table.by_rows[row, column])
            sums[0, cell] += g
            sums[1, cell] += h
            sums[2, cell] += times
        if has_lists:
            for q in range(table.starts[row], table.starts[row + np.uint64(1)]):
                cell = np.uint64(table.entries[q])
                sums[0, cell] += g
                sums[1, cell] += h
                sums[2, cell] += times


@kernel(inner=True)
def fill_omitted(table, first, last, sums, node):
    """Fill the omitted codes of sparse features: the sums of the node minus the other codes."""
    if node.is_packed == 1:
        word = packed_word(node.total_g, node.total_h, node.count)
        _fill_omitted(table, first, last, sums[0], word)
        return
    _fill_omitted(table, first, last, sums[0], node.total_g)
    _fill_omitted(table, first, last, sums[1], node.total_h)
    _fill_omitted(table, first, last, sums[2], node.count)


@kernel(inner=True)
def _fill_omitted(table, first, last, cells, total):
    for place in range(max(first, table.n_dense), last):
        begin, end = table.first[place], table.first[place] + table.n_codes[place] + 1
        at = begin + table.omitted[place]
        cells[at] = 0
        rest = total
        for cell in range(begin, end):
            rest -= cells[cell]
        cells[at] = rest


@kernel(inner=True)
def subtract(sums, was_packed, others, is_other_packed, is_packed, low, high):
    """The histogram of a parent minus that of a child; the result may be packed."""
    if was_packed:
        for cell in range(low, high):
            sums[0, cell] -= others[0, cell]
    elif not is_other_packed and not is_packed:
        for k in range(3):
            for cell in range(low, high):
                sums[k, cell] -= others[k, cell]
    else:
        for cell in range(low, high):
            g, h, count = sums_of_cell(others, is_other_packed, cell)
            g, h, count = sums[0, cell] - g, sums[1, cell] - h, sums[2, cell] - count
            if is_packed:
                sums[0, cell] = packed_word(g, h, count)
            else:
                sums[0, cell], sums[1, cell], sums[2, cell] = g, h, count
