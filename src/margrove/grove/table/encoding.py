"""Tables for trees: numbers, and categories as numbers, with NaN for what is missing.

Strings and categorical columns of dataframes, arrays of strings, and columns that
`categorical_features` names are categories: their labels are kept, and a row holds their number.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import check_table, collected, feature_names, is_frame, like_fitted
from margrove.exceptions import DataWarning, InvalidDataError
from margrove.grove.table.label_columns import (
    LabelColumn,
    categorical_mask,
    encode_columns,
    is_text_table,
    labels_of_column,
    read_columns,
    smallest_category,
)

__all__ = ["TreeTable", "read_table", "read_table_like_fitted", "refuse_infinity"]


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
        """What an estimator remembers of the table."""
        remembered: dict[str, Any] = {
            "n_features_in_": int(self.X.shape[1]),
            "categories_": self.categories,
        }
        if self.feature_names is not None:
            remembered["feature_names_in_"] = self.feature_names
        return remembered

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
    if is_frame(X) or is_text_table(X):
        columns = read_columns(X)
        mask = categorical_mask(
            categorical_features, names, [isinstance(column, LabelColumn) for column in columns]
        )
        categories = {int(j): labels_of_column(columns[j], estimator) for j in np.flatnonzero(mask)}
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
            "categorical_features needs a dense X: a sparse matrix has no labels but zero. "
            "Use X.toarray()."
        )
    if np.isinf(array[:, mask]).any():
        refuse_infinity(array, estimator, names)
    categories = {int(j): labels_of_column(array[:, j], estimator) for j in np.flatnonzero(mask)}
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
    if is_frame(X) or is_text_table(X):
        columns = read_columns(X)
    else:
        array = like_fitted(X, estimator, allow_nan=True)
        columns = list((array.toarray() if sp.issparse(array) else array).T)
    if len(columns) != estimator.n_features_in_:
        _check_n_features(estimator, np.empty((1, len(columns))), reset=False)
    unknown: list[str] = []
    array = encode_columns(columns, categories, names, unknown, smallest_category(estimator))
    if unknown:
        warnings.warn(
            f"{type(estimator).__name__} has not seen {', '.join(unknown[:3])}"
            f"{' and others' if len(unknown) > 3 else ''} in training; such values are treated as "
            "missing.",
            DataWarning,
            stacklevel=4,
        )
    return array


def refuse_infinity(X: Any, estimator: Any, names: np.ndarray | None = None) -> None:
    """Raise for a table in which there is infinity; NaN is missing."""
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
