"""The members of a collective as threads of one process: each runs the same function."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_SECONDS = 60.0


class _Meeting:
    """The values of all members of one call, handed to every member."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.values: list[Any] = [None] * size


class ThreadMember:
    """One member; what members exchange is pickled, as between machines."""

    def __init__(self, meeting: _Meeting, rank: int, size: int) -> None:
        self._meeting, self.rank, self.size = meeting, rank, size
        self.n_calls = 0
        self.n_bytes = 0

    def gather(self, value: Any) -> list[Any]:
        sent = pickle.dumps(value)
        self.n_calls, self.n_bytes = self.n_calls + 1, self.n_bytes + len(sent)
        self._meeting.values[self.rank] = sent
        self._meeting.barrier.wait(_SECONDS)
        found = [pickle.loads(each) for each in self._meeting.values]
        self._meeting.barrier.wait(_SECONDS)
        return found

    def sum(self, array: np.ndarray) -> None:
        self._reduce(array, np.add)

    def max(self, array: np.ndarray) -> None:
        self._reduce(array, np.maximum)

    def _reduce(self, array: np.ndarray, operation: Any) -> None:
        assert array.flags.c_contiguous
        first, *others = self.gather(array)
        assert all(each.shape == first.shape and each.dtype == first.dtype for each in others)
        for other in others:
            operation(first, other, out=first)
        array[...] = first


def run_members(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """function(collective, *call) at the same time for each call, on a thread of its own.

    The first error of a member is raised; the others then end, too.
    """
    meeting = _Meeting(len(calls))
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = function(ThreadMember(meeting, rank, len(calls)), *calls[rank])
        except BaseException as error:
            if not isinstance(error, threading.BrokenBarrierError):
                errors.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
