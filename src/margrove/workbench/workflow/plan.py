"""run_workflow: hold out rows, compare learners on the others, choose one, fit and test it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from margrove.workbench.workflow.comparison import TableComparison, compare_learners
from margrove.workbench.workflow.fitted_models import FittedModel, fit_learner
from margrove.workbench.workflow.held_out_rows import HeldOutRows, held_out, tuning_folds
from margrove.workbench.workflow.observer import Observer, SilentObserver
from margrove.workbench.workflow.tables import part_of

if TYPE_CHECKING:
    from margrove.workbench.tables import Task

__all__ = ["Outcome", "Plan", "run_workflow"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of `run_workflow`.

    Attributes
    ----------
    learner : str or None
        None is the winner of the comparison.
    compare : {"all", "named", "if needed"}
        Which learners are compared: all, even if one is named; the named one with the baseline; or
        all, but only if none is named.
    tune : {"yes", "no", "if possible"}
        "if possible": not if a class has too few rows for folds.
    parameters : dict
        Parameters of the estimator of a named learner.
    calibrate, test_size, seed, max_time, n_jobs, refit
        As for `fit_learner`.
    on_interrupt : {"raise", "keep"}
        As for `compare_learners`.
    """

    learner: str | None = None
    compare: Literal["all", "named", "if needed"] = "if needed"
    tune: Literal["yes", "no", "if possible"] = "no"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    calibrate: bool = False
    test_size: float = 0.2
    seed: int = 0
    max_time: float | None = None
    n_jobs: int | None = -1
    refit: bool = True
    on_interrupt: Literal["raise", "keep"] = "raise"


@dataclass(frozen=True)
class Outcome:
    """The result of `run_workflow`.

    Attributes
    ----------
    rows : HeldOutRows
        Test rows are not used in the comparison, the choice or the tuning.
    comparison : TableComparison or None
        On the training rows; None if nothing was compared.
    fitted : FittedModel
    is_tuned : bool
    """

    rows: HeldOutRows
    comparison: TableComparison | None
    fitted: FittedModel
    is_tuned: bool


def run_workflow(task: Task, plan: Plan, observer: Observer | None = None) -> Outcome:
    """Carry out a plan; all steps use the same held-out rows."""
    observer = observer or SilentObserver()
    rows = held_out(task, plan.test_size, plan.seed)
    comparison = None
    if plan.compare != "if needed" or plan.learner is None:
        is_named = plan.compare == "named" and plan.learner is not None
        comparison = compare_learners(
            part_of(task, rows.train) if rows.has_test else task,
            observer,
            learners=(str(plan.learner),) if is_named else (),
            seed=plan.seed,
            max_time=plan.max_time,
            n_jobs=plan.n_jobs,
            on_interrupt=plan.on_interrupt,
        )
        observer.compared(comparison)
    learner = plan.learner or (comparison.winner if comparison is not None else "")
    is_tuned = plan.tune == "yes"
    if plan.tune == "if possible":
        is_tuned = tuning_folds(task, rows.train) >= 2
        if not is_tuned:
            observer.note("Not tuned: a class has too few rows for cross-validation.")
    fitted = fit_learner(
        task,
        learner,
        observer,
        rows=rows,
        parameters=plan.parameters,
        tune=is_tuned,
        calibrate=plan.calibrate,
        seed=plan.seed,
        max_time=plan.max_time,
        n_jobs=plan.n_jobs,
        refit=plan.refit,
    )
    return Outcome(rows, comparison, fitted, is_tuned)
