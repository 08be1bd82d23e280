"""Tables of the user's: taken in piece by piece, kept in a private folder, read by the child only.

A table is known by a random name. Of its own name only harmless letters are kept, for people to
read and for its ending to say how it is written. Nothing here looks into a table.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from margrove.studio.server.guard import RefusedError

__all__ = ["UploadLimits", "UploadedTables", "harmless_name"]

_LONGEST_STEM = 60
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)")
_ENDING = re.compile(r"(\.(csv|tsv|txt|data|dat|jsonl|ndjson|parquet))?(\.(gz|zst))?", re.I)
_FORMS = ("multipart/", "application/x-www-form-urlencoded", "text/plain")
_ROOM_TO_LEAVE = 100_000_000  # bytes of the disk


@dataclass(frozen=True)
class UploadLimits:
    """Of one upload, and of all that are kept or on their way."""

    max_bytes: int = 200_000_000
    max_tables: int = 20
    max_uploads: int = 3
    idle_seconds: float = 20.0
    total_seconds: float = 900.0

    @property
    def max_total_bytes(self) -> int:
        return 5 * self.max_bytes


def harmless_name(given: str) -> str:
    """A file name made of letters, digits and dashes, with an ending that tables have."""
    name = re.split(r"[/\\]", unquote(given[:1000]))[-1]
    ending = next(
        (match[0] for k in range(len(name)) if (match := _ENDING.fullmatch(name[k:]))), ""
    )
    stem = re.sub(r"[^A-Za-z0-9]+", "-", name[: len(name) - len(ending)]).strip("-")
    if not stem or _RESERVED.fullmatch(stem):
        stem = f"table-{stem}".strip("-")
    return stem[:_LONGEST_STEM] + (ending.lower() or ".txt")


class UploadedTables:
    """The tables of this session, by their random names."""

    def __init__(self, folder: Path, limits: UploadLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._paths: dict[str, Path] = {}
        self._n_bytes = 0
        self._n_coming = 0

    def paths(self) -> dict[str, Path]:
        return dict(self._paths)

    def check(self, content_type: str, length: str | None, encoding: str | None) -> None:
        """Refuse, before anything is read, what would be refused later."""
        limits = self._limits
        if content_type.strip().lower().startswith(_FORMS):
            raise RefusedError(415, "A table comes as application/octet-stream, not as a form.")
        if encoding not in (None, "identity"):
            raise RefusedError(
                415, "A table comes as it is; compressed files keep their own bytes."
            )
        if length is not None and (not length.isascii() or not length.isdigit()):
            raise RefusedError(400, "A request has one length.")
        if length is not None and int(length) > limits.max_bytes:
            raise self._too_large()
        if len(self._paths) + self._n_coming >= limits.max_tables:
            raise RefusedError(429, "There are as many tables as the studio keeps. Start it again.")
        if self._n_coming >= limits.max_uploads:
            raise RefusedError(429, "Other tables are on their way. Wait for them.")

    async def take_in(self, pieces: AsyncIterator[bytes], given_name: str) -> str:
        """Write an upload to its place; its random name, once it is whole."""
        name = secrets.token_urlsafe(24)
        folder = self._folder / secrets.token_hex(16)
        self._n_coming += 1
        is_whole = False
        try:
            folder.mkdir(mode=0o700)
            path = folder / harmless_name(given_name)
            n_bytes = await self._written(pieces, path)
            if n_bytes == 0:
                raise RefusedError(400, "The table is empty.")
            is_whole = True
        except OSError:
            raise RefusedError(507, "The table could not be kept: the disk is full.") from None
        finally:
            self._n_coming -= 1
            if not is_whole:
                shutil.rmtree(folder, ignore_errors=True)
        self._paths[name] = path
        self._n_bytes += n_bytes
        return name

    async def _written(self, pieces: AsyncIterator[bytes], path: Path) -> int:
        n_bytes = 0
        with _private_file(path) as write:
            async with _within(self._limits.total_seconds):
                async for piece in _not_too_slow(pieces, self._limits.idle_seconds):
                    n_bytes += len(piece)
                    self._check_room(n_bytes)
                    write(piece)
        return n_bytes

    def _check_room(self, n_bytes: int) -> None:
        if n_bytes > self._limits.max_bytes:
            raise self._too_large()
        if self._n_bytes + n_bytes > self._limits.max_total_bytes:
            raise RefusedError(
                507, "The tables of this session take too much room. Start it again."
            )
        if shutil.disk_usage(self._folder).free < _ROOM_TO_LEAVE:
            raise RefusedError(507, "The table could not be kept: the disk is full.")

    def _too_large(self) -> RefusedError:
        most = self._limits.max_bytes / 1e6
        return RefusedError(
            413, f"A table may have {most:g} MB. `margrove studio --max-upload MB` allows more."
        )


@contextlib.contextmanager
def _private_file(path: Path):  # type: ignore[no-untyped-def]
    """Readable by the user alone."""
    with path.open("xb") as file:
        path.chmod(0o600)
        write: Callable[[bytes], object] = file.write
        yield write


@contextlib.asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RefusedError(408, "The table took too long to come.") from None


async def _not_too_slow(pieces: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """Each piece in time."""
    while True:
        async with _within(seconds):
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
        yield piece
