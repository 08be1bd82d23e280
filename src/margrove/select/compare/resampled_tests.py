"""Tests of the difference of two models by scores of the same cross-validation.

Scores of the J = k r folds of r repeated k-fold cross-validations are not independent: training
rows overlap, and so do the test rows of different repetitions. Nadeau and Bengio (2003), Inference
for the generalization error, correct the variance of their mean:

    d_j     score of the first minus that of the second in fold j = 1 .. J, with variance s^2
    rho     n_test / n_train, averaged over the folds
    se^2    (1/J + rho) s^2              (that of independent folds would be s^2 / J)
    t       mean(d) / se, with J - 1 degrees of freedom

Conventions: scores are float64 (J,), or (J, M) with a column for each of M models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from margrove._runtime import unwatched
from margrove.ensemble.bootstrap import ConfidenceInterval, bootstrap

__all__ = [
    "Difference",
    "bootstrap_test",
    "corrected_interval",
    "corrected_t_test",
    "holm",
    "percentile_interval",
    "resample_folds",
    "resample_rows",
]

_ROUNDING = 1e-12  # scores that vary less, relative to their size, are constant


class Difference(NamedTuple):
    """A mean difference, its confidence interval, and the two-sided p-value."""

    mean: float
    interval: ConfidenceInterval
    p: float


def corrected_t_test(
    first: Any, second: Any, overlap: float, confidence_level: float = 0.95
) -> Difference:
    """The corrected resampled t-test of Nadeau and Bengio, two-sided.

    If all J differences are equal, there is no variance to test with. If they are zero, p is 1.
    Otherwise p is that of the sign test, 2^(1 - J); the interval is a single point if this p is
    small enough for the confidence level, and unbounded if not.

    Parameters
    ----------
    first, second : array-like of shape (n_folds,)
        Scores of both models in the same folds, at least two.
    overlap : float
        The number of test rows per training row: 1 / (k - 1) for k folds.
    confidence_level : float, default=0.95

    Returns
    -------
    Difference
        The scores of the first minus those of the second.

    Examples
    --------
    >>> from margrove.select.compare.resampled_tests import corrected_t_test
    >>> test = corrected_t_test([0.9, 0.8, 0.9, 1.0], [0.8, 0.8, 0.7, 0.9], overlap=1 / 3)
    >>> round(test.mean, 3), round(test.p, 3)
    (0.1, 0.207)
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    differences = first - second
    mean = float(differences.mean())
    scale = max(np.abs(first).max(), np.abs(second).max())
    if _is_constant(differences, scale):
        is_zero = abs(mean) <= _ROUNDING * scale
        if is_zero:
            return Difference(0.0, ConfidenceInterval(0.0, 0.0), 1.0)
        interval = _interval_of_equals(mean, len(differences), confidence_level)
        return Difference(mean, interval, 2.0 ** (1 - len(differences)))
    error = _corrected_error(differences, overlap)
    p = 2.0 * float(stdtr(len(differences) - 1, -abs(mean) / error))
    return Difference(
        mean, _student_interval(mean, error, len(differences), confidence_level), min(1.0, p)
    )


def corrected_interval(
    scores: Any, overlap: float, confidence_level: float = 0.95
) -> ConfidenceInterval:
    """The confidence interval of a mean score, with the same correction."""
    scores = np.asarray(scores, np.float64)
    mean = float(scores.mean())
    if _is_constant(scores, np.abs(scores).max()):
        return _interval_of_equals(mean, len(scores), confidence_level)
    return _student_interval(mean, _corrected_error(scores, overlap), len(scores), confidence_level)


def _corrected_error(values: np.ndarray, overlap: float) -> float:
    deviations = values - values.mean()
    largest = float(np.abs(deviations).max())  # its square can overflow
    variance = float(np.sum((deviations / largest) ** 2)) / (len(values) - 1)
    return largest * float(np.sqrt((1.0 / len(values) + overlap) * variance))


def _student_interval(
    mean: float, error: float, n_folds: int, confidence_level: float
) -> ConfidenceInterval:
    half = float(stdtrit(n_folds - 1, 0.5 + confidence_level / 2.0)) * error
    return ConfidenceInterval(mean - half, mean + half)


