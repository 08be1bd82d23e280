"""A grown tree as flat arrays, and the way of a row through it.

The growing structure (`nodes`) is not the structure that predicts: this one is made once, from
whatever grew the tree, and serves binary, multiway and oblique trees alike. Nodes are numbered in
preorder: the root is 0, a child comes after its parent, and the subtree of a node is a run of
numbers. Nothing here is recursive, so a tree may be as deep as it likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime.jit import kernel
from margrove._runtime.threads import run_tiles

__all__ = [
    "LEAF",
    "MULTIWAY",
    "OBLIQUE",
    "SUBSET",
    "THRESHOLD",
    "TreeArrays",
    "leaves_of",
    "subtree",
    "values_of",
]

LEAF, THRESHOLD, SUBSET, MULTIWAY, OBLIQUE = range(5)
_CELLS_AT_ONCE = 1 << 16  # that stay in cache between two readings


@dataclass(frozen=True)
class TreeArrays:
    """N nodes; see the module for their order.

    kind            int8 (N,)  LEAF, or how the node asks:
                      THRESHOLD  x[feature] <= threshold: child 0, else child 1
                      SUBSET     category x[feature] in the node's set: child 0, else child 1
                      MULTIWAY   one child for each category that was there
                      OBLIQUE    coef . x <= threshold: child 0, else child 1
    feature         int32 (N,)  -1 where there is none
    threshold       float64 (N,)  NaN where there is none
    first_child     int64 (N,)  children[first_child : first_child + n_children]
    n_children      int32 (N,)
    children        int64 (N - 1,)
    parent          int64 (N,)  -1 for the root
    missing_child   int32 (N,)  the branch of missing and unknown values; -1: all branches, each
                    with its share (C4.5)
    set_start       int64 (N,)  SUBSET: first word of the set in `words` (bit c % 32 of word c // 32
                    for category c); MULTIWAY: first entry in `branches`; OBLIQUE: row of `coef`
    set_size        int64 (N,)  number of categories that have a bit or an entry
    words           uint32
    branches        int32  the branch of each category, -1 for one that was not there
    coef            float64 (oblique nodes, d)
    weight          float64 (N,)  of the training rows that came by
    n_samples       int64 (N,)
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
        for own in fields(self):  # compiled code trusts them
            object.__setattr__(self, own.name, read_only(getattr(self, own.name)))

    def __len__(self) -> int:
        return len(self.kind)

    def __reduce__(self) -> Any:
        return TreeArrays, tuple(getattr(self, own.name) for own in fields(self))

    def require_sound(self) -> None:
        """Raise unless every number that compiled code follows leads somewhere; looked at once."""
        if not self.__dict__.get("_is_sound"):
            problem = _problem_of(self)
            if problem:
                raise ValueError(
                    f"The arrays of this tree are not sound: {problem}. They were altered, or the "
                    "file they come from was. Fit the model again."
                )
            object.__setattr__(self, "_is_sound", True)

    @property
    def is_binary(self) -> bool:
        """Whether every split has two branches, and each row takes one."""
        return not bool(np.any(self.kind == MULTIWAY) or np.any(self.missing_child < 0))

    @property
    def depth(self) -> np.ndarray:
        """int64 (N,): edges between the root and each node."""
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
    """What is wrong with the arrays, in words; nothing if all is well."""
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
    asks = ~is_leaf & (tree.kind != OBLIQUE)
    if np.any(tree.feature[asks] < 0) or np.any(tree.feature[is_leaf] >= 0):
        return "a question without a feature"
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
    for kind, room in ((SUBSET, 32 * len(tree.words)), (MULTIWAY, len(tree.branches))):
        own = tree.kind == kind
        first = 32 * start[own] if kind == SUBSET else start[own]
        if np.any(start[own] > room) or np.any(first + size[own] > room):
            return "a set is longer than what there is of it"
    if np.any(start[tree.kind == OBLIQUE] >= len(tree.coef)):
        return "an oblique node has no coefficients"
    for node in np.flatnonzero(tree.kind == MULTIWAY).tolist():
        branches = tree.branches[start[node] : start[node] + size[node]]
        if np.any(branches < -1) or np.any(branches >= tree.n_children[node]):
            return "a category has no branch"
    return ""


