"""Rows and tiles of a Gram matrix on demand: the only way in which solvers see kernels.

`GramRows` computes rows when they are first asked for and keeps the most recent ones within a
budget of memory; `WholeGram` has them all. Values never depend on what is in the cache: an entry
is computed by the same tile of the same shape (see `kernels.gram`) the first and the second time.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from margrove._jit import kernel
from margrove._memory import available_memory
from margrove._tiles import TILE_ROWS
from margrove.margin.kernels import Kernel, Points, gram

__all__ = ["GramRows", "GramSource", "WholeGram", "cache_bytes_of"]

_SHARE_OF_FREE_MEMORY = 0.4
_UNKNOWN_MEMORY = 1 << 30


def cache_bytes_of(cache_size: float | None) -> int:
    """`cache_size` in MB; None means a good part of the memory that is free now."""
    if cache_size is not None:
        return int(cache_size * 1e6)
    available = available_memory()
    return int(_UNKNOWN_MEMORY if available is None else _SHARE_OF_FREE_MEMORY * available)


class GramSource(Protocol):
    """K of n points: `slab[fetch(rows)]` are full rows, `tile(rows)` is K(rows, rows)."""

    slab: np.ndarray
    diagonal: np.ndarray
    capacity: int

    def __len__(self) -> int: ...
    def fetch(self, rows: np.ndarray) -> np.ndarray: ...
    def tile(self, rows: np.ndarray) -> np.ndarray: ...


class WholeGram:
    """A Gram matrix that is there already."""

    def __init__(self, K: np.ndarray, diagonal: np.ndarray | None = None) -> None:
        self.slab = K
        self.diagonal = np.diagonal(K).astype(np.float64) if diagonal is None else diagonal
        self.capacity = len(K)

    def __len__(self) -> int:
        return len(self.slab)

    def fetch(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def tile(self, rows: np.ndarray) -> np.ndarray:
        tile = np.empty((len(rows), len(rows)), dtype=self.slab.dtype)
        _gather_tile(self.slab, rows, rows, tile)
        return tile


class GramRows:
    """K(rows, all points) in the dtype of the points; the least recently used are replaced.

    `slab` (capacity, n) holds rows, `_place_of` (n,) says where each row is, or -1.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        *,
        cache_bytes: int,
        at_least: int,
        n_threads: int = 1,
    ) -> None:
        self._kernel = kernel
        self._points = points
        self._n_threads = n_threads
        n = len(points)
        row_bytes = max(1, n * points.X.dtype.itemsize)
        self.capacity = int(min(n, max(at_least, cache_bytes // row_bytes)))
        # The operating system hands out this memory only as rows are written to it.
        self.slab = np.empty((self.capacity, n), dtype=points.X.dtype)
        self.diagonal = kernel.diagonal(points)
        self._place_of = np.full(n, -1, dtype=np.int64)
        self._row_at = np.full(self.capacity, -1, dtype=np.int64)
        self._last_use = np.zeros(self.capacity, dtype=np.int64)
        self._in_use = 0
        self._clock = 0

    def __len__(self) -> int:
        return len(self._points)

    def tile(self, rows: np.ndarray) -> np.ndarray:
        """K(rows, rows), computed anew: reading it out of scattered rows takes longer."""
        own = self._points.take(rows)
        return gram(self._kernel, own, own, n_threads=self._n_threads)

    def fetch(self, rows: np.ndarray) -> np.ndarray:
        """Places in `slab` of distinct rows, at most `capacity` of them; missing ones computed."""
        self._clock += 1
        places = self._place_of[rows]
        self._last_use[places[places >= 0]] = self._clock
        missing = rows[places < 0]
        if len(missing):
            self._compute(missing, self._free_places(len(missing)))
            places = self._place_of[rows]
        return places

    def _compute(self, rows: np.ndarray, places: np.ndarray) -> None:
        first = int(places[0])
        if int(places[-1]) - first == len(places) - 1:
            self._compute_into(self.slab[first : first + len(places)], rows)
        else:  # scattered: by way of a small buffer
            for start in range(0, len(rows), TILE_ROWS):
                part = slice(start, start + TILE_ROWS)
                buffer = np.empty((len(rows[part]), len(self)), dtype=self.slab.dtype)
                self._compute_into(buffer, rows[part])
                self.slab[places[part]] = buffer
        self._place_of[rows] = places
        self._row_at[places] = rows
        self._last_use[places] = self._clock

    def _compute_into(self, out: np.ndarray, rows: np.ndarray) -> None:
        source = self._points.take(rows)
        gram(self._kernel, source, self._points, out=out, n_threads=self._n_threads)

    def _free_places(self, count: int) -> np.ndarray:
        unused = np.arange(self._in_use, min(self._in_use + count, self.capacity))
        self._in_use += len(unused)
        if len(unused) == count:
            return unused
        oldest = np.argsort(self._last_use[: unused[0] if len(unused) else None], kind="stable")
        oldest = np.sort(oldest[: count - len(unused)])
        self._place_of[self._row_at[oldest]] = -1
        return np.concatenate([oldest, unused])


@kernel
def _gather_tile(K, rows, columns, tile):
    """tile = K[rows][:, columns]"""
    for i in range(len(rows)):
        row = K[rows[i]]
        for j in range(len(columns)):
            tile[i, j] = row[columns[j]]
