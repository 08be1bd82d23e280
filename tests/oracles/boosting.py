"""Textbook AdaBoost over all axis-parallel stumps, as in the lectures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Round:
    feature: int
    threshold: float
    left_sign: int
    eps: float
    beta: float
    n_mistakes: int


def stumps(X):
    """Every stump (feature, threshold, sign on the left), lowest feature and threshold first."""
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for threshold in np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2]):
            for sign in (1, -1):
                yield feature, float(threshold), sign


def predict_stump(X, feature, threshold, sign):
    return np.where(X[:, feature] <= threshold, sign, -sign)


def adaboost(X, y, rounds):
    D = np.full(len(y), 1 / len(y))
    scores = np.zeros(len(y))
    history = []
    for _ in range(rounds):
        found = [(D[predict_stump(X, *stump) != y].sum(), stump) for stump in stumps(X)]
        lowest = min(eps for eps, _ in found)
        eps, stump = next((e, s) for e, s in found if e <= lowest + 1e-12)
        h = predict_stump(X, *stump)
        beta = 0.5 * np.log((1 - eps) / eps)
        D = D * np.exp(-beta * y * h)
        D /= D.sum()
        scores += beta * h
        history.append(Round(*stump, float(eps), float(beta), int((h != y).sum())))
    return history, scores
