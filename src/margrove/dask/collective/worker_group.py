"""Worker groups: long-running tasks, one a worker, that hold rows and compute together.

Starting a task of the scheduler takes longer than most steps of an iteration. A worker group is
started once. Then `call` sends a message over sockets, and the replies are reduced on their way
back. A task of a group secedes from the thread of its worker as soon as it runs, so that groups
never wait for each other, nor for a partition that has to be computed again.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import threading
from collections.abc import Sequence
from typing import Any, Self

import dask
import distributed

from margrove.dask.cluster import WorkerLost, explained_errors, run_on_workers, wait_for_results
from margrove.dask.collective.channels import (
    Channel,
    ChannelLost,
    Inbox,
    connect_to,
    start_heartbeats,
)
from margrove.dask.collective.reductions import START, Reply, Request, reduced_reply
from margrove.dask.collective.worker_loop import (
    CLIENT,
    open_endpoint,
    ranks_under_client,
    run_worker_loop,
)
from margrove.dask.partitions import Partitions, Shard
from margrove.exceptions import ClusterError

__all__ = ["WorkerGroup", "WorkerLost"]

HEARTBEAT_TIMEOUT = 40.0
_REDUCTIONS = ("sum", "max", "min", "list", "first", "none")
_CHECK_SECONDS = 1.0
_OPEN_SECONDS = 30.0


class WorkerGroup:
    """A program that runs on several workers at once, each with its own rows.

    Parameters
    ----------
    client : distributed.Client
    shards : list of Shard
        From `plan_shards`: the rows of each worker.
    partitions : Partitions
        The table.
    program : str
        "module:ClassName". Each worker creates one, `ClassName(rows, *arguments)`, where `rows` is
        a `ShardRows`, or what the class attribute `takes` says, see `worker_loop`. `call` calls
        its methods.
    *arguments
        The same for all workers; pass large ones as futures.
    heartbeat_timeout : float
        Seconds without a heartbeat after which a worker counts as lost. Workers send heartbeats
        while they compute.

    Raises
    ------
    WorkerLost
        From any method, when a worker is lost. `with_retries` then tries again.
    """

    def __init__(
        self,
        client: distributed.Client,
        shards: Sequence[Shard],
        partitions: Partitions,
        program: str,
        *arguments: Any,
        heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
    ) -> None:
        self._client, self._shards, self._partitions = client, list(shards), partitions
        self._program, self._arguments, self._heartbeat_timeout = (
            program,
            arguments,
            heartbeat_timeout,
        )
        self._name = f"margrove-group-{secrets.token_hex(8)}"
        self._key = secrets.token_bytes(32)
        self._inbox: Inbox = queue.SimpleQueue()
        self._channels: dict[int, Channel] = {}
        self._ended = threading.Event()
        self._tasks: list[Any] = []
        self._number = 0
        # by number of the request, and rank of the worker
        self._replies: dict[int, dict[int, Reply]] = {START.number: {}}
        self._is_broken = False

    @property
    def n_workers(self) -> int:
        return len(self._shards)

    @property
    def workers(self) -> list[str]:
        return [shard.worker for shard in self._shards]

    # -- calls --

    def call(self, method: str, *arguments: Any, reduce: str = "sum") -> Any:
        """Call `program.method(*arguments)` on every worker, and reduce the results.

        Parameters
        ----------
        method : str
        *arguments
            The same for all workers; arrays are sent without copying.
        reduce : {"sum", "max", "min", "list", "first", "none"}, default="sum"
            Elementwise, also inside tuples, lists and dicts; or a list in the order of shards; or
            the reply of the first worker; or nothing. Sums of whole numbers do not depend on the
            number of workers, sums of floats do.

        Returns
        -------
        the reduced reply of all workers
        """
        return self.finish_call(self.start_call(method, *arguments, reduce=reduce))

    def start_call(self, method: str, *arguments: Any, reduce: str = "sum") -> Request:
        """Send a call; `finish_call` returns its reply. Workers serve calls in order."""
        request = self._request(method, arguments, reduce)
        for rank in ranks_under_client(self.n_workers):
            self._send(rank, request)
        return request

    def finish_call(self, request: Request) -> Any:
        """The reduced reply of all workers to a call."""
        reply = self._reply(request)
        if request.reduce == "list":
            return [reply.value[rank] for rank in range(self.n_workers)]
        return reply.value

    def call_each(
        self, method: str, arguments: Sequence[tuple[Any, ...]], reduce: str = "sum"
    ) -> Any:
        """Like `call`, with separate arguments for each worker, in the order of shards."""
        if len(arguments) != self.n_workers:
            raise ValueError(
                f"arguments must be one tuple for each of {self.n_workers} workers. Got "
                f"{len(arguments)}."
            )
        first = self._request(method, (), reduce)
        for rank, worker_arguments in enumerate(arguments):
            self._send(rank, Request(first.number, method, tuple(worker_arguments), reduce, False))
        return self.finish_call(first)

    def _request(self, method: str, arguments: tuple[Any, ...], reduce: str) -> Request:
        if reduce not in _REDUCTIONS:
            raise ValueError(f"reduce must be one of {_REDUCTIONS}. Got {reduce!r} instead.")
        if self._is_broken or not self._channels:
            raise WorkerLost("This worker group has ended.")
        self._number += 1
        self._replies[self._number] = {}
        return Request(self._number, method, arguments, reduce)

    def _send(self, rank: int, request: Request) -> None:
        try:
            self._channels[rank].send(request)
        except OSError as error:
            raise self._broken(rank, str(error)) from error

    def _reply(self, request: Request) -> Reply:
        ranks, replies = ranks_under_client(self.n_workers), self._replies[request.number]
        while len(replies) < len(ranks):
            rank, message = self._next_message()
            if isinstance(message, Reply):
                if message.kind == "lost":
                    raise self._broken(*message.value)
                self._replies[message.number][rank] = message
        del self._replies[request.number]
        reply = reduced_reply(request, [replies[rank] for rank in ranks])
        if reply.kind == "error":
            raise reply.value
        return reply

    def _next_message(self) -> tuple[int, Any]:
        """Wait for the next message while all workers send heartbeats; see `Channel`."""
        while True:
            try:
                rank, message = self._inbox.get(timeout=_CHECK_SECONDS)
            except queue.Empty:
                self._check_tasks()
                continue
            if isinstance(message, ChannelLost):
                raise self._broken(rank, message.reason)
            return rank, message

    def _check_tasks(self) -> None:
        """Raise the error of a task that Dask could not start, which sends no message."""
        for task, shard in zip(self._tasks, self._shards, strict=False):
            if task.status == "error":
                self._is_broken = True
                raise task.exception()
            if task.status in ("cancelled", "lost"):
                raise self._broken(self._shards.index(shard), f"its task was {task.status}")

    def _broken(self, rank: int, reason: str) -> WorkerLost:
        self._is_broken = True
        shard = self._shards[rank]
        return WorkerLost(
            f"Worker {shard.worker}, which held rows {shard.start} to {shard.stop - 1}, is lost: "
            f"{reason}.",
            shard.worker,
        )

    # -- start and end --

    def __enter__(self) -> Self:
        try:
            with explained_errors(self._client):
                self._start()
        except BaseException:
            self._is_broken = True
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        refuse_encrypted(self.workers)
        wait_for_results(self._client, self._partitions.futures)
        addresses = self._open_endpoints()
        self._connect(addresses)
        start_heartbeats(self._channels, self._ended, self._heartbeat_timeout)
        self._tasks = [
            self._submit(rank, shard, addresses) for rank, shard in enumerate(self._shards)
        ]
        self._reply(START)

    def _open_endpoints(self) -> list[tuple[str, int]]:
        arguments = (self._name, self._key, self._heartbeat_timeout)
        found = run_on_workers(
            self._client, self.workers, open_endpoint, *arguments, seconds=_OPEN_SECONDS
        )
        for rank, worker in enumerate(self.workers):
            if isinstance(found[worker], Exception):
                raise self._broken(rank, str(found[worker]))
        return [found[worker] for worker in self.workers]

    def _connect(self, addresses: list[tuple[str, int]]) -> None:
        for rank, address in enumerate(addresses):
            try:
                connection = connect_to(address, self._key, CLIENT)
            except (OSError, EOFError) as error:
                if not self._is_alive(rank):
                    raise self._broken(rank, str(error)) from error
                raise ClusterError(
                    f"This process cannot reach worker {self.workers[rank]} at port {address[1]} "
                    f"({error}). Open the port in the firewall, or fit in a task, from which the "
                    "workers can be reached: client.submit(model.fit, X, y).result()."
                ) from error
            self._channels[rank] = Channel(
                connection, rank, self._inbox, self._heartbeat_timeout
            ).start()

    def _is_alive(self, rank: int) -> bool:
        worker = self.workers[rank]
        answer = run_on_workers(self._client, [worker], os.getpid, seconds=_OPEN_SECONDS)[worker]
        return isinstance(answer, int)

    def _submit(self, rank: int, shard: Shard, addresses: list[tuple[str, int]]) -> Any:
        numbers = [number for number, _, _ in shard.pieces]

        def of_shard(futures: list[Any] | None) -> list[Any] | None:
            return None if futures is None else [futures[number] for number in numbers]

        partitions = self._partitions
        return self._client.submit(
            run_worker_loop,
            self._name,
            rank,
            addresses,
            shard,
            of_shard(partitions.X),
            of_shard(partitions.y),
            of_shard(partitions.weight),
            self._program,
            self._arguments,
            key=f"{self._name}-{rank}",
            workers=[shard.worker],
            allow_other_workers=False,
            pure=False,
            priority=10,
        )

    def close(self) -> None:
        """End all tasks. A method that is still running ends when it checks `rows.cancelled`."""
        for channel in self._channels.values():
            with contextlib.suppress(OSError):
                if not self._is_broken:
                    channel.send("end")
        if not self._is_broken and self._tasks:
            with contextlib.suppress(Exception), self._client.as_current():
                distributed.wait(self._tasks, timeout=1)
        self._ended.set()
        for channel in self._channels.values():
            channel.close()
        self._channels = {}
        if self._tasks:
            with contextlib.suppress(Exception):
                self._client.cancel(self._tasks, force=True)
            self._tasks = []


def refuse_encrypted(workers: Sequence[str]) -> None:
    """Refuse clusters with encryption, unless a setting allows unencrypted channels."""
    if any(worker.startswith("tls://") for worker in workers) and not dask.config.get(
        "margrove.plain-sockets", False
    ):
        raise ClusterError(
            "This cluster encrypts its messages (tls://), but the sockets of a fit are only "
            "authenticated, not encrypted. To allow them on your network: "
            'dask.config.set({"margrove.plain-sockets": True}).'
        )
