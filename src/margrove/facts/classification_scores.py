"""Scores that any classifier gives to its classes, and labels as codes.

class_scores      a number for each row and class
required_scores   the same, or an error where a model tells labels only
codes_of          labels as codes, and the names of the classes
predicted_codes   what a model predicts, as codes
last_step         of a pipeline, or the model itself
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_labels
from margrove.exceptions import InvalidDataError
from margrove.margin.svm import per_class_decisions

__all__ = [
    "ClassScores",
    "class_scores",
    "classes_of",
    "codes_of",
    "last_step",
    "predicted_codes",
    "required_scores",
]


@dataclass(frozen=True, eq=False)
class ClassScores:
    """A number for each row and class, the higher the more likely, by the method of that name.

    classes is what the model has, values float64 (n, n_classes).
    """

    classes: np.ndarray
    values: np.ndarray
    method: str


def class_scores(model: Any, X: Any) -> ClassScores | None:
    """Scores of the classes by a fitted classifier; None if it only predicts labels."""
    classes = classes_of(model)
    method = next(
        (name for name in ("predict_proba", "decision_function") if hasattr(model, name)), None
    )
    if method is None:
        return None
    values = np.asarray(getattr(model, method)(X), dtype=np.float64)
    k = len(classes)
    if values.ndim == 1 or (k == 2 and values.shape[1] == 1):
        values = np.column_stack([-values.ravel(), values.ravel()])
    is_of_pairs = method == "decision_function" and k > 2 and _answers_for_pairs(model)
    if is_of_pairs or values.shape[1] == k * (k - 1) // 2 != k:
        values = per_class_decisions(values, k)
    if values.shape[1] != k:
        raise InvalidDataError(
            f"{method} of this {type(model).__name__} gives {values.shape[1]} columns for {k} "
            "classes. One for each class is needed."
        )
    return ClassScores(classes, values, method)


def classes_of(model: Any) -> np.ndarray:
    if not hasattr(model, "classes_"):
        check_is_fitted(model)
        raise TypeError(
            f"A classifier is needed, with classes_. Got {type(model).__name__}; of a model of "
            "numbers, residual_facts tells the errors."
        )
    if isinstance(model.classes_, list):
        raise TypeError(
            f"This {type(model).__name__} has several outputs, and one is needed: judge one column "
            "of y at a time."
        )
    return np.asarray(model.classes_)


def _answers_for_pairs(model: Any) -> bool:
    """Three classes have three pairs: only the parameter tells."""
    return getattr(last_step(model), "decision_function_shape", None) == "ovo"


def codes_of(y: Any, classes: np.ndarray, n_rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes of the labels in y: first the model's classes, then other labels that y has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of many classes are fine to judge by
        labels = check_labels(y, n_rows)
    place = {label: code for code, label in enumerate(classes.tolist())}
    for label in labels.classes.tolist():
        place.setdefault(label, len(place))
    codes = np.array([place[label] for label in labels.classes.tolist()], dtype=np.int64)
    return codes[labels.codes], tuple(str(label) for label in place)


def predicted_codes(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    place = {label: code for code, label in enumerate(classes.tolist())}
    said = np.asarray(model.predict(X)).ravel().tolist()
    return np.array([place[label] for label in said], dtype=np.int64)


def required_scores(model: Any, X: Any) -> ClassScores:
    scores = class_scores(model, X)
    if scores is None:
        raise TypeError(
            f"This {type(model).__name__} has neither predict_proba nor decision_function, so "
            "there is nothing to vary a threshold of. confusion tells how often it is right."
        )
    return scores


def last_step(model: Any) -> Any:
    """The last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model
