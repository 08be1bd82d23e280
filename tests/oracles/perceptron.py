"""Rosenblatt's perceptron, as the lectures write it: plain loops, one example at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class PlainPerceptron:
    """Weights in the space of (x, 1), and every mistake in order as (epoch, row)."""

    w: np.ndarray
    mistakes: list[tuple[int, int]]
    epochs: int


def train_perceptron(X, signs, orders, *, margin=0.0, eta=1.0, intercept=True) -> PlainPerceptron:
    """One epoch for each order, ending after the first epoch without a mistake."""
    X = np.asarray(X, dtype=float)
    augmented = np.column_stack([X, np.ones(len(X))]) if intercept else X
    w = np.zeros(augmented.shape[1])
    mistakes = []
    for epoch, order in enumerate(orders):
        before = len(mistakes)
        for i in order:
            if signs[i] * (w @ augmented[i]) <= margin:
                w = w + eta * signs[i] * augmented[i]
                mistakes.append((epoch, int(i)))
        if len(mistakes) == before:
            return PlainPerceptron(w, mistakes, epoch + 1)
    return PlainPerceptron(w, mistakes, len(orders))


def train_dual(K, signs, orders, *, margin=0.0) -> np.ndarray:
    """alpha, the mistakes on each example, from the Gram matrix alone."""
    alpha = np.zeros(len(K))
    for order in orders:
        before = alpha.sum()
        for j in order:
            if signs[j] * np.sum(alpha * signs * K[:, j]) <= margin:
                alpha[j] += 1
        if alpha.sum() == before:
            break
    return alpha


def train_penalised(X, signs, orders, *, l1=0.0, l2=0.0, eta=1.0, average=False):
    """Penalised and averaged perceptron with an intercept, as scikit-learn's SGD defines them.

    Each presentation: score, shrink by l2, step on a mistake, cut by the cumulative l1 penalty
    (Tsuruoka et al.), add to the average.
    """
    d = X.shape[1]
    w, b, cut = np.zeros(d), 0.0, np.zeros(d)
    budget, seen = 0.0, 0
    sum_w, sum_b = np.zeros(d), 0.0
    for order in orders:
        for i in order:
            value = signs[i] * (w @ X[i] + b)
            w = w * max(0.0, 1 - eta * l2)
            if value <= 0:
                w = w + eta * signs[i] * X[i]
                b += eta * signs[i]
            budget += eta * l1
            for j in range(d) if l1 > 0 else ():
                before = w[j]
                if w[j] > 0:
                    w[j] = max(0.0, w[j] - (budget + cut[j]))
                elif w[j] < 0:
                    w[j] = min(0.0, w[j] + (budget - cut[j]))
                cut[j] += w[j] - before
            sum_w += w
            sum_b += b
            seen += 1
    return (sum_w / seen, sum_b / seen) if average else (w, b)
