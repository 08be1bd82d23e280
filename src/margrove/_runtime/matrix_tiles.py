"""Matrix products whose every entry depends on its own row and column only.

BLAS picks its code path by the shape of a product, so the same row can get another last bit when
other rows stand beside it, and a threaded BLAS may split a sum. Here products run over tiles of
one fixed shape (the last one padded with zeros), each on single-threaded BLAS, and our own threads
take tiles. Results are then independent of the number of threads and of the neighbours.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime.threads import run_tiles, single_threaded_blas

__all__ = ["TILE_ROWS", "Scratch", "on_large_pages", "padded_tile", "row_products"]

TILE_ROWS = 256


_LARGE = 2**22


def on_large_pages(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An empty array for which NumPy asks for huge pages, though it may be smaller than they are.

    The first touch of a page costs as much as a hundred computed kernel values.
    """
    size = int(np.prod(shape))
    room = max(size, _LARGE // np.dtype(dtype).itemsize + 1)
    return np.empty(room, dtype=dtype)[:size].reshape(shape)


class Scratch(threading.local):
    """A buffer for each thread, to be used again for tile after tile."""

    def __init__(self) -> None:
        self._buffer = np.empty(0)

    def tile(self, n_rows: int, n_columns: int, dtype: Any) -> np.ndarray:
        """A contiguous array with anything in it; the last one of this thread is overwritten."""
        size = n_rows * n_columns
        if self._buffer.size < size or self._buffer.dtype != dtype:
            self._buffer = on_large_pages((size,), dtype)
        return self._buffer[:size].reshape(n_rows, n_columns)


def padded_tile(X: np.ndarray, start: int, size: int) -> np.ndarray:
    """Rows start .. start + size of X; beyond the end, zeros."""
    tile = X[start : start + size]
    if len(tile) == size:
        return tile
    padded = np.zeros((size, X.shape[1]), dtype=X.dtype)
    padded[: len(tile)] = tile
    return padded


def row_products(X: Any, W: np.ndarray, *, n_threads: int = 1) -> np.ndarray:
    """X @ W for dense or CSR X (n, d) and dense W (d, k), in float64."""
    out = np.empty((X.shape[0], W.shape[1]), dtype=np.float64)
    W = np.ascontiguousarray(W, dtype=np.float64)

    def multiply(tile: int) -> None:
        start = tile * TILE_ROWS
        target = out[start : start + TILE_ROWS]
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks at the result
            if sp.issparse(X):
                target[:] = X[start : start + TILE_ROWS] @ W
            else:
                block = padded_tile(X, start, TILE_ROWS).astype(np.float64, copy=False)
                target[:] = (block @ W)[: len(target)]

    with single_threaded_blas():
        run_tiles(multiply, -(-X.shape[0] // TILE_ROWS), n_threads)
    return out
