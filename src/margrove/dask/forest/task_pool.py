"""A pool of tasks: distributes tasks to workers, and repeats those of lost workers.

All tasks use the same data, of which every worker has a copy. A worker gets its copy before its
first task. It has as many tasks at a time as it has threads, and one more, so that it never waits
for the next. Tasks of a lost worker go to the others. Results do not depend on the worker.
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

from margrove.dask.cluster import (
    SECONDS_WITHOUT_WORKERS,
    ClusterError,
    WorkerLost,
    available_workers,
    killed_worker_message,
    wait_for_workers,
    workers_of,
)
from margrove.dask.collective import HEARTBEAT_TIMEOUT
from margrove.exceptions import FitCancelled

__all__ = ["TaskPool"]

_CHECK_SECONDS = 1.0  # between two checks of which workers there are
_MAX_LOSSES = 10  # of workers in a row without any finished task
_ANSWER_SECONDS = 10.0
_LARGE_TASKS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # large trees


@dataclass(frozen=True)
class _Task:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class _Submitted:
    task: _Task
    worker: str
    future: Any


class TaskPool:
    """Tasks under way on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    make_copy : callable
        `make_copy(worker)` submits the task that makes a worker's copy of the data, and returns
        its future.
    """

    def __init__(self, client: distributed.Client, make_copy: Callable[[str], Any]) -> None:
        self._client, self._make_copy = client, make_copy
        self._threads: dict[str, int] = {}
        self._copies: dict[str, Any] = {}
        self._waiting: deque[_Task] = deque()
        self._submitted: dict[str, _Submitted] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._found: defaultdict[Callable[..., Any], list[Any]] = defaultdict(list)
        self._last_heartbeats: dict[str, tuple[Any, float]] = {}
        self._losses = 0
        self._checked_at = float("-inf")

    @property
    def n_threads(self) -> int:
        """The number of threads of all workers together."""
        self._check_workers()
        return sum(self._threads.values())

    @property
    def free_slots(self) -> int:
        """How many more tasks workers can take."""
        self._check_workers()
        most = sum(threads + 1 for threads in self._threads.values())
        return most - len(self._submitted) - len(self._waiting)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run function(copy, *arguments) on one of the workers; `poll` returns its result."""
        self._waiting.append(_Task(function, arguments))

    def poll(self, function: Callable[..., Any], seconds: float) -> list[Any]:
        """The results of tasks of this function since the last call; waits some seconds for one."""
        self._check_workers()
        self._submit_waiting()
        self._collect(0.0 if self._found[function] else seconds)
        return self._found.pop(function, [])

    def _collect(self, seconds: float) -> None:
        try:
            self._take_result(
                self._done.get(timeout=seconds) if seconds else self._done.get_nowait()
            )
            while True:
                self._take_result(self._done.get_nowait())
        except queue.Empty:
            self._submit_waiting()

    def close(self) -> None:
        """Cancel all tasks, and release the copies."""
        futures = [submitted.future for submitted in self._submitted.values()]
        if futures and self._client.status == "running":
            self._client.cancel(futures)
        self._submitted, self._copies, self._threads = {}, {}, {}
        self._waiting.clear()
        self._found.clear()

    # -- workers --

    def _check_workers(self) -> None:
        """Drop lost workers, and add new ones."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_SECONDS:
            return
        available = available_workers(self._client)
        try:
            chosen = self._chosen(available)
        except WorkerLost as error:  # a new worker that is lost already
            self._drop_worker(error.worker)
            return
        stalled = self._stalled()
        alive = [worker for worker in chosen if worker not in stalled]
        for worker in [address for address in self._copies if address not in alive]:
            self._drop_worker(worker)
        self._threads = {worker: available.get(worker, 1) for worker in alive}
        self._checked_at = time.monotonic()

    def _stalled(self) -> set[str]:
        """Known workers from which the scheduler has received no heartbeat for some time.

        Clocks differ, so the time since the last change is measured by the clock of this process.
        """
        now, known = time.monotonic(), self._client.scheduler_info(n_workers=-1)["workers"]
        for worker, facts in known.items():
            last_seen, _ = self._last_heartbeats.get(worker, (None, now))
            if facts["last_seen"] != last_seen:
                self._last_heartbeats[worker] = facts["last_seen"], now
        return {
            worker
            for worker, (_, since) in self._last_heartbeats.items()
            if worker in known and now - since > HEARTBEAT_TIMEOUT
        }

    def _chosen(self, available: dict[str, int]) -> list[str]:
        if not available:
            wait_for_workers(self._client, SECONDS_WITHOUT_WORKERS)
            available.update(available_workers(self._client))
        return [worker for worker in workers_of(self._client) if worker in available]

    def _drop_worker(self, worker: str) -> None:
        """Requeue the tasks of a lost worker; an error after many losses in a row."""
        self._copies.pop(worker, None)
        self._threads.pop(worker, None)
        lost = [key for key, submitted in self._submitted.items() if submitted.worker == worker]
        for key in reversed(lost):
            self._waiting.appendleft(self._submitted.pop(key).task)
        self._losses += 1
        if self._losses > _MAX_LOSSES:
            raise ClusterError(
                f"{self._losses} workers were lost in a row, the last of them {worker}, and no "
                "task was finished. Most likely their tables do not fit into memory: set "
                "max_bins=255 (one byte a cell), or use workers with more memory. See the logs of "
                "the workers."
            )

    # -- tasks --

    def _submit_waiting(self) -> None:
        while self._waiting:
            worker = self._least_busy()
            if worker is None:
                return
            task = self._waiting.popleft()
            copy = self._copies.get(worker)
            if copy is None:
                copy = self._copies[worker] = self._make_copy(worker)
            with dask.config.set(_LARGE_TASKS):
                future = self._client.submit(
                    task.function,
                    copy,
                    *task.arguments,
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                )
            self._submitted[str(future.key)] = _Submitted(task, worker, future)
            future.add_done_callback(lambda done: self._done.put(done.key))

    def _least_busy(self) -> str | None:
        """The worker with the most free slots; None if there are none."""
        free = {worker: threads + 1 for worker, threads in self._threads.items()}
        for submitted in self._submitted.values():
            if submitted.worker in free:
                free[submitted.worker] -= 1
        best = max(free, key=lambda worker: free[worker], default=None)
        return best if best is not None and free[best] > 0 else None

    def _take_result(self, key: str) -> None:
        """Store the result of a task, unless it was lost."""
        submitted = self._submitted.get(key)
        if submitted is None:
            return
        status = submitted.future.status
        if status == "error" and not isinstance(submitted.future.exception(), FitCancelled):
            self._fail(submitted)
        if status != "finished":
            self._retry(submitted)
            return
        try:
            result = submitted.future.result(timeout=_ANSWER_SECONDS)
        except CancelledError:  # it was lost with its worker, and so was its copy of the data
            self._retry(submitted)
            return
        except TimeoutError:  # its worker was lost meanwhile, or the result is large
            submitted.future.add_done_callback(lambda done: self._done.put(done.key))
            self._checked_at = float("-inf")
            return
        del self._submitted[key]
        self._found[submitted.task.function].append(result)
        self._losses = 0

    def _retry(self, submitted: _Submitted) -> None:
        """Repeat a task that was lost, or whose copy of the data was lost."""
        self._drop_worker(submitted.worker)
        self._checked_at = float("-inf")

    def _fail(self, submitted: _Submitted) -> None:
        from distributed.scheduler import KilledWorker

        error = submitted.future.exception()
        if isinstance(error, KilledWorker):
            raise ClusterError(killed_worker_message(error)) from error
        raise error
