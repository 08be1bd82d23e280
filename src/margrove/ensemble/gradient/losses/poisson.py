"""Half the Poisson deviance, for counts and other targets >= 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import (
    bounded,
    times_weights,
)
from margrove.ensemble.gradient.losses.log_link import LogLinkLoss
from margrove.ensemble.gradient.losses.registry import registered_loss

__all__ = ["Poisson"]


@registered_loss
@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    """exp(raw) - y raw"""

    name = "poisson"
    summary = "counts, ≥ 0; predicts means, whose logarithms are the raw scores"
    scoring = "neg_mean_poisson_deviance"

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
        mean = exp_of(score[i])
        losses[i] = mean - target[i] * score[i] if mean < math.inf else math.inf


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):
        mean = bounded(exp_of(score[i]))
        first[i] = bounded(mean - target[i])
        second[i] = mean


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
