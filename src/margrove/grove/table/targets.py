"""y and weights as integers, whose sums do not depend on the order of the rows.

Weights that are whole numbers stay as they are ("counted"); others are scaled by a power of two.
Classes are numbered through over all outputs. Numbers become

    g_i = w_i (y_i - centre) 2^exponent        w_i the whole weight

rounded, with the exponent as large as sums in int64 allow, the same for all outputs. A node whose
targets span a small part of this range gets a centre and an exponent of its own, so that nothing is
lost to the offset or to the size of the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel

__all__ = ["BITS_OF_SUMS", "Targets", "bits_of", "class_targets", "fitting_exponent",
           "number_targets", "quantise", "whole_weights"]  # fmt: skip

BITS_OF_SUMS = 61
_BITS_OF_WEIGHTS = 52
_LARGEST_EXPONENT = 1000  # of two, as a float64
_MOST_COUNTED = 2**31  # squares of class counts then fit int64


class Targets(NamedTuple):
    """What a row adds to the statistics of a node.

    labels    int32 (n * outputs,)  number of the class, through all outputs; empty for regression
    numbers   int64 (n * outputs,)  g, see the module; empty for classification
    raw       float64 (n * outputs,)  y itself; empty for classification
    weight    int64 (n,)  in units of `unit`
    real      float64 (n,)  as given
    samples   int64 (n,)  how many samples the row stands for
    starts    int64 (outputs + 1,)  first statistic of each output
    counted   whether weights are whole numbers and few
    plain     whether each row counts once
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
    """Labels (n, outputs) as codes of each output's classes."""
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
    """Numbers (n, outputs). What weights do not take of 61 bits is left to the numbers."""
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
    """Weights as whole numbers, their unit, and whether nothing was rounded and they are few.

    Halves, quarters and so on are whole numbers of a smaller unit.
    """
    total = float(weight.sum())
    for exponent in (0, 3, 10):
        scaled = np.ldexp(weight, exponent)
        if np.ldexp(total, exponent) * n_outputs**0.5 < _MOST_COUNTED and np.all(
            scaled == np.floor(scaled)
        ):
            return scaled.astype(np.int64), float(np.ldexp(1.0, -exponent)), True
    # From the largest and the number, not from the sum, whose rounding depends on the order.
    exponent = bits - int(np.frexp(float(weight.max()) * len(weight))[1])
    # A tiny weight is not none.
    whole = np.maximum(np.rint(np.ldexp(weight, exponent)), 1.0).astype(np.int64)
    return whole, float(np.ldexp(1.0, -exponent)), False


@kernel(bare=True)
def quantise(targets, rows, start, end, lower, upper, at_zero, centre, exponent):
    """Write g of the rows; set centre[o] and exponent[o]. The targets lie in lower .. upper."""
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
    factor = 2.0 ** float(power)
    for o in range(n_outputs):
        exponent[o] = power
        for p in range(start, end):
            row = rows[p]
            cell = row * n_outputs + o
            own = (targets.raw[cell] - centre[o]) * factor
            if targets.counted:
                targets.numbers[cell] = targets.weight[row] * np.int64(np.rint(own))
            else:
                targets.numbers[cell] = np.int64(np.rint(targets.weight[row] * own))


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
