"""From a table to a model: learn from a part, test with the rest, then learn from all of it."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from margrove.cli.first_run import compile_learners
from margrove.cli.learners import made
from margrove.cli.screen import percent_or_number
from margrove.cli.trials import held_out, remarks_of

if TYPE_CHECKING:
    from margrove.cli.screen import Screen
    from margrove.tables import Task

__all__ = ["HeldOutScore", "Learnt", "learn", "score_of", "tuning_folds"]

_FOLDS = 5


@dataclass(frozen=True)
class HeldOutScore:
    """Accuracy or r2 on rows that were not learnt from, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float
    baseline: float
    n_rows: int

    @property
    def sentence(self) -> str:
        value, low, high, baseline = (
            percent_or_number(number, is_share=self.name == "accuracy")
            for number in (self.value, self.low, self.high, self.baseline)
        )
        return (
            f"On {self.n_rows:,} rows that it had not seen: {self.name} {value}, 95 % interval "
            f"{low} .. {high}; the baseline has {baseline}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values; None for what few rows cannot tell."""
        numbers = {
            key: number if math.isfinite(number) else None
            for key, number in (
                ("value", self.value),
                ("low", self.low),
                ("high", self.high),
                ("baseline", self.baseline),
            )
        }
        return {"name": self.name, **numbers, "rows": self.n_rows}


@dataclass(frozen=True)
class Learnt:
    """A model of all rows, and what is known about it.

    tested   the model that was learnt without the test rows and then scored, None without a test
    test     numbers of the test rows
    """

    model: Any
    learner: str
    tested: Any
    train: Any
    test: Any
    score: HeldOutScore | None
    tuning: Any
    seconds: float
    remarks: tuple[str, ...]


def learn(
    task: Task,
    learner: str,
    screen: Screen,
    *,
    parameters: dict[str, Any] | None = None,
    tune: bool = False,
    calibrate: bool = False,
    test_size: float = 0.2,
    seed: int = 0,
    max_time: float | None = None,
    n_jobs: int = -1,
    refit: bool = True,
) -> Learnt:
    """Learn, perhaps with parameters that are chosen by trying; the test rows see none of it.

    Without `refit`, the model is the one that was tested, and has not learnt from all rows.
    """
    import numpy as np
    from sklearn.base import clone

    from margrove.tables import table_model

    compile_learners(task, [learner], screen, n_jobs)
    start = time.perf_counter()
    estimator = made(
        learner, task.kind, seed=seed, max_time=max_time, n_jobs=n_jobs, parameters=parameters
    )
    model = table_model(estimator, task.types)
    train, test = (
        held_out(task, test_size, seed)
        if test_size
        else (np.arange(task.n_rows), np.arange(0, dtype=np.int64))
    )
    with warnings.catch_warnings(record=True) as caught, screen.progress(f"Learning {learner}"):
        warnings.simplefilter("always")
        fitted, tuning = _fitted(model, task, train, tune, seed, n_jobs)
        tested = _calibrated(fitted, task, train) if calibrate else fitted
        score = score_of(tested, task, train, test) if len(test) else None
        final = tested
        if refit and len(test):  # calibration fits by itself
            all_rows = slice(None)
            final = (
                _calibrated(fitted, task, all_rows)
                if calibrate
                else clone(fitted).fit(task.X, task.y)
            )
    return Learnt(
        final,
        learner,
        tested if len(test) else None,
        train,
        test,
        score,
        tuning,
        time.perf_counter() - start,
        remarks_of(caught),
    )


def _calibrated(model: Any, task: Task, rows: Any) -> Any:
    """The same with probabilities, which scores of rows held out are mapped to (Platt)."""
    from sklearn.base import clone
    from sklearn.calibration import CalibratedClassifierCV

    folds = tuning_folds(task, rows)
    if task.kind == "regression" or folds < 2:
        raise click.UsageError("--calibrate is for classes of at least two rows each.")
    return CalibratedClassifierCV(clone(model), cv=folds, ensemble=False).fit(
        task.X[rows], task.y[rows]
    )


def _fitted(
    model: Any, task: Task, train: Any, tune: bool, seed: int, n_jobs: int
) -> tuple[Any, Any]:
    from margrove.select.autotune.autotune import autotune

    X, y = task.X[train], task.y[train]
    if not tune:
        return model.fit(X, y), None
    folds = tuning_folds(task, train)
    if folds < 2:
        raise click.UsageError(
            f"Tuning needs at least two rows of each class to learn from, and {task.name} has not "
            "as many. Drop the rare classes, or do without tuning."
        )
    tuned = autotune(model, X, y, cv=folds, random_state=seed, n_jobs=n_jobs)
    return tuned, tuned.tuning_


def tuning_folds(task: Task, train: Any) -> int:
    """As many as five, if each class has a row for each of them; below two, none."""
    import numpy as np

    if task.kind == "regression":
        return min(_FOLDS, len(task.y[train]) // 2)
    return min(_FOLDS, int(np.unique(task.y[train], return_counts=True)[1].min()))


def score_of(model: Any, task: Task, train: Any, test: Any) -> HeldOutScore:
    """On the test rows, with the interval that a report gives."""
    import numpy as np
    from sklearn.metrics import r2_score

    from margrove.workbench.report.judgement import r2_interval, wilson

    y, predicted = task.y[test], np.asarray(model.predict(task.X[test]))
    if task.kind == "classification":
        classes, counts = np.unique(task.y[train], return_counts=True)
        usual = classes[int(np.argmax(counts))]
        n_right = int((predicted == y).sum())
        low, high = wilson(n_right, len(y))
        baseline = float(np.mean(y == usual))
        return HeldOutScore("accuracy", n_right / len(y), low, high, baseline, len(y))
    value = float(r2_score(y, predicted))
    low, high = r2_interval(y, predicted) or (-np.inf, 1.0)
    guess = np.full(len(y), task.y[train].mean())
    return HeldOutScore("r2", value, low, high, float(r2_score(y, guess)), len(y))
