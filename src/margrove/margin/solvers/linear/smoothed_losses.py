"""Loops over the rows of one machine: losses, dual variables and curvature."""

from __future__ import annotations

from margrove._runtime import kernel
from margrove.margin.linear import row_dual, row_loss

__all__ = ["pulls_along", "smoothed_rows", "total_loss"]


@kernel
def smoothed_rows(
    target, low, high, damping, tube, values, centre, width, beta, curved, signed, sums
):  # fmt: skip
    """Write beta, curvature and the two signs of beta of each row.

    sums (8,): losses, the sum of positive betas, the sum of negative ones (as a positive number),
    the linear part of the dual of either sign, its quadratic part of either sign, the part of the
    gap that is due to the smoothing.
    """
    for i in range(len(values)):
        residual = target[i] - values[i]
        cost = row_loss(residual, low[i], high[i], damping[i], tube)
        sums[0] += cost
        damping_i = damping[i]
        if width > 0.0:
            damping_i = width / max(high[i], -low[i])
        shifted = residual + damping_i * centre[i] if width > 0.0 else residual
        dual = row_dual(shifted, low[i], high[i], damping_i, tube)
        beta[i] = dual
        curved[i] = 1.0 / damping_i if dual != 0.0 and low[i] < dual < high[i] else 0.0
        signed[i, 0], signed[i, 1] = max(dual, 0.0), min(dual, 0.0)
        linear = target[i] * dual - tube * abs(dual)
        quadratic = 0.5 * damping[i] * dual * dual
        sums[7] += cost - (dual * residual - tube * abs(dual) - quadratic)
        if dual > 0.0:
            sums[1] += dual
            sums[3] += linear
            sums[5] += quadratic
        else:
            sums[2] -= dual
            sums[4] += linear
            sums[6] += quadratic


@kernel(fast_sums=True)
def pulls_along(target, low, high, damping, tube, values, moves, length, centre, width):
    """The sums of beta times move and of curvature times move^2, at values + length * moves."""
    first = 0.0
    second = 0.0
    for i in range(len(values)):
        residual = target[i] - values[i] - length * moves[i]
        damping_i = damping[i]
        if width > 0.0:
            damping_i = width / max(high[i], -low[i])
            residual += damping_i * centre[i]
        dual = row_dual(residual, low[i], high[i], damping_i, tube)
        first += dual * moves[i]
        if dual != 0.0 and low[i] < dual < high[i]:
            second += moves[i] * moves[i] / damping_i
    return first, second


@kernel
def total_loss(target, low, high, damping, tube, values):
    """The sum of the losses of all rows."""
    total = 0.0
    for i in range(len(values)):
        total += row_loss(target[i] - values[i], low[i], high[i], damping[i], tube)
    return total
