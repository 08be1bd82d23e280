"""Thresholds for float64 values that split them as float32 ones split rounded values.

scikit-learn's trees send x to the left where float32(x) <= t. Let f be the largest float32 number
that is at most t, and g the next one. x is rounded to f or below up to the middle m of f and g; m
itself, which float64 can hold, goes to the one of the two whose last bit is 0. So

    float32(x) <= t     means     x <= m              where f is even
                                  x <= m - one ulp    where f is odd
"""

from __future__ import annotations

import numpy as np

__all__ = ["float64_thresholds"]

_BEYOND = 2.0**128  # from here on float32 has nothing but infinity


def float64_thresholds(thresholds: np.ndarray) -> np.ndarray:
    """float64 (n,): for each t the largest x with float32(x) <= t; NaN stays."""
    with np.errstate(over="ignore", invalid="ignore"):
        below = thresholds.astype(np.float32)
        infinity = np.float32(np.inf)
        is_above = below.astype(np.float64) > thresholds
        below = np.where(is_above, np.nextafter(below, -infinity), below)
        above = np.nextafter(below, infinity)
        middle = 0.5 * (_as_numbers(below) + _as_numbers(above))
    is_even = below.view(np.uint32) & 1 == 0
    moved = np.where(is_even, middle, np.nextafter(middle, -np.inf))
    return np.where(below == infinity, np.inf, moved)


def _as_numbers(values: np.ndarray) -> np.ndarray:
    """float64, infinity as the number that float32 would have next."""
    return np.clip(values.astype(np.float64), -_BEYOND, _BEYOND)
