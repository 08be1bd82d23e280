"""Forests and bagging: what `describe` tells of them, and the data behind their pictures.

forest_facts        everything about a random forest or extremely randomised trees
bagging_facts       everything about a bag of any estimators
out_of_bag_curve    the out-of-bag error after each tree
ranked_importances  features by importance, of a model or of a study of it
proximity_plane     rows as points of a plane, near each other where a forest finds them alike
interval_coverage   prediction intervals in the order of the predictions, and what they cover
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_labels, check_targets, check_weights
from margrove.ensemble.bagging.bagged_ensemble import Bagging
from margrove.ensemble.forest.importances import OobImportances
from margrove.ensemble.forest.proximities import proximities
from margrove.ensemble.forest.studied_rows import require_forest
from margrove.ensemble.gradient.boosted_trees import GradientBoosted
from margrove.exceptions import InvalidDataError
from margrove.facts.models.strongest import feature_names_of, strongest_of
from margrove.facts.models.trees import codes_or_targets
from margrove.facts.outlines import Given, estimator_fields
from margrove.facts.plain_values import Plain, frozen, in_words
from margrove.facts.values import Outline, SupportKind, WeightedFeature
from margrove.grove.explain.importances import PermutationImportances
from margrove.grove.serve.packed_trees import PackedTree
from margrove.grove.serve.tree_arrays import TreeArrays
from margrove.grove.table.given_targets import columns_of_labels

__all__ = [
    "BaggingFacts",
    "EnsembleFacts",
    "ForestFacts",
    "IntervalCoverage",
    "MemberSizes",
    "OutOfBagCurve",
    "OutOfBagFacts",
    "ProximityPlane",
    "RankedImportances",
    "bagging_facts",
    "depth_of",
    "forest_facts",
    "interval_coverage",
    "out_of_bag_curve",
    "proximity_plane",
    "ranked_importances",
    "sizes_of",
]

_STRONGEST = 10  # features that facts name
_MOST_POINTS = 5_000  # of a plane: scaling takes time as the cube of the rows

_WRONG, _SQUARES = "share misclassified", "mean squared error"
_DECREASE = "decrease of the impurity"
_HOW_TREES_ANSWER = {
    "soft": "the class with the highest mean of the trees' probabilities",
    "hard": "the class with the most votes of the trees",
    "mean": "the mean of the trees",
}


# -- everything about an ensemble ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberSizes(Plain):
    """A size of each tree: the least, the mean and the greatest, and all of them."""

    least: int
    mean: float
    most: int
    by_member: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfBagFacts(Plain):
    """What members say of the rows that they have not seen.

    Attributes
    ----------
    score : float or None
        None where none was asked for (`n_estimators="auto"` alone), or it is no number.
    score_name : str
        "accuracy", "R²" or the name of the user's function.
    error : float or None
        The last of the curve.
    error_name : str
    curve : ndarray of shape (n_members,) or None
        The error after each tree; bagging keeps none.
    n_unscored : int
        Rows without an answer: every member has seen them, or they have no weight.
    """

    score: float | None
    score_name: str
    error: float | None
    error_name: str
    curve: np.ndarray | None
    n_unscored: int


@dataclass(frozen=True, kw_only=True, eq=False)
class EnsembleFacts(Outline):
    """What is known of forests and of bagging.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; anything but numbers and strings in words.
    n_members : int
        The trees of a forest, the estimators of a bag. Fewer than `parameters["n_estimators"]`
        where the fit was stopped.
    voting : {"soft", "hard", "mean"}
        As it is done: probabilities are averaged, votes are counted, numbers are averaged.
    answer : str
        The same in words.
    depth, leaves, nodes : MemberSizes or None
        Of the trees; None for members that are not trees of margrove.
    n_bytes : int or None
        What the arrays of the trees take in memory.
    bootstrap : bool
        Whether rows are drawn with replacement.
    n_samples : int or None
        Training rows of positive weight; None for a part or a sum of forests.
    n_draws : int or None
        The size of each member's sample; None where each has seen all rows, or as above.
    out_of_bag : OutOfBagFacts or None
    importances : ndarray of shape (n_features,) or None
        Mean decrease of the impurity by each feature, as shares of 1; None where members have none.
    strongest : tuple of WeightedFeature
        The ten most important features, the most important first; never one of importance 0.
    training_error : float or None
        Of X and y, if they were given. That of a forest says little: `out_of_bag` does.
    training_error_name : str
        What it is, in words.
    """

    # What pictures ask of any facts, and an ensemble has none of.
    kinds: ClassVar[tuple[SupportKind, ...]] = ()
    support_vectors: ClassVar[None] = None
    n_support: ClassVar[int] = 0
    margin_level: ClassVar[None] = None
    proof: ClassVar[None] = None

    parameters: dict[str, Any]
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
    """Of random forests and extremely randomised trees.

    Attributes
    ----------
    criterion : str
    thresholds : {"best", "drawn"}
        How a node chooses the threshold of a feature.
    max_features : int
        How many features each node looks at.
    n_outputs : int
    """

    criterion: str
    thresholds: str
    max_features: int
    n_outputs: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BaggingFacts(EnsembleFacts):
    """Of BaggingClassifier and BaggingRegressor.

    Attributes
    ----------
    member : str
        The class of the estimators.
    member_parameters : dict
    n_columns : int
        How many columns each is given.
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
        **_estimator_fields(model),
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
        **_importance_fields(model, _mean_importances(model)),
        **_training_error(model, given),
        member=type(model.estimator_).__name__,
        member_parameters={name: in_words(value) for name, value in parameters.items()},
        n_columns=len(model.estimators_features_[0]),
    )


