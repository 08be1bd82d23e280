"""Waits for results and for workers that end when nothing can come any more."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import distributed

from margrove.dask.cluster.errors import (
    ClusterError,
    WorkerLost,
    explained_errors,
    killed_worker_message,
)
from margrove.dask.cluster.placement import revive_placed_tasks
from margrove.dask.cluster.workers import available_workers, known_workers

__all__ = ["SECONDS_WITHOUT_WORKERS", "gathered", "wait_for_results", "wait_for_workers"]

SECONDS_WITHOUT_WORKERS = 50.0  # after which a wait without any worker ends with an error
IDLE_SECONDS = 300.0  # after which a wait ends if no worker computes anything
_CHECK_SECONDS = 2.0


def gathered(
    client: distributed.Client,
    futures: Sequence[Any],
    what: str = "",
    workers: Collection[str] | None = None,
) -> list[Any]:
    """The results of futures, in their order.

    Waits end with an error as in `wait_for_results`. Errors of tasks are raised unchanged. If a
    task has killed its workers, `what` names it in the message ("partition {} of X").
    """
    with explained_errors(client):
        wait_for_results(client, futures, workers=workers)
        for number, future in enumerate(futures):  # the first of several errors
            if future.status == "error":
                _raise_error_of(future, what.format(number))
        return _fetched(client, futures, workers)


def _fetched(
    client: distributed.Client, futures: Sequence[Any], workers: Collection[str] | None
) -> list[Any]:
    """Results of finished tasks; those of a worker that is lost meanwhile are computed again."""

    async def start() -> Any:
        return asyncio.ensure_future(client.gather(list(futures), asynchronous=True))

    async def is_over(seconds: float) -> bool:
        done, _ = await asyncio.wait([gathering], timeout=seconds)
        return bool(done)

    async def cancel() -> None:
        gathering.cancel()

    gathering = client.sync(start)
    try:
        _wait_until(lambda seconds: bool(client.sync(is_over, seconds)), client, futures, workers)
    except BaseException:
        if client.status == "running":
            client.sync(cancel)
        raise
    found: list[Any] = gathering.result()
    return found


def _raise_error_of(future: Any, what: str) -> None:
    from distributed.scheduler import KilledWorker

    try:
        future.result()
    except KilledWorker as error:
        raise ClusterError(killed_worker_message(error, what)) from error


def wait_for_results(
    client: distributed.Client, futures: Sequence[Any], *, workers: Collection[str] | None = None
) -> None:
    """Return when all futures are done, or one of them has failed.

    Dask itself would wait for ever in each of these cases:

    ClusterError   there is no worker for SECONDS_WITHOUT_WORKERS
    WorkerLost     all of `workers` are lost, the only ones that may run the tasks; or no worker
                   has computed anything for IDLE_SECONDS
    """

    def is_over(seconds: float) -> bool:
        try:
            with client.as_current():
                distributed.wait(list(futures), timeout=seconds)
        except TimeoutError:
            return any(future.status in ("error", "cancelled") for future in futures)
        return True

    _wait_until(is_over, client, futures, workers)


def _wait_until(
    is_over: Callable[[float], bool],
    client: distributed.Client,
    futures: Sequence[Any],
    only_workers: Collection[str] | None,
) -> None:
    """Call is_over(seconds) until it returns True, while this can still happen."""
    last_seen = last_busy = time.monotonic()
    has_waited = False
    while not is_over(_CHECK_SECONDS):
        has_waited, now = True, time.monotonic()
        available = available_workers(client)
        if only_workers is not None and not known_workers(client).keys() & set(only_workers):
            lost = ", ".join(only_workers)
            raise WorkerLost(f"The workers {lost} are lost.", next(iter(only_workers)))
        if available:
            last_seen = now
            revive_placed_tasks(client, available)
        elif now - last_seen > SECONDS_WITHOUT_WORKERS:
            raise ClusterError(_no_workers_message(client))
        are_done = all(future.status == "finished" for future in futures)
        if are_done or not available or any(client.processing().values()):
            last_busy = now
        elif now - last_busy > IDLE_SECONDS:
            raise WorkerLost(
                f"A fit has waited for results, but no worker of the cluster at "
                f"{client.scheduler.address} has computed anything for {IDLE_SECONDS:.0f} seconds. "
                "Its tasks may be bound to workers, hosts or resources that are gone."
            )
    if has_waited:
        gc.collect()  # timeout errors hold references to futures, and these hold memory


def wait_for_workers(client: distributed.Client) -> dict[str, int]:
    """Wait until there is a worker: those that there are; ClusterError if none appears."""
    start = time.monotonic()
    while not (available := available_workers(client)):
        if time.monotonic() - start > SECONDS_WITHOUT_WORKERS:
            raise ClusterError(_no_workers_message(client))
        time.sleep(0.2)
    revive_placed_tasks(client, available)
    return available


def _no_workers_message(client: distributed.Client) -> str:
    return (
        f"All workers of the cluster at {client.scheduler.address} are lost, and no new one has "
        f"appeared for {SECONDS_WITHOUT_WORKERS:.0f} seconds. Start workers and fit again. If they "
        "ran out of memory (see their logs), use workers with more memory, or smaller partitions."
    )
