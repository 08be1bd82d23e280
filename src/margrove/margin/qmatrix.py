"""Rows and tiles of a Gram matrix on demand: the only way in which solvers see kernels.

`GramRows` computes rows when they are first asked for and keeps the most recent ones within a
budget of memory; pairs of classes share it through `TwoRuns`. Values never depend on what is in
the cache: an entry is computed by the same tile of the same shape (see `kernels.gram`) the first
and the second time.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from margrove._memory import available_memory
from margrove._tiles import TILE_ROWS
from margrove.margin.kernels import Kernel, Points, gram, symmetric_gram

__all__ = ["GramRows", "GramSource", "TileView", "TwoRuns", "cache_bytes_of"]

_SHARE_OF_FREE_MEMORY = 0.4
_UNKNOWN_MEMORY = 1 << 30


def cache_bytes_of(cache_size: float | None) -> int:
    """`cache_size` in MB; None means a good part of the memory that is free now."""
    if cache_size is not None:
        return int(cache_size * 1e6)
    available = available_memory()
    return int(_UNKNOWN_MEMORY if available is None else _SHARE_OF_FREE_MEMORY * available)


class TileView(NamedTuple):
    """Part of K as a tile: variable t is row and column first + t, from `middle` on second + t."""

    K: np.ndarray
    first: int
    middle: int
    second: int


class GramSource(Protocol):
    """K of n points.

    `slab[fetch(rows, others)]` are full rows, whose columns in `runs` are the n points in order;
    others may be computed along, if they come for free. `block(rows, columns)` is K(rows, columns);
    `whole()` is all of K, if it is there already.
    """

    slab: np.ndarray
    diagonal: np.ndarray
    capacity: int
    runs: tuple[slice, ...]

    def __len__(self) -> int: ...
    def fetch(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray: ...
    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray: ...
    def whole(self) -> TileView | None: ...


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
        self._is_full = False
        self.runs: tuple[slice, ...] = (slice(0, n),)

    def __len__(self) -> int:
        return len(self._points)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """K(rows, columns), computed anew: reading it out of scattered rows takes longer.

        Unless all of K is there.
        """
        if self._is_full:
            return self.slab[np.ix_(rows, columns)]
        own = self._points.take(rows)
        if rows is columns:
            return symmetric_gram(self._kernel, own, n_threads=self._n_threads)
        others = self._points.take(columns)
        return gram(self._kernel, own, others, n_threads=self._n_threads)

    def fill(self) -> None:
        """Compute all rows, into their own places; they must all fit."""
        symmetric_gram(self._kernel, self._points, out=self.slab, n_threads=self._n_threads)
        everything = np.arange(len(self))
        self._place_of[:] = self._row_at[:] = everything
        self._in_use = len(self)
        self._is_full = True

    def whole(self) -> TileView | None:
        return None

    def fetch(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Places in `slab` of distinct rows, at most `capacity` of them; missing ones computed.

        The last tile of rows is filled up with others, while there is room for them.
        """
        self._clock += 1
        places = self._place_of[rows]
        self._last_use[places[places >= 0]] = self._clock
        missing = rows[places < 0]
        if len(missing):
            unused = self.capacity - self._in_use - len(missing)
            free = max(0, min(-len(missing) % TILE_ROWS, unused))
            welcome = others[self._place_of[others] < 0][:free]
            missing = np.concatenate([missing, welcome])
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


class TwoRuns:
    """The points of two classes, out of rows that hold all classes, one after the other."""

    def __init__(self, rows: GramRows, first: slice, second: slice) -> None:
        self._rows = rows
        self._index = np.r_[first, second]
        self._middle = first.stop - first.start
        self.slab = rows.slab
        self.capacity = rows.capacity
        self.diagonal = rows.diagonal[self._index]
        self.runs: tuple[slice, ...] = (first, second)

    def __len__(self) -> int:
        return len(self._index)

    def fetch(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        return self._rows.fetch(self._index[rows], self._index[others])

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self._rows.block(self._index[rows], self._index[columns])

    def whole(self) -> TileView | None:
        """The slab itself, once it is filled."""
        if self._rows.capacity < len(self._rows):
            return None
        first, second = self.runs
        return TileView(self.slab, first.start, self._middle, second.start)
