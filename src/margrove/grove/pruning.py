"""Pruning: which nodes of a grown tree become leaves, and where to stop.

Grow the tree large, then trim it: a split that gains nothing may have splits below it that gain
all (XOR), so stopping early would never find them.

    method             what is made small                                      needs
    cost_complexity    impurity of the leaves + ccp_alpha * number of leaves   ccp_alpha
    reduced_error      error on rows that the tree was not grown on            X, y
    pessimistic        an upper confidence limit of the error                  confidence
    mdl                bits that tell the tree, and the classes given the tree
    nodes              chosen nodes become leaves                              nodes
    simplify           splits whose leaves all predict the same

Functions of `TreeArrays` come first, `prune` and `cross_validated_alpha` for estimators at the end.
A node's number is greater than its parent's, so that one loop downwards over the numbers meets
children before parents: nothing is recursive, and all of it takes O(N log N) for N nodes, however
deep the tree.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv, gammaln
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from margrove._data import check_labels, check_targets, check_weights, read_only, seed_of
from margrove._jit import kernel
from margrove.exceptions import NotFittedError
from margrove.grove.tree_arrays import (
    LEAF,
    OBLIQUE,
    SUBSET,
    THRESHOLD,
    TreeArrays,
    branch_of,
    leaves_of,
    subtree,
)

__all__ = [
    "CostComplexityPath",
    "CrossValidatedAlpha",
    "ReducedErrorPruning",
    "cost_complexity_path",
    "cross_validated_alpha",
    "minimum_description_length",
    "pessimistic",
    "prune",
    "prune_by_cost_complexity",
    "prune_nodes",
    "reduced_error",
    "simplify",
    "validation_losses",
]

# Differences below this share of a node's own cost are rounding: the node counts as tied.
_ROUNDING = 1e-12


# -- cost-complexity -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CostComplexityPath:
    """The nested trees of weakest-link pruning, from the whole tree to its root.

    ccp_alphas    float64 (k,)  ascending from 0: the tree is the best one from this alpha on
    impurities    float64 (k,)  of the leaves of each tree, weighted with their shares of the rows
    n_leaves      int64 (k,)
    """

    ccp_alphas: np.ndarray
    impurities: np.ndarray
    n_leaves: np.ndarray


@dataclass(frozen=True)
class _WeakestLinks:
    """When each node is pruned, as alpha grows.

    alpha     float64 (N,)  NaN for leaves, and for nodes that go together with a node above
    rise      float64 (N,)  of the leaves' impurity, by pruning the node at its alpha
    saving    int64 (N,)  leaves fewer
    group     int64 (N,)  the node it goes together with, mostly itself
    order     int64 (k,)  nodes with an alpha, as they are pruned
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
    entry of the path. These are scikit-learn's numbers, up to rounding: alphas that are equal but
    for rounding never descend here, and a node goes with the one above it where the two are tied.
    """
    links = _weakest_links(tree)
    leaves = tree.kind == LEAF
    return CostComplexityPath(
        ccp_alphas=np.concatenate([[0.0], links.alpha[links.order]]),
        impurities=_costs(tree)[leaves].sum() + _running(links.rise[links.order]),
        n_leaves=leaves.sum() - _running(links.saving[links.order]),
    )


def prune_by_cost_complexity(tree: TreeArrays, ccp_alpha: float) -> TreeArrays:
    """The tree of the path with the greatest alpha that is at most `ccp_alpha`.

    It has the least R_alpha of all prunings, and is the smallest of those that have. As in
    scikit-learn, 0 prunes nothing; any positive number removes splits that gain nothing.
    """
    if not _is_real(ccp_alpha) or not ccp_alpha >= 0:
        raise ValueError(
            f"ccp_alpha must be a number that is at least 0. Got {ccp_alpha!r}. "
            "cost_complexity_path lists those at which the tree changes."
        )
    links = _weakest_links(tree)
    pruned = np.zeros(len(tree), dtype=bool)
    pruned[links.order[: links.n_pruned(np.array([float(ccp_alpha)]))[0]]] = True
    return subtree(tree, pruned)


def _costs(tree: TreeArrays) -> np.ndarray:
    """R of each node."""
    costs: np.ndarray = tree.weight / tree.weight[0] * tree.impurity
    return costs


def _weakest_links(tree: TreeArrays) -> _WeakestLinks:
    costs = _costs(tree)
    rise = costs - _child_sums(tree, costs)
    saving = tree.n_children.astype(np.int64) - 1
    alpha = np.full(len(tree), np.nan)
    group = np.arange(len(tree))
    _pool(read_only(tree.parent), read_only(tree.kind == LEAF), read_only(_ROUNDING * costs),
          rise, saving, alpha, group)  # fmt: skip
    pruned = np.flatnonzero(~np.isnan(alpha))
    order = pruned[np.argsort(alpha[pruned], kind="stable")]
    return _WeakestLinks(alpha, rise, saving, group, order)


@kernel
def _pool(parent, is_leaf, slack, rise, saving, alpha, group):
    """Find each node's alpha, children first.

    Let a split alone raise the cost by `rise` when undone, and save `saving` leaves. If a node
    below has an alpha as great as this node's rise / saving, then it is still there when this node
    goes: the two are pooled, as in isotonic regression. What is left below has smaller alphas and
    is kept in a skew heap, greatest first (Sleator and Tarjan 1986), which melds with others in
    O(log N).
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
            top = _meld(left[top], right[top], alpha, left, right)
        is_gain = rise[node] > slack[node]
        alpha[node] = rise[node] / max(saving[node], 1) if is_gain else 0.0
        left[node] = top  # none of these is as great
        right[node] = -1
        if node > 0:
            above = parent[node]
            heap[above] = _meld(heap[above], node, alpha, left, right)
    for node in range(n):  # what a node was pooled with may itself have been pooled later
        group[node] = group[group[node]]


