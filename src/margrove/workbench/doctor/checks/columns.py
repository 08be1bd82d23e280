"""Checks of columns, without regard to the target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from margrove._data import ColumnName
from margrove.workbench.doctor.checks.labels import label_findings
from margrove.workbench.doctor.examined_data import ExaminedData
from margrove.workbench.doctor.findings import Finding, Severity, as_options, named, share, verb

__all__ = ["COLUMN_CHECKS"]

_NEARLY = 0.995  # share of the rows with the same value
_MIN_ROWS = 20  # in fewer rows, counts say little
_SPREAD = 10.0  # ratio of the spreads of two columns: smaller ones are not reported
_LARGE_SPREAD = 100.0
_SQUARE_OVERFLOWS = 1e150
_MAX_MISSING = 0.5
_AUTOMATIC = "The commands do this automatically."


def _no_data(data: ExaminedData) -> Iterator[Finding]:
    table = data.table
    if table.n_rows and table.n_columns:
        return
    what = "no rows" if not table.n_rows else "no columns"
    yield Finding(
        "no_data",
        "critical",
        f"The table has {what}: its shape is ({table.n_rows}, {table.n_columns}).",
        "Check how it was read or filtered.",
    )


def _duplicated_names(data: ExaminedData) -> Iterator[Finding]:
    names = data.table.names
    seen: dict[ColumnName, int] = defaultdict(int)
    for name in names:
        seen[name] += 1
    twice = [name for name, count in seen.items() if count > 1]
    if twice:
        yield Finding(
            "duplicated_names",
            "critical",
            f"{named(twice)}: more than one column has this name.",
            "Rename or drop them: columns are matched by name.",
            tuple(twice),
        )


def _unusable_columns(data: ExaminedData) -> Iterator[Finding]:
    table = data.table
    for j in np.flatnonzero(table.of_kind("unusable")).tolist():
        yield Finding(
            "unusable_column",
            "critical",
            f"{named(data.names([j]))} contains {table.notes.get(j, 'objects')}.",
            "Convert them to columns of numbers or labels, or drop the column.",
            data.names([j]),
        )
    for j in np.flatnonzero(table.of_kind("mixed")).tolist():
        yield Finding(
            "mixed_types",
            "warning",
            f"{named(data.names([j]))} mixes types: {table.notes[j]}.",
            "Convert it to one type, for example with astype(str) or pandas.to_numeric.",
            data.names([j]),
            command_way_out="Give it one type, for example with "
            f"{as_options('--type', data.names([j]), '=category')}.",
        )


def _dates(data: ExaminedData) -> Iterator[Finding]:
    columns = np.flatnonzero(data.prepared.of_kind("date"))
    if len(columns):
        names = data.prepared_names(columns)
        yield Finding(
            "dates",
            "critical" if data.needs.who else "warning",
            f"{named(names)} {verb(columns, 'contains', 'contain')} dates or durations, which "
            "estimators refuse.",
            "Convert them to numbers: days since a date, month, weekday.",
            names,
            command_way_out="The commands do this automatically: year, month, day, weekday, hour "
            "and the days since 1970 become columns, unless they are constant.",
            is_prepared=True,
        )


def _empty_and_constant(data: ExaminedData) -> Iterator[Finding]:
    table, figures = data.table, data.figures
    n = table.n_rows
    if n == 0:
        return
    usable = ~table.of_kind("unusable")
    empty = np.flatnonzero(usable & (figures.missing == n))
    if len(empty):
        yield Finding(
            "empty_column",
            "warning",
            f"{named(data.names(empty))} {verb(empty, 'has', 'have')} no value in any row.",
            "Drop " + _it(empty) + ".",
            data.names(empty),
            command_way_out=_AUTOMATIC,
            is_prepared=True,
        )
    if n < 2:
        return
    there = n - figures.missing
    is_constant = (figures.distinct == 1) & (figures.infinite == 0) & (there > 1)
    complete = np.flatnonzero(usable & is_constant & (figures.missing == 0))
    if len(complete):
        yield Finding(
            "constant_column",
            "warning",
            f"{named(data.names(complete))} {verb(complete, 'has', 'have')} the same value "
            f"in all {n:,} rows.",
            f"Drop {_it(complete)}: nothing can be learnt from a constant.",
            data.names(complete),
            command_way_out=_AUTOMATIC,
            is_prepared=True,
        )
    yield from _nearly_constant(data, usable & ~(is_constant & (figures.missing == 0)))


def _nearly_constant(data: ExaminedData, others: np.ndarray) -> Iterator[Finding]:
    figures, n = data.figures, data.table.n_rows
    if n < _MIN_ROWS or data.table.is_sparse:  # sparse columns are zero nearly everywhere
        return
    there = n - figures.missing
    same = others & (there >= _MIN_ROWS) & (figures.commonest >= _NEARLY * there)
    same &= figures.distinct > 1
    columns = np.flatnonzero(same)
    if len(columns):
        worst = int(columns[np.argmax((figures.commonest / np.maximum(there, 1))[columns])])
        deviating = int(there[worst] - figures.commonest[worst])
        yield Finding(
            "nearly_constant_column",
            "notice",
            f"{named(data.names(columns))} {verb(columns, 'has', 'have')} the same value in "
            f"more than {share(_NEARLY, 1)} of the rows; {_short(data.table.names[worst])} has "
            f"another one in {deviating:,} of {int(there[worst]):,}.",
            "Drop the column, or make sure that each fold has some of the other values.",
            data.names(columns),
        )


def _unscaled(data: ExaminedData) -> Iterator[Finding]:
    """The spread of numbers; columns of two values are left out."""
    table, figures, needs = data.prepared, data.prepared_figures, data.needs
    if not needs.like_scales or table.n_rows < 2:
        return
    is_number = table.of_kind("number") & (figures.distinct > 2) & np.isfinite(figures.std)
    columns = np.flatnonzero(is_number & (figures.std > 0))
    if len(columns) < 2:
        return
    spread = figures.std[columns]
    wide, narrow = int(columns[np.argmax(spread)]), int(columns[np.argmin(spread)])
    ratio = float(spread.max() / spread.min())
    if ratio < _SPREAD:
        return
    severity: Severity = "notice"
    if needs.who:
        severity = "warning" if ratio >= _LARGE_SPREAD else "notice"
        matters = f"in {needs.who} the first dominates the second"
    else:
        matters = "this matters for support vector machines and perceptrons, not for trees"
    yield Finding(
        "unscaled_columns",
        severity,
        f"The spread of columns differs by a factor of {ratio:,.3g}: the standard deviation of "
        f"{_short(table.names[wide])} is {figures.std[wide]:.3g}, that of "
        f"{_short(table.names[narrow])} is {figures.std[narrow]:.3g}; {matters}.",
        "Put a sklearn.preprocessing.StandardScaler before the estimator, in a pipeline.",
        data.prepared_names(sorted({wide, narrow})),
        command_way_out="Nothing to do: the commands scale columns automatically for the learners "
        "that need it.",
        is_prepared=True,
    )


def _missing(data: ExaminedData) -> Iterator[Finding]:
    table, figures, needs = data.prepared, data.prepared_figures, data.needs
    n = table.n_rows
    some = (figures.missing > 0) & (figures.missing < n) & ~table.of_kind("unusable")
    if not some.any():
        return
    often = np.flatnonzero(some & (figures.missing > _MAX_MISSING * n))
    if needs.who and needs.no_gaps:
        yield _gaps(data, np.flatnonzero(some), "critical", f"{needs.who} refuses them.")
        return
    seldom = np.flatnonzero(some & (figures.missing <= _MAX_MISSING * n))
    if len(often):
        yield _gaps(data, often, "warning", "More than half of the values are missing.")
    if len(seldom):
        remark = (
            f"{needs.who} accepts them."
            if needs.who
            else "Trees, forests and histogram boosting accept them; support vector machines, "
            "perceptrons and exact gradient boosting refuse them."
        )
        yield _gaps(data, seldom, "notice", remark)


def _gaps(data: ExaminedData, columns: np.ndarray, severity: Severity, remark: str) -> Finding:
    table, figures = data.prepared, data.prepared_figures
    n = table.n_rows
    worst = int(columns[np.argmax(figures.missing[columns])])
    rows = _rows_with_gaps(data, columns)
    names = data.prepared_names(columns)
    most = share(int(figures.missing[worst]), n)
    extent = f"{most} of the rows" if len(columns) == 1 else f"up to {most} of the rows"
    concerned = "" if len(columns) == 1 else f", {len(rows):,} of {n:,} rows in total"
    return Finding(
        "missing_values",
        severity,
        f"{named(names)} {verb(columns, 'lacks', 'lack')} values in {extent}{concerned}. {remark}",
        "Fill them with sklearn.impute.SimpleImputer inside a pipeline"
        + (", or drop the column." if severity == "warning" else ", or use a learner with trees."),
        names,
        data.row_numbers(rows) if len(rows) and table.n_rows == len(data.rows) else (),
        command_way_out="The commands fill them automatically for the learners that need it, and "
        "add a column that marks them"
        + (
            f"; if so few values are useless, leave it out: {as_options('--ignore', names)}."
            if severity == "warning"
            else "."
        ),
        is_prepared=severity != "warning",
    )


def _rows_with_gaps(data: ExaminedData, columns: np.ndarray) -> np.ndarray:
    table = data.prepared
    if table.is_sparse:
        entries = table.X.tocoo()
        return np.unique(entries.row[np.isnan(entries.data) & np.isin(entries.col, columns)])
    return np.flatnonzero(np.isnan(table.X[:, columns]).any(axis=1))


def _infinite(data: ExaminedData) -> Iterator[Finding]:
    figures = data.prepared_figures
    columns = np.flatnonzero(figures.infinite)
    if len(columns):
        names = data.prepared_names(columns)
        total = int(figures.infinite[columns].sum())
        yield Finding(
            "infinite_values",
            "critical",
            f"{named(names)} {verb(columns, 'contains', 'contain')} infinity, in {total:,} "
            f"cell{'s' if total > 1 else ''}; every estimator refuses that.",
            "Find its cause (a division by zero, a logarithm of zero) and replace "
            "it by a missing value or a bound.",
            names,
        )


def _huge(data: ExaminedData) -> Iterator[Finding]:
    table, figures = data.prepared, data.prepared_figures
    with np.errstate(invalid="ignore"):
        largest = np.fmax(np.abs(figures.low), np.abs(figures.high))
    is_number = table.of_kind("number")
    overflowing = np.flatnonzero(is_number & (largest > _SQUARE_OVERFLOWS))
    if len(overflowing):
        names = data.prepared_names(overflowing)
        yield Finding(
            "huge_values",
            "warning",
            f"{named(names)} {verb(overflowing, 'reaches', 'reach')} "
            f"{largest[overflowing].max():.3g}, whose square overflows.",
            "Use a larger unit, take the logarithm, or look for a wrong value.",
            names,
        )
    inexact = [j for j, note in table.notes.items() if "2**53" in note]
    if inexact:
        names = data.prepared_names(inexact)
        yield Finding(
            "huge_values",
            "warning",
            f"{named(names)} {verb(inexact, 'contains', 'contain')} integers beyond 2**53, which "
            "floating point cannot represent exactly.",
            "Subtract an offset, or store them as text if they are names rather than numbers.",
            names,
        )


def _ids(data: ExaminedData) -> Iterator[Finding]:
    table, figures = data.table, data.figures
    n = table.n_rows
    if n < _MIN_ROWS or table.is_sparse:
        return
    all_differ = (figures.distinct == n) & (figures.missing + figures.infinite == 0)
    is_label = table.of_kind("label")
    found = np.flatnonzero(all_differ & is_label).tolist()
    unique_integers = all_differ & figures.is_whole & table.of_kind("number")
    for j in np.flatnonzero(unique_integers).tolist():
        if _is_counter(data, j):
            found.append(j)
    if found:
        found.sort()
        names = data.names(found)
        yield Finding(
            "id_column",
            "warning",
            f"{named(names)} {verb(found, 'has', 'have')} a different value in each of the {n:,} "
            f"rows, like {'a name or number' if len(found) == 1 else 'names or numbers'} of the "
            "rows.",
            f"Drop {_it(found)}: such values say nothing about new rows. If it is text, compute "
            "features from it.",
            names,
            command_way_out=f"Leave {_it(found)} out: {as_options('--ignore', names)}; or, if "
            f"{'it names' if len(found) == 1 else 'one of them names'} the rows, use "
            f"{as_options('--id', names[:1])}.",
        )


def _is_counter(data: ExaminedData, j: int) -> bool:
    """Whether integers are sorted by row, or too dense to be all different by chance."""
    figures, n = data.figures, data.table.n_rows
    width = float(figures.high[j] - figures.low[j]) + 1.0
    if n * n / (2.0 * width) > 7.0:  # random integers all differ with probability e**-7
        return True
    steps = np.diff(data.table.column(j))
    return bool(np.all(steps > 0) or np.all(steps < 0))


def _few_rows(data: ExaminedData) -> Iterator[Finding]:
    n, d = data.prepared.n_rows, data.prepared.n_columns
    if not n or not d or n >= 5 * d:
        return
    severity: Severity = "warning" if n < d and not data.prepared.is_sparse else "notice"
    what = (
        "a plane can separate any labels"
        if n <= d
        else "much of what is learnt will be due to chance"
    )
    yield Finding(
        "few_rows",
        severity,
        f"There are {n:,} rows for {d:,} columns: {what}.",
        "Select columns, use a strong penalty (a small C), and judge by cross-validation only.",
        command_way_out="Leave columns out with --ignore, use a strong penalty (--learner "
        "linear-svm --param C=0.01), and judge by cross-validation only.",
    )


def _it(columns: object) -> str:
    return verb(columns, "it", "them")


def _short(name: ColumnName) -> str:
    return named([name]).removeprefix("Column ") if isinstance(name, str) else f"column {name}"


COLUMN_CHECKS = (
    _no_data,
    _duplicated_names,
    _unusable_columns,
    _dates,
    _infinite,
    label_findings,
    _missing,
    _empty_and_constant,
    _huge,
    _ids,
    _unscaled,
    _few_rows,
)
