"""The worker's side of a worker group: an endpoint for channels, and the loop that serves calls.

The client has a channel to every worker, so that each notices at once when the other is lost. Up
to four workers exchange requests and replies over these channels. More workers form a binary tree:
worker k has the children 2k + 1 and 2k + 2. Requests go down this tree, and replies are reduced on
their way up.
"""

from __future__ import annotations

import importlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import distributed
import joblib

from margrove.dask.cluster import WorkerLost, threads_of_worker
from margrove.dask.collective.channels import (
    Channel,
    ChannelLost,
    Inbox,
    accept_handshake,
    connect_to,
    listen_at,
    start_heartbeats,
)
from margrove.dask.collective.reductions import START, Reply, Request, picklable, reduced_reply
from margrove.dask.partitions import Shard, pieces_of_shard, rows_of_shard, tiles_of_shard

__all__ = ["CLIENT", "open_endpoint", "ranks_under_client", "run_worker_loop"]

CLIENT = -1
_MAX_DIRECT = 4  # workers up to which the client sends requests to all of them itself
_ARRIVE_SECONDS = 120.0  # to wait for the client to connect


# -- the tree of workers --


def ranks_under_client(n_workers: int) -> range:
    """Ranks of the workers that get requests directly from the client."""
    return range(n_workers if n_workers <= _MAX_DIRECT else 1)


def _parent(rank: int, n_workers: int) -> int:
    """The rank that a worker gets requests from, or CLIENT."""
    return CLIENT if rank in ranks_under_client(n_workers) else (rank - 1) // 2


def _children(rank: int, n_workers: int) -> list[int]:
    """The ranks that a worker forwards requests to."""
    both = (2 * rank + 1, 2 * rank + 2)
    return [k for k in both if k < n_workers and _parent(k, n_workers) == rank]


# -- the endpoint --


class Endpoint:
    """A worker's listening socket and its channels; it exists before the worker's task starts.

    Parameters
    ----------
    key : bytes
        The key of the group.
    host : str
        Where to listen.
    heartbeat_timeout : float
    forget : callable
        Called when the endpoint closes.
    """

    def __init__(
        self, key: bytes, host: str, heartbeat_timeout: float, forget: Callable[[], Any]
    ) -> None:
        self.inbox: Inbox = queue.SimpleQueue()
        self.channels: dict[int, Channel] = {}
        self.cancelled = threading.Event()
        self._key, self._heartbeat_timeout, self._forget = key, heartbeat_timeout, forget
        self._since = time.monotonic()
        self._client_is_connected = threading.Event()
        self._listener = listen_at(host)
        self._listener.settimeout(1.0)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="margrove-endpoint", daemon=True).start()
        start_heartbeats(self.channels, self.cancelled, heartbeat_timeout)

    def _accept(self) -> None:
        while not self.cancelled.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if CLIENT not in self.channels and time.monotonic() - self._since > _ARRIVE_SECONDS:
                    self.close()
                continue
            except OSError:
                break
            threading.Thread(target=self._admit, args=(connection,), daemon=True).start()

    def _admit(self, connection: socket.socket) -> None:
        try:
            who = accept_handshake(connection, self._key)
        except (OSError, EOFError):
            connection.close()
            return
        self.add(connection, who)

    def add(self, connection: socket.socket, who: int) -> None:
        """Add a channel to the client or a worker; losing the client closes the endpoint."""
        inbox = _WatchedInbox(self.inbox, self.close) if who == CLIENT else self.inbox
        channel = Channel(connection, who, inbox, self._heartbeat_timeout)  # type: ignore[arg-type]
        self.channels[who] = channel
        channel.start()
        if who == CLIENT:
            self._client_is_connected.set()

    def client(self) -> Channel:
        """The channel to the client; waits for its handshake."""
        if not self._client_is_connected.wait(self._heartbeat_timeout):
            raise TimeoutError("the client has not connected")
        return self.channels[CLIENT]

    def connect(self, address: tuple[str, int], rank: int, other: int) -> None:
        """Open a channel to another worker."""
        self.add(connect_to(address, self._key, rank), other)

    def close(self) -> None:
        self.cancelled.set()
        self._forget()
        self._listener.close()
        for channel in list(self.channels.values()):
            channel.close()
        self.inbox.put((CLIENT, ChannelLost("the client is lost")))


class _WatchedInbox:
    """An inbox that calls `on_loss` when a channel is lost."""

    def __init__(self, inbox: Inbox, on_loss: Callable[[], None]) -> None:
        self._inbox, self._on_loss = inbox, on_loss

    def put(self, item: tuple[int, Any]) -> None:
        self._inbox.put(item)
        if isinstance(item[1], ChannelLost):
            self._on_loss()


_ENDPOINTS: dict[tuple[str, str], Endpoint] = {}


