"""Shards: the rows that each worker of a group holds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Shard", "plan_shards", "shards_in_place"]


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
        (start, stop, _pieces_of_rows(lengths, start, stop))
        for start, stop in itertools.pairwise(borders)
    ]
    hosts = _assign_workers([pieces for _, _, pieces in runs], list(workers), where)
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


def _pieces_of_rows(lengths: np.ndarray, start: int, stop: int) -> tuple[tuple[int, int, int], ...]:
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


def _assign_workers(
    runs: list[tuple[tuple[int, int, int], ...]],
    workers: list[str],
    where: Sequence[Sequence[str]] | None,
) -> list[str]:
    """A worker for each run of rows, so that as few rows as possible have to be sent.

    Parameters
    ----------
    runs : for each run, its pieces as `_pieces_of_rows` gives them
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
