"""The nodes that are still to be split: a stack, or a heap by what their splits gain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, record_type, records

__all__ = ["PROGRESS", "Frontier", "longer_frontier", "new_frontier", "put_node", "take_node"]

PROGRESS = record_type(
    [
        ("n_nodes", np.int64),  # in use
        ("n_leaves", np.int64),
        ("n_frontier", np.int64),  # nodes that are still to be split
        ("n_words", np.int64),  # of sets of codes, in use
        ("n_listed", np.int64),  # features whose rows have been sorted
        ("n_new", np.int64),  # nodes that are still to be searched
        ("newest", np.int64),  # the first of these
    ]
)


class Frontier(NamedTuple):
    """heap: int64, the nodes that are still to be split, progress.n_frontier[0] of them.
    progress: how far the tree has grown, see above."""

    heap: np.ndarray
    progress: np.recarray


def new_frontier(n_nodes: int) -> Frontier:
    """An empty frontier of a tree of at most so many nodes."""
    return Frontier(np.zeros(n_nodes + 2, np.int64), records(1, PROGRESS))


def longer_frontier(frontier: Frontier, n_nodes: int) -> Frontier:
    """The same, for a tree of at most so many nodes."""
    missing = n_nodes + 2 - len(frontier.heap)
    if missing <= 0:
        return frontier
    heap = np.concatenate([frontier.heap, np.zeros(missing, np.int64)])
    return frontier._replace(heap=heap)


@kernel(inner=True, inlined=True)
def take_node(frontier, nodes, best_first):
    """The node to split next: the newest, or the one whose split gains most."""
    heap, progress = frontier.heap, frontier.progress
    progress.n_frontier[0] -= 1
    size = progress.n_frontier[0]
    if not best_first:
        return heap[size]
    top = heap[0]
    last = heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _comes_before(nodes, heap[child + 1], heap[child]):
            child += 1
        if not _comes_before(nodes, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return top


@kernel(inner=True, inlined=True)
def put_node(frontier, nodes, node, best_first):
    """One more node to split."""
    heap, progress = frontier.heap, frontier.progress
    at = progress.n_frontier[0]
    progress.n_frontier[0] += 1
    if best_first:
        while at > 0 and _comes_before(nodes, node, heap[(at - 1) // 2]):
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
    heap[at] = node


@kernel(inner=True, inlined=True)
def _comes_before(nodes, a, b):
    """Whether node a gains more; of equals, the older one comes first."""
    record = nodes.record
    gain_a = record.decrease[a] if record.feature[a] >= 0 else -1.0
    gain_b = record.decrease[b] if record.feature[b] >= 0 else -1.0
    return gain_a > gain_b or (gain_a == gain_b and a < b)
