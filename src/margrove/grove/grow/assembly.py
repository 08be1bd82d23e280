"""From the nodes that a grower leaves behind to the arrays of a finished tree."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.nodes import (
    BALANCED,
    CODE,
    DECREASE,
    DRAWN,
    ERROR_LEFT,
    FEATURE,
    HIGH,
    LEFT,
    LOW,
    MISSING_LEFT,
    NEXT_CODE,
    SAMPLES,
    WEIGHT,
    Nodes,
)
from margrove.grove.grow.nodes import (
    SUBSET as SUBSET_AT,
)
from margrove.grove.grow.scores import ENTROPY, ERROR, GAIN_RATIO, GINI
from margrove.grove.grow.split_search import Rules
from margrove.grove.grow.tree_builder import Growth
from margrove.grove.serve import LEAF, SUBSET, THRESHOLD, TreeArrays
from margrove.grove.table import BinnedDataset, Targets

__all__ = ["assemble", "impurity_of_shares", "n_balanced_splits", "preorder"]


def assemble(
    growth: Growth, data: BinnedDataset, targets: Targets, rules: Rules, n_categories: np.ndarray
) -> TreeArrays:
    """The finished tree; n_categories int64 (d,): how many each categorical column has."""
    nodes = _joined(growth)
    order, parent = preorder(nodes.whole[:, LEFT])
    nodes = _taken(nodes, order)
    whole, real = nodes.whole, nodes.real
    n = len(order)
    inner = whole[:, LEFT] >= 0
    feature = np.where(inner, whole[:, FEATURE], -1).astype(np.int32)
    number = np.empty(int(order.max()) + 1, np.int64)
    number[order] = np.arange(n)
    left, right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    left[inner] = number[whole[inner, LEFT]]
    right[inner] = number[whole[inner, LEFT] + 1]
    has_set = inner & (whole[:, SUBSET_AT] >= 0)
    words, set_start, set_size = _sets(nodes, has_set, data, n_categories)
    weight = whole[:, WEIGHT] * targets.unit
    n_outputs = len(targets.starts) - 1
    decrease = np.where(inner, real[:, DECREASE], 0.0) / n_outputs
    if growth.impurities is not None:
        impurity = growth.impurities[order]
    else:
        impurity = _impurities(nodes, targets, rules, inner, left, right, decrease)
    is_left_heavier = np.zeros(n, dtype=bool)
    is_left_heavier[inner] = whole[left[inner], SAMPLES] > whole[right[inner], SAMPLES]
    missing_left = np.where(
        whole[:, MISSING_LEFT] < 0, is_left_heavier, whole[:, MISSING_LEFT] == 1
    )
    n_children = np.where(inner, 2, 0).astype(np.int32)
    children = np.stack([left[inner], right[inner]], axis=1).ravel()
    return TreeArrays(
        kind=np.where(has_set, SUBSET, np.where(inner, THRESHOLD, LEAF)).astype(np.int8),
        feature=feature,
        threshold=_thresholds(nodes, inner & ~has_set, data),
        first_child=(np.cumsum(n_children) - n_children).astype(np.int64),
        n_children=n_children,
        children=children,
        parent=parent,
        missing_child=np.where(inner & ~missing_left, 1, 0).astype(np.int32),
        set_start=set_start,
        set_size=set_size,
        words=words,
        branches=np.empty(0, np.int32),
        coef=np.empty((0, data.n_features)),
        weight=weight,
        n_samples=whole[:, SAMPLES].copy(),
        value=_values(nodes, targets, rules),
        impurity=impurity,
        decrease=decrease,
    )


def n_balanced_splits(growth: Growth) -> int:
    """How many splits were made to halve a node, not to gain."""
    parts = [(growth.trunk, growth.n_trunk)] + [(nodes, used) for _, nodes, used in growth.blocks]
    return sum(int(nodes.whole[:used, BALANCED].sum()) for nodes, used in parts)


def _joined(growth: Growth) -> Nodes:
    """All nodes in one table; a block's root takes the place of the trunk's node."""
    if growth.n_trunk == 1 and growth.blocks:
        _, nodes, used = growth.blocks[0]
        return _taken(nodes, slice(used))
    parts = [_taken(growth.trunk, np.arange(growth.n_trunk))]
    count, n_words = growth.n_trunk, len(growth.trunk.subsets)
    for node, nodes, used in growth.blocks:
        own = _taken(nodes, np.arange(used))
        has_child = own.whole[:, LEFT] >= 0
        own.whole[has_child, LEFT] += count - 1
        own.whole[own.whole[:, SUBSET_AT] >= 0, SUBSET_AT] += n_words
        for mine, trunk in zip(own[:-1], parts[0][:-1], strict=True):
            trunk[node] = mine[0]
        parts.append(_taken(own, slice(1, None)))
        count += used - 1
        n_words += len(own.subsets)
    return Nodes._make(np.concatenate(pieces) for pieces in zip(*parts, strict=True))


def _taken(nodes: Nodes, which: np.ndarray | slice) -> Nodes:
    """Some of the nodes; an array of numbers copies them."""
    return Nodes._make([*(part[which] for part in nodes[:-1]), nodes.subsets])


@kernel
def preorder(left):
    """The nodes in preorder, and the parent of each in the new numbers."""
    n = len(left)
    order = np.empty(n, np.int64)
    parent = np.empty(n, np.int64)
    stack = np.empty(n + 1, np.int64)
    above = np.empty(n + 1, np.int64)
    stack[0], above[0] = 0, -1
    size, count = 1, 0
    while size:
        size -= 1
        node = stack[size]
        order[count] = node
        parent[count] = above[size]
        if left[node] >= 0:
            stack[size], above[size] = left[node] + 1, count
            stack[size + 1], above[size + 1] = left[node], count
            size += 2
        count += 1
    return order[:count], parent[:count]


def _thresholds(nodes: Nodes, asks: np.ndarray, data: BinnedDataset) -> np.ndarray:
    """Halfway between neighbouring values: `binning.midpoint` for arrays."""
    threshold = np.full(len(asks), np.nan)
    features = nodes.whole[asks, FEATURE]
    codes, following = nodes.whole[asks, CODE], nodes.whole[asks, NEXT_CODE]
    below, above = np.empty(len(features)), np.empty(len(features))
    for feature in np.unique(features):
        own = features == feature
        below[own] = data.highs[feature][codes[own]]
        # Merged values stay together, also where a node has none of them.
        upper = codes[own] + 1 if data.is_merged(feature) else following[own]
        above[own] = np.append(data.lows[feature], np.inf)[upper]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = 0.5 * below + 0.5 * above
    middle = np.where(np.isinf(above), np.inf, middle)
    middle = np.where((below <= middle) & ((middle < above) | np.isinf(above)), middle, below)
    merged = np.array([data.is_merged(feature) for feature in features.tolist()], dtype=bool)
    drawn = np.where(merged, np.nan, nodes.real[asks, DRAWN])  # within a bin there is no telling
    threshold[asks] = np.where(np.isnan(drawn), middle, drawn)
    return threshold


def _sets(
    nodes: Nodes, has_set: np.ndarray, data: BinnedDataset, n_categories: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sets of codes as sets of categories."""
    start = np.zeros(len(has_set), np.int64)
    size = np.zeros(len(has_set), np.int64)
    words: list[np.ndarray] = [np.empty(0, np.uint32)]
    used = 0
    for node in np.flatnonzero(has_set):
        feature, begin = nodes.whole[node, FEATURE], nodes.whole[node, SUBSET_AT]
        codes = np.arange(data.n_codes[feature])
        bits = (nodes.subsets[begin + codes // 32] >> (codes % 32).astype(np.uint32)) & 1
        categories = data.lows[feature][codes[bits == 1]].astype(np.int64)
        own = np.zeros(n_categories[feature] // 32 + 1, np.uint32)
        np.bitwise_or.at(own, categories // 32, np.uint32(1) << (categories % 32).astype(np.uint32))
        start[node], size[node] = used, n_categories[feature]
        words.append(own)
        used += len(own)
    return np.concatenate(words), start, size


def _values(nodes: Nodes, targets: Targets, rules: Rules) -> np.ndarray:
    if len(targets.raw):
        return nodes.value.copy()
    value = nodes.stats / nodes.whole[:, WEIGHT][:, None].astype(np.float64)
    if len(rules.monotone):
        second = np.clip(value[:, 1], nodes.real[:, LOW], nodes.real[:, HIGH])
        value = np.column_stack([1.0 - second, second])
    return value


def _impurities(
    nodes: Nodes,
    targets: Targets,
    rules: Rules,
    inner: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    decrease: np.ndarray,
) -> np.ndarray:
    """Of classes from their counts; of numbers from the leaves upwards."""
    n_outputs = len(targets.starts) - 1
    if not len(targets.raw):
        shares = nodes.stats / nodes.whole[:, WEIGHT][:, None].astype(np.float64)
        parts = [
            shares[:, a:b] for a, b in zip(targets.starts[:-1], targets.starts[1:], strict=True)
        ]
        return np.mean([impurity_of_shares(rules.criterion, part) for part in parts], axis=0)
    error = nodes.real[:, ERROR_LEFT] / n_outputs
    _sum_upwards(inner, left, right, decrease, error)
    return error / (nodes.whole[:, WEIGHT] * targets.unit)


def impurity_of_shares(criterion: int, shares: np.ndarray) -> np.ndarray:
    """Gini, entropy (in bits) or classification error of rows of shares."""
    if criterion == GINI:
        return 1.0 - (shares**2).sum(axis=1)
    if criterion == ERROR:
        return 1.0 - shares.max(axis=1)
    if criterion not in (ENTROPY, GAIN_RATIO):
        raise ValueError(f"Criterion {criterion} has no impurity of shares.")
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0.0, -shares * np.log2(shares), 0.0)
    return terms.sum(axis=1)


@kernel
def _sum_upwards(inner, left, right, decrease, error):
    for node in range(len(error) - 1, -1, -1):
        if inner[node]:
            error[node] = error[left[node]] + error[right[node]] + decrease[node]
