"""What a checkpoint contains about a process, and whether it is the same process.

A file has a list of entries, one for each process, in the order in which they began.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from margrove._runtime.checkpoints.fingerprints import as_text, fingerprint
from margrove._runtime.checkpoints.process_states import NotCheckpointable
from margrove._runtime.slices import Process
from margrove._version import __version__
from margrove.exceptions import CheckpointError, ModelFileError

__all__ = [
    "KIND",
    "NOT_SUPPORTED",
    "description",
    "difference",
    "read_checkpoint",
    "require_free",
]

KIND = "checkpoint"

# Learners that are fast enough to start again, or can continue with `partial_fit`.
NOT_SUPPORTED = ("KernelPerceptron", "LinearSVC", "LinearSVR", "Perceptron")

_RUN_CONTROL = {"n_jobs", "verbose", "max_time", "on_interrupt", "cache_size"}


def require_free(target: Path) -> None:
    """Raise CheckpointError if `target` is the checkpoint of an unfinished fit, or another file."""
    if not target.exists():
        return
    try:
        entries = read_checkpoint(target)["drives"]
        is_finished = all(entry["finished"] or entry["state"] is None for entry in entries)
    except (ModelFileError, CheckpointError) as error:
        raise CheckpointError(
            os.fspath(target),
            f"this file exists already and is not a checkpoint, or is damaged ({error})",
            "Use another name, or remove it.",
        ) from None
    if not is_finished:
        raise CheckpointError(
            os.fspath(target),
            "there is a checkpoint of a fit that is not finished",
            "Use resume=True to continue it, or remove the file to start again.",
        )


def read_checkpoint(source: Path) -> dict[str, Any]:
    """Read a checkpoint file and check its fields and its version."""
    from margrove._files import read_archive

    kind, values = read_archive(source)
    if kind != KIND:
        raise CheckpointError(
            os.fspath(source), f"it is a {kind}, not a checkpoint", "Name another file."
        )
    drives, seeds = values.get("drives"), values.get("seeds")
    is_valid = (
        isinstance(drives, list)
        and all(_is_entry(entry) for entry in drives)
        and isinstance(seeds, list)
        and all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    )
    if not is_valid:
        raise CheckpointError(
            os.fspath(source),
            "its fields are not those of a checkpoint",
            "Remove it to start again.",
        )
    learners = [entry["learner"] for entry in values["drives"]]
    unsupported = next((name for name in learners if name in NOT_SUPPORTED), None)
    if unsupported is not None:
        raise CheckpointError(
            os.fspath(source),
            f"it is a checkpoint of {unsupported}, which has no checkpoints any more",
            "Remove the file and fit again; partial_fit and margrove.save keep what such a model "
            "has learnt so far.",
        )
    version = values.get("version")
    if version != __version__:
        raise CheckpointError(
            os.fspath(source),
            f"it was written by margrove {version}, and this is {__version__}",
            "Install that version to resume it, or remove it to start again.",
        )
    return values


_ENTRIES = {"learner": str, "parameters": dict, "data": dict, "start": str, "finished": bool,
            "rounds": int, "state": dict | None}  # fmt: skip


def _is_entry(entry: Any) -> bool:
    """Whether an entry of a file has the fields and types that `description` returns."""
    return (
        isinstance(entry, dict)
        and set(entry) == set(_ENTRIES)
        and all(isinstance(entry[name], kind) for name, kind in _ENTRIES.items())
        and all(isinstance(text, str) for text in entry["parameters"].values())
        and all(isinstance(text, str) for text in entry["data"].values())
    )


def description(process: Process, estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a process: what must be the same when it is resumed, and its state (None)."""
    if not hasattr(process, "state"):
        raise NotCheckpointable("its state cannot be saved between two steps")
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
    """The parameters that can change the result, including those of inner estimators, as text."""
    given = estimator.get_params(deep=True)
    return {
        name: as_text(given[name])
        for name in sorted(given)
        if name.rpartition("__")[2] not in _RUN_CONTROL
    }


def difference(recorded: dict[str, Any], entry: dict[str, Any], process: Process) -> str:
    """How a recorded process differs from this one, as text; "" if it is the same."""
    if recorded["learner"] != entry["learner"]:
        return f"it is a checkpoint of {recorded['learner']}, and this is {entry['learner']}"
    was, now = recorded["parameters"], entry["parameters"]
    limit = getattr(process, "limit", None)
    names = [
        f"{name} was {was.get(name, 'missing')} and is {now.get(name, 'missing')}"
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
        verb = "has changed" if len(others) == 1 else "have changed"
        return f"{' and '.join(others)} {verb}"
    if recorded["start"] != entry["start"]:
        return "the fit starts from another model (warm_start, initial weights), or another seed"
    return ""


def _is_raised(was: str | None, now: str | None) -> bool:
    return bool(was and now and was.isdigit() and now.isdigit() and int(was) < int(now))
