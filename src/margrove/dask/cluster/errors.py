"""Errors of a cluster that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import distributed

from margrove.exceptions import ClusterError

__all__ = [
    "ClusterError",
    "WorkerLost",
    "client_closed_message",
    "explained_errors",
    "killed_worker_message",
    "scheduler_lost_message",
]


class WorkerLost(ClusterError):  # noqa: N818
    """A worker, or data that it held, was lost during a fit: another attempt may succeed.

    `worker` is the address of the worker, "" if it is unknown.
    """

    def __init__(self, message: str, worker: str = "") -> None:
        super().__init__(message)
        self.worker = worker

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.worker)


@contextmanager
def explained_errors(client: distributed.Client) -> Iterator[None]:
    """Raise errors of Dask about lost workers or schedulers as errors that say what to do."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(killed_worker_message(error)) from error
    except (ClusterError, ValueError, TypeError):
        raise
    except Exception as error:
        if client.status != "running":
            raise ClusterError(client_closed_message(client)) from error
        if isinstance(error, CommClosedError):
            raise ClusterError(scheduler_lost_message(client)) from error
        if not isinstance(error, CancelledError):
            raise
        raise ClusterError(
            f"The cluster has cancelled tasks of this fit ({error}): client.restart() or "
            "client.cancel() was called, or the scheduler is lost: "
            f"{scheduler_lost_message(client)}"
        ) from error


def killed_worker_message(error: Any, what: str = "") -> str:
    """The message about a task during which several workers died."""
    task = what or f"the task {str(error.task)!r}"
    last = getattr(error.last_worker, "address", error.last_worker)
    limit = getattr(error.last_worker, "memory_limit", 0)
    memory = f", which has {limit / 2**30:.1f} GiB of memory" if limit else ""
    return (
        f"{getattr(error, 'allowed_failures', 3) + 1} workers died while they worked on {task}, "
        f"the last of them {last}{memory}. Most likely its result does not fit into memory: use "
        "smaller partitions (X.repartition(partition_size='100MB'), X.rechunk), or workers with "
        "more memory. See the logs of the workers."
    )


def client_closed_message(client: distributed.Client) -> str:
    """The message about a client that was closed, or has lost its scheduler."""
    return (
        f"The client is {client.status}: its scheduler is gone, or client.close() was called. Make "
        "a new one, distributed.Client(address), and fit again."
    )


def scheduler_lost_message(client: distributed.Client) -> str:
    """The message about a scheduler that does not respond."""
    where = getattr(client.scheduler, "address", "?")
    return (
        f"The scheduler at {where} does not respond, so the data on the cluster are lost. Start a "
        "cluster, make a new client, and fit again. A fit inside margrove.checkpoint then "
        "continues from its checkpoint."
    )
