"""A subtree of at most 65,536 rows, grown in one compiled loop.

For each feature the rows are sorted once, as entries of 32 bits: rank and row. Splitting a node
splits each list in two, keeping the order, so that no node sorts anything. A list whose feature is
constant in a node is left as it is: its entries have one rank, and nobody below looks at it.

The loop returns after its share of work; its whole state is arrays.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.node_search import (
    Scratch,
    bound_children,
    end_node,
    keep_split,
    make_subset,
    new_basic,
    new_scratch,
    search_generally,
    sum_up,
)
from margrove.grove.grow.nodes import (
    BALANCED,
    CODE,
    DECREASE,
    DEPTH,
    DRAWN,
    END,
    FEATURE,
    HIGH,
    KEY,
    LEFT,
    LOW,
    MISSING_LEFT,
    NEXT_CODE,
    PARENT,
    SAMPLES,
    START,
    SUBSET,
    WEIGHT,
    Nodes,
    begin_child,
    new_nodes,
    with_room,
)  # fmt: skip
from margrove.grove.grow.scores import ENTROPY, GINI, SQUARED
from margrove.grove.grow.split_search import Rules
from margrove.grove.grow.split_search_fast import (
    end_plainly,
    keep_plainly,
    search_plainly,
    sum_up_plainly,
)
from margrove.grove.table import Columns, Targets, code_of, sorted_by_digits

__all__ = ["LARGEST_BLOCK", "Block"]

LARGEST_BLOCK = 1 << 16
_SHIFT = np.uint32(16)
_MASK = np.uint32(0xFFFF)
_ROW_MASK = np.int64(0xFFFF)
# what `progress` counts
N_NODES, N_FRONTIER, N_LEAVES, N_WORDS, LISTED, N_PROGRESS = range(6)


class Block:
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
    ) -> None:
        """`parent` is the node of another table that the block's root stands for."""
        m, d = len(rows), len(columns.n_codes)
        self._columns = columns
        self._rows = np.ascontiguousarray(rows, dtype=np.int64)
        self._targets = _local(targets, self._rows)
        self._rules = rules
        self._max_leaves = max_leaves
        self._entries = np.arange(m, dtype=np.uint32)[None, :]  # the rows; lists when it grows
        self._side = np.empty(0, np.uint8)
        self._spare = np.empty(0, np.uint32)
        self._heap = np.zeros(64, np.int64)
        self._progress = np.zeros(N_PROGRESS, np.int64)
        n_stats = int(targets.starts[-1])
        n_numbers = len(targets.starts) - 1 if len(targets.raw) else 0
        self._largest_set = 0
        n_groups = m if len(targets.starts) > 2 else 0
        if columns.categorical.any():
            most = int(columns.n_codes[columns.categorical].max())
            self._largest_set = most // 32 + 1
            n_groups = max(n_groups, min(m, most + 1))
        self._basic = new_basic(d, n_stats)
        self._general: Scratch | None = None
        if not _is_plain(columns, targets, rules):
            self._general = new_scratch(self._basic, m, n_groups, rules.criterion)
        self.nodes: Nodes = new_nodes(min(2 * m + 1, 256), n_stats, n_numbers, 0)
        plant(self.nodes, m, rules.seed)
        if parent is not None:
            _graft(self.nodes, *parent)
        self._progress[N_NODES] = 1
        self._progress[N_LEAVES] = 1

    @property
    def finished(self) -> bool:
        return bool(
            self._progress[LISTED] == len(self._columns.n_codes) + 1
            and self._progress[N_FRONTIER] == 0
        )

    @property
    def n_nodes(self) -> int:
        return int(self._progress[N_NODES])

    def advance(self, work: float) -> float:
        """Do about so many elementary operations; how many were done."""
        done = 0.0
        m, d = len(self._rows), len(self._columns.n_codes)
        if len(self._side) < m:
            entries = np.empty((d + 1, m), np.uint32)
            entries[d] = self._entries[-1]
            self._entries, self._spare = entries, np.empty(m, np.uint32)
            self._side = np.empty(m, np.uint8)
        while done < work and self._progress[LISTED] < d:
            j = int(self._progress[LISTED])
            _list_entries(self._columns, j, self._rows, self._entries[j])
            self._progress[LISTED] += 1
            done += 4.0 * m
        if self._progress[LISTED] == d:
            self._heap[0] = 0
            self._progress[N_FRONTIER] = 1
            self._progress[LISTED] = d + 1
        while done < work and not self.finished:
            self._make_room()
            done += _grow(
                self._entries, self._side, self._spare, self._columns, self._rows, self._targets,
                self._rules, self._max_leaves, self._largest_set, self.nodes, self._heap,
                self._progress, self._basic, self._general, work - done,
            )  # fmt: skip
        return done

    def as_it_stands(self) -> Nodes:
        """A copy of the nodes in which those that are still to be split are leaves."""
        nodes = Nodes._make(part.copy() for part in self.nodes)
        frontier = self._heap[: self._progress[N_FRONTIER]]
        if self._progress[LISTED] <= len(self._columns.n_codes):
            frontier = np.zeros(1, np.int64)
        general = self._general
        if general is None:
            general = new_scratch(self._basic, len(self._rows), 0, self._rules.criterion)
        for node in frontier:
            places = self._entries[-1]
            sum_up(nodes, node, places, self._targets, self._rules, general)
            nodes.whole[node, FEATURE] = -1
            end_node(nodes, node, places, self._targets, self._rules)
        return nodes

    def _make_room(self) -> None:
        """Room for some nodes more, so that the loop need not stop for each."""
        used, words = self.n_nodes, int(self._progress[N_WORDS])
        capacity, n_words = len(self.nodes.whole), len(self.nodes.subsets)
        room = min(2 * used + 64, 2 * len(self._rows) + 1)
        if capacity < min(used + 4, room):
            capacity = room
        if n_words < words + 4 * self._largest_set:
            n_words = 2 * words + 64 * self._largest_set
        if capacity > len(self.nodes.whole) or n_words > len(self.nodes.subsets):
            self.nodes = with_room(self.nodes, used, capacity, n_words)
        if len(self._heap) < capacity + 2:
            self._heap = np.concatenate([self._heap, np.zeros(capacity + 2, np.int64)])


