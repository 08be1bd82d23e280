"""A binary tree in the arrays of scikit-learn's `tree_`, and as scikit-learn's class `Tree`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.grove.serve import LEAF, THRESHOLD, TreeArrays, leaves_of

__all__ = ["TreeView", "decision_path", "importances", "own_sklearn_tree", "view"]


@dataclass(frozen=True)
class TreeView:
    """The arrays of scikit-learn's `tree_`, under the same names."""

    children_left: np.ndarray
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    value: np.ndarray
    missing_go_to_left: np.ndarray
    n_features: int
    n_outputs: int
    n_classes: np.ndarray
    max_depth: int
    _arrays: TreeArrays

    @property
    def node_count(self) -> int:
        return len(self.feature)

    @property
    def capacity(self) -> int:
        return self.node_count

    @property
    def n_leaves(self) -> int:
        return int((self.children_left < 0).sum())

    @property
    def max_n_classes(self) -> int:
        return int(self.n_classes.max())

    def apply(self, X: Any) -> np.ndarray:
        return leaves_of(self._arrays, X.toarray() if sp.issparse(X) else np.ascontiguousarray(X))

    def predict(self, X: Any) -> np.ndarray:
        found = self.value.take(self.apply(X), axis=0)
        return found[:, 0] if self.n_outputs == 1 else found

    def decision_path(self, X: Any) -> sp.csr_matrix:
        return decision_path(self._arrays, self.apply(X))

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        return importances(self._arrays, self.n_features, normalize=normalize)


def view(tree: TreeArrays, n_features: int, n_classes: list[int] | None) -> TreeView:
    """The arrays of scikit-learn's `tree_`; n_classes is a list for all outputs, or None."""
    if not tree.is_binary:
        raise AttributeError(
            "A multiway tree has no `tree_`: the arrays of scikit-learn have two branches a node. "
            "Use `arrays_`."
        )
    n = len(tree)
    inner = tree.kind != LEAF
    left, right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    left[inner] = tree.children[tree.first_child[inner]]
    right[inner] = tree.children[tree.first_child[inner] + 1]
    sizes = n_classes or [1] * tree.value.shape[1]
    value = np.zeros((n, len(sizes), max(sizes)))
    start = 0
    for o, size in enumerate(sizes):
        value[:, o, :size] = tree.value[:, start : start + size]
        start += size
    return TreeView(
        left,
        right,
        np.where(inner, tree.feature, -2).astype(np.int64),
        np.where(tree.kind == THRESHOLD, tree.threshold, -2.0),
        tree.impurity,
        tree.n_samples,
        tree.weight,
        value,
        (inner & (tree.missing_child == 0)).astype(np.uint8),
        n_features,
        len(sizes),
        np.array(sizes, np.int64),
        int(tree.depth.max()),
        tree,
    )


def importances(tree: TreeArrays, n_features: int, *, normalize: bool = True) -> np.ndarray:
    """The decrease of impurity by the splits of each feature; shares of the total if normalize."""
    inner = (tree.kind != LEAF) & (tree.feature >= 0)
    largest = tree.decrease.max(initial=0.0) or 1.0  # so that sums do not overflow
    shares = tree.decrease[inner] / largest
    found = np.bincount(tree.feature[inner], weights=shares, minlength=n_features)
    total = found.sum()
    if normalize:
        return found / total if total > 0.0 else found
    return np.asarray(found / tree.weight[0] * largest)


def decision_path(tree: TreeArrays, leaves: np.ndarray) -> sp.csr_matrix:
    """CSR matrix (n, N): 1 for the nodes between the root and the leaf of each row."""
    depth = tree.depth
    lengths = depth[leaves] + 1
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.empty(indptr[-1], np.int64)
    node, at = leaves.copy(), indptr[1:] - 1
    active = np.arange(len(leaves))
    while len(active):
        indices[at[active]] = node[active]
        at[active] -= 1
        node[active] = tree.parent[node[active]]
        active = active[node[active] >= 0]
    ones = np.ones(len(indices), np.int64)
    return sp.csr_matrix((ones, indices, indptr), shape=(len(leaves), len(tree)))


def own_sklearn_tree(tree: TreeArrays, n_features: int, n_classes: list[int] | None) -> Any:
    """A `sklearn.tree._tree.Tree` with the same nodes."""
    from sklearn.tree._tree import Tree

    if np.any((tree.kind != LEAF) & (tree.kind != THRESHOLD)):
        raise ValueError(
            "Trees of scikit-learn have splits by thresholds only; this one has splits by "
            "categories or by several features, which cannot be translated."
        )
    shown = view(tree, n_features, n_classes)
    template = Tree(n_features, shown.n_classes.astype(np.intp), shown.n_outputs)
    dtype = template.__getstate__()["nodes"].dtype
    nodes = np.zeros(len(tree), dtype=dtype)
    nodes["left_child"], nodes["right_child"] = shown.children_left, shown.children_right
    nodes["feature"], nodes["threshold"] = shown.feature, shown.threshold
    nodes["impurity"], nodes["n_node_samples"] = shown.impurity, shown.n_node_samples
    nodes["weighted_n_node_samples"] = shown.weighted_n_node_samples
    nodes["missing_go_to_left"] = shown.missing_go_to_left
    state = {
        "max_depth": shown.max_depth,
        "node_count": len(tree),
        "nodes": nodes,
        "values": np.ascontiguousarray(shown.value),
    }
    template.__setstate__(state)
    return template
