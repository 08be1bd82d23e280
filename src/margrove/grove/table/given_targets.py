"""y, weights and class weights as they are given to trees and forests."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["MEDIAN_WEIGHT_BITS", "class_weights_of_outputs", "columns_of_labels",
           "power_of_two_near", "samples_of", "which_count"]  # fmt: skip

MEDIAN_WEIGHT_BITS = 31  # medians want half of the bits for the targets


def columns_of_labels(y: Any) -> list[Any]:
    """One array of labels for each output."""
    if sp.issparse(y):
        raise TypeError(
            "Sparse data was passed for y, but dense data is required. Use '.toarray()' to convert "
            "to a dense numpy array."
        )
    array = y.to_numpy() if hasattr(y, "to_numpy") else y
    nested = (list, tuple, np.ndarray)
    if isinstance(array, (list, tuple)) and len(array) and isinstance(array[0], nested):
        array = np.asarray(array)
    if isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[1] > 1:
        return [array[:, o] for o in range(array.shape[1])]
    return [y]


def which_count(weight: np.ndarray) -> np.ndarray | slice:
    """Rows that count; all of them without a copy."""
    positive = weight > 0
    return slice(None) if positive.all() else np.flatnonzero(positive)


def samples_of(weight: np.ndarray, sample_weight: Any) -> np.ndarray:
    """How many samples each row stands for: its weight, if all weights are whole, else one."""
    if sample_weight is None or np.any(weight != np.floor(weight)) or weight.sum() > 2**52:
        return np.ones(len(weight), np.int64)
    return weight.astype(np.int64)


def power_of_two_near(y: np.ndarray) -> float:
    """What targets are divided by, exactly, where their squares would leave floating point."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0 or 1e-100 < largest < 1e100:
        return 1.0
    return float(2.0 ** int(np.clip(np.frexp(largest)[1], -1000, 1000)))


def class_weights_of_outputs(class_weight: Any, n_outputs: int) -> list[Any]:
    """One for each output."""
    if not isinstance(class_weight, list):
        if isinstance(class_weight, dict) and n_outputs > 1:
            raise ValueError(
                "For multi-output, class_weight should be a list of dicts, or a valid string."
            )
        return [class_weight] * n_outputs
    if n_outputs == 1:
        raise ValueError("class_weight is a list, but y has one output: give a dict.")
    if len(class_weight) != n_outputs:
        raise ValueError(
            "For multi-output, number of elements in class_weight should match number of "
            f"outputs: got {len(class_weight)} for {n_outputs}."
        )
    return class_weight
