"""The machines that one thread solves together by dual coordinate descent, and their progress.

A block visits rows, measures its duality gap, and switches from float32 to float64 when needed; see
`dual_coordinate_descent` for the method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import on_large_pages
from margrove.margin.linear import LinearProblem, OneVsRest, balanced
from margrove.margin.solvers.linear.dual_coordinate_epochs import (
    CHECK,
    CHECKED_AT,
    EPOCH,
    ESTIMATE,
    FACE,
    N_ACTIVE,
    THRESHOLD,
    VISITED,
    Course,
    Rhythm,
    epochs_of_lanes,
    epochs_of_one,
)
from margrove.margin.solvers.linear.dual_coordinate_loops import (
    LANES,
    DescentState,
    LaneTargets,
    examine_lanes,
    examine_one,
    weigh_lanes,
    weigh_one,
)
from margrove.margin.solvers.linear.faces import FaceSteps
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult

__all__ = ["Block", "LaneBlock", "SingleBlock", "free_gain"]

_FLOAT32_TOL = 1e-5  # a relative gap that float32 weights can reach
_ORDINARY = (1e-12, 1e12)  # limits of C and of squared norms for float32
_WORK_AT_ONCE = 100_000_000  # multiply-adds of a pass between two checks for an interrupt
_PROGRESS = 0.9
_MOST_IDLE_CHECKS = 12
_GOOD_PROGRESS = 0.3  # of the gap, between two checks
_EPOCHS_BETWEEN_FACES = 4
_HARD = 0.97  # share of rows that are not left out when the first step on a face is due


class Block:
    """Machines that one thread solves together; subclasses define how a row is visited.

    Sets: beta (m, L), W (d, L) and bias (L,), which agree (up to rounding) whenever a slice ends;
    balance (L,), the sum of beta over the rows; `worst` (L,), the largest violation of the last
    epoch; `sums` (3, L) of this epoch: losses, beta times value, and the shares of the gap.
    """

    _most_slow_checks: int  # before another solver continues
    _epochs_between_checks: int

    def __init__(
        self,
        problem: LinearProblem | OneVsRest,
        demand: LinearDemand,
        n_machines: int,
        n_lanes: int,
        kind: Any,
    ) -> None:
        self._problem = problem
        self.n_features = problem.n_features
        self.demand = demand
        self._n_machines = n_machines
        self._is_free = problem.bias_price == 0.0
        # The change of b for each unit of beta: 1 / k, or the step of the proximal point method.
        self._gain = free_gain(problem) if self._is_free else 1.0 / problem.bias_price
        self._cost = 2.0 * n_lanes * _cells_of(problem) / len(problem) + 20.0
        self.beta = _zeros((len(problem), n_lanes), kind)
        self._W = _zeros((problem.n_features, n_lanes), kind)
        self._bias = np.zeros(n_lanes, dtype=kind)
        self._balance = np.zeros(n_lanes)
        self._worst = np.full(n_lanes, np.inf, dtype=kind)
        self._next_worst = np.zeros(n_lanes, dtype=kind)
        self._sums = np.zeros((3, n_lanes))
        self._kept = np.ones(len(problem), dtype=np.bool_)
        self._course = Course.of_rows(len(problem), demand.tol)
        self._idle_checks = 0
        self._least_gap = np.inf
        self.finished = False
        self.is_slow = False
        self.is_hard = False
        self._slow_checks = 0
        self._exact: Any = None
        self._measured_at = -1  # visited rows
        self._trace: list[EpochPoint] = []

    def start_from(self, start: LinearResult) -> None:
        """Start at the solution of a similar problem; dual variables must be within the bounds."""
        self.beta[:, : self._n_machines] = start.beta
        self._bias[: self._n_machines] = start.intercept
        self._balance[:] = self.beta.sum(axis=0, dtype=np.float64)
        self._compute_weights()
        self._W[:] = self._exact
        if not self._is_free:
            self._bias[:] = self._gain * self._balance

    @property
    def epoch(self) -> int:
        return int(self._course.counts[EPOCH])

    @property
    def estimate(self) -> float:
        """An estimate of the relative gap, from the last epoch."""
        return float(self._course.figures[ESTIMATE])

    def advance(self, work: float, *, by_rounds: bool = False) -> float:
        """Do about `work` multiply-adds of epochs, or until something else is due, and this.

        `by_rounds` ends it at the end of an epoch.
        """
        counts = self._course.counts
        before = int(counts[VISITED])
        most = max(1, int(work / self._cost))
        if by_rounds:
            most = max(1, min(most, self._course.n_left))
        due = self._run_epochs(most)
        if due == FACE:
            self._speed_up()
        if due == CHECK or self.is_hard:
            self._check()
            self.finished |= self.epoch >= self.demand.epochs or self.is_hard
        return self._cost * float(counts[VISITED] - before)

    def _speed_up(self) -> None:
        """An additional step that speeds up convergence."""

    def _check(self) -> None:
        """Measure the true gap; if it is too large, continue with all rows."""
        self._measure()
        self._course.counts[CHECKED_AT] = self.epoch
        self._trace.append(EpochPoint(self.epoch, float(self.primal.sum()), float(self.dual.sum())))
        if self.converged.all():
            self.finished = True
            return
        relative = float(_quotient(self.gap, self.primal).max())
        self._slow_checks = (
            0 if relative < _GOOD_PROGRESS * self._least_gap else self._slow_checks + 1
        )
        self.is_slow = (
            self._slow_checks >= self._most_slow_checks and self.epoch < self.demand.epochs
        )
        self._idle_checks = 0 if relative < _PROGRESS * self._least_gap else self._idle_checks + 1
        self._least_gap = min(self._least_gap, relative)
        if self._idle_checks >= _MOST_IDLE_CHECKS:
            self._give_up()
        # The estimate ignores the rows that are left out and a free intercept.
        figures = self._course.figures
        figures[THRESHOLD] = max(0.5 * figures.min(), 0.01 * self.demand.tol)
        self._course.visit_all_rows()
        self._kept[:] = True
        self._worst[:] = np.inf

    def _give_up(self) -> None:
        """Rounding prevents progress: switch to float64, or finish if that is in use."""
        if self.beta.dtype == np.float64:
            self.finished = True
            return
        self._go_to_float64()
        self._idle_checks = 0

    def _go_to_float64(self) -> None:
        if self.beta.dtype != np.float64:
            for name in ("beta", "_W", "_bias", "_worst", "_next_worst"):
                setattr(self, name, getattr(self, name).astype(np.float64))

    def _measure(self) -> None:
        """Make beta feasible, and compute W from it in float64, and both objectives.

        Sets: _exact (d, L), primal, dual, violation (K,).
        """
        K = self._n_machines
        if self._is_free:
            self._make_balanced()
        self._compute_weights()
        self._W[:] = self._exact
        sums = np.zeros((3, self.beta.shape[1]))  # losses, the dual's linear part, violation
        bias = self._bias.astype(np.float64)
        for start, end in self._ranges():
            self._examine(start, end, self._exact, bias, sums)
        squared_norm = np.einsum("jl,jl->l", self._exact, self._exact)
        bias_term = np.zeros(len(bias))
        if not self._is_free and self._gain > 0.0:
            bias_term = bias**2 / (2.0 * self._gain)
        self.primal = (0.5 * squared_norm + bias_term + sums[0])[:K]
        self.dual = (-0.5 * squared_norm - bias_term + sums[1])[:K]
        self.violation = sums[2, :K]
        self._measured_at = int(self._course.counts[VISITED])

    @property
    def gap(self) -> np.ndarray:
        return np.maximum(self.primal - self.dual, 0.0)

    @property
    def converged(self) -> np.ndarray:
        return self.gap <= self.demand.tol * np.abs(self.primal)

    def result(self) -> LinearResult:
        """The current point with its measured objectives and gap."""
        if self._measured_at != self._course.counts[VISITED]:
            self._measure()
        K = self._n_machines
        return LinearResult(
            coef=self._exact[:, :K].T,
            intercept=self._bias[:K].astype(np.float64),
            primal=self.primal,
            dual=self.dual,
            violation=self.violation,
            beta=self.beta[:, :K],
            epochs=self.epoch,
            converged=self.converged,
            trace=list(self._trace),
        )

    def _make_balanced(self) -> None:
        """Make the sum of beta zero, as a free intercept requires."""
        sums = self.beta.sum(axis=0, dtype=np.float64)
        for lane in np.flatnonzero(sums[: self._n_machines]).tolist():
            self.beta[:, lane] = balanced(self.beta[:, lane], *self._bounds(lane))
        self._balance[:] = 0.0

    def _compute_weights(self) -> None:
        """_exact = X' beta"""
        if self._exact is None:
            self._exact = on_large_pages(self._W.shape, np.float64)
        self._exact[:] = 0.0
        for start, end in self._ranges():
            self._weigh(start, end, self._exact)

    def _ranges(self) -> list[tuple[int, int]]:
        m = len(self._problem)
        step = max(1, int(_WORK_AT_ONCE / self._cost))
        return [(start, min(start + step, m)) for start in range(0, m, step)]

    def machines(self) -> list[Callable[[], LinearProblem]]:
        """For each machine, a function that returns its problem."""
        raise NotImplementedError

    def _bounds(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _rhythm(self, between_faces: int) -> Rhythm:
        return Rhythm(
            np.uint64(self.demand.seed), self._n_machines, self.demand.epochs,
            self._epochs_between_checks, between_faces, self._is_free, self._gain,
        )  # fmt: skip

    def _descent(self) -> DescentState:
        """The arrays that the compiled steps change."""
        return DescentState(
            self.beta, self._W, self._bias, self._balance, self._worst, self._next_worst,
            self._kept, self._sums,
        )  # fmt: skip

    def _run_epochs(self, most_rows: int) -> int:
        """Visit up to so many rows; returns what is due, see `dual_coordinate_epochs`."""
        raise NotImplementedError

    def _weigh(self, start: int, end: int, W: np.ndarray) -> None:
        raise NotImplementedError

    def _examine(
        self, start: int, end: int, W: np.ndarray, bias: np.ndarray, sums: np.ndarray
    ) -> None:
        raise NotImplementedError


class SingleBlock(Block):
    """One machine with any loss; every few epochs, a step on the face of its free variables."""

    _most_slow_checks = 3
    _epochs_between_checks = 25

    def __init__(
        self, problem: LinearProblem, demand: LinearDemand, *, may_be_hard: bool = False
    ) -> None:
        super().__init__(problem, demand, 1, 1, np.float64)
        self._may_be_hard = may_be_hard
        self._given = (problem.X, read_only(problem.rows), read_only(problem.norms), problem.loss)
        self._single = problem
        self._faces = FaceSteps(problem, self._given, self._gain)

    def _speed_up(self) -> None:
        n_active = int(self._course.counts[N_ACTIVE])
        is_hard = n_active > _HARD * len(self._problem)
        if self._may_be_hard and self.epoch == _EPOCHS_BETWEEN_FACES and is_hard:
            self.is_hard = True
            return
        self._faces.step(self._course.active[:n_active], self._descent())

    def machines(self) -> list[Callable[[], LinearProblem]]:
        return [lambda: self._single]

    def _bounds(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        return self._single.loss.low, self._single.loss.high

    def _run_epochs(self, most_rows: int) -> int:
        rhythm = self._rhythm(_EPOCHS_BETWEEN_FACES)
        due = epochs_of_one(*self._given, rhythm, self._course, self._descent(), most_rows)
        return int(due)

    def _weigh(self, start: int, end: int, W: np.ndarray) -> None:
        X, rows = self._given[:2]
        weigh_one(X, rows, start, end, self.beta, W)

    def _examine(
        self, start: int, end: int, W: np.ndarray, bias: np.ndarray, sums: np.ndarray
    ) -> None:
        X, rows, _, loss = self._given
        examine_one(X, rows, loss, start, end, self.beta, W, bias, sums)


class LaneBlock(Block):
    """Up to LANES one-vs-rest machines."""

    _most_slow_checks = 1
    _epochs_between_checks = 5

    def __init__(self, problem: OneVsRest, demand: LinearDemand, machines: range) -> None:
        ends = [problem.C.min(), problem.C.max(), problem.norms.max()]
        is_ordinary = all(_ORDINARY[0] < end < _ORDINARY[1] for end in ends)
        kind = np.float32 if demand.tol >= _FLOAT32_TOL and is_ordinary else np.float64
        super().__init__(problem, demand, len(machines), LANES, kind)
        self._given = (
            problem.X,
            read_only(problem.rows),
            read_only(problem.norms),
            LaneTargets(
                read_only(problem.codes),
                read_only(problem.C),
                machines.start,
                len(machines),
                problem.squared,
            ),
        )
        self._all = problem
        self._machines = machines

    def machines(self) -> list[Callable[[], LinearProblem]]:
        return [partial(self._all.machine, k) for k in self._machines]

    def _bounds(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        """The bounds in the precision of beta, which rounds C."""
        infinite = np.full(len(self._problem), np.inf)
        high = infinite if self._all.squared else self._all.C.astype(self.beta.dtype)
        return -high, high

    def _run_epochs(self, most_rows: int) -> int:
        rhythm = self._rhythm(0)
        due = epochs_of_lanes(*self._given, rhythm, self._course, self._descent(), most_rows)
        return int(due)

    def _weigh(self, start: int, end: int, W: np.ndarray) -> None:
        X, rows = self._given[:2]
        weigh_lanes(X, rows, start, end, self.beta, W)

    def _examine(
        self, start: int, end: int, W: np.ndarray, bias: np.ndarray, sums: np.ndarray
    ) -> None:
        X, rows, _, targets = self._given
        examine_lanes(X, rows, targets, start, end, self.beta, W, bias, sums)


def _zeros(shape: tuple[int, int], kind: Any) -> np.ndarray:
    """Zeros on huge pages, because they are accessed at random."""
    array = on_large_pages(shape, kind)
    array[:] = 0.0
    return array


def _quotient(gap: np.ndarray, primal: np.ndarray) -> np.ndarray:
    """gap / primal, or 0 if primal is 0"""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(primal > 0.0, gap / primal, 0.0)


def _cells_of(problem: LinearProblem | OneVsRest) -> float:
    """The number of entries of X that a pass reads; at least one for each row."""
    X = problem.X
    if X.is_dense:
        return float(len(problem)) * problem.n_features
    return float(np.diff(X.indptr)[problem.rows].sum()) + len(problem)


def free_gain(problem: LinearProblem | OneVsRest) -> float:
    """The mean curvature of a row, but large enough that all rows together can move b by one."""
    if isinstance(problem, OneVsRest):
        total = np.inf if problem.squared else float(problem.C.sum())
    else:
        total = float(np.maximum(problem.loss.high, -problem.loss.low).sum())
    gain = max(float(problem.norms.mean()), 1.0 / total if total > 0.0 else 0.0)
    return gain if 0.0 < gain < np.inf else 1.0
