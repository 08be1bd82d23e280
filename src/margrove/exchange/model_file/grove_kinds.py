"""Trees and their ensembles in model files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from margrove.exchange.model_file.checks import (
    Check,
    Sizes,
    array,
    class_at,
    columns_of_labels,
    either,
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

__all__ = ["GROVE_KINDS", "GROVE_PARTS"]

_MANY = 1 << 40  # more nodes, words or rows than there ever are; sums of two stay within int64
_MOST_DRAWS = 1 << 31


# -- trees --


def _tree_arrays_are_sound(fields: dict[str, Any]) -> Any:
    tree = class_at("margrove.grove.serve.tree_arrays:TreeArrays")(**fields)
    tree.require_sound()
    return tree


def _counts_agree(fields: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(sizes["E"] == sizes["N"] - 1, "a tree has not one edge less than nodes")


_TREE_ARRAYS = Part(
    "margrove.grove.serve.tree_arrays:TreeArrays",
    {
        "kind": array("i1", "N"),
        "feature": array("i4", "N", low=-1),
        "threshold": array("f8", "N"),
        "first_child": array("i8", "N", low=0),
        "n_children": array("i4", "N", low=0),
        "children": array("i8", "E", low=1, below="N"),
        "parent": array("i8", "N", low=-1, below="N"),
        "missing_child": array("i4", "N", low=-1),
        "set_start": array("i8", "N", low=0, below=_MANY),
        "set_size": array("i8", "N", low=0, below=_MANY),
        "words": array("u4", "*"),
        "branches": array("i4", "*"),
        "coef": array("f8", "* *", finite=True),
        "weight": array("f8", "N"),
        "n_samples": array("i8", "N"),
        "value": array("f8", "N *", finite=True),
        "impurity": array("f8", "N"),
        "decrease": array("f8", "N"),
    },
    examine=_counts_agree,
    make=_tree_arrays_are_sound,
)

_PACKED_TREE = Part(
    "margrove.grove.serve.packed_trees:PackedTree",
    {
        "nodes": array("i8", "L"),
        "weight": array("i4 i8 f8", "N"),
        "values": array("i4 i8 f8", "* *", finite=True),
        "words": array("u4", "*"),
        "samples": optional(array("i4 i8", "N")),
        "impurity": optional(array("f8", "N")),
        "decrease": optional(array("f8", "N")),
        "medians": optional(array("f8", "N", finite=True)),
    },
    examine=lambda fields, sizes: sizes.agree("L", 2 * sizes["N"], "nodes"),
)

_KIND_OF_TREES = Part(
    "margrove.grove.serve.packed_trees:Kind",
    {
        "criterion": whole(0, 100),
        "n_classes": listed(whole(1), "*", tuple),
        "n_outputs": whole(1),
        "n_categories": array("i8", "*", low=0, below=_MANY),
    },
)


def _is_sound_forest(trees: Iterable[Any], kind: Any, fitted: dict[str, Any]) -> None:
    """Each tree leads somewhere, and asks for columns and categories that there are."""
    n_features = fitted["n_features_in_"]
    refuse_unless(
        len(kind.n_categories) == n_features, "the trees are of another number of columns"
    )
    expected = np.zeros(n_features, np.int64)
    for column, own in fitted["categories_"].items():
        expected[column] = len(own)
    refuse_unless(
        np.array_equal(kind.n_categories, expected), "categories_ and those of the trees differ"
    )
    for tree in trees:
        tree.require_sound(kind, n_features)


def _classes_agree(fitted: dict[str, Any], n_classes: Iterable[int]) -> None:
    """classes_, n_classes_ and n_outputs_, of one output or of several."""
    known = fitted.get("classes_")
    single = isinstance(known, np.ndarray)
    sizes = [] if known is None else [len(own) for own in ([known] if single else known)]
    refuse_unless(sizes == [int(n) for n in n_classes], "classes_ and those of the trees differ")
    if known is not None and "n_classes_" in fitted:
        counts = fitted["n_classes_"]
        refuse_unless(([counts] if single else list(counts)) == sizes, "n_classes_ is another")


_TABLE: dict[str, Check] = {**COLUMNS, "categories_": columns_of_labels("d")}
_CLASSES: dict[str, Check] = {
    "classes_?": either(labels("*"), listed(labels("*"))),
    "n_classes_?": either(whole(1), listed(whole(1))),
}


def _tree_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    tree, d = fitted["arrays_"], sizes["d"]
    refuse_unless(tree.feature.max() < d, "a tree asks for a feature that is not there")
    refuse_unless(not len(tree.coef) or tree.coef.shape[1] <= d, "a tree has too many coefficients")
    n_outputs, known = fitted["n_outputs_"], fitted.get("classes_")
    n_values = n_outputs
    if known is not None:
        counts = [len(known)] if isinstance(known, np.ndarray) else [len(own) for own in known]
        _classes_agree(fitted, counts)
        refuse_unless(len(counts) == n_outputs, "n_outputs_ is another")
        n_values = sum(counts)
    refuse_unless(tree.value.shape[1] == n_values, "the values of a tree are not one a class")


def _decision_tree(class_name: str) -> Kind:
    return Kind(
        f"margrove.grove.estimators:{class_name}",
        {
            **_TABLE,
            **(_CLASSES if class_name.endswith("Classifier") else {}),
            "n_outputs_": whole(1),
            "max_features_": whole(1),
            "arrays_": instance_of(_TREE_ARRAYS.home),
        },
        examine=_tree_fits,
    )


# -- forests --


def _rows_were_there(fields: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(sizes["m"] >= 1, "a forest has drawn from no rows")
    refuse_unless(fields["rows"].max() < fields["n_rows"], "rows were drawn that are not there")
    if fields["weight"] is not None:
        total = float(fields["weight"].sum())
        refuse_unless(fields["weight"].min() > 0 and np.isfinite(total), "weights are not positive")


_SAMPLED_ROWS = Part(
    "margrove.ensemble.forest.training_data:SampledRows",
    {
        "seed": whole(0),
        "rows": array("i4 i8", "m", low=0),
        "weight": optional(array("f8", "m", finite=True)),
        "n_draws": optional(whole(1, _MOST_DRAWS)),
        "n_rows": whole(1, _MANY),
        "group_of": optional(array("i4 i8", "*", low=-1, below="m")),
    },
    examine=_rows_were_there,
)

_LEAF_SAMPLES = Part(
    "margrove.ensemble.forest.intervals:LeafSamples",
    {
        "values": array("f8", "m", finite=True),
        "starts": listed(array("i8", "*", low=0), "T"),
        "ranks": listed(array("i4", "*", low=0, below="m"), "T"),
        "weights": listed(array("f8", "*", finite=True), "T"),
    },
)

_RESIDUALS = Part(
    "margrove.ensemble.forest.intervals:Residuals",
    {
        "plain": array("f8", "m"),
        "relative": array("f8", "m"),
        "least_spread": real(finite=False),
    },
)


def _forest_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    kind, trees = fitted["kind_"], fitted["trees_"]
    refuse_unless(trees, "a forest has no trees")
    refuse_unless(kind.n_outputs == fitted["n_outputs_"], "n_outputs_ is another")
    refuse_unless(
        not kind.n_classes or len(kind.n_classes) == kind.n_outputs, "n_outputs_ is another"
    )
    _is_sound_forest(trees, kind, fitted)
    _classes_agree(fitted, kind.n_classes)
    if fitted.get("leaf_samples_") is not None:
        _leaf_samples_fit(fitted["leaf_samples_"], trees)


def _leaf_samples_fit(kept: Any, trees: list[Any]) -> None:
    refuse_unless(len(kept.starts) == len(trees), "leaf_samples_ are of other trees")
    parts = zip(kept.starts, kept.ranks, kept.weights, trees, strict=True)
    for starts, ranks, weights, tree in parts:
        counts = np.diff(starts)
        refuse_unless(
            len(starts) == len(tree) + 1
            and starts[0] == 0
            and starts[-1] == len(ranks) == len(weights)
            and np.all(counts >= 0)
            and np.all(counts[tree.is_leaf] > 0),
            "leaf_samples_ do not add up",
        )


def _forest(class_name: str) -> Kind:
    is_classifier = class_name.endswith("Classifier")
    of_numbers: dict[str, Check] = {
        "oob_prediction_?": either(array("f8", "*"), array("f8", "* *")),
        "residuals_?": instance_of(_RESIDUALS.home),
        "leaf_samples_?": optional(instance_of(_LEAF_SAMPLES.home)),
    }
    of_classes: dict[str, Check] = {
        **_CLASSES,
        "oob_decision_function_?": either(array("f8", "* *"), array("f8", "* * *")),
    }
    return Kind(
        f"margrove.ensemble.forest.estimators:{class_name}",
        {
            **_TABLE,
            "n_outputs_": whole(1),
            "max_features_": whole(1),
            "kind_": instance_of(_KIND_OF_TREES.home),
            "trees_": listed(instance_of(_PACKED_TREE.home)),
            "sampled_?": instance_of(_SAMPLED_ROWS.home),
            "oob_score_?": plain,
            "oob_curve_?": array("f8", "*"),
            **(of_classes if is_classifier else of_numbers),
        },
        examine=_forest_fits,
    )


# -- bagging --


def _line_as_values(line: Any) -> dict[str, Any]:
    return {"n_rows": line._n_rows, "is_whole": line.is_whole, "ends": line.ends}


def _line_of_values(values: dict[str, Any]) -> Any:
    line: Any = object.__new__(class_at(_LINE.home))
    line._n_rows, line.is_whole, line.ends = values["n_rows"], values["is_whole"], values["ends"]
    line.is_even = line.is_whole and line.ends[-1] == len(line.ends)
    return line


def _ends_ascend(values: dict[str, Any], sizes: Sizes) -> None:
    ends = values["ends"]
    refuse_unless(len(ends) and ends[0] > 0 and np.all(np.diff(ends) > 0), "ends do not ascend")


_LINE = Part(
    "margrove.ensemble.bootstrap.resampling:Line",
    {
        "n_rows": whole(1, _MANY),
        "is_whole": flag,
        "ends": array("i8", "*", low=1, below=1 << 54),
    },
    examine=_ends_ascend,
    take=_line_as_values,
    make=_line_of_values,
)


def _samples_fit(fields: dict[str, Any], sizes: Sizes) -> None:
    starts = fields["starts"]
    refuse_unless(len(fields["line"].ends) == sizes["m"], "a line is of other rows")
    refuse_unless(
        len(starts) and starts[0] == 0 and np.all(np.diff(starts) > 0), "starts do not ascend"
    )


_ROW_SAMPLES = Part(
    "margrove.ensemble.bagging.samples:RowSamples",
    {
        "rows": array("i8", "m", low=0),
        "starts": array("i8", "*", low=0, below="m"),
        "line": instance_of(_LINE.home),
        "seed": whole(0),
        "n_draws": whole(1, _MOST_DRAWS),
        "with_replacement": flag,
    },
    examine=_samples_fit,
)


def _shared_samples(fitted: dict[str, Any]) -> dict[str, Any]:
    """Members drawn from the same rows refer to the same object: it is kept once."""
    if "_samples" not in fitted:
        return fitted
    different = {id(own): own for own in fitted["_samples"]}
    number = {key: k for k, key in enumerate(different)}
    which = np.array([number[id(own)] for own in fitted["_samples"]], np.int64)
    return fitted | {"_samples": [list(different.values()), which]}


def _samples_of_members(fitted: dict[str, Any]) -> dict[str, Any]:
    different, which = fitted["_samples"]
    return fitted | {"_samples": [different[k] for k in which.tolist()]}


def _samples_and_numbers(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(isinstance(value, list) and len(value) == 2, f"{where} is not a pair")
    listed(instance_of(_ROW_SAMPLES.home), "different")(value[0], where, sizes)
    array("i8", "members", low=0, below="different")(value[1], where, sizes)


def _estimator(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(hasattr(value, "get_params"), f"{where} is not an estimator")


def _bag_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(sizes["members"], "there are no members")
    for own, columns in zip(fitted["estimators_"], fitted["estimators_features_"], strict=True):
        _has_columns(own, len(columns))


def _has_columns(member: Any, n_columns: int) -> None:
    found = getattr(member, "n_features_in_", n_columns)
    refuse_unless(found == n_columns, "a member is of another number of columns")


def _bagging(class_name: str) -> Kind:
    is_classifier = class_name.endswith("Classifier")
    of_classes: dict[str, Check] = {
        "classes_": labels("C"),
        "n_classes_": whole(1),
        "oob_decision_function_?": array("f8", "* C"),
    }
    of_numbers: dict[str, Check] = {
        "oob_prediction_?": either(array("f8", "*"), array("f8", "* *"))
    }
    return Kind(
        f"margrove.ensemble.bagging.estimators:{class_name}",
        {
            **COLUMNS,
            **(of_classes if is_classifier else of_numbers),
            "estimator_": _estimator,
            "estimators_": listed(_estimator, "members"),
            "estimators_features_": listed(array("i8", "*", low=0, below="d"), "members"),
            "_samples": _samples_and_numbers,
            "oob_score_?": plain,
        },
        take=_shared_samples,
        make=_samples_of_members,
        examine=_bag_fits,
    )


# -- AdaBoost --

_STUMPS = Part(
    "margrove.ensemble.adaboost.stumps:Stumps",
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
_ATTRIBUTES_OF_MEMBERS: dict[str, Check] = {
    **_TABLE,
    **_CLASSES,
    "n_outputs_": whole(1, 1),
    "max_features_": whole(1),
}
_TREES = (
    "margrove.grove.estimators:DecisionTreeClassifier",
    "margrove.grove.estimators:DecisionTreeRegressor",
)
_ANSWER = text("labels", "shares", "numbers")


def _attributes_of_members(value: Any, where: str, sizes: Sizes) -> None:
    mapping(plain)(value, where, sizes)
    known = {name.removesuffix("?"): check for name, check in _ATTRIBUTES_OF_MEMBERS.items()}
    refuse_unless(set(value) <= set(known), f"{where} has other keys")
    refuse_unless({"n_features_in_", "categories_"} <= set(value), f"{where} lacks a key")
    for name in sorted(value, key=list(known).index):
        known[name](value[name], f"{where}[{name!r}]", sizes)


def _stumps_fit(fields: dict[str, Any], sizes: Sizes) -> None:
    found, d = fields["found"], fields["attributes"]["n_features_in_"]
    refuse_unless(sizes["T"] == len(found.feature), "thresholds are not one a stump")
    refuse_unless(
        found.feature.max(initial=-1) < d and found.classes.max(initial=0) < found.shares.shape[2],
        "a stump asks for a feature, or answers with a class, that is not there",
    )
    _classes_agree(fields["attributes"], [found.shares.shape[2]])


_STUMP_MEMBERS = Part(
    "margrove.ensemble.adaboost.weak_learners:StumpMembers",
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
        bool(kind.n_classes) == (fields["answer"] != "numbers"), "trees give other answers"
    )
    trees = (tree for own in rounds for tree in own)
    _is_sound_forest(trees, kind, fields["attributes"])


_TREE_MEMBERS = Part(
    "margrove.ensemble.adaboost.weak_learners:TreeMembers",
    {
        "answer": _ANSWER,
        "kind": instance_of(_KIND_OF_TREES.home),
        "template": instance_of(*_TREES),
        "attributes": _attributes_of_members,
        "trees": listed(listed(instance_of(_PACKED_TREE.home)), "*", tuple),
    },
    examine=_trees_of_rounds_fit,
)
_ESTIMATOR_MEMBERS = Part(
    "margrove.ensemble.adaboost.weak_learners:EstimatorMembers",
    {
        "answer": _ANSWER,
        "classes": optional(labels("*")),
        "fitted": listed(listed(_estimator), "*", tuple),
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
            _labels_by_column(attributes) == _labels_by_column(fitted), "members know other labels"
        )
    for own in getattr(members, "fitted", ()):
        _has_columns(own[0], sizes["d"])
    if "classes_" not in fitted:
        return
    sizes.agree("C", fitted["n_classes_"], "n_classes_")
    kind = type(members)
    if kind is class_at(_STUMP_MEMBERS.home):
        refuse_unless(members.found.shares.shape[2] == sizes["C"], "stumps know other classes")
    if kind is class_at(_TREE_MEMBERS.home):
        counts = members.kind.n_classes
        refuse_unless(counts in ((), (sizes["C"],)), "trees know other classes")


def _labels_by_column(fitted: dict[str, Any]) -> dict[int, list[Any]]:
    return {column: own.tolist() for column, own in fitted.get("categories_", {}).items()}


def _adaboost(home: str, history: Part, weights: Check, more: dict[str, Check]) -> Kind:
    return Kind(
        home,
        {
            **COLUMNS,
            "categories_?": columns_of_labels("d"),
            "_row_shape?": listed(whole(1), "*", tuple),
            "estimator_": _estimator,
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
    **_TABLE,
    "_loss": is_loss,
    "_kind": instance_of(_KIND_OF_TREES.home),
    "_start": array("f8", "K", finite=True),
    "_rounds": listed(listed(instance_of(_PACKED_TREE.home), "K")),
    "_seed_of_fit": whole(0),
    "_progress": listed(listed(real(finite=False), "*", tuple), "2", tuple),
    "history_": instance_of(_GRADIENT_HISTORY.home),
}


def _start_of_scores(fitted: dict[str, Any]) -> dict[str, Any]:
    """Tables for scoring are made of the trees."""
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
    refuse_unless(not kind.has_rows, "a tree of boosting has other values")
    trees = [tree for own in fitted["_rounds"] for tree in own]
    _is_sound_forest((), kind, fitted)  # trees are looked at all together, in TreeScores
    refuse_unless(all(tree.decrease is not None for tree in trees), "a tree has no gains")
    known = fitted.get("classes_")
    refuse_unless((known is not None) == bool(loss.for_classes), "the loss is of something else")
    if known is not None:
        n_scores = 1 if len(known) <= 2 else len(known)
        refuse_unless(n_scores == sizes["K"], "classes_ are not one a score")


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
    "init_": either(_estimator, text("zero")),
    "_init_model": optional(_estimator),
    "_rates": array("f8", "*"),
    "_settings?": listed(_run_of_settings),
    "train_score_": array("f8", "*"),
    "n_classes_?": whole(1),
    "oob_scores_?": array("f8", "*"),
    "oob_improvement_?": array("f8", "*"),
    "oob_score_?": real(finite=False),
}


# -- the tables --

GROVE_PARTS: dict[str, Part] = {
    part.home.split(":")[1]: part
    for part in (
        _TREE_ARRAYS, _PACKED_TREE, _SAMPLED_ROWS, _LEAF_SAMPLES, _RESIDUALS, _LINE, _ROW_SAMPLES,
        _STUMPS, _STUMP_MEMBERS, _TREE_MEMBERS, _ESTIMATOR_MEMBERS, _BOOSTING_HISTORY, _R2_HISTORY,
        _GRADIENT_HISTORY,
    )
} | {
    "KindOfTrees": _KIND_OF_TREES,
}  # fmt: skip

GROVE_KINDS: dict[str, Kind] = {
    **{
        name: _decision_tree(name) for name in ("DecisionTreeClassifier", "DecisionTreeRegressor")
    },
    **{
        name: _forest(name)
        for name in (
            "RandomForestClassifier", "RandomForestRegressor",
            "ExtraTreesClassifier", "ExtraTreesRegressor",
        )
    },
    **{name: _bagging(name) for name in ("BaggingClassifier", "BaggingRegressor")},
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
        array("f8", "T", low=0.0),  # or there is no median
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
