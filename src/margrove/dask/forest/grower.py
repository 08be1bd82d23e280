"""Grows the trees of a forest on the workers of a cluster; a process for `slices.drive`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import SLICE_SECONDS
from margrove.dask.forest.cluster_table import ClusterCodes, ForestTable
from margrove.dask.forest.task_pool import TaskPool
from margrove.dask.forest.worker_table import (
    GrownTrees,
    OutOfBagLeaves,
    WorkerSetup,
    grow_trees,
    leaf_samples,
    make_worker_table,
    out_of_bag_leaves,
)
from margrove.ensemble.forest import Forest, ForestGrower, ForestTraining, LeafSamples
from margrove.grove.serve import PackedTree

__all__ = ["ClusterGrower", "WorkerTables", "worker_tables_of"]

_SECONDS_A_TASK = 0.25  # at least, if trees are small
_TRIALS = 5
_TASKS_A_THREAD = 4  # at least, so that the last task is short


class WorkerTables:
    """The tables of all workers, which are made on first use, and the tasks on them."""

    def __init__(self, forest: Forest, training: ForestTraining, *, wants_out_of_bag: bool) -> None:
        table, data = training.table, training.data
        assert isinstance(table, ForestTable)
        assert isinstance(data, ClusterCodes)
        self._data, self._client = data, table.partitions.client
        self._setup = _setup(forest, training, wants_out_of_bag=wants_out_of_bag)
        self._sent_setup: Any = None
        self.pool = TaskPool(self._client, self._make_table)

    def _make_table(self, worker: str) -> Any:
        """The future of a worker's table."""
        if self._sent_setup is None or self._sent_setup.status != "finished":
            self._sent_setup = self._scattered(self._setup)
        return self._client.submit(
            make_worker_table,
            self._sent_setup,
            self._data.blocks,
            self._data.pieces,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
        )

    def _scattered(self, setup: WorkerSetup) -> Any:
        """Send the setup to a worker, from which others get it; retried if that worker is lost."""
        for _ in range(_TRIALS - 1):
            try:
                return self._client.scatter(setup, hash=False)
            except OSError:
                time.sleep(1.0)
        return self._client.scatter(setup, hash=False)

    def out_of_bag_leaves(self, trees: dict[int, PackedTree]) -> dict[int, OutOfBagLeaves]:
        """The leaves of the out-of-bag rows of trees, by their numbers."""
        return self._run_on_trees(out_of_bag_leaves, trees)

    def leaf_samples(self, trees: list[PackedTree]) -> LeafSamples:
        """The targets in the leaves of all trees."""
        found = self._run_on_trees(leaf_samples, dict(enumerate(trees)))
        training = self._setup.training
        y = training.targets.raw * training.scale
        samples = [found[number] for number in range(len(trees))]
        return LeafSamples(
            y[np.argsort(y, kind="stable")],
            [sample.starts[0] for sample in samples],
            [sample.ranks[0] for sample in samples],
            [sample.weights[0] for sample in samples],
        )

    def _run_on_trees(self, function: Any, trees: dict[int, PackedTree]) -> dict[int, Any]:
        for number, tree in trees.items():
            self.pool.submit(function, {number: tree})
        found: dict[int, Any] = {}
        while not trees.keys() <= found.keys():
            for answer in self.pool.poll(function, SLICE_SECONDS):
                found |= answer
        return found

    def close(self) -> None:
        self.pool.close()
        self._sent_setup = None


def worker_tables_of(training: ForestTraining, *, wants_out_of_bag: bool = False) -> WorkerTables:
    """The worker tables of this training, made once."""
    table = training.table
    assert isinstance(table, ForestTable)
    if not table.held:
        table.held.append(WorkerTables(table.forest, training, wants_out_of_bag=wants_out_of_bag))
    found: WorkerTables = table.held[0]
    return found


def _setup(forest: Forest, training: ForestTraining, *, wants_out_of_bag: bool) -> WorkerSetup:
    table, data = training.table, training.data
    assert isinstance(table, ForestTable)
    assert isinstance(data, ClusterCodes)
    kept, m = table.X.shape[0], data.n_rows
    place_of = np.full(kept, -1, np.int32 if m < 2**31 else np.int64)
    place_of[training.order] = np.arange(m)
    bare = replace(
        training,
        table=table.without_rows(m),
        order=training.order[:0],
        data=data.without_rows(),
        sampled=replace(training.sampled, group_of=None),
    )
    return WorkerSetup(forest, bare, place_of, wants_out_of_bag)


class ClusterGrower(ForestGrower):
    """Grows the same forest, some trees on each worker."""

    def __init__(self, training: ForestTraining, *given: Any, n_threads: int, **options: Any):
        super().__init__(training, *given, n_threads=1, **options)
        self._worker_tables = worker_tables_of(training, wants_out_of_bag=self._wants_out_of_bag)
        self._seconds_a_tree = 0.0
        self._n_sent = 0

    def advance(self, work: float) -> float:
        self._collect(0.0)
        return super().advance(work)

    def _grow_for_a_while(self) -> None:
        self._collect(SLICE_SECONDS)

    def _collect(self, seconds: float) -> None:
        self._submit_trees()
        for result in self._worker_tables.pool.poll(grow_trees, seconds):
            self._store(result)

    def _store(self, result: GrownTrees) -> None:
        n_shown = self._first + len(self.trees)  # a task that was repeated may still return
        self._grown |= {number: tree for number, tree in result.grown.items() if number >= n_shown}
        self._halved |= result.halved
        self._seconds_a_tree = result.seconds / max(1, len(result.grown))

    def _submit_trees(self) -> None:
        """Submit the next trees, a few at a time, while workers have free slots."""
        if self._enough:
            return
        pool = self._worker_tables.pool
        for _ in range(pool.free_slots):
            run = self._next_run(pool.n_threads)
            if not run:
                return
            pool.submit(grow_trees, run)

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
        answers = self._worker_tables.out_of_bag_leaves(dict(enumerate(earlier)))
        for number, tree in enumerate(earlier):
            self._out_of_bag.add(tree, *answers[number])

    def _out_of_bag_leaves(self, tree: PackedTree, number: int) -> Any:
        return self._worker_tables.out_of_bag_leaves({number: tree})[number]
