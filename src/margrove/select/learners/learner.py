"""What a learner is: its names, its estimators, how it is tuned, what it costs, what is offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from margrove.select.learners.parameters import Parameter

__all__ = ["CostFamily", "Learner", "Place", "Task", "TaskEstimator", "Tuner"]

Task = Literal["classification", "regression"]
Place = Literal["comparisons", "commands", "estimates"]
CostFamily = Literal["rows", "kernel", "members", "rounds"]
Tuner = Callable[[Any], Any]  # from a `TuningTask` to a `Choice`

_EVERYWHERE: frozenset[Place] = frozenset({"comparisons", "commands", "estimates"})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class TaskEstimator:
    """A learner for one task.

    Attributes
    ----------
    estimator : str or class
        A class, or the name of one in margrove. Names keep the registry light: `margrove --help`
        imports no estimator.
    title, summary : str
        For menus: what it is called, and what it does in one sentence.
    parameters : tuple of Parameter
        What the studio shows as sliders and menus. The studio has those of margrove's estimators.
    fitted : tuple of str or None
        Attributes of a fitted estimator that a model file keeps. They must be plain values and
        arrays. None: a model file does not take the estimator. Estimators of margrove have their
        own entries in the model file's tables.
    """

    estimator: str | type
    title: str
    summary: str
    parameters: tuple[Parameter, ...] = ()
    fitted: tuple[str, ...] | None = None

    @property
    def class_name(self) -> str:
        return self.estimator if isinstance(self.estimator, str) else self.estimator.__name__

    @property
    def estimator_class(self) -> type:
        if isinstance(self.estimator, type):
            return self.estimator
        import margrove

        found: type = getattr(margrove, self.estimator)
        return found


@dataclass(frozen=True, kw_only=True)
class Learner:
    """One entry of the registry: everything that the rest of margrove knows about a learner.

    Attributes
    ----------
    name : str
        Short, as the commands take it: lower case, digits and hyphens.
    title : str
        What it is, in a few words.
    family : {"margin", "tree", "ensemble"}
        Margin machines are given scaled numbers.
    classification, regression : TaskEstimator or None
        None: it does not do the task.
    settings : dict
        Parameters that differ from the estimator's defaults wherever the learner is made by name.
    table_settings : dict
        More of them, for models of raw tables (the commands, and the studio's own tables).
    tuning : str, dict, function or None
        How `autotune` tunes it: the name of one of its tuners, a grid of parameters and values to
        try, or a function from a `TuningTask` to a `Choice`. None: it cannot be tuned.
    cost : {"rows", "kernel", "members", "rounds"}
        How a fit grows: with the rows; between rows and pairs of rows; members side by side;
        rounds one after the other.
    places : set of str
        Where it takes part without being named: "comparisons" (`margrove.compare` without models),
        "commands" (`margrove compare` without --learner), "estimates" (costs that the doctor
        estimates).
    module : str
        Who registered it; other processes import this module. Empty for margrove's own.
    """

    name: str
    title: str
    family: Literal["margin", "tree", "ensemble"]
    classification: TaskEstimator | None = None
    regression: TaskEstimator | None = None
    settings: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    table_settings: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    tuning: str | Mapping[str, Sequence[Any]] | Tuner | None = None
    cost: CostFamily = "rows"
    places: frozenset[Place] = _EVERYWHERE
    module: str = ""

    def for_task(self, task: Task) -> TaskEstimator | None:
        return self.classification if task == "classification" else self.regression

    def estimator_name(self, task: Task) -> str | None:
        """The name of the class for a task, None if there is none."""
        own = self.for_task(task)
        return None if own is None else own.class_name

    @property
    def estimators(self) -> tuple[TaskEstimator, ...]:
        return tuple(own for own in (self.classification, self.regression) if own is not None)
