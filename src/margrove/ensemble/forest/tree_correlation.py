"""Why a forest is better than its trees: how strong they are, and how much they err together.

With s_b(i) what tree b gets out of row i, sigma^2 the mean over the trees of the variance of s_b
over the rows, and rho the mean covariance of two different trees divided by sigma^2, the variance
of the mean of B trees is

    rho sigma^2 + (1 - rho) sigma^2 / B

which is an identity, not an approximation. More trees take away the second term only; choosing
among few features in each split lowers rho.

    numbers   s_b(i) = prediction - target, the residual. Then
              mean squared error of the forest  =  bias^2 + variance of the forest's residual
              mean squared error of a tree      =  that of the forest + ambiguity
              where the ambiguity is the mean square of what trees differ from the forest
              (Krogh and Vedelsby 1995).
    classes   s_b(i) = [tree is right] - [tree votes for the strongest wrong class], the raw margin
              (Breiman 2001, definition 4). Its mean over trees and rows is the strength s, and a
              large forest errs on at most rho (1 - s^2) / s^2 of the rows (theorem 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import check_weights, moderate
from margrove._runtime import require_memory, resolve_n_jobs, run_tiles
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.forest.studied_rows import (
    StudiedTargets,
    leaves_by_tree,
    predictions_of_leaves,
    read_rows,
    read_targets,
    require_forest,
    squares_of_targets,
)
from margrove.grove.serve import add_values
from margrove.grove.table import power_of_two_near

__all__ = ["TreeCorrelation", "tree_correlation"]

_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class TreeCorrelation:
    """How much the trees of a forest err, and how much of it together.

    Attributes
    ----------
    n_trees, n_rows : int
    tree_error : float
        Mean over the trees: misclassified share of the rows, or mean squared error.
    forest_error : float
        The same of the forest.
    correlation : float
        rho, between two trees, of their residuals or raw margins: mean covariance of a pair by mean
        variance of a tree. NaN for one tree, or where no tree varies.
    tree_variance : float
        sigma^2: the variance over the rows of a tree's residual or raw margin, mean over the trees.
    forest_variance : float
        The same of the mean over the trees: rho sigma^2 + (1 - rho) sigma^2 / n_trees.
    bias : float or None
        Of numbers: the mean of prediction - target. forest_error is bias^2 + forest_variance.
    ambiguity : float or None
        Of numbers: the mean square of what trees differ from the forest, tree_error - forest_error.
    strength : float or None
        Of classes: the mean raw margin s.
    bound : float or None
        Of classes: rho (1 - s^2) / s^2, which the error of a large forest is below; inf where the
        strength is not above 0.
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
        """The variance that a forest of so many such trees would have; that of inf is the limit."""
        own = self.correlation * self.tree_variance
        return own + (self.tree_variance - own) / n_trees

    def __repr__(self) -> str:
        names = ("tree_error", "forest_error", "correlation", "tree_variance", "forest_variance",
                 "bias", "ambiguity", "strength", "bound")  # fmt: skip
        known = [(name, getattr(self, name)) for name in names]
        figures = ", ".join(f"{name}={value:.4g}" for name, value in known if value is not None)
        return f"TreeCorrelation(n_trees={self.n_trees}, n_rows={self.n_rows}, {figures})"


