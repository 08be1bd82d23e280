"""Builds the trees of a forest, one after the other, each in one compiled loop.

It grows the tree that `tree_builder` grows from the same rows, weights and seed: random numbers
belong to nodes, sums are whole numbers, ties go to the lowest feature and code. It gets there in
another way, for trees that look at a few features of each node: see `search.split_search_forest`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, kernel
from margrove.grove.grow.frontier import (
    Frontier,
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
from margrove.grove.grow.nodes import (
    Nodes,
    begin_child,
    begin_root,
    new_nodes,
    with_room,
)
from margrove.grove.grow.partitioning import partition_rows
from margrove.grove.grow.rules import Rules, may_split
from margrove.grove.grow.search import (
    ENTROPY,
    GINI,
    SQUARED,
    GeneralBuffers,
    LocalRows,
    SearchBuffers,
    find_best_split_forest,
    keep_split,
    keep_split_fast,
    make_subset,
    new_general_buffers,
    new_local_rows,
    new_search_buffers,
)
from margrove.grove.serve import (
    Cuts,
    PackedTree,
    append_packed,
    cuts_of,
    new_packed_run,
    pack,
    trees_of_run,
)
from margrove.grove.table import BinnedDataset, Columns, Targets

__all__ = ["ForestTreeBuilder"]

_MANY_FEATURES = 32  # from here on, a node remembers which features are constant


class _Arrays(NamedTuple):
    """The arrays of a growing tree besides its nodes.

    rows, spare   int32 (n,)  rows of the tree, those of a node together; for partitioning
    identity      int64 (n,)  0, 1, 2, ... for searches that ask for it; else empty
    frontier      nodes that are still to be split, and counters
    swaps         int64 (d,)  by which drawn features are put back
    constant      uint64 (slots, words)  for each node that waits, a bit for each feature that is
                  known to be constant in it; no slots for tables of few features
    buffers, local    of one search
    """

    rows: np.ndarray
    spare: np.ndarray
    identity: np.ndarray
    frontier: Frontier
    swaps: np.ndarray
    constant: np.ndarray
    buffers: SearchBuffers
    local: LocalRows


class ForestTreeBuilder:
    """Builds one tree at a time: `start` it, `advance` it until `finished`, take it `packed`."""

    def __init__(
        self,
        data: BinnedDataset,
        columns: Columns,
        targets: Targets,
        rules: Rules,
        n_categories: np.ndarray,
        *,
        max_leaves: int = 0,
        cuts: Cuts | None = None,
        weights_count: bool = True,
        row_is_sample: bool = False,
    ) -> None:
        """weights_count: whether a row's weight is the number of samples that it stands for.
        row_is_sample: whether each row is one sample, of classes, and weights are whole numbers
        whose sum is less than 2^31."""
        n, d = data.n_rows, data.n_features
        n_stats = int(targets.starts[-1])
        is_class = len(targets.labels) > 0
        self._columns, self._rules, self._max_leaves = columns, rules, max_leaves
        self._n_categories = n_categories
        self._cuts = cuts_of(data) if cuts is None else cuts
        # Each tree has weights of its own, and writes numbers of its own.
        self._targets = targets._replace(numbers=np.zeros_like(targets.numbers), plain=False)
        self._weights_count = weights_count
        self._is_fast = is_fast_case(targets, rules) and (row_is_sample or weights_count)
        buffers = new_search_buffers(d, n_stats)
        self._general: GeneralBuffers | None = None
        self._largest_set = 0
        needs_general = columns.categorical.any() or columns.has_missing.any()
        if needs_general or not self._is_fast:
            n_groups = n if len(targets.starts) > 2 else 0
            if columns.categorical.any():
                most = int(columns.n_codes[columns.categorical].max())
                self._largest_set = most // 32 + 1
                n_groups = max(n_groups, min(n, most + 1))
            self._general = new_general_buffers(buffers, n, n_groups, rules.criterion)
        self._arrays = _Arrays(
            rows=np.empty(n, np.int32),
            spare=np.empty(n, np.int32),
            identity=np.arange(0 if self._general is None else n),
            frontier=new_frontier(1024),
            swaps=np.zeros(d, np.int64),
            constant=_new_constant(d, rules, max_leaves),
            buffers=buffers,
            local=new_local_rows(n, n_stats, is_class=is_class, row_is_sample=row_is_sample),
        )
        self._progress = fields_of(self._arrays.frontier.progress)
        n_numbers = 0 if is_class else len(targets.starts) - 1
        self._nodes: Nodes = new_nodes(1024, n_stats, n_numbers, 64 * self._largest_set)

    def start(
        self, weight: np.ndarray, samples: np.ndarray, key: int, rules: Rules | None = None
    ) -> None:
        """A new tree: weight int64 (n,) of the rows, in the targets' units; 0 is left out.

        rules may differ from those of the last tree in their bounds only.
        """
        self._rules = self._rules if rules is None else rules
        self._targets = self._targets._replace(weight=weight, samples=samples)
        n_rows = _list_rows(weight, self._arrays.rows)
        begin_root(self._nodes, n_rows, np.int64(np.uint64(key).view(np.int64)))
        self._progress[0] = np.zeros((), self._progress.dtype)
        for name in ("n_nodes", "n_leaves", "n_new"):
            self._progress[name] = 1

    @property
    def finished(self) -> bool:
        return bool(self._progress["n_frontier"][0] == 0 and self._progress["n_new"][0] == 0)

    @property
    def n_balanced(self) -> int:
        """How many splits halve a node, whatever they gain."""
        return int(fields_of(self._nodes.record)["balanced"][: self._progress["n_nodes"][0]].sum())

    def advance(self, work: float) -> float:
        """Do about so many elementary operations; how many were done."""
        done = 0.0
        while done < work and not self.finished:
            self._make_room()
            done += _grow(
                self._arrays, self._columns, self._targets, self._rules, self._is_fast,
                self._max_leaves, self._largest_set, self._nodes, self._general, work - done,
            )  # fmt: skip
        return done

    def packed(self) -> PackedTree:
        """The finished tree."""
        return pack(
            self._nodes, int(self._progress["n_nodes"][0]), self._targets, self._rules, self._cuts,
            self._columns, self._n_categories, weights_count=self._weights_count,
        )  # fmt: skip

    @property
    def takes_many(self) -> bool:
        """Whether `grow_all` can grow the trees: most forests of numbers and classes."""
        return self._is_fast and self._general is None and self._weights_count

    def grow_all(
        self, weights: np.ndarray, keys: np.ndarray, rules: Rules
    ) -> tuple[list[PackedTree], list[int]]:
        """Whole trees, and how many splits of each halve a node: all in one compiled call.

        weights int64 (trees, n), keys uint64 (trees,): as in `start`. The rules are those of all
        trees.
        """
        n, n_trees = len(self._arrays.rows), len(keys)
        most = 2 * n + 4
        if len(self._nodes.stats) < most or len(self._arrays.frontier.heap) < most + 2:
            self._nodes = with_room(self._nodes, 0, max(most, len(self._nodes.stats)), 0)
            frontier = longer_frontier(self._arrays.frontier, most)
            self._arrays = self._arrays._replace(frontier=frontier)
        weight = np.zeros(n, np.int64)
        targets = self._targets._replace(weight=weight, samples=weight)
        run = new_packed_run(n_trees, 2 * n, targets)
        _grow_trees(self._arrays, self._columns, targets, rules, self._max_leaves, self._nodes,
                    weights, keys.view(np.int64), self._cuts, run)  # fmt: skip
        return trees_of_run(run), run.n_balanced.tolist()

    def _make_room(self) -> None:
        """Room for some more nodes and sets."""
        used, words = int(self._progress["n_nodes"][0]), int(self._progress["n_words"][0])
        capacity, n_words = len(self._nodes.stats), len(self._nodes.subsets)
        if capacity < used + 4:
            capacity = 2 * used + 64
        if n_words < words + 4 * self._largest_set:
            n_words = 2 * words + 64 * self._largest_set
        if capacity > len(self._nodes.stats) or n_words > len(self._nodes.subsets):
            self._nodes = with_room(self._nodes, used, capacity, n_words)
        if len(self._arrays.frontier.heap) < capacity + 2:
            frontier = longer_frontier(self._arrays.frontier, capacity)
            self._arrays = self._arrays._replace(frontier=frontier)


def _new_constant(d: int, rules: Rules, max_leaves: int) -> np.ndarray:
    """Two slots for each level: where trees grow depth-first, no more nodes wait there."""
    levels = min(rules.max_depth, rules.greedy_depth) + 1
    is_wanted = d >= _MANY_FEATURES and max_leaves == 0
    return np.zeros((2 * levels if is_wanted else 0, d // 64 + 1), np.uint64)


def is_fast_case(targets: Targets, rules: Rules) -> bool:
    """Whether `search.split_search_forest` can search features that are numbers and all there."""
    return bool(
        targets.counted
        and len(targets.starts) == 2
        and len(rules.monotone) == 0
        and rules.min_weight <= rules.min_samples_leaf
        and rules.criterion in (GINI, ENTROPY, SQUARED)
    )


@kernel
def _list_rows(weight, rows):
    """Write the rows that have a weight; how many."""
    count = 0
    for row in range(len(weight)):
        rows[count] = row
        count += weight[row] > 0
    return count


@kernel
def _grow_trees(arrays, columns, targets, rules, max_leaves, nodes, weights, keys, cuts, run):
    """Grow and pack trees for which there is room for all nodes."""
    progress = arrays.frontier.progress
    for tree in range(len(keys)):
        for row in range(weights.shape[1]):
            targets.weight[row] = weights[tree, row]
        n_rows = _list_rows(targets.weight, arrays.rows)
        begin_root(nodes, n_rows, keys[tree])
        progress.n_nodes[0], progress.n_leaves[0], progress.n_new[0] = 1, 1, 1
        progress.n_frontier[0], progress.n_words[0], progress.newest[0] = 0, 0, 0
        _grow(arrays, columns, targets, rules, True, max_leaves, 0, nodes, None, np.inf)
        append_packed(nodes, progress.n_nodes[0], cuts, run, tree)


@kernel(bare=True)
def _grow(arrays, columns, targets, rules, is_fast, max_leaves, largest_set, nodes, general, work):
    """Search and split nodes until the work is done, the room used up or nothing left."""
    rows, frontier, progress = arrays.rows, arrays.frontier, arrays.frontier.progress
    best_first = max_leaves > 0
    record = nodes.record
    done = 0.0
    while done < work:
        if progress.n_new[0] > 0:  # the right child first: the left one is split next
            node = progress.newest[0]
            if progress.n_words[0] + 2 * largest_set > len(nodes.subsets):
                break
            done += _examine(arrays, columns, targets, rules, is_fast, nodes, node, general)
            progress.newest[0] -= 1
            progress.n_new[0] -= 1
            if record.feature[node] >= 0:
                put_node(frontier, nodes, node, best_first)
            elif general is None:
                make_leaf_fast(nodes, node, rows, targets.raw, targets.weight)
            else:
                make_leaf(nodes, node, rows, targets, rules)
            continue
        if progress.n_frontier[0] == 0 or progress.n_nodes[0] + 2 > len(record):
            break
        node = take_node(frontier, nodes, best_first)
        if best_first and progress.n_leaves[0] >= max_leaves:
            record.feature[node] = -1
            make_leaf(nodes, node, rows, targets, rules)
            continue
        middle = partition_rows(rows, arrays.spare, columns, nodes, node)
        first = progress.n_nodes[0]
        progress.n_nodes[0] += 2
        progress.n_leaves[0] += 1
        record.left[node] = first
        begin_child(nodes, first, node, record.start[node], middle, 0)
        begin_child(nodes, first + 1, node, middle, record.end[node], 1)
        if general is not None and len(rules.monotone) > 0:
            bound_children(nodes, node, first, rows, targets, rules)
        progress.newest[0], progress.n_new[0] = first + 1, 2
    return done


@kernel(inner=True, inlined=True)
def _examine(arrays, columns, targets, rules, is_fast, nodes, node, general):
    """Sum a node up and find its best split; the work done."""
    record, rows, buffers = nodes.record, arrays.rows, arrays.buffers
    n_words = arrays.frontier.progress.n_words
    n = record.end[node] - record.start[node]
    record.feature[node] = -1
    buffers.best[0] = -1
    squares = 0
    if is_fast:
        pure, base, squares = sum_node_fast(nodes, node, rows, targets, rules, buffers.offset,
                                            arrays.local)  # fmt: skip
    elif general is not None:
        pure, base = sum_node(nodes, node, rows, targets, rules, general)
    else:
        pure, base = True, 0.0
    if not may_split(nodes, node, pure, rules):
        return 2.0 * n
    if record.depth[node] >= rules.greedy_depth:
        halve(nodes, node, rows, None, columns, targets, rules)
        if general is not None and record.feature[node] >= 0:
            n_words[0] = make_subset(nodes, node, n_words[0], columns)
        return float(n) * len(columns.n_codes)
    looked_at = find_best_split_forest(
        arrays, columns, targets, rules, is_fast, nodes, node, squares, general
    )
    if general is not None:
        n_words[0] = keep_split(nodes, node, base, n_words[0], columns, targets, rules, general)
    else:
        keep_split_fast(nodes, node, base, rules, buffers.best[0], buffers.score[0])
    return float(n) * (3.0 + 2.0 * looked_at)
