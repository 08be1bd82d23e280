"""The features with the largest weights of any linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove.exceptions import InvalidDataError
from margrove.facts.machine_values import StrongFeatures, WeightedFeature
from margrove.facts.models.expansions import against_the_rest
from margrove.facts.plain_values import require_whole
from margrove.margin.svm import pairs_of

__all__ = [
    "feature_names_of",
    "is_joint",
    "machine_names",
    "strongest_features",
    "strongest_of",
    "weights_of",
]

_BITS_THAT_COUNT = 30  # of a weight, if weights are compared


def strongest_features(
    model: Any, n: int = 10, feature_names: Any = None
) -> tuple[StrongFeatures, ...]:
    """The features with the largest weights, for each machine of a linear model.

    Parameters
    ----------
    model : fitted estimator with `coef_`
        Of margrove (LinearSVC, LinearSVR, Perceptron, machines with the linear kernel) or under
        scikit-learn's API.
    n : int, default=10
        Largest number of features of each machine. Features of weight zero are left out.
    feature_names : sequence of str, optional
        A name for each feature, such as `TfidfVectorizer().get_feature_names_out()`. By default
        those of the training data, or else "x0", "x1" and so on.

    Returns
    -------
    tuple of StrongFeatures
        One for each row of `coef_`; features with the largest absolute weights come first, if tied
        the first column.

    Examples
    --------
    >>> from margrove import LinearSVC
    >>> from margrove.facts import strongest_features
    >>> model = LinearSVC().fit([[0, 0, 1], [0, 1, 0], [2, 0, 1], [2, 1, 0]], list("aabb"))
    >>> (only,) = strongest_features(model, n=1, feature_names=["size", "red", "green"])
    >>> only.machine, only.features[0].name
    ("'b' against 'a'", 'size')
    """
    n = require_whole("n", n, 1, " of features")
    weights = weights_of(model)
    names = feature_names_of(model, weights.shape[1], feature_names)
    return tuple(
        StrongFeatures(machine=machine, features=strongest_of(weights[[k]], names, n))
        for k, machine in enumerate(machine_names(model, weights.shape[0]))
    )


def weights_of(model: Any) -> Any:
    """`coef_` as an array or a CSR array of shape (n_machines, n_features)."""
    if hasattr(model, "steps"):
        raise TypeError(
            f"A linear model with coef_ is needed. Got {type(model).__name__}: pass its last step, "
            "model[-1], and feature_names=model[:-1].get_feature_names_out()."
        )
    check_is_fitted(model)
    coef = getattr(model, "coef_", None)  # a machine with another kernel has none
    if coef is None:
        raise TypeError(
            f"A linear model with coef_ is needed, but this {type(model).__name__} has none."
        )
    if sp.issparse(coef):
        rows = sp.csr_array(coef, copy=True)
        rows.sum_duplicates()
        return rows
    coef = np.atleast_2d(np.asarray(coef))
    if coef.ndim != 2:
        raise TypeError(
            f"coef_ of a linear model has one or two axes. That of this {type(model).__name__} has "
            f"shape {coef.shape}."
        )
    return coef


def feature_names_of(model: Any, n_features: int, given: Any = None) -> Any:
    """The given names, checked, or those of the training data; None if there are none."""
    if given is None:
        return getattr(model, "feature_names_in_", None)
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise InvalidDataError(
            f"feature_names must be a sequence of {n_features} names, one for each feature. Got "
            f"{given!r}."
        )
    names = given if isinstance(given, (list, tuple)) else np.asarray(given)
    if len(names) != n_features:
        raise InvalidDataError(
            f"feature_names must have one name for each of the {n_features} features of the model. "
            f"Got {len(names)}."
        )
    if any(np.ndim(name) != 0 for name in names[:1]):
        raise InvalidDataError(
            f"feature_names must be one name for each feature. Got shape {np.shape(names)}."
        )
    return names


def machine_names(model: Any, n_machines: int) -> list[str]:
    """Names for the rows of `coef_`."""
    if hasattr(model, "classes_"):
        classes = np.asarray(model.classes_).tolist()
        n_pairs = len(classes) * (len(classes) - 1) // 2
        if n_machines == n_pairs > 1 and _has_pairs(model, len(classes)):
            return [f"{classes[i]!r} against {classes[j]!r}" for i, j in pairs_of(len(classes))]
        if n_machines == len(classes) > 2 and is_joint(model):
            return [f"{name!r} among all" for name in classes]
        names = against_the_rest(classes)
        if len(names) == n_machines:
            return names
    elif n_machines == 1:
        is_regressor = get_tags(model).estimator_type == "regressor"
        return ["regression" if is_regressor else "one class"]
    return [f"output {k}" for k in range(n_machines)]


def _has_pairs(model: Any, n_classes: int) -> bool:
    """Whether rows of `coef_` are pairs; for three classes, `dual_coef_` has one row less then."""
    coef = getattr(model, "dual_coef_", None)
    return n_classes != 3 or (coef is not None and coef.shape[0] == 2)


def is_joint(model: Any) -> bool:
    """Whether all classes are one joint problem, that of Crammer and Singer."""
    return getattr(model, "multi_class", None) == "crammer_singer"


def strongest_of(row: Any, names: Any, n: int) -> tuple[WeightedFeature, ...]:
    """The n largest of one row of weights (1, d), dense or CSR."""
    columns, weights = _nonzero(row)
    chosen = _largest(np.abs(weights), n)
    return tuple(
        WeightedFeature(
            name=f"x{column}" if names is None else str(names[column]),
            index=int(column),
            weight=float(weight),
        )
        for column, weight in zip(columns[chosen], weights[chosen], strict=True)
    )


def _nonzero(row: Any) -> tuple[np.ndarray, np.ndarray]:
    """The columns, ascending, and values of the nonzero entries."""
    if sp.issparse(row):
        kept = np.flatnonzero(row.data)
        return row.indices[kept], row.data[kept]
    columns = np.flatnonzero(row[0])
    return columns, row[0][columns]


def _largest(sizes: np.ndarray, n: int) -> np.ndarray:
    """The places of the n largest sizes, the largest first; if tied, the first.

    Columns that are copies of each other have weights that differ by rounding; these count as tied.
    A partition finds the smallest of the n in linear time, so only n are sorted. Which of several
    tied places it returns is undefined, so only the size is used.
    """
    digits, power = np.frexp(sizes)
    sizes = np.ldexp(np.rint(np.ldexp(digits, _BITS_THAT_COUNT)), power - _BITS_THAT_COUNT)
    if len(sizes) > n:
        least = np.partition(sizes, len(sizes) - n)[len(sizes) - n]
        above = np.flatnonzero(sizes > least)
        places = np.append(above, np.flatnonzero(sizes == least)[: n - len(above)])
    else:
        places = np.arange(len(sizes))
    return places[np.argsort(-sizes[places], kind="stable")]
