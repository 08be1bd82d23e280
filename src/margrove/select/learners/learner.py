"""An entry of the registry: names, estimators, tuning, cost and parameters of a learner."""

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
    """The estimator of a learner for one task.

    Attributes
    ----------
    estimator : str or class
        A class, or the name of one in margrove. Names keep the registry light: `margrove --help`
        imports no estimator.
    title, summary : str
        For menus: what it is called, and what it does in one sentence.
    parameters : tuple of Parameter
        Shown in the studio as sliders and menus. The studio itself has those of margrove.
    fitted : tuple of str or None
        Fitted attributes that a model file stores. They must be plain values and arrays. None: the
        estimator cannot be saved in a model file. Estimators of margrove have their own entries in
        the tables of `exchange`.
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
    """An entry of the registry: everything that the rest of margrove knows about a learner.

    Attributes
    ----------
    name : str
        Short, as the commands take it: lower case, digits and hyphens.
    title : str
        What it is, in a few words.
    family : {"margin", "tree", "ensemble"}
        Learners of the family "margin" get scaled features.
    classification, regression : TaskEstimator or None
        None: the learner cannot do the task.
    settings : dict
        Parameters that differ from the estimator's defaults when the learner is made by its name.
    table_settings : dict
        More of them, for models of raw tables (in the commands and the studio).
    tuning : str, dict, function or None
        How `autotune` tunes it: the name of one of its tuners, a grid of parameters and values to
        try, or a function from a `TuningTask` to a `Choice`. None: it cannot be tuned.
    cost : {"rows", "kernel", "members", "rounds"}
        How the time of a fit grows: "rows", with the rows; "kernel", with the rows to a power
        between 1 and 2; "members", with independent members; "rounds", with rounds that follow
        each other.
    places : set of str
        Where it is used without being named: "comparisons" (`margrove.compare` without models),
        "commands" (`margrove compare` without --learner), "estimates" (costs that the doctor
        estimates).
    module : str
        The module that registered it; other processes import it. Empty for margrove's own.
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
        estimator = self.for_task(task)
        return None if estimator is None else estimator.class_name

    @property
    def estimators(self) -> tuple[TaskEstimator, ...]:
        given = (self.classification, self.regression)
        return tuple(estimator for estimator in given if estimator is not None)
