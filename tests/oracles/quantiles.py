"""Quantiles of numbers with weights, by sorting and in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def weighted_quantile(values: np.ndarray, weight: np.ndarray | None, quantile: float) -> float:
    """The first value by which the share is reached, or its mean with the next if exactly so."""
    weights = np.ones(len(values)) if weight is None else weight
    rows = sorted(
        (float(value), Fraction(float(own)))
        for value, own in zip(values, weights, strict=True)
        if own > 0
    )
    wanted = Fraction(str(quantile)) * sum(own for _, own in rows)
    reached = Fraction(0)
    for place, (value, own) in enumerate(rows):
        reached += own
        if reached == wanted:
            return (value + rows[place + 1][0]) / 2.0
        if reached > wanted:
            return value
    return 0.0
