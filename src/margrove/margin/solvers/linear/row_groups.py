"""Rows of X in groups, for passes over them on several threads.

A pass computes something for every row, or sums over rows. The sums of a group are kept apart and
added up in the order of the groups, whose size depends on the problem only. So nothing depends on
the number of threads. Large dense tables use BLAS, tile by tile; sparse and small tables use loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import kernel, region
from margrove.margin.solvers.linear.row_sums import add_row, row_value

__all__ = [
    "TILE_ROWS",
    "RowGroups",
    "combine_rows",
    "load_rows",
    "reading_order",
    "total_of",
]

TILE_ROWS = 512  # of a product in BLAS
_MOST_TILES = 8  # of a group
_USUAL_GROUPS = 128
_SMALL_CELLS = 50_000
_WORTH_A_THREAD = 300_000  # multiply-adds of a pass from which on several threads are used
_WORK_AT_ONCE = 50_000_000  # multiply-adds of a thread between two checks for an interrupt
_MANY_TIMES = 8  # with so many more rows in X than chosen, sorting is faster than a pass over all
_IN_BLAS = 0.1  # the time of a multiply-add in BLAS, relative to one in a loop


def reading_order(X: Rows, n_features: int, rows: np.ndarray) -> np.ndarray:
    """The order in which rows are read: for large tables, their order in memory, to be fast.

    Small tables keep the given order, so that sums do not depend on the positions of rows in X.
    """
    m = len(rows)
    if m * _cells_per_row(X, n_features) <= _SMALL_CELLS:
        return np.arange(m)
    n_rows = len(X.dense) if X.is_dense else len(X.indptr) - 1
    if n_rows > _MANY_TIMES * m:
        return np.argsort(rows)
    place, order = np.full(n_rows, -1, np.int32 if m < 2**31 else np.int64), np.empty(m, np.int64)
    _sort_rows(rows, place, order)
    return order


@kernel
def _sort_rows(rows, place, order):
    """The order of distinct rows, by their places."""
    for i in range(len(rows)):
        place[rows[i]] = i
    count = 0
    for row in range(len(place)):
        if place[row] >= 0:
            order[count] = place[row]
            count += 1


def _cells_per_row(X: Rows, n_features: int) -> float:
    return float(n_features) if X.is_dense else 1.0 + len(X.data) / max(1, len(X.indptr) - 1)


class RowGroups:
    """Some rows of X (n, d) in groups.

    n_columns   how many columns products have, usually
    cells       cells of a row that are not zero
    """

    def __init__(
        self,
        X: Rows,
        n_features: int,
        rows: np.ndarray,
        *,
        n_columns: int = 1,
        n_threads: int = 1,
    ) -> None:
        self.X = X
        self.rows = read_only(rows)
        self.n_features = n_features
        self.cells = _cells_per_row(X, n_features)
        m = len(rows)
        is_large = m * self.cells > _SMALL_CELLS
        self.by_blas = bool(X.is_dense and is_large)
        tiles = max(1, min(_MOST_TILES, -(-m // (_USUAL_GROUPS * TILE_ROWS))))
        self.size = tiles * TILE_ROWS if is_large else max(1, m)
        self.count = -(-m // self.size)
        self.n_threads = n_threads if m * self.cells * n_columns > _WORTH_A_THREAD else 1

    def __len__(self) -> int:
        return len(self.rows)

    def run(self, task: Any, work: float, *arguments: Any) -> None:
        """Call the region `task(tile, first, size, ...)` for all groups; `work` is for a row."""
        self.run_tiles(task, self.count, work * self.size, self.size, *arguments)

    def run_tiles(self, task: Any, n_tiles: int, work: float, *arguments: Any) -> None:
        """Call the region `task(tile, first, ...)` for tiles first + tile, some at a time."""
        work *= _IN_BLAS if self.by_blas else 1.0
        at_once = max(1, int(_WORK_AT_ONCE / max(work, 1.0))) * self.n_threads
        for first in range(0, n_tiles, at_once):
            task(min(at_once, n_tiles - first), self.n_threads, first, *arguments)

    def passes_at_once(self, work: float) -> int:
        """How many passes over all rows fit between two checks for an interrupt."""
        return max(1, int(_WORK_AT_ONCE * self.n_threads / (work * max(1, len(self)))))

    def products(self, W: np.ndarray, b: np.ndarray, machines: np.ndarray, out: np.ndarray) -> None:
        """out[machines[a]] = X W[a] + b[a], for W (k, d) and out (., m)."""
        self.run(
            _multiply, self.cells * len(W), self.by_blas, self.X, self.rows, W, b, machines, out
        )

    def combinations(self, B: np.ndarray) -> np.ndarray:
        """B X for B (k, m), shape (k, d)."""
        partial = np.empty((self.count, len(B), self.n_features))
        self.run(_combine, self.cells * len(B), self.by_blas, self.X, self.rows, B, partial)
        return total_of(partial)


def total_of(partial: np.ndarray) -> np.ndarray:
    """The sum over groups, in their order."""
    return np.asarray(partial.sum(axis=0)) if len(partial) > 1 else partial[0]


@region
def _multiply(tile, first, size, by_blas, X, rows, W, b, machines, out):
    k, d = W.shape
    group = first + tile
    begin, stop = group * size, min((group + 1) * size, len(rows))
    if not by_blas:
        for a in range(k):
            line = out[machines[a]]
            for i in range(begin, stop):
                line[i] = row_value(X, rows[i], W[a]) + b[a]
        return
    block, product = np.empty(TILE_ROWS * d), np.empty(TILE_ROWS * k)
    for start in range(begin, stop, TILE_ROWS):
        n = min(TILE_ROWS, stop - start)
        tile_rows = block[: n * d].reshape(n, d)
        values = product[: n * k].reshape(k, n)
        load_rows(X, rows, start, 0, tile_rows)
        np.dot(W, tile_rows.T, values)
        for a in range(k):
            line, shift = out[machines[a]], b[a]
            for i in range(n):
                line[start + i] = values[a, i] + shift


@region
def _combine(tile, first, size, by_blas, X, rows, B, partial):
    k, d = partial.shape[1:]
    group = first + tile
    begin, stop = group * size, min((group + 1) * size, len(rows))
    total = partial[group]
    total[:] = 0.0
    n_block = TILE_ROWS if by_blas else 0
    block, factors, product = np.empty(n_block * d), np.empty(TILE_ROWS * k), np.empty((k, d))
    for start in range(begin, stop, TILE_ROWS):
        n = min(TILE_ROWS, stop - start)
        some = factors[: n * k].reshape(k, n)
        for a in range(k):
            for i in range(n):
                some[a, i] = B[a, start + i]
        combine_rows(by_blas, X, rows, start, some, block, product, total)


@kernel(hidden=True)
def combine_rows(by_blas, X, rows, start, factors, block, product, total):
    """total += factors (k, n) times n rows of X; block and product are buffers."""
    k, n = factors.shape
    d = total.shape[1]
    if by_blas:
        tile_rows = block[: n * d].reshape(n, d)
        load_rows(X, rows, start, 0, tile_rows)
        np.dot(factors, tile_rows, product)
        for a in range(k):
            for j in range(d):
                total[a, j] += product[a, j]
        return
    for i in range(n):
        row = rows[start + i]
        for a in range(k):
            factor = factors[a, i]
            if factor != 0.0:
                add_row(X, row, factor, total[a])


@kernel(inner=True)
def load_rows(X, rows, start, first_column, out):
    """Rows of a dense X, and columns from the first one on, to out in float64.

    A column after the last one of X is 1.
    """
    n, width = out.shape
    known = min(width, X.dense.shape[1] - first_column)
    for i in range(n):
        row = rows[start + i]
        for j in range(known):
            out[i, j] = X.dense[row, first_column + j]
        for j in range(known, width):
            out[i, j] = 1.0
