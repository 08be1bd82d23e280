"""Decision trees: what `describe` tells of them, and the data behind their pictures.

    tree_facts       everything about a fitted tree
    sketch_tree      the nodes that a drawing shows, with their texts, bars and histograms
    tree_regions     intervals or rectangles of a tree over one or two features
    gain_curves      what each threshold of each feature would gain
    pruning_errors   training and test error of the trees of cost-complexity pruning

Texts are for people: names and labels are as `conditions.shown` shows them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import check_labels, check_targets
from margrove.exceptions import InvalidDataError
from margrove.facts.outlines import Given, estimator_fields
from margrove.facts.plain import Plain, frozen
from margrove.facts.values import TreeFacts
from margrove.grove.conditions import (
    Condition,
    TreeNames,
    branch_conditions,
    names_of,
    prediction_text,
    shown,
    tree_of,
)
from margrove.grove.criteria import CRITERIA, Criterion
from margrove.grove.decision_tree import DecisionTree
from margrove.grove.inspect import explain, read_tree, regions
from margrove.grove.pruning import _losses_along, cost_complexity_path
from margrove.grove.tree import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.tree_arrays import LEAF, MULTIWAY, THRESHOLD, TreeArrays, leaves_of

__all__ = [
    "GainCurve",
    "GainCurves",
    "PruningErrors",
    "SketchNode",
    "SplitHistogram",
    "TreeRegions",
    "TreeSketch",
    "codes_or_targets",
    "gain_curves",
    "pruning_errors",
    "sketch_tree",
    "tree_facts",
    "tree_regions",
]

_MOST_NODES = 200  # in a sketch, if nobody says how deep
_MOST_LABELS = 5  # of the categories of a branch
_BINS = 12
_MOST_BARS = 24  # of categories; more cannot be told apart
_ROUNDING = 1e-12  # of a number: what may be rounding

_ERROR_NAMES = {
    "squared_error": "mean squared error",
    "friedman_mse": "mean squared error",
    "absolute_error": "mean absolute error",
    "poisson": "half the mean Poisson deviance",
    "gamma": "half the mean gamma deviance",
}


# -- everything about a tree ---------------------------------------------------------------------


def tree_facts(model: Any, given: Given) -> TreeFacts:
    tree = tree_of(model)
    reading = read_tree(model)
    asked = reading.nodes[0].question
    leaves = np.flatnonzero(tree.kind == LEAF)
    importances = model.feature_importances_
    used = _columns_asked(tree)
    used = used[np.argsort(-importances[used], kind="stable")]
    error, error_name = _training_error(model, tree, leaves)
    return TreeFacts(
        **_estimator_fields(model),
        criterion=str(model.criterion),
        split=str(model.split),
        n_outputs=int(model.n_outputs_),
        n_nodes=len(tree),
        n_leaves=len(leaves),
        depth=int(tree.depth.max()),
        n_samples=int(tree.n_samples[0]),
        root_question="" if asked is None else asked.text,
        importances=frozen(importances),
        features_used=tuple(reading.feature_names[column] for column in used.tolist()),
        leaves=frozen(leaves),
        leaf_samples=frozen(tree.n_samples[leaves]),
        leaf_values=frozen(tree.value[leaves]),
        training_error=error,
        training_error_name=error_name,
        tree=reading,
    )


def _estimator_fields(model: Any) -> dict[str, Any]:
    """Classes of several outputs are as many arrays, which need not be of one length."""
    if not isinstance(getattr(model, "classes_", None), list):
        return estimator_fields(model)
    classes = np.empty(len(model.classes_), dtype=object)
    classes[:] = [frozen(own) for own in model.classes_]
    copied = model._with_arrays(model.arrays_)
    copied.classes_ = classes
    return estimator_fields(copied)


def _columns_asked(tree: TreeArrays) -> np.ndarray:
    """The columns that some node asks, ascending."""
    single = tree.feature[(tree.kind != LEAF) & (tree.feature >= 0)]
    return np.union1d(single, np.flatnonzero(np.any(tree.coef != 0.0, axis=0))).astype(np.int64)


def _training_error(model: Any, tree: TreeArrays, leaves: np.ndarray) -> tuple[float | None, str]:
    classes = names_of(model).classes
    name = "share misclassified" if classes else _ERROR_NAMES.get(model.criterion, "impurity")
    constraints = model.monotonic_cst
    if isinstance(constraints, dict):
        constraints = list(constraints.values())
    if constraints is not None and np.any(np.asarray(constraints) != 0):
        return None, name
    errors = tree.impurity[leaves]
    if classes:
        ends = np.cumsum([len(own) for own in classes])
        parts = np.split(tree.value[leaves], ends[:-1], axis=1)
        errors = 1.0 - np.mean([own.max(axis=1) for own in parts], axis=0)
    return float(np.sum(tree.weight[leaves] / tree.weight[0] * errors)), name


# -- a tree to be drawn --------------------------------------------------------------------------


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
                shares=_by_output(value, names),
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


def _by_output(value: list[float], names: TreeNames) -> tuple[tuple[float, ...], ...]:
    shares, start = [], 0
    for labels in names.classes:
        shares.append(tuple(value[start : start + len(labels)]))
        start += len(labels)
    return tuple(shares)


def _shares_on_path(model: Any, row: Any) -> dict[int, float]:
    if row is None:
        return {}
    return {0: 1.0} | {step.child: step.share for step in explain(model, row).steps}


def _histograms(
    model: Any, tree: TreeArrays, names: TreeNames, kept: np.ndarray, X: Any, y: Any
) -> dict[int, SplitHistogram]:
    """Of the nodes that ask one feature. Rows of a subtree are a run, once sorted by leaf."""
    rows = np.asarray(model._rows(X), dtype=np.float64)
    codes, targets = codes_or_targets(model, y, len(rows))
    groups = np.zeros(len(rows), np.int64) if codes is None else codes
    n_groups = 1 if codes is None else len(names.classes[0])
    leaf = leaves_of(tree, rows)
    order = np.argsort(leaf, kind="stable")
    ends = tree.ends
    asking = kept[(tree.kind[kept] != LEAF) & (tree.feature[kept] >= 0)]
    starts = np.searchsorted(leaf[order], asking)
    stops = np.searchsorted(leaf[order], ends[asking])
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
            **_bars(values, labels, groups[own], n_groups),
            means=None if targets is None else _means(values, targets[own], labels),
            threshold=threshold if threshold is not None and math.isfinite(threshold) else None,
        )
    return found


def codes_or_targets(
    model: Any, y: Any, n_rows: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The number of each row's class, or its target; of several outputs, of the first."""
    if y is None:
        return None, None
    table = y if hasattr(y, "shape") else np.asarray(y)
    is_table = len(table.shape) == 2 and table.shape[1] == model.n_outputs_
    first = np.asarray(table)[:, 0] if is_table else y
    if not hasattr(model, "classes_"):
        return None, check_targets(first, n_rows)
    classes = model.classes_[0] if isinstance(model.classes_, list) else model.classes_
    return _codes(first, classes, n_rows), None


