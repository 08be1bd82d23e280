"""AdaBoost's loss; its raw score is half the log of the odds."""

from __future__ import annotations

from dataclasses import dataclass

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import (
    LONGEST_LOG_STEP,
    bounded,
    times_weights,
)
from margrove.ensemble.gradient.losses.registry import registered_loss
from margrove.ensemble.gradient.losses.two_classes import TwoClassLoss

__all__ = ["Exponential"]


@registered_loss
@dataclass(frozen=True)
class Exponential(TwoClassLoss):
    """exp(-raw) for the second class, exp(raw) for the first, as is the second derivative."""

    name = "exponential"
    summary = "two classes; predicts probabilities, by AdaBoost's loss"
    scoring = "neg_log_loss"
    longest_step = LONGEST_LOG_STEP
    slope = 2.0

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
        losses[i] = exp_of(-score[i] if target[i] > 0.0 else score[i])


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    target, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):
        size = bounded(exp_of(-score[i] if target[i] > 0.0 else score[i]))
        first[i] = -size if target[i] > 0.0 else size
        second[i] = size


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
