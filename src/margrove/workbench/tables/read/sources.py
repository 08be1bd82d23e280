"""The bytes of a table from a file, standard input or a file object, decompressed.

Nothing is read beyond the limits. Compressed contents are read piece by piece, so that a small file
with enormous contents is refused at the limit, before memory is full.
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
from margrove.workbench.tables.errors import beyond_limit, refused
from margrove.workbench.tables.read.limits import ReadLimits

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
_ANY_FORMAT = ("", ".txt", ".data", ".dat")  # the format is found from the contents
_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_PIECE = 1 << 22


@dataclass(frozen=True)
class Contents:
    """The bytes of a table, its name for errors, and its format.

    name      name of the file without its folder, or "standard input"
    format    from the ending of the name, otherwise from the first bytes
    """

    name: str
    data: bytes
    format: Format


def table_contents(source: Any, limits: ReadLimits) -> Contents:
    """Read all bytes of a source; an InvalidDataError if it is empty or cannot be read."""
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
    """Raise unless it is a regular file; opening a pipe would wait for a writer."""
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
            f"{path} is {what}, not a file. Pass '-' and send its contents to standard input."
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
    """A number of bytes with a unit."""
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def _read(file: BinaryIO, name: str, limits: ReadLimits) -> bytes:
    most = limits.content_bytes
    start = _read_at_least(file, 4)
    if start.startswith(_GZIP):
        return _joined(_gunzipped(_WithStart(start, file), name), name, most, "decompressed")
    if start.startswith(_ZSTD):
        return _joined(_unzstandard(_WithStart(start, file), name), name, most, "decompressed")
    return _joined(_pieces(_WithStart(start, file)), name, min(most, limits.max_file_bytes))


def _read_at_least(file: BinaryIO, size: int) -> bytes:
    """`size` bytes, or all if there are fewer; a pipe can give fewer per read."""
    data = b""
    while len(data) < size:
        more = file.read(size - len(data))
        if not more:
            break
        data += more
    return data


class _WithStart(io.RawIOBase):
    """A file whose first bytes have already been read."""

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


def _gunzipped(file: _WithStart, name: str) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _pieces(unpacked)
    except EOFError:
        raise InvalidDataError(f"{name} was cut off: its gzip stream has no end.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InvalidDataError(f"{name} is damaged: {_reason(error)}.") from error


def _unzstandard(file: _WithStart, name: str) -> Iterator[bytes]:
    try:
        with _zstandard_reader(file) as unpacked:
            yield from _pieces(unpacked)
    except (OSError, EOFError, ValueError) as error:
        raise InvalidDataError(f"{name} is damaged: {_reason(error)}.") from error


def _zstandard_reader(file: _WithStart) -> Any:
    """The reader of Python 3.14 and later, or that of pyarrow or zstandard."""
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
    """All pieces up to a limit; of text, only up to the first NUL, which is an error later."""
    found: list[bytes] = []
    total = 0
    is_text = None
    for piece in pieces:
        total += len(piece)
        if total > most:
            raise refused(
                f"{name} has more than {readable_size(most)}{f' when {how}' if how else ''}, which "
                "is the limit.",
                "Give a part of it, or raise max_bytes of ReadLimits if there is enough memory.",
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
    if is_path and ending not in _ANY_FORMAT:
        raise InvalidDataError(
            f"{name} ends in {ending!r}. Tables end in {', '.join(FORMATS)}, optionally with .gz "
            "or .zst; send others to standard input ('-'), where the contents decide."
        )
    return "jsonl" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else "csv"
