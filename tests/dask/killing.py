"""Workers that are killed at random moments of fits, and what must not come of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
from tests.interrupts import wait_until

_SECONDS_OF_A_FIT = 2.0  # about


def kill(process: int) -> None:
    _signal(process, signal.SIGKILL)


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """A block in which a worker stands still; all of its threads, which takes a moment."""
    _signal(process, signal.SIGSTOP)
    wait_until(lambda: psutil.Process(process).status() == psutil.STATUS_STOPPED)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # its nanny may have ended it
            _signal(process, signal.SIGCONT)


def _signal(process: int, number: int) -> None:
    assert process != os.getpid()
    os.kill(process, number)


class KillLater(threading.Timer):
    """Kills a process after some seconds; join it before the next one.

    was_there   whether there was such a process; a worker may have ended by itself
    """

    def __init__(self, process: int, seconds: float) -> None:
        super().__init__(seconds, self._kill)
        self._process, self.was_there = process, False
        self.start()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            kill(self._process)
            self.was_there = True


def processes(client: Any) -> list[int]:
    """Of the workers that there are."""
    return [int(pid) for pid in client.run(os.getpid, on_error="ignore").values()]


def require_same_after_kills(
    new_cluster: Any, fitted: Callable[[Any], bytes], wanted: bytes, n_runs: int
) -> None:
    """`fitted(client)`, a model file, is the wanted one though a worker is killed each time."""
    client = new_cluster(3)
    assert fitted(client) == wanted
    chance, n_killed = random.Random(0), 0
    while n_killed < n_runs:
        try:
            client.wait_for_workers(2, timeout=30)
        except TimeoutError:  # a busy machine has not started them again
            client = new_cluster(3)
        pid = chance.choice(processes(client))
        killing = KillLater(pid, chance.random() * _SECONDS_OF_A_FIT)
        assert fitted(client) == wanted
        killing.join()
        n_killed += killing.was_there
        while pid in processes(client):
            time.sleep(0.05)
