"""Gradient boosting on binned features.

scikit-learn compares float64 numbers here, as margrove does. Categories are encoded by a
transformer that puts their columns first. Sets of categories are bits, in the same order in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.ensemble.gradient import kind_of
from margrove.ensemble.gradient.losses import GradientLoss, gradient_loss_of
from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.gradient_boosting import boosted, require_loss_of_sklearn
from margrove.exchange.scikit_learn.pairs import Pair, class_of, columns_of
from margrove.exchange.scikit_learn.trees import nodes_as_arrays
from margrove.grove.serve import LEAF, PackedTree, packed_of, unfolded

__all__ = ["HIST_GRADIENT_BOOSTING"]

_LOSSES = {
    False: ("squared_error", "absolute_error", "poisson", "gamma", "quantile"),
    True: ("log_loss",),  # of classes
}


# -- from scikit-learn --


def _read(theirs: Any) -> dict[str, Any]:
    loss = _loss_of(theirs)
    n_features = int(theirs.n_features_in_)
    column_of, categories = _columns_and_categories(theirs, n_features)
    n_categories = np.zeros(n_features, np.int64)
    for column, labels in categories.items():
        n_categories[column] = len(labels)
    rounds = [
        [_packed(predictor, column_of, n_categories) for predictor in predictors]
        for predictors in theirs._predictors
    ]
    start = np.array(theirs._baseline_prediction, np.float64).ravel()
    unknown = np.full(len(rounds) + 1, np.nan)
    return {
        **columns_of(theirs),
        **boosted(theirs, loss, start, rounds, n_categories, unknown),
        "categories_": categories,
        "do_early_stopping_": bool(theirs.do_early_stopping_),
        "train_score_": np.array(theirs.train_score_, np.float64),
        "validation_score_": np.array(theirs.validation_score_, np.float64),
        "is_categorical_": theirs.is_categorical_,
    }


def _loss_of(theirs: Any) -> GradientLoss:
    name = theirs.loss
    if not isinstance(name, str):
        raise ConversionError(
            type(theirs).__name__,
            f"its loss is an object, {type(name).__name__}",
            "Fit it with a loss by name",
        )
    if name == "quantile":
        return gradient_loss_of(name, quantile=float(theirs.quantile))
    n_classes = len(theirs.classes_) if hasattr(theirs, "classes_") else None
    return gradient_loss_of(name, n_classes=n_classes)


def _columns_and_categories(
    theirs: Any, n_features: int
) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """The column of X of each feature of the trees, and the labels of the categorical columns."""
    if theirs.is_categorical_ is None:
        return np.arange(n_features), {}
    mask = np.asarray(theirs.is_categorical_, dtype=bool)
    columns = np.flatnonzero(mask)
    encoder = theirs._preprocessor.named_transformers_["encoder"]
    labels = {
        int(column): _labels(found)
        for column, found in zip(columns, encoder.categories_, strict=True)
    }
    return np.concatenate([columns, np.flatnonzero(~mask)]), labels


def _labels(found: np.ndarray) -> np.ndarray:
    """The labels without the missing value, which is the last of them and has no code."""
    if found.dtype.kind == "f":
        found = found[~np.isnan(found)]
        is_whole = bool(np.all(found == np.floor(found)) and np.all(np.abs(found) < 2**53))
        return found.astype(np.int64) if is_whole else found
    kept = [label for label in found.tolist() if label is not None and label == label]  # noqa: PLR0124
    labels = np.empty(len(kept), dtype=object)
    labels[:] = kept
    return labels


def _packed(predictor: Any, column_of: np.ndarray, n_categories: np.ndarray) -> PackedTree:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"] == 1
    feature = column_of[np.where(is_leaf, 0, nodes["feature_idx"])]
    is_subset = ~is_leaf & (nodes["is_categorical"] == 1)
    words, starts = _sets(predictor, feature, is_subset, n_categories)
    arrays = nodes_as_arrays(
        np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        feature=feature,
        threshold=nodes["num_threshold"],
        missing_left=nodes["missing_go_to_left"],
        weight=nodes["count"].astype(np.float64),
        n_samples=nodes["count"],
        value=nodes["value"][:, None],
        impurity=np.zeros(len(nodes)),
        n_features=len(n_categories),
        decrease=nodes["gain"],
        is_subset=is_subset,
        set_start=starts,
        set_size=n_categories[feature],
        words=words,
    )
    arrays.require_sound()
    return packed_of(arrays, kind_of(n_categories))


def _sets(
    predictor: Any, feature: np.ndarray, is_subset: np.ndarray, n_categories: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The words of the sets of all nodes, one after the other, and where each set starts."""
    starts = np.zeros(len(feature), np.int64)
    words = [np.empty(0, np.uint32)]
    used = 0
    for node in np.flatnonzero(is_subset).tolist():
        size = int(n_categories[feature[node]]) // 32 + 1
        bits = predictor.raw_left_cat_bitsets[predictor.nodes["bitset_idx"][node]]
        words.append(np.asarray(bits[:size], np.uint32))
        starts[node], used = used, used + size
    return np.concatenate(words), starts


