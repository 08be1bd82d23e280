"""task_of_table: the features and the target of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from margrove._data import DateCells, LabelCells, NumberCells, to_polars
from margrove.exceptions import InvalidDataError
from margrove.select.compare import task_of_targets
from margrove.workbench.tables.prepare import (
    Column,
    TypedColumn,
    as_numbers,
    frame_columns,
    typed_columns,
)
from margrove.workbench.tables.read import RawTable, check_types, shown

__all__ = ["Task", "target_values", "task_of_table"]

TaskKind = Literal["classification", "regression"]
_TASK_OF_TYPE: dict[str, TaskKind] = {"category": "classification", "number": "regression"}
_EXACT_INTEGERS = 2**53
_MIN_ROWS = 20


@dataclass(frozen=True)
class Task:
    """The features and the target of a table.

    Attributes
    ----------
    name : str
        Name of the table.
    kind : {"classification", "regression"}
    target : str
    id_column : str or None
    X : polars.DataFrame
        The features, as they were read.
    y : ndarray
        For classes, labels as text or whole numbers; for regression, float64.
    columns : tuple of Column
        The types of the features.
    ids : ndarray or None
        Values of the id column.
    notes : tuple of str
        What to know before trusting a model, such as rows that were left out.
    """

    name: str
    kind: TaskKind
    target: str
    id_column: str | None
    X: Any
    y: np.ndarray
    columns: tuple[Column, ...]
    ids: np.ndarray | None
    notes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The sorted labels; empty for regression."""
        return tuple(np.unique(self.y).tolist()) if self.kind == "classification" else ()

    @property
    def types(self) -> dict[str, str]:
        """The types of the features, for `table_model`: so all folds use the same types."""
        return {column.name: column.type for column in self.columns if column.type != "constant"}

    @property
    def summary(self) -> str:
        """One line: the number of rows, features by type, and the target."""
        counts: dict[str, int] = {}
        for column in self.columns:
            counts[column.type] = counts.get(column.type, 0) + 1
        features = ", ".join(f"{n} {kind}" for kind, n in counts.items())
        what = f"{len(self.classes)} classes" if self.classes else "a number"
        return f"{self.n_rows} rows; features: {features}; {self.target} is {what}"


def task_of_table(
    table: Any,
    target: str | None = None,
    *,
    task: str | None = None,
    types: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
    id_column: str | None = None,
) -> Task:
    """Split a table into features and target.

    Parameters
    ----------
    table : RawTable or dataframe
    target : str or None, default=None
        Name of the column to predict; None is the last one.
    task : {"classification", "regression"} or None, default=None
        None is classification if the target contains labels, or whole numbers with few different
        values.
    types : dict or None, default=None
        Types of columns by name; see `describe_columns`. A target of type "category" means
        classification, and one of type "number" regression.
    ignore : iterable of str, default=()
        Columns that are left out.
    id_column : str or None, default=None
        A column that names the rows. It is not a feature.

    Returns
    -------
    Task

    Raises
    ------
    InvalidDataError
        If the target does not exist, is missing or the same in all rows, or does not fit the task.

    Examples
    --------
    >>> import io
    >>> from margrove.tables import read_table, task_of_table
    >>> text = b"age,sex,class\\n" + b"39,m,no\\n50,f,yes\\n" * 2 + b"38,f,\\n"
    >>> table = read_table(io.BytesIO(text))
    >>> task = task_of_table(table)
    >>> task.kind, task.target, task.y.tolist(), task.X.columns
    ('classification', 'class', ['no', 'yes', 'no', 'yes'], ['age', 'sex'])
    >>> task.notes
    ("the target is 'class', the last column", "1 row without 'class' was left out")
    """
    _check_task(task)
    raw = table if isinstance(table, RawTable) else RawTable(to_polars(table), "the table")
    frame = raw.frame
    notes: list[str] = []
    left_out = [ignore] if isinstance(ignore, str) else list(ignore)
    _require(frame, [*left_out, *([id_column] if id_column is not None else [])], raw.name)
    if target is None:
        target = _last(frame, {*left_out, id_column}, raw.name)
        notes.append(f"the target is {shown(target)}, the last column")
    _require(frame, [target], raw.name)
    if target in (id_column, *left_out):
        raise InvalidDataError(f"{shown(target)} cannot be both the target and left out.")
    frame = _with_target(frame, target, raw.name, notes)
    given = check_types(types)
    _require(frame, given, raw.name)
    task = task or _TASK_OF_TYPE.get(given.get(target, ""))
    kind, y = target_values(frame[[target]], target, task, raw.name)
    ids = None if id_column is None else _ids(frame[id_column], notes)
    features = [name for name in frame.columns if name not in {target, id_column, *left_out}]
    if not features:
        raise InvalidDataError(f"{raw.name} has no column except the target, {shown(target)}.")
    X = frame[features]
    feature_types = {name: type_ for name, type_ in given.items() if name in features}
    described = typed_columns(frame_columns(X).cells, feature_types)
    notes += _notes_on_features(described, y, target)
    notes += _notes_on_target(kind, y, target)
    columns = tuple(typed.column for typed in described)
    return Task(raw.name, kind, target, id_column, X, y, columns, ids, tuple(notes))


def _check_task(task: Any) -> None:
    if task not in (None, "classification", "regression"):
        raise ValueError(
            f"task must be 'classification', 'regression' or None. Got {task!r} instead."
        )


