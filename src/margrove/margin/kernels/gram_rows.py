"""Rows and tiles of a Gram matrix on demand: the interface through which solvers use kernels.

A solver needs weighted sums of rows. A tile that is added up where it was computed never leaves the
processor's cache, while writing new memory can take longer than computing a row of few features.
So `GramRows` does not keep rows, except those that are likely to be used again or were used before:
of these it keeps the most recent ones within a budget. Pairs of classes share rows through
`PairGram`. Values never depend on the contents of the cache: an entry is computed by the same
arithmetic (see `tiles`) every time.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from margrove._runtime import (
    TILE_ROWS,
    Scratch,
    available_memory,
    region,
    run_tiles,
    single_threaded_blas,
)
from margrove._runtime import kernel as compiled
from margrove.margin.kernels.blocks import TILE_COLUMNS
from margrove.margin.kernels.gram_tiles import copy_row, fill_grown, fill_rows, gram, symmetric_gram
from margrove.margin.kernels.kernel import Kernel, Points
from margrove.margin.kernels.tiles import (
    COLUMNS,
    ROWS,
    fill_tile,
    in_slices,
    padded_rows,
    tile_points,
)

__all__ = [
    "DenseGram",
    "GramRows",
    "GramSource",
    "PairGram",
    "TileView",
    "add_rows",
    "cache_bytes_of",
]

_SHARE_OF_FREE_MEMORY = 0.4
_UNKNOWN_MEMORY = 1 << 30
_COLUMNS_AT_ONCE = 4096
_ADDED_TOGETHER = 4  # rows; their sum must not depend on the size of the cache


def cache_bytes_of(cache_size: float | None) -> int:
    """`cache_size` (in MB) in bytes; None means 40 % of the memory that is free now."""
    if cache_size is not None:
        return int(cache_size * 1e6)
    available = available_memory()
    return int(_UNKNOWN_MEMORY if available is None else _SHARE_OF_FREE_MEMORY * available)


class TileView(NamedTuple):
    """A tile of a matrix K, as two ranges of its rows and columns.

    Variable t is row and column first + t of K for t < middle, else second + (t - middle).
    """

    K: np.ndarray
    first: int
    middle: int
    second: int


class GramSource(Protocol):
    """The Gram matrix K of n points.

    `weighted_sum(rows, weights, again)` is weights @ K(rows, all points) in float64; `again` says
    which rows are likely to be used again. `block(rows, columns)` is K(rows, columns).
    `grow(rows, n_new, last, out)` writes K(rows, rows) to `out`, and copies the corner of the rows
    beyond the first n_new from the first rows and columns of `last`. `full()` is all of K, if it
    has been computed already, else None.
    """

    dtype: np.dtype
    diagonal: np.ndarray

    def __len__(self) -> int: ...
    def weighted_sum(
        self, rows: np.ndarray, weights: np.ndarray, again: np.ndarray
    ) -> np.ndarray: ...
    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray: ...
    def grow(self, rows: np.ndarray, n_new: int, last: np.ndarray, out: np.ndarray) -> None: ...
    def full(self) -> TileView | None: ...


class GramRows:
    """Rows of K in the dtype of the points, in a cache that replaces the least recently used.

    `slab` (capacity, n) contains rows; `_place_of` (n,) is the place of each row in it, or -1.
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
        self._tiles = tile_points(kernel, points)  # None if rows are computed in Python
        self._n_threads = n_threads
        n = len(points)
        row_bytes = max(1, n * points.X.dtype.itemsize)
        self.capacity = int(min(n, max(at_least, cache_bytes // row_bytes)))
        # The operating system allocates this memory only when rows are written to it.
        self.slab = np.empty((self.capacity, n), dtype=points.X.dtype)
        self.dtype = self.slab.dtype
        self.diagonal = kernel.diagonal(points)
        self._was_used = np.zeros(n, dtype=bool)
        self._place_of = np.full(n, -1, dtype=np.int64)
        self._row_at = np.full(self.capacity, -1, dtype=np.int64)
        self._last_use = np.zeros(self.capacity, dtype=np.int64)
        self._in_use = 0
        self._clock = 0
        self._is_full = False

    def __len__(self) -> int:
        return len(self._points)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """K(rows, columns), read from the slab if it contains all of K, else computed.

        Reading it from single cached rows takes longer than computing it.
        """
        if self._is_full:
            return self.slab[np.ix_(rows, columns)]
        left = self._points.take(rows)
        if rows is columns:
            return symmetric_gram(self._kernel, left, n_threads=self._n_threads)
        right = self._points.take(columns)
        return gram(self._kernel, left, right, n_threads=self._n_threads)

    def grow(self, rows: np.ndarray, n_new: int, last: np.ndarray, out: np.ndarray) -> None:
        if self._tiles is None or self._is_full:
            _grow(self, rows, n_new, last, out)
            return
        with single_threaded_blas():
            fill_grown(self._tiles.take(rows), n_new, last, out, n_threads=self._n_threads)

    def fill(self) -> None:
        """Compute all rows, row i at place i; the capacity must be sufficient."""
        symmetric_gram(self._kernel, self._points, out=self.slab, n_threads=self._n_threads)
        self._place_of[:] = self._row_at[:] = np.arange(len(self))
        self._in_use = len(self)
        self._is_full = True

    def full(self) -> TileView | None:
        return None

    def weighted_sum(self, rows: np.ndarray, weights: np.ndarray, again: np.ndarray) -> np.ndarray:
        """weights @ K(rows, all points), for distinct rows: first those that are not kept."""
        total = np.zeros(len(self))
        again = again | self._was_used[rows]
        self._was_used[rows] = True
        kept, kept_weights = rows[again], weights[again]
        if self._tiles is not None and len(kept) <= self.capacity:
            self._add_tiles(rows[~again], weights[~again], kept, kept_weights, total)
            return total
        self._stream(rows[~again], weights[~again], total)
        step = max(1, self.capacity // _ADDED_TOGETHER * _ADDED_TOGETHER)
        for start in range(0, len(kept), step):
            batch = slice(start, start + step)
            self.add_kept(self._fetched(kept[batch]), kept_weights[batch], [(0, total)])
        return total

    def _add_tiles(
        self,
        others: np.ndarray,
        weights: np.ndarray,
        kept: np.ndarray,
        kept_weights: np.ndarray,
        total: np.ndarray,
    ) -> None:
        """Compute the rows that are not kept and the missing ones, and add all to `total`.

        Every panel of columns is read or computed, and added up, by one thread.
        """
        assert self._tiles is not None
        places, missing, free = self._placed(kept)
        source = self._tiles.take(np.concatenate([others, missing]))
        entries = COLUMNS * (len(source.X) + 0.2 * len(kept))
        with single_threaded_blas():
            in_slices(
                _add_panel, -(-len(self) // COLUMNS), self._n_threads, entries,
                source.X.shape[1], self._tiles, source, weights, free, places, kept_weights,
                self.slab, total,
            )  # fmt: skip
        self._register(missing, free)

    def _placed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places in `slab` of at most `capacity` distinct rows; the missing rows and their places.

        The missing ones must be computed and then registered.
        """
        self._clock += 1
        places = self._place_of[rows]
        is_missing = places < 0
        self._last_use[places[~is_missing]] = self._clock
        missing, free = rows[is_missing], np.empty(0, dtype=np.int64)
        if len(missing):
            free = self._free_places(len(missing))
            places[is_missing] = free
        return places, missing, free

    def _register(self, rows: np.ndarray, places: np.ndarray) -> None:
        self._place_of[rows] = places
        self._row_at[places] = rows
        self._last_use[places] = self._clock

    def add_kept(
        self, places: np.ndarray, weights: np.ndarray, targets: list[tuple[int, np.ndarray]]
    ) -> None:
        """Add weights @ slab[places] to each target: (first column, array to add to)."""
        for first, target in targets:
            n_tiles = -(-len(target) // _COLUMNS_AT_ONCE)
            entries = 0.2 * _COLUMNS_AT_ONCE * len(places)
            in_slices(
                _add_kept, n_tiles, self._n_threads, entries, 0, self.slab, places, weights,
                first, target,
            )  # fmt: skip

    def _stream(self, rows: np.ndarray, weights: np.ndarray, total: np.ndarray) -> None:
        """Add weights @ K(rows, all points) to `total`, without keeping the rows."""
        source = self._points.take(rows)
        in_order = np.arange(TILE_ROWS)
        scratch = Scratch()

        def add(panel: int) -> None:
            columns = slice(panel * TILE_COLUMNS, (panel + 1) * TILE_COLUMNS)
            right = self._points.take(columns)
            for start in range(0, len(rows), TILE_ROWS):
                left = source.take(slice(start, start + TILE_ROWS))
                block = scratch.tile(len(left), len(right), self.dtype)
                self._kernel.block(left, right, block)
                tile_weights = weights[start : start + len(left)]
                add_rows(block, in_order[: len(left)], tile_weights, 0, total[columns])

        with single_threaded_blas():
            run_tiles(add, -(-len(self) // TILE_COLUMNS) if len(rows) else 0, self._n_threads)

    def _fetched(self, rows: np.ndarray) -> np.ndarray:
        """The places in `slab` of at most `capacity` distinct rows; missing ones are computed."""
        places, missing, free = self._placed(rows)
        if len(missing):
            self._compute(missing, free)
            self._register(missing, free)
        return places

    def _compute(self, rows: np.ndarray, places: np.ndarray) -> None:
        if self._tiles is not None:
            with single_threaded_blas():
                fill_rows(
                    self._tiles.take(rows), self._tiles, places, self.slab,
                    n_threads=self._n_threads,
                )  # fmt: skip
            return
        first = int(places[0])
        if int(places[-1]) - first == len(places) - 1:
            self._compute_into(self.slab[first : first + len(places)], rows)
            return
        for start in range(0, len(rows), TILE_ROWS):  # scattered places: through a small buffer
            tile = slice(start, start + TILE_ROWS)
            buffer = np.empty((len(rows[tile]), len(self)), dtype=self.slab.dtype)
            self._compute_into(buffer, rows[tile])
            self.slab[places[tile]] = buffer

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


class PairGram:
    """The Gram matrix of two classes, as two ranges of the filled rows of all classes."""

    def __init__(self, rows: GramRows, first: slice, second: slice) -> None:
        self._rows = rows
        self._index = np.r_[first, second]
        self._middle = first.stop - first.start
        self._first, self._second = first, second
        self._was_used = np.zeros(len(self._index), dtype=bool)
        self.dtype = rows.dtype
        self.diagonal = rows.diagonal[self._index]

    def __len__(self) -> int:
        return len(self._index)

    def weighted_sum(self, rows: np.ndarray, weights: np.ndarray, again: np.ndarray) -> np.ndarray:
        """From the filled slab, where row i is at place i; added up in the order of `GramRows`."""
        total = np.zeros(len(self))
        again = again | self._was_used[rows]
        self._was_used[rows] = True
        targets = [
            (self._first.start, total[: self._middle]),
            (self._second.start, total[self._middle :]),
        ]
        for chosen in (~again, again):
            self._rows.add_kept(self._index[rows[chosen]], weights[chosen], targets)
        return total

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self._rows.block(self._index[rows], self._index[columns])

    def grow(self, rows: np.ndarray, n_new: int, last: np.ndarray, out: np.ndarray) -> None:
        _grow(self, rows, n_new, last, out)

    def full(self) -> TileView:
        """The slab itself."""
        return TileView(self._rows.slab, self._first.start, self._middle, self._second.start)


class DenseGram:
    """A small Gram matrix that is given as an array."""

    def __init__(self, K: np.ndarray) -> None:
        self._K = K
        self.dtype = K.dtype
        self.diagonal = np.diagonal(K).astype(np.float64)

    def __len__(self) -> int:
        return len(self._K)

    def weighted_sum(self, rows: np.ndarray, weights: np.ndarray, again: np.ndarray) -> np.ndarray:
        total = np.zeros(len(self))
        add_rows(self._K, rows, weights, 0, total)
        return total

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self._K[np.ix_(rows, columns)]

    def grow(self, rows: np.ndarray, n_new: int, last: np.ndarray, out: np.ndarray) -> None:
        _grow(self, rows, n_new, last, out)

    def full(self) -> TileView:
        return TileView(self._K, 0, len(self), 0)


def _grow(
    source: GramSource, rows: np.ndarray, n_new: int, last: np.ndarray, out: np.ndarray
) -> None:
    """`GramSource.grow` by `block`."""
    n_kept = len(rows) - n_new
    out[:n_new] = source.block(rows[:n_new], rows)
    out[n_new:, :n_new] = out[:n_new, n_new:].T
    out[n_new:, n_new:] = last[:n_kept, :n_kept]


@region
def _add_panel(tile, first, points, source, weights, free, places, kept_weights, slab, total):
    """Add weighted rows to a panel of columns of `total`: those of `source`, and then kept ones.

    The last rows of `source` have no weight: they are stored in the slab, at the places `free`.
    """
    begin = (first + tile) * COLUMNS
    out = total[begin : begin + COLUMNS]
    B, b2 = padded_rows(points.X, begin, COLUMNS), points.norms[begin : begin + COLUMNS]
    block, in_order = np.empty((ROWS, COLUMNS), slab.dtype), np.arange(ROWS)
    for start in range(0, len(source.X), ROWS):
        A, a2 = padded_rows(source.X, start, ROWS), source.norms[start : start + ROWS]
        fill_tile(points.formula, A, a2, B, b2, block)
        n_added = min(max(len(weights) - start, 0), len(a2))
        add_rows(block, in_order[:n_added], weights[start : start + n_added], 0, out)
        for i in range(n_added, len(a2)):
            place = free[start + i - len(weights)]
            copy_row(block[i], slab[place, begin : begin + len(b2)])
    add_rows(slab, places, kept_weights, begin, out)


@region
def _add_kept(tile, first_tile, slab, places, weights, first, total):
    begin = (first_tile + tile) * _COLUMNS_AT_ONCE
    add_rows(slab, places, weights, first + begin, total[begin : begin + _COLUMNS_AT_ONCE])


@compiled(fast_sums=True)
def add_rows(slab, places, weights, begin, out):
    """out += weights @ slab[places, begin : begin + len(out)], four rows at a time."""
    m = len(places)
    k = 0
    while k + 4 <= m:
        a, b = slab[places[k], begin:], slab[places[k + 1], begin:]
        c, d = slab[places[k + 2], begin:], slab[places[k + 3], begin:]
        wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for t in range(len(out)):
            out[t] += wa * a[t] + wb * b[t] + wc * c[t] + wd * d[t]
        k += 4
    while k < m:
        a, wa = slab[places[k], begin:], weights[k]
        for t in range(len(out)):
            out[t] += wa * a[t]
        k += 1
