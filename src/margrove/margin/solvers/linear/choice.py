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
from margrove.margin.solvers.linear.newton import (
    MOST_FEATURES,
    L1NewtonProcess,
    NewtonMachines,
    NewtonProcess,
    begin_newton,
    is_for_gradients,
    is_small,
)
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult, better
from margrove.margin.solvers.linear.row_losses import is_smooth

__all__ = ["Kind", "Start", "choose_solver", "linear_process"]

Kind = Literal["l2", "l1", "crammer_singer"]

# Nanoseconds: of a multiply-add in BLAS, in loops, in the factorisation and in coordinate descent,
# and of a Newton step and of the visit of a row besides. They were measured on dense tables of 100
# to 15,000 rows.
_IN_BLAS, _IN_LOOPS, _IN_SYSTEM, _IN_VISIT = 0.05, 0.4, 0.03, 1.0
_OF_STEP, _OF_VISIT, _OF_EPOCH = 60_000.0, 60.0, 30_000.0
_SMOOTH_CURVED, _KINKED_CURVED = 0.3, 0.05  # usual shares of rows with curvature
_TRIAL = 0.3  # share of the time of Newton's method that coordinate descent may take before it
_LEAST_EPOCHS = 13  # fewer are hardly ever enough
_WORK_AT_ONCE = 1e7  # multiply-adds of a machine between two checks for an interrupt
_MANY_EPOCHS = 60  # are worth more patience
_TALL = 4  # rows for each feature from which on most problems are hard for coordinate descent
_SPARSE_STEPS, _SPARSE_EPOCHS, _SMALL_WORK = 15.0, 500.0, 2e6  # for sparse tables

Start = LinearResult | None


class LinearMachines(ManyProblems):
    """Machines that are solved one after the other, or one on each thread."""

    def advance(self, work: float) -> float:
        """Always on one BLAS thread, so that sums have the same order for the last machine, too.

        The work of a slice is fixed: how much was done in how much time is not known here.
        """
        with single_threaded_blas():
            return super().advance(_WORK_AT_ONCE)

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
    d, m, X = problem.n_features, len(problem), problem.X
    if kind == "crammer_singer" or d > MOST_FEATURES:
        return "cd"
    if X.is_dense and kind == "l2":
        # Newton's method takes the steps of several machines together, the trial does not.
        is_joint = isinstance(problem, OneVsRest) and problem.n_machines > 1
        least = _MANY_EPOCHS if is_joint and m > _TALL * d else _LEAST_EPOCHS
        return "newton" if _epochs_worth_trying(problem) < least else "cd"
    cells = float(d) if X.is_dense else len(X.data) / max(1, len(X.indptr) - 1) + 1.0
    rate = _IN_BLAS if X.is_dense else _IN_LOOPS
    step = _SMOOTH_CURVED * rate * m * cells**2 + 2.0 * m * cells + _IN_SYSTEM * d**3
    machines = 1 if isinstance(problem, LinearProblem) else problem.n_machines
    newton = _SPARSE_STEPS * machines * step
    # Coordinate descent visits sixteen machines at the cost of a few.
    descent = _SPARSE_EPOCHS * m * (cells + 10.0) * (1.0 if machines == 1 else 0.3 * machines)
    return "newton" if newton <= max(descent, _SMALL_WORK) else "cd"


def _epochs_worth_trying(problem: LinearProblem | OneVsRest) -> int:
    """How many epochs of coordinate descent on dense rows take a share of Newton's method.

    On easy problems they are enough, and Newton's method would take several times as long. Which
    problems are easy is not known before.
    """
    d, m = problem.n_features, len(problem)
    if is_for_gradients(problem):
        return 0
    if is_smooth(problem):
        if m > _TALL * d:  # some six steps, after which such problems are solved exactly
            return 0
        step = _SMOOTH_CURVED * _IN_BLAS * m * d**2 + 2.0 * m * d
        steps = 12.0
    else:
        step = _KINKED_CURVED * _IN_BLAS * m * d**2 + 3.0 * m * d
        steps = min(50.0, 8.0 + 700.0 * d / m)
    newton = steps * (step + _IN_SYSTEM * d**3 + _OF_STEP)
    if is_small(problem):
        newton *= 0.5
    return int(_TRIAL * newton / (m * (_IN_VISIT * d + _OF_VISIT) + _OF_EPOCH))


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
    is_adaptive = solver == "auto" and kind == "l2" and problem.X.is_dense
    solver = choose_solver(problem, kind) if solver == "auto" else solver
    if is_adaptive and solver == "cd":  # machines are solved one by one: each may be easy
        solver = "trial"
    beta = None if start is None else start.beta
    if kind == "crammer_singer":
        if not isinstance(problem, OneVsRest):
            raise TypeError("Crammer and Singer's machine needs several classes.")
        return CrammerSingerProcess(problem, demand, start=beta)
    if isinstance(problem, OneVsRest) and problem.n_machines > 1:
        if kind == "l2" and solver == "cd":
            return CoordinateDescent(problem, demand, start=start, n_threads=n_threads)
        if kind == "l2" and solver == "newton":
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
    if solver == "trial" and problem.n_features <= MOST_FEATURES:
        return _descent_first(problem, demand, start)
    return CoordinateDescent(problem, demand, start=start, n_threads=n_threads)


def _newton(problem: LinearProblem, demand: LinearDemand, start: Start, n_threads: int) -> Solver:
    """Newton steps, and coordinate descent if rounding ends them early, as with an enormous C."""

    def newton(_: LinearResult | None, epochs: int) -> Solver:
        rest = replace(demand, epochs=epochs)
        return begin_newton(problem, rest, start=start, n_threads=n_threads)

    def factorised(last: LinearResult | None, epochs: int) -> Solver:
        rest = replace(demand, epochs=epochs)
        return NewtonProcess(problem, rest, start=last, n_threads=n_threads)

    def descent(_: LinearResult | None, epochs: int) -> Solver:
        return CoordinateDescent(problem, replace(demand, epochs=epochs))

    by_gradients = start is None and is_for_gradients(problem)
    steps = [newton, factorised] if by_gradients else [newton]
    return SolverSequence([*steps, descent], demand.epochs)


def _descent_first(problem: LinearProblem, demand: LinearDemand, start: Start) -> Solver:
    """Some epochs of coordinate descent; if they are not enough, Newton steps from there."""

    def trial(_: LinearResult | None, epochs: int) -> Solver:
        most = max(_LEAST_EPOCHS, _epochs_worth_trying(problem))
        is_tall = len(problem) > _TALL * problem.n_features
        return CoordinateDescent(
            problem,
            replace(demand, epochs=min(epochs, most)),
            start=start,
            may_be_hard=is_tall and most < _MANY_EPOCHS,
        )

    def newton(last: LinearResult | None, epochs: int) -> Solver:
        return begin_newton(problem, replace(demand, epochs=epochs), start=last)

    def descent(last: LinearResult | None, epochs: int) -> Solver:
        return CoordinateDescent(problem, replace(demand, epochs=epochs), start=last)

    return SolverSequence([trial, newton, descent], demand.epochs)


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
