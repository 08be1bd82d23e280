"""The rows of a node become those of its left child, then those of its right child."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.table import code_of

__all__ = ["partition_rows"]


@kernel(inner=True, inlined=True)
def partition_rows(rows, spare, columns, nodes, node):
    """Reorder rows[start:end] of a node in place, keeping their order on each side.

    Returns where the rows of the right child begin. Sets `missing_left` to -1 if no value is
    missing. spare: as long as the rows.
    """
    record = nodes.record
    feature = record.feature[node]
    width, place = columns.width[feature], columns.place[feature]
    if record.subset[node] >= 0 or columns.has_missing[feature]:
        return _partition_any(rows, spare, columns, nodes, node)
    start, end, code = record.start[node], record.end[node], record.code[node]
    record.missing_left[node] = -1
    if width == 0:
        return _partition_by_code(rows, spare, columns.narrow[place], start, end, code)
    if width == 1:
        return _partition_by_code(rows, spare, columns.medium[place], start, end, code)
    return _partition_by_code(rows, spare, columns.wide[place], start, end, code)


@kernel(inner=True, inlined=True)
def _partition_by_code(rows, spare, column, start, end, code):
    left, right, one = np.uint64(start), np.uint64(0), np.uint64(1)
    last = np.uint32(code)
    for p in range(np.uint64(start), np.uint64(end)):
        row = rows[p]
        goes_right = np.uint64(np.uint32(column[np.uint64(row)]) > last)
        rows[left] = row
        spare[right] = row
        left += one - goes_right
        right += goes_right
    for p in range(right):
        rows[left + p] = spare[p]
    return np.int64(left)


@kernel(inner=True)
def _partition_any(rows, spare, columns, nodes, node):
    """With missing values or a set of codes."""
    record, subsets = nodes.record, nodes.subsets
    start, end = record.start[node], record.end[node]
    feature, last, subset = record.feature[node], record.code[node], record.subset[node]
    missing_left, missing = record.missing_left[node], columns.n_codes[feature]
    left, right = start, 0
    record.missing_left[node] = -1
    for p in range(start, end):
        row = rows[p]
        code = code_of(columns, feature, row)
        if code == missing:
            goes_left = missing_left == 1
            record.missing_left[node] = missing_left
        elif subset >= 0:
            goes_left = (subsets[subset + code // 32] >> np.uint32(code % 32)) & np.uint32(1) == 1
        else:
            goes_left = code <= last
        if goes_left:
            rows[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    for p in range(right):
        rows[left + p] = spare[p]
    return left
