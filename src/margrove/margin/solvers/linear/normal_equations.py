"""The sums that Newton's method needs: X p, X'B and X'DX, over some rows of X.

Dense tables use BLAS, tile by tile; sparse and small tables use compiled loops. Rows are read in
their order in memory. Work is cut into groups of rows whose partial sums are added up in order, so
that nothing depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import kernel, run_tiles, single_threaded_blas

__all__ = ["NormalEquations", "multiply_rows", "reading_order"]

_TILE_ROWS = 2048
_MOST_GROUPS = 16
_GROUP_BYTES = 64_000_000
_SMALL_CELLS = 50_000
_WORTH_A_THREAD = 2_000_000  # entries of X from which on several threads are used
_WORK_AT_ONCE = 50_000_000  # multiply-adds of a kernel between two checks for an interrupt


def reading_order(X: Rows, n_features: int, rows: np.ndarray) -> np.ndarray:
    """The order in which rows are read: for large tables, their order in memory, to be fast.

    Small tables keep the given order, so that sums do not depend on the positions of rows in X.
    """
    if len(rows) * _cells_per_row(X, n_features) > _SMALL_CELLS:
        return np.argsort(rows)
    return np.arange(len(rows))


def _cells_per_row(X: Rows, n_features: int) -> float:
    return float(n_features) if X.is_dense else 1.0 + len(X.data) / max(1, len(X.indptr) - 1)


class NormalEquations:
    """Sums over some rows of X (n, d); if these are all rows, they should be in ascending order."""

    def __init__(self, X: Rows, n_features: int, rows: np.ndarray, *, n_threads: int = 1) -> None:
        self._X = X
        self._d = n_features
        self._rows = read_only(rows)
        m = len(rows)
        self._is_all_rows = X.is_dense and m == len(X.dense) and bool(np.all(np.diff(rows) == 1))
        self._by_blas = X.is_dense and m * n_features > _SMALL_CELLS
        cells = _cells_per_row(X, n_features)
        self._squares = cells * cells
        self._cells = cells
        n_groups = min(_MOST_GROUPS, max(1, _GROUP_BYTES // (8 * n_features**2)))
        n_groups = max(1, min(n_groups, -(-m // _TILE_ROWS)))
        edges = np.linspace(0, m, n_groups + 1).astype(int).tolist()
        self._groups = list(pairwise(edges))
        self._n_threads = n_threads if m * cells > _WORTH_A_THREAD else 1

    def __len__(self) -> int:
        return len(self._rows)

    def products(self, p: np.ndarray) -> np.ndarray:
        """X p, shape (m,)."""
        out = np.empty(len(self))

        def multiply(start: int, end: int) -> None:
            if self._by_blas:
                np.dot(self._tile(start, end), p, out=out[start:end])
            else:
                multiply_rows(self._X, self._rows, start, end, p, out)

        self._run(lambda group: self._each(group, self._cells, multiply))
        return out

    def combinations(self, B: np.ndarray) -> np.ndarray:
        """X'B for B (m, k), shape (d, k)."""
        partial = np.zeros((len(self._groups), self._d, B.shape[1]))

        def combine(group: int) -> None:
            def add(start: int, end: int) -> None:
                if self._by_blas:
                    partial[group] += self._tile(start, end).T @ B[start:end]
                else:
                    _combine(self._X, self._rows, start, end, B, partial[group])

            self._each(group, self._cells * B.shape[1], add)

        self._run(combine)
        return partial.sum(axis=0) if len(partial) > 1 else partial[0]

    def curvature(self, weight: np.ndarray) -> np.ndarray:
        """X'DX with D = diag(weight) (m,), weight >= 0; shape (d, d)."""
        partial = np.zeros((len(self._groups), self._d, self._d))

        def square(group: int) -> None:
            def add(start: int, end: int) -> None:
                if not self._by_blas:
                    _square(self._X, self._rows, start, end, weight, partial[group])
                    return
                curved = np.flatnonzero(weight[start:end])
                if len(curved):
                    chosen = self._tile(start, end)[curved]
                    chosen *= np.sqrt(weight[start:end][curved])[:, None]
                    partial[group] += chosen.T @ chosen

            self._each(group, self._squares, add)

        self._run(square)
        total = partial.sum(axis=0) if len(partial) > 1 else partial[0]
        if not self._by_blas:  # only the lower half is computed
            _mirror(total)
        return total

    def _run(self, task: Callable[[int], None]) -> None:
        """Call task(group) for each group of rows."""
        if self._by_blas:
            with single_threaded_blas():
                run_tiles(task, len(self._groups), self._n_threads)
        else:
            run_tiles(task, len(self._groups), self._n_threads)

    def _each(self, group: int, work_per_row: float, task: Callable[[int, int], None]) -> None:
        """Call task(start, end) for consecutive ranges of a group of rows."""
        begin, stop = self._groups[group]
        step = _TILE_ROWS if self._by_blas else max(1, int(_WORK_AT_ONCE / work_per_row))
        for start in range(begin, stop, step):
            task(start, min(start + step, stop))

    def _tile(self, start: int, end: int) -> np.ndarray:
        if self._is_all_rows:
            tile = self._X.dense[start:end]
        else:
            tile = self._X.dense[self._rows[start:end]]
        return tile.astype(np.float64, copy=False)


@kernel(fast_sums=True)
def multiply_rows(X, rows, start, end, p, out):
    """out[i] = x.p of the rows start .. end."""
    for i in range(start, end):
        row = rows[i]
        total = 0.0
        if X.is_dense:
            for j in range(X.dense.shape[1]):
                total += X.dense[row, j] * p[j]
        else:
            for k in range(X.indptr[row], X.indptr[row + 1]):
                total += X.data[k] * p[X.indices[k]]
        out[i] = total


@kernel
def _combine(X, rows, start, end, B, out):
    """out += X'B of the rows start .. end"""
    for i in range(start, end):
        row = rows[i]
        for c in range(B.shape[1]):
            factor = B[i, c]
            if factor == 0.0:
                continue
            if X.is_dense:
                for j in range(X.dense.shape[1]):
                    out[j, c] += factor * X.dense[row, j]
            else:
                for k in range(X.indptr[row], X.indptr[row + 1]):
                    out[X.indices[k], c] += factor * X.data[k]


@kernel
def _square(X, rows, start, end, weight, out):
    """out += the lower half of X'DX of the rows start .. end"""
    for i in range(start, end):
        if weight[i] == 0.0:
            continue
        row = rows[i]
        if X.is_dense:
            for a in range(X.dense.shape[1]):
                factor = weight[i] * X.dense[row, a]
                if factor != 0.0:
                    for b in range(a + 1):
                        out[a, b] += factor * X.dense[row, b]
        else:
            first, last = X.indptr[row], X.indptr[row + 1]
            for p in range(first, last):
                a, factor = X.indices[p], weight[i] * X.data[p]
                for q in range(first, p + 1):  # columns ascend
                    out[a, X.indices[q]] += factor * X.data[q]


@kernel
def _mirror(square):
    """Copy the lower half to the upper half."""
    for a in range(square.shape[0]):
        for b in range(a):
            square[b, a] = square[a, b]
