"""Mailboxes of workers: what other workers have sent to a run of a fit, and reports to the client.

Messages go to a handler of Dask's workers: addresses, encryption and authentication are those of
the cluster, and nothing of ours listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from typing import Any

__all__ = ["ASK", "PUT", "Mailbox", "Stopped", "mailbox_of", "open_mailboxes"]

PUT, ASK = "margrove_put", "margrove_ask"  # names of the handlers
_SECONDS_OF_A_BATCH = 0.2  # between two answers to the client, which may have several reports
_ENDED_RUNS = 256  # that a worker remembers


class Stopped(Exception):  # noqa: N818
    """A member ends because the client or another member said so; that one has the reason."""


class Mailbox:
    """What has arrived at a worker for one run, and what it reports to the client.

    reports   what the member has reported so far
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._changed = threading.Condition()
        self._arrived: dict[Any, Any] = {}
        self._stop_reason: str | None = None
        self._has_news, self._has_ended = asyncio.Event(), asyncio.Event()
        self._answered_at = 0.0
        self.reports: list[Any] = []

    def put(self, key: Any, value: Any) -> None:
        with self._changed:
            self._arrived[key] = value
            self._changed.notify_all()

    def stop(self, reason: str) -> None:
        """Make the member end at its next exchange or report."""
        with self._changed:
            self._stop_reason = self._stop_reason or reason
            self._changed.notify_all()

    def check(self) -> None:
        if self._stop_reason is not None:
            raise Stopped(self._stop_reason)

    def take(self, key: Any, seconds: float) -> Any:
        """What has arrived under a key; TimeoutError if that takes longer."""
        end = time.monotonic() + seconds
        with self._changed:
            while key not in self._arrived:
                self.check()
                left = end - time.monotonic()
                if left <= 0.0:
                    raise TimeoutError
                self._changed.wait(left)
            return self._arrived.pop(key)

    def report(self, value: Any) -> None:
        self.check()
        self.reports.append(value)
        self._loop.call_soon_threadsafe(self._has_news.set)

    def finish(self) -> None:
        """Say that there will be no more reports."""
        for event in (self._has_ended, self._has_news):
            self._loop.call_soon_threadsafe(event.set)

    async def reports_from(self, first: int, seconds: float) -> list[Any]:
        """The reports from this one on; waits if there are none yet, or if the last answer was a
        moment ago."""
        await _until(self._has_ended, self._answered_at + _SECONDS_OF_A_BATCH - time.monotonic())
        if len(self.reports) <= first and not self._has_ended.is_set():
            self._has_news.clear()
            await _until(self._has_news, seconds)
        self._answered_at = time.monotonic()
        return self.reports[first:]


async def _until(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, or so long."""
    if seconds > 0.0:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)


class _Mailboxes:
    """The mailboxes of a worker, by the name of the run."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._open: dict[str, Mailbox] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def of(self, run: str) -> Mailbox | None:
        """The mailbox of a run, None if the run has ended here."""
        if run in self._ended:
            return None
        return self._open.setdefault(run, Mailbox(self._loop))

    def end(self, run: str) -> None:
        mailbox = self._open.pop(run, None)
        if mailbox is not None:
            mailbox.stop("The run has ended on this worker.")
        self._ended[run] = None
        while len(self._ended) > _ENDED_RUNS:
            self._ended.popitem(last=False)

    async def put(self, run: str, key: Any, value: Any) -> None:
        mailbox = self.of(run)
        if mailbox is not None:
            mailbox.put(key, value)

    async def ask(self, run: str) -> bool:
        """Whether the run has not ended here."""
        return run not in self._ended


_OF_WORKERS: dict[str, _Mailboxes] = {}  # by address: a process may have several workers


def open_mailboxes(worker: Any) -> _Mailboxes:
    """The mailboxes of a worker, which other workers can reach from now on."""
    if worker.address not in _OF_WORKERS:
        found = _OF_WORKERS[worker.address] = _Mailboxes(worker.loop.asyncio_loop)
        worker.handlers[PUT], worker.handlers[ASK] = found.put, found.ask
    return _OF_WORKERS[worker.address]


def mailbox_of(worker: Any, run: str) -> Mailbox:
    mailbox = open_mailboxes(worker).of(run)
    if mailbox is None:
        raise Stopped(f"The run {run} has ended.")
    return mailbox