def _is_plain(columns: Columns, targets: Targets, rules: Rules) -> bool:
    """Whether the short loops will do; see `split_search_fast`."""
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

    def own(flat: np.ndarray) -> np.ndarray:
        return flat.reshape(-1, n_outputs)[rows].ravel() if len(flat) else flat

    return targets._replace(
        labels=own(targets.labels),
        numbers=own(targets.numbers),
        raw=own(targets.raw),
        weight=targets.weight[rows],
        real=targets.real[rows],
        samples=targets.samples[rows],
    )


@kernel(bare=True)
def plant(nodes, m, key):
    """The root of a tree."""
    whole, real = nodes.whole, nodes.real
    whole[0, START], whole[0, END] = 0, m
    whole[0, PARENT] = -1
    whole[0, DEPTH], whole[0, KEY] = 0, key
    whole[0, LEFT], whole[0, FEATURE], whole[0, SUBSET] = -1, -1, -1
    real[0, LOW], real[0, HIGH] = -np.inf, np.inf


def _graft(nodes: Nodes, trunk: Nodes, node: int) -> None:
    """The root of a block takes over what the node it stands for has inherited."""
    for column in (DEPTH, KEY, PARENT):
        nodes.whole[0, column] = trunk.whole[node, column]
    nodes.real[0] = trunk.real[node]
    nodes.centre[0], nodes.exponent[0] = trunk.centre[node], trunk.exponent[node]


@kernel
def _list_entries(columns, feature, rows, entries):
    """Rank within the block and place in it, sorted."""
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
            entries[p] = (rank << _SHIFT) | np.uint32(order[p])
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
        ranks[k] = rank << _SHIFT
        if counts[k + 1]:
            rank += np.uint32(1)
        counts[k + 1] += counts[k]
    for i in range(len(rows)):
        k = codes[rows[i]]
        entries[counts[k]] = ranks[k] | np.uint32(i)
        counts[k] += 1


