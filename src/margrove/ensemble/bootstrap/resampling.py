"""Bootstrap samples as multiplicities: how often each row was drawn.

Rows are intervals of the cumulative sum of the weights: row i is [ends[i - 1], ends[i]), and a draw
is a point of [0, ends[-1]). How many draws fall into an interval is decided by bisection: each draw
of an interval goes to its left or its right half, by a random number that is a function of the
interval. So the multiplicity of a row is a function of the seed, the number of the sample and the
position of the row. Some of the rows can be resampled without the rest, and a row of weight 2 is
drawn exactly as often as two neighbouring rows of weight 1 together.

Random bits have no state: they are a function of a key, the same on every machine and thread.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel

__all__ = [
    "CumulativeWeights",
    "in_units",
    "mixed_bits",
    "multiplicities",
    "multiplicities_of_samples",
    "number_below",
    "number_of_draws",
    "stream",
    "streams",
    "units_left_out",
]

_FEW = 48  # up to this number, draws are placed one by one
_MANY = 1 << 20  # above this number, a normal distribution approximates the binomial
_MOST_UNITS = 1 << 22
_BITS = 52  # precision of weights that are not whole numbers
_UNITS_A_ROW = 64  # on average; up to it, weights are treated as numbers of copies


@kernel(bare=True)
def mixed_bits(key, salt):
    """64 random bits, a function of key and salt, all uint64 (the finalizer of splitmix64)."""
    bits = key * np.uint64(0xD1342543DE82EF95) + salt * np.uint64(0x9E3779B97F4A7C15)
    bits += np.uint64(0x632BE59BD9B4E019)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@kernel(inner=True)
def number_below(bits, bound):
    """A number in 0 .. bound - 1 from 64 random bits, for bounds below 2^53."""
    if bound <= np.uint64(0xFFFFFFFF):
        return ((bits >> np.uint64(32)) * bound) >> np.uint64(32)
    return bits % bound


class CumulativeWeights:
    """Cumulative sums of the weights of the rows, in whole units: `ends` int64 (n,).

    weight > 0, float64 (n,). A whole weight k is k units; other weights are rounded to 52 bits of
    their sum. n_rows is the number of rows before equal rows were merged.
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
        """The usual size of a sample: the sum of whole weights, otherwise the number of rows."""
        return int(self.ends[-1]) if self.is_whole else self._n_rows


def in_units(weight: np.ndarray, n_rows: int) -> np.ndarray:
    """Weights > 0 of different rows as numbers of copies, if possible.

    They become multiples of their largest common divisor: 2, 4, 6 and 0.5, 1, 1.5 are both 1, 2, 3,
    so the scale of the weights does not matter. If that makes too many copies, the weights are
    scaled to numbers below 1. n_rows is the number of rows before equal rows were merged.
    """
    shares = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    units = np.ldexp(shares, _BITS)
    if np.any(units != np.floor(units)):
        return shares
    copies = units.astype(np.int64)
    copies //= np.gcd.reduce(copies)
    is_count = copies.sum(dtype=np.float64) <= float(_UNITS_A_ROW) * n_rows
    return copies.astype(np.float64) if is_count else shares


def number_of_draws(weights: CumulativeWeights, max_samples: float | int | None) -> int:
    """The size of a sample for `max_samples`: None (all), a number, or a share of all."""
    if max_samples is None:
        return weights.n_draws
    if isinstance(max_samples, (int, np.integer)):
        return int(max_samples)
    return max(1, round(weights.n_draws * float(max_samples)))


def stream(seed: int, number: int) -> np.uint64:
    """The key of random sequence `number` of a seed; sequences are independent."""
    return np.uint64(mixed_bits(np.uint64(seed), np.uint64(number)))


def streams(seed: int, numbers: np.ndarray) -> np.ndarray:
    """The keys of several random sequences, uint64; see `stream`."""
    keys = np.empty(len(numbers), np.uint64)
    _fill_streams(np.uint64(seed), numbers.astype(np.uint64), keys)
    return keys


def units_left_out(
    weights: CumulativeWeights, seed: int, number: int, n_draws: int | None = None
) -> np.ndarray:
    """How many units of each row are not in sample `number`, int32 (n,).

    A row of weight 3 has three units; each is in the sample or not. If weights are not whole, or
    there are too many draws, each row is one unit.
    """
    key, count = stream(seed, number), n_draws or weights.n_draws
    if not weights.is_whole or weights.is_even or count > _MOST_UNITS:
        return (multiplicities(weights, seed, number, count) == 0).astype(np.int32)
    left_out = np.diff(weights.ends, prepend=0).astype(np.int32)
    _subtract_drawn_units(weights.ends, key, count, left_out)
    return left_out


def multiplicities(
    weights: CumulativeWeights, seed: int, number: int, n_draws: int | None = None
) -> np.ndarray:
    """How often each row is in bootstrap sample `number`, int64 (n,)."""
    drawn = np.zeros(len(weights.ends), np.int64)
    draw(weights.ends, weights.is_even, stream(seed, number), n_draws or weights.n_draws, drawn)
    return drawn


