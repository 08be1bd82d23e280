"""A tree in 20 bytes a node, as a forest keeps it.

A node is two words: its threshold, and a link of feature, flags and left child; the right child
stands after the left one. A leaf is its own left child, and its first word is its value or the
number of its value. What can be worked out from the leaves is not kept: `unfolded` gives the whole
tree. How rows walk through it is in `walk`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime.jit import kernel
from margrove.grove.grow.assembly import impurity_of_shares, preorder
from margrove.grove.grow.nodes import (
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
from margrove.grove.grow.nodes import SUBSET as SUBSET_AT
from margrove.grove.grow.scores import ABSOLUTE, ENTROPY, GINI, SQUARED
from margrove.grove.grow.split_search import Rules
from margrove.grove.serve.tree_arrays import LEAF, SUBSET, THRESHOLD, TreeArrays
from margrove.grove.table.binning import BinnedDataset
from margrove.grove.table.columns import Columns
from margrove.grove.table.given_targets import power_of_two_near
from margrove.grove.table.targets import Targets

__all__ = [
    "FEATURE_AT",
    "MISSING_AT",
    "SET_AT",
    "Cuts",
    "Kind",
    "PackedTree",
    "cuts_of",
    "pack",
    "packed_of",
    "rescaled",
    "unfolded",
    "values_of_nodes",
]

_ARRAYS = ("nodes", "weight", "values", "words", "samples", "impurity", "decrease", "medians")
FEATURE_AT, SET_AT, MISSING_AT = 32, 60, 61  # places in a link
_LOW_WORD = np.int64(0xFFFFFFFF)
_FEATURE_BITS = np.int64(0xFFFFFFF)


class Kind(NamedTuple):
    """What the trees of a forest have in common.

    criterion      code of `scores`
    n_classes      of each output, () for numbers
    n_outputs
    n_categories   int64 (d,)  of each categorical column, 0 elsewhere
    """

    criterion: int
    n_classes: tuple[int, ...]
    n_outputs: int
    n_categories: np.ndarray

    @property
    def n_values(self) -> int:
        return sum(self.n_classes) if self.n_classes else self.n_outputs

    @property
    def n_pure(self) -> int:
        """Leaves of one class need no row of their own: its number says it all."""
        return self.n_classes[0] if len(self.n_classes) == 1 else 0

    @property
    def has_rows(self) -> bool:
        """Whether the values of leaves are rows, not single numbers."""
        return bool(self.n_classes) or self.n_outputs > 1


@dataclass(frozen=True)
class PackedTree:
    """N nodes, the root first.

    nodes      int64 (2N,)  bits of the threshold, or value, or number of the value; link
    weight     int32, int64 or float64 (N,)  of the training rows that came by
    values     (R, V) whole counts or float64 sums of classes, or float64 means; the values of
               leaves, those of `Kind.n_pure` classes left out; medians of several outputs are
               those of all nodes
    words      uint32  sets of categories, as bits
    samples    int32 or int64 (N,), where they are not the weights
    impurity, decrease    float64 (N,), where they cannot be worked out
    medians    float64 (N,), of one output, where values of inner nodes are not means
    """

    nodes: np.ndarray
    weight: np.ndarray
    values: np.ndarray
    words: np.ndarray
    samples: np.ndarray | None = None
    impurity: np.ndarray | None = None
    decrease: np.ndarray | None = None
    medians: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            own = getattr(self, name)
            if own is not None:  # compiled code trusts them
                object.__setattr__(self, name, read_only(own))

    def __reduce__(self) -> Any:
        return PackedTree, tuple(getattr(self, name) for name in _ARRAYS)

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        arrays = (getattr(self, name) for name in _ARRAYS)
        return sum(own.nbytes for own in arrays if own is not None)

    @property
    def left(self) -> np.ndarray:
        """The left child of each node; a leaf's is itself."""
        left: np.ndarray = self.nodes[1::2] & _LOW_WORD
        return left

    @property
    def is_leaf(self) -> np.ndarray:
        return self.left == np.arange(len(self))

    @property
    def n_leaves(self) -> int:
        return (len(self) + 1) // 2

    def require_sound(self, kind: Kind, n_features: int) -> None:
        """Raise unless every number that compiled code follows leads somewhere; looked at once."""
        asked = (kind.n_classes, kind.n_outputs, n_features, kind.n_categories.tobytes())
        if self.__dict__.get("_sound_for") != asked:
            problem = _problem_of(self, kind, n_features)
            if problem:
                raise ValueError(
                    f"A tree of this forest is not sound: {problem}. It was altered, or the file "
                    "it comes from was. Fit the model again."
                )
            object.__setattr__(self, "_sound_for", asked)


