"""The k-th smallest of numbers that members of a collective have, without sorting or gathering.

Members have no common pivot, so the digits of the number are found one after the other, from counts
that are added up over the members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from margrove._runtime import Collective, kernel

__all__ = ["Selected", "keys_of", "select", "smallest_above", "values_of"]

_DIGIT_BITS = (11, 11, 11, 11, 11, 9)  # from the highest to the lowest, 64 in all
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class Selected:
    """The selected key of each group of rows.

    keys    uint64
    up_to   int64, the sum of the shares of all rows up to this key
    total   int64, the sum of all shares
    """

    keys: np.ndarray
    up_to: np.ndarray
    total: np.ndarray


def keys_of(values: np.ndarray) -> np.ndarray:
    """uint64 in the order of float64 values."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def values_of(keys: np.ndarray) -> np.ndarray:
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def select(
    keys: np.ndarray,
    shares: np.ndarray,
    starts: np.ndarray,
    least_of: Callable[[np.ndarray], np.ndarray],
    collective: Collective,
) -> Selected:
    """The first key of each group at which the shares, in ascending order, reach a sum.

    keys, shares        uint64 and int64 (n,): those of this member; group k has the rows from
                        starts[k] to starts[k + 1]
    least_of(total)     this sum, from that of all shares of each group
    """
    n_groups, shift = len(starts) - 1, 64
    found, each = np.zeros(n_groups, np.uint64), np.arange(n_groups)
    below = up_to = total = np.zeros(n_groups, np.int64)
    least = np.zeros(n_groups)
    for bits in _DIGIT_BITS:
        shift -= bits
        counts = np.zeros((n_groups, 1 << bits), np.int64)
        _count_digits(keys, shares, starts, found, shift, bits, counts)
        collective.sum(counts)
        sums = np.cumsum(counts, axis=1) + below[:, None]
        if shift + bits == 64:
            total = sums[:, -1]
            least = least_of(total)
        digit = np.minimum((sums < least[:, None]).sum(axis=1), (1 << bits) - 1)
        up_to = sums[each, digit]
        below = up_to - counts[each, digit]
        found |= digit.astype(np.uint64) << np.uint64(shift)
    return Selected(found, up_to, total)


def smallest_above(
    keys: np.ndarray,
    shares: np.ndarray,
    starts: np.ndarray,
    limits: np.ndarray,
    collective: Collective,
) -> np.ndarray:
    """The smallest key of each group above a limit, among rows with a share; 2^64 - 1 if none."""
    complements = np.zeros(len(starts) - 1, np.uint64)
    _find_above(keys, shares, starts, limits, complements)
    collective.max(complements)
    return ~complements


@kernel
def _count_digits(keys, shares, starts, known, shift, bits, counts):
    """Add shares to the counts of the next digit, for rows whose higher digits are known."""
    mask, low, high = np.uint64((1 << bits) - 1), np.uint64(shift), np.uint64(bits)
    is_first = shift + bits == 64
    for group in range(len(starts) - 1):
        wanted, own = (known[group] >> low) >> high, counts[group]
        for p in range(starts[group], starts[group + 1]):
            digits = keys[p] >> low
            if is_first or (digits >> high) == wanted:
                own[np.int64(digits & mask)] += shares[p]


@kernel
def _find_above(keys, shares, starts, limits, complements):
    for group in range(len(starts) - 1):
        for p in range(starts[group], starts[group + 1]):
            if keys[p] > limits[group] and shares[p] > 0:
                complements[group] = max(complements[group], ~keys[p])
