"""Several threads inside one compiled loop: one leads, the others do their share of each step.

Starting a thread takes as long as the whole search of a small node, so trees that are split node by
node need something quicker than a thread for each step. Here helpers enlist from within compiled
code whenever they get there, and wait for orders; the leader goes on meanwhile, shares each step
with those who are there, and dismisses them at the end. Handing over a step takes a tenth of a
microsecond. To wake a thread can take longer than to grow a tree, too: between two calls helpers
keep awake for some milliseconds before they go.

Nothing hangs: who has enlisted is in compiled code, which no interrupt leaves half-way, and who
comes too late goes away again. A step must not depend on the number of those who share it.
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
    give_way,
    relax,
)
from margrove._runtime.jit import kernel

__all__ = ["Team", "await_order", "call_up", "dismiss", "enlist", "meet", "report", "ring",
           "size_of_order", "wait_for_reports"]  # fmt: skip

# Words of a team, each on a cache line of its own.
_LINE = 16
_ENLISTED, _ORDER, _REPORTS, _ARRIVED, _MEETINGS = (_LINE * k for k in range(5))
_CLOSED = 1 << 40  # more than will ever enlist
_GO_HOME = -1
_SIZE_BITS = 10  # of an order: the rest is its number
_PATIENCE = 10_000  # spins without a call, some ten milliseconds
_SPINS = 500  # some ten microseconds; then other threads may have the core

_C_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None

Result = TypeVar("Result")


class Team:
    """A leader and its helpers, for one call after the other; more than cores are of no use.

    Helpers know nothing of this object: without calls they go by themselves.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_helpers = n_threads - 1
        self._bell = np.zeros(_LINE, np.int64)
        self._calls = 0
        self._job: list[Callable[[], object]] = []
        self._awake: list[None] = []  # one for each helper; lists are changed in one step

    def run(
        self,
        lead: Callable[[np.ndarray, int, np.ndarray], Result],
        assist: Callable[[np.ndarray, int, np.ndarray], object],
    ) -> Result:
        """`lead(bell, call, words)` on this thread, and `assist(...)` on others while that lasts.

        Both call a kernel: the leader's begins with `ring` and ends with `dismiss`, a helper's
        begins with `enlist`.
        """
        self._calls += 1
        bell, call, words = self._bell, self._calls, np.zeros(5 * _LINE, np.int64)
        self._job[:] = [lambda: assist(bell, call, words)]
        self._wake()
        try:
            return lead(bell, call, words)
        finally:  # also after an interrupt before the compiled part
            words[_ENLISTED], words[_ORDER] = _CLOSED, _GO_HOME
            self._job.clear()

    def _wake(self) -> None:
        while len(self._awake) < self._n_helpers:
            self._awake.append(None)
            try:
                place = (_current_core(), len(self._awake))
                _thread.start_new_thread(
                    _help, (self._bell, self._calls - 1, self._job, self._awake, place)
                )
            except RuntimeError:  # no more threads to be had
                self._awake.pop()
                break


def _help(
    bell: np.ndarray,
    call: int,
    job: list[Callable[[], object]],
    awake: list[None],
    place: tuple[int, int],
) -> None:
    """A helper's life: wait for a call, do its share, wait for the next one."""
    try:
        _step_aside(*place)
        while (call := int(wait_for_call(bell, call))) >= 0:
            for assist in job[:]:
                assist()
    except Exception:  # the leader does without, or meets the same error
        return
    finally:
        awake.pop()


def _current_core() -> int:
    """The core that this thread is on; -1 where that cannot be known."""
    find = getattr(_C_LIBRARY, "sched_getcpu", None)
    return -1 if find is None else int(find())


def _step_aside(core_of_leader: int, rank: int) -> None:
    """Move this thread to another core than the leader's, but do not bind it to that.

    Some schedulers leave a new thread where it was started for many milliseconds, although other
    cores are idle: it would wait for the leader, and the leader for it.
    """
    if core_of_leader < 0 or not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    others = sorted(allowed - {core_of_leader})
    if others:
        os.sched_setaffinity(0, {others[rank % len(others)]})
        os.sched_setaffinity(0, allowed)


@kernel(bare=True)
def wait_for_call(bell, last):
    """The number of the call after the last one; -1 if there is none for some milliseconds."""
    for spins in range(_PATIENCE):
        call = atomic_read(bell, 0)
        if call > last:
            return call
        if spins > _SPINS:
            give_way()
        relax()
    return np.int64(-1)


@kernel(inner=True)
def ring(bell, call):
    """Call the helpers, from where they need not wait for Python's lock."""
    atomic_write(bell, 0, call)


@kernel(inner=True)
def enlist(team):
    """The rank of a helper, 1 or more; -1 if it comes too late."""
    rank = atomic_add(team, _ENLISTED, 1) + 1
    return rank if rank < _CLOSED else -1


@kernel(inner=True)
def await_order(team, last):
    """The order after the last one, 0 at first; below 0 at the end."""
    spins = 0
    while True:
        order = atomic_read(team, _ORDER)
        if order != last:
            return order
        spins += 1
        if spins > _SPINS:
            give_way()
        relax()


@kernel(inner=True)
def size_of_order(order):
    """How many share the step; helpers of a higher rank have come after it was given."""
    return order & ((1 << _SIZE_BITS) - 1)


@kernel(inner=True)
def report(team):
    """A helper has done its share."""
    atomic_add(team, _REPORTS, 1)


@kernel(inner=True)
def call_up(team, number):
    """Give the order with this number, from 1 on, to those who are there; how many share it."""
    size = min(atomic_read(team, _ENLISTED) + 1, (1 << _SIZE_BITS) - 1)
    if size > 1:
        atomic_write(team, _ORDER, (number << _SIZE_BITS) + size)
    return size


@kernel(inner=True)
def wait_for_reports(team, n_helpers):
    """The leader goes on when all helpers have done their share."""
    spins = 0
    while atomic_read(team, _REPORTS) < n_helpers:
        spins += 1
        if spins > _SPINS:
            give_way()
        relax()
    if n_helpers > 0:
        atomic_write(team, _REPORTS, 0)


@kernel(inner=True)
def dismiss(team):
    """Send everybody home, and wait until they have left the compiled part."""
    n_helpers = atomic_swap(team, _ENLISTED, _CLOSED)
    atomic_write(team, _ORDER, _GO_HOME)
    wait_for_reports(team, n_helpers)


@kernel(inner=True)
def meet(team, size):
    """Nobody goes on before all who share the step are here."""
    if size == 1:
        return
    meeting = atomic_read(team, _MEETINGS)
    if atomic_add(team, _ARRIVED, 1) == size - 1:
        atomic_write(team, _ARRIVED, 0)
        atomic_write(team, _MEETINGS, meeting + 1)
        return
    spins = 0
    while atomic_read(team, _MEETINGS) == meeting:
        spins += 1
        if spins > _SPINS:
            give_way()
        relax()
