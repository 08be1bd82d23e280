"""Cost-complexity pruning: the nested trees between the full tree and its root.

    cost_complexity_path         alpha, impurity and leaves of each of them
    prune_by_cost_complexity     the tree that is best at a given alpha
    leaves_along, losses_along   leaves and validation losses at many alphas, in one pass

All of it takes O(N log N) for N nodes, however deep the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.grove.prune.bottom_up import ROUNDING, child_sums, running
from margrove.grove.serve import LEAF, TreeArrays, subtree

__all__ = [
    "CostComplexityPath",
    "cost_complexity_path",
    "last_within",
    "leaves_along",
    "losses_along",
    "prune_by_cost_complexity",
]


@dataclass(frozen=True)
class CostComplexityPath:
    """The nested trees of weakest-link pruning, from the full tree to its root.

    ccp_alphas    float64 (k,)  ascending from 0: the tree is the best one from this alpha on
    impurities    float64 (k,)  of the leaves of each tree, weighted by their shares of the rows
    n_leaves      int64 (k,)
    """

    ccp_alphas: np.ndarray
    impurities: np.ndarray
    n_leaves: np.ndarray


@dataclass(frozen=True)
class _WeakestLinks:
    """When each node is pruned, as alpha grows.

    alpha     float64 (N,)  NaN for leaves, and for nodes that are pruned with a node above them
    rise      float64 (N,)  of the leaves' impurity, by pruning the node at its alpha
    saving    int64 (N,)  by how many leaves pruning the node makes the tree smaller
    group     int64 (N,)  the node that it is pruned with, mostly itself
    order     int64 (k,)  nodes with an alpha, in the order of pruning
    """

    alpha: np.ndarray
    rise: np.ndarray
    saving: np.ndarray
    group: np.ndarray
    order: np.ndarray

    def n_pruned(self, ccp_alphas: np.ndarray) -> np.ndarray:
        """How many of `order` are pruned at each alpha; none at 0, as in scikit-learn."""
        done = np.searchsorted(self.alpha[self.order], ccp_alphas, side="right")
        return np.where(ccp_alphas == 0.0, 0, done)


def cost_complexity_path(tree: TreeArrays) -> CostComplexityPath:
    """Weakest-link pruning (Breiman, Friedman, Olshen and Stone 1984, chapter 3), step by step.

    The cost of a node is R(t) = its share of the weight times its impurity, that of a tree
    R_alpha(T) = sum of R over its leaves + alpha * number of leaves. Each step prunes the node with
    the smallest (R(t) - R(T_t)) / (leaves of T_t - 1), where T_t is the subtree below t, and is an
    entry of the path. These are the numbers of scikit-learn, up to rounding: here alphas never
    decrease by rounding, and a node is pruned with the node above it if the two are tied.
    """
    links = _weakest_links(tree)
    leaves = tree.kind == LEAF
    return CostComplexityPath(
        ccp_alphas=np.concatenate([[0.0], links.alpha[links.order]]),
        impurities=_costs(tree)[leaves].sum() + running(links.rise[links.order]),
        n_leaves=leaves.sum() - running(links.saving[links.order]),
    )


def prune_by_cost_complexity(tree: TreeArrays, ccp_alpha: float) -> TreeArrays:
    """The tree of the path with the greatest alpha that is at most `ccp_alpha`.

    It has the least R_alpha of all prunings, and is the smallest of those that have. As in
    scikit-learn, 0 prunes nothing; any positive number removes splits that gain nothing.
    """
    is_number = isinstance(ccp_alpha, Real) and not isinstance(ccp_alpha, bool)
    if not is_number or not ccp_alpha >= 0:
        raise ValueError(
            f"ccp_alpha must be a number that is at least 0. Got {ccp_alpha!r}. "
            "cost_complexity_path lists those at which the tree changes."
        )
    links = _weakest_links(tree)
    pruned = np.zeros(len(tree), dtype=bool)
    pruned[links.order[: links.n_pruned(np.array([float(ccp_alpha)]))[0]]] = True
    return subtree(tree, pruned)


def leaves_along(tree: TreeArrays, alphas: np.ndarray) -> np.ndarray:
    """int64 (k,): how many leaves the tree pruned with each alpha has."""
    links = _weakest_links(tree)
    left: np.ndarray = tree.n_leaves - running(links.saving[links.order])
    return left[links.n_pruned(alphas)]


def losses_along(tree: TreeArrays, losses: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """float64 (k,): the loss of the tree pruned with each alpha.

    losses : float64 (N,)
        Of each node if it were a leaf, as `validation_losses` returns them.

    Removing one split changes the loss by that of the node minus that of its children. Pruning a
    node removes all splits of its group.
    """
    links = _weakest_links(tree)
    by_split = np.where(tree.kind == LEAF, 0.0, losses - child_sums(tree, losses))
    change = np.bincount(links.group, weights=by_split, minlength=len(tree))[links.order]
    total: np.ndarray = losses[tree.kind == LEAF].sum() + running(change)
    return total[links.n_pruned(alphas)]


def last_within(errors: np.ndarray, limit: float) -> int:
    """The last tree of a path, hence the smallest, whose error is at most `limit`."""
    return int(np.flatnonzero(errors <= limit * (1 + ROUNDING))[-1])


def _costs(tree: TreeArrays) -> np.ndarray:
    """R of each node."""
    costs: np.ndarray = tree.weight / tree.weight[0] * tree.impurity
    return costs


def _weakest_links(tree: TreeArrays) -> _WeakestLinks:
    costs = _costs(tree)
    rise = costs - child_sums(tree, costs)
    saving = tree.n_children.astype(np.int64) - 1
    alpha = np.full(len(tree), np.nan)
    group = np.arange(len(tree))
    _pool(read_only(tree.parent), read_only(tree.kind == LEAF), read_only(ROUNDING * costs),
          rise, saving, alpha, group)  # fmt: skip
    pruned = np.flatnonzero(~np.isnan(alpha))
    order = pruned[np.argsort(alpha[pruned], kind="stable")]
    return _WeakestLinks(alpha, rise, saving, group, order)


@kernel
def _pool(parent, is_leaf, slack, rise, saving, alpha, group):
    """Find the alpha of each node, children first.

    Removing one split raises the cost by `rise` and saves `saving` leaves. If a node below has an
    alpha at least as great as this node's rise / saving, it is still in the tree when this node is
    pruned: the two are pooled, as in isotonic regression. The other nodes below have smaller alphas
    and are kept in a skew heap, greatest first (Sleator and Tarjan 1986), which is merged with
    others in O(log N).
    """
    n = len(parent)
    heap = np.full(n, -1)
    left = np.full(n, -1)
    right = np.full(n, -1)
    for node in range(n - 1, -1, -1):
        if is_leaf[node]:
            continue
        top = heap[node]
        while top >= 0 and rise[node] <= saving[node] * alpha[top] + slack[node]:
            rise[node] += rise[top]
            saving[node] += saving[top]
            alpha[top] = np.nan
            group[top] = node
            top = _merged(left[top], right[top], alpha, left, right)
        is_gain = rise[node] > slack[node]
        alpha[node] = rise[node] / max(saving[node], 1) if is_gain else 0.0
        left[node] = top  # these have smaller alphas
        right[node] = -1
        if node > 0:
            above = parent[node]
            heap[above] = _merged(heap[above], node, alpha, left, right)
    for node in range(n):  # the node that a node was pooled with may have been pooled later
        group[node] = group[group[node]]


@kernel
def _merged(a, b, alpha, left, right):
    """Two skew heaps as one; -1 is an empty heap."""
    if a < 0:
        return b
    if b < 0:
        return a
    if alpha[b] > alpha[a]:
        a, b = b, a
    top = a
    while True:
        rest = right[a]
        right[a] = left[a]
        if rest < 0:
            left[a] = b
            return top
        if alpha[b] > alpha[rest]:
            rest, b = b, rest
        left[a] = rest
        a = rest
