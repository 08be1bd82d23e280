"""Kernel expansions f(x) = sum_i c_i K(x_i, x), in float64 and bounded memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only, sound_structure
from margrove._runtime import TILE_ROWS, Scratch, region, run_tiles, single_threaded_blas
from margrove._runtime import kernel as compiled
from margrove.margin.kernels.blocks import add_products
from margrove.margin.kernels.kernel import Kernel, Points
from margrove.margin.kernels.sparse_sums import add_sparse_sums, is_sparse_sum
from margrove.margin.kernels.tiles import (
    COLUMNS,
    ROWS,
    TilePoints,
    fill_tile,
    in_slices,
    tile_points,
)

__all__ = ["dual_coefficients", "kernel_sums", "kernel_sums_at", "like_table", "points_of_tile"]

_FEW_COLUMNS = 4  # of coefficients, up to which a loop is faster than a matrix product


class _RawPoints(NamedTuple):
    """The points X * scale - shift, which are computed tile by tile."""

    X: np.ndarray
    scale: float
    shift: np.ndarray | None

    def __len__(self) -> int:
        return len(self.X)


def dual_coefficients(model: Any) -> np.ndarray:
    """`dual_coef_` of a fitted machine as a dense array; it is sparse if X was."""
    coef = model.dual_coef_
    return np.asarray(sound_structure(coef).toarray() if sp.issparse(coef) else coef)


def like_table(coef: np.ndarray, X: Any) -> Any:
    """Coefficients as CSR if X is sparse, as in scikit-learn, else dense."""
    return sp.csr_array(coef) if sp.issparse(X) else coef


def kernel_sums(
    kernel: Kernel,
    points: Any,
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
    pieces = [
        (group, tile)
        for group, (begin, end) in enumerate(pairwise(bounds.tolist()))
        for tile in _tiles(begin, end)
    ]
    if pieces and is_sparse_sum(kernel, points, support):
        add_sparse_sums(kernel, points, support, *_flat(pieces, coef, np.float64), out, n_threads)
        return out if edges is not None else out[0]
    sources = tile_points(kernel, support if support.X.dtype == kind else support.as_float64())
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        if sources is None or not isinstance(points.X, np.ndarray):
            _add_in_python(kernel, points, support, coef, pieces, out, n_threads)
        elif pieces:
            _add(points, sources, coef, pieces, out, n_threads)
    return out if edges is not None else out[0]


def kernel_sums_at(
    kernel: Kernel,
    X: Any,
    scale: float,
    shift: np.ndarray | None,
    support: Points,
    coef: np.ndarray,
    edges: np.ndarray | None = None,
    *,
    n_threads: int = 1,
) -> np.ndarray:
    """`kernel_sums` for the points X * scale - shift, which need no memory if X is dense."""
    points: Any = _RawPoints(X, scale, shift)
    is_dense = isinstance(X, np.ndarray) and isinstance(support.X, np.ndarray)
    if kernel.formula() is None or kernel.nonnegative or not is_dense:
        points = kernel.points(X if scale == 1.0 else X * scale, shift=shift)
    return kernel_sums(kernel, points, support, coef, edges, n_threads=n_threads)


def _add(
    points: Points | _RawPoints,
    sources: TilePoints,
    coef: np.ndarray,
    pieces: list[tuple[int, slice]],
    out: np.ndarray,
    n_threads: int,
) -> None:
    """The sums in compiled tiles of points."""
    X, kind, d = np.ascontiguousarray(points.X), sources.X.dtype, sources.X.shape[1]
    ranges, weights = _flat(pieces, coef, kind)
    scale, shift = getattr(points, "scale", 1.0), getattr(points, "shift", None)
    shift = np.zeros(d, dtype=kind) if shift is None else shift.astype(kind)
    in_slices(
        _add_tile, -(-len(X) // ROWS), n_threads, ROWS * len(sources.X), d,
        read_only(X), scale, shift, sources, ranges, weights, out,
    )  # fmt: skip


def _flat(
    pieces: list[tuple[int, slice]], coef: np.ndarray, kind: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Pieces (m, 3) and their coefficients as compiled tiles read them."""
    weights = np.concatenate([coef[tile].T.ravel() for _, tile in pieces]).astype(kind, copy=False)
    ranges = np.array([(group, tile.start, tile.stop) for group, tile in pieces], dtype=np.int64)
    return ranges, weights


