"""The columns of any table for the preparation: numbers, dates, and labels as text.

Tables are frames of polars, pandas, pyarrow and other libraries that narwhals reads, and arrays.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from margrove._data import (
    EXACT_INTEGERS,
    Cells,
    LabelCells,
    NumberCells,
    UnreadableCells,
    check_table,
    collected,
    columns_of,
    feature_names,
    holds_text,
    is_frame,
    merge_labels,
    type_of_cell,
)
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.read import shown

__all__ = ["FrameColumns", "frame_columns", "label_text"]


@dataclass(frozen=True)
class FrameColumns:
    """All columns of a table; `feature_names` as in `feature_names_in_`, None without names."""

    cells: tuple[Cells, ...]
    feature_names: np.ndarray | None
    n_rows: int


def frame_columns(X: Any, estimator: Any = None) -> FrameColumns:
    """Read all columns of a table, with labels as text; errors name the column."""
    X = collected(X)
    if is_frame(X):
        names = feature_names(X)
        _require_cells(*X.shape)
        return FrameColumns(_with_texts(columns_of(X)), names, X.shape[0])
    if holds_text(X):
        cells = _with_texts(columns_of(X))
        return FrameColumns(cells, None, len(cells[0]))
    table = check_table(X, estimator, accept_sparse=False, allow_nan=True)
    is_whole = isinstance(X, np.ndarray) and X.dtype.kind in "iu"
    values = table.X.astype(np.float64, copy=False)
    numbers = tuple(NumberCells(f"x{j}", values[:, j], is_whole) for j in range(values.shape[1]))
    return FrameColumns(numbers, None, len(values))


def _require_cells(n_rows: int, n_columns: int) -> None:
    if not n_rows or not n_columns:
        raise InvalidDataError(
            f"Found array with {n_rows} sample(s) and {n_columns} feature(s) while a minimum of 1 "
            "is required: the table is empty."
        )


def _with_texts(columns: list[Cells | UnreadableCells]) -> tuple[Cells, ...]:
    return tuple(_with_text(cells) for cells in columns)


def _with_text(cells: Cells | UnreadableCells) -> Cells:
    """Labels as text: 1 and "1" are the same."""
    if isinstance(cells, UnreadableCells):
        _refuse(cells)
    if not isinstance(cells, LabelCells):
        return cells
    if all(type(label) is str for label in cells.labels):
        return cells
    for label in cells.labels:
        if isinstance(label, bytes) or type_of_cell(label) == "other":
            _refuse(UnreadableCells(cells.name, len(cells), type(label).__name__))
    return merge_labels(cells, [label_text(label) for label in cells.labels])


def _refuse(cells: UnreadableCells) -> NoReturn:
    if cells.by_column:
        raise InvalidDataError(
            f"Column {shown(cells.name)} of X contains values of type {cells.type_name}, which are "
            "neither numbers nor labels nor dates. Put its values into separate columns, or leave "
            "it out."
        )
    raise TypeError(
        f"argument must be a string or a real number: column {shown(cells.name)} of X contains a "
        f"{cells.type_name}."
    )


def label_text(value: Any) -> str:
    """A value as a label: a whole number without decimal point, a date in ISO 8601."""
    if isinstance(value, str):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        is_whole = number.is_integer() and abs(number) < EXACT_INTEGERS
        return str(int(number)) if is_whole else repr(number)
    if isinstance(value, (np.bool_, np.integer)):
        return str(value.item())
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)
