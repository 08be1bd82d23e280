"""Tuning by brute force: every setting is fitted to every fold by scikit-learn's own loop."""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score


def brute_force(estimator, X, y, candidates, folds, scoring):
    """Mean and standard error of each setting, folds counting by their rows; scores of folds."""
    by_fold = np.array(
        [
            cross_val_score(
                clone(estimator).set_params(**candidate), X, y, cv=folds, scoring=scoring,
                error_score="raise",
            )
            for candidate in candidates
        ]
    )  # fmt: skip
    sizes = [len(test) for _, test in folds]
    means = [
        math.fsum(n * s for n, s in zip(sizes, row, strict=True)) / sum(sizes) for row in by_fold
    ]
    errors = []
    for row, mean in zip(by_fold, means, strict=True):
        away = [n / sum(sizes) * (s - mean) for n, s in zip(sizes, row, strict=True)]
        errors.append(math.sqrt(sum(a * a for a in away) * len(row) / (len(row) - 1)))
    return np.array(means), np.array(errors), by_fold


def simplest_within(scores, errors, *, one_standard_error):
    """The first of the best, or of those within its standard error."""
    best = max(range(len(scores)), key=lambda k: (round(scores[k], 10), -k))
    limit = scores[best] - (errors[best] if one_standard_error else 0.0) - 1e-10
    return next(k for k, score in enumerate(scores) if score >= limit)


def jackknife(figure, groups):
    """The standard error of a figure of rows, leaving out a group of rows at a time."""
    without = [figure(groups != group) for group in np.unique(groups)]
    n = len(without)
    mean = sum(without) / n
    return math.sqrt((n - 1) / n * sum((w - mean) ** 2 for w in without))
