"""Sums over the cells of one row of X, dense or sparse, for other kernels."""

from __future__ import annotations

import numpy as np

from margrove._runtime import dot, kernel

__all__ = ["add_row", "row_value"]


@kernel(inner=True, fast_sums=True)
def row_value(X, row, w):
    """x.w for a row of X and w (d,). Unsigned indices avoid the test for negative ones."""
    if X.is_dense:
        return dot(X.dense[row], w)
    begin, end = X.indptr[row], X.indptr[row + 1]
    data, indices = X.data[begin:end], X.indices[begin:end]
    total = 0.0
    for p in range(len(data)):
        total += data[p] * w[np.uint32(indices[p])]
    return total


@kernel(inner=True)
def add_row(X, row, step, w):
    """w += step x"""
    if X.is_dense:
        x = X.dense[row]
        for j in range(len(x)):
            w[j] += step * x[j]
        return
    begin, end = X.indptr[row], X.indptr[row + 1]
    data, indices = X.data[begin:end], X.indices[begin:end]
    for p in range(len(data)):
        w[np.uint32(indices[p])] += step * data[p]
