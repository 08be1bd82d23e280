"""From the nodes that have grown to a packed tree."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import fields_of, kernel
from margrove.grove.grow import Nodes, Rules, impurity_of_shares
from margrove.grove.grow.search import ABSOLUTE, ENTROPY, GINI, SQUARED
from margrove.grove.serve.packed_trees import FEATURE_AT, MISSING_AT, SET_AT, PackedTree
from margrove.grove.table import BinnedDataset, Columns, Targets

__all__ = ["Cuts", "PackedRun", "append_packed", "cuts_of", "new_packed_run", "pack",
           "trees_of_run"]  # fmt: skip


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


# -- many small trees at once --


class PackedRun(NamedTuple):
    """Room for the packed trees of a run, one after the other, and where each of them ends.

    nodes int64, weight int32, values int32 (any, n_classes)    see `PackedTree`
    impurity, decrease    float64, of trees of numbers
    row_of, set_at        int64  buffers for one tree
    n_nodes, n_rows       int64 (trees + 1,)  nodes and rows of values before each tree
    has_losses            bool (trees,)  whether impurity and decrease are needed
    n_balanced            int64 (trees,)  splits that halve a node
    """

    nodes: np.ndarray
    weight: np.ndarray
    values: np.ndarray
    impurity: np.ndarray
    decrease: np.ndarray
    row_of: np.ndarray
    set_at: np.ndarray
    n_nodes: np.ndarray
    n_rows: np.ndarray
    has_losses: np.ndarray
    n_balanced: np.ndarray


def new_packed_run(n_trees: int, most: int, targets: Targets) -> PackedRun:
    """Room for trees of at most so many nodes, of one output and with whole weights."""
    n_classes = int(targets.starts[-1]) if len(targets.labels) else 0
    room = n_trees * most
    losses = 0 if n_classes else room
    return PackedRun(
        np.empty(2 * room, np.int64),
        np.empty(room, np.int32),
        np.empty((room if n_classes else 0, n_classes), np.int32),
        np.empty(losses),
        np.empty(losses),
        np.empty(most, np.int64),
        np.full(most, -1, np.int64),
        np.zeros(n_trees + 1, np.int64),
        np.zeros(n_trees + 1, np.int64),
        np.zeros(n_trees, dtype=bool),
        np.zeros(n_trees, np.int64),
    )


@kernel
def append_packed(nodes, n, cuts, run, tree):
    """Pack the n nodes that have grown as tree number `tree` of the run."""
    record, row_of = nodes.record, run.row_of
    first, row = run.n_nodes[tree], run.n_rows[tree]
    n_classes = run.values.shape[1]
    n_rows = 0
    if n_classes > 0:
        for node in range(n):
            row_of[node] = 0
        n_rows = _number_leaves(nodes, n, row_of)
        _take_rows(nodes.stats, row_of, n, 1.0, run.values[row : row + n_rows])
    _fill(nodes, n, cuts, run.set_at, row_of, n_classes > 0, run.nodes[2 * first : 2 * (first + n)])
    for node in range(n):
        run.weight[first + node] = record.weight[node]
        run.n_balanced[tree] += record.balanced[node] if record.left[node] >= 0 else 0
        if n_classes == 0 and record.left[node] < 0 and record.error_left[node] != 0.0:
            run.has_losses[tree] = True
    if run.has_losses[tree]:
        _add_losses(record, n, run.impurity[first : first + n], run.decrease[first : first + n])
    run.n_nodes[tree + 1], run.n_rows[tree + 1] = first + n, row + n_rows


@kernel(hidden=True)
def _add_losses(record, n, impurity, decrease):
    """The same as `_with_losses`, for squared errors."""
    for node in range(n - 1, -1, -1):
        left = record.left[node]
        decrease[node] = record.decrease[node] if left >= 0 else 0.0
        error = record.error_left[node]
        if left >= 0:
            error = impurity[left] + impurity[left + 1] + decrease[node]
        impurity[node] = error
    for node in range(n):
        impurity[node] /= record.weight[node]


def trees_of_run(run: PackedRun) -> list[PackedTree]:
    """The trees; they share memory."""
    ends, n_rows = run.n_nodes.tolist(), run.n_rows.tolist()
    last, is_class = ends[-1], run.values.shape[1] > 0
    nodes, weight = _copied(run.nodes, 2 * last), _copied(run.weight, last)
    values = _copied(run.values, n_rows[-1]) if is_class else read_only(np.empty((0, 1)))
    words = read_only(np.empty(0, np.uint32))
    trees = [
        PackedTree(nodes[2 * a : 2 * b], weight[a:b], values[c:d], words)
        for a, b, c, d in zip(ends[:-1], ends[1:], n_rows[:-1], n_rows[1:], strict=True)
    ]
    for k in np.flatnonzero(run.has_losses).tolist():
        own = slice(ends[k], ends[k + 1])
        trees[k] = replace(
            trees[k], impurity=run.impurity[own].copy(), decrease=run.decrease[own].copy()
        )
    return trees


def _copied(array: np.ndarray, n: int) -> np.ndarray:
    return read_only(array[:n].copy())