def _codes(y: Any, classes: np.ndarray, n_rows: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of many classes are fine to draw
        labels = check_labels(y, n_rows)
    known = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in labels.classes.tolist() if label not in known]
    if unknown:
        raise InvalidDataError(
            f"y has {shown(unknown[0])}, which is not among the classes of the model: "
            f"{', '.join(shown(label) for label in classes.tolist()[:10])}."
        )
    number = np.array([known[label] for label in labels.classes.tolist()], np.int64)
    codes: np.ndarray = number[labels.codes]
    return codes


def _bars(
    values: np.ndarray, labels: tuple[Any, ...] | None, groups: np.ndarray, n_groups: int
) -> dict[str, Any]:
    edges = _edges(values, labels)
    n_bars = len(edges) - 1
    bar = _bar_of(values, edges)
    counts = np.bincount(groups * n_bars + bar, minlength=n_groups * n_bars)
    return {
        "edges": frozen(edges),
        "counts": frozen(counts.reshape(n_groups, n_bars)),
        "labels": () if labels is None else tuple(shown(label) for label in labels),
    }


def _means(values: np.ndarray, targets: np.ndarray, labels: tuple[Any, ...] | None) -> np.ndarray:
    edges = _edges(values, labels)
    bar = _bar_of(values, edges)
    sums = np.bincount(bar, weights=targets, minlength=len(edges) - 1)
    counts = np.bincount(bar, minlength=len(edges) - 1)
    means: np.ndarray = frozen(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return means


def _edges(values: np.ndarray, labels: tuple[Any, ...] | None) -> np.ndarray:
    if labels is not None:
        return np.arange(len(labels) + 1) - 0.5
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    part = np.linspace(0.0, 1.0, _BINS + 1 if low < high else 2)
    return np.asarray((1.0 - part) * low + part * high)  # the range itself may overflow


def _bar_of(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bar of each value; the highest edge belongs to the last."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


# -- regions -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeRegions(Plain):
    """Intervals or rectangles, low < x <= high, in which a tree says the same.

    Attributes
    ----------
    features : tuple of int
        The one or two columns.
    names : tuple of str
    leaves : ndarray of int
    low, high : ndarray of shape (n_regions, n_features)
        Infinite where the region has no end; intervals ascend.
    values : ndarray
        The number of the predicted class, or the mean, of each region.
    classes : tuple of str
        () for a regressor.
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    leaves: np.ndarray
    low: np.ndarray
    high: np.ndarray
    values: np.ndarray
    classes: tuple[str, ...]


def tree_regions(model: Any) -> TreeRegions:
    """The intervals or rectangles into which a tree over one or two features cuts space.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        With one or two features, or one that asks no more than two of them; with one output and
        thresholds only.

    Returns
    -------
    TreeRegions

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.facts import tree_regions
    >>> found = tree_regions(DecisionTreeRegressor().fit([[1.0], [3.0]], [0.0, 5.0]))
    >>> found.high[:, 0], found.values
    (array([ 2., inf]), array([0., 5.]))
    """
    tree, names = tree_of(model), names_of(model)
    if names.n_outputs > 1:
        raise ValueError(f"Regions are those of one output, and this tree has {names.n_outputs}.")
    features = _few_features(tree, len(names.features))
    boxes = regions(model)
    low = np.array([[box.low[j] for j in features] for box in boxes])
    high = np.array([[box.high[j] for j in features] for box in boxes])
    order = np.argsort(low[:, 0], kind="stable") if len(features) == 1 else np.arange(len(boxes))
    leaves = np.array([box.leaf for box in boxes])[order]
    values = tree.value[leaves]
    return TreeRegions(
        features=features,
        names=tuple(shown(names.features[j]) for j in features),
        leaves=frozen(leaves),
        low=frozen(low[order]),
        high=frozen(high[order]),
        values=frozen(np.argmax(values, axis=1) if names.is_classifier else values[:, 0]),
        classes=tuple(shown(label) for own in names.classes for label in own),
    )


def _few_features(tree: TreeArrays, n_features: int) -> tuple[int, ...]:
    if n_features <= 2:
        return tuple(range(n_features))
    asked = tuple(_columns_asked(tree).tolist())
    if not 1 <= len(asked) <= 2:
        raise ValueError(
            f"This tree asks {len(asked)} of {n_features} features; its regions can be drawn over "
            "one or two. plot.decision_boundary draws a plane through the others."
        )
    return asked


# -- what a threshold would gain -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class GainCurve(Plain):
    """What each threshold of a feature would gain.

    Attributes
    ----------
    feature : str
    index : int
        Its column.
    thresholds : ndarray
        Halfway between neighbouring values, ascending.
    decreases : ndarray
        Of the impurity, by splitting there; NaN where a split is not allowed. Rows without a value
        are on the side where they help more.
    decrease_of_missing : float or None
        By splitting rows with a value from rows without, if there are both.
    """

    feature: str
    index: int
    thresholds: np.ndarray
    decreases: np.ndarray
    decrease_of_missing: float | None

    @property
    def best(self) -> int | None:
        """The place of the largest decrease, of equals the first; None if there is no threshold."""
        if not len(self.decreases) or np.isnan(self.decreases).all():
            return None
        largest = np.nanmax(self.decreases)
        return int(np.argmax(self.decreases >= largest - _ROUNDING * abs(largest)))


@dataclass(frozen=True, kw_only=True, eq=False)
class GainCurves(Plain):
    """A curve for each feature, the criterion, and the impurity before any split."""

    criterion: str
    impurity: float
    curves: tuple[GainCurve, ...]

    @property
    def best(self) -> GainCurve | None:
        """The curve with the largest decrease; of equals the first."""
        found: GainCurve | None = None
        largest = -math.inf
        for curve in self.curves:
            place = curve.best
            own = -math.inf if place is None else float(curve.decreases[place])
            if found is None or own > largest + _ROUNDING * abs(largest):
                found, largest = (curve, own) if place is not None else (found, largest)
        return found


def gain_curves(X: Any, y: Any, *, criterion: str = "gini", feature: Any = None) -> GainCurves:
    """How much each threshold of each feature would lower the impurity of all rows.

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        Missing values are NaN.
    y : array-like of shape (n_samples,)
    criterion : str, default="gini"
        One of `margrove.grove.criteria.CRITERIA`; those of numbers take y as numbers.
        "gain_ratio" chooses thresholds by entropy, and that is what is told.
    feature : int, str or list of them, optional
        Which columns; by default all that are numbers.

    Returns
    -------
    GainCurves

    Examples
    --------
    >>> from margrove.facts import gain_curves
    >>> (curve,) = gain_curves([[1.0], [2.0], [4.0], [5.0]], list("aabb")).curves
    >>> curve.thresholds, curve.decreases.round(3)
    (array([1.5, 3. , 4.5]), array([0.167, 0.5  , 0.167]))
    """
    if not isinstance(criterion, str) or criterion not in CRITERIA:
        known = ", ".join(repr(name) for name in CRITERIA)
        raise ValueError(f"criterion must be one of {known}. Got {criterion!a}.")
    is_class = CRITERIA[criterion].for_classes
    estimator: Any = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    stump = estimator(criterion=criterion, max_depth=1).fit(X, y)  # it checks X and y
    if stump.n_outputs_ > 1:
        raise ValueError(f"y must be one column. Got {stump.n_outputs_}.")
    names = names_of(stump)
    rows = np.asarray(stump._rows(X), dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `fit` has warned
        targets = check_labels(y, len(rows)).codes if is_class else check_targets(y, len(rows))
    cost = _cost_of_starts(criterion, np.ravel(targets))
    return GainCurves(
        criterion=criterion,
        impurity=float(stump.arrays_.impurity[0]),
        curves=tuple(
            _gain_curve(rows[:, column], cost, names.features[column], column)
            for column in _numeric_columns(feature, names)
        ),
    )


def _numeric_columns(feature: Any, names: TreeNames) -> list[int]:
    d = len(names.features)
    if feature is None:
        found = [column for column in range(d) if column not in names.categories]
        if not found:
            raise ValueError("All columns of X are categories, which have no thresholds.")
        return found
    is_list = isinstance(feature, (list, tuple, np.ndarray))
    columns = [_column(own, names) for own in (feature if is_list else [feature])]
    for column in columns:
        if column in names.categories:
            raise ValueError(
                f"Column {shown(names.features[column])} holds categories: it has no thresholds."
            )
    return columns


def _column(feature: Any, names: TreeNames) -> int:
    d = len(names.features)
    if isinstance(feature, str) and feature in names.features:
        return names.features.index(feature)
    is_number = isinstance(feature, Integral) and not isinstance(feature, bool)
    if is_number and 0 <= int(feature) < d:
        return int(feature)
    known = ", ".join(shown(name) for name in names.features[:10]) + (", ..." if d > 10 else "")
    raise ValueError(
        f"feature must be numbers from 0 to {d - 1} or names of columns: {known}. Got {feature!a}."
    )


_CostOfStarts = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _cost_of_starts(criterion: str, targets: np.ndarray) -> _CostOfStarts:
    """A function of rows in an order and of lengths: the weight times the impurity of the first so
    many rows, but for what all splits of the same rows have in common."""
    if CRITERIA[criterion].own is not None:
        return _own_cost_of_starts(CRITERIA[criterion], targets)
    of_shares = CRITERIA[criterion].of_shares
    if of_shares is not None:
        n_classes = int(targets.max()) + 1

        def of_classes(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
            counts = [np.cumsum(targets[rows] == k)[ends - 1] for k in range(n_classes)]
            return ends * of_shares(np.stack(counts, axis=1) / ends[:, None])

        return of_classes
    if criterion == "absolute_error":
        return lambda rows, ends: _distances_from_medians(targets[rows])[ends - 1]
    centre = targets.mean() if criterion in ("squared_error", "friedman_mse") else 0.0

    def of_numbers(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
        total = np.cumsum(targets[rows] - centre)[ends - 1]
        if criterion == "gamma":
            return np.asarray(ends * np.log(total / ends))
        if criterion == "poisson":  # a branch of zeros only would rule out every later event
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(total > 0.0, -total * np.log(total / ends), np.nan)
        return np.asarray(-(total**2) / ends)

    return of_numbers


def _own_cost_of_starts(criterion: Criterion, targets: np.ndarray) -> _CostOfStarts:
    """The same for a user's criterion, which is a function of sums and weight."""
    impurity = criterion.own
    assert impurity is not None
    sums = np.column_stack([targets, targets**2])
    if criterion.for_classes:
        sums = np.eye(int(targets.max()) + 1)[targets]

    def of_sums(rows: np.ndarray, ends: np.ndarray) -> np.ndarray:
        totals = np.cumsum(sums[rows], axis=0)[ends - 1]
        weights = ends.astype(np.float64).tolist()
        pairs = zip(totals, weights, strict=True)
        return np.array([weight * impurity(own, weight) for own, weight in pairs])

    return of_sums


def _distances_from_medians(y: np.ndarray) -> np.ndarray:
    """The sum of the distances of y[0] .. y[k] from their median, for each k.

    The lower half is a heap with its largest on top, the upper half one with its smallest.
    """
    lower: list[float] = []
    upper: list[float] = []
    below = above = 0.0
    found = np.empty(len(y))
    for k, value in enumerate(y.tolist()):
        if len(lower) > len(upper):
            moved = -heappushpop(lower, -value)
            heappush(upper, moved)
            below, above = below + value - moved, above + moved
        else:
            moved = heappushpop(upper, value)
            heappush(lower, -moved)
            below, above = below + moved, above + value - moved
        found[k] = above - below - (len(upper) - len(lower)) * -lower[0]
    return found


def _gain_curve(values: np.ndarray, cost: _CostOfStarts, name: str, index: int) -> GainCurve:
    is_there = ~np.isnan(values)
    missing = np.flatnonzero(~is_there)
    order = np.flatnonzero(is_there)
    order = order[np.argsort(values[order], kind="stable")]
    ordered, n = values[order], len(values)
    ends = np.flatnonzero(ordered[:-1] < ordered[1:]) + 1
    nothing = np.empty(0, np.int64)
    whole = cost(np.concatenate([order, missing]), np.array([n]))[0]

    def decreases(left: np.ndarray, right: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """With these rows on the left or on the right in any case."""
        of_left = cost(np.concatenate([left, order]), len(left) + ends)
        of_right = cost(np.concatenate([right, order[::-1]]), len(right) + len(order) - ends)
        rounding = _ROUNDING * (abs(whole) + np.abs(of_left) + np.abs(of_right))
        found = whole - of_left - of_right
        return np.where(np.abs(found) <= rounding, 0.0, found) / n

    found = decreases(nothing, missing, ends)
    of_missing = None
    if len(missing) and len(order):
        found = np.fmax(found, decreases(missing, nothing, ends))
        of_missing = float(decreases(nothing, missing, np.array([len(order)]))[0])
    return GainCurve(
        feature=shown(name),
        index=index,
        thresholds=frozen(_halfway(ordered[ends - 1], ordered[ends])),
        decreases=frozen(found),
        decrease_of_missing=of_missing,
    )


def _halfway(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """As the trees put their thresholds: below, where rounding would go beyond."""
    middle = 0.5 * below + 0.5 * above
    return np.where((below <= middle) & (middle < above), middle, below)


# -- errors along pruning ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class PruningErrors(Plain):
    """The errors of the trees of cost-complexity pruning, from the whole tree to its root.

    Attributes
    ----------
    ccp_alphas : ndarray
        The least price of a leaf at which each tree is the best.
    n_leaves : ndarray of int
    training_errors, test_errors : ndarray
        The share of misclassified rows, or the mean squared error.
    best : int
        Where the test error is least; of equals, the smallest tree.
    error_name : str
        What the errors are, in words.
    """

    ccp_alphas: np.ndarray
    n_leaves: np.ndarray
    training_errors: np.ndarray
    test_errors: np.ndarray
    best: int
    error_name: str


def pruning_errors(model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> PruningErrors:
    """Training and test error of all trees that cost-complexity pruning makes of a tree.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        Fitted to X and y, or still to be: then a copy is, with `ccp_alpha=0`.
    X, y : training rows and their targets
    X_test, y_test : other rows and their targets

    Returns
    -------
    PruningErrors

    Examples
    --------
    >>> import margrove
    >>> from margrove.facts import pruning_errors
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = margrove.DecisionTreeClassifier()
    >>> found = pruning_errors(tree, X[::2], y[::2], X[1::2], y[1::2])
    >>> found.n_leaves, int(found.n_leaves[found.best])
    (array([6, 4, 3, 2, 1]), 4)
    """
    if not isinstance(model, DecisionTree):
        name = (model if isinstance(model, type) else type(model)).__name__
        raise TypeError(f"One of margrove's decision trees is needed. Got {name}.")
    if not hasattr(model, "arrays_"):
        model = clone(model).set_params(ccp_alpha=0.0).fit(X, y)
    path = cost_complexity_path(tree_of(model))
    # Steps at the same alpha go together; the first entry is the whole tree.
    is_last = np.append(path.ccp_alphas[1:] != path.ccp_alphas[:-1], True)
    kept = np.flatnonzero(is_last & (path.ccp_alphas > 0.0))
    kept = np.append(0, kept[kept > 0])
    alphas = path.ccp_alphas[kept]
    errors = [_mean_losses(model, *rows, alphas) for rows in ((X, y), (X_test, y_test))]
    limit = errors[1].min() * (1.0 + _ROUNDING)
    is_class = names_of(model).is_classifier
    return PruningErrors(
        ccp_alphas=frozen(alphas),
        n_leaves=frozen(path.n_leaves[kept]),
        training_errors=frozen(errors[0]),
        test_errors=frozen(errors[1]),
        best=int(np.flatnonzero(errors[1] <= limit)[-1]),
        error_name="share misclassified" if is_class else "mean squared error",
    )


def _mean_losses(model: Any, X: Any, y: Any, alphas: np.ndarray) -> np.ndarray:
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    losses: np.ndarray = _losses_along(model, X, y, np.ones(n), alphas) / n
    return np.maximum(losses, 0.0)  # they are differences, and may round below
