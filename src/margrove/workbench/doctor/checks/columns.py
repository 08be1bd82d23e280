"""What can be wrong with columns, whatever is to be predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from margrove._data import ColumnName
from margrove.workbench.doctor.checks.labels import label_findings
from margrove.workbench.doctor.examined_data import Patient
from margrove.workbench.doctor.findings import Finding, Severity, as_options, named, share, verb

__all__ = ["COLUMN_CHECKS"]

_NEARLY = 0.995  # of the rows have the same value
_FEWEST_ROWS = 20  # of which anything can be said by counting
_SPREAD = 10.0  # times the spread of another column: no notice of less
_LARGE_SPREAD = 100.0
_SQUARE_OVERFLOWS = 1e150
_MOST_MISSING = 0.5
_LEFT_OUT = "The commands do that by themselves."


def _no_data(patient: Patient) -> Iterator[Finding]:
    table = patient.table
    if table.n_rows and table.n_columns:
        return
    what = "no rows" if not table.n_rows else "no columns"
    yield Finding(
        "no_data",
        "critical",
        f"The table has {what}: its shape is ({table.n_rows}, {table.n_columns}).",
        "Look at how it was read or filtered.",
    )


def _duplicated_names(patient: Patient) -> Iterator[Finding]:
    names = patient.table.names
    seen: dict[ColumnName, int] = defaultdict(int)
    for name in names:
        seen[name] += 1
    twice = [name for name, count in seen.items() if count > 1]
    if twice:
        yield Finding(
            "duplicated_names",
            "critical",
            f"{named(twice)}: more than one column has this name.",
            "Rename or drop them, since columns are matched by name.",
            tuple(twice),
        )


def _unusable_columns(patient: Patient) -> Iterator[Finding]:
    table = patient.table
    for j in np.flatnonzero(table.of_kind("unusable")).tolist():
        yield Finding(
            "unusable_column",
            "critical",
            f"{named(patient.names([j]))} holds {table.notes.get(j, 'objects')}.",
            "Make numbers or labels of them, in columns of their own, or drop the column.",
            patient.names([j]),
        )
    for j in np.flatnonzero(table.of_kind("mixed")).tolist():
        yield Finding(
            "mixed_types",
            "warning",
            f"{named(patient.names([j]))} mixes types: {table.notes[j]}.",
            "Convert it to one type, for example with astype(str) or pandas.to_numeric.",
            patient.names([j]),
            command_way_out="Give it one type, for example with "
            f"{as_options('--type', patient.names([j]), '=category')}.",
        )


def _dates(patient: Patient) -> Iterator[Finding]:
    columns = np.flatnonzero(patient.prepared.of_kind("date"))
    if len(columns):
        names = patient.prepared_names(columns)
        yield Finding(
            "dates",
            "critical" if patient.needs.who else "warning",
            f"{named(names)} {verb(columns, 'holds', 'hold')} dates or durations, which "
            "estimators refuse.",
            "Turn them into numbers that mean something: days since a date, month, weekday.",
            names,
            command_way_out="The commands do that by themselves: year, month, day, weekday, hour "
            "and the days since 1970 become columns, as far as they differ.",
            is_prepared=True,
        )


def _empty_and_constant(patient: Patient) -> Iterator[Finding]:
    table, figures = patient.table, patient.figures
    n = table.n_rows
    if n == 0:
        return
    usable = ~table.of_kind("unusable")
    empty = np.flatnonzero(usable & (figures.missing == n))
    if len(empty):
        yield Finding(
            "empty_column",
            "warning",
            f"{named(patient.names(empty))} {verb(empty, 'has', 'have')} no value in any row.",
            "Drop " + _it(empty) + ".",
            patient.names(empty),
            command_way_out=_LEFT_OUT,
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
            f"{named(patient.names(complete))} {verb(complete, 'has', 'have')} the same value "
            f"in all {n:,} rows.",
            f"Drop {_it(complete)}: nothing can be learnt from a constant.",
            patient.names(complete),
            command_way_out=_LEFT_OUT,
            is_prepared=True,
        )
    yield from _nearly_constant(patient, usable & ~(is_constant & (figures.missing == 0)))


def _nearly_constant(patient: Patient, others: np.ndarray) -> Iterator[Finding]:
    figures, n = patient.figures, patient.table.n_rows
    if n < _FEWEST_ROWS or patient.table.is_sparse:  # sparse columns are zero nearly everywhere
        return
    there = n - figures.missing
    same = others & (there >= _FEWEST_ROWS) & (figures.commonest >= _NEARLY * there)
    same &= figures.distinct > 1
    columns = np.flatnonzero(same)
    if len(columns):
        worst = int(columns[np.argmax((figures.commonest / np.maximum(there, 1))[columns])])
        deviating = int(there[worst] - figures.commonest[worst])
        yield Finding(
            "nearly_constant_column",
            "notice",
            f"{named(patient.names(columns))} {verb(columns, 'has', 'have')} the same value in "
            f"more than {share(_NEARLY, 1)} of the rows; {_short(patient.table.names[worst])} has "
            f"another one in {deviating:,} of {int(there[worst]):,}.",
            "Drop what is too rare to learn from, or see that each fold gets some of it.",
            patient.names(columns),
        )


def _unscaled(patient: Patient) -> Iterator[Finding]:
    """Spread of numbers; two values are a switch, whose spread says how often it is on."""
    table, figures, needs = patient.prepared, patient.prepared_figures, patient.needs
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
        matters = f"to {needs.who} the first outweighs the second"
    else:
        matters = "this matters to support vector machines and perceptrons, not to trees"
    yield Finding(
        "unscaled_columns",
        severity,
        f"The spread of columns differs by a factor of {ratio:,.3g}: the standard deviation of "
        f"{_short(table.names[wide])} is {figures.std[wide]:.3g}, that of "
        f"{_short(table.names[narrow])} is {figures.std[narrow]:.3g}; {matters}.",
        "Put a sklearn.preprocessing.StandardScaler before the estimator, in a pipeline.",
        patient.prepared_names(sorted({wide, narrow})),
        command_way_out="Nothing is to be done: the commands scale columns by themselves for the "
        "learners that need it.",
        is_prepared=True,
    )


def _missing(patient: Patient) -> Iterator[Finding]:
    table, figures, needs = patient.prepared, patient.prepared_figures, patient.needs
    n = table.n_rows
    some = (figures.missing > 0) & (figures.missing < n) & ~table.of_kind("unusable")
    if not some.any():
        return
    often = np.flatnonzero(some & (figures.missing > _MOST_MISSING * n))
    if needs.who and needs.no_gaps:
        yield _gaps(patient, np.flatnonzero(some), "critical", f"{needs.who} refuses them.")
        return
    seldom = np.flatnonzero(some & (figures.missing <= _MOST_MISSING * n))
    if len(often):
        yield _gaps(patient, often, "warning", "More is missing than there is.")
    if len(seldom):
        whom = (
            f"{needs.who} takes them as they are."
            if needs.who
            else "Trees, forests and histogram boosting take them as they are; support vector "
            "machines, perceptrons and exact gradient boosting refuse them."
        )
        yield _gaps(patient, seldom, "notice", whom)


def _gaps(patient: Patient, columns: np.ndarray, severity: Severity, remark: str) -> Finding:
    table, figures = patient.prepared, patient.prepared_figures
    n = table.n_rows
    worst = int(columns[np.argmax(figures.missing[columns])])
    rows = _rows_with_gaps(patient, columns)
    names = patient.prepared_names(columns)
    most = share(int(figures.missing[worst]), n)
    extent = f"{most} of the rows" if len(columns) == 1 else f"up to {most} of the rows"
    concerned = "" if len(columns) == 1 else f", {len(rows):,} of {n:,} rows in all"
    return Finding(
        "missing_values",
        severity,
        f"{named(names)} {verb(columns, 'lacks', 'lack')} values in {extent}{concerned}. {remark}",
        "Fill them with sklearn.impute.SimpleImputer inside a pipeline"
        + (", or drop the column." if severity == "warning" else ", or use a learner of trees."),
        names,
        patient.row_numbers(rows) if len(rows) and table.n_rows == len(patient.rows) else (),
        command_way_out="The commands fill them by themselves for the learners that need it, and "
        "keep where they were"
        + (
            f"; if so few values tell nothing, leave it out: {as_options('--ignore', names)}."
            if severity == "warning"
            else "."
        ),
        is_prepared=severity != "warning",
    )


def _rows_with_gaps(patient: Patient, columns: np.ndarray) -> np.ndarray:
    table = patient.prepared
    if table.is_sparse:
        entries = table.X.tocoo()
        return np.unique(entries.row[np.isnan(entries.data) & np.isin(entries.col, columns)])
    return np.flatnonzero(np.isnan(table.X[:, columns]).any(axis=1))


def _infinite(patient: Patient) -> Iterator[Finding]:
    figures = patient.prepared_figures
    columns = np.flatnonzero(figures.infinite)
    if len(columns):
        names = patient.prepared_names(columns)
        total = int(figures.infinite[columns].sum())
        yield Finding(
            "infinite_values",
            "critical",
            f"{named(names)} {verb(columns, 'holds', 'hold')} infinity, in {total:,} "
            f"cell{'s' if total > 1 else ''}; every estimator refuses that.",
            "Find out where it comes from (a division by zero, a logarithm of zero) and replace "
            "it by a missing value or a bound.",
            names,
        )


def _huge(patient: Patient) -> Iterator[Finding]:
    table, figures = patient.prepared, patient.prepared_figures
    with np.errstate(invalid="ignore"):
        largest = np.fmax(np.abs(figures.low), np.abs(figures.high))
    is_number = table.of_kind("number")
    overflowing = np.flatnonzero(is_number & (largest > _SQUARE_OVERFLOWS))
    if len(overflowing):
        names = patient.prepared_names(overflowing)
        yield Finding(
            "huge_values",
            "warning",
            f"{named(names)} {verb(overflowing, 'reaches', 'reach')} "
            f"{largest[overflowing].max():.3g}, whose square is beyond floating point.",
            "Divide by a unit that fits, take the logarithm, or look for a wrong value.",
            names,
        )
    inexact = [j for j, note in table.notes.items() if "2**53" in note]
    if inexact:
        names = patient.prepared_names(inexact)
        yield Finding(
            "huge_values",
            "warning",
            f"{named(names)} {verb(inexact, 'holds', 'hold')} integers beyond 2**53, which "
            "floating point cannot tell apart.",
            "Subtract an offset, or store them as text if they are names rather than numbers.",
            names,
        )


def _ids(patient: Patient) -> Iterator[Finding]:
    table, figures = patient.table, patient.figures
    n = table.n_rows
    if n < _FEWEST_ROWS or table.is_sparse:
        return
    all_differ = (figures.distinct == n) & (figures.missing + figures.infinite == 0)
    is_label = table.of_kind("label")
    found = np.flatnonzero(all_differ & is_label).tolist()
    whole = all_differ & figures.is_whole & table.of_kind("number")
    for j in np.flatnonzero(whole).tolist():
        if _is_counter(patient, j):
            found.append(j)
    if found:
        found.sort()
        names = patient.names(found)
        yield Finding(
            "id_column",
            "warning",
            f"{named(names)} {verb(found, 'has', 'have')} another value in each of the {n:,} "
            f"rows, as {'a name or number' if len(found) == 1 else 'names or numbers'} of rows "
            "would.",
            f"Drop {_it(found)}: it is learnt by heart and says nothing about new rows. If it is "
            "text, make features of it.",
            names,
            command_way_out=f"Leave {_it(found)} out: {as_options('--ignore', names)}; or, if "
            f"{'it names' if len(found) == 1 else 'one names'} the rows, say so: "
            f"{as_options('--id', names[:1])}.",
        )


def _is_counter(patient: Patient, j: int) -> bool:
    """Integers that ascend with the rows, or are too dense to differ by chance."""
    figures, n = patient.figures, patient.table.n_rows
    room = float(figures.high[j] - figures.low[j]) + 1.0
    if n * n / (2.0 * room) > 7.0:  # by chance with probability e**-7
        return True
    steps = np.diff(patient.table.column(j))
    return bool(np.all(steps > 0) or np.all(steps < 0))


def _few_rows(patient: Patient) -> Iterator[Finding]:
    n, d = patient.prepared.n_rows, patient.prepared.n_columns
    if not n or not d or n >= 5 * d:
        return
    severity: Severity = "warning" if n < d and not patient.prepared.is_sparse else "notice"
    what = (
        "a plane can separate any labels whatever"
        if n <= d
        else "much of what is learnt will be chance"
    )
    yield Finding(
        "few_rows",
        severity,
        f"There are {n:,} rows for {d:,} columns: {what}.",
        "Choose columns, use a strong penalty (a small C), and judge by cross-validation only.",
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
