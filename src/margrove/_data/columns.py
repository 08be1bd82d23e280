"""The columns of any table as arrays: numbers, labels or dates; parts of dates as numbers.

Trees, the preparation of tables, the doctor and partial dependence read columns that are not plain
numbers in this way. Nothing is refused here: each of them decides which columns it can use.

A column of labels is a list of the distinct labels and a code for each row, so that work on labels
is done once for each label, not once for each row.
"""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from margrove._data.frames import frame_series, is_frame, series_to_float
from margrove.exceptions import InvalidDataError

__all__ = [
    "DATE_PARTS",
    "EXACT_INTEGERS",
    "Cells",
    "DateCells",
    "LabelCells",
    "NumberCells",
    "UnreadableCells",
    "cells_of_array",
    "cells_of_objects",
    "cells_of_series",
    "columns_of",
    "date_part",
    "holds_text",
    "is_missing",
    "merge_labels",
    "type_of_cell",
]

EXACT_INTEGERS = 2**53  # float64 does not represent all larger integers

DATE_PARTS = ("days", "year", "month", "day", "weekday", "hour", "minute")
_DAY = 86_400_000_000  # microseconds

CellType = Literal["text", "number", "date", "duration", "other"]


@dataclass(frozen=True)
class NumberCells:
    """A column of numbers, or of booleans.

    values        float64 (n,), NaN for missing
    is_whole      whether the type of the column is an integer
    is_duration   whether they are seconds, of durations or times of the day
    """

    name: str
    values: np.ndarray
    is_whole: bool = False
    is_duration: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_missing(self) -> np.ndarray:
        return np.isnan(self.values)

    @property
    def has_long_integers(self) -> bool:
        """Whether there are integers above 2**53, which float64 does not represent exactly."""
        return self.is_whole and bool(np.any(np.abs(self.values) > EXACT_INTEGERS))


@dataclass(frozen=True)
class LabelCells:
    """A column of labels.

    codes         int64 (n,) into `labels`, -1 for missing
    labels        the distinct labels, in the order of their first rows; every one occurs
    is_category   whether the column has a categorical type
    """

    name: str
    codes: np.ndarray
    labels: list[Any]
    is_category: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def is_missing(self) -> np.ndarray:
        return np.asarray(self.codes < 0)

    @property
    def types(self) -> set[CellType]:
        """The types of the labels."""
        return {type_of_cell(label) for label in self.labels}

    def row_of(self, label: int) -> int:
        """The first row with this code."""
        return int(np.argmax(self.codes == label))


@dataclass(frozen=True)
class DateCells:
    """A column of dates, in the local time of their time zone.

    values      datetime64[us] (n,), NaT for missing
    day_first   for dates read from text such as 3/4/2024: whether 3 was the day; else None
    """

    name: str
    values: np.ndarray
    day_first: bool | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_missing(self) -> np.ndarray:
        return np.isnat(self.values)


@dataclass(frozen=True)
class UnreadableCells:
    """A column of lists, structures or other values that cannot be labels.

    type_name   the type of the column, or of the first value that cannot be a label
    by_column   whether it is the type of the column
    """

    name: str
    n_rows: int
    type_name: str
    by_column: bool = False

    def __len__(self) -> int:
        return self.n_rows


Cells = NumberCells | LabelCells | DateCells
_AnyCells = Cells | UnreadableCells


# -- tables --


def columns_of(X: Any) -> list[_AnyCells]:
    """Every column of a frame, or of an array or list of rows of Python objects."""
    if is_frame(X):
        return [cells_of_series(str(name), series) for name, series in frame_series(X)]
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        raise InvalidDataError("X must have the same number of cells in every row.")
    return [cells_of_objects(f"x{j}", table[:, j].tolist()) for j in range(table.shape[1])]