@kernel
def _meld(a, b, alpha, left, right):
    """One skew heap of two; -1 is an empty one."""
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


# -- reduced error -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReducedErrorPruning:
    """What reduced-error pruning did, in order.

    tree        TreeArrays  what is left
    removed     int64 (k,)  nodes of the tree before, in the order in which they became leaves
    losses      float64 (k + 1,)  validation loss of the tree before, and after each removal
    n_leaves    int64 (k + 1,)
    """

    tree: TreeArrays
    removed: np.ndarray
    losses: np.ndarray
    n_leaves: np.ndarray


def reduced_error(tree: TreeArrays, losses: np.ndarray) -> ReducedErrorPruning:
    """Greedily remove the node that improves the validation loss most, until it would worsen.

    A removal that neither helps nor hurts is done: the tree gets smaller. Of equal ones the node
    with the greatest number comes first, so that a node comes before those above it. Greedy is
    not optimal: a node may go that helps more than either of its children, though less than both.

    losses : float64 (N,)
        Of each node if it were a leaf, summed over the validation rows that come by, such as
        `validation_losses` tells.

    The node that helps most is removed, so no node above it can help afterwards: at most it does
    no harm. Hence one pass over the nodes sorted by what their removal improves does the greedy
    work, and one over those left, children first, finds the harmless ones.
    """
    losses = _checked_losses(tree, losses)
    leaves = tree.kind == LEAF
    below = _sums_of_leaves(tree, np.where(leaves, losses, 0.0))
    gain = np.where(leaves, 0.0, below - losses)
    helpful = np.flatnonzero(~leaves & (gain > _ROUNDING * losses))[::-1]
    helpful = helpful[np.argsort(-gain[helpful], kind="stable")]
    pruned, gone = np.zeros(len(tree), dtype=bool), np.zeros(len(tree), dtype=bool)
    _remove_greedily(read_only(tree.parent), read_only(_ends(tree)), read_only(helpful),
                     pruned, gone)  # fmt: skip
    harmless, below = _replaced(
        tree, leaves | pruned, losses, np.zeros(len(tree)), _ROUNDING * losses
    )
    harmless &= ~gone
    later = np.flatnonzero(harmless)[::-1]
    removed = np.concatenate([helpful[pruned[helpful]], later])
    gain[later] = below[later] - losses[later]
    return ReducedErrorPruning(
        tree=subtree(tree, pruned | harmless),
        removed=removed,
        losses=losses[leaves].sum() - _running(gain[removed]),
        n_leaves=leaves.sum() - _running(_leaves_saved(tree, removed)),
    )


def _checked_losses(tree: TreeArrays, losses: Any) -> np.ndarray:
    losses = np.asarray(losses, dtype=np.float64)
    if losses.shape != (len(tree),) or not np.isfinite(losses).all():
        raise ValueError(
            f"losses must be finite and have one entry for each of the {len(tree)} nodes. Got "
            f"shape {losses.shape}. validation_losses(model, X, y) makes them."
        )
    return losses


@kernel
def _remove_greedily(parent, ends, order, pruned, gone):
    """Prune the nodes of `order` that have no pruned node above or below them."""
    has_pruned = np.zeros(len(parent), np.bool_)
    for node in order:
        if gone[node] or has_pruned[node]:
            continue
        pruned[node] = True
        for lower in range(node + 1, ends[node]):
            gone[lower] = True
        upper = parent[node]
        while upper >= 0 and not has_pruned[upper]:
            has_pruned[upper] = True
            upper = parent[upper]


def _leaves_saved(tree: TreeArrays, removed: np.ndarray) -> np.ndarray:
    """How many leaves fewer each removal made, given those before it."""
    leaves_below = _sums_of_leaves(tree, (tree.kind == LEAF).astype(np.float64)).astype(np.int64)
    saved = np.zeros(len(tree), np.int64)
    saved[removed] = leaves_below[removed] - 1
    _take_off_earlier(read_only(tree.parent), read_only(removed), saved)
    return saved[removed]


@kernel
def _take_off_earlier(parent, removed, saved):
    """Each removal hands what it saved in all to the nearest removed node above it."""
    n = len(parent)
    is_removed = np.zeros(n, np.bool_)
    for node in removed:
        is_removed[node] = True
    handed = np.zeros(n, np.int64)
    for node in range(n - 1, -1, -1):
        total = handed[node]
        if is_removed[node]:
            total, saved[node] = saved[node], saved[node] - total
        if node > 0:
            handed[parent[node]] += total


