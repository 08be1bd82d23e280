"""Predictions of the members of an ensemble, and their means and votes.

A member that has not seen a class does not predict it; results always have a column for each class.
Sums are computed in the order of the members, so they do not depend on the number of workers.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from margrove.ensemble.bagging.members import Member, columns_of
from margrove.ensemble.bagging.samples import RowSamples
from margrove.exceptions import DataWarning
from margrove.grove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.serve import TreeArrays, sums_of_trees

__all__ = [
    "LogRunningMean",
    "RunningMean",
    "mean_of_trees",
    "onto_all_classes",
    "predict_out_of_bag",
    "prediction_of",
    "shares_of",
    "votes",
    "warn_of_rows_in_every_bag",
]


def prediction_of(
    estimator: Any, columns: np.ndarray, X: Any, method: str, params: dict[str, Any]
) -> np.ndarray:
    """The result of a method of an estimator, fitted on some columns, for the rows of X."""
    return np.asarray(getattr(estimator, method)(columns_of(X, columns), **params))


def predict_out_of_bag(
    member: Member,
    X: Any,
    samples: RowSamples,
    number: int,
    method: str,
    n_classes: int | None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows that are not in a member's sample, and its predictions; None if there are none."""
    rows = samples.out_of_bag(number, X.shape[0])
    if not len(rows):
        return None
    prediction = prediction_of(member.estimator, member.columns, X[rows], method, {})
    if n_classes is not None:
        prediction = shares_of(prediction, member.estimator, method, n_classes)
    return rows, prediction


def shares_of(prediction: np.ndarray, estimator: Any, method: str, n_classes: int) -> np.ndarray:
    """Predicted probabilities or labels of a classifier as shares of all classes."""
    if method == "predict":
        return votes(prediction, n_classes)
    return onto_all_classes(prediction, estimator.classes_, n_classes)


def onto_all_classes(
    values: np.ndarray, known: np.ndarray, n_classes: int, unknown: float = 0.0
) -> np.ndarray:
    """Columns (n, k) of the `known` classes, int64 (k,), as columns (n, n_classes) of all."""
    if len(known) == n_classes:
        return values
    all_columns = np.full((len(values), n_classes), unknown)
    all_columns[:, known] = values
    return all_columns


def votes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One-hot encoded labels, float64 (n, n_classes)."""
    one_hot = np.zeros((len(codes), n_classes))
    one_hot[np.arange(len(codes)), codes] = 1.0
    return one_hot


class RunningMean:
    """The mean of the members' predictions by row; a member may predict only some of the rows.

    Each `add` changes sums, float64 (n, ...), and counts, int64 (n,).
    """

    def __init__(self, n_rows: int) -> None:
        self.counts = np.zeros(n_rows, np.int64)
        self.sums: np.ndarray | None = None

    def add(self, values: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Add the predictions of one member for all rows, or for some different rows."""
        if self.sums is None:
            self.sums = np.zeros((len(self.counts), *values.shape[1:]))
        if rows is None:
            self.sums += values
            self.counts += 1
        else:
            self.sums[rows] += values
            self.counts[rows] += 1

    def mean(self) -> np.ndarray:
        """The means; NaN for rows without a prediction."""
        if self.sums is None:
            return np.full(len(self.counts), np.nan)
        counts = self.counts.reshape(-1, *([1] * (self.sums.ndim - 1)))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sums / counts)


def mean_of_trees(
    estimators: list[Any], columns: list[np.ndarray], X: Any, n_classes: int | None, n_threads: int
) -> np.ndarray | None:
    """What `RunningMean` has after the shares of all classes, or the numbers, that trees predict.

    None if members are not trees of this library that predict single outputs from numbers, or if
    they had better predict one by one.
    """
    if X.dtype == object or not all(map(_is_plain_tree, estimators)):
        return None
    for one, own in zip(estimators, columns, strict=True):
        if len(own) != one.n_features_in_ or own.min() < 0 or own.max() >= X.shape[1]:
            return None
    trees = [one.arrays_ for one in estimators]
    values = [tree.value for tree in trees]
    if n_classes is not None:
        pairs = zip(values, estimators, strict=True)
        values = [onto_all_classes(value, one.classes_, n_classes) for value, one in pairs]
    sums = sums_of_trees(trees, columns, values, X, n_threads)
    if sums is None:
        return None
    mean = sums / len(estimators)
    return mean if n_classes is not None else np.ascontiguousarray(mean[:, 0])


def _is_plain_tree(estimator: Any) -> bool:
    """Whether an estimator is a tree of this library, of one output, without categories."""
    if type(estimator) not in (DecisionTreeClassifier, DecisionTreeRegressor):
        return False
    n_values = int(getattr(estimator, "n_classes_", 1)) if estimator.n_outputs_ == 1 else 0
    tree = estimator.arrays_
    return (
        isinstance(tree, TreeArrays)
        and not estimator.categories_
        and tree.value.shape[1:] == (n_values,)
    )


class LogRunningMean:
    """The logarithm of a mean of numbers of which the logarithms are given."""

    def __init__(self) -> None:
        self.n_added = 0
        self.total: Any = -np.inf

    def add(self, logarithms: np.ndarray) -> None:
        """Add the predictions of one member for all rows."""
        self.total = np.logaddexp(self.total, logarithms)
        self.n_added += 1

    def mean(self) -> np.ndarray:
        """The logarithms of the means."""
        return np.asarray(self.total - np.log(self.n_added))


def warn_of_rows_in_every_bag(counts: np.ndarray, name: str, n_members: int) -> None:
    """Warn if there are rows without an out-of-bag prediction; counts (n,) are predictions."""
    n_without = int((counts == 0).sum())
    if n_without:
        warnings.warn(
            "Some inputs do not have OOB scores. This probably means too few estimators were used "
            f"to compute any reliable oob estimates. {n_without} of {len(counts)} rows are in the "
            f"sample of every estimator of {name}, so their out-of-bag predictions are NaN. Raise "
            f"n_estimators={n_members}, or lower max_samples.",
            DataWarning,
            stacklevel=4,
        )
