"""Permutation importances: how much a model depends on each feature, measured on data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from margrove._data import column_names, count_rows, is_frame, replace_cells

__all__ = ["PermutationImportances", "permutation_importances"]


@dataclass(frozen=True)
class PermutationImportances:
    """How much the score falls if the values of a feature are shuffled.

    mean, spread   float64 (d,)  over the repetitions
    drops          float64 (d, n_repeats)
    """

    feature_names: list[str]
    mean: np.ndarray
    spread: np.ndarray
    drops: np.ndarray


def permutation_importances(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_repeats: int = 10,
    scoring: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> PermutationImportances:
    """How much the score falls if the values of a feature are shuffled.

    Unlike impurity importances, these are not biased towards features of many values. Use rows that
    the model has not seen. `sklearn.inspection.permutation_importance` computes them.

    Parameters
    ----------
    model : fitted estimator
    X, y : the rows to measure on
    n_repeats : int, default=10
    scoring : str or callable, optional
        The model's own score by default.
    sample_weight : array-like, optional
    random_state : int, default=0

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0, 7], [0, 8], [1, 9], [1, 6]], ["no", "no", "yes", "yes"]
    >>> model = margrove.DecisionTreeClassifier().fit(X, y)
    >>> float(margrove.permutation_importances(model, X, y).mean[1])  # it has no split
    0.0
    """
    if is_frame(X) and not hasattr(X, "iloc"):  # scikit-learn supports dataframes of pandas only
        return _of_frame(model, X, y, n_repeats, scoring, sample_weight, random_state)
    from sklearn.inspection import permutation_importance

    found = permutation_importance(
        model, X, y, n_repeats=n_repeats, scoring=scoring, sample_weight=sample_weight,
        random_state=random_state,
    )  # fmt: skip
    n_features = len(found.importances_mean)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(n_features)])
    return PermutationImportances(
        [str(name) for name in names],
        found.importances_mean,
        found.importances_std,
        found.importances,
    )


def _of_frame(
    model: Any, X: Any, y: Any, n_repeats: int, scoring: Any, sample_weight: Any, random_state: Any
) -> PermutationImportances:
    """The importances for a table of polars or Arrow, whose columns may have any type."""
    scorer = check_scoring(model, scoring=scoring)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    rng = check_random_state(random_state)
    full_score = scorer(model, X, y, **weights)
    names, rows = column_names(X), np.arange(count_rows(X))
    drops = np.empty((len(names), n_repeats))
    for j in range(len(names)):
        for repeat in range(n_repeats):
            other = replace_cells(X, j, rows, rng.permutation(len(rows)))
            drops[j, repeat] = full_score - scorer(model, other, y, **weights)
    return PermutationImportances(names, drops.mean(axis=1), drops.std(axis=1), drops)
