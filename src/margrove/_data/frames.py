"""Dataframes of any library: their columns and rows, and conversions to arrays.

The libraries are pandas, polars (also lazy), Arrow tables and record batches, and everything else
that narwhals reads. No other module depends on the library of a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names

from margrove.exceptions import InvalidDataError

__all__ = [
    "as_series",
    "collected",
    "column_names",
    "column_to_list",
    "data_frame",
    "feature_names",
    "frame_like",
    "frame_series",
    "frame_to_array",
    "frame_to_objects",
    "has_numbers_only",
    "is_frame",
    "library_of",
    "replace_cells",
    "select_columns",
    "series_to_float",
    "take_rows",
    "to_polars",
]


# -- what is a frame --


def collected(X: Any) -> Any:
    """Read lazy frames and make Arrow batches tables; return everything else unchanged."""
    library = type(X).__module__.partition(".")[0]
    if library == "polars" and hasattr(X, "collect"):
        return X.collect()
    if library == "pyarrow" and type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


def is_frame(X: Any) -> bool:
    """Whether X is a dataframe, in memory, of any library that narwhals knows."""
    module = type(X).__module__.partition(".")[0]
    if module in ("numpy", "builtins", "scipy"):
        return False
    import narwhals.stable.v2 as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def library_of(X: Any) -> str:
    """The library of a frame, such as "polars", "pandas" or "pyarrow"; "numpy" if X is no frame."""
    return type(X).__module__.partition(".")[0] if is_frame(X) else "numpy"


# -- columns --


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a frame, whatever their type."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


class _Names:
    """Receives `feature_names_in_` from scikit-learn, in place of the estimator."""


def feature_names(X: Any) -> np.ndarray | None:
    """The column names of a dataframe, if all are strings; None if X has no names."""
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return None
    columns = [name for name in column_names(X) if isinstance(name, str)]
    if len(set(columns)) < len(columns):
        repeated = sorted({name for name in columns if columns.count(name) > 1})
        raise InvalidDataError(
            f"X has more than one column named {', '.join(map(repr, repeated))}. Rename or drop "
            "them: columns are matched by name."
        )
    names = _Names()
    _check_feature_names(names, X, reset=True)
    return getattr(names, "feature_names_in_", None)


def frame_series(X: Any) -> list[tuple[Any, Any]]:
    """List (name, column as a narwhals Series) by position, because a name may occur twice."""
    import narwhals.stable.v2 as nw

    return [(name, nw.from_native(column, series_only=True)) for name, column in _native_series(X)]


def as_series(column: Any) -> Any | None:
    """A column of any library as a narwhals Series; None if it is not such a column."""
    import narwhals.stable.v2 as nw

    found = nw.from_native(column, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


def _native_series(X: Any) -> list[tuple[Any, Any]]:
    names = column_names(X)
    if hasattr(X, "iloc"):
        return [(name, X.iloc[:, j]) for j, name in enumerate(names)]
    if hasattr(X, "to_series"):
        return [(name, X.to_series(j)) for j, name in enumerate(names)]
    if hasattr(X, "column_names"):
        return [(name, X.column(j)) for j, name in enumerate(names)]
    frame = _narwhals_frame(X)
    return [(name, frame.get_column(name).to_native()) for name in frame.columns]


def _narwhals_frame(X: Any) -> Any:
    import narwhals.stable.v2 as nw

    return nw.from_native(X, eager_only=True)


def select_columns(X: Any, names: Sequence[str]) -> Any:
    """A frame of the same library with these columns only."""
    return _narwhals_frame(X)[list(names)].to_native()


def has_numbers_only(X: Any) -> bool:
    """Whether the types of all columns of a frame are numbers or booleans."""
    import narwhals.stable.v2 as nw

    kinds = [series.dtype for _, series in frame_series(X)]
    return all(kind.is_numeric() or kind == nw.Boolean for kind in kinds)


# -- frames as arrays --


def frame_to_array(X: Any) -> np.ndarray:
    """A frame of numbers and booleans as float64, or float32 if all columns are; NaN if missing."""
    import narwhals.stable.v2 as nw

    columns = []
    for name, series in frame_series(X):
        if not (series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Object, nw.Unknown)):
            raise InvalidDataError(
                f"Column {name!r} of X has type {series.dtype}, which is not a number. Encode it "
                "first, for example with sklearn.preprocessing.OneHotEncoder, or drop it."
            )
        columns.append(series_to_float(series, name))
    if not columns:
        return np.empty((X.shape[0], 0))
    kind = np.float32 if all(column.dtype == np.float32 for column in columns) else np.float64
    out = np.empty((len(columns[0]), len(columns)), dtype=kind)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def series_to_float(series: Any, name: Any) -> np.ndarray:
    """A narwhals Series of numbers as float64 or float32 (n,); NaN if missing."""
    import narwhals.stable.v2 as nw

    if series.dtype in (nw.Object, nw.Unknown):  # Python objects, pandas' sparse columns
        try:
            return np.asarray(series.to_list(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Column {name!r} of X: {error}") from error
    if series.dtype != nw.Float32:
        series = series.cast(nw.Float64)
    missing = series.is_null().to_numpy()
    if not missing.any():
        return np.asarray(series.to_numpy())
    values = np.array(series.fill_null(0.0).to_numpy(), dtype=np.float64)
    values[missing] = np.nan
    return values


def frame_to_objects(X: Any) -> np.ndarray:
    """A frame of any types as an array (n, d) of Python objects."""
    table = np.empty(X.shape, dtype=object)
    for j, (_, series) in enumerate(frame_series(X)):
        table[:, j] = series.to_list()
    return table


def column_to_list(X: Any, j: int) -> list[Any]:
    """The cells of column j of an array or a frame as Python objects."""
    if isinstance(X, np.ndarray):
        return list(X[:, j])
    return list(frame_series(X)[j][1].to_list())


# -- new frames --


def to_polars(X: Any) -> Any:
    """A frame of any library as a polars.DataFrame."""
    return _narwhals_frame(collected(X)).to_polars()


def frame_like(X: Any, columns: Mapping[str, np.ndarray]) -> Any | None:
    """Columns as a frame of the same library as X; None if X is no frame."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if not hasattr(frame, "implementation"):
        return None
    return nw.from_dict(dict(columns), backend=frame.implementation).to_native()


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a CSR matrix or a frame, by their numbers; types are kept."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[rows]
    return _narwhals_frame(X)[rows.tolist(), :].to_native()


def replace_cells(X: Any, j: int, rows: np.ndarray, others: np.ndarray) -> Any:
    """Take the rows `rows` of a table, but the cells of column j from the rows `others`.

    X is an array, a CSR matrix or a frame; types are kept. `others` is as long as `rows`.
    """
    if sp.issparse(X):
        taken = X[rows]
        blocks = [taken[:, :j], X[others][:, [j]], taken[:, j + 1 :]]
        return sp.hstack([block for block in blocks if block.shape[1]], format="csr")
    if isinstance(X, np.ndarray):
        changed = X[rows]
        changed[:, j] = X[others, j]
        return changed
    if hasattr(X, "iloc"):
        changed = X.iloc[rows].copy()
        changed.isetitem(j, X.iloc[others, j].array)
        return changed
    frame = _narwhals_frame(X)
    name = frame.columns[j]
    cells = frame.get_column(name)[others.tolist()]
    return frame[rows.tolist(), :].with_columns(cells.alias(name)).to_native()


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas.DataFrame of results; pandas is imported only here."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "frame() needs pandas, which is not installed: pip install pandas."
        ) from error
    return pd.DataFrame(dict(columns))
