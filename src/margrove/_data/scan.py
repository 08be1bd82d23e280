"""One pass over X for what every fit needs to know about each row.

Reading a large X takes longer than the arithmetic on its cells. So one pass computes the hash
behind the canonical form and the squared norm, which also tells whether all cells are finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data.rows import kernel_rows
from margrove._runtime import kernel, run_tiles

__all__ = ["RowScan", "scan_rows", "scramble"]

_ROWS_PER_TILE = 16_384
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class RowScan:
    """hashes uint64 (n,) of the content of each row, squared_norms float64 (n,)."""

    hashes: np.ndarray
    squared_norms: np.ndarray


def scan_rows(X: Any, *, n_threads: int = 1) -> RowScan:
    """Scan a dense or CSR X in its final form."""
    view = kernel_rows(X)
    keys = scramble(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * _GOLDEN) | np.uint64(1)
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    norms = np.empty(X.shape[0])

    def scan(tile: int) -> None:
        start = tile * _ROWS_PER_TILE
        _scan_rows(view, keys, start, min(start + _ROWS_PER_TILE, X.shape[0]), hashes, norms)

    run_tiles(scan, -(-X.shape[0] // _ROWS_PER_TILE), n_threads)
    return RowScan(hashes, norms)


def scramble(bits: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64, in place on uint64: every input bit reaches every output bit."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    return bits


@kernel(fast_sums=True)
def _scan_rows(X, keys, start, end, hashes, norms):
    """hashes[i], norms[i] for the rows start .. end.

    The hash is a sum of cells times keys, so dense and sparse rows of equal content have equal
    hashes, and explicit zeros, their sign and the order of entries do not matter. Small numbers
    have all their bits at the upper end of a double, whence the fold.
    """
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
                cells[0] = X.data[p]
                norm += cells[0] * cells[0]
                cell = bits[0] if bits[0] << one else np.uint64(0)
                total += (cell ^ (cell >> fold)) * keys[X.indices[p]]
        hashes[i] = total
        norms[i] = norm
