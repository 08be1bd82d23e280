"""How far a point is from optimal: its values f, violation, objective and offsets.

With f_i = y_i G_i, G = Qa + p, the point is optimal when no variable whose y_i a_i can fall has a
larger f than one whose y_i a_i can grow; see `pair_steps`. At the optimum f is constant over the
free variables, and that is the offset rho. If the sum of alpha is kept, only variables of equal
sign form pairs, and each sign has its own offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, region

__all__ = [
    "ROWS_MEASURED",
    "SmoRule",
    "Variables",
    "measure",
    "measure_part",
    "offsets_of",
    "violation_of",
]

ROWS_MEASURED = 2048  # variables of a part
_NEGLIGIBLE = 1e-10  # relative to the largest alpha
_LEAST_BUDGET = 2_000_000
_BUDGET_PER_VARIABLE = 1000


@dataclass(frozen=True)
class SmoRule:
    """Tolerance, step limit (-1: a large one), and size of the blocks."""

    tol: float = 1e-3
    max_iter: int = -1
    block: int = 2048

    def budget(self, n_variables: int) -> int:
        """`max_iter`, or a limit that is hardly ever reached."""
        if self.max_iter >= 0:
            return self.max_iter
        return max(_LEAST_BUDGET, _BUDGET_PER_VARIABLE * n_variables)


class Variables(NamedTuple):
    """The variables of a dual problem, arrays (m,) as in `problems.DualProblem`; yp is y * p."""

    rows: np.ndarray
    y: np.ndarray
    u: np.ndarray
    yp: np.ndarray


@region
def measure_part(part, values, variables, alpha, keeps_sum, f, found):
    """f <- values + y p of the variables of a part; found[part] <- what it contributes.

    These are the lowest f of two groups, the highest, and the objective. values (n,) are (K c)_i.
    """
    rows, y, u, yp = variables
    lowest, highest = found[part, :2], found[part, 2:4]
    lowest[:], highest[:] = np.inf, -np.inf
    objective = 0.0
    for i in range(part * ROWS_MEASURED, min((part + 1) * ROWS_MEASURED, len(alpha))):
        f[i] = values[rows[i]] + yp[i]
        objective += alpha[i] * y[i] * (f[i] + yp[i])
        group = 1 if keeps_sum and y[i] < 0.0 else 0
        below, above = alpha[i] < u[i], alpha[i] > 0.0
        if below if y[i] > 0.0 else above:
            lowest[group] = min(lowest[group], f[i])
        if above if y[i] > 0.0 else below:
            highest[group] = max(highest[group], f[i])
    found[part, 4] = objective


measure = measure_part.body


@kernel(inner=True)
def violation_of(low_a, low_b, high_a, high_b):
    """The KKT violation from the lowest and highest f of both groups."""
    return max(0.0, high_a - low_a, high_b - low_b)


@kernel
def offsets_of(variables, alpha, f, keeps_sum):
    """rho and r: the multipliers of y'a and e'a."""
    if not keeps_sum:
        return offset_of(variables, alpha, f, 0.0), 0.0
    above, below = offset_of(variables, alpha, f, 1.0), offset_of(variables, alpha, f, -1.0)
    return (above + below) / 2.0, (above - below) / 2.0


@kernel
def offset_of(variables, alpha, f, sign):
    """The mean f of the free variables, else the middle of the interval that bounds allow.

    Only variables whose y has this sign count; with sign 0, all.
    """
    _, y, u, _ = variables
    least = 0.0
    for i in range(len(alpha)):
        least = max(least, _NEGLIGIBLE * alpha[i])
    total, n_free, low, high = 0.0, 0, np.inf, -np.inf
    for i in range(len(alpha)):
        if sign * y[i] < 0.0:
            continue
        below, above = u[i] - alpha[i] > least, alpha[i] > least
        if below and above:
            total += f[i]
            n_free += 1
        if below if y[i] > 0.0 else above:
            low = min(low, f[i])
        if above if y[i] > 0.0 else below:
            high = max(high, f[i])
    if n_free > 0:
        return total / n_free
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2.0
    if np.isfinite(low):
        return low
    return high if np.isfinite(high) else 0.0
