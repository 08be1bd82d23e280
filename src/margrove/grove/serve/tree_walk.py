"""Rows walk through a tree of `tree_arrays`, to their leaves.

Trees whose splits are all thresholds are walked in a packed form, sixteen rows at a time. Other
trees, tables with missing values and few rows are walked row by row with the arrays of `Questions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only
from margrove._runtime import kernel, region
from margrove.grove.serve.row_blocks import dense_rows, sparse_blocks
from margrove.grove.serve.tree_arrays import LEAF, MULTIWAY, OBLIQUE, THRESHOLD, TreeArrays

__all__ = [
    "Questions",
    "branch_of",
    "leaves_of",
    "questions_of",
    "sums_of_trees",
    "values_of",
]

_CELLS_OF_A_BLOCK, _ROWS_OF_A_BLOCK = 1 << 18, 128  # of a sparse table
_WALKS_AT_ONCE = 16
_NODES_OF_A_ROW = 2  # measured
_CELLS_AT_ONCE = 1 << 16  # they stay in the cache: the check for infinity reads them first


class Questions(NamedTuple):
    """The splits of a tree, and where their branches lead, for compiled code.

    These are the arrays of `TreeArrays` of the same names, (N,) unless another shape is given:

    kind int8, feature int32, threshold float64
    first_child int64, n_children int32, children int64 (N - 1,), missing_child int32
    set_start, set_size int64
    words uint32 (any,), branches int32 (any,), coef float64 (oblique nodes, d)
    """

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    first_child: np.ndarray
    n_children: np.ndarray
    children: np.ndarray
    missing_child: np.ndarray
    set_start: np.ndarray
    set_size: np.ndarray
    words: np.ndarray
    branches: np.ndarray
    coef: np.ndarray


def questions_of(tree: TreeArrays) -> Questions:
    """The splits of a tree, which must be sound."""
    return Questions._make(getattr(tree, name) for name in Questions._fields)


def leaves_of(
    tree: TreeArrays,
    X: Any,
    *,
    n_threads: int = 1,
    on_infinity: Callable[[], None] | None = None,
) -> np.ndarray:
    """The leaf of each row of a float64 or float32 X, dense or CSR (NaN is missing), int64 (n,).

    Where a row would take all branches, it takes the heaviest. `on_infinity` is called if X
    contains infinity; in a dense X this is found during the walk, so that X is read only once.
    """
    tree.require_sound()
    n_wanted = max(int(tree.feature.max()) + 1, tree.coef.shape[1] if len(tree.coef) else 0)
    if X.ndim != 2 or X.shape[1] < n_wanted:
        raise ValueError(f"X must have {n_wanted} features for this tree. Got shape {X.shape}.")
    found = np.empty(X.shape[0], np.int64)
    questions = questions_of(tree)._replace(missing_child=_certain_branches(tree))
    if sp.issparse(X):
        if on_infinity is not None and np.isinf(X.data).any():
            on_infinity()
        asked = np.arange(X.shape[1])
        if not len(tree.coef):  # only columns that the tree asks for are written out
            asked = np.unique(tree.feature[tree.kind != LEAF])
            numbers = np.searchsorted(asked, tree.feature)
            questions = questions._replace(feature=read_only(numbers.astype(np.int32)))
        at_once = max(_ROWS_OF_A_BLOCK, _CELLS_OF_A_BLOCK // max(1, len(asked)))
        blocks = sparse_blocks(X, asked, at_once, n_threads)
    else:
        blocks = iter([(0, read_only(np.ascontiguousarray(X)))])
    packed = None  # a tree of many nodes is not packed for a few rows
    if _NODES_OF_A_ROW * X.shape[0] >= len(tree) and np.all(tree.kind <= THRESHOLD):
        packed = _packed(questions, tree.depth)
    is_finite = True
    for begin, rows in blocks:
        part = found[begin : begin + len(rows)]
        is_finite &= _walk_rows(rows, questions, packed, n_threads, part)
    if on_infinity is not None and not is_finite and not sp.issparse(X) and np.isinf(X).any():
        on_infinity()
    return found


def _walk_rows(
    rows: np.ndarray,
    questions: Questions,
    packed: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    n_threads: int,
    found: np.ndarray,
) -> bool:
    """Write the leaves of rows; whether it was seen that they are finite."""
    at_once = max(64, _CELLS_AT_ONCE // max(1, rows.shape[1]))
    per_tile = 4 * at_once
    n_tiles = -(-len(rows) // per_tile)
    if packed is None:
        _walk_tile(n_tiles, n_threads, per_tile, rows, questions, found)
        return False
    finite = np.ones(max(n_tiles, 1), dtype=bool)
    _walk_packed_tile(n_tiles, n_threads, per_tile, rows, packed, at_once, questions, found,
                      finite)  # fmt: skip
    return bool(finite.all())


def _certain_branches(tree: TreeArrays) -> np.ndarray:
    """`missing_child` with the heaviest branch where missing values take all of them."""
    shared = np.flatnonzero((tree.missing_child < 0) & (tree.n_children > 0))
    if not len(shared):
        return tree.missing_child
    certain = tree.missing_child.copy()
    for node in shared.tolist():
        certain[node] = int(np.argmax(tree.weight[tree.children_of(node)]))
    return certain


def sums_of_trees(
    trees: list[TreeArrays],
    columns: list[np.ndarray],
    values: list[np.ndarray],
    X: Any,
    n_threads: int,
) -> np.ndarray | None:
    """The sums of the values of each row's leaves, (n, any), tree after tree.

    None where trees had better be walked one by one: for few rows, splits other than thresholds,
    and missing or infinite values.

    columns    int64: the columns of X that each tree was grown on, all of them in X
    values     float64 (N, any)  of the nodes of each tree
    X          float64 or float32 of the checked columns, dense or CSR
    """
    n_nodes = sum(map(len, trees))
    if n_nodes > _NODES_OF_A_ROW * X.shape[0]:
        return None
    for tree in trees:
        tree.require_sound()
    if not all(np.all(tree.kind <= THRESHOLD) for tree in trees):
        return None
    features = [own[tree.feature] for tree, own in zip(trees, columns, strict=True)]
    if sp.issparse(X):
        asked = np.unique(np.concatenate(features))
        features = [np.searchsorted(asked, one) for one in features]
        if np.isinf(X.data).any():
            return None
        at_once = max(_ROWS_OF_A_BLOCK, _CELLS_OF_A_BLOCK // len(asked))
        blocks = sparse_blocks(X, asked, at_once, n_threads)
    else:
        blocks = iter([(0, read_only(np.ascontiguousarray(X)))])
    packed, roots = _joined(trees, features)
    joined, sums = np.concatenate(values), np.zeros((X.shape[0], values[0].shape[1]))
    for begin, rows in blocks:
        size = max(_ROWS_OF_A_BLOCK, _CELLS_AT_ONCE // max(1, rows.shape[1]))
        finite = np.ones(-(-len(rows) // size), dtype=bool)
        own = sums[begin : begin + len(rows)]
        _sum_tile(len(finite), n_threads, size, rows, packed, roots, joined, own, finite)
        if not finite.all():
            return None
    return sums


def _joined(
    trees: list[TreeArrays], features: list[np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Packed trees one after the other, nodes numbered through, and the root of each."""
    parts = [
        _packed(questions_of(tree)._replace(feature=feature), tree.depth)
        for tree, feature in zip(trees, features, strict=True)
    ]
    roots = np.append(0, np.cumsum([len(tree) for tree in trees]))
    fields = np.concatenate([part[1] for part in parts])
    order = np.concatenate([part[2] + root for part, root in zip(parts, roots, strict=False)])
    return (fields.view(np.float64), fields, order), roots