@kernel(inner=True)
def _examine(entries, columns, rows, targets, rules, nodes, node, progress, basic, general):
    """Sum a node up and find its best split; the work done. `general` is None in the usual case."""
    d = len(columns.n_codes)
    places = entries[d]
    whole = nodes.whole
    start, end = whole[node, START], whole[node, END]
    whole[node, FEATURE] = -1
    basic.best[0] = -1
    if general is None:
        pure, base = sum_up_plainly(
            whole, nodes.stats, nodes.centre, nodes.exponent, nodes.value, node, places,
            targets.labels, targets.numbers, targets.raw, rules.criterion, rules.table, rules.scale,
            basic.offset,
        )  # fmt: skip
    else:
        pure, base = sum_up(nodes, node, places, targets, rules, general)
    if not may_split(whole, node, pure, rules):
        return 2.0 * (end - start)
    looked_at = d
    if whole[node, DEPTH] >= rules.greedy_depth:
        _halve(entries, columns, rows, whole, nodes.real, node, rules, targets)
        if general is not None and whole[node, FEATURE] >= 0:
            progress[N_WORDS] = make_subset(nodes, node, progress[N_WORDS], columns)
    elif general is None:
        looked_at = search_plainly(
            entries, whole, nodes.real, nodes.stats, node, columns, rows, targets.labels,
            targets.numbers, rules, basic.offset, basic.left, basic.right, basic.features,
            basic.best, basic.score,
        )  # fmt: skip
        keep_plainly(entries, whole, nodes.real, nodes.exponent, node, base, columns, rows, rules,
                     basic.best, basic.score)  # fmt: skip
    else:
        search_generally(entries, _SHIFT, _ROW_MASK, columns, rows, targets, rules, nodes, node,
                         base, general)  # fmt: skip
        progress[N_WORDS] = keep_split(
            nodes, node, base, progress[N_WORDS], columns, targets, rules, general
        )
    return float(end - start) * (2.0 + looked_at) + d


@kernel(inner=True, inlined=True)
def may_split(whole, node, pure, rules):
    weight, samples = whole[node, WEIGHT], whole[node, SAMPLES]
    return not (
        pure
        or whole[node, DEPTH] >= rules.max_depth
        or samples < rules.min_samples_split
        or samples < 2 * rules.min_samples_leaf
        or weight < 2 * rules.min_weight
    )


@kernel(inner=True)
def _halve(entries, columns, rows, whole, real, node, rules, targets):
    """The most even split there is, by the number of rows; categories by their codes."""
    start, end = whole[node, START], whole[node, END]
    feature, position, most = -1, start, 0
    for j in range(len(columns.n_codes)):
        own = entries[j]
        if own[start] >> _SHIFT == own[end - 1] >> _SHIFT:
            continue
        p = q = (start + end) // 2
        while p > start and own[p] >> _SHIFT == own[p - 1] >> _SHIFT:
            p -= 1
        while q < end and own[q] >> _SHIFT == own[q - 1] >> _SHIFT:
            q += 1
        for candidate in (p, q):
            smaller = min(candidate - start, end - candidate)
            if smaller > most:
                feature, position, most = j, candidate, smaller
    if feature < 0:
        return
    samples, weight = 0, 0
    for p in range(start, position):
        place = entries[feature, p] & _ROW_MASK
        samples += targets.samples[place]
        weight += targets.weight[place]
    if (
        min(samples, whole[node, SAMPLES] - samples) < rules.min_samples_leaf
        or min(weight, whole[node, WEIGHT] - weight) < rules.min_weight
    ):
        return
    whole[node, FEATURE] = feature
    whole[node, BALANCED] = 1
    whole[node, SUBSET] = -1
    whole[node, MISSING_LEFT] = 0
    whole[node, CODE] = code_of(columns, feature, rows[entries[feature, position - 1] & _ROW_MASK])
    whole[node, NEXT_CODE] = code_of(columns, feature, rows[entries[feature, position] & _ROW_MASK])
    real[node, DECREASE] = 0.0
    real[node, DRAWN] = np.nan


