"""The worker's side of a gang: a meeting point for its lines, and the loop that serves it.

The client has a line to every member, so that it notices at once whom it has lost, and each member
notices when the client is gone. Few members get requests and send replies on these. Of many, member
k has members 2k + 1 and 2k + 2 below it: requests travel down this tree, replies are combined on
their way up.
"""

from __future__ import annotations

import importlib
import pickle
import queue
import socket
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import distributed
import joblib
import numpy as np

from margrove.dask.cluster.workers import GangBroken, threads_of_worker
from margrove.dask.collective.channels import (
    Inbox,
    Line,
    Lost,
    connect_to,
    greet,
    keep_beating,
    listen_at,
)
from margrove.dask.partitions.shards import Shard, pieces_of_shard, rows_of_shard, tiles_of_shard

__all__ = [
    "BEGINNING",
    "CLIENT",
    "Reply",
    "Request",
    "combined",
    "heads_of",
    "joint_reply",
    "open_meeting",
    "run_member",
]

CLIENT = -1
_FEW = 4  # members whom the client talks to itself
_ARRIVE_SECONDS = 120.0  # until the client has called


@dataclass(frozen=True)
class Request:
    """What every member is to do; `is_forwarded` ones come to a member from the one above it."""

    number: int
    method: str
    arguments: tuple[Any, ...]
    combine: str
    is_forwarded: bool = True


BEGINNING = Request(0, "", (), "none")  # to make the program


@dataclass(frozen=True)
class Reply:
    """What a member and those below it have to say to a request.

    kind    "value", "error" (an exception, and where), or "lost" (a worker, and why)
    """

    number: int
    kind: str
    value: Any


# -- who talks to whom --


def heads_of(n_members: int) -> range:
    """The members that the client talks to."""
    return range(n_members if n_members <= _FEW else 1)


def _above(rank: int, n_members: int) -> int:
    return CLIENT if rank in heads_of(n_members) else (rank - 1) // 2


def _below(rank: int, n_members: int) -> list[int]:
    both = (2 * rank + 1, 2 * rank + 2)
    return [k for k in both if k < n_members and _above(k, n_members) == rank]


# -- meeting --


class Meeting:
    """Where the lines of one member come together, from before its task starts."""

    def __init__(self, key: bytes, host: str, silence: float, forget: Callable[[], Any]) -> None:
        self.inbox: Inbox = queue.SimpleQueue()
        self.lines: dict[int, Line] = {}
        self.gone = threading.Event()
        self._key, self._silence, self._forget = key, silence, forget
        self._since = time.monotonic()
        self._client_is_here = threading.Event()
        self._listener = listen_at(host)
        self._listener.settimeout(1.0)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="margrove-meeting", daemon=True).start()
        keep_beating(self.lines, self.gone, silence)

    def _accept(self) -> None:
        while not self.gone.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if CLIENT not in self.lines and time.monotonic() - self._since > _ARRIVE_SECONDS:
                    self.close()
                continue
            except OSError:
                break
            threading.Thread(target=self._let_in, args=(connection,), daemon=True).start()

    def _let_in(self, connection: socket.socket) -> None:
        try:
            who = greet(connection, self._key)
        except (OSError, EOFError):
            connection.close()
            return
        self.add(connection, who)

    def add(self, connection: socket.socket, who: int) -> None:
        """A line to the client or another member; that of the client ends everything."""
        inbox = _Watched(self.inbox, self.close) if who == CLIENT else self.inbox
        line = Line(connection, who, inbox, self._silence)  # type: ignore[arg-type]
        self.lines[who] = line
        line.start()
        if who == CLIENT:
            self._client_is_here.set()

    def client(self) -> Line:
        """The line to the client, whose call may just be being answered."""
        if not self._client_is_here.wait(self._silence):
            raise TimeoutError("the client has not called")
        return self.lines[CLIENT]

    def connect(self, address: tuple[str, int], rank: int, other: int) -> None:
        """Call another member."""
        self.add(connect_to(address, self._key, rank), other)

    def close(self) -> None:
        self.gone.set()
        self._forget()
        self._listener.close()
        for line in list(self.lines.values()):
            line.close()
        self.inbox.put((CLIENT, Lost("the client is gone")))


class _Watched:
    """An inbox that calls somebody when a line is lost."""

    def __init__(self, inbox: Inbox, on_loss: Callable[[], None]) -> None:
        self._inbox, self._on_loss = inbox, on_loss

    def put(self, item: tuple[int, Any]) -> None:
        self._inbox.put(item)
        if isinstance(item[1], Lost):
            self._on_loss()


_MEETINGS: dict[tuple[str, str], Meeting] = {}


def open_meeting(gang: str, key: bytes, silence: float, dask_worker: Any = None) -> tuple[str, int]:
    """Run on a worker before its member's task is submitted: the address of its meeting."""
    from distributed.comm.addressing import get_address_host

    is_here = dask_worker.address.startswith("inproc")
    host = "127.0.0.1" if is_here else get_address_host(dask_worker.address)
    name = (gang, dask_worker.address)
    meeting = Meeting(key, host, silence, lambda: _MEETINGS.pop(name, None))
    _MEETINGS[name] = meeting
    return host, meeting.port


# -- serving --


