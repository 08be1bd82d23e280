"""Checks of X for an ensemble of any estimators: an array of numbers, or of objects with labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import _check_feature_names, _check_n_features

from margrove._data import (
    check_table,
    collected,
    feature_names,
    frame_to_objects,
    has_numbers_only,
    holds_text,
    is_frame,
    like_fitted,
)
from margrove._runtime import Estimator
from margrove.grove.table import read_table, refuse_infinity

__all__ = ["MixedTable", "read_mixed", "read_mixed_like_fitted"]


@dataclass(frozen=True)
class MixedTable:
    """A checked table: dense float64 or float32, CSR, or Python objects if there are labels.

    is_by_column: X was given as CSC, and members get CSC
    """

    X: Any
    attributes: dict[str, Any]
    is_by_column: bool = False

    @property
    def for_members(self) -> Any:
        """X for the fit of members: CSC if it was given as CSC."""
        return self.X.tocsc() if self.is_by_column else self.X

    def numbers(self, weight: np.ndarray) -> Any:
        """X as numbers, such that rows are equal if and only if their numbers are.

        Labels become codes of the sorted labels; rows of weight 0 are ignored.
        """
        if sp.issparse(self.X):
            return self.X
        if self.X.dtype != object:
            return self.X.reshape(len(self.X), -1)
        kept = np.flatnonzero(weight > 0)
        numbers = np.zeros(self.X.shape)
        numbers[kept] = read_table(self.X[kept], None, "from_dtype").X
        return numbers


def read_mixed(
    X: Any, estimator: Any, member: Any, *, rows_of_any_shape: bool = False
) -> MixedTable:
    """Check X as given to `fit` of an ensemble; the estimator is not changed.

    X that a member of this library does not accept raises an error here, which names the original
    row. With `rows_of_any_shape`, members of other libraries may get X of more than two dimensions.
    """
    X = collected(X)
    is_ours = isinstance(member, Estimator)
    if rows_of_any_shape and not is_ours and getattr(X, "ndim", 0) > 2:
        X = _array_of_any_shape(X, estimator)
        shape = tuple(int(size) for size in X.shape[1:])
        return MixedTable(X, {"n_features_in_": shape[0], "_row_shape": shape})
    names, is_by_column = feature_names(X), False
    if _has_labels(X):
        X = _as_objects(X)
        check_table(np.zeros(X.shape), estimator)  # the shape
    else:
        allow_nan = not is_ours or get_tags(member).input_tags.allow_nan
        given, is_by_column = type(X), sp.issparse(X) and X.format == "csc"
        X = check_table(X, estimator, allow_nan=allow_nan).X
        if is_ours and allow_nan and np.isinf(X.data if sp.issparse(X) else X).any():
            refuse_infinity(X, estimator, names)
        X = _same_kind(X, given)
    attributes: dict[str, Any] = {"n_features_in_": int(X.shape[1])}
    if names is not None:
        attributes["feature_names_in_"] = names
    return MixedTable(X, attributes, is_by_column)


def read_mixed_like_fitted(X: Any, estimator: Any) -> Any:
    """Check X as given to `predict`: it must have the columns of the fit."""
    X = collected(X)
    shape = getattr(estimator, "_row_shape", None)
    if shape is not None:
        X = _array_of_any_shape(X, estimator)
        if X.shape[1:] != shape:
            raise ValueError(
                f"X has rows of shape {X.shape[1:]}, but {type(estimator).__name__} was fitted on "
                f"rows of shape {shape}."
            )
        return X
    if not _has_labels(X):
        return _same_kind(like_fitted(X, estimator, allow_nan=True), type(X))
    feature_names(X)
    _check_feature_names(estimator, X, reset=False)
    X = _as_objects(X)
    _check_n_features(estimator, X, reset=False)
    return X


def _array_of_any_shape(X: Any, estimator: Any) -> np.ndarray:
    settings = {"allow_nd": True, "ensure_all_finite": False, "estimator": estimator}
    array: np.ndarray = check_array(X, dtype=[np.float64, np.float32], input_name="X", **settings)
    return array


def _has_labels(X: Any) -> bool:
    return not has_numbers_only(X) if is_frame(X) else holds_text(X)


def _as_objects(X: Any) -> np.ndarray:
    return frame_to_objects(X) if is_frame(X) else np.asarray(X, dtype=object)


def _same_kind(X: Any, given: type) -> Any:
    """Keep the sparse class that was given (for matrices `*` is a product); int32 indices."""
    if not sp.issparse(X):
        return X
    kind = sp.csr_matrix if issubclass(given, sp.spmatrix) else sp.csr_array
    short = np.int32 if max(X.nnz, X.shape[1]) <= np.iinfo(np.int32).max else np.int64
    indices, indptr = (index.astype(short, copy=False) for index in (X.indices, X.indptr))
    return kind((X.data, indices, indptr), shape=X.shape)
