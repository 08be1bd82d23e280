"""AdaBoost: members and their weights.

Trees of scikit-learn become packed trees, as in AdaBoost of margrove. Other members that have a
counterpart are converted one by one; the rest stay estimators of scikit-learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.ensemble.adaboost import (
    EstimatorMembers,
    Members,
    R2History,
    TreeMembers,
    history_of,
    rule_of,
)
from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.pairs import Pair, columns_of
from margrove.exchange.scikit_learn.registry import (
    from_sklearn,
    to_sklearn,
    unfitted_from_sklearn,
    unfitted_to_sklearn,
)
from margrove.exchange.scikit_learn.trees import classes_of, kind_of_trees, packed_tree
from margrove.grove import DecisionTree

__all__ = ["ADABOOST"]

_VOTING = ("samme", "discrete", "m1")


# -- from scikit-learn --


def _read(theirs: Any, answer: str) -> dict[str, Any]:
    """The attributes without the history; arrays of scikit-learn may be longer than the rounds."""
    n_members = len(theirs.estimators_)
    base = unfitted_from_sklearn(theirs.estimator_)
    columns = columns_of(theirs)
    is_tree = isinstance(base, DecisionTree) and _have_the_same_classes(theirs)
    if is_tree:
        columns |= {"categories_": {}}
        members = _members_as_trees(theirs, answer, base, columns)
    else:
        members = _members_as_estimators(theirs, answer)
    return columns | {
        "estimator_": base,
        "_members": members,
        "estimator_weights_": np.array(theirs.estimator_weights_[:n_members], np.float64),
        "estimator_errors_": np.array(theirs.estimator_errors_[:n_members], np.float64),
        "_seed_of_fit": 0,
    }


def _have_the_same_classes(theirs: Any) -> bool:
    """Whether all members have the classes of the ensemble."""
    classes = getattr(theirs, "classes_", None)
    return classes is None or all(
        np.array_equal(member.classes_, classes) for member in theirs.estimators_
    )


def _members_as_trees(
    theirs: Any, answer: str, base: DecisionTree, columns: dict[str, Any]
) -> Members:
    first = theirs.estimators_[0]
    kind = kind_of_trees(first, int(theirs.n_features_in_))
    known = {
        **columns,
        **classes_of(first),
        "n_outputs_": 1,
        "max_features_": int(first.max_features_),
    }
    trees = tuple([packed_tree(member.tree_, kind)] for member in theirs.estimators_)
    return TreeMembers(answer, kind, base, known, trees)


def _members_as_estimators(theirs: Any, answer: str) -> Members:
    fitted = tuple([_converted(member)] for member in theirs.estimators_)
    return EstimatorMembers(answer, getattr(theirs, "classes_", None), fitted)


def _converted(member: Any) -> Any:
    try:
        return from_sklearn(member)
    except ConversionError:
        return member


def _read_classifier(theirs: Any) -> dict[str, Any]:
    known = _read(theirs, "labels")
    classes, rate = theirs.classes_, float(theirs.learning_rate)
    errors, weights = known["estimator_errors_"], known["estimator_weights_"]
    rule = rule_of("samme", np.empty(0, np.int64), len(classes), rate)
    unknown = np.full(len(errors), np.nan)
    return known | {
        "classes_": classes,
        "n_classes_": len(classes),
        "history_": history_of(
            rule, errors, weights, None, unknown, None, _outcome(theirs, errors, len(errors))
        ),
        "_circumstances": {
            "the number of features": int(theirs.n_features_in_),
            "the set of classes": classes.tolist(),
            "algorithm": "samme",
            "learning_rate": rate,
        },
    }


def _outcome(theirs: Any, errors: np.ndarray, n_members: int) -> Any:
    if n_members >= theirs.n_estimators:
        return "complete"
    return "perfect" if errors[-1] <= 0.0 else "no better than chance"


def _read_regressor(theirs: Any) -> dict[str, Any]:
    known = _read(theirs, "numbers")
    losses = known["estimator_errors_"]
    unknown = np.full(len(losses), np.nan)
    outcome = _outcome(theirs, losses, len(losses))
    with np.errstate(divide="ignore"):
        beta = losses / (1.0 - losses)
    return known | {
        "history_": R2History(
            losses,
            beta,
            unknown,
            unknown,
            "loss too large" if outcome == "no better than chance" else outcome,
        )
    }


def _read_settings(theirs: Any) -> dict[str, Any]:
    base = theirs.estimator
    return {"estimator": None if base is None else unfitted_from_sklearn(base)}


# -- to scikit-learn --


def _write(ours: Any) -> dict[str, Any]:
    return {
        **columns_of(ours),
        "estimator_": unfitted_to_sklearn(ours.estimator_),
        "estimators_": [_without_names(member) for member in ours.estimators_],
        "estimator_weights_": np.array(ours.estimator_weights_),
        "estimator_errors_": np.array(ours.estimator_errors_),
    }


def _without_names(member: Any) -> Any:
    """A converted member; members of scikit-learn's AdaBoost have no feature names."""
    if not isinstance(member, DecisionTree):
        return _back(member)
    tree = to_sklearn(member)
    vars(tree).pop("feature_names_in_", None)
    return tree


def _back(member: Any) -> Any:
    """A converted estimator, or the same if it has no counterpart: AdaBoost takes any."""
    try:
        return to_sklearn(member)
    except ConversionError:
        return member


def _write_classifier(ours: Any) -> dict[str, Any]:
    algorithm = ours._circumstances["algorithm"]
    if algorithm not in _VOTING:
        raise ConversionError(
            type(ours).__name__,
            f"algorithm={algorithm!r} adds up numbers, and in scikit-learn's AdaBoost members vote",
            "Fit it with algorithm='samme'",
        )
    return _write(ours) | {"classes_": ours.classes_, "n_classes_": ours.n_classes_}


def _write_settings(ours: Any) -> dict[str, Any]:
    base = ours.estimator
    return {"estimator": None if base is None else unfitted_to_sklearn(base)}


ADABOOST = (
    Pair(
        "sklearn.ensemble:AdaBoostClassifier",
        "margrove.ensemble.adaboost.classifier:AdaBoostClassifier",
        _read_classifier,
        _write_classifier,
        _read_settings,
        _write_settings,
    ),
    Pair(
        "sklearn.ensemble:AdaBoostRegressor",
        "margrove.ensemble.adaboost.regressor:AdaBoostRegressor",
        _read_regressor,
        _write,
        _read_settings,
        _write_settings,
    ),
)
