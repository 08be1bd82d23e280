"""From the nodes that have grown to a packed tree."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, kernel
from margrove.grove.grow import Nodes, Rules, impurity_of_shares
from margrove.grove.grow.search import ABSOLUTE, ENTROPY, GINI, SQUARED
from margrove.grove.serve.packed_trees import FEATURE_AT, MISSING_AT, SET_AT, PackedTree
from margrove.grove.table import BinnedDataset, Columns, Targets

__all__ = ["Cuts", "cuts_of", "pack"]


class Cuts(NamedTuple):
    """The values of codes for compiled code: lows, highs (all features, one after the other), the
    first of each feature, and whether codes of it stand for several values."""

    lows: np.ndarray
    highs: np.ndarray
    first: np.ndarray
    merged: np.ndarray


def cuts_of(data: BinnedDataset) -> Cuts:
    first = np.concatenate([[0], np.cumsum([len(low) for low in data.lows])]).astype(np.int64)
    merged = np.array([data.is_merged(j) for j in range(data.n_features)], dtype=bool)
    lows = np.concatenate([*data.lows, np.empty(0)])
    highs = np.concatenate([*data.highs, np.empty(0)]) if merged.any() else lows
    return Cuts(lows, highs, first, merged)


def pack(
    nodes: Nodes,
    n: int,
    targets: Targets,
    rules: Rules,
    cuts: Cuts,
    columns: Columns,
    n_categories: np.ndarray,
    *,
    weights_count: bool,
) -> PackedTree:
    """The nodes that have grown, n of them, in their packed form.

    weights_count: whether the weight of a row is the number of samples that it stands for.
    """
    is_class = len(targets.labels) > 0
    n_outputs = len(targets.starts) - 1
    record = fields_of(nodes.record)[:n]
    is_leaf = record["left"] < 0
    words, set_at = _sets(nodes, np.flatnonzero(~is_leaf & (record["subset"] >= 0)), cuts,
                          columns, n_categories, n)  # fmt: skip
    packed = np.empty(2 * n, np.int64)
    row_of = np.zeros(n, np.int64)
    is_whole = targets.unit == 1.0
    counts = np.int32 if max(record["weight"][0], record["samples"][0]) < 2**31 else np.int64
    constrained = len(rules.monotone) > 0
    if is_class and n_outputs == 1 and not constrained:
        n_rows = _number_leaves(nodes, n, row_of)
        values = np.empty((n_rows, nodes.stats.shape[1]), counts if is_whole else np.float64)
        _take_rows(nodes.stats, row_of, n, targets.unit, values)
    elif is_class or n_outputs > 1:
        n_pure = nodes.stats.shape[1] if is_class and n_outputs == 1 else 0
        is_kept = is_leaf | (rules.criterion == ABSOLUTE)
        row_of[is_kept] = n_pure + np.arange(int(is_kept.sum()))
        values = nodes.value[:n][is_kept] if not is_class else nodes.stats[:n][is_kept] * 1.0
        if constrained and is_class:
            values = _bounded(values, record[is_leaf]) * record["weight"][is_leaf][:, None]
    else:
        values = np.empty((0, 1))
    _fill(nodes, n, cuts, set_at, row_of, len(values) > 0 or is_class, packed)
    tree = PackedTree(
        packed,
        record["weight"].astype(counts) if is_whole else record["weight"] * targets.unit,
        values,
        words,
    )
    if not weights_count:
        tree = replace(tree, samples=record["samples"].astype(counts))
    simple = is_whole and n_outputs == 1 and not constrained
    known = rules.criterion in (GINI, ENTROPY) or (
        rules.criterion == SQUARED and not record["error_left"][is_leaf].any()
    )
    if simple and known:
        return tree
    return _with_losses(tree, nodes, n, targets, rules)


def _bounded(sums: np.ndarray, record: np.ndarray) -> np.ndarray:
    """Shares of two classes within the bounds that monotone constraints set."""
    second = np.clip(sums[:, 1] / sums.sum(axis=1), record["low"], record["high"])
    return np.column_stack([1.0 - second, second])


def _with_losses(
    tree: PackedTree, nodes: Nodes, n: int, targets: Targets, rules: Rules
) -> PackedTree:
    """Impurities that only the training rows tell."""
    record = fields_of(nodes.record)[:n]
    n_outputs = len(targets.starts) - 1
    inner = record["left"] >= 0
    decrease = np.where(inner, record["decrease"], 0.0) / n_outputs
    if len(targets.labels):
        shares = nodes.stats[:n] / record["weight"][:, None].astype(np.float64)
        parts = [
            shares[:, a:b] for a, b in zip(targets.starts[:-1], targets.starts[1:], strict=True)
        ]
        impurity = np.mean([impurity_of_shares(rules.criterion, part) for part in parts], axis=0)
    else:
        error = record["error_left"] / n_outputs
        left = record["left"]
        for node in range(n - 1, -1, -1):
            if inner[node]:
                error[node] = error[left[node]] + error[left[node] + 1] + decrease[node]
        impurity = error / (record["weight"] * targets.unit)
    has_medians = rules.criterion == ABSOLUTE and n_outputs == 1
    medians = nodes.value[:n, 0].copy() if has_medians else None
    return replace(tree, impurity=impurity, decrease=decrease, medians=medians)


def _sets(
    nodes: Nodes,
    which: np.ndarray,
    cuts: Cuts,
    columns: Columns,
    n_categories: np.ndarray,
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Sets of codes as sets of categories, and where each node's begins; -1 for none."""
    set_at = np.full(n, -1, np.int64)
    if not len(which):
        return np.empty(0, np.uint32), set_at
    features = fields_of(nodes.record)["feature"][which]
    sizes = n_categories[features] // 32 + 1
    set_at[which] = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), np.uint32)
    _translate_sets(nodes, which, set_at, cuts.lows, cuts.first,
                    columns.n_codes, words)  # fmt: skip
    return words, set_at


