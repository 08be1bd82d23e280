"""Grows the trees of a forest on the workers of a cluster; a process for `slices.drive`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import SLICE_SECONDS
from margrove.dask.cluster import software_of_this_process
from margrove.dask.forest.tree_tasks import TreeTasks
from margrove.dask.forest.worker_table import GrownTrees, WorkerSetup, grow_trees
from margrove.ensemble.forest import Forest, ForestGrower, ForestTraining
from margrove.grove.serve import PackedTree
from margrove.grove.table import BinnedDataset

__all__ = ["ClusterGrower", "worker_setup"]

_SECONDS_A_TASK = 0.25  # at least, if trees are small
_TASKS_A_THREAD = 4  # at least, so that the last task is short


def worker_setup(
    forest: Forest, training: ForestTraining, *, wants_out_of_bag: bool
) -> WorkerSetup:
    """What workers need to grow the trees of a training, besides the codes."""
    data = training.data
    n_kept, m = training.table.X.shape[0], data.n_rows
    place_of = np.full(n_kept, -1, np.int32 if m < 2**31 else np.int64)
    place_of[training.order] = np.arange(m)
    bare = replace(
        training,
        order=training.order[:0],
        data=BinnedDataset(
            data.codes, m, data.n_codes, data.lows, data.highs, data.has_missing, data.categorical
        ),
        sampled=replace(training.sampled, group_of=None),
    )
    return WorkerSetup(forest, bare, place_of, wants_out_of_bag, software_of_this_process())


class ClusterGrower(ForestGrower):
    """Grows the same forest, some trees on each worker."""

    def __init__(
        self,
        tasks: TreeTasks,
        training: ForestTraining,
        *given: Any,
        n_threads: int,
        **options: Any,
    ) -> None:
        super().__init__(training, *given, n_threads=1, **options)
        self._tasks = tasks
        self._seconds_a_tree = 0.0
        self._n_sent = 0

    def advance(self, work: float) -> float:
        self._collect(0.0)
        return super().advance(work)

    def _grow_for_a_while(self) -> None:
        self._collect(SLICE_SECONDS)

    def _collect(self, seconds: float) -> None:
        if not self._enough:
            for _ in range(self._tasks.n_wanted):
                run = self._next_run(self._tasks.n_threads)
                if not run:
                    break
                self._tasks.submit(grow_trees, run)
        for result in self._tasks.poll(grow_trees, seconds):
            self._store(result)

    def _store(self, result: GrownTrees) -> None:
        self._grown |= result.grown
        self._halved |= result.halved
        self._seconds_a_tree = result.seconds / max(1, len(result.grown))

    def _next_run(self, n_threads: int) -> list[int]:
        """The numbers of the next trees of one task."""
        left = self._last - self._first - self._n_sent
        fair = left // (_TASKS_A_THREAD * max(1, n_threads))
        size = 1
        if self._seconds_a_tree > 0.0:
            size = int(np.clip(_SECONDS_A_TASK / self._seconds_a_tree, 1, max(1, fair)))
        run: list[int] = []
        for number in self._numbers:
            if number >= self._last:
                break
            run.append(number)
            if len(run) == size:
                break
        self._n_sent += len(run)
        return run

    def add_to_out_of_bag(self, earlier: list[PackedTree]) -> None:
        if self._out_of_bag is None:
            return
        answers = self._tasks.out_of_bag_leaves(dict(enumerate(earlier)))
        for number, tree in enumerate(earlier):
            self._out_of_bag.add(tree, *answers[number])

    def _out_of_bag_leaves(self, tree: PackedTree, number: int) -> Any:
        return self._tasks.out_of_bag_leaves({number: tree})[number]
