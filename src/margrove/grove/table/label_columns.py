"""Columns of labels: which columns have them, what they are, and labels as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from margrove._data import column_to_float, is_frame
from margrove.exceptions import InvalidDataError

__all__ = [
    "Column",
    "LabelColumn",
    "categorical_mask",
    "encode_columns",
    "is_missing",
    "is_text_table",
    "labels_of_column",
    "read_columns",
    "smallest_category",
]


def is_text_table(X: Any) -> bool:
    """Arrays and lists of strings, or of objects among which there are some."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        if X.dtype.kind == "U":
            return True
        return X.dtype == object and any(isinstance(cell, str) for cell in X.ravel())
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        return any(isinstance(cell, str) for row in X for cell in row)
    return False


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels: codes into those that occur, -1 for missing."""

    codes: np.ndarray
    labels: list[Any]


Column = np.ndarray | LabelColumn


def read_columns(X: Any) -> list[Column]:
    """Each column as float64, or as labels."""
    if not is_frame(X):
        table = np.asarray(X, dtype=object)
        if table.ndim != 2:
            raise InvalidDataError("X must have the same number of cells in every row.")
        return [_narrowed(table[:, j].tolist()) for j in range(table.shape[1])]
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True)
    columns: list[Column] = []
    for position, name in enumerate(frame.columns):
        series = frame.get_column(name) if isinstance(name, str) else frame[:, position]
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            columns.append(np.asarray(column_to_float(series, nw), dtype=np.float64))
        elif hasattr(series.to_native(), "cat") and series.implementation.is_pandas():
            columns.append(_of_categorical(series.to_native().array))
        elif series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Unknown):
            keep = series.dtype in (nw.Categorical, nw.Enum)
            columns.append(_narrowed(series.to_list(), keep=keep))
        else:
            raise InvalidDataError(
                f"Column {name!r} of X has type {series.dtype}, which is neither a number nor a "
                "label. Turn dates and durations into numbers first, or drop the column."
            )
    return columns


def _of_categorical(array: Any) -> LabelColumn:
    """What pandas has coded already; categories that do not occur are left out."""
    codes = np.asarray(array.codes, dtype=np.int64)
    used = np.unique(codes[codes >= 0])
    place = np.full(len(array.categories) + 1, -1)
    place[used] = np.arange(len(used))
    return LabelColumn(place[codes], [array.categories[k] for k in used.tolist()])


def _narrowed(cells: list[Any], *, keep: bool = False) -> Column:
    """Numbers where all cells are (unless they are to be kept as labels), else labels."""
    number: dict[Any, int] = {}
    try:
        codes = np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)
    except TypeError as error:  # what has no hash is neither
        raise TypeError(f"argument must be a string or a real number in X: {error}") from error
    distinct = list(number)
    kept = [k for k, label in enumerate(distinct) if not is_missing(label)]
    if keep or any(isinstance(distinct[k], str) for k in kept):
        place = np.full(len(distinct) + 1, -1)
        place[kept] = np.arange(len(kept))
        return LabelColumn(place[codes], [distinct[k] for k in kept])
    values = np.full(len(distinct) + 1, np.nan)
    try:
        values[kept] = np.asarray([distinct[k] for k in kept], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"argument must be a string or a real number in X: {error}") from error
    return np.asarray(values[codes])


def is_missing(cell: Any) -> bool:
    """None, NaN, or what pandas has for them."""
    is_nan = isinstance(cell, (float, np.floating)) and cell != cell  # noqa: PLR0124
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def smallest_category(estimator: Any) -> float:
    """Smaller numbers are missing: negative ones, where scikit-learn has the estimator."""
    return 0.0 if getattr(estimator, "_negative_is_missing", False) else -np.inf


def labels_of_column(column: Column, estimator: Any) -> np.ndarray:
    """The distinct labels of a column, sorted; of mixed types by their text."""
    if not isinstance(column, LabelColumn):
        found = np.unique(column[column >= smallest_category(estimator)])  # NaN is not
        whole = bool(np.all(found == np.floor(found)) and np.all(np.abs(found) < 2**53))
        return found.astype(np.int64) if whole else found
    distinct = list(column.labels)
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=lambda label: (type(label).__name__, str(label)))
    labels = np.empty(len(distinct), dtype=object)
    labels[:] = distinct
    return labels


def categorical_mask(given: Any, names: np.ndarray | None, by_type: list[bool]) -> np.ndarray:
    """Which columns are categorical."""
    d = len(by_type)
    found = np.array(by_type, dtype=bool)
    if given is None:
        if found.any():
            j = int(np.argmax(found))
            column = repr(str(names[j])) if names is not None else str(j)
            raise InvalidDataError(
                f"Column {column} of X holds labels. Encode it, or let categorical_features be "
                "'from_dtype'."
            )
        return found
    if isinstance(given, str):
        return found if given == "from_dtype" else np.ones(d, dtype=bool)
    chosen = np.asarray(given)
    if chosen.dtype == bool:
        if chosen.shape != (d,):
            raise ValueError(
                "categorical_features set as a boolean mask must have shape (n_features,) = "
                f"({d},). Got {chosen.shape}."
            )
        return found | chosen
    found[[_place_of_column(one, names, d) for one in _listed(chosen)]] = True
    return found


def _listed(chosen: np.ndarray) -> list[int | str]:
    """Numbers and names of columns."""
    listed = chosen.ravel().tolist()
    strange = {type(one).__name__ for one in listed
               if not isinstance(one, (Integral, str)) or isinstance(one, bool)}  # fmt: skip
    if strange:
        got = ", ".join(sorted(strange)) if chosen.dtype == object else chosen.dtype.name
        raise ValueError(
            f"categorical_features must be an array-like of bool, int or str, got: {got}."
        )
    return listed


def _place_of_column(one: int | str, names: np.ndarray | None, d: int) -> int:
    if isinstance(one, str):
        if names is None:
            raise ValueError(
                "categorical_features should be passed as an array of integers or as a boolean "
                f"mask when the model is fitted on data without feature names. Got {one!r}."
            )
        if one not in names:
            raise ValueError(
                f"categorical_features has an item value {one!r} which is not a valid feature name "
                f"of the training data. Observed feature names: {', '.join(map(repr, names[:20]))}"
                f"{' and others' if d > 20 else ''}."
            )
        return int(np.argmax(names == one))
    if not 0 <= one < d:
        raise ValueError(
            f"categorical_features set as integer indices must be in [0, n_features - 1] = [0, "
            f"{d - 1}]. Got {one}."
        )
    return int(one)


def encode_columns(
    columns: list[Any],
    categories: dict[int, np.ndarray],
    names: np.ndarray | None,
    unknown: list[str] | None = None,
    smallest: float = -np.inf,
) -> np.ndarray:
    """All columns as numbers; labels that are not among the categories become NaN.

    `unknown` is told of these, except of numbers below the smallest, which mean missing.
    """
    first = columns[0] if columns else np.empty(0)
    n = len(first.codes if isinstance(first, LabelColumn) else first)
    table = np.empty((n, len(columns)))
    for j, column in enumerate(columns):
        name = repr(str(names[j])) if names is not None else str(j)
        if j not in categories:
            if isinstance(column, LabelColumn):
                raise InvalidDataError(
                    f"Column {name} of X holds labels such as {column.labels[0]!r}, but was a "
                    "number in training."
                )
            table[:, j] = column
            continue
        own = column if isinstance(column, LabelColumn) else _of_numbers(column)
        number = {label: float(k) for k, label in enumerate(categories[j].tolist())}
        numbers = [number.get(label, np.nan) for label in own.labels]
        table[:, j] = np.array([*numbers, np.nan])[own.codes]
        if unknown is not None:
            strange = [
                label
                for label in own.labels
                if label not in number and (isinstance(column, LabelColumn) or label >= smallest)
            ]
            unknown.extend(f"{label!r} in column {name}" for label in sorted(strange, key=str))
    return table


def _of_numbers(column: np.ndarray) -> LabelColumn:
    """Numbers as labels."""
    found, codes = np.unique(column, return_inverse=True)
    known = int((~np.isnan(found)).sum())
    return LabelColumn(np.where(codes < known, codes, -1), found[:known].tolist())
