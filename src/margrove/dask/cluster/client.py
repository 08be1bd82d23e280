"""The client of a fit: the one that was given, that of the task it runs in, or the current one."""

from __future__ import annotations

from typing import Any

import distributed

from margrove.dask.cluster.errors import ClusterError, client_closed_message

__all__ = ["client_of"]


def client_of(client: distributed.Client | None = None) -> distributed.Client:
    """The client that was given; otherwise that of the worker in a task, or the current one.

    A task secedes from its thread, because it will wait for tasks that may need this thread.
    """
    if client is not None:
        if not isinstance(client, distributed.Client):
            raise TypeError(
                f"client must be a distributed.Client. Got {type(client).__name__} instead."
            )
    elif _is_inside_task():
        client = distributed.get_client()
    else:
        client = _current_client()
    if _is_inside_task():
        _secede_once()
    if client.asynchronous:
        raise ClusterError(
            "The client is asynchronous, but a fit blocks. Use a client without asynchronous=True, "
            "or run the fit in a thread: await asyncio.to_thread(model.fit, X, y)."
        )
    if client.status != "running":
        raise ClusterError(client_closed_message(client))
    return client


def _current_client() -> distributed.Client:
    try:
        return distributed.Client.current()
    except ValueError:
        raise ClusterError(
            "X is a Dask collection, but there is no cluster to fit on. Make a client first: "
            "client = distributed.Client() for this machine, or distributed.Client(address) for a "
            "scheduler that is running. For a local fit, pass X.compute()."
        ) from None


def _is_inside_task() -> bool:
    try:
        distributed.get_worker()
        return hasattr(_task_state(), "key")
    except ValueError:
        return False


def _task_state() -> Any:
    from dask.context import thread_state

    return thread_state


def _secede_once() -> None:
    from distributed.threadpoolexecutor import thread_state

    if getattr(thread_state, "proceed", False):
        distributed.secede()
