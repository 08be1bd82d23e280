"""What the server and its child write to each other: a kind, a number, and bytes.

The child reads files that nobody has vouched for. So nothing of what it writes is unpickled, and
results pass through the server as they are, on their way to the page.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

__all__ = ["Kind", "Letter", "order_of", "ordered", "report_of", "sealed_report"]

_START = struct.Struct("<BI")


class Kind(IntEnum):
    """To the child: ANSWER, CANCEL. From it: all others, with the number of what they answer."""

    ANSWER = 1
    CANCEL = 2
    READY = 3
    BEGAN = 4
    PROGRESS = 5
    RESULT = 6
    ERROR = 7
    CANCELLED = 8
    COMPILES = 9  # number 1: kernels are being compiled; 0: no more
    REPORT = 10


@dataclass(frozen=True)
class Letter:
    kind: Kind
    number: int = 0
    content: bytes = b""

    def sealed(self) -> bytes:
        return _START.pack(self.kind, self.number) + self.content

    @classmethod
    def opened(cls, data: bytes) -> Letter:
        kind, number = _START.unpack_from(data)
        return cls(Kind(kind), number, data[_START.size :])


def ordered(order: dict[str, Any], text: str) -> bytes:
    """The content of ANSWER: what is to be done, and the text of the page."""
    return json.dumps(order).encode() + b"\n" + text.encode(errors="replace")


def order_of(content: bytes) -> tuple[dict[str, Any], str]:
    order, _, text = content.partition(b"\n")
    return json.loads(order), text.decode()


def sealed_report(name: str, page: str) -> bytes:
    """The content of REPORT."""
    return name.encode() + b"\n" + page.encode(errors="replace")


def report_of(content: bytes) -> tuple[str, bytes]:
    name, _, page = content.partition(b"\n")
    return name.decode(), page
