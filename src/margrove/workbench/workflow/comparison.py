"""Comparison of learners on a table, by cross-validation or by one test set."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from margrove.select import InvalidRequestError
from margrove.workbench.workflow.held_out_rows import held_out, usable_folds
from margrove.workbench.workflow.learners import BASELINE, compared_learners, table_models
from margrove.workbench.workflow.observer import Observer, SilentObserver
from margrove.workbench.workflow.remarks import remarks_of

if TYPE_CHECKING:
    from margrove.select.compare import Comparison
    from margrove.workbench.tables import Task

__all__ = ["TableComparison", "compare_learners", "default_folds"]

_MANY_ROWS = 50_000
_FOLDS, _FEW_FOLDS = 5, 3
_SECONDS = 30.0
_ROW_SCORES = (  # means over rows
    "accuracy", "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_log_loss",
)  # fmt: skip


@dataclass(frozen=True)
class TableComparison:
    """A comparison of learners on a table, and its settings.

    Attributes
    ----------
    comparison : Comparison
        The scores of the learners and of "baseline".
    task : Task
    folds, test_size : int or None, float or None
        How rows were held out; one of them is None.
    seed : int
    max_time : float
        The time limit of one fit, in seconds.
    remarks : tuple of str
        Warnings of the fits, once each.
    """

    comparison: Comparison
    task: Task
    folds: int | None
    test_size: float | None
    seed: int
    max_time: float
    remarks: tuple[str, ...]

    @property
    def winner(self) -> str:
        """The best learner, without the baseline."""
        return next(
            (name for name in self.comparison.ranking if name != BASELINE), self.comparison.best
        )

    @property
    def stopped_early(self) -> frozenset[str]:
        """Learners with fits that ended before they had converged."""
        return frozenset(model.name for model in self.comparison.models if model.stopped_early)

    @property
    def method(self) -> str:
        """The method of the comparison, in words."""
        how = (
            f"{self.folds}-fold cross-validation"
            if self.test_size is None
            else f"one test set of {self.test_size:.0%} of the rows"
        )
        return f"{how}, seed {self.seed}, at most {self.max_time:g} s per fit"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        found = self.comparison
        return {
            "table": self.task.name,
            "task": self.task.kind,
            "target": self.task.target,
            "rows": self.task.n_rows,
            "folds": self.folds,
            "test_size": self.test_size,
            "seed": self.seed,
            "score": found.scoring,
            "learners": [
                {
                    "learner": model.name,
                    "score": model.score,
                    "low": model.interval.low,
                    "high": model.interval.high,
                    "fit_seconds": model.fit_seconds,
                    "predict_seconds": model.predict_seconds,
                    "stopped_early": model.stopped_early,
                }
                for model in found.models
            ],
            "failed": [str(model) for model in found.failed],
            "verdict": found.sentence,
            "winner": self.winner,
        }


def default_folds(n_rows: int) -> int:
    """Five folds, or three above 50,000 rows."""
    return _FOLDS if n_rows <= _MANY_ROWS else _FEW_FOLDS


def compare_learners(
    task: Task,
    observer: Observer | None = None,
    *,
    learners: Sequence[str] = (),
    folds: int | None = None,
    test_size: float | None = None,
    scoring: str | None = None,
    seed: int = 0,
    max_time: float | None = None,
    total_time: float | None = None,
    n_jobs: int | None = -1,
    on_interrupt: Literal["raise", "keep"] = "raise",
) -> TableComparison:
    """Compare learners, and the baseline, on a table.

    Parameters
    ----------
    task : Task
    observer : Observer or None
    learners : sequence of str, default=()
        Names of the registry; () means all with the place "commands".
    folds : int or None
        None is five, or three for many rows; fewer if classes have few rows.
    test_size : float or None
        The share of one test set, instead of folds.
    scoring : str or None
        One of scikit-learn's scores; None is accuracy, or r2 for regression.
    seed : int
    max_time, total_time : float or None
        Seconds for one fit (None is 30), and for all fits.
    n_jobs : int or None
        Threads of a fit.
    on_interrupt : {"raise", "keep"}
        Whether Ctrl-C raises, or keeps the folds that are done.

    Returns
    -------
    TableComparison
    """
    from margrove.select.compare import compare
    from margrove.workbench.report import with_intervals_of_rows

    observer = observer or SilentObserver()
    seconds = _SECONDS if max_time is None else max_time
    _check_score(scoring, test_size)
    names = [BASELINE, *(learners or compared_learners(task.kind))]
    models = table_models(task, names, observer, n_jobs, seed=seed, max_time=seconds)
    if test_size is not None:
        rows = held_out(task, test_size, seed)
        how: dict[str, Any] = {"cv": [(rows.train, rows.test)], "test": "bootstrap"}
    else:
        folds = usable_folds(task, folds or default_folds(task.n_rows), observer)
        how = {"cv": folds, "repeats": 1}
    with observer.progress("Comparing"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comparison = compare(
            models,
            task.X,
            task.y,
            **how,
            scoring=scoring,
            random_state=seed,
            max_time=total_time,
            on_interrupt=on_interrupt,
        )
    return TableComparison(
        with_intervals_of_rows(comparison), task, folds, test_size, seed, seconds,
        remarks_of(caught),
    )  # fmt: skip


def _check_score(scoring: str | None, test_size: float | None) -> None:
    from sklearn.metrics import get_scorer_names

    if scoring is not None and scoring not in get_scorer_names():
        near = difflib.get_close_matches(scoring, get_scorer_names()) or ["accuracy", "r2"]
        rest = f"must be one of scikit-learn's scores, such as {', '.join(near)}. Got {scoring!r}."
        raise InvalidRequestError(f"scoring {rest}", f"--score {rest}")
    if test_size is not None and scoring not in (None, *_ROW_SCORES):
        what = f"{scoring} of one test set has no interval: it is not a mean over rows."
        others = ", ".join(_ROW_SCORES)
        raise InvalidRequestError(
            f"{what} Use folds instead of test_size, or one of {others}.",
            f"{what} Use --folds instead of --test-size, or one of {others}.",
        )
