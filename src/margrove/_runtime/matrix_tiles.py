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

from margrove._runtime.regions import region
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


def row_products(
    X: Any, W: np.ndarray, shift: np.ndarray | None = None, *, n_threads: int = 1
) -> np.ndarray:
    """X @ W + shift for dense or CSR X (n, d), dense W (d, k) and shift (k,), in float64."""
    out = np.empty((X.shape[0], W.shape[1]), dtype=np.float64)
    W = np.ascontiguousarray(W, dtype=np.float64)
    added = np.zeros(W.shape[1]) if shift is None else np.asarray(shift, np.float64)
    n_tiles = -(-X.shape[0] // TILE_ROWS)
    if sp.issparse(X):
        indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
        parts = map(_read_only, (X.data, indices, indptr))
        _sparse_products(n_tiles, n_threads, *parts, W, added, out)
    else:
        with single_threaded_blas():
            _dense_products(n_tiles, n_threads, _read_only(X), W, added, out)
    return out


def _read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view: one kernel signature whether or not the user's array is writable."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@region
def _dense_products(tile, X, W, shift, out):
    d, k = W.shape
    start = tile * TILE_ROWS
    n = min(TILE_ROWS, len(X) - start)
    block, product = np.empty((TILE_ROWS, d)), np.empty((TILE_ROWS, k))
    for i in range(n):
        for j in range(d):
            block[i, j] = X[start + i, j]
    block[n:] = 0.0
    np.dot(block, W, product)
    for i in range(n):
        for j in range(k):
            out[start + i, j] = product[i, j] + shift[j]


@region(bare=True)
def _sparse_products(tile, data, indices, indptr, W, shift, out):
    for i in range(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, len(out))):
        out[i] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            for j in range(W.shape[1]):
                out[i, j] += data[p] * W[indices[p], j]
        for j in range(W.shape[1]):
            out[i, j] += shift[j]