@kernel(bare=True)
def _grow(entries, side, spare, columns, rows, targets, rules, max_leaves, largest_set, nodes, heap,
          progress, basic, general, work):  # fmt: skip
    """Split nodes until the work is done, the room used up or the frontier empty."""
    d = len(columns.n_codes)
    places = entries[d]
    best_first = max_leaves > 0
    done = 0.0
    while progress[N_FRONTIER] > 0 and done < work:
        if progress[N_NODES] + 2 > len(nodes.whole):
            break
        if progress[N_WORDS] + 2 * largest_set > len(nodes.subsets):
            break
        node = take_node(heap, nodes.whole, nodes.real, progress, best_first)
        if not best_first or node == 0:
            done += _examine(entries, columns, rows, targets, rules, nodes, node, progress, basic,
                             general)  # fmt: skip
        is_full = best_first and progress[N_LEAVES] >= max_leaves
        if nodes.whole[node, FEATURE] < 0 or is_full:
            nodes.whole[node, FEATURE] = -1
            if general is None:
                end_plainly(nodes.whole, nodes.real, nodes.value, node, places, targets.raw)
            else:
                end_node(nodes, node, places, targets, rules)
            continue
        middle = _mark_sides(entries, side, columns, rows, nodes.whole, nodes.subsets, node)
        done += _split_lists(entries, side, spare, nodes.whole, node)
        first = progress[N_NODES]
        progress[N_NODES] += 2
        progress[N_LEAVES] += 1
        nodes.whole[node, LEFT] = first
        begin_child(nodes, first, node, nodes.whole[node, START], middle, 0)
        begin_child(nodes, first + 1, node, middle, nodes.whole[node, END], 1)
        if general is not None and len(rules.monotone) > 0:
            bound_children(nodes, node, first, places, targets, rules)
        for turn in range(2):  # the left one is next
            child = first + 1 - turn
            if best_first:
                done += _examine(entries, columns, rows, targets, rules, nodes, child, progress,
                                 basic, general)  # fmt: skip
            put_node(heap, nodes.whole, nodes.real, progress, child, best_first)
    return done


@kernel(inner=True)
def _mark_sides(entries, side, columns, rows, whole, subsets, node):
    """side[place] = 1 for what goes right; returns where the right child will start."""
    start, end = whole[node, START], whole[node, END]
    feature, code = whole[node, FEATURE], whole[node, CODE]
    subset, missing_left = whole[node, SUBSET], whole[node, MISSING_LEFT]
    missing = columns.n_codes[feature]
    n_left = 0
    rank, right = np.uint32(0), np.uint8(0)
    whole[node, MISSING_LEFT] = -1  # unless there is one
    for p in range(start, end):
        entry = entries[feature, p]
        place = entry & _ROW_MASK
        if p == start or entry >> _SHIFT != rank:
            rank = entry >> _SHIFT
            own = code_of(columns, feature, rows[place])
            if own == missing:
                right = np.uint8(1 - missing_left)
                whole[node, MISSING_LEFT] = missing_left
            elif subset >= 0:
                bit = subsets[subset + own // 32] >> np.uint32(own % 32)
                right = np.uint8(1) - np.uint8(bit & np.uint32(1))
            else:
                right = np.uint8(own > code)
        side[place] = right
        n_left += 1 - right
    return start + n_left


@kernel(inner=True)
def _split_lists(entries, side, spare, whole, node):
    """Each list of the node becomes the left child's and then the right child's, in order."""
    start, end = whole[node, START], whole[node, END]
    n_lists = entries.shape[0]
    done = 0.0
    for j in range(n_lists):
        own = entries[j]
        if j < n_lists - 1 and own[start] >> _SHIFT == own[end - 1] >> _SHIFT:
            continue
        left, right = np.uint64(start), np.uint64(0)
        one = np.uint64(1)
        for p in range(np.uint64(start), np.uint64(end)):
            entry = own[p]
            goes_right = np.uint64(side[np.uint64(entry & _MASK)])
            own[left] = entry
            spare[right] = entry
            left += one - goes_right
            right += goes_right
        for p in range(right):
            own[left + p] = spare[p]
        done += float(end - start)
    return done


@kernel(inner=True, inlined=True)
def take_node(heap, whole, real, progress, best_first):
    """The node to split next: the newest, or the one whose split gains most."""
    progress[N_FRONTIER] -= 1
    size = progress[N_FRONTIER]
    if not best_first:
        return heap[size]
    top = heap[0]
    last = heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(whole, real, heap[child + 1], heap[child]):
            child += 1
        if not _before(whole, real, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return top


@kernel(inner=True, inlined=True)
def put_node(heap, whole, real, progress, node, best_first):
    at = progress[N_FRONTIER]
    progress[N_FRONTIER] += 1
    if best_first:
        while at > 0 and _before(whole, real, node, heap[(at - 1) // 2]):
            heap[at] = heap[(at - 1) // 2]
            at = (at - 1) // 2
    heap[at] = node


@kernel(inner=True, inlined=True)
def _before(whole, real, a, b):
    gain_a = real[a, DECREASE] if whole[a, FEATURE] >= 0 else -1.0
    gain_b = real[b, DECREASE] if whole[b, FEATURE] >= 0 else -1.0
    return gain_a > gain_b or (gain_a == gain_b and a < b)
