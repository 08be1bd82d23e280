"""Errors of a cluster, in words that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import distributed

from margrove.exceptions import ClusterError

__all__ = [
    "ClusterError",
    "WorkerLost",
    "explained_errors",
    "killed_worker_message",
    "scheduler_lost_message",
]


class WorkerLost(ClusterError):  # noqa: N818
    """A fit has lost a worker, or what it held: another attempt may succeed.

    `worker` is the address of the worker, "" if it is not known.
    """

    def __init__(self, message: str, worker: str = "") -> None:
        super().__init__(message)
        self.worker = worker

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.worker)


@contextmanager
def explained_errors(client: distributed.Client) -> Iterator[None]:
    """What Dask raises when it loses workers or its scheduler, as errors that say what to do."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(killed_worker_message(error)) from error
    except CancelledError as error:
        raise ClusterError(
            f"The cluster has dropped work of this fit ({error}): client.restart() or "
            f"client.cancel() was called, or: {scheduler_lost_message(client)}"
        ) from error
    except CommClosedError as error:
        raise ClusterError(scheduler_lost_message(client)) from error


def killed_worker_message(error: Any, what: str = "") -> str:
    """What to know about a task that has taken its worker with it again and again."""
    task = what or f"the task {str(error.task)!r}"
    last = getattr(error.last_worker, "address", error.last_worker)
    limit = getattr(error.last_worker, "memory_limit", 0)
    memory = f", which has {limit / 2**30:.1f} GiB of memory" if limit else ""
    return (
        f"{getattr(error, 'allowed_failures', 3) + 1} workers died while they worked on {task}, "
        f"the last of them {last}{memory}. Most likely what it makes does not fit: use "
        "smaller partitions (X.repartition(partition_size='100MB'), X.rechunk), or workers with "
        "more memory. The worker's log says more."
    )


def scheduler_lost_message(client: distributed.Client) -> str:
    """What to know about a scheduler that does not answer."""
    where = getattr(client.scheduler, "address", "?")
    return (
        f"The scheduler at {where} does not answer. What it knew of the data is lost with it: "
        "start a cluster, make a new client, and fit again; a fit inside margrove.checkpoint goes "
        "on where it was."
    )
