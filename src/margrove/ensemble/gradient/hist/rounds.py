"""The rounds of histogram gradient boosting: a process for `slices.drive`.

A round computes the gradients of the loss at the current scores, grows a tree for each score, and
adds the leaf values to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import (
    available_cores,
    is_checkpointed,
    pool_words,
    region,
    require_memory,
    run_tiles,
)
from margrove.ensemble.bagging import seed_of_member
from margrove.ensemble.gradient.early_stopping import Monitor
from margrove.ensemble.gradient.hist import leaves, nodes, trees
from margrove.ensemble.gradient.hist.packing import meanings_of, packed
from margrove.ensemble.gradient.hist.tables import GradientBins, GradientTable
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.ensemble.gradient.round_states import restore_rounds, state_of_rounds
from margrove.ensemble.gradient.training_data import TrainingRows
from margrove.grove.serve import PackedTree, TreeForm

__all__ = [
    "BoostingRound",
    "GradientRounds",
    "GradientSettings",
]

_MOST_LEAVES = 2**20
_SLOTS_OF_A_PATH = 48  # enough for the pending larger children of at most 2^31 rows
_CELLS_TO_SHARE_A_TREE = 1 << 15
_ROWS_OF_A_TILE = 1 << 14
_MANY_ROWS = 1 << 17  # of which all threads grow one tree after the other
_SCORES_FOR_THREADS = 1 << 15
_TREES_AT_ONCE = 8
_NO_WORDS = np.empty(0, np.int64)


@dataclass(frozen=True)
class GradientSettings:
    """How trees are grown; most names are those of scikit-learn's parameters.

    tried    the share of features that are searched for the split of a node
    signs    int64 (d,) for each feature, -1, 0 or 1, or None: monotonic constraints
    sets     bool (sets, d), or None: features that may be on one path
    """

    learning_rate: float = 0.1
    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    min_hessian: float = 1e-3
    tried: float = 1.0
    level_wise: bool = False
    signs: np.ndarray | None = None
    sets: np.ndarray | None = None
    seed: int = 0


@dataclass
class _TreeBuffers:
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


@dataclass
class BoostingRound:
    """A round that is not complete.

    rows, others   int32, the rows that trees are grown on, and all other rows
    grown          the trees that are grown, or None
    score          the number of the next tree
    """

    loss: GradientLoss
    rows: np.ndarray
    others: np.ndarray
    grown: list[PackedTree | None] = field(default_factory=list)
    score: int = 0
    growth: _Growth | None = None


class GradientRounds:
    """The process of the rounds, on one binned table.

    `raw` float64 (n_scores, n) are the raw scores at the start, to which the rounds add. `draw(t)`
    gives the rows that the trees of round t are grown on, ascending, or None for all. `losses` are
    those of earlier rounds.
    """

    unit = "round"
    limit = "max_iter"
    _n_threads = 1

    def __init__(
        self,
        bins: GradientBins,
        table: GradientTable,
        rows: TrainingRows,
        raw: np.ndarray,
        loss: GradientLoss,
        settings: GradientSettings,
        n_rounds: int,
        *,
        first_round: int = 0,
        draw: Callable[[int], np.ndarray | None] = lambda number: None,
        monitor: Monitor | None = None,
        losses: Sequence[float] = (),
        form: TreeForm | None = None,
        n_threads: int = 1,
    ) -> None:
        self.total: int | None = n_rounds
        self.monitor, self._form = monitor, form
        self._table, self._meanings = table, meanings_of(bins, table)
        self._rows, self.loss, self._settings = rows, loss, settings
        self._weight = rows.total_weight
        self.first, self._draw = first_round, draw
        self._n_threads = min(n_threads, available_cores())
        k, n = raw.shape
        self.raw, self._n_scores = raw, k
        require_memory(
            16.0 * k * n, "The gradients of all classes", "Use fewer classes, or fewer rows."
        )
        self._gradient, self._hessian = np.empty((k, n)), np.empty((k, n))
        self._losses_of_rows = np.empty(n)
        self._all_rows = np.arange(n, dtype=np.int32)
        self._most_leaves, self._n_slots, self._is_tight = self._sizes(n)
        self._tree_buffers = self._new_tree_buffers(k, n)
        self._round: BoostingRound | None = None
        self._is_kept = is_checkpointed()
        self._raw_before: np.ndarray | None = None  # scores before the round, for checkpoints
        self.trees: list[list[PackedTree]] = []
        self.losses = list(losses)
        if monitor is not None and not monitor.scores:
            self._add_score(monitor, [])

    def _new_tree_buffers(self, k: int, n: int) -> list[_TreeBuffers]:
        """Threads share each tree, or grow one tree each if there are many small trees."""
        is_large = n * len(self._table.features) >= _CELLS_TO_SHARE_A_TREE
        shares_out_trees = k >= 2 * self._n_threads and n < _MANY_ROWS
        n_buffers = min(self._n_threads, k) if shares_out_trees else 1
        n_cores = self._n_threads if is_large and n_buffers == 1 else 1
        return [self._new_buffers_of_tree(n, n_cores) for _ in range(n_buffers)]

    def _new_buffers_of_tree(self, n: int, n_cores: int) -> _TreeBuffers:
        most, n_slots = self._most_leaves, self._n_slots
        require_memory(
            24.0 * n_slots * self._table.n_cells,
            "The histograms of all leaves",
            "Lower max_leaf_nodes, or set it to None.",
        )
        n_sets = 0 if self._settings.sets is None else len(self._settings.sets)
        return _TreeBuffers(
            nodes.new_tree(n, most, n_slots, n_sets),
            nodes.new_workspace(self._table, most, n_slots, n_cores),
            np.empty(n, np.int64),
            n_cores,
        )

    def _sizes(self, n: int) -> tuple[int, int, bool]:
        """(maximum number of leaves, number of histograms, whether max_leaf_nodes is the limit)."""
        settings = self._settings
        copies = self._rows.copies
        samples = n if copies is None else int(copies.sum())
        most = max(min(samples // max(settings.min_samples_leaf, 1), n, _MOST_LEAVES), 1)
        if settings.max_depth is not None:
            most = min(most, 2 ** min(settings.max_depth, 20))
        limit = settings.max_leaf_nodes
        if limit is not None and limit < most:
            return limit, limit + 1, True
        return most, min(most + 1, _SLOTS_OF_A_PATH), False

    # -- the process --

    @property
    def rounds(self) -> int:
        return len(self.trees)

    @property
    def finished(self) -> bool:
        return self.rounds >= (self.total or 0) or self.stopped_early

    @property
    def stopped_early(self) -> bool:
        """Whether the last rounds did not improve the score."""
        return self.rounds > 0 and self.monitor is not None and self.monitor.says_stop

    def figures(self) -> dict[str, float]:
        figures = {"loss": self.losses[-1]} if self.losses else {}
        if self.monitor is not None:
            figures["validation score"] = self.monitor.scores[-1]
        return figures

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Run a round, or a part of it if it takes long."""
        if self._round is None:
            self._raw_before = self.raw.copy() if self._is_kept else None
            self._round = self._begin()
        current = self._round
        if len(self._tree_buffers) > 1:
            done = self._grow_in_parallel(current)
        else:
            done = self._grow_one(current, work)
        if current.score == len(self.raw):
            self._end(current)
        return done

    def state(self) -> dict[str, Any]:
        """The state after the last complete round."""
        return state_of_rounds(self, self.raw if self._raw_before is None else self._raw_before)

    def restore(self, state: dict[str, Any]) -> None:
        restore_rounds(self, state, self._form)

    def _begin(self) -> BoostingRound:
        """Compute gradients, and draw rows."""
        rows = self._rows
        loss = self._loss_of_round()
        loss_so_far = self._derive(loss)
        if len(self.losses) == self.first + self.rounds:
            self.losses.append(loss_so_far)
        if loss.differs_from_mean:  # `_renew` computes the leaf values
            weight = read_only(np.empty(0) if rows.weight is None else rows.weight)
            n_tiles = -(-len(rows.y) // _ROWS_OF_A_TILE)
            _fill_hessians(n_tiles, self._n_threads, weight, self._hessian)
        drawn = self._draw(self.first + self.rounds)
        if drawn is None:
            return BoostingRound(loss, self._all_rows, self._all_rows[:0], [None] * len(self.raw))
        is_other = np.ones(len(rows.y), np.bool_)
        is_other[drawn] = False
        others = np.flatnonzero(is_other).astype(np.int32)
        return BoostingRound(loss, drawn, others, [None] * len(self.raw))

    def _derive(self, loss: GradientLoss) -> float:
        """Write gradients and hessians; returns the loss of the current scores.

        Sums do not depend on the number of threads, so neither does the loss.
        """
        rows, n = self._rows, len(self._rows.y)
        n_threads = self._n_threads if n * self._n_scores >= _SCORES_FOR_THREADS else 1
        losses = loss.derive(
            rows.y, self.raw, rows.weight, self._gradient, self._hessian, self._losses_of_rows,
            n_threads=n_threads,
        )  # fmt: skip
        if rows.copies is not None:
            return loss.value(rows.y, self.raw, self._weight, n_threads=n_threads)
        total = float(n) if rows.weight is None else float(rows.weight.sum())
        return math.fsum(losses) / total

    def _end(self, current: BoostingRound) -> None:
        grown = [tree for tree in current.grown if tree is not None]
        if self.monitor is not None:
            self._add_score(self.monitor, grown)
        self.trees.append(grown)
        self._round = self._raw_before = None

    def _add_score(self, monitor: Monitor, grown: list[PackedTree]) -> None:
        training_loss = None
        if monitor.wants_training_loss:
            training_loss = self._loss_so_far()
            self.losses.append(training_loss)
        monitor.add(grown, training_loss, self.raw, self._loss_of_round())

    def _loss_of_round(self) -> GradientLoss:
        return self.loss.for_round(self._rows.y, self.raw, self._weight)

    def _loss_so_far(self) -> float:
        rows, loss = self._rows, self._loss_of_round()
        return loss.value(rows.y, self.raw, self._weight, n_threads=self._n_threads)

    def all_losses(self) -> np.ndarray:
        """The loss of the training set before the first round and after each complete round."""
        known = self.losses[: self.first + self.rounds + 1]
        is_known = len(known) == self.first + self.rounds + 1
        return np.array(known if is_known else [*known, self._loss_so_far()])

    def _grow_in_parallel(self, current: BoostingRound) -> float:
        """Grow some trees of the round, one on each thread."""
        free = list(self._tree_buffers)
        first = current.score
        last = min(first + _TREES_AT_ONCE * len(free), len(self.raw))

        def grow(tile: int) -> None:
            buffers = free.pop()
            self._advance_tree(self._start_tree(current, buffers, first + tile), buffers, np.inf)
            self._keep(current, buffers, first + tile)
            free.append(buffers)

        run_tiles(grow, last - first, len(self._tree_buffers))
        current.score = last
        return float((last - first) * len(current.rows) * len(self._table.features))

    def _grow_one(self, current: BoostingRound, work: float) -> float:
        """Grow one tree, or a part of it, on all threads."""
        buffers = self._tree_buffers[0]
        if current.growth is None:
            current.growth = self._start_tree(current, buffers, current.score)
        if self._advance_tree(current.growth, buffers, work):
            self._keep(current, buffers, current.score)
            current.score, current.growth = current.score + 1, None
        return work

    # -- a tree --

    def _start_tree(self, current: BoostingRound, buffers: _TreeBuffers, score: int) -> _Growth:
        m = len(current.rows)
        tree = buffers.tree._replace(rows=buffers.tree.rows[:m], spare=buffers.tree.spare[:m])
        trees.begin(tree)
        source = nodes.Source(
            current.rows,
            self._gradient[score],
            self._hessian[score],
            _NO_WORDS if self._rows.copies is None else self._rows.copies,
            self.raw[score],
            buffers.packed,
            _NO_WORDS,
            _NO_WORDS,
        )
        return _Growth(tree, source, self._rules(current, score))

    def _rules(self, current: BoostingRound, score: int) -> nodes.GrowthRules:
        settings, features = self._settings, self._table.features
        order = nodes.LEVEL_BY_LEVEL if settings.level_wise else nodes.BEST_FIRST
        if not self._is_tight:  # every leaf that can be split is split: the order does not matter
            order = nodes.SMALL_FIRST
        signs, sets = settings.signs, settings.sets
        is_even = current.loss.is_constant_hessian or current.loss.differs_from_mean
        number = (self.first + self.rounds) * self._n_scores + score
        return nodes.GrowthRules(
            order,
            self._most_leaves,
            2**31 if settings.max_depth is None else settings.max_depth,
            settings.min_samples_leaf,
            settings.min_hessian,
            0.0 if is_even else float(settings.min_samples_leaf),
            settings.l2_regularization,
            current.loss.longest_step,
            settings.learning_rate,
            settings.tried,
            seed_of_member(settings.seed, number) if settings.tried < 1.0 else 0,
            not current.loss.differs_from_mean,
            np.empty(0, np.int64) if signs is None else signs[features],
            np.empty((0, len(features)), np.bool_)
            if sets is None
            else np.ascontiguousarray(sets[:, features]),
        )

    def _advance_tree(self, growth: _Growth, buffers: _TreeBuffers, work: float) -> bool:
        """Grow a tree for about this amount of work; returns whether it is complete."""
        phase = self._run_kernel(growth, buffers, work)
        if phase == nodes.TOO_UNEVEN:
            n = len(buffers.packed)
            growth.source = growth.source._replace(g=np.empty(n, np.int64), h=np.empty(n, np.int64))
            trees.begin(growth.tree)
            phase = self._run_kernel(growth, buffers, work)
        return phase == (nodes.ADDED if growth.rules.adds else nodes.GROWN)

    def _run_kernel(self, growth: _Growth, buffers: _TreeBuffers, work: float) -> int:
        words = pool_words(buffers.n_cores)
        return int(
            trees.grow(
                words, buffers.n_cores, self._table, growth.source, growth.rules, growth.tree,
                buffers.space, float(work),
            )
        )  # fmt: skip

    def _keep(self, current: BoostingRound, buffers: _TreeBuffers, score: int) -> None:
        """Store a grown tree, and add its values to the scores of all rows."""
        raw, tree, n_threads = self.raw[score], buffers.tree, buffers.n_cores
        tree = tree._replace(rows=tree.rows[: len(current.rows)])
        if current.loss.differs_from_mean:
            self._renew(tree, current.loss, raw, n_threads)
            leaves.add_values(pool_words(n_threads), n_threads, tree, buffers.space, raw)
        if len(current.others):
            n_tiles = -(-len(current.others) // nodes.LEAST_CHUNK)
            leaves.add_to_others(n_tiles, n_threads, self._table, tree, current.others, raw)
        current.grown[score] = packed(tree, self._meanings)

    def _renew(
        self, tree: nodes.BoostedTree, loss: GradientLoss, raw: np.ndarray, n_threads: int
    ) -> None:
        """Set the leaf values by the residuals of their rows, see `GradientLoss.leaf_values`."""
        grown = tree.grown_nodes
        ends = np.flatnonzero(grown.left < 0)
        ends = ends[np.argsort(grown.start[ends])]
        starts = np.append(grown.start[ends], len(tree.rows))
        residual = self._losses_of_rows  # a buffer
        n_tiles = -(-len(residual) // _ROWS_OF_A_TILE)
        _subtract(n_tiles, n_threads, read_only(self._rows.y), raw, residual)
        best = loss.leaf_values(residual, self._weight, tree.rows, starts, n_threads=n_threads)
        grown.value[ends] = self._settings.learning_rate * best
        if self._settings.signs is not None:
            leaves.make_monotonic(tree, self._settings.signs[self._table.features])


@region(bare=True)
def _fill_hessians(tile, weight, hessian):
    """Hessians of 1, or the weights."""
    for k in range(len(hessian)):
        for i in range(tile * _ROWS_OF_A_TILE, min((tile + 1) * _ROWS_OF_A_TILE, hessian.shape[1])):
            hessian[k, i] = weight[i] if len(weight) else 1.0


@region(bare=True)
def _subtract(tile, y, raw, residual):
    for i in range(tile * _ROWS_OF_A_TILE, min((tile + 1) * _ROWS_OF_A_TILE, len(y))):
        residual[i] = y[i] - raw[i]
