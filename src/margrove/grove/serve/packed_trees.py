"""A tree in 20 bytes a node, as a forest keeps it.

A node is two words of 64 bits: its threshold, and a link that contains feature, flags and left
child. The right child comes after the left one. A leaf is its own left child, and its first word is
its value, or the index of its value in `values`. What can be computed from the leaves is not kept:
`unfolding` computes it. `tree_packing` makes packed trees from the nodes that have grown, and
`forest_walk` walks rows through them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import MisfitError, kernel

__all__ = [
    "FEATURE_AT",
    "FEATURE_BITS",
    "MISSING_AT",
    "SET_AT",
    "Kind",
    "PackedTree",
    "TreeForm",
    "rescaled",
    "times_powers",
    "values_of_nodes",
]

_ARRAYS = ("nodes", "weight", "values", "words", "samples", "impurity", "decrease", "medians")
FEATURE_AT, SET_AT, MISSING_AT = 32, 60, 61  # bit positions in a link
_LOW_WORD = np.int64(0xFFFFFFFF)
FEATURE_BITS = np.int64(0xFFFFFFF)


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
        """The number of classes for which a pure leaf stores the class instead of a row."""
        return self.n_classes[0] if len(self.n_classes) == 1 else 0

    @property
    def has_rows(self) -> bool:
        """Whether values of leaves are rows of `PackedTree.values`, not single numbers."""
        return bool(self.n_classes) or self.n_outputs > 1


@dataclass(frozen=True)
class PackedTree:
    """N nodes, the root first.

    nodes      int64 (2N,)  for each node: the bits of its threshold, value or index of its value,
               and its link
    weight     int32, int64 or float64 (N,)  of the training rows in the node
    values     (R, V)  values of the leaves that are not pure: counts (integers) or sums (float64)
               of classes, or float64 means; for medians of several outputs, values of all nodes
    words      uint32  sets of categories, as bits
    samples    int32 or int64 (N,); None if they equal the weights
    impurity, decrease    float64 (N,); None if they can be computed from the values
    medians    float64 (N,); None unless there is one output and leaves hold medians
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
            array = getattr(self, name)
            if array is not None and array.flags.writeable:  # compiled code trusts them
                object.__setattr__(self, name, read_only(array))

    def __reduce__(self) -> Any:
        return PackedTree, tuple(getattr(self, name) for name in _ARRAYS)

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def nbytes(self) -> int:
        """The size of all arrays together."""
        arrays = (getattr(self, name) for name in _ARRAYS)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def left(self) -> np.ndarray:
        """int64 (N,): the left child of each node; for a leaf the leaf itself."""
        left: np.ndarray = self.nodes[1::2] & _LOW_WORD
        return left

    @property
    def is_leaf(self) -> np.ndarray:
        return self.left == np.arange(len(self))

    @property
    def n_leaves(self) -> int:
        return (len(self) + 1) // 2

    def require_sound(self, kind: Kind, n_features: int) -> None:
        """Raise unless every index that compiled code follows is valid; checked only once."""
        checked = (kind.n_classes, kind.n_outputs, n_features, kind.n_categories.tobytes())
        if self.__dict__.get("_sound_for") != checked:
            problem = _problem_of(self, kind, n_features)
            if problem:
                raise ValueError(
                    f"A tree of this forest is not sound: {problem}. It, or the file it comes "
                    "from, was altered. Fit the model again."
                )
            object.__setattr__(self, "_sound_for", checked)


def _problem_of(tree: PackedTree, kind: Kind, n_features: int) -> str:
    """What is wrong with the arrays, in words; empty if nothing is wrong."""
    n = len(tree.weight)
    if n == 0 or n % 2 == 0 or tree.nodes.shape != (2 * n,):
        return "its arrays differ in length"
    left, is_leaf = tree.left, tree.is_leaf
    if np.any(tree.nodes[1::2] < 0) or np.any(tree.nodes[1::2][is_leaf] != left[is_leaf]):
        return "a link is invalid"
    inner = np.flatnonzero(~is_leaf)
    if np.any(left[inner] <= inner) or np.any(left[inner] + 1 >= n):
        return "a child does not come after its parent"
    if not np.array_equal(np.sort(left[inner]), np.arange(1, n, 2)):
        return "a node has no parent, or several"
    feature = (tree.nodes[1::2][inner] >> FEATURE_AT) & FEATURE_BITS
    if np.any(feature >= n_features):
        return "a split has an unknown feature"
    first = tree.nodes.view(np.float64)[0::2]
    if np.isnan(first).any():
        return "a threshold is missing"
    has_set = (tree.nodes[1::2][inner] >> SET_AT) & 1 == 1
    sizes = kind.n_categories[feature[has_set]] // 32 + 1
    starts = first[inner][has_set]
    if np.any(starts < 0) or np.any(starts + sizes > len(tree.words)):
        return "a set ends after the end of its array"
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
            counts = tree.values[:, end - size : end]
            if np.any(counts < 0) or np.any(counts.sum(axis=1) <= 0):
                return "a leaf has no classes"
    elif not np.isfinite(first[is_leaf]).all():
        return "values are not finite"
    return ""


