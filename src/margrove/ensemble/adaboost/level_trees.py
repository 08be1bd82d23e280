"""A learner for small trees, grown level by level on the tables of stumps.

All nodes of a level are searched in one pass over the rows: a histogram for each node, or sums for
each node in the sorted order of a feature. The trees are equal to those of `DecisionTreeClassifier`
with the same weights: the same whole numbers are summed, and ties go to the lowest feature, then to
the lowest threshold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, run_tiles
from margrove.ensemble.adaboost.members import TreeMembers
from margrove.ensemble.adaboost.stump_tables import ROWS_OF_A_BIN, StumpTable, write_sides
from margrove.grove import CRITERIA
from margrove.grove.grow import impurity_of_shares
from margrove.grove.grow.search import GINI, ROUNDING_OF_SQUARES, consider, is_far, score_of_classes
from margrove.grove.serve import LEAF, THRESHOLD, Kind, TreeArrays, packed_of
from margrove.grove.table import code_of, whole_weights

__all__ = ["DEEPEST", "LevelLearner", "rows_of_a_bin"]

DEEPEST = 6  # in deeper trees most nodes are small, and passes over all rows are too slow
_ROWS_OF_A_CELL = 1.25  # above it, histograms are faster than reading in sorted order
_NEXT_CODE = 6  # the column of `best` after those of `consider`


def rows_of_a_bin(n_classes: int, max_depth: int) -> float:
    """The mean number of rows for each value of a feature above which histograms are faster.

    Each node has its own histogram, with a cell for each value and class, and each level has twice
    as many nodes as the level above. Reading in sorted order costs the same at every level. See
    `read_stump_table`.
    """
    n_nodes_of_a_level = (2**max_depth - 1) / max_depth
    return max(float(ROWS_OF_A_BIN), _ROWS_OF_A_CELL * n_classes * n_nodes_of_a_level)


class Level(NamedTuple):
    """The nodes first .. first + m - 1 of a tree, which form a level.

    is_open    bool (m,)  whether the node may be split
    totals     int64 (m, K)  weights of the classes in each node
    weights    int64 (m,)  their sums
    """

    first: int
    is_open: np.ndarray
    totals: np.ndarray
    weights: np.ndarray


class LevelSearch(NamedTuple):
    """Buffers for the search of a group of features, for the largest number m of nodes in a level.

    histogram    int64  (nodes * bins * K,)
    left         int64 (m, K)  running sums of the classes on the left
    weight_left  int64 (m,)  their sums
    squares      float64 (m, 3)  sums of squares of the left and the right, and their error bound
    last_code    int64 (m,)  the last code seen in each node
    best, score  int64 (m, 7), float64 (m,)  see `consider`; the last column is the next code
    best_left    int64 (m, K)  classes on the left of the best split
    """

    histogram: np.ndarray
    left: np.ndarray
    weight_left: np.ndarray
    squares: np.ndarray
    last_code: np.ndarray
    best: np.ndarray
    score: np.ndarray
    best_left: np.ndarray


class LevelLearner:
    """A learner for trees of at most `max_depth` levels; see `weak_learners` for the protocol.

    samples: the number of samples that each row represents.
    """

    def __init__(
        self,
        table: StumpTable,
        labels: np.ndarray,
        n_classes: int,
        samples: np.ndarray,
        answer: str,
        *,
        criterion: str,
        max_depth: int,
        n_threads: int,
    ) -> None:
        self._table, self._answer, self._n_threads = table, answer, n_threads
        self._labels, self._n_classes = labels.astype(np.int32), n_classes
        self._samples, self._max_depth = samples.astype(np.int64), max_depth
        self._criterion = CRITERIA[criterion].code
        self._bits = int(n_classes - 1).bit_length()
        widest = 2 ** min(max_depth - 1, DEEPEST)
        self._searches = [
            _new_search(widest, int(group.first[-1]), n_classes) for group in table.groups
        ]
        n = table.n_rows
        self._packed, self._node_of = np.empty(n, np.int64), np.empty(n, np.int32)
        self._on_left = np.empty(n, np.bool_)
        self.kind = Kind(self._criterion, (n_classes,), 1, np.zeros(len(table.values), np.int64))
        self._nodes: _Nodes | None = None

    @property
    def extremes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each column, the lowest and the highest value of each code."""
        return [(values, values) for values in self._table.values]

    @property
    def finished(self) -> bool:
        return self._nodes is not None and self._nodes.is_complete

    def begin(self, number: int, weights: np.ndarray, targets: np.ndarray | None) -> None:
        units, unit, _ = whole_weights(weights[0])
        self._packed = (units << self._bits) | self._labels
        self._node_of[:] = 0
        totals = np.zeros(self._n_classes, np.int64)
        np.add.at(totals, self._labels, units)
        self._nodes = _Nodes(totals, int(self._samples.sum()), unit)

    def advance(self, work: float) -> float:
        """Grow one level."""
        nodes = self._nodes
        if nodes is None or nodes.is_complete:
            return 1.0
        level = nodes.level(is_last=nodes.depth >= self._max_depth)
        if level.is_open.any():
            self._search(level)
            children = nodes.split(level, self._searches[0])
            self._partition(level, children)
        nodes.next_level()
        return float(sum(len(group.bins) + group.orders.size for group in self._table.groups))

    def _search(self, level: Level) -> None:
        groups, searches = self._table.groups, self._searches

        def search(k: int) -> None:
            _search_level(
                groups[k], self._packed, self._bits, self._node_of, level, self._criterion,
                searches[k],
            )  # fmt: skip

        run_tiles(search, len(groups), self._n_threads)
        for other in searches[1:]:
            _take_better(self._criterion, len(level.weights), other, searches[0])

    def _partition(self, level: Level, children: np.ndarray) -> None:
        """Move rows to the children of their nodes; children[k, 0] < 0 if node k is a leaf."""
        nodes = self._nodes
        counts = np.zeros(2 * len(level.weights), np.int64)
        _partition_rows(self._table.columns, level.first, self._searches[0].best, children,
                        self._node_of, self._samples, self._on_left, counts)  # fmt: skip
        if nodes is not None:
            nodes.count(children, counts)

    def answers(self) -> np.ndarray:
        nodes = self._nodes
        if nodes is None:
            raise RuntimeError("Call begin first.")
        sums = np.array(nodes.totals)
        answers: np.ndarray
        if self._answer == "labels":
            answers = np.argmax(sums, axis=1)[self._node_of]
        else:
            answers = (sums / sums.sum(axis=1, keepdims=True))[self._node_of]
        return answers

    def add_to(self, members: TreeMembers) -> TreeMembers:
        nodes = self._nodes
        if nodes is None:
            raise RuntimeError("Call begin first.")
        tree = packed_of(nodes.arrays(self._table, self._criterion), self.kind)
        return replace(members, trees=(*members.trees, [tree]))


