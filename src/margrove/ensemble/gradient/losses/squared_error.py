"""Half the squared error; predicts means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.gradient_loss import (
    GradientLoss,
    bounded,
    times_weights,
)
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

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, gradient, hessian, start, end)

    def write_derivatives_and_losses(self, y, raw, gradient, hessian, start, end, losses) -> None:
        _derivatives_and_losses(y, raw, gradient, hessian, start, end, losses)

    def write_shares(self, n_shares, n_threads, *rows) -> None:
        _derive(n_shares, n_threads, *rows)

    def write_shares_of_losses(self, n_shares, n_threads, *rows) -> None:
        _lose(n_shares, n_threads, *rows)


@kernel
def _losses(y, raw, start, end, losses):
    target, score = y[start:end], raw[0, start:end]
    for i in range(len(target)):
        residual = score[i] - target[i]
        losses[i] = 0.5 * residual * residual


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first = gradient[0, start:end]
    for i in range(len(target)):
        first[i] = bounded(score[i] - target[i])
    hessian[0, start:end] = 1.0


@kernel
def _derivatives_and_losses(y, raw, gradient, hessian, start, end, losses):
    target, score = y[start:end], raw[0, start:end]
    first = gradient[0, start:end]
    for i in range(len(target)):
        residual = score[i] - target[i]
        first[i] = bounded(residual)
        losses[i] = 0.5 * residual * residual
    hessian[0, start:end] = 1.0


@region
def _derive(share, first, step, y, raw, weight, gradient, hessian, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _derivatives_and_losses(y, raw, gradient, hessian, start, end, losses[start:end])
    times_weights(weight[start:end], gradient, hessian, start, end)


@region
def _lose(share, first, step, y, raw, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _losses(y, raw, start, end, losses[start:end])
