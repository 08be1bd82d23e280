"""A learner as the page offers it: an estimator with the parameters that are worth moving."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from margrove.studio.learners.parameters import Parameter, Value

__all__ = ["Arguments", "Learner", "Task"]

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Arguments:
    """What an estimator is made with: its own arguments and, of an ensemble, its members'."""

    estimator: str
    own: dict[str, Any]
    member: str | None
    of_member: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Learner:
    """An estimator as the page offers it.

    Attributes
    ----------
    name : str
        Of the class, in margrove.
    title, summary : str
    family : "margin", "tree" or "ensemble"
    task : "classification" or "regression"
    parameters : tuple of Parameter
    steps : tuple of str
        What its step mode shows.
    member : str, function or None
        The class of the members of an ensemble that takes an estimator; a function of the values
        of the parameters where it depends on them.
    also : function or None
        Arguments that follow from the values of the parameters.
    """

    name: str
    title: str
    summary: str
    family: Literal["margin", "tree", "ensemble"]
    task: Task
    parameters: tuple[Parameter, ...]
    steps: tuple[str, ...] = ()
    member: str | Callable[[dict[str, Value]], str] | None = None
    also: Callable[[dict[str, Value]], dict[str, Any]] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "family": self.family,
            "task": self.task,
            "parameters": [own.as_dict() for own in self.parameters],
            "steps": list(self.steps),
        }

    def checked(self, given: dict[str, Any]) -> dict[str, Value]:
        """All parameters: those given, if they are accepted, and defaults for the others."""
        known = {own.name: own for own in self.parameters}
        for name in given:
            if name not in known:
                raise ValueError(
                    f"{self.name} has no parameter {ascii(name)[:60]} here. It has "
                    f"{', '.join(known)}."
                )
        return {
            name: own.checked(given[name]) if name in given else own.default
            for name, own in known.items()
        }

    def arguments(self, values: dict[str, Value], seed: int) -> Arguments:
        """What to call the estimator with; parameters that do not apply are left out."""
        own: dict[str, Any] = {}
        of_member: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.is_shown(values):
                target = of_member if parameter.of_member else own
                target[parameter.name] = parameter.argument(values[parameter.name])
        if self.also is not None:
            own |= self.also(values)
        if "random_state" in _parameters_of(self.name):
            own["random_state"] = seed
        member = self.member(values) if callable(self.member) else self.member
        return Arguments(self.name, own, member, of_member)

    def made(self, values: dict[str, Value], seed: int, *, n_jobs: int | None = None) -> Any:
        """A new estimator."""
        import margrove

        asked = self.arguments(values, seed)
        own = dict(asked.own)
        if asked.member is not None:
            own["estimator"] = getattr(margrove, asked.member)(**asked.of_member)
        estimator = getattr(margrove, asked.estimator)(**own)
        if n_jobs is not None and "n_jobs" in _parameters_of(self.name):
            estimator.set_params(n_jobs=n_jobs)
        return estimator


def _parameters_of(name: str) -> list[str]:
    import margrove

    return list(inspect.signature(getattr(margrove, name)).parameters)
