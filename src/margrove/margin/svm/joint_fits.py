"""Fits of small machines, one or many together as those of bagging, in one compiled call.

Fits of one machine after the other on several threads wait for Python's lock, which each holds for
an eighth of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import JointFits, is_unattended
from margrove.margin.kernels import kernel_class, tile_of, tile_points
from margrove.margin.solvers.dual import (
    MatrixBuffers,
    MatrixProblems,
    SmoRule,
    SolverResult,
    solve_with_matrices,
)
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.machine_tasks import Machine

__all__ = ["JointMachines", "StatedFit", "can_be_joint", "solved_alone"]

_MOST_ROWS = SmoRule.block  # of a Gram matrix that is computed at once, in float64
_MOST_CELLS = 2**20  # of the rows of a fit, of which several are in memory
_MOST_ROWS_ALONE, _MOST_WORK_ALONE = 1000, 10**7  # so that no fit takes longer than a slice
_NO_MATRIX = np.empty((0, 0))


@dataclass(frozen=True)
class StatedFit:
    """A fit whose dual problems are stated and not solved.

    X, y         as given to `fit`
    learnt       turns results into fitted attributes
    attributes   the same with what only a fit that is over has; it may raise errors and warn
    """

    training: TrainingSet
    machines: list[Machine]
    X: Any
    y: Any
    learnt: Callable[[list[SolverResult]], dict[str, Any]]
    attributes: Callable[[list[SolverResult]], dict[str, Any]]


@dataclass
class _BegunFit:
    """problems: None if they are not solved together with others."""

    estimator: Any
    stated: StatedFit
    problems: MatrixProblems | None
    results: list[SolverResult] | None = None


def can_be_joint(machine: Any, X: Any, n_rows: int) -> bool:
    """Whether copies of a machine fitted to `n_rows` rows of X are usually solved at once."""
    kind = kernel_class(machine.kernel)
    return (
        type(machine).__module__.startswith("margrove.")  # other classes may override anything
        and isinstance(X, np.ndarray)
        and X.dtype != object
        and n_rows <= _MOST_ROWS
        and n_rows * X.shape[1] <= _MOST_CELLS
        and kind is not None
        and "code" in vars(kind)
        and not getattr(machine, "probability", False)
        and not machine.warm_start
        and not machine.verbose
        and machine.max_time is None
        and machine.on_interrupt == "raise"
        and not getattr(machine, "_skl_callbacks", None)
    )


class JointMachines(JointFits):
    """See `JointFits`; memory for Gram matrices is kept from call to call."""

    def __init__(self) -> None:
        self._buffers = MatrixBuffers()

    def begin(self, estimator: Any, X: Any, y: Any, **params: Any) -> _BegunFit:
        stated = estimator._stated(X, y, **params)
        return _BegunFit(estimator, stated, _whole_problems(estimator, stated))

    def solve(self, begun: Sequence[_BegunFit], n_threads: int) -> list[bool]:
        stated = [fit for fit in begun if fit.problems is not None]
        problems = [fit.problems for fit in stated if fit.problems is not None]
        if problems:
            found = solve_with_matrices(problems, self._buffers, n_threads=n_threads)
            for fit, results in zip(stated, found, strict=True):
                fit.results = results
        return [fit.results is not None for fit in begun]

    def finish(self, begun: _BegunFit) -> None:
        estimator, stated = begun.estimator, begun.stated
        results = estimator._solve(stated) if begun.results is None else begun.results
        estimator._commit(stated.attributes(results))


def solved_alone(estimator: Any, stated: StatedFit) -> list[SolverResult] | None:
    """The solution of a small fit in one compiled call; None if it takes more than that.

    A process, its slices and a shared matrix take longer than the solution itself. The results are
    those of the process, bit for bit.
    """
    n_points, n_machines = len(stated.training.points), len(stated.machines)
    is_short = (
        n_points <= _MOST_ROWS_ALONE
        and n_points**2 * n_machines <= _MOST_WORK_ALONE
        and n_points * stated.training.X.shape[1] <= _MOST_CELLS
        and estimator.max_time is None
        and estimator.on_interrupt == "raise"
        and not estimator.verbose
        and is_unattended(estimator)
    )
    problems = _whole_problems(estimator, stated) if is_short else None
    return None if problems is None else solve_with_matrices([problems], n_threads=1)[0]


def _whole_problems(estimator: Any, stated: StatedFit) -> MatrixProblems | None:
    """The problems of a fit; None if `fit` does not solve them by whole rounds in float64."""
    training, machines = stated.training, stated.machines
    plan = estimator._plan(training, machines)
    points = tile_points(training.kernel, training.points)
    if (
        plan.solver != "smo"
        or not plan.is_shared
        or points is None
        or points.X.dtype != np.float64
        or len(points.X) > _MOST_ROWS
        or max(len(machine.problem) for machine in machines) > SmoRule.block
    ):
        return None
    return MatrixProblems(
        points,
        training.kernel.diagonal(training.points),
        [machine.problem for machine in machines],
        [estimator._rule(machine) for machine in machines],
        [tile_of(_NO_MATRIX, machine.members) for machine in machines],
        [len(machine.members) for machine in machines],
    )