def values_of(tree: TreeArrays, X: Any, leaves: np.ndarray) -> np.ndarray:
    """The value of each row's leaf; the weighted mean for rows that take several branches."""
    value: np.ndarray = np.take(tree.value, leaves, axis=0)  # an index is ten times as slow
    if np.any((tree.missing_child < 0) & (tree.n_children > 0)):
        rows = dense_rows(X) if sp.issparse(X) else X
        _mix(rows, questions_of(tree), tree.weight, tree.value, value)
    return value


@kernel
def _mix(X, questions, weight, value, mixed):
    """mixed[i] = the sum of the values of the leaves that row i reaches, times their shares."""
    kind, children, first_child = questions.kind, questions.children, questions.first_child
    n_children, missing_child = questions.n_children, questions.missing_child
    stack = np.empty(len(kind) + 1, np.int64)
    share = np.empty(len(kind) + 1)
    for i in range(X.shape[0]):
        mixed[i] = 0.0
        stack[0], share[0] = 0, 1.0
        size = 1
        while size:
            size -= 1
            node, arriving = stack[size], share[size]
            if kind[node] == LEAF:
                for k in range(value.shape[1]):
                    mixed[i, k] += arriving * value[node, k]
                continue
            branch = branch_of(X[i], node, questions)
            if branch < 0:
                branch = missing_child[node]
            first = first_child[node]
            if branch >= 0:
                stack[size], share[size] = children[first + branch], arriving
                size += 1
                continue
            total = 0.0
            for k in range(n_children[node]):
                total += weight[children[first + k]]
            for k in range(n_children[node]):
                child = children[first + k]
                stack[size], share[size] = child, arriving * weight[child] / total
                size += 1


