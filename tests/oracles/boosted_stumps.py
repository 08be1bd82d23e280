"""Boosted stumps, slow and obvious: every threshold of every feature is weighed in every round."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["StumpRound", "best_stumps", "boost", "impurity"]

NEARLY = 1e-11  # scores that are closer than this are a tie


@dataclass(frozen=True)
class StumpRound:
    feature: int
    threshold: float
    error: float
    weight: float
    D: np.ndarray


def impurity(weights, criterion):
    """Of the weights of the classes, times their sum."""
    total = weights.sum()
    if total <= 0:
        return 0.0
    shares = weights[weights > 0] / total
    if criterion == "gini":
        return float(total * (1 - (shares**2).sum()))
    if criterion == "entropy":
        return float(-total * (shares * np.log2(shares)).sum())
    return float(total - weights.max())


def best_stumps(X, y, D, n_classes, criterion):
    """All stumps (feature, threshold, what is said of the rows) that are as good as the best.

    Lowest feature first, then lowest threshold.
    """
    found = []
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in pairwise(values):
            on_left = X[:, feature] <= low
            left = np.bincount(y[on_left], D[on_left], n_classes)
            right = np.bincount(y[~on_left], D[~on_left], n_classes)
            score = impurity(left, criterion) + impurity(right, criterion)
            said = np.where(on_left, np.argmax(left), np.argmax(right))
            found.append((score, feature, low / 2 + high / 2, said))
    if not found:
        said = np.full(len(y), np.argmax(np.bincount(y, D, n_classes)))
        return [(-1, np.inf, said)]
    lowest = min(score for score, *_ in found)
    return [tuple(rest) for score, *rest in found if score <= lowest + NEARLY]


def boost(X, y, rounds, *, criterion="gini", samme=True, sample_weight=None, learning_rate=1.0):
    """SAMME or M1 for codes y = 0 .. K - 1, until a stump is perfect or no better than chance."""
    K = int(y.max()) + 1
    D = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    D = D / D.sum()
    chance = 1 - 1 / K if samme else 0.5
    history = []
    for _ in range(rounds):
        feature, threshold, said = best_stumps(X, y, D, K, criterion)[0]
        wrong = said != y
        error = float(D[wrong].sum())
        if error >= chance - 1e-10 and error > 0:
            break
        if not wrong.any():
            history.append(StumpRound(feature, threshold, 0.0, 1.0, D))
            break
        bonus = np.log(K - 1) if samme else 0.0
        weight = learning_rate * (np.log((1 - error) / error) + bonus)
        history.append(StumpRound(feature, threshold, error, float(weight), D))
        D = D * np.exp(weight * wrong)
        D = D / D.sum()
    return history
