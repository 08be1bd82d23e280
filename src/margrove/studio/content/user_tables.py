"""The user's tables: their columns, a comparison of learners, a report."""

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
from margrove.studio.content.checks import StudioError, checked_number

__all__ = ["as_studio_errors", "compare_table", "describe_table", "report_table", "table_task"]

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
def as_studio_errors() -> Iterator[None]:
    """Raise errors of the library as StudioErrors, whose text the page shows."""
    try:
        yield
    except StudioError:
        raise
    except (ValueError, TypeError, ArithmeticError, ImportError) as error:
        raise StudioError(str(error)) from error


def _raw_table(job: Any, name: Any) -> Any:
    """A table by its name on the page; the last ones are kept in memory."""
    from margrove.tables import ReadLimits, read_table

    if not isinstance(name, str) or name not in job.tables:
        raise StudioError("This table is not loaded any more. Load it again.")
    path = Path(job.tables[name])
    try:
        found = path.stat()
    except OSError:
        raise StudioError("The file of this table is gone. Load it again.") from None
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
    with as_studio_errors():
        raw = read_table(path, limits=limits)
    if raw.n_columns < 1 or raw.n_rows < 1:
        raise StudioError(f"{raw.name} has no rows or no columns. Load a table with both.")
    _read[key] = raw
    while len(_read) > 1 and _frame_bytes() > _KEPT_BYTES:
        _read.popitem(last=False)
    return raw


def _frame_bytes() -> int:
    return sum(table.frame.estimated_size() for table in _read.values())


def table_task(job: Any, table: Any, target: Any) -> Any:
    """The task of predicting the column `target` of a table: a `margrove.tables.Task`."""
    from margrove.tables import task_of_table

    raw = _raw_table(job, table)
    if not isinstance(target, str):
        raise StudioError("Choose a column to predict.")
    with as_studio_errors():
        return task_of_table(raw, target)


# -- columns ---------------------------------------------------------------------------------------


def describe_table(job: Any, table: Any) -> dict[str, Any]:
    """`Table` of the protocol: columns, a guess of the target, findings of the doctor."""
    from margrove.tables import describe_columns

    raw = _raw_table(job, table)
    job.progress("inspecting the columns", 0, None)
    with as_studio_errors():
        columns = describe_columns(raw.frame)
    target = _likely_target(columns)
    return {
        "table": table,
        "name": str(raw.name),
        "rows": raw.n_rows,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "task": _task_of(raw.frame[column.name], column),
                "distinct": int(column.n_values),
                "missing": int(column.n_missing),
                "examples": [str(value)[:_EXAMPLE_LENGTH] for value in column.examples],
            }
            for column in columns[:_SHOWN_COLUMNS]
        ],
        "target": target,
        "findings": _findings(raw, columns, target),
    }


def _task_of(values: Any, column: Any) -> str:
    """The task of predicting a column, from its values and its description."""
    from margrove.select.compare import task_of_numbers

    if column.type != "number" or not values.dtype.is_numeric():
        return "classification"
    return task_of_numbers(values.drop_nulls().to_numpy(), int(column.n_values))


def _likely_target(columns: Any) -> str | None:
    """A column with a usual name of targets, else the last column that can be predicted."""
    names = [column.name for column in columns if column.type in ("number", "category")]
    for usual in _USUAL_TARGETS:
        for name in reversed(names):
            if name.strip().lower() == usual:
                return str(name)
    return str(names[-1]) if names else None


def _findings(raw: Any, columns: Any, target: str | None) -> list[dict[str, Any]]:
    from margrove.workbench.doctor import KINDS, doctor

    # The doctor does not examine texts, which only fits prepare.
    kept = [column.name for column in columns if column.name != target and column.type != "text"]
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
        failed = {"severity": "info", "title": "The doctor failed", "text": str(error)}
        return [failed, *notes]
    found = [
        {
            "severity": _SEVERITY[finding.severity],
            "title": KINDS[finding.kind].rstrip(".")[:_LONGEST_TITLE],
            "text": _without_options(finding.message, finding.way_out),
        }
        for finding in diagnosis.findings
    ]
    return found + notes


