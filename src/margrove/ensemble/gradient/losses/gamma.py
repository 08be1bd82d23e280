"""Half the gamma deviance, for targets > 0 whose standard deviation grows with the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import (
    bounded,
    times_weights,
)
from margrove.ensemble.gradient.losses.log_link import LogLinkLoss
from margrove.ensemble.gradient.losses.registry import registered_loss

__all__ = ["Gamma"]


@registered_loss
@dataclass(frozen=True)
class Gamma(LogLinkLoss):
    """raw + y exp(-raw)"""

    name = "gamma"
    summary = "amounts, > 0; predicts means, whose logarithms are the raw scores"
    scoring = "neg_mean_gamma_deviance"
    required = "strictly positive y"

    def check_targets(self, y: Any) -> np.ndarray:
        targets = super().check_targets(y)
        self._refuse(
            targets,
            targets == 0.0,
            self.required,
            "Drop these rows, or use loss='poisson' or loss='tweedie', which allow 0",
        )
        return targets

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
        losses[i] = score[i] + target[i] * exp_of(-score[i])


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):
        ratio = bounded(target[i] * bounded(exp_of(-score[i])))
        first[i] = 1.0 - ratio
        second[i] = ratio


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
