"""A learner for small trees, grown level by level on the tables of stumps.

All nodes of a level are searched in one pass over the rows: a histogram for each node, or sums for
each node in the sorted order of a feature. The trees are equal to those of `DecisionTreeClassifier`
with the same weights: the same whole numbers are summed, and ties go to the lowest feature, then to
the lowest threshold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margrove._runtime import region
from margrove.ensemble.adaboost.level_search import (
    NEXT_CODE,
    Level,
    LevelSearch,
    find_best_splits,
    new_level_search,
)
from margrove.ensemble.adaboost.members import TreeMembers
from margrove.ensemble.adaboost.stump_tables import (
    ROWS_OF_A_BIN,
    StumpTable,
    rows_of_tile,
    tiles_of_rows,
    write_sides,
)
from margrove.grove import CRITERIA
from margrove.grove.grow import impurity_of_shares
from margrove.grove.serve import LEAF, THRESHOLD, Kind, TreeArrays, packed_of
from margrove.grove.table import code_of, whole_weights

__all__ = ["DEEPEST", "LevelLearner", "rows_of_a_bin"]

DEEPEST = 6  # in deeper trees most nodes are small, and passes over all rows are too slow
_ROWS_OF_A_CELL = 1.25  # above it, histograms are faster than reading in sorted order


def rows_of_a_bin(n_classes: int, max_depth: int) -> float:
    """The mean number of rows for each value of a feature above which histograms are faster.

    Each node has its own histogram, with a cell for each value and class, and each level has twice
    as many nodes as the level above. Reading in sorted order costs the same at every level. See
    `read_stump_table`.
    """
    n_nodes_of_a_level = (2**max_depth - 1) / max_depth
    return max(float(ROWS_OF_A_BIN), _ROWS_OF_A_CELL * n_classes * n_nodes_of_a_level)


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
        n_threads = table.threads_for(n_threads)
        self._table, self._answer, self._n_threads = table, answer, n_threads
        self._labels, self._n_classes = labels.astype(np.int32), n_classes
        self._samples, self._max_depth = samples.astype(np.int64), max_depth
        self._criterion = CRITERIA[criterion].code
        self._bits = int(n_classes - 1).bit_length()
        widest = 2 ** min(max_depth - 1, DEEPEST)
        n = table.n_rows
        self._found = new_level_search(table, widest, n_classes, n_threads)
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
            children = nodes.split(level, self._found)
            self._partition(level, children)
        nodes.next_level()
        return float(self._table.n_entries)

    def _search(self, level: Level) -> None:
        find_best_splits(
            self._table, level, self._packed, self._bits, self._node_of, self._criterion,
            self._found, self._n_threads,
        )  # fmt: skip

    def _partition(self, level: Level, children: np.ndarray) -> None:
        """Move rows to the children of their nodes; children[k, 0] < 0 if node k is a leaf."""
        nodes = self._nodes
        n_tiles = tiles_of_rows(self._table.n_rows)
        counts = np.zeros((n_tiles, 2 * len(level.weights)), np.int64)
        _partition_rows(n_tiles, self._n_threads, self._table.columns, level.first,
                        self._found.best[-1], children, self._node_of, self._samples,
                        self._on_left, counts)  # fmt: skip
        if nodes is not None:
            nodes.count(children, counts.sum(axis=0))

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
            best = found.best[-1, k]
            if best[0] < 0:
                continue
            node = level.first + int(k)
            self._split[node] = (int(best[0]), int(best[5]), int(best[NEXT_CODE]))
            self._left_child[node] = len(self.totals)
            children[k] = len(self.totals), len(self.totals) + 1
            left = found.best_left[-1, k].copy()
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


@region(bare=True)
def _partition_rows(tile, columns, first, best, children, node_of, samples, on_left, counts):
    """Move rows to the children of their nodes; counts[tile, 2 k + side] += their samples."""
    begin, end = rows_of_tile(tile, len(node_of))
    is_sparse = len(columns.indptr) > 0
    for k in range(len(children)):
        if is_sparse and children[k, 0] >= 0:
            write_sides(columns, best[k, 0], best[k, 5], begin, end, on_left)
            for i in range(begin, end):
                if node_of[i] == first + k:
                    side = 0 if on_left[i] else 1
                    counts[tile, 2 * k + side] += samples[i]
                    node_of[i] = children[k, side]
    if is_sparse:
        return
    for i in range(begin, end):
        k = node_of[i] - first
        if k >= 0 and children[k, 0] >= 0:
            side = 0 if code_of(columns.dense, best[k, 0], i) <= best[k, 5] else 1
            counts[tile, 2 * k + side] += samples[i]
            node_of[i] = children[k, side]
