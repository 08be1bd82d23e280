"""Huber's loss: squared for small errors, linear for large ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrove.ensemble.gradient.losses.gradient_loss import (
    GradientLoss,
    bounded,
    require_open_interval,
)
from margrove.ensemble.gradient.losses.quantiles import quantile_of
from margrove.ensemble.gradient.losses.registry import registered_loss
from margrove.ensemble.gradient.losses.row_statistics import mean_of

__all__ = ["Huber"]


@registered_loss
@dataclass(frozen=True)
class Huber(GradientLoss):
    """r^2 / 2 if abs(r) <= delta, else delta (abs(r) - delta / 2).

    alpha   each round uses this quantile of abs(r) as delta
    delta   the delta of this round; 0 before the first round, which starts from the median

    The value of a leaf is Friedman's step: the median of its residuals plus the mean of their
    differences from it, clipped at delta. The second derivative is 0 for abs(r) > delta.
    """

    alpha: float = 0.9
    delta: float = 0.0

    name = "huber"
    summary = "numbers with outliers; predicts means that outliers influence little"
    scoring = "neg_mean_absolute_error"
    degree = 2
    differs_from_mean = True

    def __post_init__(self) -> None:
        require_open_interval("alpha", self.alpha, 0, 1)

    def for_round(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Huber:
        return replace(self, delta=quantile_of(np.abs(y - raw[0]), weight, self.alpha))

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([self.leaf_value(y, weight)])

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        median = quantile_of(residuals, weights, 0.5)
        return median + mean_of(np.clip(residuals - median, -self.delta, self.delta), weights)

    @staticmethod
    def row_loss(y, raw, delta):
        size = abs(y - raw)
        return 0.5 * size * size if size <= delta else delta * (size - 0.5 * delta)

    @staticmethod
    def row_derivatives(y, raw, delta):
        residual = raw - y
        first = bounded(min(max(residual, -delta), delta))
        return first, 1.0 if abs(residual) <= delta else 0.0
