"""Reasons not to split a node, asked from the root down.

A node that is not split has nothing below it, and how others are split does not depend on it. So
these rules are applied to the grown tree: the result is the tree that would have been stopped.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from margrove.grove.prune import child_sums
from margrove.grove.serve import LEAF, TreeArrays, by_output, subtree

__all__ = ["stop_at_chance", "stop_at_error", "stop_without_improvement"]


def stop_at_chance(
    tree: TreeArrays, significance: float, n_classes: list[int] | None
) -> TreeArrays:
    """Only splits that chance would make as well less often than `significance`.

    For classes Pearson's chi-square test of the branches against the classes (of several outputs
    the most significant), for numbers the F-test of the branches' means.
    """
    inner = np.flatnonzero(tree.kind != LEAF)
    p_values = np.ones(len(tree))
    for node in inner.tolist():
        children = tree.children_of(node)
        if n_classes is None:
            p_values[node] = _chance_of_means(tree, node, children)
        else:
            p_values[node] = _chance_of_shares(tree, node, children, n_classes)
    return subtree(tree, (tree.kind != LEAF) & (p_values > significance))


def _chance_of_shares(
    tree: TreeArrays, node: int, children: np.ndarray, n_classes: list[int]
) -> float:
    found = []
    start = 0
    for size in n_classes:
        share = tree.value[node, start : start + size]
        present = share > 0.0
        seen = tree.value[children, start : start + size][:, present]
        counts = seen * tree.weight[children][:, None]
        expected = share[present] * tree.weight[children][:, None]
        statistic = float(((counts - expected) ** 2 / expected).sum())
        freedom = (len(children) - 1) * (int(present.sum()) - 1)
        found.append(float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0)
        start += size
    return min(found)


def _chance_of_means(tree: TreeArrays, node: int, children: np.ndarray) -> float:
    between = len(children) - 1
    within = float(tree.weight[node]) - len(children)
    left = float((tree.weight[children] * tree.impurity[children]).sum())
    if within <= 0.0:
        return 1.0
    if left <= 0.0:
        return 0.0 if tree.decrease[node] > 0.0 else 1.0
    return float(stats.f.sf((tree.decrease[node] / between) / (left / within), between, within))


def stop_at_error(tree: TreeArrays, max_error: float, n_classes: list[int] | None) -> TreeArrays:
    """No split of a node whose own training error is at most `max_error`.

    The share of rows outside the largest class (of several outputs the mean), or the impurity.
    """
    error = tree.impurity
    if n_classes is not None:
        error = np.mean(
            [1.0 - shares.max(axis=1) for shares in by_output(tree.value, n_classes)], axis=0
        )
    return subtree(tree, (tree.kind != LEAF) & (error <= max_error))


def stop_without_improvement(tree: TreeArrays, losses: np.ndarray) -> TreeArrays:
    """Only splits that lower the loss on rows that were held out.

    losses (N,): what each node would lose as a leaf, see `held_out_losses`.
    """
    return subtree(tree, (tree.kind != LEAF) & ~(child_sums(tree, losses) < losses))
