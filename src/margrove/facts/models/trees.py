"""Facts about decision trees, and the data for pictures of trees.

    tree_facts         everything about a fitted tree
    tree_regions       intervals or rectangles of a tree over one or two features
    pruning_errors     training and test error of the trees of cost-complexity pruning
    codes_or_targets   y as class codes or targets

The nodes of a drawing are in `tree_sketches`. Texts have names and labels as `conditions.shown`
writes them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import check_labels, check_targets, count_rows
from margrove.exceptions import InvalidDataError
from margrove.facts.plain_values import Plain, frozen
from margrove.facts.values import Given, TreeFacts, estimator_fields
from margrove.grove import CRITERIA, DecisionTree
from margrove.grove.prune import cost_complexity_path, last_within, losses_along, validation_losses
from margrove.grove.read import names_of, read_tree, regions, shown, tree_of
from margrove.grove.serve import LEAF, TreeArrays, by_output

__all__ = [
    "PruningErrors",
    "TreeRegions",
    "codes_or_targets",
    "pruning_errors",
    "tree_facts",
    "tree_regions",
]


def tree_facts(model: Any, given: Given) -> TreeFacts:
    tree = tree_of(model)
    reading = read_tree(model)
    root_split = reading.nodes[0].question
    leaves = np.flatnonzero(tree.kind == LEAF)
    importances = model.feature_importances_
    used = _columns_used(tree)
    used = used[np.argsort(-importances[used], kind="stable")]
    error, error_name = _training_error(model, tree, leaves)
    return TreeFacts(
        **estimator_fields(model),
        criterion=str(model.criterion),
        split=str(model.split),
        n_outputs=int(model.n_outputs_),
        n_nodes=len(tree),
        n_leaves=len(leaves),
        depth=int(tree.depth.max()),
        n_samples=int(tree.n_samples[0]),
        root_question="" if root_split is None else root_split.text,
        importances=frozen(importances),
        features_used=tuple(reading.feature_names[column] for column in used.tolist()),
        leaves=frozen(leaves),
        leaf_samples=frozen(tree.n_samples[leaves]),
        leaf_values=frozen(tree.value[leaves]),
        training_error=error,
        training_error_name=error_name,
        tree=reading,
    )


def _columns_used(tree: TreeArrays) -> np.ndarray:
    """The columns that the tree splits by, ascending."""
    single = tree.feature[(tree.kind != LEAF) & (tree.feature >= 0)]
    return np.union1d(single, np.flatnonzero(np.any(tree.coef != 0.0, axis=0))).astype(np.int64)


def _training_error(model: Any, tree: TreeArrays, leaves: np.ndarray) -> tuple[float | None, str]:
    classes = names_of(model).classes
    criterion = CRITERIA.get(model.criterion)  # None if it was registered in another process
    name = "impurity" if criterion is None else criterion.error_name
    name = "share misclassified" if classes else name
    constraints = model.monotonic_cst
    if isinstance(constraints, dict):
        constraints = list(constraints.values())
    if constraints is not None and np.any(np.asarray(constraints) != 0):
        return None, name
    errors = tree.impurity[leaves]
    if classes:
        shares = by_output(tree.value[leaves], [len(labels) for labels in classes])
        errors = 1.0 - np.mean([of_output.max(axis=1) for of_output in shares], axis=0)
    return float(np.sum(tree.weight[leaves] / tree.weight[0] * errors)), name


# -- y as numbers ----------------------------------------------------------------------------------


def codes_or_targets(
    model: Any, y: Any, n_rows: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The class code of each row, or its target; of the first output if there are several."""
    if y is None:
        return None, None
    table = y if hasattr(y, "shape") else np.asarray(y)
    is_table = len(table.shape) == 2 and table.shape[1] == model.n_outputs_
    first = np.asarray(table)[:, 0] if is_table else y
    if not hasattr(model, "classes_"):
        return None, check_targets(first, n_rows)
    classes = model.classes_[0] if isinstance(model.classes_, list) else model.classes_
    return class_codes(first, classes, n_rows), None


