"""Checks y: class labels become codes, and regression targets become float64."""

from __future__ import annotations

import unicodedata
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from margrove._data.columns import is_missing
from margrove.exceptions import DataWarning, InvalidDataError

__all__ = ["Labels", "check_labels", "check_targets"]

_LONG_LABEL = 1024
_MANY_LABELS, _NEAR, _LARGE = 10_000, 4096, 2**62


@dataclass(frozen=True)
class Labels:
    """Class labels as int64 `codes` into the sorted `classes`."""

    codes: np.ndarray
    classes: np.ndarray

    def codes_among(self, classes: np.ndarray) -> np.ndarray:
        """int64 (n,): the code of each label in `classes`; -1 if it is not one of them."""
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        found = np.array([code_of.get(label, -1) for label in self.classes.tolist()], np.int64)
        codes: np.ndarray = found[self.codes]
        return codes


def check_labels(y: Any, n_rows: int) -> Labels:
    """Check class labels of any type and return codes; classes are sorted by `numpy.unique`."""
    if y is None:
        raise InvalidDataError(
            "This estimator requires y to be passed, but the target y is None: pass one class "
            "label for each row of X."
        )
    array = _label_array(y)
    if array.size == 0 and n_rows:
        raise InvalidDataError(f"y is empty, but X has {n_rows} rows.")
    is_plain = array.ndim == 1 and array.dtype.kind in "biu"
    if not is_plain:
        check_classification_targets(array)
        array = column_or_1d(array, warn=True)
    _require_length(array, n_rows, "y")
    classes, codes = _distinct(array) if is_plain else np.unique(array, return_inverse=True)
    if is_plain and 2 * len(classes) > len(array):  # few distinct integers are always valid
        check_classification_targets(array)
    if classes.dtype == object:
        classes = _readable_classes(classes)
    _warn_of_lookalikes(classes)
    return Labels(codes.astype(np.int64, copy=False), classes)


def _distinct(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same as `numpy.unique`, without sorting if there are many integers near each other."""
    if len(array) >= _MANY_LABELS and array.dtype.kind in "iu":
        least, most = int(array.min()), int(array.max())
        if most - least < _NEAR and least > -_LARGE and most < _LARGE:
            shifted = array.astype(np.int64, copy=False) - least
            is_there = np.zeros(most - least + 1, np.bool_)
            is_there[shifted] = True
            present = np.flatnonzero(is_there)
            code_of = np.cumsum(is_there) - 1
            return (present + least).astype(array.dtype), code_of[shifted]
    classes, codes = np.unique(array, return_inverse=True)
    return classes, codes


def _label_array(y: Any) -> np.ndarray:
    """y as an array; strings stay Python objects, because NumPy's strings drop trailing NULs."""
    if isinstance(y, (list, tuple)) and any(isinstance(label, str) for label in y):
        array = np.empty(len(y), dtype=object)
        array[:] = y
        y = array
    elif type(y).__module__.partition(".")[0] == "pyarrow":
        return _label_array(y.to_pylist())
    elif not isinstance(y, (np.ndarray, list, tuple)) and hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, np.ma.MaskedArray):
        raise InvalidDataError(
            "y is a masked array, whose mask would be ignored. Drop the masked rows."
        )
    y = np.asarray(y)
    if y.dtype.kind in "mMV":
        raise InvalidDataError(f"y has dtype {y.dtype}. Use y.astype(str) for labels.")
    if y.dtype == object and y.ndim == 1:
        kinds = {str if isinstance(label, str) else type(label) for label in y}
        missing = [row for row, label in enumerate(y) if is_missing(label)]
        if missing:
            raise InvalidDataError(
                f"Input y contains NaN or None (first at row {missing[0]}). Drop the rows without "
                "a label."
            )
        if str in kinds and len(kinds) > 1:
            others = sorted(kind.__name__ for kind in kinds if kind is not str)
            raise InvalidDataError(
                f"y mixes strings with {', '.join(others)}. Use one type of label, for example "
                "y.astype(str)."
            )
    elif y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmax(~np.isfinite(y.ravel())))
        raise InvalidDataError(f"Input y contains NaN or infinity (first at row {row}).")
    return y


def _readable_classes(classes: np.ndarray) -> np.ndarray:
    """Classes as a string array if it represents every label exactly, else as Python objects."""
    if not all(isinstance(label, str) for label in classes):
        return np.asarray(classes.tolist()) if len(classes) else classes
    if any(label.endswith("\0") or len(label) > _LONG_LABEL for label in classes):
        return classes
    return np.asarray(classes.tolist(), dtype=str)


def _warn_of_lookalikes(classes: np.ndarray) -> None:
    if classes.dtype.kind not in "UO" or not all(isinstance(label, str) for label in classes):
        return
    seen: dict[str, str] = {}
    for label in classes:
        other = seen.setdefault(unicodedata.normalize("NFC", label), label)
        if other is not label:
            warnings.warn(
                f"The labels {other!a} and {label!a} look the same but are different "
                "strings, so they are different classes. Apply unicodedata.normalize('NFC', ...) "
                "to y if they should be one.",
                DataWarning,
                stacklevel=4,
            )


def check_targets(y: Any, n_rows: int, *, multi_output: bool = False) -> np.ndarray:
    """Check regression targets and return them as finite float64."""
    if y is None:
        raise InvalidDataError(
            "This estimator requires y to be passed, but the target y is None: pass one number "
            "for each row of X."
        )
    if getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M"):
        raise InvalidDataError(
            f"y has dtype {y.dtype}, which is a time. Convert it to numbers, for example seconds."
        )
    if _needs_no_check(y):
        targets = y
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn looks for NaN by a sum
            targets = check_array(
                y, ensure_2d=False, dtype=np.float64, input_name="y", allow_nd=False, order="C"
            )
        if not multi_output:
            targets = column_or_1d(targets, warn=True)
    _require_length(targets, n_rows, "y")
    return targets


def _needs_no_check(y: Any) -> bool:
    """Whether y is a vector of finite float64; scikit-learn's checks take a quarter of a fit."""
    return (
        type(y) is np.ndarray
        and y.ndim == 1
        and y.dtype == np.float64
        and y.flags.c_contiguous
        and len(y) > 0
        and bool(np.isfinite(y).all())
    )


def _require_length(array: Any, n_rows: int, name: str) -> None:
    if len(array) != n_rows:
        raise InvalidDataError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {len(array)}."
        )
