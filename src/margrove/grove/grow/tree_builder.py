"""Builds one tree: large nodes first, level by level, and then the subtrees below them.

A node of more rows than a subtree may have is searched feature by feature, on several threads:
through histograms of its codes (`group_search`) or, for medians and random thresholds, by sorting
its rows. Smaller nodes become subtrees, which grow side by side (`grown_subtrees`). Neither the
limit nor the number of threads shows in the tree: the split of a node depends on the node alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import fields_of, kernel, run_tiles
from margrove.grove.grow.group_search import (
    GroupSearch,
    best_ratio,
    shuffle,
    sorted_entries,
)
from margrove.grove.grow.grown_subtrees import GrownSubtrees, bytes_of_nodes, grow_subtrees
from margrove.grove.grow.halving import halve
from margrove.grove.grow.node_sums import NodeSums, new_near_rows, sum_nodes
from margrove.grove.grow.node_values import bound_children, make_leaf, sum_node
from margrove.grove.grow.nodes import (
    Nodes,
    begin_child,
    begin_root,
    new_nodes,
    with_room,
)
from margrove.grove.grow.partitioning import partition_nodes
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
    SparseRows,
    consider,
    keep_split,
    make_subset,
    new_general_buffers,
    new_search_buffers,
    new_subset,
    search_feature,
    set_bit,
)
from margrove.grove.grow.subtree import MOST_ROWS, Subtree
from margrove.grove.table import BinnedDataset, Columns, Targets

__all__ = ["Growth", "TreeBuilder", "columns_of"]

_ALL_BITS = np.int64(0xFFFFFFFF)
_HALF_WORD = np.uint64(32)
_MOST_WORK = 5e7  # of one node of a subtree, searched without a pause: a quarter of a second
_QUICK_WORK = 4e6  # rows times features of a subtree that grows in one go: a tenth of a second
_CELLS_FOR_GROUPS = 8.0  # of a row, for each that a search of sparse rows reads
_FEWEST_ROWS = 1 << 13  # of a subtree, if there are more
_MOST_BYTES = 1 << 28  # of the nodes of subtrees that grow side by side
_SUBTREES_OF_THREAD = 2  # at least, between two looks for an interrupt
_SUBTREES_OF_ALL = 3  # for each thread, if they were of equal size


@dataclass(frozen=True)
class Growth:
    """What has grown: the upper nodes, and the subtrees that take the place of some of them.

    n_upper      of the upper nodes in use
    impurities   of the upper nodes, where a user's criterion measures them
    """

    upper: Nodes
    n_upper: int
    subtrees: list[GrownSubtrees]
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
        most_rows: int | None = None,
        custom: CustomSearch | None = None,
        sparse: SparseRows | None = None,
    ) -> None:
        """sparse: the codes of a sparse table, where subtrees may be searched in this form."""
        self._sparse = sparse
        self._columns, self._targets, self._rules = columns, targets, rules
        self._rows = np.array(rows, dtype=np.int64)
        self._max_leaves = max_leaves
        self._n_threads = n_threads
        self._custom = custom
        self._impurities: dict[int, float] = {}
        n_stats = int(targets.starts[-1])
        self._n_numbers = len(targets.starts) - 1 if len(targets.raw) else 0
        self._upper = new_nodes(16, n_stats, self._n_numbers, 0)
        self._used, self._words, self._n_leaves = 1, 0, 1
        self._largest_set = 0
        if columns.categorical.any():
            self._largest_set = int(columns.n_codes[columns.categorical].max()) // 32 + 1
        self._by_groups = custom is None and not rules.random and rules.criterion != ABSOLUTE
        self._groups: GroupSearch | None = None  # made for the first large node
        self._spare, self._near = np.empty(0, np.int64), new_near_rows(targets, 0)
        self._most_rows, self._is_quick = self._limit(most_rows)
        begin_root(self._upper, len(self._rows), rules.seed)
        self._new = [0]  # nodes of which nothing is known yet
        self._large: list[tuple[float, int]] = []  # a heap, or a list
        self._open: list[int] = []  # roots of subtrees that grow in one go, the largest first
        self._growing: list[tuple[int, Subtree]] = []  # other subtrees
        self._grown: list[GrownSubtrees] = []  # of a subtree that is done, no more is kept
        self._n_grown = 0  # nodes of these, without their roots

    def _limit(self, given: int | None) -> tuple[int, bool]:
        """The most rows of a subtree, and whether it grows in one go."""
        if self._custom is not None:
            return 0, False
        columns, targets = self._columns, self._targets
        cost = _cost_of_candidate(targets, self._rules)
        d, n = len(columns.n_codes), len(self._rows)
        width = float(d)  # cells of a row that a search reads
        if self._sparse is not None:
            width = 1.0 + len(self._sparse.code) / n
        most = min(MOST_ROWS if given is None else given, int(_MOST_WORK / (width * cost)))
        quick = most
        has_groups = self._by_groups and d < _CELLS_FOR_GROUPS * width
        if has_groups and given is None and n > _FEWEST_ROWS:
            # More threads need more subtrees; but large nodes have histograms, which should not
            # be longer than their rows.
            cells = float((columns.n_codes + 1).sum()) * int(targets.starts[-1])
            wanted = max(2.0 * cells / d, n / (_SUBTREES_OF_ALL * self._n_threads))
            quick = _FEWEST_ROWS
            while quick < min(most, wanted):
                quick *= 2
            quick = min(quick, most)
        is_quick = (
            not self._max_leaves
            and min(quick, n) * d * cost <= _QUICK_WORK
            and bytes_of_nodes(targets, min(quick, n), self._largest_set) <= _MOST_BYTES
        )
        return (quick, True) if is_quick else (most, False)

    @property
    def rounds(self) -> int:
        growing = sum(subtree.n_nodes - 1 for _, subtree in self._growing)
        return self._used + growing + self._n_grown

    @property
    def finished(self) -> bool:
        return not self._new and not self._large and not self._open and not self._growing

    def figures(self) -> dict[str, float]:
        return {"nodes": float(self.rounds)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Look at new nodes, split large ones, or let some subtrees grow for a while."""
        if self._new:
            return self._look_at_new()
        if self._large:
            return self._split_best() if self._max_leaves else self._split_large()
        if self._open:
            return self._grow_open(work)
        active = self._growing[: self._n_threads]
        done = [0.0] * len(active)

        def grow(k: int) -> None:
            done[k] = active[k][1].advance(work)

        run_tiles(grow, len(active), self._n_threads)
        # A subtree may be in both lists if an interrupt comes in between; never in neither.
        done_now = [_alone(node, one.nodes, one) for node, one in active if one.finished]
        self._grown = self._grown + done_now
        self._n_grown += sum(int(some.counts[0]) - 1 for some in done_now)
        self._growing = [(node, one) for node, one in self._growing if not one.finished]
        return max(sum(done), 1.0)

    def _grow_open(self, work: float) -> float:
        """Grow some of the open subtrees, the largest first."""
        which = np.array(self._open)
        size = self._sizes(which)
        cost = 10.0 * size * len(self._columns.n_codes)
        wanted = int(np.searchsorted(np.cumsum(cost), work * self._n_threads))
        wanted = max(wanted, _SUBTREES_OF_THREAD * self._n_threads)
        room = _MOST_BYTES // bytes_of_nodes(self._targets, int(size[0]), self._largest_set)
        count = max(1, min(wanted, room, len(which)))
        grown = grow_subtrees(
            self._columns, self._rows, self._targets, self._rules, self._upper, which[:count],
            self._largest_set, self._n_threads, self._sparse,
        )  # fmt: skip
        self._grown = [*self._grown, grown]
        self._n_grown += int(grown.counts.sum()) - count
        self._open = self._open[count:]
        return float(cost[:count].sum()) / min(self._n_threads, count)

    def result(self) -> Growth:
        """The tree so far; nodes that are still to be split count as leaves, and stay open."""
        subtrees = self._grown + [
            _alone(node, one.nodes if one.finished else one.with_open_nodes_as_leaves(), one)
            for node, one in self._growing
        ]
        kept = self._upper
        if not self.finished:
            self._upper = Nodes._make(array.copy() for array in kept)
        try:
            if not self.finished:
                uppers = [some.uppers for some in subtrees]
                self._end_open_nodes(set(np.concatenate([*uppers, np.empty(0, int)]).tolist()))
            return Growth(self._upper, self._used, subtrees, self._impurities_of_upper())
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

    def _look_at_new(self) -> float:
        """A new node is a leaf, a subtree, or one more large node."""
        # A best-first tree compares all its nodes: it is one subtree, or has large nodes only.
        nodes = self._by_size(self._new)
        is_small = self._sizes(nodes) <= self._most_rows
        if self._max_leaves and self._new != [0]:
            is_small[:] = False
        small, large = nodes[is_small].tolist(), nodes[~is_small].tolist()
        if large and self._by_groups:
            self._examine_by_groups(nodes[~is_small])
        else:
            for node in large:
                self._examine(node)
        record = fields_of(self._upper.record)
        for node in large:
            if record["feature"][node] < 0:
                self._end(node)
            elif self._max_leaves:
                heapq.heappush(self._large, (-float(record["decrease"][node]), node))
            else:
                self._large.append((0.0, node))
        if self._is_quick:
            self._open = self._by_size([*{*self._open, *small}]).tolist()
        else:
            self._growing += [(node, self._new_subtree(node)) for node in small]
        self._new = []
        d = len(self._columns.n_codes)
        return float(self._sizes(nodes[~is_small]).sum() * d) / self._n_threads + len(nodes)

    def _new_subtree(self, node: int) -> Subtree:
        record = self._upper.record
        return Subtree(
            self._columns,
            self._rows[record.start[node] : record.end[node]],
            self._targets,
            self._rules,
            max_leaves=self._max_leaves,
            parent=(self._upper, node) if node else None,
            sparse=self._sparse,
        )

    def _split_large(self) -> float:
        """Split all large nodes: their rows become those of their children."""
        which = np.array([node for _, node in self._large])
        self._split(which)
        return float(self._sizes(which).sum()) / self._n_threads + 1.0

    def _split_best(self) -> float:
        """Split the node that gains most, or end them all."""
        if self._n_leaves >= self._max_leaves:
            for _, node in self._large:
                self._end(node)
            self._large = []
            return 1.0
        node = self._large[0][1]
        self._split(np.array([node]))
        return float(self._sizes(np.array([node]))[0]) * len(self._columns.n_codes)

    def _split(self, which: np.ndarray) -> None:
        """Partition the rows; an interrupt finds a node either split or not."""
        first = self._used
        if first + 2 * len(which) > len(self._upper.record):
            self._upper = with_room(
                self._upper, first, 2 * (first + len(which)) + 16, len(self._upper.subsets)
            )
        if len(self._spare) < len(self._rows):
            self._spare = np.empty_like(self._rows)
        middles = partition_nodes(
            self._rows, self._spare, self._columns, self._upper, which, self._n_threads
        )
        _begin_children(self._upper, which, middles, first, self._rows, self._targets, self._rules)
        remaining: list[tuple[float, int]] = []
        if self._max_leaves:
            remaining = self._large.copy()
            heapq.heappop(remaining)
        children = range(first, first + 2 * len(which))
        self._used, self._n_leaves = first + 2 * len(which), self._n_leaves + len(which)
        self._new, self._large = [*children], remaining
        # last: from here on the children count
        fields_of(self._upper.record)["left"][which] = children[::2]

    def _examine_by_groups(self, which: np.ndarray) -> None:
        """Sum up and search large nodes."""
        if self._groups is None:
            self._groups = GroupSearch(self._columns, self._targets, self._rules, self._n_threads)
            self._near = new_near_rows(self._targets, len(self._rows))
        sums = sum_nodes(self._upper, which, self._rows, self._targets, self._rules, self._near,
                         self._n_threads)  # fmt: skip
        record = fields_of(self._upper.record)
        record["feature"][which] = -1
        searched = np.empty(len(which), dtype=bool)
        _may_be_searched(self._upper, which, sums.pure, self._rules, searched)
        is_deep = record["depth"][which] >= self._rules.greedy_depth
        for node in which[searched & is_deep].tolist():
            self._examine(node)
        searched &= ~is_deep
        if not searched.any():
            return
        self._make_words(int(searched.sum()))
        chosen = NodeSums(sums.pure[searched], sums.base[searched], sums.offset[searched])
        self._words = self._groups.search(
            self._upper, which[searched], chosen, self._rows, self._near, self._words
        )

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

    def _make_words(self, n_nodes: int = 1) -> None:
        """Room for the sets of so many nodes."""
        needed = self._words + n_nodes * self._largest_set
        if len(self._upper.subsets) < needed:
            n_words = 2 * needed + 64 * self._largest_set
            self._upper = with_room(self._upper, self._used, len(self._upper.record), n_words)

    def _features(self, node: int) -> tuple[np.ndarray, int]:
        """The features in the order in which they are looked at, the same as in a subtree."""
        d = len(self._columns.n_codes)
        features = np.arange(d)
        if self._rules.max_features < d:
            shuffle(features, np.uint64(self._upper.record.key[node].view(np.uint64)))
        return features, self._rules.max_features

    def _sizes(self, nodes: np.ndarray) -> np.ndarray:
        """The numbers of rows of some nodes."""
        record = fields_of(self._upper.record)
        sizes: np.ndarray = record["end"][nodes] - record["start"][nodes]
        return sizes

    def _by_size(self, nodes: list[int]) -> np.ndarray:
        """The nodes with the largest first; of equal ones the oldest."""
        ordered = np.sort(np.array(nodes, dtype=np.int64))
        largest_first: np.ndarray = ordered[np.argsort(-self._sizes(ordered), kind="stable")]
        return largest_first

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
        general = new_general_buffers(buffers, m, m, rules.criterion)
        if rules.criterion == ABSOLUTE:
            general = general._replace(ranks=ranks.ranks, by_rank=ranks.by_rank)
        entries = sorted_entries(columns, feature, self._rows, start, end)
        in_order = SortedRows(entries, 0, m, m, _HALF_WORD, _ALL_BITS)
        copy.record.start[0], copy.record.end[0] = 0, m
        rows = np.arange(columns.narrow.shape[1])
        if not search_feature(in_order, feature, columns, rows, targets, rules, copy, 0, general):
            return None
        return _Candidate(feature, buffers, general, copy)

    def _keep(self, node: int, base: float, found: list[_Candidate]) -> None:
        """The best of the features' best splits becomes the node's."""
        rules = self._rules
        found = [one for one in found if one.buffers.best[0] >= 0]
        if not found:
            return
        if rules.criterion == GAIN_RATIO:
            found.sort(key=lambda one: one.feature)
            gains = [max(float(one.buffers.score[0]) - base, 0.0) for one in found]
            lefts = [int(one.buffers.best[2]) for one in found]
            winner = found[best_ratio(gains, lefts, int(self._upper.record.weight[node]))]
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


def _alone(node: int, nodes: Nodes, subtree: Subtree) -> GrownSubtrees:
    zero, count = np.zeros(1, np.int64), np.array([subtree.n_nodes])
    return GrownSubtrees(np.array([node]), zero, count, nodes)


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


@kernel(bare=True)
def _begin_children(nodes, which, middles, first, rows, targets, rules):
    """Two children for each node, which are not linked to it yet."""
    record = nodes.record
    for k in range(len(which)):
        node, child = which[k], first + 2 * k
        begin_child(nodes, child, node, record.start[node], middles[k], 0)
        begin_child(nodes, child + 1, node, middles[k], record.end[node], 1)
        if len(rules.monotone) > 0:
            bound_children(nodes, node, child, rows, targets, rules)


@kernel(bare=True)
def _may_be_searched(nodes, which, pure, rules, found):
    for k in range(len(which)):
        found[k] = may_split(nodes, which[k], pure[k], rules)


@kernel(bare=True)
def _may_split(nodes, node, pure, rules):
    return may_split(nodes, node, pure, rules)
