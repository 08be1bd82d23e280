"""Checks X, y and weights together, for `fit` and for the batches of `partial_fit`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data.canonical import CanonicalForm
from margrove._data.labels import Labels, check_labels, check_targets
from margrove._data.rows import RowScan, scan_rows
from margrove._data.tables import check_table, like_fitted
from margrove._data.weights import check_weights, class_factors, moderate
from margrove.exceptions import DataWarning, InvalidDataError

__all__ = [
    "Batch",
    "OneClassLeftError",
    "TargetBatch",
    "TrainingLabels",
    "check_batch",
    "check_target_batch",
    "check_training_labels",
]


class OneClassLeftError(InvalidDataError):
    """All rows with positive weight have the same class."""


@dataclass(frozen=True)
class TrainingLabels:
    """Labels, the given weight of each row, and the factor of each class.

    A row counts weight * factors[code]. The two are multiplied after equal rows are merged: sums of
    weights that are counts are exact, sums of the products would not be. Codes of rows of weight
    zero mean nothing.

    largest   the largest of these products of all rows, if these are some of them only
    """

    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    factors: np.ndarray
    largest: float | None = None

    def counted(self, form: CanonicalForm) -> np.ndarray:
        """The weight of each group of the canonical form, times the factor of its class."""
        with np.errstate(over="ignore", invalid="ignore"):
            return moderate(form.weight * self.factors[self.codes[form.rows]], self.largest)


def check_training_labels(
    y: Any,
    sample_weight: Any,
    class_weight: Any,
    n_rows: int,
    *,
    min_classes: int = 2,
    leave_out_negative: bool = False,
) -> TrainingLabels:
    """Check y, sample_weight and class_weight; classes with weight zero only are left out."""
    weight = check_weights(sample_weight, n_rows, leave_out_negative=leave_out_negative)
    labels = check_labels(y, n_rows)
    kept = weight > 0
    if not kept.all():
        _require_classes(labels.classes[np.unique(labels.codes[kept])], min_classes)
        labels = _without_absent_classes(labels, kept)
    if len(labels.classes) < min_classes:
        raise InvalidDataError(
            f"The data has {len(labels.classes)} class ({labels.classes.tolist()}), but at least "
            f"{min_classes} classes are needed. Check y and sample_weight."
        )
    weight = moderate(weight)
    factors = class_factors(class_weight, labels, weight)
    return TrainingLabels(labels.codes, labels.classes, weight, factors)


def _require_classes(present: np.ndarray, min_classes: int) -> None:
    """Raise OneClassLeftError if too few classes have a positive weight."""
    if len(present) < min_classes:
        raise OneClassLeftError(
            "Invalid input - all samples with positive weights belong to the same class "
            f"({present.tolist()[0]!r}): y contains 1 class after sample_weight trimmed classes "
            f"with zero weights, while a minimum of {min_classes} classes are required. Give rows "
            "of another class a positive sample_weight."
        )


@dataclass(frozen=True)
class Batch:
    """One batch of a stream; its classes are those of the whole stream."""

    X: Any
    labels: TrainingLabels
    attributes: dict[str, Any]
    scan: RowScan


def check_batch(
    estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any, class_weight: Any
) -> Batch | None:
    """Check the arguments of `partial_fit`; None for a batch without rows of positive weight."""
    if class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' is not supported for partial_fit: the counts of a stream "
            "are not known in advance. Pass a dict, for example from "
            "sklearn.utils.class_weight.compute_class_weight."
        )
    stream_classes = _stream_classes(estimator, classes)
    X, attributes = _batch_table(estimator, X, hasattr(estimator, "classes_"))
    if X.shape[0] == 0:
        return None
    weight = check_weights(sample_weight, X.shape[0], allow_all_zero=True)
    labels = check_labels(y, X.shape[0])
    unknown = ~np.isin(labels.classes, stream_classes)
    if unknown.any():
        raise InvalidDataError(
            f"y has the class {labels.classes[unknown].tolist()[0]!r}, which was not in `classes` "
            f"of the first call to partial_fit: {stream_classes.tolist()}."
        )
    codes = np.searchsorted(stream_classes, labels.classes)[labels.codes]
    if not weight.any():
        return None
    weight = moderate(weight)
    factors = class_factors(class_weight, Labels(codes, stream_classes), weight)
    training = TrainingLabels(codes, stream_classes, weight, factors)
    return Batch(X, training, attributes, scan_rows(X))


@dataclass(frozen=True)
class TargetBatch:
    """One batch of a stream, for regression."""

    X: Any
    targets: np.ndarray
    weight: np.ndarray
    attributes: dict[str, Any]
    scan: RowScan


def check_target_batch(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TargetBatch | None:
    """Check the arguments of `partial_fit` of a regressor; None as in `check_batch`."""
    X, attributes = _batch_table(estimator, X, hasattr(estimator, "coef_"))
    if X.shape[0] == 0:
        return None
    weight = check_weights(sample_weight, X.shape[0], allow_all_zero=True)
    targets = check_targets(y, X.shape[0])
    if not weight.any():
        return None
    return TargetBatch(X, targets, moderate(weight), attributes, scan_rows(X))


def _batch_table(estimator: Any, X: Any, is_fitted: bool) -> tuple[Any, dict[str, Any]]:
    """The checked X, and the fitted attributes that describe its columns."""
    if not is_fitted:
        table = check_table(X, estimator, min_rows=0)
        return table.X, table.attributes
    X = like_fitted(X, estimator, min_rows=0)
    attributes = {"n_features_in_": X.shape[1]}
    if hasattr(estimator, "feature_names_in_"):
        attributes["feature_names_in_"] = estimator.feature_names_in_
    return X, attributes


def _stream_classes(estimator: Any, classes: Any) -> np.ndarray:
    known = getattr(estimator, "classes_", None)
    if classes is None:
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return np.asarray(known)
    if np.ndim(classes) != 1:
        raise ValueError(f"classes must be a list of labels. Got {classes!r} instead.")
    given = check_labels(classes, len(classes)).classes
    if known is not None and not np.array_equal(known, given):
        raise ValueError(
            f"`classes={given.tolist()}` is not the same as on the first call to partial_fit, was: "
            f"{np.asarray(known).tolist()}."
        )
    if len(given) < 2:
        raise InvalidDataError(
            f"classes has 1 class ({given.tolist()}), but at least 2 classes are needed."
        )
    return given


def _without_absent_classes(labels: Labels, kept: np.ndarray) -> Labels:
    present = np.unique(labels.codes[kept])
    if len(present) == len(labels.classes):
        return labels
    absent = np.delete(labels.classes, present)
    warnings.warn(
        f"All rows of class {', '.join(repr(label) for label in absent.tolist())} have "
        "sample_weight 0, so the class is left out of classes_.",
        DataWarning,
        stacklevel=4,
    )
    new_code = np.zeros(len(labels.classes), dtype=np.int64)
    new_code[present] = np.arange(len(present))
    return Labels(new_code[labels.codes], labels.classes[present])
