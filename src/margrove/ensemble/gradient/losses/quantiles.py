"""Quantiles of numbers with weights: where a weight of k is k rows, in any order of the rows.

The quantile q is the first value, in ascending order, by which the share q of the weight is
reached; where it is reached exactly, the mean of that value and the next: the usual median.
Weights become whole numbers, whose sums are exact; no row need be sorted, as in each step only
one side of a pivot is looked at again.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel

__all__ = ["quantile_of", "quantiles_of_leaves"]

_BITS_OF_SUMS = 62
_SAME_SHARE = 4 * np.finfo(np.float64).eps  # 0.1 is no binary number, and 1 - 0.9 is not 0.1
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples are nowhere near each other, modulo 1


def quantile_of(values: np.ndarray, weight: np.ndarray | None, quantile: float) -> float:
    """The quantile of all values; 0 where no row has any weight."""
    rows, starts = np.arange(len(values), dtype=np.int32), np.array([0, len(values)])
    return float(quantiles_of_leaves(values, weight, quantile, rows, starts)[0])


def quantiles_of_leaves(
    values: np.ndarray,
    weight: np.ndarray | None,
    quantile: float,
    rows: np.ndarray,
    starts: np.ndarray,
) -> np.ndarray:
    """The quantile of each leaf k, whose rows are rows[starts[k] : starts[k + 1]]."""
    weight = read_only(np.empty(0) if weight is None else weight)
    quantiles = np.empty(len(starts) - 1)
    _write_quantiles(
        read_only(values), weight, quantile, read_only(rows), read_only(starts), quantiles
    )
    return quantiles


@kernel
def _write_quantiles(values, weight, quantile, rows, starts, quantiles):
    most = 0
    for leaf in range(len(quantiles)):
        most = max(most, starts[leaf + 1] - starts[leaf])
    own_values, own_shares = np.empty(most), np.empty(most, np.int64)
    room_values, room_shares = np.empty(most), np.empty(most, np.int64)
    for leaf in range(len(quantiles)):
        own = rows[starts[leaf] : starts[leaf + 1]]
        n = _gather(values, weight, own, own_values, room_values, own_shares)
        quantiles[leaf] = _selected(own_values, own_shares, room_values, room_shares, n, quantile)


@kernel
def _gather(values, weight, rows, own_values, own_weights, own_shares):
    """Write the rows that have weight, in whole numbers; return how many they are."""
    if not len(weight):
        for i in range(len(rows)):
            own_values[i], own_shares[i] = values[rows[i]], 1
        return len(rows)
    largest = 0.0
    for i in range(len(rows)):
        own_values[i], own_weights[i] = values[rows[i]], weight[rows[i]]
        largest = max(largest, own_weights[i])
    shift = _BITS_OF_SUMS - math.frexp(largest)[1] - math.frexp(float(len(rows)))[1]
    n = 0
    for i in range(len(rows)):
        own_values[n] = own_values[i]
        own_shares[n] = int(math.ldexp(own_weights[i], shift) + 0.5)
        n += own_shares[n] > 0
    return n


@kernel
def _selected(values, shares, room_values, room_shares, n, quantile):
    """The quantile of the first n values; nothing is kept of the four arrays."""
    total = 0
    for i in range(n):
        total += shares[i]
    least, most = max((quantile - _SAME_SHARE) * total, 1.0), (quantile + _SAME_SHARE) * total
    below, above = 0, math.inf  # the shares of those left behind, the next of those cut off
    place = 0.0
    while n > 0:
        place += 3.0
        pivot = _median_of_three(values, n, place)
        n_less, n_greater, less, up_to = 0, 0, below, below
        for i in range(n):
            value, share = values[i], shares[i]
            values[n_less], shares[n_less] = value, share
            room_values[n_greater], room_shares[n_greater] = value, share
            n_less += value < pivot
            n_greater += value > pivot
            less += share if value < pivot else 0
            up_to += share if value <= pivot else 0
        if less >= least:
            n, above = n_less, pivot
        elif up_to >= least:
            for i in range(n_greater):
                above = min(above, room_values[i])
            return pivot if up_to > most or above == math.inf else 0.5 * pivot + 0.5 * above
        else:
            n, below = n_greater, up_to
            values, shares, room_values, room_shares = room_values, room_shares, values, shares
    return 0.0


@kernel
def _median_of_three(values, n, place):
    """Of places that no order of the rows will have in mind."""
    a, b, c = (
        values[int(place * _GOLDEN % 1.0 * n)],
        values[int((place + 1.0) * _GOLDEN % 1.0 * n)],
        values[int((place + 2.0) * _GOLDEN % 1.0 * n)],
    )
    return max(min(a, b), min(max(a, b), c))
