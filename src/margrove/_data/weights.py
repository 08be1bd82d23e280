"""Checks weights of rows and of classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array

from margrove._data.labels import Labels
from margrove.exceptions import DataWarning, InvalidDataError

__all__ = ["check_weights", "class_factors", "moderate"]


def check_weights(
    sample_weight: Any,
    n_rows: int,
    *,
    allow_all_zero: bool = False,
    leave_out_negative: bool = False,
) -> np.ndarray:
    """Check sample_weight: one finite weight >= 0 for each row; None means ones.

    Negative weights raise an error, or, with `leave_out_negative` (as in support vector machines),
    become zero with a warning.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, np.ma.MaskedArray):
        raise InvalidDataError(
            "sample_weight is a masked array, whose mask would be ignored. Drop the masked rows."
        )
    weight = np.asarray(sample_weight)
    if weight.dtype.kind in "mMV":
        raise InvalidDataError(f"sample_weight has dtype {weight.dtype}, which is not a number.")
    if isinstance(sample_weight, np.ndarray) and weight.ndim == 0:
        raise TypeError(  # a type error in scikit-learn, too
            "Input should have at least 1 dimension i.e. satisfy `len(x.shape) > 0`, got scalar "
            f"`{weight.astype(np.float64)!r}` instead. sample_weight needs one weight for each of "
            f"the {n_rows} rows."
        )
    if weight.ndim != 1:
        raise InvalidDataError(
            "Sample weights must be a 1D array, got "
            f"{f'shape {weight.shape}' if weight.ndim else repr(sample_weight)}: one weight for "
            f"each of the {n_rows} rows is needed."
        )
    is_float64 = weight.dtype == np.float64 and weight.flags.c_contiguous and weight.size > 0
    if not is_float64 or not np.isfinite(weight).all():
        weight = _as_float64(weight)
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight.shape == ({len(weight)},), expected ({n_rows},)!")
    if not allow_all_zero and not np.any(weight > 0) and (leave_out_negative or not weight.any()):
        found = "positive for no row" if weight.any() else "zero for all rows"
        raise InvalidDataError(
            f"Invalid input - all samples have zero or negative weights. sample_weight is {found}: "
            "at least one row needs a positive weight."
        )
    return _without_negative(weight, leave_out_negative)


def _as_float64(weight: np.ndarray) -> np.ndarray:
    try:
        return check_array(
            weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight"
        )
    except OverflowError as error:
        raise InvalidDataError(f"sample_weight is too large for float64: {error}.") from error


def _without_negative(weight: np.ndarray, leave_out: bool) -> np.ndarray:
    negative = weight < 0
    if not negative.any():
        return weight
    row = int(np.argmax(negative))
    if not leave_out:
        raise InvalidDataError(
            "Negative values in data passed to `sample_weight`: sample_weight is negative at row "
            f"{row} ({weight[row]:g}). Use weights >= 0."
        )
    warnings.warn(
        f"{int(negative.sum())} rows have a negative sample_weight and are left out (first: row "
        f"{row}).",
        DataWarning,
        stacklevel=5,
    )
    return np.where(negative, 0.0, weight)


def class_factors(
    class_weight: Mapping[Any, float] | str | None, labels: Labels, weight: np.ndarray
) -> np.ndarray:
    """The factor that `class_weight` puts on each class of `labels.classes`.

    "balanced" is total / (number of classes * weight of the class), as in scikit-learn but with
    weights for counts, so that repeating a row and weighting it are the same.
    """
    classes = labels.classes
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        total = _class_totals(labels.codes, weight, len(classes))
        present = total > 0
        factors = np.zeros(len(classes))
        with np.errstate(over="ignore"):  # `moderate` caps the products with the weights
            factors[present] = total.sum() / (present.sum() * total[present])
        return factors
    known = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in class_weight if label not in known]
    if unknown and len(class_weight) - len(unknown) < len(classes):
        raise ValueError(
            f"class_weight names the class {unknown[0]!r}, which is not in y, and leaves out one "
            f"that is. The classes are {classes.tolist()}."
        )
    factors = np.ones(len(classes))
    for label, factor in class_weight.items():
        if not isinstance(factor, Real) or not 0 < factor < np.inf:
            raise ValueError(
                f"class_weight[{label!r}] must be a positive finite number. Got {factor!r} instead."
            )
        if label in known:
            factors[known[label]] = float(factor)
    return factors


def _class_totals(codes: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """The weight of each class; the sums do not depend on the order of the rows."""
    if np.all(weight == np.floor(weight)):  # counts add up exactly in any order
        return np.bincount(codes, weights=weight, minlength=n_classes)
    return np.array([math.fsum(weight[codes == code]) for code in range(n_classes)])


def moderate(weight: np.ndarray, largest: float | None = None) -> np.ndarray:
    """Bring extreme weights to a range in which sums and products neither overflow nor vanish.

    Tiny weights are multiplied by a power of two, which is exact; huge weights are capped.

    largest : the largest weight of all rows, if `weight` are those of some rows only
    """
    largest = weight.max() if largest is None else largest
    if largest < 1e-150:
        weight = np.ldexp(weight, 1 - int(np.frexp(largest)[1]))
    return np.minimum(weight, 1e290)
