"""Weighted quantiles, where a weight of k is the same as k rows, in any order of the rows.

In ascending order, the quantile q is the first value at which the cumulative weight reaches the
share q of the total; if it reaches q exactly, the mean of that value and the next, as for the usual
median. Weights are rounded to whole numbers, whose sums are exact. Values are not sorted: this is
quickselect, which continues on one side of a pivot only. If members of a collective have the rows,
`joint_selection` finds the quantile.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._data import read_only
from margrove._runtime import ALONE, Collective, atomic_add, kernel, region
from margrove.ensemble.gradient.joint_selection import (
    keys_of,
    select,
    smallest_above,
    values_of,
)

__all__ = ["quantile_of", "quantiles_of_leaves"]

_BITS_OF_SUMS = 62
_ROWS_OF_A_THREAD = 8192
_SAME_SHARE = 4 * np.finfo(np.float64).eps  # in floating point, 1 - 0.9 is not 0.1
_LEAVES_AT_ONCE = 1024  # whose digits are counted together
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples modulo 1 are spread evenly


def quantile_of(
    values: np.ndarray, weight: np.ndarray | None, quantile: float, collective: Collective = ALONE
) -> float:
    """The quantile of all values; 0 if all weights are 0."""
    rows, starts = np.arange(len(values), dtype=np.int32), np.array([0, len(values)])
    found = quantiles_of_leaves(values, weight, quantile, rows, starts, collective=collective)
    return float(found[0])


def quantiles_of_leaves(
    values: np.ndarray,
    weight: np.ndarray | None,
    quantile: float,
    rows: np.ndarray,
    starts: np.ndarray,
    *,
    n_threads: int = 1,
    collective: Collective = ALONE,
) -> np.ndarray:
    """The quantile of each leaf k, whose rows are rows[starts[k] : starts[k + 1]]."""
    if collective.size > 1:
        return _quantiles_by_digits(values, weight, quantile, rows, starts, collective)
    weight = read_only(np.empty(0) if weight is None else weight)
    quantiles = np.empty(len(starts) - 1)
    order = np.argsort(starts[:-1] - starts[1:])  # the largest first, so that threads end together
    _write_quantiles(
        min(n_threads, len(order), 1 + len(rows) // _ROWS_OF_A_THREAD), n_threads,
        np.zeros(1, np.int64), order, read_only(values), weight, quantile, read_only(rows),
        read_only(starts), quantiles,
    )  # fmt: skip
    return quantiles


@region
def _write_quantiles(worker, queue, order, values, weight, quantile, rows, starts, quantiles):
    """A worker takes leaves until there are no more."""
    place = atomic_add(queue, 0, 1)
    if place >= len(order):
        return
    most = starts[order[place] + 1] - starts[order[place]]
    leaf_values, leaf_shares = np.empty(most), np.empty(most, np.int64)
    spare_values, spare_shares = np.empty(most), np.empty(most, np.int64)
    while place < len(order):
        leaf = order[place]
        place = atomic_add(queue, 0, 1)
        chosen = rows[starts[leaf] : starts[leaf + 1]]
        n = _gather(values, weight, chosen, leaf_values, spare_values, leaf_shares)
        quantiles[leaf] = _select(leaf_values, leaf_shares, spare_values, spare_shares, n, quantile)


@kernel
def _gather(values, weight, rows, leaf_values, leaf_weights, leaf_shares):
    """Write values and whole weights of the rows of positive weight; return their number."""
    if not len(weight):
        for i in range(len(rows)):
            leaf_values[i], leaf_shares[i] = values[rows[i]], 1
        return len(rows)
    largest = 0.0
    for i in range(len(rows)):
        leaf_values[i], leaf_weights[i] = values[rows[i]], weight[rows[i]]
        largest = max(largest, leaf_weights[i])
    shift = _BITS_OF_SUMS - math.frexp(largest)[1] - math.frexp(float(len(rows)))[1]
    n = 0
    for i in range(len(rows)):
        leaf_values[n] = leaf_values[i]
        leaf_shares[n] = int(math.ldexp(leaf_weights[i], shift) + 0.5)
        n += leaf_shares[n] > 0
    return n


@kernel
def _select(values, shares, spare_values, spare_shares, n, quantile):
    """The quantile of the first n values; the four arrays are overwritten."""
    total = 0
    for i in range(n):
        total += shares[i]
    least, most = max((quantile - _SAME_SHARE) * total, 1.0), (quantile + _SAME_SHARE) * total
    below, above = 0, math.inf  # weight of the values below, and the smallest value above
    place = 0.0
    while n > 0:
        place += 3.0
        pivot = _median_of_three(values, n, place)
        n_less, n_greater, less, up_to = 0, 0, below, below
        for i in range(n):
            value, share = values[i], shares[i]
            values[n_less], shares[n_less] = value, share
            spare_values[n_greater], spare_shares[n_greater] = value, share
            n_less += value < pivot
            n_greater += value > pivot
            less += share if value < pivot else 0
            up_to += share if value <= pivot else 0
        if less >= least:
            n, above = n_less, pivot
        elif up_to >= least:
            for i in range(n_greater):
                above = min(above, spare_values[i])
            return pivot if up_to > most or above == math.inf else 0.5 * pivot + 0.5 * above
        else:
            n, below = n_greater, up_to
            values, shares, spare_values, spare_shares = spare_values, spare_shares, values, shares
    return 0.0


@kernel
def _median_of_three(values, n, place):
    """The median of three values at quasi-random places, as a pivot for any order of the rows."""
    a, b, c = (
        values[int(place * _GOLDEN % 1.0 * n)],
        values[int((place + 1.0) * _GOLDEN % 1.0 * n)],
        values[int((place + 2.0) * _GOLDEN % 1.0 * n)],
    )
    return max(min(a, b), min(max(a, b), c))


# -- rows of several members --


def _quantiles_by_digits(
    values: np.ndarray,
    weight: np.ndarray | None,
    quantile: float,
    rows: np.ndarray,
    starts: np.ndarray,
    collective: Collective,
) -> np.ndarray:
    """`quantiles_of_leaves` of the rows of all members."""
    found = []
    for first in range(0, len(starts) - 1, _LEAVES_AT_ONCE):
        own = starts[first : first + _LEAVES_AT_ONCE + 1]
        chosen, own = rows[own[0] : own[-1]], own - own[0]
        shares = np.ones(len(chosen), np.int64)
        if weight is not None:
            shares = _shares_of(weight[chosen], own, collective)
        found.append(_select_jointly(values[chosen], shares, own, quantile, collective))
    return np.concatenate(found)


def _shares_of(weight: np.ndarray, starts: np.ndarray, collective: Collective) -> np.ndarray:
    """Weights of the rows of each leaf as whole numbers, as `_gather` makes them."""
    own_sizes = np.diff(starts)
    sizes = own_sizes.copy()
    largest = np.array(
        [weight[starts[k] : starts[k + 1]].max(initial=0.0) for k in range(len(sizes))]
    )
    collective.max(largest)
    collective.sum(sizes)
    shifts = _BITS_OF_SUMS - np.frexp(largest)[1] - np.frexp(sizes.astype(np.float64))[1]
    of_rows = np.repeat(shifts, own_sizes)
    shares: np.ndarray = (np.ldexp(weight, of_rows) + 0.5).astype(np.int64)
    return shares


def _select_jointly(
    values: np.ndarray,
    shares: np.ndarray,
    starts: np.ndarray,
    quantile: float,
    collective: Collective,
) -> np.ndarray:
    """See `_select`."""

    def least_of(total: np.ndarray) -> np.ndarray:
        return np.maximum((quantile - _SAME_SHARE) * total, 1.0)

    keys = keys_of(values)
    found = select(keys, shares, starts, least_of, collective)
    above = smallest_above(keys, shares, starts, found.keys, collective)
    is_mean = (found.up_to <= (quantile + _SAME_SHARE) * found.total) & (~above > 0)
    chosen = np.where(found.total > 0, found.keys, keys_of(np.zeros(1)))
    pivots = values_of(chosen)
    others = values_of(np.where(is_mean & (found.total > 0), above, chosen))
    return np.where(is_mean & (found.total > 0), 0.5 * pivots + 0.5 * others, pivots)
