"""Half the Tweedie deviance, for targets with many zeros and a long tail, such as claim amounts."""

from __future__ import annotations

from dataclasses import dataclass

from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import bounded, require_open_interval
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

    @staticmethod
    def row_loss(y, raw, power):
        to_mean, to_target = 2.0 - power, 1.0 - power
        loss = exp_of(to_mean * raw) / to_mean
        of_target = exp_of(to_target * raw) / to_target
        return loss - (y * of_target if y > 0.0 else 0.0)  # 0 * inf is 0

    @staticmethod
    def row_derivatives(y, raw, power):
        to_mean, to_target = 2.0 - power, 1.0 - power
        of_mean = bounded(exp_of(to_mean * raw))
        of_target = bounded(y * bounded(exp_of(to_target * raw)))
        return of_mean - of_target, to_mean * of_mean - to_target * of_target
