"""Builds one tree: large nodes one by one, and the subtrees below them side by side.

A node of more rows than a subtree may have is searched feature by feature, on several threads,
through histograms of its codes. Smaller nodes become a `Subtree` each. Neither the limit nor the
number of threads shows in the tree: the split of a node depends on the node alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import kernel, run_tiles
from margrove.grove.grow.halving import halve
from margrove.grove.grow.node_values import bound_children, make_leaf, sum_node
from margrove.grove.grow.nodes import (
    Nodes,
    begin_child,
    begin_root,
    new_nodes,
    random_below,
    with_room,
)
from margrove.grove.grow.partitioning import partition_rows
from margrove.grove.grow.rules import Rules, may_split
from margrove.grove.grow.search import (
    ABSOLUTE,
    CUSTOM,
    ENTROPY,
    ERROR,
    GAIN_RATIO,
    GAMMA,
    POISSON,
    CustomSearch,
    GeneralBuffers,
    NodeRows,
    SearchBuffers,
    SortedRows,
    consider,
    keep_split,
    make_subset,
    new_general_buffers,
    new_search_buffers,
    new_subset,
    search_feature,
    search_in_orders,
    set_bit,
)
from margrove.grove.grow.subtree import MOST_ROWS, Subtree
from margrove.grove.table import BinnedDataset, Columns, Targets, code_of, sorted_by_digits

__all__ = ["Growth", "TreeBuilder", "columns_of"]

_ALL_BITS = np.int64(0xFFFFFFFF)
_HALF_WORD = np.uint64(32)
_MOST_WORK = 5e7  # of one node of a subtree, searched without a pause: a quarter of a second


@dataclass(frozen=True)
class Growth:
    """What has grown: the upper nodes, and the subtrees that take the place of some of them.

    n_upper      of the upper nodes in use
    subtrees     (upper node, nodes of the subtree, how many of these are in use)
    impurities   of the upper nodes, where a user's criterion measures them
    """

    upper: Nodes
    n_upper: int
    subtrees: list[tuple[int, Nodes, int]]
    impurities: np.ndarray | None = None


def columns_of(
    data: BinnedDataset, *, with_values: bool = False, row_major: bool = False
) -> Columns:
    """The codes of a table for compiled code.

    with_values: also the values, from which random thresholds are drawn. row_major: also the codes
    row by row, for small nodes that look at many features.
    """
    values = np.concatenate([*data.lows, np.empty(0)]) if with_values else np.empty(0)
    first = np.concatenate([[0], np.cumsum([len(low) for low in data.lows])]).astype(np.int64)
    rowwise = np.ascontiguousarray(data.codes.narrow.T) if row_major else np.empty((0, 0), np.uint8)
    return Columns(
        *data.codes, data.n_codes, data.has_missing, data.categorical, values, first, rowwise
    )


class TreeBuilder:
    """Builds one tree; a process for `slices.drive`.

    `rows` are those that take part; max_leaves > 0 grows best-first.
    """

    unit = "node"
    total: int | None = None

    def __init__(
        self,
        columns: Columns,
        targets: Targets,
        rules: Rules,
        rows: np.ndarray,
        *,
        max_leaves: int = 0,
        n_threads: int = 1,
        most_rows: int = MOST_ROWS,
        custom: CustomSearch | None = None,
    ) -> None:
        self._columns, self._targets, self._rules = columns, targets, rules
        self._rows = np.array(rows, dtype=np.int64)
        self._max_leaves = max_leaves
        self._n_threads = n_threads
        self._most_rows = 0  # of a subtree
        if custom is None:
            cells = _MOST_WORK / (len(columns.n_codes) * _cost_of_candidate(targets, rules))
            self._most_rows = min(most_rows, int(cells))
        self._custom = custom
        self._impurities: dict[int, float] = {}
        n_stats = int(targets.starts[-1])
        self._n_numbers = len(targets.starts) - 1 if len(targets.raw) else 0
        self._upper = new_nodes(16, n_stats, self._n_numbers, 0)
        self._used, self._words, self._n_leaves = 1, 0, 1
        self._largest_set = 0
        if columns.categorical.any():
            self._largest_set = int(columns.n_codes[columns.categorical].max()) // 32 + 1
        begin_root(self._upper, len(self._rows), rules.seed)
        self._new = [0]  # nodes of which nothing is known yet
        self._large: list[tuple[float, int]] = []  # a heap, or a stack
        self._growing: list[tuple[int, Subtree]] = []
        self._grown: list[tuple[int, Nodes, int]] = []  # of a subtree that is done, no more is kept

    @property
    def rounds(self) -> int:
        growing = sum(subtree.n_nodes - 1 for _, subtree in self._growing)
        return self._used + growing + sum(count - 1 for _, _, count in self._grown)

    @property
    def finished(self) -> bool:
        return not self._new and not self._large and not self._growing

    def figures(self) -> dict[str, float]:
        return {"nodes": float(self.rounds)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Look at a new node, split a large one, or let some subtrees grow for a while."""
        if self._new:
            node = self._new[-1]
            self._place(node)
            self._new.pop()
            return float(self._n_rows(node)) + 1.0
        if self._large:
            return self._split_large()
        active = self._growing[: self._n_threads]
        done = [0.0] * len(active)

        def grow(k: int) -> None:
            done[k] = active[k][1].advance(work)

        run_tiles(grow, len(active), self._n_threads)
        # A subtree may be in both lists if an interrupt comes in between; never in neither.
        self._grown += [(node, one.nodes, one.n_nodes) for node, one in active if one.finished]
        self._growing = [(node, one) for node, one in self._growing if not one.finished]
        return max(sum(done), 1.0)

    def result(self) -> Growth:
        """The tree so far; nodes that are still to be split count as leaves, and stay open."""
        subtrees = {
            node: (one.nodes if one.finished else one.with_open_nodes_as_leaves(), one.n_nodes)
            for node, one in self._growing
        } | {node: (nodes, count) for node, nodes, count in self._grown}
        kept = self._upper
        if not self.finished:
            self._upper = Nodes._make(array.copy() for array in kept)
        try:
            if not self.finished:
                self._end_open_nodes(subtrees)
            grown = [(node, nodes, count) for node, (nodes, count) in subtrees.items()]
            return Growth(self._upper, self._used, grown, self._impurities_of_upper())
        finally:
            self._upper = kept

    def _end_open_nodes(self, subtrees: Collection[int]) -> None:
        """Make leaves of all nodes that can be reached from the root and have no children.

        An interrupt may have come between any two steps, but children are made known last.
        """
        stack = [0]
        while stack:
            node = stack.pop()
            left = int(self._upper.record.left[node])
            if left >= 0:
                stack += [left, left + 1]
            elif node not in subtrees:
                self._sum_up(node)
                self._end(node)

    def _impurities_of_upper(self) -> np.ndarray | None:
        if self._custom is None:
            return None
        return np.array([self._impurities.get(node, 0.0) for node in range(self._used)])

    # -- large nodes --

    def _place(self, node: int) -> None:
        """A new node is a leaf, a subtree, or one more large node."""
        record = self._upper.record
        start, end = int(record.start[node]), int(record.end[node])
        # A best-first tree compares all its nodes: it is one subtree, or has large nodes only.
        if end - start <= self._most_rows and (node == 0 or not self._max_leaves):
            subtree = Subtree(
                self._columns,
                self._rows[start:end],
                self._targets,
                self._rules,
                max_leaves=self._max_leaves,
                parent=(self._upper, node) if node else None,
            )
            self._growing.append((node, subtree))
            return
        self._examine(node)
        if self._upper.record.feature[node] < 0:
            self._end(node)
        elif self._max_leaves:
            heapq.heappush(self._large, (-float(self._upper.record.decrease[node]), node))
        else:
            self._large.append((0.0, node))

    def _split_large(self) -> float:
        """Partition the rows of one; an interrupt finds the node either split or not."""
        if self._max_leaves and self._n_leaves >= self._max_leaves:
            for _, node in self._large:
                self._end(node)
            self._large = []
            return 1.0
        _, node = self._large[0] if self._max_leaves else self._large[-1]
        if self._used + 2 > len(self._upper.record):
            self._upper = with_room(
                self._upper, self._used, 2 * self._used + 16, len(self._upper.subsets)
            )
        record = self._upper.record
        start, end = int(record.start[node]), int(record.end[node])
        middle = _partition(self._rows, self._columns, self._upper, node)
        first = self._used
        begin_child(self._upper, first, node, start, middle, 0)
        begin_child(self._upper, first + 1, node, middle, end, 1)
        if len(self._rules.monotone):
            bound_children(self._upper, node, first, self._rows, self._targets, self._rules)
        remaining = self._large[:-1]
        if self._max_leaves:
            remaining = self._large.copy()
            heapq.heappop(remaining)
        self._used, self._n_leaves = first + 2, self._n_leaves + 1
        self._new, self._large = [first + 1, first], remaining
        record.left[node] = first  # last: from here on the children count
        return float(end - start) * len(self._columns.n_codes)

    def _end(self, node: int) -> None:
        self._upper.record.feature[node] = -1
        make_leaf(self._upper, node, self._rows, self._targets, self._rules)

    def _examine(self, node: int) -> None:
        """Sum up and search a large node."""
        rules, d = self._rules, len(self._columns.n_codes)
        pure, base, ranks = self._sum_up(node)
        if self._custom is not None:
            self._examine_by_custom(node, pure)
            return
        if not _may_split(self._upper, node, pure, rules):
            return
        self._make_words()
        if self._upper.record.depth[node] >= rules.greedy_depth:
            halve(self._upper, node, self._rows, None, self._columns, self._targets, rules)
            if self._upper.record.feature[node] >= 0:
                self._words = int(make_subset(self._upper, node, self._words, self._columns))
            return
        features, count = self._features(node)
        found: list[_Candidate | None] = [None] * d

        def search(k: int) -> None:
            found[k] = self._searched(int(features[k]), node, ranks)

        if rules.max_features >= d:
            run_tiles(search, d, self._n_threads)
        else:
            looked_at, has_split = 0, False
            for k in range(d):
                search(k)
                looked_at += found[k] is not None
                has_split |= found[k] is not None and found[k].buffers.best[0] >= 0  # type: ignore[union-attr]
                if looked_at >= count and has_split:
                    break
        self._keep(node, base, [one for one in found if one is not None])

    def _sum_up(self, node: int) -> tuple[bool, float, GeneralBuffers]:
        """Whether the node is pure, its score, and ranks of targets for medians."""
        buffers = new_general_buffers(
            new_search_buffers(len(self._columns.n_codes), self._upper.stats.shape[1]),
            len(self._targets.weight), 0, self._rules.criterion,
        )  # fmt: skip
        pure, base = sum_node(self._upper, node, self._rows, self._targets, self._rules, buffers)
        self._upper.record.feature[node] = -1
        if self._custom is not None:
            self._impurities[node] = self._custom_sums(node)[2]
        return bool(pure), float(base), buffers

    def _custom_sums(self, node: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Statistics and weights of the rows, and the impurity, for a user's criterion."""
        custom, targets = self._custom, self._targets
        if custom is None:
            raise TypeError("No registered criterion is set.")
        rows = self._rows[self._upper.record.start[node] : self._upper.record.end[node]]
        weight = targets.real[rows]
        is_class = len(targets.labels) > 0
        stats = custom.statistics(
            targets.labels[rows] if is_class else rows,
            rows.astype(np.float64) if is_class else targets.raw[rows],
            int(targets.starts[-1]),
        )
        return stats, weight, custom.impurity_of(weight @ stats, float(weight.sum()))

    def _examine_by_custom(self, node: int, pure: bool) -> None:
        """Search a large node with a registered criterion."""
        custom, targets, columns = self._custom, self._targets, self._columns
        if custom is None:
            return
        record = self._upper.record
        rows = self._rows[record.start[node] : record.end[node]]
        stats, weight, _ = self._custom_sums(node)
        if not _may_split(self._upper, node, pure, self._rules):
            return
        features, count = self._features(node)
        best = custom.best(
            NodeRows(rows, stats, weight, targets.samples[rows]), columns, features,
            n_features=count, key=int(record.key[node]) if self._rules.random else None,
            min_samples=self._rules.min_samples_leaf,
            min_weight=self._rules.min_weight * targets.unit,
        )  # fmt: skip
        if best is None or best.gain < self._rules.min_decrease * (1.0 - 1e-12):
            return
        feature = best.feature
        record.feature[node], record.subset[node] = feature, -1
        record.missing_left[node] = int(best.missing_left)
        record.decrease[node], record.random_threshold[node] = max(best.gain, 0.0), best.drawn
        if columns.categorical[feature]:
            self._make_words()
            self._words = int(new_subset(self._upper, node, self._words, columns.n_codes[feature]))
            for code in best.left.tolist():
                set_bit(self._upper.subsets, self._upper.record.subset[node], code)
        else:
            record.code[node] = best.left.max() if len(best.left) else -1
            record.next_code[node] = best.following

    def _make_words(self) -> None:
        if len(self._upper.subsets) < self._words + self._largest_set:
            n_words = 2 * self._words + 64 * self._largest_set
            self._upper = with_room(self._upper, self._used, len(self._upper.record), n_words)

    def _features(self, node: int) -> tuple[np.ndarray, int]:
        """The features in the order in which they are looked at, the same as in a subtree."""
        d = len(self._columns.n_codes)
        features = np.arange(d)
        if self._rules.max_features < d:
            _shuffle(features, np.uint64(self._upper.record.key[node].view(np.uint64)))
        return features, self._rules.max_features

    def _n_rows(self, node: int) -> int:
        return int(self._upper.record.end[node] - self._upper.record.start[node])

    def _searched(self, feature: int, node: int, ranks: GeneralBuffers) -> _Candidate | None:
        """The best split of a large node by one feature; None if the feature is constant."""
        columns, rules, targets = self._columns, self._rules, self._targets
        start, end = int(self._upper.record.start[node]), int(self._upper.record.end[node])
        m = end - start
        copy = new_nodes(1, self._upper.stats.shape[1], self._n_numbers, 0)
        for mine, theirs in zip(copy[:-1], self._upper[:-1], strict=True):
            mine[0] = theirs[node]
        buffers = new_search_buffers(len(columns.n_codes), copy.stats.shape[1])
        buffers.best[0] = -1
        buffers.offset[:] = ranks.offset
        n_groups = int(columns.n_codes[feature]) + 1
        too_sparse = n_groups * copy.stats.shape[1] > 16 * m
        by_entries = rules.random or rules.criterion == ABSOLUTE or too_sparse
        general = new_general_buffers(buffers, m, m if by_entries else n_groups, rules.criterion)
        if by_entries:
            if rules.criterion == ABSOLUTE:
                general = general._replace(ranks=ranks.ranks, by_rank=ranks.by_rank)
            entries = _sorted_entries(columns, feature, self._rows, start, end)
            in_order = SortedRows(entries, 0, m, m, _HALF_WORD, _ALL_BITS)
            copy.record.start[0], copy.record.end[0] = 0, m
            rows = np.arange(columns.narrow.shape[1])
            if not search_feature(in_order, feature, columns, rows, targets, rules, copy, 0,
                                  general):  # fmt: skip
                return None
        else:
            n_found = _group_rows(columns, feature, self._rows, start, end, targets, general)
            if n_found < 2:
                return None
            search_in_orders(n_found, feature, columns, targets, rules, copy, 0, general)
        return _Candidate(feature, buffers, general, copy)

    def _keep(self, node: int, base: float, found: list[_Candidate]) -> None:
        """The best of the features' best splits becomes the node's."""
        rules = self._rules
        found = [one for one in found if one.buffers.best[0] >= 0]
        if not found:
            return
        if rules.criterion == GAIN_RATIO:
            found.sort(key=lambda one: one.feature)
            winner = _best_ratio(found, base, int(self._upper.record.weight[node]))
        else:
            best, score = np.full_like(found[0].buffers.best, -1), np.zeros(1)
            known = rules.criterion
            if self._n_numbers > 1 and known != ABSOLUTE:
                known = CUSTOM  # sums over outputs have no exact form
            for one in sorted(found, key=lambda one: one.feature):
                _, a, left, b, right, position, _ = one.buffers.best
                if consider(known, rules.counted, a, left, b, right, one.buffers.score[0],
                            one.feature, position, best, score):  # fmt: skip
                    winner = one
        record, found_record = self._upper.record, winner.nodes.record
        for name in ("code", "next_code", "random_threshold"):
            record[name][node] = found_record[name][0]
        self._words = int(
            keep_split(self._upper, node, base, self._words, self._columns, self._targets, rules,
                       winner.general)
        )  # fmt: skip


def _cost_of_candidate(targets: Targets, rules: Rules) -> float:
    """About how long one threshold takes to judge, where counts of a few classes take 1."""
    n_stats = int(targets.starts[-1])
    if rules.criterion in (POISSON, GAMMA, ABSOLUTE):
        return 30.0 * n_stats
    if len(targets.starts) > 2:
        return 3.0 * n_stats
    if rules.criterion in (ENTROPY, GAIN_RATIO) and not rules.counted:
        return 3.0 * n_stats
    return 1.0 + n_stats / 8.0 if rules.criterion in (ERROR, GAIN_RATIO) else 1.0


@dataclass(frozen=True)
class _Candidate:
    """The best split by one feature, with all that `keep_split` needs."""

    feature: int
    buffers: SearchBuffers
    general: GeneralBuffers
    nodes: Nodes


def _best_ratio(found: list[_Candidate], base: float, weight: int) -> _Candidate:
    """C4.5's choice; see `node_search`."""
    gains = [max(float(one.buffers.score[0]) - base, 0.0) for one in found]
    average = sum(gains) / len(gains)
    winner, best = None, 0.0
    for one, gain in zip(found, gains, strict=True):
        shares = np.array([one.buffers.best[2], weight - one.buffers.best[2]]) / weight
        ratio = gain / (-weight * float((shares * np.log2(shares)).sum()))
        if gain >= average * (1.0 - 1e-9) and (winner is None or ratio > best * (1.0 + 1e-12)):
            winner, best = one, ratio
    return winner or found[0]


@kernel
def _shuffle(features, state):
    for j in range(len(features)):
        state, k = random_below(state, len(features) - j)
        features[j], features[j + k] = features[j + k], features[j]


@kernel
def _sorted_entries(columns, feature, rows, start, end):
    keys = np.empty(end - start, np.uint64)
    for p in range(start, end):
        keys[p - start] = np.uint64(code_of(columns, feature, rows[p]))
    order = sorted_by_digits(keys)
    entries = np.empty(end - start, np.uint64)
    for p in range(end - start):
        entries[p] = (keys[order[p]] << _HALF_WORD) | np.uint64(rows[start + order[p]])
    return entries


@kernel
def _group_rows(columns, feature, rows, start, end, targets, buffers):
    """Statistics of each code, those that are there by ascending code in the buffers; how many."""
    place = columns.place[feature]
    stats, weights, samples = buffers.group_stats, buffers.group_weight, buffers.group_samples
    if columns.width[feature] == 0:
        _add_rows(columns.narrow[place], rows, start, end, targets, stats, weights, samples)
    elif columns.width[feature] == 1:
        _add_rows(columns.medium[place], rows, start, end, targets, stats, weights, samples)
    else:
        _add_rows(columns.wide[place], rows, start, end, targets, stats, weights, samples)
    found = 0
    for code in range(len(stats)):
        if samples[code] > 0:
            if found < code:
                for k in range(stats.shape[1]):
                    stats[found, k] = stats[code, k]
                weights[found] = weights[code]
                samples[found] = samples[code]
            buffers.group_code[found] = code
            found += 1
    return found


@kernel(inner=True)
def _add_rows(codes, rows, start, end, targets, stats, weights, samples):
    n_outputs = len(targets.starts) - 1
    is_class = len(targets.labels) > 0
    for p in range(start, end):
        row = np.uint64(rows[p])
        code = np.uint64(codes[row])
        weight = targets.weight[row]
        weights[code] += weight
        samples[code] += targets.samples[row]
        for o in range(n_outputs):
            cell = row * np.uint64(n_outputs) + np.uint64(o)
            if is_class:
                stats[code, np.uint64(targets.labels[cell])] += weight
            else:
                stats[code, np.uint64(o)] += targets.numbers[cell]


@kernel
def _partition(rows, columns, nodes, node):
    """Rows of the left child first, then those of the right one; where these begin."""
    spare = np.empty(nodes.record.end[node] - nodes.record.start[node], np.int64)
    return partition_rows(rows, spare, columns, nodes, node)


@kernel(bare=True)
def _may_split(nodes, node, pure, rules):
    return may_split(nodes, node, pure, rules)
