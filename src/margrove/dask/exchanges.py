"""Sums over the workers of a fit, through the connections of the cluster.

Members put arrays into the mailboxes of others (`mailboxes`), as messages of Dask.

Members on one machine first add up in memory that they share (`host_memory`); then only the first
of each machine sends messages. These exchange in pairs: first with the neighbour, then with the
member two places away, then four, so that all have the result after log2(members) exchanges. Each
of them adds the same pairs of numbers, and a + b = b + a, so all have the same bits.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from distributed.comm.core import connect
from distributed.protocol.serialize import to_serialize

from margrove.dask.cluster import WorkerLost
from margrove.dask.host_memory import HostMemory, host_name
from margrove.dask.mailboxes import ASK, PUT, Stopped, mailbox_of

__all__ = ["WorkerCollective"]

_SECONDS_OF_A_LOOK = 1.0  # a member that waits looks that often whether it is still wanted
_SECONDS_TO_ASK = 3.0  # after which it asks the other member whether it is still there
_SECONDS_TO_ANSWER = 60.0  # a worker that does not answer for so long counts as lost
_SMALL = 1 << 16  # bytes that are sent as a part of a message

_Step = Callable[[int, Any], None]


class _Connection:
    """Messages to another worker, without answers, on a connection of the cluster's kind."""

    def __init__(self, worker: Any, address: str) -> None:
        self._loop, self._address = worker.loop.asyncio_loop, address
        self._arguments = worker.security.get_connection_args("worker")
        self._comm: Any = None
        self._writing: Any = None

    def send(self, message: dict[str, Any]) -> None:
        """Start to send; OSError or TimeoutError if the message before has not been sent."""
        self.finish()
        self._writing = asyncio.run_coroutine_threadsafe(self._write(message), self._loop)

    def finish(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            try:
                writing.result(_SECONDS_TO_ANSWER)
            finally:
                writing.cancel()

    async def _write(self, message: dict[str, Any]) -> None:
        if self._comm is None:
            self._comm = await connect(self._address, **self._arguments)
        await self._comm.write({"reply": False, **message})

    def close(self) -> None:
        """Close the connection when all messages are sent."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop)

    async def _close(self) -> None:
        if self._comm is not None:
            await self._comm.close()


class WorkerCollective:
    """A member of a run, on its worker; see `Collective`.

    is_wanted()   whether the task of this member has not been cancelled
    n_calls, n_bytes, seconds   of all sums and maxima so far
    """

    def __init__(
        self,
        worker: Any,
        run: str,
        addresses: list[str],
        rank: int,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._worker, self._run, self._addresses = worker, run, addresses
        self._mailbox = mailbox_of(worker, run)
        self._is_wanted = is_wanted
        self.rank, self.size = rank, len(addresses)
        self._connections: dict[int, _Connection] = {}
        self._buffers: dict[tuple[Any, int], np.ndarray] = {}
        self._memory: HostMemory | None = None  # shared with the members `here`
        self._here = [rank]
        self._firsts = list(range(len(addresses)))  # of each machine: these send messages
        self._looked_at = time.monotonic()
        self._waiting_since = 0.0
        self.n_calls = 0
        self.n_bytes = 0
        self.seconds = 0.0

    def close(self) -> None:
        while self._connections:
            connection = self._connections.popitem()[1]
            with contextlib.suppress(OSError, TimeoutError):
                connection.finish()
            connection.close()

    def find_hosts(self) -> None:
        """Find the members on this machine, and memory that they share with this one.

        All members must call it at the same time, before anything else.
        """
        if self.size == 1:
            return
        hosts = self.gather(host_name())
        here = [rank for rank in range(self.size) if hosts[rank] == hosts[self.rank]]
        place, memory, offer = here.index(self.rank), None, None
        if place == 0 and len(here) > 1:
            created = HostMemory.created(len(here))
            memory, offer = created if created else (None, None)
        offers = self.gather(offer)
        if place > 0 and offers[here[0]] is not None:
            memory = HostMemory.joined(offers[here[0]], place, len(here))
        has_memory = self.gather(memory is not None)
        if offer is not None:
            HostMemory.unlink(offer)
        shares = {host: all(has_memory[r] for r in range(self.size) if hosts[r] == host)
                  for host in hosts}  # fmt: skip
        if shares[hosts[self.rank]]:
            self._here, self._memory = here, memory
        self._firsts = [
            rank for rank in range(self.size)
            if not shares[hosts[rank]] or hosts.index(hosts[rank]) == rank
        ]  # fmt: skip

    def sum(self, array: np.ndarray) -> None:
        self._reduce(array, np.add)

    def max(self, array: np.ndarray) -> None:
        self._reduce(array, np.maximum)

    def _reduce(self, array: np.ndarray, operation: Any) -> None:
        self._require_wanted()
        own = array.reshape(-1).view()
        if not own.size or self.size == 1:
            return
        assert array.flags.c_contiguous
        began = time.perf_counter()
        self.n_calls, self.n_bytes = self.n_calls + 1, self.n_bytes + own.nbytes
        if self._memory is not None:
            self._waiting_since = began
            self._memory.reduce(own, operation, self._while_waiting)
        if self.rank in self._firsts and len(self._firsts) > 1:
            self._reduce_between(self._firsts, own, operation)
        if self._memory is not None and len(self._firsts) > 1:
            self._memory.broadcast(own, self._while_waiting)
        self.seconds += time.perf_counter() - began

    def _reduce_between(self, ranks: list[int], own: np.ndarray, operation: Any) -> None:
        """Combine arrays of these members by messages."""

        def send(partner: int, step: Any) -> None:
            self._send(partner, step, self._content(own, step))

        def received(partner: int, step: Any) -> np.ndarray:
            found: np.ndarray = np.frombuffer(self._receive(partner, step), own.dtype)
            return found

        def combine(partner: int, step: Any) -> None:
            operation(own, received(partner, step), out=own)

        def replace(partner: int, step: Any) -> None:
            own[:] = received(partner, step)

        self._exchange(ranks, send, combine, replace)

    def gather(self, value: Any) -> list[Any]:
        self._require_wanted()
        self.n_calls += 1
        known = {self.rank: value}

        def send(partner: int, step: Any) -> None:
            self._send(partner, step, pickle.dumps(known, protocol=5))

        def combine(partner: int, step: Any) -> None:
            known.update(pickle.loads(self._receive(partner, step)))

        self._exchange(list(range(self.size)), send, combine, combine)
        return [known[rank] for rank in range(self.size)]

    def _exchange(self, ranks: list[int], send: _Step, combine: _Step, replace: _Step) -> None:
        """Exchange values between members, so that all have the combination of all of them.

        send(partner, step), and combine or replace(partner, step) with what the partner sends
        """
        place = ranks.index(self.rank)
        n_pairing = 1 << (len(ranks).bit_length() - 1)  # the others give theirs to one of these
        if place >= n_pairing:
            send(ranks[place - n_pairing], "in")
            replace(ranks[place - n_pairing], "out")
            return
        extra = place + n_pairing
        if extra < len(ranks):
            combine(ranks[extra], "in")
        step = 1
        while step < n_pairing:
            send(ranks[place ^ step], step)
            combine(ranks[place ^ step], step)
            step *= 2
        if extra < len(ranks):
            send(ranks[extra], "out")

    def _while_waiting(self) -> None:
        """See whether members on this machine can still come."""
        self._mailbox.check()
        now = time.perf_counter()
        if now - self._waiting_since < _SECONDS_TO_ASK:
            return
        self._waiting_since = now
        self._require_wanted()
        assert self._memory is not None
        for place in self._memory.missing():
            self._require_member(self._here[place])

    # -- messages --

    def _content(self, array: np.ndarray, step: Any) -> Any:
        """The bytes of an array, which may change before they are sent: a copy.

        Two buffers take turns. A member that has received a message of the next exchange knows
        that its own message of this one has arrived, because the partner comes to the next exchange
        only after that. So the buffer is free again in the exchange after the next.
        """
        if array.nbytes <= _SMALL:
            return array.tobytes()
        place = step, self.n_calls % 2
        if len(self._buffers.get(place, ())) < array.nbytes:
            self._buffers[place] = np.empty(2 * array.nbytes, np.uint8)
        buffer = self._buffers[place][: array.nbytes]
        buffer[:] = array.view(np.uint8)
        return to_serialize(buffer)

    def _send(self, partner: int, step: Any, content: Any) -> None:
        if partner not in self._connections:
            self._connections[partner] = _Connection(self._worker, self._addresses[partner])
        key = (self.n_calls, step, self.rank)
        message = {"op": PUT, "run": self._run, "key": key, "value": content}
        with self._or_lost(partner):
            self._connections[partner].send(message)

    def _receive(self, partner: int, step: Any) -> Any:
        key, waited = (self.n_calls, step, partner), 0.0
        while True:
            try:
                return self._mailbox.take(key, _SECONDS_OF_A_LOOK)
            except TimeoutError:
                waited += _SECONDS_OF_A_LOOK
            self._require_wanted()
            if waited >= _SECONDS_TO_ASK:
                waited = 0.0
                self._require_member(partner)

    def _require_wanted(self) -> None:
        """Raise if nobody wants the result any more, for example because the client is gone."""
        now = time.monotonic()
        if now - self._looked_at >= _SECONDS_OF_A_LOOK:
            self._looked_at = now
            if not self._is_wanted():
                raise Stopped("The task of this member was cancelled.")

    def _require_member(self, partner: int) -> None:
        """Raise if another member cannot send any more."""
        asking = asyncio.run_coroutine_threadsafe(
            getattr(self._worker.rpc(self._addresses[partner]), ASK)(run=self._run),
            self._worker.loop.asyncio_loop,
        )
        with self._or_lost(partner):
            try:
                is_there = asking.result(_SECONDS_TO_ANSWER)
            finally:
                asking.cancel()
        if not is_there:
            self._mailbox.check()
            raise Stopped(f"The member on {self._addresses[partner]} has ended.")

    @contextlib.contextmanager
    def _or_lost(self, partner: int) -> Iterator[None]:
        """Raise errors of a connection as the loss of a worker."""
        address = self._addresses[partner]
        try:
            yield
        except (OSError, TimeoutError) as error:
            self._mailbox.check()
            raise WorkerLost(f"Worker {address} was lost: {error}", address) from error