def _without_options(message: str, way_out: str) -> str:
    """The message and its advice, unless that names an option of the command line."""
    return message if "--" in way_out else f"{message} {way_out}"


# -- a comparison of learners ----------------------------------------------------------------------


def compare_table(job: Any, table: Any, target: Any, seconds: Any) -> dict[str, Any]:
    """`Leaderboard` of the protocol: all learners, compared in about so many seconds.

    Few rows come first, then as many as the time allows, so that there is always an answer.
    """
    end = time.monotonic() + checked_number(seconds, "seconds", _LEAST_SECONDS, _MOST_SECONDS)
    task = table_task(job, table, target)
    found = _grown_comparison(job, task, end)
    rows = [
        {
            "learner": model.name,
            "score": float(model.score),
            "low": _finite(model.interval.low, model.score),
            "high": _finite(model.interval.high, model.score),
            "seconds": float(model.fit_seconds),
            "note": _note(model),
        }
        for model in found.comparison.models
        if math.isfinite(model.score)
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
        sample = sample_of(task, n_rows)
        job.progress(f"comparing on {sample.n_rows:,} rows", 0, None)
        start = time.monotonic()
        left = end - start
        try:
            best = _compared(sample, left if best else max(left, _LEAST_SECONDS))
        except StudioError as error:
            if best is not None:
                return best
            if isinstance(error.__cause__, ComparisonTimeoutError):
                raise StudioError(
                    f"There was not enough time to try all learners on {sample.n_rows:,} rows. "
                    "Allow more seconds, or choose a target of fewer classes."
                ) from error
            raise
        taken, left = time.monotonic() - start, end - time.monotonic()
        if sample.n_rows == task.n_rows or left < 1.5 * taken:
            return best
        # The time of kernel machines grows with the square of the rows; half is a reserve.
        n_rows = int(n_rows * min(_LARGEST_STEP, max(1.3, math.sqrt(0.5 * left / taken))))


def _compared(task: Any, seconds: float) -> Any:
    from margrove.workbench.workflow import compare_learners, compared_learners

    n_models = 1 + len(compared_learners(task.kind))  # with the baseline
    with as_studio_errors():
        return compare_learners(
            task,
            folds=_FOLDS,
            max_time=max(0.5, seconds / n_models),
            total_time=seconds,
            n_jobs=None,
        )


def _note(model: Any) -> str:
    from margrove.workbench.workflow import BASELINE

    if model.name == BASELINE:
        return "always predicts the same; learners should do better"
    return "some fits were stopped before they had converged" if model.stopped_early else ""


def _finite(value: float, instead: float) -> float:
    return float(value) if math.isfinite(value) else float(instead)


# -- a report --------------------------------------------------------------------------------------


def report_table(job: Any, table: Any, target: Any, learner: Any) -> dict[str, Any]:
    """`Report` of the protocol: a fit to three quarters of the rows, tested on the rest."""
    from margrove.select.learners import LEARNERS
    from margrove.workbench.report import report
    from margrove.workbench.workflow import diagnosis_of, fit_learner, sample_of

    task = table_task(job, table, target)
    known = [name for name, entry in LEARNERS.items() if entry.for_task(task.kind)]
    if not isinstance(learner, str) or learner not in known:
        raise StudioError(
            f"There is no such learner for {task.kind}. There are {', '.join(known)}."
        )
    task = sample_of(task, _REPORTED_ROWS)
    job.progress("fitting", 0, None)
    with as_studio_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit_learner(
            task, learner, test_size=_TEST_SIZE, seed=0, max_time=_REPORT_SECONDS, refit=False
        )
        job.progress("writing the report", 0, None)
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
