"""Sends requests to the worker process, one at a time, and enforces cancels and time limits.

All methods are called on the event loop. A cancel is answered at once. The worker then has a second
to notice it, between two slices of a fit, before it is killed and replaced. It has more time while
it compiles: otherwise the compiled code would be lost and compiled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from margrove._runtime import available_memory
from margrove.studio.server import cancelled, failure, progress
from margrove.studio.worker.request_queue import QueuedRequest, RequestQueue, TooManyError
from margrove.studio.worker.worker_main import WorkerSettings
from margrove.studio.worker.worker_process import WorkerProcess
from margrove.studio.worker.worker_protocol import (
    Kind,
    WorkerMessage,
    packed_command,
    unpacked_report,
)

__all__ = ["Limits", "WorkerSupervisor", "worker_memory"]

_COMPILES = "compiling, on the first run only"
_STARTS = "starting"
_MOST_FAILED_STARTS = 3
_LEAST_MEMORY = 2 << 30


@dataclass(frozen=True)
class Limits:
    """Time limits of a request, in seconds.

    seconds          for a request whose answer the user waits for
    slow_seconds     for one of the `slow` kinds, which read tables or compare learners
    grace            for the worker to notice that its request was cancelled
    compile_seconds  how much compiling may add to each of these
    """

    seconds: float = 120.0
    slow_seconds: float = 1200.0
    slow: frozenset[str] = frozenset(
        {"map", "table", "table-scene", "table-compare", "table-report"}
    )
    grace: float = 1.0
    compile_seconds: float = 900.0

    def of(self, kind: str) -> float:
        return self.slow_seconds if kind in self.slow else self.seconds


def worker_memory() -> int | None:
    """Bytes that the worker may take: three quarters of the free memory, enough for compiling."""
    available = available_memory()
    return None if available is None else max(_LEAST_MEMORY, 3 * available // 4)


@dataclass
class _Running:
    """The request that the worker has; `is_answered` once the page knows its result."""

    number: int
    request: QueuedRequest
    is_answered: bool = False
    has_begun: bool = False
    timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def answer(self, message: str | bytes) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.request.answer(message)


class WorkerSupervisor:
    """Starts the worker process and replaces it when it dies; there is one for the studio.

    tables         returns the paths of the tables by their names
    keep_report    is called with the name and the page of a report
    """

    def __init__(
        self,
        settings: WorkerSettings,
        limits: Limits,
        tables: Callable[[], Mapping[str, Path]],
        keep_report: Callable[[str, bytes], None],
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._tables = tables
        self._keep_report = keep_report
        self._queue = RequestQueue()
        self._running: _Running | None = None
        self._worker: WorkerProcess | None = None
        self._is_ready = self._is_compiling = self._is_closed = False
        self._failed_starts = 0
        self._numbers = 0

    # -- start and stop ------------------------------------------------------------------------

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._start_worker()

    async def stop(self) -> None:
        self._is_closed = True
        if self._running is not None:
            self._finish()
        if self._worker is not None:
            await asyncio.to_thread(self._worker.end)

    @property
    def worker_id(self) -> int | None:
        """The process id of the worker."""
        return None if self._worker is None else self._worker.process_id

    def _start_worker(self) -> None:
        self._is_ready = self._is_compiling = False
        self._worker = WorkerProcess(self._settings, self._on_message, self._on_exit)

    def _on_message(self, worker: WorkerProcess, message: WorkerMessage) -> None:
        self._on_loop(lambda: self._handle(worker, message))

    def _on_exit(self, worker: WorkerProcess) -> None:
        self._on_loop(lambda: self._replace(worker))

    def _on_loop(self, call: Callable[[], None]) -> None:
        if not self._is_closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _replace(self, worker: WorkerProcess) -> None:
        """The worker is dead: fail the request that it had, and start another worker."""
        if worker is not self._worker or self._is_closed:
            return
        running = self._running
        if running is not None:
            self._finish()
            running.answer(self._failure(running.request, _died(running.request.message.kind)))
        self._failed_starts = 0 if self._is_ready else self._failed_starts + 1
        self._worker = None
        if self._failed_starts < _MOST_FAILED_STARTS:
            self._start_worker()
        self._advance()
        for request in self._queue:
            self._note_waiting(request)

    # -- calls of the sessions -----------------------------------------------------------------

    def submit(self, request: QueuedRequest) -> None:
        """Queue a request; older requests of its channel are cancelled."""
        try:
            replaced = self._queue.put(request)
        except TooManyError:
            request.answer(self._failure(request, "Too many requests are waiting."))
            return
        if replaced is not None:
            _cancel(replaced)
        self._cancel_running(request.owner, request.channel)
        self._advance()
        self._note_waiting(request)

    def cancel(self, owner: object, channel: str) -> None:
        """Cancel the request of a channel."""
        dropped = self._queue.drop(owner, channel)
        if dropped is not None:
            _cancel(dropped)
        self._cancel_running(owner, channel)

    def forget(self, owner: object) -> None:
        """Cancel all requests of a tab that is closed."""
        self._queue.drop_all(owner)
        if self._running is not None and self._running.request.owner is owner:
            self._cancel_running(owner, self._running.request.channel)

    def _cancel_running(self, owner: object, channel: str) -> None:
        running = self._running
        if running is None or running.is_answered:
            return
        if running.request.owner is owner and running.request.channel == channel:
            self._abandon(running, cancelled(running.request.message.id, channel))

    def _note_waiting(self, request: QueuedRequest) -> None:
        if self._worker is not None and (self._is_compiling or not self._is_ready):
            note = _COMPILES if self._is_compiling else _STARTS
            request.answer(progress(request.message.id, request.channel, note, 0, None))

    # -- messages to the worker ----------------------------------------------------------------

    def _advance(self) -> None:
        """Send the next request to the worker if it has none."""
        if self._worker is None:  # it cannot be started: no request may wait for ever
            while (request := self._queue.take()) is not None:
                request.answer(self._failure(request, _NO_WORKER))
        if self._running is not None or not self._is_ready or self._worker is None:
            return
        request = self._queue.take()
        if request is None:
            return
        self._numbers += 1
        self._running = _Running(self._numbers, request)
        page = request.message
        tables = {name: str(path) for name, path in self._tables().items()}
        command = {"id": page.id, "channel": page.channel, "kind": page.kind, "tables": tables}
        self._worker.write(Kind.ANSWER, self._numbers, packed_command(command, page.text))

    def _abandon(self, running: _Running, answer: str) -> None:
        """Answer now, and cancel: the worker skips what it has not begun, and may end the rest."""
        running.answer(answer)
        if self._worker is not None:
            self._worker.write(Kind.CANCEL, running.number)
        if running.has_begun:
            self._later(running, self._limits.grace, self._kill_worker)

    def _begin(self, running: _Running) -> None:
        running.has_begun = True
        if running.is_answered:  # cancelled on the way
            self._later(running, self._limits.grace, self._kill_worker)
        else:
            self._later(running, self._limits.of(running.request.message.kind), self._time_out)

    def _later(
        self, running: _Running, seconds: float, call: Callable[[_Running, float], None]
    ) -> None:
        """Call after some seconds, later if the worker compiles then."""
        deadline = self._loop.time() + seconds + self._limits.compile_seconds
        handle = self._loop.call_later(seconds, call, running, deadline)
        running.timers.append(handle)

    def _is_postponed(
        self, running: _Running, deadline: float, call: Callable[[_Running, float], None]
    ) -> bool:
        """Whether the worker compiles, before the deadline; then the call comes a second later."""
        if not self._is_compiling or self._loop.time() > deadline:
            return False
        running.timers.append(self._loop.call_later(1.0, call, running, deadline))
        return True

    def _time_out(self, running: _Running, deadline: float) -> None:
        if running is self._running and not self._is_postponed(running, deadline, self._time_out):
            seconds = self._limits.of(running.request.message.kind)
            message = (
                f"This took longer than {seconds:g} s and was stopped. Use fewer points or rows, "
                "or a smaller model."
            )
            self._abandon(running, self._failure(running.request, message))

    def _kill_worker(self, running: _Running, deadline: float) -> None:
        if running is not self._running or self._is_postponed(running, deadline, self._kill_worker):
            return
        if self._worker is not None:
            self._worker.kill()  # the thread that reads from it calls _on_exit

    def _finish(self) -> None:
        assert self._running is not None
        for timer in self._running.timers:
            timer.cancel()
        self._running = None

    # -- messages from the worker --------------------------------------------------------------

    def _handle(self, worker: WorkerProcess, message: WorkerMessage) -> None:
        if worker is not self._worker or self._is_closed:
            return
        if message.kind is Kind.READY:
            self._is_ready = True
            self._failed_starts = 0
        elif message.kind is Kind.COMPILES:
            self._note_compiling(message.number == 1)
        elif message.kind is Kind.REPORT:
            self._keep_report(*unpacked_report(message.content))
        elif self._running is not None and message.number == self._running.number:
            self._handle_answer(self._running, message)
        self._advance()

    def _handle_answer(self, running: _Running, message: WorkerMessage) -> None:
        request = running.request
        if message.kind is Kind.BEGAN:
            self._begin(running)
        elif message.kind is Kind.PROGRESS:
            if not running.is_answered:
                request.answer(message.content.decode())
        else:
            self._finish()
            if message.kind is Kind.RESULT:
                running.answer(message.content)
            elif message.kind is Kind.ERROR:
                running.answer(self._failure(request, message.content.decode()))
            else:
                running.answer(cancelled(request.message.id, request.channel))

    def _note_compiling(self, compiles: bool) -> None:
        self._is_compiling = compiles
        if not compiles:
            return
        waiting = list(self._queue)
        if self._running is not None and not self._running.is_answered:
            waiting.append(self._running.request)
        for request in waiting:
            request.answer(progress(request.message.id, request.channel, _COMPILES, 0, None))

    @staticmethod
    def _failure(request: QueuedRequest, message: str) -> str:
        return failure(request.message.id, request.channel, message)


_NO_WORKER = (
    "The worker process cannot be started; the terminal may show why. Start the studio again."
)


def _died(kind: str) -> str:
    return (
        f"The worker process ended during this request ({kind}), perhaps for lack of memory. "
        "It has been restarted. Try fewer points or rows."
    )


def _cancel(request: QueuedRequest) -> None:
    request.answer(cancelled(request.message.id, request.channel))
