"""Weighted means that do not depend on the order of the rows; 0 if all weights are 0.

Sums are exact: numbers up to 1 are split into digits of 32 bits, with more bits than a float64 has,
and the digits are summed as whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from margrove._data import read_only
from margrove._runtime import ALONE, Collective, kernel

__all__ = ["class_shares", "mean_of", "means_of"]

_DIGITS = 4
_BASE = 2.0**32  # the sum of the digits of 2^30 rows fits into int64
_SPLITTER = 2.0**27 + 1.0  # splits a float64 into two halves of its bits


def mean_of(values: np.ndarray, weight: np.ndarray | None) -> float:
    """The exact mean, rounded once: a weight of k is the same as k rows."""
    return means_of([values], [weight])[0]


def means_of(
    values: Sequence[np.ndarray],
    weights: Sequence[np.ndarray | None],
    collective: Collective = ALONE,
) -> list[float]:
    """`mean_of` for several groups of rows, each of which all members have some rows of."""
    groups = [
        (read_only(own), read_only(np.empty(0) if weight is None else weight))
        for own, weight in zip(values, weights, strict=True)
    ]
    sizes = np.array([[_largest(*group), np.max(group[1], initial=0.0)] for group in groups])
    collective.max(sizes)
    exponents = np.frexp(sizes)[1]
    sums = np.zeros((len(groups), 2, _DIGITS), np.int64)
    for k, (own, weight) in enumerate(groups):
        has_weight = weights[k] is not None
        _add_up(own, int(exponents[k, 0]), weight, has_weight, int(exponents[k, 1]), sums[k])
    collective.sum(sums)
    found = []
    for (total, count), (exponent, _) in zip(sums, exponents.tolist(), strict=True):
        n = _integer_of(count)
        found.append(math.ldexp(_integer_of(total) / n, exponent) if n else 0.0)
    return found


def class_shares(y: np.ndarray, weight: np.ndarray | None, n_classes: int) -> np.ndarray:
    """The share of each class 0 .. n_classes - 1 in the total weight."""
    weight = read_only(np.empty(0) if weight is None else weight)
    sums = np.zeros((n_classes, _DIGITS), np.int64)
    _add_up_classes(read_only(y), weight, _unit(weight), sums)
    counts = [_integer_of(digits) for digits in sums]
    return np.array([count / max(sum(counts), 1) for count in counts])


def _unit(weight: np.ndarray) -> int:
    return math.frexp(float(np.max(weight)))[1] if len(weight) else 0


def _integer_of(digits: np.ndarray) -> int:
    integer = 0
    for digit in digits.tolist():
        integer = (integer << 32) + digit
    return integer


@kernel
def _largest(values, weight):
    """The largest absolute value among the rows of positive weight."""
    largest = 0.0
    for i in range(len(values)):
        if not len(weight) or weight[i] > 0.0:
            largest = max(largest, abs(values[i]))
    return largest


@kernel
def _add_up(values, exponent, weight, has_weight, unit, sums):
    """Add values / 2^exponent * weights / 2^unit to sums[0], and weights / 2^unit to sums[1]."""
    if not has_weight:
        sums[1, 0] += len(values) << 32
        for i in range(len(values)):
            _add(math.ldexp(values[i], -exponent), sums[0])
        return
    for i in range(len(values)):
        if weight[i] > 0.0:
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
    """The rounding error of a product (Dekker)."""
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def _upper_half(a):
    large = _SPLITTER * a
    return large - (large - a)
