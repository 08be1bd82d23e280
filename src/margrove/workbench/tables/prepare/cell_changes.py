"""Conversions of cells between types without loss, or an error that names the cell."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from margrove._data import Cells, DateCells, LabelCells, NumberCells
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.errors import of_another_type
from margrove.workbench.tables.prepare.table_columns import label_text
from margrove.workbench.tables.read import (
    MISSING,
    ReadDates,
    is_code,
    is_number_column,
    number_in,
    read_dates,
    shown,
)

__all__ = ["as_dates", "as_labels", "as_numbers", "dates_in", "numbers_in"]

_SAMPLE = 50


def as_labels(cells: Cells) -> LabelCells:
    """Cells of any type as labels."""
    if isinstance(cells, LabelCells):
        return cells
    missing = cells.is_missing
    found, codes = np.unique(cells.values, return_inverse=True)
    codes = np.where(missing, -1, codes.astype(np.int64))
    n_labels = int(codes.max(initial=-1)) + 1
    if isinstance(cells, DateCells):
        is_midnight = bool(np.all(found[:n_labels].astype("datetime64[D]") == found[:n_labels]))
        shortened = found[:n_labels].astype("datetime64[D]" if is_midnight else "datetime64[s]")
        return LabelCells(cells.name, codes, [str(date) for date in shortened])
    return LabelCells(cells.name, codes, list(map(label_text, found[:n_labels].tolist())))


def as_numbers(cells: Cells, then: str = "is a number") -> NumberCells:
    """Cells as numbers, or an error if one is not a number; `then` ends its sentence."""
    if isinstance(cells, NumberCells):
        return cells
    if isinstance(cells, DateCells):
        if not np.all(cells.is_missing):
            raise InvalidDataError(f"Column {shown(cells.name)} of X contains dates, but {then}.")
        return NumberCells(cells.name, np.full(len(cells), np.nan))
    numbers = np.empty(len(cells.labels) + 1)
    numbers[-1] = np.nan
    for k, label in enumerate(cells.labels):
        number = number_in(label)
        if number is None and label not in MISSING:
            _refuse(cells, k, then)
        numbers[k] = np.nan if number is None else number
    return NumberCells(cells.name, numbers[cells.codes])


def as_dates(cells: Cells, day_first: bool | None = None, then: str = "is a date") -> DateCells:
    """Cells as dates, or an error if one is not a date; `then` ends its sentence."""
    if isinstance(cells, DateCells):
        return cells
    if isinstance(cells, LabelCells) and cells.labels:
        found = _labels_as_dates(cells, day_first)
        if found is not None and found.is_ambiguous:
            raise InvalidDataError(
                f"Column {shown(cells.name)} of X contains dates such as {shown(cells.labels[0])}, "
                "in which day and month are ambiguous. Write them as 2024-02-29."
            )
        read = _date_cells(cells, found)
        if read is None:
            _refuse(cells, _first_other(cells, day_first), then)
        return read
    if isinstance(cells, NumberCells) and not np.all(cells.is_missing):
        raise InvalidDataError(f"Column {shown(cells.name)} of X contains numbers, but {then}.")
    return DateCells(cells.name, np.full(len(cells), _NOT_A_TIME))


_NOT_A_TIME = np.datetime64("NaT", "us")


def _labels_as_dates(cells: LabelCells, day_first: bool | None = None) -> ReadDates | None:
    """The labels as dates, if all of them are."""
    if read_dates(cells.labels[:_SAMPLE], day_first) is None:
        return None
    return read_dates(cells.labels, day_first)


def _first_other(cells: LabelCells, day_first: bool | None) -> int:
    """The index of the first label that is not a date."""
    for k, label in enumerate(cells.labels):
        if read_dates([label], day_first) is None:
            return k
    return 0


def _refuse(cells: LabelCells, label: int, then: str) -> NoReturn:
    raise InvalidDataError(_clash(cells, label, then))


def _clash(cells: LabelCells, label: int, then: str) -> str:
    return (
        f"Column {shown(cells.name)} of X contains {shown(cells.labels[label])} (first in row "
        f"{cells.row_of(label)}), but {then}."
    )


def numbers_in(cells: LabelCells) -> NumberCells | None:
    """Labels as numbers if all are numbers, None if few are, an error if nearly all are."""
    sample = cells.labels[:_SAMPLE]
    if not sample or not any(number_in(label) is not None for label in sample):
        return None
    numbers = [number_in(label) for label in cells.labels]
    others = [k for k, number in enumerate(numbers) if number is None]
    if not others:
        if any(is_code(label) for label in cells.labels):
            return None
        values: Any = np.array([*numbers, np.nan], dtype=np.float64)
        return NumberCells(cells.name, values[cells.codes])
    counts = np.bincount(cells.codes[cells.codes >= 0], minlength=len(numbers))
    with_others = counts[others].tolist()
    n_numbers = int(counts.sum()) - sum(with_others)
    if is_number_column(n_numbers, len(numbers) - len(others), with_others):
        raise of_another_type(
            _clash(cells, others[0], "nearly all others are numbers"),
            cells.name,
            "Correct it, make it missing, or give the column another type:",
        )
    return None


def dates_in(cells: LabelCells) -> DateCells | None:
    """Labels as dates, if all are dates."""
    return _date_cells(cells, _labels_as_dates(cells, None))


def _date_cells(cells: LabelCells, found: ReadDates | None) -> DateCells | None:
    if found is None or found.values is None:
        return None
    values = np.append(found.values, _NOT_A_TIME)[cells.codes]
    return DateCells(cells.name, values, found.day_first)
