"""Grows many subtrees side by side, each in one tile: those that no interrupt has to wait for.

`subtree.Subtree` grows one that can be interrupted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, kernel, records, region, words_of
from margrove.grove.grow.frontier import PROGRESS, Frontier
from margrove.grove.grow.nodes import Nodes, begin_root, new_nodes
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search import (
    ABSOLUTE,
    GAIN_RATIO,
    GeneralBuffers,
    SearchBuffers,
    SparseRows,
    new_sparse_search,
)
from margrove.grove.grow.subtree import Lists, grow, is_fast_case, list_entries
from margrove.grove.table import Columns, Targets

__all__ = ["GrownSubtrees", "bytes_of_nodes", "grow_subtrees"]


class GrownSubtrees(NamedTuple):
    """Finished subtrees. The nodes of subtree k are nodes[first[k]:first[k] + counts[k]], of which
    `left` is a number within the subtree, and the first stands for the upper node uppers[k]."""

    uppers: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    nodes: Nodes


class _Room(NamedTuple):
    """Where subtree k may put its nodes and sets: from first[k] and first_word[k] on."""

    first: np.ndarray
    first_word: np.ndarray
    nodes: Nodes
    progress: np.recarray


class _Sizes(NamedTuple):
    """largest_set: words of a set of codes; n_groups: of a search, at most; n_ranked, n_ratios:
    rows of the buffers for medians, features of those for gain ratios, or 0."""

    largest_set: int
    n_groups: int
    is_ranked: bool
    n_ratios: int


def bytes_of_nodes(targets: Targets, n_rows: int, largest_set: int) -> int:
    """How many bytes the nodes of a subtree over so many rows may take."""
    n_numbers = 3 * (len(targets.starts) - 1) if len(targets.raw) else 0
    one = 152 + 8 * (int(targets.starts[-1]) + n_numbers)
    return (2 * n_rows + 1) * one + 4 * (n_rows + 1) * largest_set


def grow_subtrees(
    columns: Columns,
    rows: np.ndarray,
    targets: Targets,
    rules: Rules,
    upper: Nodes,
    which: np.ndarray,
    largest_set: int,
    n_threads: int,
    sparse: SparseRows | None = None,
) -> GrownSubtrees:
    """Grow the subtrees over the rows of some upper nodes, which become their roots."""
    record = fields_of(upper.record)
    size = record["end"][which] - record["start"][which]
    capacity, n_words = 2 * size + 1, (size + 1) * largest_set
    n_numbers = upper.centre.shape[1]
    room = _Room(
        np.append(0, np.cumsum(capacity)),
        np.append(0, np.cumsum(n_words)),
        new_nodes(int(capacity.sum()), upper.stats.shape[1], n_numbers, int(n_words.sum())),
        records(len(which), PROGRESS),
    )
    given = (which, columns, rows, targets, rules, upper, room)
    n_groups = int(size.max()) if len(targets.starts) > 2 else 0
    if columns.categorical.any():
        n_groups = max(n_groups, int(columns.n_codes[columns.categorical].max()) + 1)
    n_ratios = len(columns.n_codes) if rules.criterion == GAIN_RATIO else 0
    sizes = _Sizes(largest_set, n_groups, rules.criterion == ABSOLUTE, n_ratios)
    if is_fast_case(columns, targets, rules):
        _grow_fast(len(which), n_threads, *given, sizes, sparse)
    else:
        _grow_any(len(which), n_threads, *given, sizes, sparse)
    return _compact(which, room, n_threads)


def _compact(which: np.ndarray, room: _Room, n_threads: int) -> GrownSubtrees:
    """The nodes without the room between them."""
    progress = fields_of(room.progress)
    if len(which) == 1:  # nothing lies between
        return GrownSubtrees(which, room.first[:1], progress["n_nodes"].copy(), room.nodes)
    counts, words = progress["n_nodes"].copy(), progress["n_words"].copy()
    first, first_word = np.append(0, np.cumsum(counts)), np.append(0, np.cumsum(words))
    source = room.nodes
    n = int(first[-1])
    stats, centre, exponent, value = (
        np.empty((n, array.shape[1]), array.dtype) for array in source[1:-1]
    )
    record = np.empty(n, source.record.dtype).view(np.recarray)
    subsets = np.empty(int(first_word[-1]), np.uint32)
    nodes = Nodes(record, stats, centre, exponent, value, subsets)
    _copy_nodes(len(which), n_threads, room, words_of(source.record), first, first_word, nodes,
                words_of(nodes.record))  # fmt: skip
    return GrownSubtrees(which, first[:-1], counts, nodes)


@region
def _grow_fast(tile, which, columns, rows, targets, rules, upper, room, sizes, sparse):
    places, local, lists, nodes, frontier, buffers = _begin(
        tile, which, columns, rows, targets, rules, upper, room, sparse
    )
    search = None if sparse is None else new_sparse_search(sparse, places, targets.starts[-1])
    while frontier.progress.n_frontier[0] > 0:
        grow(lists, columns, places, local, rules, 0, sizes.largest_set, nodes, frontier, buffers,
             None, search, np.inf)  # fmt: skip


@region
def _grow_any(tile, which, columns, rows, targets, rules, upper, room, sizes, sparse):
    places, local, lists, nodes, frontier, buffers = _begin(
        tile, which, columns, rows, targets, rules, upper, room, sparse
    )
    search = None if sparse is None else new_sparse_search(sparse, places, targets.starts[-1])
    general = _general_buffers(buffers, len(places), sizes)
    while frontier.progress.n_frontier[0] > 0:
        grow(lists, columns, places, local, rules, 0, sizes.largest_set, nodes, frontier, buffers,
             general, search, np.inf)  # fmt: skip


@kernel(hidden=True)
def _begin(tile, which, columns, rows, targets, rules, upper, room, sparse):
    """Rows, targets, sorted lists, nodes, frontier and buffers of a subtree."""
    record, node = upper.record, which[tile]
    places = rows[record.start[node] : record.end[node]]
    m, d, n_stats = len(places), len(columns.n_codes), targets.starts[-1]
    n_lists = d if sparse is None else 0
    lists = Lists(
        np.empty((n_lists + 1, m), np.uint32), np.empty(m, np.uint8), np.empty(m, np.uint32)
    )
    for j in range(n_lists):
        list_entries(columns, j, places, lists.entries[j])
    for i in range(m):
        lists.entries[n_lists, i] = i
    first, end = room.first[tile], room.first[tile + 1]
    sets = room.nodes.subsets[room.first_word[tile] : room.first_word[tile + 1]]
    nodes = Nodes(
        room.nodes.record[first:end], room.nodes.stats[first:end], room.nodes.centre[first:end],
        room.nodes.exponent[first:end], room.nodes.value[first:end], sets,
    )  # fmt: skip
    _begin_nodes(nodes, m, rules, upper, node)
    frontier = Frontier(np.empty(m + 2, np.int64), room.progress[tile : tile + 1])
    frontier.heap[0] = 0
    frontier.progress.n_frontier[0] = 1
    frontier.progress.n_nodes[0] = 1
    frontier.progress.n_leaves[0] = 1
    buffers = SearchBuffers(
        np.zeros(n_stats, np.int64), np.zeros(n_stats, np.int64), np.zeros(n_stats, np.int64),
        np.arange(d), np.zeros(7, np.int64), np.zeros(1),
    )  # fmt: skip
    return places, _local(targets, places), lists, nodes, frontier, buffers


@kernel(inner=True)
def _begin_nodes(nodes, m, rules, upper, node):
    """The root takes over what the upper node that it stands for has inherited."""
    begin_root(nodes, m, rules.seed)
    record, above = nodes.record, upper.record
    record.depth[0], record.key[0] = above.depth[node], above.key[node]
    record.parent[0], record.decrease[0] = above.parent[node], above.decrease[node]
    record.low[0], record.high[0] = above.low[node], above.high[node]
    record.error_left[0] = above.error_left[node]
    record.random_threshold[0] = above.random_threshold[node]
    for o in range(nodes.centre.shape[1]):
        nodes.centre[0, o] = upper.centre[node, o]
        nodes.exponent[0, o] = upper.exponent[node, o]


@kernel(hidden=True)
def _local(targets, places):
    """The targets of these rows only, close together in memory."""
    m, n_outputs = len(places), len(targets.starts) - 1
    labels = np.empty(m * n_outputs if len(targets.labels) > 0 else 0, np.int32)
    numbers = np.empty(m * n_outputs if len(targets.numbers) > 0 else 0, np.int64)
    raw = np.empty(m * n_outputs if len(targets.raw) > 0 else 0)
    weight, real, samples = np.empty(m, np.int64), np.empty(m), np.empty(m, np.int64)
    for i in range(m):
        row = places[i]
        weight[i], real[i], samples[i] = (
            targets.weight[row],
            targets.real[row],
            targets.samples[row],
        )
    for i in range(len(labels)):
        labels[i] = targets.labels[places[i // n_outputs] * n_outputs + i % n_outputs]
    for i in range(len(numbers)):
        cell = places[i // n_outputs] * n_outputs + i % n_outputs
        numbers[i], raw[i] = targets.numbers[cell], targets.raw[cell]
    return Targets(labels, numbers, raw, weight, real, samples, targets.starts, targets.counted,
                   targets.plain, targets.unit)  # fmt: skip


@kernel(hidden=True)
def _general_buffers(buffers, m, sizes):
    """`buffers.new_general_buffers` for m rows."""
    n_stats, n_groups = len(buffers.left), min(m, sizes.n_groups)
    ranked = m if sizes.is_ranked else 0
    longest = max(ranked, n_groups)
    return GeneralBuffers(
        buffers.left, buffers.right, buffers.offset, buffers.features, buffers.best, buffers.score,
        np.zeros(n_stats), np.zeros(n_stats), np.zeros((n_groups, n_stats), np.int64),
        np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64),
        np.zeros(longest, np.int64), np.zeros(longest), np.zeros(longest, np.int64),
        np.zeros(n_groups, np.int64), np.zeros(1, np.int64), np.zeros((n_stats, ranked), np.int64),
        np.zeros((n_stats, ranked), np.int64), np.zeros(ranked + 1, np.int64),
        np.zeros(ranked + 1, np.int64), np.zeros(ranked, np.int64), np.zeros(ranked, np.uint64),
        np.zeros(n_groups, np.int64), np.zeros((sizes.n_ratios, 2)),
    )  # fmt: skip


@region(bare=True)
def _copy_nodes(tile, room, source, first, first_word, nodes, target):
    """The nodes and sets of a subtree go to their final places."""
    shift = first_word[tile]
    for k in range(room.progress.n_nodes[tile]):
        a, b = room.first[tile] + k, first[tile] + k
        for word in range(source.shape[1]):
            target[b, word] = source[a, word]
        if nodes.record.subset[b] >= 0:
            nodes.record.subset[b] += shift
        for j in range(nodes.stats.shape[1]):
            nodes.stats[b, j] = room.nodes.stats[a, j]
        for o in range(nodes.centre.shape[1]):
            nodes.centre[b, o] = room.nodes.centre[a, o]
            nodes.exponent[b, o] = room.nodes.exponent[a, o]
            nodes.value[b, o] = room.nodes.value[a, o]
    for word in range(first_word[tile + 1] - shift):
        nodes.subsets[shift + word] = room.nodes.subsets[room.first_word[tile] + word]
