"""Ctrl-C during a slice: only after it is there a state to keep."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """Holds Ctrl-C back until a slice is over; who presses it twice does not wait.

    Only the main thread hears of signals, and only while a process is driven is there a handler of
    ours.
    """

    def __init__(self) -> None:
        self.are_held_back = False
        self._has_come = False
        self._usual: Any = None

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and callable(signal.getsignal(signal.SIGINT)):
            self._usual = signal.signal(signal.SIGINT, self._on_signal)

    def __exit__(self, *error: object) -> None:
        if self._usual is not None:
            signal.signal(signal.SIGINT, self._usual)
            self._usual = None

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.are_held_back and not self._has_come:
            self._has_come = True
        else:
            self._usual(number, frame)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        self.are_held_back, self._has_come = True, False
        try:
            yield
        finally:
            self.are_held_back = False
        if self._has_come:
            self._usual(signal.SIGINT, None)
