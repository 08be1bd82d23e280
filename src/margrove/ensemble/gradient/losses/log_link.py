"""Base class of losses for positive predictions: raw scores are logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margrove.ensemble.gradient.losses.gradient_loss import (
    LARGEST_EXPONENT,
    LONGEST_LOG_STEP,
    GradientLoss,
)
from margrove.ensemble.gradient.losses.row_statistics import mean_of
from margrove.exceptions import InvalidDataError

__all__ = ["LogLinkLoss"]

_LEAST_TARGET, _LARGEST_TARGET = 1e-6, 1e100  # limits of the largest target
_LEAST_MEAN = 10 * np.finfo(np.float64).eps


class LogLinkLoss(GradientLoss):
    """Targets >= 0 that are not all 0, predictions exp(raw)."""

    longest_step = LONGEST_LOG_STEP
    required = "non-negative y and sum(y) > 0"  # the wording of scikit-learn

    def check_targets(self, y: Any) -> np.ndarray:
        targets = super().check_targets(y)
        self._refuse(
            targets,
            targets < 0.0,
            self.required,
            "Drop these rows, or use loss='squared_error' for targets of either sign",
        )
        if not targets.any():
            raise InvalidDataError(
                f"y is 0 in all {len(targets)} rows, but loss={self.name!r} requires "
                f"{self.required}. Its predictions are positive: check y, or use "
                "loss='squared_error'."
            )
        largest = float(targets.max())
        if not _LEAST_TARGET <= largest <= _LARGEST_TARGET:
            raise InvalidDataError(
                f"The largest y is {largest!r}, but loss={self.name!r} needs one between "
                f"{_LEAST_TARGET:g} and {_LARGEST_TARGET:g}. Multiply y by a constant."
            )
        return targets

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([math.log(max(mean_of(y, weight), _LEAST_MEAN))])

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        predictions: np.ndarray = np.exp(np.minimum(raw[0], LARGEST_EXPONENT))
        return predictions
