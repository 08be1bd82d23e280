"""The page: its files are read once, and a request can only name one of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["StaticFile", "static_files"]

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "json": "application/json",
}


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    type: str


def static_files(folder: Traversable | None = None) -> dict[str, StaticFile]:
    """All files of the page by their paths, "/" among them; empty where it was not built."""
    if folder is None:
        folder = resources.files("margrove.studio").joinpath("static")
    found: dict[str, StaticFile] = {}
    if folder.is_dir():
        _collect(folder, "/", found)
    if "/index.html" not in found:
        return {}
    found["/"] = found.pop("/index.html")
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, StaticFile]) -> None:
    for entry in sorted(folder.iterdir(), key=lambda own: own.name):
        if entry.is_dir():
            _collect(entry, f"{prefix}{entry.name}/", found)
        else:
            kind = _TYPES.get(entry.name.rpartition(".")[2])
            if kind is not None:
                found[prefix + entry.name] = StaticFile(entry.read_bytes(), kind)
