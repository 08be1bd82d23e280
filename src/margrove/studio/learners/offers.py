"""A learner as the page offers it: an estimator, and the parameters that can be changed there.

Titles and summaries come from the registry of learners; `margin` and `grove` add the parameters
that the page shows of margrove's own estimators, by the name of the class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from margrove.select.learners import Learner, Parameter, Task, TaskEstimator, Value

__all__ = ["Arguments", "Offer", "Shown"]


@dataclass(frozen=True)
class Arguments:
    """The keyword arguments of an estimator, and those of the members of an ensemble."""

    estimator: str
    of_estimator: dict[str, Any]
    member: str | None
    of_member: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the page shows of an estimator, beside its title and summary.

    Attributes
    ----------
    parameters : tuple of Parameter
    steps : tuple of str
        Kinds of its step modes; keys of `steps.STEPS`.
    member : str, function or None
        The class of the members of an ensemble that takes an estimator; a function of the values
        of the parameters where it depends on them.
    also : function or None
        Arguments that follow from the values of the parameters.
    """

    parameters: tuple[Parameter, ...]
    steps: tuple[str, ...] = ()
    member: str | Callable[[dict[str, Value]], str] | None = None
    also: Callable[[dict[str, Value]], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Offer:
    """An estimator of the registry, and what the page shows of it."""

    learner: Learner
    task: Task
    entry: TaskEstimator
    shown: Shown

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.entry.class_name

    @property
    def title(self) -> str:
        return self.entry.title

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.shown.parameters

    @property
    def steps(self) -> tuple[str, ...]:
        return self.shown.steps

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.entry.title,
            "summary": self.entry.summary,
            "family": self.learner.family,
            "task": self.task,
            "parameters": [parameter.as_dict() for parameter in self.parameters],
            "steps": list(self.steps),
        }

    def checked(self, given: dict[str, Any]) -> dict[str, Value]:
        """All parameters: those given, after a check, and defaults for the others."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise ValueError(
                    f"{self.name} has no parameter {ascii(name)[:60]} here. It has "
                    f"{', '.join(known)}."
                )
        return {
            name: parameter.checked(given[name]) if name in given else parameter.default
            for name, parameter in known.items()
        }

    def arguments(self, values: dict[str, Value], seed: int) -> Arguments:
        """The arguments of the estimator; parameters that do not apply are left out."""
        of_estimator: dict[str, Any] = {}
        of_member: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.is_shown(values):
                target = of_member if parameter.of_member else of_estimator
                target[parameter.name] = parameter.argument(values[parameter.name])
        if self.shown.also is not None:
            of_estimator |= self.shown.also(values)
        if "random_state" in self._accepted:
            of_estimator["random_state"] = seed
        member = self.shown.member
        member = member(values) if callable(member) else member
        return Arguments(self.name, of_estimator, member, of_member)

    def new_estimator(
        self, values: dict[str, Value], seed: int, *, n_jobs: int | None = None
    ) -> Any:
        """An unfitted estimator with these values of the parameters."""
        import margrove

        asked = self.arguments(values, seed)
        arguments = dict(asked.of_estimator)
        if asked.member is not None:
            arguments["estimator"] = getattr(margrove, asked.member)(**asked.of_member)
        estimator: Any = self.entry.estimator_class(**arguments)
        if n_jobs is not None and "n_jobs" in self._accepted:
            estimator.set_params(n_jobs=n_jobs)
        return estimator

    @property
    def _accepted(self) -> list[str]:
        return list(inspect.signature(self.entry.estimator_class).parameters)