def _estimator_fields(model: Any) -> dict[str, Any]:
    """Classes of several outputs are as many arrays, which need not be of one length."""
    if not isinstance(getattr(model, "classes_", None), list):
        return estimator_fields(model)
    classes = np.empty(len(model.classes_), dtype=object)
    classes[:] = [frozen(own) for own in model.classes_]
    copied = copy.copy(model)
    copied.classes_ = classes
    return estimator_fields(copied)


def sizes_of(by_member: list[int]) -> MemberSizes:
    """Of trees, one number each."""
    return MemberSizes(
        least=min(by_member),
        mean=float(np.mean(by_member)),
        most=max(by_member),
        by_member=frozen(by_member),
    )


def depth_of(tree: PackedTree) -> int:
    """That of the deepest leaf, level by level: unfolding a tree costs more than all else that
    is asked of it here."""
    is_leaf, left = tree.is_leaf, tree.left
    level, depth = np.zeros(1, np.int64), -1
    while len(level):
        depth += 1
        children = left[level[~is_leaf[level]]]
        level = np.concatenate([children, children + 1])
    return depth


def _bytes_of(tree: TreeArrays) -> int:
    return sum(getattr(tree, own.name).nbytes for own in dataclasses.fields(tree))


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
        error_name=_error_name(model),
        curve=frozen(curve),
        n_unscored=int(np.count_nonzero(unscored)),
    )


def _error_name(model: Any) -> str:
    return _WRONG if hasattr(model, "classes_") else _SQUARES


def _mean_importances(model: Any) -> np.ndarray | None:
    """As those of a forest: of members that have some, each of its own columns."""
    total = np.zeros(model.n_features_in_)
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        own = getattr(member, "feature_importances_", None)
        if own is None:
            return None
        np.add.at(total, columns, own)  # columns may have been drawn twice
    return total / total.sum() if total.sum() > 0.0 else total


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
        counted = weight > 0  # zero times what is beyond floating point is not zero
        with np.errstate(over="ignore"):
            error = float(np.average(losses[counted], weights=weight[counted]))
    return {"training_error": error, "training_error_name": _error_name(model)}


def _classes_missed(model: Any, X: Any, y: Any) -> np.ndarray:
    """The share of its outputs in which each row is misclassified."""
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
        np.argmax(share, axis=1) != _codes(own, labels, len(share))
        for share, own, labels in zip(shares, columns, classes, strict=True)
    ]
    return np.asarray(np.mean(missed, axis=0))


