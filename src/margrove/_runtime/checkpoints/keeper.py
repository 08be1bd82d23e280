"""The keeper of a `checkpoint` block: restores processes, takes their states, writes the file."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from margrove._runtime.checkpoints.interrupts import Interrupts
from margrove._runtime.checkpoints.records import FITTED_ANEW, KIND, description, difference
from margrove._runtime.process_states import Unkeepable
from margrove._runtime.slices import Process, under_keeper
from margrove._version import __version__
from margrove.exceptions import CheckpointError, CheckpointWarning, UnsavableModelError

__all__ = ["Keeper"]

_SOON = 1.0  # seconds: models that are fitted faster than that share a file
_START_ANEW = "Resume it with what it was begun with, or remove the file to begin anew."


class Keeper:
    """The states of all processes of a block, and the file that they are written to.

    Entry k is that of process k: of this session as far as it has come, then those of the file
    that is resumed.
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
        self._n_asked = self._n_begun = 0
        self._n_seeds = 0
        self._written_at = time.monotonic()
        self._is_written = True
        self._interrupts = Interrupts()

    def seed(self, drawn: int) -> int:
        """The k-th seed that was drawn in the session that is resumed, or the new one."""
        if self._n_seeds == len(self._seeds):
            self._seeds.append(drawn)
        self._n_seeds += 1
        return self._seeds[self._n_seeds - 1]

    @contextmanager
    def keep(
        self, process: Process, estimator: Any, given: Mapping[str, Any]
    ) -> Iterator[Callable[[float], float]]:
        """See `slices.Keeper`."""
        self._n_asked += 1
        if any(own.__name__ in FITTED_ANEW for own in type(estimator).__mro__):
            self._refuse(type(estimator).__name__)
            with under_keeper(None):
                yield process.advance
            return
        try:
            entry = description(process, estimator, given)
        except Unkeepable as reason:
            warnings.warn(
                f"{type(estimator).__name__} is not kept in the checkpoint and will be fitted from "
                f"the beginning if it is interrupted: {reason}.",
                CheckpointWarning,
                stacklevel=5,
            )
            with under_keeper(None):
                yield process.advance
            return
        number = self._n_begun
        self._begin(process, entry, number)
        rounds_written = process.rounds
        is_whole = True

        def advance(work: float) -> float:
            nonlocal is_whole, rounds_written
            with self._interrupts.held_back(), under_keeper(None):
                is_whole = False
                done = process.advance(work)
                is_whole = True
                if self._is_due(process.rounds - rounds_written):
                    rounds_written = process.rounds
                    self._take(process, number)
                    self._write()
            return done

        with self._interrupts:
            try:
                yield advance
            finally:
                with self._interrupts.held_back():
                    if is_whole:  # else the last state that was taken is the last one that is sound
                        self._take(process, number)
                    is_over = self._entries[number]["finished"]
                    if not is_over or time.monotonic() - self._written_at > _SOON:
                        self._write()

    def _refuse(self, learner: str) -> None:
        if self._others_raise:
            raise CheckpointError(
                os.fspath(self._path),
                f"{learner} is not kept in checkpoints, so that this fit could not be resumed. "
                "Kept are forests, bagging, AdaBoost, gradient boosting, kernel support vector "
                "machines, and searches over these",
                f"Fit {learner} outside of the block (partial_fit and margrove.save keep what it "
                "has learnt), or use checkpoint(..., others='fit') to fit it from the beginning "
                "in each session.",
            )

    def close(self) -> None:
        """At the end of the block, write what is not in the file yet."""
        self._write()

    def warn_if_nobody_came(self) -> None:
        """Warn if no fit of the block was kept, before somebody needs the file."""
        if not self._n_asked:
            warnings.warn(
                "Nothing was kept in the checkpoint: `fit` of no model of margrove was called in "
                "the block, or in other threads or processes only. Use n_jobs=None in the "
                "estimator around it, or put a block around each fit. After `partial_fit`, save "
                "the model.",
                CheckpointWarning,
                stacklevel=4,
            )

    def _begin(self, process: Process, entry: dict[str, Any], number: int) -> None:
        """Restore the state that the file holds under this number, if there is one."""
        self._n_begun += 1
        if number == len(self._entries):
            self._entries.append(entry)
            return
        recorded = self._entries[number]
        reason = difference(recorded, entry, process)
        if reason:
            raise CheckpointError(self._source, f"it cannot be resumed here: {reason}", _START_ANEW)
        if recorded["state"] is not None:
            try:
                process.restore(recorded["state"])  # type: ignore[attr-defined]
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
                raise CheckpointError(
                    self._source,
                    f"its state of {entry['learner']} does not fit ({error}): it was altered",
                    "Remove the file to begin anew.",
                ) from error
        self._entries[number] = entry | {"state": recorded["state"], "rounds": process.rounds}

    def _is_due(self, new_rounds: int) -> bool:
        if self._every_rounds is not None and new_rounds >= self._every_rounds:
            return True
        return self._every is not None and time.monotonic() - self._written_at >= self._every

    def _take(self, process: Process, number: int) -> None:
        """Take the current state; if that is not possible, the previous one stays."""
        try:
            state = process.state()  # type: ignore[attr-defined]
        except Unkeepable as reason:
            warnings.warn(f"The checkpoint stays as it is: {reason}.", CheckpointWarning, 2)
            return
        self._entries[number] |= {
            "state": state,
            "rounds": process.rounds,
            "finished": bool(process.finished),
        }
        self._is_written = False

    def _write(self) -> None:
        """Write the file if something is new. A full disk is a warning: the fit goes on."""
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
                "goes on; the file, if there is one, holds an earlier state.",
                CheckpointWarning,
                stacklevel=2,
            )
