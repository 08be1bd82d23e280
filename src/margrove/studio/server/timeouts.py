"""HTTP as uvicorn speaks it, with an end to waiting.

uvicorn waits for ever for the rest of a request, and takes any number of connections. Here a
request has to say what it wants within some seconds, and too many connections are not taken.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from margrove.studio.server.guard import COMMON_HEADERS, NOTHING_ALLOWED

__all__ = ["ImpatientProtocol"]


class ImpatientProtocol(H11Protocol):
    """Closes connections whose request is not complete in time."""

    header_seconds = 10.0
    most_connections = 200

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait_for_headers()
        else:
            self._wait_no_more()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP never reaches the guard, and is answered with the same headers."""
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(msg)).encode()),
            (b"connection", b"close"),
            (b"content-security-policy", NOTHING_ALLOWED.encode()),
            *COMMON_HEADERS.items(),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=msg.encode("ascii")),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        """From the first moment on; what comes in between does not begin it anew."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.header_seconds, self._lose_patience)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _lose_patience(self) -> None:
        self._deadline = None
        is_ours = self.transport.get_protocol() is self  # not that of a socket by now
        if is_ours and self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.abort()
