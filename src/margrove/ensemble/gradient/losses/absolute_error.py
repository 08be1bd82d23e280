"""The absolute error; predicts medians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.gradient_loss import (
    GradientLoss,
    times_weights,
)
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

    def leaf_values(self, residual, weight, rows, starts, *, n_threads=1) -> np.ndarray:
        return quantiles_of_leaves(residual, weight, 0.5, rows, starts, n_threads=n_threads)

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, gradient, hessian, start, end)

    def write_shares(self, n_shares, n_threads, *rows) -> None:
        _derive(n_shares, n_threads, *rows)

    def write_shares_of_losses(self, n_shares, n_threads, *rows) -> None:
        _lose(n_shares, n_threads, *rows)


@kernel
def _losses(y, raw, start, end, losses):
    target, score = y[start:end], raw[0, start:end]
    for i in range(len(target)):
        losses[i] = abs(score[i] - target[i])


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first = gradient[0, start:end]
    for i in range(len(target)):
        first[i] = 1.0 if score[i] > target[i] else -1.0
    hessian[0, start:end] = 1.0


@region
def _derive(share, first, step, y, raw, weight, gradient, hessian, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _derivatives(y, raw, gradient, hessian, start, end)
    _losses(y, raw, start, end, losses[start:end])
    times_weights(weight[start:end], gradient, hessian, start, end)


@region
def _lose(share, first, step, y, raw, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _losses(y, raw, start, end, losses[start:end])
