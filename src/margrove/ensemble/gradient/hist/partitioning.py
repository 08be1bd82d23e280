"""Partitions the rows of a node by its split; both children keep the order of the rows."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel

__all__ = [
    "advance_to",
    "code_of",
    "is_code_left",
    "mark_codes",
    "move_back",
    "partition_by_list",
    "partition_rows",
]


@kernel(inner=True)
def mark_codes(table, node, goes_left):
    """Write goes_left uint8 (256,): 1 for bytes of the feature's column that go left, or for codes
    if the feature is stored as a list."""
    place = node.place
    n_codes, at = table.n_codes[place], table.bytes_at[place]
    if table.omitted[place] >= 0:
        is_left = is_code_left(node, table.omitted[place], n_codes)
        for byte in range(len(goes_left)):
            goes_left[byte] = is_left
    for code in range(n_codes + 1):
        goes_left[at + code] = is_code_left(node, code, n_codes)


@kernel(inner=True)
def is_code_left(node, code, n_codes):
    """1 if rows of this code go left; n_codes is the code of rows without a value."""
    if code == n_codes:
        return np.uint8(node.missing_left == 1)
    if node.is_set == 1:
        word = node.codes_left[code // 32]
        return np.uint8((word >> np.uint32(code % 32)) & np.uint32(1))
    return np.uint8(code <= node.code)


@kernel(inner=True)
def partition_rows(table, place, goes_left, rows, spare, start, end):
    """Write rows[start:end] that go left to the front of the buffer, and others to the end, in
    reverse order; returns how many go left."""
    column = table.columns[place]
    if column >= 0:
        by_columns = table.by_columns[column]
        return _partition_by_bytes(by_columns, goes_left, rows, spare, start, end)
    return partition_by_list(table, place, goes_left, rows, spare, start, end)


@kernel(inner=True)
def move_back(rows, spare, start, end, left, to_left, to_right):
    """Copy rows from the buffer: `left` of them from the front, the others from the end."""
    for k in range(left):
        rows[to_left + k] = spare[start + k]
    for k in range(end - start - left):
        rows[to_right + k] = spare[end - 1 - k]


@kernel(inner=True)
def _partition_by_bytes(column, goes_left, rows, spare, start, end):
    """Without a branch: each row is written to both sides, and one of the positions advances."""
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
def partition_by_list(table, place, goes_left, rows, spare, start, end):
    """Write rows that go left from the front, others from the end; returns how many go left.

    The rows of the node and those of the list are ascending.
    """
    k = place - table.places_at[-1]
    at, stop = table.list_starts[k], table.list_starts[k + 1]
    omitted_left = goes_left[table.omitted[place]]
    low, high = start, end - 1
    for p in range(start, end):
        row = rows[p]
        at = advance_to(table.list_rows, at, stop, row)
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
def advance_to(list_rows, at, stop, row):
    """The first entry from `at` on of this row or a later one (exponential search)."""
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
    """The code of a row for the feature at a place."""
    column = table.columns[place]
    if column >= 0:
        code = np.int64(table.by_columns[column, row]) - table.bytes_at[place]
        is_there = 0 <= code <= table.n_codes[place]
        return code if is_there else table.omitted[place]
    k = place - table.places_at[-1]
    stop = table.list_starts[k + 1]
    at = advance_to(table.list_rows, table.list_starts[k], stop, row)
    is_there = at < stop and table.list_rows[at] == row
    return np.int64(table.list_codes[at]) if is_there else table.omitted[place]
