"""One machine over some rows of a worker: its losses, its values, its dual variables.

With many rows these arrays take most of the memory. Only what one method needs from another is
kept; everything else, such as the losses of rows on disk, is computed when it is needed. Rows are
used only in products and sums. `set_weights` leaves its product to the next method that needs it,
so that rows on disk are not read twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from margrove.dask.linear.problem_rows import ProblemRows
from margrove.margin.linear import AT_BOUND, LossOfRows, row_losses, worst_violation
from margrove.margin.solvers.linear import pulls_along, smoothed_rows, total_loss

__all__ = ["GROUPS_OF_KINKED", "GROUPS_OF_SMOOTH", "MachineRows"]

# Dual variables are summed by groups: positive ones, then negative ones; for a loss with a kink,
# each of these is divided into those between their bounds and those at a bound.
GROUPS_OF_SMOOTH, GROUPS_OF_KINKED = 2, 4


class MachineRows:
    """One machine over the rows of a problem, m of them."""

    def __init__(self, problem: ProblemRows, loss: Callable[[], LossOfRows]) -> None:
        self._problem, self._loss = problem, loss
        self._m, self._is_smooth = problem.n_rows, problem.plan.is_smooth
        self._known_values: np.ndarray | None = None
        self._is_at: tuple[np.ndarray, float] | None = None  # the weights of the known values
        self._moves: Any = None
        # None means zeros.
        self._centre: np.ndarray | None = None
        self._beta: np.ndarray | None = None
        self._kept: np.ndarray | None = None
        self._curved: np.ndarray | None = None

    def set_weights(self, w: np.ndarray, b: float) -> None:
        if self._is_at is not None and b == self._is_at[1] and np.array_equal(w, self._is_at[0]):
            return
        self._is_at, self._known_values = (w, b), None
        if not w.any():
            self._known_values = np.full(self._m, b)

    @property
    def needs_rows(self) -> bool:
        """Whether the next method needs X in any case."""
        return self._known_values is None

    @property
    def _values(self) -> np.ndarray:
        if self._known_values is None:
            assert self._is_at is not None
            w, b = self._is_at
            self._known_values = self._problem.sums.products(w) + b
        return self._known_values

    def recentre(self) -> None:
        """Centre the smoothing of the next `measure` at the current dual variables."""
        self._centre = self._beta

    def measure(self, width: float) -> dict[str, np.ndarray]:
        """Sets: _beta, curved.

        totals     (3,): losses, what the smoothing adds to the gap, curvature
        masses, linear, quadratic   (g,): for each group of dual variables their absolute sum and
                   the two terms of the dual objective
        combined   (g, d): X' of each group
        """
        m, loss = self._m, self._loss()
        self._beta = self._curved = None  # to free their memory
        beta, curved = np.empty(m), np.empty(m)
        signed, sums = np.empty((m, 2)), np.zeros(8)
        smoothed_rows(
            *loss, self._values, self._or_zeros(self._centre), width, beta, curved, signed, sums
        )
        self._beta, self._curved = beta, curved
        found = {"totals": np.array([sums[0], sums[7], curved.sum()])}
        if self._is_smooth:
            columns = signed
            found |= {"masses": sums[1:3], "linear": sums[3:5], "quadratic": sums[5:7]}
        else:
            is_free = _is_free(beta, loss)
            columns = np.zeros((m, GROUPS_OF_KINKED))
            for side in range(2):
                columns[:, 2 * side] = np.where(is_free, signed[:, side], 0.0)
                columns[:, 2 * side + 1] = np.where(is_free, 0.0, signed[:, side])
            masses = np.abs(columns).sum(axis=0)
            linear = loss.target @ columns - loss.tube * masses
            found |= {"masses": masses, "linear": linear, "quadratic": np.zeros(GROUPS_OF_KINKED)}
        return found | {"combined": self._problem.sums.combinations(columns).T}

    @property
    def curved(self) -> np.ndarray:
        """The curvature of each row at the last `measure`."""
        return self._or_zeros(self._curved)

    def forget_curved(self) -> None:
        """Free the curvature, which is not needed before the next `measure`."""
        self._curved = None

    def _or_zeros(self, numbers: np.ndarray | None) -> np.ndarray:
        return np.zeros(self._m) if numbers is None else numbers

    def set_direction(self, step: np.ndarray, bias_step: float) -> None:
        self._moves = self._problem.sums.products(step) + bias_step

    def set_bias_direction(self, bias_step: float) -> None:
        self._moves = np.full(self._m, bias_step)

    def slopes_along(self, length: float, width: float) -> tuple[float, float]:
        centre = self._or_zeros(self._centre)
        first, second = pulls_along(*self._loss(), self._values, self._moves, length, centre, width)
        return float(first), float(second)

    def loss_along(self, length: float) -> float:
        return float(total_loss(*self._loss(), self._values + length * self._moves))

    def move(self, length: float) -> None:
        self._known_values = self._values + length * self._moves
        self._is_at = self._moves = None

    def keep_duals(self, factors: np.ndarray) -> None:
        """Keep the dual variables of the last `measure`, scaled, as the best so far."""
        assert self._beta is not None
        beta = self._beta
        if self._is_smooth:
            up, down = factors
            self._beta = None  # never a centre
        else:
            free = _is_free(beta, self._loss())
            up = np.where(free, factors[0], factors[1])
            down = np.where(free, factors[2], factors[3])
        self._kept = np.where(beta > 0.0, up, down) * beta

    def violation(self) -> tuple[float, int]:
        """The largest violation, and the position of its row."""
        if not self._m:
            return 0.0, -1
        loss = self._loss()
        return worst_violation(loss, self._or_zeros(self._kept), loss.target - self._values)

    def of_rows(self) -> dict[str, np.ndarray]:
        """Dual variables, values and errors of each row, in the units of the solver."""
        loss, beta = self._loss(), self._or_zeros(self._kept)
        bound = np.maximum(loss.high, -loss.low)
        at_bound = np.isfinite(bound) & (np.abs(beta) >= bound * (1 - AT_BOUND)) & (beta != 0)
        slack = row_losses(loss, loss.target - self._values)[0] if self._m else beta
        return {"alpha": beta, "decision": self._values, "errors": slack, "is_bounded": at_bound}


def _is_free(beta: np.ndarray, loss: LossOfRows) -> np.ndarray:
    """Which dual variables are between their bounds."""
    free: np.ndarray = (beta > loss.low) & (beta < loss.high)
    return free