# -- to scikit-learn --


def _write(ours: Any) -> dict[str, Any]:
    is_classifier = hasattr(ours, "classes_")
    require_loss_of_sklearn(ours, _LOSSES[is_classifier])
    if ours.categories_:
        raise ConversionError(
            type(ours).__name__,
            "it splits by categories, which scikit-learn encodes by a transformer that only its "
            "own fit makes",
            "Encode the categories as numbers first, for example with OneHotEncoder, and fit again",
        )
    known = {
        **columns_of(ours),
        "_predictors": [[_predictor(packed, ours) for packed in trees] for trees in ours._rounds],
        "_baseline_prediction": ours._scores.start[None].copy(),
        "_bin_mapper": _bin_mapper(ours),
        "_preprocessor": None,
        "_is_categorical_remapped": None,
        "is_categorical_": None,
        "_n_features": ours.n_features_in_,
        "_in_fit": False,
        "n_trees_per_iteration_": int(ours._loss.n_scores),
        "do_early_stopping_": ours.do_early_stopping_,
        "train_score_": ours.train_score_,
        "validation_score_": ours.validation_score_,
    }
    if is_classifier:
        from sklearn.preprocessing import LabelEncoder

        known |= {"classes_": ours.classes_, "_label_encoder": LabelEncoder().fit(ours.classes_)}
    return known | {"_loss": _loss_of_sklearn(ours, known)}


def _predictor(packed: PackedTree, ours: Any) -> Any:
    """A tree as scikit-learn's `TreePredictor`."""
    from sklearn.ensemble._hist_gradient_boosting.common import (
        PREDICTOR_RECORD_DTYPE,
        X_BITSET_INNER_DTYPE,
    )
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    tree = unfolded(packed, ours._kind)
    inner = tree.kind != LEAF
    nodes = np.zeros(len(tree), dtype=PREDICTOR_RECORD_DTYPE)
    nodes["value"], nodes["count"] = tree.value[:, 0], tree.n_samples
    nodes["feature_idx"] = np.where(inner, tree.feature, 0)
    nodes["num_threshold"] = np.where(inner, tree.threshold, 0.0)
    nodes["missing_go_to_left"] = inner & (tree.missing_child == 0)
    nodes["left"][inner] = tree.children[tree.first_child[inner]]
    nodes["right"][inner] = tree.children[tree.first_child[inner] + 1]
    nodes["gain"], nodes["depth"], nodes["is_leaf"] = tree.decrease, tree.depth, ~inner
    no_sets = np.zeros((0, 8), dtype=X_BITSET_INNER_DTYPE)
    return TreePredictor(nodes, no_sets, no_sets)


def _bin_mapper(ours: Any) -> Any:
    """A bin mapper with what prediction needs: that no column is categorical."""
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    mapper = _BinMapper(n_bins=ours.max_bins + 1)
    mapper.is_categorical_ = np.zeros(ours.n_features_in_, np.uint8)
    mapper.bin_thresholds_ = [np.empty(0)] * ours.n_features_in_
    mapper.missing_values_bin_idx_ = ours.max_bins
    return mapper


def _loss_of_sklearn(ours: Any, known: dict[str, Any]) -> Any:
    """The loss object that scikit-learn's own fit would make."""
    peer = class_of(f"sklearn.ensemble:{type(ours).__name__}")(**_write_settings(ours))
    vars(peer).update(known)
    return peer._get_loss(sample_weight=None)


def _write_settings(ours: Any) -> dict[str, Any]:
    loss = getattr(ours, "_loss", None)
    if loss is None:
        return {}
    return {"loss": loss.name} | ({"quantile": loss.quantile} if loss.name == "quantile" else {})


HIST_GRADIENT_BOOSTING = tuple(
    Pair(
        f"sklearn.ensemble:HistGradientBoosting{task}",
        f"margrove.ensemble.gradient.hist_estimators:HistGradientBoosting{task}",
        _read,
        _write,
        write_settings=_write_settings,
    )
    for task in ("Classifier", "Regressor")
)
