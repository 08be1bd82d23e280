"""AdaBoost's loss; its raw score is half the log of the odds."""

from __future__ import annotations

from dataclasses import dataclass

from margrove._jit import kernel
from margrove.ensemble.gradient_losses.gradient_loss import bounded_exp, unbounded_exp
from margrove.ensemble.gradient_losses.two_classes import TwoClassLoss

__all__ = ["Exponential"]


@dataclass(frozen=True)
class Exponential(TwoClassLoss):
    """exp(-raw) of the second class, exp(raw) of the first; so is the second derivative."""

    name = "exponential"
    slope = 2.0

    def write_losses(self, y, raw, start, end, losses) -> None:
        _losses(y, raw, start, end, losses)

    def write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        _derivatives(y, raw, gradient, hessian, start, end)


@kernel
def _losses(y, raw, start, end, losses):
    for i in range(start, end):
        losses[i - start] = unbounded_exp(-raw[0, i] if y[i] > 0.0 else raw[0, i])


@kernel
def _derivatives(y, raw, gradient, hessian, start, end):
    for i in range(start, end):
        if y[i] > 0.0:
            hessian[0, i] = bounded_exp(-raw[0, i])
            gradient[0, i] = -hessian[0, i]
        else:
            hessian[0, i] = bounded_exp(raw[0, i])
            gradient[0, i] = hessian[0, i]
