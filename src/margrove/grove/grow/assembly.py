"""From the nodes that a builder leaves behind to the arrays of a finished tree."""

from __future__ import annotations

import numpy as np

from margrove._runtime import fields_of, kernel, words_of
from margrove.grove.grow.grown_subtrees import GrownSubtrees
from margrove.grove.grow.nodes import NODE, Nodes
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search import ENTROPY, ERROR, GAIN_RATIO, GINI
from margrove.grove.grow.tree_builder import Growth
from margrove.grove.serve import LEAF, SUBSET, THRESHOLD, TreeArrays
from margrove.grove.table import BinnedDataset, Targets

__all__ = ["assemble", "impurity_of_shares", "n_balanced_splits", "preorder"]


def assemble(
    growth: Growth, data: BinnedDataset, targets: Targets, rules: Rules, n_categories: np.ndarray
) -> TreeArrays:
    """The finished tree; n_categories int64 (d,): how many each categorical column has."""
    nodes = _joined(growth)
    order, parent = preorder(fields_of(nodes.record)["left"])
    nodes = _taken(nodes, order)
    record = fields_of(nodes.record)
    n = len(order)
    inner = record["left"] >= 0
    feature = np.where(inner, record["feature"], -1).astype(np.int32)
    number = np.empty(int(order.max()) + 1, np.int64)
    number[order] = np.arange(n)
    left, right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    left[inner] = number[record["left"][inner]]
    right[inner] = number[record["left"][inner] + 1]
    has_set = inner & (record["subset"] >= 0)
    words, set_start, set_size = _sets(nodes, has_set, data, n_categories)
    weight = record["weight"] * targets.unit
    n_outputs = len(targets.starts) - 1
    decrease = np.where(inner, record["decrease"], 0.0) / n_outputs
    if growth.impurities is not None:
        impurity = growth.impurities[order]
    else:
        impurity = _impurities(nodes, targets, rules, inner, left, right, decrease)
    is_left_heavier = np.zeros(n, dtype=bool)
    is_left_heavier[inner] = record["samples"][left[inner]] > record["samples"][right[inner]]
    missing_left = np.where(
        record["missing_left"] < 0, is_left_heavier, record["missing_left"] == 1
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
        n_samples=record["samples"].copy(),
        value=_values(nodes, targets, rules),
        impurity=impurity,
        decrease=decrease,
    )


def n_balanced_splits(growth: Growth) -> int:
    """How many splits halve a node, whatever they gain."""
    count = int(fields_of(growth.upper.record)["balanced"][: growth.n_upper].sum())
    for some in growth.subtrees:
        balanced = fields_of(some.nodes.record)["balanced"]
        runs = zip(some.first.tolist(), some.counts.tolist(), strict=True)
        count += sum(int(balanced[first : first + n].sum()) for first, n in runs)
    return count


def _joined(growth: Growth) -> Nodes:
    """All nodes in one table; the root of a subtree takes the place of the upper node."""
    if growth.n_upper == 1 and growth.subtrees:
        some = growth.subtrees[0]
        return _taken(some.nodes, slice(int(some.counts[0])))
    parts = [_taken(growth.upper, np.arange(growth.n_upper))]
    count, n_words = growth.n_upper, len(growth.upper.subsets)
    for some in growth.subtrees:
        begin = count + np.append(0, np.cumsum(some.counts - 1))
        nodes = _taken(some.nodes, np.arange(int(some.first[-1] + some.counts[-1])))
        _shift(some, fields_of(nodes.record), begin, n_words)
        for upper, array in zip(parts[0][:-1], nodes[:-1], strict=True):
            upper[some.uppers] = array[some.first]
        is_kept = np.ones(len(nodes.record), dtype=bool)
        is_kept[some.first] = False
        parts.append(_taken(nodes, is_kept))
        count = int(begin[-1])
        n_words += len(some.nodes.subsets)
    record, *others = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return Nodes(record.view(np.recarray), *others)


def _shift(some: GrownSubtrees, record: np.ndarray, begin: np.ndarray, n_words: int) -> None:
    """Numbers of nodes and of words as they are in the joined table."""
    left = record["left"]
    shift = np.repeat(begin[:-1] - 1, some.counts)
    left[left >= 0] += shift[left >= 0]
    record["subset"][record["subset"] >= 0] += n_words


def _taken(nodes: Nodes, which: np.ndarray | slice) -> Nodes:
    """Some of the nodes; an array of numbers copies them."""
    record = words_of(nodes.record)[which].view(NODE).ravel().view(np.recarray)
    return Nodes._make([record, *(array[which] for array in nodes[1:-1]), nodes.subsets])


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
    record = fields_of(nodes.record)
    features, codes, next_codes = (record[name][asks] for name in ("feature", "code", "next_code"))
    below, above = np.empty(len(features)), np.empty(len(features))
    drawn = record["random_threshold"][asks]
    for feature in np.unique(features):
        rows = np.flatnonzero(features == feature)
        below[rows] = data.highs[feature][codes[rows]]
        upper = next_codes[rows]
        if data.is_merged(feature):  # merged values stay together, also where a node has none
            upper = codes[rows] + 1
            drawn[rows] = np.nan
        above[rows] = np.append(data.lows[feature], np.inf)[upper]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = 0.5 * below + 0.5 * above
    middle = np.where(np.isinf(above), np.inf, middle)
    middle = np.where((below <= middle) & ((middle < above) | np.isinf(above)), middle, below)
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
        feature, begin = (
            fields_of(nodes.record)["feature"][node],
            fields_of(nodes.record)["subset"][node],
        )
        codes = np.arange(data.n_codes[feature])
        bits = (nodes.subsets[begin + codes // 32] >> (codes % 32).astype(np.uint32)) & 1
        categories = data.lows[feature][codes[bits == 1]].astype(np.int64)
        bits_left = np.zeros(n_categories[feature] // 32 + 1, np.uint32)
        np.bitwise_or.at(
            bits_left, categories // 32, np.uint32(1) << (categories % 32).astype(np.uint32)
        )
        start[node], size[node] = used, n_categories[feature]
        words.append(bits_left)
        used += len(bits_left)
    return np.concatenate(words), start, size


def _values(nodes: Nodes, targets: Targets, rules: Rules) -> np.ndarray:
    if len(targets.raw):
        return nodes.value.copy()
    value = nodes.stats / fields_of(nodes.record)["weight"][:, None].astype(np.float64)
    if len(rules.monotone):
        second = np.clip(
            value[:, 1], fields_of(nodes.record)["low"], fields_of(nodes.record)["high"]
        )
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
        shares = nodes.stats / fields_of(nodes.record)["weight"][:, None].astype(np.float64)
        parts = [
            shares[:, a:b] for a, b in zip(targets.starts[:-1], targets.starts[1:], strict=True)
        ]
        return np.mean([impurity_of_shares(rules.criterion, part) for part in parts], axis=0)
    error = fields_of(nodes.record)["error_left"] / n_outputs
    _sum_upwards(inner, left, right, decrease, error)
    return error / (fields_of(nodes.record)["weight"] * targets.unit)


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
