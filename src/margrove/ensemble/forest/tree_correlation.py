"""Strength and correlation of the trees of a forest, which explain why it beats its trees.

Let s_b(i) be the residual or margin of tree b on row i (see below), sigma^2 the mean over the trees
of the variance of s_b over the rows, and rho the mean covariance of two different trees divided by
sigma^2. Then the variance of the mean of B trees is

    rho sigma^2 + (1 - rho) sigma^2 / B

which is an identity, not an approximation. More trees reduce the second term only; fewer features
for each split reduce rho.

    regression      s_b(i) = prediction - target, the residual. Then
                    mean squared error of the forest  =  bias^2 + variance of its residual
                    mean squared error of a tree      =  that of the forest + ambiguity
                    where the ambiguity is the mean squared difference of trees and forest
                    (Krogh and Vedelsby 1995).
    classification  s_b(i) = [tree is right] - [tree votes for the strongest wrong class], the raw
                    margin (Breiman 2001, definition 4). Its mean over trees and rows is the
                    strength s, and the error of a large forest is at most rho (1 - s^2) / s^2
                    (theorem 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import check_weights, moderate
from margrove._runtime import require_memory, resolve_n_jobs, run_tiles
from margrove.ensemble.forest.evaluation_data import (
    EvaluationTargets,
    predictions_of_leaves,
    read_rows,
    read_targets,
    require_forest,
    squares_of_targets,
)
from margrove.ensemble.forest.forest import Forest
from margrove.grove.serve import ForestTables, add_values
from margrove.grove.table import power_of_two_near

__all__ = ["TreeCorrelation", "tree_correlation"]

_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class TreeCorrelation:
    """Errors of the trees of a forest and of the forest, and the correlation of the trees.

    Attributes
    ----------
    n_trees, n_rows : int
    tree_error : float
        The error of a tree, mean over the trees: misclassified share, or mean squared error.
    forest_error : float
        The error of the forest.
    correlation : float
        rho, the correlation of the residuals or raw margins of two trees: mean covariance of a pair
        divided by the mean variance of a tree. NaN for one tree, or if no tree varies.
    tree_variance : float
        sigma^2: the variance over the rows of a tree's residual or raw margin, mean over the trees.
    forest_variance : float
        The variance of the mean over the trees: rho sigma^2 + (1 - rho) sigma^2 / n_trees.
    bias : float or None
        For regression: the mean of prediction - target. forest_error is bias^2 + forest_variance.
    ambiguity : float or None
        For regression: the mean squared difference of trees and forest, tree_error - forest_error.
    strength : float or None
        For classification: the mean raw margin s.
    bound : float or None
        For classification: rho (1 - s^2) / s^2, an upper bound of the error of a large forest; inf
        if the strength is not above 0.
    """

    n_trees: int
    n_rows: int
    tree_error: float
    forest_error: float
    correlation: float
    tree_variance: float
    forest_variance: float
    bias: float | None = None
    ambiguity: float | None = None
    strength: float | None = None
    bound: float | None = None

    def variance_with(self, n_trees: int) -> float:
        """The variance of a forest of `n_trees` such trees; inf is possible and gives the limit."""
        limit = self.correlation * self.tree_variance
        return limit + (self.tree_variance - limit) / n_trees

    def __repr__(self) -> str:
        names = ("tree_error", "forest_error", "correlation", "tree_variance", "forest_variance",
                 "bias", "ambiguity", "strength", "bound")  # fmt: skip
        known = [(name, getattr(self, name)) for name in names]
        figures = ", ".join(f"{name}={value:.4g}" for name, value in known if value is not None)
        return f"TreeCorrelation(n_trees={self.n_trees}, n_rows={self.n_rows}, {figures})"


def tree_correlation(forest: Any, X: Any, y: Any, *, sample_weight: Any = None) -> TreeCorrelation:
    """The errors of a forest's trees and their correlation, on given rows.

    Use rows that the forest has not seen: on training rows the errors are too low and the
    correlation is too high.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees, of one output
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    TreeCorrelation

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import RandomForestRegressor
    >>> from margrove import tree_correlation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(600, 6))
    >>> y = X[:, 0] + X[:, 1] ** 2 + rng.normal(scale=0.1, size=600)
    >>> bagged = RandomForestRegressor(max_features=None, random_state=0).fit(X[:300], y[:300])
    >>> forest = RandomForestRegressor(max_features=2, random_state=0).fit(X[:300], y[:300])
    >>> all_features = tree_correlation(bagged, X[300:], y[300:])
    >>> few_features = tree_correlation(forest, X[300:], y[300:])
    >>> few_features.tree_error > all_features.tree_error  # each tree is worse,
    True
    >>> few_features.correlation < all_features.correlation  # but they err less together
    True
    """
    require_forest(forest, "tree_correlation")
    if forest.n_outputs_ != 1:
        raise ValueError(
            f"tree_correlation supports one output only, but this {type(forest).__name__} has "
            f"{forest.n_outputs_}. Fit a forest for each output."
        )
    rows = read_rows(forest, X)
    n, n_trees = rows.shape[0], len(forest.trees_)
    targets = read_targets(forest, y, n)
    weight = moderate(check_weights(sample_weight, n))
    weight = weight / weight.max()
    weight /= weight.sum()
    require_memory(
        20.0 * n * n_trees,
        f"The predictions of {n_trees} trees for {n} rows",
        "Use fewer rows: a few thousand are enough.",
    )
    n_threads = resolve_n_jobs(forest.n_jobs, unset="all")
    if not targets.is_class:
        values = forest._walked_rows(rows, ForestTables.values_of_trees)
        return _of_numbers(np.ascontiguousarray(values.T), targets, weight, n_threads)
    leaves, votes = forest._leaves_by_tree(rows), np.empty((n_trees, n))

    def vote(k: int) -> None:
        votes[k] = predictions_of_leaves(forest.trees_[k], forest.kind_, leaves[k])[:, 0]

    run_tiles(vote, n_trees, n_threads)
    wrong = _share_wrong(forest, leaves, votes, targets.labels[:, 0], weight, n_threads)
    return _of_classes(forest, votes, targets.labels[:, 0], weight, wrong, n_threads)


def _of_numbers(
    predicted: np.ndarray, targets: EvaluationTargets, weight: np.ndarray, n_threads: int
) -> TreeCorrelation:
    scale = max(targets.scale, power_of_two_near(predicted))  # predictions may be larger than y
    predicted /= scale
    predicted -= targets.numbers[:, 0] * (targets.scale / scale)
    mean = predicted.mean(axis=0)
    spread, variance, rho = _moments(predicted, mean, weight, n_threads)
    squares, ambiguity = np.empty(len(predicted)), np.empty(len(predicted))

    def measure(k: int) -> None:
        squares[k] = (weight * predicted[k] ** 2).sum()
        ambiguity[k] = (weight * (predicted[k] - mean) ** 2).sum()

    run_tiles(measure, len(predicted), n_threads)
    figures = [squares.mean(), (weight * mean**2).sum(), spread, variance, ambiguity.mean()]
    squared = squares_of_targets(np.array(figures), scale).tolist()
    tree, forest, spread, variance, mean_ambiguity = squared
    return TreeCorrelation(
        n_trees=predicted.shape[0],
        n_rows=predicted.shape[1],
        tree_error=tree,
        forest_error=forest,
        correlation=rho,
        tree_variance=spread,
        forest_variance=variance,
        bias=float((weight * mean).sum() * scale),
        ambiguity=mean_ambiguity,
    )


def _of_classes(
    forest: Forest,
    votes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    wrong: float,
    n_threads: int,
) -> TreeCorrelation:
    """From votes (n_trees, n_rows), which are overwritten with raw margins."""
    wrong_class = _strongest_wrong_class(votes, labels, forest.kind_.n_values)
    errors = np.empty(len(votes))

    def compare(k: int) -> None:
        is_right = votes[k] == labels
        errors[k] = (weight * ~is_right).sum()
        votes[k] = is_right * 1.0 - (votes[k] == wrong_class)

    run_tiles(compare, len(votes), n_threads)
    mean = votes.mean(axis=0)
    spread, variance, rho = _moments(votes, mean, weight, n_threads)
    strength = float((weight * mean).sum())
    bound = np.inf
    if strength > 0.0:
        bound = float(np.maximum(rho, 0.0) * (1.0 - strength**2) / strength**2)
    return TreeCorrelation(
        n_trees=votes.shape[0],
        n_rows=votes.shape[1],
        tree_error=float(errors.mean()),
        forest_error=wrong,
        correlation=rho,
        tree_variance=spread,
        forest_variance=variance,
        strength=strength,
        bound=bound,
    )


def _strongest_wrong_class(votes: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """The wrong class with most votes, the first of equal ones; -1 if there is no other class."""
    rows = np.arange(votes.shape[1])
    counts = np.zeros((len(rows), n_classes))
    for votes_of_tree in votes:
        counts[rows, votes_of_tree.astype(np.int64)] += 1.0
    known = labels >= 0
    counts[rows[known], labels[known]] = -1.0
    strongest = np.argmax(counts, axis=1)
    return np.where(counts[rows, strongest] < 0.0, -1, strongest)


def _share_wrong(
    forest: Forest,
    leaves: np.ndarray,
    votes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    n_threads: int,
) -> float:
    """The error of the predictions of the forest, by probabilities or by votes."""
    n = leaves.shape[1]
    sums = np.zeros((n, forest.kind_.n_values))

    def gather(tile: int) -> None:
        chosen = slice(tile * _ROWS_AT_ONCE, (tile + 1) * _ROWS_AT_ONCE)
        rows = np.arange(n)[chosen]
        for k, tree in enumerate(forest.trees_):
            if forest._is_hard():
                sums[rows, votes[k, chosen].astype(np.int64)] += 1.0
            else:
                add_values(tree, leaves[k, chosen], forest.kind_, None, sums[chosen])

    run_tiles(gather, -(-n // _ROWS_AT_ONCE), n_threads)
    return float((weight * (np.argmax(sums, axis=1) != labels)).sum())


def _moments(
    predicted: np.ndarray, mean: np.ndarray, weight: np.ndarray, n_threads: int
) -> tuple[float, float, float]:
    """(mean variance of a tree, variance of the mean of the trees, correlation)."""
    variances = np.empty(len(predicted))

    def measure(k: int) -> None:
        variances[k] = _variance(predicted[k], weight)

    run_tiles(measure, len(predicted), n_threads)
    spread, variance, n_trees = float(variances.mean()), _variance(mean, weight), len(predicted)
    rho = float("nan")
    if n_trees > 1 and spread > 0.0:
        rho = (n_trees * variance - spread) / ((n_trees - 1) * spread)
    return spread, variance, rho


def _variance(values: np.ndarray, weight: np.ndarray) -> float:
    return float((weight * (values - (weight * values).sum()) ** 2).sum())
