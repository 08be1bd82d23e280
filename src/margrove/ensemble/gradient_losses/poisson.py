"""Half the Poisson deviance, for counts and other targets >= 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from margrove._jit import kernel
from margrove.ensemble.gradient_losses.gradient_loss import bounded, bounded_exp, unbounded_exp
from margrove.ensemble.gradient_losses.log_link import LogLinkLoss

__all__ = ["Poisson"]


@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    """exp(raw) - y raw"""

    name = "poisson"

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, gradient, hessian, start, end)


@kernel
def _losses(y, raw, start, end, losses):
    for i in range(start, end):
        mean = unbounded_exp(raw[0, i])
        losses[i - start] = mean - y[i] * raw[0, i] if mean < math.inf else math.inf


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    for i in range(start, end):
        mean = bounded_exp(raw[0, i])
        gradient[0, i] = bounded(mean - y[i])
        hessian[0, i] = mean
