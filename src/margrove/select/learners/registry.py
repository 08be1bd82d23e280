"""The registry of learners, and the modules that add to it.

Other processes (the studio's worker, the processes that compile on the first run) have their own
copy of this registry. They import the modules in the environment variable MARGROVE_LEARNERS;
`register_learner` adds the module that calls it to this variable.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from margrove.select.errors import InvalidRequestError
from margrove.select.learners.builtin import BUILTIN_LEARNERS
from margrove.select.learners.learner import Learner, Place, Task, TaskEstimator

__all__ = [
    "LEARNERS",
    "MODULES_VARIABLE",
    "estimator_named",
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

LEARNERS: dict[str, Learner] = {learner.name: learner for learner in BUILTIN_LEARNERS}

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_BASELINE = "baseline"  # the name of the model that learners are compared with
_missing: dict[str, str] = {}


def register_learner(learner: Learner, *, module: str | None = None) -> Learner:
    """Add a learner to the commands, comparisons, tuning, cost estimates, studio and model files.

    Parameters
    ----------
    learner : Learner
    module : str or None, default=None
        The module that registers it; other processes import it to have the learner too. None: the
        calling module. A script that is run as a program ("__main__") cannot be imported, so its
        learners are known in its own process only.

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
    registered = replace(learner, module=caller)
    LEARNERS[registered.name] = registered
    if caller and caller != "__main__":
        _add_to_modules(caller)
    return registered


def unregister_learner(name: str) -> None:
    """Remove a registered learner; margrove's own cannot be removed."""
    learner = learner_named(name)
    if not learner.module:
        raise ValueError(f"{name!r} is one of margrove's own learners, which cannot be removed.")
    del LEARNERS[name]
    if not any(other.module == learner.module for other in LEARNERS.values()):
        kept = [module for module in _modules() if module != learner.module]
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
    for estimator in learner.estimators:
        owner = learner_of_class(estimator.estimator_class)
        if owner is not None and estimator.estimator_class in _classes_of(owner):
            raise ValueError(
                f"{estimator.class_name} belongs to the learner {owner.name!r} already. Derive a "
                "class from it to register it under another name."
            )


def _classes_of(learner: Learner) -> tuple[type, ...]:
    return tuple(estimator.estimator_class for estimator in learner.estimators)


# -- looking up --


def learner_named(name: Any) -> Learner:
    """The learner of a name; an InvalidRequestError with all names if there is none."""
    if name not in LEARNERS:
        missing = "".join(f" {sentence}" for sentence in missing_modules())
        raise InvalidRequestError(
            f"There is no learner {name!r}. There are {', '.join(LEARNERS)}.{missing}"
        )
    return LEARNERS[name]


def learners_at(place: Place, task: Task) -> list[Learner]:
    """The learners that are used at a place without being named, and can do the task."""
    found = LEARNERS.values()
    return [learner for learner in found if place in learner.places and learner.for_task(task)]


def learner_of_class(cls: type) -> Learner | None:
    """The learner of an estimator class or of one of its base classes; None if there is none."""
    for base in cls.__mro__:
        for learner in LEARNERS.values():
            for estimator in learner.estimators:
                if estimator.class_name == base.__name__ and estimator.estimator_class is base:
                    return learner
    return None


def estimator_named(class_name: str) -> tuple[Learner, TaskEstimator] | None:
    """The learner and estimator of a class name, or None. scikit-learn's classes share names."""
    for learner in LEARNERS.values():
        for estimator in learner.estimators:
            if estimator.class_name == class_name:
                return learner, estimator
    return None


def learners_table() -> str:
    """The learners as a Markdown table for the documentation."""
    lines = ["| name | | classes | numbers |", "|---|---|---|---|"]
    for learner in LEARNERS.values():
        names = [learner.estimator_name(task) for task in ("classification", "regression")]
        cells = " | ".join("" if name is None else f"`{name}`" for name in names)
        lines.append(f"| `{learner.name}` | {learner.title} | {cells} |".replace("|  |", "| |"))
    return "\n".join(lines)


# -- modules that register learners --


def _modules() -> list[str]:
    given = os.environ.get(MODULES_VARIABLE, "").split(",")
    return [name for text in given if (name := text.strip())]


def _add_to_modules(module: str) -> None:
    known = _modules()
    if module not in known:
        os.environ[MODULES_VARIABLE] = ",".join([*known, module])


def import_modules() -> None:
    """Import the modules in MARGROVE_LEARNERS; `missing_modules` lists those that fail."""
    for module in _modules():
        if module in sys.modules:
            continue
        try:
            importlib.import_module(module)
        except Exception as error:  # the module is not ours and can raise anything
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
