"""Loops over a tree from the leaves up: sums, and whether a node costs less as a leaf.

A node has a greater number than its parent, so a loop from the last number to the first visits
children before parents. Nothing is recursive, however deep the tree.
"""

from __future__ import annotations

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.grove.serve import TreeArrays

__all__ = ["ROUNDING", "cheaper_as_leaves", "child_sums", "running", "sums_of_leaves"]

# Differences below this share of a node's own cost are rounding: the node counts as tied.
ROUNDING = 1e-12


def sums_of_leaves(tree: TreeArrays, at_leaves: np.ndarray) -> np.ndarray:
    """The sum over the leaves below each node; `at_leaves` (N,) is zero at inner nodes."""
    sums = at_leaves.copy()
    _add_to_parents(read_only(tree.parent), sums)
    return sums


@kernel
def _add_to_parents(parent, sums):
    for node in range(len(parent) - 1, 0, -1):
        sums[parent[node]] += sums[node]


def child_sums(tree: TreeArrays, values: np.ndarray) -> np.ndarray:
    """The sum over the children of each node; 0 for a leaf."""
    return np.bincount(tree.parent[1:], weights=values[1:], minlength=len(tree))


def running(steps: np.ndarray) -> np.ndarray:
    """0, and the sums of the first 1, 2, ... steps."""
    return np.concatenate([np.zeros(1, steps.dtype), np.cumsum(steps)])


def cheaper_as_leaves(
    tree: TreeArrays, is_leaf: np.ndarray, cost: np.ndarray, split: np.ndarray, slack: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes cost no more as leaves than with their subtrees, and the cost of these subtrees.

    cost is that of each node as a leaf, split the cost of its split alone, slack a tolerance.
    """
    pruned, below = np.zeros(len(tree), dtype=bool), split.copy()
    _replace_bottom_up(read_only(tree.parent), read_only(is_leaf), read_only(cost),
                       read_only(slack), below, pruned)  # fmt: skip
    return pruned, below


@kernel
def _replace_bottom_up(parent, is_leaf, cost, slack, below, pruned):
    for node in range(len(parent) - 1, -1, -1):
        best = cost[node]
        if not is_leaf[node]:
            pruned[node] = cost[node] <= below[node] + slack[node]
            if not pruned[node]:
                best = below[node]
        if node > 0:
            below[parent[node]] += best
