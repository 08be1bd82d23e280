"""Half the squared error; predicts means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss, bounded
from margrove.ensemble.gradient.losses.registry import registered_loss
from margrove.ensemble.gradient.losses.row_statistics import mean_of

__all__ = ["SquaredError"]


@registered_loss
@dataclass(frozen=True)
class SquaredError(GradientLoss):
    """(y - raw)^2 / 2"""

    name = "squared_error"
    summary = "numbers; predicts means"
    is_usual = True
    reported_factor = 2.0  # scikit-learn reports twice this loss
    degree = 2
    is_constant_hessian = True

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([mean_of(y, weight)])

    @staticmethod
    def row_loss(y, raw):
        residual = raw - y
        return 0.5 * residual * residual

    @staticmethod
    def row_derivatives(y, raw):
        return bounded(raw - y), 1.0
