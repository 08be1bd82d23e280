"""uvicorn, with everything bounded and nothing logged."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import uvicorn

from margrove.studio.server.messages import LONGEST_MESSAGE
from margrove.studio.server.timeouts import ImpatientProtocol

__all__ = ["quiet_server"]

_LONGEST_HEADERS = 16_384


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are seen to by whoever runs it."""
        yield


def quiet_server(application: Any) -> uvicorn.Server:
    """A server for sockets that are bound already. Its logs would hold paths, so it has none."""
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http=ImpatientProtocol,
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
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
    )
    return _Server(config)
