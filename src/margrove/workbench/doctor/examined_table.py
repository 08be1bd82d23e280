"""Any table as the doctor sees it: a matrix of numbers, and what its columns were before.

Estimators refuse what they cannot use; here nothing is refused that has rows and columns. Labels
become numbers, dates too, and a column that nothing can be made of is empty and marked.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data import collected, is_frame
from margrove._data.sparse import canonical_csr, sound_structure
from margrove.exceptions import InvalidDataError

__all__ = [
    "CATEGORY",
    "ColumnKind",
    "ColumnName",
    "ExaminedTable",
    "examined",
    "is_missing",
    "read_cells",
]

ColumnKind = Literal["number", "label", "date", "mixed", "unusable"]
ColumnName = str | int

CATEGORY = "meant as a category"
_DATES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class ReadColumn:
    """One column: values float64 (n,), NaN where missing; labels[k] is what k stands for."""

    values: np.ndarray
    kind: ColumnKind = "number"
    labels: tuple[Any, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class ExaminedTable:
    """A table of n rows and d columns.

    X        float64 or float32 (n, d) in C order, or CSR; NaN is missing
    names    of the columns; their numbers, where they have none
    kinds    what each column was
    labels   {column: what the numbers of a column of labels stand for}
    notes    {column: what there is to say about it}
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
        """bool (d,)"""
        return np.array([kind in kinds for kind in self.kinds], dtype=bool)

    def of_rows(self, rows: np.ndarray) -> ExaminedTable:
        """The table of some rows."""
        return replace(self, X=self.X[rows])

    def column(self, j: int) -> np.ndarray:
        """float64 (n,)"""
        if not self.is_sparse:
            return np.ascontiguousarray(self.X[:, j], dtype=np.float64)
        by_column = self._by_column
        own = slice(by_column.indptr[j], by_column.indptr[j + 1])
        values = np.zeros(self.n_rows)
        values[by_column.indices[own]] = by_column.data[own]
        return values

    @cached_property
    def _by_column(self) -> Any:
        return self.X.tocsc()

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first column, float64 (k, n)) over all columns of a dense table, few at a time."""
        step = max(1, _CELLS_AT_ONCE // max(1, self.n_rows))
        for first in range(0, self.n_columns, step):
            yield (
                first,
                np.ascontiguousarray(self.X[:, first : first + step].T, dtype=np.float64),
            )


def examined(X: Any) -> ExaminedTable:
    """Read any table: array, sparse matrix, dataframe, mapping of columns, or list of rows."""
    X = collected(X)
    if sp.issparse(X):
        return _of_sparse(X)
    if isinstance(X, Mapping):
        return _of_columns([(name, _read_sequence(cells)) for name, cells in X.items()])
    if isinstance(X, np.ndarray) and X.dtype.names:
        return _of_columns([(name, _read_array(X[name])) for name in X.dtype.names])
    if not isinstance(X, (np.ndarray, list, tuple)) and is_frame(X):
        return _of_columns([(name, _read_series(series)) for name, series in _series_of(X)])
    array = _as_matrix(X)
    if array.dtype.kind in "biuf":
        return _of_numbers(array)
    columns = [(j, _read_array(array[:, j])) for j in range(array.shape[1])]
    return _of_columns(columns, n_rows=len(array))


def _of_sparse(X: Any) -> ExaminedTable:
    if X.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"X is a sparse matrix of {X.dtype}, not of numbers. Use X.astype(float)."
        )
    X = canonical_csr(sound_structure(X).tocsr())
    X = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    d = X.shape[1]
    return ExaminedTable(X, tuple(range(d)), ("number",) * d, {}, {})


def _of_numbers(array: np.ndarray) -> ExaminedTable:
    d = array.shape[1]
    notes = {}
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = np.maximum(array.max(axis=0).astype(float), -array.min(axis=0).astype(float))
        notes = {int(j): _TOO_LONG for j in np.flatnonzero(largest > 2.0**53)}
    kind = np.float32 if array.dtype == np.float32 else np.float64
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(array, dtype=kind)
    return ExaminedTable(X, tuple(range(d)), ("number",) * d, {}, notes)


_TOO_LONG = "integers beyond 2**53"


def _of_columns(columns: list[tuple[Any, ReadColumn]], n_rows: int = 0) -> ExaminedTable:
    lengths = {len(own.values) for _, own in columns} or {n_rows}
    if len(lengths) > 1:
        shown = ", ".join(map(str, sorted(lengths)))
        raise InvalidDataError(f"The columns of X differ in length: {shown} rows.")
    X = np.empty((lengths.pop(), len(columns)))
    for j, (_, own) in enumerate(columns):
        X[:, j] = own.values
    return ExaminedTable(
        X,
        tuple(name if isinstance(name, int) else str(name) for name, _ in columns),
        tuple(own.kind for _, own in columns),
        {j: own.labels for j, (_, own) in enumerate(columns) if own.labels},
        {j: own.note for j, (_, own) in enumerate(columns) if own.note},
    )


def _as_matrix(X: Any) -> np.ndarray:
    """As an array of two dimensions, or an error that says how to make it one."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)
    if isinstance(X, (list, tuple)):
        X = _of_row_list(list(X))
    elif not isinstance(X, np.ndarray):
        if isinstance(X, (str, bytes)) or not hasattr(X, "__array__"):
            raise InvalidDataError(
                f"X is a {type(X).__name__}, not a table. Give an array, a sparse matrix, a "
                "dataframe, or a list of rows."
            )
        X = np.asarray(X)
    if X.ndim != 2:
        hint = " Use X.reshape(-1, 1) for a single column." if X.ndim == 1 else ""
        raise InvalidDataError(
            f"X has {X.ndim} dimension(s), and a table has two: rows and columns.{hint}"
        )
    return np.asarray(X)