def _problem_of(tree: PackedTree, kind: Kind, n_features: int) -> str:
    n = len(tree.weight)
    if n == 0 or n % 2 == 0 or tree.nodes.shape != (2 * n,):
        return "its arrays differ in length"
    left, is_leaf = tree.left, tree.is_leaf
    if np.any(tree.nodes[1::2] < 0) or np.any(tree.nodes[1::2][is_leaf] != left[is_leaf]):
        return "a link leads nowhere"
    inner = np.flatnonzero(~is_leaf)
    if np.any(left[inner] <= inner) or np.any(left[inner] + 1 >= n):
        return "a child does not come after its parent"
    if not np.array_equal(np.sort(left[inner]), np.arange(1, n, 2)):
        return "a node has no parent, or several"
    feature = (tree.nodes[1::2][inner] >> FEATURE_AT) & _FEATURE_BITS
    if np.any(feature >= n_features):
        return "a feature that is not there"
    first = tree.nodes.view(np.float64)[0::2]
    if np.isnan(first).any():
        return "a threshold is missing"
    has_set = (tree.nodes[1::2][inner] >> SET_AT) & 1 == 1
    sizes = kind.n_categories[feature[has_set]] // 32 + 1
    starts = first[inner][has_set]
    if np.any(starts < 0) or np.any(starts + sizes > len(tree.words)):
        return "a set is longer than what there is of it"
    if kind.has_rows:
        rows = first[is_leaf]
        if np.any(rows < 0) or np.any(rows >= kind.n_pure + len(tree.values)):
            return "a leaf has no value"
        if tree.values.ndim != 2 or tree.values.shape[1] != kind.n_values:
            return "values are missing"
        if not np.isfinite(tree.values).all():
            return "values are not finite"
        ends = np.cumsum(kind.n_classes, dtype=np.int64)
        for end, size in zip(ends, kind.n_classes, strict=True):
            part = tree.values[:, end - size : end]
            if np.any(part < 0) or np.any(part.sum(axis=1) <= 0):
                return "a leaf has no classes"
    elif not np.isfinite(first[is_leaf]).all():
        return "values are not finite"
    return ""


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
    whole, real = nodes.whole[:n], nodes.real[:n]
    is_leaf = whole[:, LEFT] < 0
    words, set_at = _sets(nodes, np.flatnonzero(~is_leaf & (whole[:, SUBSET_AT] >= 0)), cuts,
                          columns, n_categories, n)  # fmt: skip
    packed = np.empty(2 * n, np.int64)
    row_of = np.zeros(n, np.int64)
    is_whole = targets.unit == 1.0
    counts = np.int32 if max(whole[0, WEIGHT], whole[0, SAMPLES]) < 2**31 else np.int64
    constrained = len(rules.monotone) > 0
    if is_class and n_outputs == 1 and not constrained:
        n_rows = _number_leaves(whole, nodes.stats, n, row_of)
        values = np.empty((n_rows, nodes.stats.shape[1]), counts if is_whole else np.float64)
        _take_rows(nodes.stats, row_of, n, targets.unit, values)
    elif is_class or n_outputs > 1:
        n_pure = nodes.stats.shape[1] if is_class and n_outputs == 1 else 0
        is_kept = is_leaf | (rules.criterion == ABSOLUTE)
        row_of[is_kept] = n_pure + np.arange(int(is_kept.sum()))
        values = nodes.value[:n][is_kept] if not is_class else nodes.stats[:n][is_kept] * 1.0
        if constrained and is_class:
            values = _bounded(values, real[is_leaf]) * whole[is_leaf, WEIGHT][:, None]
    else:
        values = np.empty((0, 1))
    _fill(whole, real, nodes.value, n, cuts, set_at, row_of, len(values) > 0 or is_class, packed)
    tree = PackedTree(
        packed,
        whole[:, WEIGHT].astype(counts) if is_whole else whole[:, WEIGHT] * targets.unit,
        values,
        words,
    )
    if not weights_count:
        tree = replace(tree, samples=whole[:, SAMPLES].astype(counts))
    simple = is_whole and n_outputs == 1 and not constrained
    known = rules.criterion in (GINI, ENTROPY) or (
        rules.criterion == SQUARED and not real[is_leaf, ERROR_LEFT].any()
    )
    if simple and known:
        return tree
    return _with_losses(tree, nodes, n, targets, rules)


