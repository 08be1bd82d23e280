"""Huber's loss: squared for small errors, linear for large ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrove._runtime import ALONE, Collective
from margrove.ensemble.gradient.losses.gradient_loss import (
    GradientLoss,
    bounded,
    require_open_interval,
)
from margrove.ensemble.gradient.losses.quantiles import quantile_of, quantiles_of_leaves
from margrove.ensemble.gradient.losses.registry import registered_loss
from margrove.ensemble.gradient.losses.row_statistics import means_of

__all__ = ["Huber"]


@registered_loss
@dataclass(frozen=True)
class Huber(GradientLoss):
    """r^2 / 2 if abs(r) <= delta, else delta (abs(r) - delta / 2).

    alpha   each round uses this quantile of abs(r) as delta
    delta   the delta of this round; 0 before the first round, which starts from the median

    The value of a leaf is Friedman's step: the median of its residuals plus the mean of their
    differences from it, clipped at delta. The second derivative is 0 for abs(r) > delta.
    """

    alpha: float = 0.9
    delta: float = 0.0

    name = "huber"
    summary = "numbers with outliers; predicts means that outliers influence little"
    scoring = "neg_mean_absolute_error"
    degree = 2
    differs_from_mean = True

    def __post_init__(self) -> None:
        require_open_interval("alpha", self.alpha, 0, 1)

    def for_round(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        collective: Collective = ALONE,
    ) -> Huber:
        return replace(self, delta=quantile_of(np.abs(y - raw[0]), weight, self.alpha, collective))

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.array([self.leaf_value(y, weight)])

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        rows, starts = np.arange(len(residuals), dtype=np.int32), np.array([0, len(residuals)])
        return float(self.leaf_values(residuals, weights, rows, starts)[0])

    def leaf_values(
        self, residual, weight, rows, starts, *, n_threads=1, collective=ALONE
    ) -> np.ndarray:
        medians = quantiles_of_leaves(
            residual, weight, 0.5, rows, starts, n_threads=n_threads, collective=collective
        )
        clipped, weights = [], []
        for leaf, median in enumerate(medians):
            chosen = rows[starts[leaf] : starts[leaf + 1]]
            clipped.append(np.clip(residual[chosen] - median, -self.delta, self.delta))
            weights.append(None if weight is None else weight[chosen])
        return medians + means_of(clipped, weights, collective)

    @staticmethod
    def row_loss(y, raw, delta):
        size = abs(y - raw)
        return 0.5 * size * size if size <= delta else delta * (size - 0.5 * delta)

    @staticmethod
    def row_derivatives(y, raw, delta):
        residual = raw - y
        first = bounded(min(max(residual, -delta), delta))
        return first, 1.0 if abs(residual) <= delta else 0.0
