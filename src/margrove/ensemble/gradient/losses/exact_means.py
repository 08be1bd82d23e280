"""Weighted means of many numbers that do not depend on the order of the rows, or on who has them.

Numbers up to 1 are cut into two parts of 37 bits each. The parts of a tile of rows add up without
rounding errors, as whole multiples of a power of two, so their sums are whole numbers. What is left
of a number, less than 2^-74 of the largest one, is dropped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import ALONE, Collective, kernel, region

__all__ = ["RowSums", "mean_of_rows", "mean_of_sums", "row_sums", "sum_rows"]

_BITS = 37  # of a part: a tile adds up to less than 2^53 of its units
_ROWS_OF_A_TILE = 1 << 14
_DIGITS = 4
_LOW_DIGIT = (1 << 32) - 1
_LANES = 64  # parallel sums, for vector registers
_CUT = 1.5 * 2.0 ** (52 - _BITS)  # adding and subtracting it rounds to multiples of 2^-37
_SECOND_CUT = _CUT * 2.0**-_BITS
_LARGEST_EXPONENT = 1000
_INFINITE, _NOT_A_NUMBER = 1.0, 2.0


def mean_of_rows(
    values: np.ndarray,
    weight: np.ndarray | None,
    *,
    n_threads: int = 1,
    collective: Collective = ALONE,
) -> float:
    """The mean of values, which are overwritten; 0 if all weights are 0.

    Rows of weight 0 do not count, even if their value is infinite or NaN.
    """
    weights = read_only(np.empty(0) if weight is None else weight)
    sizes = np.zeros(3)  # the largest value and weight, and whether there are odd values
    if weight is not None:
        sizes[1] = weights.max(initial=0.0)
        collective.max(sizes)
    unit = _power_below(sizes[1])
    n_tiles = -(-len(values) // _ROWS_OF_A_TILE)
    found = np.zeros((n_tiles, 2))
    _weigh(n_tiles, n_threads, weights, unit, values, found)
    sizes[0], sizes[2] = found.max(axis=0, initial=0.0)
    collective.max(sizes)
    if sizes[2] > 0.0:
        return _odd_mean(sizes[2])
    scale = _power_below(sizes[0])
    digits = np.zeros((2, _DIGITS), np.int64)
    digits[0] = _digits(values, scale, n_threads)
    digits[1] = _digits_of_weights(weights, len(values), unit, n_threads)
    collective.sum(digits)
    return _quotient(digits[0], digits[1], sizes[0], has_weight=weight is not None)


class RowSums(NamedTuple):
    """What `sum_rows` writes in each of several rounds.

    weight    float64 (n,)  of the rows; empty without weights
    unit      float64 (1,)  a power of two, by which weights are multiplied
    sizes     float64 (rounds, 2)  the largest value, and whether there are odd ones
    digits    int64 (rounds, 4)  of the sums of values
    of_weights    int64 (4,)  digits of the sum of weights
    is_written    bool (rounds,)
    """

    weight: np.ndarray
    unit: np.ndarray
    sizes: np.ndarray
    digits: np.ndarray
    of_weights: np.ndarray
    is_written: np.ndarray


def row_sums(weight: np.ndarray | None, n_rows: int, n_rounds: int) -> RowSums:
    weights = read_only(np.empty(0) if weight is None else weight)
    unit = _power_below(weights.max(initial=0.0))
    return RowSums(
        weights,
        np.array([unit]),
        np.zeros((n_rounds, 2)),
        np.zeros((n_rounds, _DIGITS), np.int64),
        np.array(_digits_of_weights(weights, n_rows, unit, 1), np.int64),
        np.zeros(n_rounds, np.bool_),
    )


def mean_of_sums(sums: RowSums, number: int) -> float:
    """The mean of the values of a round, as `mean_of_rows` computes it."""
    largest, odd = sums.sizes[number].tolist()
    if odd > 0.0:
        return _odd_mean(odd)
    return _quotient(sums.digits[number], sums.of_weights, largest, has_weight=len(sums.weight) > 0)


def _odd_mean(odd: float) -> float:
    return math.nan if odd == _NOT_A_NUMBER else math.inf


def _quotient(
    digits: np.ndarray, of_weights: np.ndarray, largest: float, *, has_weight: bool
) -> float:
    total = _whole_number(digits)
    count = _whole_number(of_weights) if has_weight else int(of_weights[0]) << 2 * _BITS
    return math.ldexp(total / count, -math.frexp(_power_below(largest))[1] + 1) if count else 0.0


@kernel
def _power_below(largest):
    """A power of two whose product with `largest` is at most 1."""
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, max(min(-exponent, _LARGEST_EXPONENT), -_LARGEST_EXPONENT - 24))


def _digits_of_weights(weights: np.ndarray, n: int, unit: float, n_threads: int) -> list[int]:
    """The sum of weights, or without weights the number of rows as the only digit."""
    return _digits(weights, unit, n_threads) if len(weights) else [n, 0, 0, 0]


def _digits(values: np.ndarray, scale: float, n_threads: int) -> list[int]:
    """The sums of both parts of all values, each in two digits of 32 bits."""
    n_tiles = -(-len(values) // _ROWS_OF_A_TILE)
    digits = np.zeros((n_tiles, _DIGITS), np.int64)
    _add_parts(n_tiles, n_threads, read_only(values), scale, digits)
    found: list[int] = digits.sum(axis=0).tolist()
    return found


def _whole_number(digits: np.ndarray) -> int:
    """The sum, in units of 2^-74."""
    first_high, first_low, second_high, second_low = digits.tolist()
    first, second = (first_high << 32) + first_low, (second_high << 32) + second_low
    return int((first << _BITS) + second)


@region
def _weigh(tile, weight, unit, values, found):
    """Multiply values by their weights * unit; write the largest, and whether some are odd."""
    start = tile * _ROWS_OF_A_TILE
    own_weight = weight[start : start + _ROWS_OF_A_TILE]
    found[tile, 0], found[tile, 1] = _weighed(
        own_weight, unit, values[start : start + _ROWS_OF_A_TILE]
    )


@region
def _add_parts(tile, values, scale, digits):
    """Write the digits of the sums of a tile."""
    start = tile * _ROWS_OF_A_TILE
    _write_digits(values[start : start + _ROWS_OF_A_TILE], scale, digits[tile])


@kernel(hidden=True)
def sum_rows(values, sums, number):
    """Write the sums of values, which are overwritten, for round `number`; see `mean_of_rows`."""
    unit, n = sums.unit[0], len(values)
    largest, odd = 0.0, 0.0
    for start in range(0, n, _ROWS_OF_A_TILE):
        own = values[start : start + _ROWS_OF_A_TILE]
        found = _weighed(sums.weight[start : start + _ROWS_OF_A_TILE], unit, own)
        largest, odd = max(largest, found[0]), max(odd, found[1])
    sums.sizes[number, 0], sums.sizes[number, 1], sums.is_written[number] = largest, odd, True
    digits, of_tile = sums.digits[number], np.zeros(_DIGITS, np.int64)
    for k in range(_DIGITS):
        digits[k] = 0
    if odd > 0.0:
        return
    scale = _power_below(largest)
    for start in range(0, n, _ROWS_OF_A_TILE):
        _write_digits(values[start : start + _ROWS_OF_A_TILE], scale, of_tile)
        for k in range(_DIGITS):
            digits[k] += of_tile[k]


@kernel(hidden=True)
def _weighed(weight, unit, own):
    if len(weight):
        for i in range(len(own)):
            own[i] = own[i] * (weight[i] * unit) if weight[i] > 0.0 else 0.0
    return _largest_and_odd(own)


@kernel
def _largest_and_odd(values):
    largest = 0.0
    for i in range(len(values)):
        size = abs(values[i])
        largest = size if size > largest else largest
    is_finite = largest < math.inf
    for i in range(len(values)):
        is_finite &= values[i] == values[i]
    if is_finite:
        return largest, 0.0
    odd = _INFINITE
    for i in range(len(values)):
        if values[i] != values[i]:
            odd = _NOT_A_NUMBER
    return 0.0, odd


@kernel(hidden=True)
def _write_digits(values, scale, digits):
    """Write the sums of the upper and of the lower parts of values, each in two digits."""
    lanes = np.zeros((2, _LANES))
    upper, lower = lanes[0], lanes[1]
    for start in range(0, len(values), _LANES):
        batch = values[start : min(start + _LANES, len(values))]
        for lane in range(len(batch)):
            value = batch[lane] * scale
            rounded = (value + _CUT) - _CUT
            left = value - rounded
            upper[lane] += rounded
            lower[lane] += (left + _SECOND_CUT) - _SECOND_CUT
    first = np.int64(upper.sum() * 2.0**_BITS)
    second = np.int64(lower.sum() * 2.0 ** (2 * _BITS))
    digits[0], digits[1] = first >> 32, first & _LOW_DIGIT
    digits[2], digits[3] = second >> 32, second & _LOW_DIGIT
