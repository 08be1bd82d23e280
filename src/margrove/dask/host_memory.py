"""Sums between workers of one machine, in memory that they share.

Each worker has two slots in a file without a name, which all of them have mapped. In a step it
writes its values into one slot and then a number that says so, waits for these numbers of all
others, and reads their slots. The two slots take turns: a worker that has seen the numbers of the
next step knows that nobody reads the slots of this one any more.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from margrove._runtime import atomic_read, atomic_write, kernel, relax

__all__ = ["HostMemory", "host_name"]

_MOST_BYTES = 1 << 25  # of all slots
_BYTES_OF_A_SLOT = 1 << 20
_BYTES_OF_NUMBERS = 1 << 12  # at the beginning, 64 for each member
_WORDS_OF_A_MEMBER = 8  # numbers of two members are not in the same cache line
_TOKEN = 16  # bytes at the very beginning
_LOOKS = 500  # before a worker sleeps
_NAP = 5e-5  # seconds
_MOST_MEMBERS = (_BYTES_OF_NUMBERS // 8 - _WORDS_OF_A_MEMBER) // _WORDS_OF_A_MEMBER


def host_name() -> str:
    """A name of this machine; workers that have the same one may still not share its files."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


class HostMemory:
    """The memory that `size` workers share; `place` is the number of this one among them."""

    def __init__(self, content: Any, place: int, size: int) -> None:
        self._content, self._place, self._size = content, place, size
        whole = np.frombuffer(content, np.uint8)
        self._numbers = whole[:_BYTES_OF_NUMBERS].view(np.int64)
        self.capacity = _capacity(size)  # bytes of a slot
        self._slots = whole[_BYTES_OF_NUMBERS:].reshape(2, size, self.capacity)
        self._step = 0

    @classmethod
    def created(cls, size: int) -> tuple[HostMemory, tuple[str, bytes]] | None:
        """Memory for so many workers, and what others need to join; None if there cannot be any."""
        if size > _MOST_MEMBERS:
            return None
        n_bytes, token = _BYTES_OF_NUMBERS + 2 * size * _capacity(size), secrets.token_bytes(_TOKEN)
        try:
            file, path = tempfile.mkstemp(prefix="margrove-", dir=_folder())
            with os.fdopen(file, "r+b") as opened:
                opened.truncate(n_bytes)
                content = mmap.mmap(opened.fileno(), n_bytes)
        except OSError:
            return None
        content[:_TOKEN] = token
        return cls(content, 0, size), (path, token)

    @classmethod
    def joined(cls, offer: tuple[str, bytes], place: int, size: int) -> HostMemory | None:
        """The memory that another worker has created; None if this worker cannot reach it."""
        path, token = offer
        try:
            with open(path, "r+b") as opened:
                content = mmap.mmap(opened.fileno(), 0)
        except (OSError, ValueError):
            return None
        return cls(content, place, size) if content[:_TOKEN] == token else None

    @staticmethod
    def unlink(offer: tuple[str, bytes]) -> None:
        """Take the name from the file: it is gone with the last worker that has mapped it."""
        with contextlib.suppress(OSError):
            os.unlink(offer[0])

    def reduce(self, own: np.ndarray, operation: Any, while_waiting: Callable[[], None]) -> None:
        """Combine arrays of all workers, piece by piece; all of them get the same bits.

        while_waiting() is called between two looks whether the others have arrived.
        """
        for piece in self._pieces(own):
            slots = self._exchanged(piece, while_waiting)
            first, second, *others = slots
            operation(first, second, out=piece)
            for other in others:
                operation(piece, other, out=piece)

    def broadcast(self, own: np.ndarray, while_waiting: Callable[[], None]) -> None:
        """Give the array of the first worker to all others."""
        for piece in self._pieces(own):
            slots = self._exchanged(piece if self._place == 0 else piece[:0], while_waiting)
            piece[:] = slots[0, : len(piece)]

    def _pieces(self, own: np.ndarray) -> list[np.ndarray]:
        step = self.capacity // own.itemsize
        return [own[first : first + step] for first in range(0, len(own), step)]

    def _exchanged(self, piece: np.ndarray, while_waiting: Callable[[], None]) -> np.ndarray:
        """The slots of all workers, (size, capacity), with the dtype of the piece."""
        slots = self._slots[self._step % 2].view(piece.dtype)
        slots[self._place, : len(piece)] = piece
        self._step += 1
        _write_number(self._numbers, self._place, self._step)
        while not _have_all_arrived(self._numbers, self._size, self._step):
            while_waiting()
            time.sleep(_NAP)
        return slots[:, : len(piece)] if len(piece) else slots

    def missing(self) -> list[int]:
        """The places of workers that have not arrived at this step."""
        numbers = self._numbers[_WORDS_OF_A_MEMBER::_WORDS_OF_A_MEMBER][: self._size]
        return np.flatnonzero(numbers < self._step).tolist()


def _capacity(size: int) -> int:
    return min(_BYTES_OF_A_SLOT, max(_MOST_BYTES // (2 * size) // 64 * 64, 64))


def _folder() -> str | None:
    """Where files are in memory, if there is such a place."""
    folder = "/dev/shm"
    return folder if os.path.isdir(folder) and os.access(folder, os.W_OK) else None


@kernel
def _write_number(numbers, place, step):
    atomic_write(numbers, (place + 1) * _WORDS_OF_A_MEMBER, step)


@kernel
def _have_all_arrived(numbers, size, step):
    for place in range(size):
        looks = 0
        while atomic_read(numbers, (place + 1) * _WORDS_OF_A_MEMBER) < step:
            looks += 1
            if looks > _LOOKS:
                return False
            relax()
    return True
