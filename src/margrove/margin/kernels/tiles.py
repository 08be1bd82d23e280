"""Tiles of a Gram matrix in compiled code, for dense rows and the kernels of the library.

A tile has ROWS rows and up to COLUMNS columns. Its inner products are one matrix product by BLAS,
whose shape is always the same in its rows, so that a row does not depend on the other rows; they
become kernel values while they are in the processor's cache. Regions over such tiles need no
Python. Sparse rows, Gram matrices and functions of users take the way of `Kernel.block`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import SLICE_SECONDS, kernel, overload
from margrove.margin.kernels.blocks import (
    TILE_COLUMNS,
    chi_square,
    city_block,
    exponential_block,
    power_block,
    rbf_block_32,
    rbf_block_64,
    tanh_block,
)
from margrove.margin.kernels.kernel import (
    CHI_SQUARE,
    LAPLACIAN,
    POLYNOMIAL,
    RBF,
    SIGMOID,
    Formula,
    Kernel,
    Points,
)

__all__ = [
    "COLUMNS",
    "ROWS",
    "TilePoints",
    "fill_tile",
    "in_slices",
    "padded_rows",
    "tile_points",
]

ROWS = 64  # a multiple of what any BLAS holds in registers
COLUMNS = TILE_COLUMNS
_SECONDS_OF_PRODUCT = 3e-11  # about, of a thread
_SECONDS_OF_ENTRY = 1e-9
_FAR = 1e-4  # relative rounding of an RBF value from which on float32 is not used
_FAR_AT_ONCE = 64  # columns


class TilePoints(NamedTuple):
    """Points as compiled tiles read them: C order, read-only.

    formula  the kernel
    X        float32 or float64 (n, d)
    norms    float64 (n,) squared norms
    """

    formula: Formula
    X: np.ndarray
    norms: np.ndarray

    def take(self, rows: np.ndarray) -> TilePoints:
        return TilePoints(self.formula, read_only(self.X[rows]), read_only(self.norms[rows]))


def tile_points(kernel: Kernel, points: Points) -> TilePoints | None:
    """The points for compiled tiles; None if the kernel or the rows have no compiled code."""
    formula = kernel.formula()
    X = points.X
    if formula is None or not isinstance(X, np.ndarray) or X.dtype not in (np.float32, np.float64):
        return None
    X = np.ascontiguousarray(X)
    norms = np.ascontiguousarray(points.squared_norms, dtype=np.float64)
    return TilePoints(formula, read_only(X), read_only(norms))


def in_slices(
    run: Callable[..., None], n_tiles: int, n_threads: int, entries: float, d: int, *arguments: Any
) -> None:
    """Run a region of tiles in calls that are short enough for an interrupt.

    The body gets the number of the first tile of its call as first argument. `entries` are the
    kernel values that a tile computes, of d features.
    """
    seconds = entries * (_SECONDS_OF_ENTRY + d * _SECONDS_OF_PRODUCT)
    most = max(1, int(SLICE_SECONDS / max(seconds, 1e-9))) * max(n_threads, 1)
    for first in range(0, n_tiles, most):
        run(min(most, n_tiles - first), n_threads, first, *arguments)


@kernel(hidden=True)
def padded_rows(X, start, size):
    """Rows start .. start + size of X; beyond the end, zeros."""
    if start + size <= len(X):
        return X[start : start + size]
    padded = np.zeros((size, X.shape[1]), X.dtype)
    for i in range(len(X) - start):
        for j in range(X.shape[1]):
            padded[i, j] = X[start + i, j]
    return padded


@kernel(hidden=True)
def fill_tile(formula, A, a2, B, b2, out):
    """out[i, j] <- K(a_i, b_j), i < len(a2), j < len(b2); the rest of `out` is undefined.

    A (ROWS, d) and B (COLUMNS, d) may be padded; a2 and b2 are the squared norms of the real rows.
    """
    if formula.code == LAPLACIAN:
        city_block(A, B, out, len(a2), len(b2))
    elif formula.code == CHI_SQUARE:
        chi_square(A, B, out, len(a2), len(b2))
    else:
        np.dot(A, B.T, out)
    if formula.code == RBF:
        _fill_rbf(formula.gamma, A, a2, B, b2, out)
    elif formula.code == POLYNOMIAL:
        power_block(out, len(a2), len(b2), formula.gamma, formula.coef0, formula.degree)
    elif formula.code == SIGMOID:
        tanh_block(out, len(a2), len(b2), formula.gamma, formula.coef0)
    elif formula.code == LAPLACIAN or formula.code == CHI_SQUARE:  # noqa: PLR1714
        exponential_block(out, len(a2), len(b2), formula.gamma)


def _fill_rbf(gamma, A, a2, B, b2, dots):
    """dots <- RBF values."""
    if dots.dtype == np.float32:
        _fill_rbf_32(gamma, A, a2, B, b2, dots)
    else:
        rbf_block_64(dots, a2, b2, gamma)


@overload(_fill_rbf)
def _fill_rbf_compiled(gamma, A, a2, B, b2, dots):
    def narrow(gamma, A, a2, B, b2, dots):
        _fill_rbf_32(gamma, A, a2, B, b2, dots)

    def wide(gamma, A, a2, B, b2, dots):
        rbf_block_64(dots, a2, b2, gamma)

    return narrow if dots.dtype.bitwidth == 32 else wide


@kernel(hidden=True)
def _fill_rbf_32(gamma, A, a2, B, b2, dots):
    """RBF values in float32; pairs far from the origin in float64.

    float32 loses their differences. The choice depends on the two points only, so that a value
    never depends on other points.
    """
    rbf_block_32(dots, a2.astype(np.float32), b2.astype(np.float32), gamma)
    rounding = gamma * np.float64(np.finfo(np.float32).eps)
    largest = _largest(a2)
    if not rounding * (largest + _largest(b2)) > _FAR:
        return
    far = np.empty(len(b2), np.int64)
    n_far = 0
    for j in range(len(b2)):
        far[n_far] = j
        n_far += np.int64(rounding * (largest + b2[j]) > _FAR)
    for start in range(0, n_far, _FAR_AT_ONCE):
        chosen = far[start : min(start + _FAR_AT_ONCE, n_far)]
        _repair_columns(gamma, A, a2, B, b2, chosen, rounding, dots)


@kernel(hidden=True)
def _repair_columns(gamma, A, a2, B, b2, columns, rounding, out):
    """Far pairs of some columns in float64, by a product of fixed shape."""
    right = np.zeros((_FAR_AT_ONCE, B.shape[1]))
    norms = np.empty(len(columns))
    for k in range(len(columns)):
        right[k] = B[columns[k]]
        norms[k] = b2[columns[k]]
    exact = np.empty((len(A), _FAR_AT_ONCE))
    np.dot(A.astype(np.float64), right.T, exact)
    rbf_block_64(exact, a2, norms, gamma)
    for i in range(len(a2)):
        for k in range(len(columns)):
            if rounding * (a2[i] + norms[k]) > _FAR:
                out[i, columns[k]] = exact[i, k]


@kernel(hidden=True)
def _largest(values):
    largest = 0.0
    for i in range(len(values)):
        largest = max(largest, values[i])
    return largest
