"""Criteria: what makes a node impure, by name.

Each is one entry of CRITERIA; the compiled scores are in `scores`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sklearn
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.fixes import parse_version

from margrove.grove.grow import scores

__all__ = [
    "CRITERIA",
    "Criterion",
    "CriterionNames",
    "class_criteria",
    "entropy",
    "impurity",
    "number_criteria",
    "register_criterion",
    "without_friedman",
]


@dataclass(frozen=True)
class Criterion:
    """A criterion: its code in compiled code, whether it is for classes, what it measures.

    of_shares   the impurity of class shares, None for regression
    own         a user's function of sums and weight, see `register_criterion`
    """

    name: str
    code: int
    for_classes: bool
    summary: str
    of_shares: Callable[[np.ndarray], np.ndarray] | None = None
    own: Callable[[np.ndarray, float], float] | None = None


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


def without_friedman(criterion: str) -> str:
    """The criterion as it is; "friedman_mse" by its other name, where scikit-learn drops it."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    if parse_version(sklearn.__version__) < parse_version("1.9"):
        return criterion
    warnings.warn(
        'Value `"friedman_mse"` for `criterion` is deprecated and will be removed, as in 1.11 of '
        'scikit-learn. It maps to `"squared_error"` as both were always equivalent. Use '
        '`criterion="squared_error"` to remove this warning.',
        FutureWarning,
        stacklevel=3,
    )
    return "squared_error"


class CriterionNames(StrOptions):
    """The names of one kind that are registered at the moment, for checks of parameters."""

    def __init__(self, for_classes: bool) -> None:
        self._for_classes = for_classes
        super().__init__({"gini"})

    @property
    def options(self) -> set[str]:
        return set(class_criteria() if self._for_classes else number_criteria())

    @options.setter
    def options(self, given: set[str]) -> None:
        """What scikit-learn sets; the registry decides."""


def register_criterion(
    name: str, function: Callable[[np.ndarray, float], float], *, for_classes: bool = True
) -> Criterion:
    """Make `criterion=name` mean your own impurity.

    Parameters
    ----------
    name : str
        A new name.
    function : callable
        `function(sums, weight)` returns the impurity of a node: `sums` are the weights of its
        classes, or the weighted sum and sum of squares of its targets. It is compiled;
        one that is compiled already is taken as it is.
    for_classes : bool, default=True
        Whether it is for `DecisionTreeClassifier` or for `DecisionTreeRegressor`.

    Examples
    --------
    >>> import numpy as np, margrove
    >>> def root_of_gini(sums, weight):
    ...     return np.sqrt(1.0 - np.sum((sums / weight) ** 2))
    >>> _ = margrove.register_criterion("root_of_gini", root_of_gini)
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> margrove.DecisionTreeClassifier(criterion="root_of_gini").fit(X, y).score(X, y)
    1.0
    >>> del margrove.grove.criteria.CRITERIA["root_of_gini"]
    """
    if name in CRITERIA:
        raise ValueError(f"A criterion named {name!r} exists already: {sorted(CRITERIA)}.")
    if not callable(function):
        raise TypeError(f"function must be callable. Got {function!r} instead.")
    summary = (function.__doc__ or "a registered criterion").strip().splitlines()[0]

    def of_shares(shares: np.ndarray) -> np.ndarray:
        return np.apply_along_axis(lambda own: function(own, 1.0), -1, np.asarray(shares))

    CRITERIA[name] = Criterion(
        name, scores.CUSTOM, for_classes, summary, of_shares if for_classes else None, function
    )
    return CRITERIA[name]


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