def _of_row_list(rows: list[Any]) -> np.ndarray:
    if not rows:
        return np.empty((0, 0))
    if isinstance(rows[0], Mapping):
        raise InvalidDataError("X is a list of dicts. Give pandas.DataFrame(X) or its like.")
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        return np.empty(len(rows), dtype=object)  # not a table: refused by its dimensions
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


def _series_of(X: Any) -> list[tuple[Any, Any]]:
    """(name, column) by position: names may be there twice."""
    if hasattr(X, "iloc"):
        return [(name, X.iloc[:, j]) for j, name in enumerate(X.columns)]
    if hasattr(X, "to_series"):
        return [(name, X.to_series(j)) for j, name in enumerate(X.columns)]
    if hasattr(X, "column_names"):
        return [(name, X.column(j)) for j, name in enumerate(X.column_names)]
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True)
    return [(name, frame.get_column(name).to_native()) for name in frame.columns]


def _read_series(native: Any) -> ReadColumn:
    import narwhals.stable.v2 as nw

    try:
        series = nw.from_native(native, series_only=True)
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            return _read_numeric_series(series)
        if series.dtype.is_temporal():
            return _read_array(np.asarray(series.to_numpy()))
        is_category = series.dtype in (nw.Categorical, nw.Enum)
        cells = series.to_list()
    except Exception:  # a type that its own library cannot convert
        return _unusable(len(native), "values that cannot be read")
    read = read_cells(cells)
    return replace(read, note=CATEGORY) if is_category and read.kind == "label" else read


def _read_numeric_series(series: Any) -> ReadColumn:
    import narwhals.stable.v2 as nw

    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if series.dtype.is_integer():
        whole = np.asarray(series.fill_null(0).to_numpy()) if missing.any() else series.to_numpy()
        read = _read_array(np.asarray(whole))
        values, note = read.values, read.note
    else:
        filled = series.cast(nw.Float64)
        values = np.asarray(filled.fill_null(0.0).to_numpy() if missing.any() else filled)
        values, note = values.astype(np.float64), ""
    return ReadColumn(np.where(missing, np.nan, values), note=note)


