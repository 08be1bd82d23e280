"""The keeper of a `checkpoint` block: restores processes, saves their states, writes the file."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from margrove._runtime.checkpoints.process_states import NotCheckpointable
from margrove._runtime.checkpoints.records import KIND, NOT_SUPPORTED, description, difference
from margrove._runtime.slices import Process, using_checkpoints
from margrove._version import __version__
from margrove.exceptions import CheckpointError, CheckpointWarning, UnsavableModelError

__all__ = ["CheckpointKeeper"]

_LEAST_SECONDS = 1.0  # between two files of finished processes: small models share a file
_WAY_OUT = "Resume it with the same parameters and data, or remove the file to start again."


class _DelayedInterrupts:
    """Delays Ctrl-C until a slice is over; a second Ctrl-C is not delayed.

    Python handles signals in the main thread only. Our handler is installed only while a process
    is driven.
    """

    def __init__(self) -> None:
        self._is_delaying = False
        self._is_pending = False
        self._usual_handler: Any = None

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and callable(signal.getsignal(signal.SIGINT)):
            self._usual_handler = signal.signal(signal.SIGINT, self._on_signal)

    def __exit__(self, *error: object) -> None:
        if self._usual_handler is not None:
            signal.signal(signal.SIGINT, self._usual_handler)
            self._usual_handler = None

    def _on_signal(self, number: int, frame: Any) -> None:
        if self._is_delaying and not self._is_pending:
            self._is_pending = True
        else:
            self._usual_handler(number, frame)

    @contextmanager
    def delayed(self) -> Iterator[None]:
        self._is_delaying, self._is_pending = True, False
        try:
            yield
        finally:
            self._is_delaying = False
        if self._is_pending:
            self._usual_handler(signal.SIGINT, None)


class CheckpointKeeper:
    """The states of all processes of a block, and the file that they are written to.

    Entry k belongs to process k. Entries of processes that have begun in this session come first,
    then the remaining entries of the resumed file.
    """

    def __init__(
        self,
        path: Path,
        every: float | None,
        every_rounds: int | None,
        recorded: dict[str, Any] | None,
        source: str,
        *,
        others_raise: bool = True,
    ) -> None:
        self._others_raise = others_raise
        self._path, self._source = path, source
        self._every, self._every_rounds = every, every_rounds
        self._entries: list[dict[str, Any]] = [] if recorded is None else list(recorded["drives"])
        self._seeds: list[int] = [] if recorded is None else list(recorded["seeds"])
        self._n_requested = self._n_begun = 0
        self._n_seeds = 0
        self._written_at = time.monotonic()
        self._is_written = True
        self._interrupts = _DelayedInterrupts()

    def seed(self, drawn: int) -> int:
        """The k-th seed that the resumed session drew, or else the new one."""
        if self._n_seeds == len(self._seeds):
            self._seeds.append(drawn)
        self._n_seeds += 1
        return self._seeds[self._n_seeds - 1]

    @contextmanager
    def keep(
        self, process: Process, estimator: Any, given: Mapping[str, Any]
    ) -> Iterator[Callable[[float], float]]:
        """See `slices.CheckpointKeeper`."""
        self._n_requested += 1
        if any(kind.__name__ in NOT_SUPPORTED for kind in type(estimator).__mro__):
            self._refuse(type(estimator).__name__)
            with using_checkpoints(None):
                yield process.advance
            return
        try:
            entry = description(process, estimator, given)
        except NotCheckpointable as reason:
            warnings.warn(
                f"{type(estimator).__name__} is not saved in the checkpoint and will be fitted "
                f"from the beginning if it is interrupted: {reason}.",
                CheckpointWarning,
                stacklevel=5,
            )
            with using_checkpoints(None):
                yield process.advance
            return
        number = self._n_begun
        self._begin(process, entry, number)
        rounds_written = process.rounds
        is_consistent = True

        def advance(work: float) -> float:
            nonlocal is_consistent, rounds_written
            with self._interrupts.delayed(), using_checkpoints(None):
                is_consistent = False
                done = process.advance(work)
                is_consistent = True
                if self._is_due(process.rounds - rounds_written):
                    rounds_written = process.rounds
                    self._save_state(process, number)
                    self._write()
            return done

        with self._interrupts:
            try:
                yield advance
            finally:
                with self._interrupts.delayed():
                    if is_consistent:  # else the state that was saved last is the last valid one
                        self._save_state(process, number)
                    is_over = self._entries[number]["finished"]
                    if not is_over or time.monotonic() - self._written_at > _LEAST_SECONDS:
                        self._write()

    def _refuse(self, learner: str) -> None:
        if self._others_raise:
            raise CheckpointError(
                os.fspath(self._path),
                f"{learner} has no checkpoints, so that this fit could not be resumed. Checkpoints "
                "exist for forests, bagging, AdaBoost, gradient boosting, kernel support vector "
                "machines, and searches over these",
                f"Fit {learner} outside of the block (partial_fit and margrove.save keep what it "
                "has learnt), or use checkpoint(..., others='fit') to fit it from the beginning "
                "in each session.",
            )

    def close(self) -> None:
        """At the end of the block, write the states that are not in the file yet."""
        self._write()

    def warn_if_no_fit(self) -> None:
        """Warn if the block contained no fit, because its file would be useless."""
        if not self._n_requested:
            warnings.warn(
                "Nothing was saved in the checkpoint: no model of margrove was fitted in the "
                "block, or only in other threads or processes. Use n_jobs=None in the estimator "
                "around it, or put a block around each fit. After `partial_fit`, save the model.",
                CheckpointWarning,
                stacklevel=4,
            )

    def _begin(self, process: Process, entry: dict[str, Any], number: int) -> None:
        """Restore the state that the file has for this number, if there is one."""
        self._n_begun += 1
        if number == len(self._entries):
            self._entries.append(entry)
            return
        recorded = self._entries[number]
        reason = difference(recorded, entry, process)
        if reason:
            raise CheckpointError(self._source, f"it cannot be resumed here: {reason}", _WAY_OUT)
        if recorded["state"] is not None:
            try:
                process.restore(recorded["state"])  # type: ignore[attr-defined]
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
                raise CheckpointError(
                    self._source,
                    f"its state of {entry['learner']} is not valid ({error}): it was altered",
                    "Remove the file to start again.",
                ) from error
        self._entries[number] = entry | {"state": recorded["state"], "rounds": process.rounds}

    def _is_due(self, new_rounds: int) -> bool:
        if self._every_rounds is not None and new_rounds >= self._every_rounds:
            return True
        return self._every is not None and time.monotonic() - self._written_at >= self._every

    def _save_state(self, process: Process, number: int) -> None:
        """Copy the current state; if that is not possible, keep the previous one."""
        try:
            state = process.state()  # type: ignore[attr-defined]
        except NotCheckpointable as reason:
            warnings.warn(f"The checkpoint is not updated: {reason}.", CheckpointWarning, 2)
            return
        self._entries[number] |= {
            "state": state,
            "rounds": process.rounds,
            "finished": bool(process.finished),
        }
        self._is_written = False

    def _write(self) -> None:
        """Write the file if it is out of date. If that fails, warn and let the fit go on."""
        from margrove._files import write_archive

        if self._is_written:
            return
        values = {"version": __version__, "seeds": self._seeds, "drives": self._entries}
        self._written_at = time.monotonic()
        try:
            write_archive(self._path, KIND, values)
            self._is_written = True
        except (OSError, UnsavableModelError) as error:
            warnings.warn(
                f"The checkpoint {os.fspath(self._path)!r} could not be written: {error}. The fit "
                "goes on; the file, if it exists, has an earlier state.",
                CheckpointWarning,
                stacklevel=2,
            )
