"""The result of every solver of a dual problem."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from margrove._runtime import MisfitError, array_of, records_of, table_of, whole_number

__all__ = ["SolverResult", "TracePoint"]


@dataclass(frozen=True)
class TracePoint:
    """The dual objective and the largest KKT violation after a number of steps."""

    iterations: int
    objective: float
    violation: float


@dataclass(frozen=True)
class SolverResult:
    """An approximate solution of a `DualProblem`.

    alpha       float64 (m,) feasible
    rho         the offset of the decision function: f(x) = sum a_i y_i K(x_i, x) - rho
    r           for nu machines: the margin (or minus half the width of the tube), in their scaling
    objective   1/2 a'Qa + p'a
    violation   the largest KKT violation over all variables, as measured by the solver
    iterations  number of elementary steps
    converged   whether the violation is below the tolerance
    trace       objective and violation during the solution
    doubt       a warning about the precision of the result, or ""
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

    def values(self) -> dict[str, Any]:
        """Plain values, for a checkpoint."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        numbers = {name: float(plain[name]) for name in _NUMBERS}
        return plain | numbers | {
            "alpha": self.alpha.copy(),
            "iterations": int(self.iterations),
            "converged": bool(self.converged),
            "trace": table_of(self.trace),
        }  # fmt: skip

    @classmethod
    def of_values(cls, values: Any, n_variables: int) -> SolverResult:
        """The result with these values, of a problem with `n_variables` variables."""
        if not isinstance(values, dict) or set(values) != {each.name for each in fields(cls)}:
            raise MisfitError("the fields of a result differ")
        types = dict.fromkeys(_NUMBERS, float) | {"converged": bool, "doubt": str}
        if any(type(values[name]) is not kind for name, kind in types.items()):
            raise MisfitError("the types of a result differ")
        alpha = array_of(values["alpha"], np.float64, (n_variables,), "alpha")
        iterations = whole_number(values["iterations"], "iterations")
        trace = records_of(TracePoint, values["trace"], "trace")
        return cls(**values | {"alpha": alpha, "iterations": iterations, "trace": trace})


_NUMBERS = ("rho", "r", "objective", "violation")
