"""Half the gamma deviance, for targets > 0 whose standard deviation grows with the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.ensemble.gradient.losses.exponentials import exp_of
from margrove.ensemble.gradient.losses.gradient_loss import bounded
from margrove.ensemble.gradient.losses.log_link import LogLinkLoss
from margrove.ensemble.gradient.losses.registry import registered_loss

__all__ = ["Gamma"]


@registered_loss
@dataclass(frozen=True)
class Gamma(LogLinkLoss):
    """raw + y exp(-raw)"""

    name = "gamma"
    summary = "amounts, > 0; predicts means, whose logarithms are the raw scores"
    scoring = "neg_mean_gamma_deviance"
    required = "strictly positive y"

    def check_targets(self, y: Any) -> np.ndarray:
        targets = super().check_targets(y)
        self._refuse(
            targets,
            targets == 0.0,
            self.required,
            "Drop these rows, or use loss='poisson' or loss='tweedie', which allow 0",
        )
        return targets

    @staticmethod
    def row_loss(y, raw):
        return raw + y * exp_of(-raw)

    @staticmethod
    def row_derivatives(y, raw):
        ratio = bounded(y * bounded(exp_of(-raw)))
        return 1.0 - ratio, ratio
