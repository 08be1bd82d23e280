"""Decision trees: nodes and thresholds of scikit-learn as those of margrove, and back.

scikit-learn rounds X to float32 before it compares. From scikit-learn, thresholds are moved so that
they split float64 values in the same way. To scikit-learn, thresholds stay as they are, and the
converted model agrees wherever X contains float32 numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.pairs import Pair, columns_of
from margrove.grove import CRITERIA
from margrove.grove.export import own_sklearn_tree
from margrove.grove.grow import preorder
from margrove.grove.serve import (
    LEAF,
    SUBSET,
    THRESHOLD,
    Kind,
    PackedTree,
    TreeArrays,
    by_output,
    packed_of,
)

__all__ = [
    "TREES",
    "classes_of",
    "float64_thresholds",
    "kind_of_trees",
    "nodes_as_arrays",
    "packed_tree",
    "sklearn_tree",
    "tree_arrays",
]


_FLOAT32_END = 2.0**128  # the number after the largest float32


# -- from scikit-learn --


def float64_thresholds(thresholds: np.ndarray) -> np.ndarray:
    """float64 (n,): for each t the largest x with float32(x) <= t; NaN stays.

    scikit-learn's trees send x to the left if float32(x) <= t. Let f be the largest float32 number
    that is at most t, and g the next one. x is rounded to f or below up to the midpoint m of f and
    g; m itself, which float64 can represent, goes to the one of the two whose last bit is 0. So

        float32(x) <= t     means     x <= m              if f is even
                                      x <= m - one ulp    if f is odd
    """
    with np.errstate(over="ignore", invalid="ignore"):
        below = thresholds.astype(np.float32)
        infinity = np.float32(np.inf)
        is_above = below.astype(np.float64) > thresholds
        below = np.where(is_above, np.nextafter(below, -infinity), below)
        above = np.nextafter(below, infinity)
        midpoint = 0.5 * (_finite_float64(below) + _finite_float64(above))
    is_even = below.view(np.uint32) & 1 == 0
    moved = np.where(is_even, midpoint, np.nextafter(midpoint, -np.inf))
    return np.where(below == infinity, np.inf, moved)


def _finite_float64(values: np.ndarray) -> np.ndarray:
    """float64, with infinity as the number that would follow the largest float32."""
    return np.clip(values.astype(np.float64), -_FLOAT32_END, _FLOAT32_END)


def nodes_as_arrays(
    left: np.ndarray,
    right: np.ndarray,
    *,
    feature: np.ndarray,
    threshold: np.ndarray,
    missing_left: np.ndarray,
    weight: np.ndarray,
    n_samples: np.ndarray,
    value: np.ndarray,
    impurity: np.ndarray,
    n_features: int,
    decrease: np.ndarray | None = None,
    is_subset: np.ndarray | None = None,
    set_start: np.ndarray | None = None,
    set_size: np.ndarray | None = None,
    words: np.ndarray | None = None,
) -> TreeArrays:
    """`TreeArrays` of nodes in any order; `left` and `right` are the children, -1 for leaves.

    Without `decrease`, it is computed from the impurities.
    """
    n = len(left)
    inner = left >= 0
    order, parent = _in_preorder(left, right)
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    is_split = inner[order]
    children = np.stack([left[order][is_split], right[order][is_split]], axis=1)
    n_children = np.where(is_split, 2, 0).astype(np.int32)
    if decrease is None:
        weighted = weight * impurity
        decrease = weighted - np.where(inner, weighted[left] + weighted[right], weighted)
    subset = np.zeros(n, dtype=bool) if is_subset is None else inner & is_subset
    nothing = np.zeros(n, np.int64)
    return TreeArrays(
        kind=np.where(subset, SUBSET, np.where(inner, THRESHOLD, LEAF))[order].astype(np.int8),
        feature=np.where(inner, feature, -1)[order].astype(np.int32),
        threshold=np.where(inner & ~subset, threshold, np.nan)[order],
        first_child=(np.cumsum(n_children) - n_children).astype(np.int64),
        n_children=n_children,
        children=number[children].ravel(),
        parent=parent,
        missing_child=np.where(inner & (missing_left == 0), 1, 0)[order].astype(np.int32),
        set_start=np.where(subset, nothing if set_start is None else set_start, 0)[order],
        set_size=np.where(subset, nothing if set_size is None else set_size, 0)[order],
        words=np.empty(0, np.uint32) if words is None else words,
        branches=np.empty(0, np.int32),
        coef=np.empty((0, n_features)),
        weight=weight[order].astype(np.float64),
        n_samples=n_samples[order].astype(np.int64),
        value=np.ascontiguousarray(value[order]),
        impurity=impurity[order].astype(np.float64),
        decrease=np.where(inner, np.maximum(decrease, 0.0), 0.0)[order],
    )


def _in_preorder(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes in preorder, and the parent of each in the new numbers.

    Siblings get consecutive numbers first, which `preorder` needs.
    """
    inner = np.flatnonzero(left >= 0)
    first = 1 + 2 * np.arange(len(inner))
    place = np.zeros(len(left), np.int64)
    place[left[inner]], place[right[inner]] = first, first + 1
    node_at = np.empty(len(left), np.int64)
    node_at[place] = np.arange(len(left))
    left_at = np.full(len(left), -1, np.int64)
    left_at[place[inner]] = first
    order, parent = preorder(left_at)
    return node_at[order], parent


