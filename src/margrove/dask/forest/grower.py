"""Grows the trees of a forest on the workers of a cluster; a process for `slices.drive`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime.slices import SLICE_SECONDS
from margrove.dask.forest.cluster_table import ClusterTable, CodesOnCluster
from margrove.dask.forest.task_pool import Crew
from margrove.dask.forest.worker_table import (
    Crop,
    Recipe,
    Unseen,
    grow_trees,
    listen_to_trees,
    make_plot,
    place_samples,
)
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.forest.grower import ForestGrower
from margrove.ensemble.forest.intervals import LeafSamples
from margrove.ensemble.forest.training_data import ForestTraining
from margrove.grove.serve.packed_trees import PackedTree

__all__ = ["ClusterGrower", "Field", "field_of"]

_SECONDS_OF_AN_ERRAND = 0.25  # at least, where trees are small
_TRIALS = 5
_ERRANDS_A_THREAD = 4  # at least, so that nobody waits long for the last


class Field:
    """The plots of all workers, made when they are first wanted."""

    def __init__(self, forest: Forest, training: ForestTraining, *, looks_out: bool) -> None:
        table, data = training.table, training.data
        assert isinstance(table, ClusterTable)
        assert isinstance(data, CodesOnCluster)
        self._data, self._client = data, table.partitions.client
        self._recipe = _recipe(forest, training, looks_out=looks_out)
        self._sent_recipe: Any = None
        self.crew = Crew(self._client, self._plant)

    def _plant(self, worker: str) -> Any:
        """The future of a worker's plot."""
        if self._sent_recipe is None or self._sent_recipe.status != "finished":
            self._sent_recipe = self._scattered(self._recipe)
        return self._client.submit(
            make_plot,
            self._sent_recipe,
            self._data.blocks,
            self._data.pieces,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
        )

    def _scattered(self, recipe: Recipe) -> Any:
        """To a worker, from which the others get it; to another one if that is lost just then."""
        for _ in range(_TRIALS - 1):
            try:
                return self._client.scatter(recipe, hash=False)
            except OSError:
                time.sleep(1.0)
        return self._client.scatter(recipe, hash=False)

    def listen(self, trees: dict[int, PackedTree]) -> dict[int, Unseen]:
        """What trees say of the rows that they have not seen."""
        return self._asked(listen_to_trees, trees)

    def leaf_samples(self, trees: list[PackedTree]) -> LeafSamples:
        """The targets in the leaves of all trees."""
        found = self._asked(place_samples, dict(enumerate(trees)))
        training = self._recipe.training
        y = training.targets.raw * training.scale
        samples = [found[number] for number in range(len(trees))]
        return LeafSamples(
            y[np.argsort(y, kind="stable")],
            [own.starts[0] for own in samples],
            [own.ranks[0] for own in samples],
            [own.weights[0] for own in samples],
        )

    def _asked(self, question: Any, trees: dict[int, PackedTree]) -> dict[int, Any]:
        for number, tree in trees.items():
            self.crew.send(question, {number: tree})
        found: dict[int, Any] = {}
        while not trees.keys() <= found.keys():
            for answer in self.crew.poll(question, SLICE_SECONDS):
                found |= answer
        return found

    def close(self) -> None:
        self.crew.close()
        self._sent_recipe = None


def field_of(training: ForestTraining, *, looks_out: bool = False) -> Field:
    """The field of this training, made once."""
    table = training.table
    assert isinstance(table, ClusterTable)
    if not table.held:
        table.held.append(Field(table.forest, training, looks_out=looks_out))
    found: Field = table.held[0]
    return found


def _recipe(forest: Forest, training: ForestTraining, *, looks_out: bool) -> Recipe:
    table, data = training.table, training.data
    assert isinstance(table, ClusterTable)
    assert isinstance(data, CodesOnCluster)
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
    return Recipe(forest, bare, place_of, looks_out)


class ClusterGrower(ForestGrower):
    """The same forest, tree by tree on whoever has time."""

    def __init__(self, training: ForestTraining, *given: Any, n_threads: int, **options: Any):
        super().__init__(training, *given, n_threads=1, **options)
        self._field = field_of(training, looks_out=self._looks_out)
        self._seconds_a_tree = 0.0
        self._n_sent = 0

    def advance(self, work: float) -> float:
        self._take_in(0.0)
        return super().advance(work)

    def _grow_for_a_while(self) -> None:
        self._take_in(SLICE_SECONDS)

    def _take_in(self, seconds: float) -> None:
        self._send_out()
        for crop in self._field.crew.poll(grow_trees, seconds):
            self._store(crop)

    def _store(self, crop: Crop) -> None:
        n_shown = self._first + len(self.trees)  # one that was given up may still answer
        self._grown |= {number: own for number, own in crop.grown.items() if number >= n_shown}
        self._halved |= crop.halved
        self._seconds_a_tree = crop.seconds / max(1, len(crop.grown))

    def _send_out(self) -> None:
        """The next trees, a few at a time, as long as somebody has room for them."""
        if self._enough:
            return
        crew = self._field.crew
        for _ in range(crew.room):
            run = self._next_run(crew.n_threads)
            if not run:
                return
            crew.send(grow_trees, run)

    def _next_run(self, n_threads: int) -> list[int]:
        """Neighbours that are yet to be grown."""
        left = self._last - self._first - self._n_sent
        fair = left // (_ERRANDS_A_THREAD * max(1, n_threads))
        size = 1
        if self._seconds_a_tree > 0.0:
            size = int(np.clip(_SECONDS_OF_AN_ERRAND / self._seconds_a_tree, 1, max(1, fair)))
        run: list[int] = []
        for number in self._numbers:
            if number >= self._last:
                break
            run.append(number)
            if len(run) == size:
                break
        self._n_sent += len(run)
        return run

    def hear_again(self, earlier: list[PackedTree]) -> None:
        if self._out_of_bag is None:
            return
        answers = self._field.listen(dict(enumerate(earlier)))
        for number, tree in enumerate(earlier):
            self._out_of_bag.add(tree, *answers[number])

    def _seen_by(self, tree: PackedTree, number: int) -> Any:
        return self._field.listen({number: tree})[number]
