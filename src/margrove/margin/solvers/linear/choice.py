"""Which solver a linear machine gets, and several machines as one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from margrove._runtime import single_threaded_blas
from margrove.margin.linear import LinearProblem, OneVsRest
from margrove.margin.solvers.dual import ManyProblems, Solver
from margrove.margin.solvers.linear.crammer_singer import CrammerSingerProcess
from margrove.margin.solvers.linear.dual_coordinate_descent import CoordinateDescent
from margrove.margin.solvers.linear.l1_coordinate_descent import (
    Columns,
    L1ColumnsProcess,
    columns_of,
)
from margrove.margin.solvers.linear.l1_newton import L1NewtonProcess
from margrove.margin.solvers.linear.newton import MOST_FEATURES, NewtonProcess
from margrove.margin.solvers.linear.newton_machines import NewtonMachines
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult, better

__all__ = ["Kind", "Start", "choose_solver", "linear_process"]

Kind = Literal["l2", "l1", "crammer_singer"]

# The time of a multiply-add in BLAS, in loops and in the factorisation, relative to coordinate
# descent, and the expected number of Newton steps and of epochs.
_IN_BLAS, _IN_LOOPS, _IN_SYSTEM = 0.05, 0.4, 0.1
_NEWTON_STEPS, _EPOCHS = 15.0, 500.0
_SMALL_WORK = 2e6

Start = LinearResult | None


class LinearMachines(ManyProblems):
    """Machines that are solved one after the other, or one on each thread."""

    def advance(self, work: float) -> float:
        """Always on one BLAS thread, so that sums have the same order for the last machine, too."""
        with single_threaded_blas():
            return super().advance(work)

    def result(self) -> LinearResult:
        return LinearResult.stacked(self.results())


class SolverSequence:
    """Runs one solver after the other until one has converged; the smallest gap wins.

    `makers` make a process from the best result so far (None for the first) and the remaining
    epochs. A process whose `is_slow` is True is replaced by the next one.
    """

    def __init__(
        self, makers: Sequence[Callable[[LinearResult | None, int], Any]], epochs: int
    ) -> None:
        self._makers = list(makers)
        self._process = self._makers.pop(0)(None, epochs)
        self.name = type(self._process).__name__
        self._best: LinearResult | None = None
        self._before = 0
        self.unit = self._process.unit
        self.total: int | None = epochs

    @property
    def rounds(self) -> int:
        return int(self._before + self._process.rounds)

    @property
    def finished(self) -> bool:
        return bool(self._process.finished)

    def figures(self) -> dict[str, float]:
        figures: dict[str, float] = self._process.figures()
        return figures

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        done = float(self._process.advance(work))
        is_over = self._process.finished or getattr(self._process, "is_slow", False)
        if is_over and self._makers and self.rounds < (self.total or 0):
            found = self._process.result()
            if not found.converged.all():
                self._best = better(found, self._best)
                self._before = self.rounds
                self._process = self._makers.pop(0)(self._best, (self.total or 0) - self._before)
        return done

    def result(self) -> LinearResult:
        return replace(better(self._process.result(), self._best), epochs=self.rounds)


def choose_solver(problem: LinearProblem | OneVsRest, kind: Kind) -> Literal["cd", "newton"]:
    """Newton's method if there are few features and many rows, else coordinate descent."""
    d, m = problem.n_features, len(problem)
    if kind == "crammer_singer" or d > MOST_FEATURES:
        return "cd"
    X = problem.X
    cells = float(d) if X.is_dense else len(X.data) / max(1, len(X.indptr) - 1) + 1.0
    rate = _IN_BLAS if X.is_dense else _IN_LOOPS
    curved = 0.3  # share of rows with curvature
    step = curved * rate * m * cells**2 + 2.0 * m * cells + _IN_SYSTEM * d**3 / 3.0
    machines = 1 if isinstance(problem, LinearProblem) else problem.n_machines
    newton = _NEWTON_STEPS * machines * step
    # Coordinate descent visits sixteen machines at the cost of a few.
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
            raise TypeError("Crammer and Singer's machine needs several classes.")
        return CrammerSingerProcess(problem, demand, start=beta)
    if isinstance(problem, OneVsRest) and problem.n_machines > 1:
        if kind == "l2" and solver == "cd":
            return CoordinateDescent(problem, demand, start=start, n_threads=n_threads)
        if kind == "l2":
            return NewtonMachines(problem, demand, start=start, n_threads=n_threads)
        machines = [partial(problem.machine, k) for k in range(problem.n_machines)]
        return _machine_by_machine(machines, demand, kind, solver, start, n_threads)
    single = problem.machine(0) if isinstance(problem, OneVsRest) else problem
    return _single(single, demand, kind, solver, start, n_threads)


def _machine_by_machine(
    machines: Sequence[Callable[[], LinearProblem]],
    demand: LinearDemand,
    kind: Kind,
    solver: str,
    start: Start,
    n_threads: int,
) -> LinearMachines:
    columns = columns_of(machines[0]()) if kind == "l1" and solver == "cd" else None

    def make(k: int) -> Solver:
        first = None if start is None else start.of_machines(range(k, k + 1))
        if columns is not None:
            weights = None if first is None else np.append(first.coef[0], first.intercept)
            return _l1_descent(machines[k](), columns, demand, weights)
        return _single(machines[k](), demand, kind, solver, first, 1)

    makers = [partial(make, k) for k in range(len(machines))]
    return LinearMachines(makers, side_by_side=n_threads, unit="machine", figure="relative gap")


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
        return _l1_descent(problem, columns_of(problem), demand, weights)
    if solver == "newton":
        return _newton(problem, demand, start, n_threads)
    return CoordinateDescent(problem, demand, start=start, n_threads=n_threads)


def _newton(problem: LinearProblem, demand: LinearDemand, start: Start, n_threads: int) -> Solver:
    """Newton steps, and coordinate descent if rounding ends them early, as with an enormous C."""

    def newton(_: LinearResult | None, epochs: int) -> Solver:
        rest = replace(demand, epochs=epochs)
        return NewtonProcess(problem, rest, start=start, n_threads=n_threads)

    def descent(_: LinearResult | None, epochs: int) -> Solver:
        return CoordinateDescent(problem, replace(demand, epochs=epochs))

    return SolverSequence([newton, descent], demand.epochs)


def _l1_descent(
    problem: LinearProblem, columns: Columns, demand: LinearDemand, start: np.ndarray | None
) -> Solver:
    """Coordinate descent over features; if it is slow and features are few, Newton steps."""

    def descent(_: LinearResult | None, epochs: int) -> Solver:
        return L1ColumnsProcess(problem, columns, replace(demand, epochs=epochs), start=start)

    def newton(last: LinearResult | None, epochs: int) -> Solver:
        weights = None if last is None else np.append(last.coef[0], last.intercept)
        return L1NewtonProcess(problem, replace(demand, epochs=epochs), start=weights)

    makers = [descent, newton] if problem.n_features <= MOST_FEATURES else [descent]
    return SolverSequence(makers, demand.epochs)