def tree_arrays(tree: Any, n_classes: list[int] | None) -> TreeArrays:
    """`TreeArrays` of a `tree_` of scikit-learn; n_classes of each output, None for regression."""
    sizes = n_classes or [1] * tree.n_outputs
    value = np.concatenate([tree.value[:, o, :size] for o, size in enumerate(sizes)], axis=1)
    arrays = nodes_as_arrays(
        tree.children_left,
        tree.children_right,
        feature=tree.feature,
        threshold=float64_thresholds(tree.threshold),
        missing_left=tree.missing_go_to_left,
        weight=tree.weighted_n_node_samples,
        n_samples=tree.n_node_samples,
        value=value,
        impurity=tree.impurity,
        n_features=tree.n_features,
    )
    arrays.require_sound()
    return arrays


def classes_of(theirs: Any) -> dict[str, Any]:
    """The attributes classes_ and n_classes_; none for regression."""
    if not hasattr(theirs, "classes_"):
        return {}
    if theirs.n_outputs_ == 1:
        return {"classes_": theirs.classes_, "n_classes_": np.intp(len(theirs.classes_))}
    return {
        "classes_": list(theirs.classes_),
        "n_classes_": [len(classes) for classes in theirs.classes_],
    }


def _counts(model: Any) -> list[int] | None:
    if not hasattr(model, "classes_"):
        return None
    return [int(n) for n in np.atleast_1d(model.n_classes_)]


def _read(theirs: Any) -> dict[str, Any]:
    return {
        **columns_of(theirs),
        **classes_of(theirs),
        "categories_": {},
        "n_outputs_": int(theirs.n_outputs_),
        "max_features_": int(theirs.max_features_),
        "arrays_": tree_arrays(theirs.tree_, _counts(theirs)),
    }


def kind_of_trees(theirs: Any, n_features: int) -> Kind:
    """The `Kind` of the trees of an ensemble; `theirs` is the ensemble, or one of its trees."""
    counts = _counts(theirs)
    usual = "squared_error" if counts is None else "gini"
    criterion = CRITERIA[theirs.criterion if theirs.criterion in CRITERIA else usual].code
    n_outputs = int(getattr(theirs, "n_outputs_", 1))
    return Kind(criterion, tuple(counts or ()), n_outputs, np.zeros(n_features, np.int64))


def packed_tree(tree: Any, kind: Kind) -> PackedTree:
    """A `tree_` of scikit-learn as a `PackedTree` of forests and boosting."""
    arrays = tree_arrays(tree, list(kind.n_classes) or None)
    packed = packed_of(arrays, kind)
    if not kind.n_classes:
        return packed
    is_leaf = arrays.kind == LEAF
    sums = [
        _sums_with(shares, arrays.weight[is_leaf])
        for shares in by_output(arrays.value[is_leaf], kind.n_classes)
    ]
    return replace(packed, values=np.concatenate(sums, axis=1))


def _sums_with(shares: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The sums of the classes in each leaf, (leaves, classes), that give these shares.

    Whole numbers give exactly these shares. Others may differ by rounding, which must not turn two
    different shares into a tie: a power of two in place of the weight avoids any rounding.
    """
    sums = shares * weight[:, None]
    whole = np.rint(sums)
    with np.errstate(invalid="ignore"):
        is_exact = np.all(whole / whole.sum(axis=1, keepdims=True) == shares, axis=1)
    has_moved = np.argmax(sums, axis=1) != np.argmax(shares, axis=1)
    sums[has_moved] = np.ldexp(shares, np.frexp(weight)[1][:, None])[has_moved]
    sums[is_exact] = whole[is_exact]
    return sums


# -- to scikit-learn --


def sklearn_tree(arrays: TreeArrays, n_features: int, counts: list[int] | None, name: str) -> Any:
    """A `tree_` of scikit-learn; `name` is that of the model, for errors."""
    if not arrays.is_binary or np.any(arrays.kind > THRESHOLD):
        raise ConversionError(
            name,
            "it has splits by categories, into several branches or by several features, and "
            "scikit-learn's trees have only splits at thresholds",
            "Encode the categories as numbers, with split='binary' and splitter='best', and fit "
            "again",
        )
    return own_sklearn_tree(arrays, n_features, counts)


def _write(ours: Any) -> dict[str, Any]:
    name, counts = type(ours).__name__, _counts(ours)
    known = {
        **columns_of(ours),
        "n_outputs_": ours.n_outputs_,
        "max_features_": ours.max_features_,
        "tree_": sklearn_tree(ours.arrays_, ours.n_features_in_, counts, name),
    }
    if counts is not None:
        known |= {"classes_": ours.classes_, "n_classes_": ours.n_classes_}
    return known


TREES = (
    *(
        Pair(f"sklearn.tree:DecisionTree{task}", f"margrove.grove.estimators:DecisionTree{task}",
             _read, _write)
        for task in ("Classifier", "Regressor")
    ),
    *(
        Pair(f"sklearn.tree:ExtraTree{task}", f"margrove.grove.estimators:DecisionTree{task}",
             _read, _write)
        for task in ("Classifier", "Regressor")
    ),
)  # fmt: skip