def _read_sequence(cells: Any) -> ReadColumn:
    if isinstance(cells, np.ndarray) and cells.ndim == 1:
        return _read_array(cells)
    if isinstance(cells, (list, tuple)):
        return read_cells(list(cells))
    try:
        return read_cells(list(cells))
    except TypeError as error:
        raise InvalidDataError(
            f"X maps names to columns, but one of them is a {type(cells).__name__}."
        ) from error


def _read_array(cells: np.ndarray) -> ReadColumn:
    kind = cells.dtype.kind
    if kind in "biuf":
        largest = 0.0
        if kind in "iu" and cells.size:
            largest = max(float(cells.max()), -float(cells.min()))
        with np.errstate(over="ignore"):
            values = cells.astype(np.float64)
        return ReadColumn(values, note=_TOO_LONG if largest > 2.0**53 else "")
    if kind in "mM":
        numbers = cells.astype(np.int64).astype(np.float64)
        return ReadColumn(np.where(np.isnat(cells), np.nan, numbers), "date")
    if kind in "USO":
        return read_cells(cells.tolist())
    return _unusable(len(cells), f"values of type {cells.dtype}")


def _unusable(n: int, note: str) -> ReadColumn:
    return ReadColumn(np.full(n, np.nan), "unusable", note=note)


def read_cells(cells: list[Any]) -> ReadColumn:
    """A column of Python objects: numbers if all are, else labels or dates."""
    number: dict[Any, int] = {}
    try:
        codes = np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)
    except TypeError:  # no hash
        odd = next(cell for cell in cells if not _has_hash(cell))
        return _unusable(len(cells), f"values of type {type(odd).__name__}")
    distinct = list(number)
    kept = [k for k, cell in enumerate(distinct) if not is_missing(cell)]
    types = {_type_of(distinct[k]) for k in kept}
    values = np.full(len(distinct) + 1, np.nan)
    if types <= {"number"}:
        values[kept] = [_as_float(distinct[k]) for k in kept]
        big = any(isinstance(distinct[k], int) and abs(distinct[k]) > 2**53 for k in kept)
        return ReadColumn(values[codes], note=_TOO_LONG if big else "")
    values[kept] = np.arange(len(kept))
    labels = tuple(distinct[k] for k in kept)
    if types == {"date"}:
        return ReadColumn(_in_order(labels)[values[codes].astype(int, casting="unsafe")], "date")
    if "other" in types:
        odd = next(distinct[k] for k in kept if _type_of(distinct[k]) == "other")
        return _unusable(len(cells), f"values of type {type(odd).__name__}")
    kind: ColumnKind = "label" if types <= {"text"} else "mixed"
    names = sorted({type(label).__name__ for label in labels})
    note = " and ".join(names) if kind == "mixed" or "bytes" in names else ""
    return ReadColumn(values[codes], kind, labels, note)


def _has_hash(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def is_missing(cell: Any) -> bool:
    """None, NaN, and the missing values of pandas, which cannot be compared."""
    is_nan = isinstance(cell, (float, np.floating)) and cell != cell  # noqa: PLR0124
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def _type_of(cell: Any) -> str:
    if isinstance(cell, (str, bytes)):
        return "text"
    if isinstance(cell, (Real, decimal.Decimal, np.bool_)):
        return "number"
    return "date" if isinstance(cell, _DATES) else "other"


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")
    except (ValueError, TypeError):
        return float("nan")


def _in_order(labels: tuple[Any, ...]) -> np.ndarray:
    """A number for each date, ascending with them where they can be compared; NaN at the end."""
    try:
        order = sorted(range(len(labels)), key=lambda k: labels[k])
    except TypeError:
        order = list(range(len(labels)))
    ranks = np.full(len(labels) + 1, np.nan)
    ranks[order] = np.arange(len(labels))
    return ranks