def _packed(questions: Questions, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of 16 bytes, level by level, siblings side by side: threshold; feature, left child.

    A leaf is its own left child, and its threshold is infinite: a row that has arrived stays there,
    so a step needs no test for leaves. Returned are the words of the nodes as float64 (2N,), the
    same memory as int64 (2N,), and the number of each node in the tree.
    """
    n = len(depth)
    order = np.argsort(depth, kind="stable")
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    inner = questions.kind[order] != LEAF
    left = np.arange(n)
    left[inner] = number[questions.children[questions.first_child[order[inner]]]]
    fields = np.empty((n, 2), np.int64)
    fields[:, 0] = np.where(inner, questions.threshold[order], np.inf).view(np.int64)
    fields[:, 1] = (np.where(inner, questions.feature[order], 0).astype(np.int64) << 32) | left
    flat = fields.ravel()
    return flat.view(np.float64), flat, order


@kernel(fast_sums=True)
def _is_finite(X, begin, end):
    total = 0.0
    for i in range(begin, end):
        of_row = 0.0
        for j in range(X.shape[1]):
            of_row += X[i, j] * 0.0  # NaN unless finite
        total += of_row
    return total == 0.0


@kernel
def _walk_packed(X, thresholds, fields, order, at_once, found):
    """Find the leaves of all rows; False, with the rest left undone, where X is not finite."""
    for first in range(0, X.shape[0], at_once):
        last = min(first + at_once, X.shape[0])
        if not _is_finite(X, first, last):
            return False
        _walk_finite(X, first, last, thresholds, fields, order, found)
    return True


@kernel(hidden=True)
def _walk_finite(X, first, last, thresholds, fields, order, found):
    """Find the leaves of rows first ... last - 1, which are finite.

    Sixteen rows walk at a time: while one waits for memory, the others go on. Of fewer rows, each
    walks sixteen times at a time.
    """
    n, d = X.shape
    width = _WALKS_AT_ONCE if n >= _WALKS_AT_ONCE else 1
    step = np.uint64(d if width > 1 else 0)
    cells = np.ravel(X)
    at = np.zeros(_WALKS_AT_ONCE, np.int64)
    low = np.int64(0xFFFFFFFF)
    for start in range(first, last, width):
        begin = min(start, n - width)  # the last ones may overlap those before
        for k in range(_WALKS_AT_ONCE):
            at[k] = 0
        changed = np.int64(1)
        while changed:
            changed = np.int64(0)
            row = np.uint64(begin * d)
            for k in range(_WALKS_AT_ONCE):  # a constant, so that the compiler unrolls the loop
                node = np.uint64(2 * at[k])
                field = fields[node + np.uint64(1)]
                value = cells[row + np.uint64(field >> 32)]
                following = (field & low) + np.int64(value > thresholds[node])
                changed |= following ^ at[k]
                at[k] = following
                row += step
        for k in range(width):
            found[begin + k] = order[at[k]]


@region
def _walk_packed_tile(tile, size, X, packed, at_once, questions, found, finite):
    """A run of rows in the packed form, or row by row if it is not finite."""
    begin, end = tile * size, min((tile + 1) * size, X.shape[0])
    rows, leaves = X[begin:end], found[begin:end]
    finite[tile] = _walk_packed(rows, *packed, at_once, leaves)
    if not finite[tile]:
        _walk(rows, questions, leaves)


@region
def _sum_tile(tile, size, X, packed, roots, values, sums, finite):
    """The sum over all trees for a run of rows, if they are finite."""
    begin, end = tile * size, min((tile + 1) * size, X.shape[0])
    rows, leaves = X[begin:end], np.empty(end - begin, np.int64)
    thresholds, fields, order = packed
    n = len(leaves)
    finite[tile] = _is_finite(rows, 0, n)
    for tree in range(len(roots) - 1 if finite[tile] else 0):
        a, b = roots[tree], roots[tree + 1]
        _walk_finite(rows, 0, n, thresholds[2 * a : 2 * b], fields[2 * a : 2 * b], order[a:b],
                     leaves)  # fmt: skip
        for i in range(n):
            leaf = np.uint64(leaves[i])
            for k in range(sums.shape[1]):
                sums[begin + i, k] += values[leaf, k]


@region
def _walk_tile(tile, size, X, questions, found):
    begin, end = tile * size, min((tile + 1) * size, X.shape[0])
    _walk(X[begin:end], questions, found[begin:end])


@kernel
def _walk(X, questions, found):
    """found[i] = the leaf of row i; `missing_child` must not have -1."""
    kind, children = questions.kind, questions.children
    first_child, missing_child = questions.first_child, questions.missing_child
    for i in range(X.shape[0]):
        node = 0
        while kind[node] != LEAF:
            branch = branch_of(X[i], node, questions)
            if branch < 0:
                branch = missing_child[node]
            node = children[first_child[node] + branch]
        found[i] = node


@kernel
def branch_of(x, node, questions):
    """The branch that row x takes at a node; -1 if its value is missing or an unknown category."""
    kind = questions.kind[node]
    if kind == OBLIQUE:
        coef, at = questions.coef, questions.set_start[node]
        total = 0.0
        for j in range(coef.shape[1]):
            coefficient = coef[at, j]
            if coefficient != 0.0:  # a missing value does not matter if its coefficient is 0
                total += coefficient * x[j]
        if total != total:  # noqa: PLR0124
            return -1
        return 0 if total <= questions.threshold[node] else 1
    value = x[questions.feature[node]]
    if value != value:  # noqa: PLR0124
        return -1
    if kind == THRESHOLD:
        return 0 if value <= questions.threshold[node] else 1
    if not 0 <= value < questions.set_size[node] or value != np.floor(value):
        return -1
    category = np.int64(value)
    if kind == MULTIWAY:
        return questions.branches[questions.set_start[node] + category]
    word = questions.words[questions.set_start[node] + category // 32]
    return 1 - ((word >> np.uint32(category % 32)) & np.uint32(1))
