"""Gangs: long-lived tasks, one a worker, that hold the rows of a table and compute together.

A scheduler that starts a task for each step of an iteration takes longer than most steps. A gang
is started once; then `ask` is a message on sockets, and its reply, combined on the way, comes
back. A member takes the place of a task only until it runs: then it leaves it to
others (it secedes), so that no two gangs ever wait for each other, nor a gang for a part of its
table that has to be computed again.
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

from margrove.dask.cluster.waiting import wait_for_results
from margrove.dask.cluster.workers import GangBroken, ask_workers, named_errors
from margrove.dask.collective.channels import Inbox, Line, Lost, connect_to, keep_beating
from margrove.dask.collective.worker_loop import (
    BEGINNING,
    CLIENT,
    Reply,
    Request,
    heads_of,
    joint_reply,
    open_meeting,
    run_member,
)
from margrove.dask.partitions.shards import Shard
from margrove.dask.partitions.table import Parts
from margrove.exceptions import ClusterError

__all__ = ["Gang", "GangBroken"]

SILENCE_SECONDS = 40.0
_COMBINATIONS = ("sum", "max", "min", "list", "first", "none")
_LOOK_EVERY = 1.0
_OPEN_SECONDS = 30.0


class Gang:
    """A program that runs on several workers at once, each with its own rows.

    Parameters
    ----------
    client : distributed.Client
    shards : list of Shard
        From `plan_shards`: who is to hold which rows.
    parts : Parts
        The table.
    program : str
        "module:ClassName". Each member makes one, `ClassName(rows, *arguments)`, where `rows` is
        a `ShardRows`, or what the class `takes`, see `members`; `ask` calls its methods.
    *arguments
        The same for all members; pass large ones as futures.
    silence : float
        Seconds without a heartbeat of a member after which it counts as lost. A member that
        computes has heartbeats.

    Raises
    ------
    GangBroken
        From any method, when a worker is lost. `persistently` tries again.
    """

    def __init__(
        self,
        client: distributed.Client,
        shards: Sequence[Shard],
        parts: Parts,
        program: str,
        *arguments: Any,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self._client, self._shards, self._parts = client, list(shards), parts
        self._program, self._arguments, self._silence = program, arguments, silence
        self._name = f"margrove-gang-{secrets.token_hex(8)}"
        self._key = secrets.token_bytes(32)
        self._inbox: Inbox = queue.SimpleQueue()
        self._lines: dict[int, Line] = {}
        self._ended = threading.Event()
        self._tasks: list[Any] = []
        self._number = 0
        # by requests under way, and members
        self._replies: dict[int, dict[int, Reply]] = {BEGINNING.number: {}}
        self._is_broken = False

    @property
    def n_members(self) -> int:
        return len(self._shards)

    @property
    def workers(self) -> list[str]:
        return [shard.worker for shard in self._shards]

    # -- asking --

    def ask(self, method: str, *arguments: Any, combine: str = "sum") -> Any:
        """Have every member call `program.method(*arguments)`, and combine what they return.

        Parameters
        ----------
        method : str
        *arguments
            The same for all; arrays travel as they lie in memory.
        combine : {"sum", "max", "min", "list", "first", "none"}, default="sum"
            Elementwise, also inside tuples, lists and dicts; or a list in the order of shards; or
            the reply of the first member; or nothing. Whole numbers add up to the same for any
            number of members, floats do not.

        Returns
        -------
        the combined reply
        """
        return self.answer(self.order(method, *arguments, combine=combine))

    def order(self, method: str, *arguments: Any, combine: str = "sum") -> Request:
        """The first half of `ask`: `answer` is the other. Orders are done one after the other."""
        request = self._request(method, arguments, combine)
        for rank in heads_of(self.n_members):
            self._send(rank, request)
        return request

    def answer(self, request: Request) -> Any:
        """The combined reply to an order."""
        reply = self._reply(request)
        if request.combine == "list":
            return [reply.value[rank] for rank in range(self.n_members)]
        return reply.value

    def ask_each(
        self, method: str, arguments: Sequence[tuple[Any, ...]], combine: str = "sum"
    ) -> Any:
        """The same with arguments of its own for each member, in the order of shards."""
        if len(arguments) != self.n_members:
            raise ValueError(
                f"arguments must be one tuple for each of {self.n_members} members. Got "
                f"{len(arguments)}."
            )
        first = self._request(method, (), combine)
        for rank, own in enumerate(arguments):
            self._send(rank, Request(first.number, method, tuple(own), combine, False))
        return self.answer(first)

    def _request(self, method: str, arguments: tuple[Any, ...], combine: str) -> Request:
        if combine not in _COMBINATIONS:
            raise ValueError(f"combine must be one of {_COMBINATIONS}. Got {combine!r} instead.")
        if self._is_broken or not self._lines:
            raise GangBroken("This gang has ended.")
        self._number += 1
        self._replies[self._number] = {}
        return Request(self._number, method, arguments, combine)

    def _send(self, rank: int, request: Request) -> None:
        try:
            self._lines[rank].send(request)
        except OSError as error:
            raise self._broken(rank, str(error)) from error

    def _reply(self, request: Request) -> Reply:
        heads, own = heads_of(self.n_members), self._replies[request.number]
        while len(own) < len(heads):
            rank, message = self._next_message()
            if isinstance(message, Reply):
                if message.kind == "lost":
                    raise self._broken(*message.value)
                self._replies[message.number][rank] = message
        del self._replies[request.number]
        reply = joint_reply(request, [own[rank] for rank in heads])
        if reply.kind == "error":
            raise reply.value
        return reply

    def _next_message(self) -> tuple[int, Any]:
        """Waits as long as all members show that they are alive; see `Line`."""
        while True:
            try:
                rank, message = self._inbox.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                self._look_at_tasks()
                continue
            if isinstance(message, Lost):
                raise self._broken(rank, message.reason)
            return rank, message

    def _look_at_tasks(self) -> None:
        """A task that Dask could not even start says nothing on its line."""
        for task, shard in zip(self._tasks, self._shards, strict=False):
            if task.status == "error":
                self._is_broken = True
                raise task.exception()
            if task.status in ("cancelled", "lost"):
                raise self._broken(self._shards.index(shard), f"its task was {task.status}")

    def _broken(self, rank: int, reason: str) -> GangBroken:
        self._is_broken = True
        shard = self._shards[rank]
        return GangBroken(
            f"Worker {shard.worker}, which held rows {shard.start} to {shard.stop - 1}, is lost: "
            f"{reason}.",
            shard.worker,
        )

    # -- beginning and ending --

    def __enter__(self) -> Self:
        try:
            with named_errors(self._client):
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
        wait_for_results(self._client, self._parts.futures)
        addresses = self._open_meetings()
        self._connect(addresses)
        keep_beating(self._lines, self._ended, self._silence)
        self._tasks = [
            self._submit(rank, shard, addresses) for rank, shard in enumerate(self._shards)
        ]
        self._reply(BEGINNING)

    def _open_meetings(self) -> list[tuple[str, int]]:
        arguments = (self._name, self._key, self._silence)
        found = ask_workers(
            self._client, self.workers, open_meeting, *arguments, seconds=_OPEN_SECONDS
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
                    f"({error}). Let it through the firewall, or fit where workers can be reached: "
                    "in a task, client.submit(model.fit, X, y).result()."
                ) from error
            self._lines[rank] = Line(connection, rank, self._inbox, self._silence).start()

    def _is_alive(self, rank: int) -> bool:
        worker = self.workers[rank]
        answer = ask_workers(self._client, [worker], os.getpid, seconds=_OPEN_SECONDS)[worker]
        return isinstance(answer, int)

    def _submit(self, rank: int, shard: Shard, addresses: list[tuple[str, int]]) -> Any:
        numbers = [number for number, _, _ in shard.pieces]

        def own(futures: list[Any] | None) -> list[Any] | None:
            return None if futures is None else [futures[number] for number in numbers]

        parts = self._parts
        return self._client.submit(
            run_member,
            self._name,
            rank,
            addresses,
            shard,
            own(parts.X),
            own(parts.y),
            own(parts.weight),
            self._program,
            self._arguments,
            key=f"{self._name}-{rank}",
            workers=[shard.worker],
            allow_other_workers=False,
            pure=False,
            priority=10,
        )

    def close(self) -> None:
        """End all tasks. A method that is still running ends as soon as it looks at `rows.gone`."""
        for line in self._lines.values():
            with contextlib.suppress(OSError):
                if not self._is_broken:
                    line.send("end")
        if not self._is_broken and self._tasks:
            with contextlib.suppress(Exception), self._client.as_current():
                distributed.wait(self._tasks, timeout=1)
        self._ended.set()
        for line in self._lines.values():
            line.close()
        self._lines = {}
        if self._tasks:
            with contextlib.suppress(Exception):
                self._client.cancel(self._tasks, force=True)
            self._tasks = []


def refuse_encrypted(workers: Sequence[str]) -> None:
    """The lines of a gang are not encrypted; where Dask's are, that has to be said."""
    if any(worker.startswith("tls://") for worker in workers) and not dask.config.get(
        "margrove.plain-sockets", False
    ):
        raise ClusterError(
            "This cluster encrypts what it sends (tls://), and the sockets of a fit do not: they "
            "are authenticated only. If that will do on your network, "
            'dask.config.set({"margrove.plain-sockets": True}).'
        )
