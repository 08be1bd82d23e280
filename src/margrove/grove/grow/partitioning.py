"""The rows of a node become those of its left child, then those of its right child."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel, region
from margrove.grove.grow.node_sums import chunks_of
from margrove.grove.grow.nodes import Nodes
from margrove.grove.table import Columns, code_of

__all__ = ["partition_nodes", "partition_rows"]


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


def partition_nodes(
    rows: np.ndarray,
    spare: np.ndarray,
    columns: Columns,
    nodes: Nodes,
    which: np.ndarray,
    n_threads: int,
) -> np.ndarray:
    """`partition_rows` for some nodes, over tiles of their rows: where the right children begin.

    Sets `missing_left` like it. spare: as long as the rows.
    """
    chunks = chunks_of(nodes, which)
    n = len(chunks.owner)
    n_left, has_missing = np.empty(n, np.int64), np.zeros(n, dtype=bool)
    _count_left(n, n_threads, chunks, which, rows, columns, nodes, n_left, has_missing)
    to_left, to_right = np.empty(n, np.int64), np.empty(n, np.int64)
    middles = np.empty(len(which), np.int64)
    _place_chunks(chunks, which, nodes, n_left, has_missing, to_left, to_right, middles)
    _move_rows(n, n_threads, chunks, which, rows, spare, columns, nodes, to_left, to_right)
    _copy_back(n, n_threads, chunks, spare, rows)
    _forget_missing(chunks, which, nodes, has_missing)
    return middles


@kernel(inner=True, inlined=True)
def _goes_left(columns, subsets, feature, last, subset, missing_left, missing, row):
    code = code_of(columns, feature, row)
    if code == missing:
        return missing_left == 1
    if subset >= 0:
        return (subsets[subset + code // 32] >> np.uint32(code % 32)) & np.uint32(1) == 1
    return code <= last


@region(bare=True)
def _count_left(tile, chunks, which, rows, columns, nodes, n_left, has_missing):
    """How many rows of a chunk go left, and whether any value is missing."""
    record, node = nodes.record, which[chunks.owner[tile]]
    feature, last, subset = record.feature[node], record.code[node], record.subset[node]
    missing_left, missing = record.missing_left[node], columns.n_codes[feature]
    count, seen = 0, False
    for p in range(chunks.begin[tile], chunks.end[tile]):
        row = rows[p]
        count += _goes_left(columns, nodes.subsets, feature, last, subset, missing_left, missing,
                            row)  # fmt: skip
        seen |= code_of(columns, feature, row) == missing
    n_left[tile], has_missing[tile] = count, seen


@kernel(bare=True)
def _place_chunks(chunks, which, nodes, n_left, has_missing, to_left, to_right, middles):
    """Where the rows of each chunk go, on the left and on the right."""
    for k in range(len(which)):
        middles[k] = nodes.record.start[which[k]]
    for c in range(len(n_left)):
        middles[chunks.owner[c]] += n_left[c]
    left, right = 0, 0
    for c in range(len(n_left)):
        k = chunks.owner[c]
        if c == 0 or chunks.owner[c - 1] != k:
            left, right = nodes.record.start[which[k]], middles[k]
        to_left[c], to_right[c] = left, right
        left += n_left[c]
        right += chunks.end[c] - chunks.begin[c] - n_left[c]


@region(bare=True)
def _move_rows(tile, chunks, which, rows, spare, columns, nodes, to_left, to_right):
    record, node = nodes.record, which[chunks.owner[tile]]
    feature, last, subset = record.feature[node], record.code[node], record.subset[node]
    missing_left, missing = record.missing_left[node], columns.n_codes[feature]
    left, right = to_left[tile], to_right[tile]
    for p in range(chunks.begin[tile], chunks.end[tile]):
        row = rows[p]
        if _goes_left(columns, nodes.subsets, feature, last, subset, missing_left, missing, row):
            spare[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1


@region(bare=True)
def _copy_back(tile, chunks, spare, rows):
    for p in range(chunks.begin[tile], chunks.end[tile]):
        rows[p] = spare[p]


@kernel(bare=True)
def _forget_missing(chunks, which, nodes, has_missing):
    """missing_left becomes -1 where no value is missing."""
    for c in range(len(has_missing)):
        if c == 0 or chunks.owner[c] != chunks.owner[c - 1]:
            seen = False
        seen |= has_missing[c]
        if not seen and (c + 1 == len(has_missing) or chunks.owner[c + 1] != chunks.owner[c]):
            nodes.record.missing_left[which[chunks.owner[c]]] = -1
