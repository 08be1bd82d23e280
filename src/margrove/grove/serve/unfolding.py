"""Packed trees as `TreeArrays`, with all that was left out in the packed form, and back."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow import impurity_of_shares, preorder
from margrove.grove.grow.search import ABSOLUTE
from margrove.grove.serve.packed_trees import (
    FEATURE_AT,
    FEATURE_BITS,
    MISSING_AT,
    SET_AT,
    Kind,
    PackedTree,
    times_powers,
    values_of_nodes,
)
from margrove.grove.serve.tree_arrays import LEAF, SUBSET, THRESHOLD, TreeArrays
from margrove.grove.table import power_of_two_near

__all__ = ["packed_of", "unfolded"]


def unfolded(tree: PackedTree, kind: Kind) -> TreeArrays:
    """A packed tree as `TreeArrays`, as a single tree has them."""
    n = len(tree)
    left_or_none = np.where(tree.is_leaf, -1, tree.left)
    order, parent = preorder(left_or_none)
    inner = ~tree.is_leaf[order]
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    link = tree.nodes[1::2][order]
    first = tree.nodes.view(np.float64)[0::2][order]
    has_set = inner & ((link >> SET_AT) & 1 == 1)
    feature = np.where(inner, (link >> FEATURE_AT) & FEATURE_BITS, -1).astype(np.int32)
    left = number[tree.left[order[inner]]]
    right = number[tree.left[order[inner]] + 1]
    n_children = np.where(inner, 2, 0).astype(np.int32)
    value = values_of_nodes(tree, kind)
    impurity, decrease = _losses(tree, kind, value)
    weight = tree.weight.astype(np.float64)[order]
    samples = tree.weight if tree.samples is None else tree.samples
    return TreeArrays(
        kind=np.where(has_set, SUBSET, np.where(inner, THRESHOLD, LEAF)).astype(np.int8),
        feature=feature,
        threshold=np.where(inner & ~has_set, first, np.nan),
        first_child=(np.cumsum(n_children) - n_children).astype(np.int64),
        n_children=n_children,
        children=np.stack([left, right], axis=1).ravel(),
        parent=parent,
        missing_child=np.where(inner & ((link >> MISSING_AT) & 1 == 0), 1, 0).astype(np.int32),
        set_start=np.where(has_set, first, 0.0).astype(np.int64),
        set_size=np.where(has_set, kind.n_categories[np.maximum(feature, 0)], 0),
        words=tree.words,
        branches=np.empty(0, np.int32),
        coef=np.empty((0, len(kind.n_categories))),
        weight=weight,
        n_samples=samples[order].astype(np.int64),
        value=value[order],
        impurity=impurity[order],
        decrease=decrease[order],
    )


def _losses(tree: PackedTree, kind: Kind, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Impurity and decrease of each node."""
    if tree.impurity is not None and tree.decrease is not None:
        return tree.impurity, tree.decrease
    weight = tree.weight.astype(np.float64)
    inner = np.flatnonzero(~tree.is_leaf)
    left = tree.left[inner]
    decrease = np.zeros(len(tree))
    if kind.n_classes:
        impurity = impurity_of_shares(kind.criterion, value)
        loss = weight * impurity
        decrease[inner] = np.maximum(loss[inner] - loss[left] - loss[left + 1], 0.0)
        return impurity, decrease
    both = weight[left] * weight[left + 1] / weight[inner]
    scale = power_of_two_near(value)  # squares stay within floating point
    decrease[inner] = both * ((value[left, 0] - value[left + 1, 0]) / scale) ** 2
    loss = decrease[:, None].copy()
    _add_losses_below(tree.left, loss)
    impurity = loss[:, 0] / weight
    if scale != 1.0:
        impurity, decrease = times_powers(impurity, scale, 2), times_powers(decrease, scale, 2)
    return impurity, decrease


@kernel
def _add_losses_below(left, loss):
    """The loss of a node: the decrease by its split, plus the losses of its children."""
    for node in range(len(left) - 1, -1, -1):
        if left[node] != node:
            loss[node, 0] += loss[left[node], 0] + loss[left[node] + 1, 0]


def packed_of(arrays: TreeArrays, kind: Kind) -> PackedTree:
    """The packed form of a binary tree."""
    n = len(arrays)
    # Siblings are side by side, in the order of their parents.
    inner = np.flatnonzero(arrays.kind != LEAF)
    number = np.zeros(n, np.int64)
    children = arrays.children.reshape(-1, 2)
    number[children] = 1 + 2 * np.arange(len(children))[:, None] + np.array([0, 1])
    is_leaf = arrays.kind == LEAF
    nodes = np.zeros((n, 2), np.int64)
    nodes[:, 1] = np.arange(n)
    words = nodes.ravel().view(np.float64).reshape(n, 2)
    has_set = arrays.kind[inner] == SUBSET
    packed_inner = number[inner]
    words[packed_inner, 0] = np.where(has_set, arrays.set_start[inner], arrays.threshold[inner])
    nodes[packed_inner, 1] = (
        number[children[:, 0]]
        | (arrays.feature[inner].astype(np.int64) << FEATURE_AT)
        | (has_set.astype(np.int64) << SET_AT)
        | ((arrays.missing_child[inner] == 0).astype(np.int64) << MISSING_AT)
    )
    leaves = number[is_leaf]
    values = np.empty((0, 1))
    has_medians = kind.criterion == ABSOLUTE

    def moved(of_nodes: np.ndarray) -> np.ndarray:
        placed = np.empty_like(of_nodes)
        placed[number] = of_nodes
        return placed

    if kind.has_rows and has_medians:
        words[leaves, 0] = leaves
        values = moved(arrays.value)
    elif kind.has_rows:
        words[leaves, 0] = kind.n_pure + np.arange(len(leaves))
        values = arrays.value[is_leaf]
        if kind.n_classes:
            values = values * arrays.weight[is_leaf][:, None]
    else:
        words[leaves, 0] = arrays.value[is_leaf, 0]
    return PackedTree(
        nodes.ravel(),
        moved(arrays.weight),
        values,
        arrays.words,
        moved(arrays.n_samples),
        moved(arrays.impurity),
        moved(arrays.decrease),
        moved(arrays.value[:, 0]) if has_medians and not kind.has_rows else None,
    )
