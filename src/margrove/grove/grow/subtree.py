"""A subtree of at most 65,536 rows, grown in one compiled loop.

For each feature the rows are sorted once, as entries of 32 bits: rank and place. Splitting a node
splits each list in two, keeping the order, so that no node sorts anything. A list whose feature is
constant in a node is left as it is: its entries have one rank, and no node below looks at it.
Of sparse tables, only the places are listed; see `search.sparse_search`.

The loop returns after its share of work; its whole state is in arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, kernel
from margrove.grove.grow.frontier import (
    longer_frontier,
    new_frontier,
    put_node,
    take_node,
)
from margrove.grove.grow.halving import halve
from margrove.grove.grow.node_values import (
    bound_children,
    make_leaf,
    make_leaf_fast,
    sum_node,
    sum_node_fast,
)
from margrove.grove.grow.nodes import Nodes, begin_child, begin_root, new_nodes, with_room
from margrove.grove.grow.rules import Rules, may_split
from margrove.grove.grow.search import (
    ENTROPY,
    ENTRY_MASK,
    ENTRY_SHIFT,
    GINI,
    SQUARED,
    GeneralBuffers,
    SparseRows,
    SparseSearch,
    find_best_split,
    find_best_split_sparse,
    keep_split,
    keep_split_fast,
    make_subset,
    new_general_buffers,
    new_search_buffers,
    new_sparse_search,
)
from margrove.grove.table import Columns, Targets, code_of, sorted_by_digits

__all__ = ["MOST_ROWS", "Lists", "Subtree", "grow", "is_fast_case", "list_entries"]

MOST_ROWS = 1 << 16
_MASK = np.uint32(0xFFFF)


class Lists(NamedTuple):
    """Lists of the rows of a subtree; those of a node are a run of each.

    entries   uint32 (d + 1, m)  rank << 16 | place, in the order of each feature; then the places.
              (1, m) for sparse tables
    side      uint8 (m,)  1 for places that go right
    spare     uint32 (m,)  for splitting a list
    """

    entries: np.ndarray
    side: np.ndarray
    spare: np.ndarray


class Subtree:
    """Grows the subtree over some rows; `advance` until `finished`."""

    def __init__(
        self,
        columns: Columns,
        rows: np.ndarray,
        targets: Targets,
        rules: Rules,
        *,
        max_leaves: int = 0,
        parent: tuple[Nodes, int] | None = None,
        sparse: SparseRows | None = None,
    ) -> None:
        """parent: the nodes and the number of the node that the root of the subtree stands for.
        sparse: the codes, where they are searched in this form."""
        m, d = len(rows), len(columns.n_codes)
        self._columns = columns
        self._rows = np.ascontiguousarray(rows, dtype=np.int64)
        self._targets = _local(targets, self._rows)
        self._rules = rules
        self._max_leaves = max_leaves
        # the rows; lists when it grows
        self._lists = Lists(
            np.arange(m, dtype=np.uint32)[None, :], np.empty(0, np.uint8), np.empty(0, np.uint32)
        )
        capacity = min(2 * m + 1, 256)
        self._frontier = new_frontier(capacity)
        self._progress = fields_of(self._frontier.progress)
        n_stats = int(targets.starts[-1])
        self._n_lists = d if sparse is None else 0  # besides the places
        self._sparse: SparseSearch | None = None
        if sparse is not None:
            self._sparse = new_sparse_search(sparse, self._rows, n_stats)
        n_numbers = len(targets.starts) - 1 if len(targets.raw) else 0
        self._largest_set = 0
        n_groups = m if len(targets.starts) > 2 else 0
        if columns.categorical.any():
            most = int(columns.n_codes[columns.categorical].max())
            self._largest_set = most // 32 + 1
            n_groups = max(n_groups, min(m, most + 1))
        self._buffers = new_search_buffers(d, n_stats)
        self._general: GeneralBuffers | None = None
        if not is_fast_case(columns, targets, rules):
            self._general = new_general_buffers(self._buffers, m, n_groups, rules.criterion)
        self.nodes: Nodes = new_nodes(capacity, n_stats, n_numbers, 0)
        begin_root(self.nodes, m, rules.seed)
        if parent is not None:
            _inherit(self.nodes, *parent)
        self._progress["n_nodes"][0] = self._progress["n_leaves"][0] = 1

    @property
    def finished(self) -> bool:
        return bool(
            self._progress["n_listed"][0] == self._n_lists + 1
            and self._progress["n_frontier"][0] == 0
        )

    @property
    def n_nodes(self) -> int:
        return int(self._progress["n_nodes"][0])

    def advance(self, work: float) -> float:
        """Do about so many elementary operations; how many were done."""
        done = 0.0
        m, d = len(self._rows), self._n_lists
        if len(self._lists.side) < m:
            entries = np.empty((d + 1, m), np.uint32)
            entries[d] = self._lists.entries[-1]
            self._lists = Lists(entries, np.empty(m, np.uint8), np.empty(m, np.uint32))
        while done < work and self._progress["n_listed"][0] < d:
            j = int(self._progress["n_listed"][0])
            list_entries(self._columns, j, self._rows, self._lists.entries[j])
            self._progress["n_listed"][0] += 1
            done += 4.0 * m
        if self._progress["n_listed"][0] == d:
            self._frontier.heap[0] = 0
            self._progress["n_frontier"][0] = 1
            self._progress["n_listed"][0] = d + 1
        while done < work and not self.finished:
            self._make_room()
            done += grow(
                self._lists, self._columns, self._rows, self._targets, self._rules,
                self._max_leaves, self._largest_set, self.nodes, self._frontier, self._buffers,
                self._general, self._sparse, work - done,
            )  # fmt: skip
        return done

    def with_open_nodes_as_leaves(self) -> Nodes:
        """A copy of the nodes; those that are still to be split become leaves."""
        nodes = Nodes._make(array.copy() for array in self.nodes)
        frontier = self._frontier.heap[: self._progress["n_frontier"][0]]
        if self._progress["n_listed"][0] <= self._n_lists:
            frontier = np.zeros(1, np.int64)
        general = self._general
        if general is None:
            general = new_general_buffers(self._buffers, len(self._rows), 0, self._rules.criterion)
        for node in frontier:
            places = self._lists.entries[-1]
            sum_node(nodes, node, places, self._targets, self._rules, general)
            nodes.record.feature[node] = -1
            make_leaf(nodes, node, places, self._targets, self._rules)
        return nodes

    def _make_room(self) -> None:
        """Room for some more nodes, so that the loop need not stop for each."""
        used, words = self.n_nodes, int(self._progress["n_words"][0])
        capacity, n_words = len(self.nodes.stats), len(self.nodes.subsets)
        room = min(2 * used + 64, 2 * len(self._rows) + 1)
        if capacity < min(used + 4, room):
            capacity = room
        if n_words < words + 4 * self._largest_set:
            n_words = 2 * words + 64 * self._largest_set
        if capacity > len(self.nodes.stats) or n_words > len(self.nodes.subsets):
            self.nodes = with_room(self.nodes, used, capacity, n_words)
        if capacity + 2 > len(self._frontier.heap):
            self._frontier = longer_frontier(self._frontier, capacity)


def is_fast_case(columns: Columns, targets: Targets, rules: Rules) -> bool:
    """Whether `search.split_search_fast` can search all features."""
    return bool(
        targets.plain
        and len(targets.starts) == 2
        and len(rules.monotone) == 0
        and not rules.random
        and rules.min_weight <= 1
        and rules.criterion in (GINI, ENTROPY, SQUARED)
        and not columns.categorical.any()
        and not columns.has_missing.any()
    )


def _local(targets: Targets, rows: np.ndarray) -> Targets:
    """The targets of these rows only, close together in memory."""
    n_outputs = len(targets.starts) - 1

    def taken(flat: np.ndarray) -> np.ndarray:
        return flat.reshape(-1, n_outputs)[rows].ravel() if len(flat) else flat

    return targets._replace(
        labels=taken(targets.labels),
        numbers=taken(targets.numbers),
        raw=taken(targets.raw),
        weight=targets.weight[rows],
        real=targets.real[rows],
        samples=targets.samples[rows],
    )


def _inherit(nodes: Nodes, above: Nodes, node: int) -> None:
    """The root of a subtree takes over what the node that it stands for has inherited."""
    for name in (
        "depth",
        "key",
        "parent",
        "decrease",
        "low",
        "high",
        "error_left",
        "random_threshold",
    ):
        nodes.record[name][0] = above.record[name][node]
    nodes.centre[0], nodes.exponent[0] = above.centre[node], above.exponent[node]


@kernel
def list_entries(columns, feature, rows, entries):
    """The entries of a feature, sorted: rank of the value in the subtree, and place of the row."""
    m = len(rows)
    n_codes = columns.n_codes[feature] + 1
    if n_codes > 8 * m + 256:
        keys = np.empty(m, np.uint64)
        for i in range(m):
            keys[i] = np.uint64(code_of(columns, feature, rows[i]))
        order = sorted_by_digits(keys)
        rank = np.uint32(0)
        for p in range(m):
            if p and keys[order[p]] != keys[order[p - 1]]:
                rank += np.uint32(1)
            entries[p] = (rank << ENTRY_SHIFT) | np.uint32(order[p])
        return
    if columns.width[feature] == 0:
        _list_by_counting(columns.narrow[columns.place[feature]], n_codes, rows, entries)
    elif columns.width[feature] == 1:
        _list_by_counting(columns.medium[columns.place[feature]], n_codes, rows, entries)
    else:
        _list_by_counting(columns.wide[columns.place[feature]], n_codes, rows, entries)


@kernel
def _list_by_counting(codes, n_codes, rows, entries):
    counts = np.zeros(n_codes + 1, np.int64)
    ranks = np.zeros(n_codes, np.uint32)
    for i in range(len(rows)):
        counts[codes[rows[i]] + 1] += 1
    rank = np.uint32(0)
    for k in range(n_codes):
        ranks[k] = rank << ENTRY_SHIFT
        if counts[k + 1]:
            rank += np.uint32(1)
        counts[k + 1] += counts[k]
    for i in range(len(rows)):
        k = codes[rows[i]]
        entries[counts[k]] = ranks[k] | np.uint32(i)
        counts[k] += 1


@kernel(inner=True)
def _examine(entries, columns, rows, targets, rules, nodes, node, progress, buffers, general,
             sparse):  # fmt: skip
    """Sum a node up and find its best split; the work done. `general` is None in the usual case,
    `sparse` where entries are listed."""
    d, record = len(columns.n_codes), nodes.record
    places = entries[len(entries) - 1]
    n_rows = float(record.end[node] - record.start[node])
    record.feature[node] = -1
    buffers.best[0] = -1
    if general is None:
        pure, base, _ = sum_node_fast(nodes, node, places, targets, rules, buffers.offset, None)
    else:
        pure, base = sum_node(nodes, node, places, targets, rules, general)
    if not may_split(nodes, node, pure, rules):
        return 2.0 * n_rows
    work = n_rows * (2.0 + d) + d
    if record.depth[node] >= rules.greedy_depth:
        halve(nodes, node, places, rows, columns, targets, rules)
        if general is not None and record.feature[node] >= 0:
            progress.n_words[0] = make_subset(nodes, node, progress.n_words[0], columns)
    else:
        if sparse is None:
            looked_at = find_best_split(entries, columns, rows, targets, rules, nodes, node, base,
                                        buffers, general)  # fmt: skip
            work = n_rows * (2.0 + looked_at) + d
        else:
            work = find_best_split_sparse(sparse, rows, places, targets, rules, nodes, node,
                                          buffers)  # fmt: skip
            if general is not None:
                general.counts[0] = 0
        if general is None:
            keep_split_fast(nodes, node, base, rules, buffers.best[0], buffers.score[0])
        else:
            progress.n_words[0] = keep_split(
                nodes, node, base, progress.n_words[0], columns, targets, rules, general
            )
    return work


@kernel(bare=True)
def grow(lists, columns, rows, targets, rules, max_leaves, largest_set, nodes, frontier, buffers,
          general, sparse, work):  # fmt: skip
    """Split nodes until the work is done, the room used up or the frontier empty."""
    entries, progress = lists.entries, frontier.progress
    record, places = nodes.record, entries[len(entries) - 1]
    best_first = max_leaves > 0
    done = 0.0
    while progress.n_frontier[0] > 0 and done < work:
        if progress.n_nodes[0] + 2 > len(record):
            break
        if progress.n_words[0] + 2 * largest_set > len(nodes.subsets):
            break
        node = take_node(frontier, nodes, best_first)
        if not best_first or node == 0:
            done += _examine(entries, columns, rows, targets, rules, nodes, node, progress, buffers,
                             general, sparse)  # fmt: skip
        is_full = best_first and progress.n_leaves[0] >= max_leaves
        if record.feature[node] < 0 or is_full:
            record.feature[node] = -1
            if general is None:
                make_leaf_fast(nodes, node, places, targets.raw, None)
            else:
                make_leaf(nodes, node, places, targets, rules)
            continue
        if sparse is None:
            middle = _mark_sides(entries, lists.side, columns, rows, nodes, node)
        else:
            middle = _mark_sides_of(places, lists.side, columns, rows, nodes, node)
        done += _split_lists(lists, record.start[node], record.end[node])
        first = progress.n_nodes[0]
        progress.n_nodes[0] += 2
        progress.n_leaves[0] += 1
        record.left[node] = first
        begin_child(nodes, first, node, record.start[node], middle, 0)
        begin_child(nodes, first + 1, node, middle, record.end[node], 1)
        if general is not None and len(rules.monotone) > 0:
            bound_children(nodes, node, first, places, targets, rules)
        for turn in range(2):  # the left one is next
            child = first + 1 - turn
            if best_first:
                done += _examine(entries, columns, rows, targets, rules, nodes, child, progress,
                                 buffers, general, sparse)  # fmt: skip
            put_node(frontier, nodes, child, best_first)
    return done


@kernel(inner=True)
def _mark_sides(entries, side, columns, rows, nodes, node):
    """side[place] = 1 for what goes right; returns where the right child will start."""
    record, subsets = nodes.record, nodes.subsets
    start, end = record.start[node], record.end[node]
    feature, last = record.feature[node], record.code[node]
    subset, missing_left = record.subset[node], record.missing_left[node]
    missing = columns.n_codes[feature]
    n_left = 0
    rank, right = np.uint32(0), np.uint8(0)
    record.missing_left[node] = -1  # unless there is one
    for p in range(start, end):
        entry = entries[feature, p]
        place = entry & ENTRY_MASK
        if p == start or entry >> ENTRY_SHIFT != rank:
            rank = entry >> ENTRY_SHIFT
            code = code_of(columns, feature, rows[place])
            if code == missing:
                right = np.uint8(1 - missing_left)
                record.missing_left[node] = missing_left
            elif subset >= 0:
                bit = subsets[subset + code // 32] >> np.uint32(code % 32)
                right = np.uint8(1) - np.uint8(bit & np.uint32(1))
            else:
                right = np.uint8(code > last)
        side[place] = right
        n_left += 1 - right
    return start + n_left


@kernel(inner=True)
def _mark_sides_of(places, side, columns, rows, nodes, node):
    """The same by a threshold, without a list of the feature; no value is missing."""
    record = nodes.record
    start, end = record.start[node], record.end[node]
    feature, last = record.feature[node], record.code[node]
    middle = start
    record.missing_left[node] = -1
    for p in range(start, end):
        right = np.uint8(code_of(columns, feature, rows[places[p]]) > last)
        side[places[p]] = right
        middle += 1 - right
    return middle


@kernel(inner=True)
def _split_lists(lists, start, end):
    """Each list of the node becomes the left child's and then the right child's, in order."""
    entries, side, spare = lists.entries, lists.side, lists.spare
    n_lists = entries.shape[0]
    done = 0.0
    for j in range(n_lists):
        run = entries[j]
        if j < n_lists - 1 and run[start] >> ENTRY_SHIFT == run[end - 1] >> ENTRY_SHIFT:
            continue
        left, right = np.uint64(start), np.uint64(0)
        one = np.uint64(1)
        for p in range(np.uint64(start), np.uint64(end)):
            entry = run[p]
            goes_right = np.uint64(side[np.uint64(entry & _MASK)])
            run[left] = entry
            spare[right] = entry
            left += one - goes_right
            right += goes_right
        for p in range(right):
            run[left + p] = spare[p]
        done += float(end - start)
    return done
