"""All machines of a problem whose rows are on several members: groups of them, one after the other.

Every member runs this with its own rows and takes the same steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._runtime import ALONE, Collective
from margrove.margin.solvers.linear.newton.l1_newton import L1NewtonProcess
from margrove.margin.solvers.linear.newton.newton_machines import groups_of_machines
from margrove.margin.solvers.linear.newton.newton_process import NewtonProcess
from margrove.margin.solvers.linear.newton.row_tiles import TiledProblem
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult

__all__ = ["JointMachines"]


class JointMachines:
    """Newton steps over all machines, with the L2 or the L1 penalty; see `slices.Process`.

    start   weights of all machines; their dual variables are not used
    """

    unit = "step"

    def __init__(
        self,
        problem: TiledProblem,
        demand: LinearDemand,
        *,
        is_l1: bool,
        start: LinearResult | None = None,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> None:
        self._problem, self._demand, self._is_l1 = problem, demand, is_l1
        self._start = start
        self._settings: dict[str, Any] = {"n_threads": n_threads, "collective": collective}
        most = 1 if is_l1 else problem.most_together
        size = 1 if problem.by_gradients else problem.n_features
        self._groups = groups_of_machines(problem.n_machines, size, most)
        self.total: int | None = demand.epochs if len(self._groups) == 1 else None
        self._done: list[LinearResult] = []
        self._steps_before = 0
        self._news: dict[int, LinearResult] = {}
        self._process = self._begun(0)
        self._end_groups()

    @property
    def rounds(self) -> int:
        return self._steps_before + (0 if self.finished else self._process.rounds)

    @property
    def finished(self) -> bool:
        return len(self._done) == len(self._groups)

    def figures(self) -> dict[str, float]:
        return self._process.figures()

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One step of the machines of a group."""
        done = self._process.advance(work)
        self._end_groups()
        return done

    def news(self) -> list[tuple[range, LinearResult]]:
        """What has changed since the last call: machines, and their results so far."""
        found = [(self._groups[group], result) for group, result in self._news.items()]
        self._news = {}
        return found

    def result(self) -> LinearResult:
        """The result of all machines, when they are finished."""
        return LinearResult.stacked(self._done)

    def _begun(self, group: int) -> NewtonProcess | L1NewtonProcess:
        machines, problem = self._groups[group], self._problem
        start = None if self._start is None else self._start.of_machines(machines)
        if not self._is_l1:
            return NewtonProcess(
                problem, self._demand, machines=machines, start=start, **self._settings
            )
        weights = None if start is None else np.append(start.coef[0], start.intercept)
        single = problem.machine(machines.start)
        return L1NewtonProcess(single, self._demand, start=weights, **self._settings)

    def _end_groups(self) -> None:
        """Go on to the next group whose machines have steps to take."""
        self._news[len(self._done)] = self._process.result_so_far()
        while self._process.finished:
            self._steps_before += self._process.rounds
            self._done.append(self._process.result())
            if self.finished:
                return
            self._process = self._begun(len(self._done))
            self._news[len(self._done)] = self._process.result_so_far()