def _codes(y: Any, classes: np.ndarray, n_rows: int) -> np.ndarray:
    """The number of each row's class; -1 for one that rows without weight alone have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of many classes are fine to describe
        labels = check_labels(y, n_rows)
    known = {label: code for code, label in enumerate(classes.tolist())}
    numbers = np.array([known.get(label, -1) for label in labels.classes.tolist()], np.int64)
    codes: np.ndarray = numbers[labels.codes]
    return codes


def _squares(model: Any, X: Any, y: Any) -> np.ndarray:
    """Squared errors, the mean over the outputs."""
    predicted = model.predict(X)
    truth = check_targets(y, len(predicted), multi_output=True)
    if truth.size != predicted.size:
        raise InvalidDataError(
            f"y has shape {truth.shape}, and what this {type(model).__name__} predicts of X "
            f"{predicted.shape}."
        )
    with np.errstate(over="ignore"):
        squares = (truth.reshape(predicted.shape) - predicted) ** 2
    return np.asarray(squares.reshape(len(predicted), -1).mean(axis=1))


# -- the error as a forest grows -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class OutOfBagCurve(Plain):
    """The out-of-bag error of the first 1, 2, ... trees.

    Attributes
    ----------
    n_trees : ndarray of int
    errors : ndarray
        NaN as long as no row was left out.
    error_name : str
    """

    n_trees: np.ndarray
    errors: np.ndarray
    error_name: str


def out_of_bag_curve(forest: Any) -> OutOfBagCurve:
    """The out-of-bag error of a forest against its number of trees.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
        With `oob_score=True` or `n_estimators="auto"`.

    Returns
    -------
    OutOfBagCurve

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, y)
    >>> curve = margrove.facts.out_of_bag_curve(forest)
    >>> int(curve.n_trees[-1]), curve.error_name
    (30, 'share misclassified')
    """
    if isinstance(forest, Bagging):
        raise TypeError(
            f"{type(forest).__name__} keeps an out-of-bag score and no curve. Of bagged trees, a "
            "random forest with max_features=None and oob_score=True has one."
        )
    require_forest(forest, "out_of_bag_curve")
    errors = getattr(forest, "oob_curve_", None)
    if errors is None:
        drawing = "" if forest.bootstrap else "bootstrap=True and "
        raise ValueError(
            f"This {type(forest).__name__} has no out-of-bag curve. Fit it with {drawing}"
            "oob_score=True; a part or a sum of forests has none, so take it as it was fitted."
        )
    return OutOfBagCurve(
        n_trees=frozen(np.arange(1, len(errors) + 1)),
        errors=frozen(errors),
        error_name=_error_name(forest),
    )


# -- features by importance ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedImportances(Plain):
    """Features and their importances, the most important first; of equals, the first column.

    Attributes
    ----------
    names : tuple of str
    columns : ndarray of int
    values : ndarray
    low, high : ndarray or None
        Ends of intervals around the values, where there are some.
    measure : str
        What importances are, in words.
    interval : str
        What intervals are, in words; "" where there are none.
    n_features : int
        How many features there are in all.
    """

    names: tuple[str, ...]
    columns: np.ndarray
    values: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    measure: str
    interval: str
    n_features: int


def ranked_importances(source: Any, n: int = 20, feature_names: Any = None) -> RankedImportances:
    """The most important features, by name, of a model or of a study of one.

    Parameters
    ----------
    source : fitted estimator, OobImportances, PermutationImportances or array-like
        A tree, forest or bag of trees, ours or one under scikit-learn's API; what
        `oob_importances`, `oob_impurity_importances` or `permutation_importances` returns; or a
        number for each feature.
    n : int, default=20
        How many features, at most.
    feature_names : sequence of str, optional
        A name for each feature. By default those that the model was fitted to, or else "x0", "x1"
        and so on.

    Returns
    -------
    RankedImportances

    Examples
    --------
    >>> import margrove
    >>> tree = margrove.DecisionTreeClassifier().fit([[0, 7], [0, 8], [1, 9]], ["a", "a", "b"])
    >>> found = margrove.facts.ranked_importances(tree, n=1, feature_names=["size", "age"])
    >>> found.names, found.values, found.n_features
    (('size',), array([1.]), 2)
    """
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n must be a whole number of features, at least 1. Got {n!r}.")
    values, low, high, measure, interval = _importances_of(source)
    names = feature_names_of(source, len(values), feature_names)
    if names is None:
        names = getattr(source, "feature_names", [f"x{j}" for j in range(len(values))])
    columns = np.argsort(-values, kind="stable")[: int(n)]
    return RankedImportances(
        names=tuple(str(names[j]) for j in columns.tolist()),
        columns=frozen(columns),
        values=frozen(values[columns]),
        low=None if low is None else frozen(low[columns]),
        high=None if high is None else frozen(high[columns]),
        measure=measure,
        interval=interval,
        n_features=len(values),
    )


_Importances = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, str, str]


def _importances_of(source: Any) -> _Importances:
    """Values, low and high ends, and in words what the values and the intervals are."""
    if isinstance(source, OobImportances):
        rise = "rise of the out-of-bag error when permuted"
        measure = rise if source.measure == "permutation" else f"out-of-bag {_DECREASE}"
        interval = f"{100 * source.confidence_level:g} % intervals"
        return source.mean, source.low, source.high, measure, interval
    if isinstance(source, PermutationImportances):
        low, high = source.mean - source.spread, source.mean + source.spread
        return source.mean, low, high, "fall of the score when permuted", "± standard deviation"
    if hasattr(source, "fit"):
        gain = "gain of the splits" if isinstance(source, GradientBoosted) else _DECREASE
        return _of_estimator(source), None, None, f"{gain}, as a share", ""
    try:
        values = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "Importances are those of a fitted tree or forest, what oob_importances returns, or a "
            f"number for each feature. Got {type(source).__name__}."
        ) from error
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InvalidDataError(
            "Importances must be one finite number for each feature. Got an array of shape "
            f"{values.shape}{', with others' if values.ndim == 1 and len(values) else ''}."
        )
    return values, None, None, "importance", ""


def _of_estimator(model: Any) -> np.ndarray:
    check_is_fitted(model)
    is_bag = isinstance(model, Bagging)
    found = _mean_importances(model) if is_bag else getattr(model, "feature_importances_", None)
    if found is None:
        raise TypeError(
            f"This {type(model).__name__} has no feature_importances_. Pass what "
            "permutation_importances(model, X, y) returns, which takes any model."
        )
    return np.asarray(found)


# -- rows in a plane -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class ProximityPlane(Plain):
    """Rows as points whose squared distances are about 2 (1 - proximity).

    Attributes
    ----------
    points : ndarray of shape (n_samples, 2)
    shares : tuple of two float
        How much of the sum of all squared distances each axis shows.
    codes : ndarray of int or None
        Places of the rows' classes in `classes`.
    targets : ndarray or None
        Of a forest of numbers.
    classes : tuple of str
        Labels; () for a forest of numbers.
    """

    points: np.ndarray
    shares: tuple[float, float]
    codes: np.ndarray | None
    targets: np.ndarray | None
    classes: tuple[str, ...]


def proximity_plane(forest: Any, X: Any, y: Any = None) -> ProximityPlane:
    """Rows in a plane, near each other where the trees of a forest put them into the same leaves.

    Proximities are inner products (of indicators of leaves), so that classical scaling of them is
    exact but for the axes it leaves out: no distance is negative, and the shares add up.

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        At most 5,000 rows.
    y : array-like of shape (n_samples,), optional
        Classes or targets of the rows.

    Returns
    -------
    ProximityPlane

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(30, random_state=0).fit(X, y)
    >>> plane = margrove.facts.proximity_plane(forest, X, y)
    >>> plane.points.shape, sum(plane.shares) > 0.5
    ((150, 2), True)
    """
    require_forest(forest, "proximity_plane")
    n = forest._rows(X).shape[0]
    if n > _MOST_POINTS:
        raise ValueError(
            f"A plane of {n} rows takes too long, the limit is {_MOST_POINTS}. Take some of them: "
            f"X[::{-(-n // _MOST_POINTS)}]."
        )
    codes, targets = codes_or_targets(forest, y, n)
    alike = proximities(forest, X)
    centred = alike - alike.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    points, shares = _largest_axes(centred)
    classes: Sequence[Any] = ()
    if hasattr(forest, "classes_"):
        first = forest.classes_[0] if isinstance(forest.classes_, list) else forest.classes_
        classes = first.tolist()
    return ProximityPlane(
        points=frozen(points),
        shares=shares,
        codes=frozen(codes),
        targets=frozen(targets),
        classes=tuple(str(label) for label in classes),
    )


def _largest_axes(products: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Points in the plane with about these inner products, and the share of each axis.

    The sign of an axis is arbitrary: its largest coordinate is positive.
    """
    n = len(products)
    points, shares = np.zeros((n, 2)), [0.0, 0.0]
    lengths, axes = eigh(products, subset_by_index=[max(0, n - 2), n - 1])
    total = float(np.trace(products))
    for k, (length, axis) in enumerate(zip(lengths[::-1], axes.T[::-1], strict=True)):
        if length > n * np.finfo(float).eps * max(total, 1.0):
            sign = np.sign(axis[np.argmax(np.abs(axis))])
            points[:, k] = sign * np.sqrt(length) * axis
            shares[k] = float(length) / total
    return points, (shares[0], shares[1])


