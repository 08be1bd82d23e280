"""Grows the trees of a forest on several cores: a process for `slices.drive`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from margrove._runtime import (
    SLICE_SECONDS,
    MisfitError,
    run_tiles,
    spread,
    whole_number,
)
from margrove.ensemble.bootstrap import stream, streams
from margrove.ensemble.forest.out_of_bag import OutOfBag
from margrove.ensemble.forest.registered_trees import RegisteredTree
from margrove.ensemble.forest.training_data import ForestTraining, Sampler
from margrove.grove.grow import ForestTreeBuilder, Rules, columns_of
from margrove.grove.grow.search import CustomSearch
from margrove.grove.serve import Kind, PackedTree, TreeForm, cuts_of, leaves_of_some

__all__ = ["ForestGrower", "SpreadGrower", "key_of"]

# After this much work, a millisecond or so, a worker checks the time: at the end of a slice all
# workers wait for the last one.
_WORK_AT_ONCE = 500_000.0
_MANY_COLUMNS = 128  # from here on, codes are stored row by row: a row has several cache lines
# Small trees grow together, in compiled calls of some milliseconds.
_MOST_ROWS = 4096  # of a small tree
_CELLS_OF_A_TREE = 1 << 16  # rows times features of a small tree, at most
_CELLS_AT_ONCE = 1 << 18  # of trees that grow together
_MOST_AT_ONCE = 32  # trees that grow together
_CHUNKS = 4  # for each worker process, so that all of them end at about the same time
_TREES_AND_DRAWS = 0x9E3779B9  # separates the random numbers of trees and samples


def key_of(seed: int, tree: int) -> int:
    """The key of the random numbers in the nodes of a tree."""
    return int(stream(seed ^ _TREES_AND_DRAWS, tree))


class ForestGrower:
    """Grows trees `first` .. `last` - 1 of a forest, each a function of the seed and its number.

    Each worker grows one tree at a time. `advance` appends at most one tree to `trees`, in the
    order of their numbers. `rules(weight)` gives the rules of a tree whose sample has that weight.
    `out_of_bag` sums up out-of-bag predictions, and `is_enough(out_of_bag)` says whether to stop.
    `wants_out_of_bag` finds the out-of-bag leaves even without it. `search` finds splits by a
    registered criterion.
    """

    unit = "tree"
    limit = "n_estimators"

    def __init__(
        self,
        training: ForestTraining,
        sampler: Sampler,
        rules: Callable[[int], Rules],
        kind: Kind,
        first: int,
        last: int,
        *,
        max_leaves: int = 0,
        n_threads: int = 1,
        finish: Callable[[PackedTree], PackedTree] | None = None,
        out_of_bag: OutOfBag | None = None,
        is_enough: Callable[[OutOfBag], bool] | None = None,
        wants_out_of_bag: bool = False,
        search: CustomSearch | None = None,
    ) -> None:
        self.total: int | None = last - first
        self._first, self._last = first, last
        self._training, self._rules_of, self._kind = training, rules, kind
        self._rules = rules(sampler.most)
        self._max_leaves, self._search = max_leaves, search
        self._finish = finish
        self._out_of_bag, self._is_enough = out_of_bag, is_enough
        self._wants_out_of_bag = wants_out_of_bag or out_of_bag is not None
        self._sampler = sampler
        self._columns = columns_of(
            training.data,
            with_values=self._rules.random,
            row_major=len(training.data.codes.narrow) >= _MANY_COLUMNS,
        )
        self._cuts = cuts_of(training.data)
        self._at_once = self._trees_at_once(last - first, n_threads)
        # No locks, because an interrupt could come while one is held. Counting and storing are
        # atomic steps of the interpreter.
        self._numbers: Iterator[int] = itertools.count(first)
        self._grown: dict[int, tuple[PackedTree, Any]] = {}
        self._current: list[int] = [-1] * min(n_threads, last - first)
        self._builders: list[ForestTreeBuilder | RegisteredTree | None] = [None] * len(
            self._current
        )
        self.trees: list[PackedTree] = []
        self._halved: dict[int, int] = {}
        self._enough = False
        self._n_nodes = 0

    def add_to_out_of_bag(self, earlier: list[PackedTree]) -> None:
        """Add the out-of-bag predictions of existing trees, numbered from 0."""
        if self._out_of_bag is not None:
            for number, tree in enumerate(earlier):
                self._out_of_bag.add(tree, *self._out_of_bag_leaves(tree, number))

    @property
    def n_balanced(self) -> int:
        """The number of splits that halve a very deep node instead of reducing the impurity."""
        return sum(self._halved.values())

    @property
    def rounds(self) -> int:
        return len(self.trees)

    @property
    def finished(self) -> bool:
        return self._enough or self._first + len(self.trees) >= self._last

    def figures(self) -> dict[str, float]:
        figures = {"nodes": float(self._n_nodes)}
        if self._out_of_bag is not None and self.trees:
            figures["out-of-bag error"] = self._out_of_bag.error()
        return figures

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Grow for one time slice if needed; then append the next tree, if it has grown."""
        if self._first + len(self.trees) not in self._grown:
            self._grow_for_a_while()
        self._show_next()
        return work

    def _grow_for_a_while(self) -> None:
        deadline = time.monotonic() + SLICE_SECONDS
        run_tiles(lambda k: self._work(k, deadline), len(self._current), len(self._current))

    def state(self) -> dict[str, Any]:
        """All trees that have grown, including those that wait for trees of lower numbers."""
        waiting = sorted(self._grown.items())
        shown = range(self._first, self._first + len(self.trees))
        numbers = [*shown, *(number for number, _ in waiting)]
        trees = [*self.trees, *(tree for _, (tree, _) in waiting)]
        return {
            "first": self._first,
            "seed": int(self._training.sampled.seed),
            "n_shown": len(self.trees),
            "numbers": numbers,
            "trees": [TreeForm.values(tree) for tree in trees],
            "halved": [self._halved[number] for number in numbers],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the trees of `state`; their out-of-bag predictions are computed again."""
        form = TreeForm(self._kind, int(self._training.table.X.shape[1]))
        numbers = [
            whole_number(number, "a number", self._first, self._last - 1)
            for number in state["numbers"]
        ]
        trees = form.trees(state["trees"])
        n_shown = whole_number(state["n_shown"], "n_shown", most=len(trees))
        shown = list(range(self._first, self._first + n_shown))
        if not len(numbers) == len(set(numbers)) == len(trees) == len(state["halved"]):
            raise MisfitError("there are not as many trees as numbers of trees")
        if numbers[:n_shown] != shown:
            raise MisfitError("a tree is missing")
        for number, tree, halved in zip(numbers, trees, state["halved"], strict=True):
            unseen = self._out_of_bag_leaves(tree, number) if self._wants_out_of_bag else None
            self._grown[number] = (tree, unseen)
            self._halved[number] = whole_number(halved, "halved")
        for _ in shown:
            self._show_next()
        done = set(numbers)
        left = [number for number in range(self._first, self._last) if number not in done]
        self._numbers = itertools.chain(left, itertools.count(self._last))

    def grow_all(self) -> tuple[dict[int, tuple[PackedTree, Any]], dict[int, int]]:
        """Grow all trees in this thread: (tree, out-of-bag leaves) and halved nodes by number."""
        self._work(0, float("inf"))
        return self._grown, self._halved

    def _show_next(self) -> None:
        number = self._first + len(self.trees)
        if number not in self._grown:
            return
        tree, unseen = self._grown[number]
        if self._out_of_bag is not None:
            self._out_of_bag.add(tree, *unseen)
            self._enough = self._is_enough is not None and self._is_enough(self._out_of_bag)
        self.trees.append(tree)
        self._n_nodes += len(tree)
        del self._grown[number]

    def _trees_at_once(self, n_trees: int, n_threads: int) -> int:
        """How many trees a worker grows together; 0 for trees that are not small."""
        n = self._training.data.n_rows
        cells = n * min(self._rules.max_features, self._training.data.n_features)
        is_small = n <= _MOST_ROWS and cells <= _CELLS_OF_A_TREE
        if not (is_small and self._sampler.is_plain and self._sampler.most < 2**31):
            return 0
        fair = -(-n_trees // n_threads)
        return max(1, min(fair, _MOST_AT_ONCE, _CELLS_AT_ONCE // max(1, cells)))

    def _work(self, worker: int, deadline: float) -> None:
        """The loop of one worker: grow some trees, then take the next, until the deadline."""
        if self._at_once > 0:
            builder = self._builder(worker)
            if isinstance(builder, ForestTreeBuilder) and builder.takes_many:
                self._work_together(builder, deadline)
                return
        while True:
            if self._current[worker] < 0 and not self._take(worker):
                return
            builder = self._builder(worker)
            while not builder.finished:
                builder.advance(_WORK_AT_ONCE)
                if time.monotonic() >= deadline and not builder.finished:
                    return
            self._keep(self._current[worker], builder.packed(), builder.n_balanced)
            self._current[worker] = -1
            if time.monotonic() >= deadline:
                return

    def _work_together(self, builder: ForestTreeBuilder, deadline: float) -> None:
        """`_work` for small trees: many of them in one compiled call."""
        seed = self._training.sampled.seed
        while True:
            taken = list(itertools.islice(self._numbers, self._at_once))
            numbers = np.array([number for number in taken if number < self._last], np.int64)
            if not len(numbers) or self._enough:
                return
            weights = self._sampler.weights_of_trees(numbers)
            keys = streams(seed ^ _TREES_AND_DRAWS, numbers)
            rules = self._rules_of(int(weights[0].sum()))
            trees, halved = builder.grow_all(weights, keys, rules)
            for number, tree, n_balanced in zip(numbers.tolist(), trees, halved, strict=True):
                self._keep(number, tree, n_balanced)
            if time.monotonic() >= deadline:
                return

    def _keep(self, number: int, tree: PackedTree, n_balanced: int) -> None:
        """A tree that has grown, with its out-of-bag leaves."""
        if self._finish is not None:
            tree = self._finish(tree)
        unseen = self._out_of_bag_leaves(tree, number) if self._wants_out_of_bag else None
        self._halved[number] = n_balanced
        self._grown[number] = (tree, unseen)

    def _take(self, worker: int) -> bool:
        """Start the next tree; False if there is none."""
        number = next(self._numbers)
        if number >= self._last or self._enough:
            return False
        weight, samples = self._sampler.weights(number)
        key = key_of(self._training.sampled.seed, number)
        rules = self._rules_of(int(weight.sum()))
        self._builder(worker).start(weight, samples, key, rules)
        self._current[worker] = number
        return True

    def _builder(self, worker: int) -> ForestTreeBuilder | RegisteredTree:
        builder = self._builders[worker]
        if builder is None:
            builder = self._builders[worker] = self._new_builder()
        return builder

    def _new_builder(self) -> ForestTreeBuilder | RegisteredTree:
        data = self._training.data
        targets = self._training.targets._replace(
            unit=self._sampler.unit, counted=self._sampler.counted
        )
        if self._search is not None:
            return RegisteredTree(
                data, self._columns, targets, self._rules, self._kind, self._search,
                max_leaves=self._max_leaves,
            )  # fmt: skip
        return ForestTreeBuilder(
            data,
            self._columns,
            targets,
            self._rules,
            self._kind.n_categories,
            max_leaves=self._max_leaves,
            cuts=self._cuts,
            weights_count=self._sampler.weights_count,
        )

    def _out_of_bag_leaves(self, tree: PackedTree, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The leaf of each out-of-bag row, -1 for others, and how many of its units are unseen."""
        left_out = self._sampler.left_out(number)
        leaves = np.full(len(left_out), -1, np.int32)
        places = np.flatnonzero(left_out)
        order = self._training.order
        found = np.full(self._training.table.X.shape[0], -1, np.int32)
        leaves_of_some(tree, self._training.table.X, order[places], self._kind, found)
        leaves[places] = found[order[places]]
        return leaves, left_out


class SpreadGrower(ForestGrower):
    """The same forest, grown by the workers of the active joblib backend, each with one thread.

    The training data are sent to each worker once; see `margrove._runtime.process_tasks`.
    """

    def __init__(self, *given: Any, n_threads: int, **options: Any) -> None:
        super().__init__(*given, n_threads=1, **options)
        self._n_workers = max(1, n_threads)
        self._results: Iterator[Any] | None = None

    def _sent_out(self) -> Iterator[Any]:
        """Results for the missing trees, in chunks of consecutive numbers."""
        wanted = list(itertools.takewhile(lambda number: number < self._last, self._numbers))
        size = max(1, len(wanted) // (_CHUNKS * self._n_workers))
        options = {
            "max_leaves": self._max_leaves, "finish": self._finish, "search": self._search,
            "wants_out_of_bag": self._wants_out_of_bag,
        }  # fmt: skip
        shared = (self._training, self._sampler, self._rules_of, self._kind), options
        return spread(_grow_some, shared, _runs(wanted, size), self._n_workers)

    def _grow_for_a_while(self) -> None:
        if self._results is None:
            self._results = self._sent_out()
        grown, halved = next(self._results)
        self._grown |= grown
        self._halved |= halved


def _runs(numbers: list[int], size: int) -> list[tuple[int, int]]:
    """Ascending numbers as runs (first, end) of consecutive numbers, at most `size` in each."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number and number - runs[-1][0] < size:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


def _grow_some(
    shared: tuple[tuple[Any, ...], dict[str, Any]], first: int, last: int
) -> tuple[dict[int, tuple[PackedTree, Any]], dict[int, int]]:
    """Grow trees first .. last - 1 in a worker process."""
    (training, sampler, rules, kind), options = shared
    return ForestGrower(training, sampler, rules, kind, first, last, **options).grow_all()
