"""The way to the page: a file that leads to the link, and the browser that opens it."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import sys
import threading
import webbrowser
from pathlib import Path

__all__ = ["is_opened_soon", "written_redirect"]

_WAITED_FOR_BROWSER = 3.0


def written_redirect(folder: Path, link: str) -> Path:
    """A page that leads to the link. A command line with the link could be read by other users."""
    path = folder / "open-the-studio.html"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    target = html.escape(link, quote=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={target}"><title>margrove studio</title>'
            f'</head><body><p><a href="{target}">Open the studio</a></p></body></html>\n'
        )
    return path


def _has_browser() -> bool:
    """Whether there is one with windows: one in the terminal would take the terminal."""
    if os.environ.get("BROWSER"):
        return True
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _is_opened(path: Path) -> bool:
    if not _has_browser():
        return False
    try:
        return webbrowser.open(path.as_uri())
    except webbrowser.Error:
        return False


async def is_opened_soon(path: Path) -> bool:
    """Some browsers are waited for until they are closed: such a one has opened."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def tell(opened: bool) -> None:
        if not answer.done():
            answer.set_result(opened)

    def open_it() -> None:
        opened = _is_opened(path)
        with contextlib.suppress(RuntimeError):  # the studio has been closed since
            loop.call_soon_threadsafe(tell, opened)

    threading.Thread(target=open_it, daemon=True).start()
    loop.call_later(_WAITED_FOR_BROWSER, tell, True)
    return await answer
