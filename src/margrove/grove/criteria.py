"""Criteria: what makes a node impure, by name.

Each is one entry of CRITERIA; the compiled scores are in `scores`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margrove.grove import scores

__all__ = ["CRITERIA", "Criterion", "class_criteria", "entropy", "impurity", "number_criteria"]


@dataclass(frozen=True)
class Criterion:
    """A criterion: its code in compiled code, whether it is for classes, what it measures.

    of_shares   the impurity of class shares, None for regression
    """

    name: str
    code: int
    for_classes: bool
    summary: str
    of_shares: Callable[[np.ndarray], np.ndarray] | None = None


def entropy(shares: np.ndarray, base: float = 2.0) -> np.ndarray:
    """- sum p log p along the last axis; 0 log 0 is 0. The base is 2, e, 10 or any above 1."""
    shares = np.asarray(shares, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0.0, -shares * np.log(shares), 0.0)
    return np.asarray(terms.sum(axis=-1) / np.log(base))


def _gini(shares: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 - (np.asarray(shares) ** 2).sum(axis=-1))


def _error(shares: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 - np.asarray(shares).max(axis=-1))


CRITERIA = {
    one.name: one
    for one in (
        Criterion("gini", scores.GINI, True, "Gini index, 1 - sum p^2", _gini),
        Criterion("entropy", scores.ENTROPY, True, "entropy in bits: information gain", entropy),
        Criterion("log_loss", scores.ENTROPY, True, "another name of entropy", entropy),
        Criterion(
            "gain_ratio", scores.GAIN_RATIO, True, "C4.5: gain over split information", entropy
        ),
        Criterion("error", scores.ERROR, True, "classification error, 1 - max p", _error),
        Criterion("squared_error", scores.SQUARED, False, "variance around the mean"),
        Criterion("friedman_mse", scores.SQUARED, False, "the same: its gain is Friedman's"),
        Criterion("absolute_error", scores.ABSOLUTE, False, "mean distance from the median"),
        Criterion("poisson", scores.POISSON, False, "half the Poisson deviance"),
        Criterion("gamma", scores.GAMMA, False, "half the gamma deviance"),
    )
}


def class_criteria() -> list[str]:
    return [name for name, one in CRITERIA.items() if one.for_classes]


def number_criteria() -> list[str]:
    return [name for name, one in CRITERIA.items() if not one.for_classes]


def impurity(name: str, counts: np.ndarray) -> float:
    """The impurity of a node with so many rows of each class.

    Examples
    --------
    >>> from margrove.grove.criteria import impurity
    >>> round(impurity("entropy", [9, 5]), 3)
    0.94
    """
    criterion = CRITERIA[name]
    if criterion.of_shares is None:
        raise ValueError(f"{name!r} is a criterion of numbers, not of classes.")
    weights = np.asarray(counts, dtype=np.float64)
    return float(criterion.of_shares(weights / weights.sum()))
