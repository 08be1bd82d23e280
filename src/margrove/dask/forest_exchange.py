"""Rows on their way from one member of a gang to another, on lines of their own.

What is passed on does not go through the client. Whoever is sent to reads at all times, so that no
two members ever wait for each other.
"""

from __future__ import annotations

import queue
import socket
import threading
from typing import Any

from margrove.dask.cluster import GangBroken
from margrove.dask.lines import Inbox, Line, Lost, connect_to, greet, keep_beating, listen_at

__all__ = ["Exchange"]

_SILENCE_SECONDS = 40.0
_LOOK_EVERY = 0.5


class Exchange:
    """One member's end: `address` is where others find it, `join` tells it where these are.

    gone: ends it, when it is set.
    """

    def __init__(self, rank: int, key: bytes, gone: threading.Event) -> None:
        self._rank, self._key, self._gone = rank, key, gone
        self._inbox: Inbox = queue.SimpleQueue()
        self._lines: dict[Any, Line] = {}
        self._addresses: list[tuple[str, int]] = []
        self._workers: list[str] = []
        host = _own_host()
        self._listener = listen_at(host)
        self._listener.settimeout(_LOOK_EVERY)
        self.address = host, int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="margrove-exchange", daemon=True).start()
        keep_beating(self._lines, gone, _SILENCE_SECONDS)

    def join(self, addresses: list[tuple[str, int]], workers: list[str]) -> None:
        self._addresses, self._workers = addresses, workers

    def send(self, other: int, message: Any) -> None:
        """To a member, perhaps to this one itself."""
        if other == self._rank:
            self._inbox.put((other, message))
            return
        try:
            line = self._lines.get(other)
            if line is None:
                connection = connect_to(self._addresses[other], self._key, self._rank)
                line = Line(connection, other, self._inbox, _SILENCE_SECONDS).start()
                self._lines[other] = line
            line.send(message)
        except (OSError, EOFError) as error:
            raise self._broken(other, str(error)) from error

    def receive(self) -> list[Any]:
        """The next message of every member, in their order."""
        found: dict[int, Any] = {}
        later = []
        while len(found) < len(self._addresses):
            try:
                who, message = self._inbox.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                if self._gone.is_set():
                    raise GangBroken("Nobody waits for this member any more.") from None
                continue
            if isinstance(message, Lost):
                raise self._broken(who, message.reason)
            if who in found:
                later.append((who, message))
            else:
                found[who] = message
        for item in later:
            self._inbox.put(item)
        return [found[rank] for rank in range(len(self._addresses))]

    def _broken(self, other: int, reason: str) -> GangBroken:
        worker = self._workers[other]
        return GangBroken(f"Worker {worker} is lost to another one: {reason}.", worker)

    def _accept(self) -> None:
        while not self._gone.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            threading.Thread(target=self._let_in, args=(connection,), daemon=True).start()
        self._listener.close()
        for line in list(self._lines.values()):
            line.close()

    def _let_in(self, connection: socket.socket) -> None:
        try:
            who = greet(connection, self._key)
        except (OSError, EOFError):
            connection.close()
            return
        line = Line(connection, who, self._inbox, _SILENCE_SECONDS)
        self._lines[f"from {who}"] = line  # one that we call ourselves is another
        line.start()
        if self._gone.is_set():
            line.close()


def _own_host() -> str:
    """Where other workers reach this one."""
    import distributed
    from distributed.comm.addressing import get_address_host

    try:
        address = distributed.get_worker().address
    except ValueError:  # not on a worker
        return "127.0.0.1"
    return "127.0.0.1" if address.startswith("inproc") else str(get_address_host(address))
