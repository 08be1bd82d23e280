"""Starts the server for the command line, prints links to it, and ends it."""

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

_REDIRECT_SECONDS = 60.0  # that the browser has to read the file with the link


def require_studio() -> None:
    """Raise an ImportError that says what to install if a dependency is missing."""
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
    """The options of the command line. `say` prints a line."""

    say: Callable[[str], None]
    file: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    opens_browser: bool = True
    max_upload_bytes: int = 200_000_000
    answers: str = "margrove.studio.worker.answers"


def launch(options: Launch) -> int:
    """Serve until Ctrl-C or another signal; returns the number of the signal."""
    require_studio()
    address, sockets = bound_sockets(options.host, options.port)
    folder = Path(tempfile.mkdtemp(prefix="margrove-studio-"))  # for the user alone
    try:
        return _Run(options, address, folder).serve(sockets)
    finally:
        for bound in sockets:
            bound.close()
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    """One run of the server."""

    def __init__(self, options: Launch, address: Address, folder: Path) -> None:
        from margrove.studio.server.application import Settings, Studio
        from margrove.studio.server.uploads import UploadLimits
        from margrove.studio.worker import worker_memory

        settings = Settings(
            hosts=address.hosts,
            folder=folder,
            file=options.file,
            answers=options.answers,
            memory_bytes=worker_memory(),
            uploads=UploadLimits(max_bytes=options.max_upload_bytes),
        )
        self._options = options
        self._address = address
        self._folder = folder
        self._studio = Studio(settings, self._on_link_used)
        self._reads_enter = False
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
        """A first signal ends the server in order, a second one at once."""

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
        if not self._studio.has_page:
            from margrove.studio.server.application import NOT_BUILT

            say(NOT_BUILT)
        link = self._new_link()
        opened = False
        if self._options.opens_browser and self._studio.has_page:
            self._redirect = written_redirect(self._folder, link)
            opened = await is_opened_soon(self._redirect)
            asyncio.get_running_loop().call_later(_REDIRECT_SECONDS, self._remove_redirect)
        head = "The studio opens in your browser; if not, its link is" if opened else "The studio:"
        say(f"{head}\n\n    {link}\n")
        say("The link works once." + (" Enter gives another." if self._reads_enter else ""))
        say("Ctrl-C closes the studio.")

    def _say(self, text: str) -> None:
        """Print a line; the terminal may be gone, and the studio goes on."""
        with contextlib.suppress(OSError, ValueError):
            self._options.say(text)

    def _new_link(self) -> str:
        return self._address.link(self._studio.keys.new_token())

    def _on_link_used(self) -> None:
        """Print the next link where nobody can press Enter for it."""
        self._remove_redirect()
        if not self._reads_enter:
            self._say(f"For another tab:\n\n    {self._new_link()}\n")

    def _remove_redirect(self) -> None:
        if self._redirect is not None:
            self._redirect.unlink(missing_ok=True)
            self._redirect = None

    def _listen_for_enter(self) -> None:
        """Read Enter from the terminal, if there is one."""
        with contextlib.suppress(AttributeError, OSError, ValueError, NotImplementedError):
            if sys.stdin.isatty():
                asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._on_enter)
                self._reads_enter = True

    def _on_enter(self) -> None:
        descriptor = sys.stdin.fileno()
        if not _is_in_background(descriptor) and os.read(descriptor, 4096):
            self._say(f"For another tab:\n\n    {self._new_link()}\n")
        else:  # or the end of the input
            asyncio.get_running_loop().remove_reader(descriptor)
            self._reads_enter = False


def _is_in_background(terminal: int) -> bool:
    """Whether reading from the terminal would stop this process, which runs in the background."""
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:  # not the terminal of this process
        return False
