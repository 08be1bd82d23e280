"""uvicorn without logs, with limits of sizes, connections and times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from margrove.studio.server.messages import LONGEST_MESSAGE

__all__ = ["HeaderTimeoutProtocol", "quiet_server"]

_LONGEST_HEADERS = 16_384
_MOST_CONNECTIONS = 200


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which also closes a connection whose headers do not arrive in time.

    uvicorn limits the time between two requests, but not the time that the headers of a request
    take. Without a limit, a client that sends them byte by byte keeps a connection for ever.
    """

    header_seconds = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._restart_timer()

    def on_response_complete(self) -> None:
        self._restart_timer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.header_seconds, self._close_if_waiting)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _close_if_waiting(self) -> None:
        is_http = self.transport.get_protocol() is self  # a WebSocket may have taken over
        if is_http and self.conn.their_state is h11.IDLE:
            self.transport.abort()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The caller handles signals: it has a folder to remove before the process ends."""
        yield


def quiet_server(application: Any) -> uvicorn.Server:
    """A server for sockets that are already bound. It writes no logs: they would hold paths."""
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http=HeaderTimeoutProtocol,
        ws="websockets-sansio",
        ws_max_size=LONGEST_MESSAGE,
        ws_per_message_deflate=False,  # a small frame stays small
        lifespan="on",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=128,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
    )
    return _Server(config)
