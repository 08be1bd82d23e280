"""Moments and confidence intervals from the values of a statistic on resamples.

Notation of Efron and Tibshirani (1993), chapters 13 and 14:

    theta     the statistic of the data
    theta*_b  that of resample b = 1 .. B; mean = 1/B sum theta*_b, the variance also has 1/B
    G         the distribution of the theta*_b, with quantiles interpolated linearly

    percentile   [G^-1(alpha), G^-1(1 - alpha)]
    basic        [2 theta - G^-1(1 - alpha), 2 theta - G^-1(alpha)]
    BCa          [G^-1(alpha_1), G^-1(alpha_2)], where z0 corrects the bias and a, the acceleration,
                 the change of the standard error with theta:
                 alpha_1 = Phi(z0 + (z0 + z_alpha) / (1 - a (z0 + z_alpha))),  alpha_2 likewise

Conventions: `resamples` is float64 (B, k), a column for each number that the statistic consists of;
NaN means no value. Results for each of these numbers are float64 (k,).
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from margrove.exceptions import DataWarning

__all__ = ["METHODS", "Moments", "acceleration_of", "interval_of", "moments_of", "warn"]

_ROUNDING = 1e-13  # relative: values of a statistic that differ by less count as equal

Method = Literal["percentile", "basic", "bca"]
METHODS: tuple[Method, ...] = ("percentile", "basic", "bca")


class Moments(NamedTuple):
    """Mean, variance with 1/B, and its root, each (k,)."""

    mean: np.ndarray
    variance: np.ndarray
    standard_error: np.ndarray


def warn(message: str, stacklevel: int = 4) -> None:
    """A DataWarning that points to the call of the public function, by default two levels up."""
    warnings.warn(message, DataWarning, stacklevel=stacklevel)


def moments_of(resamples: np.ndarray) -> Moments:
    """Moments of the values that are not NaN; of columns without any they are NaN."""
    columns = [_moments_of_column(_present(column)) for column in resamples.T]
    return Moments(*np.array(columns).reshape(-1, 3).T)


def _moments_of_column(values: np.ndarray) -> tuple[float, float, float]:
    if not len(values):
        return np.nan, np.nan, np.nan
    low, high = values.min(), values.max()
    if low == high:  # a rounded mean would give a variance above 0
        return float(low), 0.0, 0.0
    if not np.isfinite(low) or not np.isfinite(high):
        opposite = np.isinf(low) and np.isinf(high)
        return np.nan if opposite else float(high if np.isinf(high) else low), np.inf, np.inf
    # scale by a power of two: sums and squares neither overflow nor underflow, without rounding
    exponent = int(np.frexp(max(abs(low), abs(high)))[1])
    scaled = np.ldexp(values, -exponent)
    variance = scaled.var()
    with np.errstate(over="ignore", under="ignore"):
        return (
            float(np.ldexp(scaled.mean(), exponent)),
            float(np.ldexp(variance, 2 * exponent)),
            float(np.ldexp(np.sqrt(variance), exponent)),
        )


def acceleration_of(jackknife: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """The acceleration a, (k,), from the values of the statistic without each unit in turn.

    jackknife (m, k), strata int64 (m,). With several strata the influences are centred within each
    stratum, and their cubes and squares are summed (Davison and Hinkley 1997, section 5.3.2). If
    leaving out a unit never changes the statistic, a is NaN.
    """
    return np.array([_acceleration_of_column(column, strata) for column in jackknife.T])


def _acceleration_of_column(values: np.ndarray, strata: np.ndarray) -> float:
    influences = [np.zeros(1)]
    for stratum in np.unique(strata):
        finite = values[(strata == stratum) & np.isfinite(values)]
        n = len(finite)
        if n and finite.max() - finite.min() > _ROUNDING * np.abs(finite).max():
            influences.append((finite.mean() - finite) * ((n - 1) / n))
    influence = np.concatenate(influences)
    largest = np.abs(influence).max()
    if not largest > 0:
        return np.nan
    influence /= largest  # cubes of small numbers would underflow
    return float(np.sum(influence**3) / (6.0 * np.sum(influence**2) ** 1.5))


def interval_of(
    method: Method,
    confidence_level: float,
    resamples: np.ndarray,
    estimate: np.ndarray,
    acceleration: np.ndarray | None,
) -> np.ndarray:
    """The interval of each number of the statistic: low and high, float64 (2, k).

    Warns if an interval cannot be computed from the resamples.
    """
    alpha = (1.0 - confidence_level) / 2.0
    interval = np.full((2, len(estimate)), np.nan)
    constant, one_sided = [], []
    for k, theta in enumerate(estimate):
        values = np.sort(_present(resamples[:, k]))
        if not len(values):
            continue
        levels = (alpha, 1.0 - alpha)
        is_constant = values[0] == values[-1]
        if is_constant:
            constant.append(k)
        if method == "bca" and acceleration is not None and not is_constant:
            z0 = float(ndtri(_share_below(values, theta)))
            if np.isfinite(z0):
                levels = _bca_levels(alpha, z0, float(acceleration[k]))
            else:
                one_sided.append(k)
        interval[:, k] = _quantile(values, levels[0]), _quantile(values, levels[1])
        if method == "basic":
            interval[:, k] = theta + (theta - interval[::-1, k])  # 2 theta may overflow
        elif method == "bca" and is_constant:
            interval[:, k] = theta
    _warn_of_degenerate(constant, one_sided, len(estimate))
    return interval


def _present(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _share_below(values: np.ndarray, theta: float) -> float:
    """The share of sorted values below theta; values equal to theta count half."""
    below = np.searchsorted(values, theta, side="left")
    up_to = np.searchsorted(values, theta, side="right")
    return float(below + up_to) / (2.0 * len(values)) if not np.isnan(theta) else np.nan


def _bca_levels(alpha: float, z0: float, a: float) -> tuple[float, float]:
    z_alpha = float(ndtri(alpha))
    low, high = (_bca_level(z0, a, z0 + z) for z in (z_alpha, -z_alpha))
    return low, high


def _bca_level(z0: float, a: float, z: float) -> float:
    slope = 1.0 - a * z
    if slope <= 0.0:  # beyond its pole the formula is not monotone: keep the limit before it
        return 1.0 if z > 0.0 else 0.0
    return float(ndtr(z0 + z / slope))


def _quantile(values: np.ndarray, level: float) -> float:
    """A quantile of sorted values, interpolated as in numpy.quantile; values may be infinite."""
    position = level * (len(values) - 1)
    below = min(int(position), len(values) - 1)
    above = min(below + 1, len(values) - 1)
    fraction = position - below
    if fraction == 0.0 or values[below] == values[above]:
        return float(values[below])
    return float((1.0 - fraction) * values[below] + fraction * values[above])


def _warn_of_degenerate(constant: list[int], one_sided: list[int], n_numbers: int) -> None:
    if constant:
        warn(
            f"All resamples gave the same value{_which(constant, n_numbers)}, so the interval is "
            "a single point. The data hardly vary, or the statistic does not depend on them.",
            stacklevel=5,
        )
    if one_sided:
        warn(
            "The statistic of the data is NaN, or lies beyond that of all resamples"
            f"{_which(one_sided, n_numbers)}, so method='bca' cannot correct its bias; the "
            "percentile interval is returned instead. More resamples may help, or a statistic that "
            "does not depend on the number of different rows.",
            stacklevel=5,
        )


def _which(numbers: list[int], n_numbers: int) -> str:
    if n_numbers == 1:
        return ""
    named = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return f" (numbers {named} of the {n_numbers} of the statistic)"
