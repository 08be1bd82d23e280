"""Reads the bytes of an archive into plain values.

The reader trusts nothing in a file: it compares each declared length with the bytes that remain
before it allocates memory, it limits nesting, and it never looks up a Python name from the file.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from margrove._files.archive_layout import (
    BYTES,
    DEEPEST,
    DIGEST_SIZE,
    DTYPE_OF,
    FORMAT_VERSION,
    HEADER,
    LARGEST_INTEGER,
    MAGIC,
    MOST_DIMENSIONS,
    MOST_FIELDS,
    MOST_ITEMS,
    RECORD,
    TEXT,
    WIDEST,
    is_valid_text,
    require_file,
)
from margrove.exceptions import ModelFileError

__all__ = ["read_archive", "unpack"]

_READ_AT_ONCE = 1 << 24


def unpack(data: bytes | bytearray | memoryview) -> tuple[str, dict[str, Any]]:
    """Return the kind and the values of an archive; raise ModelFileError if it is not valid."""
    _check_header(bytes(data[: HEADER.size]), len(data))
    body = len(data) - DIGEST_SIZE
    view = memoryview(data)
    if hashlib.sha256(view[:body]).digest() != view[body:]:
        raise ModelFileError(
            "its contents do not match the digest at its end: it was damaged or altered. Download "
            "it again or save the model again.",
            body,
        )
    reader = _Reader(view[:body])
    reader.at = HEADER.size
    kind = reader.text()
    if reader.byte() != ord("m"):
        raise reader.error("the values are not a dictionary")
    values = reader.dictionary(0)
    if reader.remaining:
        raise reader.error(f"{reader.remaining} bytes are left over")
    return kind, values


def read_archive(file: str | os.PathLike[str] | BinaryIO) -> tuple[str, dict[str, Any]]:
    """Read an archive from a path or a binary file object."""
    require_file(file, "read", "rb")
    if not isinstance(file, (str, os.PathLike)):
        return unpack(_read(file))
    try:
        with open(file, "rb") as opened:
            return unpack(_read(opened, os.fstat(opened.fileno()).st_size))
    except ModelFileError as error:
        raise ModelFileError(error.reason, error.offset, os.fspath(file)) from None


def _read(file: BinaryIO, size: int | None = None) -> bytearray:
    """Read as many bytes as the header declares, or as many as the file has.

    Memory is allocated as bytes arrive, because the declared size may be false. `size` is the size
    that the file system reports, if it is known.
    """
    data = bytearray()
    _fill(data, file, HEADER.size)
    _fill(data, file, _check_header(bytes(data), size))
    return data


def _fill(data: bytearray, file: BinaryIO, size: int) -> None:
    while len(data) < size:
        block = file.read(min(size - len(data), _READ_AT_ONCE))
        if not block:
            return
        data += block


def _check_header(header: bytes, size: int | None) -> int:
    """Check the header and return the declared size, which must equal `size` if that is known."""
    if not MAGIC.startswith(header[: len(MAGIC)]) or not header:
        raise ModelFileError(
            "it is not a margrove file. Files of pickle, joblib or other libraries cannot be read "
            "here; fit the model and save it with margrove.save.",
            0,
        )
    if len(header) < HEADER.size:
        raise ModelFileError(f"it ends after {len(header)} bytes, inside its header.", len(header))
    _, version, declared = HEADER.unpack(header)
    if version == 0 or version > FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {version}; this margrove reads versions 1 to {FORMAT_VERSION}. "
            "Install a newer margrove.",
            len(MAGIC),
        )
    if declared < HEADER.size + DIGEST_SIZE:
        raise ModelFileError(f"it declares a size of {declared} bytes.", len(MAGIC) + 2)
    if size is not None and size != declared:
        what = "it was cut off" if size < declared else "something was added to it"
        raise ModelFileError(
            f"it has {size} bytes and should have {declared}: {what}. Download it again or save "
            "the model again.",
            min(size, declared),
        )
    return int(declared)


class _Reader:
    """Reads values one after another; raises ModelFileError for everything that is not valid."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0
        self._readers: dict[int, Callable[[int], Any]] = {
            ord("n"): lambda depth: None,
            ord("t"): lambda depth: True,
            ord("f"): lambda depth: False,
            ord("i"): lambda depth: self._integer(),
            ord("d"): lambda depth: self._unpack("<d")[0],
            ord("s"): lambda depth: self.text(),
            ord("b"): lambda depth: bytes(self._take(self._length())),
            ord("l"): self._list,
            ord("u"): lambda depth: tuple(self._list(depth)),
            ord("m"): self.dictionary,
            ord("a"): lambda depth: self._array(),
            ord("g"): lambda depth: self._array(in_columns=True),
            ord("x"): lambda depth: self._items(self._dtype(), ())[()],
            ord("y"): lambda depth: np.str_(self.text()),
            ord("o"): self._objects,
            ord("c"): lambda depth: self._sparse(),
        }

    @property
    def remaining(self) -> int:
        return len(self.data) - self.at

    def error(self, reason: str) -> ModelFileError:
        return ModelFileError(f"{reason}. It was altered; save the model again.", self.at)

    def _take(self, size: int) -> memoryview:
        if size > self.remaining:
            raise self.error(f"{size} bytes are declared and {self.remaining} remain")
        self.at += size
        return self.data[self.at - size : self.at]

    def _unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._take(struct.calcsize(form)))

    def byte(self) -> int:
        return self._take(1)[0]

    def _length(self) -> int:
        """Read a length; each item takes at least one byte, so it cannot exceed what remains."""
        length = int(self._unpack("<Q")[0])
        if length > self.remaining:
            raise self.error(f"a length of {length} is declared and {self.remaining} bytes remain")
        return length

    def text(self) -> str:
        encoded = self._take(self._length())
        try:
            return str(encoded, "utf-8")
        except UnicodeDecodeError:
            raise self.error("a string is not valid UTF-8") from None

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise self.error(f"values are nested more than {DEEPEST} deep")
        tag = self.byte()
        if tag not in self._readers:
            raise self.error(f"there is no value of type {tag}")
        return self._readers[tag](depth)

    def _integer(self) -> int:
        size = self.byte()
        if not 1 <= size <= LARGEST_INTEGER:
            raise self.error(f"an integer of {size} bytes")
        return int.from_bytes(self._take(size), "little", signed=True)

    def _list(self, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(self._length())]

    def dictionary(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(self._length()):
            key = self.text()
            if key in values:
                raise self.error(f"the key {key[:50]!r} occurs twice")
            values[key] = self.value(depth + 1)
        return values

    def _shape(self) -> tuple[int, ...]:
        n_dimensions = self.byte()
        if n_dimensions > MOST_DIMENSIONS:
            raise self.error(f"an array of {n_dimensions} dimensions")
        shape = self._unpack(f"<{n_dimensions}Q")
        if math.prod(max(length, 1) for length in shape) > MOST_ITEMS:
            raise self.error(f"an array of shape {shape}")
        return shape

    def _array(self, in_columns: bool = False) -> np.ndarray:
        shape = self._shape()
        if in_columns:
            return self._items(self._dtype(), shape[::-1]).T
        return self._items(self._dtype(), shape)

    def _items(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """Copy the items out of the buffer: the array is then aligned, writable and independent."""
        taken = self._take(math.prod(shape) * dtype.itemsize)
        array = np.empty(shape, dtype)
        if array.size:
            array.reshape(-1).view(np.uint8)[:] = np.frombuffer(taken, np.uint8)
        if not all(
            map(_has_valid_booleans, [array[name] for name in dtype.names or ()] or [array])
        ):
            raise self.error("a boolean is neither 0 nor 1")
        if dtype.kind == "U" and not is_valid_text(array):
            raise self.error("a string is not valid Unicode")
        return array.astype(dtype.newbyteorder("="), copy=False)

    def _dtype(self) -> np.dtype[Any]:
        code = self.byte()
        if code in DTYPE_OF:
            return DTYPE_OF[code]
        if code == RECORD:
            return self._record()
        if code not in (TEXT, BYTES):
            raise self.error(f"there is no array of type {code}")
        itemsize = self._unpack("<I")[0]
        if not 0 < itemsize <= WIDEST or (code == TEXT and itemsize % 4):
            raise self.error(f"a string of {itemsize} bytes")
        return np.dtype(f"<U{itemsize // 4}" if code == TEXT else f"|S{itemsize}")

    def _record(self) -> np.dtype[Any]:
        itemsize, n_fields = self._unpack("<II")
        if not 0 < itemsize <= WIDEST or not 0 < n_fields <= MOST_FIELDS:
            raise self.error(f"a record of {itemsize} bytes with {n_fields} fields")
        names: list[str] = []
        formats: list[np.dtype[Any]] = []
        offsets: list[int] = []
        end = 0
        for _ in range(n_fields):
            name = self.text()
            code, offset = self._unpack("<BI")
            if not name or name in names or code not in DTYPE_OF or offset < end:
                raise self.error(f"the field {name[:50]!r} of a record is not valid")
            names.append(name)
            formats.append(DTYPE_OF[code])
            offsets.append(offset)
            end = offset + DTYPE_OF[code].itemsize
        if end > itemsize:
            raise self.error("the fields of a record are longer than the record")
        return np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
        )

    def _objects(self, depth: int) -> np.ndarray:
        shape = self._shape()
        if math.prod(shape) > self.remaining:
            raise self.error(f"{math.prod(shape)} items are declared")
        array = np.empty(shape, object)
        flat = array.reshape(-1)
        for i in range(flat.size):
            item = self.value(depth + 1)
            if isinstance(item, (list, tuple, dict, np.ndarray)) or sp.issparse(item):
                raise self.error("an item of an array is not a plain value")
            flat[i] = item
        return array

    def _sparse(self) -> Any:
        is_array = self.byte()
        n_rows, n_columns = self._unpack("<2Q")
        data, indices, indptr = (self._plain_array() for _ in range(3))
        sizes = np.diff(indptr) if len(indptr) else indptr
        if (
            is_array > 1
            or data.dtype.kind not in "biuf"
            or indices.dtype not in (np.int32, np.int64)
            or indptr.dtype not in (np.int32, np.int64)
            or len(indptr) != n_rows + 1
            or n_columns > MOST_ITEMS
            or len(data) != len(indices)
            or indptr[0] != 0
            or np.any(sizes < 0)
            or indptr[-1] != len(data)
            or (len(indices) and not 0 <= indices.min() <= indices.max() < n_columns)
        ):
            raise self.error("the arrays of a sparse matrix contradict each other")
        form = sp.csr_array if is_array else sp.csr_matrix
        return form((data, indices, indptr), shape=(n_rows, n_columns))

    def _plain_array(self) -> np.ndarray:
        if self.byte() != ord("a"):
            raise self.error("an array of a sparse matrix is missing")
        array = self._array()
        if array.ndim != 1:
            raise self.error("an array of a sparse matrix is not one-dimensional")
        return array


def _has_valid_booleans(array: np.ndarray) -> bool:
    return array.dtype.kind != "b" or not np.any(np.ascontiguousarray(array).view(np.uint8) > 1)