def validation_losses(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    is_class: bool | None = None,
    n_classes: Sequence[int] | None = None,
) -> np.ndarray:
    """The loss of each node if it were a leaf, summed over the rows that come by, float64 (N,).

    Weight of the misclassified rows for classes, squared errors for numbers; of several outputs
    the mean. A row whose value is missing and which takes all branches counts in each of them with
    its share. Labels that the model does not know are mistakes wherever they land.

    model : fitted decision tree, or TreeArrays
        For TreeArrays X holds the rows as trees walk them, y the numbers of the classes or the
        targets, `is_class` says which, and `n_classes` how many classes each output has, if there
        are several outputs.
    """
    if isinstance(model, TreeArrays):
        tree, rows = model, np.ascontiguousarray(X, dtype=np.float64)
        if is_class is None:
            raise ValueError("is_class must be True or False where the model is TreeArrays.")
        codes = np.asarray(y) if is_class else None
    else:
        tree, rows = _arrays_of(model), model._rows(X)
        is_class = bool(is_classifier(model))
        n_classes = _n_classes(model) if is_class else None
        codes = _codes(model, y, len(rows)) if is_class else None
    y = check_targets(y, len(rows), multi_output=True) if codes is None else codes
    answers = _predicted(tree, n_classes) if is_class else tree.value
    y = _table(y, len(rows), answers.shape[1])
    weight = check_weights(sample_weight, len(rows))
    row, leaf, share = _landings(tree, rows)
    y, weight = y[row], weight[row] * share
    loss = _mistakes if is_class else _squares
    parts = [loss(tree, leaf, own, y[:, k], weight) for k, own in enumerate(answers.T)]
    losses: np.ndarray = np.mean(parts, axis=0)
    return losses


def _table(y: np.ndarray, n_rows: int, n_outputs: int) -> np.ndarray:
    table = y.reshape(len(y), -1) if y.ndim else y
    if table.shape != (n_rows, n_outputs):
        raise ValueError(
            f"y must have a row for each of the {n_rows} rows of X, and a column for each output, "
            f"of which there are {n_outputs}. Got shape {y.shape}."
        )
    return table


