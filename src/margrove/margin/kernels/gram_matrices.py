"""The Gram matrix of a training set in the precisions that a solver may want."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial

import numpy as np

from margrove._runtime import on_large_pages, run_tiles
from margrove.margin.kernels.expansions import kernel_sums
from margrove.margin.kernels.given_kernels import CallableKernel, Precomputed
from margrove.margin.kernels.gram_rows import GramRows, GramSource, TwoRuns, WholeTile
from margrove.margin.kernels.gram_tiles import gram, gram_at_once, symmetric_gram
from margrove.margin.kernels.kernel import Kernel, Points
from margrove.margin.solvers.dual import Gram

__all__ = ["LARGEST_TILE", "SharedGram", "gram_of", "rounding_of", "values_of"]

_SMALL = 2048  # points up to which float64 costs nothing worth saving
_LEAST_ROWS = 256
_SAMPLE = 64
LARGEST_TILE = 4096  # points of a pair whose part of K is there as a whole


def gram_of(kernel: Kernel, points: Points, *, cache_bytes: int, n_threads: int = 1) -> Gram:
    """Rows of K(points, points) on demand; points are float64."""
    rows_of = partial(
        GramRows, kernel, cache_bytes=cache_bytes, at_least=_LEAST_ROWS, n_threads=n_threads
    )
    chosen = _fast(kernel, points)
    return Gram(
        fast=rows_of(chosen),
        exact=partial(rows_of, points),
        values=partial(values_of, kernel, points, n_threads=n_threads),
        rounding=rounding_of(kernel, chosen, points),
    )


class SharedGram:
    """The Gram matrices of many machines: pairs of up to LARGEST_TILE points, or all points each.

    The classes stand one after the other, so that a machine's points are one or two runs. A few
    points are computed once, for all. Pairs of many points share what each class has with itself;
    the rest of a pair's tile is computed when its turn comes, and then forgotten: the whole matrix
    would be new memory, which can take longer to write than to compute.
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
        chosen = self._chosen = _fast(kernel, points)
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
        runs = sorted({(run.start, run.stop) for members in machines for run in _runs(members)})
        size = sum((stop - start) ** 2 for start, stop in runs) * self._chosen.X.dtype.itemsize
        if size > cache_bytes:  # each pair computes them for itself
            return

        def compute(number: int) -> None:
            own = self._chosen.take(slice(*runs[number]))
            self._blocks[runs[number]] = symmetric_gram(self._kernel, own)

        run_tiles(compute, len(runs), n_threads)

    def part(self, members: np.ndarray) -> Gram:
        """The Gram matrix of some points, whose positions form at most two runs."""
        own = self._points.take(members)
        return Gram(
            fast=self._source(members),
            exact=partial(GramRows, self._kernel, own, cache_bytes=0, at_least=_LEAST_ROWS),
            values=partial(values_of, self._kernel, own),
            rounding=self._rounding,
        )

    def _source(self, members: np.ndarray) -> GramSource:
        first, second = _runs(members)
        if self._rows is not None:
            return TwoRuns(self._rows, first, second)
        return self._whole_tile(first, second)

    def _whole_tile(self, first: slice, second: slice) -> WholeTile:
        left, right = self._chosen.take(first), self._chosen.take(second)
        middle, n = len(left), len(left) + len(right)
        try:
            buffer = self._buffers.pop()
        except IndexError:
            buffer = on_large_pages((self._largest**2,), self._chosen.X.dtype)
        tile = buffer[: n * n].reshape(n, n)
        for run, own, place in (
            (first, left, slice(0, middle)),
            (second, right, slice(middle, None)),
        ):
            block = self._blocks.get((run.start, run.stop))
            tile[place, place] = symmetric_gram(self._kernel, own) if block is None else block
        across = gram_at_once(self._kernel, left, right)
        tile[:middle, middle:] = across
        tile[middle:, :middle] = across.T
        whole = WholeTile(tile)
        weakref.finalize(whole, self._buffers.append, buffer)  # for the next pair
        return whole


def _fast(kernel: Kernel, points: Points) -> Points:
    """float32 where that saves time; functions of users see their data as they are."""
    if len(points) <= _SMALL or isinstance(kernel, Precomputed | CallableKernel):
        return points
    return points.as_float32()


def _runs(members: np.ndarray) -> tuple[slice, slice]:
    """Sorted positions as two runs of consecutive ones, the second possibly empty."""
    breaks = np.flatnonzero(np.diff(members) != 1) + 1
    middle = int(breaks[0]) if len(breaks) else len(members)
    first = slice(int(members[0]), int(members[middle - 1]) + 1)
    if middle == len(members):
        return first, slice(first.stop, first.stop)
    return first, slice(int(members[middle]), int(members[-1]) + 1)


def values_of(
    kernel: Kernel, points: Points, coef: np.ndarray, rows: np.ndarray, *, n_threads: int = 1
) -> np.ndarray:
    """(K c)_i of some rows, in float64."""
    support = np.flatnonzero(coef)
    if not len(support):
        return np.zeros(len(rows))
    wanted = points if len(rows) == len(points) else points.take(rows)
    weights = coef[support, None]
    return kernel_sums(kernel, wanted, points.take(support), weights, n_threads=n_threads)[:, 0]


def rounding_of(kernel: Kernel, fast: Points, exact: Points) -> float:
    """Root mean square error of an entry of the fast kind, measured on evenly spaced points."""
    if fast is exact:
        return 0.0
    sample = np.linspace(0, len(exact) - 1, min(len(exact), 2 * _SAMPLE)).astype(np.int64)
    left, right = sample[::2], sample[1::2]
    with np.errstate(over="ignore", invalid="ignore"):
        error = gram(kernel, fast.take(left), fast.take(right)) - gram(
            kernel, exact.take(left), exact.take(right)
        )
        return float(np.sqrt(np.mean(np.square(error))))
