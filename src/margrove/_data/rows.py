"""X as compiled code sees it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["Rows", "kernel_rows", "read_only"]


class Rows(NamedTuple):
    """X as compiled code sees it: row-major dense, or CSR; the unused half is empty.

    dense (n, d), data (nnz,), indices int32 (nnz,), indptr int64 (n + 1,), is_dense.
    """

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    is_dense: bool


def kernel_rows(X: Any) -> Rows:
    """View a checked X for compiled code, without a copy of its values."""
    if sp.issparse(X):
        empty = np.empty((0, 0), dtype=X.dtype)
        indices = X.indices.astype(np.int32, copy=False)
        indptr = X.indptr.astype(np.int64, copy=False)
        return Rows(
            read_only(empty), read_only(X.data), read_only(indices), read_only(indptr), False
        )
    no_index = read_only(np.empty(0, np.int32))
    no_pointer = read_only(np.empty(0, np.int64))
    return Rows(read_only(X), read_only(np.empty(0, X.dtype)), no_index, no_pointer, True)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view: one kernel signature whether or not the user's array is writable."""
    view = array.view()
    view.flags.writeable = False
    return view
