"""The rounds of histogram gradient boosting: a process for `slices.drive`.

A round computes the gradients of the loss at the current scores, grows a tree for each score, and
adds the leaf values to the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import (
    ALONE,
    Collective,
    available_cores,
    is_checkpointed,
    region,
    require_memory,
)
from margrove.ensemble.bagging import seed_of_member
from margrove.ensemble.gradient.early_stopping import Monitor
from margrove.ensemble.gradient.hist import leaves, nodes
from margrove.ensemble.gradient.hist.binning import GradientBins, GradientTable
from margrove.ensemble.gradient.hist.boosting_round import BoostingRound
from margrove.ensemble.gradient.hist.joint import JointTrees
from margrove.ensemble.gradient.hist.local_trees import LocalTrees
from margrove.ensemble.gradient.hist.packing import Meanings, meanings_of
from margrove.ensemble.gradient.hist.settings import GradientSettings
from margrove.ensemble.gradient.hist.short_rounds import (
    RoundsAtOnce,
    code_of_loss,
    cost_of_round,
    is_worth_lists,
)
from margrove.ensemble.gradient.losses import GradientLoss, mean_of_rows
from margrove.ensemble.gradient.round_states import restore_rounds, state_of_rounds
from margrove.ensemble.gradient.training_data import TrainingRows
from margrove.grove.serve import PackedTree, TreeForm

__all__ = ["GradientRounds", "every_row"]

_ROWS_OF_A_TILE = 1 << 14
_SCORES_FOR_THREADS = 1 << 15
_LARGE_ROUND = 2e7  # about 10 ms, in units of `trees`
_NO_WORDS = np.empty(0, np.int64)


def every_row(number: int) -> None:
    """The rows of a round, for `draw`: all of them."""


class GradientRounds:
    """The process of the rounds, on one binned table.

    `raw` float64 (n_scores, n) are the raw scores at the start, to which the rounds add. `draw(t)`
    gives the rows that the trees of round t are grown on, ascending, or None for all. `losses` are
    those of earlier rounds.

    If the table is one of `joint_tables`, the rows are those of one member of `collective`: all
    members run the same rounds, and all that they decide depends on sums over all of them.
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
        draw: Callable[[int], np.ndarray | None] = every_row,
        monitor: Monitor | None = None,
        losses: Sequence[float] = (),
        form: TreeForm | None = None,
        n_threads: int = 1,
        collective: Collective = ALONE,
        one_by_one: bool = False,
    ) -> None:
        self.total: int | None = n_rounds
        self.monitor, self._form = monitor, form
        self._table = table
        self._rows, self.loss, self._settings = rows, loss, settings
        self._weight = rows.total_weight
        self.first, self._draw = first_round, draw
        self._n_threads = min(n_threads, available_cores())
        k, n = raw.shape
        self.raw, self._n_scores = raw, k
        self._collective = collective
        require_memory(
            16.0 * k * n, "The gradients of all classes", "Use fewer classes, or fewer rows."
        )
        self._gradient, self._hessian = np.empty((k, n)), np.empty((k, n))
        self._losses_of_rows = np.empty(n)
        self._all_rows = np.arange(n, dtype=np.int32)
        self._n_all, n_samples = self._counts_of_all(n)
        self._sizes = settings.sizes(self._n_all, n_samples)
        meanings = meanings_of(bins, table)
        self._grower = self._new_grower(meanings)
        self._round: BoostingRound | None = None
        self._is_kept = is_checkpointed()
        self._raw_before: np.ndarray | None = None  # scores before the round, for checkpoints
        self.trees: list[list[PackedTree]] = []
        self.losses = list(losses)
        self._at_once = None
        if draw is every_row and monitor is None and n * k < _SCORES_FOR_THREADS:
            self._at_once = self._rounds_at_once(meanings, n_samples)
        self._most_at_once, self._one_by_one = 1, one_by_one
        if monitor is not None and not monitor.scores:
            self._add_score(monitor, [])

    def _counts_of_all(self, n: int) -> tuple[int, int]:
        """The number of rows and of samples of all members."""
        copies = self._rows.copies
        counts = np.array([n, n if copies is None else int(copies.sum())])
        self._collective.sum(counts)
        return int(counts[0]), int(counts[1])

    def _new_grower(self, meanings: Meanings) -> LocalTrees | JointTrees:
        given = self._table, meanings, self._sizes
        n_scores, n_threads = self._n_scores, self._n_threads
        if self._table.is_joint:
            return JointTrees(
                *given, n_scores=n_scores, n_threads=n_threads, collective=self._collective
            )
        return LocalTrees(*given, n_scores=n_scores, n_threads=n_threads)

    def _rounds_at_once(self, meanings: Meanings, n_samples: int) -> RoundsAtOnce | None:
        """None if rounds are run one by one: trees are large, or rounds are not all alike."""
        loss, grower = code_of_loss(self.loss), self._grower
        buffers = grower.only_buffers if isinstance(grower, LocalTrees) else None
        cost = cost_of_round(self._table, self._n_scores, self._sizes.max_leaves)
        if loss is None or buffers is None or self._settings.tried < 1.0 or cost > _LARGE_ROUND:
            return None
        if not is_worth_lists(self._table, n_samples, self._sizes.max_leaves):
            return None
        return RoundsAtOnce(
            self._table, meanings, buffers, self._rows, loss,
            self._source(self._all_rows, 0), self._rules(self.loss, 0), self.raw, self._gradient,
            self._hessian, self._losses_of_rows,
        )  # fmt: skip

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
        """Run a round, or a part of it if it takes long, or several short ones."""
        if self._at_once is not None and self._round is None:
            return self._advance_at_once(self._at_once, work)
        current = self._round or self._begin_round()
        done = self._grower.advance(current, work)
        if current.is_complete:
            self._end(current)
        return done

    def _advance_at_once(self, at_once: RoundsAtOnce, work: float) -> float:
        """Twice as many rounds as in the last call, so that those who watch see the first ones."""
        before = self.rounds
        n_rounds = min(self._most_at_once, max(1, int(min(work / at_once.cost, 1e9))))
        found, losses = at_once.run(before, min(n_rounds, (self.total or 0) - before))
        is_known = len(self.losses) > self.first + before
        self.losses += losses[int(is_known) :]
        self.trees += found  # an interrupt before this line leaves the rounds out
        if not self._one_by_one:
            self._most_at_once = 2 * len(found)
        return len(found) * at_once.cost

    def state(self) -> dict[str, Any]:
        """The state after the last complete round."""
        return state_of_rounds(self, self.raw if self._raw_before is None else self._raw_before)

    def restore(self, state: dict[str, Any]) -> None:
        restore_rounds(self, state, self._form)

    def prepare(self) -> None:
        """Find the loss after the last complete round: begin the next one, if there is one."""
        if self.finished:
            self.losses = self.all_losses().tolist()
        elif self._round is None:
            self._begin_round()

    def _begin_round(self) -> BoostingRound:
        self._raw_before = self.raw.copy() if self._is_kept else None
        self._round = self._begin()
        return self._round

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
        drawn, others, n_rows = self._drawn_rows()
        scores = range(self._n_scores)
        return BoostingRound(
            drawn,
            others,
            n_rows,
            [self._source(drawn, score) for score in scores],
            [self._rules(loss, score) for score in scores],
            partial(self._renew, loss) if loss.differs_from_mean else None,
        )

    def _drawn_rows(self) -> tuple[np.ndarray, np.ndarray, int]:
        """The rows that trees are grown on, all others, and the number of the first of all
        members."""
        drawn = self._draw(self.first + self.rounds)
        if drawn is None:
            return self._all_rows, self._all_rows[:0], self._n_all
        n_rows = np.array([len(drawn)])
        self._collective.sum(n_rows)
        is_other = np.ones(len(self._all_rows), np.bool_)
        is_other[drawn] = False
        return drawn, np.flatnonzero(is_other).astype(np.int32), int(n_rows[0])

    def _derive(self, loss: GradientLoss) -> float:
        """Write gradients and hessians; returns the loss of the current scores."""
        rows, n = self._rows, len(self._rows.y)
        n_threads = self._n_threads if n * self._n_scores >= _SCORES_FOR_THREADS else 1
        loss.derive(
            rows.y, self.raw, rows.weight, self._gradient, self._hessian, self._losses_of_rows,
            n_threads=n_threads,
        )  # fmt: skip
        return mean_of_rows(
            self._losses_of_rows, self._weight, n_threads=n_threads, collective=self._collective
        )

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
        return self.loss.for_round(self._rows.y, self.raw, self._weight, self._collective)

    def _loss_so_far(self) -> float:
        before = None if self._at_once is None else self._at_once.loss_before(self.rounds)
        if before is not None:
            return before
        rows, loss = self._rows, self._loss_of_round()
        return loss.value(
            rows.y, self.raw, self._weight, n_threads=self._n_threads, collective=self._collective
        )

    def all_losses(self) -> np.ndarray:
        """The loss of the training set before the first round and after each complete round."""
        known = self.losses[: self.first + self.rounds + 1]
        is_known = len(known) == self.first + self.rounds + 1
        return np.array(known if is_known else [*known, self._loss_so_far()])

    # -- a tree --

    def _source(self, drawn: np.ndarray, score: int) -> nodes.Source:
        return nodes.Source(
            drawn,
            self._gradient[score],
            self._hessian[score],
            _NO_WORDS if self._rows.copies is None else self._rows.copies,
            self.raw[score],
            _NO_WORDS,
            _NO_WORDS,
            _NO_WORDS,
        )

    def _rules(self, loss: GradientLoss, score: int) -> nodes.GrowthRules:
        settings, features = self._settings, self._table.features
        order = nodes.LEVEL_BY_LEVEL if settings.level_wise else nodes.BEST_FIRST
        if (
            not self._sizes.is_tight
        ):  # every leaf that can be split is split: the order does not matter
            order = nodes.SMALL_FIRST
        signs, sets = settings.signs, settings.sets
        is_even = loss.is_constant_hessian or loss.differs_from_mean
        number = (self.first + self.rounds) * self._n_scores + score
        return nodes.GrowthRules(
            order,
            self._sizes.max_leaves,
            2**31 if settings.max_depth is None else settings.max_depth,
            settings.min_samples_leaf,
            settings.min_hessian,
            0.0 if is_even else float(settings.min_samples_leaf),
            settings.l2_regularization,
            loss.longest_step,
            settings.learning_rate,
            settings.tried,
            seed_of_member(settings.seed, number) if settings.tried < 1.0 else 0,
            not loss.differs_from_mean,
            np.empty(0, np.int64) if signs is None else signs[features],
            np.empty((0, len(features)), np.bool_)
            if sets is None
            else np.ascontiguousarray(sets[:, features]),
        )

    def _renew(
        self,
        loss: GradientLoss,
        tree: nodes.BoostedTree,
        raw: np.ndarray,
        ends: np.ndarray,
        rows: np.ndarray,
        starts: np.ndarray,
    ) -> None:
        """See `BoostingRound` and `GradientLoss.leaf_values`."""
        n_threads = self._n_threads
        residual = self._losses_of_rows  # a buffer
        n_tiles = -(-len(residual) // _ROWS_OF_A_TILE)
        _subtract(n_tiles, n_threads, read_only(self._rows.y), raw, residual)
        best = loss.leaf_values(
            residual, self._weight, rows, starts, n_threads=n_threads, collective=self._collective
        )
        tree.grown_nodes.value[ends] = self._settings.learning_rate * best
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