class _Nodes:
    """The nodes of a tree that grows by levels."""

    def __init__(self, totals: np.ndarray, n_samples: int, unit: float) -> None:
        self.totals = [totals]
        self._samples, self._unit = [n_samples], unit
        self._split: list[tuple[int, int, int] | None] = [None]  # feature, code, next code
        self._left_child = [-1]
        self._first, self._end, self.depth = 0, 1, 0
        self.is_complete = False

    def level(self, *, is_last: bool) -> Level:
        totals = np.array(self.totals[self._first :])
        weights = totals.sum(axis=1)
        is_open = (totals.max(axis=1) < weights) & (not is_last)
        return Level(self._first, is_open, totals, weights)

    def split(self, level: Level, found: LevelSearch) -> np.ndarray:
        """Add the children of the level: their numbers, int64 (m, 2), -1 for none."""
        children = np.full((len(level.weights), 2), -1, np.int64)
        for k in np.flatnonzero(level.is_open):
            best = found.best[k]
            if best[0] < 0:
                continue
            node = level.first + int(k)
            self._split[node] = (int(best[0]), int(best[5]), int(best[_NEXT_CODE]))
            self._left_child[node] = len(self.totals)
            children[k] = len(self.totals), len(self.totals) + 1
            left = found.best_left[k].copy()
            self.totals += [left, level.totals[k] - left]
            self._samples += [0, 0]
            self._split += [None, None]
            self._left_child += [-1, -1]
        return children

    def count(self, children: np.ndarray, counts: np.ndarray) -> None:
        for k, pair in enumerate(children.tolist()):
            for side, child in enumerate(pair):
                if child >= 0:
                    self._samples[child] = int(counts[2 * k + side])

    def next_level(self) -> None:
        self._first, self._end, self.depth = self._end, len(self.totals), self.depth + 1
        self.is_complete = self._first == self._end

    def arrays(self, table: StumpTable, criterion: int) -> TreeArrays:
        """The tree as arrays, nodes in preorder."""
        order, stack = [], [0]
        while stack:
            node = stack.pop()
            order.append(node)
            if self._left_child[node] >= 0:
                stack += [self._left_child[node] + 1, self._left_child[node]]
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        left = np.array(self._left_child)[order]
        inner = left >= 0
        size = len(order)
        splits = [self._split[node] for node in order]
        threshold = np.array(
            [np.nan if split is None else table.threshold(*split) for split in splits]
        )
        sums = np.array(self.totals)[order]
        weight = sums.sum(axis=1)
        samples = np.array(self._samples, np.int64)[order]
        shares = sums / weight[:, None]
        impurity = impurity_of_shares(criterion, shares)
        parent = np.full(size, -1, np.int64)
        left_number = number[np.where(inner, left, 0)]
        right_number = number[np.where(inner, left + 1, 0)]
        places = np.flatnonzero(inner)
        parent[left_number[places]] = places
        parent[right_number[places]] = places
        children = np.stack([left_number[places], right_number[places]], axis=1).ravel()
        real = weight * self._unit
        lost = real * impurity
        decrease = np.where(inner, lost - lost[left_number] - lost[right_number], 0.0)
        first_child = 2 * np.asarray(np.cumsum(inner) - inner, np.int64)
        right_is_larger = samples[left_number] <= samples[right_number]
        return TreeArrays(
            kind=np.where(inner, THRESHOLD, LEAF).astype(np.int8),
            feature=np.array([-1 if split is None else split[0] for split in splits], np.int32),
            threshold=threshold,
            first_child=first_child,
            n_children=np.where(inner, 2, 0).astype(np.int32),
            children=children.astype(np.int64),
            parent=parent,
            missing_child=np.where(inner & right_is_larger, 1, 0).astype(np.int32),
            set_start=np.zeros(size, np.int64),
            set_size=np.zeros(size, np.int64),
            words=np.empty(0, np.uint32),
            branches=np.empty(0, np.int32),
            coef=np.empty((0, 0)),
            weight=real,
            n_samples=samples,
            value=shares,
            impurity=impurity,
            decrease=np.maximum(decrease, 0.0),
        )


