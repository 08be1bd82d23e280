"""Histograms: sums of gradients, hessians and samples for each code.

The histogram of the smaller of two children is counted; that of the other is the difference to
their parent. The histogram of a small node consists of packed words, see `packed_words`.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import are_scattered, barrier, fetch, kernel, row_ahead
from margrove.ensemble.gradient.hist.nodes import share_of
from margrove.ensemble.gradient.hist.packed_words import (
    SAMPLES_OF_A_WORD,
    packed_word,
    sums_of_cell,
    unpacked,
)
from margrove.ensemble.gradient.hist.tables import COLUMNS_OF_A_BLOCK

__all__ = ["clear", "count_entries", "count_small", "fill_omitted", "subtract"]


@kernel(inner=True)
def count_small(team, rank, size, table, source, tree, space, first, last):
    """The histogram of the small child, or of the root, for the features of a thread."""
    node = tree.nodes[tree.state[0].small]
    sums, start, end = space.sums[node.slot], node.start, node.end
    if node.is_packed == 1:
        clear(sums[0], table.first[first], table.first[last])
        _count_words(table, source.packed, tree.rows, start, end, first, last, sums[0])
    elif size == 1:
        _count(table, source, tree, start, end, space.words[rank], sums)
    else:
        begin = start + share_of(end - start, rank, size)
        stop = start + share_of(end - start, rank + 1, size)
        _count(table, source, tree, begin, stop, space.words[rank], space.partial[rank])
        barrier(team, size)
        _add_partial(space.partial, size, table.first[first], table.first[last], sums)
    fill_omitted(table, first, last, sums, node)


@kernel(inner=True)
def clear(words, low, high):
    """Set words[low:high] to zero."""
    for cell in range(low, high):
        words[cell] = 0


@kernel(inner=True)
def _count(table, source, tree, start, end, words, sums):
    """The histogram of some rows, for all features."""
    d = np.int64(len(table.features))
    for k in range(3):
        clear(sums[k], 0, table.first[d])
    if tree.state[0].is_wide == 1:
        _count_widely(table, source, tree.rows, start, end, sums)
        return
    step = SAMPLES_OF_A_WORD // tree.state[0].copies
    for begin in range(start, end, step):
        clear(words, 0, table.first[d])
        _count_words(table, source.packed, tree.rows, begin, min(begin + step, end), np.int64(0), d,
                     words)  # fmt: skip
        for cell in range(table.first[d]):
            g, h, count = unpacked(words[cell])
            sums[0, cell] += g
            sums[1, cell] += h
            sums[2, cell] += count


@kernel(inner=True)
def _count_words(table, packed, rows, start, end, first, last, words):
    """Add packed words of some rows, for the features at the places first .. last - 1."""
    n_places = table.places_at[-1]  # of features that are stored as bytes
    if first < min(last, n_places):
        begin = table.columns[first]
        stop = table.columns[min(last, n_places) - 1] + 1
        _count_bytes(table, packed, rows, start, end, begin, stop, words)
    if last > n_places:
        low, high = table.first[max(first, n_places)], table.first[last]
        count_entries(table, packed, rows, start, end, low, high, words)


@kernel(inner=True)
def _count_bytes(table, packed, rows, start, end, begin, stop, words):
    """The hottest loop: one addition for each row and column."""
    by_rows, is_scattered = table.by_rows, are_scattered(rows, start, end)
    while begin < stop:
        block = begin - begin % COLUMNS_OF_A_BLOCK
        last = min(stop, block + COLUMNS_OF_A_BLOCK)
        words_of_block = words[table.cells_at[block] :]
        for p in range(start, end):
            if is_scattered:
                ahead = np.uint64(row_ahead(rows, p, end))
                fetch(packed, ahead)
                fetch(by_rows[ahead], begin)
            row = np.uint64(rows[p])
            word = packed[row]
            for k in range(begin, last):
                words_of_block[np.uint64(by_rows[row, np.uint64(k)])] += word
        begin = last


@kernel(inner=True)
def count_entries(table, packed, rows, start, end, low, high, words):
    """The same for features that are stored as lists, in the cells low .. high - 1."""
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
def _add_partial(partial, size, low, high, sums):
    """The sum of the histograms of all threads."""
    for k in range(3):
        for cell in range(low, high):
            sums[k, cell] = partial[0, k, cell]
        for rank in range(1, size):
            for cell in range(low, high):
                sums[k, cell] += partial[rank, k, cell]


@kernel(inner=True)
def fill_omitted(table, first, last, sums, node):
    """Fill the omitted codes of sparse features: the sums of the node minus the other codes."""
    is_packed = node.is_packed == 1
    for place in range(max(first, table.n_dense), last):
        at = table.first[place] + table.omitted[place]
        g, h, count = node.total_g, node.total_h, node.count
        for cell in range(table.first[place], table.first[place] + table.n_codes[place] + 1):
            if cell != at:
                less_g, less_h, less = sums_of_cell(sums, is_packed, cell)
                g, h, count = g - less_g, h - less_h, count - less
        if is_packed:
            sums[0, at] = packed_word(g, h, count)
        else:
            sums[0, at], sums[1, at], sums[2, at] = g, h, count


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
