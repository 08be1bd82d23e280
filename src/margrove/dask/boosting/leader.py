"""The leader of a worker group: sets it up, calls it, and replaces it when a worker is lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove.dask.boosting.bins import ColumnCodes, bundles_of, empty_table
from margrove.dask.boosting.remote_tree import RemoteTree, Survey
from margrove.dask.boosting.worker_program import (
    BoostingSetup,
    GrownTree,
    RootRequest,
    WorkerRows,
)
from margrove.dask.registrations import pickled
from margrove.ensemble.gradient import GradientData
from margrove.ensemble.gradient.hist import GradientTable
from margrove.ensemble.gradient.losses import ROWS_OF_A_SUM, CustomLoss, GradientLoss
from margrove.grove.serve import PackedTree

__all__ = ["BoostingLeader", "RoundStart", "borders_of_runs", "runs_of_rows"]


@dataclass(frozen=True)
class RoundStart:
    """Facts at the start of a round: losses of all tiles in order, and a survey of each score."""

    losses: list[float]
    surveys: list[Survey]


def borders_of_runs(n_train: int, n_workers: int) -> np.ndarray:
    """Borders of the training rows of each worker: runs of about equal length, in whole tiles."""
    n_tiles = max(-(-n_train // ROWS_OF_A_SUM), 1)
    n_runs = min(n_workers, n_tiles)
    borders = [k * n_tiles // n_runs * ROWS_OF_A_SUM for k in range(n_runs)]
    return np.array([*borders, n_train], np.int64)


def runs_of_rows(train: np.ndarray, borders: np.ndarray, n_rows: int) -> list[tuple[int, int]]:
    """The ranges of the table's rows that each worker needs, (first, after the last).

    Training rows ascend. A row that occurs several times may be needed by two workers.
    """
    starts = [0, *(int(train[border]) for border in borders[1:-1])]
    ends = [*starts[1:], n_rows]
    last = [int(train[border - 1]) + 1 if border else 0 for border in borders[1:]]
    return [
        (start, max(end, after_last))
        for start, end, after_last in zip(starts, ends, last, strict=True)
    ]


class BoostingLeader:
    """The client's side of a worker group for boosting.

    Parameters
    ----------
    open_group : callable
        `open_group(train, prepare, lost)` returns a worker group that holds these rows;
        see `BoostingTable.open_group`.
    given : GradientData
        Targets and weights; its X is a `RemoteRows`.
    held_out_rows : int64 array
        Numbers of the held-out rows.
    setup : BoostingSetup
    """

    def __init__(
        self,
        open_group: Callable[..., Any],
        given: GradientData,
        held_out_rows: np.ndarray,
        setup: BoostingSetup,
    ) -> None:
        self._open, self._given, self._held_out = open_group, given, held_out_rows
        self._setup, self._n_rows = setup, len(given.y)
        self._bundles: list[list[int]] | None = None
        self._group: Any = None
        self._sent_loss: GradientLoss | None = None
        self._n_cells = 0
        self.held_out_raw: np.ndarray  # at the start of the current group
        self.restart([])

    @property
    def columns(self) -> list[ColumnCodes]:
        return self._setup.columns

    @property
    def table(self) -> GradientTable:
        """The layout of histograms, without rows."""
        return empty_table(self.columns, self._bundles or [], self._setup.is_category)

    def restart(self, rounds: list[list[PackedTree]], lost: str | None = None) -> None:
        """Continue after these rounds with a new group."""
        self._sent_loss = None
        setup = pickle.dumps(replace(self._setup, rounds=rounds))

        def prepare(group: Any, runs: Sequence[tuple[int, int]]) -> None:
            arguments = [(rows, setup) for rows in self._worker_rows(runs)]
            conflicts = group.call_each("set_up", arguments, reduce="max")
            if self._bundles is None:
                self._bundles = bundles_of(self.columns, conflicts, self._n_rows)
            group.call("lay_out", self._bundles, reduce="none")
            found = group.call("held_out_raw", reduce="list")
            self.held_out_raw = np.concatenate(found, axis=1)

        self._group = self._open(self._given.X.rows, prepare, lost)
        self._n_cells = self.table.n_cells

    def _worker_rows(self, runs: Sequence[tuple[int, int]]) -> list[WorkerRows]:
        given, train = self._given, self._given.X.rows
        borders = borders_of_runs(self._n_rows, len(runs))
        starts = [start for start, _ in runs]
        cuts = np.append(np.searchsorted(self._held_out, starts), len(self._held_out))
        found = []
        for k, start in enumerate(starts):
            run = slice(borders[k], borders[k + 1])
            found.append(
                WorkerRows(
                    train[run] - start,
                    given.y[run],
                    None if given.weight is None else given.weight[run],
                    None if given.copies is None else given.copies[run],
                    self._held_out[cuts[k] : cuts[k + 1]] - start,
                    int(borders[k]),
                )
            )
        return found

    # -- scores --

    def raw(self) -> np.ndarray:
        return np.concatenate(self._group.call("raw", reduce="list"), axis=1)

    def held_out_rows(self) -> Any:
        found = self._group.call("held_out_rows", reduce="list")
        return np.concatenate([_dense(partition) for worker in found for partition in worker])

    # -- a round --

    def _start_sums(self, method: str, message: Any, size: int) -> Any:
        return self._group.start_call(method, pickle.dumps(message, protocol=5), size)

    def _sums(self, order: Any) -> np.ndarray:
        reply: np.ndarray = self._group.finish_call(order)
        return reply if reply.flags.writeable else reply.copy()

    def begin(self, loss: GradientLoss, drawn: np.ndarray | None) -> RoundStart:
        return _round_start(
            self._group.call("begin", *self._round_message(loss, drawn), reduce="list")
        )

    def _round_message(
        self, loss: GradientLoss, drawn: np.ndarray | None
    ) -> tuple[bytes | None, np.ndarray | None]:
        is_known = loss is self._sent_loss
        self._sent_loss = loss
        return None if is_known else _pickled_loss(loss), drawn

    def grow(self, growing: Sequence[RemoteTree], *, with_values: bool) -> Iterator[None]:
        """Grow trees from the root to the leaves; yields before each wait for a reply."""
        yield from self._start_roots(growing)
        while under_way := [tree for tree in growing if not tree.is_grown]:
            yield from self._expand(under_way)
        if with_values:
            yield from self._write_values(growing)

    def _start_roots(self, growing: Sequence[RemoteTree]) -> Iterator[None]:
        """Start the roots; with wide gradients where packed ones are not precise enough."""
        waiting = list(growing)
        while waiting:
            root_requests, size = _root_requests(waiting, self._n_cells)
            order = self._start_sums("start_roots", root_requests, size)
            yield
            reply = self._sums(order)
            waiting = [
                tree
                for tree, request in zip(waiting, root_requests, strict=True)
                if not tree.accept_root(reply[request.at : request.at + 3], reply[request.at + 3 :])
            ]

    def _expand(self, growing: Sequence[RemoteTree]) -> Iterator[None]:
        """Split the rows of some nodes of each tree."""
        orders, taken, size = [], [], 0
        for tree in growing:
            nodes, length = tree.orders()
            orders.append((tree.score, size, nodes))
            taken.append((tree, slice(size, size + length)))
            size += length
        order = self._start_sums("expand", orders, size)
        yield
        reply = self._sums(order)
        for tree, section in taken:
            tree.continue_growth(reply[section])

    def _write_values(self, grown: Sequence[RemoteTree]) -> Iterator[None]:
        """Set the values of leaves from the sums of all workers."""
        requests, taken, size = [], [], 0
        for tree in grown:
            leaves = tree.leaves
            requests.append((tree.score, size, tree.handles_of(leaves), tree.tree.scales.copy()))
            taken.append((tree, leaves, slice(size, size + len(leaves))))
            size += len(leaves)
        order = self._start_sums("leaf_sums", requests, size)
        yield
        sums = self._sums(order)
        for tree, leaves, section in taken:
            tree.write_values(leaves, sums[section])

    def rows_of_leaves(self, tree: RemoteTree, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The training rows of each leaf, ascending, one leaf after the other, and the offsets."""
        found = self._group.call("leaf_rows", tree.score, tree.handles_of(leaves), reduce="list")
        slices = [row_slice for worker in found for row_slice in worker]
        pieces = [row_slice[k] for k in range(len(leaves)) for row_slice in slices]
        sizes = [sum(len(row_slice[k]) for row_slice in slices) for k in range(len(leaves))]
        return np.concatenate(pieces), np.cumsum([0, *sizes])

    def add(
        self,
        grown: Sequence[GrownTree],
        then: tuple[GradientLoss, np.ndarray | None] | None,
    ) -> tuple[np.ndarray, RoundStart | None]:
        """Add trees to the scores.

        Returns the scores of the held-out rows, and the start of the next round if `then` is given.
        """
        order = None if then is None else self._round_message(*then)
        found = self._group.call("add", pickle.dumps(list(grown)), order, reduce="list")
        held_out = np.concatenate([raw for raw, _ in found], axis=1)
        round_start = None if then is None else _round_start([start for _, start in found])
        return held_out, round_start


