"""The loss of each node if it were a leaf, on rows that the tree was not grown on.

Early stopping, reduced-error pruning and the choice of `ccp_alpha` use these losses. They are
computed at the leaves that rows reach and added up towards the root, so each row walks through the
tree only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from margrove._data import check_labels, check_targets, check_weights, read_only
from margrove._runtime import kernel
from margrove.exceptions import NotFittedError
from margrove.grove.prune.bottom_up import sums_of_leaves
from margrove.grove.serve import (
    LEAF,
    TreeArrays,
    branch_of,
    leaves_of,
    predicted_classes,
    questions_of,
)

__all__ = ["fitted_arrays", "validation_losses"]


def validation_losses(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    is_class: bool | None = None,
    n_classes: Sequence[int] | None = None,
) -> np.ndarray:
    """float64 (N,): the loss of each node if it were a leaf, summed over the rows that reach it.

    The loss is the weight of misclassified rows for classes, and the squared error for numbers; the
    mean over several outputs. A row with a missing value that takes all branches counts in each
    with its share. Labels that the model does not know are always misclassified.

    model : fitted decision tree, or TreeArrays
        For TreeArrays, X has the rows as trees read them, y has class numbers (`is_class=True`) or
        targets, and `n_classes` is needed if there are several outputs.
    """
    if isinstance(model, TreeArrays):
        tree, rows = model, np.ascontiguousarray(X, dtype=np.float64)
        if is_class is None:
            raise ValueError("is_class must be True or False if model is TreeArrays. Got None.")
        codes = np.asarray(y) if is_class else None
    else:
        tree, rows = fitted_arrays(model), model._rows(X)
        is_class = bool(is_classifier(model))
        n_classes = model._class_counts()
        codes = _codes(model, y, len(rows)) if is_class else None
    y = check_targets(y, len(rows), multi_output=True) if codes is None else codes
    answers = predicted_classes(tree, n_classes) if is_class else tree.value
    y = _table(y, len(rows), answers.shape[1])
    weight = check_weights(sample_weight, len(rows))
    row, leaf, share = _arrivals(tree, rows)
    y, weight = y[row], weight[row] * share
    loss = _mistakes if is_class else _squares
    by_output = [loss(tree, leaf, answer, y[:, k], weight) for k, answer in enumerate(answers.T)]
    losses: np.ndarray = np.mean(by_output, axis=0)
    return losses


def _table(y: np.ndarray, n_rows: int, n_outputs: int) -> np.ndarray:
    table = y.reshape(len(y), -1) if y.ndim else y
    if table.shape != (n_rows, n_outputs):
        raise ValueError(
            f"y must have a row for each of the {n_rows} rows of X, and a column for each of the "
            f"{n_outputs} outputs. Got shape {y.shape}."
        )
    return table


def fitted_arrays(model: Any, argument: str = "model") -> TreeArrays:
    """The arrays of a fitted tree; an error that names the argument if it is something else."""
    arrays = getattr(model, "arrays_", None)
    if isinstance(arrays, TreeArrays):
        return arrays
    name = (model if isinstance(model, type) else type(model)).__name__
    if not isinstance(model, type) and hasattr(model, "_with_arrays"):
        raise NotFittedError(
            f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before "
            "pruning it."
        )
    raise ValueError(
        f"{argument} must be one of this library's decision trees, fitted. Got {name}."
    )


def _codes(model: Any, y: Any, n_rows: int) -> np.ndarray:
    """int64 (n, outputs): the class number of each label; -1 for labels that are unknown."""
    all_classes = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    if len(all_classes) == 1:
        columns = [y]
    else:
        table = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
        if table.ndim != 2 or table.shape[1] != len(all_classes):
            raise ValueError(
                f"y must have a column for each of the {len(all_classes)} outputs. Got shape "
                f"{table.shape}."
            )
        columns = list(table.T)
    codes = [
        check_labels(column, n_rows).codes_among(classes)
        for column, classes in zip(columns, all_classes, strict=True)
    ]
    return np.stack(codes, axis=1)


def _mistakes(
    tree: TreeArrays, leaf: np.ndarray, answer: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The weight of the rows in each node whose class is not the node's answer."""
    mistakes = np.zeros(len(tree))
    for code in np.unique(answer):
        wrong = codes != code
        at_leaves = np.bincount(leaf[wrong], weights=weight[wrong], minlength=len(tree))
        nodes = answer == code
        mistakes[nodes] = sums_of_leaves(tree, at_leaves)[nodes]
    return mistakes


def _squares(
    tree: TreeArrays, leaf: np.ndarray, answer: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The squared errors of each node, from the weight, mean and sum of squares of its y."""
    n = len(tree)
    total = np.bincount(leaf, weights=weight, minlength=n)
    mean = np.bincount(leaf, weights=weight * y, minlength=n) / np.where(total > 0, total, 1.0)
    spread = np.bincount(leaf, weights=weight * (y - mean[leaf]) ** 2, minlength=n)
    _merge_moments(read_only(tree.parent), total, mean, spread)
    squares: np.ndarray = spread + total * (mean - answer) ** 2
    return squares


@kernel
def _merge_moments(parent, total, mean, spread):
    """Moments of each node from those of its children (Chan, Golub, LeVeque 1983, equation 2.1)."""
    for node in range(len(parent) - 1, 0, -1):
        if total[node] > 0:
            above = parent[node]
            both = total[above] + total[node]
            step = mean[node] - mean[above]
            spread[above] += spread[node] + step * step * total[above] * (total[node] / both)
            mean[above] += step * (total[node] / both)
            total[above] = both


def _arrivals(tree: TreeArrays, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, leaf and share of every arrival of a row, or of a share of it, at a leaf."""
    if not np.any((tree.missing_child < 0) & (tree.kind != LEAF)):
        return np.arange(len(X)), leaves_of(tree, X), np.ones(len(X))
    found = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    for _ in range(2):  # count, then write
        n_found = _walk_shares(X, questions_of(tree), tree.weight, *found)
        if len(found[0]) < n_found:
            found = (np.empty(n_found, np.int64), np.empty(n_found, np.int64), np.empty(n_found))
    return found


@kernel
def _walk_shares(X, questions, weight, rows, leaves, shares):
    """Write row, leaf and share of each arrival until the arrays are full; returns their number."""
    kind, children, first_child = questions.kind, questions.children, questions.first_child
    n_children, missing_child = questions.n_children, questions.missing_child
    stack = np.empty(len(kind), np.int64)
    carried = np.empty(len(kind))
    n_found = 0
    for i in range(X.shape[0]):
        stack[0], carried[0], size = 0, 1.0, 1
        while size > 0:
            size -= 1
            node, share = stack[size], carried[size]
            while node >= 0 and kind[node] != LEAF:
                branch = branch_of(X[i], node, questions)
                if branch < 0:
                    branch = missing_child[node]
                first = first_child[node]
                if branch >= 0:
                    node = children[first + branch]
                    continue
                total = 0.0
                for k in range(first, first + n_children[node]):
                    total += weight[children[k]]
                for k in range(first, first + n_children[node]):
                    stack[size] = children[k]
                    carried[size] = share * (weight[children[k]] / total)
                    size += 1
                node = -1
            if node >= 0:
                if n_found < len(rows):
                    rows[n_found], leaves[n_found], shares[n_found] = i, node, share
                n_found += 1
    return n_found
