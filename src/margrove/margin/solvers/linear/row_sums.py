"""Sums over the cells of one row of X, dense or sparse, for other kernels.

X, a tuple of four arrays, would take longer to pass than a short row takes: so `row_value` and
`add_row` become part of their callers.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import dot, kernel

__all__ = ["add_row", "row_value"]


@kernel(inner=True, inlined=True)
def row_value(X, row, w):
    """x.w for a row of X and w (d,)."""
    if X.is_dense:
        value = dot(X.dense[row], w)
    else:
        begin, end = X.indptr[row], X.indptr[row + 1]
        value = _dot_sparse(X.data[begin:end], X.indices[begin:end], w)
    return value


@kernel(inner=True, inlined=True)
def add_row(X, row, step, w):
    """w += step x"""
    if X.is_dense:
        _add_dense(X.dense[row], step, w)
    else:
        begin, end = X.indptr[row], X.indptr[row + 1]
        _add_sparse(X.data[begin:end], X.indices[begin:end], step, w)


@kernel(inner=True, fast_sums=True)
def _dot_sparse(data, indices, w):
    """Unsigned indices avoid the test for negative ones."""
    total = 0.0
    for p in range(len(data)):
        total += data[p] * w[np.uint32(indices[p])]
    return total


@kernel(inner=True)
def _add_dense(x, step, w):
    for j in range(len(x)):
        w[j] += step * x[j]


@kernel(inner=True)
def _add_sparse(data, indices, step, w):
    for p in range(len(data)):
        w[np.uint32(indices[p])] += step * data[p]
