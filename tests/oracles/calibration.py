"""Reliability curves row by row, and the nested cross-validation of a map, fold by fold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV


def bins_by_loops(p, came_true, weight, edges):
    """(predicted, observed, weight) of each bin that has weight, probabilities at an end below."""
    found = []
    for b, (low, high) in enumerate(pairwise(edges)):
        sums = np.zeros(3)
        for own, true, w in zip(p, came_true, weight, strict=True):
            if (low < own or b == 0) and (own <= high or b == len(edges) - 2):
                sums += [w * own, w * true, w]
        if sums[2] > 0:
            found.append((sums[0] / sums[2], sums[1] / sums[2], sums[2]))
    return np.array(found)


def errors_by_loops(bins):
    """Expected and maximum error."""
    total = sum(weight for *_, weight in bins)
    distances = [abs(observed - predicted) for predicted, observed, _ in bins]
    expected = sum(w / total * d for (*_, w), d in zip(bins, distances, strict=True))
    return expected, max(distances)


def log_loss_by_loops(probabilities, codes, weight):
    total = sum(
        -w * np.log(max(row[code], np.finfo(float).eps))
        for row, code, w in zip(probabilities, codes, weight, strict=True)
    )
    return total / sum(weight)


def nested_probabilities(estimator, X, y, folds, method):
    """Each fold by a model that has nothing to do with it, calibrated by the other folds."""
    found = []
    for k, (train, test) in enumerate(folds):
        place = {row: i for i, row in enumerate(train)}
        inner = []
        for j, (other_train, other_test) in enumerate(folds):
            if j != k:
                kept = [place[row] for row in train if row in set(other_train.tolist())]
                inner.append((np.array(kept), np.array([place[row] for row in other_test])))
        model = CalibratedClassifierCV(clone(estimator), method=method, cv=inner, ensemble=False)
        found.append(model.fit(X[train], y[train]).predict_proba(X[test]))
    return np.concatenate(found)
