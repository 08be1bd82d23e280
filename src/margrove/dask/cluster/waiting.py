"""Waits for results and for workers that end when there are no workers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import distributed

from margrove.dask.cluster.errors import ClusterError, explained_errors, killed_worker_message
from margrove.dask.cluster.workers import available_workers

__all__ = [
    "SECONDS_WITHOUT_WORKERS",
    "clear_worker_restrictions",
    "gathered",
    "wait_for_results",
    "wait_for_workers",
]

SECONDS_WITHOUT_WORKERS = 50.0  # after which a wait without any worker ends with an error
_CHECK_SECONDS = 2.0


def gathered(client: distributed.Client, futures: Sequence[Any], what: str = "") -> list[Any]:
    """The results of futures, in their order; an error if no workers are left.

    Dask itself would wait for ever. Errors of tasks are raised unchanged. If a task has killed its
    workers, `what` names it in the message ("partition {} of X").
    """
    with explained_errors(client):
        wait_for_results(client, futures)
        for number, future in enumerate(futures):  # the first of several errors
            if future.status == "error":
                _raise_error_of(future, what.format(number))
        return _fetched(client, futures)


def _fetched(client: distributed.Client, futures: Sequence[Any]) -> list[Any]:
    """Results of finished tasks; those of a worker that is lost meanwhile are computed again."""
    coming, loop = client.gather(list(futures), asynchronous=True), vars(client.loop)
    gathering = asyncio.run_coroutine_threadsafe(coming, loop["asyncio_loop"])

    def is_over(seconds: float) -> bool:
        concurrent.futures.wait([gathering], timeout=seconds)
        return gathering.done()

    try:
        _wait_until(is_over, client, futures, SECONDS_WITHOUT_WORKERS)
    finally:
        gathering.cancel()
    found: list[Any] = gathering.result()
    return found


def _raise_error_of(future: Any, what: str) -> None:
    from distributed.scheduler import KilledWorker

    try:
        future.result()
    except KilledWorker as error:
        raise ClusterError(killed_worker_message(error, what)) from error


def wait_for_results(
    client: distributed.Client, futures: Sequence[Any], seconds: float | None = None
) -> None:
    """Return when all futures are done, or one of them has failed.

    ClusterError if there is no worker for some seconds, by default SECONDS_WITHOUT_WORKERS.
    """

    def is_over(seconds: float) -> bool:
        try:
            with client.as_current():
                distributed.wait(list(futures), timeout=seconds)
        except TimeoutError:
            return any(future.status in ("error", "cancelled") for future in futures)
        return True

    _wait_until(is_over, client, futures, SECONDS_WITHOUT_WORKERS if seconds is None else seconds)


def _wait_until(
    is_over: Callable[[float], bool],
    client: distributed.Client,
    futures: Sequence[Any],
    most: float,
) -> None:
    """Call is_over(seconds) until it returns True, while there are workers."""
    last_seen = time.monotonic()
    if is_over(_CHECK_SECONDS):
        return
    while True:
        if available_workers(client):
            last_seen = time.monotonic()
            _release_stuck_tasks(client, futures)
        elif time.monotonic() - last_seen > most:
            raise ClusterError(_no_workers_message(client, most))
        if is_over(_CHECK_SECONDS):
            break
    gc.collect()  # timeout errors hold references to futures, and these hold memory


def _release_stuck_tasks(client: distributed.Client, futures: Sequence[Any]) -> None:
    """Let any worker run the tasks that are bound to lost workers.

    Tasks of partitions on disk are bound to the worker that has them. Dask would wait for that
    worker for ever, even if others are allowed, after a moment without any worker.
    """
    waiting = [
        future.key for future in futures if future.status not in ("finished", "error", "cancelled")
    ]
    _lift_restrictions(client, waiting, of_lost_workers=True)


def clear_worker_restrictions(client: distributed.Client, futures: Sequence[Any] = ()) -> bool:
    """Clear the worker restrictions of finished tasks, so that any worker may repeat them.

    Returns whether the scheduler allows it; if not, do not bind tasks to workers.
    """
    return _lift_restrictions(client, [future.key for future in futures], of_lost_workers=False)


def _lift_restrictions(
    client: distributed.Client, keys: list[Any], *, of_lost_workers: bool
) -> bool:
    """Clear the worker restrictions of tasks and of those that they need.

    of_lost_workers: only of tasks all of whose workers are lost.
    """

    def clear(dask_scheduler: Any = None) -> None:  # sent by value: schedulers may lack margrove
        tasks, workers = dask_scheduler.tasks, dask_scheduler.workers
        waiting = [tasks[key] for key in keys if key in tasks]
        seen, freed = set(), {}
        while waiting:
            task = waiting.pop()
            if task.key in seen or (of_lost_workers and task.state in ("memory", "erred")):
                continue
            seen.add(task.key)
            waiting += task.dependencies
            if not (
                of_lost_workers
                and any(worker in workers for worker in task.worker_restrictions or ())
            ):
                task.worker_restrictions = set()
                others = task.host_restrictions or task.resource_restrictions
                if task.state == "no-worker" and not others:
                    freed[task.key] = "processing"
        if freed:
            dask_scheduler.transitions(freed, "margrove-frees-tasks")

    try:
        client.run_on_scheduler(clear)
    except Exception:  # it refuses functions of clients, or is lost, which shows elsewhere
        return False
    return True


def wait_for_workers(client: distributed.Client, seconds: float | None = None) -> None:
    """Wait until there is a worker; ClusterError if none appears."""
    seconds = SECONDS_WITHOUT_WORKERS if seconds is None else seconds
    end = time.monotonic() + seconds
    while not available_workers(client):
        if time.monotonic() > end:
            raise ClusterError(_no_workers_message(client, seconds))
        time.sleep(0.2)


def _no_workers_message(client: distributed.Client, seconds: float) -> str:
    return (
        f"All workers of the cluster at {client.scheduler.address} are lost, and no new one has "
        f"appeared for {seconds:.0f} seconds. Start workers and fit again. If they ran out of "
        "memory (see their logs), use workers with more memory, or smaller partitions."
    )
