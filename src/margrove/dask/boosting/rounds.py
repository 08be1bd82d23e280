"""Rounds of gradient boosting on a cluster: `GradientRounds` with the rows on workers."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from margrove.dask.boosting.leader import BoostingLeader, RoundStart
from margrove.dask.boosting.remote_tree import RemoteTree, TreeBuffers
from margrove.dask.boosting.worker_program import GrownTree
from margrove.dask.cluster import ClusterError, WorkerLost
from margrove.ensemble.gradient import Monitor, TrainingRows, restore_rounds, state_of_rounds
from margrove.ensemble.gradient.hist import (
    BoostingRound,
    GradientBins,
    GradientRounds,
    GradientSettings,
    make_monotonic,
    meanings_of,
    packed,
)
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.grove.serve import PackedTree, TreeForm

__all__ = ["ClusterRounds", "RemoteMonitor"]

_BYTES_OF_TREES = 1 << 30  # that are grown at once
_TREES_AT_ONCE = 8
_MOST_LOST = 10
_NO_ROWS = np.empty(0, np.int32)
_OVER = object()


class RemoteMonitor(Monitor):
    """A monitor of held-out rows whose raw scores come from the workers."""

    def take(self, raw: np.ndarray) -> None:
        self._raw = raw

    @property
    def looks_at_training_rows(self) -> bool:
        return self._held_out is None

    def add(
        self,
        trees: list[PackedTree],
        training_loss: float | None,
        raw: np.ndarray,
        loss: GradientLoss,
    ) -> None:
        if self._held_out is None:
            super().add(trees, training_loss, raw, loss)
        else:
            self.scores.append(self._score_of(self._raw, loss))


class ClusterRounds(GradientRounds):
    """`GradientRounds` in which workers sum over their rows, and the client decides."""

    def __init__(
        self,
        leader: BoostingLeader,
        bins: GradientBins,
        rows: TrainingRows,
        loss: GradientLoss,
        settings: GradientSettings,
        n_rounds: int,
        *,
        first_round: int = 0,
        draw: Callable[[int], np.ndarray | None] = lambda number: None,
        monitor: Monitor | None = None,
        losses: Sequence[float] = (),
        form: TreeForm | None = None,
    ) -> None:
        self.total = n_rounds
        self.monitor, self._form = monitor, form
        self._leader, self._table = leader, leader.table
        self._meanings = meanings_of(bins, self._table)
        self._rows, self.loss, self._settings = rows, loss, settings
        self._weight, self._n_scores = rows.total_weight, loss.n_scores
        self.first, self._draw = first_round, draw
        self._n = len(rows.y)
        self._most_leaves, self._n_slots, self._is_tight = self._sizes(self._n)
        self._buffers = self._buffers_of_trees()
        self._steps: Iterator[None] | None = None
        self._raw: np.ndarray | None = None
        self._ahead: RoundStart | None = None
        self._drawn: tuple[int, np.ndarray | None] = (-1, None)
        self._lost: list[str] = []  # losses since the last complete round
        self.trees: list[list[PackedTree]] = []
        self.losses = list(losses)
        if isinstance(monitor, RemoteMonitor) and not monitor.looks_at_training_rows:
            monitor.take(leader.held_out_raw)
        if monitor is not None and not monitor.scores:
            self._tell(monitor, [])

    def _buffers_of_trees(self) -> list[TreeBuffers]:
        n_sets = 0 if self._settings.sets is None else len(self._settings.sets)
        n_bytes = TreeBuffers.bytes_of(self._table, self._most_leaves, self._n_slots)
        most = max(int(min(_BYTES_OF_TREES // max(n_bytes, 1.0), _TREES_AT_ONCE)), 1)
        return [
            TreeBuffers(
                self._table, self._most_leaves, self._n_slots, n_sets, is_tight=self._is_tight
            )
            for _ in range(min(most, self._n_scores))
        ]

    # -- a process --

    @property
    def raw(self) -> np.ndarray:  # type: ignore[override]
        """Raw scores of all training rows, fetched when they are needed."""
        if self._raw is None:
            try:
                self._raw = self._leader.raw()
            except WorkerLost as error:
                if self._steps is not None:
                    raise  # `advance` restarts the round
                self._recover(error)
                self._raw = self._leader.raw()
        return self._raw

    def advance(self, work: float) -> float:
        """One call of the worker group, and what its reply leads to."""
        try:
            if self._steps is None:
                self._steps = self._one_round()
            if next(self._steps, self) is self:
                self._steps = None
        except WorkerLost as error:
            self._recover(error)
        return work

    def _recover(self, error: WorkerLost) -> None:
        """Continue with another worker group after the last complete round."""
        self._lost.append(str(error))
        if len(self._lost) >= _MOST_LOST:
            raise ClusterError(
                f"Boosting lost workers {len(self._lost)} times in one round and was stopped. "
                f"The last loss: {error} Workers that run out of memory are killed: use more or "
                "larger workers, or smaller partitions. See the logs of the workers."
            ) from error
        self._steps = self._ahead = self._raw = None
        self._restart(error.worker)

    def state(self) -> dict[str, Any]:
        """The state after the last complete round; raw scores are computed from the trees."""
        rounds = self._without_raw()
        return state_of_rounds(rounds, rounds.raw)

    def restore(self, state: dict[str, Any]) -> None:
        rounds = self._without_raw()
        restore_rounds(rounds, state, self._form)
        self.trees, self.losses = rounds.trees, rounds.losses
        self._steps = self._ahead = self._raw = None
        self._restart(None)

    def _without_raw(self) -> Any:
        return SimpleNamespace(
            raw=np.empty((self._n_scores, 0)),
            trees=self.trees,
            losses=self.losses,
            monitor=self.monitor,
            first=self.first,
        )

    def _restart(self, lost: str | None) -> None:
        self._leader.restart(self.trees, lost)
        if isinstance(self.monitor, RemoteMonitor):
            self.monitor.take(self._leader.held_out_raw)

    def _one_round(self) -> Iterator[None]:
        this_round, round_start = self._begin_round()
        yield
        for scores in _in_groups(range(self._n_scores), len(self._buffers)):
            growing = [
                self._new_tree(this_round, buffers, score, round_start)
                for buffers, score in zip(self._buffers, scores, strict=False)
            ]
            yield from self._grow(this_round, growing)
            is_last = scores[-1] + 1 == self._n_scores
            self._finish(this_round, growing, is_last=is_last)
        self._end(this_round)

    def _begin_round(self) -> tuple[BoostingRound, RoundStart]:
        number = self.first + self.rounds
        drawn = self._rows_of(number)
        if self._ahead is not None:
            loss, round_start = self.loss, self._ahead
        else:
            loss = self._loss_of_round()
            round_start = self._leader.begin(loss, drawn)
        self._ahead = None
        if len(self.losses) == number:
            self.losses.append(self._loss_of(loss, round_start))
        this_round = BoostingRound(loss, _NO_ROWS, _NO_ROWS, [None] * self._n_scores)
        if drawn is not None:
            this_round.rows = drawn
        return this_round, round_start

    def _rows_of(self, number: int) -> np.ndarray | None:
        if self._drawn[0] != number:
            self._drawn = number, self._draw(number)
        return self._drawn[1]

    def _loss_of(self, loss: GradientLoss, round_start: RoundStart) -> float:
        rows = self._rows
        if rows.copies is not None:
            return loss.value(rows.y, self.raw, self._weight)
        total = float(self._n) if rows.weight is None else float(rows.weight.sum())
        return math.fsum(round_start.losses) / total

    def _new_tree(
        self, this_round: BoostingRound, buffers: TreeBuffers, score: int, round_start: RoundStart
    ) -> RemoteTree:
        n_rows = len(this_round.rows) or self._n
        survey = round_start.surveys[score]
        return RemoteTree(buffers, self._rules(this_round, score), score, n_rows, survey)

    def _grow(self, this_round: BoostingRound, growing: list[RemoteTree]) -> Iterator[None]:
        """Grow in two waves: while the client decides about one, workers sum for the other."""
        renews = this_round.loss.differs_from_mean
        halves = [half for half in (growing[::2], growing[1::2]) if half]
        waves = deque(self._leader.grow(half, with_values=not renews) for half in halves)
        while waves:
            wave = waves.popleft()
            if next(wave, _OVER) is not _OVER:
                waves.append(wave)
            yield
        if renews:
            for tree in growing:
                self._renew_leaves(tree, this_round.loss)
            yield

    def _renew_leaves(self, growing: RemoteTree, loss: GradientLoss) -> None:
        """See `GradientRounds._renew`."""
        tree, leaves = growing.tree, growing.leaves
        leaves = leaves[np.argsort(tree.nodes.start[leaves])]
        rows, starts = self._leader.rows_of_leaves(growing, leaves)
        best = loss.leaf_values(
            self._rows.y - self.raw[growing.score], self._weight, rows.astype(np.int32), starts
        )
        tree.nodes.value[leaves] = self._settings.learning_rate * best
        if self._settings.signs is not None:
            make_monotonic(tree, self._settings.signs[self._table.features])

    def _finish(
        self, this_round: BoostingRound, growing: list[RemoteTree], *, is_last: bool
    ) -> None:
        """Pack the trees, and add them to the scores on all workers."""
        messages = []
        for tree in growing:
            found = packed(tree.tree, self._meanings)
            this_round.grown[tree.score] = found
            messages.append(self._message(this_round, tree, found))
        then = None
        if is_last and self._knows_how_to_go_on():
            then = self.loss, self._rows_of(self.first + self.rounds + 1)
        held_out, self._ahead = self._leader.add(messages, then)
        self._raw = None
        if is_last and isinstance(self.monitor, RemoteMonitor):
            self.monitor.take(held_out)

    def _message(
        self, this_round: BoostingRound, growing: RemoteTree, found: PackedTree
    ) -> GrownTree:
        tree, leaves = growing.tree, growing.leaves
        return GrownTree(
            growing.score,
            growing.handles_of(leaves),
            tree.nodes.value[leaves],
            tree.grown_nodes.copy() if len(this_round.rows) else None,
            found if isinstance(self.monitor, RemoteMonitor) else None,
        )

    def _knows_how_to_go_on(self) -> bool:
        """Whether there is a next round that can start without the scores."""
        return not self._loss_changes and self.rounds + 1 < (self.total or 0)

    @property
    def _loss_changes(self) -> bool:
        return type(self.loss).for_round is not GradientLoss.for_round

    def _loss_of_round(self) -> GradientLoss:
        return super()._loss_of_round() if self._loss_changes else self.loss

    def _tell(self, monitor: Monitor, grown: list[PackedTree]) -> None:
        training_loss, raw = None, np.empty((self._n_scores, 0))
        if monitor.wants_training_loss:
            training_loss = self._loss_so_far()
            self.losses.append(training_loss)
        elif isinstance(monitor, RemoteMonitor) and monitor.looks_at_training_rows:
            raw = self.raw
        monitor.add(grown, training_loss, raw, self._loss_of_round())

    def _end(self, this_round: BoostingRound) -> None:
        grown = [tree for tree in this_round.grown if tree is not None]
        if self.monitor is not None:
            self._tell(self.monitor, grown)
        self.trees.append(grown)
        self._lost.clear()


def _in_groups(scores: Any, size: int) -> Iterator[tuple[int, ...]]:
    waiting = iter(scores)
    while group := tuple(itertools.islice(waiting, size)):
        yield group
