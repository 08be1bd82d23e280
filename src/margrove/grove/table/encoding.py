"""Tables for trees: numbers, and categories as numbers, with NaN for missing values.

Categorical are: columns of strings or categories in dataframes, arrays of strings, and the columns
in `categorical_features`. Their labels are kept, and a cell holds the number of its label.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from margrove._data import (
    Cells,
    DateCells,
    LabelCells,
    NumberCells,
    UnreadableCells,
    check_table,
    collected,
    columns_of,
    feature_names,
    holds_text,
    is_frame,
    like_fitted,
)
from margrove.exceptions import DataWarning, InvalidDataError

__all__ = [
    "TreeTable",
    "categorical_mask",
    "category_labels",
    "encode_columns",
    "read_columns",
    "read_table",
    "read_table_like_fitted",
    "refuse_infinity",
]


@dataclass(frozen=True)
class TreeTable:
    """A checked table.

    X            dense float64 or float32, or CSR; NaN is missing; categories as numbers
    categories   {column: labels}
    """

    X: Any
    feature_names: np.ndarray | None
    categories: dict[int, np.ndarray]

    def of_rows(self, rows: np.ndarray | slice) -> TreeTable:
        """The table of some rows."""
        if isinstance(rows, slice):
            return self
        return TreeTable(self.X[rows], self.feature_names, self.categories)

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that describe the table."""
        found: dict[str, Any] = {
            "n_features_in_": int(self.X.shape[1]),
            "categories_": self.categories,
        }
        if self.feature_names is not None:
            found["feature_names_in_"] = self.feature_names
        return found

    @property
    def is_categorical(self) -> np.ndarray:
        mask = np.zeros(self.X.shape[1], dtype=bool)
        mask[list(self.categories)] = True
        return mask

    @property
    def n_categories(self) -> np.ndarray:
        counts = np.zeros(self.X.shape[1], np.int64)
        for column, labels in self.categories.items():
            counts[column] = len(labels)
        return counts


def read_table(X: Any, estimator: Any, categorical_features: Any) -> TreeTable:
    """Check X as given to `fit`; nothing is stored on the estimator."""
    X = collected(X)
    names = feature_names(X)
    if is_frame(X) or holds_text(X):
        columns = read_columns(X)
        mask = categorical_mask(
            categorical_features, names, [isinstance(column, LabelCells) for column in columns]
        )
        categories = {int(j): category_labels(columns[j], estimator) for j in np.flatnonzero(mask)}
        table = encode_columns(columns, categories, names)
        checked = check_table(table, estimator, allow_nan=True, accept_sparse=False)
        return TreeTable(checked.X, names, categories)
    checked = check_table(X, estimator, allow_nan=True)
    array = checked.X
    mask = categorical_mask(categorical_features, names, [False] * array.shape[1])
    if not mask.any():
        return TreeTable(array, names, {})
    if sp.issparse(array):
        raise InvalidDataError(
            "categorical_features needs a dense X, because zeros of a sparse matrix are no labels. "
            "Use X.toarray()."
        )
    if np.isinf(array[:, mask]).any():
        refuse_infinity(array, estimator, names)
    categories = {int(j): category_labels(array[:, j], estimator) for j in np.flatnonzero(mask)}
    return TreeTable(encode_columns(list(array.T), categories, names), names, categories)


def read_table_like_fitted(X: Any, estimator: Any) -> Any:
    """Check X as given to `predict`: the columns of the fit, unknown categories as missing."""
    categories: dict[int, np.ndarray] = estimator.categories_
    if not categories:
        return like_fitted(X, estimator, allow_nan=True)
    from sklearn.utils.validation import _check_feature_names, _check_n_features

    X = collected(X)
    names = getattr(estimator, "feature_names_in_", None)
    feature_names(X)
    _check_feature_names(estimator, X, reset=False)
    if is_frame(X) or holds_text(X):
        columns = read_columns(X)
    else:
        array = like_fitted(X, estimator, allow_nan=True)
        columns = list((array.toarray() if sp.issparse(array) else array).T)
    if len(columns) != estimator.n_features_in_:
        _check_n_features(estimator, np.empty((1, len(columns))), reset=False)
    unknown: list[str] = []
    array = encode_columns(columns, categories, names, unknown, _smallest_category(estimator))
    if unknown:
        warnings.warn(
            f"{type(estimator).__name__} has not seen {', '.join(unknown[:3])}"
            f"{' and others' if len(unknown) > 3 else ''} in training; such values are treated as "
            "missing.",
            DataWarning,
            stacklevel=4,
        )
    return array


Column = np.ndarray | LabelCells


def read_columns(X: Any) -> list[Column]:
    """Each column of a dataframe, or of rows of Python objects, as float64 or as labels."""
    return [_numbers_or_labels(cells) for cells in columns_of(X)]