def holds_text(X: Any) -> bool:
    """Whether X is an array or a list of rows that contains strings."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        if X.dtype.kind == "U":
            return True
        return X.dtype == object and any(isinstance(cell, str) for cell in X.ravel())
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        return any(isinstance(cell, str) for row in X for cell in row)
    return False


# -- columns of frames --


def cells_of_series(name: str, series: Any) -> _AnyCells:
    """The cells of a narwhals Series."""
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        values = np.asarray(series_to_float(series, name), dtype=np.float64)
        return NumberCells(name, values, kind.is_integer())
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return _cells_of_labels(name, series, is_category=kind != nw.String)
    if kind in (nw.Date, nw.Datetime):
        return DateCells(name, _dates(series, nw))
    if kind in (nw.Object, nw.Unknown, nw.Time, nw.Duration, nw.Binary):
        return cells_of_objects(name, series.to_list())
    return UnreadableCells(name, len(series), str(kind), by_column=True)


def _cells_of_labels(name: str, series: Any, *, is_category: bool) -> LabelCells:
    """Labels as coded by the dataframe library, which is ten times as fast as our code."""
    native = series.to_native()
    library = type(native).__module__.partition(".")[0]
    if library == "polars":
        import polars as pl

        texts = native.cast(pl.String)
        distinct = texts.drop_nulls().unique(maintain_order=True)
        found = texts.cast(pl.Enum(distinct)).to_physical().cast(pl.Int64).fill_null(-1)
        return LabelCells(name, found.to_numpy(), distinct.to_list(), is_category)
    if library == "pandas" and hasattr(native, "cat"):
        return _cells_of_pandas_categorical(name, native.array)
    if library == "pandas":
        import pandas as pd  # type: ignore[import-untyped]

        codes, labels = pd.factorize(native)
        return LabelCells(
            name, codes.astype(np.int64), [str(label) for label in labels], is_category
        )
    if library == "pyarrow":
        import pyarrow as pa

        if pa.types.is_dictionary(native.type):  # its dictionary may have labels that do not occur
            native = native.cast(native.type.value_type)
        encoded = native.combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
        return LabelCells(name, codes, encoded.dictionary.to_pylist(), is_category)
    codes, labels = _coded(series.to_list())
    return LabelCells(name, codes, labels, is_category)


def _cells_of_pandas_categorical(name: str, array: Any) -> LabelCells:
    """The cells of a pandas Categorical, without categories that do not occur."""
    codes = np.asarray(array.codes, dtype=np.int64)
    found, first = np.unique(codes, return_index=True)
    used = found[np.argsort(first)]
    used = used[used >= 0]
    new_code = np.full(len(array.categories) + 1, -1)
    new_code[used] = np.arange(len(used))
    labels = [array.categories[k] for k in used.tolist()]
    return LabelCells(name, new_code[codes], labels, is_category=True)


def _dates(series: Any, nw: Any) -> np.ndarray:
    if series.dtype == nw.Datetime and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    found = np.asarray(series.to_numpy())
    if found.dtype == object:
        found = np.array([None if is_missing(cell) else cell for cell in found.tolist()])
    return found.astype("datetime64[us]")


# -- arrays and Python objects --


def cells_of_array(name: str, cells: np.ndarray) -> _AnyCells:
    """The cells of an array of one dimension and any type."""
    kind = cells.dtype.kind
    if kind in "biuf":
        with np.errstate(over="ignore"):
            values = cells.astype(np.float64)
        return NumberCells(name, values, kind in "iu")
    if kind == "M":
        return DateCells(name, cells.astype("datetime64[us]"))
    if kind in "mUSO":
        return cells_of_objects(name, list(cells) if kind == "m" else cells.tolist())
    return UnreadableCells(name, len(cells), str(cells.dtype), by_column=True)


def cells_of_objects(name: str, cells: list[Any]) -> _AnyCells:
    """The cells of Python objects: numbers, dates or durations if all cells are, else labels."""
    try:
        codes, labels = _coded(cells)
    except TypeError:  # a cell is not hashable
        odd = next(cell for cell in cells if not _has_hash(cell))
        return UnreadableCells(name, len(cells), type(odd).__name__)
    read = LabelCells(name, codes, labels)
    types = read.types
    if types <= {"number"}:
        is_whole = all(isinstance(label, (int, np.integer)) for label in labels)
        return NumberCells(name, _values_of_rows(list(map(_as_float, labels)), codes), is_whole)
    if types == {"date"}:
        dates = np.array([*map(_without_zone, labels), None], dtype="datetime64[us]")
        return DateCells(name, dates[codes])
    if types == {"duration"}:
        return NumberCells(
            name, _values_of_rows(list(map(_seconds, labels)), codes), is_duration=True
        )
    return read


def _coded(cells: list[Any]) -> tuple[np.ndarray, list[Any]]:
    """int64 (n,) codes into the distinct cells, -1 if missing; TypeError for unhashable cells."""
    number: dict[Any, int] = {}
    codes = np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)
    distinct = list(number)
    kept = [k for k, cell in enumerate(distinct) if not is_missing(cell)]
    if len(kept) == len(distinct):
        return codes, distinct
    new_code = np.full(len(distinct), -1)
    new_code[kept] = np.arange(len(kept))
    return new_code[codes], [distinct[k] for k in kept]


def _values_of_rows(values: list[float], codes: np.ndarray) -> np.ndarray:
    """The value of each row, from the value of each label; NaN for missing."""
    return np.array([*values, np.nan], dtype=np.float64)[codes]


def merge_labels(cells: LabelCells, labels: list[Any]) -> LabelCells:
    """The cells with label k replaced by labels[k]; equal labels are merged."""
    number: dict[Any, int] = {}
    new_code = [number.setdefault(label, len(number)) for label in labels]
    codes = cells.codes if len(number) == len(labels) else np.array([*new_code, -1])[cells.codes]
    return LabelCells(cells.name, codes, list(number), cells.is_category)


# -- parts of dates --


def date_part(dates: np.ndarray, part: str) -> np.ndarray:
    """A part of each date, float64 (n,); NaN for NaT.

    dates    datetime64[us] (n,)
    part     one of DATE_PARTS: "days" since 1970, or a part of the calendar or the clock;
             weekdays are 0 (Monday) to 6 (Sunday)
    """
    missing = np.isnat(dates)
    known = np.where(missing, np.datetime64(0, "us"), dates)
    values = _part_of(known, part).astype(np.float64)
    return np.asarray(np.where(missing, np.nan, values))


def _part_of(dates: np.ndarray, part: str) -> np.ndarray:
    day = dates.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    within = (dates - day).astype(np.int64)  # microseconds since midnight
    if part == "days":
        return np.asarray(dates.astype(np.int64) / _DAY)
    if part == "year":
        return dates.astype("datetime64[Y]").astype(np.int64) + 1970
    if part == "month":
        return month.astype(np.int64) % 12 + 1
    if part == "day":
        return (day - month).astype(np.int64) + 1
    if part == "weekday":
        return (day.astype(np.int64) + 3) % 7
    if part == "hour":
        return within // 3_600_000_000
    if part == "minute":
        return within // 60_000_000 % 60
    raise ValueError(f"There is no part {part!r} of a date. Use one of {list(DATE_PARTS)}.")


# -- single cells --


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, or a missing value of pandas (which cannot be compared)."""
    is_nan = isinstance(cell, (float, np.floating)) and cell != cell  # noqa: PLR0124
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def type_of_cell(cell: Any) -> CellType:
    """The type of a cell; booleans are numbers, bytes are text, times of the day are durations."""
    if isinstance(cell, (str, bytes)):
        return "text"
    if isinstance(
        cell, (dt.time, dt.timedelta, np.timedelta64)
    ):  # before numbers: NumPy's timedelta is a Real
        return "duration"
    if isinstance(cell, (Real, decimal.Decimal, np.bool_)):
        return "number"
    return "date" if isinstance(cell, (dt.date, np.datetime64)) else "other"


def _has_hash(cell: Any) -> bool:
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return float("inf") if cell > 0 else float("-inf")
    except (ValueError, TypeError):
        return float("nan")


def _without_zone(cell: Any) -> Any:
    return cell.replace(tzinfo=None) if isinstance(cell, dt.datetime) else cell


def _seconds(cell: Any) -> float:
    if isinstance(cell, dt.time):
        return cell.hour * 3600.0 + cell.minute * 60.0 + cell.second + cell.microsecond / 1e6
    if isinstance(cell, np.timedelta64):
        return float("nan") if np.isnat(cell) else float(cell / np.timedelta64(1, "s"))
    return float(cell.total_seconds())
