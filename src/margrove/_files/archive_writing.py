"""Writes plain values as the bytes of an archive."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from margrove._files.archive_layout import (
    BYTES,
    CODE_OF,
    DEEPEST,
    DIGEST_SIZE,
    FORMAT_VERSION,
    HEADER,
    LARGEST_INTEGER,
    MAGIC,
    MOST_DIMENSIONS,
    MOST_FIELDS,
    RECORD,
    TEXT,
    WIDEST,
    Chunk,
    is_valid_text,
    require_file,
)
from margrove._files.atomic_files import write_atomically
from margrove.exceptions import UnsavableModelError

__all__ = ["pack", "seal", "write_archive"]

_WAY_OUT = "Leave it out or replace it by plain values; pickle saves anything, but is not safe."


def pack(kind: str, values: dict[str, Any]) -> list[Chunk]:
    """Return the bytes of an archive in chunks; arrays are not copied.

    Raises UnsavableModelError if `values` contains a type that archives cannot hold.
    """
    writer = _Writer()
    writer.text(kind, "the kind")
    writer.value(values, "", 0)
    return seal(writer.chunks())


def seal(body: Sequence[Chunk], version: int = FORMAT_VERSION) -> list[Chunk]:
    """Put the header before the body and the digest after it."""
    size = HEADER.size + sum(len(chunk) for chunk in body) + DIGEST_SIZE
    chunks = [HEADER.pack(MAGIC, version, size), *body]
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return [*chunks, digest.digest()]


def write_archive(
    file: str | os.PathLike[str] | BinaryIO, kind: str, values: dict[str, Any]
) -> None:
    """Write an archive to a path, in one step, or to a binary file object."""
    require_file(file, "write", "wb")
    chunks = pack(kind, values)
    if isinstance(file, (str, os.PathLike)):
        write_atomically(file, chunks)
        return
    for chunk in chunks:
        file.write(chunk)


class _Writer:
    """Writes tags and contents. Small pieces are collected, arrays become chunks of their own."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._small = bytearray()

    def chunks(self) -> list[Chunk]:
        self._flush()
        return self._chunks

    def _flush(self) -> None:
        if self._small:
            self._chunks.append(self._small)
            self._small = bytearray()

    def _length(self, length: int) -> None:
        self._small += struct.pack("<Q", length)

    def text(self, text: str, where: str) -> None:
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            raise UnsavableModelError(
                where, f"{text!r}, which is not valid Unicode", "Rename it without lone surrogates."
            ) from None
        self._length(len(encoded))
        self._small += encoded

    def value(self, value: Any, where: str, depth: int) -> None:
        """Write any value; `where` names it in errors."""
        if depth > DEEPEST:
            raise UnsavableModelError(
                where, f"nested more than {DEEPEST} deep", "Flatten it, or remove the cycle in it."
            )
        kind = type(value)
        if value is None:
            self._small += b"n"
        elif kind is bool:
            self._small += b"t" if value else b"f"
        elif kind is int:
            self._integer(value, where)
        elif kind is float:
            self._small += b"d" + struct.pack("<d", value)
        elif kind is str or kind is np.str_:
            self._small += b"s" if kind is str else b"y"
            self.text(value, where)
        elif kind is bytes:
            self._small += b"b"
            self._length(len(value))
            self._small += value
        elif kind is list or kind is tuple:
            self._small += b"l" if kind is list else b"u"
            self._length(len(value))
            for i, item in enumerate(value):
                self.value(item, f"{where}[{i}]", depth + 1)
        elif kind is dict:
            self._dictionary(value, where, depth)
        elif kind in (np.ndarray, np.memmap):
            self._array(value, where, depth)
        elif isinstance(value, np.generic):
            self._small += b"x"
            self._items(np.asarray(value), where)
        elif kind in (sp.csr_matrix, sp.csr_array) and value.ndim == 2:
            self._sparse(value, where)
        else:
            self._refuse(value, where)

    @staticmethod
    def _refuse(value: Any, where: str) -> None:
        kind = type(value)
        raise UnsavableModelError(where or "it", f"a {kind.__module__}.{kind.__name__}", _WAY_OUT)

    def _integer(self, value: int, where: str) -> None:
        size = value.bit_length() // 8 + 1
        if size > LARGEST_INTEGER:
            raise UnsavableModelError(
                where,
                f"an integer of {size} bytes",
                f"At most {LARGEST_INTEGER} bytes are allowed.",
            )
        self._small += b"i" + bytes([size]) + value.to_bytes(size, "little", signed=True)

    def _dictionary(self, values: dict[Any, Any], where: str, depth: int) -> None:
        self._small += b"m"
        self._length(len(values))
        for key, value in values.items():
            if type(key) is not str:
                self._refuse(key, f"the key {key!r} of {where}")
            self.text(key, where)
            self.value(value, f"{where}.{key}" if where else key, depth + 1)

    def _array(self, array: np.ndarray, where: str, depth: int) -> None:
        if array.ndim > MOST_DIMENSIONS:
            raise UnsavableModelError(where, f"an array of {array.ndim} dimensions", _WAY_OUT)
        if array.dtype == object:
            self._small += b"o"
            self._shape(array.shape)
            for item in array.ravel().tolist():
                if isinstance(item, (list, tuple, dict, np.ndarray)) or sp.issparse(item):
                    self._refuse(item, f"an item of {where}")
                self.value(item, f"an item of {where}", depth + 1)
            return
        in_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        self._small += b"g" if in_columns else b"a"
        self._shape(array.shape)
        self._items(array.T if in_columns else array, where)

    def _shape(self, shape: tuple[int, ...]) -> None:
        self._small += struct.pack(f"<B{len(shape)}Q", len(shape), *shape)

    def _items(self, array: np.ndarray, where: str) -> None:
        """Write the type and the bytes of an array, in C order."""
        self._dtype(array.dtype, where)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if array.dtype.names and not _is_packed(array.dtype):
            array = _with_zero_padding(array)
        if array.dtype.kind == "U" and not is_valid_text(array):
            raise UnsavableModelError(
                where, "an array with lone surrogates", "Rename its strings without them."
            )
        if array.nbytes:
            self._flush()
            self._chunks.append(array.reshape(-1).view(np.uint8).data)

    def _dtype(self, dtype: np.dtype[Any], where: str) -> None:
        name = dtype.newbyteorder("<").str
        if dtype.names:
            self._record(dtype, where)
        elif name in CODE_OF:
            self._small += bytes([CODE_OF[name]])
        elif dtype.kind in "US" and 0 < dtype.itemsize <= WIDEST:
            self._small += struct.pack("<BI", TEXT if dtype.kind == "U" else BYTES, dtype.itemsize)
        else:
            raise UnsavableModelError(where, f"an array of {dtype}", _WAY_OUT)

    def _record(self, dtype: np.dtype[Any], where: str) -> None:
        names: tuple[str, ...] = dtype.names or ()
        fields: Any = dtype.fields or {}
        if len(names) > MOST_FIELDS or dtype.itemsize > WIDEST:
            raise UnsavableModelError(where, f"an array of {dtype}", _WAY_OUT)
        self._small += struct.pack("<BII", RECORD, dtype.itemsize, len(names))
        end = 0
        for name in names:
            field, offset = fields[name][:2]
            code = CODE_OF.get(field.newbyteorder("<").str)
            if code is None or field.shape or offset < end:
                raise UnsavableModelError(f"{where}[{name!r}]", f"a field of {field}", _WAY_OUT)
            end = offset + field.itemsize
            self.text(name, where)
            self._small += struct.pack("<BI", code, offset)

    def _sparse(self, rows: Any, where: str) -> None:
        self._small += b"c" + bytes([isinstance(rows, sp.sparray)])
        self._small += struct.pack("<2Q", *rows.shape)
        for name in ("data", "indices", "indptr"):
            self._array(getattr(rows, name), f"{where}.{name}", 0)


def _is_packed(dtype: np.dtype[Any]) -> bool:
    names: tuple[str, ...] = dtype.names or ()
    return dtype.itemsize == sum(dtype[name].itemsize for name in names)


def _with_zero_padding(records: np.ndarray) -> np.ndarray:
    """A copy whose bytes between the fields are zero; in `records` they may be anything."""
    clean = np.zeros(records.nbytes, np.uint8).view(records.dtype).reshape(records.shape)
    for name in records.dtype.names or ():
        clean[name] = records[name]
    return clean
