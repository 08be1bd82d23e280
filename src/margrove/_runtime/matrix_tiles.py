"""Matrix products in which every entry depends on its own row and column only.

BLAS selects its code by the shape of a product, so the last bit of a row's result can depend on
the other rows, and a threaded BLAS may split a sum. Here products run over tiles of one fixed shape
(the last one padded with zeros), each on single-threaded BLAS, and our own threads take tiles. So
results depend neither on the number of threads nor on the other rows.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime.pool import run_tiles
from margrove._runtime.threads import single_threaded_blas

__all__ = ["TILE_ROWS", "Scratch", "on_large_pages", "padded_tile", "row_products"]

TILE_ROWS = 256
_LARGE = 2**22  # bytes from which on NumPy asks for huge pages


def on_large_pages(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An empty array on huge pages, even if the array itself is small.

    The first access to a page costs as much as computing a hundred kernel values.
    """
    size = int(np.prod(shape))
    allocated = max(size, _LARGE // np.dtype(dtype).itemsize + 1)
    return np.empty(allocated, dtype=dtype)[:size].reshape(shape)


class Scratch(threading.local):
    """A buffer for each thread, which is used again for every tile."""

    def __init__(self) -> None:
        self._buffer = np.empty(0)

    def tile(self, n_rows: int, n_columns: int, dtype: Any) -> np.ndarray:
        """An uninitialised contiguous array in the buffer; it overwrites the last one."""
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
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the result
            if sp.issparse(X):
                target[:] = X[start : start + TILE_ROWS] @ W
            else:
                block = padded_tile(X, start, TILE_ROWS).astype(np.float64, copy=False)
                target[:] = (block @ W)[: len(target)]

    with single_threaded_blas():
        run_tiles(multiply, -(-X.shape[0] // TILE_ROWS), n_threads)
    return out