def _numbers_or_labels(cells: Cells | UnreadableCells) -> Column:
    if isinstance(cells, NumberCells) and not cells.is_duration:
        return cells.values
    if not isinstance(cells, LabelCells):
        _refuse(cells)
    if cells.is_category or any(isinstance(label, str) for label in cells.labels):
        return cells
    try:
        values = np.asarray([*cells.labels, np.nan], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"argument must be a string or a real number in X: {error}") from error
    return np.asarray(values[cells.codes])


def _refuse(cells: NumberCells | DateCells | UnreadableCells) -> NoReturn:
    what = "holds dates" if isinstance(cells, DateCells) else "holds durations"
    if isinstance(cells, UnreadableCells):
        if not cells.by_column:
            raise TypeError(
                f"argument must be a string or a real number in X: column {cells.name!r} holds a "
                f"{cells.type_name}."
            )
        what = f"has type {cells.type_name}"
    raise InvalidDataError(
        f"Column {cells.name!r} of X {what}, which is neither a number nor a label. Turn dates and "
        "durations into numbers first, or drop the column."
    )


def _smallest_category(estimator: Any) -> float:
    """The smallest number that is a category; 0 for estimators of which scikit-learn has a twin."""
    return 0.0 if getattr(estimator, "_negative_is_missing", False) else -np.inf


def category_labels(column: Column, estimator: Any) -> np.ndarray:
    """The distinct labels of a column, sorted; labels of mixed types are sorted by their text."""
    if not isinstance(column, LabelCells):
        found = np.unique(column[column >= _smallest_category(estimator)])  # without NaN
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
    """Which columns are categorical, bool (d,): by their types and by `categorical_features`."""
    d = len(by_type)
    found = np.array(by_type, dtype=bool)
    if given is None:
        if found.any():
            j = int(np.argmax(found))
            column = repr(str(names[j])) if names is not None else str(j)
            raise InvalidDataError(
                f"Column {column} of X holds labels. Encode it, or use "
                "categorical_features='from_dtype'."
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
    found[[_column_number(one, names, d) for one in _listed(chosen)]] = True
    return found


def _listed(chosen: np.ndarray) -> list[int | str]:
    """The chosen numbers and names of columns as a list; a ValueError for other types."""
    listed = chosen.ravel().tolist()
    strange = {type(one).__name__ for one in listed
               if not isinstance(one, (Integral, str)) or isinstance(one, bool)}  # fmt: skip
    if strange:
        got = ", ".join(sorted(strange)) if chosen.dtype == object else chosen.dtype.name
        raise ValueError(
            f"categorical_features must be an array-like of bool, int or str, got: {got}."
        )
    return listed


def _column_number(one: int | str, names: np.ndarray | None, d: int) -> int:
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

    Texts about these labels are appended to `unknown`, except for numbers below `smallest`, which
    mean missing.
    """
    first = columns[0] if columns else np.empty(0)
    table = np.empty((len(first), len(columns)))
    for j, column in enumerate(columns):
        name = repr(str(names[j])) if names is not None else str(j)
        if j not in categories:
            if isinstance(column, LabelCells):
                raise InvalidDataError(
                    f"Column {name} of X holds labels such as {column.labels[0]!r}, but was a "
                    "number in training."
                )
            table[:, j] = column
            continue
        cells = column if isinstance(column, LabelCells) else _as_labels(column)
        number = {label: float(k) for k, label in enumerate(categories[j].tolist())}
        numbers = [number.get(label, np.nan) for label in cells.labels]
        table[:, j] = np.array([*numbers, np.nan])[cells.codes]
        if unknown is not None:
            strange = [
                label
                for label in cells.labels
                if label not in number and (isinstance(column, LabelCells) or label >= smallest)
            ]
            unknown.extend(f"{label!r} in column {name}" for label in sorted(strange, key=str))
    return table


def _as_labels(column: np.ndarray) -> LabelCells:
    """A column of numbers as labels; NaN is missing."""
    found, codes = np.unique(column, return_inverse=True)
    known = int((~np.isnan(found)).sum())
    return LabelCells("", np.where(codes < known, codes, -1), found[:known].tolist())


def refuse_infinity(X: Any, estimator: Any, names: np.ndarray | None = None) -> None:
    """Raise an error that says where the table X has infinity."""
    names = getattr(estimator, "feature_names_in_", None) if names is None else names
    where = ""
    if not sp.issparse(X):
        bad = np.isinf(X)
        row, column = (int(k) for k in np.unravel_index(int(np.argmax(bad)), X.shape))
        name = repr(str(names[column])) if names is not None else str(column)
        where = f" (first at row {row}, column {name})"
    raise InvalidDataError(
        f"Input X contains infinity{where} or a value too large for dtype('float64'). "
        f"{type(estimator).__name__} takes NaN as missing; replace infinity by a large number."
    )
