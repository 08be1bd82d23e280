"""From the command to the page and back: the link, the terminal, the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from margrove.studio.server.addresses import Address, bound_sockets
from margrove.studio.server.browsers import is_opened_soon, written_redirect

__all__ = ["Launch", "launch", "require_studio"]

_OPENED_WITHIN = 60.0  # seconds that the browser has to read the file with the link


def require_studio() -> None:
    """An error that says how to get the server, if it is not there."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "The studio needs starlette, uvicorn and websockets, which are not all installed: "
            'pip install "margrove[studio]".'
        ) from error


@dataclass(frozen=True)
class Launch:
    """What the command line asked for. `say` prints a line."""

    say: Callable[[str], None]
    file: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    opens_browser: bool = True
    max_upload_bytes: int = 200_000_000
    answers: str = "margrove.studio.worker.answers"


def launch(wish: Launch) -> int:
    """Serve until Ctrl-C or a signal; the number of the signal that ended it."""
    require_studio()
    address, sockets = bound_sockets(wish.host, wish.port)
    folder = Path(tempfile.mkdtemp(prefix="margrove-studio-"))  # for the user alone
    try:
        return _Run(wish, address, folder).serve(sockets)
    finally:
        for own in sockets:
            own.close()
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """One run of the server."""

    def __init__(self, wish: Launch, address: Address, folder: Path) -> None:
        from margrove.studio.server.application import Settings, Studio
        from margrove.studio.server.uploads import UploadLimits
        from margrove.studio.worker.worker_supervisor import memory_for_the_child

        settings = Settings(
            hosts=address.hosts,
            folder=folder,
            file=wish.file,
            answers=wish.answers,
            memory_bytes=memory_for_the_child(),
            uploads=UploadLimits(max_bytes=wish.max_upload_bytes),
        )
        self._wish = wish
        self._address = address
        self._folder = folder
        self._studio = Studio(settings, self._note_entry)
        self._hears_enter = False
        self._redirect: Path | None = None
        self._ended_by = 0

    def serve(self, sockets: list[socket.socket]) -> int:
        from margrove.studio.server.serving import quiet_server

        self._server = quiet_server(self._studio.application)
        with self._ended_by_signals():
            asyncio.run(self._serve(sockets))
        return self._ended_by

    async def _serve(self, sockets: list[socket.socket]) -> None:
        serving = asyncio.create_task(self._server.serve(sockets=sockets))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.01)
        if not serving.done():
            self._listen_for_enter()
            await self._show_link()
        await serving

    @contextlib.contextmanager
    def _ended_by_signals(self) -> Iterator[None]:
        """Any of them ends the server in order; the second of them at once."""

        def end(number: int, frame: Any) -> None:
            self._server.force_exit = self._server.should_exit
            self._server.should_exit = True
            self._ended_by = number

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        before = {number: signal.signal(number, end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- the link ------------------------------------------------------------------------------

    async def _show_link(self) -> None:
        say = self._say
        if not self._studio.files:
            from margrove.studio.server.application import NOT_BUILT

            say(NOT_BUILT)
        link = self._new_link()
        opened = False
        if self._wish.opens_browser and self._studio.files:
            self._redirect = written_redirect(self._folder, link)
            opened = await is_opened_soon(self._redirect)
            asyncio.get_running_loop().call_later(_OPENED_WITHIN, self._remove_redirect)
        head = "The studio opens in your browser; if not, its link is" if opened else "The studio:"
        say(f"{head}\n\n    {link}\n")
        say("The link works once." + (" Enter gives another." if self._hears_enter else ""))
        say("Ctrl-C closes the studio.")

    def _say(self, text: str) -> None:
        """Nobody may be reading any more; that ends no conversation."""
        with contextlib.suppress(OSError, ValueError):
            self._wish.say(text)

    def _new_link(self) -> str:
        return self._address.link(self._studio.keys.new_token())

    def _note_entry(self) -> None:
        """A link was used. Whoever cannot press Enter here is given the next one."""
        self._remove_redirect()
        if not self._hears_enter:
            self._say(f"For another tab:\n\n    {self._new_link()}\n")

    def _remove_redirect(self) -> None:
        if self._redirect is not None:
            self._redirect.unlink(missing_ok=True)
            self._redirect = None

    def _listen_for_enter(self) -> None:
        """Where there is a terminal, and it is ours to read from."""
        with contextlib.suppress(AttributeError, OSError, ValueError, NotImplementedError):
            if sys.stdin.isatty():
                asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._hear_enter)
                self._hears_enter = True

    def _hear_enter(self) -> None:
        descriptor = sys.stdin.fileno()
        if not _is_in_background(descriptor) and os.read(descriptor, 4096):
            self._say(f"For another tab:\n\n    {self._new_link()}\n")
        else:  # or the end of the input
            asyncio.get_running_loop().remove_reader(descriptor)
            self._hears_enter = False


def _is_in_background(terminal: int) -> bool:
    """Then the terminal belongs to somebody else, and reading from it would stop us."""
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:  # not the terminal that we were started from
        return False
