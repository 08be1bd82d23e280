"""Huber's loss: squared for small errors, linear for large ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.gradient_loss import (
    GradientLoss,
    bounded,
    require_open_interval,
    times_weights,
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

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, self.delta, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, self.delta, gradient, hessian, start, end)

    def write_shares(self, n_shares, n_threads, *rows) -> None:
        _derive(n_shares, n_threads, self.delta, *rows)

    def write_shares_of_losses(self, n_shares, n_threads, *rows) -> None:
        _lose(n_shares, n_threads, self.delta, *rows)


@kernel
def _losses(y, raw, delta, start, end, losses):
    target, score = y[start:end], raw[0, start:end]
    for i in range(len(target)):
        size = abs(target[i] - score[i])
        losses[i] = 0.5 * size * size if size <= delta else delta * (size - 0.5 * delta)


@kernel
def _derivatives(y, raw, delta, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):
        residual = score[i] - target[i]
        first[i] = bounded(min(max(residual, -delta), delta))
        second[i] = 1.0 if abs(residual) <= delta else 0.0


@region
def _derive(share, delta, first, step, y, raw, weight, gradient, hessian, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _derivatives(y, raw, delta, gradient, hessian, start, end)
    _losses(y, raw, delta, start, end, losses[start:end])
    times_weights(weight[start:end], gradient, hessian, start, end)


@region
def _lose(share, delta, first, step, y, raw, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _losses(y, raw, delta, start, end, losses[start:end])
