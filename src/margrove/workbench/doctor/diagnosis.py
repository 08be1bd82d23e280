"""The doctor: checks a table before learning, and estimates the cost of fits."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from margrove._data import CodedTable, code_table, count_rows, data_frame
from margrove.workbench.doctor.checks import (
    COLUMN_CHECKS,
    COPY_CHECKS,
    LEAK_CHECKS,
    ROW_CHECKS,
    TARGET_CHECKS,
)
from margrove.workbench.doctor.column_figures import figures_of
from margrove.workbench.doctor.costs import CostEstimate, cost_table
from margrove.workbench.doctor.examined_data import ExaminedData, final_step, needs_of
from margrove.workbench.doctor.examined_target import ExaminedTarget, Task, examined_target
from margrove.workbench.doctor.findings import SEVERITIES, Finding, by_severity

__all__ = ["Diagnosis", "doctor"]

_MAX_CELLS = 10_000_000
_MAX_SPARSE_ENTRIES = 5_000_000
_MAX_PREPARED_ROWS = 20_000
_TEXT_WIDTH = 96

Check = Callable[[ExaminedData], Iterator[Finding]]
_CHECKS: tuple[Check, ...] = (
    *COLUMN_CHECKS,
    *COPY_CHECKS,
    *ROW_CHECKS,
    *TARGET_CHECKS,
    *LEAK_CHECKS,
)


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """The result of `doctor`.

    Attributes
    ----------
    findings : tuple of Finding
        The most severe first; empty if nothing was found.
    estimates : tuple of CostEstimate
        Expected time and memory of fits to all rows, the fastest first.
    notes : tuple of str
        What was not examined, and why.
    n_rows, n_columns : int
        The size of the table.
    n_examined : int
        Number of rows that were examined; of a very large table, a random sample.
    task : {"classification", "regression"} or None
        The task that was assumed.
    """

    findings: tuple[Finding, ...]
    estimates: tuple[CostEstimate, ...]
    notes: tuple[str, ...]
    n_rows: int
    n_columns: int
    n_examined: int
    task: Task | None
    summary: str

    @property
    def healthy(self) -> bool:
        """Whether no finding is worse than a notice."""
        return all(finding.severity == "notice" for finding in self.findings)

    def of_kind(self, kind: str) -> tuple[Finding, ...]:
        """The findings of one kind.

        Parameters
        ----------
        kind : str

        Returns
        -------
        tuple of Finding
        """
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def for_commands(self) -> Diagnosis:
        """The same for users of the command line.

        Ways out name options of commands, and problems that the commands solve themselves are
        notices.

        Returns
        -------
        Diagnosis
        """
        findings = by_severity([finding.for_commands() for finding in self.findings])
        return replace(self, findings=findings)

    def frame(self) -> Any:
        """The findings as a pandas DataFrame, one row each.

        Returns
        -------
        pandas.DataFrame
        """
        names = ["severity", "kind", "columns", "rows", "message", "way_out"]
        return data_frame({name: [getattr(f, name) for f in self.findings] for name in names})

    def as_dict(self) -> dict[str, Any]:
        """Everything as values that JSON can hold.

        Returns
        -------
        dict
        """
        return {
            "rows": self.n_rows,
            "columns": self.n_columns,
            "rows_examined": self.n_examined,
            "task": self.task,
            "healthy": self.healthy,
            "findings": [finding.as_dict() for finding in self.findings],
            "estimates": [estimate.as_dict() for estimate in self.estimates],
            "notes": list(self.notes),
        }

    @property
    def verdict(self) -> str:
        """How many findings there are of each severity."""
        counts = Counter(finding.severity for finding in self.findings)
        texts = [f"{counts[s]} {_plural(s, counts[s])}" for s in SEVERITIES if counts[s]]
        return ", ".join(texts) if texts else "nothing found"

    def __repr__(self) -> str:
        return f"<Diagnosis of {self.n_rows:,} x {self.n_columns:,}: {self.verdict}>"

    def __str__(self) -> str:
        lines = [self.summary, self.verdict]
        for finding in self.findings:
            lines += ["", f"{finding.severity} ({finding.kind})"]
            lines += [_wrapped(finding.message, "  "), _wrapped(finding.way_out, "  -> ")]
        if self.estimates:
            lines += ["", "A fit of all rows on this machine takes about", *cost_table(self)]
        if self.notes:
            lines += ["", *(_wrapped(note, "") for note in self.notes)]
        return "\n".join(lines)


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text,
        width=_TEXT_WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plural(severity: str, count: int) -> str:
    if severity == "critical":
        return "critical finding" + "s" * (count > 1)
    return severity + "s" * (count > 1)


def doctor(
    X: Any,
    y: Any = None,
    estimator: Any = None,
    *,
    task: Task | None = None,
    folds: int = 5,
    estimate: bool = True,
    probe_seconds: float = 5.0,
) -> Diagnosis:
    """Check a table before learning from it, and estimate the cost of fits.

    Nothing is changed. Any table with rows and columns is accepted: data that estimators would
    refuse is reported as a finding.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Numbers, labels, dates, missing values, anything.
    y : array-like of shape (n_samples,), optional
        Classes or numbers. Without it, only X is examined.
    estimator : estimator, optional
        Report what matters to this estimator, and estimate its cost. For a pipeline, the steps
        before the last one are run (on at most 20,000 rows), and their output is examined.
    task : {"classification", "regression"}, optional
        By default, the task of the estimator; without one, labels and integers with few different
        values are classes.
    folds : int, default=5
        Classes with fewer rows than folds are reported.
    estimate : bool, default=True
        Whether to estimate time and memory of fits, from small fits to some of the rows (probes).
    probe_seconds : float, default=5.0
        Approximate time limit of all probes together, without compilation.

    Returns
    -------
    Diagnosis
        With `findings`, `estimates`, `healthy` and `frame()`; `print` shows a report.

    Notes
    -----
    Of tables with more than ten million cells, a random sample of the rows is examined (always the
    same one), with the rows that contain infinity.

    Examples
    --------
    >>> import margrove, numpy as np
    >>> from margrove.workbench.doctor.diagnosis import doctor
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> doctor(X, y, estimate=False).healthy
    True
    >>> print(doctor(np.column_stack([X, y]), y, estimate=False))
    150 rows, 5 columns; the target has 3 classes
    1 critical finding
    <BLANKLINE>
    critical (leak)
      Column 4 is the target under other names: 3 values, one for each class.
      -> Check whether its value is known before the target. If it is computed from the target or
         recorded after it, drop it.
    """
    _check_arguments(estimator, task, folds, probe_seconds)
    table = code_table(X)
    target = None
    if y is not None:
        target = examined_target(y, table.n_rows, task or _task_of(estimator))
    rows = _rows_to_examine(table)
    notes = []
    if len(rows) < table.n_rows:
        notes.append(f"Examined {len(rows):,} of {table.n_rows:,} rows, drawn at random.")
    data, findings = _examined(X, y, table, target, estimator, rows, folds)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for check in _CHECKS:
            findings += check(data)
    estimates: tuple[CostEstimate, ...] = ()
    if estimate and target is not None:
        from margrove.workbench.doctor.costs import estimates_for

        blocked = any(finding.severity == "critical" for finding in findings)
        estimates, remarks = estimates_for(
            X, y, table, target, estimator, probe_seconds, is_blocked=blocked
        )
        notes += remarks
    return Diagnosis(
        findings=by_severity(findings),
        estimates=estimates,
        notes=tuple(notes),
        n_rows=table.n_rows,
        n_columns=table.n_columns,
        n_examined=len(rows),
        task=None if target is None else target.task,
        summary=_summary(table, target),
    )


def _check_arguments(estimator: Any, task: Any, folds: Any, probe_seconds: Any) -> None:
    if estimator is not None and (isinstance(estimator, type) or not hasattr(estimator, "fit")):
        hint = " Call the class to make one." if isinstance(estimator, type) else ""
        raise TypeError(f"estimator must be an estimator, with fit. Got {estimator!r}.{hint}")
    if task not in (None, "classification", "regression"):
        raise ValueError(
            f"task must be 'classification', 'regression' or None. Got {task!r} instead."
        )
    if isinstance(folds, bool) or not isinstance(folds, Integral) or folds < 2:
        raise ValueError(f"folds must be an integer of at least 2. Got {folds!r} instead.")
    is_number = isinstance(probe_seconds, Real) and not isinstance(probe_seconds, bool)
    if not is_number or not 0 < probe_seconds < math.inf:
        raise ValueError(
            f"probe_seconds must be a positive number. Got {probe_seconds!r} instead; use "
            "estimate=False for no probes."
        )


def _task_of(estimator: Any) -> Task | None:
    from sklearn.base import is_classifier, is_regressor

    final = final_step(estimator)
    try:
        if is_classifier(final):
            return "classification"
        if is_regressor(final):
            return "regression"
    except Exception:  # an estimator without tags
        return None
    return None


def _rows_to_examine(table: CodedTable) -> np.ndarray:
    """All rows, or a sample of a very large table, with the rows that contain infinity."""
    n, d = table.n_rows, table.n_columns
    cells, most = n * d, _MAX_CELLS
    if table.is_sparse:
        cells, most = int(table.X.nnz), _MAX_SPARSE_ENTRIES
    if cells <= most:
        return np.arange(n)
    size = min(n, max(1000, int(most * n / cells)))
    chosen = np.zeros(n, dtype=bool)
    chosen[np.random.default_rng(0).choice(n, size, replace=False)] = True
    if not table.is_sparse:
        with np.errstate(invalid="ignore", over="ignore"):
            doubtful = np.flatnonzero(~np.isfinite(table.X.sum(axis=1)))
        chosen[doubtful[np.isinf(table.X[doubtful]).any(axis=1)][:size]] = True
    return np.flatnonzero(chosen)


def _examined(
    X: Any,
    y: Any,
    table: CodedTable,
    target: ExaminedTarget | None,
    estimator: Any,
    rows: np.ndarray,
    folds: int,
) -> tuple[ExaminedData, list[Finding]]:
    """The data of the checks, and a finding if the steps of the pipeline fail."""
    if len(rows) < table.n_rows:
        table = table.of_rows(rows)
        target = None if target is None else target.of_rows(rows)
    figures = figures_of(table)
    prepared, findings = _after_steps(X, y, table, estimator, rows)
    data = ExaminedData(
        table=table,
        figures=figures,
        target=target,
        prepared=prepared,
        prepared_figures=figures if prepared is table else figures_of(prepared),
        needs=needs_of(estimator),
        folds=int(folds),
        rows=rows,
    )
    return data, findings


def _after_steps(
    X: Any, y: Any, table: CodedTable, estimator: Any, rows: np.ndarray
) -> tuple[CodedTable, list[Finding]]:
    """The output of the steps of a pipeline before the last one, or a finding if they fail."""
    steps = _steps_before(estimator)
    if steps is None or not table.n_rows or not table.n_columns:
        return table, []
    if len(rows) > _MAX_PREPARED_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, _MAX_PREPARED_ROWS, replace=False))
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = X if len(rows) == count_rows(X) else _safe_indexing(X, rows)
            labels = None if y is None else _safe_indexing(y, rows)
            return code_table(clone(steps).fit_transform(sample, labels)), []
    except Exception as error:  # reported as a finding, whatever a step raises
        reason = " ".join(str(error).split())
        return table, [
            Finding(
                "preparation_fails",
                "critical",
                f"The steps before the last one of the pipeline fail: {type(error).__name__}: "
                f"{reason[:300]}",
                "Fix the pipeline first. The other findings are about the table as it was given.",
            )
        ]


def _steps_before(estimator: Any) -> Any:
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):
        return _steps_before(estimator.estimator)
    if not hasattr(estimator, "steps") or len(estimator.steps) < 2:
        return None
    return estimator[:-1]


def _summary(table: CodedTable, target: ExaminedTarget | None) -> str:
    counts: Counter[str] = Counter(table.kinds)
    others = [
        f"{counts[kind]:,} of {word}"
        for kind, word in (("label", "labels"), ("date", "dates"), ("mixed", "mixed types"))
        if counts[kind]
    ]
    of_other_kinds = f" ({', '.join(others)})" if others else ""
    text = f"{_counted(table.n_rows, 'row')}, {_counted(table.n_columns, 'column')}{of_other_kinds}"
    if target is None:
        return f"{text}; no target"
    if target.task == "classification":
        n_classes = int((target.class_counts > 0).sum()) if target.is_known.any() else 0
        what = f"{n_classes:,} class{'es' if n_classes != 1 else ''}"
        return f"{text}; the target has {what}"
    return f"{text}; the target is a number"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' if count != 1 else ''}"