def _mistakes(
    tree: TreeArrays, leaf: np.ndarray, answer: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Weight of the rows whose class is not the answer of the node, one answer after the other."""
    mistakes = np.zeros(len(tree))
    for code in np.unique(answer):
        wrong = codes != code
        at_leaves = np.bincount(leaf[wrong], weights=weight[wrong], minlength=len(tree))
        who = answer == code
        mistakes[who] = _sums_of_leaves(tree, at_leaves)[who]
    return mistakes


def _squares(
    tree: TreeArrays, leaf: np.ndarray, answer: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Squared errors from each node's weight, mean and spread of y, which add up exactly."""
    n = len(tree)
    total = np.bincount(leaf, weights=weight, minlength=n)
    mean = np.bincount(leaf, weights=weight * y, minlength=n) / np.where(total > 0, total, 1.0)
    spread = np.bincount(leaf, weights=weight * (y - mean[leaf]) ** 2, minlength=n)
    _merge_moments(read_only(tree.parent), total, mean, spread)
    squares: np.ndarray = spread + total * (mean - answer) ** 2
    return squares


@kernel
def _merge_moments(parent, total, mean, spread):
    """Chan, Golub and LeVeque 1983, equation 2.1: moments of all rows from those of parts."""
    for node in range(len(parent) - 1, 0, -1):
        if total[node] > 0:
            above = parent[node]
            both = total[above] + total[node]
            step = mean[node] - mean[above]
            spread[above] += spread[node] + step * step * total[above] * (total[node] / both)
            mean[above] += step * (total[node] / both)
            total[above] = both


def _landings(tree: TreeArrays, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, leaf and share of every arrival of a row, or of a part of it, at a leaf."""
    if not np.any((tree.missing_child < 0) & (tree.kind != LEAF)):
        return np.arange(len(X)), leaves_of(tree, X), np.ones(len(X))
    found = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for _ in range(2):  # count, then write
        n_found = _walk_shares(X, tree.kind, tree.feature, tree.threshold, tree.first_child,
                               tree.n_children, tree.children, tree.missing_child, tree.set_start,
                               tree.set_size, tree.words, tree.branches, tree.coef, tree.weight,
                               *found)  # fmt: skip
        if len(found[0]) < n_found:
            found = (np.empty(n_found, np.int64), np.empty(n_found, np.int64), np.empty(n_found))
    return found


@kernel
def _walk_shares(X, kind, feature, threshold, first_child, n_children, children, missing_child,
                 set_start, set_size, words, branches, coef, weight, rows, leaves,
                 shares):  # fmt: skip
    stack = np.empty(len(kind), np.int64)
    carried = np.empty(len(kind))
    n_found = 0
    for i in range(X.shape[0]):
        stack[0], carried[0], size = 0, 1.0, 1
        while size > 0:
            size -= 1
            node, share = stack[size], carried[size]
            while node >= 0 and kind[node] != LEAF:
                branch = branch_of(X[i], node, kind, feature, threshold, set_start, set_size,
                                   words, branches, coef)  # fmt: skip
                if branch < 0:
                    branch = missing_child[node]
                first = first_child[node]
                if branch >= 0:
                    node = children[first + branch]
                    continue
                total = 0.0
                for k in range(first, first + n_children[node]):
                    total += weight[children[k]]
                for k in range(first, first + n_children[node]):
                    stack[size] = children[k]
                    carried[size] = share * (weight[children[k]] / total)
                    size += 1
                node = -1
            if node >= 0:
                if n_found < len(rows):
                    rows[n_found], leaves[n_found], shares[n_found] = i, node, share
                n_found += 1
    return n_found


# -- bottom up: confidence limits and description length -----------------------------------------


def pessimistic(
    tree: TreeArrays, confidence: float = 0.25, *, tolerance: float = 0.1
) -> TreeArrays:
    """C4.5's pruning: compare upper confidence limits of the error (Quinlan 1993, chapter 4).

    Where E of the N training rows of a leaf are wrong, U(E, N) is the error rate at which E
    mistakes or fewer have the probability `confidence`; the leaf is charged N * U. From the bottom
    up, a node becomes a leaf if it is then charged at most what its branches are charged together,
    plus `tolerance`. A smaller confidence prunes more.

    U is the exact limit of the binomial distribution, a quantile of Beta(E + 1, N - E), which has
    a meaning for fractions of rows too. Quinlan's program approximates it between E = 0 and E = N:
    U(1, 16) is 0.160 here and 0.157 there. The tolerance of 0.1 is the program's, not the book's.
    Branches are replaced by leaves only: C4.5's other operation, raising a branch into the place
    of its parent, is not done, since it needs the training rows again.

    For classes, one output; weights count as numbers of rows.
    """
    if not _is_real(confidence) or not 0 < confidence < 1:
        raise ValueError(
            f"confidence must be between 0 and 1, both excluded. Got {confidence!r}. "
            "0.25 is usual; less prunes more."
        )
    if not _is_real(tolerance) or not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a number that is at least 0. Got {tolerance!r}.")
    _require_shares(tree, "pessimistic")
    charged = _pessimistic_errors(tree, float(confidence))
    pruned, _ = _replaced(
        tree, tree.kind == LEAF, charged, np.zeros(len(tree)), tolerance + _ROUNDING * charged
    )
    return subtree(tree, pruned)


def _pessimistic_errors(tree: TreeArrays, confidence: float) -> np.ndarray:
    """N * U(E, N) of each node."""
    n = tree.weight
    errors = n * np.clip(1.0 - tree.value.max(axis=1), 0.0, 1.0)
    right = n - errors
    limit = np.ones(len(tree))
    some = right > 0
    limit[some] = betaincinv(errors[some] + 1.0, right[some], 1.0 - confidence)
    return n * limit


def minimum_description_length(tree: TreeArrays, n_classes: int, n_features: int) -> TreeArrays:
    """The pruning that tells the classes of the training rows in the fewest bits.

    From the bottom up, a node becomes a leaf if its subtree takes at least as many bits (Mehta,
    Rissanen and Agrawal 1995, "MDL-based decision tree pruning"). With d features, k classes, n
    samples in a node, and n_c of them (their weight) of class c:

        tree    1 bit a node, leaf or not, and for each split
                threshold    log2 d + log2(n - 1)             which feature, between which rows
                subset       log2 d + log2(2 ** (s - 1) - 1)  s categories, at most n, in two parts
                multiway     log2 d                           its branches are the categories
                oblique      log2 C(d, m) + log2(sum_i=1..m C(n - 1, i))   m features; the second
                             sum counts the ways in which planes cut n points (Cover 1965)
        leaf    log2 [ Gamma(n + k/2) Gamma(1/2)^k / (Gamma(k/2) prod_c Gamma(n_c + 1/2)) ]

    The leaf's code is Krichevsky and Trofimov's (1981), which has no approximation in it and suits
    small leaves and fractions of rows. For large n it is the stochastic complexity, sum_c n_c
    log(n / n_c) + (k - 1)/2 log(n / 2 pi) + log(pi^(k/2) / Gamma(k/2)); the paper has n / 2 there.

    For classes, one output; weights count as numbers of rows.
    """
    _require_shares(tree, "mdl")
    if n_classes != tree.value.shape[1]:
        raise ValueError(
            f"n_classes must be {tree.value.shape[1]}, the classes of this tree. Got {n_classes!r}."
        )
    inner = tree.kind != LEAF
    used = 1 + max(int(tree.feature.max(initial=-1)), tree.coef.shape[1] - 1)
    if not _is_integer(n_features) or n_features < max(used, 1):
        raise ValueError(
            f"n_features must be the number of columns of X, at least {max(used, 1)}. "
            f"Got {n_features!r}."
        )
    bits = 1.0 + _class_bits(tree)
    pruned, _ = _replaced(
        tree, ~inner, bits, 1.0 + _split_bits(tree, int(n_features)), _ROUNDING * bits
    )
    return subtree(tree, pruned)


def _class_bits(tree: TreeArrays) -> np.ndarray:
    counts = tree.weight[:, None] * tree.value
    half = 0.5 * tree.value.shape[1]
    of_classes = (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=1)
    bits: np.ndarray = (gammaln(counts.sum(axis=1) + half) - gammaln(half) - of_classes) / np.log(2)
    return bits


def _split_bits(tree: TreeArrays, n_features: int) -> np.ndarray:
    bits = np.full(len(tree), math.log2(n_features))
    n = tree.n_samples
    bits[tree.kind == THRESHOLD] += np.log2(np.maximum(n[tree.kind == THRESHOLD] - 1, 1))
    is_subset = tree.kind == SUBSET
    cuts = np.maximum(np.minimum(tree.set_size[is_subset], n[is_subset]) - 1, 1).astype(float)
    bits[is_subset] += cuts + np.log2(1.0 - np.exp2(-cuts))
    for node in np.flatnonzero(tree.kind == OBLIQUE):
        m = int(np.count_nonzero(tree.coef[tree.set_start[node]]))
        cut = np.arange(1, min(m, int(n[node]) - 1) + 1)
        ways = float(np.logaddexp.reduce(_log_choices(int(n[node]) - 1, cut), initial=-np.inf))
        bits[node] = (_log_choices(n_features, m) + max(ways, 0.0)) / np.log(2)
    bits[tree.kind == LEAF] = 0.0
    return bits


def _log_choices(n: int, k: Any) -> Any:
    n_things = float(n)
    return gammaln(n_things + 1.0) - gammaln(k + 1.0) - gammaln(n_things - k + 1.0)


def _require_shares(tree: TreeArrays, method: str) -> None:
    is_share = np.all(tree.value >= 0) and np.allclose(tree.value.sum(axis=1), 1.0)
    if not is_share:
        raise _needs_classes(method)


def _needs_classes(method: str) -> ValueError:
    return ValueError(
        f"method={method!r} is for classifiers with one output: it counts mistakes. Use "
        "method='cost_complexity' or method='reduced_error' here."
    )


def _replaced(
    tree: TreeArrays, is_leaf: np.ndarray, cost: np.ndarray, split: np.ndarray, slack: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes cost no more as leaves than split, and what each costs split, bottom up."""
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


# -- chosen nodes, equal leaves ------------------------------------------------------------------


def prune_nodes(tree: TreeArrays, nodes: Any) -> TreeArrays:
    """The tree in which the chosen nodes, given by their numbers, are leaves."""
    chosen = np.atleast_1d(np.asarray(nodes))
    if chosen.size == 0:
        chosen = chosen.astype(np.int64)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"nodes must be a list of node numbers, such as [3, 8]. Got {chosen.dtype} of shape "
            f"{chosen.shape}. np.flatnonzero(mask) makes numbers of a mask."
        )
    outside = (chosen < 0) | (chosen >= len(tree))
    if outside.any():
        raise ValueError(
            f"nodes has {chosen[outside][0]}, but the nodes of this tree are numbered from 0 to "
            f"{len(tree) - 1}."
        )
    pruned = np.zeros(len(tree), dtype=bool)
    pruned[chosen] = True
    return subtree(tree, pruned)


def simplify(
    tree: TreeArrays, *, is_class: bool, n_classes: Sequence[int] | None = None
) -> TreeArrays:
    """Merge leaves of one parent that all predict the same, from the bottom up.

    The same is the same class (of each output; `n_classes` tells how many classes each has) or
    exactly the same number. Predictions do not change, for rows that take one branch in each
    node; probabilities of classes do, because merged leaves are averaged.
    """
    if is_class:
        answers, own = _numbered(_predicted(tree, n_classes)), 1
    else:
        answers, own = _numbered(tree.value), 0
    merged = np.zeros(len(tree), dtype=bool)
    agreed = np.full(len(tree), -2)
    _agree(read_only(tree.parent), read_only(tree.kind == LEAF), read_only(answers), own,
           agreed, merged)  # fmt: skip
    if not is_class:  # the mean of equal numbers is only nearly that number
        example = np.empty(len(tree), np.int64)
        example[answers] = np.arange(len(tree))
        value = tree.value.copy()
        value[merged] = tree.value[example[agreed[merged]]]
        tree = replace(tree, value=value)
    return subtree(tree, merged)


@kernel
def _agree(parent, is_leaf, answers, own, agreed, merged):
    """agreed: what all children answer; -1 where they do not, -2 before the first of them.

    `own`: the node itself must answer that as well, since its own answer will be given.
    """
    for node in range(len(parent) - 1, -1, -1):
        if is_leaf[node]:
            agreed[node] = answers[node]
        elif agreed[node] >= 0 and (not own or agreed[node] == answers[node]):
            merged[node] = True
        else:
            agreed[node] = -1
        if node > 0:
            above = parent[node]
            if agreed[above] == -2:
                agreed[above] = agreed[node]
            elif agreed[above] != agreed[node]:
                agreed[above] = -1


def _predicted(tree: TreeArrays, n_classes: Sequence[int] | None) -> np.ndarray:
    """int64 (N, outputs): the most frequent class of each output, the first of several."""
    sizes = [tree.value.shape[1]] if n_classes is None else [int(n) for n in n_classes]
    if sum(sizes) != tree.value.shape[1] or min(sizes) < 1:
        raise ValueError(
            f"n_classes must have the number of classes of each output, {tree.value.shape[1]} in "
            f"all. Got {sizes}."
        )
    ends = np.cumsum(sizes)
    parts = [
        tree.value[:, end - size : end].argmax(axis=1)
        for end, size in zip(ends, sizes, strict=True)
    ]
    return np.stack(parts, axis=1)


def _numbered(rows: np.ndarray) -> np.ndarray:
    """int64 (N,): equal rows have equal numbers, below N."""
    rows = rows[:, 0] if rows.shape[1] == 1 else rows
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


# -- sums over a tree ----------------------------------------------------------------------------


def _sums_of_leaves(tree: TreeArrays, at_leaves: np.ndarray) -> np.ndarray:
    """What the leaves below each node have together; a leaf has its own."""
    sums = at_leaves.copy()
    _add_to_parents(read_only(tree.parent), sums)
    return sums


@kernel
def _add_to_parents(parent, sums):
    for node in range(len(parent) - 1, 0, -1):
        sums[parent[node]] += sums[node]


def _child_sums(tree: TreeArrays, values: np.ndarray) -> np.ndarray:
    return np.bincount(tree.parent[1:], weights=values[1:], minlength=len(tree))


def _ends(tree: TreeArrays) -> np.ndarray:
    """int64 (N,): the subtree of a node is node .. ends[node] - 1."""
    return np.arange(len(tree)) + _sums_of_leaves(tree, np.ones(len(tree), np.int64))


def _running(steps: np.ndarray) -> np.ndarray:
    """0 and the sums of the first 1, 2, ... steps."""
    return np.concatenate([np.zeros(1, steps.dtype), np.cumsum(steps)])


# -- fitted models -------------------------------------------------------------------------------


def prune(
    model: Any,
    method: Literal[
        "cost_complexity", "reduced_error", "pessimistic", "mdl", "nodes", "simplify"
    ] = "cost_complexity",
    **options: Any,
) -> Any:
    """A copy of a fitted decision tree in which some nodes have become leaves.

    Parameters
    ----------
    model : fitted decision tree
        It stays as it is.
    method : str, default="cost_complexity"
        "cost_complexity"
            The tree with the least impurity + ccp_alpha * leaves. `ccp_alpha` is needed;
            `cross_validated_alpha` finds a good one.
        "reduced_error"
            Greedily, what improves predictions for rows held out. `X` and `y` are needed,
            `sample_weight` is optional.
        "pessimistic"
            By confidence limits, as C4.5 does: `confidence`, 0.25 if not given.
        "mdl"
            The shortest description of tree and classes.
        "nodes"
            Those in `nodes`, a list of node numbers.
        "simplify"
            Splits that change no prediction.
    **options
        As named above.

    Returns
    -------
    fitted decision tree of the same class

    Examples
    --------
    >>> import margrove
    >>> from margrove.grove.pruning import prune
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> model = margrove.DecisionTreeClassifier().fit(X[::2], y[::2])
    >>> model.get_n_leaves(), prune(model, ccp_alpha=0.05).get_n_leaves()
    (6, 3)
    >>> prune(model, "reduced_error", X=X[1::2], y=y[1::2]).get_n_leaves()
    4
    """
    tree = _arrays_of(model)
    if not isinstance(method, str) or method not in _METHODS:
        known = ", ".join(repr(name) for name in _METHODS)
        raise ValueError(f"method must be one of {known}. Got {method!a}.")
    _require_options(method, options)
    return model._with_arrays(_METHODS[method](model, tree, **options))


def _by_cost_complexity(model: Any, tree: TreeArrays, *, ccp_alpha: float) -> TreeArrays:
    return prune_by_cost_complexity(tree, ccp_alpha)


def _by_reduced_error(
    model: Any, tree: TreeArrays, *, X: Any, y: Any, sample_weight: Any = None
) -> TreeArrays:
    return reduced_error(tree, validation_losses(model, X, y, sample_weight)).tree


def _by_confidence(
    model: Any, tree: TreeArrays, *, confidence: float = 0.25, tolerance: float = 0.1
) -> TreeArrays:
    _require_classifier(model, "pessimistic")
    return pessimistic(tree, confidence, tolerance=tolerance)


def _by_description_length(model: Any, tree: TreeArrays) -> TreeArrays:
    _require_classifier(model, "mdl")
    return minimum_description_length(tree, _n_classes(model)[0], int(model.n_features_in_))


def _by_choice(model: Any, tree: TreeArrays, *, nodes: Any) -> TreeArrays:
    return prune_nodes(tree, nodes)


def _by_predictions(model: Any, tree: TreeArrays) -> TreeArrays:
    is_class = bool(is_classifier(model))
    return simplify(tree, is_class=is_class, n_classes=_n_classes(model) if is_class else None)


_METHODS: dict[str, Callable[..., TreeArrays]] = {
    "cost_complexity": _by_cost_complexity,
    "reduced_error": _by_reduced_error,
    "pessimistic": _by_confidence,
    "mdl": _by_description_length,
    "nodes": _by_choice,
    "simplify": _by_predictions,
}


def _require_options(method: str, options: dict[str, Any]) -> None:
    parameters = list(inspect.signature(_METHODS[method]).parameters.values())[2:]
    known = [parameter.name for parameter in parameters]
    unknown = [name for name in options if name not in known]
    takes = f"it takes {', '.join(known)}" if known else "it takes no options"
    if unknown:
        raise ValueError(f"method={method!r} has no option {unknown[0]!a}: {takes}.")
    needed = [p.name for p in parameters if p.default is p.empty and p.name not in options]
    if needed:
        raise ValueError(f"method={method!r} needs {' and '.join(needed)}: {takes}.")


def _require_classifier(model: Any, method: str) -> None:
    if not is_classifier(model) or len(_n_classes(model)) > 1:
        raise _needs_classes(method)


def _arrays_of(model: Any, argument: str = "model") -> TreeArrays:
    arrays = getattr(model, "arrays_", None)
    if isinstance(arrays, TreeArrays):
        return arrays
    name = (model if isinstance(model, type) else type(model)).__name__
    if not isinstance(model, type) and hasattr(model, "_with_arrays"):
        raise NotFittedError(
            f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before "
            "pruning it."
        )
    raise ValueError(
        f"{argument} must be one of this library's decision trees, fitted. Got {name}."
    )


def _n_classes(model: Any) -> list[int]:
    """Of each output."""
    return [int(n) for n in np.ravel(model.n_classes_)]


def _codes(model: Any, y: Any, n_rows: int) -> np.ndarray:
    """int64 (n, outputs): the model's number of each label; -1 for one that it does not know."""
    all_classes = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    if len(all_classes) == 1:
        columns = [y]
    else:
        table = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
        if table.ndim != 2 or table.shape[1] != len(all_classes):
            raise ValueError(
                f"y must have a column for each of the {len(all_classes)} outputs. Got shape "
                f"{table.shape}."
            )
        columns = list(table.T)
    parts = []
    for column, classes in zip(columns, all_classes, strict=True):
        labels = check_labels(column, n_rows)
        known = {label: code for code, label in enumerate(classes.tolist())}
        number = np.array([known.get(label, -1) for label in labels.classes.tolist()], np.int64)
        parts.append(number[labels.codes])
    return np.stack(parts, axis=1)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


# -- cross-validation ----------------------------------------------------------------------------


@dataclass(frozen=True)
class CrossValidatedAlpha:
    """Errors of the pruned trees of a path on rows held out, and the alpha to use.

    alphas             float64 (k,)  between those at which the tree changes
    mean_errors        float64 (k,)  share of misclassified rows, or mean squared error
    standard_errors    float64 (k,)  of the former, from how much the folds differ
    n_leaves           int64 (k,)  of the tree grown on all rows and pruned with alphas
    best               int  where the mean error is least, the last of several: the smallest tree
    chosen             int  where `rule` leads
    ccp_alpha          float  alphas[chosen]
    rule               str
    """

    alphas: np.ndarray
    mean_errors: np.ndarray
    standard_errors: np.ndarray
    n_leaves: np.ndarray
    best: int
    chosen: int
    rule: str

    @property
    def ccp_alpha(self) -> float:
        return float(self.alphas[self.chosen])


def cross_validated_alpha(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    rule: Literal["one_standard_error", "best"] = "one_standard_error",
    sample_weight: Any = None,
    random_state: Any = None,
) -> CrossValidatedAlpha:
    """Choose `ccp_alpha` by cross-validation (Breiman et al. 1984, section 3.4).

    The tree of all rows changes at alpha_1 < ... < alpha_K. Between two of them it is the same,
    and the geometric mean of the two, sqrt(alpha_k alpha_k+1), stands for all of them; 10 alpha_K
    stands for those above the last. One tree is grown for each fold, on the other folds' rows, and
    its path gives the errors of all alphas at once: nothing is refitted.

    Parameters
    ----------
    estimator : decision tree
        Cloned; a `ccp_alpha` of its own is put to 0.
    X, y : training data
    cv : int, splitter or iterable of (train, test), default=5
        A number means so many shuffled folds, stratified for classes.
    rule : {"one_standard_error", "best"}, default="one_standard_error"
        "best" is the alpha with the least mean error; "one_standard_error" the greatest whose
        error is at most one standard error (of the least) above: a smaller tree, as good as one
        can tell.
    sample_weight : array of shape (n,), optional
        For growing and for the errors.
    random_state : int, Generator or RandomState, optional
        Of the shuffled folds. The estimator has its own.

    Returns
    -------
    CrossValidatedAlpha
        `estimator.set_params(ccp_alpha=found.ccp_alpha)` or `prune(model, ccp_alpha=...)` use it.

    Examples
    --------
    >>> import margrove
    >>> from margrove.grove.pruning import cross_validated_alpha
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = margrove.DecisionTreeClassifier()
    >>> found = cross_validated_alpha(tree, X, y, random_state=0)
    >>> found.n_leaves, int(found.n_leaves[found.chosen])
    (array([9, 7, 5, 4, 3, 2, 1]), 3)
    >>> tree.set_params(ccp_alpha=found.ccp_alpha).fit(X, y).get_n_leaves()
    3
    """
    if rule not in ("one_standard_error", "best"):
        raise ValueError(f"rule must be 'one_standard_error' or 'best'. Got {rule!a}.")
    estimator = _unpruned(estimator)
    weight = None if sample_weight is None else check_weights(sample_weight, _n_rows(X))
    whole = _fitted(estimator, X, y, weight, np.arange(_n_rows(X)))
    alphas = _between(cost_complexity_path(whole).ccp_alphas)
    losses, weights = [], []
    for train, test in _folds(estimator, X, y, cv, random_state):
        held_out = np.ones(len(test)) if weight is None else weight[test]
        if not held_out.any():  # a row of weight 0 is no row
            continue
        model = clone(estimator)
        _fitted(model, X, y, weight, train)
        weights.append(held_out.sum())
        losses.append(_losses_along(model, _rows_of(X, test), _rows_of(y, test), held_out, alphas))
    if not losses:
        raise ValueError("cv holds out no row of positive weight. Use a number, such as cv=5.")
    errors, spread = _averaged(np.array(losses), np.array(weights))
    best = _last_within(errors, errors.min())
    limit = errors[best] + (spread[best] if rule == "one_standard_error" else 0.0)
    links = _weakest_links(whole)
    return CrossValidatedAlpha(
        alphas=alphas,
        mean_errors=errors,
        standard_errors=spread,
        n_leaves=whole.n_leaves - _running(links.saving[links.order])[links.n_pruned(alphas)],
        best=best,
        chosen=_last_within(errors, limit),
        rule=rule,
    )


def _unpruned(estimator: Any) -> Any:
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ValueError(
            "estimator must be one of this library's decision trees, such as "
            f"DecisionTreeClassifier(). Got {type(estimator).__name__}."
        )
    estimator = clone(estimator)
    if "ccp_alpha" in estimator.get_params(deep=False):
        estimator.set_params(ccp_alpha=0.0)
    return estimator


def _fitted(model: Any, X: Any, y: Any, weight: np.ndarray | None, rows: np.ndarray) -> TreeArrays:
    given = {} if weight is None else {"sample_weight": weight[rows]}
    model.fit(_rows_of(X, rows), _rows_of(y, rows), **given)
    return _arrays_of(model, "estimator")


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rows_of(X: Any, rows: np.ndarray) -> Any:
    return X if len(rows) == _n_rows(X) and _is_all(rows) else _safe_indexing(X, rows)


def _is_all(rows: np.ndarray) -> bool:
    return bool(np.array_equal(rows, np.arange(len(rows))))


def _folds(estimator: Any, X: Any, y: Any, cv: Any, random_state: Any) -> list[tuple[Any, Any]]:
    is_count = isinstance(cv, Integral) and not isinstance(cv, bool) and 2 <= int(cv) <= _n_rows(X)
    if isinstance(cv, (Real, str)) and not is_count:
        raise ValueError(
            f"cv must be a number of folds from 2 to the {_n_rows(X)} rows of X, a splitter, or "
            f"pairs of train and test rows. Got {cv!r}."
        )
    from sklearn.model_selection import check_cv

    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    if is_count:
        splitter = type(splitter)(int(cv), shuffle=True, random_state=seed_of(random_state))
    rows = np.arange(_n_rows(X))  # folds may be masks
    return [(rows[train], rows[test]) for train, test in splitter.split(np.zeros(len(rows)), y)]


def _last_within(errors: np.ndarray, limit: float) -> int:
    return int(np.flatnonzero(errors <= limit * (1 + _ROUNDING))[-1])


def _between(ccp_alphas: np.ndarray) -> np.ndarray:
    """One alpha for each tree of a path."""
    distinct = ccp_alphas[np.append(True, np.diff(ccp_alphas) > _ROUNDING * ccp_alphas[1:])]
    above = np.append(distinct[1:], 100.0 * distinct[-1])
    return np.sqrt(distinct) * np.sqrt(above)


def _losses_along(model: Any, X: Any, y: Any, weight: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """The loss of the tree pruned with each alpha, in one pass.

    Undoing one split changes the loss by that of the node less that of its children; pruning a
    node undoes all splits that go together with it.
    """
    tree = model.arrays_
    losses = validation_losses(model, X, y, weight)
    links = _weakest_links(tree)
    undone = np.where(tree.kind == LEAF, 0.0, losses - _child_sums(tree, losses))
    change = np.bincount(links.group, weights=undone, minlength=len(tree))[links.order]
    total: np.ndarray = losses[tree.kind == LEAF].sum() + _running(change)
    return total[links.n_pruned(alphas)]


def _averaged(losses: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean error and its standard error, for losses (folds, alphas) and the folds' weights.

    With equal weights the latter is the standard deviation of the folds' errors / sqrt(folds).
    """
    mean = losses.sum(axis=0) / weights.sum()
    n = len(weights)
    if n < 2:
        return mean, np.zeros_like(mean)
    share = (weights / weights.sum())[:, None]
    away = share * (losses / weights[:, None] - mean)
    return mean, np.sqrt((away**2).sum(axis=0) * n / (n - 1))
