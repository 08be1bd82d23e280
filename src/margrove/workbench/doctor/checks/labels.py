"""Checks of columns of labels."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from margrove._data import CATEGORY
from margrove.workbench.doctor.examined_data import ExaminedData
from margrove.workbench.doctor.findings import Finding, as_options, named, verb

__all__ = ["label_findings"]

_MIN_ROWS = 20  # in fewer rows, counts say little
_MANY_LABELS = 50
_KEPT_LABELS = 100  # by `TablePreparation`, by default
_CODES_OF_BOOSTING = 255
_RARE = 5  # rows
_TEXT = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?"
)
_GAPS = {"", "na", "n/a", "nan", "null", "none", "?", "-", "--", "missing", "unknown", "#n/a"}


def label_findings(data: ExaminedData) -> Iterator[Finding]:
    """The findings about all columns of labels."""
    prepared, needs = data.prepared, data.needs
    columns = np.flatnonzero(prepared.of_kind("label", "mixed"))
    if needs.only_numbers and len(columns):
        names = data.prepared_names(columns)
        yield Finding(
            "text_columns",
            "critical",
            f"{named(names)} {verb(columns, 'contains', 'contain')} labels, and {needs.who} needs "
            "numbers.",
            "Put a sklearn.preprocessing.OneHotEncoder before it, or use a learner with trees, "
            "which accepts labels.",
            names,
            command_way_out="The commands do this automatically.",
            is_prepared=True,
        )
    numbers, dates = [], []
    for j in np.flatnonzero(data.table.of_kind("label")).tolist():
        what = _what_text_is(_known_labels(data, j))
        if what == "numbers" and data.table.notes.get(j) != CATEGORY:
            numbers.append(j)
        elif what == "dates":
            dates.append(j)
        yield from _label_column(data, j, is_category=j not in numbers + dates)
    yield from _stored_as_text(data, numbers, dates)


def _known_labels(data: ExaminedData, j: int) -> list[str]:
    labels = [_as_text(label) for label in data.table.labels.get(j, ())]
    return [label for label in labels if label.strip().lower() not in _GAPS]


def _stored_as_text(data: ExaminedData, numbers: list[int], dates: list[int]) -> Iterator[Finding]:
    if numbers:
        names = data.names(numbers)
        yield Finding(
            "numbers_as_text",
            "warning",
            f"{named(names)} {verb(numbers, 'contains', 'contain')} numbers that are stored as "
            f"text, such as {_known_labels(data, numbers[0])[0]!r}: they count as labels without "
            "an order.",
            "Convert to numbers, for example with pandas.to_numeric or polars' cast; if they are "
            "labels, convert the column to a category.",
            names,
            command_way_out=f"If they are quantities, use {as_options('--type', names, '=number')};"
            " without it they are labels.",
        )
    if dates:
        names = data.names(dates)
        yield Finding(
            "dates",
            "warning",
            f"{named(names)} {verb(dates, 'contains', 'contain')} dates that are stored as text, "
            f"such as {_known_labels(data, dates[0])[0]!r}.",
            "Convert them to numbers: days since a date, month, weekday.",
            names,
            command_way_out="Write them as year-month-day, such as 2024-02-29, which is read as a "
            "date.",
        )


def _label_column(data: ExaminedData, j: int, *, is_category: bool) -> Iterator[Finding]:
    name = data.names([j])
    labels = [_as_text(label) for label in data.table.labels.get(j, ())]
    values = data.table.column(j)
    counts = np.bincount(values[~np.isnan(values)].astype(np.int64), minlength=len(labels))
    gaps = [label for label in labels if label.strip().lower() in _GAPS]
    if gaps:
        rows = sum(int(counts[labels.index(gap)]) for gap in set(gaps))
        yield Finding(
            "gaps_as_text",
            "warning",
            f"{named(name)} contains {', '.join(map(repr, gaps[:3]))} in {rows:,} rows, which "
            "seems to mean a missing value.",
            "Replace it by a missing value, for example with na_values= when the table is read.",
            name,
            command_way_out="Leave these cells empty, or write NA: that is read as missing.",
        )
    if is_category:
        yield from _categories(data, j, _known_labels(data, j), counts[counts > 0])


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
    data: ExaminedData, j: int, labels: list[str], counts: np.ndarray
) -> Iterator[Finding]:
    name = data.names([j])
    n, distinct = int(counts.sum()), len(counts)
    similar: dict[str, list[str]] = defaultdict(list)
    for label in labels:
        similar[" ".join(label.lower().split())].append(label)
    alike = [group for group in similar.values() if len(group) > 1]
    if alike:
        yield Finding(
            "similar_categories",
            "warning",
            f"{named(name)} has labels that differ only in case or spaces, such as "
            f"{alike[0][0]!r} and {alike[0][1]!r}.",
            "Give them one spelling, for example with str.strip and str.lower.",
            name,
            command_way_out="Give them one spelling in the file.",
        )
    if distinct == n and n >= _MIN_ROWS:
        return  # names of the rows, which another check reports
    rare = int((counts < _RARE).sum())
    if distinct > _MANY_LABELS:
        is_too_many = distinct > _CODES_OF_BOOSTING
        beyond = f", more than the {_CODES_OF_BOOSTING} that histogram boosting can distinguish"
        yield Finding(
            "many_categories",
            "warning" if is_too_many else "notice",
            f"{named(name)} has {distinct:,} labels{beyond if is_too_many else ''}, {rare:,} of "
            f"them in fewer than {_RARE} rows; one-hot encoding makes a column for each.",
            "Merge the rare ones, group them by meaning, or use a sklearn TargetEncoder.",
            name,
            command_way_out=f"The commands keep the {_KEPT_LABELS} most frequent labels and merge "
            "all others automatically. Group them by meaning, or leave the column out: "
            f"{as_options('--ignore', name)}.",
            is_prepared=True,
        )
    elif n >= 10 * _RARE and rare >= max(2, 0.2 * distinct):
        yield Finding(
            "rare_categories",
            "notice",
            f"{named(name)}: {rare:,} of its {distinct:,} labels are in fewer than {_RARE} rows "
            "each.",
            "Merge them, for example with OneHotEncoder(min_frequency=...).",
            name,
            command_way_out="Merge them in the file, if they belong together.",
        )
