"""Tables of the user's: what is in them, learners compared, a report."""

from __future__ import annotations

import math
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from margrove.select import ComparisonTimeoutError
from margrove.studio.content.scenes import StudioError

__all__ = ["compare_table", "describe_table", "for_people", "report_table", "table_task"]

_MOST_ROWS = 2_000_000
_MOST_COLUMNS = 2_000
_MOST_BYTES = 1_000_000_000
_SHOWN_COLUMNS = 500
_EXAMPLE_LENGTH = 40
_LONGEST_TITLE = 80
_KEPT_BYTES = 200_000_000  # of tables that were read; the last one is kept in any case
_FIRST_ROWS = 500
_LARGEST_STEP = 6.0
_REPORTED_ROWS = 50_000
_FOLDS = 5
_LEAST_SECONDS, _MOST_SECONDS = 1.0, 600.0
_REPORT_SECONDS = 30.0  # for one fit
_TEST_SIZE = 0.25
_USUAL_TARGETS = ("target", "class", "label", "y", "outcome", "income", "species", "survived")
_SEVERITY = {"critical": "critical", "warning": "warning", "notice": "info"}

_read: OrderedDict[tuple[str, int, int], Any] = OrderedDict()


# -- reading ---------------------------------------------------------------------------------------


@contextmanager
def for_people() -> Iterator[None]:
    """What the library refuses is said to whoever is at the page."""
    try:
        yield
    except StudioError:
        raise
    except (ValueError, TypeError, ArithmeticError, ImportError) as error:
        raise StudioError(str(error)) from error


def _raw(job: Any, name: Any) -> Any:
    """A table by the name that the page knows; the last ones are not read twice."""
    from margrove.tables import ReadLimits, read_table

    if not isinstance(name, str) or name not in job.tables:
        raise StudioError("There is no such table any more. Load it again.")
    path = Path(job.tables[name])
    try:
        found = path.stat()
    except OSError:
        raise StudioError("This table is not there any more. Load it again.") from None
    key = str(path), found.st_size, found.st_mtime_ns
    if key in _read:
        _read.move_to_end(key)
        return _read[key]
    job.progress("reading", 0, None)
    limits = ReadLimits(
        max_rows=_MOST_ROWS,
        max_columns=_MOST_COLUMNS,
        max_bytes=min(_MOST_BYTES, ReadLimits().content_bytes),
    )
    with for_people():
        raw = read_table(path, limits=limits)
    if raw.n_columns < 1 or raw.n_rows < 1:
        raise StudioError(f"{raw.name} has no rows, or no columns.")
    _read[key] = raw
    while (
        len(_read) > 1 and sum(own.frame.estimated_size() for own in _read.values()) > _KEPT_BYTES
    ):
        _read.popitem(last=False)
    return raw


def table_task(job: Any, table: Any, target: Any) -> Any:
    """What is to be predicted from what: a `margrove.tables.Task`."""
    from margrove.tables import task_of_table

    raw = _raw(job, table)
    if not isinstance(target, str):
        raise StudioError("Choose a column to predict.")
    with for_people():
        return task_of_table(raw, target)


# -- what is in it ---------------------------------------------------------------------------------


def describe_table(job: Any, table: Any) -> dict[str, Any]:
    """`Table` of the protocol: columns, a guess of the target, findings of the doctor."""
    from margrove.tables import describe_columns

    raw = _raw(job, table)
    job.progress("looking it over", 0, None)
    with for_people():
        columns = describe_columns(raw.frame)
    target = _likely_target(columns)
    return {
        "table": table,
        "name": str(raw.name),
        "rows": raw.n_rows,
        "columns": [
            {
                "name": own.name,
                "type": own.type,
                "task": _task_of(raw.frame[own.name], own),
                "distinct": int(own.n_values),
                "missing": int(own.n_missing),
                "examples": [str(value)[:_EXAMPLE_LENGTH] for value in own.examples],
            }
            for own in columns[:_SHOWN_COLUMNS]
        ],
        "target": target,
        "findings": _findings(raw, columns, target),
    }


def _task_of(column: Any, told: Any) -> str:
    """What predicting a column would be."""
    from margrove.select.compare import task_of_numbers

    if told.type != "number" or not column.dtype.is_numeric():
        return "classification"
    return task_of_numbers(column.drop_nulls().to_numpy(), int(told.n_values))


def _likely_target(columns: Any) -> str | None:
    """A column of a usual name, else the last that can be predicted."""
    fit = [own.name for own in columns if own.type in ("number", "category")]
    for usual in _USUAL_TARGETS:
        for name in reversed(fit):
            if name.strip().lower() == usual:
                return str(name)
    return str(fit[-1]) if fit else None


def _findings(raw: Any, columns: Any, target: str | None) -> list[dict[str, Any]]:
    from margrove.workbench.doctor import KINDS, doctor

    texts = {own.name for own in columns if own.type == "text"}  # prepared by fits, not looked at
    kept = [own.name for own in columns if own.name != target and own.name not in texts]
    notes = [
        {"severity": "info", "title": "How it was read", "text": note.capitalize() + "."}
        for note in raw.notes
    ]
    if not kept:
        return notes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = None if target is None else raw.frame[target]
            diagnosis = doctor(raw.frame[kept], y, estimate=False).for_commands()
    except (ValueError, TypeError, ArithmeticError) as error:
        said = {"severity": "info", "title": "The doctor could not look", "text": str(error)}
        return [said, *notes]
    found = [
        {
            "severity": _SEVERITY[own.severity],
            "title": KINDS[own.kind].rstrip(".")[:_LONGEST_TITLE],
            "text": _without_options(own.message, own.way_out),
        }
        for own in diagnosis.findings
    ]
    return found + notes


