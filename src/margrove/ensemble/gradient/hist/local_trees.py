"""Growing the trees of a round on one machine.

All threads share a tree, or grow one each if there are many small trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import pool_words, require_memory, run_tiles
from margrove.ensemble.gradient.hist import leaves, nodes, trees
from margrove.ensemble.gradient.hist.binning import GradientTable
from margrove.ensemble.gradient.hist.boosting_round import BoostingRound
from margrove.ensemble.gradient.hist.packing import Meanings, packed
from margrove.ensemble.gradient.hist.root import FEW_SAMPLES
from margrove.ensemble.gradient.hist.settings import TreeSizes

__all__ = ["LocalTrees", "TreeBuffers"]

_CELLS_TO_SHARE_A_TREE = 1 << 15
_MANY_ROWS = 1 << 17  # of which all threads grow one tree after the other
_TREES_AT_ONCE = 8


@dataclass
class TreeBuffers:
    """The memory for growing one tree, and the number of threads that share it."""

    tree: nodes.BoostedTree
    space: nodes.Workspace
    packed: np.ndarray
    n_cores: int


@dataclass
class _Growth:
    """A tree that is growing."""

    tree: nodes.BoostedTree
    source: nodes.Source
    rules: nodes.GrowthRules


class LocalTrees:
    """Grows the trees of rounds, and adds their values to the scores of all rows.

    meanings   what the codes of the table mean, for packed trees
    """

    def __init__(
        self,
        table: GradientTable,
        meanings: Meanings,
        sizes: TreeSizes,
        *,
        n_scores: int,
        n_threads: int,
    ) -> None:
        self._table, self._meanings, self._sizes = table, meanings, sizes
        n = table.n_rows
        is_large = n * len(table.features) >= _CELLS_TO_SHARE_A_TREE
        shares_out_trees = n_scores >= 2 * n_threads and n < _MANY_ROWS
        n_buffers = min(n_threads, n_scores) if shares_out_trees else 1
        n_cores = n_threads if is_large and n_buffers == 1 else 1
        self._buffers = [self._new_buffers(n, n_cores) for _ in range(n_buffers)]
        self._growth: _Growth | None = None

    def _new_buffers(self, n: int, n_cores: int) -> TreeBuffers:
        sizes = self._sizes
        require_memory(
            24.0 * sizes.n_slots * self._table.n_cells,
            "The histograms of all leaves",
            "Lower max_leaf_nodes, or set it to None.",
        )
        return TreeBuffers(
            nodes.new_tree(n, sizes.max_leaves, sizes.n_slots, sizes.n_sets),
            nodes.new_workspace(self._table, sizes.max_leaves, sizes.n_slots, n_cores),
            np.empty(n, np.int64),
            n_cores,
        )

    @property
    def only_buffers(self) -> TreeBuffers | None:
        """The memory, if trees grow one after the other."""
        return self._buffers[0] if len(self._buffers) == 1 else None

    def advance(self, current: BoostingRound, work: float) -> float:
        """Grow some trees of a round, or a part of one; returns how much work that was."""
        if len(self._buffers) > 1:
            return self._grow_in_parallel(current)
        return self._grow_one(current, work)

    def _grow_in_parallel(self, current: BoostingRound) -> float:
        """Grow some trees of the round, one on each thread."""
        free = list(self._buffers)
        first = current.score
        last = min(first + _TREES_AT_ONCE * len(free), len(current.sources))

        def grow(tile: int) -> None:
            buffers = free.pop()
            self._advance_tree(self._start_tree(current, buffers, first + tile), buffers, np.inf)
            self._keep(current, buffers, first + tile)
            free.append(buffers)

        run_tiles(grow, last - first, len(self._buffers))
        current.score = last
        return float((last - first) * len(current.rows) * len(self._table.features))

    def _grow_one(self, current: BoostingRound, work: float) -> float:
        """Grow one tree, or a part of it, on all threads."""
        buffers = self._buffers[0]
        if self._growth is None:
            self._growth = self._start_tree(current, buffers, current.score)
        if self._advance_tree(self._growth, buffers, work):
            self._keep(current, buffers, current.score)
            current.score, self._growth = current.score + 1, None
        return work

    # -- a tree --

    def _start_tree(self, current: BoostingRound, buffers: TreeBuffers, score: int) -> _Growth:
        m = len(current.rows)
        tree = buffers.tree._replace(rows=buffers.tree.rows[:m], spare=buffers.tree.spare[:m])
        trees.begin(tree)
        source = current.sources[score]._replace(packed=buffers.packed)
        if not len(source.copies) and m <= FEW_SAMPLES:  # they would be TOO_UNEVEN
            source = _with_wide_integers(source)
        return _Growth(tree, source, current.rules[score])

    def _advance_tree(self, growth: _Growth, buffers: TreeBuffers, work: float) -> bool:
        """Grow a tree for about this amount of work; returns whether it is complete."""
        phase = self._run_kernel(growth, buffers, work)
        if phase == nodes.TOO_UNEVEN:
            growth.source = _with_wide_integers(growth.source)
            trees.begin(growth.tree)
            phase = self._run_kernel(growth, buffers, work)
        return phase == (nodes.ADDED if growth.rules.adds else nodes.GROWN)

    def _run_kernel(self, growth: _Growth, buffers: TreeBuffers, work: float) -> int:
        words = pool_words(buffers.n_cores)
        return int(
            trees.grow(
                words, buffers.n_cores, self._table, growth.source, growth.rules, growth.tree,
                buffers.space, float(work),
            )
        )  # fmt: skip

    def _keep(self, current: BoostingRound, buffers: TreeBuffers, score: int) -> None:
        """Store a grown tree, and add its values to the scores of all rows."""
        raw, tree, n_threads = current.sources[score].raw, buffers.tree, buffers.n_cores
        tree = tree._replace(rows=tree.rows[: len(current.rows)])
        if current.renew is not None:
            grown = tree.grown_nodes
            ends = np.flatnonzero(grown.left < 0)
            ends = ends[np.argsort(grown.start[ends])]
            starts = np.append(grown.start[ends], len(tree.rows))
            current.renew(tree, raw, ends, tree.rows, starts)
            leaves.add_values(pool_words(n_threads), n_threads, tree, buffers.space, raw)
        if len(current.others):
            n_tiles = -(-len(current.others) // nodes.LEAST_CHUNK)
            leaves.add_to_others(n_tiles, n_threads, self._table, tree, current.others, raw)
        current.grown[score] = packed(tree, self._meanings)


def _with_wide_integers(source: nodes.Source) -> nodes.Source:
    n = len(source.packed)
    return source._replace(g=np.empty(n, np.int64), h=np.empty(n, np.int64))