def _interval_of_equals(value: float, n_folds: int, confidence_level: float) -> ConfidenceInterval:
    """J equal values: the interval from the smallest to the largest has level 1 - 2^(1 - J)."""
    if 2.0 ** (1 - n_folds) <= 1.0 - confidence_level:
        return ConfidenceInterval(value, value)
    return ConfidenceInterval(-np.inf, np.inf)


def _is_constant(values: np.ndarray, scale: float) -> bool:
    return bool(np.ptp(values) <= _ROUNDING * scale)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979): the smallest times m, the next times m - 1.

    The order is kept, and no value is above 1.

    Examples
    --------
    >>> from margrove.select.compare.resampled_tests import holm
    >>> holm([0.25, 0.0625, 0.125])
    [0.25, 0.1875, 0.25]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for place, k in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[k]))
        adjusted[k] = largest
    return adjusted


# -- by resampling -------------------------------------------------------------------------------


def resample_rows(
    sums: np.ndarray, weights: np.ndarray, groups: np.ndarray | None, n_resamples: int, seed: int
) -> np.ndarray:
    """The scores of all models on resamples of the held-out rows, (n_resamples, M).

    A score is the sum of `sums` (n, M) over the rows, divided by that of their `weights` (n,). All
    models have the same resamples, so that differences are paired. With groups, all rows of a group
    are drawn together.
    """
    varies = np.array([not _is_constant(column / weights, 1.0) for column in sums.T])
    resamples = np.tile(sums.sum(axis=0) / weights.sum(), (n_resamples, 1))
    if varies.any():
        columns = np.column_stack([weights, sums[:, varies]])
        with unwatched():
            found = bootstrap(
                columns, _ratios, n_resamples=n_resamples, method="percentile", groups=groups,
                vectorized=True, random_state=seed,
            )  # fmt: skip
        resamples[:, varies] = found.resamples
    return resamples


def _ratios(columns: np.ndarray, axis: int) -> np.ndarray:
    totals = columns.sum(axis=axis)
    return totals[:, 1:] / totals[:, :1]


def resample_folds(scores: np.ndarray, overlap: float, n_resamples: int, seed: int) -> np.ndarray:
    """The mean scores of all models over resamples of the folds, (n_resamples, M).

    Deviations from the mean are multiplied by sqrt(1 + J rho), because folds are not independent:
    without this, the intervals would be as narrow as those of the uncorrected t-test.
    """
    varies = np.array([not _is_constant(column, np.abs(column).max()) for column in scores.T])
    means = scores.mean(axis=0)
    resamples = np.tile(means, (n_resamples, 1))
    if varies.any():
        with unwatched():
            found = bootstrap(
                scores[:, varies], np.mean, n_resamples=n_resamples, method="percentile",
                vectorized=True, random_state=seed,
            )  # fmt: skip
        stretch = np.sqrt(1.0 + len(scores) * overlap)
        resamples[:, varies] += stretch * (found.resamples - means[varies])
    return resamples


def bootstrap_test(
    mean: float, first: np.ndarray, second: np.ndarray, confidence_level: float = 0.95
) -> Difference:
    """The percentile interval and p of a difference with the resamples first - second.

    p is twice the share of resamples on the other side of zero, with 1 added to both counts.
    """
    differences = first - second
    scale = max(np.abs(first).max(), np.abs(second).max())
    differences[np.abs(differences) <= _ROUNDING * scale] = 0.0
    beyond = min(np.count_nonzero(differences <= 0.0), np.count_nonzero(differences >= 0.0))
    p = min(1.0, 2.0 * (1 + int(beyond)) / (1 + len(differences)))
    mean = 0.0 if abs(mean) <= _ROUNDING * scale else mean
    return Difference(mean, percentile_interval(differences, confidence_level), p)


def percentile_interval(
    resamples: np.ndarray, confidence_level: float = 0.95
) -> ConfidenceInterval:
    """The interval between quantiles of the resamples."""
    alpha = (1.0 - confidence_level) / 2.0
    low, high = np.quantile(resamples, (alpha, 1.0 - alpha))
    return ConfidenceInterval(float(low), float(high))
