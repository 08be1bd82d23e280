"""Facts about forests and bagged ensembles: members, out-of-bag error, importances."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from margrove._data import check_labels, check_targets, check_weights
from margrove.exceptions import InvalidDataError
from margrove.facts.machine_values import WeightedFeature
from margrove.facts.models.importances import mean_importances
from margrove.facts.models.strongest import strongest_of
from margrove.facts.plain_values import Plain, frozen, in_words
from margrove.facts.values import FactsWithoutSupport, Given, estimator_fields
from margrove.grove.serve import PackedTree, TreeArrays
from margrove.grove.table import columns_of_labels

__all__ = [
    "BaggingFacts",
    "EnsembleFacts",
    "ForestFacts",
    "MemberSizes",
    "OutOfBagFacts",
    "bagging_facts",
    "depth_of",
    "error_name",
    "forest_facts",
    "sizes_of",
]

_STRONGEST = 10  # features that facts name

_WRONG, _SQUARES = "share misclassified", "mean squared error"

_HOW_TREES_ANSWER = {
    "soft": "the class with the highest mean of the trees' probabilities",
    "hard": "the class with the most votes of the trees",
    "mean": "the mean of the trees",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberSizes(Plain):
    """The sizes of trees: the smallest, the mean, the largest, and all of them."""

    least: int
    mean: float
    most: int
    by_member: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfBagFacts(Plain):
    """Out-of-bag predictions: each row is predicted by the members that have not seen it.

    Attributes
    ----------
    score : float or None
        None without `oob_score` (only `n_estimators="auto"`), or if it is not a number.
    score_name : str
        "accuracy", "R²" or the name of the user's function.
    error : float or None
        The last value of the curve.
    error_name : str
    curve : ndarray of shape (n_members,) or None
        The error after each tree; None for bagging.
    n_unscored : int
        Rows without a prediction: every member has seen them, or they have weight 0.
    """

    score: float | None
    score_name: str
    error: float | None
    error_name: str
    curve: np.ndarray | None
    n_unscored: int


@dataclass(frozen=True, kw_only=True, eq=False)
class EnsembleFacts(FactsWithoutSupport):
    """Facts about a forest or a bagged ensemble.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; values that are not numbers or strings as text.
    n_members : int
        The trees of a forest, or the estimators of bagging. Fewer than
        `parameters["n_estimators"]` if the fit was stopped.
    voting : {"soft", "hard", "mean"}
        Probabilities are averaged, votes are counted, or numbers are averaged.
    answer : str
        The same in words.
    depth, leaves, nodes : MemberSizes or None
        Of the trees; None for members that are not trees of margrove.
    n_bytes : int or None
        The memory of the arrays of the trees.
    bootstrap : bool
        Whether rows are drawn with replacement.
    n_samples : int or None
        Training rows of positive weight; None for a slice or a sum of forests.
    n_draws : int or None
        The size of each member's sample; None if each has seen all rows, or as above.
    out_of_bag : OutOfBagFacts or None
    importances : ndarray of shape (n_features,) or None
        Mean decrease of the impurity by each feature, as shares of 1; None if members have none.
    strongest : tuple of WeightedFeature
        The ten most important features, the most important first; none of importance 0.
    training_error : float or None
        Of X and y, if they were given. For a forest, `out_of_bag` is a better estimate.
    training_error_name : str
        What it is, in words.
    """

    n_members: int
    voting: str
    answer: str
    depth: MemberSizes | None
    leaves: MemberSizes | None
    nodes: MemberSizes | None
    n_bytes: int | None
    bootstrap: bool
    n_samples: int | None
    n_draws: int | None
    out_of_bag: OutOfBagFacts | None
    importances: np.ndarray | None
    strongest: tuple[WeightedFeature, ...]
    training_error: float | None
    training_error_name: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestFacts(EnsembleFacts):
    """Facts about random forests and extremely randomised trees.

    Attributes
    ----------
    criterion : str
    thresholds : {"best", "drawn"}
        Whether a node takes the best threshold of a feature, or draws one at random.
    max_features : int
        The number of features that are searched at each node.
    n_outputs : int
    """

    criterion: str
    thresholds: str
    max_features: int
    n_outputs: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BaggingFacts(EnsembleFacts):
    """Facts about BaggingClassifier and BaggingRegressor.

    Attributes
    ----------
    member : str
        The class of the estimators.
    member_parameters : dict
    n_columns : int
        The number of columns that each of them gets.
    """

    member: str
    member_parameters: dict[str, Any]
    n_columns: int


def forest_facts(model: Any, given: Given) -> ForestFacts:
    trees: list[PackedTree] = model.trees_
    is_classifier = hasattr(model, "classes_")
    voting = str(model.voting) if is_classifier else "mean"
    sampled = getattr(model, "sampled_", None)
    return ForestFacts(
        **estimator_fields(model),
        n_members=len(trees),
        voting=voting,
        answer=_HOW_TREES_ANSWER[voting],
        depth=sizes_of([depth_of(tree) for tree in trees]),
        leaves=sizes_of([tree.n_leaves for tree in trees]),
        nodes=sizes_of([len(tree) for tree in trees]),
        n_bytes=sum(tree.nbytes for tree in trees),
        bootstrap=bool(model.bootstrap),
        n_samples=None if sampled is None else int(np.count_nonzero(sampled.places >= 0)),
        n_draws=None if sampled is None else sampled.n_draws,
        out_of_bag=_out_of_bag(model),
        **_importance_fields(model, model.feature_importances_),
        **_training_error(model, given),
        criterion=str(model.criterion),
        thresholds="drawn" if model._splitter == "random" else "best",
        max_features=int(model.max_features_),
        n_outputs=int(model.n_outputs_),
    )


def bagging_facts(model: Any, given: Given) -> BaggingFacts:
    members = model.estimators_
    voting = "mean"
    if hasattr(model, "classes_"):
        voting = "soft" if model._method(members[0]) == "predict_proba" else "hard"
    found = [getattr(member, "arrays_", None) for member in members]
    trees = [tree for tree in found if isinstance(tree, TreeArrays)]
    are_trees = len(trees) == len(members)
    drawn = model._samples[-1]
    parameters = model.estimator_.get_params(deep=False)
    return BaggingFacts(
        **estimator_fields(model),
        n_members=len(members),
        voting=voting,
        answer=_HOW_TREES_ANSWER[voting].replace("tree", "estimator"),
        depth=sizes_of([int(tree.depth.max()) for tree in trees]) if are_trees else None,
        leaves=sizes_of([tree.n_leaves for tree in trees]) if are_trees else None,
        nodes=sizes_of([len(tree) for tree in trees]) if are_trees else None,
        n_bytes=sum(map(_bytes_of, trees)) if are_trees else None,
        bootstrap=bool(model.bootstrap),
        n_samples=len(drawn.rows),
        n_draws=int(drawn.n_draws),
        out_of_bag=_out_of_bag(model),
        **_importance_fields(model, mean_importances(model)),
        **_training_error(model, given),
        member=type(model.estimator_).__name__,
        member_parameters={name: in_words(value) for name, value in parameters.items()},
        n_columns=len(model.estimators_features_[0]),
    )


def sizes_of(by_member: list[int]) -> MemberSizes:
    """`MemberSizes` from one number for each tree."""
    return MemberSizes(
        least=min(by_member),
        mean=float(np.mean(by_member)),
        most=max(by_member),
        by_member=frozen(by_member),
    )


def depth_of(tree: PackedTree) -> int:
    """The depth of the deepest leaf, found level by level: faster than unfolding the tree."""
    is_leaf, left = tree.is_leaf, tree.left
    level, depth = np.zeros(1, np.int64), -1
    while len(level):
        depth += 1
        children = left[level[~is_leaf[level]]]
        level = np.concatenate([children, children + 1])
    return depth


def _bytes_of(tree: TreeArrays) -> int:
    return sum(getattr(tree, field.name).nbytes for field in dataclasses.fields(tree))


def _out_of_bag(model: Any) -> OutOfBagFacts | None:
    is_classifier = hasattr(model, "classes_")
    name = "oob_decision_function_" if is_classifier else "oob_prediction_"
    answers = getattr(model, name, None)
    if answers is None:
        return None
    score = getattr(model, "oob_score_", None)
    usual = "accuracy" if is_classifier else "R²"
    curve = getattr(model, "oob_curve_", None)
    unscored = np.isnan(answers.reshape(len(answers), -1)[:, 0])
    return OutOfBagFacts(
        score=float(score) if isinstance(score, Real) else None,
        score_name=str(in_words(model.oob_score)) if callable(model.oob_score) else usual,
        error=None if curve is None else float(curve[-1]),
        error_name=error_name(model),
        curve=frozen(curve),
        n_unscored=int(np.count_nonzero(unscored)),
    )


def error_name(model: Any) -> str:
    return _WRONG if hasattr(model, "classes_") else _SQUARES


def _importance_fields(model: Any, importances: np.ndarray | None) -> dict[str, Any]:
    if importances is None:
        return {"importances": None, "strongest": ()}
    names = getattr(model, "feature_names_in_", None)
    strongest = strongest_of(importances[None, :], names, _STRONGEST)
    return {"importances": frozen(importances), "strongest": strongest}


def _training_error(model: Any, given: Given) -> dict[str, Any]:
    X, y, sample_weight = given
    error = None
    if X is not None and y is not None:
        losses_of = _classes_missed if hasattr(model, "classes_") else _squares
        losses = losses_of(model, X, y)
        weight = check_weights(sample_weight, len(losses))
        counted = weight > 0  # zero times infinity would be NaN
        with np.errstate(over="ignore"):
            error = float(np.average(losses[counted], weights=weight[counted]))
    return {"training_error": error, "training_error_name": error_name(model)}


def _classes_missed(model: Any, X: Any, y: Any) -> np.ndarray:
    """float64 (n,): the share of the outputs for which a row is misclassified."""
    several = isinstance(model.classes_, list)
    classes = model.classes_ if several else [model.classes_]
    shares = model.predict_proba(X) if several else [model.predict_proba(X)]
    columns = columns_of_labels(y)
    if len(columns) != len(classes):
        raise InvalidDataError(
            f"y has {len(columns)} column(s), but this {type(model).__name__} was trained on "
            f"{len(classes)}."
        )
    missed = [
        np.argmax(share, axis=1) != _codes(column, labels, len(share))
        for share, column, labels in zip(shares, columns, classes, strict=True)
    ]
    return np.asarray(np.mean(missed, axis=0))


def _codes(y: Any, classes: np.ndarray, n_rows: int) -> np.ndarray:
    """The class code of each row; -1 for a class that only rows of weight 0 have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there may be few rows of many classes
        return check_labels(y, n_rows).codes_among(classes)


def _squares(model: Any, X: Any, y: Any) -> np.ndarray:
    """float64 (n,): the squared error of each row, the mean over its outputs."""
    predicted = model.predict(X)
    truth = check_targets(y, len(predicted), multi_output=True)
    if truth.size != predicted.size:
        raise InvalidDataError(
            f"y has shape {truth.shape}, but the predictions of this {type(model).__name__} for X "
            f"have shape {predicted.shape}. Pass the y of these rows."
        )
    with np.errstate(over="ignore"):
        squares = (truth.reshape(predicted.shape) - predicted) ** 2
    return np.asarray(squares.reshape(len(predicted), -1).mean(axis=1))
