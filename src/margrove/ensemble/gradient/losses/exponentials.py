"""Exponentials and logarithms for vectorised loops.

Calls of the C library compute one number at a time. These functions use only basic arithmetic,
which the compiler turns into vector instructions. No step may be reordered or contracted, so the
results are equal on every machine to the last digit. The error is at most 2 units in the last place
for exponentials and 3 for logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import kernel

__all__ = ["exp_of", "log_from_one", "log_of_one_plus"]

_LOG2_OF_E = 1.4426950408889634
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 32 bits: its products with exponents are exact
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LN2 = math.log(2.0)

_ROUNDER = 1.5 * 2.0**52  # adding it rounds to a whole number, which is in the last bits
_FRACTION_BITS = 52
_ONE = 1023 << _FRACTION_BITS  # the bits of 1.0
_FRACTION = (1 << _FRACTION_BITS) - 1

_LARGEST = 709.782712893384  # above it, the exponential overflows
_LEAST = -746.0  # below it, the exponential is 0

# (exp(r) - 1 - r) / r^2 for abs(r) <= log(2) / 2, interpolated at Chebyshev points
_EXP_9, _EXP_8, _EXP_7 = 2.5100424157005067e-08, 2.7620138719733994e-07, 2.7557268378684192e-06
_EXP_6, _EXP_5, _EXP_4 = 2.480152119021773e-05, 0.00019841269863105968, 0.0013888888917281794
_EXP_3, _EXP_2, _EXP_1 = 0.008333333333330051, 0.04166666666662399, 0.16666666666666669
_EXP_0 = 0.5000000000000001

# (2 artanh(z) - 2 z) / z^3 in z^2 <= 1 / 9, likewise
_LOG_9, _LOG_8, _LOG_7 = 0.16164045612019626, 0.0880073848610457, 0.1200107280959961
_LOG_6, _LOG_5, _LOG_4 = 0.13314144209653858, 0.153855700649587, 0.18181789436132856
_LOG_3, _LOG_2, _LOG_1 = 0.22222222717427864, 0.2857142856710876, 0.40000000000014585
_LOG_0 = 0.6666666666666666


@kernel
def exp_of(x):
    """exp(x); infinity if it overflows, 0 if it underflows."""
    inside = _LARGEST if x > _LARGEST else x
    inside = _LEAST if inside < _LEAST else inside
    shifted = inside * _LOG2_OF_E + _ROUNDER
    exponent = shifted - _ROUNDER
    r = (inside - exponent * _LN2_HIGH) - exponent * _LN2_LOW
    p = ((_EXP_9 * r + _EXP_8) * r + _EXP_7) * r + _EXP_6
    p = ((p * r + _EXP_5) * r + _EXP_4) * r + _EXP_3
    p = ((p * r + _EXP_2) * r + _EXP_1) * r + _EXP_0
    value = 1.0 + (r + r * r * p)
    # In two steps: the power of two may be out of range although the product is not.
    half = np.float64(exponent * 0.5 + _ROUNDER).view(np.int64)
    rest = np.float64(shifted).view(np.int64) - half
    bits = np.float64(value).view(np.int64) + (half << _FRACTION_BITS)
    power = np.int64((rest << _FRACTION_BITS) + _ONE).view(np.float64)
    value = np.int64(bits).view(np.float64) * power
    return math.inf if x > _LARGEST else value


@kernel
def log_of_one_plus(x):
    """log(1 + x) for 0 <= x <= 1; accurate for small x."""
    z = x / (2.0 + x)
    square = z * z
    p = ((_LOG_9 * square + _LOG_8) * square + _LOG_7) * square + _LOG_6
    p = ((p * square + _LOG_5) * square + _LOG_4) * square + _LOG_3
    p = ((p * square + _LOG_2) * square + _LOG_1) * square + _LOG_0
    return 2.0 * z + z * square * p


@kernel
def log_from_one(x):
    """log(x) for finite x >= 1."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> _FRACTION_BITS) - 1023
    fraction = np.int64((bits & _FRACTION) | _ONE).view(np.float64) - 1.0
    return exponent * _LN2 + log_of_one_plus(fraction)