@region
def _add_tile(tile, first, X, scale, shift, sources, pieces, weights, out):
    """out[group, rows of the tile] += K(rows, sources of a piece) @ weights, for each piece.

    pieces (m, 3): group, first and last source, without gaps; weights: of all pieces, each (k, n).
    Kernel values of several pieces are computed together, for up to COLUMNS sources. A source has a
    row of the block, whose length is always ROWS. So nothing else is padded.
    """
    begin = (first + tile) * ROWS
    A, a2 = points_of_tile(X, begin, scale, shift)
    k = out.shape[2]
    largest = min(COLUMNS, len(sources.X))
    memory, sums = np.empty(largest * ROWS, shift.dtype), np.empty((k, ROWS), shift.dtype)
    piece = 0
    while piece < len(pieces):
        start, last = pieces[piece, 1], piece + 1
        while last < len(pieces) and pieces[last, 2] - start <= COLUMNS:
            last += 1
        end = pieces[last - 1, 2]
        block = memory[: (end - start) * ROWS].reshape(end - start, ROWS)
        fill_tile(sources.formula, sources.X[start:end], sources.norms[start:end], A, a2, block)
        for number in range(piece, last):
            group, low, high = pieces[number]
            rows = out[group, begin : begin + len(a2)]
            own = weights[k * low : k * high].reshape(k, high - low)
            if k > _FEW_COLUMNS:
                np.dot(own, block[low - start : high - start], sums)
                _add_transposed(sums, rows)
            else:
                add_products(own, block[low - start : high - start], rows)
        piece = last


@compiled(bare=True)
def _add_transposed(sums, out):
    for i in range(len(out)):
        for c in range(len(sums)):
            out[i, c] += sums[c, i]


@compiled(hidden=True)
def points_of_tile(X, begin, scale, shift):
    """Rows of X times scale minus shift, padded to a tile, and their squared norms."""
    n_rows = min(ROWS, len(X) - begin)
    A, norms = np.zeros((ROWS, len(shift)), shift.dtype), np.empty(n_rows)
    write_points(X[begin : begin + n_rows], scale, shift, A, norms)
    return A, norms


@compiled(bare=True, fast_sums=True)
def write_points(X, scale, shift, A, norms):
    """A <- X times scale minus shift, row by row; norms <- their squared lengths.

    Writing and summing are two loops. In one, the compiler would check at run time whether A lies
    close behind the other arrays in memory, and add up in another order if it does.
    """
    real = shift.dtype.type
    for i in range(len(X)):
        for j in range(len(shift)):
            A[i, j] = real(scale) * real(X[i, j]) - shift[j]
        norm = 0.0
        for j in range(len(shift)):
            norm += np.float64(A[i, j]) * np.float64(A[i, j])
        norms[i] = norm


def _add_in_python(
    kernel: Kernel,
    points: Points,
    support: Points,
    coef: np.ndarray,
    pieces: list[tuple[int, slice]],
    out: np.ndarray,
    n_threads: int,
) -> None:
    kind = np.result_type(points.X.dtype, support.X.dtype)
    sources = [
        (group, support.take(tile), np.ascontiguousarray(coef[tile].T, dtype=kind))
        for group, tile in pieces
    ]
    scratch = Scratch()
    # Inner products of sparse rows are not those of BLAS, and need no full tile.
    needs_full = not (sp.issparse(points.X) and sp.issparse(support.X))

    def add(tile: int) -> None:
        rows = slice(tile * TILE_ROWS, (tile + 1) * TILE_ROWS)
        tile_points = _padded(points.take(rows)) if needs_full else points.take(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # a thread has its own setting
            for group, source, weights in sources:
                block = scratch.tile(TILE_ROWS, len(source), kind)
                kernel.block(tile_points, source, block[: len(tile_points)])
                target = out[group, rows]
                if len(weights) > _FEW_COLUMNS:
                    target += (block @ weights.T)[: len(target)]
                else:
                    add_products(weights, np.ascontiguousarray(block[: len(target)].T), target)

    run_tiles(add, -(-len(points) // TILE_ROWS), n_threads)


def _padded(points: Points) -> Points:
    """A full tile of points; the last point is repeated if there are too few."""
    n = len(points)
    if n == TILE_ROWS:
        return points
    return points.take(np.minimum(np.arange(TILE_ROWS), n - 1))


def _tiles(begin: int, end: int) -> list[slice]:
    starts = range(begin, end, COLUMNS)
    return [slice(start, min(start + COLUMNS, end)) for start in starts]
