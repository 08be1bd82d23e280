"""Retries of a fit after a worker was lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

import distributed

from margrove.dask.cluster.errors import ClusterError, WorkerLost, explained_errors
from margrove.dask.cluster.waiting import wait_for_workers
from margrove.dask.cluster.workers import available_workers, workers_of

__all__ = ["wait_until_removed", "with_retries"]

logger = logging.getLogger("margrove")

T = TypeVar("T")

_REMOVAL_SECONDS = 5.0  # to wait until the scheduler has removed a lost worker


def with_retries(
    attempt: Callable[[list[str]], T],
    client: distributed.Client,
    *,
    attempts: int = 10,
    progress: Callable[[], Any] | None = None,
) -> T:
    """Call `attempt(workers)`, and call it again with the remaining workers after a loss.

    Parameters
    ----------
    attempt : callable
        Takes the addresses of the available workers. It keeps its own progress, so that the next
        call continues from there. It is repeated only after `WorkerLost`.
    client : distributed.Client
    attempts : int, default=10
        The largest number of attempts without progress.
    progress : callable, optional
        Returns how far `attempt` has come. When this changes, the count of attempts restarts.

    Returns
    -------
    the result of `attempt`

    Raises
    ------
    ClusterError
        If all attempts have lost a worker; it names the last loss.
    """
    lost: list[str] = []
    missed: set[str] = set()  # the scheduler may list them for minutes
    reached = progress() if progress else None
    while len(lost) < attempts:
        try:
            with explained_errors(client):
                wait_for_workers(client)
                available = workers_of(client)
                return attempt([w for w in available if w not in missed] or available)
        except WorkerLost as error:
            if progress and progress() != reached:
                reached, lost = progress(), []
            lost.append(str(error))
            missed.add(error.worker)
            logger.info("A fit starts again on the remaining workers: %s", error)
            wait_until_removed(client, error.worker)
    raise ClusterError(
        f"A fit lost workers {attempts} times and was stopped. The last loss: {lost[-1]} Workers "
        "that run out of memory are killed: use more or larger workers, or smaller partitions. See "
        "the logs of the workers."
    )


def wait_until_removed(client: distributed.Client, worker: str) -> None:
    """Wait a few seconds until the scheduler has removed a lost worker, so that it is not used."""
    end = time.monotonic() + _REMOVAL_SECONDS
    while worker in available_workers(client) and time.monotonic() < end:
        time.sleep(0.1)
