"""The regions in which a tree grows: what a thread does with a tile.

Rows are counted by workers: a worker takes chunks of rows until there are no more, and counts them
in a histogram of its own. So there are not more histograms than threads, and a thread that comes
late does less. Gradients are integers, so it does not matter which worker counts a row.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import atomic_add, kernel
from margrove.ensemble.gradient.hist.children import search_children
from margrove.ensemble.gradient.hist.histograms import (
    begin_count,
    count_rows,
    end_count,
    fill_omitted,
    join_counts,
    subtract,
)
from margrove.ensemble.gradient.hist.partitioning import move_back, partition_rows
from margrove.ensemble.gradient.hist.root import find_largest, write_packed, write_wide

__all__ = [
    "CHUNKS_OF_A_MOVE",
    "find_largest_of_worker",
    "move_rows_back",
    "partition_and_count",
    "search_or_move",
    "write_and_count",
]

CHUNKS_OF_A_MOVE = 2


@kernel(inner=True)
def _next_chunk(space, n_workers, chunk):
    """The chunk that a worker takes after this one, at first -1."""
    return chunk + 1 if n_workers == 1 else atomic_add(space.queue, 0, 1)


# -- the root --


@kernel(inner=True)
def find_largest_of_worker(worker, n_workers, source, tree, space):
    """Write the largest gradient and hessian of a worker's rows, and their number of samples."""
    n, step = len(source.rows), tree.state[0].chunk
    largest_g, largest_h, samples, copies = 0.0, 0.0, np.int64(0), np.int64(1)
    largest, counts = space.largest[worker], space.counts[worker]
    chunk = _next_chunk(space, n_workers, np.int64(-1))
    while chunk * step < n:
        start = chunk * step
        find_largest(source, start, min(start + step, n), largest, counts)
        largest_g, largest_h = max(largest_g, largest[0]), max(largest_h, largest[1])
        samples, copies = samples + counts[0], max(copies, counts[1])
        chunk = _next_chunk(space, n_workers, chunk)
    largest[0], largest[1] = largest_g, largest_h
    counts[0], counts[1] = samples, copies


@kernel(inner=True)
def write_and_count(worker, n_workers, counts_root, in_words, g_scale, h_scale, table, source, tree,
                    space):  # fmt: skip
    """Write gradients as integers, and count the root."""
    n, state, counts = len(source.rows), tree.state[0], space.counts[worker]
    step, is_wide = state.chunk, state.is_wide == 1
    total_g, total_h, size_of_g = np.int64(0), np.int64(0), np.int64(0)
    begin_count(worker, table, space, 0, in_words)
    chunk = _next_chunk(space, n_workers, np.int64(-1))
    while chunk * step < n:
        start = chunk * step
        end = min(start + step, n)
        if is_wide:
            write_wide(source, start, end, g_scale, h_scale, tree.rows, counts)
        else:
            write_packed(source, start, end, g_scale, h_scale, tree.rows, counts)
        total_g, total_h, size_of_g = (
            total_g + counts[0], total_h + counts[1], size_of_g + counts[2],
        )  # fmt: skip
        if counts_root:
            count_rows(worker, table, source, tree, tree.rows, start, end, space, 0, in_words)
        chunk = _next_chunk(space, n_workers, chunk)
    end_count(worker, table, space, 0)
    counts[0], counts[1], counts[2] = total_g, total_h, size_of_g


# -- a split --


@kernel(inner=True)
def partition_and_count(worker, n_workers, in_words, table, source, tree, space):
    """Partition the rows of a node into the buffer, and count one of the children, if any."""
    state, rows, spare = tree.state[0], tree.rows, tree.spare
    node = tree.nodes[state.node]
    counted, slot = state.counted, tree.free[max(state.n_free - 1, 0)]
    if counted >= 0:
        begin_count(worker, table, space, slot, in_words)
    step = state.chunk
    chunk = _next_chunk(space, n_workers, np.int64(-1))
    while node.start + chunk * step < node.end:
        start = node.start + chunk * step
        end = min(start + step, node.end)
        left = partition_rows(table, node.place, space.goes_left, rows, spare, start, end)
        space.lefts[chunk + 1] = left
        if counted >= 0:
            first, last = (start, start + left) if counted == 0 else (start + left, end)
            count_rows(worker, table, source, tree, spare, first, last, space, slot, in_words)
        chunk = _next_chunk(space, n_workers, chunk)
    if counted >= 0:
        end_count(worker, table, space, slot)


@kernel(inner=True)
def move_rows_back(tile, node, tree, space):
    """Move the rows of some chunks from the buffer to the children."""
    start, end = tree.nodes.start[node], tree.nodes.end[node]
    step, lefts = tree.state[0].chunk, space.lefts
    n_chunks = -(-(end - start) // step)
    n_left = lefts[n_chunks]
    for chunk in range(tile * CHUNKS_OF_A_MOVE, min((tile + 1) * CHUNKS_OF_A_MOVE, n_chunks)):
        begin = start + chunk * step
        before, left = lefts[chunk], lefts[chunk + 1] - lefts[chunk]
        to_right = start + n_left + (begin - start) - before
        move_back(tree.rows, tree.spare, begin, min(begin + step, end), left,
                  start + before, to_right)  # fmt: skip


@kernel(inner=True)
def search_or_move(tile, n_groups, counted, other, node, table, rules, tree, space):
    """Search a group of features for splits of two nodes, or move rows of their parent back.

    The histogram of `counted` is complete but for the other workers' counts, and that of `other`
    is still the one of their parent, `node`.
    """
    if tile >= n_groups:
        move_rows_back(tile - n_groups, node, tree, space)
        return
    is_all = n_groups == 1
    first = np.int64(0) if is_all else space.groups[tile]
    last = np.int64(len(table.features)) if is_all else space.groups[tile + 1]
    low, high = table.first[first], table.first[last]
    record, nodes = tree.nodes[counted], tree.nodes
    sums, in_words = space.sums[record.slot], record.is_packed == 1
    join_counts(tree.state[0].n_workers, space, record.slot, in_words, low, high)
    fill_omitted(table, first, last, sums, record)
    if other >= 0:
        subtract(space.sums[nodes.slot[other]], nodes.is_packed[node] == 1, sums, in_words,
                 nodes.is_packed[other] == 1, low, high)  # fmt: skip
    search_children(tile, table, rules, tree, space, first, last)
