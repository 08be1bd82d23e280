"""Shards: the rows that each worker of a group holds."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.dask.partitions.disk_storage import (
    PartitionOnDisk,
    is_on_disk,
    release_memory,
    rows_of_partition,
)

__all__ = [
    "RowsOnDisk",
    "Shard",
    "ShardRows",
    "assign_workers",
    "pieces_of_rows",
    "pieces_of_shard",
    "plan_shards",
    "rows_of_shard",
    "shards_in_place",
    "tiles_of_shard",
]

# Rows on disk that are read at a time. Vectors of this length are allocated from memory of the
# process. With Dask's settings of malloc, longer ones are requested from the system each time,
# which takes about twice as long.
_TILE_ROWS = 16_000
_TILE_BYTES = 32_000_000


@dataclass(frozen=True)
class Shard:
    """A run of rows, and the pieces of partitions that contain them.

    worker   the address of the worker that holds it
    pieces   (number of the partition, its first row, the row after the last)
    starts   the first row of each piece in the table; empty if the pieces are consecutive,
             otherwise some rows between start and stop may belong to other shards
    """

    worker: str
    start: int
    stop: int
    pieces: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...] = ()

    def first_rows(self) -> list[int]:
        """The first row of each piece in the table."""
        if self.starts:
            return list(self.starts)
        lengths = [last - first for _, first, last in self.pieces]
        return [self.start + before for before in itertools.accumulate([0, *lengths[:-1]])]


def plan_shards(
    lengths: np.ndarray,
    workers: Sequence[str],
    where: Sequence[Sequence[str]] | None = None,
    multiple: int = 1,
) -> list[Shard]:
    """Cut the rows of a table into one run for each worker, of about equal lengths.

    Parameters
    ----------
    lengths : int array (n_partitions,)
        Rows of each partition.
    workers : addresses
    where : for each partition, the workers that hold it already; None if that does not matter
        Runs go to workers that hold as many of their rows as possible.
    multiple : int, default=1
        Runs start at multiples of this number of rows. If there are fewer multiples than workers,
        some workers get no rows.

    Returns
    -------
    list of Shard
        In the order of the rows. The runs depend only on `lengths`, `multiple` and the number of
        workers.

    Examples
    --------
    >>> import numpy as np
    >>> for shard in plan_shards(np.array([5, 0, 7]), ["a", "b"], [["b"], ["b"], ["a"]]):
    ...     print(shard.worker, shard.start, shard.stop, shard.pieces)
    b 0 6 ((0, 0, 5), (2, 0, 1))
    a 6 12 ((2, 1, 7),)
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    n_rows = int(lengths.sum())
    n_tiles = -(-n_rows // multiple)
    n_runs = max(1, min(len(workers), n_tiles))
    borders = [min(n_rows, (i * n_tiles // n_runs) * multiple) for i in range(n_runs)] + [n_rows]
    runs = [
        (start, stop, pieces_of_rows(lengths, start, stop))
        for start, stop in itertools.pairwise(borders)
    ]
    hosts = assign_workers([pieces for _, _, pieces in runs], list(workers), where)
    return [Shard(host, *run) for host, run in zip(hosts, runs, strict=True)]


def shards_in_place(
    lengths: np.ndarray, workers: Sequence[str], where: Sequence[Sequence[str]]
) -> list[Shard]:
    """One shard for each worker, of the partitions that it holds, so that none is sent.

    Shards may differ in size, and their rows need not be consecutive. Workers without partitions
    get no shard. A partition that no worker holds goes to the worker with the fewest rows.

    Examples
    --------
    >>> import numpy as np
    >>> for shard in shards_in_place(np.array([5, 2, 7]), ["a", "b"], [["b"], ["a"], ["b"]]):
    ...     print(shard.worker, shard.pieces, shard.starts)
    b ((0, 0, 5), (2, 0, 7)) (0, 7)
    a ((1, 0, 2),) (5,)
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    held: dict[str, list[int]] = {worker: [] for worker in workers}
    rows = dict.fromkeys(workers, 0)
    for k in np.flatnonzero(lengths).tolist():
        holders = [worker for worker in where[k] if worker in rows] or list(workers)
        chosen = min(holders, key=rows.__getitem__)
        held[chosen].append(k)
        rows[chosen] += int(lengths[k])
    shards = [
        Shard(
            worker,
            int(offsets[numbers[0]]),
            int(offsets[numbers[-1] + 1]),
            tuple((k, 0, int(lengths[k])) for k in numbers),
            tuple(int(offsets[k]) for k in numbers),
        )
        for worker, numbers in held.items()
        if numbers
    ]
    return sorted(shards, key=lambda shard: shard.start)


def pieces_of_rows(lengths: np.ndarray, start: int, stop: int) -> tuple[tuple[int, int, int], ...]:
    """The pieces of partitions that contain rows start .. stop - 1.

    Parameters
    ----------
    lengths : int64 array (n_partitions,)
        Rows of each partition.

    Returns
    -------
    tuple of (number of the partition, first row of it, row after the last)
    """
    ends = np.cumsum(lengths)
    first = int(np.searchsorted(ends, start, side="right"))
    found = []
    for k in range(first, len(lengths)):
        begin = int(ends[k] - lengths[k])
        if begin >= stop:
            break
        if lengths[k]:
            found.append((k, max(start - begin, 0), min(stop - begin, int(lengths[k]))))
    return tuple(found)


def assign_workers(
    runs: list[tuple[tuple[int, int, int], ...]],
    workers: list[str],
    where: Sequence[Sequence[str]] | None,
) -> list[str]:
    """A worker for each run of rows, so that as few rows as possible have to be sent.

    Parameters
    ----------
    runs : for each run, its pieces as `pieces_of_rows` gives them
    workers : addresses, at least as many as runs
    where : for each partition, the workers that hold it; None if that does not matter

    Returns
    -------
    list of addresses, one a run
    """
    if where is None:
        return workers[: len(runs)]
    from scipy.optimize import linear_sum_assignment

    place = {worker: j for j, worker in enumerate(workers)}
    held = np.zeros((len(runs), len(workers)))
    for i, pieces in enumerate(runs):
        for k, first, last in pieces:
            for worker in where[k]:
                if worker in place:
                    held[i, place[worker]] += last - first
    _, chosen = linear_sum_assignment(held, maximize=True)
    return [workers[j] for j in chosen]


@dataclass(frozen=True)
class ShardRows:
    """The rows that a worker of a group holds: start .. stop - 1 of the table, in order.

    X           dense and C-contiguous, CSR, or a dataframe
    y, weight   None where none were given
    n_threads   threads that the worker may use
    cancelled   set when no reply is needed any more: long computations should then end
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    start: int
    stop: int
    n_threads: int = 1
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


def rows_of_shard(
    shard: Shard,
    X: Sequence[Any],
    y: Sequence[Any] | None,
    weight: Sequence[Any] | None,
    n_threads: int,
    cancelled: threading.Event,
) -> ShardRows:
    """The rows of a shard, from the partitions of its pieces, in their order."""

    def cut(partitions: Sequence[Any] | None) -> Any:
        if partitions is None:
            return None
        pairs = zip(partitions, shard.pieces, strict=True)
        return _concatenated(
            [rows_of_partition(partition, first, last) for partition, (_, first, last) in pairs]
        )

    return ShardRows(cut(X), cut(y), cut(weight), shard.start, shard.stop, n_threads, cancelled)


def pieces_of_shard(
    shard: Shard,
    X: Sequence[Any],
    y: Sequence[Any] | None,
    weight: Sequence[Any] | None,
    n_threads: int,
    cancelled: threading.Event,
) -> ShardRows:
    """The rows of a shard with X as a list of pieces: (partition, first row, after the last)."""
    pieces = [(partition, *piece[1:]) for partition, piece in zip(X, shard.pieces, strict=True)]
    return ShardRows(pieces, None, None, shard.start, shard.stop, n_threads, cancelled)


class RowsOnDisk:
    """Some rows of a partition on disk; `read` loads them."""

    def __init__(self, partition: PartitionOnDisk, first: int, last: int) -> None:
        self._partition, self._first, self._last = partition, first, last
        self.shape = (last - first, partition.shape[1])

    def read(self) -> Any:
        """These rows, as a new array or frame."""
        return self._partition.rows(self._first, self._last)


def tiles_of_shard(
    shard: Shard,
    X: Sequence[Any],
    y: Sequence[Any] | None,
    weight: Sequence[Any] | None,
    n_threads: int,
    cancelled: threading.Event,
) -> list[ShardRows]:
    """The rows of a shard as one tile in memory, or as many tiles if partitions are on disk.

    Then X of a tile is `RowsOnDisk`, and its y and weight are views of those of the partition.
    """
    if not any(is_on_disk(partition) for partition in X):
        return [rows_of_shard(shard, X, y, weight, n_threads, cancelled)]
    release_memory()

    def cut(partitions: Sequence[Any] | None, place: int, first: int, last: int) -> Any:
        return None if partitions is None else partitions[place][first:last]

    tiles = []
    begins = shard.first_rows()
    for place, (partition, (_, first, last)) in enumerate(zip(X, shard.pieces, strict=True)):
        for begin, end in _tiles_of(partition, first, last):
            rows = (
                RowsOnDisk(partition, begin, end)
                if is_on_disk(partition)
                else _concatenated([rows_of_partition(partition, begin, end)])
            )
            start = begins[place] + begin - first
            y_and_weight = (cut(y, place, begin, end), cut(weight, place, begin, end))
            tiles.append(
                ShardRows(rows, *y_and_weight, start, start + end - begin, n_threads, cancelled)
            )
    return tiles


def _tiles_of(partition: Any, first: int, last: int) -> list[tuple[int, int]]:
    """(first row, row after the last) of tiles; only plain files can be read in pieces."""
    if not (is_on_disk(partition) and partition.is_plain):
        return [(first, last)]
    most = min(_TILE_ROWS, _TILE_BYTES // (partition.shape[1] * partition.dtype.itemsize))
    count = -(-(last - first) // max(1, most))
    edges = np.linspace(first, last, count + 1).astype(int).tolist()
    return list(itertools.pairwise(edges))


def _concatenated(pieces: list[Any]) -> Any:
    """One table or vector; NumPy arrays are writable, as compiled code may need it."""
    if sp.issparse(pieces[0]):
        return pieces[0] if len(pieces) == 1 else sp.vstack(pieces, format="csr")
    if hasattr(pieces[0], "iloc"):
        import pandas as pd  # type: ignore[import-untyped]

        return pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)
    if len(pieces) == 1 and pieces[0].flags.writeable and pieces[0].flags.c_contiguous:
        return pieces[0]
    return np.ascontiguousarray(np.concatenate(pieces))
