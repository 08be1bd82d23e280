"""A grown tree as flat arrays.

The structure in which a tree grows (`grow.nodes`) is not the structure that predicts: this one is
made once, at the end, and is the same for binary, multiway and oblique trees. Nodes are numbered
in preorder: the root is 0, a child comes after its parent, and the subtree of a node is a run of
numbers. Nothing here is recursive, so a tree may have any depth. `tree_walk` finds the leaves of
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel

__all__ = [
    "LEAF",
    "MULTIWAY",
    "OBLIQUE",
    "SUBSET",
    "THRESHOLD",
    "TreeArrays",
    "by_output",
    "predicted_classes",
    "subtree",
]

LEAF, THRESHOLD, SUBSET, MULTIWAY, OBLIQUE = range(5)


@dataclass(frozen=True)
class TreeArrays:
    """N nodes; see the module for their order.

    kind            int8 (N,)  LEAF, or the kind of split:
                      THRESHOLD  x[feature] <= threshold: child 0, else child 1
                      SUBSET     category x[feature] in the node's set: child 0, else child 1
                      MULTIWAY   one child for each category in the node's training rows
                      OBLIQUE    coef . x <= threshold: child 0, else child 1
    feature         int32 (N,)  -1 where there is none
    threshold       float64 (N,)  NaN where there is none
    first_child     int64 (N,)  children[first_child : first_child + n_children]
    n_children      int32 (N,)
    children        int64 (N - 1,)
    parent          int64 (N,)  -1 for the root
    missing_child   int32 (N,)  the branch of missing and unknown values; -1: they take all
                    branches, each with its share (C4.5)
    set_start       int64 (N,)  SUBSET: first word of the set in `words` (bit c % 32 of word c // 32
                    for category c); MULTIWAY: first entry in `branches`; OBLIQUE: row of `coef`
    set_size        int64 (N,)  number of categories that have a bit or an entry
    words           uint32
    branches        int32  the branch of each category, -1 for one without training rows
    coef            float64 (oblique nodes, d)
    weight          float64 (N,)  of the training rows in the node
    n_samples       int64 (N,)  the number of training samples in the node
    value           float64 (N, V)  shares of the classes, output after output, or means
    impurity        float64 (N,)
    decrease        float64 (N,)  of weight times impurity, by the node's split
    """

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    first_child: np.ndarray
    n_children: np.ndarray
    children: np.ndarray
    parent: np.ndarray
    missing_child: np.ndarray
    set_start: np.ndarray
    set_size: np.ndarray
    words: np.ndarray
    branches: np.ndarray
    coef: np.ndarray
    weight: np.ndarray
    n_samples: np.ndarray
    value: np.ndarray
    impurity: np.ndarray
    decrease: np.ndarray

    def __post_init__(self) -> None:
        for field in fields(self):  # compiled code trusts them
            object.__setattr__(self, field.name, read_only(getattr(self, field.name)))

    def __len__(self) -> int:
        return len(self.kind)

    def __reduce__(self) -> Any:
        return TreeArrays, tuple(getattr(self, field.name) for field in fields(self))

    def require_sound(self) -> None:
        """Raise unless every index that compiled code follows is valid; checked only once."""
        if not self.__dict__.get("_is_sound"):
            problem = _problem_of(self)
            if problem:
                raise ValueError(
                    f"The arrays of this tree are not sound: {problem}. They, or the file they "
                    "come from, were altered. Fit the model again."
                )
            object.__setattr__(self, "_is_sound", True)

    @property
    def is_binary(self) -> bool:
        """Whether every split has two branches, of which each row takes one."""
        return not bool(np.any(self.kind == MULTIWAY) or np.any(self.missing_child < 0))

    @property
    def depth(self) -> np.ndarray:
        """int64 (N,): the number of edges between the root and each node."""
        self.require_sound()
        depth: np.ndarray = _depths(self.parent)
        return depth

    @property
    def ends(self) -> np.ndarray:
        """int64 (N,): the subtree of a node is node .. ends[node] - 1."""
        self.require_sound()
        ends: np.ndarray = _subtree_ends(self.parent)
        return ends

    @property
    def n_leaves(self) -> int:
        return int((self.kind == LEAF).sum())

    def children_of(self, node: int) -> np.ndarray:
        first = self.first_child[node]
        found: np.ndarray = self.children[first : first + self.n_children[node]]
        return found

    def categories_of(self, node: int, branch: int) -> np.ndarray:
        """The categories that take a branch of a SUBSET or MULTIWAY node, as numbers."""
        start, size = self.set_start[node], self.set_size[node]
        numbers = np.arange(size)
        if self.kind[node] == MULTIWAY:
            return numbers[self.branches[start : start + size] == branch]
        bits = (self.words[start + numbers // 32] >> (numbers % 32).astype(np.uint32)) & 1
        return numbers[bits == (1 - branch)]


def _problem_of(tree: TreeArrays) -> str:
    """What is wrong with the arrays, in words; empty if nothing is wrong."""
    n = len(tree.kind)
    per_node = ("feature", "threshold", "first_child", "n_children", "parent", "missing_child",
                "set_start", "set_size", "weight", "n_samples", "impurity", "decrease")  # fmt: skip
    if n == 0 or any(getattr(tree, name).shape != (n,) for name in per_node):
        return "they differ in length"
    if tree.value.ndim != 2 or len(tree.value) != n or not np.isfinite(tree.value).all():
        return "values are missing or not finite"
    counts = tree.n_children.astype(np.int64)
    is_leaf = tree.kind == LEAF
    if np.any((tree.kind < LEAF) | (tree.kind > OBLIQUE)) or np.any(is_leaf != (counts == 0)):
        return "a node is neither a leaf nor has children"
    if np.any(counts < 0) or np.any(counts[(tree.kind != MULTIWAY) & ~is_leaf] != 2):
        return "a node has a wrong number of children"
    if len(tree.children) != n - 1 or not np.array_equal(
        tree.first_child, np.cumsum(counts) - counts
    ):
        return "children are not where they should be"
    owner = np.repeat(np.arange(n), counts)
    if np.any(tree.children <= owner) or np.any(tree.children >= n):
        return "a child does not come after its parent"
    if tree.parent[0] != -1 or not np.array_equal(tree.parent[tree.children], owner):
        return "parents and children contradict each other"
    if np.any(np.bincount(tree.children, minlength=n)[1:] != 1):
        return "a node has several parents"
    has_feature = ~is_leaf & (tree.kind != OBLIQUE)
    if np.any(tree.feature[has_feature] < 0) or np.any(tree.feature[is_leaf] >= 0):
        return "a split has no feature"
    if np.any(tree.missing_child[~is_leaf] < -1) or np.any(
        tree.missing_child[~is_leaf] >= counts[~is_leaf]
    ):
        return "missing values have no branch"
    return _problem_of_sets(tree)


def _problem_of_sets(tree: TreeArrays) -> str:
    compared = (tree.kind == THRESHOLD) | (tree.kind == OBLIQUE)
    if np.isnan(tree.threshold[compared]).any():
        return "a threshold is missing"
    start, size = tree.set_start, tree.set_size
    if np.any(start < 0) or np.any(size < 0):
        return "a set has no place"
    for kind, length in ((SUBSET, 32 * len(tree.words)), (MULTIWAY, len(tree.branches))):
        of_kind = tree.kind == kind
        first = 32 * start[of_kind] if kind == SUBSET else start[of_kind]
        if np.any(start[of_kind] > length) or np.any(first + size[of_kind] > length):
            return "a set ends after the end of its array"
    if np.any(start[tree.kind == OBLIQUE] >= len(tree.coef)):
        return "an oblique node has no coefficients"
    for node in np.flatnonzero(tree.kind == MULTIWAY).tolist():
        branches = tree.branches[start[node] : start[node] + size[node]]
        if np.any(branches < -1) or np.any(branches >= tree.n_children[node]):
            return "a category has no branch"
    return ""


@kernel
def _depths(parent):
    depth = np.zeros(len(parent), np.int64)
    for node in range(1, len(parent)):
        depth[node] = depth[parent[node]] + 1
    return depth


@kernel
def _subtree_ends(parent):
    ends = np.arange(1, len(parent) + 1)
    for node in range(len(parent) - 1, 0, -1):
        ends[parent[node]] = max(ends[parent[node]], ends[node])
    return ends


def subtree(tree: TreeArrays, pruned: np.ndarray) -> TreeArrays:
    """The tree in which the nodes marked in `pruned` (bool (N,)) have become leaves."""
    removed = np.zeros(len(tree), dtype=bool)
    for node in range(1, len(tree)):
        removed[node] = removed[tree.parent[node]] or pruned[tree.parent[node]]
    kept = np.flatnonzero(~removed)
    number = np.full(len(tree), -1, np.int64)
    number[kept] = np.arange(len(kept))
    is_leaf = pruned[kept] | (tree.kind[kept] == LEAF)
    n_children = np.where(is_leaf, 0, tree.n_children[kept]).astype(np.int32)
    first_child = np.cumsum(n_children) - n_children
    children = [number[tree.children_of(node)] for node in kept[~is_leaf]]
    parent = tree.parent[kept]
    changed: dict[str, Any] = {
        name: getattr(tree, name)[kept]
        for name in ("feature", "threshold", "missing_child", "set_start", "set_size", "weight",
                     "n_samples", "value", "impurity", "decrease")
    }  # fmt: skip
    changed["feature"] = np.where(is_leaf, -1, changed["feature"]).astype(np.int32)
    changed["threshold"] = np.where(is_leaf, np.nan, changed["threshold"])
    changed["missing_child"] = np.where(is_leaf, 0, changed["missing_child"]).astype(np.int32)
    changed["set_size"] = np.where(is_leaf, 0, changed["set_size"])
    changed["decrease"] = np.where(is_leaf, 0.0, changed["decrease"])
    return replace(
        tree,
        kind=np.where(is_leaf, LEAF, tree.kind[kept]).astype(np.int8),
        first_child=first_child.astype(np.int64),
        n_children=n_children,
        children=np.concatenate(children) if children else np.empty(0, np.int64),
        parent=np.where(parent >= 0, number[np.maximum(parent, 0)], -1),
        **changed,
    )


# -- shares of classes --


def by_output(shares: np.ndarray, n_classes: Sequence[int]) -> list[np.ndarray]:
    """Shares (n, V) of all classes as an array for each output; n_classes has their widths."""
    return np.split(shares, np.cumsum(n_classes)[:-1], axis=1)


def predicted_classes(tree: TreeArrays, n_classes: Sequence[int] | None) -> np.ndarray:
    """int64 (N, outputs): the most frequent class of each output; the first one if tied."""
    sizes = [tree.value.shape[1]] if n_classes is None else [int(n) for n in n_classes]
    if sum(sizes) != tree.value.shape[1] or min(sizes) < 1:
        raise ValueError(
            "n_classes must have the number of classes of each output, and their sum must be "
            f"{tree.value.shape[1]}. Got {sizes}."
        )
    return np.stack([share.argmax(axis=1) for share in by_output(tree.value, sizes)], axis=1)
