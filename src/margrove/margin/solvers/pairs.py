"""Pair steps on one tile of a Gram matrix: the compiled heart of sequential minimal optimisation.

    minimise    1/2 a'Qa + p'a     subject to   y'a = d,   0 <= a <= u,   Q_ij = y_i y_j K_ij

With f_i = y_i G_i, G = Qa + p, let  up = {i: y_i a_i can grow}  and  low = {i: it can shrink}. The
point is optimal when  max over low of f  <=  min over up of f; the difference is the KKT violation.
A step takes i = argmin f over up and, of all j in low with f_j > f_i, the one that promises the
largest decrease (f_j - f_i)^2 / eta, eta = K_ii + K_jj - 2 K_ij (Fan, Chen and Lin 2005), and moves
y_i a_i up and y_j a_j down by (f_j - f_i) / eta, clipped to the bounds: the lectures'
alpha_2 + y_2 (E_1 - E_2) / eta, clipped to [L, H]. Where eta is not safely positive, as for
indefinite kernels or where rounding drowns it, a small positive number stands in: the step is
shorter or runs to a bound, and the objective still falls.

The loops are written so that they vectorise. Floats are compared through their bits, as integers of
the same order, because reductions over floats do not vectorise; membership in up and low is a
huge number added to a copy of f, because branches do not either.
"""

from __future__ import annotations

import numpy as np

from margrove._jit import kernel, overload

__all__ = ["FLOAT32_ETA", "FLOAT64_ETA", "SUBTILE", "solve_tile"]

SUBTILE = 512  # of float32: a megabyte, the second-level cache of a core
FLOAT32_ETA = 1e-6
FLOAT64_ETA = 1e-14

_HUGE = 1e30
_TINY_ETA = 1e-12
_INNER_SHARE = 0.1  # a subtile is solved to this share of the violation at its start
_STEPS_A_VARIABLE = 10


def _ordered(x):
    """The bits of a float as an integer that compares as the float does."""
    return _ordered_32(x) if isinstance(x, np.float32) else _ordered_64(x)


def _unordered(key):
    """The float behind `_ordered(x)`."""
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


@kernel
def solve_tile(
    K, first, middle, second, diagonal, y, u, alpha, f, by_class, tol, eta_floor, max_steps, size,
    record_first, record_second, record_change,
):  # fmt: skip
    """Pair steps on a tile until its violation is below tol; alpha and f follow.

    The tile has m variables; variable t stands in row and column first + t of K for t < middle and
    second + (t - middle) beyond: a tile of its own, or the two runs of a pair of classes.
    f is float64; `by_class` lets only pairs of equal y change. Tiles larger than `size` are solved
    by subtiles of the variables that violate most, half of them kept from the subtile before.
    record_*: (>= max_steps,) to be told of each step, or empty.

    Returns (steps, violation).
    """
    m = len(alpha)
    s = min(m, size)
    chosen = np.empty(s, np.int64)
    is_chosen = np.zeros(m, np.bool_)
    n_kept = 0
    tile = np.empty((s, s), K.dtype)
    up, low, gains = np.empty(s, K.dtype), np.empty(s, K.dtype), np.empty(s, K.dtype)
    own_diagonal, own_y = np.empty(s, K.dtype), np.empty(s)
    own_u, own_alpha, before = np.empty(s), np.empty(s), np.empty(s)
    keys = np.empty(m)
    done = 0
    while True:
        violation, middle_f = _violation(y, u, alpha, f, by_class)
        if violation < tol or done >= max_steps:
            return done, violation
        if m <= size:
            n_chosen = m
            for t in range(m):
                chosen[t] = t
        else:
            n_chosen = _choose(y, u, alpha, f, chosen, n_kept, is_chosen, keys)
        n_positive = _positives_first(y, chosen, n_chosen)
        for k in range(n_chosen):
            t = chosen[k]
            row = K[first + t if t < middle else second + (t - middle)]
            for j in range(n_chosen):
                v = chosen[j]
                tile[k, j] = row[first + v if v < middle else second + (v - middle)]
            own_diagonal[k] = diagonal[t]
            own_y[k], own_u[k] = y[t], u[t]
            own_alpha[k], before[k] = alpha[t], alpha[t]
            # Near the solution what matters lies close together: float32 resolves differences.
            shifted = min(max(f[t] - middle_f, -0.1 * _HUGE), 0.1 * _HUGE)
            can_rise, can_fall = _moves(y[t], u[t], alpha[t])
            up[k] = shifted if can_rise else _HUGE
            low[k] = shifted if can_fall else -_HUGE
        target = tol if m <= size else max(tol, _INNER_SHARE * violation)
        cap = min(max_steps - done, max(1000, _STEPS_A_VARIABLE * s))
        steps = _pair_steps(
            tile, n_chosen, own_diagonal, own_y, own_u, own_alpha, up, low, gains,
            n_positive if by_class else n_chosen, target, eta_floor, cap, chosen,
            record_first, record_second, record_change, done,
        )  # fmt: skip
        if steps == 0:
            return done, violation
        done += steps
        for k in range(n_chosen):
            change = y[chosen[k]] * (own_alpha[k] - before[k])
            if change != 0.0:
                t = chosen[k]
                alpha[t] = own_alpha[k]
                row = K[first + t if t < middle else second + (t - middle)]
                for v in range(middle):
                    f[v] += change * row[first + v]
                for v in range(middle, m):
                    f[v] += change * row[second + (v - middle)]
        n_kept = _keep_half(chosen, n_chosen, own_alpha, own_u, is_chosen)


