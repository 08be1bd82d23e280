"""Bootstrap samples as multiplicities: how often each row was drawn.

A draw is a point of the line on which the rows lie end to end, each as long as its weight. How many
of the draws fall into an interval is decided by halving: of the draws of an interval, each goes to
its left half or its right half by a random number that belongs to the interval. So the multiplicity
of a row is a function of the seed, the number of the sample and the row's place on the line; a part
of the data can be resampled without the rest, and a row of weight 2 is drawn exactly as often as
two rows of weight 1 that lie side by side.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.bootstrap.random_bits import mixed_bits, number_below

__all__ = ["Line", "in_units", "multiplicities", "number_of_draws", "stream", "units_left_out"]

_FEW = 48  # draws that are placed one by one
_MANY = 1 << 20  # draws of an interval from which on a bell curve stands for coins
_MOST_UNITS = 1 << 22
_BITS = 52  # of weights that are not whole
_UNITS_A_ROW = 64  # on average, up to which weights are taken for numbers of copies


class Line:
    """The rows end to end: `ends` int64 (n,), in units of which a whole weight has its own number.

    weight is > 0; whole weights stay as they are, others are rounded to a share of their sum.
    n_rows: how many rows there were before equal ones were put together.
    """

    def __init__(self, weight: np.ndarray, n_rows: int | None = None) -> None:
        self._n_rows = len(weight) if n_rows is None else n_rows
        total = float(weight.sum())
        self.is_whole = bool(np.all(weight == np.floor(weight))) and total <= 2.0**_BITS
        if not self.is_whole:
            scale = 2.0 ** (_BITS - int(np.frexp(total)[1]))
            weight = np.maximum(np.rint(weight * scale), 1.0)
        self.ends = np.cumsum(weight.astype(np.int64))
        self.is_even = self.is_whole and self.ends[-1] == len(weight)

    @property
    def n_draws(self) -> int:
        """As many as the weights sum to, if they are whole, else as many as there are rows."""
        return int(self.ends[-1]) if self.is_whole else self._n_rows


def in_units(weight: np.ndarray, n_rows: int) -> np.ndarray:
    """Weights > 0 of different rows as numbers of copies, if that is what they can be.

    They are whole multiples of the largest unit that makes them so: 2, 4, 6 and 0.5, 1, 1.5 are 1,
    2 and 3, so that the scale of weights does not matter. Where copies would be too many, weights
    are shares below 1. n_rows: how many rows there are, equal ones counted each.
    """
    shares = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    units = np.ldexp(shares, _BITS)
    if np.any(units != np.floor(units)):
        return shares
    whole = units.astype(np.int64)
    whole //= np.gcd.reduce(whole)
    is_count = whole.sum(dtype=np.float64) <= float(_UNITS_A_ROW) * n_rows
    return whole.astype(np.float64) if is_count else shares


def number_of_draws(line: Line, max_samples: float | int | None) -> int:
    """What `max_samples` asks for: all, a number, or a share of all."""
    if max_samples is None:
        return line.n_draws
    if isinstance(max_samples, (int, np.integer)):
        return int(max_samples)
    return max(1, round(line.n_draws * float(max_samples)))


def stream(seed: int, number: int) -> np.uint64:
    """The key of one of many independent sequences."""
    return np.uint64(mixed_bits(np.uint64(seed), np.uint64(number)))


def units_left_out(line: Line, seed: int, number: int, n_draws: int | None = None) -> np.ndarray:
    """How many of a row's units no draw of sample `number` fell on, int32 (n,).

    A row of weight 3 stands for three; each is in the sample or not. Of weights that are not whole,
    or too many to be drawn one by one, a row is one unit.
    """
    key, count = stream(seed, number), n_draws or line.n_draws
    if not line.is_whole or line.is_even or count > _MOST_UNITS:
        return (multiplicities(line, seed, number, count) == 0).astype(np.int32)
    left_out = np.diff(line.ends, prepend=0).astype(np.int32)
    _strike_out(line.ends, key, count, left_out)
    return left_out


def multiplicities(line: Line, seed: int, number: int, n_draws: int | None = None) -> np.ndarray:
    """How often each row is in bootstrap sample `number`, int64 (n,)."""
    drawn = np.zeros(len(line.ends), np.int64)
    draw(line.ends, line.is_even, stream(seed, number), n_draws or line.n_draws, drawn)
    return drawn


@kernel
def draw(ends, is_even, key, n_draws, drawn):
    """Fill `drawn`, zeros (n,). `is_even`: every row is one unit long."""
    # a stack of intervals: first and last unit, rows that they touch, draws
    stack = np.empty((128, 5), np.int64)
    stack[0] = (0, ends[-1], 0, len(ends), n_draws)
    size = 1
    while size:
        size -= 1
        a, b, low, high, count = stack[size]
        own = mixed_bits(mixed_bits(key, np.uint64(a)), np.uint64(b))
        if high - low == 1:
            drawn[low] += count
        elif count <= _FEW:
            for k in range(count):
                own += np.uint64(0x9E3779B97F4A7C15)
                unit = a + np.int64(number_below(mixed_bits(own, np.uint64(k)), np.uint64(b - a)))
                drawn[unit if is_even else _row_of(ends, low, high, unit)] += 1
        else:
            middle = a + (b - a) // 2
            left = _count_left(own, count, np.uint64(middle - a), np.uint64(b - a))
            cut = middle if is_even else _row_of(ends, low, high, middle)
            begins = cut > 0 and ends[cut - 1] == middle  # the row begins just there
            stack[size] = (middle, b, cut, high, count - left)
            stack[size + 1] = (a, middle, low, cut if begins else cut + 1, left)
            size += 2


@kernel
def _strike_out(ends, key, n_draws, left_out):
    """left_out[row] -= units of the row that are drawn; the same draws as `draw` makes."""
    stack = np.empty((128, 5), np.int64)
    stack[0] = (0, ends[-1], 0, len(ends), n_draws)
    size = 1
    units = np.empty(_FEW, np.int64)
    while size:
        size -= 1
        a, b, low, high, count = stack[size]
        own = mixed_bits(mixed_bits(key, np.uint64(a)), np.uint64(b))
        if b - a == 1:
            left_out[low] -= count > 0
        elif count <= _FEW:
            for k in range(count):
                own += np.uint64(0x9E3779B97F4A7C15)
                units[k] = a + np.int64(
                    number_below(mixed_bits(own, np.uint64(k)), np.uint64(b - a))
                )
            drawn = np.sort(units[:count])
            for k in range(count):
                if k == 0 or drawn[k] != drawn[k - 1]:
                    left_out[_row_of(ends, low, high, drawn[k])] -= 1
        else:
            middle = a + (b - a) // 2
            left = _count_left(own, count, np.uint64(middle - a), np.uint64(b - a))
            cut = _row_of(ends, low, high, middle)
            begins = cut > 0 and ends[cut - 1] == middle
            stack[size] = (middle, b, cut, high, count - left)
            stack[size + 1] = (a, middle, low, cut if begins else cut + 1, left)
            size += 2


@kernel(inner=True)
def _count_left(own, count, share, whole):
    """How many of the draws of an interval fall into its left half, `share` of `whole` units."""
    left = 0
    if count > _MANY:
        return _many_left(own, count, float(share) / float(whole))
    for k in range(count):
        own += np.uint64(0x9E3779B97F4A7C15)
        left += number_below(mixed_bits(own, np.uint64(k)), whole) < share
    return left


@kernel(inner=True)
def _many_left(own, count, share):
    """Of very many draws: twelve uniform numbers make a normal one, in exact arithmetic."""
    total = -6.0
    for k in range(12):
        own += np.uint64(0x9E3779B97F4A7C15)
        total += float(mixed_bits(own, np.uint64(k)) >> np.uint64(11)) / float(1 << 53)
    left = np.rint(count * share + total * np.sqrt(count * share * (1.0 - share)))
    return np.int64(min(max(left, 0.0), float(count)))


@kernel(inner=True)
def _row_of(ends, low, high, unit):
    """The row on which a unit lies, between low and high."""
    while high - low > 1:
        middle = (low + high) // 2
        if ends[middle - 1] <= unit:
            low = middle
        else:
            high = middle
    return low