def _require(frame: Any, columns: Iterable[str], name: str) -> None:
    for column in columns:
        if column not in frame.columns:
            present = ", ".join(map(shown, frame.columns[:20]))
            raise InvalidDataError(
                f"{name} has no column {shown(column)}. Its columns are {present}"
                f"{' and more' if frame.width > 20 else ''}."
            )


def _last(frame: Any, others: set[str | None], name: str) -> str:
    left = [column for column in frame.columns if column not in others]
    if not left:
        raise InvalidDataError(f"{name} has no column that could be the target.")
    return str(left[-1])


def _with_target(frame: Any, target: str, name: str, notes: list[str]) -> Any:
    """The rows that have a target; a note says how many were left out."""
    column = frame[target]
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= column.is_not_nan().fill_null(False)
    n_left_out = frame.height - int(known.sum())
    if n_left_out == frame.height:
        raise InvalidDataError(f"The target {shown(target)} of {name} is missing in all rows.")
    if not n_left_out:
        return frame
    rows = "row" if n_left_out == 1 else "rows"
    was = "was" if n_left_out == 1 else "were"
    notes.append(f"{n_left_out} {rows} without {shown(target)} {was} left out")
    return frame.filter(known)


def target_values(
    frame: Any, target: str, task: str | None, name: str
) -> tuple[TaskKind, np.ndarray]:
    """The task of a target column, and its values for learners.

    frame    a polars.DataFrame of this one column, without missing values
    task     the task if it is given; None is decided by the values
    name     name of the table, for error messages
    """
    import polars as pl

    where = f"The target {shown(target)} of {name}"
    if frame[target].n_unique() < 2:
        raise InvalidDataError(
            f"{where} is {shown(frame[target][0])} in all rows: there is nothing to predict."
        )
    if task == "regression":
        return "regression", _finite(
            as_numbers(_cells(frame), "is to be predicted as a number"), where
        )
    if frame[target].dtype == pl.Boolean:
        return "classification", frame[target].to_numpy()
    cells = _cells(frame)
    if isinstance(cells, DateCells):
        raise InvalidDataError(
            f"{where} contains dates. Predict a number instead, such as the days since a date."
        )
    if isinstance(cells, NumberCells):
        values = _finite(cells, where)
        if (task or task_of_targets(values)) == "classification":
            return "classification", _labels_of_numbers(values)
        return "regression", values
    if len(cells) >= _MIN_ROWS and 2 * len(cells.labels) > len(cells):
        raise InvalidDataError(
            f"{where} has a different text in most rows, such as {shown(cells.labels[0])}: nothing "
            "can be learnt. Name another column as the target."
        )
    return "classification", np.array(cells.labels)[cells.codes]


def _cells(frame: Any) -> NumberCells | LabelCells | DateCells:
    return frame_columns(frame).cells[0]


def _finite(cells: NumberCells, where: str) -> np.ndarray:
    if np.isinf(cells.values).any():
        row = int(np.argmax(np.isinf(cells.values)))
        raise InvalidDataError(f"{where} is infinite in row {row}. Replace it, or make it missing.")
    return np.asarray(cells.values)


def _labels_of_numbers(values: np.ndarray) -> np.ndarray:
    """Class labels: whole numbers as integers, other numbers as text."""
    if np.all(values == np.floor(values)) and np.all(np.abs(values) < _EXACT_INTEGERS):
        return values.astype(np.int64)
    return np.array([repr(value) for value in values.tolist()])


def _ids(column: Any, notes: list[str]) -> np.ndarray:
    n_different = column.n_unique()
    if n_different < len(column):
        notes.append(
            f"the id column {shown(column.name)} has {len(column) - n_different} repeated values: "
            "rows of one id may be in both the training and the test rows"
        )
    return np.asarray(column.to_numpy())


def _notes_on_features(columns: Iterable[TypedColumn], y: np.ndarray, target: str) -> Iterable[str]:
    codes = np.unique(y, return_inverse=True)[1]
    for typed in columns:
        column = typed.column
        if column.is_used and _is_copy_of_target(typed, y, codes):
            yield (
                f"the column {shown(column.name)} determines the target {shown(target)}: a model "
                "will look perfect, and be useless where the target is not known"
            )
        elif column.type == "ignored":
            yield f"the column {shown(column.name)} is ignored: {column.reason}"


def _is_copy_of_target(typed: TypedColumn, y: np.ndarray, codes: np.ndarray) -> bool:
    """Whether a feature equals the target up to the names of its values."""
    cells = typed.cells
    if typed.column.n_missing or typed.column.n_values != int(codes.max()) + 1:
        return False
    if len(y) < _MIN_ROWS:  # a few rows can agree by chance
        return False
    if isinstance(cells, NumberCells) and y.dtype.kind == "f":
        return bool(np.array_equal(cells.values, y))
    if isinstance(cells, LabelCells):
        feature_codes = cells.codes
    else:
        feature_codes = np.unique(cells.values, return_inverse=True)[1]
    partner = np.full(int(codes.max()) + 1, -1)
    partner[codes] = feature_codes
    return bool(np.array_equal(partner[codes], feature_codes))


def _notes_on_target(kind: TaskKind, y: np.ndarray, target: str) -> Iterable[str]:
    if kind == "classification":
        labels, counts = np.unique(y, return_counts=True)
        rare = labels[counts == 1]
        if len(rare):
            yield (
                f"{len(rare)} of {len(labels)} classes of {shown(target)} have one row only, such "
                f"as {shown(rare[0])}: they cannot be in both the training and the test rows"
            )
