"""The child process, seen from outside: started, written to, heard, killed.

It is heard and written to on threads of their own, so that the server never waits for it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from margrove.studio.worker.worker_main import Plan, work
from margrove.studio.worker.worker_protocol import Kind, Letter

__all__ = ["Child"]


class Child:
    """One process. `heard` and `gone` are called on other threads, `gone` once and last."""

    def __init__(
        self, plan: Plan, heard: Callable[[Child, Letter], None], gone: Callable[[Child], None]
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe(duplex=True)
        self._process = context.Process(
            target=work, args=(theirs, plan), name="margrove studio", daemon=True
        )
        with _interrupts_held_back():
            self._process.start()
        theirs.close()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader = threading.Thread(target=self._read, args=(heard, gone), daemon=True)
        self._writer.start()
        self._reader.start()

    @property
    def process_id(self) -> int | None:
        return self._process.pid

    def write(self, kind: Kind, number: int, content: bytes = b"") -> None:
        self._outbox.put(Letter(kind, number, content).sealed())

    def kill(self) -> None:
        """At once, whatever it does. It is not asked: it may be deep in compiled code."""
        self._process.kill()

    def end(self, timeout: float = 5.0) -> None:
        """Kill it and wait until nothing of it is left."""
        self.kill()
        self._process.join(timeout)
        self._reader.join(timeout)
        self._outbox.put(None)
        self._writer.join(timeout)

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # the reader sees to its end
            while (data := self._outbox.get()) is not None:
                self._connection.send_bytes(data)

    def _read(self, heard: Callable[[Child, Letter], None], gone: Callable[[Child], None]) -> None:
        with contextlib.suppress(EOFError, OSError, ValueError):
            while True:
                heard(self, Letter.opened(self._connection.recv_bytes()))
        # Killed before its pipe is closed: it takes that for the end of the server.
        self._process.kill()
        self._process.join()
        self._outbox.put(None)
        gone(self)
        self._writer.join()
        self._connection.close()


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process inherits what is held back, and Ctrl-C in the terminal reaches all of them."""
    if os.name != "posix":
        yield
        return
    before: Any = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
