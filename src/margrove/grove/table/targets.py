"""y and weights as integers, whose sums do not depend on the order of the rows.

Weights that are whole numbers stay as they are ("counted"); others are scaled by a power of two.
Classes are numbered across all outputs. Numbers become

    g_i = w_i (y_i - centre) 2^exponent        w_i the whole weight

rounded, with the exponent as large as sums in int64 allow, the same for all outputs. A node whose
targets span a small part of this range gets its own centre and exponent, so that no precision is
lost to the offset or to the size of other targets.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._runtime import kernel

__all__ = [
    "BITS_OF_SUMS",
    "MEDIAN_WEIGHT_BITS",
    "Targets",
    "bits_of",
    "class_targets",
    "class_weights_of_outputs",
    "columns_of_labels",
    "fitting_exponent",
    "number_targets",
    "power_of_two_near",
    "quantise",
    "quantise_rows",
    "samples_of",
    "which_count",
    "whole_weights",
]

BITS_OF_SUMS = 61
MEDIAN_WEIGHT_BITS = 31  # medians need half of the bits for the targets
_BITS_OF_WEIGHTS = 52
_LARGEST_EXPONENT = 1000  # of a power of two in float64
_MOST_COUNTED = 2**31  # squares of smaller class counts fit into int64


class Targets(NamedTuple):
    """What each row adds to the statistics of its nodes.

    labels    int32 (n * outputs,)  class numbers across all outputs; empty for regression
    numbers   int64 (n * outputs,)  g, see the module; empty for classification
    raw       float64 (n * outputs,)  y itself; empty for classification
    weight    int64 (n,)  in units of `unit`
    real      float64 (n,)  weights as given
    samples   int64 (n,)  how many samples the row stands for
    starts    int64 (outputs + 1,)  first statistic of each output
    counted   whether weights are whole numbers with a small sum
    plain     whether each row has weight 1 and stands for one sample
    unit      float64: weight * unit = real
    """

    labels: np.ndarray
    numbers: np.ndarray
    raw: np.ndarray
    weight: np.ndarray
    real: np.ndarray
    samples: np.ndarray
    starts: np.ndarray
    counted: bool
    plain: bool
    unit: float


def class_targets(
    labels: np.ndarray, n_classes: list[int], weight: np.ndarray, samples: np.ndarray
) -> Targets:
    """Targets of a classification; labels (n, outputs) are class codes of each output."""
    starts = np.concatenate([[0], np.cumsum(n_classes)]).astype(np.int64)
    whole, unit, counted = whole_weights(weight, n_outputs=len(n_classes))
    return Targets(
        (labels + starts[:-1]).astype(np.int32).ravel(),
        np.empty(0, np.int64),
        np.empty(0),
        whole,
        weight,
        samples,
        starts,
        counted,
        _is_plain(whole, samples),
        unit,
    )


def number_targets(
    y: np.ndarray, weight: np.ndarray, samples: np.ndarray, *, bits: int = _BITS_OF_WEIGHTS
) -> Targets:
    """Targets of a regression; y is (n, outputs). Weights take `bits` of the 61 bits of a sum."""
    whole, unit, counted = whole_weights(weight, bits)
    return Targets(
        np.empty(0, np.int32),
        np.zeros(y.size, np.int64),
        np.array(y, dtype=np.float64, order="C").ravel(),
        whole,
        weight,
        samples,
        np.arange(y.shape[1] + 1, dtype=np.int64),
        counted,
        _is_plain(whole, samples),
        unit,
    )


def _is_plain(whole: np.ndarray, samples: np.ndarray) -> bool:
    return bool((whole == 1).all() and (samples == 1).all())


def whole_weights(
    weight: np.ndarray, bits: int = _BITS_OF_WEIGHTS, n_outputs: int = 1
) -> tuple[np.ndarray, float, bool]:
    """Weights as whole numbers, their unit, and whether they are exact with a small sum.

    Halves, quarters and so on become whole numbers of a smaller unit.
    """
    total = float(weight.sum())
    for exponent in (0, 3, 10):
        scaled = np.ldexp(weight, exponent)
        if np.ldexp(total, exponent) * n_outputs**0.5 < _MOST_COUNTED and np.all(
            scaled == np.floor(scaled)
        ):
            return scaled.astype(np.int64), float(np.ldexp(1.0, -exponent)), True
    # Not from the sum of the weights: its rounding depends on the order of the rows.
    exponent = bits - int(np.frexp(float(weight.max()) * len(weight))[1])
    # At least 1: a tiny weight is not zero.
    whole = np.maximum(np.rint(np.ldexp(weight, exponent)), 1.0).astype(np.int64)
    return whole, float(np.ldexp(1.0, -exponent)), False


@kernel(bare=True)
def quantise(targets, rows, start, end, lower, upper, at_zero, centre, exponent):
    """Write g of rows[start:end] to targets.numbers, and set centre[o] and exponent[o].

    lower and upper are the smallest and largest targets of each output.
    """
    total = 0
    for p in range(start, end):
        total += targets.weight[rows[p]]
    largest = 0.0
    n_outputs = len(targets.starts) - 1
    for o in range(n_outputs):
        middle = 0.0 if at_zero and lower[o] <= 0.0 else 0.5 * lower[o] + 0.5 * upper[o]
        centre[o] = middle
        largest = max(largest, abs(lower[o] - middle), abs(upper[o] - middle))
    power = fitting_exponent(largest, total)
    for o in range(n_outputs):
        exponent[o] = power
    quantise_rows(targets, rows, start, end, centre, power)


@kernel(inner=True)
def quantise_rows(targets, rows, start, end, centre, power):
    """Write g of rows[start:end] to targets.numbers, with the exponent `power`."""
    factor = 2.0 ** float(power)
    n_outputs = len(targets.starts) - 1
    for o in range(n_outputs):
        for p in range(start, end):
            row = rows[p]
            cell = row * n_outputs + o
            scaled = (targets.raw[cell] - centre[o]) * factor
            if targets.counted:
                targets.numbers[cell] = targets.weight[row] * np.int64(np.rint(scaled))
            else:
                targets.numbers[cell] = np.int64(np.rint(targets.weight[row] * scaled))


@kernel(inner=True)
def fitting_exponent(largest, total_weight):
    """The largest power of two that sums of targets up to `largest` can be scaled by."""
    if not largest > 0.0:
        return 0
    return min(BITS_OF_SUMS - bits_of(largest) - bits_of(float(total_weight)), _LARGEST_EXPONENT)


@kernel(inner=True)
def bits_of(number):
    """The smallest k with |number| < 2^k."""
    return np.int64(math.frexp(number)[1])


# -- y and weights as users give them --


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
    """The rows with positive weight; a slice of all rows if there are no others."""
    positive = weight > 0
    return slice(None) if positive.all() else np.flatnonzero(positive)


def samples_of(weight: np.ndarray, sample_weight: Any) -> np.ndarray:
    """The number of samples that each row stands for: its weight if all are whole, else one."""
    if sample_weight is None or np.any(weight != np.floor(weight)) or weight.sum() > 2**52:
        return np.ones(len(weight), np.int64)
    return weight.astype(np.int64)


def power_of_two_near(y: np.ndarray) -> float:
    """The power of two to divide targets by, so that their squares do not overflow; mostly 1."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0 or 1e-100 < largest < 1e100:
        return 1.0
    return float(2.0 ** int(np.clip(np.frexp(largest)[1], -1000, 1000)))


def class_weights_of_outputs(class_weight: Any, n_outputs: int) -> list[Any]:
    """`class_weight` of each output, checked."""
    if not isinstance(class_weight, list):
        if isinstance(class_weight, dict) and n_outputs > 1:
            raise ValueError(
                "For multi-output, class_weight should be a list of dicts, or a valid string."
            )
        return [class_weight] * n_outputs
    if n_outputs == 1:
        raise ValueError("class_weight is a list, but y has one output. Use a dict.")
    if len(class_weight) != n_outputs:
        raise ValueError(
            "For multi-output, number of elements in class_weight should match number of "
            f"outputs: got {len(class_weight)} for {n_outputs}."
        )
    return class_weight
