"""What every solver of a dual problem returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["SolverResult", "TracePoint"]


@dataclass(frozen=True)
class TracePoint:
    """The dual objective and the largest KKT violation after so many steps."""

    iterations: int
    objective: float
    violation: float


@dataclass(frozen=True)
class SolverResult:
    """An approximate solution of a `DualProblem`.

    alpha       float64 (m,) feasible
    rho         the offset of the decision function: f(x) = sum a_i y_i K(x_i, x) - rho
    r           of the nu machines: the margin (or minus the tube's half-width) in their scaling
    objective   1/2 a'Qa + p'a
    violation   the largest KKT violation over all variables, as the solver sees it
    iterations  elementary steps
    converged   whether the violation is below the tolerance asked for
    trace       how objective and violation came down
    doubt       what a careful reader should know, or nothing
    """

    alpha: np.ndarray
    rho: float
    r: float
    objective: float
    violation: float
    iterations: int
    converged: bool
    trace: list[TracePoint] = field(default_factory=list)
    doubt: str = ""
