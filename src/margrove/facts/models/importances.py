"""Features by importance, with intervals if they are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove.ensemble.bagging import Bagging
from margrove.ensemble.forest import OobImportances
from margrove.ensemble.gradient import GradientBoosted
from margrove.exceptions import InvalidDataError
from margrove.facts.models.strongest import feature_names_of
from margrove.facts.plain_values import Plain, frozen, require_whole
from margrove.grove.explain import PermutationImportances

__all__ = ["RankedImportances", "mean_importances", "ranked_importances"]

_DECREASE = "decrease of the impurity"


def mean_importances(model: Any) -> np.ndarray | None:
    """The mean importances of the members of bagging, each for its own columns."""
    total = np.zeros(model.n_features_in_)
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        of_member = getattr(member, "feature_importances_", None)
        if of_member is None:
            return None
        np.add.at(total, columns, of_member)  # columns may have been drawn twice
    return total / total.sum() if total.sum() > 0.0 else total


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedImportances(Plain):
    """Features and their importances, the most important first; if tied, the first column.

    Attributes
    ----------
    names : tuple of str
    columns : ndarray of int
    values : ndarray
    low, high : ndarray or None
        Ends of intervals around the values, if there are any.
    measure : str
        What importances are, in words.
    interval : str
        What intervals are, in words; "" if there are none.
    n_features : int
        The number of all features.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    values: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    measure: str
    interval: str
    n_features: int


def ranked_importances(source: Any, n: int = 20, feature_names: Any = None) -> RankedImportances:
    """The most important features, by name.

    Parameters
    ----------
    source : fitted estimator, OobImportances, PermutationImportances or array-like
        A tree, forest or bagged trees, of margrove or under scikit-learn's API; the result of
        `oob_importances`, `oob_impurity_importances` or `permutation_importances`; or a number for
        each feature.
    n : int, default=20
        Largest number of features.
    feature_names : sequence of str, optional
        A name for each feature. By default those of the training data, or else "x0", "x1" and so
        on.

    Returns
    -------
    RankedImportances

    Examples
    --------
    >>> import margrove
    >>> tree = margrove.DecisionTreeClassifier().fit([[0, 7], [0, 8], [1, 9]], ["a", "a", "b"])
    >>> found = margrove.facts.ranked_importances(tree, n=1, feature_names=["size", "age"])
    >>> found.names, found.values, found.n_features
    (('size',), array([1.]), 2)
    """
    n = require_whole("n", n, 1, " of features")
    values, low, high, measure, interval = _importances_of(source)
    names = feature_names_of(source, len(values), feature_names)
    if names is None:
        names = getattr(source, "feature_names", [f"x{j}" for j in range(len(values))])
    columns = np.argsort(-values, kind="stable")[:n]
    return RankedImportances(
        names=tuple(str(names[j]) for j in columns.tolist()),
        columns=frozen(columns),
        values=frozen(values[columns]),
        low=None if low is None else frozen(low[columns]),
        high=None if high is None else frozen(high[columns]),
        measure=measure,
        interval=interval,
        n_features=len(values),
    )


_Importances = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, str, str]


def _importances_of(source: Any) -> _Importances:
    """Values, the ends of their intervals, and what both are, in words."""
    if isinstance(source, OobImportances):
        rise = "rise of the out-of-bag error when permuted"
        measure = rise if source.measure == "permutation" else f"out-of-bag {_DECREASE}"
        interval = f"{100 * source.confidence_level:g} % intervals"
        return source.mean, source.low, source.high, measure, interval
    if isinstance(source, PermutationImportances):
        low, high = source.mean - source.spread, source.mean + source.spread
        return source.mean, low, high, "fall of the score when permuted", "± standard deviation"
    if hasattr(source, "fit"):
        gain = "gain of the splits" if isinstance(source, GradientBoosted) else _DECREASE
        return _of_estimator(source), None, None, f"{gain}, as a share", ""
    try:
        values = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "source must be a fitted tree or forest, the result of oob_importances, or a number "
            f"for each feature. Got {type(source).__name__}."
        ) from error
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InvalidDataError(
            "source must have one finite number for each feature. Got an array of shape "
            f"{values.shape}{', not all finite' if values.ndim == 1 and len(values) else ''}."
        )
    return values, None, None, "importance", ""


def _of_estimator(model: Any) -> np.ndarray:
    check_is_fitted(model)
    is_bag = isinstance(model, Bagging)
    found = mean_importances(model) if is_bag else getattr(model, "feature_importances_", None)
    if found is None:
        raise TypeError(
            f"This {type(model).__name__} has no feature_importances_. Pass the result of "
            "permutation_importances(model, X, y), which takes any model."
        )
    return np.asarray(found)
