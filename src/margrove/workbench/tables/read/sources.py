"""The bytes of a table: from a file, standard input or a file object, compressed or not.

Nothing is read beyond the limits: compressed contents are taken piece by piece, so that a small
file that grows without end is refused when it has grown to the limit, not when memory is full.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.read.limits import ReadLimits
from margrove.workbench.tables.refusals import beyond_limit, refused

__all__ = ["FORMATS", "Contents", "Format", "readable_size", "table_contents"]

Format = Literal["csv", "tsv", "jsonl", "parquet"]
FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
_COMPRESSED = (".gz", ".zst")
_ANYTHING = ("", ".txt", ".data", ".dat")  # endings that say nothing: the contents decide
_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_PIECE = 1 << 22


@dataclass(frozen=True)
class Contents:
    """The bytes of a table, and how errors call it.

    name      of the file without its folder, or "standard input"
    format    by the ending of the name, else by what the bytes look like
    """

    name: str
    data: bytes
    format: Format


def table_contents(source: Any, limits: ReadLimits) -> Contents:
    """Read all bytes of a source; InvalidDataError, in one sentence, if there is none to read."""
    is_path = isinstance(source, (str, os.PathLike)) and source != "-"
    with _opened(source, limits) as (file, name):
        try:
            data = _read(file, name, limits)
        except MemoryError:
            raise InvalidDataError(f"{name} does not fit into memory. Give a part of it.") from None
        except OSError as error:
            raise InvalidDataError(f"{name} cannot be read: {_reason(error)}.") from error
    if not data:
        raise InvalidDataError(f"{name} is empty. A table needs a line of names and some rows.")
    return Contents(name, data, _format_of(name, data, is_path))


@contextmanager
def _opened(source: Any, limits: ReadLimits) -> Iterator[tuple[BinaryIO, str]]:
    if isinstance(source, str) and source == "-":
        yield sys.stdin.buffer, "standard input"
        return
    if isinstance(source, io.TextIOBase):
        raise TypeError("source is open as text. Open it with mode 'rb'.")
    if hasattr(source, "read"):
        yield source, Path(str(getattr(source, "name", "") or "the file object")).name
        return
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            "source must be a path, '-' for standard input, or a binary file object. "
            f"Got {type(source).__name__} instead."
        )
    path = Path(source)
    _require_regular(path, limits)
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidDataError(f"{path} cannot be read: {_reason(error)}.") from error
    with file:
        yield file, path.name


def _require_regular(path: Path, limits: ReadLimits) -> None:
    """Before it is opened: opening a pipe waits for somebody to write."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise InvalidDataError(f"{path} does not exist.") from None
    except (OSError, ValueError) as error:  # no permission; a name with NUL in it
        raise InvalidDataError(f"{path!s:.200} cannot be read: {_reason(error)}.") from error
    mode = found.st_mode
    if stat.S_ISDIR(mode):
        raise InvalidDataError(f"{path} is a directory. Name a file in it.")
    if not stat.S_ISREG(mode):
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device"
        raise InvalidDataError(
            f"{path} is {what}, not a file. Pass '-' and hand its contents to standard input."
        )
    if found.st_size > limits.max_file_bytes:
        raise beyond_limit(
            f"{path} has {readable_size(found.st_size)}, and at most "
            f"{readable_size(limits.max_file_bytes)} are read.",
            "max_file_bytes",
        )


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error).rstrip(".").lower() or "unknown reason"


def readable_size(n_bytes: float) -> str:
    """A number of bytes, in words."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def _read(file: BinaryIO, name: str, limits: ReadLimits) -> bytes:
    most = limits.content_bytes
    start = _some(file, 4)
    if start.startswith(_GZIP):
        return _joined(_gunzipped(_Rejoined(start, file), name), name, most, "decompressed")
    if start.startswith(_ZSTD):
        return _joined(_unzstandard(_Rejoined(start, file), name), name, most, "decompressed")
    return _joined(_pieces(_Rejoined(start, file)), name, min(most, limits.max_file_bytes))


def _some(file: BinaryIO, size: int) -> bytes:
    """So many bytes, or as many as there are: pipes give fewer at a time."""
    data = b""
    while len(data) < size:
        more = file.read(size - len(data))
        if not more:
            break
        data += more
    return data


class _Rejoined(io.RawIOBase):
    """A file whose first bytes have been read already."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start, self._file = start, file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._start:
            taken = self._start if size < 0 else self._start[:size]
            self._start = self._start[len(taken) :]
            return taken + (self._file.read() if size < 0 else b"")
        return self._file.read(size) or b""


def _pieces(file: Any) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _gunzipped(file: _Rejoined, name: str) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _pieces(unpacked)
    except EOFError:
        raise InvalidDataError(f"{name} was cut off: its gzip stream has no end.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InvalidDataError(f"{name} is damaged: {_reason(error)}.") from error


def _unzstandard(file: _Rejoined, name: str) -> Iterator[bytes]:
    try:
        with _zstandard_reader(file) as unpacked:
            yield from _pieces(unpacked)
    except (OSError, EOFError, ValueError) as error:
        raise InvalidDataError(f"{name} is damaged: {_reason(error)}.") from error


def _zstandard_reader(file: _Rejoined) -> Any:
    """Python's own from 3.14 on, else that of pyarrow or zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd.ZstdFile(file)
    except ImportError:
        pass
    try:
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]

        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    except ImportError:
        raise ImportError(
            "Reading .zst files needs pyarrow (pip install pyarrow) before Python 3.14. Or unpack "
            "the file first: zstd -d."
        ) from None


def _joined(pieces: Iterator[bytes], name: str, most: int, how: str = "") -> bytes:
    """All pieces, up to a limit; text ends at the first NUL, for nobody means to read more."""
    found: list[bytes] = []
    total = 0
    is_text = None
    for piece in pieces:
        total += len(piece)
        if total > most:
            raise refused(
                f"{name} has more than {readable_size(most)}{f' when {how}' if how else ''}, which "
                "is the limit.",
                "Give a part of it, or raise max_bytes of ReadLimits if there is memory enough.",
                "Give a part of it, or use a machine with more memory.",
            )
        if is_text is None:
            is_text = not piece.startswith(_PARQUET)
        found.append(piece)
        if is_text and b"\0" in piece:
            break
    return b"".join(found)


def _format_of(name: str, data: bytes, is_path: bool) -> Format:
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    ending = suffixes[-1] if suffixes else ""
    if data.startswith(_PARQUET):
        return "parquet"
    if ending in FORMATS:
        return FORMATS[ending]
    if is_path and ending not in _ANYTHING:
        raise InvalidDataError(
            f"{name} ends in {ending!r}. Tables end in {', '.join(FORMATS)}, perhaps with .gz or "
            ".zst; others can be handed to standard input ('-'), where the contents decide."
        )
    return "jsonl" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else "csv"
