"""Scores that are means over rows, row by row.

Accuracy is the share of rows that are right, and errors are means of the errors of rows. R^2 is a
mean over rows if the variance of the targets of a fold is held fixed:

    R^2 = mean over rows of  1 - (y - f)^2 / variance of y in this fold

Other scores (areas under curves, F-measures) need all rows of a fold together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    zero_one_loss,
)

__all__ = ["RowScorer", "row_scorer_of"]


@dataclass(frozen=True)
class RowScorer:
    """`by_row(y, answer, weight, classes)` scores the results of the method `response`.

    `sign` is the sign of scikit-learn's scorer, which is -1 for errors.
    """

    response: str
    sign: int
    by_row: Callable[..., np.ndarray]

    def of_model(self, model: Any, X: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The score of each row, float64 (n,)."""
        answer = np.asarray(getattr(model, self.response)(X))
        return self.by_row(y, answer, weight, getattr(model, "classes_", None))


def row_scorer_of(scorer: Any) -> RowScorer | None:
    """The row scorer of a scikit-learn scorer; None if it is not known to be a mean over rows."""
    known = _ROW_SCORERS.get(getattr(scorer, "_score_func", None))
    if known is None or scorer._kwargs or scorer._sign != known.sign:
        return None
    return known


def _accuracy(y: np.ndarray, answer: np.ndarray, *_: Any) -> np.ndarray:
    return np.asarray(y == answer, dtype=np.float64)


def _error(y: np.ndarray, answer: np.ndarray, *_: Any) -> np.ndarray:
    return -np.asarray(y != answer, dtype=np.float64)


def _squared(y: np.ndarray, answer: np.ndarray, *_: Any) -> np.ndarray:
    return -_mean_over_outputs((y - answer.reshape(y.shape)) ** 2)


def _absolute(y: np.ndarray, answer: np.ndarray, *_: Any) -> np.ndarray:
    return -_mean_over_outputs(np.abs(y - answer.reshape(y.shape)))


def _r2(y: np.ndarray, answer: np.ndarray, weight: np.ndarray, *_: Any) -> np.ndarray:
    squares = (y - answer.reshape(y.shape)) ** 2
    centre = np.average(y, axis=0, weights=weight)
    variance = np.average((y - centre) ** 2, axis=0, weights=weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - squares / variance
    # for a constant target: 1 if all predictions are exact, else 0, as in scikit-learn
    if_constant = np.where(squares.any(axis=0), 0.0, 1.0)
    return _mean_over_outputs(np.where(variance > 0.0, scores, if_constant))


def _log_loss(
    y: np.ndarray, answer: np.ndarray, weight: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    of_truth = answer[np.arange(len(y)), np.searchsorted(classes, y)]
    smallest = np.finfo(answer.dtype).eps
    likelihoods: np.ndarray = np.log(np.clip(of_truth, smallest, 1.0 - smallest))
    return likelihoods


def _mean_over_outputs(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 1 else values.mean(axis=1)


_ROW_SCORERS = {
    accuracy_score: RowScorer("predict", 1, _accuracy),
    zero_one_loss: RowScorer("predict", -1, _error),
    mean_squared_error: RowScorer("predict", -1, _squared),
    mean_absolute_error: RowScorer("predict", -1, _absolute),
    r2_score: RowScorer("predict", 1, _r2),
    log_loss: RowScorer("predict_proba", -1, _log_loss),
}
