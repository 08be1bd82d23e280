"""Half the Poisson deviance, for counts and other targets >= 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from margrove._runtime import kernel
from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import bounded
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
