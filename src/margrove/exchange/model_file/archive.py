"""The container of our files: a kind, a tree of plain values, and a digest over both.

An archive knows nothing about models. It holds None, booleans, integers, floats, strings, bytes,
lists, tuples, dictionaries with string keys, NumPy arrays and scalars of a closed list of types,
and sparse rows (CSR). Its bytes depend on these values alone.

All numbers are little-endian; `length` is an unsigned 64-bit integer.

    magic      14 bytes, see MAGIC
    version    unsigned 16-bit integer
    size       length of the whole file, the digest included
    kind       a string without its tag: length, UTF-8
    values     a dictionary: a tag and what belongs to it, see _Writer and _Reader
    digest     32 bytes: SHA-256 of all bytes before it

Reading trusts nothing: each declared length is compared with the bytes that remain before memory
is asked for, nesting is limited, and nothing in a file is ever looked up as a name of Python.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.exchange.atomic_files import write_atomically

__all__ = ["FORMAT_VERSION", "MAGIC", "pack", "read_archive", "seal", "unpack", "write_archive"]

MAGIC = b"\x8eMARGROVE\r\n\x1a\n\x00"  # a text-mode transfer breaks it, which shows at once
FORMAT_VERSION = 1
DEEPEST = 32
_HEADER = struct.Struct("<14sHQ")
_DIGEST_SIZE = 32
_LARGEST_INTEGER = 32  # bytes
_MOST_DIMENSIONS = 8
_READ_AT_ONCE = 1 << 24

_NUMBERS = (
    "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"
)  # fmt: skip
_CODE_OF = {name: code for code, name in enumerate(_NUMBERS, start=1)}
_DTYPE_OF = {code: np.dtype(name) for name, code in _CODE_OF.items()}
_TEXT, _BYTES, _RECORD = 32, 33, 34
_WIDEST = 1 << 20  # bytes of one item
_MOST_FIELDS = 256
_MOST_ITEMS = 1 << 40

Chunk = bytes | bytearray | memoryview

_WAY_OUT = "Leave it out or replace it by plain values; pickle holds anything, but is not safe."


# -- writing --


def pack(kind: str, values: dict[str, Any]) -> list[Chunk]:
    """The bytes of an archive, in pieces; arrays are not copied.

    Raises UnsavableModelError if there is something in `values` that an archive does not hold.
    """
    writer = _Writer()
    writer.text(kind, "the kind")
    writer.value(values, "", 0)
    return seal(writer.chunks())


def seal(body: Sequence[Chunk], version: int = FORMAT_VERSION) -> list[Chunk]:
    """Header, body and digest."""
    size = _HEADER.size + sum(len(chunk) for chunk in body) + _DIGEST_SIZE
    chunks = [_HEADER.pack(MAGIC, version, size), *body]
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return [*chunks, digest.digest()]


def write_archive(
    file: str | os.PathLike[str] | BinaryIO, kind: str, values: dict[str, Any]
) -> None:
    """Write an archive to a path, in one step, or to a binary file object."""
    _require_file(file, "write", "wb")
    chunks = pack(kind, values)
    if isinstance(file, (str, os.PathLike)):
        write_atomically(file, chunks)
        return
    for chunk in chunks:
        file.write(chunk)


def _require_file(file: Any, method: str, mode: str) -> None:
    if isinstance(file, io.TextIOBase):
        raise TypeError(f"file is open as text. Open it with mode {mode!r}.")
    if not isinstance(file, (str, os.PathLike)) and not hasattr(file, method):
        raise TypeError(
            "file must be a path or a file object; of bytes, io.BytesIO makes one. "
            f"Got {type(file).__name__} instead."
        )


class _Writer:
    """Tags and contents. Small pieces are gathered, arrays are passed on as they are."""

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
                where, f"{text!r}, which is no valid text", "Rename it without lone surrogates."
            ) from None
        self._length(len(encoded))
        self._small += encoded

    def value(self, value: Any, where: str, depth: int) -> None:
        """Any value; `where` is how an error calls it."""
        if depth > DEEPEST:
            raise UnsavableModelError(
                where, f"nested more than {DEEPEST} deep", "Flatten it, or cut the cycle in it."
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
        if size > _LARGEST_INTEGER:
            raise UnsavableModelError(
                where, f"an integer of {size} bytes", f"At most {_LARGEST_INTEGER} are kept."
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
        if array.ndim > _MOST_DIMENSIONS:
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
        """The type and the bytes of an array, row after row."""
        self._dtype(array.dtype, where)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if array.dtype.names and not _is_packed(array.dtype):
            array = _without_gaps_filled(array)
        if array.dtype.kind == "U" and not _is_text(array):
            raise UnsavableModelError(
                where, "an array with lone surrogates", "Rename these without them."
            )
        if array.nbytes:
            self._flush()
            self._chunks.append(array.reshape(-1).view(np.uint8).data)

    def _dtype(self, dtype: np.dtype[Any], where: str) -> None:
        name = dtype.newbyteorder("<").str
        if dtype.names:
            self._record(dtype, where)
        elif name in _CODE_OF:
            self._small += bytes([_CODE_OF[name]])
        elif dtype.kind in "US" and 0 < dtype.itemsize <= _WIDEST:
            self._small += struct.pack(
                "<BI", _TEXT if dtype.kind == "U" else _BYTES, dtype.itemsize
            )
        else:
            raise UnsavableModelError(where, f"an array of {dtype}", _WAY_OUT)

    def _record(self, dtype: np.dtype[Any], where: str) -> None:
        names: tuple[str, ...] = dtype.names or ()
        fields: Any = dtype.fields or {}
        if len(names) > _MOST_FIELDS or dtype.itemsize > _WIDEST:
            raise UnsavableModelError(where, f"an array of {dtype}", _WAY_OUT)
        self._small += struct.pack("<BII", _RECORD, dtype.itemsize, len(names))
        end = 0
        for name in names:
            own, offset = fields[name][:2]
            code = _CODE_OF.get(own.newbyteorder("<").str)
            if code is None or own.shape or offset < end:
                raise UnsavableModelError(f"{where}[{name!r}]", f"a field of {own}", _WAY_OUT)
            end = offset + own.itemsize
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


def _without_gaps_filled(records: np.ndarray) -> np.ndarray:
    """A copy in which the bytes between the fields, which may be anything, are zero."""
    clean = np.zeros(records.nbytes, np.uint8).view(records.dtype).reshape(records.shape)
    for name in records.dtype.names or ():
        clean[name] = records[name]
    return clean


def _is_text(array: np.ndarray) -> bool:
    codes = array.reshape(-1).view(np.uint32)
    return not np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000)))


# -- reading --


def unpack(data: bytes | bytearray | memoryview) -> tuple[str, dict[str, Any]]:
    """The kind and the values of an archive; ModelFileError if anything is wrong with it."""
    _check_header(bytes(data[: _HEADER.size]), len(data))
    body = len(data) - _DIGEST_SIZE
    view = memoryview(data)
    if hashlib.sha256(view[:body]).digest() != view[body:]:
        raise ModelFileError(
            "its contents do not match the digest at its end: it was damaged or altered. Fetch it "
            "anew or save the model again.",
            body,
        )
    reader = _Reader(view[:body])
    reader.at = _HEADER.size
    kind = reader.text()
    if reader.byte() != ord("m"):
        raise reader.error("the values are not a dictionary")
    values = reader.dictionary(0)
    if reader.remaining:
        raise reader.error(f"{reader.remaining} bytes are left over")
    return kind, values


def read_archive(file: str | os.PathLike[str] | BinaryIO) -> tuple[str, dict[str, Any]]:
    """Read an archive from a path or a binary file object."""
    _require_file(file, "read", "rb")
    if not isinstance(file, (str, os.PathLike)):
        return unpack(_read(file))
    try:
        with open(file, "rb") as opened:
            return unpack(_read(opened, os.fstat(opened.fileno()).st_size))
    except ModelFileError as error:
        raise ModelFileError(error.reason, error.offset, os.fspath(file)) from None


def _read(file: BinaryIO, size: int | None = None) -> bytearray:
    """All bytes that the header declares, or as many as there are.

    Memory is asked for as bytes arrive: what a header says is not believed. `size` is what the
    file system says, where there is one.
    """
    data = bytearray()
    _fill(data, file, _HEADER.size)
    _fill(data, file, _check_header(bytes(data), size))
    return data


def _fill(data: bytearray, file: BinaryIO, size: int) -> None:
    while len(data) < size:
        block = file.read(min(size - len(data), _READ_AT_ONCE))
        if not block:
            return
        data += block


def _check_header(header: bytes, size: int | None) -> int:
    """The declared size, which must be the real one (where that is known)."""
    if not MAGIC.startswith(header[: len(MAGIC)]) or not header:
        raise ModelFileError(
            "it is not a margrove file. Files of pickle, joblib or other libraries are not read "
            "here; fit the model and save it with margrove.save.",
            0,
        )
    if len(header) < _HEADER.size:
        raise ModelFileError(f"it ends after {len(header)} bytes, inside its header.", len(header))
    _, version, declared = _HEADER.unpack(header)
    if version == 0 or version > FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {version}; this margrove reads versions 1 to {FORMAT_VERSION}. "
            "Install a newer margrove.",
            len(MAGIC),
        )
    if declared < _HEADER.size + _DIGEST_SIZE:
        raise ModelFileError(f"it declares a size of {declared} bytes.", len(MAGIC) + 2)
    if size is not None and size != declared:
        what = "it was cut off" if size < declared else "something was added to it"
        raise ModelFileError(
            f"it has {size} bytes and should have {declared}: {what}. Fetch it anew or save the "
            "model again.",
            min(size, declared),
        )
    return int(declared)


class _Reader:
    """Reads values one after another and refuses whatever does not fit."""

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
        """Of something that takes at least one byte an item."""
        length = int(self._unpack("<Q")[0])
        if length > self.remaining:
            raise self.error(f"a length of {length} is declared and {self.remaining} bytes remain")
        return length

    def text(self) -> str:
        encoded = self._take(self._length())
        try:
            return str(encoded, "utf-8")
        except UnicodeDecodeError:
            raise self.error("a text is not valid UTF-8") from None

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise self.error(f"values are nested more than {DEEPEST} deep")
        tag = self.byte()
        if tag not in self._readers:
            raise self.error(f"there is no value of type {tag}")
        return self._readers[tag](depth)

    def _integer(self) -> int:
        size = self.byte()
        if not 1 <= size <= _LARGEST_INTEGER:
            raise self.error(f"an integer of {size} bytes")
        return int.from_bytes(self._take(size), "little", signed=True)

    def _list(self, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(self._length())]

    def dictionary(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(self._length()):
            key = self.text()
            if key in values:
                raise self.error(f"the key {key[:50]!r} is there twice")
            values[key] = self.value(depth + 1)
        return values

    def _shape(self) -> tuple[int, ...]:
        n_dimensions = self.byte()
        if n_dimensions > _MOST_DIMENSIONS:
            raise self.error(f"an array of {n_dimensions} dimensions")
        shape = self._unpack(f"<{n_dimensions}Q")
        if math.prod(max(length, 1) for length in shape) > _MOST_ITEMS:
            raise self.error(f"an array of shape {shape}")
        return shape

    def _array(self, in_columns: bool = False) -> np.ndarray:
        shape = self._shape()
        if in_columns:
            return self._items(self._dtype(), shape[::-1]).T
        return self._items(self._dtype(), shape)

    def _items(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """A copy of its own, so that it is aligned, may be written to and holds nothing else."""
        taken = self._take(math.prod(shape) * dtype.itemsize)
        array = np.empty(shape, dtype)
        if array.size:
            array.reshape(-1).view(np.uint8)[:] = np.frombuffer(taken, np.uint8)
        if not all(map(_is_true_or_false, [array[name] for name in dtype.names or ()] or [array])):
            raise self.error("a truth value is neither 0 nor 1")
        if dtype.kind == "U" and not _is_text(array):
            raise self.error("a text is not valid Unicode")
        return array.astype(dtype.newbyteorder("="), copy=False)

    def _dtype(self) -> np.dtype[Any]:
        code = self.byte()
        if code in _DTYPE_OF:
            return _DTYPE_OF[code]
        if code == _RECORD:
            return self._record()
        if code not in (_TEXT, _BYTES):
            raise self.error(f"there is no array of type {code}")
        itemsize = self._unpack("<I")[0]
        if not 0 < itemsize <= _WIDEST or (code == _TEXT and itemsize % 4):
            raise self.error(f"a text of {itemsize} bytes")
        return np.dtype(f"<U{itemsize // 4}" if code == _TEXT else f"|S{itemsize}")

    def _record(self) -> np.dtype[Any]:
        itemsize, n_fields = self._unpack("<II")
        if not 0 < itemsize <= _WIDEST or not 0 < n_fields <= _MOST_FIELDS:
            raise self.error(f"a record of {itemsize} bytes with {n_fields} fields")
        names: list[str] = []
        formats: list[np.dtype[Any]] = []
        offsets: list[int] = []
        end = 0
        for _ in range(n_fields):
            name = self.text()
            code, offset = self._unpack("<BI")
            if not name or name in names or code not in _DTYPE_OF or offset < end:
                raise self.error(f"the field {name[:50]!r} of a record is not sound")
            names.append(name)
            formats.append(_DTYPE_OF[code])
            offsets.append(offset)
            end = offset + _DTYPE_OF[code].itemsize
        if end > itemsize:
            raise self.error("a record is longer than it says")
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
            or n_columns > _MOST_ITEMS
            or len(data) != len(indices)
            or indptr[0] != 0
            or np.any(sizes < 0)
            or indptr[-1] != len(data)
            or (len(indices) and not 0 <= indices.min() <= indices.max() < n_columns)
        ):
            raise self.error("a sparse matrix contradicts itself")
        form = sp.csr_array if is_array else sp.csr_matrix
        return form((data, indices, indptr), shape=(n_rows, n_columns))

    def _plain_array(self) -> np.ndarray:
        if self.byte() != ord("a"):
            raise self.error("a sparse matrix lacks an array")
        array = self._array()
        if array.ndim != 1:
            raise self.error("a sparse matrix has an array of another shape")
        return array


def _is_true_or_false(array: np.ndarray) -> bool:
    return array.dtype.kind != "b" or not np.any(np.ascontiguousarray(array).view(np.uint8) > 1)