@kernel
def _translate_sets(nodes, which, set_at, lows, first, n_codes, words):
    record, subsets = nodes.record, nodes.subsets
    for node in which:
        feature, begin = record.feature[node], record.subset[node]
        for code in range(n_codes[feature]):
            if (subsets[begin + code // 32] >> np.uint32(code % 32)) & np.uint32(1):
                category = np.int64(lows[first[feature] + code])
                words[set_at[node] + category // 32] |= np.uint32(1) << np.uint32(category % 32)


@kernel
def _number_leaves(nodes, n, row_of):
    """The class of a pure leaf, a number beyond the classes for others; how many those are."""
    record, stats = nodes.record, nodes.stats
    n_classes = stats.shape[1]
    count = 0
    for node in range(n):
        if record.left[node] >= 0:
            continue
        row_of[node] = -1
        for k in range(n_classes):
            if stats[node, k] == record.weight[node]:
                row_of[node] = k
        if row_of[node] < 0:
            row_of[node] = n_classes + count
            count += 1
    return count


@kernel
def _take_rows(stats, row_of, n, unit, values):
    n_classes = stats.shape[1]
    for node in range(n):
        row = row_of[node] - n_classes
        if row >= 0:
            for k in range(n_classes):
                values[row, k] = stats[node, k] * unit


@kernel
def _fill(nodes, n, cuts, set_at, row_of, has_rows, packed):
    """The two words of each node."""
    record, value = nodes.record, nodes.value
    words = packed.view(np.float64)
    for node in range(n):
        left = record.left[node]
        if left < 0:
            words[2 * node] = float(row_of[node]) if has_rows else value[node, 0]
            packed[2 * node + 1] = node
            continue
        feature, code, following = (
            record.feature[node], record.code[node], record.next_code[node],
        )  # fmt: skip
        goes_left = record.missing_left[node] == 1
        if record.missing_left[node] < 0:  # there were none: with the larger part
            goes_left = record.samples[left] > record.samples[left + 1]
        link = left | (feature << FEATURE_AT) | (np.int64(goes_left) << MISSING_AT)
        if set_at[node] >= 0:
            words[2 * node] = float(set_at[node])
            link |= np.int64(1) << SET_AT
        else:
            words[2 * node] = _threshold(
                cuts, feature, code, following, record.random_threshold[node]
            )
        packed[2 * node + 1] = link


@kernel
def _threshold(cuts, feature, code, following, drawn):
    """Halfway between neighbouring values; see `assembly`."""
    merged = cuts.merged[feature]
    if drawn == drawn and not merged:  # noqa: PLR0124
        return drawn
    first = cuts.first[feature]
    if code < 0:
        return -np.inf
    below = cuts.highs[first + code]
    upper = code + 1 if merged else following
    if first + upper >= cuts.first[feature + 1]:
        return np.inf
    above = cuts.lows[first + upper]
    middle = 0.5 * below + 0.5 * above
    return middle if below <= middle < above else below
