"""Boosted models in model files: their values, and the conditions that these satisfy."""

from __future__ import annotations

from typing import Any

from margrove.exchange.model_file.bagging_kinds import require_columns
from margrove.exchange.model_file.checks import (
    Check,
    Sizes,
    array,
    class_at,
    columns_of_labels,
    either,
    estimator,
    flag,
    instance_of,
    labels,
    listed,
    mapping,
    optional,
    plain,
    real,
    refuse_unless,
    text,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part
from margrove.exchange.model_file.loss_parts import is_loss
from margrove.exchange.model_file.margin_kinds import COLUMNS
from margrove.exchange.model_file.tree_kinds import (
    KIND_OF_TREES,
    PACKED_TREE,
    TREE_CLASSES,
    TREE_TABLE,
    require_same_classes,
    require_sound_forest,
)

__all__ = ["BOOSTING_KINDS", "BOOSTING_PARTS"]


# -- AdaBoost --

_STUMPS = Part(
    "margrove.ensemble.adaboost.stump_kernels:Stumps",
    {
        "feature": array("i4", "T", low=-1),
        "code": array("i8", "T"),
        "classes": array("i4", "T 2", low=0, below=1 << 30),
        "shares": array("f8", "T 2 C"),
        "n_left": array("i8", "T", low=0),
        "error": array("f8", "T"),
        "weight": array("f8", "T"),
        "training_error": array("f8", "T"),
    },
)

_TREES = (
    "margrove.grove.estimators:DecisionTreeClassifier",
    "margrove.grove.estimators:DecisionTreeRegressor",
)

_ANSWER = text("labels", "shares", "numbers")


_ATTRIBUTES_OF_MEMBERS: dict[str, Check] = {
    **TREE_TABLE,
    **TREE_CLASSES,
    "n_outputs_": whole(1, 1),
    "max_features_": whole(1),
}


def _attributes_of_members(value: Any, where: str, sizes: Sizes) -> None:
    mapping(plain)(value, where, sizes)
    known = {name.removesuffix("?"): check for name, check in _ATTRIBUTES_OF_MEMBERS.items()}
    refuse_unless(set(value) <= set(known), f"{where} has unknown keys")
    refuse_unless({"n_features_in_", "categories_"} <= set(value), f"{where} lacks a key")
    for name in sorted(value, key=list(known).index):
        known[name](value[name], f"{where}[{name!r}]", sizes)


def _stumps_fit(fields: dict[str, Any], sizes: Sizes) -> None:
    found, d = fields["found"], fields["attributes"]["n_features_in_"]
    refuse_unless(sizes["T"] == len(found.feature), "there is not one threshold for each stump")
    refuse_unless(
        found.feature.max(initial=-1) < d and found.classes.max(initial=0) < found.shares.shape[2],
        "a stump has a feature or a class that is not there",
    )
    require_same_classes(fields["attributes"], [found.shares.shape[2]])


_STUMP_MEMBERS = Part(
    "margrove.ensemble.adaboost.members:StumpMembers",
    {
        "found": instance_of(_STUMPS.home),
        "thresholds": array("f8", "T"),
        "n_samples": whole(0),
        "template": instance_of(*_TREES),
        "attributes": _attributes_of_members,
    },
    examine=_stumps_fit,
)


def _trees_of_rounds_fit(fields: dict[str, Any], sizes: Sizes) -> None:
    kind, rounds = fields["kind"], fields["trees"]
    refuse_unless(kind.n_outputs == 1 and len(kind.n_classes) <= 1, "a tree has several outputs")
    refuse_unless(all(rounds), "a round has no tree")
    refuse_unless(
        bool(kind.n_classes) == (fields["answer"] != "numbers"),
        "trees do not predict what `answer` says",
    )
    trees = (tree for round_trees in rounds for tree in round_trees)
    require_sound_forest(trees, kind, fields["attributes"])


_TREE_MEMBERS = Part(
    "margrove.ensemble.adaboost.members:TreeMembers",
    {
        "answer": _ANSWER,
        "kind": instance_of(KIND_OF_TREES.home),
        "template": instance_of(*_TREES),
        "attributes": _attributes_of_members,
        "trees": listed(listed(instance_of(PACKED_TREE.home)), "*", tuple),
    },
    examine=_trees_of_rounds_fit,
)

_ESTIMATOR_MEMBERS = Part(
    "margrove.ensemble.adaboost.members:EstimatorMembers",
    {
        "answer": _ANSWER,
        "classes": optional(labels("*")),
        "fitted": listed(listed(estimator), "*", tuple),
    },
    examine=lambda fields, sizes: refuse_unless(all(fields["fitted"]), "a round has no member"),
)

_BOOSTING_HISTORY = Part(
    "margrove.ensemble.adaboost.rounds:BoostingHistory",
    {
        **dict.fromkeys(
            ("error", "beta", "normaliser", "edge", "training_error", "bound", "edge_bound"),
            array("f8", "*"),
        ),
        "validation_error": optional(array("f8", "*")),
        "outcome": text(),
    },
)

_R2_HISTORY = Part(
    "margrove.ensemble.adaboost.r2_rounds:R2History",
    {
        **dict.fromkeys(("average_loss", "beta", "normaliser", "training_error"), array("f8", "*")),
        "outcome": text(),
    },
)


def _members_fit(fitted: dict[str, Any], sizes: Sizes) -> None:
    members: Any = fitted["_members"]
    sizes.agree("T", len(members), "_members")
    refuse_unless(sizes["T"] >= 1, "there are no members")
    attributes = getattr(members, "attributes", None)
    if attributes is not None:
        refuse_unless(attributes["n_features_in_"] == sizes["d"], "members have other columns")
        refuse_unless(
            _labels_by_column(attributes) == _labels_by_column(fitted),
            "the labels of the members differ from categories_",
        )
    for fitted_members in getattr(members, "fitted", ()):
        require_columns(fitted_members[0], sizes["d"])
    if "classes_" not in fitted:
        return
    sizes.agree("C", fitted["n_classes_"], "n_classes_")
    kind = type(members)
    if kind is class_at(_STUMP_MEMBERS.home):
        refuse_unless(
            members.found.shares.shape[2] == sizes["C"],
            "the classes of the stumps differ from classes_",
        )
    if kind is class_at(_TREE_MEMBERS.home):
        counts = members.kind.n_classes
        refuse_unless(
            counts in ((), (sizes["C"],)), "the classes of the trees differ from classes_"
        )


def _labels_by_column(fitted: dict[str, Any]) -> dict[int, list[Any]]:
    return {column: labels.tolist() for column, labels in fitted.get("categories_", {}).items()}


def _adaboost(home: str, history: Part, weights: Check, more: dict[str, Check]) -> Kind:
    return Kind(
        home,
        {
            **COLUMNS,
            "categories_?": columns_of_labels("d"),
            "_row_shape?": listed(whole(1), "*", tuple),
            "estimator_": estimator,
            "_members": instance_of(
                _STUMP_MEMBERS.home, _TREE_MEMBERS.home, _ESTIMATOR_MEMBERS.home
            ),
            "estimator_weights_": weights,
            "estimator_errors_": array("f8", "T"),
            "history_": instance_of(history.home),
            "_seed_of_fit": whole(0),
            **more,
        },
        examine=_members_fit,
    )


# -- gradient boosting --

_GRADIENT_HISTORY = Part(
    "margrove.ensemble.gradient.history:GradientHistory",
    {
        "training_loss": array("f8", "*"),
        "validation_score": array("f8", "*"),
        "n_leaves": array("i8", "*"),
        "outcome": text(),
    },
)

_BOOSTED: dict[str, Check] = {
    **TREE_TABLE,
    "_loss": is_loss,
    "_kind": instance_of(KIND_OF_TREES.home),
    "_start": array("f8", "K", finite=True),
    "_rounds": listed(listed(instance_of(PACKED_TREE.home), "K")),
    "_seed_of_fit": whole(0),
    "_progress": listed(listed(real(finite=False), "*", tuple), "2", tuple),
    "history_": instance_of(_GRADIENT_HISTORY.home),
}


def _start_of_scores(fitted: dict[str, Any]) -> dict[str, Any]:
    """Fitted attributes without the tables for scoring, which are made from the trees."""
    if "_scores" not in fitted:
        return fitted
    kept = {name: value for name, value in fitted.items() if name != "_scores"}
    return kept | {"_start": fitted["_scores"].start}


def _scores_from_start(fitted: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in fitted.items() if name != "_start"}
    tables = class_at("margrove.grove.serve.boosted_scores:TreeScores")
    return kept | {
        "_scores": tables(fitted["_rounds"], fitted["_kind"].n_categories, fitted["_start"])
    }


def _boosted_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    loss, kind = fitted["_loss"], fitted["_kind"]
    sizes.agree("K", int(loss.n_scores), "_start")
    refuse_unless(not kind.has_rows, "a boosted tree has the values of another kind of tree")
    trees = [tree for round_trees in fitted["_rounds"] for tree in round_trees]
    require_sound_forest((), kind, fitted)  # TreeScores checks all trees together
    refuse_unless(all(tree.decrease is not None for tree in trees), "a tree has no gains")
    known = fitted.get("classes_")
    refuse_unless((known is not None) == bool(loss.for_classes), "the loss is for another task")
    if known is not None:
        n_scores = 1 if len(known) <= 2 else len(known)
        refuse_unless(n_scores == sizes["K"], "classes_ are not one a score of the loss")


def _gradient_boosting(home: str, more: dict[str, Check]) -> Kind:
    of_classes: dict[str, Check] = {"classes_": labels("C")}
    return Kind(
        home,
        {**_BOOSTED, **(of_classes if home.endswith("Classifier") else {}), **more},
        examine=_boosted_fits,
        take=_start_of_scores,
        make=_scores_from_start,
    )


_HISTOGRAMS: dict[str, Check] = {
    "do_early_stopping_": flag,
    "train_score_": array("f8", "*"),
    "validation_score_": array("f8", "*"),
    "is_categorical_": optional(array("b1", "d")),
}

_OF_TREES = ("min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_depth",
             "min_impurity_decrease", "max_features", "max_leaf_nodes", "ccp_alpha")  # fmt: skip


def _run_of_settings(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(isinstance(value, list) and len(value) == 2, f"{where} is not a pair")
    whole(1)(value[0], where, sizes)
    mapping(plain, _OF_TREES)(value[1], where, sizes)


_EXACT: dict[str, Check] = {
    "n_outputs_": whole(1, 1),
    "max_features_": whole(1),
    "n_estimators_": whole(0),
    "init_": either(estimator, text("zero")),
    "_init_model": optional(estimator),
    "_rates": array("f8", "*"),
    "_settings?": listed(_run_of_settings),
    "train_score_": array("f8", "*"),
    "n_classes_?": whole(1),
    "oob_scores_?": array("f8", "*"),
    "oob_improvement_?": array("f8", "*"),
    "oob_score_?": real(finite=False),
}


# -- the tables --

BOOSTING_PARTS: dict[str, Part] = {
    "Stumps": _STUMPS,
    "StumpMembers": _STUMP_MEMBERS,
    "TreeMembers": _TREE_MEMBERS,
    "EstimatorMembers": _ESTIMATOR_MEMBERS,
    "BoostingHistory": _BOOSTING_HISTORY,
    "R2History": _R2_HISTORY,
    "GradientHistory": _GRADIENT_HISTORY,
}

BOOSTING_KINDS: dict[str, Kind] = {
    "AdaBoostClassifier": _adaboost(
        "margrove.ensemble.adaboost.classifier:AdaBoostClassifier",
        _BOOSTING_HISTORY,
        array("f8", "T"),
        {
            "classes_": labels("C"),
            "n_classes_": whole(1),
            "_circumstances": mapping(plain),
            "cv_errors_?": array("f8", "*"),
        },
    ),
    "AdaBoostRegressor": _adaboost(
        "margrove.ensemble.adaboost.regressor:AdaBoostRegressor",
        _R2_HISTORY,
        array("f8", "T", low=0.0),  # the weighted median needs it
        {},
    ),
    **{
        name: _gradient_boosting(f"margrove.ensemble.gradient.{module}:{name}", more)
        for module, more in (("hist_estimators", _HISTOGRAMS), ("classic_estimators", _EXACT))
        for name in (
            ("Hist" if more is _HISTOGRAMS else "") + "GradientBoostingClassifier",
            ("Hist" if more is _HISTOGRAMS else "") + "GradientBoostingRegressor",
        )
    },
}  # fmt: skip
