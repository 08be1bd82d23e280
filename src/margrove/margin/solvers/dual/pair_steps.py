"""Pair steps on one tile of a Gram matrix: the compiled loop of sequential minimal optimisation.

    minimise    1/2 a'Qa + p'a     subject to   y'a = d,   0 <= a <= u,   Q_ij = y_i y_j K_ij

With f_i = y_i G_i, G = Qa + p, let  up = {i: y_i a_i can grow}  and  low = {i: it can shrink}. The
point is optimal when  max over low of f  <=  min over up of f; the difference is the KKT violation.
A step takes i = argmin f over up and, of all j in low with f_j > f_i, the one with the largest
expected decrease (f_j - f_i)^2 / eta, eta = K_ii + K_jj - 2 K_ij (Fan, Chen and Lin 2005). It moves
y_i a_i up and y_j a_j down by (f_j - f_i) / eta, clipped to the bounds: in the lectures this is
alpha_2 + y_2 (E_1 - E_2) / eta, clipped to [L, H]. If eta is not safely positive, because of an
indefinite kernel or rounding, it is replaced by a small positive number: the step is then shorter
or ends at a bound, and the objective still falls.

The loops are written so that they vectorise. Floats are compared by their bits, as integers of the
same order, because reductions over floats do not vectorise. Membership in up and low is encoded by
a huge number in a copy of f, because branches do not vectorise either.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, overload

__all__ = ["FLOAT32_ETA", "FLOAT64_ETA", "PairRecord", "solve_tile"]

FLOAT32_ETA = 1e-6
FLOAT64_ETA = 1e-14

_HUGE = 1e30
_TINY_ETA = 1e-12
_BLOCK = 64


class PairRecord(NamedTuple):
    """Pairs and lengths of the steps: arrays for all of them, or empty to record nothing."""

    first: np.ndarray
    second: np.ndarray
    length: np.ndarray


def _ordered(x):
    """The bits of a float as an integer with the same order."""
    return _ordered_32(x) if isinstance(x, np.float32) else _ordered_64(x)


def _unordered(key):
    """The inverse of `_ordered`."""
    return _unordered_32(key) if isinstance(key, np.int32) else _unordered_64(key)


def _ordered_32(x):
    bits = np.float32(x).view(np.int32)
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


def _ordered_64(x):
    bits = np.float64(x).view(np.int64)
    return np.int64(bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF)))


def _unordered_32(key):
    return np.int32(key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)


def _unordered_64(key):
    return np.int64(key ^ ((key >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


@overload(_ordered)
def _ordered_compiled(x):
    def narrow(x):
        bits = np.float32(x).view(np.int32)
        return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))

    def wide(x):
        bits = np.float64(x).view(np.int64)
        return np.int64(bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF)))

    return narrow if x.bitwidth == 32 else wide


@overload(_unordered)
def _unordered_compiled(key):
    def narrow(key):
        return np.int32(key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF))).view(np.float32)

    def wide(key):
        return np.int64(key ^ ((key >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))).view(
            np.float64
        )

    return narrow if key.bitwidth == 32 else wide


@kernel(fast_sums=True)
def solve_tile(tile, diagonal, y, u, alpha, f, by_class, tol, eta_floor, max_steps, record):
    """Pair steps on a tile until its violation is below tol; returns their number.

    tile: a `TileView` of m variables in two ranges. With `by_class` only pairs of one range
    change. alpha (m,) is changed in place; f float64 (m,) is not changed. record: a `PairRecord`.
    """
    K, first, middle, second = tile.K, tile.first, tile.middle, tile.second
    m = len(alpha)
    real = K.dtype.type
    zero, relative, tiny, huge = real(0.0), real(eta_floor), real(_TINY_ETA), real(_HUGE)
    up, low = np.empty(m, K.dtype), np.empty(m, K.dtype)
    diagonals, gains = np.empty(m, K.dtype), np.empty(m, K.dtype)
    shift = _middle_f(y, u, alpha, f)
    for t in range(m):
        # Near the solution the important values are close together: float32 resolves differences.
        shifted = real(min(max(f[t] - shift, -0.1 * _HUGE), 0.1 * _HUGE))
        can_rise, can_fall = _moves(y[t], u[t], alpha[t])
        up[t] = shifted if can_rise else huge
        low[t] = shifted if can_fall else -huge
        diagonals[t] = diagonal[t]
    # Loops run over separate arrays from 0: a start that might be negative would be checked at
    # every index, and nothing would vectorise.
    up_a, up_b, low_a, low_b = up[:middle], up[middle:], low[:middle], low[middle:]
    diagonal_a, diagonal_b = diagonals[:middle], diagonals[middle:]
    gains_a, gains_b = gains[:middle], gains[middle:]
    size_b = m - middle
    lowest_a, highest_a = _update_all(up_a, low_a, K[0], K[0], zero, zero)
    lowest_b, highest_b = _update_all(up_b, low_b, K[0], K[0], zero, zero)
    for step in range(max_steps):
        in_a = in_b = True
        if by_class:
            in_a = highest_a - lowest_a >= highest_b - lowest_b
            in_b = not in_a
            gap = highest_a - lowest_a if in_a else highest_b - lowest_b
            lowest = lowest_a if in_a else lowest_b
        else:
            gap = max(highest_a, highest_b) - min(lowest_a, lowest_b)
            lowest = min(lowest_a, lowest_b)
        if gap < tol:
            return step
        i = _where(up_a, lowest) if in_a else -1
        if i < 0:
            i = middle + _where(up_b, lowest)
        row_i = K[first + i if i < middle else second + (i - middle)]
        diagonal_i = diagonals[i]
        best_a = best_b = _ordered(zero)
        if in_a:
            row = row_i[first : first + middle]
            best_a = _expected_gains(
                low_a, row, lowest, diagonal_i, diagonal_a, relative, tiny, gains_a
            )
        if in_b:
            row = row_i[second : second + size_b]
            best_b = _expected_gains(
                low_b, row, lowest, diagonal_i, diagonal_b, relative, tiny, gains_b
            )
        if best_a >= best_b:
            j = _where(gains_a, _unordered(best_a))
        else:
            j = middle + _where(gains_b, _unordered(best_b))
        row_j = K[first + j if j < middle else second + (j - middle)]
        K_ij = row_i[first + j if j < middle else second + (j - middle)]
        both = diagonal_i + diagonals[j]
        eta = max(np.float64(both) - 2.0 * np.float64(K_ij), np.float64(relative * both))
        eta = max(eta, _TINY_ETA)
        limit_i = u[i] - alpha[i] if y[i] > 0 else alpha[i]
        limit_j = alpha[j] if y[j] > 0 else u[j] - alpha[j]
        limit = min(limit_i, limit_j)
        length = min(np.float64(low[j] - lowest) / eta, limit)
        old_i, old_j = alpha[i], alpha[j]
        # A variable that reaches its bound is set to it exactly, else rounding would leave it free.
        if length == limit_i:
            alpha[i] = u[i] if y[i] > 0 else 0.0
        else:
            alpha[i] += y[i] * length
        if length == limit_j:
            alpha[j] = 0.0 if y[j] > 0 else u[j]
        else:
            alpha[j] -= y[j] * length
        change_i, change_j = y[i] * (alpha[i] - old_i), y[j] * (alpha[j] - old_j)
        if change_i == 0.0 and change_j == 0.0:  # the limit of floating point
            return step
        if len(record.first) > 0:
            record.first[step], record.second[step], record.length[step] = i, j, length
        f_i, f_j = up[i], low[j]
        can_rise, can_fall = _moves(y[i], u[i], alpha[i])
        up[i], low[i] = f_i if can_rise else huge, f_i if can_fall else -huge
        can_rise, can_fall = _moves(y[j], u[j], alpha[j])
        up[j], low[j] = f_j if can_rise else huge, f_j if can_fall else -huge
        move_i, move_j = real(change_i), real(change_j)
        lowest_a, highest_a = _update_all(
            up_a,
            low_a,
            row_i[first : first + middle],
            row_j[first : first + middle],
            move_i,
            move_j,
        )
        if size_b > 0:
            end = second + size_b
            lowest_b, highest_b = _update_all(
                up_b, low_b, row_i[second:end], row_j[second:end], move_i, move_j
            )
    return max_steps


@kernel
def _moves(y, u, alpha):
    """Whether y * alpha can grow, and whether it can shrink."""
    below, above = alpha < u, alpha > 0.0
    if y > 0:
        return below, above
    return above, below


@kernel
def _middle_f(y, u, alpha, f):
    """The middle between the smallest f that may rise and the largest that may fall."""
    lowest, highest = np.inf, -np.inf
    for t in range(len(f)):
        can_rise, can_fall = _moves(y[t], u[t], alpha[t])
        if can_rise and f[t] < lowest:
            lowest = f[t]
        if can_fall and f[t] > highest:
            highest = f[t]
    if lowest == np.inf or highest == -np.inf:
        return 0.0
    return 0.5 * (highest + lowest)


@kernel
def _where(values, wanted):
    """The first position of a value; -1 if there is none.

    Full blocks are compared at once, which vectorises, until one contains it.
    """
    n_in_blocks = len(values) // _BLOCK * _BLOCK
    for start in range(0, n_in_blocks, _BLOCK):
        block = values[start : start + _BLOCK]
        found = 0
        for t in range(_BLOCK):
            found |= np.int32(block[t] == wanted)
        if found:
            for t in range(_BLOCK):
                if block[t] == wanted:
                    return start + t
    for t in range(n_in_blocks, len(values)):
        if values[t] == wanted:
            return t
    return -1


@kernel(fast_sums=True)
def _expected_gains(low, row_i, lowest, diagonal_i, diagonal, relative, tiny, gains):
    """The expected decrease of the objective for each partner j of i; returns the largest key."""
    real = low.dtype.type
    zero, two = real(0.0), real(2.0)
    best = _ordered(zero)
    for t in range(len(low)):
        gap = max(low[t] - lowest, zero)
        both = diagonal_i + diagonal[t]
        eta = max(max(both - two * row_i[t], relative * both), tiny)  # noqa: PLW3301
        gain = gap * gap / eta
        gains[t] = gain
        best = max(best, _ordered(gain))
    return best


@kernel(fast_sums=True)
def _update_all(up, low, row_i, row_j, change_i, change_j):
    """f += change_i K_i + change_j K_j, in both copies; returns min of up and max of low."""
    real = up.dtype.type
    lowest, highest = _ordered(real(_HUGE)), _ordered(real(-_HUGE))
    for t in range(len(up)):
        change = change_i * row_i[t] + change_j * row_j[t]
        f_up, f_low = up[t] + change, low[t] + change
        up[t], low[t] = f_up, f_low
        lowest = min(lowest, _ordered(f_up))
        highest = max(highest, _ordered(f_low))
    return _unordered(lowest), _unordered(highest)