def open_endpoint(
    group: str, key: bytes, heartbeat_timeout: float, dask_worker: Any = None
) -> tuple[str, int]:
    """Open an endpoint on a worker, before its task is submitted; returns (host, port)."""
    from distributed.comm.addressing import get_address_host

    is_inproc = dask_worker.address.startswith("inproc")
    host = "127.0.0.1" if is_inproc else get_address_host(dask_worker.address)
    name = (group, dask_worker.address)
    endpoint = Endpoint(key, host, heartbeat_timeout, lambda: _ENDPOINTS.pop(name, None))
    _ENDPOINTS[name] = endpoint
    return host, endpoint.port


# -- serving --


def run_worker_loop(
    group: str,
    rank: int,
    addresses: list[tuple[str, int]],
    shard: Shard,
    X: list[Any],
    y: list[Any] | None,
    weight: list[Any] | None,
    program: str,
    arguments: tuple[Any, ...],
) -> None:
    """The task of one worker, which runs until the client closes the group or is lost."""
    endpoint = _ENDPOINTS.get((group, distributed.get_worker().address))
    if endpoint is None:
        raise WorkerLost("The worker was restarted before its task began.", shard.worker)
    n_threads = threads_of_worker()
    try:
        endpoint.client()
        distributed.secede()
        parent = _parent(rank, len(addresses))
        if parent != CLIENT:
            endpoint.connect(addresses[parent], rank, parent)
        loop = _WorkerLoop(endpoint, rank, len(addresses), shard.worker)
        with joblib.parallel_config(backend="threading", n_jobs=n_threads):
            made = partial(_program, program, arguments)
            loop.serve(partial(made, shard, X, y, weight, n_threads, endpoint.cancelled))
    except (_GroupClosed, OSError, EOFError):
        pass  # the client notices on its channel
    finally:
        endpoint.close()


def _program(program: str, arguments: tuple[Any, ...], *rows: Any) -> Any:
    """A new program, from its rows, or from what it `takes`: "tiles" or "pieces"."""
    made = _class_at(program)
    return made(_READERS[getattr(made, "takes", "rows")](*rows), *arguments)


_READERS: dict[str, Callable[..., Any]] = {
    "rows": rows_of_shard,
    "tiles": tiles_of_shard,
    "pieces": pieces_of_shard,
}


def _class_at(program: str) -> Any:
    module, _, name = program.partition(":")
    return getattr(importlib.import_module(module), name)


class _GroupClosed(Exception):  # noqa: N818
    """The client or the parent in the tree is lost, or the client has closed the group."""


class _WorkerLoop:
    """Runs requests on the program, and sends the reduced reply of itself and its children."""

    def __init__(self, endpoint: Endpoint, rank: int, n_workers: int, worker: str) -> None:
        self._endpoint = endpoint
        self._rank, self._worker = rank, worker
        self._parent, self._children = _parent(rank, n_workers), _children(rank, n_workers)
        self._kept: list[tuple[int, Any]] = []

    def serve(self, make: Callable[[], Any]) -> None:
        program: Any = None

        def begin() -> None:
            nonlocal program
            program = make()

        self._answer(START, begin)
        while True:
            request = self._next_request()
            if request.is_forwarded:
                for k in self._children:
                    self._endpoint.channels[k].send(request)
            self._answer(request, partial(_called, program, request))

    def _next_request(self) -> Request:
        while True:
            _, message = self._take(lambda message: isinstance(message, (Request, str)))
            if message == "end":
                raise _GroupClosed
            if isinstance(message, Request):
                return message

    def _answer(self, request: Request, work: Callable[[], Any]) -> None:
        """Do the work, wait for the children, and send the reduced reply to the parent."""
        reply = self._attempt(request, work)
        replies = [reply, *(self._reply_of(k, request.number) for k in self._children)]
        self._endpoint.channels[self._parent].send(reduced_reply(request, replies))

    def _attempt(self, request: Request, work: Callable[[], Any]) -> Reply:
        try:
            value = work()
        except Exception as error:
            error.add_note(f"(on worker {self._worker})")
            return Reply(request.number, "error", picklable(error))
        if request.reduce == "list":
            value = {self._rank: value}
        elif request.reduce == "none" or (request.reduce == "first" and self._rank):
            value = None
        return Reply(request.number, "value", value)

    def _reply_of(self, k: int, number: int) -> Reply:
        _, message = self._take(
            lambda message: isinstance(message, (Reply, ChannelLost)), lambda who: who == k
        )
        if isinstance(message, ChannelLost):
            return Reply(number, "lost", (k, message.reason))
        assert isinstance(message, Reply)
        return message

    def _take(
        self,
        is_wanted: Callable[[Any], bool],
        is_right: Callable[[int], bool] = lambda _: True,
    ) -> tuple[int, Any]:
        """The first message that is wanted; others are kept. Losing the parent ends the loop."""
        for i, (who, message) in enumerate(self._kept):
            if is_wanted(message) and is_right(who):
                return self._kept.pop(i)
        while True:
            who, message = self._endpoint.inbox.get()
            if isinstance(message, ChannelLost) and who in (CLIENT, self._parent):
                raise _GroupClosed
            if is_wanted(message) and is_right(who):
                return who, message
            self._kept.append((who, message))


def _called(program: Any, request: Request) -> Any:
    return getattr(program, request.method)(*request.arguments)
