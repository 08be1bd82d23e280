"""Huber's loss: squared errors up to a bend, absolute ones beyond."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrove._runtime import kernel
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
    """r^2 / 2 where abs(r) <= delta, delta (abs(r) - delta / 2) elsewhere.

    alpha   the quantile of abs(r) that each round takes for delta
    delta   the bend of this round; 0 before the first, which starts from the median

    A leaf is worth Friedman's step: the median of its residuals, and the mean of what they differ
    from it, cut off at delta. The second derivative beyond the bend is 0.
    """

    alpha: float = 0.9
    delta: float = 0.0

    name = "huber"
    summary = "numbers, some far off; predicts means of what is not too far off"
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

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, self.delta, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, self.delta, gradient, hessian, start, end)


@kernel
def _losses(y, raw, delta, start, end, losses):
    own_y, score = y[start:end], raw[0, start:end]
    for i in range(len(own_y)):
        size = abs(own_y[i] - score[i])
        losses[i] = 0.5 * size * size if size <= delta else delta * (size - 0.5 * delta)


@kernel
def _derivatives(y, raw, delta, gradient, hessian, start, end):
    own_y, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(own_y)):
        residual = score[i] - own_y[i]
        first[i] = bounded(min(max(residual, -delta), delta))
        second[i] = 1.0 if abs(residual) <= delta else 0.0
