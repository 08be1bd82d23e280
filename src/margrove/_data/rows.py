"""X in the form that compiled code reads, and one pass over its rows.

Reading a large X takes longer than the arithmetic on its cells. So one pass computes for each row
the hash that the canonical form needs, and the squared norm, which also tells whether all cells are
finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import region

__all__ = ["RowScan", "Rows", "kernel_rows", "read_only", "scan_rows", "scramble"]

_ROWS_PER_TILE = 4096
_MOST_KEPT = 4096  # columns whose keys are kept, because making them takes a part of a small fit
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, as in splitmix64


class Rows(NamedTuple):
    """X as kernels read it: dense in C order, or CSR; the arrays of the other form are empty.

    dense (n, d), data (nnz,), indices int32 (nnz,), indptr int64 (n + 1,), is_dense.
    """

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    is_dense: bool


def kernel_rows(X: Any) -> Rows:
    """A view of a checked X for kernels, without a copy of its values."""
    if sp.issparse(X):
        empty = np.empty((0, 0), dtype=X.dtype)
        indices = X.indices.astype(np.int32, copy=False)
        indptr = X.indptr.astype(np.int64, copy=False)
        return Rows(
            read_only(empty), read_only(X.data), read_only(indices), read_only(indptr), False
        )
    no_index = read_only(np.empty(0, np.int32))
    no_pointer = read_only(np.empty(0, np.int64))
    return Rows(read_only(X), read_only(np.empty(0, X.dtype)), no_index, no_pointer, True)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view: one kernel signature whether or not the user's array is writable."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class RowScan:
    """hashes uint64 (n,) of the contents of the rows, squared_norms float64 (n,)."""

    hashes: np.ndarray
    squared_norms: np.ndarray


def scan_rows(X: Any, *, n_threads: int = 1) -> RowScan:
    """Scan a checked dense or CSR X."""
    view = kernel_rows(X)
    keys = (_kept_keys if X.shape[1] <= _MOST_KEPT else _keys)(X.shape[1])
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    norms = np.empty(X.shape[0])

    _scan_tile(-(-X.shape[0] // _ROWS_PER_TILE), n_threads, view, keys, hashes, norms)
    return RowScan(hashes, norms)


def _keys(n_columns: int) -> np.ndarray:
    """An odd random number for each column."""
    return scramble(np.arange(1, n_columns + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)


_kept_keys = lru_cache(maxsize=16)(_keys)


def scramble(bits: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64, in place on uint64: every input bit reaches every output bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    return bits


@region(fast_sums=True)
def _scan_tile(tile, X, keys, hashes, norms):
    """hashes[i], norms[i] for the rows of a tile.

    The hash is a sum of cells times keys, so dense and sparse rows of equal content have equal
    hashes, and explicit zeros, their sign and the order of entries do not matter. Small integers
    use only the upper bits of a double, so these are folded onto the lower bits.
    """
    start, end = tile * _ROWS_PER_TILE, min((tile + 1) * _ROWS_PER_TILE, len(hashes))
    n_cells = X.dense.shape[1] if X.is_dense else 1
    cells = np.empty(n_cells, np.float64)
    bits = cells.view(np.uint64)
    one, fold = np.uint64(1), np.uint64(32)
    for i in range(start, end):
        total = np.uint64(0)
        norm = 0.0
        if X.is_dense:
            for j in range(n_cells):
                cells[j] = X.dense[i, j]
            for j in range(n_cells):
                norm += cells[j] * cells[j]
                cell = bits[j] if bits[j] << one else np.uint64(0)  # -0.0 is 0.0
                total += (cell ^ (cell >> fold)) * keys[j]
        else:
            for p in range(X.indptr[i], X.indptr[i + 1]):
                norm += X.data[p] * X.data[p]
            for p in range(X.indptr[i], X.indptr[i + 1]):
                cells[0] = X.data[p]
                cell = bits[0] if bits[0] << one else np.uint64(0)
                total += (cell ^ (cell >> fold)) * keys[X.indices[p]]
        hashes[i] = total
        norms[i] = norm
