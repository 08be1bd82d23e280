"""The columns of any table as arrays: numbers, labels, or dates.

Tables are frames of polars, pandas, pyarrow and whatever narwhals reads, and plain arrays. A
column of labels is a list of different ones, and the number of its label for each row: what is
said of labels is thought over once for each of them, not once for each row.
"""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from margrove._data import check_table, collected, column_to_float, feature_names, is_frame
from margrove.exceptions import InvalidDataError
from margrove.grove.table.label_columns import is_text_table
from margrove.workbench.tables.read.cell_texts import shown

__all__ = [
    "Cells",
    "DateCells",
    "FrameColumns",
    "LabelCells",
    "NumberCells",
    "frame_columns",
    "label_text",
    "library_of",
]

_EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class NumberCells:
    """values float64 (n,), NaN for missing; `is_whole`: all others are whole numbers by type."""

    name: str
    values: np.ndarray
    is_whole: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_missing(self) -> np.ndarray:
        return np.isnan(self.values)


@dataclass(frozen=True)
class LabelCells:
    """codes int64 (n,) into labels, -1 for missing; every label occurs."""

    name: str
    codes: np.ndarray
    labels: list[str]
    is_declared: bool = False  # by its type, as a category

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def is_missing(self) -> np.ndarray:
        return np.asarray(self.codes < 0)

    def row_of(self, label: int) -> int:
        """The first row that has a label."""
        return int(np.argmax(self.codes == label))


@dataclass(frozen=True)
class DateCells:
    """values datetime64[us] (n,), NaT for missing.

    `day_first`: of texts such as 3/4/2024, whether 3 was the day; None for all others.
    """

    name: str
    values: np.ndarray
    day_first: bool | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_missing(self) -> np.ndarray:
        return np.isnat(self.values)


Cells = NumberCells | LabelCells | DateCells


@dataclass(frozen=True)
class FrameColumns:
    """All columns of a table; `feature_names` as estimators remember them, None without names."""

    cells: tuple[Cells, ...]
    feature_names: np.ndarray | None
    n_rows: int


