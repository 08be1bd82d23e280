"""One WebSocket session for each tab: it authenticates, sends requests and receives answers.

Answers go through a queue, so that nothing waits for a slow browser. While a tab does not read
its answers, the studio does not read its requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from margrove._version import __version__
from margrove.studio.server.messages import MessageError, cancelled, hello_of, request_of
from margrove.studio.server.tab_keys import TabKeys
from margrove.studio.worker import QueuedRequest, WorkerSupervisor

__all__ = ["SessionContext", "WebSocketSession"]

_HELLO_SECONDS = 10.0
_SEND_SECONDS = 30.0
_MOST_UNSENT = 64
_LINK_USED = (
    "This link was already used, or a newer link has replaced it. Press Enter in the terminal "
    "of the studio to get a new link."
)
_RESTARTED = "The studio was restarted. Open the new link that it printed."
# A tab is gone, or it reads too slowly. Sending to a closed socket is a RuntimeError.
_DISCONNECTED = (WebSocketDisconnect, TimeoutError, OSError, RuntimeError)


@dataclass
class SessionContext:
    """What all sessions share.

    file             name of the table that was given on the command line
    on_link_used     is called when a link has been used
    """

    keys: TabKeys
    supervisor: WorkerSupervisor
    file: str | None = None
    on_link_used: Callable[[], None] = lambda: None
    most_sockets: int = 16
    n_sockets: int = 0


class WebSocketSession:
    """A tab; it is the owner of its requests."""

    def __init__(self, socket: WebSocket, context: SessionContext) -> None:
        self._socket = socket
        self._context = context
        self._unsent: asyncio.Queue[str | bytes] = asyncio.Queue()

    async def run(self) -> None:
        """Serve the tab until one side closes the socket."""
        await self._socket.accept()
        try:
            if await self._is_authenticated():
                await self._exchange()
        except _DISCONNECTED:
            pass
        finally:
            self._context.supervisor.forget(self)
            await self._close(1000)

    async def _is_authenticated(self) -> bool:
        """Read the first message and answer it: welcome, or refused with the reason."""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                token, key = hello_of(await self._socket.receive_text())
        except (MessageError, TimeoutError, KeyError):
            await self._refuse("The first message has to be a hello.")
            return False
        accepted = self._key_for(token, key)
        if accepted is None:
            await self._refuse(_RESTARTED if key is not None else _LINK_USED)
            return False
        server = self._context.keys.server
        welcome: dict[str, str | None] = {"kind": "welcome", "key": accepted, "server": server}
        welcome |= {"version": __version__, "file": self._context.file}
        await self._socket.send_text(json.dumps(welcome))
        return True

    def _key_for(self, token: str | None, key: str | None) -> str | None:
        keys = self._context.keys
        new = keys.spend(token) if token is not None else None
        if new is not None:
            self._context.on_link_used()
            return new
        return key if key is not None and keys.is_known(key) else None

    async def _refuse(self, reason: str) -> None:
        await self._socket.send_text(json.dumps({"kind": "refused", "reason": reason}))
        await self._close(1008)

    async def _exchange(self) -> None:
        """Receive requests and send answers side by side; if one of them ends, both end."""
        tasks = [asyncio.create_task(self._receive_all()), asyncio.create_task(self._send_all())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, _DISCONNECTED):
                raise result

    async def _receive_all(self) -> None:
        supervisor = self._context.supervisor
        while True:
            try:
                request = request_of(await self._socket.receive_text())
            except (MessageError, KeyError):  # KeyError: a binary message
                await self._close(1007)
                return
            if request.kind == "cancel":
                supervisor.cancel(self, request.channel)
                self._answer(cancelled(request.id, request.channel))
            else:
                supervisor.submit(QueuedRequest(self, request, self._answer))
            if self._unsent.qsize() > _MOST_UNSENT:
                await self._unsent.join()

    async def _send_all(self) -> None:
        while True:
            message = await self._unsent.get()
            async with asyncio.timeout(_SEND_SECONDS):
                if isinstance(message, str):
                    await self._socket.send_text(message)
                else:
                    await self._socket.send_bytes(message)
            self._unsent.task_done()

    def _answer(self, message: str | bytes) -> None:
        """Queue an answer; progress is left out while the tab does not read."""
        is_progress = isinstance(message, str) and message.startswith('{"kind": "progress"')
        if not is_progress or self._unsent.qsize() <= _MOST_UNSENT:
            self._unsent.put_nowait(message)

    async def _close(self, code: int) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(code)