def values_of_nodes(tree: PackedTree, kind: Kind) -> np.ndarray:
    """float64 (N, V): class shares of all nodes, output after output, or means."""
    sums = _sums_of_nodes(tree, kind)
    if not kind.n_classes:
        return sums
    if len(kind.n_classes) == 1 and tree.impurity is None:
        return sums / tree.weight[:, None].astype(np.float64)
    by_output = np.split(sums, np.cumsum(kind.n_classes)[:-1], axis=1)
    shares = [of_classes / of_classes.sum(axis=1, keepdims=True) for of_classes in by_output]
    return np.concatenate(shares, axis=1)


def _sums_of_nodes(tree: PackedTree, kind: Kind) -> np.ndarray:
    n = len(tree)
    leaf = np.flatnonzero(tree.is_leaf)
    first = tree.nodes.view(np.float64)[0::2][leaf]
    sums = np.zeros((n, kind.n_values))
    weight = tree.weight.astype(np.float64)
    if not kind.n_classes and len(tree.values) == n:  # values of all nodes, not of leaves only
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


def rescaled(tree: PackedTree, scale: float, powers: int) -> PackedTree:
    """The tree for the original targets, which were divided by `scale`, a power of two.

    powers is `Criterion.scale_powers`.
    """
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
        impurity=times_powers(tree.impurity, scale, powers),
        decrease=times_powers(tree.decrease, scale, powers),
    )


def times_powers(amounts: np.ndarray, scale: float, powers: int) -> np.ndarray:
    """amounts * scale ** powers, one factor at a time: the power itself may overflow."""
    for _ in range(powers):
        with np.errstate(over="ignore", under="ignore"):
            amounts = np.minimum(amounts * scale, np.finfo(float).max)
    return amounts


# -- trees as plain values, for checkpoints --

_WHOLE = (np.int32, np.int64)
_COUNTS = (*_WHOLE, np.float64)
# The types of each array, and whether it has an entry for each node. The last four may be None.
_TYPES: dict[str, tuple[tuple[Any, ...], bool]] = {
    "nodes": ((np.int64,), False),
    "weight": (_COUNTS, True),
    "values": (_COUNTS, False),
    "words": ((np.uint32,), False),
    "samples": (_WHOLE, True),
    "impurity": ((np.float64,), True),
    "decrease": ((np.float64,), True),
    "medians": ((np.float64,), True),
}
_OPTIONAL = ("samples", "impurity", "decrease", "medians")


class TreeForm(NamedTuple):
    """What the trees of a model have in common: their kind, and the number of features."""

    kind: Kind
    n_features: int

    @staticmethod
    def values(tree: PackedTree) -> dict[str, Any]:
        """The arrays of a tree by name; they are read-only."""
        return {name: getattr(tree, name) for name in _TYPES}

    def tree(self, values: Any) -> PackedTree:
        """The tree that `values` returned the arrays of, checked."""
        if not isinstance(values, dict) or set(values) != set(_TYPES):
            raise MisfitError("a tree lacks an array")
        for name, (kinds, by_node) in _TYPES.items():
            array = values[name]
            if array is None and name in _OPTIONAL:
                continue
            is_right = (
                isinstance(array, np.ndarray)
                and array.dtype in kinds
                and array.ndim == (2 if name == "values" else 1)
                and (not by_node or array.shape == np.shape(values["weight"]))
            )
            if not is_right:
                raise MisfitError(f"{name} of a tree has another type or length")
        arrays: dict[str, Any] = {name: _contiguous(values[name]) for name in _TYPES}
        tree = PackedTree(**arrays)
        tree.require_sound(self.kind, self.n_features)
        return tree

    def trees(self, values: Any) -> list[PackedTree]:
        """The trees of a list of such values."""
        if not isinstance(values, list):
            raise MisfitError("trees are not a list")
        return [self.tree(arrays) for arrays in values]


def _contiguous(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else np.ascontiguousarray(array)
