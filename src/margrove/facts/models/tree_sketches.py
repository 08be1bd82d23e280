"""A tree as a drawing shows it: its nodes with texts, class shares and histograms.

Texts have names and labels as `conditions.shown` writes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.facts.models.trees import codes_or_targets
from margrove.facts.plain_values import Plain, frozen, require_whole
from margrove.grove.read import (
    TreeNames,
    branch_conditions,
    branch_texts,
    explain,
    names_of,
    prediction_text,
    shown,
    split_text,
    tree_of,
)
from margrove.grove.serve import LEAF, MULTIWAY, THRESHOLD, TreeArrays, leaves_of

__all__ = ["SketchNode", "SplitHistogram", "TreeSketch", "sketch_nodes", "sketch_tree"]

_MOST_NODES = 200  # in a sketch without max_depth
_MOST_LABELS = 5  # of the categories of a branch
_BINS = 12
_MOST_BARS = 24  # of categories; more are too narrow to read


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitHistogram(Plain):
    """The rows at a node, counted by the feature that the node splits by.

    Attributes
    ----------
    edges : ndarray of shape (n_bars + 1,)
        Of the bars; -0.5, 0.5, 1.5 and so on if bars are categories.
    counts : ndarray of shape (n_groups, n_bars)
        Rows of each class, or all rows together.
    means : ndarray of shape (n_bars,) or None
        Of the targets of a regressor; NaN for a bar without rows.
    labels : tuple of str
        If bars are categories, their labels.
    threshold : float or None
    """

    edges: np.ndarray
    counts: np.ndarray
    means: np.ndarray | None
    labels: tuple[str, ...]
    threshold: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchNode(Plain):
    """A node as a drawing shows it.

    Attributes
    ----------
    number : int
        In the tree itself.
    parent : int or None
        Its place among the nodes of the sketch.
    depth : int
    branch : str
        The branch that leads to it: "yes", "no" or categories; "" for the root.
    question : str
        Its split in words; "" for a leaf.
    samples : int
    coverage : float
        Its share in the weight of all training rows.
    impurity : float
    shares : tuple of tuple of float
        Class shares of each output; () for a regressor.
    means : tuple of float
        The value of a regressor for each output; () for a classifier.
    prediction : str
    hidden : int
        How many nodes below are not shown.
    path_share : float
        The share of the marked row that reaches the node: 0, 1, or less than 1 if missing values
        take all branches.
    histogram : SplitHistogram or None
    """

    number: int
    parent: int | None
    depth: int
    branch: str
    question: str
    samples: int
    coverage: float
    impurity: float
    shares: tuple[tuple[float, ...], ...]
    means: tuple[float, ...]
    prediction: str
    hidden: int
    path_share: float
    histogram: SplitHistogram | None


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeSketch(Plain):
    """The upper levels of a tree, or all of it.

    Attributes
    ----------
    nodes : tuple of SketchNode
        In preorder.
    classes : tuple of tuple of str
        Labels of the classes of each output; () for a regressor.
    criterion : str
    n_nodes, depth : int
        Of the full tree.
    cut_at : int or None
        The depth of the lowest nodes shown; None if all nodes are shown.
    """

    nodes: tuple[SketchNode, ...]
    classes: tuple[tuple[str, ...], ...]
    criterion: str
    n_nodes: int
    depth: int
    cut_at: int | None


def sketch_tree(
    model: Any,
    *,
    max_depth: int | None = None,
    row: Any = None,
    X: Any = None,
    y: Any = None,
    decimals: int = 3,
) -> TreeSketch:
    """The nodes of a fitted tree down to some depth, as texts and numbers for a drawing.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    max_depth : int, optional
        Depth of the lowest nodes shown. By default as deep as 200 nodes reach.
    row : array-like of shape (n_features,), mapping or table of one row, optional
        A row whose path is marked.
    X, y : array-like, optional
        Rows, and their classes or targets, for a histogram at each split.
    decimals : int, default=3
        Digits after the point.

    Returns
    -------
    TreeSketch

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.facts import sketch_tree
    >>> model = DecisionTreeClassifier().fit([[1.0], [2.0], [4.0]], ["low", "low", "high"])
    >>> for node in sketch_tree(model, row=[5.0], decimals=1).nodes:
    ...     print(node.branch or "root", node.question or node.prediction, node.path_share)
    root x0 <= 3.0 1.0
    yes low 0.0
    no high 1.0
    """
    tree, names = tree_of(model), names_of(model)
    decimals = require_whole("decimals", decimals, 0)
    depth = tree.depth
    if max_depth is None:
        deepest = _depth_of_few(depth)
    else:
        deepest = require_whole("max_depth", max_depth, 0)
    kept = np.flatnonzero(depth <= deepest)
    nodes = sketch_nodes(
        tree,
        names,
        kept,
        decimals=decimals,
        most_labels=_MOST_LABELS,
        path_shares=_shares_on_path(model, row),
        histograms={} if X is None else _histograms(model, tree, names, kept, X, y),
    )
    return TreeSketch(
        nodes=tuple(nodes),
        classes=tuple(tuple(shown(label) for label in labels) for labels in names.classes),
        criterion=str(model.criterion),
        n_nodes=len(tree),
        depth=int(depth.max()),
        cut_at=deepest if len(kept) < len(tree) else None,
    )


def sketch_nodes(
    tree: TreeArrays,
    names: TreeNames,
    kept: np.ndarray,
    *,
    decimals: int,
    most_labels: int | None = None,
    path_shares: Mapping[int, float] | None = None,
    histograms: Mapping[int, SplitHistogram] | None = None,
) -> list[SketchNode]:
    """The nodes `kept` of a tree, which are all nodes down to some depth, in preorder.

    A branch shows at most `most_labels` labels; None shows all.
    """
    # Nodes are in preorder: those that a kept node hides come right after it.
    hidden = np.diff(kept, append=len(tree)) - 1
    place = {number: k for k, number in enumerate(kept.tolist())}
    depth = tree.depth
    branch: dict[int, str] = {}
    nodes = []
    for number, below in zip(kept.tolist(), hidden.tolist(), strict=True):
        question = ""
        if tree.kind[number] != LEAF:
            conditions = branch_conditions(tree, names, number)
            is_multiway = bool(tree.kind[number] == MULTIWAY)
            question = split_text(conditions, is_multiway=is_multiway, decimals=decimals)
            if not below:
                texts = branch_texts(conditions, is_multiway=is_multiway, most_labels=most_labels)
                branch.update(zip(tree.children_of(number).tolist(), texts, strict=True))
        value = tree.value[number].tolist()
        nodes.append(
            SketchNode(
                number=number,
                parent=place[int(tree.parent[number])] if number else None,
                depth=int(depth[number]),
                branch=branch.pop(number, ""),
                question=question,
                samples=int(tree.n_samples[number]),
                coverage=float(tree.weight[number] / tree.weight[0]),
                impurity=float(tree.impurity[number]),
                shares=tuple(tuple(of_output) for of_output, _ in names.by_output(value)),
                means=() if names.is_classifier else tuple(value),
                prediction=prediction_text(names.prediction(value), decimals),
                hidden=below,
                path_share=(path_shares or {}).get(number, 0.0),
                histogram=(histograms or {}).get(number),
            )
        )
    return nodes


def _depth_of_few(depth: np.ndarray) -> int:
    """The greatest depth down to which there are at most `_MOST_NODES` nodes, at least 1."""
    n_nodes = np.cumsum(np.bincount(depth))
    return max(1, int(np.searchsorted(n_nodes, _MOST_NODES, side="right")) - 1)


def _shares_on_path(model: Any, row: Any) -> dict[int, float]:
    if row is None:
        return {}
    return {0: 1.0} | {step.child: step.share for step in explain(model, row).steps}


def _histograms(
    model: Any, tree: TreeArrays, names: TreeNames, kept: np.ndarray, X: Any, y: Any
) -> dict[int, SplitHistogram]:
    """Histograms of the nodes that split by one feature."""
    rows = np.asarray(model._rows(X), dtype=np.float64)
    codes, targets = codes_or_targets(model, y, len(rows))
    groups = np.zeros(len(rows), np.int64) if codes is None else codes
    n_groups = 1 if codes is None else len(names.classes[0])
    leaf = leaves_of(tree, rows)
    order = np.argsort(leaf, kind="stable")  # sorted by leaf, the rows of a subtree are a run
    splits = kept[(tree.kind[kept] != LEAF) & (tree.feature[kept] >= 0)]
    starts = np.searchsorted(leaf[order], splits)
    stops = np.searchsorted(leaf[order], tree.ends[splits])
    found = {}
    for number, start, stop in zip(splits.tolist(), starts, stops, strict=True):
        of_node = order[start:stop]
        column = int(tree.feature[number])
        of_node = of_node[np.isfinite(rows[of_node, column])]
        values = rows[of_node, column]
        labels = names.categories.get(column)
        if labels is not None and len(labels) > _MOST_BARS:
            continue
        threshold = float(tree.threshold[number]) if tree.kind[number] == THRESHOLD else None
        found[number] = SplitHistogram(
            **_bars(
                values,
                labels,
                groups[of_node],
                n_groups,
                None if targets is None else targets[of_node],
            ),
            threshold=threshold if threshold is not None and math.isfinite(threshold) else None,
        )
    return found


def _bars(
    values: np.ndarray,
    labels: tuple[Any, ...] | None,
    groups: np.ndarray,
    n_groups: int,
    targets: np.ndarray | None,
) -> dict[str, Any]:
    edges = _edges(values, labels)
    n_bars = len(edges) - 1
    bar = _bar_of(values, edges)
    counts = np.bincount(groups * n_bars + bar, minlength=n_groups * n_bars)
    counts = counts.reshape(n_groups, n_bars)
    means = None
    if targets is not None:
        n_rows = counts.sum(axis=0)
        sums = np.bincount(bar, weights=targets, minlength=n_bars)
        means = frozen(np.where(n_rows > 0, sums / np.maximum(n_rows, 1), np.nan))
    return {
        "edges": frozen(edges),
        "counts": frozen(counts),
        "means": means,
        "labels": () if labels is None else tuple(shown(label) for label in labels),
    }


def _edges(values: np.ndarray, labels: tuple[Any, ...] | None) -> np.ndarray:
    if labels is not None:
        return np.arange(len(labels) + 1) - 0.5
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    steps = np.linspace(0.0, 1.0, _BINS + 1 if low < high else 2)
    return np.asarray((1.0 - steps) * low + steps * high)  # high - low may overflow


def _bar_of(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bar of each value; the highest edge belongs to the last bar."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
