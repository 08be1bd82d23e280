"""Attempts, and another one when a worker is lost, as long as that can help."""

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

_REMOVAL_SECONDS = 5.0  # that a scheduler may take to remove a lost worker


def with_retries(
    attempt: Callable[[list[str]], T],
    client: distributed.Client,
    *,
    attempts: int = 10,
    seconds: float | None = None,
    progress: Callable[[], Any] | None = None,
) -> T:
    """Call `attempt(workers)`, and again with those that are left whenever it loses one.

    Parameters
    ----------
    attempt : callable
        Gets the addresses of the workers that there are. What it learns it keeps itself, so that
        the next call goes on from there. It is tried again after `WorkerLost` only.
    client : distributed.Client
    attempts : int, default=10
        So many without progress are enough.
    seconds : float, optional
        How long to wait where no worker is left; by default a bit less than a minute.
    progress : callable, optional
        Says how far `attempt` has come. Whenever that changes, attempts are counted anew.

    Returns
    -------
    what `attempt` returns

    Raises
    ------
    ClusterError
        That names what was lost.
    """
    lost: list[str] = []
    missed: set[str] = set()  # the scheduler may count on them for minutes
    reached = progress() if progress else None
    while len(lost) < attempts:
        try:
            with explained_errors(client):
                wait_for_workers(client, seconds)
                there = workers_of(client)
                return attempt([worker for worker in there if worker not in missed] or there)
        except WorkerLost as error:
            if progress and progress() != reached:
                reached, lost = progress(), []
            lost.append(str(error))
            missed.add(error.worker)
            logger.info("A fit starts again on the workers that are left: %s", error)
            wait_until_removed(client, error.worker)
    raise ClusterError(
        f"A fit lost workers {attempts} times and was given up. Last of all: {lost[-1]} Workers "
        "that run out of memory are killed: use more or larger ones, or smaller partitions; their "
        "logs say more."
    )


def wait_until_removed(client: distributed.Client, worker: str) -> None:
    """Return when the scheduler has removed a lost worker, so that no attempt uses it again.

    It gives up after a few seconds.
    """
    end = time.monotonic() + _REMOVAL_SECONDS
    while worker in available_workers(client) and time.monotonic() < end:
        time.sleep(0.1)
