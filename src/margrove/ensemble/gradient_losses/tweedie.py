"""Half the Tweedie deviance, for sums of a random number of amounts: many zeros, a long tail."""

from __future__ import annotations

from dataclasses import dataclass

from margrove._jit import kernel
from margrove.ensemble.gradient_losses.gradient_loss import (
    bounded,
    bounded_exp,
    require_open_interval,
    unbounded_exp,
)
from margrove.ensemble.gradient_losses.log_link import LogLinkLoss

__all__ = ["Tweedie"]


@dataclass(frozen=True)
class Tweedie(LogLinkLoss):
    """exp((2 - p) raw) / (2 - p) - y exp((1 - p) raw) / (1 - p); the variance is mean^p."""

    power: float = 1.5

    name = "tweedie"

    def __post_init__(self) -> None:
        require_open_interval("power", self.power, 1, 2)

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, self.power, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, self.power, gradient, hessian, start, end)


@kernel
def _losses(y, raw, power, start, end, losses):
    to_mean, to_target = 2.0 - power, 1.0 - power
    for i in range(start, end):
        loss = unbounded_exp(to_mean * raw[0, i]) / to_mean
        if y[i] > 0.0:  # 0 times infinity is 0 here
            loss -= y[i] * unbounded_exp(to_target * raw[0, i]) / to_target
        losses[i - start] = loss


@kernel
def _derivatives(y, raw, power, gradient, hessian, start, end):
    to_mean, to_target = 2.0 - power, 1.0 - power
    for i in range(start, end):
        of_mean = bounded_exp(to_mean * raw[0, i])
        of_target = bounded(y[i] * bounded_exp(to_target * raw[0, i]))
        gradient[0, i] = of_mean - of_target
        hessian[0, i] = to_mean * of_mean - to_target * of_target