def _new_search(widest: int, n_bins: int, n_classes: int) -> LevelSearch:
    return LevelSearch(
        np.empty(widest * n_bins * n_classes, np.int64),
        np.empty((widest, n_classes), np.int64),
        np.empty(widest, np.int64),
        np.empty((widest, 3)),
        np.empty(widest, np.int64),
        np.empty((widest, 7), np.int64),
        np.empty(widest),
        np.empty((widest, n_classes), np.int64),
    )


@kernel(bare=True)
def _search_level(group, packed, bits, node_of, level, criterion, search):
    """Find the best split of each open node by the features of a group."""
    m, n_bins = len(level.weights), group.first[-1]
    for node in range(m):
        search.best[node, 0] = -1
        search.score[node] = -np.inf
    if n_bins > 0:
        _fill(group, packed, bits, node_of, level, search.histogram)
        _fill_omitted(group, level, search.histogram)
    for k in range(len(group.features)):
        if group.place[k] >= 0:
            _read_in_order(group, k, packed, bits, node_of, level, criterion, search)
        else:
            for node in range(m):
                if level.is_open[node]:
                    _read_bins(group, k, node, level, criterion, search)


@kernel(inner=True)
def _fill(group, packed, bits, node_of, level, histogram):
    m, n_classes, n_bins = len(level.weights), level.totals.shape[1], group.first[-1]
    mask = np.int64((1 << bits) - 1)
    for cell in range(m * n_bins * n_classes):
        histogram[cell] = 0
    for i in range(len(node_of)):
        node = node_of[i] - level.first
        if node < 0 or not level.is_open[node]:
            continue
        weight, label = packed[i] >> bits, packed[i] & mask
        base = np.uint64(node * n_bins * n_classes + label)
        for p in range(group.starts[i], group.starts[i + 1]):
            histogram[base + np.uint64(group.bins[p]) * np.uint64(n_classes)] += weight


@kernel(inner=True)
def _fill_omitted(group, level, histogram):
    """Fill the omitted bin of each feature: the total of the node minus the other bins."""
    n_classes, n_bins = level.totals.shape[1], group.first[-1]
    for node in range(len(level.weights)):
        for k in range(len(group.features)):
            if not level.is_open[node] or group.omitted[k] < 0:
                continue
            begin, end = group.first[k], group.first[k + 1]
            base = node * n_bins * n_classes
            at = base + (begin + group.omitted[k]) * n_classes
            for c in range(n_classes):
                rest = level.totals[node, c]
                for b in range(begin, end):
                    rest -= histogram[base + b * n_classes + c]
                histogram[at + c] = rest


