"""Clones of an estimator with reproducible random states."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from margrove.ensemble.bootstrap import stream

__all__ = ["seeded_clone"]


def seeded_clone(model: Any, key: int, *, one_thread: bool = False) -> Any:
    """A clone in which each random_state of None is replaced by a number that depends on `key`.

    With `one_thread`, each n_jobs is 1, for callers that already use all cores.
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
