"""Hands requests to the child, one at a time, and ends what nobody wants or what takes too long.

All methods are called on the event loop. Whoever cancels is answered at once; the child then has a
second to notice, between two slices of a fit, before it is killed and another takes its place. It
has longer while it compiles: what was compiled so far would be lost, and compiled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from margrove._runtime.memory import available_memory
from margrove.studio.server.messages import cancelled, failure, progress
from margrove.studio.worker.request_queue import Request, TooManyError, Turns
from margrove.studio.worker.worker_main import Plan
from margrove.studio.worker.worker_process import Child
from margrove.studio.worker.worker_protocol import Kind, Letter, ordered, report_of

__all__ = ["Foreman", "Limits", "memory_for_the_child"]

_COMPILES = "compiling, on the first run only"
_STARTS = "starting"
_MOST_FAILED_STARTS = 3
_LEAST_MEMORY = 2 << 30


@dataclass(frozen=True)
class Limits:
    """What one request may take.

    seconds          of a request that people wait for
    slow_seconds     of one of the `slow` kinds, which read tables or compare learners
    grace            that the child has to notice that it is cancelled
    compile_seconds  that compiling may add to all of these
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


def memory_for_the_child() -> int | None:
    """Three quarters of what is free now, and enough for compiling in any case."""
    available = available_memory()
    return None if available is None else max(_LEAST_MEMORY, 3 * available // 4)


@dataclass
class _Running:
    """The request that the child has; `is_answered` once the page has been told how it ended."""

    number: int
    request: Request
    is_answered: bool = False
    has_begun: bool = False
    timers: list[asyncio.TimerHandle] = field(default_factory=list)

    def answer(self, message: str | bytes) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.request.answer(message)


class Foreman:
    """One for the studio; `tables` and `keep_report` are what answers need of the server."""

    def __init__(
        self,
        plan: Plan,
        limits: Limits,
        tables: Callable[[], Mapping[str, Path]],
        keep_report: Callable[[str, bytes], None],
    ) -> None:
        self._plan = plan
        self._limits = limits
        self._tables = tables
        self._keep_report = keep_report
        self._turns = Turns()
        self._running: _Running | None = None
        self._child: Child | None = None
        self._is_ready = self._is_compiling = self._is_closed = False
        self._failed_starts = 0
        self._numbers = 0

    # -- from start to end ---------------------------------------------------------------------

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._start_child()

    async def stop(self) -> None:
        self._is_closed = True
        if self._running is not None:
            self._finish()
        if self._child is not None:
            await asyncio.to_thread(self._child.end)

    @property
    def child_id(self) -> int | None:
        """The number of the process, for those who want to see it gone."""
        return None if self._child is None else self._child.process_id

    def _start_child(self) -> None:
        self._is_ready = self._is_compiling = False
        self._child = Child(self._plan, self._hear, self._miss)

    def _hear(self, child: Child, letter: Letter) -> None:
        self._on_loop(lambda: self._handle(child, letter))

    def _miss(self, child: Child) -> None:
        self._on_loop(lambda: self._replace(child))

    def _on_loop(self, call: Callable[[], None]) -> None:
        if not self._is_closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _replace(self, child: Child) -> None:
        """The child is dead: say so to whoever waits for its answer, and start another."""
        if child is not self._child or self._is_closed:
            return
        running = self._running
        if running is not None:
            self._finish()
            running.answer(self._failure(running.request, _died(running.request.ask.kind)))
        self._failed_starts = 0 if self._is_ready else self._failed_starts + 1
        self._child = None
        if self._failed_starts < _MOST_FAILED_STARTS:
            self._start_child()
        self._advance()
        for request in self._turns:
            self._note_waiting(request)

    # -- from the pages ------------------------------------------------------------------------

    def submit(self, request: Request) -> None:
        """Have a request answered; older ones on its channel are cancelled."""
        try:
            replaced = self._turns.put(request)
        except TooManyError:
            request.answer(self._failure(request, "Too many requests wait already."))
            return
        if replaced is not None:
            _cancel(replaced)
        self._cancel_running(request.owner, request.channel)
        self._advance()
        self._note_waiting(request)

    def cancel(self, owner: object, channel: str) -> None:
        """What a channel waits for is not wanted any more."""
        dropped = self._turns.drop(owner, channel)
        if dropped is not None:
            _cancel(dropped)
        self._cancel_running(owner, channel)

    def forget(self, owner: object) -> None:
        """A tab is gone, and whatever it waited for with it."""
        self._turns.drop_all(owner)
        if self._running is not None and self._running.request.owner is owner:
            self._cancel_running(owner, self._running.request.channel)

    def _cancel_running(self, owner: object, channel: str) -> None:
        running = self._running
        if running is None or running.is_answered:
            return
        if running.request.owner is owner and running.request.channel == channel:
            self._abandon(running, cancelled(running.request.ask.id, channel))

    def _note_waiting(self, request: Request) -> None:
        if self._child is not None and (self._is_compiling or not self._is_ready):
            note = _COMPILES if self._is_compiling else _STARTS
            request.answer(progress(request.ask.id, request.channel, note, 0, None))

    # -- to the child --------------------------------------------------------------------------

    def _advance(self) -> None:
        """Give the child something to do, if it has nothing."""
        if self._child is None:  # none could be started: nobody waits for ever
            while (request := self._turns.take()) is not None:
                request.answer(self._failure(request, _NO_CHILD))
        if self._running is not None or not self._is_ready or self._child is None:
            return
        request = self._turns.take()
        if request is None:
            return
        self._numbers += 1
        self._running = _Running(self._numbers, request)
        ask = request.ask
        tables = {name: str(path) for name, path in self._tables().items()}
        order = {"id": ask.id, "channel": ask.channel, "kind": ask.kind, "tables": tables}
        self._child.write(Kind.ANSWER, self._numbers, ordered(order, ask.text))

    def _abandon(self, running: _Running, answer: str) -> None:
        """Answer now. What has not begun is left out by the child; what has is given a moment."""
        running.answer(answer)
        if self._child is not None:
            self._child.write(Kind.CANCEL, running.number)
        if running.has_begun:
            self._later(running, self._limits.grace, self._give_up)

    def _begin(self, running: _Running) -> None:
        running.has_begun = True
        if running.is_answered:  # cancelled on the way
            self._later(running, self._limits.grace, self._give_up)
        else:
            self._later(running, self._limits.of(running.request.ask.kind), self._time_out)

    def _later(
        self, running: _Running, seconds: float, call: Callable[[_Running, float], None]
    ) -> None:
        """Look at it again after a while, and then every second while it compiles."""
        patience = self._loop.time() + seconds + self._limits.compile_seconds
        handle = self._loop.call_later(seconds, call, running, patience)
        running.timers.append(handle)

    def _is_spared(
        self, running: _Running, patience: float, call: Callable[[_Running, float], None]
    ) -> bool:
        if not self._is_compiling or self._loop.time() > patience:
            return False
        running.timers.append(self._loop.call_later(1.0, call, running, patience))
        return True

    def _time_out(self, running: _Running, patience: float) -> None:
        if running is self._running and not self._is_spared(running, patience, self._time_out):
            seconds = self._limits.of(running.request.ask.kind)
            message = (
                f"This took longer than {seconds:g} s and was stopped. Use fewer points or rows, "
                "or a smaller model."
            )
            self._abandon(running, self._failure(running.request, message))

    def _give_up(self, running: _Running, patience: float) -> None:
        if running is not self._running or self._is_spared(running, patience, self._give_up):
            return
        if self._child is not None:
            self._child.kill()  # the thread that reads from it notices, and we replace it

    def _finish(self) -> None:
        assert self._running is not None
        for timer in self._running.timers:
            timer.cancel()
        self._running = None

    # -- from the child ------------------------------------------------------------------------

    def _handle(self, child: Child, letter: Letter) -> None:
        if child is not self._child or self._is_closed:
            return
        if letter.kind is Kind.READY:
            self._is_ready = True
            self._failed_starts = 0
        elif letter.kind is Kind.COMPILES:
            self._tell_of_compiling(letter.number == 1)
        elif letter.kind is Kind.REPORT:
            self._keep_report(*report_of(letter.content))
        elif self._running is not None and letter.number == self._running.number:
            self._handle_answer(self._running, letter)
        self._advance()

    def _handle_answer(self, running: _Running, letter: Letter) -> None:
        request = running.request
        if letter.kind is Kind.BEGAN:
            self._begin(running)
        elif letter.kind is Kind.PROGRESS:
            if not running.is_answered:
                request.answer(letter.content.decode())
        else:
            self._finish()
            if letter.kind is Kind.RESULT:
                running.answer(letter.content)
            elif letter.kind is Kind.ERROR:
                running.answer(self._failure(request, letter.content.decode()))
            else:
                running.answer(cancelled(request.ask.id, request.channel))

    def _tell_of_compiling(self, compiles: bool) -> None:
        self._is_compiling = compiles
        if not compiles:
            return
        waiting = list(self._turns)
        if self._running is not None and not self._running.is_answered:
            waiting.append(self._running.request)
        for request in waiting:
            request.answer(progress(request.ask.id, request.channel, _COMPILES, 0, None))

    @staticmethod
    def _failure(request: Request, message: str) -> str:
        return failure(request.ask.id, request.channel, message)


_NO_CHILD = (
    "The process that computes cannot be started; the terminal may say why. Start the studio again."
)


def _died(kind: str) -> str:
    return (
        f"The process that computed this ({kind}) ended by itself, perhaps for lack of memory. "
        "Another one has been started: try fewer points or rows."
    )


def _cancel(request: Request) -> None:
    request.answer(cancelled(request.ask.id, request.channel))