@kernel(inner=True)
def _read_bins(group, k, node, level, criterion, search):
    n_classes, n_bins = level.totals.shape[1], group.first[-1]
    begin, end = group.first[k], group.first[k + 1]
    left = search.left[node]
    weight_left, last = np.int64(0), np.int64(-1)
    for c in range(n_classes):
        left[c] = 0
    for code in range(end - begin):
        row = (node * n_bins + begin + code) * n_classes
        weight = np.int64(0)
        for c in range(n_classes):
            weight += search.histogram[row + c]
        if weight == 0:  # no row of the node has this code
            continue
        if last >= 0:
            _consider_split(criterion, left, weight_left, level, node, group.features[k], last,
                            np.int64(code), search)  # fmt: skip
        for c in range(n_classes):
            left[c] += search.histogram[row + c]
        weight_left += weight
        last = np.int64(code)


@kernel(inner=True)
def _read_in_order(group, k, packed, bits, node_of, level, criterion, search):
    m, n_classes = level.totals.shape
    order, feature = group.orders[group.place[k]], group.features[k]
    mask = np.int64((1 << bits) - 1)
    low, last = np.uint32(0x7FFFFFFF), np.uint32(31)
    is_gini = criterion == GINI
    squares, left = search.squares, search.left
    for node in range(m):
        search.weight_left[node] = 0
        search.last_code[node] = -1
        squares[node, 0] = squares[node, 1] = 0.0
        for c in range(n_classes):
            left[node, c] = 0
            squares[node, 1] += float(level.totals[node, c]) * float(level.totals[node, c])
        squares[node, 2] = ROUNDING_OF_SQUARES * squares[node, 1] * float(len(order))
    code = np.int64(0)
    for at in range(len(order)):
        entry = order[at]
        row = np.uint64(entry & low)
        this_code = code
        code += np.int64(entry >> last)
        node = node_of[row] - level.first
        if node < 0 or not level.is_open[node]:
            continue
        weight, label = packed[row] >> bits, packed[row] & mask
        before = left[node, label]
        if search.last_code[node] != this_code:
            if before > 0 or search.weight_left[node] > 0:
                on_left = search.weight_left[node]
                if (
                    not is_gini
                    or search.best[node, 0] < 0
                    or not is_far(squares[node, 0], squares[node, 1], squares[node, 2], on_left,
                                  level.weights[node] - on_left, search.score[node])
                ):  # fmt: skip
                    _consider_split(criterion, left[node], on_left, level, node, feature,
                                    search.last_code[node], this_code, search)  # fmt: skip
            search.last_code[node] = this_code
        left[node, label] = before + weight
        search.weight_left[node] += weight
        if is_gini:
            real = float(weight)
            squares[node, 0] += real * (2.0 * float(before) + real)
            squares[node, 1] -= real * (2.0 * float(level.totals[node, label] - before) - real)


@kernel(inner=True)
def _consider_split(criterion, left, weight_left, level, node, feature, code, next_code, search):
    """Keep the split if it is better than the best of the node."""
    totals, best = level.totals[node], search.best[node]
    weight_right = level.weights[node] - weight_left
    score, exact = score_of_classes(criterion, left, totals, weight_left, weight_right)
    if best[0] >= 0 and score < search.score[node]:
        return
    if consider(
        criterion, False, np.int64(exact), weight_left, np.int64(0), weight_right, score, feature,
        code, best, search.score[node:],
    ):  # fmt: skip
        best[_NEXT_CODE] = next_code
        for c in range(len(left)):
            search.best_left[node, c] = left[c]


@kernel(bare=True)
def _take_better(criterion, m, other, best):
    """For each node, replace the split in `best` if that of `other` is better."""
    for node in range(m):
        split = other.best[node]
        if split[0] >= 0 and consider(
            criterion, False, split[1], split[2], split[3], split[4], other.score[node], split[0],
            split[5], best.best[node], best.score[node:],
        ):  # fmt: skip
            best.best[node, _NEXT_CODE] = split[_NEXT_CODE]
            for c in range(best.best_left.shape[1]):
                best.best_left[node, c] = other.best_left[node, c]


@kernel(bare=True)
def _partition_rows(columns, first, best, children, node_of, samples, on_left, counts):
    """Move rows to the children of their nodes; counts[2 k + side] += their samples."""
    is_sparse = len(columns.indptr) > 0
    for k in range(len(children)):
        if is_sparse and children[k, 0] >= 0:
            write_sides(columns, best[k, 0], best[k, 5], on_left)
            for i in range(len(node_of)):
                if node_of[i] == first + k:
                    side = 0 if on_left[i] else 1
                    counts[2 * k + side] += samples[i]
                    node_of[i] = children[k, side]
    if is_sparse:
        return
    for i in range(len(node_of)):
        k = node_of[i] - first
        if k >= 0 and children[k, 0] >= 0:
            side = 0 if code_of(columns.dense, best[k, 0], i) <= best[k, 5] else 1
            counts[2 * k + side] += samples[i]
            node_of[i] = children[k, side]
