"""The meaning of the text of a cell: a number, a date, or missing.

Only the texts in MISSING are missing. Numbers are plain decimal numbers: not "inf", "0x1F",
"1_000", " 1 " or digits of other scripts. "007" is a code: as a number it would lose its zeros.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = [
    "MISSING",
    "ReadDates",
    "are_texts",
    "is_code",
    "is_number_column",
    "number_in",
    "read_dates",
    "shown",
]

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CODE = re.compile(r"[+-]?0[0-9]")
_MOSTLY = 0.9
_FEW_WORDS = 3
_FEW_LABELS, _REPEATED = 20, 5
_WORDS, _MANY_TEXTS, _SAMPLE = 3.0, 0.3, 1000  # when labels are texts


def number_in(text: str) -> float | None:
    """The text as a finite number, or None."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def is_code(text: str) -> bool:
    """Whether a number begins with a zero that it would lose as a number."""
    return _CODE.match(text) is not None


def is_number_column(n_numbers: int, n_values: int, others: Sequence[int]) -> bool:
    """Whether a column in which some cells are not numbers is meant to be a column of numbers.

    It is, if nearly all cells are numbers, or if most are and the others are one of few words. It
    is not, if there are few different values that all occur often, such as "2", "3", "4" and
    "5 or more" doors.

    n_numbers    cells that are numbers
    n_values     different values among them
    others       for each other value, the number of its cells
    """
    present = n_numbers + sum(others)
    if not n_numbers or not others:
        return bool(n_numbers)
    if n_values + len(others) <= _FEW_LABELS and min(others) >= _REPEATED:
        return False
    return n_numbers >= _MOSTLY * present or (2 * n_numbers > present and len(others) <= _FEW_WORDS)


def shown(text: object, most: int = 40) -> str:
    """A value for an error message: shortened, and with control characters escaped."""
    text = repr(str(text))
    return text if len(text) <= most else f"{text[: most - 4]}...{text[-1]}"


# -- dates --

_TIME = r"(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|[+-]\d\d:?\d\d)?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/])(\d\d?)\2(\d\d?){_TIME}", re.ASCII)
_YEAR_LAST = re.compile(rf"(\d\d?)([./-])(\d\d?)\2(\d{{4}}){_TIME}", re.ASCII)


@dataclass(frozen=True)
class ReadDates:
    """The dates of some texts.

    values          datetime64[us] for each text; None if they are ambiguous
    day_first       whether the day is written before the month; None if the year comes first
    is_ambiguous    whether they are dates in which day and month cannot be distinguished
    """

    values: np.ndarray | None
    day_first: bool | None = None
    is_ambiguous: bool = False


def read_dates(texts: Sequence[str], day_first: bool | None = None) -> ReadDates | None:
    """Dates and times, if all texts are: 2024-02-29, 2024-02-29T12:30, 29.2.2024, 29/2/2024.

    Dates such as 3/4/2024 need another date with a day above 12, or `day_first`. Times with an
    offset become UTC; if some have an offset and some have none, the texts are not dates.
    """
    if not texts:
        return None
    if _YEAR_FIRST.fullmatch(texts[0]) is not None:
        found = [_YEAR_FIRST.fullmatch(text) for text in texts]
        if any(match is None for match in found):
            return None
        parts = [match.group(1, 3, 4, 5, 6) for match in found if match is not None]
        values = _dates_of(parts)
        return None if values is None else ReadDates(values)
    found = [_YEAR_LAST.fullmatch(text) for text in texts]
    if any(match is None for match in found):
        return None
    matches = [match for match in found if match is not None]
    if len({match.group(2) for match in matches}) > 1:
        return None
    is_dotted = matches[0].group(2) == "."
    order = True if is_dotted else _day_first(matches, day_first)
    if order is None:
        return ReadDates(None, is_ambiguous=True)
    places = (4, 3, 1, 5, 6) if order else (4, 1, 3, 5, 6)
    values = _dates_of([match.group(*places) for match in matches])
    return None if values is None else ReadDates(values, day_first=order)


def _day_first(matches: Iterable[re.Match[str]], known: bool | None) -> bool | None:
    first = second = 0
    for match in matches:
        first, second = max(first, int(match.group(1))), max(second, int(match.group(3)))
    if first > 12 or second > 12:
        return first > 12
    return known


def are_texts(labels: Sequence[str], n_labels: int, n_cells: int) -> bool:
    """Whether a column with `n_labels` different labels contains texts of several words.

    `labels` are some or all of the labels.
    """
    if n_labels <= _FEW_LABELS or n_labels < _MANY_TEXTS * n_cells or not len(labels):
        return False
    sample = labels[:: max(1, len(labels) // _SAMPLE)]
    return sum(len(label.split()) for label in sample) >= _WORDS * len(sample)


def _dates_of(parts: Iterable[tuple[str, ...]]) -> np.ndarray | None:
    """Dates from year, month, day, time and offset; None if one does not exist."""
    written, offsets = [], []
    for year, month, day, time, offset in parts:
        written.append(f"{year}-{month:0>2}-{day:0>2}T{time or '00:00'}")
        offsets.append(offset)
    if any(offsets) and not all(offsets):
        return None
    try:
        values = np.array(written, dtype="datetime64[us]")
    except ValueError:
        return None
    if any(offset != "Z" for offset in offsets if offset):
        shifts = [_minutes(offset) for offset in offsets]
        values = values - np.array(shifts, dtype="timedelta64[m]")
    return np.asarray(values)


def _minutes(offset: str) -> int:
    if offset == "Z":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    return (-1 if offset[0] == "-" else 1) * (60 * hours + minutes)