@kernel
def _moves(y, u, alpha):
    """Whether y * alpha can grow, and whether it can shrink."""
    below, above = alpha < u, alpha > 0.0
    if y > 0:
        return below, above
    return above, below


@kernel
def _violation(y, u, alpha, f, by_class):
    """The largest KKT violation and the f in its middle."""
    worst, middle = -np.inf, 0.0
    for sign in (1.0, -1.0):
        lowest, highest = np.inf, -np.inf
        for t in range(len(f)):
            if by_class and y[t] != sign:
                continue
            can_rise, can_fall = _moves(y[t], u[t], alpha[t])
            if can_rise and f[t] < lowest:
                lowest = f[t]
            if can_fall and f[t] > highest:
                highest = f[t]
        if highest - lowest > worst:
            worst, middle = highest - lowest, 0.5 * (highest + lowest)
        if not by_class:
            break
    return worst, middle


@kernel
def _positives_first(y, chosen, n_chosen):
    """Reorder `chosen`, stably; return how many have y = +1."""
    count = 0
    ordered = np.empty(n_chosen, np.int64)
    for k in range(n_chosen):
        if y[chosen[k]] > 0:
            ordered[count] = chosen[k]
            count += 1
    rest = count
    for k in range(n_chosen):
        if y[chosen[k]] < 0:
            ordered[rest] = chosen[k]
            rest += 1
    for k in range(n_chosen):
        chosen[k] = ordered[k]
    return count


@kernel
def _choose(y, u, alpha, f, chosen, n_kept, is_chosen, keys):
    """Fill `chosen` beyond its n_kept entries with the worst violators of both kinds."""
    count = n_kept
    for side in range(2):
        wanted = (len(chosen) - n_kept) // 2 if side == 0 else len(chosen) - count
        candidates = 0
        for t in range(len(f)):
            can_rise, can_fall = _moves(y[t], u[t], alpha[t])
            if not is_chosen[t] and (can_rise if side == 0 else can_fall):
                keys[candidates] = f[t] if side == 0 else -f[t]
                candidates += 1
        if candidates > wanted:
            limit = np.partition(keys[:candidates], wanted - 1)[wanted - 1]
        else:
            limit = np.inf
        # First those strictly beyond the limit, then ties in order of position.
        for with_ties in range(2):
            for t in range(len(f)):
                if wanted == 0:
                    break
                can_rise, can_fall = _moves(y[t], u[t], alpha[t])
                key = f[t] if side == 0 else -f[t]
                if (
                    not is_chosen[t]
                    and (can_rise if side == 0 else can_fall)
                    and (key < limit or (with_ties == 1 and key == limit))
                ):
                    chosen[count] = t
                    is_chosen[t] = True
                    count += 1
                    wanted -= 1
    return count


