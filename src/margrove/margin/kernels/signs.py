"""The signs of an expansion, most of them from float32, with a bound of its error.

For a prediction of two classes only the sign of f(x) = sum_i c_i K(x_i, x) + b matters. It is
computed in float32 together with a bound of the error, and in float64 where the bound is not below
|f(x)|. So the signs are those of float64, in about half the time.

With unit roundoff u, a distance a'a + b'b - 2 a'b of d features has an error of at most
u (d + 12) (a'a + b'b): that of the product is u d |a'||b|, and 2 |a||b| <= a'a + b'b; rounded
coordinates, norms and sums take the rest. So with e = gamma u (d + 12) (a'a + b'b), an RBF value k
has an error of at most k (exp(e) - 1) <= 1.75 e k if e <= 1, plus that of the exponential.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import region, single_threaded_blas
from margrove.margin.kernels.expansions import kernel_sums_at, points_of_tile
from margrove.margin.kernels.functions import RBF
from margrove.margin.kernels.kernel import Kernel, Points
from margrove.margin.kernels.tiles import (
    COLUMNS,
    ROWS,
    TilePoints,
    fill_tile,
    in_slices,
    tile_points,
)

__all__ = ["signed_sums"]

_ROUNDOFF = 2.0**-24
_ERROR_OF_EXPONENTIAL = 4e-6
_SMALLEST = 1e-37  # float32 does not distinguish smaller RBF values
_FIRST = 4096  # rows from which the share of uncertain signs is estimated
_MOST_UNCERTAIN = 0.25  # a larger share makes float64 for all rows faster


def signed_sums(
    kernel: Kernel,
    X: Any,
    scale: float,
    shift: np.ndarray | None,
    support: Points,
    coef: np.ndarray,
    offset: float,
    *,
    n_threads: int = 1,
) -> np.ndarray:
    """K(points, support) @ coef + offset, shape (n, 1), of which only the signs are exact.

    For dense float64 rows and the RBF kernel; other kernels and rows get exact values.
    """

    def exact(rows: Any) -> np.ndarray:
        sums = kernel_sums_at(kernel, rows, scale, shift, support, coef, n_threads=n_threads)
        return np.asarray(sums + offset)

    sources = tile_points(kernel, support)
    is_wide = isinstance(X, np.ndarray) and X.dtype == np.float64
    if type(kernel) is not RBF or sources is None or not is_wide or coef.shape[1] != 1:
        return exact(X)
    float32_sums = _Float32Sums(sources, coef[:, 0], scale, shift, n_threads)
    with single_threaded_blas():
        values, bounds = float32_sums.of(X[:_FIRST])
        if np.mean(~(np.abs(values + offset) > bounds)) > _MOST_UNCERTAIN:
            return exact(X)
        others = float32_sums.of(X[_FIRST:])
        values, bounds = np.r_[values, others[0]] + offset, np.r_[bounds, others[1]]
        uncertain = np.flatnonzero(~(np.abs(values) > bounds))  # also where they are NaN
        if len(uncertain):
            values[uncertain] = exact(X[uncertain])[:, 0]
    return values[:, None]


class _Float32Sums:
    """Sums in float32, and bounds of their errors."""

    def __init__(
        self,
        sources: TilePoints,
        coef: np.ndarray,
        scale: float,
        shift: np.ndarray | None,
        n_threads: int,
    ) -> None:
        with np.errstate(over="ignore"):
            X = sources.X.astype(np.float32)
        self._sources = sources._replace(X=read_only(X))
        self._coef = read_only(np.ascontiguousarray(coef, dtype=np.float64))
        self._unit = float(np.abs(self._coef).max(initial=0.0)) or 1.0
        self._sizes = read_only((np.abs(self._coef) / self._unit).astype(np.float32))
        self._scale = scale
        self._shift = np.zeros(X.shape[1]) if shift is None else shift.astype(np.float64)
        with np.errstate(over="ignore"):
            by_norms = (np.abs(self._coef) / self._unit * sources.norms).astype(np.float32)
        self._by_norms = read_only(by_norms)
        starts = range(0, len(X), COLUMNS)
        norms = sources.norms
        self._largest = np.array([norms[k : k + COLUMNS].max() for k in starts])
        self._n_threads = n_threads

    def of(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, bounds = np.zeros(len(X)), np.zeros(len(X))
        n, d = self._sources.X.shape
        with np.errstate(over="ignore", invalid="ignore"):
            in_slices(
                _add_float32_tile, -(-len(X) // ROWS), self._n_threads, ROWS * n, d, read_only(X),
                self._scale, self._shift, self._sources, self._largest, self._coef, self._sizes,
                self._by_norms, values, bounds,
            )  # fmt: skip
            return values, self._unit * (1.01 * bounds + _SMALLEST * n)


@region(fast_sums=True)
def _add_float32_tile(
    tile, first, X, scale, shift, sources, largest, coef, sizes, by_norms, values, bounds
):  # fmt: skip
    """values += K(rows of the tile, sources) @ coef in float32; bounds += bounds of the errors.

    `sizes` are absolute coefficients in units of the largest, `by_norms` these times squared norms.
    """
    begin = (first + tile) * ROWS
    wide, a2 = points_of_tile(X, begin, scale, shift)
    A = wide.astype(np.float32)
    memory = np.empty(ROWS * min(COLUMNS, len(coef)), np.float32)
    unit = sources.formula.gamma * _ROUNDOFF * (X.shape[1] + 12)
    for k in range(len(largest)):
        start = k * COLUMNS
        end = min(start + COLUMNS, len(coef))
        block = memory[: ROWS * (end - start)].reshape(ROWS, end - start)
        B, b2 = sources.X[start:end], sources.norms[start:end]
        fill_tile(sources.formula, A, a2, B, b2, block)
        weights, absolute, scaled = coef[start:end], sizes[start:end], by_norms[start:end]
        for i in range(len(a2)):
            total, size, spread, row = 0.0, np.float32(0.0), np.float32(0.0), block[i]
            for j in range(len(weights)):
                total += np.float64(row[j]) * weights[j]
                size += row[j] * absolute[j]
                spread += row[j] * scaled[j]
            error = (1.75 * unit * a2[i] + _ERROR_OF_EXPONENTIAL) * np.float64(size)
            error += 1.75 * unit * np.float64(spread)
            values[begin + i] += total
            bounds[begin + i] += error if unit * (a2[i] + largest[k]) <= 1.0 else np.inf
