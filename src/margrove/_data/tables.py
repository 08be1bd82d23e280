"""Checks X: arrays, sparse matrices and dataframes become a C-contiguous array or CSR."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, _check_n_features

from margrove._data.columns import EXACT_INTEGERS
from margrove._data.frames import collected, feature_names, frame_to_array, is_frame
from margrove._data.rows import RowScan, scan_rows
from margrove._data.sparse import canonical_csr, sound_structure
from margrove.exceptions import DataWarning, InvalidDataError

__all__ = [
    "BadCell",
    "ScannedTable",
    "Table",
    "bad_cell",
    "check_and_scan",
    "check_table",
    "count_rows",
    "like_fitted",
    "message_about",
    "numeric_matrix",
    "require_finite",
]


@dataclass(frozen=True)
class Table:
    """A checked X and the names of its columns."""

    X: Any
    feature_names: np.ndarray | None

    @property
    def attributes(self) -> dict[str, Any]:
        """`n_features_in_` and, if the columns have names, `feature_names_in_`."""
        attributes: dict[str, Any] = {"n_features_in_": int(self.X.shape[1])}
        if self.feature_names is not None:
            attributes["feature_names_in_"] = self.feature_names
        return attributes


@dataclass(frozen=True)
class ScannedTable(Table):
    """A checked X and the scan of its rows."""

    scan: RowScan


def check_table(
    X: Any,
    estimator: Any,
    *,
    accept_sparse: bool = True,
    allow_nan: bool = False,
    min_rows: int = 1,
) -> Table:
    """Check the X of `fit`; nothing is stored in the estimator."""
    X = collected(X)
    names = feature_names(X)
    array = numeric_matrix(X, estimator, accept_sparse, min_rows)
    if not allow_nan:
        require_finite(array, names, estimator)
    return Table(array, names)


def check_and_scan(X: Any, estimator: Any, *, n_threads: int = 1) -> ScannedTable:
    """Check the X of `fit`, and scan it; the scan replaces the check for finite numbers."""
    table = check_table(X, estimator, allow_nan=True)
    scan = scan_rows(table.X, n_threads=n_threads)
    require_finite(table.X, table.feature_names, estimator, scan)
    return ScannedTable(table.X, table.feature_names, scan)


def like_fitted(
    X: Any,
    estimator: Any,
    *,
    accept_sparse: bool = True,
    allow_nan: bool = False,
    min_rows: int = 1,
) -> Any:
    """Check the X of `predict` and similar methods, against the columns seen in `fit`."""
    if _needs_no_check(X, estimator, min_rows):
        array = X
    else:
        if not sp.issparse(X) or hasattr(estimator, "feature_names_in_"):
            X = collected(X)
            feature_names(X)
            _check_feature_names(estimator, X, reset=False)
        array = numeric_matrix(X, estimator, accept_sparse, min_rows)
        _check_n_features(estimator, array, reset=False)
    if not allow_nan:
        require_finite(array, getattr(estimator, "feature_names_in_", None), estimator)
    return array


def _needs_no_check(X: Any, estimator: Any, min_rows: int) -> bool:
    """Whether X is valid up to NaN and infinity; the full checks take longer than a prediction."""
    return (
        _is_numeric_matrix(X, min_rows)
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
    )


def _is_numeric_matrix(X: Any, min_rows: int) -> bool:
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and len(X) >= min_rows
        and X.shape[1] > 0
    )


def _is_numeric_csr(X: Any, min_rows: int) -> bool:
    """Whether a matrix of sound structure has nothing that scikit-learn would convert or refuse."""
    return (
        X.format == "csr"
        and X.dtype in (np.float64, np.float32)
        and X.shape[0] >= min_rows
        and X.shape[1] > 0
    )


def count_rows(X: Any) -> int:
    """The number of rows of a table that is not checked yet."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def numeric_matrix(X: Any, estimator: Any, accept_sparse: bool, min_rows: int) -> Any:
    """X as a C-contiguous array or CSR of float64 or float32; NaN and infinity are allowed."""
    if _is_numeric_matrix(X, min_rows):
        return X
    if sp.issparse(X):
        X = sound_structure(X)
        if accept_sparse and _is_numeric_csr(X, min_rows):
            return canonical_csr(X)
    elif is_frame(X):
        X = frame_to_array(X)
    else:
        X = _plain_array(X)
    array = _checked(
        X,
        accept_sparse="csr" if accept_sparse else False,
        accept_large_sparse=True,
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
        estimator=estimator,
        input_name="X",
    )
    if sp.issparse(array):
        return canonical_csr(array)
    return np.ascontiguousarray(array)


