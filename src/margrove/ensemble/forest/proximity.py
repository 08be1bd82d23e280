"""Proximities of rows: the share of trees in which they are in the same leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from margrove._runtime import require_memory, resolve_n_jobs, run_tiles
from margrove.ensemble.forest.evaluation_data import (
    read_rows,
    require_forest,
    require_training_table,
    sampled_rows,
)
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.forest.importance_kernels import ROWS_OF_A_TILE, count_shared, group_by_leaf
from margrove.ensemble.forest.training_data import SampledRows
from margrove.exceptions import InvalidDataError

__all__ = ["proximities"]

_ROWS_AT_ONCE = 128
_MOST_STEPS = 3e7  # of a thread in a region: 50 ms


def proximities(forest: Any, X: Any, Y: Any = None, *, oob: bool = False) -> np.ndarray:
    """The share of trees in which two rows are in the same leaf.

    This is a similarity that the forest has learnt: it depends on the features that predict y, and
    not on their scales. 1 - proximity is a dissimilarity for clustering, multidimensional scaling
    or outlier detection, also for tables with labels and missing values.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
    X : array-like, sparse matrix or dataframe of shape (n, n_features)
    Y : the same of shape (m, n_features), optional
        By default X.
    oob : bool, default=False
        X is the training table, and only trees count that have seen neither of the two rows, nor a
        row equal to them. (A tree separates the rows that it was grown on into different leaves.)

    Returns
    -------
    ndarray of shape (n, m)
        From 0 to 1. With `oob`, NaN for pairs of which every tree has seen at least one.

    Examples
    --------
    >>> from margrove import RandomForestClassifier
    >>> from margrove.datasets import load_iris
    >>> from margrove import proximities
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> alike = proximities(forest, X)
    >>> alike.shape, float(alike[0, 0]), float(alike[0, 149])
    ((150, 150), 1.0, 0.0)
    >>> within = proximities(forest, X[y == 1]).mean()
    >>> bool(within > 5 * proximities(forest, X[y == 1], X[y == 2]).mean())
    True
    """
    if not isinstance(oob, (bool, np.bool_)):
        raise InvalidParameterError(
            f"oob of proximities must be True or False. Got {oob!r} instead."
        )
    require_forest(forest, "proximities")
    if oob and Y is not None:
        raise ValueError(
            "oob=True compares the rows of the training table with each other. Leave out Y or oob."
        )
    sampled = sampled_rows(forest, "proximities with oob=True") if oob else None
    rows = read_rows(forest, X)
    if sampled is not None and rows.shape[0] != sampled.n_rows:
        raise InvalidDataError(
            "proximities with oob=True need the table that the forest was trained on, which has "
            f"{sampled.n_rows} rows. X has {rows.shape[0]}."
        )
    if sampled is not None:
        require_training_table(forest, sampled, rows)
    others = rows if Y is None else read_rows(forest, Y)
    n, m, n_trees = rows.shape[0], others.shape[0], len(forest.trees_)
    require_memory(
        8.0 * n * m + (8.0 if oob else 4.0) * n_trees * (n + m),
        f"The proximities of {n} rows and {m}, in {n_trees} trees,",
        "Take fewer rows at a time: proximities(forest, X[:1000], X).",
    )
    n_threads = resolve_n_jobs(forest.n_jobs, unset="all")
    leaves = forest._leaves_by_tree(rows)
    if sampled is not None:
        leaves[_seen(sampled, n_trees, n_threads)] = -1
    leaves_of_others = leaves if Y is None else forest._leaves_by_tree(others)
    return _shares(forest, leaves, leaves_of_others, n_threads)


def _seen(sampled: SampledRows, n_trees: int, n_threads: int) -> np.ndarray:
    """Whether each tree has seen each row, or one equal to it, bool (T, n)."""
    places = sampled.places
    seen = np.zeros((n_trees, len(places)), dtype=bool)
    known = places >= 0

    def look(k: int) -> None:
        seen[k, known] = (sampled.multiplicities(k) > 0)[places[known]]

    run_tiles(look, n_trees, n_threads)
    return seen


def _shares(
    forest: Forest, leaves: np.ndarray, leaves_of_others: np.ndarray, n_threads: int
) -> np.ndarray:
    """Proximities (n, m) from the leaves (T, n) and (T, m); leaves below 0 do not count."""
    n_trees, m = leaves_of_others.shape
    first = np.concatenate([[0], np.cumsum([len(tree) + 1 for tree in forest.trees_])])
    begins = np.zeros(int(first[-1]), np.int64)
    order = np.empty((n_trees, m), np.int32)
    group_by_leaf(n_trees, n_threads, leaves_of_others, first, begins, order)
    n, is_oob = leaves.shape[1], min(leaves.min(), leaves_of_others.min()) < 0
    shares, divisor = np.zeros((n, m)), 1.0 if is_oob else float(n_trees)
    per_row = m + np.square(np.diff(begins).clip(0), dtype=np.float64).sum() / max(m, 1)
    at_once = n_threads * max(ROWS_OF_A_TILE, int(_MOST_STEPS / max(per_row, 1.0)))
    for row in range(0, n, at_once):
        block = shares[row : row + at_once]
        n_tiles = -(-len(block) // ROWS_OF_A_TILE)
        count_shared(n_tiles, n_threads, row, leaves, begins, first, order, divisor, block)
    if not is_oob:
        return shares
    known = (leaves_of_others >= 0).astype(np.float32)

    def divide(tile: int) -> None:
        rows = slice(tile * _ROWS_AT_ONCE, (tile + 1) * _ROWS_AT_ONCE)
        # whole numbers: exact in any order
        of_both = (leaves[:, rows] >= 0).astype(np.float32).T @ known
        with np.errstate(invalid="ignore"):
            shares[rows] /= of_both

    run_tiles(divide, -(-n // _ROWS_AT_ONCE), n_threads)
    return shares
