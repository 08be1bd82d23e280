"""The server's handle of the worker process: start, write, read, kill.

Two threads read from it and write to it, so that the server never waits for it.
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

from margrove.studio.worker.worker_main import WorkerSettings, run_worker
from margrove.studio.worker.worker_protocol import Kind, WorkerMessage

__all__ = ["WorkerProcess"]


class WorkerProcess:
    """A worker process. Callbacks run on other threads; `on_exit` is called once, at the end."""

    def __init__(
        self,
        settings: WorkerSettings,
        on_message: Callable[[WorkerProcess, WorkerMessage], None],
        on_exit: Callable[[WorkerProcess], None],
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe(duplex=True)
        self._process = context.Process(
            target=run_worker, args=(theirs, settings), name="margrove studio", daemon=True
        )
        with _interrupts_blocked():
            self._process.start()
        theirs.close()
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._reader = threading.Thread(target=self._read, args=(on_message, on_exit), daemon=True)
        self._writer.start()
        self._reader.start()

    @property
    def process_id(self) -> int | None:
        return self._process.pid

    def write(self, kind: Kind, number: int, content: bytes = b"") -> None:
        self._unsent.put(WorkerMessage(kind, number, content).to_bytes())

    def kill(self) -> None:
        """End it at once: it may be in compiled code, which does not handle signals."""
        self._process.kill()

    def end(self, timeout: float = 5.0) -> None:
        """Kill it and wait until the process and both threads have ended."""
        self.kill()
        self._process.join(timeout)
        self._reader.join(timeout)
        self._unsent.put(None)
        self._writer.join(timeout)

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # the process has ended; the reader notices
            while (data := self._unsent.get()) is not None:
                self._connection.send_bytes(data)

    def _read(
        self,
        on_message: Callable[[WorkerProcess, WorkerMessage], None],
        on_exit: Callable[[WorkerProcess], None],
    ) -> None:
        with contextlib.suppress(EOFError, OSError, ValueError):
            while True:
                on_message(self, WorkerMessage.from_bytes(self._connection.recv_bytes()))
        # It is killed before its pipe is closed: a closed pipe tells it that the server has ended.
        self._process.kill()
        self._process.join()
        self._unsent.put(None)
        on_exit(self)
        self._writer.join()
        self._connection.close()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while the process starts: it reaches all processes of the terminal."""
    if os.name != "posix":
        yield
        return
    before: Any = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
