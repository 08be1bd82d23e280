"""Matrix products in which every entry depends on its own row and column only.

BLAS selects its code by the shape of a product, so the last bit of a row's result can depend on
the other rows, and a threaded BLAS may split a sum. Products that use it run over tiles of one
fixed shape (the last one padded with zeros), each on single-threaded BLAS, and our own threads take
tiles. A product with few columns takes a loop of its own (`row_products`), which needs no tiles of
a fixed shape. So results depend neither on the number of threads nor on the other rows.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime.jit import kernel
from margrove._runtime.regions import region

__all__ = [
    "TILE_ROWS",
    "Scratch",
    "dot",
    "four_dots",
    "largest_columns",
    "on_large_pages",
    "padded_tile",
    "row_products",
]

TILE_ROWS = 256
_ROWS_AT_ONCE = 64  # of X, for some columns of the other factor
_FEW_COLUMNS = 4  # are summed one after the other over a sparse row
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
    """X @ W + shift for dense or CSR X (n, d), dense W (d, k) and shift (k,), in float64.

    A cell of X that is not finite makes all products of its row not finite.
    """
    out = np.empty((X.shape[0], W.shape[1]), dtype=np.float64)
    added = np.zeros(W.shape[1]) if shift is None else np.asarray(shift, np.float64)
    n_tiles = -(-X.shape[0] // TILE_ROWS)
    if sp.issparse(X):
        indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
        parts = map(_read_only, (X.data, indices, indptr))
        W = np.ascontiguousarray(W, dtype=np.float64)
        _sparse_products(n_tiles, n_threads, *parts, W, added, out)
    else:
        columns = _read_only(np.asarray(W.T, dtype=np.float64))
        _dense_products(n_tiles, n_threads, _read_only(X), columns, added, out)
    return out


def _read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view: one kernel signature whether or not the user's array is writable."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@region(bare=True)
def _dense_products(tile, X, columns, shift, out):
    """Some rows at a time, so that X and four columns stay in the cache of the processor."""
    k, end = len(columns), min((tile + 1) * TILE_ROWS, len(X))
    fours = k - k % 4
    for start in range(tile * TILE_ROWS, end, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, end)
        for j in range(0, fours, 4):
            first, second = columns[j], columns[j + 1]
            third, fourth = columns[j + 2], columns[j + 3]
            for i in range(start, stop):
                a, b, c, d = four_dots(X[i], first, second, third, fourth)
                out[i, j], out[i, j + 1] = a + shift[j], b + shift[j + 1]
                out[i, j + 2], out[i, j + 3] = c + shift[j + 2], d + shift[j + 3]
        for j in range(fours, k):
            for i in range(start, stop):
                out[i, j] = dot(X[i], columns[j]) + shift[j]


@kernel(inner=True, fast_sums=True)
def four_dots(x, first, second, third, fourth):
    """The same for four vectors and x, which is read once."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(len(x)):
        value = x[j]
        a += value * first[j]
        b += value * second[j]
        c += value * third[j]
        d += value * fourth[j]
    return a, b, c, d


@kernel(inner=True, fast_sums=True)
def dot(x, column):
    """The sum of products of two vectors."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * column[j]
    return total


@region(bare=True)
def _sparse_products(tile, data, indices, indptr, W, shift, out):
    k = W.shape[1]
    for i in range(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, len(out))):
        begin, end = indptr[i], indptr[i + 1]
        if k <= _FEW_COLUMNS:
            for j in range(k):
                out[i, j] = _sparse_sum(data[begin:end], indices[begin:end], W, j) + shift[j]
            continue
        out[i] = 0.0
        for p in range(begin, end):
            for j in range(k):
                out[i, j] += data[p] * W[indices[p], j]
        for j in range(k):
            out[i, j] += shift[j]


@kernel(inner=True, fast_sums=True)
def _sparse_sum(data, indices, W, j):
    total = 0.0
    for p in range(len(data)):
        total += data[p] * W[np.uint32(indices[p]), j]
    return total


def largest_columns(values: np.ndarray) -> np.ndarray:
    """The column of the largest value of each row, the first of equal ones; int64 (n,)."""
    columns = np.empty(len(values), np.int64)
    _find_largest(values, columns)
    return columns


@kernel(bare=True)
def _find_largest(values, columns):
    for i in range(len(values)):
        best = 0
        for j in range(1, values.shape[1]):
            if values[i, j] > values[i, best]:
                best = j
        columns[i] = best
