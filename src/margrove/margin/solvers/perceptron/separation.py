"""How well hyperplanes separate the data: margins and radius, as Novikoff's theorem needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import kernel_rows
from margrove._runtime import kernel, region
from margrove.exceptions import NumericalOverflowError

__all__ = ["Separation", "measure_separation", "scores_csr", "scores_dense"]

_ROWS_PER_TILE = 4096


@dataclass(frozen=True)
class Separation:
    """How well K problems are separated by given weights, in the space of (x, 1).

    margin  (K,) the smallest y (w.x + b) / ||(w, b)||, negative if a row is on the wrong side
    radius  the largest ||(x, 1)||, or ||x|| without an intercept
    """

    margin: np.ndarray
    radius: float


def measure_separation(
    X: Any,
    codes: np.ndarray,
    weight: np.ndarray,
    squared_norms: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    *,
    fit_intercept: bool,
    n_threads: int = 1,
) -> Separation:
    """Measure margins and radius in one pass over the rows of nonzero weight."""
    view = kernel_rows(X)
    n_tiles = -(-X.shape[0] // _ROWS_PER_TILE)
    W = np.ascontiguousarray(coef if view.is_dense else coef.T)
    first_class = 1 if len(coef) == 1 else 0
    smallest = np.full((n_tiles, len(coef)), np.inf)

    _measure_tile(n_tiles, n_threads, view, codes, weight, first_class, W, intercept, smallest)
    with np.errstate(over="ignore"):
        squared_norm = np.einsum("kj,kj->k", coef, coef)
    squared_radius = float(squared_norms[weight > 0].max())
    if not (np.isfinite(squared_norm).all() and np.isfinite(squared_radius)):
        raise NumericalOverflowError(
            "Floating-point overflow: the norms of the rows or of the weights are beyond floating "
            "point. Scaling input data with StandardScaler or MinMaxScaler might help."
        )
    if fit_intercept:
        squared_norm += intercept**2
        squared_radius += 1.0
    norm = np.sqrt(squared_norm)
    margin = np.divide(smallest.min(axis=0), norm, out=np.zeros(len(coef)), where=norm > 0) + 0.0
    return Separation(margin, float(np.sqrt(squared_radius)))


@kernel(fast_sums=True)
def scores_dense(buffer, c, W, f):
    """f[k] = w_k . x for all problems of the block; W is (K, d)."""
    for k in range(W.shape[0]):
        total = 0.0
        for j in range(W.shape[1]):
            total += buffer[c, j] * W[k, j]
        f[k] = total


@kernel
def scores_csr(data, indices, first, last, W, f):
    """The same for the CSR entries first .. last; W is (d, K)."""
    for k in range(W.shape[1]):
        f[k] = 0.0
    for p in range(first, last):
        x = data[p]
        j = np.uint64(indices[p])
        for k in range(W.shape[1]):
            f[k] += x * W[j, k]


@region
def _measure_tile(tile, X, codes, weight, first_class, W, intercept, smallest_of):
    """smallest_of[tile, k] = min y_k f_k over the rows of a tile of nonzero weight."""
    f, smallest = np.empty(len(intercept)), smallest_of[tile]
    for i in range(tile * _ROWS_PER_TILE, min((tile + 1) * _ROWS_PER_TILE, len(weight))):
        if weight[i] == 0.0:
            continue
        if X.is_dense:
            scores_dense(X.dense, i, W, f)
        else:
            first, last = X.indptr[i], X.indptr[i + 1]
            scores_csr(X.data, X.indices, first, last, W, f)
        for k in range(len(f)):
            value = f[k] + intercept[k]
            smallest[k] = min(smallest[k], value if codes[i] == first_class + k else -value)
