"""Kernel expansions f(x) = sum_i c_i K(x_i, x), in float64 and bounded memory."""

from __future__ import annotations

import numpy as np

from margrove._threads import run_tiles, single_threaded_blas
from margrove._tiles import TILE_ROWS
from margrove.margin.kernel_blocks import TILE_COLUMNS
from margrove.margin.kernels import Kernel, Points, tile_of

__all__ = ["kernel_sums"]


def kernel_sums(
    kernel: Kernel, points: Points, support: Points, coef: np.ndarray, *, n_threads: int = 1
) -> np.ndarray:
    """K(points, support) @ coef, shape (len(points), coef.shape[1]).

    One GEMM and one pass for all columns of coef, tile by tile; a row of the result depends on
    its own point only. Overflow shows as infinity or NaN, for the caller to look at.
    """
    out = np.zeros((len(points), coef.shape[1]))
    starts = range(0, len(support), TILE_COLUMNS)
    pieces = [slice(start, start + TILE_COLUMNS) for start in starts]
    sources = [(support.take(piece), np.ascontiguousarray(coef[piece])) for piece in pieces]

    def add(tile: int) -> None:
        rows = slice(tile * TILE_ROWS, (tile + 1) * TILE_ROWS)
        part = points.take(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            for source, weights in sources:
                block = tile_of(kernel, part, source)
                if len(part) < TILE_ROWS:
                    padded = np.zeros((TILE_ROWS, len(source)), dtype=block.dtype)
                    padded[: len(part)] = block
                    block = padded
                out[rows] += (block @ weights)[: len(part)]

    with single_threaded_blas():
        run_tiles(add, -(-len(points) // TILE_ROWS), n_threads)
    return out
