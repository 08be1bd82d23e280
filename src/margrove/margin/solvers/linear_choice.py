"""Which solver a linear machine gets, and several machines as one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from margrove.margin.linear_problems import LinearProblem, OneVsRest
from margrove.margin.solvers.crammer_singer import CrammerSingerProcess
from margrove.margin.solvers.l1_columns import Columns, L1ColumnsProcess, columns_of
from margrove.margin.solvers.l1_newton import L1NewtonProcess
from margrove.margin.solvers.linear_cd import CoordinateDescent
from margrove.margin.solvers.linear_result import LinearDemand, LinearResult
from margrove.margin.solvers.many import ManyProblems, Solver
from margrove.margin.solvers.primal_newton import MOST_FEATURES, NewtonProcess

__all__ = ["Kind", "Start", "choose_solver", "linear_process"]

Kind = Literal["l2", "l1", "crammer_singer"]

# What a multiply-add of each takes, in units of one of coordinate descent, and how many passes over
# the data each makes.
_IN_BLAS, _IN_LOOPS, _IN_SYSTEM = 0.05, 0.4, 0.1
_NEWTON_STEPS, _EPOCHS = 15.0, 500.0
_SMALL_WORK = 2e6

Start = LinearResult | None


class SideBySide(ManyProblems):
    """Machines that are solved one by one, or each on a thread of its own."""

    def result(self) -> LinearResult:
        return LinearResult.stacked(self.results())


class L1Descent:
    """Coordinate descent over features; where it creeps and they are few, Newton steps."""

    def __init__(
        self,
        problem: LinearProblem,
        columns: Columns,
        demand: LinearDemand,
        *,
        start: np.ndarray | None = None,
    ) -> None:
        self._problem = problem
        self._demand = demand
        self._process: L1ColumnsProcess | L1NewtonProcess = L1ColumnsProcess(
            problem, columns, demand, start=start
        )
        self._before = 0
        self.unit = self._process.unit
        self.total: int | None = demand.epochs

    @property
    def rounds(self) -> int:
        return self._before + self._process.rounds

    @property
    def finished(self) -> bool:
        return self._process.finished

    def figures(self) -> dict[str, float]:
        return self._process.figures()

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        done = self._process.advance(work)
        process = self._process
        if (
            isinstance(process, L1ColumnsProcess)
            and process.creeps
            and not process.converged
            and self._problem.n_features <= MOST_FEATURES
            and process.rounds < self._demand.epochs
        ):
            self._before = process.rounds
            demand = replace(self._demand, epochs=self._demand.epochs - process.rounds)
            self._process = L1NewtonProcess(self._problem, demand, start=process.weights)
        return done

    def result(self) -> LinearResult:
        return replace(self._process.result(), epochs=self.rounds)


def choose_solver(problem: LinearProblem | OneVsRest, kind: Kind) -> Literal["cd", "newton"]:
    """Newton's method where its systems are small and the data are tall, else coordinates."""
    d, m = problem.n_features, len(problem)
    if kind == "crammer_singer" or d > MOST_FEATURES:
        return "cd"
    X = problem.X
    cells = float(d) if X.is_dense else len(X.data) / max(1, len(X.indptr) - 1) + 1.0
    rate = _IN_BLAS if X.is_dense else _IN_LOOPS
    curved = 0.3  # of the rows
    step = curved * rate * m * cells**2 + 2.0 * m * cells + _IN_SYSTEM * d**3 / 3.0
    machines = 1 if isinstance(problem, LinearProblem) else problem.n_machines
    newton = _NEWTON_STEPS * machines * step
    # Coordinates step through sixteen machines at the price of a few.
    descent = _EPOCHS * m * (cells + 10.0) * (1.0 if machines == 1 else 0.3 * machines)
    return "newton" if newton <= max(descent, _SMALL_WORK) else "cd"


def linear_process(
    problem: LinearProblem | OneVsRest,
    demand: LinearDemand,
    *,
    kind: Kind,
    solver: str,
    start: Start = None,
    n_threads: int = 1,
) -> Solver:
    """The process that solves a problem; its result is a `LinearResult` of all machines."""
    solver = choose_solver(problem, kind) if solver == "auto" else solver
    beta = None if start is None else start.beta
    if kind == "crammer_singer":
        if not isinstance(problem, OneVsRest):
            raise TypeError("Crammer and Singer's machine is for several classes.")
        return CrammerSingerProcess(problem, demand, start=beta)
    if isinstance(problem, OneVsRest) and problem.n_machines > 1:
        if kind == "l2" and solver == "cd":
            return CoordinateDescent(problem, demand, start=start, n_threads=n_threads)
        machines = [partial(problem.machine, k) for k in range(problem.n_machines)]
        return _one_by_one(machines, demand, kind, solver, start, n_threads)
    single = problem.machine(0) if isinstance(problem, OneVsRest) else problem
    return _single(single, demand, kind, solver, start, n_threads)


def _one_by_one(
    machines: Sequence[Callable[[], LinearProblem]],
    demand: LinearDemand,
    kind: Kind,
    solver: str,
    start: Start,
    n_threads: int,
) -> SideBySide:
    columns = columns_of(machines[0]()) if kind == "l1" and solver == "cd" else None

    def make(k: int) -> Solver:
        own = None if start is None else start.part(range(k, k + 1))
        if columns is not None:
            weights = None if own is None else np.append(own.coef[0], own.intercept)
            return L1Descent(machines[k](), columns, demand, start=weights)
        return _single(machines[k](), demand, kind, solver, own, 1)

    makers = [partial(make, k) for k in range(len(machines))]
    return SideBySide(makers, side_by_side=n_threads, unit="machine", figure="relative gap")


def _single(
    problem: LinearProblem,
    demand: LinearDemand,
    kind: Kind,
    solver: str,
    start: Start,
    n_threads: int,
) -> Solver:
    if kind == "l1":
        weights = None if start is None else np.append(start.coef[0], start.intercept)
        if solver == "newton":
            return L1NewtonProcess(problem, demand, start=weights, n_threads=n_threads)
        return L1Descent(problem, columns_of(problem), demand, start=weights)
    if solver == "newton":
        return NewtonProcess(problem, demand, start=start, n_threads=n_threads)
    return CoordinateDescent(problem, demand, start=start, n_threads=n_threads)
