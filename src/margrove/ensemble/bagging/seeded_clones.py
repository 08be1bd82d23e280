"""Clones whose random numbers can be repeated."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from margrove.ensemble.bootstrap import stream

__all__ = ["seeded_clone"]


def seeded_clone(model: Any, key: int, *, one_thread: bool = False) -> Any:
    """A clone, in which each random_state of None has become a number that depends on `key`.

    With `one_thread` no part of it uses threads of its own: the cores are spoken for.
    """
    learner = clone(model)
    settings = learner.get_params(deep=True)
    unset = sorted(
        name
        for name, value in settings.items()
        if name.rpartition("__")[2] == "random_state" and value is None
    )
    changes: dict[str, Any] = {name: int(stream(key, k)) >> 33 for k, name in enumerate(unset)}
    if one_thread:
        changes |= {
            name: 1
            for name, value in settings.items()
            if name.rpartition("__")[2] == "n_jobs" and value not in (None, 1)
        }
    return learner.set_params(**changes) if changes else learner
