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

from margrove._data import check_table, like_fitted
from margrove._data.tables import _collected, _feature_names, _is_frame, _series_to_float
from margrove.exceptions import DataWarning, InvalidDataError

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
    X = _collected(X)
    names = _feature_names(X)
    if _is_frame(X) or _is_text(X):
        columns = _columns(X)
        mask = _mask(categorical_features, names, [_is_labels(c) for c in columns])
        categories = {int(j): _labels(columns[j]) for j in np.flatnonzero(mask)}
        table = _encoded(columns, categories, names)
        checked = check_table(table, estimator, allow_nan=True, accept_sparse=False)
        return TreeTable(checked.X, names, categories)
    checked = check_table(X, estimator, allow_nan=True)
    array = checked.X
    mask = _mask(categorical_features, names, [False] * array.shape[1])
    if not mask.any():
        return TreeTable(array, names, {})
    if sp.issparse(array):
        raise InvalidDataError(
            "categorical_features needs a dense X: a sparse matrix has no labels but zero. "
            "Use X.toarray()."
        )
    if np.isinf(array[:, mask]).any():
        refuse_infinity(array, estimator, names)
    categories = {int(j): _labels(array[:, j]) for j in np.flatnonzero(mask)}
    return TreeTable(_encoded(list(array.T), categories, names), names, categories)


def read_table_like_fitted(X: Any, estimator: Any) -> Any:
    """Check X as given to `predict`: the columns of the fit, unknown categories as missing."""
    from sklearn.utils.validation import _check_feature_names, _check_n_features

    X = _collected(X)
    categories: dict[int, np.ndarray] = estimator.categories_
    names = getattr(estimator, "feature_names_in_", None)
    if not categories:
        return like_fitted(X, estimator, allow_nan=True)
    _feature_names(X)
    _check_feature_names(estimator, X, reset=False)
    if _is_frame(X) or _is_text(X):
        columns = _columns(X)
    else:
        array = like_fitted(X, estimator, allow_nan=True)
        columns = list((array.toarray() if sp.issparse(array) else array).T)
    if len(columns) != estimator.n_features_in_:
        _check_n_features(estimator, np.empty((1, len(columns))), reset=False)
    unknown: list[str] = []
    array = _encoded(columns, categories, names, unknown)
    if unknown:
        warnings.warn(
            f"{type(estimator).__name__} has not seen {', '.join(unknown[:3])}"
            f"{' and others' if len(unknown) > 3 else ''} in training; such values are treated as "
            "missing.",
            DataWarning,
            stacklevel=4,
        )
    return array


def _is_text(X: Any) -> bool:
    """Arrays and lists of strings, or of objects among which there are some."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        if X.dtype.kind == "U":
            return True
        return X.dtype == object and any(isinstance(cell, str) for cell in X.ravel())
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (list, tuple)):
        return any(isinstance(cell, str) for row in X for cell in row)
    return False


def _columns(X: Any) -> list[np.ndarray]:
    """Each column as float64, or as an array of objects where it holds labels."""
    if not _is_frame(X):
        table = np.asarray(X, dtype=object)
        if table.ndim != 2:
            raise InvalidDataError("X must have the same number of cells in every row.")
        return [_narrowed(table[:, j]) for j in range(table.shape[1])]
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True)
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.get_column(name) if isinstance(name, str) else frame[:, position]
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            columns.append(np.asarray(_series_to_float(series, nw), dtype=np.float64))
        elif series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Unknown):
            cells = np.empty(len(series), dtype=object)
            cells[:] = series.to_list()
            columns.append(_narrowed(cells, keep=series.dtype in (nw.Categorical, nw.Enum)))
        else:
            raise InvalidDataError(
                f"Column {name!r} of X has type {series.dtype}, which is neither a number nor a "
                "label. Turn dates and durations into numbers first, or drop the column."
            )
    return columns


def _narrowed(cells: np.ndarray, *, keep: bool = False) -> np.ndarray:
    """Numbers where all cells are; None for missing in what stays objects."""
    missing = np.array([_is_missing(cell) for cell in cells], dtype=bool)
    if not keep and not any(isinstance(cell, str) for cell in cells[~missing]):
        numbers = np.full(len(cells), np.nan)
        try:
            numbers[~missing] = np.asarray(cells[~missing].tolist(), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"argument must be a string or a real number in X: {error}") from error
        return numbers
    labels = cells.copy()
    labels[missing] = None
    return labels


def _is_missing(cell: Any) -> bool:
    is_nan = isinstance(cell, (float, np.floating)) and cell != cell  # noqa: PLR0124
    return cell is None or is_nan or type(cell).__name__ in ("NAType", "NaTType")


def _is_labels(column: np.ndarray) -> bool:
    return column.dtype == object


def _labels(column: np.ndarray) -> np.ndarray:
    """The distinct labels of a column, sorted; of mixed types by their text."""
    if column.dtype != object:
        found = np.unique(column[~np.isnan(column)])
        whole = bool(np.all(found == np.floor(found)) and np.all(np.abs(found) < 2**53))
        return found.astype(np.int64) if whole else found
    distinct = list({cell for cell in column if cell is not None})
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=lambda label: (type(label).__name__, str(label)))
    labels = np.empty(len(distinct), dtype=object)
    labels[:] = distinct
    return labels


def _mask(given: Any, names: np.ndarray | None, by_type: list[bool]) -> np.ndarray:
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
    mask = found.copy()
    if chosen.dtype == bool:
        if chosen.shape != (d,):
            raise ValueError(
                f"categorical_features as a mask must have one entry for each of the {d} features. "
                f"Got shape {chosen.shape}."
            )
        return mask | chosen
    for one in chosen.ravel().tolist():
        if isinstance(one, str):
            if names is None or one not in names:
                raise ValueError(
                    f"categorical_features names the column {one!r}, which X does not have."
                )
            mask[list(names).index(one)] = True
        elif isinstance(one, int) and -d <= one < d:
            mask[one] = True
        else:
            raise ValueError(f"categorical_features holds {one!r}, but X has {d} features.")
    return mask


def _encoded(
    columns: list[np.ndarray],
    categories: dict[int, np.ndarray],
    names: np.ndarray | None,
    unknown: list[str] | None = None,
) -> np.ndarray:
    """All columns as numbers; labels that are not among the categories become NaN."""
    n = len(columns[0]) if columns else 0
    table = np.empty((n, len(columns)))
    for j, column in enumerate(columns):
        name = repr(str(names[j])) if names is not None else str(j)
        if j not in categories:
            if column.dtype == object:
                raise InvalidDataError(
                    f"Column {name} of X holds labels such as {column[0]!r}, but was a number in "
                    "training."
                )
            table[:, j] = column
            continue
        number = {label: k for k, label in enumerate(categories[j].tolist())}
        missing = float("nan")
        if column.dtype == object:
            cells = column.tolist()
        else:
            cells = [None if cell != cell else cell for cell in column.tolist()]  # noqa: PLR0124
        table[:, j] = [missing if cell is None else number.get(cell, missing) for cell in cells]
        if unknown is not None:
            strange = {cell for cell in cells if cell is not None and cell not in number}
            unknown.extend(f"{label!r} in column {name}" for label in sorted(strange, key=str))
    return table


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
