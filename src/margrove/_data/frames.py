"""Dataframes of any library: what is one, the names of its columns, and columns as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names

from margrove.exceptions import InvalidDataError

__all__ = ["collected", "column_to_float", "feature_names", "frame_to_array", "is_frame"]


def collected(X: Any) -> Any:
    """Lazy frames are read in and Arrow batches made tables; everything else is left as it is."""
    library = type(X).__module__.partition(".")[0]
    if library == "polars" and hasattr(X, "collect"):
        return X.collect()
    if library == "pyarrow" and type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


class _Names:
    """Takes what scikit-learn would have written to the estimator."""


def feature_names(X: Any) -> np.ndarray | None:
    """The names of the columns of a dataframe, if all are strings; None if it has none."""
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return None
    columns = list(X.columns if hasattr(X, "columns") else X.column_names)
    columns = [name for name in columns if isinstance(name, str)]
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise InvalidDataError(
            f"X has more than one column named {', '.join(map(repr, twice))}. Rename or drop them: "
            "columns are matched by name."
        )
    taker = _Names()
    _check_feature_names(taker, X, reset=True)
    return getattr(taker, "feature_names_in_", None)


def is_frame(X: Any) -> bool:
    """Whether X is a dataframe of any library that narwhals knows."""
    module = type(X).__module__.partition(".")[0]
    if module in ("numpy", "builtins", "scipy"):
        return False
    import narwhals.stable.v2 as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def frame_to_array(X: Any) -> np.ndarray:
    """Numeric and boolean columns of any dataframe library; missing becomes NaN."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True)
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.get_column(name) if isinstance(name, str) else frame[:, position]
        if not (series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Object, nw.Unknown)):
            raise InvalidDataError(
                f"Column {name!r} of X has type {series.dtype}, which is not a number. Encode it "
                "first, for example with sklearn.preprocessing.OneHotEncoder, or drop it."
            )
        columns.append(column_to_float(series, nw))
    if not columns:
        return np.empty((len(frame), 0))
    kind = np.float32 if all(column.dtype == np.float32 for column in columns) else np.float64
    out = np.empty((len(frame), len(columns)), dtype=kind)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def column_to_float(series: Any, nw: Any) -> np.ndarray:
    """A column of numbers, of narwhals, as float64 or float32 (n,); missing becomes NaN."""
    if series.dtype in (nw.Object, nw.Unknown):  # Python objects, pandas' sparse columns
        try:
            return np.asarray(series.to_list(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Column {series.name!r} of X: {error}") from error
    if series.dtype != nw.Float32:
        series = series.cast(nw.Float64)
    missing = series.is_null().to_numpy()
    if not missing.any():
        return np.asarray(series.to_numpy())
    values = np.array(series.fill_null(0.0).to_numpy(), dtype=np.float64)
    values[missing] = np.nan
    return values
