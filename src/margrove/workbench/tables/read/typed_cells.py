"""Columns of text, as CSV files have them, as numbers, dates or text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.errors import of_another_type
from margrove.workbench.tables.read.cell_texts import (
    MISSING,
    ReadDates,
    is_number_column,
    read_dates,
    shown,
)

__all__ = ["TypedFrame", "typed_frame"]

_BATCH = 16  # columns: their numbers and texts are in memory at the same time
_SAMPLE = 100  # cells that are checked first
_DECIMAL_COMMA = r"^[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?$"
_THOUSANDS_COMMA = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+$"


@dataclass(frozen=True)
class TypedFrame:
    """A polars.DataFrame, and notes about what was decided."""

    frame: Any
    notes: tuple[str, ...]


def typed_frame(
    frame: Any, types: Mapping[str, str], name: str, place_of: Callable[[int], str]
) -> TypedFrame:
    """The columns of a frame of strings with the types of their cells.

    `types` are the types that were given; `place_of` names a row in errors.
    """
    import polars as pl

    reader = _CellReader(types, name, place_of)
    columns: list[Any] = []
    for start in range(0, frame.width, _BATCH):
        texts = frame[:, start : start + _BATCH]
        texts = texts.with_columns(reader.unpadded(column) for column in texts)
        numbers = texts.select(pl.all().cast(pl.Float64, strict=False))
        columns.extend(
            reader.typed(column, numbers[column.name]) for column in texts.iter_columns()
        )
    return TypedFrame(pl.DataFrame(columns), reader.all_notes())


class _CellReader:
    """Reads columns one after another, and collects notes about them."""

    def __init__(self, types: Mapping[str, str], name: str, place_of: Callable[[int], str]) -> None:
        self.types, self.name, self.place_of = types, name, place_of
        self.padded: list[str] = []
        self.with_comma: list[str] = []
        self.day_first: dict[bool, list[str]] = {True: [], False: []}
        self.ambiguous: list[str] = []

    def all_notes(self) -> tuple[str, ...]:
        """All notes, one for each decision."""
        decisions = [
            ("spaces before the cells were removed in", self.padded),
            ("a comma is the decimal point in", self.with_comma),
            ("dates are day, month, year in", self.day_first[True]),
            ("dates are month, day, year in", self.day_first[False]),
            ("dates stay text, because day and month are ambiguous, in", self.ambiguous),
        ]
        return tuple(f"{what} {_listed(columns)}" for what, columns in decisions if columns)

    def unpadded(self, column: Any) -> Any:
        """A column without the space that some files have after each delimiter."""
        import polars as pl

        sample = column.drop_nulls().head(_SAMPLE)
        if not len(sample) or not sample.str.starts_with(" ").all():
            return column
        if not column.drop_nulls().str.starts_with(" ").all():
            return column
        self.padded.append(column.name)
        stripped = column.str.strip_chars(" ")
        return (
            pl.select(pl.when(~stripped.is_in(list(MISSING))).then(stripped))
            .to_series()
            .alias(column.name)
        )

    def typed(self, texts: Any, numbers: Any) -> Any:
        """The column with its type; `numbers` are its cells as numbers, null if they are none."""
        wanted = self.types.get(texts.name)
        if wanted in ("category", "text", "ignored"):
            return texts
        if wanted != "date" and texts.null_count() < len(texts):
            read = self._as_numbers(texts, numbers, wanted)
            if read is not None:
                return read
        return self._as_dates(texts, wanted) if wanted != "number" else numbers

    # -- numbers --

    def _as_numbers(self, texts: Any, numbers: Any, wanted: str | None) -> Any | None:
        is_number = numbers.is_finite().fill_null(False)
        n_numbers = int(is_number.sum())
        n_present = len(texts) - texts.null_count()
        if n_numbers == n_present:
            if wanted is None and _has_codes(texts):
                return None
            return _integers_or(texts, numbers)
        others = texts.filter(~is_number & texts.is_not_null())
        with_comma = self._with_decimal_comma(texts, others, wanted)
        if with_comma is not None:
            return with_comma
        if wanted != "number":
            counts = others.value_counts()["count"].to_list()
            n_values = numbers.filter(is_number).n_unique()
            if not is_number_column(n_numbers, n_values, counts):
                return None
        row = int((~is_number & texts.is_not_null()).arg_max() or 0)
        self._refuse_cell(texts.name, row, texts[row], len(others))
        return None

    def _refuse_cell(self, column: str, row: int, cell: str, n_others: int) -> None:
        more = f" ({n_others - 1} more like it)" if n_others > 1 else ""
        raise of_another_type(
            f"{self.name}: {self.place_of(row)}, column {shown(column)}, is {shown(cell)}{more}, "
            "which is not a number, but the column contains numbers.",
            column,
            "Correct it, leave the cell empty if it is missing, or give the column another type:",
        )

    def _with_decimal_comma(self, texts: Any, others: Any, wanted: str | None) -> Any | None:
        """The cells as numbers with a decimal comma, if all are finite ones."""
        import polars as pl

        if not others.head(_SAMPLE).str.contains(_DECIMAL_COMMA).all():
            return None
        if not texts.drop_nulls().str.contains(_DECIMAL_COMMA).all():
            return None
        if wanted is None and _has_codes(texts):
            return None
        if others.str.contains(_THOUSANDS_COMMA).all():
            row = int(texts.str.contains(",", literal=True).fill_null(False).arg_max() or 0)
            raise InvalidDataError(
                f"{self.name}: {self.place_of(row)}, column {shown(texts.name)}, is "
                f"{shown(texts[row])}, where the comma may separate thousands or be the decimal "
                "point. Write the numbers without it, or with a point."
            )
        numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64)
        if not numbers.is_finite().all():  # 1E310 has no comma and overflows
            return None
        self.with_comma.append(texts.name)
        return numbers

    # -- dates --

    def _as_dates(self, texts: Any, wanted: str | None) -> Any:
        import polars as pl

        sample = texts.drop_nulls().head(_SAMPLE).unique().to_list()
        if wanted is None and read_dates(sample) is None:
            return texts
        different = texts.drop_nulls().unique()
        found = read_dates(different.to_list())
        if found is None:
            if wanted == "date" and len(different):
                self._refuse_dates(texts)
            return texts
        if found.values is None or found.day_first is not None:
            # they stay texts: the preparation has to store the order of day and month
            self._note_order(texts.name, found, different[0])
            return texts
        codes = texts.cast(pl.Enum(different)).to_physical().cast(pl.Int64).fill_null(-1)
        values = np.append(found.values, np.datetime64("NaT"))[codes.to_numpy()]
        dates = pl.Series(texts.name, values, nan_to_null=True)
        is_midnight = np.all(found.values.astype("datetime64[D]") == found.values)
        return dates.cast(pl.Date) if is_midnight else dates

    def _note_order(self, column: str, found: ReadDates, example: str) -> None:
        if found.day_first is None:
            self.ambiguous.append(column)
        elif "." not in example:
            self.day_first[found.day_first].append(column)

    def _refuse_dates(self, texts: Any) -> None:
        for row, cell in enumerate(texts.to_list()):
            if cell is not None and read_dates([cell]) is None:
                raise InvalidDataError(
                    f"{self.name}: {self.place_of(row)}, column {shown(texts.name)}, is "
                    f"{shown(cell)}, which cannot be read as a date. Write dates as 2024-02-29 or "
                    "2024-02-29 12:30:00."
                )


def _listed(columns: list[str], most: int = 5) -> str:
    named = ", ".join(shown(column) for column in columns[:most])
    return named if len(columns) <= most else f"{named} and {len(columns) - most} more columns"


def _has_codes(texts: Any) -> bool:
    """Whether some cells are codes such as 007."""
    zeros = texts.filter(texts.str.starts_with("0") & (texts.str.len_bytes() > 1))
    return bool(zeros.str.contains(r"^0[0-9]").any())


def _integers_or(texts: Any, numbers: Any) -> Any:
    """The cells as 64-bit integers if all are written so, otherwise `numbers`."""
    import polars as pl

    first = texts.drop_nulls().head(_SAMPLE)
    if first.str.contains("[.eE]").any():
        return numbers
    integers = texts.cast(pl.Int64, strict=False)
    return integers if integers.null_count() == texts.null_count() else numbers