def _round_start(found: list[list[Any]]) -> RoundStart:
    slices = [row_slice for worker in found for row_slice in worker]
    losses = [loss for tile_losses, _, _ in slices for loss in tile_losses]
    largest = np.max([slice_largest for _, slice_largest, _ in slices], axis=0)
    samples = np.sum([slice_counts[:, 0] for _, _, slice_counts in slices], axis=0)
    copies = np.max([slice_counts[:, 1] for _, _, slice_counts in slices], axis=0)
    counts = np.stack([samples, copies], axis=1)
    return RoundStart(losses, [Survey(*score) for score in zip(largest, counts, strict=True)])


def _root_requests(growing: Sequence[RemoteTree], n_cells: int) -> tuple[list[RootRequest], int]:
    found, at = [], 0
    for tree in growing:
        in_words = tree.root_in_words
        copies = int(tree.survey.counts[1])
        found.append(RootRequest(tree.score, tree.is_wide, copies, tree.scales(), in_words, at))
        at += 3 + (n_cells if in_words else 3 * n_cells)
    return found, at


def _pickled_loss(loss: GradientLoss) -> bytes:
    """A loss of margrove by reference; one of the user as `registrations.pickled` does it."""
    is_margrove = type(loss).__module__.startswith("margrove.") and not isinstance(loss, CustomLoss)
    return pickle.dumps(loss) if is_margrove else pickled(loss)


def _dense(partition: Any) -> np.ndarray:
    return np.asarray(partition.toarray() if hasattr(partition, "toarray") else partition)