def _bounded(sums: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Shares of two classes within the bounds that monotone constraints set."""
    second = np.clip(sums[:, 1] / sums.sum(axis=1), real[:, LOW], real[:, HIGH])
    return np.column_stack([1.0 - second, second])


def _with_losses(
    tree: PackedTree, nodes: Nodes, n: int, targets: Targets, rules: Rules
) -> PackedTree:
    """Impurities that only the training rows tell."""
    whole, real = nodes.whole[:n], nodes.real[:n]
    n_outputs = len(targets.starts) - 1
    inner = whole[:, LEFT] >= 0
    decrease = np.where(inner, real[:, DECREASE], 0.0) / n_outputs
    if len(targets.labels):
        shares = nodes.stats[:n] / whole[:, WEIGHT][:, None].astype(np.float64)
        parts = [
            shares[:, a:b] for a, b in zip(targets.starts[:-1], targets.starts[1:], strict=True)
        ]
        impurity = np.mean([impurity_of_shares(rules.criterion, part) for part in parts], axis=0)
    else:
        error = real[:, ERROR_LEFT] / n_outputs
        left = whole[:, LEFT]
        for node in range(n - 1, -1, -1):
            if inner[node]:
                error[node] = error[left[node]] + error[left[node] + 1] + decrease[node]
        impurity = error / (whole[:, WEIGHT] * targets.unit)
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
    features = nodes.whole[which, FEATURE]
    sizes = n_categories[features] // 32 + 1
    set_at[which] = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), np.uint32)
    _translate_sets(nodes.whole, nodes.subsets, which, set_at, cuts.lows, cuts.first,
                    columns.n_codes, words)  # fmt: skip
    return words, set_at


@kernel
def _translate_sets(whole, subsets, which, set_at, lows, first, n_codes, words):
    for node in which:
        feature, begin = whole[node, FEATURE], whole[node, SUBSET_AT]
        for code in range(n_codes[feature]):
            if (subsets[begin + code // 32] >> np.uint32(code % 32)) & np.uint32(1):
                category = np.int64(lows[first[feature] + code])
                words[set_at[node] + category // 32] |= np.uint32(1) << np.uint32(category % 32)


@kernel
def _number_leaves(whole, stats, n, row_of):
    """The class of a pure leaf, a number beyond the classes for others; how many those are."""
    n_classes = stats.shape[1]
    count = 0
    for node in range(n):
        if whole[node, LEFT] >= 0:
            continue
        row_of[node] = -1
        for k in range(n_classes):
            if stats[node, k] == whole[node, WEIGHT]:
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
def _fill(whole, real, value, n, cuts, set_at, row_of, has_rows, packed):
    """The two words of each node."""
    words = packed.view(np.float64)
    for node in range(n):
        left = whole[node, LEFT]
        if left < 0:
            words[2 * node] = float(row_of[node]) if has_rows else value[node, 0]
            packed[2 * node + 1] = node
            continue
        feature, code, following = (
            whole[node, FEATURE], whole[node, CODE], whole[node, NEXT_CODE],
        )  # fmt: skip
        goes_left = whole[node, MISSING_LEFT] == 1
        if whole[node, MISSING_LEFT] < 0:  # there were none: with the larger part
            goes_left = whole[left, SAMPLES] > whole[left + 1, SAMPLES]
        link = left | (feature << FEATURE_AT) | (np.int64(goes_left) << MISSING_AT)
        if set_at[node] >= 0:
            words[2 * node] = float(set_at[node])
            link |= np.int64(1) << SET_AT
        else:
            words[2 * node] = _threshold(cuts, feature, code, following, real[node, DRAWN])
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


def values_of_nodes(tree: PackedTree, kind: Kind) -> np.ndarray:
    """Of all nodes: shares of the classes, output after output, or means, (N, V)."""
    sums = _sums_of_nodes(tree, kind)
    if not kind.n_classes:
        return sums
    if len(kind.n_classes) == 1 and tree.impurity is None:
        return sums / tree.weight[:, None].astype(np.float64)
    parts = np.split(sums, np.cumsum(kind.n_classes)[:-1], axis=1)
    return np.concatenate([part / part.sum(axis=1, keepdims=True) for part in parts], axis=1)


def _sums_of_nodes(tree: PackedTree, kind: Kind) -> np.ndarray:
    n = len(tree)
    leaf = np.flatnonzero(tree.is_leaf)
    first = tree.nodes.view(np.float64)[0::2][leaf]
    sums = np.zeros((n, kind.n_values))
    weight = tree.weight.astype(np.float64)
    if not kind.n_classes and len(tree.values) == n:  # of all nodes, not of the leaves alone
        return tree.values.copy()
    if not kind.has_rows:
        sums[leaf, 0] = first * weight[leaf]
        means = first
    else:
        row = first.astype(np.int64) - kind.n_pure
        pure = row < 0
        sums[leaf[pure], row[pure] + kind.n_pure] = weight[leaf[pure]]
        sums[leaf[~pure]] = tree.values[row[~pure]]
        if not kind.n_classes:
            sums[leaf] *= weight[leaf][:, None]
    _add_upwards(tree.left, sums)
    if kind.n_classes:
        return sums
    if tree.medians is not None:
        return tree.medians[:, None].copy()
    sums /= weight[:, None]
    sums[leaf] = means[:, None] if not kind.has_rows else tree.values[first.astype(np.int64)]
    return sums


@kernel
def _add_upwards(left, sums):
    for node in range(len(left) - 1, -1, -1):
        if left[node] != node:
            for k in range(sums.shape[1]):
                sums[node, k] = sums[left[node], k] + sums[left[node] + 1, k]


def unfolded(tree: PackedTree, kind: Kind) -> TreeArrays:
    """The tree with everything that a tree on its own has."""
    n = len(tree)
    left_or_none = np.where(tree.is_leaf, -1, tree.left)
    order, parent = preorder(left_or_none)
    inner = ~tree.is_leaf[order]
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    link = tree.nodes[1::2][order]
    first = tree.nodes.view(np.float64)[0::2][order]
    has_set = inner & ((link >> SET_AT) & 1 == 1)
    feature = np.where(inner, (link >> FEATURE_AT) & _FEATURE_BITS, -1).astype(np.int32)
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
    _gather_upwards(tree.left, loss)
    impurity = loss[:, 0] / weight
    if scale != 1.0:
        impurity, decrease = _times(impurity, scale, 2), _times(decrease, scale, 2)
    return impurity, decrease


def _times(amounts: np.ndarray, scale: float, powers: int) -> np.ndarray:
    """amounts * scale ** powers, one by one: the power itself may be beyond floating point."""
    for _ in range(powers):
        with np.errstate(over="ignore", under="ignore"):
            amounts = np.minimum(amounts * scale, np.finfo(float).max)
    return amounts


@kernel
def _gather_upwards(left, loss):
    """The loss of a node: what its own split takes away, and what is left in its children."""
    for node in range(len(left) - 1, -1, -1):
        if left[node] != node:
            loss[node, 0] += loss[left[node], 0] + loss[left[node] + 1, 0]


def packed_of(arrays: TreeArrays, kind: Kind) -> PackedTree:
    """A binary tree that was unfolded, or grown otherwise, in its packed form."""
    n = len(arrays)
    # Children side by side: nodes level by level, or in any other order of parents.
    inner = np.flatnonzero(arrays.kind != LEAF)
    number = np.zeros(n, np.int64)
    children = arrays.children.reshape(-1, 2)
    number[children] = 1 + 2 * np.arange(len(children))[:, None] + np.array([0, 1])
    is_leaf = arrays.kind == LEAF
    nodes = np.zeros((n, 2), np.int64)
    nodes[:, 1] = np.arange(n)
    words = nodes.ravel().view(np.float64).reshape(n, 2)
    has_set = arrays.kind[inner] == SUBSET
    own = number[inner]
    words[own, 0] = np.where(has_set, arrays.set_start[inner], arrays.threshold[inner])
    nodes[own, 1] = (
        number[children[:, 0]]
        | (arrays.feature[inner].astype(np.int64) << FEATURE_AT)
        | (has_set.astype(np.int64) << SET_AT)
        | ((arrays.missing_child[inner] == 0).astype(np.int64) << MISSING_AT)
    )
    leaves = number[is_leaf]
    values = np.empty((0, 1))
    has_medians = kind.criterion == ABSOLUTE

    def moved(figures: np.ndarray) -> np.ndarray:
        placed = np.empty_like(figures)
        placed[number] = figures
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


def rescaled(tree: PackedTree, scale: float, powers: int) -> PackedTree:
    """Means of targets that were divided by `scale`, a power of two, for the fit."""
    nodes = tree.nodes.copy()
    leaves = 2 * np.flatnonzero(tree.is_leaf)
    values = tree.values * scale
    if not len(values):
        nodes.view(np.float64)[leaves] *= scale
    medians = None if tree.medians is None else tree.medians * scale
    changed = replace(tree, nodes=nodes, values=values, medians=medians)
    if tree.impurity is None or tree.decrease is None:
        return changed
    return replace(
        changed,
        impurity=_times(tree.impurity, scale, powers),
        decrease=_times(tree.decrease, scale, powers),
    )
