"""Errands on copies of one thing that every worker has: who does which, and who does it again.

A worker gets its own copy of the thing (the `plot`) before its first errand, and as many errands
at a time as it has threads, and one more, so that it never waits for the next. Errands of a worker
that is lost go to the others. Which worker does an errand never matters for its result.
"""

from __future__ import annotations

import queue
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import dask
import distributed

from margrove.dask.cluster.waiting import SECONDS_WITHOUT_WORKERS, wait_for_workers
from margrove.dask.cluster.workers import (
    ClusterError,
    WorkerLost,
    available_workers,
    killed_worker_message,
    workers_of,
)
from margrove.dask.collective.worker_group import HEARTBEAT_TIMEOUT
from margrove.exceptions import FitCancelled

__all__ = ["Crew"]

_LOOK_EVERY = 1.0  # seconds after which somebody looks whether all workers are still there
_MOST_LOSSES = 10  # of workers, one after the other, between which no errand was done
_ANSWER_SECONDS = 10.0
_LARGE_ERRANDS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # large trees


@dataclass(frozen=True)
class _Errand:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class _Sent:
    errand: _Errand
    worker: str
    future: Any


class Crew:
    """The workers of a cluster, with a copy each of what `plant(worker)` gives a future of."""

    def __init__(self, client: distributed.Client, plant: Callable[[str], Any]) -> None:
        self._client, self._plant = client, plant
        self._threads: dict[str, int] = {}
        self._plots: dict[str, Any] = {}
        self._waiting: deque[_Errand] = deque()
        self._sent: dict[str, _Sent] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._found: defaultdict[Callable[..., Any], list[Any]] = defaultdict(list)
        self._last_news: dict[str, tuple[Any, float]] = {}
        self._losses = 0
        self._looked = float("-inf")

    @property
    def n_threads(self) -> int:
        """Of all workers together."""
        self._look()
        return sum(self._threads.values())

    @property
    def room(self) -> int:
        """How many errands more would be under way at once."""
        self._look()
        most = sum(threads + 1 for threads in self._threads.values())
        return most - len(self._sent) - len(self._waiting)

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have function(plot, *arguments) done by somebody."""
        self._waiting.append(_Errand(function, arguments))

    def poll(self, function: Callable[..., Any], seconds: float) -> list[Any]:
        """What errands of this function have brought until now, or soon."""
        self._look()
        self._hand_out()
        self._take_in(0.0 if self._found[function] else seconds)
        return self._found.pop(function, [])

    def _take_in(self, seconds: float) -> None:
        try:
            self._take(self._done.get(timeout=seconds) if seconds else self._done.get_nowait())
            while True:
                self._take(self._done.get_nowait())
        except queue.Empty:
            self._hand_out()

    def close(self) -> None:
        """Nothing is wanted any more."""
        futures = [sent.future for sent in self._sent.values()]
        if futures and self._client.status == "running":
            self._client.cancel(futures)
        self._sent, self._plots, self._threads = {}, {}, {}
        self._waiting.clear()
        self._found.clear()

    # -- workers --

    def _look(self) -> None:
        """Whether all workers are still there, and whether there are new ones."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY:
            return
        there = available_workers(self._client)
        try:
            chosen = self._chosen(there)
        except WorkerLost as error:  # a new one, that is lost already
            self._lose(error.worker)
            return
        silent = self._silent()
        heard = [worker for worker in chosen if worker not in silent]
        for worker in [own for own in self._plots if own not in heard]:
            self._lose(worker)
        self._threads = {worker: there.get(worker, 1) for worker in heard}
        self._looked = time.monotonic()

    def _silent(self) -> set[str]:
        """Workers that are there, but stopped: the scheduler has not heard of them for a while.

        Clocks differ; so it is how long ago the news of a worker changed, by the clock here.
        """
        now, known = time.monotonic(), self._client.scheduler_info(n_workers=-1)["workers"]
        for worker, facts in known.items():
            told, _ = self._last_news.get(worker, (None, now))
            if facts["last_seen"] != told:
                self._last_news[worker] = facts["last_seen"], now
        return {
            worker
            for worker, (_, since) in self._last_news.items()
            if worker in known and now - since > HEARTBEAT_TIMEOUT
        }

    def _chosen(self, there: dict[str, int]) -> list[str]:
        if not there:
            wait_for_workers(self._client, SECONDS_WITHOUT_WORKERS)
            there.update(available_workers(self._client))
        return [worker for worker in workers_of(self._client) if worker in there]

    def _lose(self, worker: str) -> None:
        """What the worker had is to be done again."""
        self._plots.pop(worker, None)
        self._threads.pop(worker, None)
        lost = [key for key, sent in self._sent.items() if sent.worker == worker]
        for key in reversed(lost):
            self._waiting.appendleft(self._sent.pop(key).errand)
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise ClusterError(
                f"{self._losses} workers were lost in a row, the last of them {worker}, while none "
                "finished anything. Most likely what they hold does not fit their memory: set "
                "max_bins=255 (one byte a cell), or use workers with more memory. The workers' "
                "logs say more."
            )

    # -- errands --

    def _hand_out(self) -> None:
        while self._waiting:
            worker = self._least_busy()
            if worker is None:
                return
            errand = self._waiting.popleft()
            plot = self._plots.get(worker)
            if plot is None:
                plot = self._plots[worker] = self._plant(worker)
            with dask.config.set(_LARGE_ERRANDS):
                future = self._client.submit(
                    errand.function,
                    plot,
                    *errand.arguments,
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                )
            self._sent[str(future.key)] = _Sent(errand, worker, future)
            future.add_done_callback(lambda own: self._done.put(own.key))

    def _least_busy(self) -> str | None:
        """The worker with the most room; None if nobody has any."""
        room = {worker: threads + 1 for worker, threads in self._threads.items()}
        for sent in self._sent.values():
            if sent.worker in room:
                room[sent.worker] -= 1
        best = max(room, key=lambda worker: room[worker], default=None)
        return best if best is not None and room[best] > 0 else None

    def _take(self, key: str) -> None:
        """The result of an errand, unless it was lost after all."""
        sent = self._sent.get(key)
        if sent is None:
            return
        status = sent.future.status
        if status == "error" and not isinstance(sent.future.exception(), FitCancelled):
            self._fail(sent)
        if status != "finished":
            self._again(sent)
            return
        try:
            result = sent.future.result(timeout=_ANSWER_SECONDS)
        except CancelledError:  # it was lost with its worker, and so was what it was made from
            self._again(sent)
            return
        except TimeoutError:  # its worker was lost meanwhile, or it is large
            sent.future.add_done_callback(lambda own: self._done.put(own.key))
            self._looked = float("-inf")
            return
        del self._sent[key]
        self._found[sent.errand.function].append(result)
        self._losses = 0

    def _again(self, sent: _Sent) -> None:
        """The errand, or what it needs, was dropped: the plot is made anew."""
        self._lose(sent.worker)
        self._looked = float("-inf")

    def _fail(self, sent: _Sent) -> None:
        from distributed.scheduler import KilledWorker

        error = sent.future.exception()
        if isinstance(error, KilledWorker):
            raise ClusterError(killed_worker_message(error)) from error
        raise error
