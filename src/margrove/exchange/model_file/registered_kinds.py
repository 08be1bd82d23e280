"""Learners that the user has registered, in model files: by their names in the registry.

A file names the learner and the task. The class comes from the registry of the process that loads
the file. If the learner is not registered there, the file is refused.
"""

from __future__ import annotations

from typing import Any

from margrove.exchange.model_file.checks import names, plain, size
from margrove.exchange.model_file.kinds import Kind
from margrove.select.learners import LEARNERS, learner_of_class

__all__ = ["refusal_of_kind", "registered_kinds", "why_not_saved"]

_PREFIX = "learner "


def registered_kinds() -> dict[str, Kind]:
    """Kinds of the registered estimators whose entries list the attributes to save."""
    found = {}
    for learner in LEARNERS.values():
        if not learner.module:
            continue
        for entry in learner.estimators:
            if entry.fitted is not None:
                task = "classification" if entry is learner.classification else "regression"
                cls = entry.estimator_class
                found[f"{_PREFIX}{learner.name}, {task}"] = Kind(
                    f"{cls.__module__}:{cls.__qualname__}",
                    {
                        **dict.fromkeys(entry.fitted, plain),
                        "n_features_in_?": size("d"),
                        "feature_names_in_?": names("d"),
                    },
                )
    return found


def refusal_of_kind(kind: str) -> str:
    """Why a file of an unknown kind is not loaded, and the way out."""
    if kind.startswith(_PREFIX):
        name = kind.removeprefix(_PREFIX).partition(",")[0]
        return (
            f"a model of the learner {name[:50]!r}, which is not registered here. Import the "
            "module that registers it (margrove.register_learner) before loading, or name the "
            "module in the environment variable MARGROVE_LEARNERS."
        )
    return (
        f"a {kind[:50]!r}, which is not a model that this margrove knows. Install a newer margrove."
    )


def why_not_saved(thing: Any) -> tuple[str, str] | None:
    """Why an estimator of a registered learner cannot be saved; None for other objects."""
    learner = learner_of_class(type(thing))
    if learner is None or not learner.module:
        return None
    return f"a {type(thing).__name__}, of the registered learner {learner.name!r}", (
        "Its entry does not list the fitted attributes to save: give `fitted` to its "
        "TaskEstimator, or pickle the model for your own use."
    )
