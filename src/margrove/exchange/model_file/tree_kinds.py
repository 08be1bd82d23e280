"""Trees and forests in model files: their values, and the conditions that these satisfy."""

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
    instance_of,
    labels,
    listed,
    optional,
    plain,
    real,
    refuse_unless,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part
from margrove.exchange.model_file.margin_kinds import COLUMNS

__all__ = [
    "KIND_OF_TREES",
    "MANY",
    "MOST_DRAWS",
    "PACKED_TREE",
    "TREE_CLASSES",
    "TREE_KINDS",
    "TREE_PARTS",
    "TREE_TABLE",
    "require_same_classes",
    "require_sound_forest",
]

MANY = 1 << 40  # above any number of nodes, words or rows; sums of two stay within int64
MOST_DRAWS = 1 << 31


def _tree_arrays_are_sound(fields: dict[str, Any]) -> Any:
    tree = class_at("margrove.grove.serve.tree_arrays:TreeArrays")(**fields)
    tree.require_sound()
    return tree


def _counts_agree(fields: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(sizes["E"] == sizes["N"] - 1, "a tree does not have one edge less than nodes")


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
        "set_start": array("i8", "N", low=0, below=MANY),
        "set_size": array("i8", "N", low=0, below=MANY),
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

PACKED_TREE = Part(
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

KIND_OF_TREES = Part(
    "margrove.grove.serve.packed_trees:Kind",
    {
        "criterion": whole(0, 100),
        "n_classes": listed(whole(1), "*", tuple),
        "n_outputs": whole(1),
        "n_categories": array("i8", "*", low=0, below=MANY),
    },
)


def require_sound_forest(trees: Iterable[Any], kind: Any, fitted: dict[str, Any]) -> None:
    """Refuse trees whose nodes, columns or categories are out of range."""
    n_features = fitted["n_features_in_"]
    refuse_unless(len(kind.n_categories) == n_features, "the trees have another number of columns")
    expected = np.zeros(n_features, np.int64)
    for column, labels_of_column in fitted["categories_"].items():
        expected[column] = len(labels_of_column)
    refuse_unless(
        np.array_equal(kind.n_categories, expected), "categories_ and those of the trees differ"
    )
    for tree in trees:
        tree.require_sound(kind, n_features)


def require_same_classes(fitted: dict[str, Any], n_classes: Iterable[int]) -> None:
    """Refuse classes_ and n_classes_ that differ from the numbers of classes of the outputs."""
    known = fitted.get("classes_")
    single = isinstance(known, np.ndarray)
    sizes = [] if known is None else [len(each) for each in ([known] if single else known)]
    refuse_unless(sizes == [int(n) for n in n_classes], "classes_ and those of the trees differ")
    if known is not None and "n_classes_" in fitted:
        counts = fitted["n_classes_"]
        refuse_unless(
            ([counts] if single else list(counts)) == sizes, "n_classes_ does not match classes_"
        )


TREE_CLASSES: dict[str, Check] = {
    "classes_?": either(labels("*"), listed(labels("*"))),
    "n_classes_?": either(whole(1), listed(whole(1))),
}


TREE_TABLE: dict[str, Check] = {**COLUMNS, "categories_": columns_of_labels("d")}


def _tree_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    tree, d = fitted["arrays_"], sizes["d"]
    refuse_unless(tree.feature.max() < d, "a tree asks for a feature that is not there")
    refuse_unless(not len(tree.coef) or tree.coef.shape[1] <= d, "a tree has too many coefficients")
    n_outputs, known = fitted["n_outputs_"], fitted.get("classes_")
    n_values = n_outputs
    if known is not None:
        counts = [len(known)] if isinstance(known, np.ndarray) else [len(each) for each in known]
        require_same_classes(fitted, counts)
        refuse_unless(len(counts) == n_outputs, "n_outputs_ does not match classes_")
        n_values = sum(counts)
    refuse_unless(tree.value.shape[1] == n_values, "a tree does not have one value for each class")


def _decision_tree(class_name: str) -> Kind:
    return Kind(
        f"margrove.grove.estimators:{class_name}",
        {
            **TREE_TABLE,
            **(TREE_CLASSES if class_name.endswith("Classifier") else {}),
            "n_outputs_": whole(1),
            "max_features_": whole(1),
            "arrays_": instance_of(_TREE_ARRAYS.home),
        },
        examine=_tree_fits,
    )


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
        "n_draws": optional(whole(1, MOST_DRAWS)),
        "n_rows": whole(1, MANY),
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
    refuse_unless(kind.n_outputs == fitted["n_outputs_"], "n_outputs_ does not match kind_")
    refuse_unless(
        not kind.n_classes or len(kind.n_classes) == kind.n_outputs,
        "n_outputs_ does not match the classes of kind_",
    )
    require_sound_forest(trees, kind, fitted)
    require_same_classes(fitted, kind.n_classes)
    if fitted.get("leaf_samples_") is not None:
        _leaf_samples_fit(fitted["leaf_samples_"], trees)


def _leaf_samples_fit(kept: Any, trees: list[Any]) -> None:
    refuse_unless(len(kept.starts) == len(trees), "leaf_samples_ has another number of trees")
    for starts, ranks, weights, tree in zip(
        kept.starts, kept.ranks, kept.weights, trees, strict=True
    ):
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
        **TREE_CLASSES,
        "oob_decision_function_?": either(array("f8", "* *"), array("f8", "* * *")),
    }
    return Kind(
        f"margrove.ensemble.forest.estimators:{class_name}",
        {
            **TREE_TABLE,
            "n_outputs_": whole(1),
            "max_features_": whole(1),
            "kind_": instance_of(KIND_OF_TREES.home),
            "trees_": listed(instance_of(PACKED_TREE.home)),
            "sampled_?": instance_of(_SAMPLED_ROWS.home),
            "oob_score_?": plain,
            "oob_curve_?": array("f8", "*"),
            **(of_classes if is_classifier else of_numbers),
        },
        examine=_forest_fits,
    )


TREE_PARTS: dict[str, Part] = {
    "TreeArrays": _TREE_ARRAYS,
    "PackedTree": PACKED_TREE,
    "KindOfTrees": KIND_OF_TREES,
    "SampledRows": _SAMPLED_ROWS,
    "LeafSamples": _LEAF_SAMPLES,
    "Residuals": _RESIDUALS,
}

TREE_KINDS: dict[str, Kind] = {
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
}  # fmt: skip
