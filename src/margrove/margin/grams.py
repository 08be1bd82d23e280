"""The Gram matrix of a training set in the precisions that a solver may want."""

from __future__ import annotations

from functools import partial

import numpy as np

from margrove.margin.expansions import kernel_sums
from margrove.margin.kernels import CallableKernel, Kernel, Points, Precomputed, gram
from margrove.margin.qmatrix import GramRows, GramSource, TwoRuns
from margrove.margin.solvers.smo import Gram

__all__ = ["SharedGram", "gram_of", "rounding_of", "values_of"]

_SMALL = 2048  # points up to which float64 costs nothing worth saving
_LEAST_ROWS = 256
_SAMPLE = 64


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
    """One Gram matrix for many small machines, each of which takes some of its points.

    Where it fits the memory given, it is computed once, for all. The classes stand one after the
    other, so that a machine's points are one or two runs.
    """

    def __init__(
        self, kernel: Kernel, points: Points, *, cache_bytes: int, n_threads: int = 1
    ) -> None:
        self._kernel = kernel
        self._points = points
        chosen = self._chosen = _fast(kernel, points)
        self._rounding = rounding_of(kernel, chosen, points)
        self._rows: GramRows | None = None
        if len(points) <= _SMALL or len(points) ** 2 * 4 <= cache_bytes:
            self._rows = GramRows(
                kernel, chosen, cache_bytes=0, at_least=len(points), n_threads=n_threads
            )
            self._rows.fill()

    def part(self, members: np.ndarray) -> Gram:
        """The Gram matrix of some points, whose positions form at most two runs."""
        own = self._points.take(members)
        fast: GramSource
        if self._rows is None:
            fast = GramRows(
                self._kernel, self._chosen.take(members), cache_bytes=0, at_least=_LEAST_ROWS
            )
        else:
            fast = TwoRuns(self._rows, *_runs(members))
        return Gram(
            fast=fast,
            exact=partial(GramRows, self._kernel, own, cache_bytes=0, at_least=_LEAST_ROWS),
            values=partial(values_of, self._kernel, own),
            rounding=self._rounding,
        )


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
