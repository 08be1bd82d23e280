"""Fitted models whose answer is a sum of what trees say, as such sums.

    f(x)  =  start  +  sum over the trees of  value[leaf of x],    a number for each output

A decision tree is a sum of one. A forest is one of trees that count 1 / T, and AdaBoost one of
trees whose leaves say what they add to the decision function. Gradient boosting starts somewhere;
of more than two classes, each has trees of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove.exceptions import DataWarning
from margrove.grove.decision_tree import DecisionTree
from margrove.grove.read import shown
from margrove.grove.serve.class_shares import by_output, predicted_classes
from margrove.grove.serve.tree_arrays import OBLIQUE, TreeArrays
from margrove.grove.serve.unfolding import unfolded
from margrove.grove.table import refuse_infinity

__all__ = [
    "TreeSum",
    "dense_rows",
    "require_constant_start",
    "shares_of_branches",
    "starts_from_model",
    "tree_sum_of",
]


@dataclass(frozen=True)
class TreeSum:
    """A model as a sum.

    trees            their `value` is what a node adds to all outputs, float64 (N, outputs); or to
                     one, (N, 1): tree k then to output k % outputs
    start            float64 (outputs,)  what is said before any tree
    is_single        whether the model gives a row one number, not several
    feature_names    x0, x1 and so on where X had no names
    rows             any X as the trees walk it, dense or CSR; NaN is missing
    answer           the model's own answer to any X, (n, outputs)
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
        """The number of outputs that a tree speaks of."""
        return int(self.trees[0].value.shape[1])

    @property
    def n_turns(self) -> int:
        """After how many trees it is the turn of the same outputs again."""
        return self.n_outputs // self.width

    def joined(self, by_turn: np.ndarray) -> np.ndarray:
        """Sums over the trees of each turn, (turns, ..., width), as one array (..., outputs)."""
        found: np.ndarray = np.moveaxis(by_turn, 0, -2)
        return found.reshape(*found.shape[:-2], self.n_outputs)

    @property
    def scale(self) -> float:
        """A bound on what is said."""
        return float(np.abs(self.start).max() + sum(np.abs(own.value).max() for own in self.trees))

    def answers(self, X: Any) -> np.ndarray:
        """The model's own, of an X that has been read before: what it warns of has been said."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            found = self.answer(X)
        return np.asarray(found).reshape(len(found), -1)

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """Without the axis of outputs, the last one, where there is only one."""
        return values[..., 0] if self.is_single else values


def tree_sum_of(model: Any, function: str) -> TreeSum:
    """A fitted model as a sum of trees; an error that names `function` where it is none."""
    from margrove.ensemble.adaboost import AdaBoostClassifier
    from margrove.ensemble.forest import Forest
    from margrove.ensemble.gradient import GradientBoosted

    if isinstance(model, DecisionTree):
        check_is_fitted(model, "arrays_")
        trees: Iterator[TreeArrays] = iter([model.arrays_])
    elif isinstance(model, Forest):
        check_is_fitted(model, "trees_")
        trees = _trees_of_forest(model)
    elif isinstance(model, AdaBoostClassifier):
        check_is_fitted(model, "estimator_weights_")
        trees = _trees_of_adaboost(model, function)
    elif isinstance(model, GradientBoosted):
        check_is_fitted(model, "_rounds")
        require_constant_start(model, function)
        trees = _trees_of_rounds(model)
    else:
        raise TypeError(
            f"{function} takes decision trees, random forests, extremely randomised trees, "
            "AdaBoostClassifier and gradient boosting of margrove. Got "
            f"{type(model).__name__} instead; of a pipeline, hand over the last step, and X as it "
            "arrives there."
        )
    found = tuple(trees)
    for tree in found:
        tree.require_sound()
        _refuse_oblique(tree, function)
    names = getattr(model, "feature_names_in_", None)
    d = int(model.n_features_in_)
    is_single, answer = _answer_of(model)
    has_start = isinstance(model, GradientBoosted)
    return TreeSum(
        model,
        found,
        model._scores.start if has_start else np.zeros(found[0].value.shape[1]),
        is_single,
        tuple(f"x{j}" for j in range(d)) if names is None else tuple(map(str, names)),
        model._read if has_start else lambda X: _finite_rows(model, X),
        answer,
    )


def _finite_rows(model: Any, X: Any) -> Any:
    """Of models that refuse infinity."""
    rows = model._rows(X)
    if np.isinf(rows.data if sp.issparse(rows) else rows).any():
        refuse_infinity(rows, model)
    return rows


def _answer_of(model: Any) -> tuple[bool, Callable[[Any], np.ndarray]]:
    """Whether it is one number a row, and what gives it."""
    if hasattr(model, "_rounds"):
        return model.n_trees_per_iteration_ == 1, lambda X: model._raw(X).T
    if hasattr(model, "estimator_weights_"):
        return model.n_classes_ <= 2, model.decision_function
    if not hasattr(model, "classes_"):
        return model.n_outputs_ == 1, model.predict
    if model.n_outputs_ == 1:
        return False, model.predict_proba
    return False, lambda X: np.concatenate(model.predict_proba(X), axis=1)


def _refuse_oblique(tree: TreeArrays, function: str) -> None:
    if np.any(tree.kind == OBLIQUE):
        raise ValueError(
            f"{function} does not take trees with splitter='oblique': their nodes ask for several "
            "features at once. Use splitter='best', or ask any function of the model, such as "
            "sklearn.inspection.partial_dependence(model, X, features, method='brute')."
        )


def _trees_of_forest(forest: Any) -> Iterator[TreeArrays]:
    n_classes = forest.kind_.n_classes
    for packed in forest.trees_:
        packed.require_sound(forest.kind_, forest.n_features_in_)
        tree = unfolded(packed, forest.kind_)
        value = _votes(tree, n_classes) if forest._is_hard() else tree.value
        yield replace(tree, value=value / len(forest.trees_))


def _votes(tree: TreeArrays, n_classes: tuple[int, ...]) -> np.ndarray:
    """One for the largest class of each output."""
    votes = np.zeros_like(tree.value)
    winners = predicted_classes(tree, n_classes)
    for own, winner in zip(by_output(votes, n_classes), winners.T, strict=True):
        own[np.arange(len(own)), winner] = 1.0  # a view: columns of `votes`
    return votes


def _trees_of_adaboost(model: Any, function: str) -> Iterator[TreeArrays]:
    """What the leaves of each member add to the decision function."""
    from margrove.ensemble.adaboost import EstimatorMembers

    members, rule = model._members, model._rule()
    if isinstance(members, EstimatorMembers):
        raise ValueError(
            f"{function} takes an AdaBoostClassifier of stumps or trees that were grown on one "
            f"table, but this one has members of type {shown(type(model.estimator_).__name__)} "
            "that were fitted one by one. Use resample=False and a decision tree of margrove "
            "without class_weight, early_stopping, split='multiway' or splitter='oblique'; or "
            "hand over single members."
        )
    total = float(model.estimator_weights_.sum())
    for t, weight in enumerate(model.estimator_weights_.tolist()):
        trees = [member.arrays_ for member in members.estimators(t)]
        for machine, tree in enumerate(trees):
            if rule.answers == "labels":
                answers = np.argmax(tree.value, axis=1)
            elif rule.answers == "shares":
                answers = tree.value
            else:
                answers = np.zeros((len(tree), len(trees)))
                answers[:, machine] = tree.value[:, 0]
            added = model._decisions(rule.scores(answers, weight), total)
            yield replace(tree, value=np.ascontiguousarray(added.reshape(len(tree), -1)))


def require_constant_start(model: Any, function: str) -> None:
    """Refuse gradient boosting that starts from another model, which is no tree."""
    if starts_from_model(model):
        raise ValueError(
            f"{function} takes gradient boosting that starts from a constant, but this "
            f"{type(model).__name__} starts from {shown(type(model.init).__name__)}. Use init=None."
        )


def starts_from_model(model: Any) -> bool:
    """Whether what trees are added to differs from row to row."""
    init = getattr(model, "init", None)
    return init is not None and not isinstance(init, str)


def _trees_of_rounds(model: Any) -> Iterator[TreeArrays]:
    """One for each raw score in turn."""
    for packed in model._trees():
        packed.require_sound(model._kind, model.n_features_in_)
        yield unfolded(packed, model._kind)


def shares_of_branches(tree: TreeArrays) -> np.ndarray:
    """float64 (N,): of the weight that came to the parent, the share of each node; 1 of the root.

    Those of the children of a node sum to one.
    """
    weight = tree.weight[1:]
    parent = tree.parent[1:]
    totals = np.bincount(parent, weights=weight, minlength=len(tree))
    return np.concatenate([[1.0], weight / totals[parent]])


def dense_rows(rows: Any, part: slice) -> np.ndarray:
    """Some rows as kernels take them: dense, float64."""
    own = rows[part]
    return np.ascontiguousarray(own.toarray() if sp.issparse(own) else own, np.float64)
