"""Gradient boosting with exact splits: a constant to start from, and rounds of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from margrove.ensemble.gradient import GradientHistory, kind_of
from margrove.ensemble.gradient.losses import GradientLoss, gradient_loss_of
from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.pairs import Pair, class_of, columns_of, parameters_for
from margrove.exchange.scikit_learn.trees import packed_tree, sklearn_tree
from margrove.grove.serve import PackedTree, TreeScores, rescaled, unfolded

__all__ = ["GRADIENT_BOOSTING", "boosted"]

_LOSSES = {
    False: ("squared_error", "absolute_error", "huber", "quantile"),
    True: ("log_loss", "exponential"),  # of classes
}
_OUT_OF_BAG = ("oob_scores_", "oob_improvement_", "oob_score_")


# -- from scikit-learn --


def boosted(
    theirs: Any,
    loss: GradientLoss,
    start: np.ndarray,
    rounds: list[list[PackedTree]],
    n_categories: np.ndarray,
    training_loss: np.ndarray,
) -> dict[str, Any]:
    """Attributes of both gradient boostings; `training_loss` (rounds + 1,), NaN if unknown."""
    kind = kind_of(n_categories)
    n_leaves = np.array([sum(tree.n_leaves for tree in trees) for trees in rounds], np.int64)
    known = {
        "_loss": loss,
        "_kind": kind,
        "_rounds": rounds,
        "_scores": TreeScores(rounds, kind.n_categories, start),
        "_seed_of_fit": 0,
        "_progress": (tuple(training_loss.tolist()), ()),
        "history_": GradientHistory(training_loss, np.empty(0), n_leaves, "finished"),
    }
    return known | ({"classes_": theirs.classes_} if hasattr(theirs, "classes_") else {})


def _read(theirs: Any) -> dict[str, Any]:
    _require_constant_start(theirs)
    n_features = int(theirs.n_features_in_)
    kind = kind_of(np.zeros(n_features, np.int64))
    rate = float(theirs.learning_rate)
    rounds = [
        [rescaled(packed_tree(tree.tree_, kind), rate, 0) for tree in trees]
        for trees in theirs.estimators_
    ]
    loss = _loss_of(theirs)
    start = theirs._raw_predict_init(np.zeros((1, n_features), np.float32))[0]
    losses = np.append(np.nan, theirs.train_score_[: len(rounds)] / loss.reported_factor)
    known = {
        **columns_of(theirs),
        **boosted(theirs, loss, start, rounds, kind.n_categories, losses),
        "categories_": {},
        "n_outputs_": 1,
        "max_features_": int(theirs.max_features_),
        "n_estimators_": len(rounds),
        "init_": theirs.init_,
        "_init_model": None,
        "_rates": np.full(len(rounds), rate),
        "train_score_": np.array(theirs.train_score_),
    }
    known |= {name: getattr(theirs, name) for name in _OUT_OF_BAG if hasattr(theirs, name)}
    return known | ({"n_classes_": int(theirs.n_classes_)} if "classes_" in known else {})


def _require_constant_start(model: Any) -> None:
    """Refuse models of either library whose `init_` differs from row to row."""
    init = model.init_
    is_constant = isinstance(init, (DummyClassifier, DummyRegressor)) and (
        init.strategy != "stratified"
    )
    if not is_constant and not isinstance(init, str):
        raise ConversionError(
            type(model).__name__,
            f"it starts from init={type(init).__name__}, to which scikit-learn passes X rounded to "
            "float32 and margrove X itself, so that the predictions would differ",
            "Fit it with init=None or 'zero', or fit margrove's class of that name",
        )


def _loss_of(theirs: Any) -> GradientLoss:
    name = theirs.loss
    if name == "huber":
        return gradient_loss_of(name, alpha=float(theirs.alpha))
    if name == "quantile":
        return gradient_loss_of(name, quantile=float(theirs.alpha))
    n_classes = len(theirs.classes_) if hasattr(theirs, "classes_") else None
    return gradient_loss_of(name, n_classes=n_classes)


# -- to scikit-learn --


def _write(ours: Any) -> dict[str, Any]:
    _require_constant_start(ours)
    loss, name = ours._loss, type(ours).__name__
    require_loss_of_sklearn(ours, _LOSSES[hasattr(ours, "classes_")])
    template_class: Any = class_of("sklearn.tree:DecisionTreeRegressor")
    template = parameters_for(template_class, ours)
    known_to_trees = {
        "n_features_in_": ours.n_features_in_,
        "n_outputs_": 1,
        "max_features_": ours.max_features_,
    }
    rate = _rate_of(ours)
    trees = np.empty((ours.n_iter_, loss.n_scores), dtype=object)
    for t, round_trees in enumerate(ours._rounds):
        for k, packed in enumerate(round_trees):
            arrays = unfolded(rescaled(packed, 1.0 / rate, 0), ours._kind)
            tree = template_class(**template)
            tree.tree_ = sklearn_tree(arrays, ours.n_features_in_, None, name)
            vars(tree).update(known_to_trees)
            trees[t, k] = tree
    known = {
        **columns_of(ours),
        "estimators_": trees,
        "n_estimators_": ours.n_iter_,
        "n_trees_per_iteration_": loss.n_scores,
        "max_features_": ours.max_features_,
        "init_": ours.init_,
        "train_score_": ours.train_score_,
    }
    known |= {name: getattr(ours, name) for name in _OUT_OF_BAG if hasattr(ours, name)}
    if hasattr(ours, "classes_"):
        known |= {"classes_": ours.classes_, "n_classes_": ours.n_classes_}
    return known | {"_loss": _loss_of_sklearn(ours)}


def require_loss_of_sklearn(ours: Any, names: tuple[str, ...]) -> None:
    """Refuse losses that scikit-learn's class of the same name does not have."""
    if ours._loss.name not in names:
        raise ConversionError(
            type(ours).__name__,
            f"scikit-learn's class of the same name has no loss {ours._loss.name!r}",
            f"Fit it with one of {list(names)}",
        )


def _loss_of_sklearn(ours: Any) -> Any:
    """The loss object that scikit-learn's own fit would make."""
    peer = class_of(f"sklearn.ensemble:{type(ours).__name__}")(**_write_settings(ours))
    peer.n_classes_ = getattr(ours, "n_classes_", None)
    return peer._get_loss(sample_weight=None)


def _rate_of(ours: Any) -> float:
    """One learning rate for all rounds; those of margrove may differ, and are in the leaves."""
    return float(ours._rates[0]) if len(ours._rates) and ours._rates[0] > 0.0 else 1.0


def _write_settings(ours: Any) -> dict[str, Any]:
    if not hasattr(ours, "_loss"):
        return {}
    loss = ours._loss
    settings = {"loss": loss.name, "learning_rate": _rate_of(ours), "init": ours.init}
    parameter = {"huber": "alpha", "quantile": "quantile"}.get(loss.name)
    return settings if parameter is None else settings | {"alpha": getattr(loss, parameter)}


GRADIENT_BOOSTING = tuple(
    Pair(
        f"sklearn.ensemble:GradientBoosting{task}",
        f"margrove.ensemble.gradient.classic_estimators:GradientBoosting{task}",
        _read,
        _write,
        write_settings=_write_settings,
    )
    for task in ("Classifier", "Regressor")
)