# -- prediction intervals ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalCoverage(Plain):
    """Prediction intervals of rows, in the order of their predictions.

    Attributes
    ----------
    rows : ndarray of int
        The rows of X in this order; of equal predictions, the first.
    predictions, low, high : ndarray
    truth : ndarray or None
    is_inside : ndarray of bool or None
        Whether the truth lies in the interval.
    asked : float
        The coverage that was asked for.
    found : float or None
        The share of rows inside.
    """

    rows: np.ndarray
    predictions: np.ndarray
    low: np.ndarray
    high: np.ndarray
    truth: np.ndarray | None
    is_inside: np.ndarray | None
    asked: float
    found: float | None


def interval_coverage(
    forest: Any, X: Any, y: Any = None, *, coverage: float = 0.9, method: str = "local"
) -> IntervalCoverage:
    """Prediction intervals of a forest of numbers, and how many targets lie in them.

    Parameters
    ----------
    forest : fitted RandomForestRegressor or ExtraTreesRegressor
        With `oob_score=True`.
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        Rows that the forest has not seen: in those of the training it is too good.
    y : array-like of shape (n_samples,), optional
        Their targets.
    coverage : float, default=0.9
        The share of new rows whose targets shall lie in their intervals.
    method : {"local", "conformal"}, default="local"
        As in `predict_interval`.

    Returns
    -------
    IntervalCoverage

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> x = np.linspace(0.0, 6.0, 200)[:, None]
    >>> y = np.sin(x[:, 0])
    >>> forest = margrove.RandomForestRegressor(30, oob_score=True, random_state=0)
    >>> forest = forest.fit(x[::2], y[::2])
    >>> told = margrove.facts.interval_coverage(forest, x[1::2], y[1::2], coverage=0.8)
    >>> told.found > 0.7, bool(np.all(np.diff(told.predictions) >= 0))
    (True, True)
    """
    require_forest(forest, "interval_coverage")
    if not hasattr(forest, "predict_interval"):
        raise TypeError(
            f"Prediction intervals are of numbers, and this {type(forest).__name__} tells classes. "
            "Its predict_proba says how sure it is."
        )
    if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be between 0 and 1. Got {coverage!r}.")
    bounds = forest.predict_interval(X, float(coverage), method=method)
    predictions = forest.predict(X)
    truth = None if y is None else check_targets(y, len(predictions))
    rows = np.argsort(predictions, kind="stable")
    low, high = bounds[rows].T
    is_inside = None
    if truth is not None:
        truth = truth[rows]
        is_inside = (low <= truth) & (truth <= high)
    return IntervalCoverage(
        rows=frozen(rows),
        predictions=frozen(predictions[rows]),
        low=frozen(low),
        high=frozen(high),
        truth=frozen(truth),
        is_inside=frozen(is_inside),
        asked=float(coverage),
        found=None if is_inside is None else float(is_inside.mean()),
    )
