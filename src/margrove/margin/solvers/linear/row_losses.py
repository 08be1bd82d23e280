"""The losses of rows, for several machines at once, and loops over the rows of one machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.margin.linear import LinearProblem, OneVsRest, hinge_loss, row_dual, row_loss

__all__ = [
    "RowLosses",
    "is_smooth",
    "loss_of",
    "losses_of",
    "part_of",
    "smoothed_rows",
    "total_loss",
]


class RowLosses(NamedTuple):
    """The losses of rows for all machines: mirrored where codes[i] is not the machine's own code.

    codes                        int32 (m,)
    target, low, high, damping   float64 (m,), and tube: see `LossOfRows`
    factor                       float64 (m,)  the curvature; of losses with a kink, the largest
                                 dual variable: the curvature times the width of the smoothing
    """

    codes: np.ndarray
    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    damping: np.ndarray
    factor: np.ndarray
    tube: float


def losses_of(problem: LinearProblem | OneVsRest, order: np.ndarray) -> RowLosses:
    if isinstance(problem, LinearProblem):
        codes, loss = np.zeros(len(order), np.int64), problem.loss.in_order(order)
    else:
        codes, C = problem.codes[order], problem.C[order]
        loss = hinge_loss(np.ones(len(order)), C, squared=problem.squared)
    target, low, high, damping, tube = loss
    factor = 1.0 / damping if is_smooth(problem) else np.maximum(high, -low)
    return RowLosses(
        codes=read_only(codes.astype(np.int32)),
        target=read_only(target),
        low=read_only(low),
        high=read_only(high),
        damping=read_only(damping),
        factor=read_only(factor),
        tube=float(tube),
    )


def is_smooth(problem: LinearProblem | OneVsRest) -> bool:
    """Whether the losses have a gradient everywhere."""
    return problem.is_smooth if isinstance(problem, LinearProblem) else problem.squared


@kernel(inner=True)
def loss_of(losses, i, own):
    """target, low, high and damping of a row for a machine."""
    if losses.codes[i] == own:
        return losses.target[i], losses.low[i], losses.high[i], losses.damping[i]
    return -losses.target[i], -losses.high[i], -losses.low[i], losses.damping[i]


@kernel(inner=True)
def part_of(losses, begin, stop):
    """Arrays of some rows: indices from zero need no check in a loop."""
    return (
        losses.codes[begin:stop], losses.target[begin:stop], losses.low[begin:stop],
        losses.high[begin:stop], losses.damping[begin:stop], losses.factor[begin:stop],
    )  # fmt: skip


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


@kernel
def total_loss(target, low, high, damping, tube, values):
    """The sum of the losses of all rows."""
    total = 0.0
    for i in range(len(values)):
        total += row_loss(target[i] - values[i], low[i], high[i], damping[i], tube)
    return total
