"""Kernel expansions f(x) = sum_i c_i K(x_i, x), in float64 and bounded memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import sound_structure
from margrove._runtime import TILE_ROWS, Scratch, run_tiles, single_threaded_blas
from margrove.margin.kernels.blocks import TILE_COLUMNS
from margrove.margin.kernels.kernel import Kernel, Points

__all__ = ["dual_coefficients", "kernel_sums", "like_table"]


def dual_coefficients(model: Any) -> np.ndarray:
    """`dual_coef_` of a fitted machine as a dense array; it is sparse if X was."""
    coef = model.dual_coef_
    return np.asarray(sound_structure(coef).toarray() if sp.issparse(coef) else coef)


def like_table(coef: np.ndarray, X: Any) -> Any:
    """Coefficients as CSR if X is sparse, as in scikit-learn, else dense."""
    return sp.csr_array(coef) if sp.issparse(X) else coef


def kernel_sums(
    kernel: Kernel,
    points: Points,
    support: Points,
    coef: np.ndarray,
    edges: np.ndarray | None = None,
    *,
    n_threads: int = 1,
) -> np.ndarray:
    """K(points, support) @ coef, shape (len(points), coef.shape[1]).

    With `edges` (g + 1,) there is a sum for each of g groups of support vectors, and the shape is
    (g, len(points), coef.shape[1]).

    One GEMM and one pass for all columns of coef, tile by tile; a row of the result depends on its
    own point only. Overflow gives infinity or NaN, which the caller must check.
    """
    bounds = np.array([0, len(support)]) if edges is None else edges
    out = np.zeros((len(bounds) - 1, len(points), coef.shape[1]))
    kind = np.result_type(points.X.dtype, support.X.dtype)
    sources = [
        (group, support.take(tile), np.ascontiguousarray(coef[tile], dtype=kind))
        for group, (begin, end) in enumerate(pairwise(bounds.tolist()))
        for tile in _tiles(begin, end)
    ]
    scratch = Scratch()

    def add(tile: int) -> None:
        rows = slice(tile * TILE_ROWS, (tile + 1) * TILE_ROWS)
        tile_points = _padded(points.take(rows))
        with np.errstate(over="ignore", invalid="ignore"):
            for group, source, weights in sources:
                block = scratch.tile(TILE_ROWS, len(source), kind)
                kernel.block(tile_points, source, block)
                out[group, rows] += (block @ weights)[: len(out[group, rows])]

    with single_threaded_blas():
        run_tiles(add, -(-len(points) // TILE_ROWS), n_threads)
    return out if edges is not None else out[0]


def _padded(points: Points) -> Points:
    """A full tile of points; the last point is repeated if there are too few."""
    n = len(points)
    if n == TILE_ROWS:
        return points
    return points.take(np.minimum(np.arange(TILE_ROWS), n - 1))


def _tiles(begin: int, end: int) -> list[slice]:
    starts = range(begin, end, TILE_COLUMNS)
    return [slice(start, min(start + TILE_COLUMNS, end)) for start in starts]
