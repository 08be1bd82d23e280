"""The target of the doctor's checks: classes or numbers, and which rows have one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data import (
    CodedColumn,
    as_series,
    code_array,
    code_objects,
    code_series,
    code_table,
    is_frame,
)
from margrove.exceptions import InvalidDataError

__all__ = ["ExaminedTarget", "Task", "examined_target"]

Task = Literal["classification", "regression"]

_FEW_CLASSES, _MAX_CLASSES = 20, 200


@dataclass(frozen=True)
class ExaminedTarget:
    """A target of n rows.

    task       "classification" or "regression"
    is_known   bool (n,)  whether a row has a target
    codes      int64 (n,)  codes of classes, or ranks of numbers; -1 for rows without a target
    classes    the label or number of each code
    values     float64 (n,)  numbers; NaN for labels and for rows without a target
    note       a sentence if the target cannot be used, or ""
    """

    task: Task
    is_known: np.ndarray
    codes: np.ndarray
    classes: tuple[Any, ...]
    values: np.ndarray
    note: str = ""

    def of_rows(self, rows: np.ndarray) -> ExaminedTarget:
        """The target of some rows; `classes` stay the same."""
        return ExaminedTarget(
            self.task,
            self.is_known[rows],
            self.codes[rows],
            self.classes,
            self.values[rows],
            self.note,
        )

    @property
    def class_counts(self) -> np.ndarray:
        return np.bincount(self.codes[self.is_known], minlength=len(self.classes))


def examined_target(y: Any, n_rows: int, task: Task | None) -> ExaminedTarget:
    """Read a target; if `task` is None, it is decided by the values."""
    read = _read(y)
    if len(read.values) != n_rows:
        raise InvalidDataError(
            f"X has {n_rows} rows and y has {len(read.values)}. Give one target for each row."
        )
    if read.kind == "unusable":
        raise InvalidDataError(f"y contains {read.note}. Give a class or a number for each row.")
    is_number = read.kind in ("number", "date")
    is_known = np.isfinite(read.values)
    found, codes = np.unique(read.values[is_known], return_inverse=True)
    task = task or _task_of(found, int(is_known.sum()), is_number)
    if task == "regression" and not is_number:
        raise InvalidDataError(
            "The target contains labels, which cannot be predicted as numbers. Use the task "
            "classification, or give numbers."
        )
    all_codes = np.full(n_rows, -1, np.int64)
    all_codes[is_known] = codes
    classes = found.tolist() if is_number else [read.labels[int(k)] for k in found]
    values = read.values if is_number else np.full(n_rows, np.nan)
    note = {"mixed": f"It mixes {read.note}.", "date": "It contains dates."}.get(read.kind, "")
    if np.isinf(read.values).any():
        note = f"It contains infinity in {int(np.isinf(read.values).sum()):,} rows."
    return ExaminedTarget(task, is_known, all_codes, tuple(map(_shown, classes)), values, note)


def _shown(label: Any) -> Any:
    """1 for 1.0, for messages."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _task_of(found: np.ndarray, n: int, is_number: bool) -> Task:
    """Labels are classes, and so are integers unless they have many different values."""
    if not is_number:
        return "classification"
    is_whole = bool(np.all(found == np.floor(found)))
    is_few = len(found) <= max(_FEW_CLASSES, min(_MAX_CLASSES, 2 * math.sqrt(n)))
    return "classification" if is_whole and is_few else "regression"


def _read(y: Any) -> CodedColumn:
    if sp.issparse(y):
        y = y.toarray()
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        raise InvalidDataError(
            f"y is a {type(y).__name__}. Give one target for each row: an array or a list."
        )
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(float), np.nan)
    if isinstance(y, np.ndarray):
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise InvalidDataError(
                f"y has shape {y.shape}. The doctor checks one target at a time: give a column."
            )
        return code_array(y)
    if isinstance(y, (list, tuple)):
        if len(y) and all(isinstance(cell, (list, tuple)) and len(cell) == 1 for cell in y):
            y = [cell[0] for cell in y]
        return code_objects(list(y))
    if is_frame(y):
        return _read_frame(y)
    series = as_series(y)
    read = None if series is None else code_series(series)
    return code_array(np.asarray(y)) if read is None or read.kind == "unusable" else read


def _read_frame(y: Any) -> CodedColumn:
    table = code_table(y)
    if table.n_columns != 1:
        raise InvalidDataError(
            f"y has {table.n_columns} columns. The doctor checks one target at a time."
        )
    return CodedColumn(
        table.column(0), table.kinds[0], table.labels.get(0, ()), table.notes.get(0, "")
    )