def leaves_of(
    tree: TreeArrays,
    X: np.ndarray,
    *,
    n_threads: int = 1,
    on_infinity: Callable[[], None] | None = None,
) -> np.ndarray:
    """The leaf of each row of a dense float64 or float32 X (NaN is missing), int64 (n,).

    For trees in which each row takes one branch. X is read once: whether it holds infinity is found
    out on the way, and `on_infinity` called then.
    """
    tree.require_sound()
    n_wanted = max(int(tree.feature.max()) + 1, tree.coef.shape[1] if len(tree.coef) else 0)
    if X.ndim != 2 or X.shape[1] < n_wanted:
        raise ValueError(f"The tree asks for {n_wanted} features. Got X of shape {X.shape}.")
    found = np.empty(len(X), np.int64)
    missing_child = _certain_branches(tree)
    packed = _packed(tree) if np.all(tree.kind <= THRESHOLD) else None
    at_once = max(64, _CELLS_AT_ONCE // max(1, X.shape[1]))
    per_tile = 16 * at_once
    n_tiles = -(-len(X) // per_tile)
    finite = np.ones(max(n_tiles, 1), dtype=bool)

    def walk(tile: int) -> None:
        part = X[tile * per_tile : (tile + 1) * per_tile]
        own = found[tile * per_tile : (tile + 1) * per_tile]
        if packed is not None:
            finite[tile] = _walk_packed(part, *packed, at_once, own)
        if packed is None or not finite[tile]:
            finite[tile] = False
            _walk(part, tree.kind, tree.feature, tree.threshold, tree.first_child, tree.children,
                  missing_child, tree.set_start, tree.set_size, tree.words, tree.branches,
                  tree.coef, own)  # fmt: skip

    run_tiles(walk, n_tiles, n_threads)
    if on_infinity is not None and not finite.all() and np.isinf(X).any():
        on_infinity()
    return found


def _certain_branches(tree: TreeArrays) -> np.ndarray:
    """Of branches that are shared out, the heaviest."""
    unsure = np.flatnonzero((tree.missing_child < 0) & (tree.n_children > 0))
    if not len(unsure):
        return tree.missing_child
    certain = tree.missing_child.copy()
    for node in unsure.tolist():
        certain[node] = int(np.argmax(tree.weight[tree.children_of(node)]))
    return certain


def values_of(tree: TreeArrays, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """The value of each row's leaf; rows that go down several branches get their average."""
    value = tree.value[leaves]
    if np.any((tree.missing_child < 0) & (tree.n_children > 0)):
        _mix(X, tree.kind, tree.feature, tree.threshold, tree.first_child, tree.n_children,
             tree.children, tree.missing_child, tree.set_start, tree.set_size, tree.words,
             tree.branches, tree.coef, tree.weight, tree.value, value)  # fmt: skip
    return value


@kernel
def _mix(X, kind, feature, threshold, first_child, n_children, children, missing_child, set_start,
         set_size, words, branches, coef, weight, value, mixed):  # fmt: skip
    stack = np.empty(len(kind) + 1, np.int64)
    share = np.empty(len(kind) + 1)
    for i in range(X.shape[0]):
        mixed[i] = 0.0
        stack[0], share[0] = 0, 1.0
        size = 1
        while size:
            size -= 1
            node, part = stack[size], share[size]
            if kind[node] == LEAF:
                for k in range(value.shape[1]):
                    mixed[i, k] += part * value[node, k]
                continue
            branch = branch_of(X[i], node, kind, feature, threshold, set_start, set_size, words,
                               branches, coef)  # fmt: skip
            if branch < 0:
                branch = missing_child[node]
            first = first_child[node]
            if branch >= 0:
                stack[size], share[size] = children[first + branch], part
                size += 1
                continue
            total = 0.0
            for k in range(n_children[node]):
                total += weight[children[first + k]]
            for k in range(n_children[node]):
                child = children[first + k]
                stack[size], share[size] = child, part * weight[child] / total
                size += 1


def _packed(tree: TreeArrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of 16 bytes, level by level, siblings side by side: threshold; feature, left child.

    A leaf is its own left child and lets everything pass to it, so that a step needs no question
    but the node's own. Given twice, as float64 (2N,) and as int64; last, the nodes' numbers in the
    tree.
    """
    order = np.argsort(tree.depth, kind="stable")
    number = np.empty(len(tree), np.int64)
    number[order] = np.arange(len(tree))
    inner = tree.kind[order] != LEAF
    left = np.arange(len(tree))
    left[inner] = number[tree.children[tree.first_child[order[inner]]]]
    fields = np.empty((len(tree), 2), np.int64)
    fields[:, 0] = np.where(inner, tree.threshold[order], np.inf).view(np.int64)
    fields[:, 1] = (np.where(inner, tree.feature[order], 0).astype(np.int64) << 32) | left
    flat = fields.ravel()
    return flat.view(np.float64), flat, order


@kernel(fast_sums=True)
def _is_finite(X, begin, end):
    total = 0.0
    for i in range(begin, end):
        own = 0.0
        for j in range(X.shape[1]):
            own += X[i, j] * 0.0  # NaN unless finite
        total += own
    return total == 0.0


@kernel
def _walk_packed(X, thresholds, fields, order, at_once, found):
    """False, and nothing done, where X is not finite.

    Sixteen rows at a time: while one waits for memory, the others go on.
    """
    n, width = X.shape[0], 16
    at = np.zeros(width, np.int64)
    low = np.int64(0xFFFFFFFF)
    for first in range(0, n, at_once):
        last = min(first + at_once, n)
        if not _is_finite(X, first, last):
            return False
        for begin in range(first, last, width):
            size = min(width, last - begin)
            for k in range(width):
                at[k] = 0
            changed = 1
            while changed:
                changed = 0
                for k in range(size):
                    node = np.uint64(2 * at[k])
                    field = fields[node + np.uint64(1)]
                    value = X[np.uint64(begin + k), np.uint64(field >> 32)]
                    following = (field & low) + (value > thresholds[node])
                    changed |= following ^ at[k]
                    at[k] = following
            for k in range(size):
                found[begin + k] = order[at[k]]
    return True


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


@kernel
def _walk(X, kind, feature, threshold, first_child, children, missing_child, set_start, set_size,
          words, branches, coef, found):  # fmt: skip
    for i in range(X.shape[0]):
        node = 0
        while kind[node] != LEAF:
            branch = branch_of(X[i], node, kind, feature, threshold, set_start, set_size, words,
                               branches, coef)  # fmt: skip
            if branch < 0:
                branch = missing_child[node]
            node = children[first_child[node] + branch]
        found[i] = node


@kernel
def branch_of(x, node, kind, feature, threshold, set_start, set_size, words, branches, coef):
    """The branch that a row takes; -1 where its value is missing or a category unknown."""
    if kind[node] == OBLIQUE:
        total = 0.0
        for j in range(coef.shape[1]):
            own = coef[set_start[node], j]
            if own != 0.0:  # what is missing of a column that does not count does not matter
                total += own * x[j]
        if total != total:  # noqa: PLR0124
            return -1
        return 0 if total <= threshold[node] else 1
    value = x[feature[node]]
    if value != value:  # noqa: PLR0124
        return -1
    if kind[node] == THRESHOLD:
        return 0 if value <= threshold[node] else 1
    if not 0 <= value < set_size[node] or value != np.floor(value):
        return -1
    category = np.int64(value)
    if kind[node] == MULTIWAY:
        return branches[set_start[node] + category]
    word = words[set_start[node] + category // 32]
    return 1 - ((word >> np.uint32(category % 32)) & np.uint32(1))


def subtree(tree: TreeArrays, pruned: np.ndarray) -> TreeArrays:
    """The tree in which the nodes marked in `pruned` (bool (N,)) have become leaves."""
    gone = np.zeros(len(tree), dtype=bool)
    for node in range(1, len(tree)):
        gone[node] = gone[tree.parent[node]] or pruned[tree.parent[node]]
    kept = np.flatnonzero(~gone)
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
