"""Textbook AdaBoost.R2 (Drucker, 1997), with the weights given to the members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LOSSES = {
    "linear": lambda e: e,
    "square": lambda e: e**2,
    "exponential": lambda e: 1 - np.exp(-e),
}


@dataclass
class Round:
    predict: object
    average_loss: float
    beta: float


def stump(X, y, D):
    """The split of the smallest weighted squared error, and the means on both sides of it."""
    found = []
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for threshold in (values[1:] + values[:-1]) / 2:
            left = X[:, feature] <= threshold
            means = [np.average(y[side], weights=D[side]) for side in (left, ~left)]
            error = (D * (y - np.where(left, *means)) ** 2).sum()
            found.append((error, feature, threshold, means))
    _, feature, threshold, means = min(found, key=lambda one: one[0])
    return lambda X: np.where(X[:, feature] <= threshold, *means)


def adaboost_r2(X, y, n_rounds, loss="linear", weight=None, fit=stump):
    D = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    rounds = []
    for _ in range(n_rounds):
        D = D / D.sum()
        predict = fit(X, y, D)
        error = np.abs(predict(X) - y)
        losses = LOSSES[loss](error / error[D > 0].max())
        average = float((D * losses).sum())
        if average >= 0.5:
            break
        beta = average / (1 - average)
        D = D * beta ** (1 - losses)
        rounds.append(Round(predict, average, beta))
    return rounds


def predict(rounds, X):
    """The smallest answer such that members of half of the weight, ln(1 / beta), say no more."""
    answers = np.array([one.predict(X) for one in rounds])
    weights = np.log([1 / one.beta for one in rounds])
    found = []
    for own in answers.T:
        enough = [v for v in own if weights[own <= v].sum() >= 0.5 * weights.sum() * (1 - 1e-12)]
        found.append(min(enough))
    return np.array(found)
