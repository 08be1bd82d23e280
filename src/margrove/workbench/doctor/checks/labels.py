"""What can be wrong with columns of labels."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from margrove._data import CATEGORY
from margrove.workbench.doctor.examined_data import Patient
from margrove.workbench.doctor.findings import Finding, as_options, named, verb

__all__ = ["label_findings"]

_FEWEST_ROWS = 20  # of which anything can be said by counting
_MANY_LABELS = 50
_LABELS_TOLD_APART = 100  # by `TablePreparation`, by default
_CODES_OF_BOOSTING = 255
_RARE = 5  # rows
_TEXT = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?"
)
_GAPS = {"", "na", "n/a", "nan", "null", "none", "?", "-", "--", "missing", "unknown", "#n/a"}


def label_findings(patient: Patient) -> Iterator[Finding]:
    """Of all columns of labels."""
    prepared, needs = patient.prepared, patient.needs
    columns = np.flatnonzero(prepared.of_kind("label", "mixed"))
    if needs.only_numbers and len(columns):
        names = patient.prepared_names(columns)
        yield Finding(
            "text_columns",
            "critical",
            f"{named(names)} {verb(columns, 'holds', 'hold')} labels, and {needs.who} takes "
            "numbers.",
            "Put a sklearn.preprocessing.OneHotEncoder before it, or use a learner of trees, "
            "which takes labels as they are.",
            names,
            command_way_out="The commands do that by themselves.",
            is_prepared=True,
        )
    numbers, dates = [], []
    for j in np.flatnonzero(patient.table.of_kind("label")).tolist():
        what = _what_text_is(_known_labels(patient, j))
        if what == "numbers" and patient.table.notes.get(j) != CATEGORY:
            numbers.append(j)
        elif what == "dates":
            dates.append(j)
        yield from _label_column(patient, j, is_category=j not in numbers + dates)
    yield from _stored_as_text(patient, numbers, dates)


def _known_labels(patient: Patient, j: int) -> list[str]:
    labels = [_as_text(label) for label in patient.table.labels.get(j, ())]
    return [label for label in labels if label.strip().lower() not in _GAPS]


def _stored_as_text(patient: Patient, numbers: list[int], dates: list[int]) -> Iterator[Finding]:
    if numbers:
        names = patient.names(numbers)
        yield Finding(
            "numbers_as_text",
            "warning",
            f"{named(names)} {verb(numbers, 'holds', 'hold')} numbers that are stored as text, "
            f"such as {_known_labels(patient, numbers[0])[0]!r}: they count as labels without an "
            "order.",
            "Convert to numbers, for example with pandas.to_numeric or polars' cast; if they are "
            "labels indeed, make the column a category.",
            names,
            command_way_out="If they are amounts, say "
            f"{as_options('--type', names, '=number')}; labels they are already.",
        )
    if dates:
        names = patient.names(dates)
        yield Finding(
            "dates",
            "warning",
            f"{named(names)} {verb(dates, 'holds', 'hold')} dates that are stored as text, such "
            f"as {_known_labels(patient, dates[0])[0]!r}.",
            "Turn them into numbers that mean something: days since a date, month, weekday.",
            names,
            command_way_out="Write them as year-month-day, such as 2024-02-29, which is read as a "
            "date.",
        )


def _label_column(patient: Patient, j: int, *, is_category: bool) -> Iterator[Finding]:
    name = patient.names([j])
    labels = [_as_text(label) for label in patient.table.labels.get(j, ())]
    values = patient.table.column(j)
    counts = np.bincount(values[~np.isnan(values)].astype(np.int64), minlength=len(labels))
    gaps = [label for label in labels if label.strip().lower() in _GAPS]
    if gaps:
        rows = sum(int(counts[labels.index(gap)]) for gap in set(gaps))
        yield Finding(
            "gaps_as_text",
            "warning",
            f"{named(name)} says {', '.join(map(repr, gaps[:3]))} in {rows:,} rows, which seems "
            "to mean that a value is missing.",
            "Replace it by a missing value, for example with na_values= where the table is read.",
            name,
            command_way_out="Leave these cells empty, or write NA: that is read as missing.",
        )
    if is_category:
        yield from _categories(patient, j, _known_labels(patient, j), counts[counts > 0])


def _as_text(label: object) -> str:
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)


def _what_text_is(labels: list[str]) -> str:
    if not labels:
        return "nothing"
    if all(_DATE.fullmatch(label.strip()) for label in labels):
        return "dates"
    if all(_TEXT.fullmatch(label.strip()) for label in labels):
        return "numbers"
    return "words"


def _categories(
    patient: Patient, j: int, labels: list[str], counts: np.ndarray
) -> Iterator[Finding]:
    name = patient.names([j])
    n, distinct = int(counts.sum()), len(counts)
    similar: dict[str, list[str]] = defaultdict(list)
    for label in labels:
        similar[" ".join(label.lower().split())].append(label)
    alike = [group for group in similar.values() if len(group) > 1]
    if alike:
        yield Finding(
            "similar_categories",
            "warning",
            f"{named(name)} has labels that differ in case or spaces only, such as "
            f"{alike[0][0]!r} and {alike[0][1]!r}.",
            "Write them alike, for example with str.strip and str.lower.",
            name,
            command_way_out="Write them alike in the file.",
        )
    if distinct == n and n >= _FEWEST_ROWS:
        return  # names of the rows, which another check tells
    rare = int((counts < _RARE).sum())
    if distinct > _MANY_LABELS:
        is_too_many = distinct > _CODES_OF_BOOSTING
        beyond = f", more than the {_CODES_OF_BOOSTING} that histogram boosting tells apart"
        yield Finding(
            "many_categories",
            "warning" if is_too_many else "notice",
            f"{named(name)} has {distinct:,} labels{beyond if is_too_many else ''}, {rare:,} of "
            f"them in fewer than {_RARE} rows; one-hot encoding makes a column of each.",
            "Join the rare ones, group them by meaning, or use a sklearn TargetEncoder.",
            name,
            command_way_out=f"The commands tell the {_LABELS_TOLD_APART} commonest apart and join "
            "all others by themselves. Group them by meaning, or leave the column out: "
            f"{as_options('--ignore', name)}.",
            is_prepared=True,
        )
    elif n >= 10 * _RARE and rare >= max(2, 0.2 * distinct):
        yield Finding(
            "rare_categories",
            "notice",
            f"{named(name)}: {rare:,} of its {distinct:,} labels are in fewer than {_RARE} rows "
            "each.",
            "Join them into one, for example with OneHotEncoder(min_frequency=...).",
            name,
            command_way_out="Join them into one in the file, if they belong together.",
        )
