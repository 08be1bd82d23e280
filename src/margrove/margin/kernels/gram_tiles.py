"""Gram matrices, computed tile by tile on several threads.

Tiles have a fixed shape (see `matrix_tiles`), so that an entry depends on its two points only.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import TILE_ROWS, Scratch, on_large_pages, run_tiles, single_threaded_blas
from margrove.margin.kernels.blocks import TILE_COLUMNS
from margrove.margin.kernels.kernel import DotKernel, Kernel, Points

__all__ = ["gram", "gram_at_once", "symmetric_gram", "tile_of"]

_AT_ONCE = 1024  # points up to which the Gram matrix is one product


def gram(
    kernel: Kernel, A: Points, B: Points, *, out: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """K(a, b) for all pairs, tile by tile; the result does not depend on `n_threads`.

    A and B are `kernel.points(...)`; to get a Gram matrix from plain arrays, call the kernel.
    """
    kind = np.result_type(A.X.dtype, B.X.dtype)
    if out is None:
        out = np.empty((len(A), len(B)), dtype=kind)
    n_columns = -(-len(B) // TILE_COLUMNS)
    scratch = Scratch()

    def fill(tile: int) -> None:
        i, j = divmod(tile, n_columns)
        rows = slice(i * TILE_ROWS, (i + 1) * TILE_ROWS)
        columns = slice(j * TILE_COLUMNS, (j + 1) * TILE_COLUMNS)
        left, right = A.take(rows), B.take(columns)
        block = scratch.tile(len(left), len(right), kind)
        kernel.block(left, right, block)
        out[rows, columns] = block

    with single_threaded_blas():
        run_tiles(fill, -(-len(A) // TILE_ROWS) * n_columns, n_threads)
    return out


def symmetric_gram(
    kernel: Kernel, A: Points, *, out: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """K(a, a') for all pairs of points: one half is computed, the other half is copied."""
    n = len(A)
    if out is None:
        out = on_large_pages((n, n), A.X.dtype)
    is_plain = isinstance(A.X, np.ndarray) and A.X.dtype == np.float64
    if n <= _AT_ONCE and is_plain and isinstance(kernel, DotKernel):
        with single_threaded_blas():
            np.matmul(A.X, A.X.T, out=out)
        kernel.finish(out, A.squared_norms, A.squared_norms)
        return out
    stripes = [slice(i, min(i + TILE_COLUMNS, n)) for i in range(0, n, TILE_COLUMNS)]
    pairs = [(i, j) for i in range(len(stripes)) for j in range(i, len(stripes))]
    points = [A.take(stripe) for stripe in stripes]
    scratch = Scratch()

    def fill(pair: int) -> None:
        i, j = pairs[pair]
        for start in range(stripes[i].start, stripes[i].stop, TILE_ROWS):
            rows = slice(start, min(start + TILE_ROWS, stripes[i].stop))
            left = A.take(rows)
            block = scratch.tile(len(left), len(points[j]), A.X.dtype)
            kernel.block(left, points[j], block)
            out[rows, stripes[j]] = block
        if i != j:
            out[stripes[j], stripes[i]] = out[stripes[i], stripes[j]].T

    with single_threaded_blas():
        run_tiles(fill, len(pairs), n_threads)
    return out


def gram_at_once(kernel: Kernel, A: Points, B: Points) -> np.ndarray:
    """K(a, b) for all pairs on this thread, if possible in one GEMM without padding."""
    is_plain = isinstance(A.X, np.ndarray) and isinstance(B.X, np.ndarray)
    if not isinstance(kernel, DotKernel) or not is_plain:
        return gram(kernel, A, B)
    with single_threaded_blas():
        out = A.X @ B.X.T
    kernel.finish(out, A.squared_norms, B.squared_norms)
    return out


def tile_of(kernel: Kernel, A: Points, B: Points) -> np.ndarray:
    """K(a, b) for at most TILE_ROWS x TILE_COLUMNS pairs, on this thread."""
    tile = np.empty((len(A), len(B)), dtype=np.result_type(A.X.dtype, B.X.dtype))
    kernel.block(A, B, tile)
    return tile
