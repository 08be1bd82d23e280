"""The machines of a fit, and their solution as tasks of other processes.

A task is a range of machines, which share kernel values: those of a class with itself, or all. The
result of a machine depends on the plan of the fit, but neither on the other machines of its task
nor on the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from margrove._runtime import even_runs, single_threaded_blas, spread, tasks_wanted, workers_wanted
from margrove.margin.kernels import LARGEST_TILE
from margrove.margin.solvers.dual import ManyProblems, SmoRule, SolverResult
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.problems import DualProblem

__all__ = ["Machine", "SolverPlan", "SpreadMachines", "spread_machines"]

_TASKS_PER_WORKER = 3  # so that no worker waits long for the last; more tasks share less
_SLICE_WORK = 2e7


@dataclass(frozen=True)
class Machine:
    """One dual problem over some of the learnt rows, and its name in messages."""

    members: np.ndarray
    problem: DualProblem
    name: str = ""

    @property
    def unit(self) -> float:
        """The unit of the tolerance: tiny weights make the dual variables of nu machines tiny."""
        if not self.problem.p.any() or self.problem.keeps_sum:
            return min(1.0, 0.5 * float(self.problem.start.sum()))
        return 1.0


@dataclass(frozen=True)
class SolverPlan:
    """How all machines of a fit are solved; the last bits of the results depend on it.

    solver       the name of the solver
    is_shared    whether machines of one process share kernel values
    is_alone     whether there is only one machine, which is solved in blocks
    cache_bytes  memory for kernel values
    """

    solver: str
    is_shared: bool
    is_alone: bool
    cache_bytes: int


def spread_machines(
    estimator: Any, training: TrainingSet, machines: list[Machine], plan: SolverPlan
) -> SpreadMachines | None:
    """The machines as tasks, if a joblib backend for other processes is active.

    None if it is not, or if the machines cannot be solved independently.
    """
    if len(machines) == 1 or not tasks_wanted(estimator):
        return None
    n_workers = workers_wanted(estimator.n_jobs)
    seed = getattr(estimator, "random_state", 0)
    if plan.solver != "smo" and not (seed is None or isinstance(seed, Integral)):
        return None  # machines draw their seeds from one generator, in order
    largest = max(len(machine.members) for machine in machines)
    shares_all = plan.solver == "smo" and plan.is_shared and largest > LARGEST_TILE
    if shares_all and 4 * largest**2 * n_workers > plan.cache_bytes:
        return None  # one-vs-rest machines share all of K, and every task would need a copy
    reduced = replace(training, X=None, form=cast(Any, None))  # solvers do not need these
    task_plan = replace(plan, cache_bytes=_cache_of_task(plan.cache_bytes, largest, n_workers))
    return SpreadMachines((clone(estimator), reduced, task_plan), machines, n_workers)


def _cache_of_task(cache_bytes: int, largest: int, n_workers: int) -> int:
    """The cache of one task, but never fewer rows than a solver uses at once.

    With fewer rows, sums of rows are computed in several parts and rounded differently.
    """
    rows_at_once = 8 * largest * SmoRule.block
    return min(cache_bytes, max(cache_bytes // n_workers, rows_at_once))


class SpreadMachines:
    """Machines that other processes solve; see `slices.Process`. A round is a machine.

    shared  the estimator, the part of the training set that solvers need, and the `SolverPlan`
    """

    unit = "problem"

    def __init__(self, shared: Any, machines: list[Machine], n_workers: int) -> None:
        self.total: int | None = len(machines)
        self._shared = shared
        self._machines = machines
        costs = [float(len(machine.members)) ** 2 for machine in machines]
        self._ranges = even_runs(costs, _TASKS_PER_WORKER * n_workers)
        self._n_workers = n_workers
        self._found: list[SolverResult] = []
        self._arriving: Iterator[list[SolverResult]] | None = None

    @property
    def rounds(self) -> int:
        return len(self._found)

    @property
    def finished(self) -> bool:
        return len(self._found) == len(self._machines)

    def advance(self, work: float) -> float:
        """Wait until the next task is done."""
        if self._arriving is None:
            calls = [(self._machines[each.start : each.stop],) for each in self._ranges]
            self._arriving = spread(_solve_task, self._shared, calls, self._n_workers)
        self._found += next(self._arriving)
        return work

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        return {"violation": max((result.violation for result in self._found), default=np.inf)}

    def results(self) -> list[SolverResult]:
        """The result of every machine; for machines that are not solved, the starting point."""
        missing = self._machines[len(self._found) :]
        return self._found + (_many(self._shared, missing).results() if missing else [])


def _many(shared: Any, machines: list[Machine]) -> ManyProblems:
    estimator, training, plan = shared
    found: ManyProblems = estimator._many_problems(training, machines, plan, n_threads=1)
    return found


def _solve_task(shared: Any, machines: list[Machine]) -> list[SolverResult]:
    """Solve a range of machines, in a worker process."""
    with single_threaded_blas():
        process = _many(shared, machines)
        while not process.finished:
            process.advance(_SLICE_WORK)
    return process.results()
