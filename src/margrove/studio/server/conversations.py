"""One for each tab: it says hello, asks, and is answered, until it is closed.

What is sent goes through an outbox, so that whoever answers never waits for a slow browser. A tab
that does not read what it asked for is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from margrove._version import __version__
from margrove.studio.server.messages import MessageError, cancelled, hello_of, request_of
from margrove.studio.server.tab_keys import KeyRing
from margrove.studio.worker.request_queue import Request
from margrove.studio.worker.worker_supervisor import Foreman

__all__ = ["Conversation", "Reception"]

_HELLO_SECONDS = 10.0
_SEND_SECONDS = 30.0
_OUTBOX = 256
_FOR_PROGRESS = 64  # of these; beyond, only answers are kept
_USED = (
    "This link has been used already, or another has taken its place. The terminal in which the "
    "studio runs gives a new one: press Enter there."
)
# A tab went away, or reads too slowly. Sending to one that is gone is a RuntimeError.
_LEFT = (WebSocketDisconnect, TimeoutError, OSError, RuntimeError)
_RESTARTED = "This studio was restarted; open the new link that it printed."


@dataclass
class Reception:
    """What conversations share.

    file          name of the table that the command line named
    on_entry      is called when a link has been used
    """

    keys: KeyRing
    foreman: Foreman
    file: str | None = None
    on_entry: Callable[[], None] = lambda: None
    most_sockets: int = 16
    n_sockets: int = 0


class Conversation:
    """A tab; it is the owner of its requests."""

    def __init__(self, socket: WebSocket, reception: Reception) -> None:
        self._socket = socket
        self._reception = reception
        self._outbox: asyncio.Queue[str | bytes] = asyncio.Queue(_OUTBOX)
        self._is_over = asyncio.Event()

    async def run(self) -> None:
        """Until either side ends it."""
        await self._socket.accept()
        try:
            if await self._greeted():
                await self._talk()
        except _LEFT:
            pass
        finally:
            self._reception.foreman.forget(self)
            await self._close(1000)

    async def _greeted(self) -> bool:
        """Whether the tab may go on; it is told why not."""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                token, key = hello_of(await self._socket.receive_text())
        except (MessageError, TimeoutError, KeyError):
            await self._refuse("The first message has to be a hello.")
            return False
        known = self._key_for(token, key)
        if known is None:
            await self._refuse(_RESTARTED if key is not None else _USED)
            return False
        keys = self._reception.keys
        welcome: dict[str, str | None] = {"kind": "welcome", "key": known, "server": keys.server}
        welcome |= {"version": __version__, "file": self._reception.file}
        await self._socket.send_text(json.dumps(welcome))
        return True

    def _key_for(self, token: str | None, key: str | None) -> str | None:
        keys = self._reception.keys
        new = keys.spend(token) if token is not None else None
        if new is not None:
            self._reception.on_entry()
            return new
        return key if key is not None and keys.knows(key) else None

    async def _refuse(self, reason: str) -> None:
        await self._socket.send_text(json.dumps({"kind": "refused", "reason": reason}))
        await self._close(1008)

    async def _talk(self) -> None:
        """Read and send side by side; the first of them to end ends both."""
        tasks = [asyncio.create_task(own) for own in (self._read(), self._send(), self._watch())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for own in ended:
            if isinstance(own, Exception) and not isinstance(own, _LEFT):
                raise own

    async def _watch(self) -> None:
        await self._is_over.wait()

    async def _read(self) -> None:
        foreman = self._reception.foreman
        while True:
            try:
                ask = request_of(await self._socket.receive_text())
            except (MessageError, KeyError):  # KeyError: a binary message
                await self._close(1007)
                return
            if ask.kind == "cancel":
                foreman.cancel(self, ask.channel)
                self._answer(cancelled(ask.id, ask.channel))
            else:
                foreman.submit(Request(self, ask, self._answer))

    async def _send(self) -> None:
        while True:
            message = await self._outbox.get()
            send: Any = (
                self._socket.send_text if isinstance(message, str) else self._socket.send_bytes
            )
            async with asyncio.timeout(_SEND_SECONDS):
                await send(message)

    def _answer(self, message: str | bytes) -> None:
        is_progress = isinstance(message, str) and message.startswith('{"kind": "progress"')
        if is_progress and self._outbox.qsize() > _FOR_PROGRESS:
            return
        try:
            self._outbox.put_nowait(message)
        except asyncio.QueueFull:
            self._is_over.set()

    async def _close(self, code: int) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(code)
