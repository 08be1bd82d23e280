"""One learner on a table: tuned, calibrated, fitted to a part, tested, fitted to all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from margrove.select import InvalidRequestError
from margrove.workbench.workflow.held_out_rows import HeldOutRows, held_out, tuning_folds
from margrove.workbench.workflow.learners import table_models
from margrove.workbench.workflow.observer import Observer, SilentObserver
from margrove.workbench.workflow.remarks import remarks_of, stopped_early
from margrove.workbench.workflow.scores import HeldOutScore, score_model

if TYPE_CHECKING:
    from margrove.select.autotune import Tuning
    from margrove.workbench.tables import Task

__all__ = ["FittedModel", "fit_learner"]


@dataclass(frozen=True)
class FittedModel:
    """A model of a table, and what is known about it.

    Attributes
    ----------
    model : estimator
        Fitted to all rows; to the training rows if it was not refitted.
    learner : str
    tested : estimator or None
        The model that learnt without the test rows and was scored by them. None without a test.
    rows : HeldOutRows
    score : HeldOutScore or None
    tuning : Tuning or None
    seconds : float
        All in all.
    stopped_early : bool
        Whether a fit ended before it had converged.
    remarks : tuple of str
        What fits warned of, once each.
    """

    model: Any
    learner: str
    tested: Any
    rows: HeldOutRows
    score: HeldOutScore | None
    tuning: Tuning | None
    seconds: float
    stopped_early: bool
    remarks: tuple[str, ...]


def fit_learner(
    task: Task,
    learner: str,
    observer: Observer | None = None,
    *,
    rows: HeldOutRows | None = None,
    parameters: Mapping[str, Any] | None = None,
    tune: bool = False,
    calibrate: bool = False,
    test_size: float = 0.2,
    seed: int = 0,
    max_time: float | None = None,
    n_jobs: int | None = -1,
    refit: bool = True,
) -> FittedModel:
    """Learn from a part of a table, test with the rest, then learn from all of it.

    Parameters
    ----------
    task : Task
    learner : str
        Its short name.
    observer : Observer or None
    rows : HeldOutRows or None
        Rows to learn from and to test with; None holds out `test_size` of them.
    parameters : dict or None
        Of the estimator, in place of its defaults.
    tune : bool
        Whether the parameters that matter most are chosen by trying. Test rows have no part in it.
    calibrate : bool
        Whether probabilities are learnt from scores of rows held out (Platt).
    test_size : float
        0 tests nothing.
    seed : int
    max_time : float or None
        Seconds for one fit.
    n_jobs : int or None
    refit : bool
        Without it, the model is the one that was tested, and has not learnt from all rows.

    Returns
    -------
    FittedModel
    """
    from sklearn.base import clone

    observer = observer or SilentObserver()
    model = table_models(
        task, [learner], observer, n_jobs, seed=seed, max_time=max_time, parameters=parameters
    )[learner]
    start = time.perf_counter()
    rows = held_out(task, test_size, seed) if rows is None else rows
    with warnings.catch_warnings(record=True) as caught, observer.progress(f"Learning {learner}"):
        warnings.simplefilter("always")
        fitted, tuning = _fitted(model, task, rows.train, tune, seed, n_jobs)
        tested = _calibrated(fitted, task, rows.train) if calibrate else fitted
        score = score_model(tested, task, rows) if rows.has_test else None
        final = tested
        if refit and rows.has_test:  # calibration fits by itself
            all_rows = slice(None)
            final = (
                _calibrated(fitted, task, all_rows)
                if calibrate
                else clone(fitted).fit(task.X, task.y)
            )
    return FittedModel(
        final, learner, tested if rows.has_test else None, rows, score, tuning,
        time.perf_counter() - start, stopped_early(caught), remarks_of(caught),
    )  # fmt: skip


def _calibrated(model: Any, task: Task, rows: Any) -> Any:
    """The same with probabilities, which scores of rows held out are mapped to (Platt)."""
    from sklearn.base import clone
    from sklearn.calibration import CalibratedClassifierCV

    folds = tuning_folds(task, rows)
    if task.kind == "regression" or folds < 2:
        rest = "is for classes of at least two rows each."
        raise InvalidRequestError(f"calibrate {rest}", f"--calibrate {rest}")
    return CalibratedClassifierCV(clone(model), cv=folds, ensemble=False).fit(
        task.X[rows], task.y[rows]
    )


def _fitted(
    model: Any, task: Task, train: Any, tune: bool, seed: int, n_jobs: int | None
) -> tuple[Any, Tuning | None]:
    from margrove.select.autotune import autotune

    X, y = task.X[train], task.y[train]
    if not tune:
        return model.fit(X, y), None
    folds = tuning_folds(task, train)
    if folds < 2:
        raise InvalidRequestError(
            f"Tuning needs at least two rows of each class to learn from, and {task.name} has not "
            "as many. Drop the rare classes, or do without tuning."
        )
    tuned = autotune(model, X, y, cv=folds, random_state=seed, n_jobs=n_jobs)
    return tuned, tuned.tuning_
