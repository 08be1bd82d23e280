"""What a checkpoint holds of a process, and whether it is the same process.

A file has a list of records, one for each process, in the order in which they began.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from margrove._runtime.checkpoints.fingerprints import as_text, fingerprint
from margrove._runtime.process_states import Unkeepable
from margrove._runtime.slices import Process
from margrove._version import __version__
from margrove.exceptions import CheckpointError, ModelFileError

__all__ = [
    "FITTED_ANEW",
    "KIND",
    "description",
    "difference",
    "read_checkpoint",
    "require_free",
]

KIND = "checkpoint"

# Learners that are fast enough to begin again, or can go on by `partial_fit`.
FITTED_ANEW = ("KernelPerceptron", "LinearSVC", "LinearSVR", "Perceptron")

_RUN_CONTROL = {"n_jobs", "verbose", "max_time", "on_interrupt", "cache_size"}


def require_free(target: Path) -> None:
    """Refuse to overwrite a checkpoint of a fit that is not finished."""
    if not target.exists():
        return
    try:
        entries = read_checkpoint(target)["drives"]
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


def read_checkpoint(source: Path) -> dict[str, Any]:
    from margrove._files import read_archive

    kind, values = read_archive(source)
    if kind != KIND:
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
    past = next((own["learner"] for own in values["drives"] if own["learner"] in FITTED_ANEW), None)
    if past is not None:
        raise CheckpointError(
            os.fspath(source),
            f"it is of a {past}, which is not kept in checkpoints any more",
            "Remove the file and fit again; partial_fit and margrove.save keep what such a model "
            "has learnt so far.",
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
    """Whether an entry of a file has the fields and types that `description` writes."""
    return (
        isinstance(entry, dict)
        and set(entry) == set(_ENTRIES)
        and all(isinstance(entry[name], kind) for name, kind in _ENTRIES.items())
        and all(isinstance(text, str) for text in entry["parameters"].values())
        and all(isinstance(text, str) for text in entry["data"].values())
    )


def description(process: Process, estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a process: what must be the same on resuming, and room for its state."""
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
    """The parameters that can change the result, those of inner estimators too, as text."""
    given = estimator.get_params(deep=True)
    return {
        name: as_text(given[name])
        for name in sorted(given)
        if name.rpartition("__")[2] not in _RUN_CONTROL
    }


def difference(recorded: dict[str, Any], entry: dict[str, Any], process: Process) -> str:
    """How a recorded process differs from this one, in words; "" if it is the same."""
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
