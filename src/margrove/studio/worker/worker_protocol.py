"""Messages between the server and the worker process: a kind, a number, and bytes.

The worker reads untrusted files. So the server unpickles nothing that the worker sends, and passes
results to the page as they are.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

__all__ = [
    "Kind",
    "WorkerMessage",
    "packed_command",
    "packed_report",
    "unpacked_command",
    "unpacked_report",
]

_START = struct.Struct("<BI")


class Kind(IntEnum):
    """ANSWER and CANCEL go to the worker; all others come from it, with the request's number."""

    ANSWER = 1
    CANCEL = 2
    READY = 3
    BEGAN = 4
    PROGRESS = 5
    RESULT = 6
    ERROR = 7
    CANCELLED = 8
    COMPILES = 9  # number 1: it compiles kernels; 0: no more
    REPORT = 10


@dataclass(frozen=True)
class WorkerMessage:
    """One message, in either direction; `number` is that of the request."""

    kind: Kind
    number: int = 0
    content: bytes = b""

    def to_bytes(self) -> bytes:
        return _START.pack(self.kind, self.number) + self.content

    @classmethod
    def from_bytes(cls, data: bytes) -> WorkerMessage:
        kind, number = _START.unpack_from(data)
        return cls(Kind(kind), number, data[_START.size :])


def packed_command(command: dict[str, Any], text: str) -> bytes:
    """The content of ANSWER: the command, and the request as the page wrote it."""
    return json.dumps(command).encode() + b"\n" + text.encode(errors="replace")


def unpacked_command(content: bytes) -> tuple[dict[str, Any], str]:
    """The command and the text of `packed_command`."""
    command, _, text = content.partition(b"\n")
    return json.loads(command), text.decode()


def packed_report(name: str, page: str) -> bytes:
    """The content of REPORT: the name and the page of a report."""
    return name.encode() + b"\n" + page.encode(errors="replace")


def unpacked_report(content: bytes) -> tuple[str, bytes]:
    """The name and the page of `packed_report`."""
    name, _, page = content.partition(b"\n")
    return name.decode(), page
