"""Uncertainty of a regression forest: quantiles, variances and prediction intervals.

- `LeafSamples` stores the targets in each leaf, for quantile forests (Meinshausen 2006): the
  distribution of a row is the mean of the distributions in its leaves.
- `jackknife_variance` is the infinitesimal jackknife of bagging (Wager, Hastie and Efron 2014): how
  much the prediction varies from one training set to another.
- `Residuals` are errors of out-of-bag predictions, whose quantiles make conformal intervals: the
  rank of a new row's error among them is uniformly distributed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import kernel, run_tiles
from margrove.ensemble.forest.training_data import SampledRows
from margrove.grove.serve import Kind, PackedTree, leaves_of_some

__all__ = ["LeafSamples", "Residuals", "jackknife_variance", "keep_leaf_samples"]

_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class LeafSamples:
    """The targets of the training rows in each leaf.

    values    float64 (m,)  sorted
    starts    int64 (N + 1,) for each tree: ranks[starts[k] : starts[k + 1]] are in node k
    ranks     int32 for each tree: positions in `values`
    weights   float64 for each tree: shares of the leaf's weight
    """

    values: np.ndarray
    starts: list[np.ndarray]
    ranks: list[np.ndarray]
    weights: list[np.ndarray]

    def quantiles(self, leaves: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Quantiles of the rows with these leaves, int64 (n, n_trees): (n, n_quantiles)."""
        total = np.zeros((len(leaves), len(wanted)))
        longest = sum(int(np.diff(starts).max(initial=0)) for starts in self.starts)
        offsets = np.concatenate([[0], np.cumsum([len(ranks) for ranks in self.ranks])])
        heads = np.concatenate([[0], np.cumsum([len(starts) for starts in self.starts])])
        _quantiles(
            leaves, np.concatenate(self.starts), heads.astype(np.int64), np.concatenate(self.ranks),
            np.concatenate(self.weights), offsets.astype(np.int64), self.values, wanted,
            np.empty(longest, np.int64), np.empty(longest), total,
        )  # fmt: skip
        return total


def keep_leaf_samples(
    trees: list[PackedTree],
    kind: Kind,
    X: Any,
    order: np.ndarray,
    y: np.ndarray,
    weights_of: Callable[[int], np.ndarray],
    n_threads: int,
) -> LeafSamples:
    """The targets in each leaf; `y` and `weights_of(tree)` (m,) are for the rows `order`."""
    sorting = np.argsort(y, kind="stable")
    rank = np.empty(len(y), np.int32)
    rank[sorting] = np.arange(len(y))
    found: list[Any] = [None] * len(trees)

    def place(number: int) -> None:
        tree, weight = trees[number], weights_of(number)
        rows = np.flatnonzero(weight > 0)
        leaf_of_row = np.empty(X.shape[0], np.int32)
        leaves_of_some(tree, X, order[rows], kind, leaf_of_row)
        leaves = leaf_of_row[order[rows]]
        by_leaf = np.argsort(leaves, kind="stable")
        counts = np.bincount(leaves, minlength=len(tree))
        mass = np.bincount(leaves, weights=weight[rows], minlength=len(tree))
        chosen = rows[by_leaf]
        found[number] = (
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            rank[chosen],
            weight[chosen] / mass[leaves[by_leaf]],
        )

    run_tiles(place, len(trees), n_threads)
    starts, ranks, weights = zip(*found, strict=True)
    return LeafSamples(y[sorting], list(starts), list(ranks), list(weights))


@kernel
def _quantiles(leaves, starts, heads, ranks, weights, offsets, values, wanted, some, mass, found):
    """found[i, q] = the smallest value with a share wanted[q] of the weight at or below it."""
    n_trees = leaves.shape[1]
    for i in range(len(leaves)):
        size = 0
        for t in range(n_trees):
            node = heads[t] + leaves[i, t]
            for p in range(starts[node], starts[node + 1]):
                some[size] = ranks[offsets[t] + p]
                mass[size] = weights[offsets[t] + p]
                size += 1
        order = np.argsort(some[:size])
        for q in range(len(wanted)):
            aim = wanted[q] * n_trees * (1.0 - 1e-12)
            below = 0.0
            value = values[some[order[size - 1]]]
            for k in range(size):
                below += mass[order[k]]
                if below >= aim:
                    value = values[some[order[k]]]
                    break
            found[i, q] = value


def jackknife_variance(
    sampled: SampledRows, n_trees: int, values: np.ndarray, n_threads: int
) -> np.ndarray:
    """The variance of the mean prediction of trees, (n,); `values` (n, n_trees) are predictions.

    The bias due to the finite number of trees is subtracted; the result is at least 0.
    """
    weight = np.ones(len(sampled.rows)) if sampled.weight is None else sampled.weight
    centred = values - values.mean(axis=1, keepdims=True)
    step = max(1, _CELLS_AT_ONCE // max(len(values), n_trees))
    n_tiles = -(-len(weight) // step)
    drawn = np.stack([sampled.multiplicities(k) for k in range(n_trees)])
    sums = np.zeros((n_tiles, len(values)))

    def add(tile: int) -> None:
        rows = slice(tile * step, (tile + 1) * step)
        counts = drawn[:, rows].astype(np.float64)
        counts -= counts.mean(axis=0)
        covariance = centred @ counts / n_trees
        sums[tile] = (covariance**2 / weight[rows]).sum(axis=1)

    run_tiles(add, n_tiles, n_threads)
    raw = sums.sum(axis=0)
    noise = len(weight) / n_trees * centred.var(axis=1)
    return np.asarray(np.maximum(raw - noise, 0.0))


@dataclass(frozen=True)
class Residuals:
    """Sorted errors of out-of-bag predictions; `relative`: divided by the spread of the trees."""

    plain: np.ndarray
    relative: np.ndarray
    least_spread: float

    @classmethod
    def of(cls, errors: np.ndarray, spread: np.ndarray) -> Residuals:
        """From errors and spreads (n,); spreads below 1 % of their mean are replaced by it."""
        least = 0.01 * float(np.mean(spread)) if len(spread) else 0.0
        scale = np.maximum(spread, least)
        relative = errors / np.where(scale > 0.0, scale, 1.0)
        return cls(np.sort(errors), np.sort(relative), least)

    def bounds(self, confidence: float, *, local: bool) -> tuple[float, float]:
        """What to add to a prediction for a conformal interval: a low and a high residual."""
        ordered = self.relative if local else self.plain
        n = len(ordered)
        tail = 0.5 * (1.0 - confidence)
        low = int(np.floor(tail * (n + 1))) - 1
        high = int(np.ceil((1.0 - tail) * (n + 1))) - 1
        if low < 0 or high >= n:
            raise ValueError(
                f"confidence={confidence:g} needs more than {n} out-of-bag residuals. "
                "Use a lower confidence, or train on more rows."
            )
        return float(ordered[low]), float(ordered[high])
