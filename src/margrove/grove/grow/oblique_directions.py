"""Directions for oblique splits: linear machines that a node may ask instead of one feature."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from margrove._runtime import unwatched

__all__ = ["DIRECTIONS", "direction_of", "two_groups"]


def _machine(X: np.ndarray, signs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The normal of a linear support vector machine."""
    from margrove.margin.linear import LinearSVC

    model = LinearSVC(C=1.0, max_iter=200, tol=1e-3).fit(X, signs, sample_weight=weight)
    return np.asarray(model.coef_[0])


def _perceptron(X: np.ndarray, signs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The averaged weights of a perceptron."""
    from margrove.margin.perceptron import Perceptron

    model = Perceptron(max_iter=20, tol=None, random_state=0)
    return np.asarray(model.fit(X, signs, sample_weight=weight).coef_[0])


def _prototypes(X: np.ndarray, signs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """From the mean of one group to that of the other: the nearest prototype decides."""
    means = [np.average(X[signs == s], axis=0, weights=weight[signs == s]) for s in (False, True)]
    return np.asarray(means[1] - means[0])


DIRECTIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "svm": _machine,
    "perceptron": _perceptron,
    "prototypes": _prototypes,
}


def direction_of(
    learner: str, X: np.ndarray, signs: np.ndarray, weight: np.ndarray
) -> np.ndarray | None:
    """A direction that tells two groups of rows apart; None if there is none.

    X may hold NaN, which counts as the column's mean. Columns are brought to one scale first.
    """
    known = np.isfinite(X)
    total = np.maximum((known * weight[:, None]).sum(axis=0), 1e-300)
    mean = np.where(known, X, 0.0).T @ weight / total
    centred = np.where(known, X - mean, 0.0)
    spread = np.sqrt((centred**2).T @ weight / total)
    useful = spread > 0.0
    if not useful.any() or signs.all() or not signs.any():
        return None
    if not np.isfinite(spread).all():
        return None
    with warnings.catch_warnings(), unwatched():
        warnings.simplefilter("ignore")  # a direction need not be the best one
        found = DIRECTIONS[learner](centred[:, useful] / spread[useful], signs, weight)
    if not np.isfinite(found).all() or not found.any():
        return None
    direction = np.zeros(X.shape[1])
    direction[useful] = found / spread[useful]
    largest = np.abs(direction).max()
    return direction / largest if np.isfinite(largest) and largest > 0.0 else None


def two_groups(X: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Of several classes two groups, by where their means lie along the line of largest spread."""
    present = np.unique(labels)
    filled = np.where(np.isfinite(X), X, np.nanmean(np.where(np.isfinite(X), X, 0.0), axis=0))
    spread = filled.std(axis=0)
    scaled = (filled - filled.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    means = np.array([np.average(scaled[labels == k], axis=0, weights=weight[labels == k])
                      for k in present])  # fmt: skip
    sizes = np.array([weight[labels == k].sum() for k in present])
    centred = (means - np.average(means, axis=0, weights=sizes)) * np.sqrt(sizes)[:, None]
    if not np.isfinite(centred).all():
        return np.asarray(labels == present[0])
    line = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(means @ line, kind="stable")
    below = np.cumsum(sizes[order])[:-1]
    cut = int(np.argmin(np.abs(below - 0.5 * sizes.sum()))) + 1
    chosen: np.ndarray = np.isin(labels, present[order[cut:]])
    return chosen
