"""Rows that a model gets wrong, and by how much.

residual_facts   errors of a model of numbers
worst_mistakes   the rows that a model is most wrong about
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn import metrics

from margrove._data import check_targets, check_weights
from margrove.facts.classification_scores import (
    ClassScores,
    class_scores,
    classes_of,
    codes_of,
    predicted_codes,
)
from margrove.facts.plain_values import frozen
from margrove.facts.prediction_values import Mistake, ResidualFacts, WorstMistakes

__all__ = ["residual_facts", "worst_mistakes"]


def residual_facts(model: Any, X: Any, y: Any, sample_weight: Any = None) -> ResidualFacts:
    """The errors of a regressor: prediction minus truth.

    Parameters
    ----------
    model : fitted regressor
    X, y : rows and their targets
    sample_weight : array of shape (n,), optional

    Returns
    -------
    ResidualFacts

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0]
    >>> tree = margrove.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> told = margrove.facts.residual_facts(tree, X, y)
    >>> told.residuals.tolist(), round(told.r2, 2)
    ([0.0, 0.0, 1.0, -1.0], 0.93)
    """
    predictions = np.asarray(model.predict(X))
    if predictions.dtype.kind not in "biuf" or hasattr(model, "classes_"):
        raise TypeError(
            f"A model of numbers is needed. Got {type(model).__name__}, which tells classes: "
            "confusion says how often it is right."
        )
    if predictions.ndim == 2 and predictions.shape[1] == 1:
        predictions = predictions[:, 0]
    if predictions.ndim != 1:
        raise TypeError(
            f"This {type(model).__name__} has {predictions.shape[1]} outputs, and one is needed: "
            "judge one column of y at a time."
        )
    predictions = predictions.astype(np.float64)
    truth = check_targets(y, len(predictions))
    weight = check_weights(sample_weight, len(truth))
    residuals = predictions - truth
    mean = np.average(truth, weights=weight)
    squares = float(np.average(residuals**2, weights=weight))
    constant = float(np.average((truth - mean) ** 2, weights=weight))
    r2 = metrics.r2_score(truth, predictions, sample_weight=weight) if len(truth) > 1 else None
    return ResidualFacts(
        truth=frozen(truth),
        predictions=frozen(predictions),
        residuals=frozen(residuals),
        r2=None if r2 is None else float(r2),
        mean_absolute_error=float(np.average(np.abs(residuals), weights=weight)),
        root_mean_squared_error=squares**0.5,
        median_absolute_error=float(
            metrics.median_absolute_error(truth, predictions, sample_weight=weight)
        ),
        bias=float(np.average(residuals, weights=weight)),
        constant_error=constant**0.5,
    )


def worst_mistakes(model: Any, X: Any, y: Any, n: int = 10) -> WorstMistakes:
    """The rows with the largest errors.

    Of a classifier these are rows that it misclassifies, the surest first: by the probability that
    it gave the true class, or else by how much lower the score of the true class is than the
    highest. Of a model of numbers, the rows with the largest errors.

    Parameters
    ----------
    model : fitted classifier or regressor
    X, y : rows and their classes or targets
    n : int, default=10
        How many rows, at most.

    Returns
    -------
    WorstMistakes

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0]
    >>> tree = margrove.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> worst = margrove.facts.worst_mistakes(tree, X, y, n=1).mistakes[0]
    >>> worst.row, worst.truth, worst.prediction, worst.size
    (2, 4.0, 5.0, 1.0)
    """
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n must be a whole number of rows, at least 1. Got {n!r}.")
    if not hasattr(model, "classes_"):
        return _largest_errors(residual_facts(model, X, y), int(n))
    classes = classes_of(model)
    predicted = predicted_codes(model, X, classes)
    codes, names = codes_of(y, classes, len(predicted))
    sizes, measure = _how_wrong(class_scores(model, X), codes)
    wrong = np.flatnonzero(predicted != codes)
    worst = wrong[np.argsort(-np.nan_to_num(sizes[wrong]), kind="stable")][: int(n)]
    return WorstMistakes(
        mistakes=tuple(
            Mistake(
                row=row,
                truth=names[codes[row]],
                prediction=names[predicted[row]],
                size=float(sizes[row]),
            )
            for row in worst.tolist()
        ),
        measure=measure,
        n_wrong=len(wrong),
        n_rows=len(codes),
    )


def _how_wrong(scores: ClassScores | None, codes: np.ndarray) -> tuple[np.ndarray, str]:
    """How wrong each row is; a class that the model does not know counts as the worst."""
    if scores is None:
        return np.full(len(codes), np.nan), "not known"
    rows = np.arange(len(codes))
    is_known = codes < len(scores.classes)
    own = scores.values[rows, np.where(is_known, codes, 0)]
    if scores.method == "predict_proba":
        return np.where(is_known, 1.0 - own, 1.0), "1 minus the probability of the true class"
    best = scores.values.max(axis=1)
    own = np.where(is_known, own, scores.values.min(axis=1))
    return best - own, "highest score minus that of the true class"


def _largest_errors(found: ResidualFacts, n: int) -> WorstMistakes:
    sizes = np.abs(found.residuals)
    worst = np.argsort(-sizes, kind="stable")[:n]
    return WorstMistakes(
        mistakes=tuple(
            Mistake(
                row=row,
                truth=float(found.truth[row]),
                prediction=float(found.predictions[row]),
                size=float(sizes[row]),
            )
            for row in worst.tolist()
            if sizes[row] > 0
        ),
        measure="size of the error",
        n_wrong=int(np.count_nonzero(sizes)),
        n_rows=len(sizes),
    )
