"""Rules by which nodes of a tree become leaves, other than cost-complexity.

    reduced_error                greedily remove what improves the loss on held-out rows
    pessimistic                  upper confidence limits of the error, as in C4.5
    minimum_description_length   bits that encode the tree, and the classes given the tree
    prune_nodes                  chosen nodes
    simplify                     splits whose leaves all predict the same

All are functions of `TreeArrays` that return a smaller tree; `pruning.prune` applies them to
estimators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaln

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.grove.prune.bottom_up import ROUNDING, cheaper_as_leaves, running, sums_of_leaves
from margrove.grove.serve import (
    LEAF,
    OBLIQUE,
    SUBSET,
    THRESHOLD,
    TreeArrays,
    predicted_classes,
    subtree,
)

__all__ = [
    "ReducedErrorPruning",
    "minimum_description_length",
    "needs_classes",
    "pessimistic",
    "prune_nodes",
    "reduced_error",
    "simplify",
]


# -- reduced error -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReducedErrorPruning:
    """The steps and the result of reduced-error pruning.

    tree        TreeArrays  the pruned tree
    removed     int64 (k,)  nodes of the original tree, in the order in which they became leaves
    losses      float64 (k + 1,)  validation loss of the original tree, and after each removal
    n_leaves    int64 (k + 1,)
    """

    tree: TreeArrays
    removed: np.ndarray
    losses: np.ndarray
    n_leaves: np.ndarray


def reduced_error(tree: TreeArrays, losses: np.ndarray) -> ReducedErrorPruning:
    """Greedily remove the node that improves the validation loss most, until it would worsen.

    A node whose removal changes nothing is removed too: the tree gets smaller. If tied, the node
    with the greatest number comes first, so a node comes before those above it. This greedy method
    is not optimal: it may remove a node instead of two children that together improve more.

    losses : float64 (N,)
        Of each node if it were a leaf, summed over the validation rows that reach it, as
        `validation_losses` returns them.

    After the removal that improves most, the removal of a node above it cannot improve the loss any
    more. So one pass over the nodes, sorted by improvement, finds all removals that improve, and a
    second pass, children first, finds those that change nothing.
    """
    losses = _checked_losses(tree, losses)
    leaves = tree.kind == LEAF
    below = sums_of_leaves(tree, np.where(leaves, losses, 0.0))
    gain = np.where(leaves, 0.0, below - losses)
    helpful = np.flatnonzero(~leaves & (gain > ROUNDING * losses))[::-1]
    helpful = helpful[np.argsort(-gain[helpful], kind="stable")]
    pruned, below_pruned = np.zeros(len(tree), dtype=bool), np.zeros(len(tree), dtype=bool)
    _remove_greedily(read_only(tree.parent), read_only(tree.ends), read_only(helpful),
                     pruned, below_pruned)  # fmt: skip
    harmless, below = cheaper_as_leaves(
        tree, leaves | pruned, losses, np.zeros(len(tree)), ROUNDING * losses
    )
    harmless &= ~below_pruned
    later = np.flatnonzero(harmless)[::-1]
    removed = np.concatenate([helpful[pruned[helpful]], later])
    gain[later] = below[later] - losses[later]
    return ReducedErrorPruning(
        tree=subtree(tree, pruned | harmless),
        removed=removed,
        losses=losses[leaves].sum() - running(gain[removed]),
        n_leaves=leaves.sum() - running(_leaves_saved(tree, removed)),
    )


def _checked_losses(tree: TreeArrays, losses: Any) -> np.ndarray:
    losses = np.asarray(losses, dtype=np.float64)
    if losses.shape != (len(tree),) or not np.isfinite(losses).all():
        raise ValueError(
            f"losses must be finite and have one entry for each of the {len(tree)} nodes. Got "
            f"shape {losses.shape}. Use validation_losses(model, X, y)."
        )
    return losses


@kernel
def _remove_greedily(parent, ends, order, pruned, below_pruned):
    """Prune the nodes of `order` that have no pruned node above or below them."""
    has_pruned = np.zeros(len(parent), np.bool_)
    for node in order:
        if below_pruned[node] or has_pruned[node]:
            continue
        pruned[node] = True
        for lower in range(node + 1, ends[node]):
            below_pruned[lower] = True
        upper = parent[node]
        while upper >= 0 and not has_pruned[upper]:
            has_pruned[upper] = True
            upper = parent[upper]


def _leaves_saved(tree: TreeArrays, removed: np.ndarray) -> np.ndarray:
    """By how many leaves each removal made the tree smaller, after the removals before it."""
    leaves_below = sums_of_leaves(tree, (tree.kind == LEAF).astype(np.float64)).astype(np.int64)
    saved = np.zeros(len(tree), np.int64)
    saved[removed] = leaves_below[removed] - 1
    _subtract_below(read_only(tree.parent), read_only(removed), saved)
    return saved[removed]


@kernel
def _subtract_below(parent, removed, saved):
    """Subtract from each removed node what the nearest removed nodes below it have saved."""
    n = len(parent)
    is_removed = np.zeros(n, np.bool_)
    for node in removed:
        is_removed[node] = True
    below = np.zeros(n, np.int64)
    for node in range(n - 1, -1, -1):
        total = below[node]
        if is_removed[node]:
            total, saved[node] = saved[node], saved[node] - total
        if node > 0:
            below[parent[node]] += total


# -- bottom up: confidence limits and description length -----------------------------------------


def pessimistic(
    tree: TreeArrays, confidence: float = 0.25, *, tolerance: float = 0.1
) -> TreeArrays:
    """C4.5's pruning: compare upper confidence limits of the error (Quinlan 1993, chapter 4).

    If E of the N training rows of a leaf are wrong, U(E, N) is the error rate at which E mistakes
    or fewer have the probability `confidence`; the cost of the leaf is N * U. From the bottom up, a
    node becomes a leaf if its cost is then at most the cost of its branches, plus `tolerance`. A
    smaller confidence prunes more.

    U is the exact limit of the binomial distribution, a quantile of Beta(E + 1, N - E), which is
    defined for fractions of rows too. Quinlan's program approximates it between E = 0 and E = N:
    U(1, 16) is 0.160 here and 0.157 there. The tolerance of 0.1 is that of the program, not of the
    book. Branches are replaced by leaves only: C4.5's other operation, subtree raising, is not
    done, since it needs the training rows again.

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
    errors = _pessimistic_errors(tree, float(confidence))
    pruned, _ = cheaper_as_leaves(
        tree, tree.kind == LEAF, errors, np.zeros(len(tree)), tolerance + ROUNDING * errors
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
    """The pruning that encodes the classes of the training rows in the fewest bits.

    From the bottom up, a node becomes a leaf if its subtree takes at least as many bits (Mehta,
    Rissanen and Agrawal 1995, "MDL-based decision tree pruning"). With d features, k classes, n
    samples in a node, and n_c of them (their weight) of class c:

        tree    1 bit a node, leaf or not, and for each split
                threshold    log2 d + log2(n - 1)             which feature, between which rows
                subset       log2 d + log2(2 ** (s - 1) - 1)  s categories, at most n, in two sets
                multiway     log2 d                           its branches are the categories
                oblique      log2 C(d, m) + log2(sum_i=1..m C(n - 1, i))   m features; the second
                             sum counts the ways in which planes cut n points (Cover 1965)
        leaf    log2 [ Gamma(n + k/2) Gamma(1/2)^k / (Gamma(k/2) prod_c Gamma(n_c + 1/2)) ]

    The code of a leaf is that of Krichevsky and Trofimov (1981), which is exact also for small
    leaves and fractions of rows. For large n it is the stochastic complexity, sum_c n_c
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
    is_number = isinstance(n_features, Integral) and not isinstance(n_features, bool)
    if not is_number or n_features < max(used, 1):
        raise ValueError(
            f"n_features must be the number of columns of X, at least {max(used, 1)}. "
            f"Got {n_features!r}."
        )
    bits = 1.0 + _class_bits(tree)
    pruned, _ = cheaper_as_leaves(
        tree, ~inner, bits, 1.0 + _split_bits(tree, int(n_features)), ROUNDING * bits
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
        log_cuts = float(np.logaddexp.reduce(_log_choices(int(n[node]) - 1, cut), initial=-np.inf))
        bits[node] = (_log_choices(n_features, m) + max(log_cuts, 0.0)) / np.log(2)
    bits[tree.kind == LEAF] = 0.0
    return bits


def _log_choices(n: int, k: Any) -> Any:
    """log C(n, k)."""
    n_things = float(n)
    return gammaln(n_things + 1.0) - gammaln(k + 1.0) - gammaln(n_things - k + 1.0)


def _require_shares(tree: TreeArrays, method: str) -> None:
    is_share = np.all(tree.value >= 0) and np.allclose(tree.value.sum(axis=1), 1.0)
    if not is_share:
        raise needs_classes(method)


def needs_classes(method: str) -> ValueError:
    return ValueError(
        f"method={method!r} is for classifiers with one output. Use method='cost_complexity' or "
        "method='reduced_error'."
    )


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


# -- chosen nodes, equal leaves ------------------------------------------------------------------


def prune_nodes(tree: TreeArrays, nodes: Any) -> TreeArrays:
    """The tree in which the chosen nodes, given by their numbers, are leaves."""
    chosen = np.atleast_1d(np.asarray(nodes))
    if chosen.size == 0:
        chosen = chosen.astype(np.int64)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(
            f"nodes must be a list of node numbers, such as [3, 8]. Got {chosen.dtype} of shape "
            f"{chosen.shape}. For a mask, use np.flatnonzero(mask)."
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

    The same means the same class of each output (`n_classes` has the number of classes of each), or
    exactly the same number. Predictions do not change for rows that take one branch in each node.
    Class probabilities do, because merged leaves are averaged.
    """
    answers = _numbered(predicted_classes(tree, n_classes) if is_class else tree.value)
    merged = np.zeros(len(tree), dtype=bool)
    agreed = np.full(len(tree), -2)
    _agree(read_only(tree.parent), read_only(tree.kind == LEAF), read_only(answers),
           int(is_class), agreed, merged)  # fmt: skip
    if not is_class:  # the mean of equal numbers differs from the number by rounding
        example = np.empty(len(tree), np.int64)
        example[answers] = np.arange(len(tree))
        value = tree.value.copy()
        value[merged] = tree.value[example[agreed[merged]]]
        tree = replace(tree, value=value)
    return subtree(tree, merged)


@kernel
def _agree(parent, is_leaf, answers, with_node, agreed, merged):
    """Mark the nodes to merge.

    agreed      the answer of all children; -1 if they differ, -2 before the first child
    with_node   whether the node's own answer must be the same, since it becomes the prediction
    """
    for node in range(len(parent) - 1, -1, -1):
        if is_leaf[node]:
            agreed[node] = answers[node]
        elif agreed[node] >= 0 and (not with_node or agreed[node] == answers[node]):
            merged[node] = True
        else:
            agreed[node] = -1
        if node > 0:
            above = parent[node]
            if agreed[above] == -2:
                agreed[above] = agreed[node]
            elif agreed[above] != agreed[node]:
                agreed[above] = -1


def _numbered(rows: np.ndarray) -> np.ndarray:
    """int64 (N,): equal rows have equal numbers, below N."""
    rows = rows[:, 0] if rows.shape[1] == 1 else rows
    _, numbers = np.unique(rows, axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)
