"""The rows of one machine with squared losses, for the L1 penalty; see `row_tiles`.

All sums are those over the rows of all members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import ALONE, Collective, sum_together
from margrove.margin.solvers.linear.newton.normal_equations import BorderedSquares
from margrove.margin.solvers.linear.newton.row_tiles import Tile, TiledProblem, added
from margrove.margin.solvers.linear.row_losses import smoothed_rows, total_loss

__all__ = ["L1Rows", "L1Sums"]

_NOW, _BEST = 0, 1  # the dual variables of the last measurement, and the best ones
_ONE = np.zeros(1, np.int64)


class L1Sums(NamedTuple):
    """Sums over the rows at some weights.

    sums       (8,)  see `smoothed_rows`
    combined   (d, 2)  X' of the positive and of the negative dual variables
    gradient   (d + 1,)  of the losses, the intercept's last
    """

    sums: np.ndarray
    combined: np.ndarray
    gradient: np.ndarray


class L1Rows:
    """Values X w + b and dual variables of the rows; w (d + 1,) has the intercept last."""

    def __init__(
        self, problem: TiledProblem, *, n_threads: int = 1, collective: Collective = ALONE
    ) -> None:
        self._collective, self._d = collective, problem.n_features
        self._keeps_beta = problem.keeps_beta
        self._tiles = [Tile(source, self._d, 1, 2, n_threads) for source in problem.tiles]
        self._squares = BorderedSquares(self._tiles, self._d, 1)
        self._counts = np.zeros((2, 1))

    def __len__(self) -> int:
        return sum(map(len, self._tiles))

    def set_values(self, w: np.ndarray) -> None:
        for tile in self._tiles:
            tile.groups().products(w[None, :-1], np.zeros(1), _ONE, tile.values)
            tile.values += w[-1]

    def set_moves(self, step: np.ndarray) -> None:
        """Set the change of the values by a step."""
        for tile in self._tiles:
            tile.groups().products(step[None, :-1], np.zeros(1), _ONE, tile.moves)
            tile.moves += step[-1]

    def move(self, length: float) -> None:
        for tile in self._tiles:
            tile.values += length * tile.moves

    def loss_along(self, length: float) -> float:
        """The summed losses after a move of this length."""
        total: np.ndarray | None = None
        for tile in self._tiles:
            _, target, low, high, damping, _, tube = tile.losses()
            values = tile.values[0] + length * tile.moves[0]
            loss = total_loss(target, low, high, damping, tube, values)
            total = added(total, np.full(1, loss))
        total = np.zeros(1) if total is None else total
        self._collective.sum(total)
        return float(total[0])

    def measure(self) -> L1Sums:
        """The sums at the current values; also sets the dual variables."""
        total: np.ndarray | None = None
        combined: np.ndarray | None = None
        counts = np.zeros((2, 1))
        self._squares.begin(_ONE)
        for tile in self._tiles:
            losses, groups = tile.losses(), tile.groups()
            beta, curved = tile.beta[_NOW, 0], np.empty(len(tile))
            signed, sums = np.empty((len(tile), 2)), np.zeros(9)
            smoothed_rows(
                losses.target, losses.low, losses.high, losses.damping, losses.tube,
                tile.values[0], beta, 0.0, beta, curved, signed, sums[:8],
            )  # fmt: skip
            sums[8] = beta.sum()
            total = added(total, sums)
            combined = added(combined, groups.combinations(np.ascontiguousarray(signed.T)).T)
            old = tile.flags[self._squares.known[0], 0]
            new = tile.flags[1 - self._squares.known[0], 0]
            new[:] = curved != 0.0
            counts[:, 0] += np.count_nonzero(new), np.count_nonzero(new != old)
            if self._squares.is_ahead:
                self._squares.add(tile, groups, losses.factor, _ONE)
        if total is None or combined is None:
            total, combined = np.zeros(9), np.zeros((self._d, 2))
        self._counts = counts
        sum_together(self._collective, total, combined)
        return L1Sums(total[:8], combined, -np.append(combined.sum(axis=1), total[8]))

    def squares(self) -> np.ndarray:
        """X'DX of the curvature at the last measurement, bordered by the sums for b."""
        n_curved, n_changed = self._counts
        found = self._squares.update(_ONE, n_curved, n_changed, np.zeros(1))
        self._collective.sum(found)
        return np.asarray(found[0])

    def keep_beta(self, up: float, down: float) -> None:
        """Keep the dual variables of the last measurement, times factors, as the best so far."""
        for tile in self._tiles:
            beta = tile.beta[_NOW, 0]
            tile.beta[_BEST, 0] = np.where(beta > 0.0, up, down) * beta

    def best_beta(self) -> np.ndarray:
        """The best dual variables (m, 1) in the order of the problem, if results have them."""
        found = [np.empty(0)]
        for tile in self._tiles if self._keeps_beta else ():
            beta = np.empty(len(tile))
            beta[tile.order] = tile.beta[_BEST, 0]
            found.append(beta)
        return np.concatenate(found)[:, None]
