"""Interrupts, ends of time and bounds of work, at moments that a test chooses.

Machines that run tests are busy. So no test compares times, and none sends a signal to its own
process: one that comes late would end the run of all tests. Fits of this process are interrupted
by raising where Ctrl-C would; real signals go to child processes.
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from margrove import watch
from margrove._runtime import slices

__all__ = [
    "PATIENCE",
    "interrupt_after",
    "is_alive",
    "lines_until_interrupt",
    "run_with_signals",
    "steady_clock",
    "wait_until",
    "within_slices",
]

PATIENCE = 300.0  # seconds: nothing takes that long, unless it hangs

# Tests may run in the background, where shells have Ctrl-C ignored, also by children.
_HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"

# Processes that also look at the clock within a slice.
_OWN_SLICES = (
    "ensemble.forest.grower",
    "margin.solvers.linear.dual_coordinate_descent",
    "margin.solvers.dual.many_problems",
)


def interrupt_after(n_slices: int) -> AbstractContextManager[None]:
    """A block in which each fit is interrupted after so many slices."""
    numbers = itertools.count(1)

    def interrupt(progress: Any) -> None:
        if next(numbers) % n_slices == 0:
            raise KeyboardInterrupt

    return watch(on_progress=interrupt)


def lines_until_interrupt(
    run: Callable[..., object],
    *given: Any,
    files: Collection[str | None],
    moment: int = -1,
    **options: Any,
) -> list[tuple[str, int]]:
    """Call a function with an interrupt at the k-th line that is run in certain files.

    The file and the number of each line until then; of all of them, if the moment is below 0.
    """
    lines: list[tuple[str, int]] = []

    def on_call(frame: Any, event: str, arg: Any) -> Any:
        return on_line if frame.f_code.co_filename in files else None

    def on_line(frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            if len(lines) == moment:
                sys.settrace(None)
                raise KeyboardInterrupt
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return on_line

    before = sys.gettrace()  # of who measures what tests cover
    sys.settrace(on_call)
    try:
        with suppress(KeyboardInterrupt):
            run(*given, **options)
    finally:
        sys.settrace(before)
    return lines


class _SteadyClock:
    """Read twice for each slice, at its beginning and its end, between which 50 ms pass."""

    def __init__(self) -> None:
        self._readings = itertools.count()

    def monotonic(self) -> float:
        return (next(self._readings) // 2) * slices.SLICE_SECONDS


@contextmanager
def steady_clock() -> Iterator[None]:
    """A block in which each slice takes 50 ms, whatever the machine does meanwhile.

    With `max_time=0.2` a fit ends after four slices. Each fit needs a block of its own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "time", _SteadyClock())
        for name in _OWN_SLICES:
            patch.setattr(importlib.import_module(f"margrove.{name}"), "SLICE_SECONDS", 0.0)
        yield


@contextmanager
def within_slices(most: int = 2000) -> Iterator[None]:
    """A block in which fits end by themselves after a bounded amount of work: none hangs.

    Slices of two million multiply-adds are counted, without those that end a round, of which a
    learner has a budget of its own.
    """
    n_slices, last = 0, -1

    def look(progress: slices.Progress) -> None:
        nonlocal n_slices, last
        n_slices += progress.done == last
        last = progress.done
        assert n_slices < most, f"{progress.learner} goes on and on: {progress}"

    with pytest.MonkeyPatch.context() as patch, watch(on_progress=look):
        patch.setattr(slices, "_work_of_next_slice", lambda work, done, seconds: work)
        yield


def run_with_signals(
    code: str, *arguments: object, number: int = signal.SIGINT, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program that gets a signal whenever it says "now"; what else it says, and its end."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _HEARS_CTRL_C + code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        guard = threading.Timer(PATIENCE, process.kill)
        guard.start()
        try:
            said = []
            for line in process.stdout:
                if line == "now\n":
                    process.send_signal(number)
                else:
                    said.append(line)
            complaints = process.stderr.read()
        finally:
            guard.cancel()
    return subprocess.CompletedProcess(code, process.returncode, "".join(said), complaints)


def is_alive(process: int) -> bool:
    """Whether a process with this number runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], object]) -> None:
    """However long it takes, unless it takes for ever."""
    for _ in range(int(PATIENCE / 0.01)):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never comes")
