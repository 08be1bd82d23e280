"""Rows of a split: which of them go left, and all in their order."""

from __future__ import annotations

import numpy as np

from margrove._runtime.jit import kernel
from margrove._runtime.team import meet
from margrove.ensemble.gradient.hist.nodes import (
    CODE,
    END,
    IS_SET,
    MIDDLE,
    MISSING_LEFT,
    NODE,
    PLACE,
    START,
    share_of,
)

__all__ = ["code_of", "goes_left_of", "part_rows", "say_who_goes_left"]


@kernel(inner=True)
def say_who_goes_left(table, tree, node, goes_left):
    """For each byte of the feature's column; for each code, if it is in a list."""
    own = tree.whole[node]
    place = own[PLACE]
    n_codes, at = table.n_codes[place], table.bytes_at[place]
    if table.omitted[place] >= 0:
        is_left = goes_left_of(own, tree.sets[node], table.omitted[place], n_codes)
        for byte in range(len(goes_left)):
            goes_left[byte] = is_left
    for code in range(n_codes + 1):
        goes_left[at + code] = goes_left_of(own, tree.sets[node], code, n_codes)


@kernel(inner=True)
def goes_left_of(node, codes_on_left, code, n_codes):
    if code == n_codes:
        return np.uint8(node[MISSING_LEFT] == 1)
    if node[IS_SET] == 1:
        word = codes_on_left[code // 32]
        return np.uint8((word >> np.uint32(code % 32)) & np.uint32(1))
    return np.uint8(code <= node[CODE])


@kernel(inner=True)
def part_rows(team, rank, size, table, tree, room):
    """Rows that go left come first, all in their order: the others are written backwards first."""
    node = tree.state[NODE]
    begin, length = tree.whole[node, START], tree.whole[node, END] - tree.whole[node, START]
    start, end = begin + share_of(length, rank, size), begin + share_of(length, rank + 1, size)
    place = tree.whole[node, PLACE]
    column = table.columns[place]
    if column >= 0:
        left = _part_by_bytes(
            table.by_columns[column], room.goes_left, tree.rows, tree.spare, start, end
        )
    else:
        left = _part_by_list(table, place, room.goes_left, tree.rows, tree.spare, start, end)
    room.counts[rank, 0] = left
    meet(team, size)
    before, total = np.int64(0), np.int64(0)
    for other in range(size):
        before += room.counts[other, 0] if other < rank else 0
        total += room.counts[other, 0]
    to_left, to_right = begin + before, begin + total + (start - begin) - before
    for k in range(left):
        tree.rows[to_left + k] = tree.spare[start + k]
    for k in range(end - start - left):
        tree.rows[to_right + k] = tree.spare[end - 1 - k]
    if rank == 0:
        tree.state[MIDDLE] = begin + total


@kernel(inner=True)
def _part_by_bytes(column, goes_left, rows, spare, start, end):
    """Without a branch: each row is written to both sides, and one of them moves on."""
    low, high = np.uint64(start), np.uint64(end - 1)
    one = np.uint64(1)
    for p in range(start, end):
        row = rows[p]
        is_left = np.uint64(goes_left[column[np.uint64(row)]])
        spare[low] = row
        spare[high] = row
        low += is_left
        high -= one - is_left
    return np.int64(low) - start


@kernel(inner=True)
def _part_by_list(table, place, goes_left, rows, spare, start, end):
    """The rows of the node and those of the list both ascend."""
    k = place - table.places_at[-1]
    at, stop = table.list_starts[k], table.list_starts[k + 1]
    omitted_left = goes_left[table.omitted[place]]
    low, high = start, end - 1
    for p in range(start, end):
        row = rows[p]
        at = _advance_to(table.list_rows, at, stop, row)
        is_left = omitted_left
        if at < stop and table.list_rows[at] == row:
            is_left = goes_left[table.list_codes[at]]
        if is_left:
            spare[low] = row
            low += 1
        else:
            spare[high] = row
            high -= 1
    return low - start


@kernel(inner=True)
def _advance_to(list_rows, at, stop, row):
    """The first entry from `at` on of this row or a later one, in growing strides."""
    stride = 1
    while at + stride < stop and list_rows[at + stride] < row:
        at += stride
        stride *= 2
    low, high = at, min(at + stride, stop)
    while low < high:
        middle = (low + high) // 2
        if list_rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inner=True)
def code_of(table, place, row):
    column = table.columns[place]
    if column >= 0:
        code = np.int64(table.by_columns[column, row]) - table.bytes_at[place]
        is_there = 0 <= code <= table.n_codes[place]
        return code if is_there else table.omitted[place]
    k = place - table.places_at[-1]
    stop = table.list_starts[k + 1]
    at = _advance_to(table.list_rows, table.list_starts[k], stop, row)
    is_there = at < stop and table.list_rows[at] == row
    return np.int64(table.list_codes[at]) if is_there else table.omitted[place]
