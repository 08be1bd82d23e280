"""The Gram matrices of several kernels over the same points, with shared inner products."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from margrove._runtime import on_large_pages, require_memory, run_tiles, single_threaded_blas
from margrove.margin.kernels import DotKernel, Kernel, Points, symmetric_gram

__all__ = ["GramSeries"]

_PANEL = 256


class GramSeries:
    """The float64 Gram matrices of several kernels, each computed when it is first borrowed.

    Kernels that are functions of inner products (and so of squared distances) share these. A matrix
    is released after `n_loans` calls of `give_back`; its memory is then used for the next one. With
    `holds_all` there is memory for all of them.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        points: Points,
        *,
        n_loans: int,
        n_threads: int,
        holds_all: bool = False,
    ) -> None:
        n = len(points)
        self._kernels = kernels
        self._points = points
        self._shares_dots = isinstance(points.X, np.ndarray) and all(
            isinstance(kernel, DotKernel) for kernel in kernels
        )
        n_held = len(kernels) if holds_all else min(len(kernels), n_threads + 1)
        n_held += self._shares_dots
        require_memory(
            8.0 * n * n * n_held,
            f"The {n_held} Gram matrices of {n} rows that the search holds at a time",
            "Search on a sample of the rows, or use "
            + ("drop=False." if holds_all else "n_jobs=1."),
        )
        self._dots = self._inner_products(n_threads) if self._shares_dots else None
        self._lent: dict[int, np.ndarray] = {}
        self._loans_left = [n_loans] * len(kernels)
        self._locks = [threading.Lock() for _ in kernels]
        self._spare: list[np.ndarray] = []

    def borrow(self, number: int) -> np.ndarray:
        """The matrix (n, n) of one kernel; the first thread that asks computes it."""
        with self._locks[number]:
            if number not in self._lent:
                self._lent[number] = self._compute(number)
            return self._lent[number]

    def give_back(self, number: int) -> None:
        with self._locks[number]:
            self._loans_left[number] -= 1
            if not self._loans_left[number]:
                self._spare.append(self._lent.pop(number))

    def _inner_products(self, n_threads: int) -> np.ndarray:
        X = self._points.X
        dots = on_large_pages((len(X), len(X)), np.dtype(np.float64))

        def multiply(panel: int) -> None:
            rows = slice(panel * _PANEL, (panel + 1) * _PANEL)
            np.matmul(X[rows], X.T, out=dots[rows])

        with single_threaded_blas():
            run_tiles(multiply, -(-len(X) // _PANEL), n_threads)
        return dots

    def _compute(self, number: int) -> np.ndarray:
        kernel, points = self._kernels[number], self._points
        n = len(points)
        try:
            K = self._spare.pop()
        except IndexError:
            K = on_large_pages((n, n), np.dtype(np.float64))
        if self._dots is None or not isinstance(kernel, DotKernel):
            return symmetric_gram(kernel, points, out=K)
        for start in range(0, n, _PANEL):
            rows = slice(start, start + _PANEL)
            K[rows] = self._dots[rows]
            kernel.finish(K[rows], points.squared_norms[rows], points.squared_norms)
        return K
