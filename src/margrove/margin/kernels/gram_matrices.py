"""The Gram matrix of a training set, in float32 and float64."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial

import numpy as np

from margrove._runtime import on_large_pages, run_tiles
from margrove.margin.kernels.expansions import kernel_sums
from margrove.margin.kernels.given_kernels import CallableKernel, Precomputed
from margrove.margin.kernels.gram_rows import (
    DenseGram,
    GramRows,
    GramSource,
    PairGram,
    TileView,
)
from margrove.margin.kernels.gram_tiles import gram, gram_at_once, symmetric_gram
from margrove.margin.kernels.kernel import Kernel, Points
from margrove.margin.solvers.dual import Gram

__all__ = ["LARGEST_TILE", "SharedGram", "gram_of", "rounding_of", "tile_of", "values_of"]

_SMALL = 2048  # points up to which float32 would not save time
_LEAST_ROWS = 256
_SAMPLE = 64
LARGEST_TILE = 4096  # points of a pair of classes whose Gram matrix is computed at once


def gram_of(kernel: Kernel, points: Points, *, cache_bytes: int, n_threads: int = 1) -> Gram:
    """The Gram matrix of float64 points, whose rows are computed on demand."""
    rows_of = partial(
        GramRows, kernel, cache_bytes=cache_bytes, at_least=_LEAST_ROWS, n_threads=n_threads
    )
    chosen = _fast_points(kernel, points)
    return Gram(
        fast=rows_of(chosen),
        exact=partial(rows_of, points),
        values=partial(values_of, kernel, points, n_threads=n_threads),
        rounding=rounding_of(kernel, chosen, points),
    )


class SharedGram:
    """The Gram matrices of many machines: of up to LARGEST_TILE points each, or of all points.

    Points are sorted by class, so that the points of a machine are one or two ranges. If there are
    few points, the Gram matrix of all points is computed once. Otherwise machines share the blocks
    of each class with itself; the block between two classes is computed when the machine is solved,
    and not kept: new memory for all blocks can take longer to write than to compute.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        machines: Sequence[np.ndarray],
        *,
        cache_bytes: int,
        n_threads: int = 1,
    ) -> None:
        self._kernel = kernel
        self._points = points
        chosen = self._chosen = _fast_points(kernel, points)
        self._rounding = rounding_of(kernel, chosen, points)
        self._rows: GramRows | None = None
        self._blocks: dict[tuple[int, int], np.ndarray] = {}
        self._buffers: list[np.ndarray] = []
        self._largest = max(map(len, machines))
        if len(points) <= _SMALL or max(map(len, machines)) == len(points):
            self._rows = GramRows(
                kernel, chosen, cache_bytes=0, at_least=len(points), n_threads=n_threads
            )
            self._rows.fill()
        else:
            self._compute_blocks(machines, cache_bytes, n_threads)

    def _compute_blocks(
        self, machines: Sequence[np.ndarray], cache_bytes: int, n_threads: int
    ) -> None:
        ranges = sorted({(r.start, r.stop) for members in machines for r in _ranges(members)})
        size = sum((stop - start) ** 2 for start, stop in ranges) * self._chosen.X.dtype.itemsize
        if size > cache_bytes:  # each machine computes its own blocks
            return

        def compute(number: int) -> None:
            points = self._chosen.take(slice(*ranges[number]))
            self._blocks[ranges[number]] = symmetric_gram(self._kernel, points)

        run_tiles(compute, len(ranges), n_threads)

    def of_points(self, members: np.ndarray) -> Gram:
        """The Gram matrix of some points, whose positions form at most two ranges."""
        points = self._points.take(members)
        return Gram(
            fast=self._source(members),
            exact=partial(GramRows, self._kernel, points, cache_bytes=0, at_least=_LEAST_ROWS),
            values=partial(values_of, self._kernel, points),
            rounding=self._rounding,
        )

    @property
    def is_whole(self) -> bool:
        """Whether all of the matrix has been computed in float64."""
        return self._rows is not None and self._rows.dtype == np.float64

    @property
    def diagonal(self) -> np.ndarray:
        assert self._rows is not None
        return self._rows.diagonal

    def tile(self, members: np.ndarray) -> TileView:
        """K of some points, as a part of the whole matrix, if that has been computed."""
        assert self._rows is not None
        return tile_of(self._rows.slab, members)

    def _source(self, members: np.ndarray) -> GramSource:
        first, second = _ranges(members)
        if self._rows is not None:
            return PairGram(self._rows, first, second)
        return self._dense_gram(first, second)

    def _dense_gram(self, first: slice, second: slice) -> DenseGram:
        left, right = self._chosen.take(first), self._chosen.take(second)
        middle, n = len(left), len(left) + len(right)
        try:
            buffer = self._buffers.pop()
        except IndexError:
            buffer = on_large_pages((self._largest**2,), self._chosen.X.dtype)
        tile = buffer[: n * n].reshape(n, n)
        for positions, points, place in (
            (first, left, slice(0, middle)),
            (second, right, slice(middle, None)),
        ):
            block = self._blocks.get((positions.start, positions.stop))
            tile[place, place] = symmetric_gram(self._kernel, points) if block is None else block
        across = gram_at_once(self._kernel, left, right)
        tile[:middle, middle:] = across
        tile[middle:, :middle] = across.T
        found = DenseGram(tile)
        weakref.finalize(found, self._buffers.append, buffer)  # for the next pair
        return found


def _fast_points(kernel: Kernel, points: Points) -> Points:
    """float32 points if that saves time; functions of users always get their own data."""
    if len(points) <= _SMALL or isinstance(kernel, Precomputed | CallableKernel):
        return points
    return points.as_float32()


def tile_of(K: np.ndarray, members: np.ndarray) -> TileView:
    """The tile of K of some points, whose positions form at most two ranges."""
    first, second = _ranges(members)
    return TileView(K, first.start, first.stop - first.start, second.start)


def _ranges(members: np.ndarray) -> tuple[slice, slice]:
    """Sorted positions as two ranges of consecutive ones; the second may be empty."""
    breaks = np.flatnonzero(members[1:] - members[:-1] != 1)
    middle = int(breaks[0]) + 1 if len(breaks) else len(members)
    first = slice(int(members[0]), int(members[middle - 1]) + 1)
    if middle == len(members):
        return first, slice(first.stop, first.stop)
    return first, slice(int(members[middle]), int(members[-1]) + 1)


def values_of(
    kernel: Kernel, points: Points, coef: np.ndarray, rows: np.ndarray, *, n_threads: int = 1
) -> np.ndarray:
    """The values (K c)_i of some rows, in float64."""
    support = np.flatnonzero(coef)
    if not len(support):
        return np.zeros(len(rows))
    wanted = points if len(rows) == len(points) else points.take(rows)
    weights = coef[support, None]
    return kernel_sums(kernel, wanted, points.take(support), weights, n_threads=n_threads)[:, 0]


def rounding_of(kernel: Kernel, fast: Points, exact: Points) -> float:
    """Root mean square error of an entry of the fast matrix, measured on evenly spaced points."""
    if fast is exact:
        return 0.0
    sample = np.linspace(0, len(exact) - 1, min(len(exact), 2 * _SAMPLE)).astype(np.int64)
    left, right = sample[::2], sample[1::2]
    with np.errstate(over="ignore", invalid="ignore"):
        error = gram(kernel, fast.take(left), fast.take(right)) - gram(
            kernel, exact.take(left), exact.take(right)
        )
        return float(np.sqrt(np.mean(np.square(error))))
