"""Rows that a model predicts wrongly, and by how much.

residual_facts   errors of a regressor
worst_mistakes   the rows with the largest errors
"""

from __future__ import annotations

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
from margrove.facts.plain_values import frozen, require_whole
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
    >>> found = margrove.facts.residual_facts(tree, X, y)
    >>> found.residuals.tolist(), round(found.r2, 2)
    ([0.0, 0.0, 1.0, -1.0], 0.93)
    """
    predictions = np.asarray(model.predict(X))
    if predictions.dtype.kind not in "biuf" or hasattr(model, "classes_"):
        raise TypeError(
            f"A regressor is needed. Got {type(model).__name__}, which predicts classes. Use "
            "confusion."
        )
    if predictions.ndim == 2 and predictions.shape[1] == 1:
        predictions = predictions[:, 0]
    if predictions.ndim != 1:
        raise TypeError(
            f"This {type(model).__name__} has {predictions.shape[1]} outputs, and one is needed. "
            "Fit a model to one column of y."
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

    For a classifier, these are misclassified rows, the most confident mistakes first: by the
    probability of the true class, or else by the difference between the highest score and that of
    the true class. For a regressor, they are the rows with the largest absolute errors.

    Parameters
    ----------
    model : fitted classifier or regressor
    X, y : rows and their classes or targets
    n : int, default=10
        Largest number of rows.

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
    n = require_whole("n", n, 1, " of rows")
    if not hasattr(model, "classes_"):
        return _largest_errors(residual_facts(model, X, y), n)
    classes = classes_of(model)
    predicted = predicted_codes(model, X, classes)
    codes, names = codes_of(y, classes, len(predicted))
    sizes, measure = _sizes_of_mistakes(class_scores(model, X), codes)
    wrong = np.flatnonzero(predicted != codes)
    worst = wrong[np.argsort(-np.nan_to_num(sizes[wrong]), kind="stable")][:n]
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


def _sizes_of_mistakes(scores: ClassScores | None, codes: np.ndarray) -> tuple[np.ndarray, str]:
    """The size of each row's mistake, and what it is; largest for classes unknown to the model."""
    if scores is None:
        return np.full(len(codes), np.nan), "not known"
    rows = np.arange(len(codes))
    is_known = codes < len(scores.classes)
    of_truth = scores.values[rows, np.where(is_known, codes, 0)]
    if scores.method == "predict_proba":
        return np.where(is_known, 1.0 - of_truth, 1.0), "1 minus the probability of the true class"
    best = scores.values.max(axis=1)
    of_truth = np.where(is_known, of_truth, scores.values.min(axis=1))
    return best - of_truth, "highest score minus that of the true class"


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
