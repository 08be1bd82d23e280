"""Learners by their names in the registry, as estimators and as models of raw tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from margrove.select import InvalidRequestError
from margrove.select.learners import Task as TaskKind
from margrove.select.learners import learner_named, learners_at

if TYPE_CHECKING:
    from margrove.workbench.tables import Task
    from margrove.workbench.workflow.observer import Observer

__all__ = ["BASELINE", "compared_learners", "make_learner", "table_models"]

BASELINE = "baseline"


def compared_learners(task: TaskKind) -> list[str]:
    """Names of the learners that are compared if none is named."""
    return [learner.name for learner in learners_at("commands", task)]


def make_learner(
    name: str,
    task: TaskKind,
    *,
    seed: int = 0,
    max_time: float | None = None,
    n_jobs: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Any:
    """A new estimator of a learner; seed, time limit and threads are set if it has them.

    "baseline" predicts the most frequent class, or the mean.
    """
    if name == BASELINE:
        return _baseline(task)
    learner = learner_named(name)
    entry = learner.for_task(task)
    if entry is None:
        raise InvalidRequestError(
            f"There is no {name} for {task}. There are {', '.join(compared_learners(task))}."
        )
    estimator: Any = entry.estimator_class(**learner.settings, **learner.table_settings)
    shared = {"random_state": seed, "max_time": max_time, "n_jobs": n_jobs}
    accepted = estimator.get_params(deep=False)
    estimator.set_params(**{key: value for key, value in shared.items() if key in accepted})
    for key in parameters or {}:
        if key not in accepted:
            raise InvalidRequestError(
                f"{entry.class_name} has no parameter {key!r}. It has "
                f"{', '.join(sorted(accepted))}."
            )
    _require_known_kernel((parameters or {}).get("kernel"))
    return estimator.set_params(**(parameters or {}))


def _require_known_kernel(kernel: Any) -> None:
    """Raise now, not after the table is prepared, if there is no such kernel."""
    from margrove.margin.kernels import KERNELS

    if kernel is not None and kernel not in KERNELS:
        raise InvalidRequestError(
            f"There is no kernel {kernel!r}. There are {', '.join(sorted(KERNELS))}."
        )


def _baseline(task: TaskKind) -> Any:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if task == "classification":
        return DummyClassifier(strategy="most_frequent")
    return DummyRegressor(strategy="mean")


def table_models(
    task: Task, names: Sequence[str], observer: Observer, n_jobs: int | None, **settings: Any
) -> dict[str, Any]:
    """Models of raw tables by name; their kernels are compiled, so that fits can be timed."""
    from margrove.workbench.tables import table_model
    from margrove.workbench.workflow.compiling import compile_learners

    models = {
        name: table_model(make_learner(name, task.kind, n_jobs=n_jobs, **settings), task.types)
        for name in dict.fromkeys(names)
    }
    compile_learners(task, [name for name in models if name != BASELINE], observer, n_jobs)
    return models
