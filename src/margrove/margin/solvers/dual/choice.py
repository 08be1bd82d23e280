"""The solvers of dual problems by name, as in `solver=` of an estimator.

"smo" works on blocks and rows of the Gram matrix. The others, which are taught in the lectures,
need the full Gram matrix and are for problems of up to some thousand rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.margin.solvers.dual.coordinate_descent import CoordinateProcess
from margrove.margin.solvers.dual.hull import STEPS_PER_SWEEP, HullProcess
from margrove.margin.solvers.dual.hull_margins import (
    HardMarginProcess,
    HardMarginThroughOrigin,
    SoftMarginProcess,
)
from margrove.margin.solvers.dual.many_problems import Solver
from margrove.margin.solvers.dual.primal_sgd import SubgradientProcess
from margrove.margin.svm import DualProblem

__all__ = ["DENSE_SOLVERS", "SGD_GAP", "Demand"]

SGD_GAP = 1e-2  # the relative duality gap at which the subgradient method stops


@dataclass(frozen=True)
class Demand:
    """Tolerance, step limit and seed of a solver, and the names of rows and problem in messages."""

    tol: float
    max_iter: int
    seed: int
    names: np.ndarray
    title: str = ""

    def limit(self, name: str, steps: int = 1) -> dict[str, Any]:
        """`max_iter` as the argument `name`, in rounds of `steps` steps; {} without a limit."""
        return {name: max(1, self.max_iter // steps)} if self.max_iter >= 0 else {}


def _by_hull(K: np.ndarray, problem: DualProblem, demand: Demand) -> Solver:
    limit = demand.limit("max_sweeps", steps=STEPS_PER_SWEEP)
    if problem.keeps_sum:
        return HullProcess(K, problem, tol=demand.tol, **limit)
    if np.isfinite(problem.u).all():
        limit |= demand.limit("max_reductions", steps=STEPS_PER_SWEEP)
        return SoftMarginProcess(K, problem.y, problem.u, tol=demand.tol, **limit)
    kind = HardMarginProcess if problem.has_bias else HardMarginThroughOrigin
    return kind(K, problem.y, tol=demand.tol, names=demand.names, title=demand.title, **limit)


def _by_coordinates(K: np.ndarray, problem: DualProblem, demand: Demand) -> Solver:
    return CoordinateProcess(
        K,
        problem,
        tol=demand.tol,
        seed=demand.seed,
        names=demand.names,
        **demand.limit("max_epochs"),
    )


def _by_subgradients(K: np.ndarray, problem: DualProblem, demand: Demand) -> Solver:
    return SubgradientProcess(
        K,
        problem,
        tol_gap=SGD_GAP,
        seed=demand.seed,
        names=demand.names,
        **demand.limit("max_epochs"),
    )


DENSE_SOLVERS: dict[str, Callable[[np.ndarray, DualProblem, Demand], Solver]] = {
    "hull": _by_hull,
    "cd": _by_coordinates,
    "sgd": _by_subgradients,
}
