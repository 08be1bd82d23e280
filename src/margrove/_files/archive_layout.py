"""The constants of the archive format, for its writer and reader: sizes, limits, type codes."""

from __future__ import annotations

import io
import os
import struct
from typing import Any

import numpy as np

__all__ = [
    "BYTES",
    "CODE_OF",
    "DEEPEST",
    "DIGEST_SIZE",
    "DTYPE_OF",
    "FORMAT_VERSION",
    "HEADER",
    "LARGEST_INTEGER",
    "MAGIC",
    "MOST_DIMENSIONS",
    "MOST_FIELDS",
    "MOST_ITEMS",
    "RECORD",
    "TEXT",
    "WIDEST",
    "Chunk",
    "is_valid_text",
    "require_file",
]

MAGIC = (
    b"\x8eMARGROVE\r\n\x1a\n\x00"  # a transfer in text mode changes these bytes, so it is detected
)
FORMAT_VERSION = 1
DEEPEST = 32  # levels of nesting
HEADER = struct.Struct("<14sHQ")
DIGEST_SIZE = 32
LARGEST_INTEGER = 32  # bytes
MOST_DIMENSIONS = 8

_NUMBERS = (
    "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"
)  # fmt: skip
CODE_OF = {name: code for code, name in enumerate(_NUMBERS, start=1)}
DTYPE_OF = {code: np.dtype(name) for name, code in CODE_OF.items()}
TEXT, BYTES, RECORD = 32, 33, 34
WIDEST = 1 << 20  # bytes of one item
MOST_FIELDS = 256
MOST_ITEMS = 1 << 40

Chunk = bytes | bytearray | memoryview


def require_file(file: Any, method: str, mode: str) -> None:
    """Raise TypeError unless `file` is a path or a binary file object with this method."""
    if isinstance(file, io.TextIOBase):
        raise TypeError(f"file is open as text. Open it with mode {mode!r}.")
    if not isinstance(file, (str, os.PathLike)) and not hasattr(file, method):
        raise TypeError(
            "file must be a path or a file object; use io.BytesIO(data) for bytes. "
            f"Got {type(file).__name__} instead."
        )


def is_valid_text(array: np.ndarray) -> bool:
    """Whether all strings of an array are valid Unicode."""
    codes = array.reshape(-1).view(np.uint32)
    return not np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000)))
