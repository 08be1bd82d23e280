"""The sums that Newton's method needs: X p, X'B and X'DX, over some rows of X; see `row_groups`."""

from __future__ import annotations

import numpy as np

from margrove._data import Rows
from margrove.margin.solvers.linear.row_groups import RowGroups
from margrove.margin.solvers.linear.squares import bordered_squares

__all__ = ["NormalEquations"]


class NormalEquations:
    """Sums over some rows of X (n, d); if these are all rows, they should be in ascending order."""

    def __init__(self, X: Rows, n_features: int, rows: np.ndarray, *, n_threads: int = 1) -> None:
        self._groups = RowGroups(X, n_features, rows, n_threads=n_threads)

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def groups(self) -> RowGroups:
        return self._groups

    def products(self, p: np.ndarray) -> np.ndarray:
        """X p, shape (m,)."""
        out = np.empty((1, len(self)))
        self._groups.products(p[None], np.zeros(1), np.zeros(1, np.int64), out)
        return out[0]

    def combinations(self, B: np.ndarray) -> np.ndarray:
        """X'B for B (m, k), shape (d, k)."""
        return self._groups.combinations(np.ascontiguousarray(B.T)).T

    def curvature(self, weight: np.ndarray) -> np.ndarray:
        """X'DX with D = diag(weight) (m,), weight >= 0; shape (d, d)."""
        return self.bordered_curvature(weight)[:-1, :-1]

    def bordered_curvature(self, weight: np.ndarray) -> np.ndarray:
        """The same for X with a last column of ones, shape (d + 1, d + 1)."""
        return bordered_squares(self._groups, weight)
