"""Opens the page in a browser, by a private file that redirects to the link."""

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

_BROWSER_SECONDS = 3.0


def written_redirect(folder: Path, link: str) -> Path:
    """Write a page that redirects to the link.

    Other users of the machine could read the link from the command line of the browser.
    """
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
    """Whether there is a graphical browser: a text browser would take over the terminal."""
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
    """Whether a browser opens. Some calls return only when the browser is closed: it has opened."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def set_answer(opened: bool) -> None:
        if not answer.done():
            answer.set_result(opened)

    def open_it() -> None:
        opened = _is_opened(path)
        with contextlib.suppress(RuntimeError):  # the studio was closed in the meantime
            loop.call_soon_threadsafe(set_answer, opened)

    threading.Thread(target=open_it, daemon=True).start()
    loop.call_later(_BROWSER_SECONDS, set_answer, True)
    return await answer
