"""Grows a tree of few rows, whose features are sorted lists of rows instead of histograms.

A feature of few rows has about as many codes as rows, and nodes have far fewer rows than there are
codes. So the rows are sorted once by each feature; a split parts the lists in order, and the sums
of the rows up to each place of a list are what the cells of a histogram add up to. The trees are
those of `trees`, bit for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, share_tiles
from margrove.ensemble.gradient.hist.binning import GradientTable
from margrove.ensemble.gradient.hist.children import (
    allow_features_of_children,
    join_children,
    may_be_split,
    take_next,
    write_children,
)
from margrove.ensemble.gradient.hist.nodes import GROWING
from margrove.ensemble.gradient.hist.partitioning import (
    mark_codes,
    move_back,
    partition_rows,
)
from margrove.ensemble.gradient.hist.root import (
    FEW_SAMPLES,
    bits_of_gradients,
    find_largest,
    power_for,
    start_root,
    write_wide,
)
from margrove.ensemble.gradient.hist.split_search import (
    MISSING_UNSEEN,
    begin_search,
    is_even,
    limits_of_node,
    place_of_largest,
    search_feature,
    write_gains,
)
from margrove.ensemble.gradient.hist.trees import fill_leaves

__all__ = ["SortedLists", "grow_few", "is_worth_lists", "sorted_lists"]

_CODE_AT = 16  # an entry of a list is a row, and its code above
_ROW = (1 << _CODE_AT) - 1
# Costs in units of `trees`: of an entry on each level, of counting a code, and of a cell of a leaf.
_COST_OF_AN_ENTRY, _COST_OF_A_CODE, _COST_OF_A_CELL = 4, 12, 7
_COST_OF_A_THREAD = 32768


class SortedLists(NamedTuple):
    """The rows by each feature, at d places.

    entries   uint32 (d, n)  rows and codes, ascending by code; as at the root
    lists     uint32 (d, n)  the same, parted by the nodes of a tree
    spare     uint32 (groups, n)  buffers
    sums      float64 (groups, 4, n)  sums up to some places of a list, see `write_gains`
    is_left   uint8 (n,)  whether a row goes to the left child
    groups    int64 (groups + 1,)  the first place of each group of features
    """

    entries: np.ndarray
    lists: np.ndarray
    spare: np.ndarray
    sums: np.ndarray
    is_left: np.ndarray
    groups: np.ndarray


def is_worth_lists(table: GradientTable, n_samples: int, max_leaves: int) -> bool:
    """Whether lists are faster than histograms, for so many samples."""
    n, d = table.n_rows, len(table.features)
    if n_samples > FEW_SAMPLES or not n * d or (table.columns < 0).any():
        return False
    levels = 1 + (max_leaves - 1).bit_length()
    of_histograms = _COST_OF_A_CODE * n * d + _COST_OF_A_CELL * max_leaves * table.n_cells
    return _COST_OF_AN_ENTRY * levels * n * d < of_histograms


def sorted_lists(table: GradientTable, groups: np.ndarray) -> SortedLists:
    n, d, n_groups = table.n_rows, len(table.features), len(groups) - 1
    codes = _codes_of(table)
    order = np.argsort(codes, axis=1, kind="stable")
    entries = np.take_along_axis(codes, order, axis=1).astype(np.uint32) << np.uint32(_CODE_AT)
    entries |= order.astype(np.uint32)
    return SortedLists(
        entries,
        np.empty((d, n), np.uint32),
        np.empty((n_groups, n), np.uint32),
        np.empty((n_groups, 4, n)),
        np.empty(n, np.uint8),
        groups,
    )


def _codes_of(table: GradientTable) -> np.ndarray:
    """The codes of all rows by place, uint8 (d, n)."""
    codes: np.ndarray = table.by_columns[table.columns] - table.bytes_at[:, None].astype(np.uint8)
    for place in range(table.n_dense, len(codes)):  # bytes of other features of the column
        own = codes[place]
        own[own > table.n_codes[place]] = table.omitted[place]
    return codes


@kernel(inner=True)
def grow_few(pool, n_threads, table, lists, source, rules, tree, space):
    """Grow a tree, whose source has arrays for separate integers, and add it to the scores."""
    state, d = tree.state[0], len(table.features)
    _make_root(source, rules, tree, space)
    allow_features_of_children(table, rules, tree, space)
    node, length = np.int64(-1), np.int64(len(tree.rows))
    n_groups = np.int64(len(lists.groups) - 1)
    while True:
        cost = _COST_OF_AN_ENTRY * d * length
        size = min(np.int64(n_threads), np.int64(1) + cost // _COST_OF_A_THREAD)
        share_tiles(pool, n_groups if size > 1 else np.int64(1), size, _part_and_search,
                    (n_groups, size == 1, node, table, lists, source, rules, tree,
                     space))  # fmt: skip
        state.n_searchers = n_groups if size > 1 else np.int64(1)
        join_children(table, rules, tree, space)
        is_searched = False
        while not is_searched and state.n_frontier > 0 and state.n_leaves < rules.max_leaves:
            node = take_next(rules, tree)
            length = tree.nodes.end[node] - tree.nodes.start[node]
            is_searched = _split(table, lists, rules, tree, space, node)
        if not is_searched:
            break
    fill_leaves(pool, np.int64(1), source, rules, tree, space)


@kernel(inner=True)
def _make_root(source, rules, tree, space):
    state, n = tree.state[0], len(source.rows)
    largest, counts = space.largest[0], space.counts[0]
    find_largest(source, 0, n, largest, counts)
    largest_g, largest_h, count, copies = largest[0], largest[1], counts[0], counts[1]
    state.is_uneven = 1  # as for all trees of few samples
    bits = bits_of_gradients(tree, True, count)
    write_wide(source, 0, n, power_for(largest_g, bits), power_for(largest_h, bits), tree.rows,
               counts)  # fmt: skip
    start_root(rules, tree, n, True, (largest_g, largest_h), (count, copies),
               (counts[0], counts[1], counts[2]))  # fmt: skip
    state.small, state.large, state.phase = 0, -1, GROWING


@kernel(inner=True)
def _split(table, lists, rules, tree, space, node):
    """Part the rows of a node; returns whether its children are searched."""
    state, record = tree.state[0], tree.nodes[node]
    start, end = record.start, record.end
    mark_codes(table, record, space.goes_left)
    left = partition_rows(table, record.place, space.goes_left, tree.rows, tree.spare, start, end)
    move_back(tree.rows, tree.spare, start, end, left, start, start + left)
    write_children(rules, tree, node, start + left)
    if state.small < 0:
        return False
    for p in range(start, end):
        lists.is_left[np.uint64(tree.rows[p])] = np.uint8(p < start + left)
    allow_features_of_children(table, rules, tree, space)
    return True


@kernel(inner=True)
def _part_and_search(tile, n_groups, is_all, node, table, lists, source, rules, tree, space):
    """Part the lists of a group of features between the children of a node, or begin with the
    lists of the root, and find the best splits."""
    first, last = lists.groups[tile], lists.groups[n_groups if is_all else tile + 1]
    state = tree.state[0]
    for place in range(first, last):
        if node < 0:
            own, whole = lists.lists[place], lists.entries[place]
            for p in range(len(own)):
                own[p] = whole[p]
        else:
            own = lists.lists[place, tree.nodes.start[node] : tree.nodes.end[node]]
            _part(own, lists.is_left, lists.spare[tile])
    for k in range(2):
        child = state.small if k == 0 else state.large
        space.best.place[tile, k] = -1
        if may_be_split(rules, tree, child):
            _search(table, lists, source, rules, tree, space, child, first, last,
                    space.allowed[k], tile, space.best[tile, k])  # fmt: skip


@kernel(inner=True)
def _part(own, is_left, spare):
    """Part a list between two children, in order and without a branch."""
    low, high, one = np.uint64(0), np.uint64(0), np.uint64(1)
    for p in range(len(own)):
        entry = own[p]
        side = np.uint64(is_left[np.uint64(entry) & np.uint64(_ROW)])
        own[low] = entry
        spare[high] = entry
        low += side
        high += one - side
    right = own[low:]
    for p in range(len(right)):
        right[p] = spare[p]


@kernel(inner=True)
def _search(table, lists, source, rules, tree, space, node, first, last, allowed, group, best):
    """Find the best split of a node by the features at the places first .. last - 1."""
    record, is_bound, sums = tree.nodes[node], len(rules.signs) > 0, lists.sums[group]
    g, h, copies = source.g, source.h, source.copies
    begin_search(rules, tree.units, record, best)
    limits = limits_of_node(rules, tree.units, record)
    for place in range(first, last):
        own, n_codes = lists.lists[place, record.start : record.end], table.n_codes[place]
        low, high = own[0] >> _CODE_AT, own[len(own) - 1] >> _CODE_AT
        if low == high or not allowed[place]:
            continue
        if table.is_category[place] or is_bound:
            cells = space.sums[0, :, table.first[place] : table.first[place + 1]]
            _fill_cells(g, h, copies, own, cells)
            search_feature(table, rules, tree.units, record, place, space.sums[0],
                           space.scratch[group], space.order[group], best)  # fmt: skip
            continue
        is_missing = high == n_codes
        for side in range(2 if is_missing else 1):
            missing = side if is_missing else MISSING_UNSEEN
            found = _search_list(g, h, copies, own, n_codes, missing, limits, sums)
            if found < 0:
                continue
            most = sums[3, 0]
            if most > best.gain or (most == best.gain and is_even(table, place, most, best)):
                best.gain = most
                best.place, best.code = place, np.int64(own[found] >> _CODE_AT)
                best.missing_left, best.is_set = missing, 0
                _write_sums(g, h, copies, own, n_codes, found, best)


@kernel(inner=True)
def _fill_cells(g, h, copies, own, cells):
    """Write the cells of a feature, int64 (3, codes)."""
    for k in range(len(cells)):
        of_kind = cells[k]
        for cell in range(len(of_kind)):
            of_kind[cell] = 0
    for p in range(len(own)):
        row, cell = np.uint64(own[p]) & np.uint64(_ROW), np.uint64(own[p]) >> np.uint64(_CODE_AT)
        cells[0, cell] += g[row]
        cells[1, cell] += h[row]
        cells[2, cell] += copies[row] if len(copies) else np.int64(1)


@kernel(inner=True)
def _search_list(g, h, copies, own, n_codes, missing, limits, sums):
    """The last entry that goes left in the best split of a numeric feature, whose worth is written
    to sums[3, 0]; -1 if there is none. Missing values are at the end of a list."""
    n, n_values, least_n = len(own), len(own), np.int64(limits[3])
    if missing != MISSING_UNSEEN:
        while n_values > 0 and own[n_values - 1] >> _CODE_AT == n_codes:
            n_values -= 1
    n_before = n - n_values if missing == 1 else 0
    # The places between which a split leaves both children enough rows.
    begin, end = np.int64(0), np.int64(n_values - (missing != 0))
    if not len(copies):
        begin = max(begin, least_n - 1 - n_before)
        end = min(end, n - n_before - least_n)
    if begin >= end:
        return -1
    before = _sums_of_entries(g, h, copies, own[n - n_before :], np.int64(0), np.int64(0),
                              np.int64(0))  # fmt: skip
    before = _sums_of_entries(g, h, copies, own[:begin], *before)
    _add_up(g, h, copies, own[begin:end], *before, sums)
    write_gains(limits, end - begin, sums)
    gains, here, after = sums[3], own[begin:end], own[begin + 1 : end + 1]
    for p in range(len(here)):
        gains[p] = gains[p] if (here[p] ^ after[p]) > _ROW else -1.0
    found = place_of_largest(gains, end - begin)
    if found < 0:
        return -1
    gains[0] = gains[found]
    return begin + found


@kernel(inner=True)
def _write_sums(g, h, copies, own, n_codes, found, best):
    """Write the sums of the rows that go left."""
    before = (np.int64(0), np.int64(0), np.int64(0))
    if best.missing_left == 1:
        n_values = len(own)
        while own[n_values - 1] >> _CODE_AT == n_codes:
            n_values -= 1
        before = _sums_of_entries(g, h, copies, own[n_values:], *before)
    best.left_g, best.left_h, best.left_count = _sums_of_entries(
        g, h, copies, own[: found + 1], *before
    )


@kernel(inner=True)
def _sums_of_entries(g, h, copies, own, total_g, total_h, count):
    """Sums of g, h and samples, and those of some entries."""
    for p in range(len(own)):
        row = np.uint64(own[p]) & np.uint64(_ROW)
        total_g += g[row]
        total_h += h[row]
        count += copies[row] if len(copies) else np.int64(1)
    return total_g, total_h, count


@kernel(inner=True)
def _add_up(g, h, copies, own, total_g, total_h, count, sums):
    """Write sums[:3, p]: the sums of g, h and samples up to each entry."""
    gs, hs, ns = sums[0], sums[1], sums[2]
    for p in range(len(own)):
        row = np.uint64(own[p]) & np.uint64(_ROW)
        total_g += g[row]
        total_h += h[row]
        count += copies[row] if len(copies) else np.int64(1)
        gs[p], hs[p], ns[p] = float(total_g), float(total_h), float(count)
