"""describe_columns: the type of each column of a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import Cells, DateCells, LabelCells, NumberCells
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.prepare.cell_changes import (
    as_dates,
    as_labels,
    as_numbers,
    dates_in,
    numbers_in,
)
from margrove.workbench.tables.prepare.table_columns import frame_columns, label_text
from margrove.workbench.tables.read import are_texts, check_types, shown

__all__ = ["Column", "TypedColumn", "describe_columns", "typed_columns"]

_ID_NAME = re.compile(
    r"(?:^|[\W_])(?:id|uuid|guid)$|[a-z]I[dD]$|^(?:index|row[\W_]?(?:number|num|no|id)?)$|^unnamed",
)
_MIN_IDS = 10
_NEARLY_ALL, _MANY_ROWS = 0.9, 50
_EXAMPLES, _SAMPLE = 3, 1000


@dataclass(frozen=True)
class Column:
    """The type of a column of a table, and its values.

    Attributes
    ----------
    name : str
    type : str
        "number", "category", "date" or "text"; "constant" if all cells are equal or missing, and
        "ignored" if nothing can be learnt from it, such as the numbers of the rows.
    reason : str
        The reason for the type, in words.
    n_missing, n_values : int
        Number of missing cells, and of different values.
    examples : tuple
        Some values.
    """

    name: str
    type: str
    reason: str
    n_missing: int
    n_values: int
    examples: tuple[Any, ...] = ()

    @property
    def is_used(self) -> bool:
        return self.type not in ("constant", "ignored")


@dataclass(frozen=True)
class TypedColumn:
    """A column, and its cells converted to its type."""

    column: Column
    cells: Cells


def describe_columns(frame: Any, types: Mapping[str, str] | None = None) -> tuple[Column, ...]:
    """Find the type of each column: numbers, categories, dates or text.

    - Numbers and booleans are numbers, even if they have few different values. A column of texts
      that are all numbers is a column of numbers, unless one begins with a zero, such as "007".
    - Texts of several words, many of them different, are text, which is read word by word; other
      texts are categories.
    - A column is ignored if every row has a different label, or if every row has a different whole
      number and the name of the column is that of an id: such values say nothing about other rows.

    Parameters
    ----------
    frame : dataframe or array of shape (n, d)
        A frame of polars, pandas, pyarrow or another library.
    types : dict or None, default=None
        Types of some columns by name, to override those that are found.

    Returns
    -------
    tuple of Column

    Examples
    --------
    >>> import polars as pl
    >>> from margrove.tables import describe_columns
    >>> frame = pl.DataFrame({"age": [39, 50, 38], "sex": ["m", "m", "f"], "year": [1994] * 3})
    >>> [(column.name, column.type) for column in describe_columns(frame)]
    [('age', 'number'), ('sex', 'category'), ('year', 'constant')]
    """
    return tuple(typed.column for typed in typed_columns(frame_columns(frame).cells, types))


def typed_columns(
    cells: tuple[Cells, ...], types: Mapping[str, str] | None = None
) -> tuple[TypedColumn, ...]:
    """All columns with their types, and with cells converted to these types."""
    given = check_types(types)
    names = {column.name for column in cells}
    for name in given:
        if name not in names:
            raise InvalidDataError(
                f"A type is given for {shown(name)}, but X has no such column. Its columns are "
                f"{', '.join(shown(column.name) for column in cells[:20])}"
                f"{' and more' if len(cells) > 20 else ''}."
            )
    return tuple(_typed(column, given.get(column.name)) for column in cells)


def _typed(cells: Cells, wanted: str | None) -> TypedColumn:
    cells = _as_wanted(cells, wanted)
    n_missing = int(np.count_nonzero(cells.is_missing))
    examples, n_values = _values(cells)
    kind, reason = _type_of(cells, n_values, n_missing)
    if wanted is not None and kind != "constant":
        kind, reason = wanted, "as it was given"
    return TypedColumn(Column(cells.name, kind, reason, n_missing, n_values, examples), cells)


def _as_wanted(cells: Cells, wanted: str | None) -> Cells:
    """Cells converted to the given type; without one, labels that are all numbers or dates.

    Numbers are never dates: the first day of a count of days is unknown.
    """
    if wanted == "number":
        return as_numbers(cells)
    if wanted == "date":
        return as_dates(cells)
    if wanted in ("category", "text"):
        return as_labels(cells)
    if wanted is not None or not isinstance(cells, LabelCells) or cells.is_category:
        return cells
    found = numbers_in(cells)
    return found if found is not None else dates_in(cells) or cells


def _values(cells: Cells) -> tuple[tuple[Any, ...], int]:
    """Some values, and the number of different values."""
    if isinstance(cells, LabelCells):
        return tuple(cells.labels[:_EXAMPLES]), len(cells.labels)
    present = cells.values[~cells.is_missing]
    first = list(dict.fromkeys(present[:_SAMPLE].tolist()))[:_EXAMPLES]
    if isinstance(cells, NumberCells) and cells.is_whole:
        first = [int(value) for value in first if np.isfinite(value)]
    return tuple(first), _n_different(present)


def _n_different(values: np.ndarray) -> int:
    """The number of different values; by hashing if polars is loaded, ten times as fast."""
    if "polars" in sys.modules and values.dtype == np.float64:
        import polars as pl

        return int(pl.Series(values).n_unique())
    return len(np.unique(values))


def _type_of(cells: Cells, n_values: int, n_missing: int) -> tuple[str, str]:
    if n_values == 0:
        return "constant", "all cells are missing"
    if n_values == 1 and n_missing == 0:
        return "constant", "all cells are equal"
    if isinstance(cells, DateCells):
        days = cells.values[~cells.is_missing].astype("datetime64[D]")
        return "date", f"dates from {days.min()} to {days.max()}"
    if isinstance(cells, NumberCells):
        return _type_of_numbers(cells, n_values, n_missing)
    return _type_of_labels(cells, n_values, n_missing)


def _type_of_numbers(cells: NumberCells, n_values: int, n_missing: int) -> tuple[str, str]:
    is_id = cells.is_whole and n_missing == 0 and n_values == len(cells) >= _MIN_IDS
    if is_id and _ID_NAME.search(cells.name if _is_camel(cells.name) else cells.name.lower()):
        return "ignored", "every row has a different number, and the name is that of an id"
    present = cells.values[~cells.is_missing]
    low, high = label_text(present.min()), label_text(present.max())
    return "number", f"numbers from {low} to {high}"


def _is_camel(name: str) -> bool:
    return re.search(r"[a-z]I[dD]$", name) is not None


def _type_of_labels(cells: LabelCells, n_values: int, n_missing: int) -> tuple[str, str]:
    n_present = len(cells) - n_missing
    share = n_values / n_present
    if cells.is_category:
        return "category", f"{n_values} labels of a categorical type"
    if are_texts(cells.labels, n_values, n_present):
        return "text", f"{n_values} different texts of several words"
    if n_values == n_present >= _MIN_IDS:
        return "ignored", "every row has a different label"
    if share > _NEARLY_ALL and n_present >= _MANY_ROWS:
        return "ignored", "nearly every row has a different label"
    return "category", f"{n_values} labels"
