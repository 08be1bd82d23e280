"""Half the Poisson deviance, for counts and other targets >= 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

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

    @staticmethod
    def row_loss(y, raw):
        mean = exp_of(raw)
        return mean - y * raw if mean < math.inf else math.inf

    @staticmethod
    def row_derivatives(y, raw):
        mean = bounded(exp_of(raw))
        return bounded(mean - y), mean
