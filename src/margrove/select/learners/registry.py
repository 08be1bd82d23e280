"""The registry of learners, and modules that add to it.

Other processes (the studio's worker, the processes that compile on the first run) do not share
this registry. They import the modules that the environment variable MARGROVE_LEARNERS names;
`register_learner` adds the module that calls it.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from margrove.select.learners.builtin import BUILTIN_LEARNERS
from margrove.select.learners.learner import Learner, Place, Task, TaskEstimator
from margrove.select.refusals import InvalidRequestError

__all__ = [
    "LEARNERS",
    "MODULES_VARIABLE",
    "estimator_named",
    "estimators_in_use",
    "import_modules",
    "learner_named",
    "learner_of_class",
    "learners_at",
    "learners_table",
    "missing_modules",
    "register_learner",
    "require_modules",
    "unregister_learner",
]

MODULES_VARIABLE = "MARGROVE_LEARNERS"

LEARNERS: dict[str, Learner] = {own.name: own for own in BUILTIN_LEARNERS}

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_BASELINE = "baseline"  # the name of what learners are compared with
_missing: dict[str, str] = {}


def register_learner(learner: Learner, *, module: str | None = None) -> Learner:
    """Add a learner to the commands, comparisons, tuning, cost estimates, studio and model files.

    Parameters
    ----------
    learner : Learner
    module : str or None, default=None
        The module that registers it, which other processes import to do the same. None: the module
        that calls. A script that is run as a program ("__main__") cannot be imported; its learners
        are known in its own process only.

    Returns
    -------
    Learner
        As it was registered, with its module.

    Raises
    ------
    ValueError
        If the name is taken or not usable, or if there is no estimator.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from margrove.select.learners import Learner, TaskEstimator, register_learner
    >>> from margrove.select.learners import unregister_learner
    >>> bayes = TaskEstimator(
    ...     estimator=GaussianNB, title="Naive Bayes", summary="One bell curve a class and feature."
    ... )
    >>> entry = Learner(name="bayes", title="naive Bayes", family="margin", classification=bayes)
    >>> register_learner(entry).estimator_name("classification")
    'GaussianNB'
    >>> unregister_learner("bayes")
    """
    _check(learner)
    caller = module or str(sys._getframe(1).f_globals.get("__name__", ""))
    own = replace(learner, module=caller)
    LEARNERS[own.name] = own
    if caller and caller != "__main__":
        _tell_other_processes(caller)
    return own


def unregister_learner(name: str) -> None:
    """Take a learner that was registered out again; margrove's own stay."""
    learner = learner_named(name)
    if not learner.module:
        raise ValueError(f"{name!r} is one of margrove's own learners and stays.")
    del LEARNERS[name]
    if not any(own.module == learner.module for own in LEARNERS.values()):
        kept = [own for own in _modules() if own != learner.module]
        os.environ[MODULES_VARIABLE] = ",".join(kept)


def _check(learner: Learner) -> None:
    if not _NAME.fullmatch(learner.name) or learner.name == _BASELINE:
        raise ValueError(
            "The name of a learner is made of lower-case letters, digits and hyphens, such as "
            f"'naive-bayes', and is not 'baseline'. Got {learner.name!r}."
        )
    if learner.name in LEARNERS:
        raise ValueError(f"There is a learner {learner.name!r} already. Choose another name.")
    if not learner.estimators:
        raise ValueError(
            f"{learner.name!r} has no estimator. Give classification, regression or both."
        )
    for own in learner.estimators:
        taken = learner_of_class(own.estimator_class)
        if taken is not None and own.estimator_class in estimators_in_use(taken):
            raise ValueError(
                f"{own.class_name} belongs to the learner {taken.name!r} already. Derive a class "
                "from it to register it under another name."
            )


def estimators_in_use(learner: Learner) -> tuple[type, ...]:
    """The classes of a learner's estimators."""
    return tuple(own.estimator_class for own in learner.estimators)


# -- looking up --


def learner_named(name: Any) -> Learner:
    """The learner of a short name; InvalidRequestError lists those that there are."""
    if name not in LEARNERS:
        unknown = "".join(f" {own}" for own in missing_modules())
        raise InvalidRequestError(
            f"There is no learner {name!r}. There are {', '.join(LEARNERS)}.{unknown}"
        )
    return LEARNERS[name]


def learners_at(place: Place, task: Task) -> list[Learner]:
    """The learners that take part somewhere without being named, and can do the task."""
    return [own for own in LEARNERS.values() if place in own.places and own.for_task(task)]


def learner_of_class(cls: type) -> Learner | None:
    """The learner whose estimator a class is, or is derived from; None if there is none."""
    for base in cls.__mro__:
        for learner in LEARNERS.values():
            for own in learner.estimators:
                if own.class_name == base.__name__ and own.estimator_class is base:
                    return learner
    return None


def estimator_named(class_name: str) -> tuple[Learner, TaskEstimator] | None:
    """By the name of the class alone: estimators of scikit-learn have the names of ours."""
    for learner in LEARNERS.values():
        for own in learner.estimators:
            if own.class_name == class_name:
                return learner, own
    return None


def learners_table() -> str:
    """The table of the documentation, in Markdown: a line for each learner."""
    lines = ["| name | | classes | numbers |", "|---|---|---|---|"]
    for learner in LEARNERS.values():
        names = [learner.estimator_name(task) for task in ("classification", "regression")]
        cells = " | ".join("" if name is None else f"`{name}`" for name in names)
        lines.append(f"| `{learner.name}` | {learner.title} | {cells} |".replace("|  |", "| |"))
    return "\n".join(lines)


# -- modules of other people --


def _modules() -> list[str]:
    given = os.environ.get(MODULES_VARIABLE, "").split(",")
    return [name for own in given if (name := own.strip())]


def _tell_other_processes(module: str) -> None:
    known = _modules()
    if module not in known:
        os.environ[MODULES_VARIABLE] = ",".join([*known, module])


def import_modules() -> None:
    """Import the modules that MARGROVE_LEARNERS names; what cannot be is remembered."""
    for module in _modules():
        if module in sys.modules:
            continue
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a module of somebody else's raises
            reason = " ".join(str(error).split())[:200]
            _missing[module] = f"{type(error).__name__}: {reason}"


def missing_modules() -> Iterator[str]:
    """A sentence for each module of learners that this process could not import."""
    for module, reason in _missing.items():
        yield (
            f"The module {module!r}, which registers learners, cannot be imported in this process "
            f"({reason})."
        )


def require_modules() -> None:
    """Raise an InvalidRequestError if a module of learners could not be imported."""
    for sentence in missing_modules():
        raise InvalidRequestError(
            f"{sentence} Put it where Python finds it (PYTHONPATH), or take it out of "
            f"{MODULES_VARIABLE}."
        )
