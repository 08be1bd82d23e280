"""Several threads inside one compiled loop: a leader, and helpers that share each of its steps.

Starting a thread takes as long as the whole search of a small node, so trees that are split node by
node cannot start a thread for each step. Here helpers join the team from within compiled code, and
then wait for steps. The leader does not wait for them: it shares each step with the helpers that
have joined, and releases them at the end. Starting a step takes a tenth of a microsecond. Waking a
thread can take longer than growing a tree. So between two calls helpers spin for some milliseconds
before they end.

Nothing hangs: helpers that have joined are in compiled code, which no interrupt leaves half-way,
and helpers that come too late end immediately. The result of a step must not depend on the number
of threads that share it.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from margrove._runtime.instructions import (
    atomic_add,
    atomic_read,
    atomic_swap,
    atomic_write,
    relax,
    yield_core,
)
from margrove._runtime.jit import kernel

__all__ = ["Team", "barrier", "join_team", "release_helpers", "report_done", "size_of_step",
           "start_step", "wait_for_helpers", "wait_for_step", "wake_helpers"]  # fmt: skip

# The shared words of a team, each on its own cache line: how many helpers have joined, the current
# step, how many helpers are done with it, how many threads are at the barrier, barriers passed.
_CACHE_LINE = 16  # int64 words
_JOINED, _STEP, _DONE, _ARRIVED, _BARRIERS = (_CACHE_LINE * k for k in range(5))
_CLOSED = 1 << 40  # in place of the number of helpers: nobody can join any more
_END = -1  # in place of a step
_SIZE_BITS = 10  # of a step: how many threads share it; the other bits are its number
_IDLE_SPINS = 10_000  # without a call, about ten milliseconds; then a helper ends
_SPINS = 500  # about ten microseconds; then other threads may use the core

_C_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None

Result = TypeVar("Result")


class Team:
    """A leader and its helpers, for many calls; there should not be more threads than cores.

    Helpers have no reference to this object: without calls they end by themselves.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_helpers = n_threads - 1
        self._last_call = np.zeros(_CACHE_LINE, np.int64)
        self._calls = 0
        self._job: list[Callable[[], object]] = []
        self._running: list[None] = []  # an item for each helper; list changes are atomic

    def run(
        self,
        lead: Callable[[np.ndarray, int, np.ndarray], Result],
        assist: Callable[[np.ndarray, int, np.ndarray], object],
    ) -> Result:
        """Run `lead(last_call, call, team)` on this thread, and `assist(...)` on the helpers.

        Both call a kernel: the leader's begins with `wake_helpers` and ends with `release_helpers`,
        a helper's begins with `join_team`.
        """
        self._calls += 1
        last_call, call, words = self._last_call, self._calls, np.zeros(5 * _CACHE_LINE, np.int64)
        self._job[:] = [lambda: assist(last_call, call, words)]
        self._start_helpers()
        try:
            return lead(last_call, call, words)
        finally:  # also after an interrupt before the compiled part
            words[_JOINED], words[_STEP] = _CLOSED, _END
            self._job.clear()

    def _start_helpers(self) -> None:
        while len(self._running) < self._n_helpers:
            self._running.append(None)
            try:
                place = (_current_core(), len(self._running))
                _thread.start_new_thread(
                    _help, (self._last_call, self._calls - 1, self._job, self._running, place)
                )
            except RuntimeError:  # the system has no more threads
                self._running.pop()
                break


def _help(
    last_call: np.ndarray,
    call: int,
    job: list[Callable[[], object]],
    running: list[None],
    place: tuple[int, int],
) -> None:
    """The loop of a helper: wait for a call, do its share, wait for the next call."""
    try:
        _move_from_core(*place)
        while (call := int(wait_for_call(last_call, call))) >= 0:
            for assist in job[:]:
                assist()
    except Exception:  # the leader works without this helper, or has the same error
        return
    finally:
        running.pop()


def _current_core() -> int:
    """The core on which this thread runs; -1 if it is not known."""
    find = getattr(_C_LIBRARY, "sched_getcpu", None)
    return -1 if find is None else int(find())


def _move_from_core(core_of_leader: int, rank: int) -> None:
    """Move this thread to another core than the leader's, without binding it to that core.

    Some schedulers keep a new thread on the core where it was started for many milliseconds, even
    if other cores are idle: it would wait for the leader, and the leader for it.
    """
    if core_of_leader < 0 or not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    others = sorted(allowed - {core_of_leader})
    if others:
        os.sched_setaffinity(0, {others[rank % len(others)]})
        os.sched_setaffinity(0, allowed)


@kernel(bare=True)
def wait_for_call(last_call, last):
    """The number of the call after `last`; -1 if none comes for some milliseconds."""
    for spins in range(_IDLE_SPINS):
        call = atomic_read(last_call, 0)
        if call > last:
            return call
        if spins > _SPINS:
            yield_core()
        relax()
    return np.int64(-1)


@kernel(inner=True)
def wake_helpers(last_call, call):
    """Announce a call to the helpers, which then need not wait for Python's lock."""
    atomic_write(last_call, 0, call)


@kernel(inner=True)
def join_team(team):
    """Join as a helper and return its rank, 1 or more; -1 if it is too late."""
    rank = atomic_add(team, _JOINED, 1) + 1
    return rank if rank < _CLOSED else -1


@kernel(inner=True)
def wait_for_step(team, last):
    """The step after `last` (0 before the first); below 0 at the end."""
    spins = 0
    while True:
        step = atomic_read(team, _STEP)
        if step != last:
            return step
        spins += 1
        if spins > _SPINS:
            yield_core()
        relax()


@kernel(inner=True)
def size_of_step(step):
    """How many threads share the step; helpers of this rank or above joined after it started."""
    return step & ((1 << _SIZE_BITS) - 1)


@kernel(inner=True)
def report_done(team):
    """A helper has done its share of the step."""
    atomic_add(team, _DONE, 1)


@kernel(inner=True)
def start_step(team, number):
    """Start the step with this number (from 1 on); return how many threads share it."""
    size = min(atomic_read(team, _JOINED) + 1, (1 << _SIZE_BITS) - 1)
    if size > 1:
        atomic_write(team, _STEP, (number << _SIZE_BITS) + size)
    return size


@kernel(inner=True)
def wait_for_helpers(team, n_helpers):
    """The leader waits until all helpers have done their share."""
    spins = 0
    while atomic_read(team, _DONE) < n_helpers:
        spins += 1
        if spins > _SPINS:
            yield_core()
        relax()
    if n_helpers > 0:
        atomic_write(team, _DONE, 0)


@kernel(inner=True)
def release_helpers(team):
    """End the call for all helpers, and wait until they have left the compiled part."""
    n_helpers = atomic_swap(team, _JOINED, _CLOSED)
    atomic_write(team, _STEP, _END)
    wait_for_helpers(team, n_helpers)


@kernel(inner=True)
def barrier(team, size):
    """No thread that shares the step goes on before all of them have arrived here."""
    if size == 1:
        return
    passed = atomic_read(team, _BARRIERS)
    if atomic_add(team, _ARRIVED, 1) == size - 1:
        atomic_write(team, _ARRIVED, 0)
        atomic_write(team, _BARRIERS, passed + 1)
        return
    spins = 0
    while atomic_read(team, _BARRIERS) == passed:
        spins += 1
        if spins > _SPINS:
            yield_core()
        relax()