def run_member(
    gang: str,
    rank: int,
    addresses: list[tuple[str, int]],
    shard: Shard,
    X: list[Any],
    y: list[Any] | None,
    weight: list[Any] | None,
    program: str,
    arguments: tuple[Any, ...],
) -> None:
    """The task of one member: it lasts until the client ends the gang, or is gone."""
    meeting = _MEETINGS.get((gang, distributed.get_worker().address))
    if meeting is None:
        raise GangBroken("The worker was restarted before its task began.", shard.worker)
    n_threads = threads_of_worker()
    try:
        meeting.client()
        distributed.secede()
        above = _above(rank, len(addresses))
        if above != CLIENT:
            meeting.connect(addresses[above], rank, above)
        member = _Member(meeting, rank, len(addresses), shard.worker)
        with joblib.parallel_config(backend="threading", n_jobs=n_threads):
            made = partial(_program, program, arguments)
            member.serve(partial(made, shard, X, y, weight, n_threads, meeting.gone))
    except (_Ended, OSError, EOFError):
        pass  # whoever was lost, the client knows
    finally:
        meeting.close()


def _program(program: str, arguments: tuple[Any, ...], *rows: Any) -> Any:
    """Made of its rows, or of what it `takes` instead: "tiles" of them, or "pieces" of parts."""
    made = _class_at(program)
    return made(_GATHERING[getattr(made, "takes", "rows")](*rows), *arguments)


_GATHERING: dict[str, Callable[..., Any]] = {
    "rows": rows_of_shard,
    "tiles": tiles_of_shard,
    "pieces": pieces_of_shard,
}


def _class_at(program: str) -> Any:
    module, _, name = program.partition(":")
    return getattr(importlib.import_module(module), name)


class _Ended(Exception):  # noqa: N818
    """There is nobody left to serve."""


class _Member:
    def __init__(self, meeting: Meeting, rank: int, n_members: int, worker: str) -> None:
        self._meeting = meeting
        self._rank, self._worker = rank, worker
        self._above, self._below = _above(rank, n_members), _below(rank, n_members)
        self._kept: list[tuple[int, Any]] = []

    def serve(self, make: Callable[[], Any]) -> None:
        program: Any = None

        def begin() -> None:
            nonlocal program
            program = make()

        self._answer(BEGINNING, begin)
        while True:
            request = self._next_request()
            if request.is_forwarded:
                for k in self._below:
                    self._meeting.lines[k].send(request)
            self._answer(request, partial(_called, program, request))

    def _next_request(self) -> Request:
        while True:
            who, message = self._take(lambda message: isinstance(message, (Request, str)))
            if message == "end":
                raise _Ended
            if isinstance(message, Request):
                return message
            del who

    def _answer(self, request: Request, work: Callable[[], Any]) -> None:
        """Do it, wait for those below, and tell the one above."""
        own = self._attempt(request, work)
        replies = [own, *(self._reply_of(k, request.number) for k in self._below)]
        self._meeting.lines[self._above].send(joint_reply(request, replies))

    def _attempt(self, request: Request, work: Callable[[], Any]) -> Reply:
        try:
            value = work()
        except Exception as error:
            error.add_note(f"(on worker {self._worker})")
            return Reply(request.number, "error", _picklable(error))
        if request.combine == "list":
            value = {self._rank: value}
        elif request.combine == "none" or (request.combine == "first" and self._rank):
            value = None
        return Reply(request.number, "value", value)

    def _reply_of(self, k: int, number: int) -> Reply:
        _, message = self._take(
            lambda message: isinstance(message, (Reply, Lost)), lambda who: who == k
        )
        if isinstance(message, Lost):
            return Reply(number, "lost", (k, message.reason))
        assert isinstance(message, Reply)
        return message

    def _take(
        self,
        is_wanted: Callable[[Any], bool],
        is_right: Callable[[int], bool] = lambda _: True,
    ) -> tuple[int, Any]:
        """The first message of its kind; others are kept. Losing those above ends everything."""
        for i, (who, message) in enumerate(self._kept):
            if is_wanted(message) and is_right(who):
                return self._kept.pop(i)
        while True:
            who, message = self._meeting.inbox.get()
            if isinstance(message, Lost) and who in (CLIENT, self._above):
                raise _Ended
            if is_wanted(message) and is_right(who):
                return who, message
            self._kept.append((who, message))


def _called(program: Any, request: Request) -> Any:
    return getattr(program, request.method)(*request.arguments)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        told = "".join(traceback.format_exception_only(error)).strip()
        return RuntimeError(told)
    return error


# -- combining --


def joint_reply(request: Request, replies: list[Reply]) -> Reply:
    """What several members say, in one."""
    for kind in ("lost", "error"):
        for reply in replies:
            if reply.kind == kind:
                return reply
    try:
        value = combined(request.combine, [reply.value for reply in replies])
    except Exception as error:
        return Reply(request.number, "error", _picklable(error))
    return Reply(request.number, "value", value)


def combined(how: str, values: list[Any]) -> Any:
    """Replies as one: "sum", "max", "min" elementwise, also inside tuples, lists and dicts."""
    if how in ("none", "first"):
        return values[0]
    if how == "list":
        return {rank: value for some in values for rank, value in some.items()}
    result = values[0]
    for other in values[1:]:
        result = _pairwise(_ELEMENTWISE[how], result, other)
    return result


_ELEMENTWISE: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def _pairwise(operation: Any, one: Any, other: Any) -> Any:
    if one is None and other is None:
        return None
    if isinstance(one, dict):
        return {name: _pairwise(operation, one[name], other[name]) for name in one}
    if isinstance(one, (tuple, list)):
        pairs = zip(one, other, strict=True)
        return type(one)(_pairwise(operation, a, b) for a, b in pairs)
    if isinstance(one, np.ndarray) and one.shape == np.shape(other):
        return operation(one, other)
    if np.ndim(one) or np.ndim(other):
        raise ValueError(f"Members replied with shapes {np.shape(one)} and {np.shape(other)}.")
    if isinstance(one, (int, float)) and operation is np.add:
        return one + other
    return operation(one, other).item()
