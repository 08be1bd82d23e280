"""The rounds of boosting that workers report, and a new start if one of them is lost."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from margrove._runtime import SLICE_SECONDS
from margrove.dask.boosting.program import OwnRows, RoundReport, Task, boost
from margrove.dask.boosting.remote_rows import RemoteRows
from margrove.dask.cluster import ClusterError, WorkerLost, wait_until_removed, with_retries
from margrove.dask.members import Members
from margrove.dask.partitions import Shard
from margrove.ensemble.gradient import (
    GradientData,
    HeldOut,
    Monitor,
    SoFar,
    restore_rounds,
    state_of_rounds,
)
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.grove.serve import PackedTree, TreeForm, rescaled

__all__ = ["ClusterRounds"]

_MOST_LOST = 10


class ClusterRounds:
    """Rounds on the workers, as `slices.drive` runs them; see `gradient.hist.GradientRounds`.

    given, held_out   rows of all workers; X is `RemoteRows`. Other validation rows go to the first
                      worker.
    task              for the workers; its `so_far` is the state at the start
    """

    unit = "round"

    def __init__(
        self,
        task: Task,
        given: GradientData,
        held_out: HeldOut | None,
        loss: GradientLoss,
        monitor: Monitor | None,
        n_rounds: int,
        form: TreeForm,
    ) -> None:
        self._task, self._given, self._held_out, self._form = task, given, held_out, form
        self._partitions = replace(given.X.partitions, y=None, weight=None)
        self._members: Members | None = None
        self._reports: list[RoundReport] = []  # that have arrived
        self._lost: list[str] = []  # workers since the last complete round
        self.loss, self.monitor = loss, monitor
        self.total: int | None = n_rounds
        self.first = len(task.so_far.rounds)
        self.trees: list[list[PackedTree]] = []
        self.losses = list(task.so_far.losses)
        self._n_reports = 0
        try:
            while not self._n_reports:  # the first one has the loss and the score at the start
                self.advance(0.0)
        except BaseException:
            self.close()
            raise

    # -- a process --

    @property
    def rounds(self) -> int:
        return len(self.trees)

    @property
    def finished(self) -> bool:
        return self.rounds >= (self.total or 0) or self.stopped_early

    @property
    def stopped_early(self) -> bool:
        return self.rounds > 0 and self.monitor is not None and self.monitor.says_stop

    def figures(self) -> dict[str, float]:
        figures = {"loss": self.losses[-1]} if self.losses else {}
        if self.monitor is not None and self.monitor.scores:
            figures["validation score"] = self.monitor.scores[-1]
        return figures

    def read_steps(self) -> list[Any]:
        return []

    def all_losses(self) -> np.ndarray:
        """The loss of the training set before the first round and after each complete round."""
        return np.array(self.losses[: self.first + self.rounds + 1])

    def advance(self, work: float) -> float:
        """Take the next round, or wait a moment for it."""
        try:
            if self._members is None:
                self._members = with_retries(self._start, self._partitions.client)
            if not self._reports:
                self._reports = self._members.reports(SLICE_SECONDS)
            if self._reports:
                self._take(self._reports.pop(0))
            if self.finished:
                self._members.results()  # the workers are free again
        except WorkerLost as error:
            self.close()
            if not self.finished:
                self._recover(error)
        return work

    def state(self) -> dict[str, Any]:
        """The state after the last complete round; raw scores follow from the trees."""
        rounds = self._without_raw()
        return state_of_rounds(rounds, rounds.raw)

    def restore(self, state: dict[str, Any]) -> None:
        rounds = self._without_raw()
        restore_rounds(rounds, state, self._form)
        self.trees, self.losses = rounds.trees, rounds.losses
        self.close()

    def close(self) -> None:
        """End the program on the workers."""
        members, self._members, self._reports = self._members, None, []
        if members is not None:
            members.close()

    def _without_raw(self) -> Any:
        return SimpleNamespace(
            raw=np.empty((self.loss.n_scores, 0)),
            trees=self.trees,
            losses=self.losses,
            monitor=self.monitor,
            first=self.first,
        )

    def _take(self, report: RoundReport) -> None:
        self._n_reports += 1
        if report.trees:
            self.trees.append(report.trees)
            self._lost.clear()
        place = self.first + self.rounds
        self.losses[place:] = [report.loss]
        if self.monitor is not None and (report.trees or not self.monitor.scores):
            assert report.score is not None
            self.monitor.scores.append(report.score)

    # -- workers --

    def _start(self, workers: list[str]) -> Members:
        """Start the program after the last complete round."""
        task = replace(self._task, so_far=self._so_far())
        members = Members(self._partitions, workers, boost, [task], self._own_rows)
        return members.__enter__()

    def _so_far(self) -> SoFar:
        before = self._task.so_far
        scale = before.scale
        trees = [
            [tree if scale == 1.0 else rescaled(tree, scale, 0) for tree in of_round]
            for of_round in self.trees
        ]
        scores = () if self.monitor is None else tuple(self.monitor.scores)
        return replace(
            before,
            rounds=before.rounds + trees,
            losses=tuple(self.losses[: self.first + self.rounds + 1]),
            scores=scores,
        )

    def _recover(self, error: WorkerLost) -> None:
        self._lost.append(str(error))
        if len(self._lost) >= _MOST_LOST:
            raise ClusterError(
                f"Boosting lost workers {len(self._lost)} times in one round and was stopped. "
                f"The last loss: {error} Workers that run out of memory are killed: use more or "
                "larger workers, or smaller partitions. See the logs of the workers."
            ) from error
        wait_until_removed(self._partitions.client, error.worker)

    def _own_rows(self, shard: Shard) -> tuple[OwnRows, OwnRows | HeldOut | None]:
        """The training and the validation rows of one worker."""
        given, held_out = self._given, self._held_out
        by_loss = self.monitor is None or self.monitor.scores_are_losses
        own = _rows_of_shard(given.X, shard, given, in_order=not by_loss)
        if held_out is None:
            return own, None
        if isinstance(held_out.X, RemoteRows):
            return own, _rows_of_shard(held_out.X, shard, held_out, in_order=not by_loss)
        numbers = np.arange(len(held_out.y) if 0 in shard.first_rows() else 0)
        weight = None if held_out.weight is None else held_out.weight[numbers]
        return own, HeldOut(held_out.X[: len(numbers)], held_out.y[numbers], weight, numbers)


def _rows_of_shard(
    X: RemoteRows, shard: Shard, data: GradientData | HeldOut, *, in_order: bool
) -> OwnRows:
    places, chosen = [], []
    for (_, first, last), start in zip(shard.pieces, shard.first_rows(), strict=True):
        own, numbers = X.chosen(start, start + last - first)
        places.append(np.arange(own.start, own.stop))
        chosen.append(None if numbers is None else numbers.astype(np.int32))
    of_shard = np.concatenate(places)

    def of_rows(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[of_shard]

    return OwnRows(
        chosen,
        of_shard if in_order else None,
        data.y[of_shard],
        of_rows(data.weight),
        of_rows(getattr(data, "copies", None)),
        of_rows(getattr(data, "places", None)),
    )
