"""Checkpoints: fits that are cut short go on in another session, where they stopped.

`checkpoint` puts a keeper (`slices.Keeper`) beside the fits of a `with` block. Whenever one of
them drives a process, the keeper

    numbers it, in the order in which processes begin
    describes it: the learner, its parameters, the data, and the state that it starts from
    restores the state of the same number in the file that is resumed, if the descriptions agree
    takes the state between slices, and writes all of them to the file, every so often and at the
    end

A process that had finished is restored like any other, and has nothing left to do: fits that drive
several processes, or meta-estimators that fit several models, pass through those quickly.

Ctrl-C waits until a slice is over, because only then is there a state to keep.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime.process_states import Unkeepable
from margrove._runtime.slices import Process, under_keeper
from margrove._version import __version__
from margrove.exceptions import (
    CheckpointError,
    CheckpointWarning,
    ModelFileError,
    UnsavableModelError,
)

__all__ = ["checkpoint"]

_KIND = "checkpoint"
_RUN_CONTROL = {"n_jobs", "verbose", "max_time", "on_interrupt", "cache_size"}
_SOON = 1.0  # seconds: models that are fitted faster than that share a file
_BYTES_AT_ONCE = 1 << 24
_START_ANEW = "Resume it with what it was begun with, or remove the file to begin anew."


@contextmanager
def checkpoint(
    path: str | os.PathLike[str],
    *,
    every: float | None = 30.0,
    every_rounds: int | None = None,
    resume: bool = False,
    resume_from: str | os.PathLike[str] | None = None,
) -> Iterator[None]:
    """Keep what the fits inside the `with` block have learnt in a file, and resume them from it.

    A fit that was interrupted (Ctrl-C, a killed process, `max_time`, a cancel) and is resumed with
    the same parameters and data gives what it would have given without the interruption: bit for
    bit, but for kernel support vector machines, which go on from the coefficients they had and
    end within their tolerance.

    The file is replaced in one step and stays when the fit is done; resuming it then returns the
    same model at once. Only what decides about the result must be the same as before: `n_jobs`,
    `verbose`, `max_time` (which counts from the last start) and `on_interrupt` may differ, and
    `n_estimators`, or `max_iter` of histogram boosting, may be larger.

    Parameters
    ----------
    path : str or path-like
        The file. An unfinished checkpoint that is there is not overwritten: resume or remove it.
    every : float or None, default=30.0
        Seconds between two files. None: only at the end of a fit, at Ctrl-C and the like.
    every_rounds : int, optional
        Write a file after so many rounds (trees, epochs, ...), too.
    resume : bool, default=False
        Go on from `path` if it is there, and begin anew if it is not.
    resume_from : str or path-like, optional
        Go on from this file, which must be there; it may be `path` itself.

    Raises
    ------
    CheckpointError
        If the file is of another learner, other parameters, other data or another version; the
        message says which.
    ModelFileError
        If the file was damaged.

    Examples
    --------
    >>> import margrove, os, tempfile
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = os.path.join(folder.name, "forest.margrove")
    >>> def stop_early(progress):
    ...     if progress.done >= 20:
    ...         raise KeyboardInterrupt
    >>> forest = margrove.RandomForestClassifier(n_estimators=50)
    >>> try:
    ...     with margrove.checkpoint(file), margrove.watch(on_progress=stop_early):
    ...         forest.fit(X, y)
    ... except KeyboardInterrupt:
    ...     pass
    >>> with margrove.checkpoint(file, resume=True):
    ...     len(forest.fit(X, y))
    50
    >>> folder.cleanup()
    """
    _check_arguments(path, every, every_rounds, resume, resume_from)
    target = Path(path)
    source = target if resume and target.exists() else resume_from
    if source is not None and not os.path.exists(source):
        raise FileNotFoundError(
            f"resume_from={os.fspath(source)!r}: there is no such checkpoint. Use resume=True to "
            "begin anew where there is none."
        )
    recorded = None if source is None else _read(Path(source))
    is_same = source is not None and target.exists() and os.path.samefile(source, target)
    if not is_same:
        _require_free(target)
    keeper = _Keeper(target, every, every_rounds, recorded, os.fspath(source or target))
    try:
        with under_keeper(keeper):
            yield
    finally:
        keeper.close()
    keeper.warn_if_nobody_came()


def _check_arguments(
    path: Any, every: Any, every_rounds: Any, resume: Any, resume_from: Any
) -> None:
    for name, value in (("path", path), ("resume_from", resume_from)):
        if not isinstance(value, str | os.PathLike) and (name == "path" or value is not None):
            raise TypeError(f"{name} must be the name of a file. Got {value!r} instead.")
    is_number = isinstance(every, Real) and not isinstance(every, bool)
    if every is not None and not (is_number and every > 0):
        raise ValueError(f"every must be a number of seconds above 0, or None. Got {every!r}.")
    is_whole = isinstance(every_rounds, Integral) and not isinstance(every_rounds, bool)
    if every_rounds is not None and not (is_whole and every_rounds >= 1):
        raise ValueError(f"every_rounds must be 1 or more, or None. Got {every_rounds!r}.")
    if not isinstance(resume, bool):
        raise TypeError(
            f"resume must be True or False. Got {resume!r} instead; the file to resume is "
            "resume_from."
        )
    if resume and resume_from is not None:
        raise ValueError("resume=True goes on from path: leave resume_from out, or resume.")
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"path={os.fspath(path)!r}: there is no folder {str(folder)!r}.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"path={os.fspath(path)!r}: the folder cannot be written to.")
    if Path(path).is_dir():
        raise IsADirectoryError(f"path={os.fspath(path)!r} is a folder. Name a file in it.")


def _require_free(target: Path) -> None:
    """What took hours is not overwritten by a line that was meant to go on from it."""
    if not target.exists():
        return
    try:
        entries = _read(target)["drives"]
        is_finished = all(own["finished"] or own["state"] is None for own in entries)
    except (ModelFileError, CheckpointError) as error:
        raise CheckpointError(
            os.fspath(target),
            f"there is a file already that is no checkpoint, or a damaged one ({error})",
            "Give another name, or remove it.",
        ) from None
    if not is_finished:
        raise CheckpointError(
            os.fspath(target),
            "there is a checkpoint of a fit that is not finished",
            "Use resume=True to go on from it, or remove the file to begin anew.",
        )


def _read(source: Path) -> dict[str, Any]:
    from margrove.exchange.model_file.archive import read_archive

    kind, values = read_archive(source)
    if kind != _KIND:
        raise CheckpointError(
            os.fspath(source), f"it is a {kind}, not a checkpoint", "Name another file."
        )
    drives, seeds = values.get("drives"), values.get("seeds")
    is_sound = (
        isinstance(drives, list)
        and all(_is_entry(own) for own in drives)
        and isinstance(seeds, list)
        and all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    )
    if not is_sound:
        raise CheckpointError(
            os.fspath(source), "it lacks what checkpoints have", "Remove it to begin anew."
        )
    version = values.get("version")
    if version != __version__:
        raise CheckpointError(
            os.fspath(source),
            f"it was written by margrove {version}, and this is {__version__}",
            "Install that version to go on from it, or remove it to begin anew.",
        )
    return values


_ENTRIES = {"learner": str, "parameters": dict, "data": dict, "start": str, "finished": bool,
            "rounds": int, "state": dict | None}  # fmt: skip


def _is_entry(entry: Any) -> bool:
    """Whether this is what `_description` makes."""
    return (
        isinstance(entry, dict)
        and set(entry) == set(_ENTRIES)
        and all(isinstance(entry[name], kind) for name, kind in _ENTRIES.items())
        and all(isinstance(text, str) for text in entry["parameters"].values())
        and all(isinstance(text, str) for text in entry["data"].values())
    )


class _Keeper:
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
    ) -> None:
        self._path, self._source = path, source
        self._every, self._every_rounds = every, every_rounds
        self._entries: list[dict[str, Any]] = [] if recorded is None else list(recorded["drives"])
        self._seeds: list[int] = [] if recorded is None else list(recorded["seeds"])
        self._n_asked = self._n_begun = 0
        self._n_seeds = 0
        self._written_at = time.monotonic()
        self._is_written = True
        self._interrupts = _Interrupts()

    def seed(self, drawn: int) -> int:
        """The same seed for the same place in the order of draws."""
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
        try:
            entry = _description(process, estimator, given)
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

    def close(self) -> None:
        """At the end of the block: what is not yet in the file."""
        self._write()

    def warn_if_nobody_came(self) -> None:
        """Who asks for a checkpoint and has none should not find out when it is needed."""
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
        """Go on from the state of this number, if there is one."""
        self._n_begun += 1
        if number == len(self._entries):
            self._entries.append(entry)
            return
        recorded = self._entries[number]
        reason = _difference(recorded, entry, process)
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
        """As it is now; what cannot be kept, as it was last."""
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
        """What is new; a disk that is full is no reason to lose the fit as well."""
        from margrove.exchange.model_file.archive import write_archive

        if self._is_written:
            return
        values = {"version": __version__, "seeds": self._seeds, "drives": self._entries}
        self._written_at = time.monotonic()
        try:
            write_archive(self._path, _KIND, values)
            self._is_written = True
        except (OSError, UnsavableModelError) as error:
            warnings.warn(
                f"The checkpoint {os.fspath(self._path)!r} could not be written: {error}. The fit "
                "goes on; the file, if there is one, holds an earlier state.",
                CheckpointWarning,
                stacklevel=2,
            )


class _Interrupts:
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


# -- what a process is --


def _description(process: Process, estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """All that must agree, and room for the state."""
    if not hasattr(process, "state"):
        raise Unkeepable("its state cannot be taken between two steps")
    return {
        "learner": type(estimator).__name__,
        "parameters": _parameters(estimator),
        "data": {name: fingerprint(value) for name, value in given.items()},
        "start": fingerprint(process.state()),
        "finished": False,
        "rounds": process.rounds,
        "state": None,
    }


def _parameters(estimator: Any) -> dict[str, str]:
    """Those that decide about the result, of estimators inside as well, as text."""
    given = estimator.get_params(deep=True)
    return {
        name: _as_text(given[name])
        for name in sorted(given)
        if name.rpartition("__")[2] not in _RUN_CONTROL
    }


def _as_text(value: Any) -> str:
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{type(value).__name__} of shape {value.shape}, {fingerprint(value)[:16]}"
    if isinstance(value, np.random.RandomState):
        return f"RandomState {fingerprint(value.get_state(legacy=True))[:16]}"
    if isinstance(value, np.random.Generator):
        return f"Generator {fingerprint(repr(value.bit_generator.state))[:16]}"
    if hasattr(value, "get_params"):
        return type(value).__name__  # its parameters are listed on their own
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.generic):
        return repr(value.item())
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _difference(recorded: dict[str, Any], entry: dict[str, Any], process: Process) -> str:
    """What a recorded process differs in, in words; nothing if it is the same."""
    if recorded["learner"] != entry["learner"]:
        return f"it is of a {recorded['learner']}, and this is a {entry['learner']}"
    was, now = recorded["parameters"], entry["parameters"]
    limit = getattr(process, "limit", None)
    names = [
        f"{name} was {was.get(name, 'not there')} and is {now.get(name, 'not there')}"
        for name in sorted(set(was) | set(now))
        if was.get(name) != now.get(name)
        and not (name == limit and _is_raised(was.get(name), now.get(name)))
    ]
    if names:
        return "; ".join(names)
    others = [
        name
        for name in sorted(set(recorded["data"]) | set(entry["data"]))
        if recorded["data"].get(name) != entry["data"].get(name)
    ]
    if others:
        verb = "is not what it was" if len(others) == 1 else "are not what they were"
        return f"{' and '.join(others)} {verb}"
    if recorded["start"] != entry["start"]:
        return "the fit starts from another model (warm_start, initial weights), or another seed"
    return ""


def _is_raised(was: str | None, now: str | None) -> bool:
    return bool(was and now and was.isdigit() and now.isdigit() and int(was) < int(now))


# -- data by their contents --


def fingerprint(value: Any) -> str:
    """SHA-256 of data, the same for the same contents in another container of its kind."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        _add_array(digest, value)
    elif sp.issparse(value):
        _add_sparse(digest, value)
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)}\n".encode())
        for key in sorted(value, key=str):
            digest.update(f"{key!r}\n".encode())
            _add(digest, value[key])
    elif hasattr(value, "columns") and hasattr(value, "shape"):  # a frame
        digest.update(f"frame {tuple(value.shape)} {list(map(str, value.columns))}\n".encode())
        for name in value.columns:
            _add(digest, value[name])
    elif isinstance(value, list | tuple):
        _add_sequence(digest, value)
    elif hasattr(value, "__array__") and not np.isscalar(value):
        categories = getattr(getattr(value, "dtype", None), "categories", None)
        if categories is not None:
            digest.update(f"categories {list(categories)}\n".encode())
        _add_array(digest, np.asarray(value))
    else:
        digest.update(f"{_as_text(value)}\n".encode())


