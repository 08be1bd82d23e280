"""How good a learner is on rows it has not seen: comparisons and held-out tests of tables."""

from __future__ import annotations

import difflib
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from margrove.cli.first_run import compile_learners
from margrove.cli.learners import BASELINE, for_task, made
from margrove.cli.screen import duration, percent_or_number

if TYPE_CHECKING:
    from margrove.cli.screen import Screen
    from margrove.select.compare.result import Comparison
    from margrove.tables import Task

__all__ = [
    "Trial",
    "default_folds",
    "default_seconds",
    "held_out",
    "part_of",
    "remarks_of",
    "run_trial",
    "show_trial",
]

_MANY_ROWS = 50_000
_FOLDS, _FEW_FOLDS = 5, 3
_SECONDS = 30.0
_FEWEST_TESTED = 2
_NUMBER = re.compile(r"\d[\d.,]*(e[-+]?\d+)?")  # reasons that differ in numbers are one
_UNSEEN = "has not seen"  # in warnings, of which each tree of a bag has its own
_SCORES_OF_ROWS = (
    "accuracy", "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_log_loss",
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """A comparison of learners on a table, and how it was made."""

    comparison: Comparison
    task: Task
    folds: int | None
    test_size: float | None
    seed: int
    max_time: float
    remarks: tuple[str, ...]
    stopped: frozenset[str] = frozenset()

    @property
    def winner(self) -> str:
        """The best learner; the baseline is none."""
        return next(
            (name for name in self.comparison.ranking if name != BASELINE), self.comparison.best
        )

    @property
    def method(self) -> str:
        how = (
            f"{self.folds}-fold cross-validation"
            if self.test_size is None
            else f"one test part of {self.test_size:.0%} of the rows"
        )
        return f"{how}, seed {self.seed}, at most {self.max_time:g} s a fit"

    def as_dict(self) -> dict[str, Any]:
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
                    "stopped_early": model.name in self.stopped,
                }
                for model in found.models
            ],
            "failed": [str(model) for model in found.failed],
            "verdict": found.sentence,
            "winner": self.winner,
        }


def default_folds(n_rows: int) -> int:
    return _FOLDS if n_rows <= _MANY_ROWS else _FEW_FOLDS


def default_seconds(max_time: float | None) -> float:
    return _SECONDS if max_time is None else max_time


