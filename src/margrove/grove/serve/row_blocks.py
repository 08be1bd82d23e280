"""Rows of any table as kernels take them: dense float64 that lies in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import kernel_rows, read_only
from margrove._runtime import region

__all__ = ["dense_blocks", "dense_rows", "sparse_blocks"]

_ROWS_OF_A_TILE = 128


def dense_rows(rows: Any, n_threads: int = 1) -> np.ndarray:
    """All rows as kernels take them: dense, contiguous float64, read-only."""
    return next(dense_blocks(rows, rows.shape[0] or 1, n_threads))[1]


def dense_blocks(rows: Any, at_once: int, n_threads: int = 1) -> Iterator[tuple[int, np.ndarray]]:
    """Runs of rows as kernels take them, see `dense_rows`, and where each begins; at least one.

    They may be overwritten by the next run.
    """
    if sp.issparse(rows):
        yield from sparse_blocks(rows, np.arange(rows.shape[1]), at_once, n_threads)
        return
    for begin in range(0, rows.shape[0] or 1, at_once):
        yield begin, read_only(np.ascontiguousarray(rows[begin : begin + at_once], np.float64))


def sparse_blocks(
    rows: Any, columns: np.ndarray, at_once: int, n_threads: int = 1
) -> Iterator[tuple[int, np.ndarray]]:
    """`dense_blocks` of some columns of a checked CSR table, ascending int64."""
    n = rows.shape[0]
    view, dense = kernel_rows(rows), np.empty((min(at_once, n), len(columns)))
    data = read_only(view.data.astype(np.float64, copy=False))
    place = np.full(rows.shape[1], -1, np.int32)
    place[columns] = np.arange(len(columns))
    for begin in range(0, n or 1, at_once):
        block = dense[: n - begin]
        n_tiles = -(-len(block) // _ROWS_OF_A_TILE)
        _write_rows(n_tiles, n_threads, begin, view.indptr, view.indices, data, place, block)
        yield begin, read_only(block)


@region(bare=True)
def _write_rows(tile, begin, indptr, indices, data, place, dense):
    for i in range(tile * _ROWS_OF_A_TILE, min((tile + 1) * _ROWS_OF_A_TILE, len(dense))):
        for j in range(dense.shape[1]):
            dense[i, j] = 0.0
        for p in range(indptr[begin + i], indptr[begin + i + 1]):
            column = place[np.uint64(indices[p])]
            if column >= 0:
                dense[i, np.uint64(column)] += data[p]
