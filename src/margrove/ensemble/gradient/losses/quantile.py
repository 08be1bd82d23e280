"""The pinball loss; predicts quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import ALONE
from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss, require_open_interval
from margrove.ensemble.gradient.losses.quantiles import quantile_of, quantiles_of_leaves
from margrove.ensemble.gradient.losses.registry import registered_loss

__all__ = ["Quantile"]


@registered_loss
@dataclass(frozen=True)
class Quantile(GradientLoss):
    """q (y - raw) if y is above the prediction, else (1 - q) (raw - y).

    At 0 the gradient is -q. The value of a leaf is the quantile of its residuals.
    """

    quantile: float = 0.5

    name = "quantile"
    summary = "numbers; predicts a quantile"
    degree = 1
    is_constant_hessian = True
    differs_from_mean = True

    def __post_init__(self) -> None:
        require_open_interval("quantile", self.quantile, 0, 1)

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([self.leaf_value(y, weight)])

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        return quantile_of(residuals, weights, self.quantile)

    def leaf_values(
        self, residual, weight, rows, starts, *, n_threads=1, collective=ALONE
    ) -> np.ndarray:
        return quantiles_of_leaves(
            residual,
            weight,
            self.quantile,
            rows,
            starts,
            n_threads=n_threads,
            collective=collective,
        )

    @staticmethod
    def row_loss(y, raw, quantile):
        residual = y - raw
        return quantile * residual if residual >= 0.0 else (quantile - 1.0) * residual

    @staticmethod
    def row_derivatives(y, raw, quantile):
        return -quantile if y >= raw else 1.0 - quantile, 1.0