def library_of(X: Any) -> str:
    """ "polars", "pandas", "pyarrow", another's name, or "numpy" for all that is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)) or not is_frame(X):
        return "numpy"
    return type(X).__module__.partition(".")[0]


def frame_columns(X: Any, estimator: Any = None) -> FrameColumns:
    """Read all columns of a table; InvalidDataError names the column that holds no values."""
    X = collected(X)
    if not isinstance(X, (np.ndarray, list, tuple)) and is_frame(X):
        return _of_frame(X)
    if is_text_table(X):
        return _of_objects(X)
    table = check_table(X, estimator, accept_sparse=False, allow_nan=True)
    is_whole = isinstance(X, np.ndarray) and X.dtype.kind in "iu"
    values = table.X.astype(np.float64, copy=False)
    cells = tuple(NumberCells(f"x{j}", values[:, j], is_whole) for j in range(values.shape[1]))
    return FrameColumns(cells, None, len(values))


def _of_objects(X: Any) -> FrameColumns:
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        raise InvalidDataError("X must have the same number of cells in every row.")
    cells = tuple(_of_python_objects(f"x{j}", table[:, j].tolist()) for j in range(table.shape[1]))
    return FrameColumns(cells, None, len(table))


def _of_frame(X: Any) -> FrameColumns:
    import narwhals.stable.v2 as nw

    names = feature_names(X)
    frame = nw.from_native(X, eager_only=True)
    if not len(frame.columns) or not len(frame):
        raise InvalidDataError(
            f"Found array with {len(frame)} sample(s) and {len(frame.columns)} feature(s) while a "
            "minimum of 1 is required: the table is empty."
        )
    cells = []
    for position, name in enumerate(frame.columns):
        series = frame.get_column(name) if isinstance(name, str) else frame[:, position]
        cells.append(_of_series(str(name), series))
    return FrameColumns(tuple(cells), names, len(frame))


def _of_series(name: str, series: Any) -> Cells:
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if hasattr(series.to_native(), "cat") and series.implementation.is_pandas():
        return _of_pandas_categorical(name, series.to_native().array)
    if kind.is_numeric() or kind == nw.Boolean:
        values = np.asarray(column_to_float(series, nw), dtype=np.float64)
        return NumberCells(name, values, kind.is_integer())
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return _of_strings(name, series, is_declared=kind != nw.String)
    if kind in (nw.Date, nw.Datetime):
        return DateCells(name, _dates(series, nw))
    if kind in (nw.Object, nw.Unknown, nw.Time, nw.Duration):
        return _of_python_objects(name, series.to_list())
    raise InvalidDataError(
        f"Column {shown(name)} of X holds {kind}, which are no plain values. Give each of its "
        "values a column of its own, or leave it out."
    )


def _of_pandas_categorical(name: str, array: Any) -> Cells:
    """What pandas has coded already; labels that do not occur are left out."""
    codes = np.asarray(array.codes, dtype=np.int64)
    used = np.unique(codes[codes >= 0])
    place = np.full(len(array.categories) + 1, -1)
    place[used] = np.arange(len(used))
    labels = [label_text(array.categories[k]) for k in used.tolist()]
    return _merged(LabelCells(name, place[codes], labels, is_declared=True))


def _merged(cells: LabelCells) -> LabelCells:
    """Labels that are the same in writing, such as 1 and "1", made one."""
    number: dict[str, int] = {}
    place = [number.setdefault(label, len(number)) for label in cells.labels]
    if len(number) == len(cells.labels):
        return cells
    codes = np.array([*place, -1])[cells.codes]
    return replace(cells, codes=codes, labels=list(number))


def _of_strings(name: str, series: Any, *, is_declared: bool) -> LabelCells:
    native = series.to_native()
    library = type(native).__module__.partition(".")[0]
    if library == "polars":
        import polars as pl

        texts = native.cast(pl.String)
        different = texts.drop_nulls().unique(maintain_order=True)
        codes = texts.cast(pl.Enum(different)).to_physical().cast(pl.Int64).fill_null(-1)
        return LabelCells(name, codes.to_numpy(), different.to_list(), is_declared)
    if library == "pandas":
        import pandas as pd  # type: ignore[import-untyped]

        found, different = pd.factorize(native)
        return LabelCells(name, found.astype(np.int64), [str(own) for own in different])
    if library == "pyarrow":
        encoded = native.combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
        return LabelCells(name, codes, encoded.dictionary.to_pylist(), is_declared)
    read = _coded(name, series.to_list())
    return replace(read, is_declared=is_declared)


def _coded(name: str, cells: list[Any]) -> LabelCells:
    """Python objects as labels, by how they are written."""
    number: dict[str, int] = {}
    codes = [
        -1 if _is_missing(cell) else number.setdefault(label_text(cell), len(number))
        for cell in cells
    ]
    return LabelCells(name, np.array(codes, dtype=np.int64), list(number))


def _of_python_objects(name: str, cells: list[Any]) -> Cells:
    """Numbers, dates or labels; numbers among labels are labels."""
    kinds = {_kind_of(cell) for cell in cells if not _is_missing(cell)}
    if "other" in kinds:
        odd = next(cell for cell in cells if _kind_of(cell) == "other" and not _is_missing(cell))
        raise TypeError(
            f"argument must be a string or a real number: column {shown(name)} of X holds a "
            f"{type(odd).__name__}."
        )
    if kinds <= {"number"}:
        values = [np.nan if _is_missing(cell) else _as_float(cell) for cell in cells]
        is_whole = all(_is_missing(cell) or isinstance(cell, (int, np.integer)) for cell in cells)
        return NumberCells(name, np.array(values, dtype=np.float64), is_whole)
    if kinds == {"date"}:
        dates = [None if _is_missing(cell) else _naive(cell) for cell in cells]
        return DateCells(name, np.array(dates, dtype="datetime64[us]"))
    if kinds == {"span"}:
        values = [np.nan if _is_missing(cell) else _seconds(cell) for cell in cells]
        return NumberCells(name, np.array(values, dtype=np.float64))
    return _coded(name, cells)


def _kind_of(cell: Any) -> str:
    if isinstance(cell, str):
        return "label"
    if isinstance(cell, (Real, decimal.Decimal, np.bool_)):
        return "number"
    if isinstance(cell, (dt.time, dt.timedelta, np.timedelta64)):
        return "span"
    return "date" if isinstance(cell, (dt.date, np.datetime64)) else "other"


def _is_missing(cell: Any) -> bool:
    is_nan = isinstance(cell, (float, np.floating)) and cell != cell  # noqa: PLR0124
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")


def _naive(cell: Any) -> Any:
    return cell.replace(tzinfo=None) if isinstance(cell, dt.datetime) else cell


def _seconds(cell: Any) -> float:
    if isinstance(cell, dt.time):
        return cell.hour * 3600.0 + cell.minute * 60.0 + cell.second + cell.microsecond / 1e6
    if isinstance(cell, np.timedelta64):
        return float(cell / np.timedelta64(1, "s"))
    return float(cell.total_seconds())


def _dates(series: Any, nw: Any) -> np.ndarray:
    """As the clocks of their own time zone showed them."""
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    found = np.asarray(series.to_numpy())
    if found.dtype == object:
        found = np.array([None if _is_missing(own) else own for own in found.tolist()])
    return found.astype("datetime64[us]")


def label_text(value: Any) -> str:
    """A value as a label: a whole number without its point, a date as in ISO 8601."""
    if isinstance(value, str):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        whole = number.is_integer() and abs(number) < _EXACT_INTEGERS
        return str(int(number)) if whole else repr(number)
    if isinstance(value, (np.bool_, np.integer)):
        return str(value.item())
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)
