"""One learner on a table: tuned, calibrated, fitted to the training rows, tested, refitted."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from margrove.select import InvalidRequestError
from margrove.workbench.visible_text import visible
from margrove.workbench.workflow.held_out_rows import (
    HeldOutRows,
    TargetColumn,
    held_out,
    tuning_folds,
)
from margrove.workbench.workflow.learners import table_models
from margrove.workbench.workflow.observer import Observer, SilentObserver
from margrove.workbench.workflow.remarks import remarks_of, stopped_early
from margrove.workbench.workflow.scores import HeldOutScore, score_model

if TYPE_CHECKING:
    from margrove.select.autotune import Tuning
    from margrove.workbench.tables import Task

__all__ = ["FittedModel", "digest_of", "fit_learner", "provenance"]


@dataclass(frozen=True)
class FittedModel:
    """A model of a table, with its test score and tuning.

    Attributes
    ----------
    model : estimator
        Fitted to all rows, or to the training rows if it was not refitted.
    learner : str
    tested : estimator or None
        The model that was fitted without the test rows and scored by them. None without a test.
    rows : HeldOutRows
    score : HeldOutScore or None
    tuning : Tuning or None
    seconds : float
        Total time.
    stopped_early : bool
        Whether a fit ended before it had converged.
    remarks : tuple of str
        Warnings of the fits, once each.
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
    """Fit a learner to the training rows, test it with the others, then fit it to all rows.

    Parameters
    ----------
    task : Task
    learner : str
        Its name in the registry.
    observer : Observer or None
    rows : HeldOutRows or None
        Training rows and test rows; None holds out a share of `test_size`.
    parameters : dict or None
        Parameters of the estimator that differ from its defaults.
    tune : bool
        Whether to tune with `autotune`. Test rows are not used for it.
    calibrate : bool
        Whether to calibrate probabilities by scores of held-out rows (Platt).
    test_size : float
        0 means no test.
    seed : int
    max_time : float or None
        Seconds for one fit.
    n_jobs : int or None
    refit : bool
        Whether to fit the final model to all rows. If not, it is the tested model.

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
        if refit and rows.has_test:
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
    """The model with probabilities by Platt's sigmoid, fitted to scores of held-out rows."""
    from sklearn.base import clone
    from sklearn.calibration import CalibratedClassifierCV

    folds = tuning_folds(task, rows)
    if task.kind == "regression" or folds < 2:
        rest = "needs a classification with at least two rows of each class."
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
            f"Tuning needs at least two training rows of each class, which {task.name} does not "
            "have. Drop the rare classes, or do without tuning."
        )
    tuned = autotune(model, X, y, cv=folds, random_state=seed, n_jobs=n_jobs)
    return tuned, tuned.tuning_


# -- what a model file says about the origin of its model --


def digest_of(y: Any) -> str:
    """A hash of the targets, which identifies the training table without storing any of it."""
    return hashlib.sha256("\x1f".join(map(str, y.tolist())).encode()).hexdigest()[:32]


def provenance(fitted: FittedModel, task: TargetColumn, seed: int) -> dict[str, Any]:
    """How a model was made, as plain values; without times, folders and host names."""
    return {
        "table": visible(task.name),  # names of files can be invalid text
        "rows": task.n_rows,
        "task": task.kind,
        "target": task.target,
        "id_column": task.id_column,
        "learner": fitted.learner,
        "seed": seed,
        "answers_digest": digest_of(task.y),
        "score": None if fitted.score is None else fitted.score.as_dict(),
    }
