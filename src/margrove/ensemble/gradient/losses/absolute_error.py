"""The absolute error; predicts medians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import ALONE
from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss
from margrove.ensemble.gradient.losses.quantiles import quantile_of, quantiles_of_leaves
from margrove.ensemble.gradient.losses.registry import registered_loss

__all__ = ["AbsoluteError"]


@registered_loss
@dataclass(frozen=True)
class AbsoluteError(GradientLoss):
    """abs(y - raw); at 0 the gradient is -1. The value of a leaf is the median of its residuals."""

    name = "absolute_error"
    summary = "numbers; predicts medians"
    scoring = "neg_mean_absolute_error"
    degree = 1
    is_constant_hessian = True
    differs_from_mean = True

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([self.leaf_value(y, weight)])

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        return quantile_of(residuals, weights, 0.5)

    def leaf_values(
        self, residual, weight, rows, starts, *, n_threads=1, collective=ALONE
    ) -> np.ndarray:
        return quantiles_of_leaves(
            residual, weight, 0.5, rows, starts, n_threads=n_threads, collective=collective
        )

    @staticmethod
    def row_loss(y, raw):
        return abs(raw - y)

    @staticmethod
    def row_derivatives(y, raw):
        return 1.0 if raw > y else -1.0, 1.0
