"""What a worker runs: the rounds of boosting on its rows, with sums over those of all workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from margrove.dask.members import Member
from margrove.dask.partitions import PartitionOnDisk
from margrove.dask.registrations import Registration, register_on_worker, unpickled
from margrove.ensemble.gradient import GradientData, HeldOut, PiecedRows, PieceOfRows, SoFar
from margrove.grove.serve import PackedTree
from margrove.grove.table import TreeTable

__all__ = ["OwnRows", "RoundReport", "Task", "boost"]


@dataclass(frozen=True)
class Task:
    """What all workers need.

    n_columns       the number of columns of X
    model           the local estimator, pickled: its parameters
    registrations   losses of the user that it names
    new_numbers     see `PiecedRows`
    """

    n_columns: int
    model: bytes
    registrations: list[Registration]
    so_far: SoFar
    seed: int
    stops_early: bool
    feature_names: np.ndarray | None
    categories: dict[int, np.ndarray]
    new_numbers: dict[int, np.ndarray]
    classes: np.ndarray | None
    scale: float


@dataclass(frozen=True)
class OwnRows:
    """Training rows, or validation rows, of one worker.

    chosen    for each of its blocks, int32 numbers of rows, ascending; None for all
    numbers   int64 (n,)  their numbers among those of all workers, if their order matters
    the others as in `GradientData`
    """

    chosen: list[np.ndarray | None]
    numbers: np.ndarray | None
    y: np.ndarray
    weight: np.ndarray | None
    copies: np.ndarray | None = None
    places: np.ndarray | None = None


@dataclass(frozen=True)
class RoundReport:
    """A complete round; the first report, before any round, has no trees.

    loss    of the training set, after the round
    score   of the monitor, likewise; None without one
    """

    trees: list[PackedTree] = field(default_factory=list)
    loss: float = np.nan
    score: float | None = None


def boost(member: Member, task: Task, own: OwnRows, held_out: OwnRows | HeldOut | None) -> None:
    """Run all rounds, and report each of them."""
    register_on_worker(task.registrations)
    model = unpickled(task.model, "the estimator")
    model.n_jobs = member.n_threads
    process = model._process(
        _training_rows(member, task, own),
        _held_out_rows(member, task, held_out),
        task.so_far,
        task.seed,
        task.stops_early,
        member.collective,
    )
    member.report(_report_of(process))
    while not process.finished:
        n_rounds = process.rounds
        while process.rounds == n_rounds:
            process.advance(np.inf)
        member.report(_report_of(process))


def _report_of(process: Any) -> RoundReport:
    """Report the last round; the loss after it is that before the next one."""
    process.prepare()
    trees = process.trees[-1] if process.trees else []
    score = None if process.monitor is None else process.monitor.scores[-1]
    return RoundReport(trees, process.losses[process.first + process.rounds], score)


def _table(member: Member, task: Task, chosen: list[np.ndarray | None]) -> PiecedRows:
    pieces = [
        PieceOfRows(block.X, block.n_rows, rows)
        for block, rows in zip(member.blocks, chosen, strict=True)
    ]
    return PiecedRows(pieces, task.n_columns, task.new_numbers)


def _training_rows(member: Member, task: Task, own: OwnRows) -> GradientData:
    return GradientData(
        TreeTable(_table(member, task, own.chosen), task.feature_names, task.categories),
        own.y,
        own.weight,
        own.copies,
        task.classes,
        task.scale,
        own.numbers,
        own.places,
    )


def _held_out_rows(member: Member, task: Task, own: OwnRows | HeldOut | None) -> HeldOut | None:
    if not isinstance(own, OwnRows):
        return own
    X: Any = _table(member, task, own.chosen)
    if any(block.is_on_disk for block in member.blocks):
        X = replace(X, pieces=[_stored(piece) for piece in X.pieces if len(piece)])
    else:
        X = X[:]  # predictions of rows in one piece are faster
    return HeldOut(X, own.y, own.weight, own.numbers)


def _stored(piece: PieceOfRows) -> PieceOfRows:
    """The rows in a file of their own, because each round reads them."""
    rows = PartitionOnDisk(piece.rows(0, len(piece)))
    return PieceOfRows(rows.rows, len(piece))
