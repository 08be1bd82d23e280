"""Bins of predicted probabilities, how often they came true, and the terms of the Brier score."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from margrove.select.calibrate.wilson import wilson_interval

__all__ = [
    "BrierDecomposition",
    "ProbabilityBins",
    "ReliabilityCurve",
    "reliability_curve",
]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityCurve:
    """What came true against what was predicted, bin by bin. Bins without weight are left out.

    Attributes
    ----------
    name : str
        A class, or "top label": the most probable class, right or wrong.
    lower, upper : ndarray of shape (n_filled,)
        Ends of the bins; a probability at an end belongs to the bin below.
    predicted : ndarray of shape (n_filled,)
        The mean probability.
    observed : ndarray of shape (n_filled,)
        The share that came true.
    low, high : ndarray of shape (n_filled,)
        Ends of Wilson's interval for what `observed` would be of ever so many rows.
    weight : ndarray of shape (n_filled,)
        The sum of the weights: without any, the number of rows.
    expected_error, maximum_error : float
        The mean distance of `observed` from `predicted`, and the greatest.
    adaptive_error : float
        The expected error over bins of equal weight, whatever the bins of the curve are.
    chance_error : float
        The expected error that rows as few as these would show, on average, if every probability
        were right. An expected error near to it is none.
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
        What wrong probabilities cost: 0 if what is observed is what is predicted.
    resolution : float
        What is gained by telling rows apart.
    uncertainty : float
        The score of saying the share of each class to everybody.
    within_bins : float
        What bins hide of calibration and resolution; small if there are many.
    """

    score: float
    calibration: float
    resolution: float
    uncertainty: float
    within_bins: float


@dataclass(frozen=True)
class ProbabilityBins:
    """Rows of positive weight in bins: `place` int64 (n,) of each row, sums for each filled bin."""

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
        """Kish's number of rows of each bin: what their weights are worth as evidence."""
        heaviest = self.weight.max()  # squares of tiny weights would vanish
        scaled = self.weight / heaviest
        squares = np.bincount(self.place, weights=scaled**2)
        return np.asarray((self.mass / heaviest) ** 2 / squares)

    def chance_error(self) -> float:
        """The mean of |observed - predicted|, were it normal with the variance that p implies."""
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
    """The least p with so large a share of the weight at or below it."""
    order = np.argsort(p, kind="stable")
    reached = np.cumsum(weight[order])
    places = np.searchsorted(reached, levels * reached[-1] * (1.0 - 4.0 * _EPS))
    return np.asarray(p[order][np.minimum(places, len(p) - 1)])


def reliability_curve(
    name: str, bins: ProbabilityBins, n_bins: int, confidence_level: float
) -> ReliabilityCurve:
    """The curve of these bins, with Wilson's intervals."""
    low, high = wilson_interval(bins.observed, bins.effective, confidence_level)
    evenly = ProbabilityBins.of(bins.p, bins.y, bins.weight, n_bins, "quantile")
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
        adaptive_error=evenly.expected_error(),
        chance_error=bins.chance_error(),
    )
