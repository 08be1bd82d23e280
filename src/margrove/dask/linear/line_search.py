"""Line search and conjugate gradients with function values from a cluster.

A line search that calls a function would need a message for each machine. Here values are passed
in, so that one message serves all machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margrove.margin.solvers.linear import NEWTON

__all__ = ["LineSearch", "conjugate_gradients"]

_MOST_GRADIENTS = 500


@dataclass
class LineSearch:
    """A line search: the slope at `length` is straight + length * bend - pull."""

    straight: float
    bend: float
    first_slope: float
    low: float = 0.0
    high: float = np.inf
    length: float = 1.0
    is_over: bool = False

    def update(self, pull: float, second: float) -> None:
        slope = self.straight + self.length * self.bend - pull
        if abs(slope) <= -NEWTON.slope_left * self.first_slope:
            self.is_over = True
            return
        if slope < 0.0:
            self.low = self.length
        else:
            self.high = self.length
        curvature = self.bend + second
        guess = self.length - slope / curvature if curvature > 0.0 else np.inf
        if np.isinf(self.high):
            guess = min(guess, NEWTON.growth * self.length)
        if not self.low < guess < self.high:
            guess = 0.5 * (self.low + self.high)
        self.is_over = guess == self.length
        self.length = guess


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
    for _ in range(_MOST_GRADIENTS):
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
