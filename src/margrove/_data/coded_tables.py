"""Any table as a matrix of numbers, and what its columns were before.

Estimators refuse what they cannot use. Here everything with rows and columns is accepted: labels
become codes, dates become numbers, and a column that cannot be read becomes NaN, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data.columns import (
    EXACT_INTEGERS,
    Cells,
    DateCells,
    LabelCells,
    NumberCells,
    UnreadableCells,
    cells_of_array,
    cells_of_objects,
    cells_of_series,
    type_of_cell,
)
from margrove._data.frames import collected, frame_series, is_frame
from margrove._data.sparse import canonical_csr, sound_structure
from margrove.exceptions import InvalidDataError

__all__ = [
    "CATEGORY",
    "CodedColumn",
    "CodedTable",
    "ColumnKind",
    "ColumnName",
    "as_matrix",
    "code_array",
    "code_objects",
    "code_series",
    "code_table",
]

ColumnKind = Literal["number", "label", "date", "mixed", "unusable"]
ColumnName = str | int

CATEGORY = "meant as a category"
_TOO_LONG = "integers beyond 2**53"
_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class CodedColumn:
    """One column: values float64 (n,), NaN if missing; labels[k] is the label with code k."""

    values: np.ndarray
    kind: ColumnKind = "number"
    labels: tuple[Any, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class CodedTable:
    """A table of n rows and d columns.

    X        float64 or float32 (n, d) in C order, or CSR; NaN is missing
    names    the names of the columns, or their numbers if they have no names
    kinds    what each column was before
    labels   {column: the labels of its codes}
    notes    {column: a remark, for people}
    """

    X: Any
    names: tuple[ColumnName, ...]
    kinds: tuple[ColumnKind, ...]
    labels: dict[int, tuple[Any, ...]]
    notes: dict[int, str]

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        return bool(sp.issparse(self.X))

    def of_kind(self, *kinds: ColumnKind) -> np.ndarray:
        """Which columns are of these kinds, bool (d,)."""
        return np.array([kind in kinds for kind in self.kinds], dtype=bool)

    def of_rows(self, rows: np.ndarray) -> CodedTable:
        """The table with these rows only."""
        return replace(self, X=self.X[rows])

    def column(self, j: int) -> np.ndarray:
        """One column, float64 (n,)."""
        if not self.is_sparse:
            return np.ascontiguousarray(self.X[:, j], dtype=np.float64)
        by_column = self._by_column
        stored = slice(by_column.indptr[j], by_column.indptr[j + 1])
        values = np.zeros(self.n_rows)
        values[by_column.indices[stored]] = by_column.data[stored]
        return values

    @cached_property
    def _by_column(self) -> Any:
        return self.X.tocsc()

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first column, float64 (k, n)) over all columns of a dense table, k at a time."""
        step = max(1, _CELLS_AT_ONCE // max(1, self.n_rows))
        for first in range(0, self.n_columns, step):
            yield (
                first,
                np.ascontiguousarray(self.X[:, first : first + step].T, dtype=np.float64),
            )


def code_table(X: Any) -> CodedTable:
    """Read any table: array, sparse matrix, dataframe, mapping of columns, or list of rows."""
    X = collected(X)
    if sp.issparse(X):
        return _code_sparse(X)
    if isinstance(X, Mapping):
        return _join_columns([(name, _code_sequence(cells)) for name, cells in X.items()])
    if isinstance(X, np.ndarray) and X.dtype.names:
        return _join_columns([(name, code_array(X[name])) for name in X.dtype.names])
    if is_frame(X):
        return _join_columns([(name, code_series(series)) for name, series in frame_series(X)])
    array = as_matrix(X)
    if array.dtype.kind in "biuf":
        return _code_numbers(array)
    columns = [(j, code_array(array[:, j])) for j in range(array.shape[1])]
    return _join_columns(columns, n_rows=len(array))


def _code_sparse(X: Any) -> CodedTable:
    if X.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"X is a sparse matrix of {X.dtype}, not of numbers. Use X.astype(float)."
        )
    X = canonical_csr(sound_structure(X).tocsr())
    X = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    d = X.shape[1]
    return CodedTable(X, tuple(range(d)), ("number",) * d, {}, {})


def _code_numbers(array: np.ndarray) -> CodedTable:
    d = array.shape[1]
    notes = {}
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = np.maximum(array.max(axis=0).astype(float), -array.min(axis=0).astype(float))
        notes = {int(j): _TOO_LONG for j in np.flatnonzero(largest > EXACT_INTEGERS)}
    kind = np.float32 if array.dtype == np.float32 else np.float64
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(array, dtype=kind)
    return CodedTable(X, tuple(range(d)), ("number",) * d, {}, notes)


