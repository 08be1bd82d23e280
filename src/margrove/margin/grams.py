"""The Gram matrix of a training set in the precisions that a solver may want."""

from __future__ import annotations

import numpy as np

from margrove.margin.expansions import kernel_sums
from margrove.margin.kernels import CallableKernel, Kernel, Points, Precomputed, gram
from margrove.margin.qmatrix import GramRows, GramSource
from margrove.margin.solvers.smo import Gram

__all__ = ["gram_of", "rounding_of"]

_SMALL = 2048  # rows up to which float64 costs nothing worth saving
_LEAST_ROWS = 256
_SAMPLE = 64


def gram_of(kernel: Kernel, points: Points, *, cache_bytes: int, n_threads: int = 1) -> Gram:
    """Rows of K(points, points) on demand; points are float64."""

    def rows_of(chosen: Points) -> GramSource:
        return GramRows(
            kernel, chosen, cache_bytes=cache_bytes, at_least=_LEAST_ROWS, n_threads=n_threads
        )

    def exact() -> GramSource:
        return rows_of(points)

    def values(coef: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(coef)
        sums = kernel_sums(
            kernel, points, points.take(support), coef[support, None], n_threads=n_threads
        )
        return sums[:, 0]

    if len(points) <= _SMALL or isinstance(kernel, Precomputed | CallableKernel):
        return Gram(exact(), exact, values, rounding=0.0)
    narrow = points.as_float32()
    return Gram(rows_of(narrow), exact, values, rounding_of(kernel, narrow, points))


def rounding_of(kernel: Kernel, narrow: Points, exact: Points) -> float:
    """Root mean square error of an entry computed in float32, measured on evenly spaced rows."""
    rows = np.linspace(0, len(exact) - 1, min(len(exact), 2 * _SAMPLE)).astype(np.int64)
    left, right = rows[::2], rows[1::2]
    with np.errstate(over="ignore", invalid="ignore"):
        error = gram(kernel, narrow.take(left), narrow.take(right)) - gram(
            kernel, exact.take(left), exact.take(right)
        )
        return float(np.sqrt(np.mean(np.square(error))))
