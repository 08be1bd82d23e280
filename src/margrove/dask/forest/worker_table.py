"""The table of a worker of a forest, as codes, and the trees that it grows.

A tree depends only on the seed, its number and the table, so any worker can grow it. A
`WorkerTable` has the table in the order in which samples are drawn, the targets, and the growers of
a local fit. Its rows are codes, which are decoded for predictions.
"""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove.dask.cluster import is_wanted, require_same_software
from margrove.dask.forest.rank_codes import MergedColumns, PartitionCodes, layout_of
from margrove.ensemble.forest import (
    Forest,
    ForestGrower,
    ForestTraining,
    LeafSamples,
    Sampler,
    keep_leaf_samples,
)
from margrove.exceptions import FitCancelled
from margrove.grove import number_of_leaves
from margrove.grove.serve import PackedTree
from margrove.grove.table import BinnedDataset, TreeTable

__all__ = [
    "DecodedRows",
    "GrownTrees",
    "OutOfBagLeaves",
    "WorkerSetup",
    "WorkerTable",
    "grow_trees",
    "leaf_samples",
    "make_worker_table",
    "out_of_bag_leaves",
]

_NO_END = 2**62  # no forest has so many trees
_SECONDS_AT_ONCE = 0.5  # after which a worker checks whether its task was cancelled


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker needs to grow trees, besides the codes.

    forest             an unfitted forest, for its parameters
    training           the training, without the rows of its table and data
    place_of           the position of each row of nonzero weight in the order of the training; -1
                       for a copy of another row, which represents both
    wants_out_of_bag   whether leaves of out-of-bag rows are returned with each tree
    software           of the client: see `cluster.require_same_software`
    """

    forest: Forest
    training: ForestTraining
    place_of: np.ndarray
    wants_out_of_bag: bool
    software: dict[str, str]


@dataclass(frozen=True)
class OutOfBagLeaves:
    """The leaves of the out-of-bag rows of a tree, compressed.

    Unpacks as (leaves, left_out), int32 (n_rows,) each, as `OutOfBag.add` takes them.
    """

    n_rows: int
    places: np.ndarray
    leaves: np.ndarray
    left_out: np.ndarray | None

    @classmethod
    def of(cls, leaves: np.ndarray, left_out: np.ndarray) -> OutOfBagLeaves:
        places = np.flatnonzero(left_out)
        found, times = leaves[places], left_out[places]
        return cls(
            len(leaves),
            np.packbits(left_out > 0),
            found.astype(np.uint16) if found.max(initial=0) < 2**16 else found,
            None if (times == 1).all() else times,
        )

    def __iter__(self) -> Iterator[np.ndarray]:
        places = np.flatnonzero(np.unpackbits(self.places, count=self.n_rows))
        leaves, left_out = np.full(self.n_rows, -1, np.int32), np.zeros(self.n_rows, np.int32)
        leaves[places] = self.leaves
        left_out[places] = 1 if self.left_out is None else self.left_out
        return iter((leaves, left_out))


@dataclass(frozen=True)
class GrownTrees:
    """Grown trees.

    grown     by number: the tree, and the leaves of its out-of-bag rows or None
    halved    by number: how many nodes were halved
    seconds   the time for all trees
    """

    grown: dict[int, tuple[PackedTree, OutOfBagLeaves | None]]
    halved: dict[int, int]
    seconds: float


class DecodedRows:
    """Codes that behave like the rows: rows[places] are decoded numbers, NaN for missing values.

    A code of several values is decoded to the lowest one: no tree separates them.
    """

    def __init__(self, data: BinnedDataset) -> None:
        self._data = data
        self._values = [np.append(low, np.nan) for low in data.lows]
        self.shape = (data.n_rows, data.n_features)

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        found = np.empty((len(places), self.shape[1]))
        for j, values in enumerate(self._values):
            found[:, j] = values[self._data.column(j)[places]]
        return found


class _WorkerGrower(ForestGrower):
    """Grows trees of any numbers, one after the other."""

    def sibling(self) -> _WorkerGrower:
        """Another grower on the same table, for another thread."""
        other = copy.copy(self)
        other._builders, other._current = [None], [-1]
        return other

    def grow(self, numbers: list[int], is_wanted: Callable[[], bool]) -> GrownTrees:
        start = time.perf_counter()
        self._numbers = itertools.chain(numbers, itertools.repeat(_NO_END))
        self._grown, self._halved, self._current = {}, {}, [-1]
        while len(self._grown) < len(numbers):
            self._work(0, time.monotonic() + _SECONDS_AT_ONCE)
            if not is_wanted():
                raise FitCancelled("The task that grows these trees was cancelled.")
        grown = {
            number: (tree, None if seen is None else OutOfBagLeaves.of(*seen))
            for number, (tree, seen) in self._grown.items()
        }
        return GrownTrees(grown, self._halved, time.perf_counter() - start)

    def out_of_bag_leaves(self, tree: PackedTree, number: int) -> OutOfBagLeaves:
        return OutOfBagLeaves.of(*self._out_of_bag_leaves(tree, number))


class WorkerTable:
    """The table and the targets on a worker, and a grower for each of its threads."""

    def __init__(self, setup: WorkerSetup, data: BinnedDataset) -> None:
        require_same_software(setup.software)
        self._setup, self._data = setup, data
        given = setup.training
        table = TreeTable(DecodedRows(data), given.table.feature_names, given.table.categories)
        order = np.arange(data.n_rows)
        training = replace(given, table=table, order=order, data=data)
        self._training, self._sampler = training, Sampler(training)
        forest = setup.forest
        rules, kind = forest._rules_and_kind(training, self._sampler)
        self.kind = kind
        self._first_grower = _WorkerGrower(
            training,
            self._sampler,
            rules,
            kind,
            0,
            _NO_END,
            max_leaves=number_of_leaves(forest.max_leaf_nodes, data.n_rows),
            finish=forest._finisher(kind, training),
            wants_out_of_bag=setup.wants_out_of_bag,
        )
        self._idle = [self._first_grower.sibling()]
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return WorkerTable, (self._setup, self._data)

    def __sizeof__(self) -> int:
        """Dask decides by it where tasks on the table run."""
        values = sum(array.nbytes for array in (*self._data.lows, *self._data.highs))
        return values + sum(array.nbytes for array in self._data.codes[:3])

    def borrow(self) -> _WorkerGrower:
        """A free grower, to be returned by `give_back`."""
        with self._lock:
            return self._idle.pop() if self._idle else self._first_grower.sibling()

    def give_back(self, grower: _WorkerGrower) -> None:
        with self._lock:
            self._idle.append(grower)

    def leaf_samples(self, tree: PackedTree, number: int) -> LeafSamples:
        training = self._training
        return keep_leaf_samples(
            [tree],
            self.kind,
            training.table.X,
            training.order,
            training.targets.raw * training.scale,
            lambda _: self._sampler.weights(number)[0],
            1,
        )


def make_worker_table(
    setup: WorkerSetup, blocks: list[MergedColumns], pieces: list[PartitionCodes]
) -> WorkerTable:
    """The table of a worker: the codes of all partitions, in the row order of the training."""
    n_rows = setup.training.data.n_rows
    lows = [low for block in blocks for low in block.lows]
    highs = [high for block in blocks for high in block.highs]
    n_codes = np.array([len(low) for low in lows], dtype=np.int64)
    codes = layout_of(n_codes, n_rows)
    begin = 0
    for piece in pieces:
        places = setup.place_of[begin : begin + piece.n_rows]
        begin += piece.n_rows
        kept = slice(None) if (places >= 0).all() else np.flatnonzero(places >= 0)
        places = places[kept]
        for target, source in zip(codes[:3], piece.codes[:3], strict=True):
            for k in range(len(target)):
                target[k][places] = source[k][kept]
    missing = np.concatenate([block.has_missing for block in blocks])
    categorical = setup.training.table.is_categorical
    return WorkerTable(
        replace(setup, place_of=setup.place_of[:0]),  # the table is sent to other workers
        BinnedDataset(codes, n_rows, n_codes, lows, highs, missing, categorical),
    )


# -- tasks --


def grow_trees(table: WorkerTable, numbers: list[int]) -> GrownTrees:
    """The trees of these numbers."""
    grower = table.borrow()
    try:
        return grower.grow(numbers, is_wanted)
    finally:
        table.give_back(grower)


def out_of_bag_leaves(
    table: WorkerTable, trees: dict[int, PackedTree]
) -> dict[int, OutOfBagLeaves]:
    """The leaves of the out-of-bag rows of trees that have grown before."""
    grower = table.borrow()
    try:
        return {number: grower.out_of_bag_leaves(tree, number) for number, tree in trees.items()}
    finally:
        table.give_back(grower)


def leaf_samples(table: WorkerTable, trees: dict[int, PackedTree]) -> dict[int, LeafSamples]:
    """The targets in the leaves of each tree."""
    return {number: table.leaf_samples(tree, number) for number, tree in trees.items()}