def _checked(X: Any, **settings: Any) -> Any:
    try:
        return check_array(X, **settings)
    except OverflowError as error:  # Python integers beyond any float
        raise InvalidDataError(f"X contains a number too large for float64: {error}.") from error


def _plain_array(X: Any) -> Any:
    """Refuse input that NumPy would misinterpret, and warn if a conversion loses precision."""
    if isinstance(X, np.ma.MaskedArray):
        raise InvalidDataError(
            "X is a masked array, whose mask would be ignored. Pass X.filled(value), or use an "
            "imputer such as sklearn.impute.SimpleImputer."
        )
    if isinstance(X, (str, bytes, dict, set, frozenset, Iterator, PurePath)):
        raise InvalidDataError(
            f"Expected 2D array, got {type(X).__name__} instead. Pass rows of numbers: an array, a "
            "list of lists, a sparse matrix or a dataframe."
        )
    if not isinstance(X, np.ndarray):
        return X
    kind = X.dtype.kind
    if kind in "mMV":
        raise InvalidDataError(
            f"X has dtype {X.dtype}, which is not a number. Convert dates and durations to numbers "
            "first, for example to days since a date of your choice."
        )
    if kind in "US":
        cell = f"X[{', '.join('0' * X.ndim)}] = {str(X.flat[0])!r}" if X.size else "an empty array"
        raise InvalidDataError(
            f"dtype='numeric' is not compatible with arrays of bytes/strings: {cell}. Convert your "
            "data to numeric values explicitly, for example X.astype(float)."
        )
    if kind in "iu" and X.dtype.itemsize == 8 and X.size and _max_abs(X) > EXACT_INTEGERS:
        warnings.warn(
            "X contains integers above 2**53, which float64 cannot represent exactly. Subtract an "
            "offset or treat them as categories.",
            DataWarning,
            stacklevel=5,
        )
    if kind == "f" and X.dtype.itemsize > 8 and not np.array_equal(X, X.astype(np.float64)):
        warnings.warn(
            f"X has dtype {X.dtype} and was rounded to float64.", DataWarning, stacklevel=5
        )
    return X


def _max_abs(X: np.ndarray) -> int:
    return max(int(X.max()), -int(X.min()))


def require_finite(
    X: Any, names: np.ndarray | None, estimator: Any, scan: RowScan | None = None
) -> None:
    """Raise InvalidDataError for NaN or infinity; the message names the first one."""
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum() if scan is None else scan.squared_norms.sum()
        if np.isfinite(total):  # one fast pass; a second one only if the sum is not finite
            return
    cell = bad_cell(X)
    if cell is not None:
        raise InvalidDataError(message_about(cell, names, estimator))


class BadCell(NamedTuple):
    """The first value of a table that is not finite, and how many such cells there are."""

    row: int
    column: int
    value: float
    n_cells: int


def bad_cell(X: Any) -> BadCell | None:
    values = X.data if sp.issparse(X) else X
    bad = ~np.isfinite(values)
    if not bad.any():
        return None
    if sp.issparse(X):
        position = int(np.argmax(bad))
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        column, value = int(X.indices[position]), X.data[position]
    else:
        row, column = (int(i) for i in np.unravel_index(int(np.argmax(bad)), X.shape))
        value = X[row, column]
    return BadCell(row, column, float(value), int(bad.sum()))


def message_about(cell: BadCell, names: np.ndarray | None, estimator: Any) -> str:
    """The message of an error about values that are not finite."""
    column = f"column {cell.column}" if names is None else f"column {names[cell.column]!r}"
    what = "NaN" if np.isnan(cell.value) else "infinity"
    return (
        f"Input X contains {what} (first at row {cell.row}, {column}; {cell.n_cells} such values). "
        f"{type(estimator).__name__} needs finite numbers: drop these rows, or use "
        "sklearn.impute.SimpleImputer for missing values and a RobustScaler or clipping for "
        "infinity, or a value too large for dtype('float64')."
    )
