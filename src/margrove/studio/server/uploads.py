"""Uploaded tables: written to a private folder as they arrive, read by the worker process only.

The page knows a table by a random name. Of its file name, only letters and digits are kept, for
people to read, and the extension, which tells the format. The server never parses a table.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from starlette.exceptions import HTTPException

__all__ = ["UploadLimits", "UploadedTables", "safe_file_name"]

_LONGEST_STEM = 60
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)")
_EXTENSION = re.compile(r"(\.(csv|tsv|txt|data|dat|jsonl|ndjson|parquet))?(\.(gz|zst))?", re.I)
_FORMS = ("multipart/", "application/x-www-form-urlencoded", "text/plain")
_FREE_DISK_BYTES = 100_000_000  # that an upload has to leave


@dataclass(frozen=True)
class UploadLimits:
    """Limits of one upload, and of all uploads of a session."""

    max_bytes: int = 200_000_000
    max_tables: int = 20
    max_uploads: int = 3
    seconds: float = 900.0

    @property
    def max_total_bytes(self) -> int:
        return 5 * self.max_bytes


def safe_file_name(given: str) -> str:
    """A file name of letters, digits and dashes, with the extension of a table format."""
    name = re.split(r"[/\\]", unquote(given[:1000]))[-1]
    extension = next(
        (match[0] for k in range(len(name)) if (match := _EXTENSION.fullmatch(name[k:]))), ""
    )
    stem = re.sub(r"[^A-Za-z0-9]+", "-", name[: len(name) - len(extension)]).strip("-")
    if not stem or _RESERVED.fullmatch(stem):
        stem = f"table-{stem}".strip("-")
    return stem[:_LONGEST_STEM] + (extension.lower() or ".txt")


class UploadedTables:
    """The tables of this session, by their random names."""

    def __init__(self, folder: Path, limits: UploadLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._paths: dict[str, Path] = {}
        self._n_bytes = 0
        self._n_active = 0

    def paths(self) -> dict[str, Path]:
        return dict(self._paths)

    def check_headers(self, content_type: str, length: str | None, encoding: str | None) -> None:
        """Refuse an upload before its body is read."""
        limits = self._limits
        if content_type.strip().lower().startswith(_FORMS):
            raise HTTPException(415, "Send a table as application/octet-stream, not as a form.")
        if encoding not in (None, "identity"):
            raise HTTPException(
                415, "Send a table without a content encoding; a compressed file is sent as it is."
            )
        if length is not None and int(length) > limits.max_bytes:
            raise self._too_large()
        if len(self._paths) + self._n_active >= limits.max_tables:
            raise HTTPException(
                429, f"The studio keeps {limits.max_tables} tables. Restart it to load more."
            )
        if self._n_active >= limits.max_uploads:
            raise HTTPException(429, "Other tables are being uploaded. Wait until they are done.")

    async def receive(self, chunks: AsyncIterator[bytes], given_name: str) -> str:
        """Write an upload to its file; returns the random name of the table."""
        name = secrets.token_urlsafe(24)
        folder = self._folder / secrets.token_hex(16)
        self._n_active += 1
        is_complete = False
        try:
            folder.mkdir(mode=0o700)
            path = folder / safe_file_name(given_name)
            async with asyncio.timeout(self._limits.seconds):
                n_bytes = await self._write(chunks, path)
            if n_bytes == 0:
                raise HTTPException(400, "The table is empty.")
            is_complete = True
        except TimeoutError:
            raise HTTPException(408, "The upload took too long.") from None
        except OSError:
            raise HTTPException(507, "The table could not be stored: the disk is full.") from None
        finally:
            self._n_active -= 1
            if not is_complete:
                shutil.rmtree(folder, ignore_errors=True)
        self._paths[name] = path
        self._n_bytes += n_bytes
        return name

    async def _write(self, chunks: AsyncIterator[bytes], path: Path) -> int:
        n_bytes = 0
        with path.open("xb") as file:
            path.chmod(0o600)
            async for chunk in chunks:
                n_bytes += len(chunk)
                self._check_space(n_bytes)
                file.write(chunk)
        return n_bytes

    def _check_space(self, n_bytes: int) -> None:
        if n_bytes > self._limits.max_bytes:
            raise self._too_large()
        if self._n_bytes + n_bytes > self._limits.max_total_bytes:
            raise HTTPException(
                507, "The tables of this session take too much space. Restart the studio."
            )
        if shutil.disk_usage(self._folder).free < _FREE_DISK_BYTES:
            raise HTTPException(507, "The table could not be stored: the disk is full.")

    def _too_large(self) -> HTTPException:
        limit = self._limits.max_bytes / 1e6
        return HTTPException(
            413,
            f"The table is larger than {limit:g} MB. `margrove studio --max-upload MB` raises the "
            "limit.",
        )
