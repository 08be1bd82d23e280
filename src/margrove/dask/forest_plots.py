"""What a worker does for a forest: it holds the whole table as codes, and grows trees on it.

A tree is a function of the seed, its number and the table, so it does not matter who grows it. A
`Plot` is the table in the order that samples are drawn in, with the targets, and the same growers
that work on one machine; their rows are codes that turn into numbers again when trees are asked
about them.
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

from margrove.dask.forest_codes import MergedColumns, Piece, layout_of
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.forest.grower import ForestGrower
from margrove.ensemble.forest.intervals import LeafSamples, keep_leaf_samples
from margrove.ensemble.forest.training_data import ForestTraining, Sampler
from margrove.exceptions import FitCancelled
from margrove.grove.growth_limits import number_of_leaves
from margrove.grove.serve.packed_trees import PackedTree
from margrove.grove.table.binning import BinnedDataset
from margrove.grove.table.encoding import TreeTable

__all__ = [
    "CodedRows",
    "Crop",
    "Plot",
    "Recipe",
    "Unseen",
    "grow_trees",
    "is_wanted",
    "listen_to_trees",
    "make_plot",
    "place_samples",
]

_NO_END = 2**62  # no forest has so many trees
_SECONDS_AT_ONCE = 0.5  # after which a worker asks whether its trees are still wanted


@dataclass(frozen=True)
class Recipe:
    """What a worker must know besides the codes.

    forest     parameters only
    training   its table and its data have no rows here
    place_of   where each row of nonzero weight is in the order of the training; -1 for a copy of
               another row, which stands for both
    looks_out  whether trees are asked about the rows that they have not seen
    """

    forest: Forest
    training: ForestTraining
    place_of: np.ndarray
    looks_out: bool


@dataclass(frozen=True)
class Unseen:
    """What a tree says of the rows that it has not seen, in few bytes.

    Unpacks as (leaves, left_out), int32 (n_rows,) each, as `OutOfBag.add` takes them.
    """

    n_rows: int
    places: np.ndarray
    leaves: np.ndarray
    left_out: np.ndarray | None

    @classmethod
    def of(cls, leaves: np.ndarray, left_out: np.ndarray) -> Unseen:
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
class Crop:
    """Trees by their numbers, each with what it says of rows that it has not seen (or None); how
    many nodes of each were halved; and how long all took."""

    grown: dict[int, tuple[PackedTree, Unseen | None]]
    halved: dict[int, int]
    seconds: float


class CodedRows:
    """Codes that look like the rows they stand for: rows[places] are numbers, NaN is missing.

    Where values share a code, the lowest stands for all of them: no tree parts them.
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


class _PlotGrower(ForestGrower):
    """Grows trees of any numbers, one after the other."""

    def sibling(self) -> _PlotGrower:
        """Another one on the same table, for another thread."""
        other = copy.copy(self)
        other._saplings, other._current = [None], [-1]
        return other

    def grow(self, numbers: list[int], is_wanted: Callable[[], bool]) -> Crop:
        start = time.perf_counter()
        self._numbers = itertools.chain(numbers, itertools.repeat(_NO_END))
        self._grown, self._halved, self._current = {}, {}, [-1]
        while len(self._grown) < len(numbers):
            self._work(0, time.monotonic() + _SECONDS_AT_ONCE)
            if not is_wanted():
                raise FitCancelled("Nobody waits for these trees any more.")
        grown = {
            number: (tree, None if seen is None else Unseen.of(*seen))
            for number, (tree, seen) in self._grown.items()
        }
        return Crop(grown, self._halved, time.perf_counter() - start)

    def listen(self, tree: PackedTree, number: int) -> Unseen:
        return Unseen.of(*self._seen_by(tree, number))


class Plot:
    """The table and the targets on a worker, and growers for each of its threads."""

    def __init__(self, recipe: Recipe, data: BinnedDataset) -> None:
        self._recipe, self._data = recipe, data
        given = recipe.training
        table = TreeTable(CodedRows(data), given.table.feature_names, given.table.categories)
        order = np.arange(data.n_rows)
        training = replace(given, table=table, order=order, data=data)
        self._training, self._sampler = training, Sampler(training)
        forest = recipe.forest
        rules, kind = forest._rules_and_kind(training, self._sampler)
        self.kind = kind
        self._first_grower = _PlotGrower(
            training,
            self._sampler,
            rules,
            kind,
            0,
            _NO_END,
            max_leaves=number_of_leaves(forest.max_leaf_nodes, data.n_rows),
            finish=forest._finisher(kind, training),
            look_out=recipe.looks_out,
        )
        self._idle = [self._first_grower.sibling()]
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Plot, (self._recipe, self._data)

    def borrow(self) -> _PlotGrower:
        """A grower that nobody uses; `give_back` it."""
        with self._lock:
            return self._idle.pop() if self._idle else self._first_grower.sibling()

    def give_back(self, grower: _PlotGrower) -> None:
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


def make_plot(recipe: Recipe, blocks: list[MergedColumns], pieces: list[Piece]) -> Plot:
    """Put the pieces of all partitions, in their order, where the training has their rows."""
    n_rows = recipe.training.data.n_rows
    lows = [low for block in blocks for low in block.lows]
    highs = [high for block in blocks for high in block.highs]
    n_codes = np.array([len(low) for low in lows], dtype=np.int64)
    codes = layout_of(n_codes, n_rows)
    begin = 0
    for piece in pieces:
        places = recipe.place_of[begin : begin + piece.n_rows]
        begin += piece.n_rows
        kept = slice(None) if (places >= 0).all() else np.flatnonzero(places >= 0)
        places = places[kept]
        for whole, part in zip(codes[:3], piece.codes[:3], strict=True):
            for k in range(len(whole)):
                whole[k][places] = part[k][kept]
    missing = np.concatenate([block.has_missing for block in blocks])
    categorical = recipe.training.table.is_categorical
    return Plot(recipe, BinnedDataset(codes, n_rows, n_codes, lows, highs, missing, categorical))


# -- errands --


def grow_trees(plot: Plot, numbers: list[int]) -> Crop:
    """The trees of these numbers."""
    grower = plot.borrow()
    try:
        return grower.grow(numbers, is_wanted)
    finally:
        plot.give_back(grower)


def listen_to_trees(plot: Plot, trees: dict[int, PackedTree]) -> dict[int, Unseen]:
    """What trees that have grown before say of the rows that they have not seen."""
    grower = plot.borrow()
    try:
        return {number: grower.listen(tree, number) for number, tree in trees.items()}
    finally:
        plot.give_back(grower)


def place_samples(plot: Plot, trees: dict[int, PackedTree]) -> dict[int, LeafSamples]:
    """The targets in the leaves of each tree."""
    return {number: plot.leaf_samples(tree, number) for number, tree in trees.items()}


def is_wanted() -> bool:
    """Whether somebody still waits for the task that this is."""
    from dask.context import thread_state
    from distributed import get_worker

    try:
        task = get_worker().state.tasks.get(thread_state.key)
    except (ValueError, AttributeError):  # not in a task
        return True
    return task is not None and task.state != "cancelled"
