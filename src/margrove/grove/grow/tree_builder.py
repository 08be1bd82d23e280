"""Growing a tree: large nodes one by one, the subtrees below them as blocks.

A node of more rows than a block may have is searched feature by feature, on several threads,
through histograms of its codes. What is small enough becomes a `Block`; blocks are grown side by
side. Where the cut lies and how many threads there are does not show in the tree: a node's split
depends on the node alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import kernel, run_tiles
from margrove.grove.grow.custom_criterion import CustomSearch, NodeRows
from margrove.grove.grow.node_search import (
    Basic,
    Scratch,
    bound_children,
    end_node,
    keep_split,
    make_subset,
    new_basic,
    new_scratch,
    search_feature,
    search_in_orders,
    set_bit,
    sum_up,
    write_subset,
)
from margrove.grove.grow.nodes import (
    BALANCED,
    CODE,
    DECREASE,
    DEPTH,
    DRAWN,
    END,
    FEATURE,
    KEY,
    LEFT,
    MISSING_LEFT,
    NEXT_CODE,
    SAMPLES,
    START,
    SUBSET,
    WEIGHT,
    Nodes,
    begin_child,
    new_nodes,
    random_below,
    with_room,
)
from margrove.grove.grow.scores import (
    ABSOLUTE,
    CUSTOM,
    ENTROPY,
    ERROR,
    GAIN_RATIO,
    GAMMA,
    POISSON,
    consider,
)
from margrove.grove.grow.split_search import Rules
from margrove.grove.grow.subtree import LARGEST_BLOCK, Block, plant
from margrove.grove.table import BinnedDataset, Columns, Targets, code_of, sorted_by_digits

__all__ = ["Growth", "TreeGrower", "columns_of"]

_ALL_BITS = np.int64(0xFFFFFFFF)
_HALF_WORD = np.uint64(32)
_MOST_WORK = 5e7  # of one node of a block, which is searched in one go: a quarter of a second


@dataclass(frozen=True)
class Growth:
    """What has grown: nodes of the trunk and of the blocks that stand on some of them.

    blocks       (node of the trunk, nodes of the block, how many)
    impurities   of the trunk's nodes, where a user's criterion measures them
    """

    trunk: Nodes
    n_trunk: int
    blocks: list[tuple[int, Nodes, int]]
    impurities: np.ndarray | None = None


def columns_of(data: BinnedDataset, *, with_values: bool = False, by_row: bool = False) -> Columns:
    """The codes for compiled code; with the values, where thresholds are drawn among them, and row
    by row, where few rows are asked for many features."""
    values = np.concatenate([*data.lows, np.empty(0)]) if with_values else np.empty(0)
    first = np.concatenate([[0], np.cumsum([len(low) for low in data.lows])]).astype(np.int64)
    rowwise = np.ascontiguousarray(data.codes.narrow.T) if by_row else np.empty((0, 0), np.uint8)
    return Columns(
        *data.codes, data.n_codes, data.has_missing, data.categorical, values, first, rowwise
    )


class TreeGrower:
    """Grows one tree; a process for `slices.drive`.

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
        largest_block: int = LARGEST_BLOCK,
        custom: CustomSearch | None = None,
    ) -> None:
        self._columns, self._targets, self._rules = columns, targets, rules
        self._rows = np.array(rows, dtype=np.int64)
        self._max_leaves = max_leaves
        self._n_threads = n_threads
        self._largest_block = 0
        if custom is None:
            cells = _MOST_WORK / (len(columns.n_codes) * _cost_of_candidate(targets, rules))
            self._largest_block = min(largest_block, int(cells))
        self._custom = custom
        self._impurities: dict[int, float] = {}
        n_stats = int(targets.starts[-1])
        self._n_numbers = len(targets.starts) - 1 if len(targets.raw) else 0
        self._trunk = new_nodes(16, n_stats, self._n_numbers, 0)
        self._used, self._words, self._n_leaves = 1, 0, 1
        self._largest_set = 0
        if columns.categorical.any():
            self._largest_set = int(columns.n_codes[columns.categorical].max()) // 32 + 1
        plant(self._trunk, len(self._rows), rules.seed)
        self._new = [0]  # nodes of which nothing is known yet
        self._large: list[tuple[float, int]] = []  # a heap, or a stack
        self._waiting: list[tuple[int, Block]] = []
        self._grown: list[tuple[int, Nodes, int]] = []  # of a block that is done, no more is kept

    @property
    def rounds(self) -> int:
        growing = sum(block.n_nodes - 1 for _, block in self._waiting)
        return self._used + growing + sum(count - 1 for _, _, count in self._grown)

    @property
    def finished(self) -> bool:
        return not self._new and not self._large and not self._waiting

    def figures(self) -> dict[str, float]:
        return {"nodes": float(self.rounds)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Look at a new node, split a large one, or let some blocks grow for a while."""
        if self._new:
            node = self._new[-1]
            self._place(node)
            self._new.pop()
            return float(np.diff(self._trunk.whole[node, [START, END]])[0]) + 1.0
        if self._large:
            return self._split_large()
        active = self._waiting[: self._n_threads]
        done = [0.0] * len(active)

        def grow(k: int) -> None:
            done[k] = active[k][1].advance(work)

        run_tiles(grow, len(active), self._n_threads)
        # A block may be in both lists if an interrupt comes in between; never in neither.
        self._grown += [(node, own.nodes, own.n_nodes) for node, own in active if own.finished]
        self._waiting = [(node, own) for node, own in self._waiting if not own.finished]
        return max(sum(done), 1.0)

    def result(self) -> Growth:
        """The tree as it stands; what is still to be split counts as leaves, and stays open."""
        blocks = {
            node: (own.nodes if own.finished else own.as_it_stands(), own.n_nodes)
            for node, own in self._waiting
        } | {node: (nodes, count) for node, nodes, count in self._grown}
        kept = self._trunk
        if not self.finished:
            self._trunk = Nodes._make(part.copy() for part in kept)
        try:
            if not self.finished:
                self._end_open_nodes(blocks)
            grown = [(node, nodes, count) for node, (nodes, count) in blocks.items()]
            return Growth(self._trunk, self._used, grown, self._impurities_of_trunk())
        finally:
            self._trunk = kept

    def _end_open_nodes(self, blocks: Collection[int]) -> None:
        """All that can be reached from the root and has no children; an interrupt may have come
        between any two steps, but children are made known last."""
        stack = [0]
        while stack:
            node = stack.pop()
            left = int(self._trunk.whole[node, LEFT])
            if left >= 0:
                stack += [left, left + 1]
            elif node not in blocks:
                self._sum_up(node)
                self._end(node)

    def _impurities_of_trunk(self) -> np.ndarray | None:
        if self._custom is None:
            return None
        return np.array([self._impurities.get(node, 0.0) for node in range(self._used)])

    # -- large nodes --

    def _place(self, node: int) -> None:
        """A new node is a leaf, a block, or one more large node."""
        whole = self._trunk.whole
        start, end = int(whole[node, START]), int(whole[node, END])
        # A tree of so many leaves at most wants to know of all its nodes which is best.
        if end - start <= self._largest_block and (node == 0 or not self._max_leaves):
            block = Block(
                self._columns,
                self._rows[start:end],
                self._targets,
                self._rules,
                max_leaves=self._max_leaves,
                parent=(self._trunk, node) if node else None,
            )
            self._waiting.append((node, block))
            return
        self._examine(node)
        if self._trunk.whole[node, FEATURE] < 0:
            self._end(node)
        elif self._max_leaves:
            heapq.heappush(self._large, (-float(self._trunk.real[node, DECREASE]), node))
        else:
            self._large.append((0.0, node))

    def _split_large(self) -> float:
        """Part the rows of one; whatever interrupts this finds the node whole, or split."""
        if self._max_leaves and self._n_leaves >= self._max_leaves:
            for _, node in self._large:
                self._end(node)
            self._large = []
            return 1.0
        _, node = self._large[0] if self._max_leaves else self._large[-1]
        if self._used + 2 > len(self._trunk.whole):
            self._trunk = with_room(
                self._trunk, self._used, 2 * self._used + 16, len(self._trunk.subsets)
            )
        whole = self._trunk.whole
        start, end = int(whole[node, START]), int(whole[node, END])
        middle = _part_rows(self._rows, start, end, self._columns, whole, self._trunk.subsets, node)
        first = self._used
        begin_child(self._trunk, first, node, start, middle, 0)
        begin_child(self._trunk, first + 1, node, middle, end, 1)
        if len(self._rules.monotone):
            bound_children(self._trunk, node, first, self._rows, self._targets, self._rules)
        remaining = self._large[:-1]
        if self._max_leaves:
            remaining = self._large.copy()
            heapq.heappop(remaining)
        self._used, self._n_leaves = first + 2, self._n_leaves + 1
        self._new, self._large = [first + 1, first], remaining
        whole[node, LEFT] = first  # last: from here on the children count
        return float(end - start) * len(self._columns.n_codes)

    def _end(self, node: int) -> None:
        self._trunk.whole[node, FEATURE] = -1
        end_node(self._trunk, node, self._rows, self._targets, self._rules)

    def _examine(self, node: int) -> None:
        """Sum up and search a large node."""
        whole, rules = self._trunk.whole, self._rules
        d = len(self._columns.n_codes)
        m = int(whole[node, END] - whole[node, START])
        pure, base, ranks = self._sum_up(node)
        if self._custom is not None:
            self._examine_by_custom(node, pure)
            return
        if not self._may_split(node, pure):
            return
        self._make_words()
        if whole[node, DEPTH] >= rules.greedy_depth:
            self._halve(node)
            return
        features, count = self._features(node)
        found: list[_Candidate | None] = [None] * d

        def search(k: int) -> None:
            found[k] = self._searched(int(features[k]), node, m, ranks)

        if rules.max_features >= d:
            run_tiles(search, d, self._n_threads)
        else:
            looked_at, has_split = 0, False
            for k in range(d):
                search(k)
                looked_at += found[k] is not None
                has_split |= found[k] is not None and found[k].basic.best[0] >= 0  # type: ignore[union-attr]
                if looked_at >= count and has_split:
                    break
        self._keep(node, base, [one for one in found if one is not None])

    def _sum_up(self, node: int) -> tuple[bool, float, Scratch]:
        """Whether the node is pure, its score, and ranks of targets for medians."""
        basic = new_basic(len(self._columns.n_codes), self._trunk.stats.shape[1])
        scratch = new_scratch(basic, len(self._targets.weight), 0, self._rules.criterion)
        pure, base = sum_up(self._trunk, node, self._rows, self._targets, self._rules, scratch)
        self._trunk.whole[node, FEATURE] = -1
        if self._custom is not None:
            self._impurities[node] = self._custom_sums(node)[2]
        return bool(pure), float(base), scratch

    def _custom_sums(self, node: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Statistics and weights of the rows, and the impurity, for a user's criterion."""
        custom, targets = self._custom, self._targets
        if custom is None:
            raise TypeError("There is no criterion of a user's here.")
        rows = self._rows[self._trunk.whole[node, START] : self._trunk.whole[node, END]]
        weight = targets.real[rows]
        is_class = len(targets.labels) > 0
        stats = custom.statistics(
            targets.labels[rows] if is_class else rows,
            rows.astype(np.float64) if is_class else targets.raw[rows],
            int(targets.starts[-1]),
        )
        return stats, weight, custom.impurity_of(weight @ stats, float(weight.sum()))

    def _examine_by_custom(self, node: int, pure: bool) -> None:
        """The same by a user's criterion."""
        custom, targets, columns = self._custom, self._targets, self._columns
        if custom is None:
            return
        whole, real = self._trunk.whole, self._trunk.real
        rows = self._rows[whole[node, START] : whole[node, END]]
        stats, weight, _ = self._custom_sums(node)
        if not self._may_split(node, pure):
            return
        features, count = self._features(node)
        best = custom.best(
            NodeRows(rows, stats, weight, targets.samples[rows]), columns, features,
            n_features=count, key=int(whole[node, KEY]) if self._rules.random else None,
            min_samples=self._rules.min_samples_leaf,
            min_weight=self._rules.min_weight * targets.unit,
        )  # fmt: skip
        if best is None or best.gain < self._rules.min_decrease * (1.0 - 1e-12):
            return
        feature = best.feature
        whole[node, FEATURE], whole[node, SUBSET] = feature, -1
        whole[node, MISSING_LEFT] = int(best.missing_left)
        real[node, DECREASE], real[node, DRAWN] = max(best.gain, 0.0), best.drawn
        if columns.categorical[feature]:
            self._make_words()
            self._words = int(
                write_subset(self._trunk, node, self._words, columns.n_codes[feature])
            )
            for code in best.left.tolist():
                set_bit(self._trunk.subsets, self._trunk.whole[node, SUBSET], code)
        else:
            whole[node, CODE] = best.left.max() if len(best.left) else -1
            whole[node, NEXT_CODE] = best.following

    def _may_split(self, node: int, pure: bool) -> bool:
        whole, rules = self._trunk.whole[node], self._rules
        return not (
            pure
            or whole[DEPTH] >= rules.max_depth
            or whole[SAMPLES] < max(rules.min_samples_split, 2 * rules.min_samples_leaf)
            or whole[WEIGHT] < 2 * rules.min_weight
        )

    def _make_words(self) -> None:
        if len(self._trunk.subsets) < self._words + self._largest_set:
            n_words = 2 * self._words + 64 * self._largest_set
            self._trunk = with_room(self._trunk, self._used, len(self._trunk.whole), n_words)

    def _features(self, node: int) -> tuple[np.ndarray, int]:
        """The features in the order in which they are looked at, the same as in a block."""
        d = len(self._columns.n_codes)
        features = np.arange(d)
        if self._rules.max_features < d:
            _shuffle(features, np.uint64(self._trunk.whole[node, KEY].view(np.uint64)))
        return features, self._rules.max_features

    def _searched(self, feature: int, node: int, m: int, ranks: Scratch) -> _Candidate | None:
        """The best split of a large node by one feature; None if the feature is constant."""
        columns, rules, targets = self._columns, self._rules, self._targets
        start, end = (int(self._trunk.whole[node, k]) for k in (START, END))
        own = new_nodes(1, self._trunk.stats.shape[1], self._n_numbers, 0)
        for mine, theirs in zip(own[:-1], self._trunk[:-1], strict=True):
            mine[0] = theirs[node]
        basic = new_basic(len(columns.n_codes), own.stats.shape[1])
        basic.best[0] = -1
        basic.offset[:] = ranks.offset
        n_groups = int(columns.n_codes[feature]) + 1
        too_sparse = n_groups * own.stats.shape[1] > 16 * m
        by_entries = rules.random or rules.criterion == ABSOLUTE or too_sparse
        scratch = new_scratch(basic, m, m if by_entries else n_groups, rules.criterion)
        if by_entries:
            if rules.criterion == ABSOLUTE:
                scratch = scratch._replace(ranks=ranks.ranks, by_rank=ranks.by_rank)
            entries = _sorted_entries(columns, feature, self._rows, start, end)
            own.whole[0, START], own.whole[0, END] = 0, m
            if not search_feature(entries, 0, m, _HALF_WORD, _ALL_BITS, feature, columns,
                                  np.arange(columns.narrow.shape[1]), targets, rules, own, 0,
                                  scratch):  # fmt: skip
                return None
        else:
            n_found = _group_rows(columns, feature, self._rows, start, end, targets, scratch)
            if n_found < 2:
                return None
            search_in_orders(n_found, feature, columns, targets, rules, own, 0, scratch)
        return _Candidate(feature, basic, scratch, own)

    def _keep(self, node: int, base: float, found: list[_Candidate]) -> None:
        """The best of the features' best splits becomes the node's."""
        rules = self._rules
        found = [one for one in found if one.basic.best[0] >= 0]
        if not found:
            return
        if rules.criterion == GAIN_RATIO:
            found.sort(key=lambda one: one.feature)
            winner = _best_ratio(found, base, int(self._trunk.whole[node, WEIGHT]))
        else:
            best, score = np.full_like(found[0].basic.best, -1), np.zeros(1)
            known = rules.criterion
            if self._n_numbers > 1 and known != ABSOLUTE:
                known = CUSTOM  # sums over outputs have no exact form
            for one in sorted(found, key=lambda one: one.feature):
                own = one.basic.best
                if consider(known, rules.counted, own[1], own[2], own[3], own[4],
                            one.basic.score[0], one.feature, own[5], best, score):  # fmt: skip
                    winner = one
        for column in (CODE, NEXT_CODE):
            self._trunk.whole[node, column] = winner.nodes.whole[0, column]
        self._trunk.real[node, DRAWN] = winner.nodes.real[0, DRAWN]
        self._words = int(
            keep_split(self._trunk, node, base, self._words, self._columns, self._targets, rules,
                       winner.scratch)
        )  # fmt: skip

    def _halve(self, node: int) -> None:
        """The most even split there is; see `subtree`."""
        whole = self._trunk.whole
        rows = self._rows[whole[node, START] : whole[node, END]]
        most, feature, code, following = 0, -1, 0, 0
        for j in range(len(self._columns.n_codes)):
            counts = _count_codes(self._columns, j, rows)
            present = np.flatnonzero(counts)
            below = np.cumsum(counts[present])[:-1]
            if len(below):
                even = np.minimum(below, len(rows) - below)
                k = int(np.argmax(even))
                if even[k] > most:
                    most, feature = int(even[k]), j
                    code, following = int(present[k]), int(present[k + 1])
        if feature < 0:
            return
        left = rows[_codes_of(self._columns, feature, rows) <= code]
        samples, weight = self._targets.samples[left].sum(), self._targets.weight[left].sum()
        if (
            min(samples, whole[node, SAMPLES] - samples) < self._rules.min_samples_leaf
            or min(weight, whole[node, WEIGHT] - weight) < self._rules.min_weight
        ):
            return
        whole[node, FEATURE], whole[node, BALANCED] = feature, 1
        whole[node, CODE], whole[node, NEXT_CODE] = code, following
        whole[node, SUBSET], whole[node, MISSING_LEFT] = -1, 0
        self._trunk.real[node, DECREASE], self._trunk.real[node, DRAWN] = 0.0, np.nan
        self._words = int(make_subset(self._trunk, node, self._words, self._columns))


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
    basic: Basic
    scratch: Scratch
    nodes: Nodes


def _best_ratio(found: list[_Candidate], base: float, weight: int) -> _Candidate:
    """C4.5's choice; see `node_search`."""
    gains = [max(float(one.basic.score[0]) - base, 0.0) for one in found]
    average = sum(gains) / len(gains)
    winner, best = None, 0.0
    for one, gain in zip(found, gains, strict=True):
        shares = np.array([one.basic.best[2], weight - one.basic.best[2]]) / weight
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
def _codes_of(columns, feature, rows):
    codes = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        codes[i] = code_of(columns, feature, rows[i])
    return codes


@kernel
def _count_codes(columns, feature, rows):
    counts = np.zeros(columns.n_codes[feature] + 1, np.int64)
    for i in range(len(rows)):
        counts[code_of(columns, feature, rows[i])] += 1
    return counts


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
def _group_rows(columns, feature, rows, start, end, targets, scratch):
    """Statistics of each code, those that are there by ascending code in scratch; how many."""
    place = columns.place[feature]
    stats, weights, samples = scratch.group_stats, scratch.group_weight, scratch.group_samples
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
            scratch.group_code[found] = code
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
def _part_rows(rows, start, end, columns, whole, subsets, node):
    """Rows of the left child first, then those of the right one, in order; where these begin."""
    feature, code, subset = whole[node, FEATURE], whole[node, CODE], whole[node, SUBSET]
    missing_left, missing = whole[node, MISSING_LEFT], columns.n_codes[feature]
    spare = np.empty(end - start, np.int64)
    left, right = start, 0
    whole[node, MISSING_LEFT] = -1
    for p in range(start, end):
        row = rows[p]
        own = code_of(columns, feature, row)
        if own == missing:
            goes_left = missing_left == 1
            whole[node, MISSING_LEFT] = missing_left
        elif subset >= 0:
            goes_left = (subsets[subset + own // 32] >> np.uint32(own % 32)) & np.uint32(1) == 1
        else:
            goes_left = own <= code
        if goes_left:
            rows[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    for p in range(right):
        rows[left + p] = spare[p]
    return left
