"""Several threads inside one compiled loop: one leads, the others do their share of each step.

Starting a thread takes as long as the whole search of a small node, so trees that are split node by
node need something quicker than a thread for each step. Here helpers are started once a call. They
enlist from within compiled code whenever they get there, and wait for orders; the leader goes on
meanwhile, shares each step with those who are there, and dismisses them at the end. Handing over a
step takes a tenth of a microsecond.

Nothing hangs: who has enlisted is in compiled code, which no interrupt leaves half-way, and who
comes too late goes away again. A step must not depend on the number of those who share it.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from margrove._atomics import atomic_add, atomic_read, atomic_swap, atomic_write, give_way
from margrove._jit import kernel

__all__ = ["await_order", "call_up", "dismiss", "enlist", "meet", "report", "run_team",
           "size_of_order", "wait_for_reports"]  # fmt: skip

# Words of a team, each on a cache line of its own.
_LINE = 16
_ENLISTED, _ORDER, _REPORTS, _ARRIVED, _MEETINGS = (_LINE * k for k in range(5))
_CLOSED = 1 << 40  # more than will ever enlist
_GO_HOME = -1
_SIZE_BITS = 10  # of an order: the rest is its number
_SPINS = 2000  # about a microsecond or two; then other threads may have the core

Result = TypeVar("Result")


def run_team(
    lead: Callable[[np.ndarray], Result], assist: Callable[[np.ndarray], None], n_threads: int
) -> Result:
    """`lead(team)` on this thread, and `assist(team)` on others while that lasts.

    Both call a kernel: the leader's ends with `dismiss`, a helper's starts with `enlist`. More
    threads than cores are of no use.
    """
    team = np.zeros(5 * _LINE, np.int64)

    def help_out() -> None:
        try:
            assist(team)
        except Exception:  # the leader does without, or meets the same error
            return

    try:
        for _ in range(n_threads - 1):
            try:
                _thread.start_new_thread(help_out, ())
            except RuntimeError:  # no more threads to be had
                break
        return lead(team)
    finally:  # also after an interrupt before the compiled part
        team[_ENLISTED], team[_ORDER] = _CLOSED, _GO_HOME


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
