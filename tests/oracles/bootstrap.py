"""The bootstrap's formulas in plain Python, one number at a time."""

from __future__ import annotations

import math
from statistics import NormalDist

NORMAL = NormalDist()


def mean(values):
    return math.fsum(values) / len(values)


def variance(values):
    """With 1/B, as in the lecture."""
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values) / len(values)


def quantile(values, level):
    """Linear interpolation between order statistics."""
    values = sorted(values)
    position = level * (len(values) - 1)
    below = math.floor(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (position - below) * (values[above] - values[below])


def percentile_interval(resamples, level):
    alpha = (1 - level) / 2
    return quantile(resamples, alpha), quantile(resamples, 1 - alpha)


def basic_interval(resamples, estimate, level):
    low, high = percentile_interval(resamples, level)
    return 2 * estimate - high, 2 * estimate - low


def acceleration(jackknife_by_stratum):
    """Efron and Tibshirani (1993), (14.15); over several samples as in scipy.stats.bootstrap."""
    cubes = squares = 0.0
    for jackknife in jackknife_by_stratum:
        n, centre = len(jackknife), mean(jackknife)
        influence = [(n - 1) * (centre - value) for value in jackknife]
        cubes += math.fsum(u**3 for u in influence) / n**3
        squares += math.fsum(u**2 for u in influence) / n**2
    return cubes / (6 * squares**1.5)


def bca_interval(resamples, estimate, jackknife_by_stratum, level):
    """Efron and Tibshirani (1993), (14.9) and (14.10)."""
    below = sum(value < estimate for value in resamples)
    up_to = sum(value <= estimate for value in resamples)
    z0 = NORMAL.inv_cdf((below + up_to) / (2 * len(resamples)))
    a = acceleration(jackknife_by_stratum)
    ends = []
    for alpha in ((1 - level) / 2, (1 + level) / 2):
        z = z0 + NORMAL.inv_cdf(alpha)
        ends.append(quantile(resamples, NORMAL.cdf(z0 + z / (1 - a * z))))
    return tuple(ends)


def error_632_plus(y, training_predictions, samples, predictions, loss):
    """Efron and Tibshirani (1997), from what each sample holds and predicts for all rows.

    samples: for each sample the list of its row numbers; predictions: for each sample a list.
    """
    n = len(y)
    training = mean([loss(y[i], training_predictions[i]) for i in range(n)])
    by_row = []
    for i in range(n):
        out = [b for b in range(len(samples)) if i not in samples[b]]
        if out:
            by_row.append(mean([loss(y[i], predictions[b][i]) for b in out]))
    out_of_bag = mean(by_row)
    gamma = mean([loss(y[i], training_predictions[j]) for i in range(n) for j in range(n)])
    bounded = min(out_of_bag, gamma)
    rate = (bounded - training) / (gamma - training) if min(bounded, gamma) > training else 0.0
    e632 = 0.368 * training + 0.632 * out_of_bag
    plus = e632 + (bounded - training) * (0.368 * 0.632 * rate) / (1 - 0.368 * rate)
    return {
        "training": training,
        "out_of_bag": out_of_bag,
        "no_information": gamma,
        "overfitting_rate": rate,
        "e632": e632,
        "e632_plus": plus,
        "never_out_of_bag": n - len(by_row),
    }
