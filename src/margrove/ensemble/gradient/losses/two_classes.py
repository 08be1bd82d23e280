"""Base class of losses for two classes, with one raw score."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit

from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss
from margrove.ensemble.gradient.losses.row_statistics import mean_of

__all__ = ["TwoClassLoss", "both_probabilities"]

_LEAST_SHARE = 10 * np.finfo(np.float64).eps


class TwoClassLoss(GradientLoss):
    """Targets are 0 and 1; the probability of the second class is expit(slope raw)."""

    for_classes = True
    slope = 1.0

    def check_targets(self, y: Any) -> np.ndarray:
        targets = super().check_targets(y)
        self._refuse(
            targets,
            (targets != 0.0) & (targets != 1.0),
            "the classes 0 and 1",
            "Encode the classes, for example with sklearn.preprocessing.LabelEncoder",
        )
        return targets

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        share = np.clip(mean_of(y, weight), _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        return np.array([logit(share) / self.slope])

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        return both_probabilities(self.slope * raw[0])


def both_probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Probabilities of both classes, (n, 2); small ones of either class are accurate."""
    return np.stack([expit(-log_odds), expit(log_odds)], axis=1)