def _add_sequence(digest: Any, values: list[Any] | tuple[Any, ...]) -> None:
    """Numbers as an array, whatever the nesting; anything else one by one."""
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        array = np.empty(0, object)
    if array.dtype.kind in "biufU" and array.size:
        _add_array(digest, array)
        return
    digest.update(f"sequence {len(values)}\n".encode())
    for own in values:
        _add(digest, own)


def _add_array(digest: Any, array: np.ndarray) -> None:
    if array.dtype.hasobject:
        digest.update(f"objects {array.shape}\n".encode())
        for own in array.ravel().tolist():
            digest.update(f"{type(own).__name__} {own!r}\n".encode())
        return
    kind = array.dtype
    if kind.kind in "biu" and (kind.itemsize < 8 or kind.kind == "i") and _fits(array):
        kind = np.dtype(np.float64)
    digest.update(f"array {kind.newbyteorder('<').str} {array.shape}\n".encode())
    rows = np.atleast_1d(array)
    step = max(1, _BYTES_AT_ONCE // max(1, rows[:1].nbytes))
    for begin in range(0, len(rows), step):
        part = np.ascontiguousarray(rows[begin : begin + step], kind.newbyteorder("<"))
        digest.update(part.reshape(-1).view(np.uint8).data if part.size else b"")


def _fits(array: np.ndarray) -> bool:
    """Whether whole numbers are the same as floats."""
    return array.dtype.itemsize < 8 or not np.any(np.abs(array) > 2**53)


def _add_sparse(digest: Any, value: Any) -> None:
    rows = value.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    digest.update(f"sparse {rows.shape}\n".encode())
    for own in (rows.data, rows.indices, rows.indptr):
        _add_array(digest, own)