def class_codes(y: Any, classes: np.ndarray, n_rows: int) -> np.ndarray:
    """The class code of each row; an error for labels that are not among the classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there may be few rows of many classes
        labels = check_labels(y, n_rows)
    codes = labels.codes_among(classes)
    is_unknown = codes < 0
    if is_unknown.any():
        unknown = labels.classes[labels.codes[is_unknown].min()]
        raise InvalidDataError(
            f"y has {shown(unknown)}, which is not among the classes of the model: "
            f"{', '.join(shown(label) for label in classes.tolist()[:10])}."
        )
    return codes


# -- regions -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeRegions(Plain):
    """Intervals or rectangles, low < x <= high, in which the prediction of a tree is constant.

    Attributes
    ----------
    features : tuple of int
        The one or two columns.
    names : tuple of str
    leaves : ndarray of int
    low, high : ndarray of shape (n_regions, n_features)
        Infinite if the region has no end; intervals ascend.
    values : ndarray
        The code of the predicted class, or the mean, of each region.
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
    """The intervals or rectangles into which a tree over one or two features divides space.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        With one or two features, or with splits by one or two of its features; with one output, and
        splits by thresholds only.

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
        raise ValueError(
            f"tree_regions takes a tree with one output. Got {names.n_outputs} outputs. Fit a tree "
            "to one column of y."
        )
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
        classes=tuple(shown(label) for labels in names.classes for label in labels),
    )


def _few_features(tree: TreeArrays, n_features: int) -> tuple[int, ...]:
    if n_features <= 2:
        return tuple(range(n_features))
    used = tuple(_columns_used(tree).tolist())
    if not 1 <= len(used) <= 2:
        raise ValueError(
            f"This tree splits by {len(used)} of {n_features} features; regions are drawn over one "
            "or two. Use plot.decision_boundary, which draws a plane through the others."
        )
    return used


# -- errors along pruning ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class PruningErrors(Plain):
    """The errors of the trees of cost-complexity pruning, from the full tree to its root.

    Attributes
    ----------
    ccp_alphas : ndarray
        The smallest `ccp_alpha` at which each tree is the best.
    n_leaves : ndarray of int
    training_errors, test_errors : ndarray
        The share of misclassified rows, or the mean squared error.
    best : int
        Place of the smallest test error; if tied, of the smallest tree.
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
        Fitted to X and y; if it is not fitted, a copy is fitted with `ccp_alpha=0`.
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
        raise TypeError(f"model must be a decision tree of margrove. Got {name}.")
    if not hasattr(model, "arrays_"):
        model = clone(model).set_params(ccp_alpha=0.0).fit(X, y)
    path = cost_complexity_path(tree_of(model))
    # Steps at the same alpha are one step; the first entry is the full tree.
    is_last = np.append(path.ccp_alphas[1:] != path.ccp_alphas[:-1], True)
    kept = np.flatnonzero(is_last & (path.ccp_alphas > 0.0))
    kept = np.append(0, kept[kept > 0])
    alphas = path.ccp_alphas[kept]
    errors = [_mean_losses(model, *rows, alphas) for rows in ((X, y), (X_test, y_test))]
    is_class = names_of(model).is_classifier
    return PruningErrors(
        ccp_alphas=frozen(alphas),
        n_leaves=frozen(path.n_leaves[kept]),
        training_errors=frozen(errors[0]),
        test_errors=frozen(errors[1]),
        best=last_within(errors[1], errors[1].min()),
        error_name="share misclassified" if is_class else "mean squared error",
    )


def _mean_losses(model: Any, X: Any, y: Any, alphas: np.ndarray) -> np.ndarray:
    losses = losses_along(tree_of(model), validation_losses(model, X, y), alphas) / count_rows(X)
    return np.maximum(losses, 0.0)  # they are differences, and may round below zero
