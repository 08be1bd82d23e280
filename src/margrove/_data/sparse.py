"""Checks every index of a sparse matrix, before compiled code (also SciPy's) trusts it."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data.rows import read_only
from margrove._runtime import kernel
from margrove.exceptions import InvalidDataError, MalformedSparseError

__all__ = ["canonical_csr", "sound_structure"]

_ROWS_AT_ONCE = 64


def sound_structure(X: Any) -> Any:
    """The same matrix with copies of its index arrays, which are checked; values are shared.

    The index arrays are copied because compiled code trusts them during the whole fit, and another
    thread could change the arrays of the user.
    """
    if X.ndim != 2:
        raise InvalidDataError(f"Expected 2D array, got a sparse array of {X.ndim} dimension(s).")
    if X.format in ("csr", "csc", "bsr"):
        checked = copy(X)
        checked.indptr, checked.indices = X.indptr.copy(), X.indices.copy()
        _check_compressed(checked)
        return checked
    if X.format == "coo":
        checked = copy(X)
        checked.coords = tuple(index.copy() for index in X.coords)
        for axis, index in enumerate(checked.coords):
            _check_index(index, checked.shape[axis], "row" if axis == 0 else "column")
            if len(index) != len(X.data):
                raise MalformedSparseError("X", f"{len(index)} indices for {len(X.data)} values")
        return checked
    if X.format == "lil":
        return _from_lists(X)
    if X.format == "dia" and X.data.shape[0] != len(X.offsets):
        raise MalformedSparseError("X", "the numbers of diagonals and offsets differ")
    return sound_structure(X.tocoo())


def _from_lists(X: Any) -> sp.csr_array:
    """A list-of-lists matrix as CSR, in Python, because SciPy's compiled code trusts the lists."""
    lengths = [len(row) for row in X.rows]
    if len(lengths) != X.shape[0] or lengths != [len(row) for row in X.data]:
        raise MalformedSparseError("X", "rows and data of the lists have different lengths")
    indices = np.array([column for row in X.rows for column in row])
    _check_index(indices, X.shape[1], "column")
    data = np.array([value for row in X.data for value in row], dtype=X.dtype)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_array((data, indices.astype(np.int64), indptr), shape=X.shape)


def _check_compressed(X: Any) -> None:
    n_major, n_minor = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        if X.data.ndim != 3 or min(X.data.shape[1:]) < 1:
            raise MalformedSparseError("X", f"blocks of shape {X.data.shape[1:]}")
        n_major, n_minor = n_major // X.data.shape[1], n_minor // X.data.shape[2]
    indptr, indices = X.indptr, X.indices
    if indptr.ndim != 1 or indices.ndim != 1:
        raise MalformedSparseError("X", "indptr and indices must be one-dimensional")
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise MalformedSparseError(
            "X", f"indptr has dtype {indptr.dtype} and indices {indices.dtype}, not integers"
        )
    if len(indptr) != n_major + 1:
        raise MalformedSparseError("X", f"indptr has {len(indptr)} entries, not {n_major + 1}")
    if indptr[0] != 0:
        raise MalformedSparseError("X", f"indptr starts with {indptr[0]}, not 0")
    if np.any(indptr[1:] < indptr[:-1]):
        position = int(np.argmax(indptr[1:] < indptr[:-1]))
        raise MalformedSparseError(
            "X", f"indptr decreases from {indptr[position]} to {indptr[position + 1]}"
        )
    if indptr[-1] > len(indices) or indptr[-1] > len(X.data):
        raise MalformedSparseError(
            "X",
            f"indptr ends with {indptr[-1]}, but there are {len(indices)} indices and "
            f"{len(X.data)} values",
        )
    _check_index(indices[: indptr[-1]], n_minor, "row" if X.format == "csc" else "column")


def _check_index(index: np.ndarray, size: int, axis: str) -> None:
    if len(index) == 0:
        return
    if index.dtype.kind not in "iu":
        raise MalformedSparseError("X", f"{axis} indices have dtype {index.dtype}, not integers")
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= size:
        bad = low if low < 0 else high
        raise MalformedSparseError("X", f"{axis} index {bad} is outside 0..{size - 1}")


def canonical_csr(X: Any) -> sp.csr_array:
    """A CSR matrix with sorted, unique column indices; the user's matrix is not changed."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise InvalidDataError(
            f"X has {X.shape[1]} columns; sparse input may have up to {np.iinfo(np.int32).max}. "
            "Hash them to fewer columns, for example with sklearn.feature_extraction.FeatureHasher."
        )
    stored = int(X.indptr[-1])
    indptr, indices, data = X.indptr, X.indices[:stored], X.data[:stored]
    if not _rows_ascend(read_only(indices), read_only(indptr)):
        row_of = np.repeat(np.arange(X.shape[0]), np.diff(indptr))
        sorted_rows = sp.coo_array((data, (row_of, indices)), shape=X.shape).tocsr()
        sorted_rows.sum_duplicates()
        return sorted_rows
    # SciPy converts both index arrays to int32 if that is enough, and copies nothing else.
    return sp.csr_array((data, indices, indptr), shape=X.shape)


@kernel(bare=True)
def _rows_ascend(indices, indptr):
    """Whether the indices of each row ascend; a row's first one may be anything.

    Some rows at a time: one loop over all their entries uses vector registers.
    """
    n = len(indptr) - 1
    for first in range(0, n, _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, n)
        begin = indptr[first]
        count = _n_steps_back(indices[begin : indptr[last]])
        for i in range(first + 1, last):
            p = indptr[i]
            if begin < p < indptr[i + 1]:
                count -= indices[p] <= indices[p - 1]
        if count != 0:
            return False
    return True


@kernel(inner=True)
def _n_steps_back(indices):
    """How many indices are not larger than the one before."""
    count = 0
    for p in range(1, len(indices)):
        count += indices[p] <= indices[p - 1]
    return count
