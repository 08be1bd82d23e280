"""Means of numbers with weights: the same for any order of the rows.

Where no row has any weight they are 0. Sums are whole numbers: terms up to 1 are cut into digits
of 32 bits, far more of them than a float64 has.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel

__all__ = ["class_shares", "mean_of"]

_DIGITS = 4
_BASE = 2.0**32  # so that the digits of 2^30 rows have a sum in int64
_SPLITTER = 2.0**27 + 1.0  # halves the bits of a float64


def mean_of(values: np.ndarray, weight: np.ndarray | None) -> float:
    """The exact mean, rounded once: a weight of k is k rows, and equal numbers are their mean."""
    values = read_only(values)
    weight = read_only(np.empty(0) if weight is None else weight)
    exponent = math.frexp(_largest(values, weight))[1]
    sums = np.zeros((2, _DIGITS), np.int64)
    _add_up(values, exponent, weight, _unit(weight), sums)
    total, count = _whole(sums[0]), _whole(sums[1])
    return math.ldexp(total / count, exponent) if count else 0.0


def class_shares(y: np.ndarray, weight: np.ndarray | None, n_classes: int) -> np.ndarray:
    """The weight of each class 0 .. n_classes - 1 in that of all."""
    weight = read_only(np.empty(0) if weight is None else weight)
    sums = np.zeros((n_classes, _DIGITS), np.int64)
    _add_up_classes(read_only(y), weight, _unit(weight), sums)
    counts = [_whole(own) for own in sums]
    return np.array([own / max(sum(counts), 1) for own in counts])


def _unit(weight: np.ndarray) -> int:
    return math.frexp(float(np.max(weight)))[1] if len(weight) else 0


def _whole(digits: np.ndarray) -> int:
    whole = 0
    for digit in digits.tolist():
        whole = (whole << 32) + digit
    return whole


@kernel
def _largest(values, weight):
    """The largest size among the rows that have weight."""
    largest = 0.0
    for i in range(len(values)):
        if not len(weight) or weight[i] > 0.0:
            largest = max(largest, abs(values[i]))
    return largest


@kernel
def _add_up(values, exponent, weight, unit, sums):
    """Add values / 2^exponent times weights to sums[0], and weights / 2^unit to sums[1]."""
    for i in range(len(values)):
        if not len(weight):
            _add(math.ldexp(values[i], -exponent), sums[0])
            _add(1.0, sums[1])
        elif weight[i] > 0.0:
            value, share = math.ldexp(values[i], -exponent), math.ldexp(weight[i], -unit)
            product = value * share
            _add(product, sums[0])
            _add(_lost(value, share, product), sums[0])
            _add(share, sums[1])


@kernel
def _add_up_classes(y, weight, unit, sums):
    for i in range(len(y)):
        _add(math.ldexp(weight[i], -unit) if len(weight) else 1.0, sums[int(y[i])])


@kernel
def _add(term, digits):
    for k in range(_DIGITS):
        term *= _BASE
        digit = int(term)
        digits[k] += digit
        term -= digit


@kernel
def _lost(a, b, product):
    """Dekker's: what rounding took from a product."""
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def _upper_half(a):
    large = _SPLITTER * a
    return large - (large - a)
