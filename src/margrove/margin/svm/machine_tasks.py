"""The machines of a fit, and how to solve them as tasks of other processes.

A task is a run of machines, which share what one process can: the kernel values of a class with
itself, or all of them. What a machine finds depends on the plan of the whole fit, and not on which
machines are solved beside it, nor where.
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

_TASKS_A_WORKER = 3  # so that none waits long for the last; more would share less
_SLICE_WORK = 2e7


@dataclass(frozen=True)
class Machine:
    """One dual problem over some of the learnt rows, and its name for people."""

    members: np.ndarray
    problem: DualProblem
    name: str = ""

    @property
    def unit(self) -> float:
        """What the tolerance is measured in: weights far below one shrink the nu machines."""
        if not self.problem.p.any() or self.problem.keeps_sum:
            return min(1.0, 0.5 * float(self.problem.start.sum()))
        return 1.0


@dataclass(frozen=True)
class SolverPlan:
    """How all machines of a fit are solved; results depend on it, to the last bit.

    solver       its name
    is_shared    whether machines share kernel values, as far as they are in one process
    is_alone     whether there is one machine only
    cache_bytes  for kernel values
    """

    solver: str
    is_shared: bool
    is_alone: bool
    cache_bytes: int


def spread_machines(
    estimator: Any, training: TrainingSet, machines: list[Machine], plan: SolverPlan
) -> SpreadMachines | None:
    """The machines as tasks, where a joblib backend for other processes is in effect.

    None where it is not, or where the machines cannot be taken apart.
    """
    if len(machines) == 1 or not tasks_wanted(estimator):
        return None
    n_workers = workers_wanted(estimator.n_jobs)
    seed = getattr(estimator, "random_state", 0)
    if plan.solver != "smo" and not (seed is None or isinstance(seed, Integral)):
        return None  # machines draw their seeds from one generator, one after the other
    largest = max(len(machine.members) for machine in machines)
    shares_all = plan.solver == "smo" and plan.is_shared and largest > LARGEST_TILE
    if shares_all and 4 * largest**2 * n_workers > plan.cache_bytes:
        return None  # one-vs-rest machines share all of K, which every task would hold
    bare = replace(training, X=None, form=cast(Any, None))  # what solvers do not look at
    own_plan = replace(plan, cache_bytes=_own_cache(plan.cache_bytes, largest, n_workers))
    return SpreadMachines((clone(estimator), bare, own_plan), machines, n_workers)


def _own_cache(cache_bytes: int, largest: int, n_workers: int) -> int:
    """A task's part of the cache, but never fewer rows than a solver may want at once.

    With fewer, sums of rows are taken piece by piece, and rounded in other places.
    """
    rows_at_once = 8 * largest * SmoRule.block
    return min(cache_bytes, max(cache_bytes // n_workers, rows_at_once))


class SpreadMachines:
    """Machines that other processes solve; see `slices.Process`. A round is a machine.

    shared  the estimator, the training set as far as solvers need it, and the `SolverPlan`
    """

    unit = "problem"

    def __init__(self, shared: Any, machines: list[Machine], n_workers: int) -> None:
        self.total: int | None = len(machines)
        self._shared = shared
        self._machines = machines
        costs = [float(len(machine.members)) ** 2 for machine in machines]
        self._runs = even_runs(costs, _TASKS_A_WORKER * n_workers)
        self._n_workers = n_workers
        self._found: list[SolverResult] = []
        self._coming: Iterator[list[SolverResult]] | None = None

    @property
    def rounds(self) -> int:
        return len(self._found)

    @property
    def finished(self) -> bool:
        return len(self._found) == len(self._machines)

    def advance(self, work: float) -> float:
        """Wait for the next task to be done."""
        if self._coming is None:
            calls = [(self._machines[run.start : run.stop],) for run in self._runs]
            self._coming = spread(_solved, self._shared, calls, self._n_workers)
        self._found += next(self._coming)
        return work

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        return {"violation": max((own.violation for own in self._found), default=np.inf)}

    def results(self) -> list[SolverResult]:
        """The result of every machine; of those not waited for, the starting point."""
        missing = self._machines[len(self._found) :]
        return self._found + (_many(self._shared, missing).results() if missing else [])


def _many(shared: Any, machines: list[Machine]) -> ManyProblems:
    estimator, training, plan = shared
    makers, _ = estimator._makers(training, machines, plan, n_threads=1)
    return ManyProblems(makers)


def _solved(shared: Any, machines: list[Machine]) -> list[SolverResult]:
    """Solve one machine, in a worker process."""
    with single_threaded_blas():
        process = _many(shared, machines)
        while not process.finished:
            process.advance(_SLICE_WORK)
    return process.results()
