"""Scores that any classifier gives to its classes, and labels as codes.

class_scores      a number for each row and class
required_scores   the same, or an error if the model predicts labels only
codes_of          labels as codes, and the names of the classes
predicted_codes   the predictions of a model as codes
last_step         the last step of a pipeline, or the model itself
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
    """A number for each row and class; a higher one means a more likely class.

    classes   those of the model
    values    float64 (n, n_classes)
    method    "predict_proba" or "decision_function"
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
    is_of_pairs = method == "decision_function" and k > 2 and _has_pairs(model)
    if is_of_pairs or values.shape[1] == k * (k - 1) // 2 != k:
        values = per_class_decisions(values, k)
    if values.shape[1] != k:
        raise InvalidDataError(
            f"{method} of this {type(model).__name__} returns {values.shape[1]} columns for {k} "
            "classes. One for each class is needed."
        )
    return ClassScores(classes, values, method)


def classes_of(model: Any) -> np.ndarray:
    """The classes of a fitted classifier with one output."""
    if not hasattr(model, "classes_"):
        check_is_fitted(model)
        raise TypeError(
            f"A classifier is needed, with classes_. Got {type(model).__name__}. For the errors of "
            "a regressor, use residual_facts."
        )
    if isinstance(model.classes_, list):
        raise TypeError(
            f"This {type(model).__name__} has several outputs, and one is needed. Fit a model to "
            "one column of y."
        )
    return np.asarray(model.classes_)


def _has_pairs(model: Any) -> bool:
    """Whether scores are of pairs of classes; three classes have three pairs, so ask the model."""
    return getattr(last_step(model), "decision_function_shape", None) == "ovo"


def codes_of(y: Any, classes: np.ndarray, n_rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels of y as codes, and the names of the codes: the model's classes, then others in y."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a test set may have few rows of many classes
        labels = check_labels(y, n_rows)
    place = {label: code for code, label in enumerate(classes.tolist())}
    for label in labels.classes.tolist():
        place.setdefault(label, len(place))
    codes = np.array([place[label] for label in labels.classes.tolist()], dtype=np.int64)
    return codes[labels.codes], tuple(str(label) for label in place)


def predicted_codes(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """int64 (n,): the predicted classes as places in `classes`."""
    place = {label: code for code, label in enumerate(classes.tolist())}
    predicted = np.asarray(model.predict(X)).ravel().tolist()
    return np.array([place[label] for label in predicted], dtype=np.int64)


def required_scores(model: Any, X: Any) -> ClassScores:
    """`class_scores`, or a TypeError if the model predicts labels only."""
    scores = class_scores(model, X)
    if scores is None:
        raise TypeError(
            f"This {type(model).__name__} has neither predict_proba nor decision_function, so "
            "there is no score for a threshold. Use confusion."
        )
    return scores


def last_step(model: Any) -> Any:
    """The last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model
