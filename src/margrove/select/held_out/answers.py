"""Stand-ins for models whose predictions are known, for scorers that need a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["known_answers"]


class _KnownAnswers(BaseEstimator):
    """A fitted model that returns known predictions for some rows, and ignores X."""

    def __init__(self, answer: Callable[[str], np.ndarray]) -> None:
        self.answer = answer

    def fit(self, X: Any, y: Any) -> Any:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> np.ndarray:
        return self.answer("predict")


class _KnownClasses(ClassifierMixin, _KnownAnswers):
    def __init__(self, answer: Callable[[str], np.ndarray], classes: np.ndarray) -> None:
        super().__init__(answer)
        self.classes = classes
        self.classes_ = classes

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.answer("predict_proba")

    def decision_function(self, X: Any) -> np.ndarray:
        return self.answer("decision_function")


class _KnownNumbers(RegressorMixin, _KnownAnswers):
    pass


def known_answers(answer: Callable[[str], np.ndarray], classes: np.ndarray | None) -> Any:
    """A model whose predictions for some rows are `answer("predict")`, `answer("predict_proba")`...

    It is a classifier, or without classes a regressor.
    """
    return _KnownNumbers(answer) if classes is None else _KnownClasses(answer, classes)
