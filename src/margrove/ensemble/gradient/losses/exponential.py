"""AdaBoost's loss; its raw score is half the log of the odds."""

from __future__ import annotations

from dataclasses import dataclass

from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import LONGEST_LOG_STEP, bounded
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

    @staticmethod
    def row_loss(y, raw):
        return exp_of(-raw if y > 0.0 else raw)

    @staticmethod
    def row_derivatives(y, raw):
        size = bounded(exp_of(-raw if y > 0.0 else raw))
        return -size if y > 0.0 else size, size
