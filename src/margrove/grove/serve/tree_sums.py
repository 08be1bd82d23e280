"""Fitted models whose prediction is a sum over trees.

    f(x)  =  start  +  sum over the trees of  value[leaf of x],    a number for each output

A decision tree is a sum of one tree. In a forest of T trees each tree has the factor 1 / T. The
leaves of AdaBoost hold what they add to the decision function. Gradient boosting adds trees to a
start value; with more than two classes, each class has its own trees.

An estimator that is such a sum has a method `_tree_sum`, which returns it as a `TreeSum`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.exceptions import DataWarning
from margrove.grove.serve.tree_arrays import OBLIQUE, TreeArrays
from margrove.grove.table import refuse_infinity

__all__ = [
    "TreeSum",
    "predictions_of",
    "shares_of_branches",
    "tree_sum",
    "tree_sum_of",
]


@dataclass(frozen=True)
class TreeSum:
    """A model as a sum of trees.

    trees            `value` of a tree is what its nodes add to all outputs, float64 (N, outputs),
                     or to one output, (N, 1): then tree k adds to output k % outputs
    start            float64 (outputs,)  the prediction before the first tree
    is_single        whether the model predicts one number for each row, not several
    feature_names    x0, x1 and so on where X had no names
    rows             function: any X as trees read it, dense or CSR, NaN is missing
    answer           function: the model's own prediction for any X, (n, outputs)
    """

    model: Any
    trees: tuple[TreeArrays, ...]
    start: np.ndarray
    is_single: bool
    feature_names: tuple[str, ...]
    rows: Callable[[Any], Any]
    answer: Callable[[Any], np.ndarray]

    @property
    def n_outputs(self) -> int:
        return len(self.start)

    @property
    def width(self) -> int:
        """The number of outputs that one tree adds to."""
        return int(self.trees[0].value.shape[1])

    @property
    def trees_per_round(self) -> int:
        """How many trees it takes to add to every output once."""
        return self.n_outputs // self.width

    def joined(self, sums: np.ndarray) -> np.ndarray:
        """Sums of trees by their place in a round, (trees per round, ..., width), as one array
        (..., outputs)."""
        found: np.ndarray = np.moveaxis(sums, 0, -2)
        return found.reshape(*found.shape[:-2], self.n_outputs)

    @property
    def scale(self) -> float:
        """An upper bound of the absolute prediction."""
        largest = sum(np.abs(tree.value).max() for tree in self.trees)
        return float(np.abs(self.start).max() + largest)

    def answers(self, X: Any) -> np.ndarray:
        """The model's own predictions for an X that was read before: no warning is repeated."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            found = self.answer(X)
        return np.asarray(found).reshape(len(found), -1)

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """Values (..., outputs) without the last axis if the model predicts one number."""
        return values[..., 0] if self.is_single else values


def tree_sum_of(model: Any, function: str) -> TreeSum:
    """A fitted model as a sum of trees; a TypeError that names `function` if it is not one."""
    if isinstance(model, type) or not hasattr(model, "_tree_sum"):
        raise TypeError(
            f"{function} takes decision trees, random forests, extremely randomised trees, "
            "AdaBoostClassifier and gradient boosting of margrove. Got "
            f"{type(model).__name__} instead; of a pipeline, pass the last step, and X as it "
            "arrives there."
        )
    found: TreeSum = model._tree_sum(function)
    return found


def tree_sum(
    model: Any,
    trees: Iterable[TreeArrays],
    function: str,
    *,
    is_single: bool,
    answer: Callable[[Any], np.ndarray],
    start: np.ndarray | None = None,
    rows: Callable[[Any], Any] | None = None,
) -> TreeSum:
    """What `_tree_sum` of an estimator returns: checked trees with what `TreeSum` says of them.

    start is zero by default; rows by default what `model._rows` reads, without infinity.
    """
    found = tuple(trees)
    for tree in found:
        tree.require_sound()
        _refuse_oblique(tree, function)
    names = getattr(model, "feature_names_in_", None)
    d = int(model.n_features_in_)
    return TreeSum(
        model,
        found,
        np.zeros(found[0].value.shape[1]) if start is None else start,
        is_single,
        tuple(f"x{j}" for j in range(d)) if names is None else tuple(map(str, names)),
        (lambda X: _finite_rows(model, X)) if rows is None else rows,
        answer,
    )


def _finite_rows(model: Any, X: Any) -> Any:
    rows = model._rows(X)
    if np.isinf(rows.data if sp.issparse(rows) else rows).any():
        refuse_infinity(rows, model)
    return rows


def predictions_of(model: Any) -> dict[str, Any]:
    """`is_single` and `answer` of a tree or a forest: class shares, or numbers."""
    if not hasattr(model, "classes_"):
        return {"is_single": model.n_outputs_ == 1, "answer": model.predict}
    if model.n_outputs_ == 1:
        return {"is_single": False, "answer": model.predict_proba}
    return {
        "is_single": False,
        "answer": lambda X: np.concatenate(model.predict_proba(X), axis=1),
    }


def _refuse_oblique(tree: TreeArrays, function: str) -> None:
    if np.any(tree.kind == OBLIQUE):
        raise ValueError(
            f"{function} does not take trees with splitter='oblique': their nodes ask for several "
            "features at once. Use splitter='best', or a function that works with any model, such "
            "as sklearn.inspection.partial_dependence(model, X, features, method='brute')."
        )


def shares_of_branches(tree: TreeArrays) -> np.ndarray:
    """float64 (N,): the share of a node in the weight of its parent's children; 1 for the root."""
    weight = tree.weight[1:]
    parent = tree.parent[1:]
    totals = np.bincount(parent, weights=weight, minlength=len(tree))
    return np.concatenate([[1.0], weight / totals[parent]])