@kernel
def _keep_half(chosen, n_chosen, alpha, u, is_chosen):
    """Keep up to half of a subtile for the next one, free variables first; forget the others."""
    before = chosen[:n_chosen].copy()
    kept = 0
    for wants_free in (True, False):
        for k in range(n_chosen):
            is_free = alpha[k] > 0.0 and alpha[k] < u[k]
            if is_free == wants_free:
                t = before[k]
                is_chosen[t] = kept < len(chosen) // 2
                if is_chosen[t]:
                    chosen[kept] = t
                    kept += 1
    return kept


@kernel(fast_sums=True)
def _pair_steps(
    K, n, diagonal, y, u, alpha, up, low, gains, split, tol, eta_floor, max_steps, names,
    record_first, record_second, record_change, n_recorded,
):  # fmt: skip
    """Steps on a contiguous tile; up and low are f where a variable may move, else +-huge.

    Pairs come from the first `split` variables or from the others, never one from each.
    """
    real = K.dtype.type
    zero, two, relative, tiny = real(0.0), real(2.0), real(eta_floor), real(_TINY_ETA)
    # Loops start at 0: a start that might be negative would be checked for at every index.
    up_b, low_b = up[split:n], low[split:n]
    up_a, low_a = up[:split], low[:split]
    lowest, highest = _move_all(up_a, low_a, K[0], K[0], zero, zero)
    lowest_b, highest_b = _move_all(up_b, low_b, K[0], K[0], zero, zero)
    for step in range(max_steps):
        begin, end, worst = 0, split, lowest
        gap = highest - lowest
        if highest_b - lowest_b > gap:
            begin, end, worst = split, n, lowest_b
            gap = highest_b - lowest_b
        if gap < tol:
            return step
        i = begin
        while i < end - 1 and up[i] != worst:
            i += 1
        row_i, diagonal_i = K[i], diagonal[i]
        best = _ordered(zero)
        row, own_low, own_diagonal = row_i[begin:end], low[begin:end], diagonal[begin:end]
        for t in range(end - begin):
            promised = max(own_low[t] - worst, zero)
            both = diagonal_i + own_diagonal[t]
            eta = max(max(both - two * row[t], relative * both), tiny)  # noqa: PLW3301
            gain = promised * promised / eta
            gains[t] = gain
            best = max(best, _ordered(gain))
        most = _unordered(best)
        j = begin
        while j < end - 1 and gains[j - begin] != most:
            j += 1
        both = diagonal_i + diagonal[j]
        eta = max(max(both - two * row_i[j], relative * both), tiny)  # noqa: PLW3301
        room_i = u[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else u[j] - alpha[j]
        room = min(room_i, room_j)
        length = min(np.float64(low[j] - worst) / np.float64(eta), room)
        old_i, old_j = alpha[i], alpha[j]
        # Landing on a bound is exact, or rounding would leave dust that counts as free.
        if length == room_i:
            alpha[i] = u[i] if y[i] > 0 else 0.0
        else:
            alpha[i] += y[i] * length
        if length == room_j:
            alpha[j] = 0.0 if y[j] > 0 else u[j]
        else:
            alpha[j] -= y[j] * length
        change_i, change_j = y[i] * (alpha[i] - old_i), y[j] * (alpha[j] - old_j)
        if change_i == 0.0 and change_j == 0.0:  # the end of floating point
            return step
        if len(record_first) > 0:
            record_first[n_recorded + step] = names[i]
            record_second[n_recorded + step] = names[j]
            record_change[n_recorded + step] = length
        f_i, f_j = up[i], low[j]
        can_rise, can_fall = _moves(y[i], u[i], alpha[i])
        up[i], low[i] = f_i if can_rise else real(_HUGE), f_i if can_fall else real(-_HUGE)
        can_rise, can_fall = _moves(y[j], u[j], alpha[j])
        up[j], low[j] = f_j if can_rise else real(_HUGE), f_j if can_fall else real(-_HUGE)
        row_j = K[j]
        move_i, move_j = real(change_i), real(change_j)
        lowest, highest = _move_all(up_a, low_a, row_i, row_j, move_i, move_j)
        lowest_b, highest_b = _move_all(up_b, low_b, row_i[split:n], row_j[split:n], move_i, move_j)
    return max_steps


@kernel(fast_sums=True)
def _move_all(up, low, row_i, row_j, change_i, change_j):
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
