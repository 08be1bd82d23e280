"""Parameters of trees and ensembles of trees that the page shows."""

from __future__ import annotations

import dataclasses
from typing import Any

from margrove.select.learners import Parameter, Value, When
from margrove.studio.learners.choices import (
    boosting_algorithms,
    boosting_losses,
    criteria,
    gradient_losses,
    menu,
    only_for,
)
from margrove.studio.learners.offers import Shown

__all__ = ["GROVE_PARAMETERS"]

_ENOUGH_TREES = 20  # so that every point is out of bag for some tree


def _criterion(*, for_classes: bool, default: str, in_forests: bool = False) -> Parameter:
    return Parameter(
        name="criterion", title="criterion", kind="choice", default=default,
        choices=criteria(for_classes=for_classes, in_forests=in_forests),
        summary="How the impurity of a node is measured.",
    )  # fmt: skip


_MAX_DEPTH = Parameter(
    name="max_depth", title="depth", kind="integer", default=None, low=1, high=20, none="no limit",
    summary="The largest number of questions on the way to a leaf.",
)  # fmt: skip
_LEAF_SIZE = Parameter(
    name="min_samples_leaf", title="points in a leaf", kind="integer", default=1, low=1, high=50,
    summary="Splits that leave fewer points in a leaf are not made.",
)  # fmt: skip
_TREE_LIMITS = (
    _MAX_DEPTH,
    Parameter(
        name="max_leaf_nodes", title="leaves", kind="integer", default=None, low=2, high=64,
        none="no limit", summary="The largest number of leaves; the best splits are made first.",
    ),
    _LEAF_SIZE,
    Parameter(
        name="ccp_alpha", title="price of a leaf", kind="number", default=0.0, low=0.0, high=0.1,
        summary="Branches that gain less than this for each of their leaves are pruned.",
    ),
    Parameter(
        name="splitter", title="splits", kind="choice", default="best",
        choices=menu(best="best threshold", random="random threshold", oblique="oblique lines"),
        summary="Which splits a node considers.",
    ),
)  # fmt: skip
_OBLIQUE = Parameter(
    name="oblique_learner", title="lines by", kind="choice", default="svm",
    choices=menu(
        svm="a support vector machine", perceptron="a perceptron", prototypes="class means"
    ),
    summary="The learner that finds the oblique lines.", when=only_for("splitter", "oblique"),
)  # fmt: skip
_MEMBERS = Parameter(
    name="n_estimators", title="members", kind="integer", default=50, scale="log", low=1, high=300,
    summary="The number of members of the ensemble.",
)  # fmt: skip
_FOREST = (
    Parameter(
        name="max_features", title="features a split considers", kind="integer", default=1,
        low=1, high=2, summary="One, drawn at random, or both.",
    ),
    Parameter(
        name="bootstrap", title="bootstrap", kind="flag", default=True,
        summary="Whether each tree is grown on points drawn with replacement, or on all points.",
    ),
)  # fmt: skip
_VOTING = Parameter(
    name="voting", title="voting", kind="choice", default="soft",
    choices=menu(soft="mean of probabilities", hard="one vote each"),
    summary="How the members' predictions are combined.",
)  # fmt: skip
_RATE = Parameter(
    name="learning_rate", title="learning rate", kind="number", default=0.1, scale="log", low=1e-2,
    high=2.0, summary="How much each round contributes.",
)  # fmt: skip
_SUBSAMPLE = Parameter(
    name="subsample", title="share of the points a round", kind="number", default=1.0, low=0.1,
    high=1.0, summary="Below 1, each round uses points drawn at random.",
)  # fmt: skip
_BAG = (
    dataclasses.replace(_MEMBERS, default=12),
    Parameter(
        name="max_samples", title="share of the points drawn", kind="number", default=1.0, low=0.05,
        high=1.0, summary="How many points each member is fitted to.",
    ),
    Parameter(
        name="bootstrap", title="with replacement", kind="flag", default=True,
        summary="Whether a point can be drawn more than once.",
    ),
)  # fmt: skip


def _out_of_bag(values: dict[str, Value]) -> dict[str, Any]:
    """Intervals need out-of-bag errors, which a few trees do not give for every point."""
    n_trees = values["n_estimators"]
    assert isinstance(n_trees, int)
    return {"oob_score": True} if values["bootstrap"] and n_trees >= _ENOUGH_TREES else {}


def _of_members(*parameters: Parameter) -> tuple[Parameter, ...]:
    return tuple(dataclasses.replace(parameter, of_member=True) for parameter in parameters)


def _gradient_loss(*, for_classes: bool, quantile: str | None = None) -> tuple[Parameter, ...]:
    default = "log_loss" if for_classes else "squared_error"
    loss = Parameter(
        name="loss", title="loss", kind="choice", default=default,
        choices=gradient_losses(for_classes=for_classes),
        summary="The loss that each round lowers.",
    )  # fmt: skip
    if quantile is None:
        return (loss,)
    return loss, Parameter(
        name=quantile, title="quantile", kind="number", default=0.9, low=0.05, high=0.95,
        summary="The share of the values below the curve.", when=only_for("loss", "quantile"),
    )  # fmt: skip


def _gradient(*loss: Parameter) -> tuple[Parameter, ...]:
    return (
        dataclasses.replace(
            _MEMBERS, title="rounds", default=100, summary="The number of trees that are added."
        ),
        _RATE,
        dataclasses.replace(_MAX_DEPTH, default=3, high=10),
        _LEAF_SIZE,
        _SUBSAMPLE,
        *loss,
    )  # fmt: skip