def run_trial(
    task: Task,
    screen: Screen,
    *,
    learners: tuple[str, ...] = (),
    folds: int | None = None,
    test_size: float | None = None,
    scoring: str | None = None,
    seed: int = 0,
    max_time: float | None = None,
    n_jobs: int = -1,
) -> Trial:
    """Compare learners, all of them by default, and the baseline."""
    from margrove.select.compare.comparison import compare
    from margrove.tables import table_model
    from margrove.workbench.report.score_intervals import with_intervals_of_rows

    seconds = default_seconds(max_time)
    _check_score(scoring)
    if test_size is not None and scoring not in (None, *_SCORES_OF_ROWS):
        raise click.UsageError(
            f"{scoring} of one test part has no interval: it is not a mean over rows. Use --folds "
            f"in place of --test-size, or one of {', '.join(_SCORES_OF_ROWS)}."
        )
    names = [BASELINE, *(learners or for_task(task.kind))]
    models = {
        name: table_model(
            made(name, task.kind, seed=seed, max_time=seconds, n_jobs=n_jobs), task.types
        )
        for name in dict.fromkeys(names)
    }
    compile_learners(task, names[1:], screen, n_jobs)
    if test_size is not None:
        how: dict[str, Any] = {
            "cv": [held_out(task, test_size, seed)],
            "test": "bootstrap",
        }
    else:
        folds = _usable_folds(task, folds or default_folds(task.n_rows), screen)
        how = {"cv": folds, "repeats": 1}
    stops = {name: type(model[-1]).__name__ for name, model in models.items()}
    with screen.progress("Comparing"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        comparison = compare(
            models,
            task.X,
            task.y,
            **how,
            scoring=scoring,
            random_state=seed,
            on_interrupt="keep",
        )
    return Trial(
        with_intervals_of_rows(comparison),
        task,
        folds,
        test_size,
        seed,
        seconds,
        remarks_of(caught),
        _stopped(stops, caught),
    )


def _check_score(scoring: str | None) -> None:
    from sklearn.metrics import get_scorer_names

    if scoring is not None and scoring not in get_scorer_names():
        near = difflib.get_close_matches(scoring, get_scorer_names()) or ["accuracy", "r2"]
        raise click.UsageError(
            f"--score takes one of scikit-learn's scores, such as {', '.join(near)}. Got "
            f"{scoring!r}."
        )


def _stopped(classes: dict[str, str], caught: list[warnings.WarningMessage]) -> frozenset[str]:
    """Learners some of whose fits ended before they had converged."""
    from margrove.exceptions import ConvergenceWarning

    texts = [str(own.message) for own in caught if issubclass(own.category, ConvergenceWarning)]
    return frozenset(
        name for name, own in classes.items() if any(text.startswith(own) for text in texts)
    )


def remarks_of(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """What is worth telling, once each: that fits stopped early is said in one line."""
    from margrove.exceptions import ConvergenceWarning

    early = [
        str(found.message) for found in caught if issubclass(found.category, ConvergenceWarning)
    ]
    others = dict.fromkeys(
        str(found.message)
        for found in caught
        if not issubclass(found.category, (ConvergenceWarning, DeprecationWarning, FutureWarning))
    )
    remarks = [text for text in others if _UNSEEN not in text]
    if len(remarks) < len(others):
        remarks.append("Some categories were in test rows only; they were treated as missing.")
    if early:
        reasons = dict.fromkeys(_NUMBER.sub("…", text) for text in early)
        remarks.append(f"{len(early)} fits ended early: {' '.join(list(reasons)[:3])}")
    return tuple(remarks)


def part_of(task: Task, rows: Any) -> Task:
    """The task of some rows."""
    ids = None if task.ids is None else task.ids[rows]
    return replace(task, X=task.X[rows], y=task.y[rows], ids=ids)


def held_out(task: Task, test_size: float, seed: int) -> tuple[Any, Any]:
    """Numbers of the rows to learn from and of those to test with, classes in equal shares."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    rows, alone = np.arange(task.n_rows), np.arange(0)
    by_class = None
    if task.kind == "classification":
        codes, counts = np.unique(task.y, return_inverse=True, return_counts=True)[1:]
        alone = rows[counts[codes] == 1]  # classes of one row can only be learnt
        rows = rows[counts[codes] > 1]
        by_class = codes[rows]
    try:
        train, test = train_test_split(
            rows, test_size=test_size, random_state=seed, stratify=by_class
        )
    except ValueError as error:
        raise click.UsageError(
            f"A test part of {test_size:.0%} cannot be taken from {task.n_rows} rows: {error}"
        ) from None
    if len(test) < _FEWEST_TESTED:
        raise click.UsageError(
            f"A test part of {test_size:.0%} of {task.n_rows} rows is one row, which tells nothing "
            "about others. Choose a greater --test-size, or give more rows."
        )
    return np.concatenate([train, alone]), test


def _usable_folds(task: Task, folds: int, screen: Screen) -> int:
    """As many as asked for, if at least two classes have a row for each."""
    import numpy as np

    if task.kind == "regression":
        if task.n_rows < 4:
            raise click.UsageError(
                f"{task.name} has {task.n_rows} rows with a target; cross-validation needs four."
            )
        return min(folds, task.n_rows // 2)
    classes, counts = np.unique(task.y, return_counts=True)
    rare, most = classes[int(np.argmin(counts))], int(np.sort(counts)[-2])
    if most < 2:
        raise click.UsageError(
            f"The class {str(rare)!r} of {task.target!r} has one row only, so it cannot be both "
            "learnt and tested. Drop it or choose another target with --target."
        )
    if most < folds:
        screen.note(f"Only {most} folds instead of {folds}: all classes but one have few rows.")
    n_rare = int((counts < min(folds, most)).sum())
    if n_rare:
        screen.note(
            f"{n_rare} of {len(classes)} classes have fewer rows than there are folds, such as "
            f"{str(rare)!r} with {counts.min()}: some folds are learnt or tested without them."
        )
    return min(folds, most)


def show_trial(trial: Trial, screen: Screen) -> None:
    """The table of learners, and what it means."""
    from margrove.workbench.report.score_intervals import meaning_of_intervals

    found = trial.comparison
    is_share = found.in_points
    rows = [
        (
            f"{model.name} *" if model.name in trial.stopped else model.name,
            percent_or_number(model.score, is_share=is_share),
            " .. ".join(
                percent_or_number(bound, is_share=is_share)
                for bound in (model.interval.low, model.interval.high)
            ),
            duration(model.fit_seconds),
            duration(model.predict_seconds),
        )
        for model in found.models
    ]
    percent = f"{found.confidence_level:.0%} interval"
    screen.table(
        f"{trial.task.name}: {trial.task.summary}",
        ("learner", found.scoring, percent, "a fit", "predicting"),
        rows,
        caption=f"{trial.method}{'; * stopped early' if trial.stopped else ''}",
        best=0,
    )
    for failure in found.failed:
        screen.say(f"{failure}.")
    screen.say(found.sentence)
    screen.note(meaning_of_intervals(found))
    for remark in trial.remarks:
        screen.note(remark)