def _join_columns(columns: list[tuple[Any, CodedColumn]], n_rows: int = 0) -> CodedTable:
    lengths = {len(column.values) for _, column in columns} or {n_rows}
    if len(lengths) > 1:
        shown = ", ".join(map(str, sorted(lengths)))
        raise InvalidDataError(f"The columns of X differ in length: {shown} rows.")
    X = np.empty((lengths.pop(), len(columns)))
    for j, (_, column) in enumerate(columns):
        X[:, j] = column.values
    return CodedTable(
        X,
        tuple(name if isinstance(name, int) else str(name) for name, _ in columns),
        tuple(column.kind for _, column in columns),
        {j: column.labels for j, (_, column) in enumerate(columns) if column.labels},
        {j: column.note for j, (_, column) in enumerate(columns) if column.note},
    )


def as_matrix(X: Any) -> np.ndarray:
    """X as an array of two dimensions, or InvalidDataError."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)
    if isinstance(X, (list, tuple)):
        X = _array_of_rows(list(X))
    elif not isinstance(X, np.ndarray):
        if isinstance(X, (str, bytes)) or not hasattr(X, "__array__"):
            raise InvalidDataError(
                f"X is a {type(X).__name__}, not a table. Pass an array, a sparse matrix, a "
                "dataframe, or a list of rows."
            )
        X = np.asarray(X)
    if X.ndim != 2:
        hint = " Use X.reshape(-1, 1) for a single column." if X.ndim == 1 else ""
        raise InvalidDataError(
            f"X has {X.ndim} dimension(s), and a table has two: rows and columns.{hint}"
        )
    return np.asarray(X)


def _array_of_rows(rows: list[Any]) -> np.ndarray:
    if not rows:
        return np.empty((0, 0))
    if isinstance(rows[0], Mapping):
        raise InvalidDataError(
            "X is a list of dicts. Pass a dataframe, for example pandas.DataFrame(X)."
        )
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        return np.empty(len(rows), dtype=object)  # not a table: the caller refuses one dimension
    widths = [len(row) for row in rows]
    if len(set(widths)) > 1:
        odd = next(k for k, width in enumerate(widths) if width != widths[0])
        raise InvalidDataError(
            f"X is not a table: row 0 has {widths[0]} cells and row {odd} has {widths[odd]}."
        )
    try:
        array = np.asarray(rows)
        if array.ndim == 2 and array.dtype.kind in "biuf":
            return array
    except (ValueError, TypeError, OverflowError):
        pass
    cells = np.empty((len(rows), widths[0]), dtype=object)
    for k, row in enumerate(rows):
        for j, cell in enumerate(row):
            cells[k, j] = cell
    return cells


def code_series(series: Any) -> CodedColumn:
    """Code a narwhals Series."""
    try:
        return _code(cells_of_series("", series))
    except Exception:  # a type that its own library cannot convert
        return _unusable(len(series), "values that cannot be read")


def _code_sequence(cells: Any) -> CodedColumn:
    if isinstance(cells, np.ndarray) and cells.ndim == 1:
        return code_array(cells)
    try:
        return code_objects(list(cells))
    except TypeError as error:
        raise InvalidDataError(
            f"X maps names to columns, but one of the columns is a {type(cells).__name__}."
        ) from error


def code_array(cells: np.ndarray) -> CodedColumn:
    """Code an array of one dimension and any type."""
    return _code(cells_of_array("", cells))


def code_objects(cells: list[Any]) -> CodedColumn:
    """Code a list of Python objects."""
    return _code(cells_of_objects("", cells))


def _code(cells: Cells | UnreadableCells) -> CodedColumn:
    if isinstance(cells, NumberCells):
        note = _TOO_LONG if cells.has_long_integers else ""
        return CodedColumn(cells.values, "date" if cells.is_duration else "number", note=note)
    if isinstance(cells, DateCells):
        microseconds = cells.values.astype(np.int64).astype(np.float64)
        return CodedColumn(np.where(cells.is_missing, np.nan, microseconds), "date")
    if isinstance(cells, UnreadableCells):
        return _unusable(len(cells), f"values of type {cells.type_name}")
    return _code_labels(cells)


def _code_labels(cells: LabelCells) -> CodedColumn:
    types = cells.types
    if not types:  # all are missing
        return CodedColumn(np.full(len(cells), np.nan))
    if cells.is_category and types != {"text"}:  # numbers or dates in a categorical column
        read = code_objects(cells.labels)
        return replace(read, values=np.append(read.values, np.nan)[cells.codes])
    if "other" in types:
        odd = next(label for label in cells.labels if type_of_cell(label) == "other")
        return _unusable(len(cells), f"values of type {type(odd).__name__}")
    kind: ColumnKind = "label" if types == {"text"} else "mixed"
    names = sorted({type(label).__name__ for label in cells.labels})
    note = " and ".join(names) if kind == "mixed" or "bytes" in names else ""
    if cells.is_category and kind == "label":
        note = CATEGORY
    values = np.where(cells.is_missing, np.nan, cells.codes.astype(np.float64))
    return CodedColumn(values, kind, tuple(cells.labels), note)


def _unusable(n: int, note: str) -> CodedColumn:
    return CodedColumn(np.full(n, np.nan), "unusable", note=note)
