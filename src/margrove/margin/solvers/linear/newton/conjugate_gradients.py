"""Newton steps with many features: systems that are not formed, but multiplied by vectors.

A system of a machine is I + X'DX, bordered for the intercept; see `normal_equations`. Conjugate
gradients need a sum over rows of d numbers for each iteration, where the system has d^2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from margrove._runtime import Collective, kernel
from margrove.margin.solvers.linear.newton.row_tiles import Tile

__all__ = ["CurvedRows", "conjugate_gradients"]

_MOST_ITERATIONS = 500


class CurvedRows:
    """The rows that have curvature, in place of `BorderedSquares`, whose matrices are too large.

    Vectors (a, d + 1) have the intercept last; `machines` int64 (a,).
    """

    def __init__(
        self, tiles: Sequence[Tile], n_features: int, n_machines: int, collective: Collective
    ) -> None:
        self._tiles, self._d, self._collective = tiles, n_features, collective
        self.known = np.zeros(n_machines, np.int64)

    def diagonals(self, machines: np.ndarray) -> np.ndarray:
        """The diagonals of X'DX."""
        total = np.zeros((len(machines), self._d + 1))
        for tile in self._tiles:
            groups, curvature = tile.groups(), self._curvature(tile, machines)
            _add_column_squares(groups.X, groups.rows, curvature, total)
            total[:, -1] += curvature.sum(axis=1)
        self._collective.sum(total)
        return total

    def products(self, machines: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """X'DX times a vector for each machine."""
        total, places = np.zeros_like(vectors), np.arange(len(machines))
        weights, last = np.ascontiguousarray(vectors[:, :-1]), vectors[:, -1].copy()
        for tile in self._tiles:
            groups, values = tile.groups(), np.empty((len(machines), len(tile)))
            groups.products(weights, last, places, values)
            values *= self._curvature(tile, machines)
            total[:, :-1] += groups.combinations(values)
            total[:, -1] += values.sum(axis=1)
        self._collective.sum(total)
        return total

    def _curvature(self, tile: Tile, machines: np.ndarray) -> np.ndarray:
        return tile.flags[1 - self.known[machines], machines] * tile.losses().factor


def conjugate_gradients(
    multiplied: Callable[[np.ndarray, np.ndarray], np.ndarray],
    diagonal: np.ndarray,
    right: np.ndarray,
    goals: np.ndarray,
) -> np.ndarray:
    """Solutions (k, n) of k positive definite systems at once, to residuals `goals` of `right`.

    multiplied(which, vectors) returns the products of some of the systems; `diagonal` (k, n) is the
    preconditioner (Jacobi).
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    towards = residual / diagonal
    direction = towards.copy()
    energy = (residual * towards).sum(axis=1)
    limit = goals**2 * energy
    for _ in range(_MOST_ITERATIONS):
        chosen = np.flatnonzero(energy > limit)
        if not len(chosen):
            break
        products = multiplied(chosen, direction[chosen])
        along = (direction[chosen] * products).sum(axis=1)
        length = np.where(along > 0.0, energy[chosen] / np.where(along > 0.0, along, 1.0), 0.0)
        solution[chosen] += length[:, None] * direction[chosen]
        residual[chosen] -= length[:, None] * products
        towards = residual[chosen] / diagonal[chosen]
        fresh = (residual[chosen] * towards).sum(axis=1)
        direction[chosen] = towards + (fresh / energy[chosen])[:, None] * direction[chosen]
        energy[chosen] = np.where(length > 0.0, fresh, 0.0)
    return solution


@kernel
def _add_column_squares(X, rows, weights, total):
    """Add the squares of the columns of X, with weights (a, m) of the rows, to total (a, .)."""
    for i in range(len(rows)):
        row = rows[i]
        for a in range(len(weights)):
            weight = weights[a, i]
            if weight == 0.0:
                continue
            if X.is_dense:
                for j in range(X.dense.shape[1]):
                    total[a, j] += weight * X.dense[row, j] * X.dense[row, j]
            else:
                for p in range(X.indptr[row], X.indptr[row + 1]):
                    total[a, X.indices[p]] += weight * X.data[p] * X.data[p]
