"""Half the Tweedie deviance, for targets with many zeros and a long tail, such as claim amounts."""

from __future__ import annotations

from dataclasses import dataclass

from margrove._runtime import kernel, region
from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import (
    bounded,
    require_open_interval,
    times_weights,
)
from margrove.ensemble.gradient.losses.log_link import LogLinkLoss
from margrove.ensemble.gradient.losses.registry import registered_loss

__all__ = ["Tweedie"]


@registered_loss
@dataclass(frozen=True)
class Tweedie(LogLinkLoss):
    """exp((2 - p) raw) / (2 - p) - y exp((1 - p) raw) / (1 - p); the variance is mean^p."""

    power: float = 1.5

    name = "tweedie"
    summary = "amounts, many of them 0; predicts means, whose logarithms are the raw scores"

    def __post_init__(self) -> None:
        require_open_interval("power", self.power, 1, 2)

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, self.power, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, self.power, gradient, hessian, start, end)

    def write_shares(self, n_shares, n_threads, *rows) -> None:
        _derive(n_shares, n_threads, self.power, *rows)

    def write_shares_of_losses(self, n_shares, n_threads, *rows) -> None:
        _lose(n_shares, n_threads, self.power, *rows)


@kernel
def _losses(y, raw, power, start, end, losses):
    to_mean, to_target = 2.0 - power, 1.0 - power
    target, score = y[start:end], raw[0, start:end]
    for i in range(len(target)):
        loss = exp_of(to_mean * score[i]) / to_mean
        of_target = exp_of(to_target * score[i]) / to_target
        losses[i] = loss - (target[i] * of_target if target[i] > 0.0 else 0.0)  # 0 * inf is 0


@kernel
def _derivatives(y, raw, power, gradient, hessian, start, end):
    to_mean, to_target = 2.0 - power, 1.0 - power
    target, score = y[start:end], raw[0, start:end]
    first, second = gradient[0, start:end], hessian[0, start:end]
    for i in range(len(target)):
        of_mean = bounded(exp_of(to_mean * score[i]))
        of_target = bounded(target[i] * bounded(exp_of(to_target * score[i])))
        first[i] = of_mean - of_target
        second[i] = to_mean * of_mean - to_target * of_target


@region
def _derive(share, power, first, step, y, raw, weight, gradient, hessian, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _derivatives(y, raw, power, gradient, hessian, start, end)
    _losses(y, raw, power, start, end, losses[start:end])
    times_weights(weight[start:end], gradient, hessian, start, end)


@region
def _lose(share, power, first, step, y, raw, losses):
    start = first + share * step
    end = min(start + step, len(y))
    _losses(y, raw, power, start, end, losses[start:end])
