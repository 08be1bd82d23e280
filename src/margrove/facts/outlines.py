"""What any fitted estimator under scikit-learn's API has: task, classes, features."""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove.facts.plain_values import frozen, in_words
from margrove.facts.values import Outline

__all__ = ["Given", "estimator_fields", "outline"]

Given = tuple[Any, Any, Any]  # X, y and sample_weight as `fit` got them

_TASKS = {
    "classifier": "classification",
    "regressor": "regression",
    "outlier_detector": "outlier detection",
}


def outline(model: Any) -> Outline:
    """What any fitted estimator under scikit-learn's API has: task, classes, features.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    Outline

    Examples
    --------
    >>> from margrove import SVR, facts
    >>> facts.outline(SVR().fit([[0.0], [1.0]], [0.0, 1.0])).task
    'regression'
    """
    check_is_fitted(model)
    return Outline(**_outline_fields(model))


def _outline_fields(model: Any) -> dict[str, Any]:
    tags = get_tags(model)
    names = getattr(model, "feature_names_in_", None)
    return {
        "estimator": type(model).__name__,
        "task": _TASKS.get(tags.estimator_type, ""),
        "classes": frozen(getattr(model, "classes_", None)),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else tuple(str(name) for name in names),
        "is_pairwise": bool(tags.input_tags.pairwise),
        "needs_positive": bool(tags.input_tags.positive_only),
    }


def estimator_fields(model: Any) -> dict[str, Any]:
    """The outline, and the parameters as given."""
    parameters = model.get_params(deep=False)
    return _outline_fields(model) | {
        "parameters": {name: in_words(value) for name, value in parameters.items()}
    }
