"""Channels of a worker group: authenticated sockets that carry messages and heartbeats.

A message consists of the number of buffers, their lengths, and the buffers; numbers are unsigned
64-bit integers, little-endian. The first buffer is a pickle, the others are the contents of the
arrays in it. A message without buffers is a heartbeat.

Nothing is unpickled before both ends have proved, by HMAC over fresh numbers, that they know the
key of the group, which is sent through Dask. A channel on which nothing arrives for
`heartbeat_timeout` seconds is lost: both ends send several heartbeats in that time, even while they
compute.
"""

from __future__ import annotations

import contextlib
import hmac
import pickle
import queue
import secrets
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Channel",
    "ChannelLost",
    "Inbox",
    "accept_handshake",
    "connect_to",
    "listen_at",
    "start_heartbeats",
]

_HEARTBEATS_A_TIMEOUT = 10
_LONGEST_PAUSE = 2.0
_HANDSHAKE_SECONDS = 20.0
_AT_ONCE = 1 << 20
_MOST_BUFFERS = 1 << 20
_MOST_PIECES = 64  # buffers in one system call
_NONCE = 32
_COUNT = struct.Struct("<Q")
_WHO = struct.Struct("<q")

Inbox = queue.SimpleQueue[tuple[int, Any]]


@dataclass(frozen=True)
class ChannelLost:
    """A message of the channel itself: the other end is lost, with the reason."""

    reason: str


class Channel:
    """One end of a channel: sends messages, and puts received ones into an inbox.

    Parameters
    ----------
    connection : socket, after the handshake
    name : int
        The rank of the other end, or CLIENT; it goes into the inbox with each message.
    inbox : queue of (name, message)
    heartbeat_timeout : float
        Seconds after which a silent other end counts as lost.
    """

    def __init__(
        self, connection: socket.socket, name: int, inbox: Inbox, heartbeat_timeout: float
    ) -> None:
        connection.settimeout(heartbeat_timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.name = name
        self._connection = connection
        self._inbox = inbox
        self._heartbeat_timeout = heartbeat_timeout
        self._sending = threading.Lock()
        self.is_closed = False
        self._reader = threading.Thread(target=self._read, name="margrove-channel", daemon=True)

    def start(self) -> Channel:
        self._reader.start()
        return self

    def send(self, message: Any) -> None:
        """Send a picklable message; OSError if the channel is lost."""
        large: list[pickle.PickleBuffer] = []
        plain = pickle.dumps(message, protocol=5, buffer_callback=large.append)
        buffers = [memoryview(plain), *(buffer.raw() for buffer in large)]
        sizes = (_COUNT.pack(buffer.nbytes) for buffer in buffers)
        head = b"".join([_COUNT.pack(len(buffers)), *sizes])
        with self._sending:
            _send_all(self._connection, [memoryview(head), *buffers])

    def send_heartbeat(self) -> None:
        """Tell the other end that this one is alive, unless a message is just being sent."""
        if self._sending.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError):  # the reading thread notices
                    self._connection.sendall(_COUNT.pack(0))
            finally:
                self._sending.release()

    def close(self) -> None:
        self.is_closed = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._connection.close()

    def _read(self) -> None:
        try:
            while True:
                message = self._receive()
                if message is not _HEARTBEAT:
                    self._inbox.put((self.name, message))
        except TimeoutError:
            reason = f"nothing was received from it for {self._heartbeat_timeout:.0f} seconds"
        except (OSError, EOFError) as error:
            reason = str(error) or "its connection was closed"
        except Exception as error:  # a message that cannot be unpickled
            reason = f"it sent a message that cannot be read: {type(error).__name__}: {error}"
        self._inbox.put((self.name, ChannelLost(reason)))
        self.close()

    def _receive(self) -> Any:
        (count,) = _COUNT.unpack(self._take(_COUNT.size))
        if count == 0:
            return _HEARTBEAT
        if count > _MOST_BUFFERS:
            raise EOFError("it sent a message of unknown format")
        sizes = self._take(count * _COUNT.size)
        buffers = [self._take(size) for (size,) in _COUNT.iter_unpack(sizes)]
        return pickle.loads(buffers[0], buffers=buffers[1:])

    def _take(self, size: int) -> bytearray:
        """Receive exactly `size` bytes, in a writable buffer, of which arrays are made."""
        return _received(self._connection, size)


_HEARTBEAT = object()


def _send_all(connection: socket.socket, buffers: list[memoryview]) -> None:
    """Send buffers one after the other without copying; the timeout holds for each call."""
    waiting = [buffer for buffer in buffers if buffer.nbytes]
    while waiting:
        sent = connection.sendmsg(waiting[:_MOST_PIECES])
        while waiting and sent >= waiting[0].nbytes:
            sent -= waiting.pop(0).nbytes
        if sent:
            waiting[0] = waiting[0][sent:]


def _received(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view, min(len(view), _AT_ONCE))
        if count == 0:
            raise EOFError("its connection was closed")
        view = view[count:]
    return data


# -- making connections --


def listen_at(host: str) -> socket.socket:
    """A listening socket at a free port; at all addresses if the host is not local."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, 0), family=family, backlog=128)
    except OSError:  # such as the external address of a container
        return socket.create_server(("", 0), family=socket.AF_INET, backlog=128)


def accept_handshake(connection: socket.socket, key: bytes) -> int:
    """The listening end of the handshake: the rank of the caller.

    PermissionError if the caller does not know the key.
    """
    connection.settimeout(_HANDSHAKE_SECONDS)
    ours = secrets.token_bytes(_NONCE)
    connection.sendall(ours)
    answer = bytes(_received(connection, _WHO.size + 2 * _NONCE))
    who, theirs, proof = answer[:8], answer[8 : 8 + _NONCE], answer[8 + _NONCE :]
    if not hmac.compare_digest(proof, _proof(key, b"caller", ours, theirs, who)):
        raise PermissionError("a caller did not know the key")
    connection.sendall(_proof(key, b"host", ours, theirs, who))
    return int(_WHO.unpack(who)[0])


def connect_to(
    address: tuple[str, int], key: bytes, who: int, seconds: float = _HANDSHAKE_SECONDS
) -> socket.socket:
    """The calling end of the handshake: a connected, authenticated socket."""
    connection = socket.create_connection(address, timeout=seconds)
    try:
        connection.settimeout(seconds)
        ours = bytes(_received(connection, _NONCE))
        theirs, name = secrets.token_bytes(_NONCE), _WHO.pack(who)
        connection.sendall(name + theirs + _proof(key, b"caller", ours, theirs, name))
        proof = bytes(_received(connection, _NONCE))
        if not hmac.compare_digest(proof, _proof(key, b"host", ours, theirs, name)):
            raise PermissionError(f"the process that listens at {address} does not know the key")
    except BaseException:
        connection.close()
        raise
    return connection


def _proof(key: bytes, *what: bytes) -> bytes:
    return hmac.digest(key, b"".join(what), "sha256")


def start_heartbeats(
    channels: Any, ended: threading.Event, heartbeat_timeout: float
) -> threading.Thread:
    """Send heartbeats on all channels of a dictionary, which may grow, until `ended` is set."""

    pause = min(heartbeat_timeout / _HEARTBEATS_A_TIMEOUT, _LONGEST_PAUSE)

    def send_heartbeat() -> None:
        while not ended.wait(pause):
            for channel in list(channels.values()):
                if not channel.is_closed:
                    channel.send_heartbeat()

    thread = threading.Thread(target=send_heartbeat, name="margrove-heartbeat", daemon=True)
    thread.start()
    return thread
