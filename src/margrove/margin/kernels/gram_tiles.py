"""Gram matrices, computed tile by tile on several threads.

Tiles have a fixed shape (see `tiles`), so that an entry depends on its two points only.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import (
    TILE_ROWS,
    Scratch,
    on_large_pages,
    region,
    run_tiles,
    single_threaded_blas,
)
from margrove._runtime import (
    kernel as compiled,
)
from margrove.margin.kernels.blocks import TILE_COLUMNS
from margrove.margin.kernels.kernel import DotKernel, Kernel, Points
from margrove.margin.kernels.tiles import (
    COLUMNS,
    ROWS,
    TilePoints,
    fill_tile,
    in_slices,
    padded_rows,
    tile_points,
)

__all__ = [
    "copy_row",
    "fill_alone",
    "fill_grown",
    "fill_rows",
    "gram",
    "gram_at_once",
    "symmetric_gram",
]

_AT_ONCE = 1024  # points up to which products have no padding
_SQUARE = 16  # of a transposed copy, at a time


def gram(
    kernel: Kernel, A: Points, B: Points, *, out: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """K(a, b) for all pairs, tile by tile; the result does not depend on `n_threads`.

    A and B are `kernel.points(...)`; to get a Gram matrix from plain arrays, call the kernel.
    """
    kind = np.result_type(A.X.dtype, B.X.dtype)
    if out is None:
        out = np.empty((len(A), len(B)), dtype=kind)
    left, right = tile_points(kernel, A), tile_points(kernel, B)
    with single_threaded_blas():
        if left is None or right is None or not A.X.dtype == B.X.dtype == out.dtype:
            _fill_in_python(kernel, A, B, out, n_threads)
        else:
            fill_rows(left, right, np.arange(len(A)), out, n_threads=n_threads)
    return out


def _fill_in_python(kernel: Kernel, A: Points, B: Points, out: np.ndarray, n_threads: int) -> None:
    kind = np.result_type(A.X.dtype, B.X.dtype)
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

    run_tiles(fill, -(-len(A) // TILE_ROWS) * n_columns, n_threads)


def fill_rows(
    left: TilePoints, right: TilePoints, places: np.ndarray, out: np.ndarray, *, n_threads: int
) -> None:
    """out[places[i]] <- K(left i, all right)."""
    n_tiles = -(-len(left.X) // ROWS) * -(-len(right.X) // COLUMNS)
    entries, d = ROWS * COLUMNS, left.X.shape[1]
    in_slices(_fill_rows, n_tiles, n_threads, entries, d, left, right, places, out)


@region
def _fill_rows(tile, first, left, right, places, out):
    n_panels = (len(right.X) + COLUMNS - 1) // COLUMNS
    begin = (first + tile) // n_panels * ROWS
    column = (first + tile) % n_panels * COLUMNS
    B, b2 = padded_rows(right.X, column, COLUMNS), right.norms[column : column + COLUMNS]
    A, a2 = padded_rows(left.X, begin, ROWS), left.norms[begin : begin + ROWS]
    block = np.empty((ROWS, COLUMNS), out.dtype)
    fill_tile(left.formula, A, a2, B, b2, block)
    for i in range(len(a2)):
        copy_row(block[i], out[places[begin + i], column : column + len(b2)])


@compiled(inner=True)
def copy_row(row, out):
    """out <- the beginning of the row; a slice from 0, because offsets would not vectorise."""
    for j in range(len(out)):
        out[j] = row[j]


def symmetric_gram(
    kernel: Kernel, A: Points, *, out: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """K(a, a') for all pairs of points: one half is computed, the other half is copied."""
    n = len(A)
    if out is None:
        out = on_large_pages((n, n), A.X.dtype)
    points = tile_points(kernel, A)
    if n <= _AT_ONCE and points is None and isinstance(kernel, DotKernel):
        out[:] = gram_at_once(kernel, A, A)
        return out
    with single_threaded_blas():
        if points is None or A.X.dtype != out.dtype:
            _fill_symmetric_in_python(kernel, A, out, n_threads)
        elif n <= _AT_ONCE and out.dtype == np.float64 and out.flags.c_contiguous:
            _fill_few(points, out)
        else:
            _fill_symmetric(points, out, n_threads)
    return out


def _fill_symmetric_in_python(kernel: Kernel, A: Points, out: np.ndarray, n_threads: int) -> None:
    n = len(A)
    panels = [slice(i, min(i + TILE_COLUMNS, n)) for i in range(0, n, TILE_COLUMNS)]
    pairs = [(i, j) for i in range(len(panels)) for j in range(i, len(panels))]
    points = [A.take(panel) for panel in panels]
    scratch = Scratch()

    def fill(pair: int) -> None:
        i, j = pairs[pair]
        for start in range(panels[i].start, panels[i].stop, TILE_ROWS):
            rows = slice(start, min(start + TILE_ROWS, panels[i].stop))
            left = A.take(rows)
            block = scratch.tile(len(left), len(points[j]), A.X.dtype)
            kernel.block(left, points[j], block)
            out[rows, panels[j]] = block
        if i != j:
            out[panels[j], panels[i]] = out[panels[i], panels[j]].T

    run_tiles(fill, len(pairs), n_threads)


def _fill_symmetric(points: TilePoints, out: np.ndarray, n_threads: int) -> None:
    fill_grown(points, len(out), np.empty((0, 0), out.dtype), out, n_threads=n_threads)


def fill_grown(
    points: TilePoints, n_new: int, last: np.ndarray, out: np.ndarray, *, n_threads: int
) -> None:
    """out <- K(points, points), of which the corner beyond the first n_new is copied from `last`.

    Only tiles from the diagonal on are computed; the others are their transposed copies.
    """
    n, d = points.X.shape
    begins = np.arange(0, n_new, ROWS)
    tiles = [
        np.column_stack([found := begins[begins < column + COLUMNS], np.full(len(found), column)])
        for column in range(0, n, COLUMNS)
    ]
    corner = np.arange(n_new, n, ROWS)
    tiles.append(np.column_stack([corner, np.full(len(corner), -1)]))
    order = np.concatenate(tiles)
    in_slices(
        _fill_grown, len(order), n_threads, ROWS * COLUMNS, d, points, order, n_new, last, out
    )


@region
def _fill_grown(tile, first, points, tiles, n_new, last, out):
    begin, column = tiles[first + tile]
    if column < 0:
        for i in range(begin, min(begin + ROWS, len(out))):
            out[i, n_new:] = last[i - n_new, : len(out) - n_new]
        return
    _fill_both_halves(points, begin, column, n_new, out)


@compiled(hidden=True)
def _fill_both_halves(points, begin, column, n_new, out):
    """A tile of `out`, and its transposed copy."""
    block = np.empty((ROWS, COLUMNS), out.dtype)
    end = min(begin + ROWS, n_new)
    A, a2 = padded_rows(points.X, begin, ROWS), points.norms[begin:end]
    B, b2 = padded_rows(points.X, column, COLUMNS), points.norms[column : column + COLUMNS]
    fill_tile(points.formula, A, a2, B, b2, block)
    for i in range(len(a2)):
        copy_row(block[i], out[begin + i, column : column + len(b2)])
    on_diagonal = begin // COLUMNS * COLUMNS == column
    _copy_transposed(block, max(0, n_new - column) if on_diagonal else 0, len(a2), len(b2),
                     out[column:, begin:end])  # fmt: skip


@compiled(hidden=True)
def fill_alone(points, out):
    """out <- K(points, points) on this thread, with the bits of `symmetric_gram`; float64."""
    n = len(out)
    if n <= _AT_ONCE:
        _fill_few(points, out)
        return
    for column in range(0, n, COLUMNS):
        for begin in range(0, min(n, column + COLUMNS), ROWS):
            _fill_both_halves(points, begin, column, n, out)


@compiled
def _fill_few(points, out):
    """out <- K(points, points), by products without padding."""
    for begin in range(0, len(out), ROWS):
        end = min(begin + ROWS, len(out))
        A, B = points.X[begin:end], points.X[:end]
        block = np.empty((end - begin, end), out.dtype)
        fill_tile(points.formula, A, points.norms[begin:end], B, points.norms[:end], block)
        for i in range(end - begin):
            copy_row(block[i], out[begin + i, :end])
        _copy_transposed(block, 0, end - begin, begin, out[:begin, begin:end])
        for i in range(begin, end):
            for j in range(begin, i):
                out[j, i] = out[i, j]


@compiled(hidden=True)
def _copy_transposed(block, first, n_rows, n_columns, out):
    """out[j, i] = block[i, j] for j from `first` on, in squares, because strides are slow."""
    square = np.empty((_SQUARE, _SQUARE), block.dtype)
    for start in range(0, n_rows, _SQUARE):
        height = min(_SQUARE, n_rows - start)
        for left in range(first, n_columns, _SQUARE):
            width = min(_SQUARE, n_columns - left)
            corner = block[start : start + height, left : left + width]
            for i in range(height):
                for j in range(width):
                    square[j, i] = corner[i, j]
            for j in range(width):
                copy_row(square[j], out[left + j, start : start + height])


def gram_at_once(kernel: Kernel, A: Points, B: Points) -> np.ndarray:
    """K(a, b) for all pairs on this thread, if possible in one GEMM without padding."""
    is_plain = isinstance(A.X, np.ndarray) and isinstance(B.X, np.ndarray)
    if not isinstance(kernel, DotKernel) or not is_plain:
        return gram(kernel, A, B)
    with single_threaded_blas():
        out = A.X @ B.X.T
    kernel.finish(out, A.squared_norms, B.squared_norms)
    return out
