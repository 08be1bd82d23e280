"""The messages between the page and the studio; studio-ui/src/protocol.ts is the other side.

A result is one binary frame: the length of a header, the header as JSON, then the arrays, each at a
multiple of eight bytes, so that the page reads them without copying.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "LONGEST_MESSAGE",
    "MessageError",
    "PageRequest",
    "cancelled",
    "failure",
    "hello_of",
    "packed_result",
    "progress",
    "request_of",
]

LONGEST_MESSAGE = 4 << 20  # bytes: 20,000 points need a quarter of it
_LONGEST_HELLO = 1000
_LONGEST_WORD = 60
_LARGEST_ID = 2**53  # JavaScript has no exact integers beyond
_ALIGNMENT = 8


class MessageError(ValueError):
    """The page sent something that is not a message."""


@dataclass(frozen=True)
class PageRequest:
    """A request of the page: its number there, its channel and its unchecked text."""

    id: int
    channel: str
    kind: str
    text: str


def hello_of(text: str) -> tuple[str | None, str | None]:
    """The token and the key of the first message of a page; one of them may be None."""
    if len(text) > _LONGEST_HELLO:
        raise MessageError("A hello has to be short.")
    message = _object_of(text)
    found = message.get("token"), message.get("key")
    if message.get("kind") != "hello" or not any(isinstance(value, str) for value in found):
        raise MessageError("The first message has to be a hello with a token or a key.")
    token, key = (value if isinstance(value, str) else None for value in found)
    return token, key


def request_of(text: str) -> PageRequest:
    """A request as it was sent; the function that answers it checks the rest."""
    message = _object_of(text)
    kind, channel, number = (message.get(name) for name in ("kind", "channel", "id"))
    if not _is_word(kind) or not _is_word(channel):
        raise MessageError("A request has a kind and a channel, each a word.")
    if type(number) is not int or not 0 <= number <= _LARGEST_ID:
        raise MessageError("A request has a number as its id.")
    return PageRequest(number, str(channel), str(kind), text)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD and value.isprintable()


def _object_of(text: str) -> dict[str, Any]:
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise MessageError("A message has to be JSON.") from None
    if not isinstance(message, dict):
        raise MessageError("A message has to be an object.")
    return message


def _no_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(name)


def progress(id: int, channel: str, note: str, done: int, total: int | None) -> str:  # noqa: A002
    message = {"kind": "progress", "id": id, "channel": channel, "note": note}
    return json.dumps(message | {"done": done, "total": total})


def failure(id: int, channel: str, message: str) -> str:  # noqa: A002
    return json.dumps({"kind": "error", "id": id, "channel": channel, "message": message})


def cancelled(id: int, channel: str) -> str:  # noqa: A002
    return json.dumps({"kind": "cancelled", "id": id, "channel": channel})


def packed_result(id: int, channel: str, body: Any) -> bytes:  # noqa: A002
    """An answer as a binary frame; `body` may contain NumPy arrays anywhere."""
    arrays = _Arrays()
    header = {"kind": "result", "id": id, "channel": channel, "body": arrays.taken_out_of(body)}
    text = json.dumps(header | {"arrays": arrays.places}, allow_nan=False).encode()
    start = struct.pack("<I", len(text)) + text
    return b"".join([start, _padding(len(start)), *arrays.pieces])


def _padding(length: int) -> bytes:
    return bytes(-length % _ALIGNMENT)


class _Arrays:
    """The arrays of an answer, one after the other."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, Any]] = {}
        self.pieces: list[bytes] = []
        self._length = 0

    def taken_out_of(self, value: Any) -> Any:
        """The value as JSON, with the names of arrays in their place."""
        import numpy as np

        if isinstance(value, Mapping):
            return {str(key): self.taken_out_of(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.taken_out_of(item) for item in value]
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return value.item() if value.ndim == 0 else {"array": self._kept(value)}
        return value

    def _kept(self, array: Any) -> str:
        dtype, plain = _in_page_type(array)
        name = f"a{len(self.places)}"
        shape = list(array.shape)
        self.places[name] = {"dtype": dtype, "shape": shape, "offset": self._length}
        content = plain.tobytes()
        self.pieces += [content, _padding(len(content))]
        self._length += len(content) + len(self.pieces[-1])
        return name


def _in_page_type(array: Any) -> tuple[str, Any]:
    """The array as one of the four types for which the page has typed arrays."""
    import numpy as np

    kind = array.dtype.kind
    if kind == "b" or array.dtype == np.uint8:
        return "u1", array.astype("u1")
    if kind == "f":
        name = "f8" if array.dtype.itemsize == 8 else "f4"
        return name, array.astype(f"<{name}")
    if kind in "iu":
        if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
            raise OverflowError("Integers for the page have to fit into 32 bits.")
        return "i4", array.astype("<i4")
    raise TypeError(f"The page cannot read arrays of {array.dtype}.")
