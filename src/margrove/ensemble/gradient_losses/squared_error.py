"""Half the squared error; predicts means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._jit import kernel
from margrove.ensemble.gradient_losses.gradient_loss import GradientLoss, bounded
from margrove.ensemble.gradient_losses.row_statistics import mean_of

__all__ = ["SquaredError"]


@dataclass(frozen=True)
class SquaredError(GradientLoss):
    """(y - raw)^2 / 2"""

    name = "squared_error"
    is_constant_hessian = True

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([mean_of(y, weight)])

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, gradient, hessian, start, end)


@kernel
def _losses(y, raw, start, end, losses):
    for i in range(start, end):
        residual = raw[0, i] - y[i]
        losses[i - start] = 0.5 * residual * residual


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    for i in range(start, end):
        gradient[0, i] = bounded(raw[0, i] - y[i])
        hessian[0, i] = 1.0
