"""Sums of fractions in twice the precision of float64, for splits that are nearly as good.

A number is a pair (high, low) with |low| at most half a unit in the last place of high. Knuth's and
Dekker's error-free sums and products; the compiler must not reorder them.
"""

from __future__ import annotations

from margrove._runtime import kernel

__all__ = ["fraction", "pair_sum", "square_of", "whole_pair"]

_SPLITTER = 134217729.0  # 2^27 + 1


@kernel(inner=True)
def _two_sum(a, b):
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel(inner=True)
def _two_product(a, b):
    product = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel(inner=True)
def whole_pair(number):
    """An int64 as a pair, exactly."""
    high = float(number)
    return high, float(number - int(high)) if abs(high) < 9.2e18 else 0.0


@kernel(inner=True)
def pair_sum(a_high, a_low, b_high, b_low):
    high, low = _two_sum(a_high, b_high)
    return _two_sum(high, low + a_low + b_low)


@kernel(inner=True)
def square_of(number):
    """The square of an int64."""
    high, low = whole_pair(number)
    product, rest = _two_product(high, high)
    return _two_sum(product, rest + 2.0 * high * low)


@kernel(inner=True)
def fraction(high, low, denominator):
    """A pair divided by a whole number below 2^53."""
    quotient = high / denominator
    product, rest = _two_product(quotient, denominator)
    return _two_sum(quotient, ((high - product) - rest + low) / denominator)
