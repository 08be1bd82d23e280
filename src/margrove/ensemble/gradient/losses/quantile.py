"""The pinball loss; predicts quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.gradient_loss import (
    GradientLoss,
    require_open_interval,
    times_weights,
)
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

    def leaf_values(self, residual, weight, rows, starts, *, n_threads=1) -> np.ndarray:
        return quantiles_of_leaves(
            residual, weight, self.quantile, rows, starts, n_threads=n_threads
        )

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, self.quantile, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, self.quantile, gradient, hessian, start, end)

    def write_shares(self, n_shares, n_threads, *rows) -> None:
        _derive(n_shares, n_threads, self.quantile, *rows)

    def write_shares_of_losses(self, n_shares, n_threads, *rows) -> None:
        _lose(n_shares, n_threads, self.quantile, *rows)


@kernel
def _losses(y, raw, quantile, start, end, losses):
    target, score = y[start:end], raw[0, start:end]
    for i in range(len(target)):
        residual = target[i] - score[i]
        losses[i] = quantile * residual if residual >= 0.0 else (quantile - 1.0) * residual


@kernel
def _derivatives(y, raw, quantile, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first = gradient[0, start:end]
    for i in range(len(target)):
        first[i] = -quantile if target[i] >= score[i] else 1.0 - quantile
    hessian[0, start:end] = 1.0


@region
def _derive(share, quantile, first, step, y, raw, weight, gradient, hessian, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _derivatives(y, raw, quantile, gradient, hessian, start, end)
    _losses(y, raw, quantile, start, end, losses[start:end])
    times_weights(weight[start:end], gradient, hessian, start, end)


@region
def _lose(share, quantile, first, step, y, raw, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _losses(y, raw, quantile, start, end, losses[start:end])