def multiplicities_of_samples(
    weights: CumulativeWeights, seed: int, numbers: np.ndarray, n_draws: int | None = None
) -> np.ndarray:
    """`multiplicities` of several samples, int64 (samples, n)."""
    drawn = np.zeros((len(numbers), len(weights.ends)), np.int64)
    keys = streams(seed, numbers)
    _draw_samples(weights.ends, weights.is_even, keys, n_draws or weights.n_draws, drawn)
    return drawn


@kernel
def _fill_streams(seed, numbers, keys):
    for k in range(len(keys)):
        keys[k] = mixed_bits(seed, numbers[k])


@kernel
def _draw_samples(ends, is_even, keys, n_draws, drawn):
    for k in range(len(keys)):
        draw(ends, is_even, keys[k], n_draws, drawn[k])


@kernel
def draw(ends, is_even, key, n_draws, drawn):
    """Add the multiplicity of each row to `drawn` (n,). `is_even`: every row is one unit."""
    # a stack of intervals: first unit, end, first row, end of the rows, number of draws
    stack = np.empty((128, 5), np.int64)
    stack[0] = (0, ends[-1], 0, len(ends), n_draws)
    size = 1
    while size:
        size -= 1
        a, b, low, high, count = stack[size]
        state = mixed_bits(mixed_bits(key, np.uint64(a)), np.uint64(b))
        if high - low == 1:
            drawn[low] += count
        elif count <= _FEW:
            for k in range(count):
                state += np.uint64(0x9E3779B97F4A7C15)
                unit = a + np.int64(number_below(mixed_bits(state, np.uint64(k)), np.uint64(b - a)))
                drawn[unit if is_even else _row_of(ends, low, high, unit)] += 1
        else:
            middle = a + (b - a) // 2
            left = _count_left(state, count, np.uint64(middle - a), np.uint64(b - a))
            cut = middle if is_even else _row_of(ends, low, high, middle)
            begins = cut > 0 and ends[cut - 1] == middle  # the row begins at the middle
            stack[size] = (middle, b, cut, high, count - left)
            stack[size + 1] = (a, middle, low, cut if begins else cut + 1, left)
            size += 2


@kernel
def _subtract_drawn_units(ends, key, n_draws, left_out):
    """left_out[row] -= units of the row that are drawn; the draws are those of `draw`."""
    stack = np.empty((128, 5), np.int64)
    stack[0] = (0, ends[-1], 0, len(ends), n_draws)
    size = 1
    units = np.empty(_FEW, np.int64)
    while size:
        size -= 1
        a, b, low, high, count = stack[size]
        state = mixed_bits(mixed_bits(key, np.uint64(a)), np.uint64(b))
        if b - a == 1:
            left_out[low] -= count > 0
        elif count <= _FEW:
            for k in range(count):
                state += np.uint64(0x9E3779B97F4A7C15)
                units[k] = a + np.int64(
                    number_below(mixed_bits(state, np.uint64(k)), np.uint64(b - a))
                )
            drawn = np.sort(units[:count])
            for k in range(count):
                if k == 0 or drawn[k] != drawn[k - 1]:
                    left_out[_row_of(ends, low, high, drawn[k])] -= 1
        else:
            middle = a + (b - a) // 2
            left = _count_left(state, count, np.uint64(middle - a), np.uint64(b - a))
            cut = _row_of(ends, low, high, middle)
            begins = cut > 0 and ends[cut - 1] == middle
            stack[size] = (middle, b, cut, high, count - left)
            stack[size + 1] = (a, middle, low, cut if begins else cut + 1, left)
            size += 2


@kernel(inner=True)
def _count_left(state, count, left_units, n_units):
    """How many draws fall into the left half: `left_units` of the `n_units` of an interval."""
    left = 0
    if count > _MANY:
        return _many_left(state, count, float(left_units) / float(n_units))
    for k in range(count):
        state += np.uint64(0x9E3779B97F4A7C15)
        left += number_below(mixed_bits(state, np.uint64(k)), n_units) < left_units
    return left


@kernel(inner=True)
def _many_left(state, count, share):
    """`_count_left` for very many draws: the sum of twelve uniform numbers is almost normal."""
    total = -6.0
    for k in range(12):
        state += np.uint64(0x9E3779B97F4A7C15)
        total += float(mixed_bits(state, np.uint64(k)) >> np.uint64(11)) / float(1 << 53)
    left = np.rint(count * share + total * np.sqrt(count * share * (1.0 - share)))
    return np.int64(min(max(left, 0.0), float(count)))


@kernel(inner=True)
def _row_of(ends, low, high, unit):
    """The row in low .. high - 1 to which a unit belongs."""
    while high - low > 1:
        middle = (low + high) // 2
        if ends[middle - 1] <= unit:
            low = middle
        else:
            high = middle
    return low
