"""The program of a worker for boosting: sums over its rows, which the leader requests.

Replies are whole numbers, which are added up on their way, or short lists. If a worker may use
several threads, its rows are cut into slices, one a thread. Messages for compiled code are sent as
pickles, because the kernels are compiled for writable arrays. `WorkerRows` are not: they are too
large to be copied.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from margrove.dask.boosting.bins import ColumnCodes
from margrove.dask.boosting.coded_partitions import CodedRows
from margrove.dask.partitions import is_on_disk, loaded, release_memory
from margrove.dask.registrations import unpickled
from margrove.ensemble.gradient import SoFar, add_trees
from margrove.ensemble.gradient.hist import GradientTable, nodes
from margrove.ensemble.gradient.hist import shards as kernels
from margrove.ensemble.gradient.losses import ROWS_OF_A_SUM, GradientLoss
from margrove.grove.serve import Kind, PackedTree

__all__ = [
    "BoostingProgram",
    "BoostingSetup",
    "GrownTree",
    "RootRequest",
    "WorkerRows",
]

_NO_WORDS = np.empty(0, np.int64)
_FIRST_NODES = 64  # capacity of a new tree


@dataclass(frozen=True)
class WorkerRows:
    """The rows of one worker, by their numbers within its shard.

    train      int64 (n,)  training rows, with their y, weight and copies
    held_out   int64 (m,)  held-out rows, for early stopping
    first      the number of the first training row among those of all workers
    """

    train: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    copies: np.ndarray | None
    held_out: np.ndarray
    first: int


@dataclass(frozen=True)
class BoostingSetup:
    """What all workers need at the start.

    rounds       trees since `so_far`, after a worker group was lost
    """

    columns: list[ColumnCodes]
    is_category: np.ndarray
    kind: Kind
    so_far: SoFar
    rounds: list[list[PackedTree]] = field(default_factory=list)


@dataclass(frozen=True)
class RootRequest:
    """How gradients of a score become whole numbers, and where its sums start in the reply."""

    score: int
    is_wide: bool
    copies: int
    scales: np.ndarray
    in_words: bool
    at: int


@dataclass(frozen=True)
class GrownTree:
    """A grown tree: the numbers of its leaves, and their values.

    nodes      NODE (nodes,), if there are rows that it was not grown on
    packed     the same tree, if there are held-out rows
    """

    score: int
    handles: np.ndarray
    values: np.ndarray
    nodes: np.recarray | None
    packed: PackedTree | None


class _RowSlice:
    """The rows of one thread."""

    def __init__(self, given: CodedRows, rows: WorkerRows, setup: BoostingSetup) -> None:
        self._given, self._worker_rows, self._setup = given, rows, setup
        so_far = setup.so_far, setup.rounds, setup.kind
        self.raw = given.raw(rows.train, *so_far)
        self.held_out = given.held_out(rows.held_out)
        starts = [piece.raw(*so_far) for piece in self.held_out]
        self.held_out_raw = np.concatenate([self.raw[:, :0], *starts], axis=1)
        self._n = len(rows.train)
        shape = self.raw.shape
        self._gradient, self._hessian = np.empty(shape), np.empty(shape)
        self._everyone = np.arange(self._n, dtype=np.int32)
        self._rows, self._others = self._everyone, self._everyone[:0]
        self._trees: dict[int, nodes.BoostedTree] = {}
        self._sources: dict[int, nodes.Source] = {}
        self._reply = np.empty(0, np.int64)
        self._table: GradientTable
        self._space: nodes.Workspace

    def conflicts(self) -> np.ndarray:
        return self._given.conflicts(self._worker_rows.train)

    def lay_out(self, bundles: list[list[int]]) -> None:
        """Put the codes into a table; the numbers of the rows are not needed after that."""
        self._table = self._given.table(self._worker_rows.train, bundles, self._setup.is_category)
        self._space = nodes.new_workspace(self._table, 1, 1, 1)
        self._worker_rows = replace(self._worker_rows, train=self._worker_rows.train[:0].copy())

    # -- a round --

    def begin(
        self, loss: GradientLoss, drawn: np.ndarray | None
    ) -> tuple[list[float], np.ndarray, np.ndarray]:
        """Losses tile by tile; the largest gradients (scores, 2), and counts (scores, 2)."""
        losses = self._derive(loss)
        self._rows, self._others = self._everyone, self._everyone[:0]
        if drawn is not None:
            numbers = drawn[np.searchsorted(drawn, self._worker_rows.first) :]
            numbers = (
                numbers[: np.searchsorted(numbers, self._worker_rows.first + self._n)]
                - self._worker_rows.first
            )
            self._rows = numbers.astype(np.int32)
            self._others = np.setdiff1d(self._everyone, self._rows, assume_unique=True)
        k = len(self.raw)
        largest, counts = np.zeros((k, 2)), np.ones((k, 2), np.int64)
        for score in range(k):
            kernels.find_largest_of_rows(self._source(score), largest[score], counts[score])
        return losses, largest, counts

    def _derive(self, loss: GradientLoss) -> list[float]:
        rows = self._worker_rows
        losses = loss.derive(
            rows.y, self.raw, rows.weight, self._gradient, self._hessian, np.empty(self._n)
        )
        if loss.differs_from_mean:
            self._hessian[:] = 1.0 if rows.weight is None else rows.weight
        return losses

    def _source(self, score: int) -> nodes.Source:
        return nodes.Source(
            self._rows,
            self._gradient[score],
            self._hessian[score],
            _NO_WORDS if self._worker_rows.copies is None else self._worker_rows.copies,
            self.raw[score],
            _NO_WORDS,
            _NO_WORDS,
            _NO_WORDS,
        )

    # -- trees --

    def reply_buffer(self, shape: Any) -> np.ndarray:
        """An array of zeros in reused memory, which is several times as fast as new memory."""
        size = int(np.prod(shape))
        if len(self._reply) < size:
            self._reply = np.empty(2 * size, np.int64)
        reply = self._reply[:size]
        reply[:] = 0
        return reply.reshape(shape)

    def start_roots(self, root_requests: Sequence[RootRequest], reply: np.ndarray) -> None:
        for request in root_requests:
            source = self._sources[request.score] = self._with_numbers(request)
            tree = self._trees[request.score] = self._new_tree(request.score)
            kernels.write_rows(
                source, request.is_wide, request.copies, request.scales[0], request.scales[1], tree,
                reply[request.at : request.at + 3],
            )  # fmt: skip
            kernels.count_root(
                self._table, source, tree, self._space, request.in_words, reply[request.at + 3 :]
            )

    def _with_numbers(self, request: RootRequest) -> nodes.Source:
        """The source with arrays for gradients as whole numbers, reused from the last tree."""
        source, last = self._source(request.score), self._sources.get(request.score)
        names = ("g", "h") if request.is_wide else ("packed",)
        for name in names:
            buffer = None if last is None else getattr(last, name)
            if buffer is None or len(buffer) != self._n:
                buffer = np.empty(self._n, np.int64)
            source = source._replace(**{name: buffer})
        return source

    def _new_tree(self, score: int) -> nodes.BoostedTree:
        n, last = len(self._rows), self._trees.get(score)
        if last is None or len(last.rows) != n:
            return nodes.new_tree(n, _FIRST_NODES, 1, 0)
        last.state[:] = np.zeros((), nodes.STATE)
        return last

    def expand(self, orders: Sequence[tuple[int, int, np.ndarray]], reply: np.ndarray) -> None:
        """Split nodes; for each score, the start of its section of the reply, and orders."""
        for score, at, wanted in orders:
            tree = self._trees[score] = _with_capacity(self._trees[score], 2 * len(wanted))
            kernels.split_nodes(
                self._table, self._sources[score], tree, self._space, wanted, reply[at:]
            )

    def leaf_sums(
        self, leaves: Sequence[tuple[int, int, np.ndarray, np.ndarray]], reply: np.ndarray
    ) -> None:
        """Sum over leaves; for each score, the start of its section, leaves, and scales."""
        for score, at, handles, scales in leaves:
            kernels.add_up_leaves(
                self._sources[score], self._trees[score], handles, scales, reply[at:]
            )

    def leaf_rows(self, score: int, handles: np.ndarray) -> list[np.ndarray]:
        """The rows of each leaf, ascending, by their numbers among those of all workers.

        They are sorted because a split that was undone has changed the order of a leaf's rows.
        """
        tree = self._trees[score]
        starts, ends = tree.nodes.start[handles], tree.nodes.end[handles]
        return [
            np.sort(tree.rows[start:end]) + self._worker_rows.first
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def add(self, grown: Sequence[GrownTree]) -> None:
        """Add the values of trees to the scores of all rows."""
        for grown_tree in grown:
            raw, tree = self.raw[grown_tree.score], self._trees[grown_tree.score]
            kernels.add_leaves(tree, grown_tree.handles, grown_tree.values, raw)
            if grown_tree.nodes is not None and len(self._others):
                complete_tree = tree._replace(nodes=grown_tree.nodes)
                kernels.add_to_others(self._table, complete_tree, self._others, raw)
        packed = [
            (grown_tree.score, grown_tree.packed)
            for grown_tree in grown
            if grown_tree.packed is not None
        ]
        if packed:
            self._add_to_held_out(packed)

    def _add_to_held_out(self, packed: Sequence[tuple[int, PackedTree]]) -> None:
        start = 0
        for piece in self.held_out:
            X = loaded(piece.X)
            piece_rows = slice(start, start + X.shape[0])
            for score, tree in packed:
                add_trees([tree], X, self._setup.kind, self.held_out_raw[score, piece_rows])
            start = piece_rows.stop


def _with_capacity(tree: nodes.BoostedTree, n_more: int) -> nodes.BoostedTree:
    """The same tree with capacity for `n_more` further nodes."""
    n = tree.n_nodes + n_more
    if n <= len(tree.nodes):
        return tree
    larger = nodes.new_tree(0, n, 1, 0)
    larger.nodes[: len(tree.nodes)] = tree.nodes
    return larger._replace(rows=tree.rows, spare=tree.spare, state=tree.state)


class BoostingProgram:
    """A program for `collective.worker_group`; its pieces are those of coded partitions."""

    takes = "pieces"

    def __init__(self, rows: Any) -> None:
        self._given = rows
        self._n_threads = max(int(rows.n_threads), 1)
        # Starting a thread takes as long as a step.
        self._threads = ThreadPoolExecutor(self._n_threads)
        self._slices: list[_RowSlice] = []
        self._setup: BoostingSetup
        self._loss: GradientLoss

    def set_up(self, worker_rows: WorkerRows, setup: bytes) -> np.ndarray:
        """Set up the rows; returns which sparse columns cannot share a byte."""
        self._setup = pickle.loads(setup)
        slices = _sliced(worker_rows, self._n_threads)
        given = CodedRows(self._given.X, self._setup.columns)
        self._slices = self._at_once(lambda rows: _RowSlice(given, rows, self._setup), slices)
        found: np.ndarray = np.max(self._each(lambda row_slice: row_slice.conflicts()), axis=0)
        return found

    def lay_out(self, bundles: list[list[int]]) -> int:
        self._each(lambda row_slice: row_slice.lay_out(bundles))
        if any(is_on_disk(partition) for partition, *_ in self._given.X):
            release_memory()
        return 0

    def raw(self) -> np.ndarray:
        return np.concatenate([row_slice.raw for row_slice in self._slices], axis=1)

    def held_out_raw(self) -> np.ndarray:
        return np.concatenate([row_slice.held_out_raw for row_slice in self._slices], axis=1)

    def held_out_rows(self) -> Any:
        """The held-out rows, for scorers that need them."""
        return [loaded(piece.X) for row_slice in self._slices for piece in row_slice.held_out]

    def begin(self, loss: bytes | None, drawn: np.ndarray | None) -> list[Any]:
        """See `_RowSlice.begin`; None stands for the loss of the last round."""
        if loss is not None:
            self._loss = unpickled(loss, "the loss")
        return self._each(lambda row_slice: row_slice.begin(self._loss, drawn))

    def start_roots(self, root_requests: bytes, size: int) -> np.ndarray:
        requests = pickle.loads(root_requests)
        return self._summed(size, lambda row_slice, reply: row_slice.start_roots(requests, reply))

    def expand(self, orders: bytes, size: int) -> np.ndarray:
        requests = pickle.loads(orders)
        return self._summed(size, lambda row_slice, reply: row_slice.expand(requests, reply))

    def leaf_sums(self, leaves: bytes, size: int) -> np.ndarray:
        requests = pickle.loads(leaves)
        return self._summed(
            (size, 2), lambda row_slice, reply: row_slice.leaf_sums(requests, reply)
        )

    def leaf_rows(self, score: int, handles: np.ndarray) -> list[Any]:
        return self._each(lambda row_slice: row_slice.leaf_rows(score, handles))

    def add(self, grown: bytes, then: tuple[bytes | None, np.ndarray | None] | None) -> Any:
        """Add trees; returns raw scores of the held-out rows, and the start of the next round."""
        trees = pickle.loads(grown)
        self._each(lambda row_slice: row_slice.add(trees))
        return self.held_out_raw(), None if then is None else self.begin(*then)

    def _each(self, do: Callable[[_RowSlice], Any]) -> list[Any]:
        return self._at_once(do, self._slices)

    def _at_once(self, do: Callable[[Any], Any], things: Sequence[Any]) -> list[Any]:
        if len(things) == 1:
            return [do(things[0])]
        return list(self._threads.map(do, things))

    def _summed(self, shape: Any, do: Callable[[_RowSlice, np.ndarray], None]) -> np.ndarray:
        """The sum of the replies of all slices; the next reply reuses its memory."""

        def reply_of(row_slice: _RowSlice) -> np.ndarray:
            reply = row_slice.reply_buffer(shape)
            do(row_slice, reply)
            return reply

        total, *others = self._each(reply_of)
        for other in others:
            total += other
        found: np.ndarray = total
        return found


def _sliced(rows: WorkerRows, n_threads: int) -> list[WorkerRows]:
    """The rows in slices for `n_threads` threads, cut at borders of tiles."""
    n = len(rows.train)
    n_tiles = max(-(-n // ROWS_OF_A_SUM), 1)
    n_slices = min(n_threads, n_tiles)
    borders = [min(k * n_tiles // n_slices * ROWS_OF_A_SUM, n) for k in range(n_slices)] + [n]
    no_rows = rows.held_out[:0]
    return [
        WorkerRows(
            rows.train[start:end],
            rows.y[start:end],
            None if rows.weight is None else rows.weight[start:end],
            None if rows.copies is None else rows.copies[start:end],
            rows.held_out if start == 0 else no_rows,
            rows.first + start,
        )
        for start, end in itertools.pairwise(borders)
    ]