def _histogram_gradient(*loss: Parameter) -> tuple[Parameter, ...]:
    return (
        dataclasses.replace(
            _MEMBERS, name="max_iter", title="rounds", default=100,
            summary="The number of trees that are added.",
        ),
        _RATE,
        Parameter(
            name="max_leaf_nodes", title="leaves of a tree", kind="integer", default=31, low=2,
            high=64, none="no limit",
            summary="The largest number of leaves; the best splits are made first.",
        ),
        _MAX_DEPTH,
        dataclasses.replace(_LEAF_SIZE, default=5),
        Parameter(
            name="l2_regularization", title="shrinkage of leaves", kind="number", default=0.0,
            low=0.0, high=20.0, summary="Pulls the values of leaves towards 0.",
        ),
        *loss,
    )  # fmt: skip


_CLASS_TREE = _criterion(for_classes=True, default="gini")
_NUMBER_TREE = _criterion(for_classes=False, default="squared_error")
_CLASS_FOREST = _criterion(for_classes=True, default="gini", in_forests=True)
_NUMBER_FOREST = _criterion(for_classes=False, default="squared_error", in_forests=True)
# Algorithms whose members fit numbers, so that they are regression trees.
_OF_NUMBERS = ("gentle", "logit")


def _algorithms_of_classes() -> list[Value]:
    return [choice.value for choice in boosting_algorithms() if choice.value not in _OF_NUMBERS]


def _boosted_tree(values: dict[str, Value]) -> str:
    is_of_numbers = values["algorithm"] in _OF_NUMBERS
    return "DecisionTreeRegressor" if is_of_numbers else "DecisionTreeClassifier"


_TREES = {
    "DecisionTreeClassifier": Shown(
        parameters=(_CLASS_TREE, *_TREE_LIMITS, _OBLIQUE), steps=("splits", "pruning"),
    ),
    "DecisionTreeRegressor": Shown(
        parameters=(_NUMBER_TREE, *_TREE_LIMITS[:-1]), steps=("splits", "pruning"),
    ),
}  # fmt: skip


_NO_BOOTSTRAP = dataclasses.replace(_FOREST[1], default=False)
_ENSEMBLES = {
    "BaggingClassifier": Shown(
        parameters=(*_BAG, _VOTING, *_of_members(_MAX_DEPTH, _CLASS_TREE)),
        member="DecisionTreeClassifier", steps=("members",),
    ),
    "BaggingRegressor": Shown(
        parameters=(*_BAG, *_of_members(_MAX_DEPTH, _NUMBER_TREE)),
        member="DecisionTreeRegressor", steps=("members",),
    ),
    "RandomForestClassifier": Shown(
        parameters=(_MEMBERS, _CLASS_FOREST, _MAX_DEPTH, _LEAF_SIZE, *_FOREST, _VOTING),
        steps=("members",), also=_out_of_bag,
    ),
    "RandomForestRegressor": Shown(
        parameters=(_MEMBERS, _NUMBER_FOREST, _MAX_DEPTH, _LEAF_SIZE, _FOREST[1]),
        steps=("members",), also=_out_of_bag,
    ),
    "ExtraTreesClassifier": Shown(
        parameters=(
            _MEMBERS, _CLASS_FOREST, _MAX_DEPTH, _LEAF_SIZE, _FOREST[0], _NO_BOOTSTRAP, _VOTING,
        ),
        steps=("members",),
    ),
    "ExtraTreesRegressor": Shown(
        parameters=(_MEMBERS, _NUMBER_FOREST, _MAX_DEPTH, _LEAF_SIZE, _NO_BOOTSTRAP),
        steps=("members",), also=_out_of_bag,
    ),
    "AdaBoostClassifier": Shown(
        parameters=(
            dataclasses.replace(_MEMBERS, title="rounds"),
            dataclasses.replace(_RATE, default=1.0),
            Parameter(
                name="algorithm", title="algorithm", kind="choice", default="samme",
                choices=boosting_algorithms, summary="How rounds weight points and members.",
            ),
            *_of_members(
                dataclasses.replace(_MAX_DEPTH, default=1, high=10, title="depth of a member"),
                dataclasses.replace(
                    _CLASS_TREE, when=When("algorithm", _algorithms_of_classes)
                ),
            ),
        ),
        member=_boosted_tree, steps=("adaboost",),
    ),
    "AdaBoostRegressor": Shown(
        parameters=(
            dataclasses.replace(_MEMBERS, title="rounds"),
            dataclasses.replace(_RATE, default=1.0),
            Parameter(
                name="loss", title="loss", kind="choice", default="linear",
                choices=boosting_losses, summary="How the error of a point is measured.",
            ),
            *_of_members(dataclasses.replace(_MAX_DEPTH, default=3, high=10)),
        ),
        member="DecisionTreeRegressor",
    ),
    "GradientBoostingClassifier": Shown(
        parameters=_gradient(*_gradient_loss(for_classes=True)), steps=("gradient",),
    ),
    "GradientBoostingRegressor": Shown(
        parameters=_gradient(*_gradient_loss(for_classes=False, quantile="alpha")),
        steps=("gradient",),
    ),
    "HistGradientBoostingClassifier": Shown(
        parameters=_histogram_gradient(*_gradient_loss(for_classes=True)), steps=("gradient",),
    ),
    "HistGradientBoostingRegressor": Shown(
        parameters=_histogram_gradient(*_gradient_loss(for_classes=False, quantile="quantile")),
        steps=("gradient",),
    ),
}  # fmt: skip

GROVE_PARAMETERS: dict[str, Shown] = _TREES | _ENSEMBLES
