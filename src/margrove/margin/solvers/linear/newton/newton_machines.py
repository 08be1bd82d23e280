"""Newton's method for one machine, or for many over the same rows: some of them at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from margrove.margin.linear import LinearProblem, OneVsRest
from margrove.margin.solvers.linear.dual_coordinate_descent import CoordinateDescent
from margrove.margin.solvers.linear.newton.newton_process import NewtonProcess
from margrove.margin.solvers.linear.newton.small_problems import (
    SmallNewton,
    is_for_gradients,
    is_small,
)
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult, better

__all__ = ["MOST_TOGETHER", "NewtonMachines", "begin_newton", "groups_of_machines"]

MOST_TOGETHER = 8
_MOST_BYTES = 500_000_000  # of the systems of machines that are solved together


def begin_newton(
    problem: LinearProblem | OneVsRest,
    demand: LinearDemand,
    *,
    machines: range | None = None,
    start: LinearResult | None = None,
    n_threads: int = 1,
) -> NewtonProcess | SmallNewton:
    """Newton's method for some machines of a problem, by default for all."""
    if start is None and (is_small(problem) or is_for_gradients(problem)):
        return SmallNewton(problem, demand, machines=machines)
    return NewtonProcess(problem, demand, machines=machines, start=start, n_threads=n_threads)


class NewtonMachines:
    """Solves the machines of a problem; a round is a solved machine. See `slices.Process`.

    If rounding ends the Newton steps of a machine early, as with an enormous C, it goes on by
    coordinate descent.
    """

    unit = "machine"

    def __init__(
        self,
        problem: OneVsRest,
        demand: LinearDemand,
        *,
        start: LinearResult | None = None,
        n_threads: int = 1,
    ) -> None:
        self._problem = problem
        self._demand = demand
        self._start = start
        self._n_threads = n_threads
        self.total: int | None = problem.n_machines
        self._groups = groups_of_machines(problem.n_machines, problem.n_features)
        self._done: list[LinearResult] = []  # of groups
        self._weak: list[int] = []  # machines that go on by coordinate descent
        self._mended: dict[int, LinearResult] = {}  # results of such machines
        self._rounds: list[int] = []  # Newton steps of the machines of the groups that are done
        self._process: NewtonProcess | SmallNewton | CoordinateDescent = self._newton(0)

    @property
    def rounds(self) -> int:
        """How many machines are solved."""
        running = 0 if isinstance(self._process, CoordinateDescent) else self._process.n_finished
        return len(self._rounds) - len(self._weak) + (0 if self.finished else running)

    @property
    def finished(self) -> bool:
        return len(self._done) == len(self._groups) and not self._weak

    def figures(self) -> dict[str, float]:
        return self._process.figures()

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """A Newton step of the machines of a group, or a slice of coordinate descent of one."""
        done = self._process.advance(work)
        if not self._process.finished:
            return done
        if isinstance(self._process, CoordinateDescent):
            k = self._weak.pop(0)
            self._mended[k] = self._of_descent(k, self._process)
        else:
            self._end_group(self._process)
        if len(self._done) < len(self._groups):
            self._process = self._newton(len(self._done))
        elif self._weak:
            self._process = self._descent(self._weak[0])
        return done

    def _newton(self, group: int) -> NewtonProcess | SmallNewton:
        machines = self._groups[group]
        start = None if self._start is None else self._start.of_machines(machines)
        return begin_newton(
            self._problem, self._demand, machines=machines, start=start, n_threads=self._n_threads
        )

    def _descent(self, k: int) -> CoordinateDescent:
        demand = replace(self._demand, epochs=self._demand.epochs - self._rounds[k])
        return CoordinateDescent(self._problem.machine(k), demand, n_threads=self._n_threads)

    def _end_group(self, process: NewtonProcess | SmallNewton) -> None:
        found, rounds = process.result(), process.rounds_of_machines()
        first = self._groups[len(self._done)].start
        self._weak += [
            first + k
            for k, is_good in enumerate(found.converged)
            if not is_good and rounds[k] < self._demand.epochs
        ]
        self._rounds += rounds
        self._done.append(found)

    def _of_descent(self, k: int, process: CoordinateDescent) -> LinearResult:
        """The better one of two results for machine k, from coordinate descent and before."""
        group = next(each for each in self._groups if k in each)
        before = self._done[self._groups.index(group)]
        place = k - group.start
        best = better(process.result(), before.of_machines(range(place, place + 1)))
        return replace(best, epochs=self._rounds[k] + process.rounds)

    def result(self) -> LinearResult:
        results, mended = list(self._done), dict(self._mended)
        for group in range(len(results), len(self._groups)):
            is_current = group == len(self._done)
            process = self._process if is_current else self._newton(group)
            results.append(process.result())
        if self._weak and isinstance(self._process, CoordinateDescent):
            mended[self._weak[0]] = self._of_descent(self._weak[0], self._process)
        found = results[0] if len(results) == 1 else LinearResult.stacked(results)
        return found if not mended else _replaced(found, mended)


def _replaced(found: LinearResult, others: dict[int, LinearResult]) -> LinearResult:
    """A result in which those of some machines are replaced."""
    singles = [
        others.get(k, found.of_machines(range(k, k + 1))) for k in range(len(found.converged))
    ]
    return replace(LinearResult.stacked(singles), trace=found.trace)


def groups_of_machines(n_machines: int, n_features: int, most: int = MOST_TOGETHER) -> list[range]:
    """Machines that are solved together, in groups of nearly equal size."""
    fitting = _MOST_BYTES // (4 * 8 * (n_features + 1) ** 2)
    n_groups = -(-n_machines // max(1, min(most, fitting)))
    edges = np.linspace(0, n_machines, n_groups + 1).round().astype(int).tolist()
    return [range(first, end) for first, end in pairwise(edges)]
