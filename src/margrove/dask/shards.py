"""Shards: which rows each worker of a gang holds, and these rows, on the worker."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.dask.scratch import rows_of_part

__all__ = ["Shard", "ShardRows", "plan_shards"]


@dataclass(frozen=True)
class Shard:
    """A run of rows, and the parts of the table that they are pieces of.

    worker   the address of who is to hold it
    pieces   (number of the part, first row of it, row after the last)
    in_pieces   X is to be a list of (part, first, last), not one table
    """

    worker: str
    start: int
    stop: int
    pieces: tuple[tuple[int, int, int], ...]
    in_pieces: bool = False


def plan_shards(
    lengths: np.ndarray,
    workers: Sequence[str],
    where: Sequence[Sequence[str]] | None = None,
    multiple: int = 1,
) -> list[Shard]:
    """Cut the rows of a table into one run for each worker, about equally long.

    Parameters
    ----------
    lengths : int array (n_parts,)
        Rows of each part.
    workers : addresses
    where : for each part, the workers that hold it already; None if that does not matter
        Runs go to workers that hold as many of their rows as possible.
    multiple : int, default=1
        Runs begin at multiples of so many rows. Where there are fewer of these than workers,
        some workers get none.

    Returns
    -------
    list of Shard
        In the order of the rows; what they hold depends on `lengths`, `multiple` and the number
        of workers only.

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
        (start, stop, _pieces(lengths, start, stop)) for start, stop in itertools.pairwise(borders)
    ]
    hosts = _hosts([pieces for _, _, pieces in runs], list(workers), where)
    return [Shard(host, *run) for host, run in zip(hosts, runs, strict=True)]


def _pieces(lengths: np.ndarray, start: int, stop: int) -> tuple[tuple[int, int, int], ...]:
    """The parts that rows start .. stop - 1 are in."""
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


def _hosts(
    runs: list[tuple[tuple[int, int, int], ...]],
    workers: list[str],
    where: Sequence[Sequence[str]] | None,
) -> list[str]:
    """A worker for each run, so that as few rows as possible have to travel."""
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
    """What a member of a gang has: rows start .. stop - 1 of the table, in order.

    X           dense and C-contiguous, CSR, or a dataframe
    y, weight   None where none were given
    n_threads   threads that the member may use
    gone        set when nobody waits for answers any more: long computations should then end
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    start: int
    stop: int
    n_threads: int = 1
    gone: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        return self.stop - self.start


def rows_of_shard(
    shard: Shard,
    X: Sequence[Any],
    y: Sequence[Any] | None,
    weight: Sequence[Any] | None,
    n_threads: int,
    gone: threading.Event,
) -> ShardRows:
    """The rows of a shard from the parts they are in, which come in the order of its pieces."""

    def cut(parts: Sequence[Any] | None) -> Any:
        if parts is None:
            return None
        pairs = zip(parts, shard.pieces, strict=True)
        return _together([rows_of_part(part, first, last) for part, (_, first, last) in pairs])

    if shard.in_pieces:
        pieces = [(part, *own[1:]) for part, own in zip(X, shard.pieces, strict=True)]
        return ShardRows(pieces, cut(y), cut(weight), shard.start, shard.stop, n_threads, gone)
    return ShardRows(cut(X), cut(y), cut(weight), shard.start, shard.stop, n_threads, gone)


def _together(pieces: list[Any]) -> Any:
    """One table or vector; NumPy's are always writable, as compiled code may insist on it."""
    if sp.issparse(pieces[0]):
        return pieces[0] if len(pieces) == 1 else sp.vstack(pieces, format="csr")
    if hasattr(pieces[0], "iloc"):
        import pandas as pd  # type: ignore[import-untyped]

        return pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)
    if len(pieces) == 1 and pieces[0].flags.writeable and pieces[0].flags.c_contiguous:
        return pieces[0]
    return np.ascontiguousarray(np.concatenate(pieces))
