"""A tree to be drawn: the nodes that are shown, with their texts, bars and histograms.

Texts are for people: names and labels are as `conditions.shown` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from margrove.facts.models.trees import codes_or_targets
from margrove.facts.plain_values import Plain, frozen
from margrove.grove.read import (
    Condition,
    TreeNames,
    branch_conditions,
    explain,
    names_of,
    prediction_text,
    shown,
    tree_of,
)
from margrove.grove.serve import LEAF, MULTIWAY, THRESHOLD, TreeArrays, leaves_of

__all__ = ["SketchNode", "SplitHistogram", "TreeSketch", "sketch_tree"]

_MOST_NODES = 200  # in a sketch, if nobody says how deep
_MOST_LABELS = 5  # of the categories of a branch
_BINS = 12
_MOST_BARS = 24  # of categories; more cannot be told apart


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitHistogram(Plain):
    """The rows at a node over the feature that it asks.

    Attributes
    ----------
    edges : ndarray of shape (n_bars + 1,)
        Of the bars; -0.5, 0.5, 1.5 and so on where bars are categories.
    counts : ndarray of shape (n_groups, n_bars)
        Rows of each class, or all rows together.
    means : ndarray of shape (n_bars,) or None
        Of the targets of a regressor; NaN where there is no row.
    labels : tuple of str
        Of categories, one for each bar.
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
        Which answer leads here: "yes", "no" or categories; "" for the root.
    question : str
        "" for a leaf.
    samples : int
    coverage : float
        Its share in the weight of all training rows.
    impurity : float
    shares : tuple of tuple of float
        Of the classes, for each output; () for a regressor.
    means : tuple of float
        Of a regressor, for each output; () for a classifier.
    prediction : str
    hidden : int
        How many nodes below are not shown.
    path_share : float
        How much of the row came by: 0, 1, or a part where missing values are shared out.
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
    """The upper part of a tree, or all of it.

    Attributes
    ----------
    nodes : tuple of SketchNode
        In preorder.
    classes : tuple of tuple of str
        Labels of the classes of each output; () for a regressor.
    criterion : str
    n_nodes, depth : int
        Of the whole tree.
    cut_at : int or None
        The depth of the lowest nodes shown, where there are others below.
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
    """The nodes of a fitted tree down to some depth, in words and numbers for a drawing.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    max_depth : int, optional
        Of the lowest nodes shown. By default as deep as 200 nodes reach.
    row : array-like of shape (n_features,), mapping or table of one row, optional
        Whose way is marked.
    X, y : array-like, optional
        Rows, and their classes or targets, for a histogram at each question.
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
    _require_whole("decimals", decimals)
    if max_depth is not None:
        _require_whole("max_depth", max_depth)
    depth = tree.depth
    deepest = _depth_of_few(depth) if max_depth is None else int(max_depth)
    kept = np.flatnonzero(depth <= deepest)
    # Nodes are in preorder: those that a kept node hides come right after it.
    hidden = np.diff(kept, append=len(tree)) - 1
    place = {number: k for k, number in enumerate(kept.tolist())}
    shares = _shares_on_path(model, row)
    histograms = {} if X is None else _histograms(model, tree, names, kept, X, y)
    branch: dict[int, str] = {}
    nodes = []
    for number, below in zip(kept.tolist(), hidden.tolist(), strict=True):
        question = ""
        if tree.kind[number] != LEAF:
            conditions = branch_conditions(tree, names, number)
            is_multiway = tree.kind[number] == MULTIWAY
            question = _question(conditions[0], is_multiway, int(decimals))
            if not below:
                answers = _answers(conditions, is_multiway)
                branch.update(zip(tree.children_of(number).tolist(), answers, strict=True))
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
                shares=tuple(tuple(own) for own, _ in names.by_output(value)),
                means=() if names.is_classifier else tuple(value),
                prediction=prediction_text(names.prediction(value), int(decimals)),
                hidden=below,
                path_share=shares.get(number, 0.0),
                histogram=histograms.get(number),
            )
        )
    return TreeSketch(
        nodes=tuple(nodes),
        classes=tuple(tuple(shown(label) for label in own) for own in names.classes),
        criterion=str(model.criterion),
        n_nodes=len(tree),
        depth=int(depth.max()),
        cut_at=deepest if len(kept) < len(tree) else None,
    )


def _require_whole(name: str, number: Any) -> None:
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{name} must be a whole number, at least 0. Got {number!r}.")


def _depth_of_few(depth: np.ndarray) -> int:
    """The greatest depth down to which there are few nodes, at least 1."""
    n_nodes = np.cumsum(np.bincount(depth))
    return max(1, int(np.searchsorted(n_nodes, _MOST_NODES, side="right")) - 1)


def _question(first: Condition, is_multiway: bool, decimals: int) -> str:
    return shown(first.feature) if is_multiway else first.in_words(decimals=decimals)


def _answers(conditions: Sequence[Condition], is_multiway: bool) -> list[str]:
    if not is_multiway:
        return ["yes", "no"]
    answers = []
    for condition in conditions:
        labels = [shown(label) for label in condition.categories[:_MOST_LABELS]]
        rest = ", ..." if len(condition.categories) > _MOST_LABELS else ""
        answers.append(", ".join(labels) + rest)
    return answers


def _shares_on_path(model: Any, row: Any) -> dict[int, float]:
    if row is None:
        return {}
    return {0: 1.0} | {step.child: step.share for step in explain(model, row).steps}


def _histograms(
    model: Any, tree: TreeArrays, names: TreeNames, kept: np.ndarray, X: Any, y: Any
) -> dict[int, SplitHistogram]:
    """Histograms of nodes that ask one feature. Sorted by leaf, rows of a subtree are a run."""
    rows = np.asarray(model._rows(X), dtype=np.float64)
    codes, targets = codes_or_targets(model, y, len(rows))
    groups = np.zeros(len(rows), np.int64) if codes is None else codes
    n_groups = 1 if codes is None else len(names.classes[0])
    leaf = leaves_of(tree, rows)
    order = np.argsort(leaf, kind="stable")
    asking = kept[(tree.kind[kept] != LEAF) & (tree.feature[kept] >= 0)]
    starts = np.searchsorted(leaf[order], asking)
    stops = np.searchsorted(leaf[order], tree.ends[asking])
    found = {}
    for number, start, stop in zip(asking.tolist(), starts, stops, strict=True):
        own = order[start:stop]
        column = int(tree.feature[number])
        own = own[np.isfinite(rows[own, column])]
        values = rows[own, column]
        labels = names.categories.get(column)
        if labels is not None and len(labels) > _MOST_BARS:
            continue
        threshold = float(tree.threshold[number]) if tree.kind[number] == THRESHOLD else None
        found[number] = SplitHistogram(
            **_bars(
                values, labels, groups[own], n_groups, None if targets is None else targets[own]
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
    part = np.linspace(0.0, 1.0, _BINS + 1 if low < high else 2)
    return np.asarray((1.0 - part) * low + part * high)  # the range itself may overflow


def _bar_of(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bar of each value; the highest edge belongs to the last."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
