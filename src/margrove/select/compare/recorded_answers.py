"""Recorded predictions as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from margrove.select.compare.examples import Task

__all__ = ["Recorded"]


def _has(method: str) -> Callable[[Any], bool]:
    return lambda recorded: method in recorded.answers


class Recorded(BaseEstimator):
    """Stands in for a fitted model whose predictions are known; it ignores X."""

    def __init__(self, task: Task, answers: dict[str, np.ndarray], classes: Any = None) -> None:
        self.task, self.answers, self.classes = task, answers, classes
        if classes is not None:
            self.classes_ = classes

    @available_if(_has("predict"))
    def predict(self, X: Any) -> np.ndarray:
        return self.answers["predict"]

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        return self.answers["predict_proba"]

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        return self.answers["decision_function"]

    def fit(self, X: Any, y: Any) -> Recorded:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self.task == "classification" else "regressor"
        return tags
