"""Passes over the rows of a tile for Newton's method: dual variables, their sums, violations."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel, region
from margrove.margin.solvers.linear.row_groups import TILE_ROWS, combine_rows
from margrove.margin.solvers.linear.row_losses import loss_of, part_of

__all__ = [
    "LINEAR",
    "LOSS",
    "MASSES",
    "N_CHANGED",
    "N_CURVED",
    "N_SUMS",
    "QUADRATIC",
    "SMOOTHING",
    "measure_kinks",
    "measure_rows",
    "measure_squares",
    "scale_best_rows",
]

# The places of the sums of a machine: for each part of its dual variables (see `measure_kinks`)
# their absolute sum, and the linear and the quadratic term of the dual objective; losses; what the
# smoothing adds to the gap; how many rows have curvature, and how many gained or lost it.
MASSES: int = 0
LINEAR: int = 4
QUADRATIC: int = 8
LOSS, SMOOTHING, N_CURVED, N_CHANGED = 12, 13, 14, 15
N_SUMS = 16


@region
def measure_rows(
    tile, first, size, by_blas, X, rows, losses, own, machines, lengths, widths, values, moves,
    betas, slots, centres, flags, known, sums, combined,
):  # fmt: skip
    n_machines, columns, d = len(machines), combined.shape[1], combined.shape[2]
    n_parts = columns // n_machines
    group = first + tile
    begin, stop = group * size, min((group + 1) * size, len(rows))
    sums[group] = 0.0
    combined[group] = 0.0
    parts, product = np.empty(TILE_ROWS * columns), np.empty((columns, d))
    block = np.empty(TILE_ROWS * d if by_blas else 0)
    for start in range(begin, stop, TILE_ROWS):
        n = min(TILE_ROWS, stop - start)
        signed = parts[: n * columns].reshape(columns, n)
        for a in range(n_machines):
            k = machines[a]
            if lengths[a] != 0.0:
                _move(values[k, start : start + n], moves[k, start : start + n], lengths[a])
            flags_of, old_flags = flags[1 - known[k], k], flags[known[k], k]
            some = signed[a * n_parts : (a + 1) * n_parts]
            if n_parts == 2:
                measure_squares(
                    losses, own[k], start, values[k], betas[slots[a], k], flags_of, old_flags, some,
                    sums[group, a],
                )  # fmt: skip
            else:
                measure_kinks(
                    losses, own[k], widths[a], start, values[k], betas[centres[a], k],
                    betas[slots[a], k], flags_of, old_flags, some, sums[group, a],
                )  # fmt: skip
        combine_rows(by_blas, X, rows, start, signed, block, product, combined[group])


@kernel(inner=True)
def _move(values, moves, length):
    for i in range(len(values)):
        values[i] += length * moves[i]


@kernel(inner=True)
def measure_squares(losses, own, start, values, beta, flags, old_flags, parts, sums):
    """For n rows of squared losses: dual variables, whether they have curvature, and their parts.

    parts (2, n): positive and negative dual variables. There is no branch, so that the loop uses
    vector registers.
    """
    n_curved, n_changed = 0, 0
    n, tube = parts.shape[1], losses.tube
    codes, target, low, high, damping, factor = part_of(losses, start, start + n)
    values, beta = values[start : start + n], beta[start : start + n]
    flags, old_flags = flags[start : start + n], old_flags[start : start + n]
    positive, negative = parts[0], parts[1]
    for i in range(n):
        side = 1.0 if codes[i] == own else -1.0
        residual = target[i] - side * values[i]
        excess = max(residual - tube, 0.0) + min(residual + tube, 0.0)
        mirrored = min(max(excess * factor[i], low[i]), high[i])
        dual = side * mirrored
        is_curved = np.uint8(mirrored != 0.0)
        beta[i] = dual
        n_curved += is_curved
        n_changed += is_curved ^ old_flags[i]
        flags[i] = is_curved
        positive[i], negative[i] = max(dual, 0.0), min(dual, 0.0)
    sums[N_CURVED] += n_curved
    sums[N_CHANGED] += n_changed
    _add_squares_of_parts(codes, own, target, damping, tube, beta, sums)


@kernel(inner=True, fast_sums=True)
def _add_squares_of_parts(codes, own, target, damping, tube, beta, sums):
    """Add up the parts of the dual objective and the losses of the rows.

    Not in the loop that writes: there the order of sums would depend on where arrays are in memory.
    """
    loss = 0.0
    up, down, linear_up, linear_down, square_up, square_down = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(beta)):
        dual = beta[i]
        mirrored = dual if codes[i] == own else -dual
        linear = target[i] * mirrored - tube * abs(mirrored)
        square = 0.5 * damping[i] * mirrored * mirrored
        is_up = dual > 0.0
        loss += square
        up += max(dual, 0.0)
        down -= min(dual, 0.0)
        linear_up += linear if is_up else 0.0
        linear_down += 0.0 if is_up else linear
        square_up += square if is_up else 0.0
        square_down += 0.0 if is_up else square
    sums[MASSES] += up
    sums[MASSES + 1] += down
    sums[LINEAR] += linear_up
    sums[LINEAR + 1] += linear_down
    sums[QUADRATIC] += square_up
    sums[QUADRATIC + 1] += square_down
    sums[LOSS] += loss


@kernel(inner=True)
def measure_kinks(losses, own, width, start, values, centre, beta, flags, old_flags, parts, sums):
    """For n rows of smoothed losses: dual variables, whether they have curvature, and their parts.

    parts (4, n): positive and negative dual variables, first those between their bounds, then those
    at a bound. There is no branch, so that the loop uses vector registers.
    """
    n_curved, n_changed = 0, 0
    n, tube = parts.shape[1], losses.tube
    codes, target, low, high, _, factor = part_of(losses, start, start + n)
    values, centre, beta = values[start : start + n], centre[start : start + n], beta[start:]
    beta, flags, old_flags = beta[:n], flags[start : start + n], old_flags[start : start + n]
    up, down, high_up, low_down = parts[0], parts[1], parts[2], parts[3]
    for i in range(n):
        side = 1.0 if codes[i] == own else -1.0
        damping = width / factor[i]
        shifted = target[i] - side * (values[i] - damping * centre[i])
        excess = max(shifted - tube, 0.0) + min(shifted + tube, 0.0)
        mirrored = min(max(excess / damping, low[i]), high[i])
        dual = side * mirrored
        is_curved = (mirrored != 0.0) & (low[i] < mirrored) & (mirrored < high[i])
        inside, outside = (dual, 0.0) if is_curved else (0.0, dual)
        beta[i] = dual
        n_curved += np.uint8(is_curved)
        n_changed += np.uint8(is_curved) ^ old_flags[i]
        flags[i] = np.uint8(is_curved)
        up[i], down[i] = max(inside, 0.0), min(inside, 0.0)
        high_up[i], low_down[i] = max(outside, 0.0), min(outside, 0.0)
    sums[N_CURVED] += n_curved
    sums[N_CHANGED] += n_changed
    _add_kinks(codes, own, target, low, high, tube, values, beta, sums)
    for inside in range(2):
        _add_parts(codes, own, target, tube, beta, flags, np.uint8(1 - inside), 2 * inside, sums)


@kernel(inner=True, fast_sums=True)
def _add_kinks(codes, own, target, low, high, tube, values, beta, sums):
    """Add up the losses of the rows, and what the smoothing adds to the gap."""
    loss, conjugate = 0.0, 0.0
    for i in range(len(beta)):
        side = 1.0 if codes[i] == own else -1.0
        residual = target[i] - side * values[i]
        loss += high[i] * max(residual - tube, 0.0) - low[i] * max(-residual - tube, 0.0)
        conjugate += side * beta[i] * residual - tube * abs(beta[i])
    sums[LOSS] += loss
    sums[SMOOTHING] += loss - conjugate


@kernel(inner=True, fast_sums=True)
def _add_parts(codes, own, target, tube, beta, flags, flag, first, sums):
    """Add up the dual variables with this flag, and their terms of the dual objective, by sign."""
    up, down, linear_up, linear_down = 0.0, 0.0, 0.0, 0.0
    for i in range(len(beta)):
        dual = beta[i] if flags[i] == flag else 0.0
        linear = (target[i] if codes[i] == own else -target[i]) * dual - tube * abs(dual)
        is_up = dual > 0.0
        up += max(dual, 0.0)
        down -= min(dual, 0.0)
        linear_up += linear if is_up else 0.0
        linear_down += 0.0 if is_up else linear
    sums[MASSES + first] += up
    sums[MASSES + first + 1] += down
    sums[LINEAR + first] += linear_up
    sums[LINEAR + first + 1] += linear_down


@region(bare=True)
def scale_best_rows(
    tile, first, size, losses, own, machines, values, betas, slots, factors, order, out, worst
):
    group = first + tile
    begin, stop = group * size, min((group + 1) * size, len(order))
    for a in range(len(machines)):
        k = machines[a]
        worst[group, a] = 0.0
        for i in range(begin, stop):
            target, low, high, damping = loss_of(losses, i, own[k])
            beta = betas[slots[a], k, i]
            part = (0 if beta > 0.0 else 1) + (0 if low < beta < high else 2)
            beta *= factors[a, part]
            out[order[i], a] = beta
            gradient = damping * beta - (target - values[k, i])
            left = gradient + losses.tube if beta > 0.0 else gradient - losses.tube
            right = gradient - losses.tube if beta < 0.0 else gradient + losses.tube
            if beta > low:
                worst[group, a] = max(worst[group, a], left)
            if beta < high:
                worst[group, a] = max(worst[group, a], -right)
