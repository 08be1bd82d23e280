"""Random forests and extremely randomised trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.pairs import Pair, class_of, columns_of, parameters_for
from margrove.exchange.scikit_learn.trees import (
    classes_of,
    kind_of_trees,
    packed_tree,
    sklearn_tree,
)
from margrove.grove.serve import unfolded

__all__ = ["FORESTS"]

_OUT_OF_BAG = ("oob_score_", "oob_decision_function_", "oob_prediction_")


def _read(theirs: Any) -> dict[str, Any]:
    kind = kind_of_trees(theirs, int(theirs.n_features_in_))
    return {
        **columns_of(theirs),
        **classes_of(theirs),
        **_out_of_bag(theirs),
        "categories_": {},
        "n_outputs_": int(theirs.n_outputs_),
        "max_features_": int(theirs.estimators_[0].max_features_),
        "kind_": kind,
        "trees_": [packed_tree(tree.tree_, kind) for tree in theirs.estimators_],
    }


def _out_of_bag(model: Any) -> dict[str, Any]:
    return {name: getattr(model, name) for name in _OUT_OF_BAG if hasattr(model, name)}


def _write(ours: Any) -> dict[str, Any]:
    name = type(ours).__name__
    if getattr(ours, "voting", "soft") == "hard":
        raise ConversionError(
            name,
            "voting='hard' counts votes, and scikit-learn's forests average probabilities",
            "Convert it with model.set_params(voting='soft') if averages are good enough",
        )
    counts = list(ours.kind_.n_classes) or None
    codes = _codes_of_classes(ours)
    template = _template(ours)
    trees = []
    for packed in ours.trees_:
        arrays = unfolded(packed, ours.kind_)
        tree = type(template)(**template.get_params(deep=False))
        tree.tree_ = sklearn_tree(arrays, ours.n_features_in_, counts, name)
        vars(tree).update(codes)
        trees.append(tree)
    known = {
        **columns_of(ours),
        **_out_of_bag(ours),
        "n_outputs_": ours.n_outputs_,
        "estimator_": template,
        "estimators_": trees,
    }
    if counts is not None:
        known |= {"classes_": ours.classes_, "n_classes_": ours.n_classes_}
    return known


def _template(ours: Any) -> Any:
    """An unfitted tree of scikit-learn with the parameters of the forest."""
    task = "Classifier" if ours.kind_.n_classes else "Regressor"
    kind: Any = class_of(
        f"sklearn.tree:{'ExtraTree' if ours._splitter == 'random' else 'DecisionTree'}{task}"
    )
    return kind(**parameters_for(kind, ours._template()))


def _codes_of_classes(ours: Any) -> dict[str, Any]:
    """Attributes of the trees of a forest: classes as numbers, no feature names."""
    known = {
        "n_features_in_": ours.n_features_in_,
        "n_outputs_": ours.n_outputs_,
        "max_features_": ours.max_features_,
    }
    codes = [np.arange(float(n)) for n in ours.kind_.n_classes]
    if not codes:
        return known
    counts = np.array(ours.kind_.n_classes, np.intp)
    if len(codes) == 1:
        return known | {"classes_": codes[0], "n_classes_": counts[0]}
    return known | {"classes_": codes, "n_classes_": counts}


FORESTS = tuple(
    Pair(f"sklearn.ensemble:{name}", f"margrove.ensemble.forest.estimators:{name}", _read, _write)
    for kind in ("RandomForest", "ExtraTrees")
    for name in (f"{kind}Classifier", f"{kind}Regressor")
)
