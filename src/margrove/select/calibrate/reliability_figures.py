"""Bins of probabilities, the reliability curve, the Brier score, Wilson's interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

__all__ = [
    "BrierDecomposition",
    "ProbabilityBins",
    "ReliabilityCurve",
    "reliability_curve",
    "wilson_interval",
]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityCurve:
    """Observed shares against predicted probabilities, bin by bin; empty bins are left out.

    Attributes
    ----------
    name : str
        A class, or "top label" for the most probable class of each row.
    lower, upper : ndarray of shape (n_filled,)
        Ends of the bins; a probability at an end belongs to the bin below.
    predicted : ndarray of shape (n_filled,)
        The mean probability.
    observed : ndarray of shape (n_filled,)
        The share that came true.
    low, high : ndarray of shape (n_filled,)
        Wilson's confidence interval of `observed`.
    weight : ndarray of shape (n_filled,)
        The sum of the weights; without weights, the number of rows.
    expected_error, maximum_error : float
        The mean and the largest distance of `observed` from `predicted`.
    adaptive_error : float
        The expected error over bins of equal weight, whichever bins the curve has.
    chance_error : float
        The mean expected error that so few rows would have by chance if every probability were
        right. An expected error near it is no evidence of bad probabilities.
    """

    name: str
    lower: np.ndarray
    upper: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray
    expected_error: float
    maximum_error: float
    adaptive_error: float
    chance_error: float

    def __repr__(self) -> str:
        return (
            f"ReliabilityCurve({self.name!r}, {len(self.weight)} bins, "
            f"expected_error={self.expected_error:.4g}, maximum_error={self.maximum_error:.4g})"
        )


@dataclass(frozen=True)
class BrierDecomposition:
    """The Brier score = calibration - resolution + uncertainty + within_bins.

    Attributes
    ----------
    score : float
        The mean squared distance of probabilities from what came true; for three or more classes
        summed over the classes, as scikit-learn does.
    calibration : float
        The loss from wrong probabilities: 0 if observed shares equal predicted ones.
    resolution : float
        The gain from telling rows apart.
    uncertainty : float
        The score of predicting the share of each class for every row.
    within_bins : float
        The part of both that lies within the bins; small if there are many bins.
    """

    score: float
    calibration: float
    resolution: float
    uncertainty: float
    within_bins: float


@dataclass(frozen=True)
class ProbabilityBins:
    """Rows of positive weight in bins: `place` int64 (n,) is the bin of each row."""

    p: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    place: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    mass: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(
        cls, p: np.ndarray, y: np.ndarray, weight: np.ndarray, n_bins: int, strategy: str
    ) -> ProbabilityBins:
        """Bins of equal width ("uniform") or of about equal weight ("quantile").

        p, y, weight    float64 (n,): probabilities, 1 where they came true, weights > 0
        """
        inner = np.arange(1, n_bins) / n_bins
        if strategy == "quantile":
            inner = np.unique(_quantiles(p, weight, inner))
        edges = np.concatenate([[0.0], inner, [1.0]])
        filled, place = np.unique(np.searchsorted(inner, p), return_inverse=True)
        mass = np.bincount(place, weights=weight)
        return cls(
            p, y, weight, place, edges[filled], edges[filled + 1], mass,
            np.bincount(place, weights=weight * p) / mass,
            np.bincount(place, weights=weight * y) / mass,
        )  # fmt: skip

    @property
    def share(self) -> np.ndarray:
        return np.asarray(self.mass / self.mass.sum())

    @property
    def effective(self) -> np.ndarray:
        """Kish's effective number of rows in each bin, (sum w)^2 / sum w^2."""
        heaviest = self.weight.max()  # squares of tiny weights would underflow
        scaled = self.weight / heaviest
        squares = np.bincount(self.place, weights=scaled**2)
        return np.asarray((self.mass / heaviest) ** 2 / squares)

    def chance_error(self) -> float:
        """The mean of |observed - predicted| if it is normal with the variance that p implies."""
        scaled = self.weight / self.weight.max()
        variance = np.bincount(self.place, weights=scaled**2 * self.p * (1.0 - self.p))
        mass = np.bincount(self.place, weights=scaled)
        return float((self.share * np.sqrt(2.0 / math.pi * variance) / mass).sum())

    def expected_error(self) -> float:
        return float((self.share * np.abs(self.observed - self.predicted)).sum())

    def brier(self) -> tuple[float, float, float, float, float]:
        """Score, calibration, resolution, uncertainty, within bins: see `reliability`."""
        share = self.share
        mean = float((share * self.observed).sum())
        away = self.p - self.predicted[self.place]
        within = np.average(
            away**2 - 2.0 * away * (self.y - self.observed[self.place]), weights=self.weight
        )
        return (
            float(np.average((self.p - self.y) ** 2, weights=self.weight)),
            float((share * (self.observed - self.predicted) ** 2).sum()),
            float((share * (self.observed - mean) ** 2).sum()),
            mean * (1.0 - mean),
            float(within),
        )


def _quantiles(p: np.ndarray, weight: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """For each level, the smallest p with at least that share of the weight at or below it."""
    order = np.argsort(p, kind="stable")
    reached = np.cumsum(weight[order])
    places = np.searchsorted(reached, levels * reached[-1] * (1.0 - 4.0 * _EPS))
    return np.asarray(p[order][np.minimum(places, len(p) - 1)])


def reliability_curve(
    name: str, bins: ProbabilityBins, n_bins: int, confidence_level: float
) -> ReliabilityCurve:
    """The curve of these bins, with Wilson's intervals."""
    low, high = wilson_interval(bins.observed, bins.effective, confidence_level)
    even_bins = ProbabilityBins.of(bins.p, bins.y, bins.weight, n_bins, "quantile")
    return ReliabilityCurve(
        name=name,
        lower=bins.lower,
        upper=bins.upper,
        predicted=bins.predicted,
        observed=bins.observed,
        low=low,
        high=high,
        weight=bins.mass,
        expected_error=bins.expected_error(),
        maximum_error=float(np.abs(bins.observed - bins.predicted).max()),
        adaptive_error=even_bins.expected_error(),
        chance_error=bins.chance_error(),
    )


def wilson_interval(share: Any, n: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Wilson's (1927) confidence interval of a share that was observed in n rows.

    Floats, or arrays of them. The interval contains all shares from which the observed one is at
    most z standard deviations away, where z is the normal quantile of the level.

    Examples
    --------
    >>> from margrove.select.calibrate import wilson_interval
    >>> [round(end, 3) for end in wilson_interval(0.9, 100)]
    [0.826, 0.945]
    """
    z = float(ndtri(0.5 + 0.5 * level))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0)
    return (low, high) if np.ndim(low) else (float(low), float(high))
