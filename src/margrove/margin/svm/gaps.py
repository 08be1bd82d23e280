"""How far from optimal a point of a dual problem can be: duality gap and KKT violation.

For phi(a) = 1/2 a'Qa + p'a with gradient G = Qa + p, any multipliers rho of y'a = d and r of
e'a = s, and g = G - rho y - r e, convexity gives

    phi(a) - min phi  <=  sum_i  a_i g_i + u_i max(0, -g_i)

Every term is >= 0 and vanishes where the KKT conditions hold. For C-SVC it is exactly the primal
objective 1/2 ||w||^2 + sum C_i xi_i minus the dual one, with b = -rho; for the others likewise.
"""

from __future__ import annotations

import numpy as np

from margrove.margin.svm.problems import DualProblem

__all__ = ["duality_gap", "gap_terms", "gradient_of"]


def gradient_of(problem: DualProblem, values: np.ndarray) -> np.ndarray:
    """G = Qa + p from the values (K c)_i of the points."""
    return problem.y * values[problem.rows] + problem.p


def gap_terms(
    problem: DualProblem, alpha: np.ndarray, values: np.ndarray, rho: float, r: float = 0.0
) -> np.ndarray:
    """What each variable contributes to the duality gap."""
    reduced = gradient_of(problem, values) - rho * problem.y - r
    missing = np.maximum(-reduced, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        at_bound = np.where(missing > 0, problem.u * missing, 0.0)
    return np.maximum(alpha * reduced + at_bound, 0.0)


def duality_gap(
    problem: DualProblem, alpha: np.ndarray, values: np.ndarray, rho: float, r: float = 0.0
) -> float:
    return float(gap_terms(problem, alpha, values, rho, r).sum())