def _without_options(message: str, way_out: str) -> str:
    """Ways out that are options of the command line are none on a page."""
    return message if "--" in way_out else f"{message} {way_out}"


# -- learners compared -----------------------------------------------------------------------------


def compare_table(job: Any, table: Any, target: Any, seconds: Any) -> dict[str, Any]:
    """`Leaderboard` of the protocol: the learners of the commands, in about so many seconds.

    Few rows first, then as many as the time allows, so that there is an answer in any case.
    """
    end = time.monotonic() + _seconds(seconds)
    task = table_task(job, table, target)
    found = _grown_comparison(job, task, end)
    rows = [
        {
            "learner": own.name,
            "score": float(own.score),
            "low": _finite(own.interval.low, own.score),
            "high": _finite(own.interval.high, own.score),
            "seconds": float(own.fit_seconds),
            "note": _note(own),
        }
        for own in found.comparison.models
        if math.isfinite(own.score)
    ]
    score = str(found.comparison.scoring)
    if found.task.n_rows < task.n_rows:
        score += f" on {found.task.n_rows:,} of {task.n_rows:,} rows"
    return {"score": score, "winner": found.winner, "rows": rows}


def _grown_comparison(job: Any, task: Any, end: float) -> Any:
    """The `TableComparison` of as many rows as there is time for."""
    from margrove.workbench.workflow import sample_of

    n_rows, best = _FIRST_ROWS, None
    while True:
        part = sample_of(task, n_rows)
        job.progress(f"comparing on {part.n_rows:,} rows", 0, None)
        start = time.monotonic()
        left = end - start
        try:
            best = _compared(part, left if best else max(left, _LEAST_SECONDS))
        except StudioError as error:
            if best is not None:
                return best
            if isinstance(error.__cause__, ComparisonTimeoutError):
                raise StudioError(
                    f"There was no time to try all learners, not even on {part.n_rows:,} rows. "
                    "Allow more seconds, or choose a target of fewer classes."
                ) from error
            raise
        taken, left = time.monotonic() - start, end - time.monotonic()
        if part.n_rows == task.n_rows or left < 1.5 * taken:
            return best
        # Machines take the square of the rows; half of the time is left for what they take more.
        n_rows = int(n_rows * min(_LARGEST_STEP, max(1.3, math.sqrt(0.5 * left / taken))))


def _compared(task: Any, seconds: float) -> Any:
    from margrove.workbench.workflow import compare_learners, compared_learners

    of_a_fit = max(0.5, seconds / (1 + len(compared_learners(task.kind))))  # and the baseline
    with for_people():
        return compare_learners(
            task, folds=_FOLDS, max_time=of_a_fit, total_time=seconds, n_jobs=None
        )


def _note(model: Any) -> str:
    from margrove.workbench.workflow import BASELINE

    if model.name == BASELINE:
        return "always says the same: what is to be beaten"
    return "some fits were stopped before they had converged" if model.stopped_early else ""


def _seconds(given: Any) -> float:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not _LEAST_SECONDS <= given <= _MOST_SECONDS:
        raise StudioError(f"seconds must be a number from {_LEAST_SECONDS:g} to {_MOST_SECONDS:g}.")
    return float(given)


def _finite(value: float, instead: float) -> float:
    return float(value) if math.isfinite(value) else float(instead)


# -- a report --------------------------------------------------------------------------------------


def report_table(job: Any, table: Any, target: Any, learner: Any) -> dict[str, Any]:
    """`Report` of the protocol: learn from three quarters of the rows, test with the rest."""
    from margrove.select.learners import LEARNERS
    from margrove.workbench.report import report
    from margrove.workbench.workflow import diagnosis_of, fit_learner, sample_of

    task = table_task(job, table, target)
    known = [name for name, own in LEARNERS.items() if own.for_task(task.kind)]
    if not isinstance(learner, str) or learner not in known:
        raise StudioError(
            f"There is no such learner for {task.kind}. There are {', '.join(known)}."
        )
    task = sample_of(task, _REPORTED_ROWS)
    job.progress("learning", 0, None)
    with for_people(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit_learner(
            task, learner, test_size=_TEST_SIZE, seed=0, max_time=_REPORT_SECONDS, refit=False
        )
        job.progress("writing", 0, None)
        rows = fitted.rows
        found = report(
            fitted.tested,
            task.X[rows.train],
            task.y[rows.train],
            X_test=task.X[rows.test],
            y_test=task.y[rows.test],
            test_rows=rows.test,
            diagnosis=diagnosis_of(task),
            title=f"{task.target} of {task.name}",
            source=task.name,
            seed=0,
            recipe={"target": task.target},
        )
    return {"report": job.keep_report(found.html)}