def tree_correlation(forest: Any, X: Any, y: Any, *, sample_weight: Any = None) -> TreeCorrelation:
    """How good a forest's trees are, and how alike, on given rows.

    Use rows that the forest has not seen: on others trees are too good, and too alike.

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
    >>> from margrove.ensemble.forest.importances import tree_correlation
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
            f"tree_correlation is for one output, and this {type(forest).__name__} has "
            f"{forest.n_outputs_}. Fit a forest for each."
        )
    rows = read_rows(forest, X)
    n, n_trees = rows.shape[0], len(forest.trees_)
    targets = read_targets(forest, y, n)
    weight = moderate(check_weights(sample_weight, n))
    weight = weight / weight.max()
    weight /= weight.sum()
    require_memory(
        20.0 * n * n_trees,
        f"What {n_trees} trees say of {n} rows",
        "Use fewer rows: they need not be many.",
    )
    n_threads = resolve_n_jobs(forest.n_jobs, unset="all")
    leaves = leaves_by_tree(forest, rows, n_threads)
    said = np.empty((n_trees, n))

    def ask(k: int) -> None:
        said[k] = predictions_of_leaves(forest.trees_[k], forest.kind_, leaves[k])[:, 0]

    run_tiles(ask, n_trees, n_threads)
    if targets.is_class:
        wrong = _share_wrong(forest, leaves, said, targets.labels[:, 0], weight, n_threads)
        return _of_classes(forest, said, targets.labels[:, 0], weight, wrong, n_threads)
    return _of_numbers(said, targets, weight, n_threads)


def _of_numbers(
    said: np.ndarray, targets: StudiedTargets, weight: np.ndarray, n_threads: int
) -> TreeCorrelation:
    scale = max(targets.scale, power_of_two_near(said))  # trees may say more than these targets
    own = targets.numbers[:, 0] * (targets.scale / scale)
    said /= scale
    said -= own
    mean = said.mean(axis=0)
    spread, variance, rho = _moments(said, mean, weight, n_threads)
    squares, ambiguity = np.empty(len(said)), np.empty(len(said))

    def measure(k: int) -> None:
        squares[k] = (weight * said[k] ** 2).sum()
        ambiguity[k] = (weight * (said[k] - mean) ** 2).sum()

    run_tiles(measure, len(said), n_threads)
    figures = [squares.mean(), (weight * mean**2).sum(), spread, variance, ambiguity.mean()]
    tree, forest, spread, variance, apart = squares_of_targets(np.array(figures), scale).tolist()
    return TreeCorrelation(
        n_trees=said.shape[0],
        n_rows=said.shape[1],
        tree_error=tree,
        forest_error=forest,
        correlation=rho,
        tree_variance=spread,
        forest_variance=variance,
        bias=float((weight * mean).sum() * scale),
        ambiguity=apart,
    )


def _of_classes(
    forest: Forest,
    votes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    wrong: float,
    n_threads: int,
) -> TreeCorrelation:
    """`votes` (T, n) become raw margins."""
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
    """The wrong class with most votes, of equal ones the first; -1 where there is no other."""
    rows = np.arange(votes.shape[1])
    counts = np.zeros((len(rows), n_classes))
    for own in votes:
        counts[rows, own.astype(np.int64)] += 1.0
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
    """Of the forest's own predictions, by shares or by votes."""
    n = leaves.shape[1]
    sums = np.zeros((n, forest.kind_.n_values))

    def gather(tile: int) -> None:
        part = slice(tile * _ROWS_AT_ONCE, (tile + 1) * _ROWS_AT_ONCE)
        rows = np.arange(n)[part]
        for k, tree in enumerate(forest.trees_):
            if forest._is_hard():
                sums[rows, votes[k, part].astype(np.int64)] += 1.0
            else:
                add_values(tree, leaves[k, part], forest.kind_, None, sums[part])

    run_tiles(gather, -(-n // _ROWS_AT_ONCE), n_threads)
    return float((weight * (np.argmax(sums, axis=1) != labels)).sum())


def _moments(
    said: np.ndarray, mean: np.ndarray, weight: np.ndarray, n_threads: int
) -> tuple[float, float, float]:
    """(mean variance of a tree, variance of their mean, correlation)."""
    variances = np.empty(len(said))

    def measure(k: int) -> None:
        variances[k] = _variance(said[k], weight)

    run_tiles(measure, len(said), n_threads)
    spread, variance, n_trees = float(variances.mean()), _variance(mean, weight), len(said)
    rho = float("nan")
    if n_trees > 1 and spread > 0.0:
        rho = (n_trees * variance - spread) / ((n_trees - 1) * spread)
    return spread, variance, rho


def _variance(values: np.ndarray, weight: np.ndarray) -> float:
    return float((weight * (values - (weight * values).sum()) ** 2).sum())
