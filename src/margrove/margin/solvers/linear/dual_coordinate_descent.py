"""Dual coordinate descent for linear machines, many classes in one pass.

    maximise  -1/2 ||X'beta||^2 - (sum_i beta_i)^2 / 2k
              + sum_i  t_i beta_i - e |beta_i| - 1/2 d_i beta_i^2

(see `margin.linear.problems`). Hsieh, Chang, Lin, Keerthi and Sundararajan, "A dual coordinate
descent
method for large-scale linear SVM" (2008); Ho and Lin (2012) for regression:

    for i in a new order each epoch:
        g      = w.x_i + b - t_i + d_i beta_i
        beta_i <- the lowest point of its parabola within the bounds      w, b follow

**The intercept.** Its price k makes b = (sum_i beta_i) / k. A free one, k = 0, is a sequence of
priced ones, each measured from the one before: min P(w, b) + (b - c)^2 / 2g, c <- b, the proximal
point method of Rockafellar (1976). c moves once an epoch.

**Many classes** share the pass: weights are feature-major (d, LANES), so that a nonzero costs a
cache line or two for sixteen one-vs-rest machines, which then take the step of the row together.
Blocks of sixteen machines are the work of one thread.

**Shrinking.** A row none of whose variables would move, by a margin as large as the largest
violation of the epoch before, is left out until the rest is solved.

**Stopping** is on the duality gap. Every row's own share of it is seen when it is visited; once
these add up to little enough, the gap is computed afresh: beta is made feasible (where b is free,
its sum zero), w is computed from it in float64, and primal and dual are evaluated over all rows.

**Creeping.** Coordinates are slow where rows are alike or C is large. Machines that share the pass
then go on one by one, each with a list of its own of the rows that matter, and with steps on the
face of its free variables (`linear_faces`). Where that creeps too and features are few, Newton
steps (`primal_newton`) take over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import SLICE_SECONDS, on_large_pages, run_tiles, single_threaded_blas
from margrove.margin.linear import LinearProblem, OneVsRest, balanced
from margrove.margin.solvers.linear.dual_coordinate_loops import (
    LANES,
    DescentState,
    LaneTargets,
    examine_lanes,
    examine_one,
    visit_lanes,
    visit_one,
    weigh_lanes,
    weigh_one,
)
from margrove.margin.solvers.linear.faces import FaceSteps
from margrove.margin.solvers.linear.newton import MOST_FEATURES, NewtonProcess
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult, better
from margrove.margin.solvers.perceptron import shuffle

__all__ = ["CoordinateDescent", "free_gain"]

_FLOAT32_TOL = 1e-5  # a gap that float32 weights can reach
_ORDINARY = (1e-12, 1e12)  # prices and squared norms that float32 can be trusted with
_WORK_AT_ONCE = 100_000_000  # multiply-adds of a pass between two looks for an interrupt
_PROGRESS = 0.9
_FUTILE_CHECKS = 12
_GOOD_PROGRESS = 0.3  # of the gap, between two checks
_EPOCHS_BETWEEN_FACES = 4


class CoordinateDescent:
    """Epochs of coordinate steps over one machine or many; see `slices.Process`."""

    unit = "epoch"

    def __init__(
        self,
        problem: LinearProblem | OneVsRest,
        demand: LinearDemand,
        *,
        start: LinearResult | None = None,
        n_threads: int = 1,
    ) -> None:
        self.total: int | None = demand.epochs
        self._n_threads = n_threads
        if isinstance(problem, LinearProblem):
            self._blocks: list[_Block | _Chain] = [_SingleBlock(problem, demand)]
            machines = [range(1)]
        else:
            machines = _blocks_of(problem.n_machines)
            self._blocks = [_LaneBlock(problem, demand, own) for own in machines]
        if start is not None:
            for block, own in zip(self._blocks, machines, strict=True):
                assert isinstance(block, _Block)
                block.start_from(start.part(own))

    @property
    def rounds(self) -> int:
        return max(block.epoch for block in self._blocks)

    @property
    def finished(self) -> bool:
        return all(block.finished for block in self._blocks)

    def figures(self) -> dict[str, float]:
        return {"relative gap": max(block.estimate for block in self._blocks)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """A slice of each block; a thread that is done with its own waits for nobody for long."""
        at_work = [k for k, block in enumerate(self._blocks) if not block.finished]
        done = [0.0] * len(at_work)
        deadline = time.monotonic() + SLICE_SECONDS

        def run(number: int) -> None:
            k = at_work[number]
            while not self._blocks[k].finished:
                done[number] += self._blocks[k].advance(work)
                self._blocks[k] = _continued(self._blocks[k])
                if len(at_work) == 1 or time.monotonic() > deadline:
                    return

        # The last of several blocks, too, sums as if others were at work beside it.
        with single_threaded_blas() if len(self._blocks) > 1 else nullcontext():
            run_tiles(run, len(at_work), self._n_threads)
        return max(done)

    def result(self) -> LinearResult:
        return LinearResult.stacked([block.result() for block in self._blocks])


def _continued(block: _Block | _Chain) -> _Block | _Chain:
    """The block, or a faster process in its place if it makes little progress."""
    if not isinstance(block, _Block) or not block.creeps:
        return block
    is_single = not isinstance(block, _LaneBlock)
    if is_single and (block.demand.epochs <= block.epoch or block.n_features > MOST_FEATURES):
        return block
    reached = block.result()
    starts = [reached.part(range(k, k + 1)) for k in range(len(block.machines()))]
    return _Chain(block, starts, block.epoch, block.estimate)


def _from_coordinates(
    problem: LinearProblem, demand: LinearDemand, *, start: LinearResult
) -> CoordinateDescent:
    return CoordinateDescent(problem, demand, start=start)


class _Chain:
    """Solves the machines of a block one after the other, from the point it had reached."""

    def __init__(
        self, block: _Block, starts: list[LinearResult], epoch: int, estimate: float
    ) -> None:
        self._problems = block.machines()
        self._method: Callable[..., Any] = NewtonProcess
        if isinstance(block, _LaneBlock):
            self._method = _from_coordinates
        self._starts = starts
        self._demand = replace(block.demand, epochs=max(1, block.demand.epochs - epoch))
        self._done: list[LinearResult] = []
        self._process: Any = None
        self._before = epoch
        self.epoch = epoch
        self.estimate = estimate

    def _begin(self) -> None:
        k = len(self._done)
        self._process = self._method(self._problems[k](), self._demand, start=self._starts[k])

    @property
    def finished(self) -> bool:
        return len(self._done) == len(self._problems)

    def advance(self, work: float) -> float:
        k = len(self._done)
        if self._starts[k].converged.all():
            self._done.append(self._starts[k])
            return work
        if self._process is None:
            self._begin()
        done = self._process.advance(work)
        self.epoch = max(self.epoch, self._before + self._process.rounds)
        self.estimate = self._process.figures()["relative gap"]
        if self._process.finished:
            self._done.append(better(self._process.result(), self._starts[k]))
            self._process = None
        return float(done)

    def result(self) -> LinearResult:
        at_work = [] if self._process is None else [self._process.result()]
        known = self._done + at_work
        found = LinearResult.stacked(known + self._starts[len(known) :])
        return replace(found, epochs=self.epoch)


def _blocks_of(n_machines: int) -> list[range]:
    """Machines in as few blocks of at most LANES as possible, of nearly equal size."""
    n_blocks = -(-n_machines // LANES)
    edges = np.linspace(0, n_machines, n_blocks + 1).round().astype(int).tolist()
    return [range(first, end) for first, end in pairwise(edges)]


class _Block:
    """Machines that are solved together by one thread; subclasses say how a row is visited.

    Sets: beta (m, L), W (d, L) and bias (L,), which agree with each other whenever a slice ends,
    but for rounding; balance (L,) is the sum of beta over the rows; `worst` (L,) the largest
    violation of the last epoch; `sums` (3, L) what this epoch has seen: losses, beta times value,
    and the rows' shares of the gap.
    """

    _patience: int  # slow checks, before something else is tried
    _between_checks: int

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
        # What b moves by for each unit of beta: 1 / k, or the step of the proximal point method.
        self._gain = free_gain(problem) if self._is_free else 1.0 / problem.bias_price
        self._cost = 2.0 * n_lanes * _cells_of(problem) / len(problem) + 20.0
        self.beta = _zeros((len(problem), n_lanes), kind)
        self._W = _zeros((problem.n_features, n_lanes), kind)
        self._bias = np.zeros(n_lanes, dtype=kind)
        self._balance = np.zeros(n_lanes)
        self._worst = np.full(n_lanes, np.inf, dtype=kind)
        self._next_worst = np.zeros(n_lanes, dtype=kind)
        self._sums = np.zeros((3, n_lanes))
        self._active = np.arange(len(problem))
        self._kept = np.ones(len(problem), dtype=np.bool_)
        self._cursor = 0
        self.epoch = 0
        self.estimate = np.inf  # of the relative gap
        self._threshold = demand.tol
        self._checked_at = 0
        self._futile = 0
        self._least_gap = np.inf
        self.finished = False
        self.creeps = False
        self._slow = 0
        self._exact: Any = None
        self._measured_at: tuple[int, int] = (-1, -1)
        self._trace: list[EpochPoint] = []

    def start_from(self, start: LinearResult) -> None:
        """Begin at the solution of a similar problem; dual variables must be within the bounds."""
        self.beta[:, : self._n_machines] = start.beta
        self._bias[: self._n_machines] = start.intercept
        self._balance[:] = self.beta.sum(axis=0, dtype=np.float64)
        self._compute_weights()
        self._W[:] = self._exact
        if not self._is_free:
            self._bias[:] = self._gain * self._balance

    def advance(self, work: float) -> float:
        """About `work` multiply-adds of an epoch; returns how many."""
        if self._cursor == 0:
            self._begin_epoch()
        end = min(len(self._active), self._cursor + max(1, int(work / self._cost)))
        done = self._cost * (end - self._cursor)
        self._visit(self._cursor, end)
        self._cursor = end
        if end == len(self._active):
            self._cursor = 0
            self._end_epoch()
        return done

    def _begin_epoch(self) -> None:
        order = np.empty(len(self._active), dtype=np.int64)
        shuffle(order, np.uint64(self.demand.seed), np.uint64(self.epoch))
        self._active = self._active[order]
        self._sums[:] = 0.0
        self._next_worst[:] = 0.0

    def _end_epoch(self) -> None:
        self.epoch += 1
        losses, products, shares = self._sums[:, : self._n_machines]
        primal = 0.5 * np.maximum(products, 0.0) + losses
        self.estimate = float(_quotient(shares, primal).max())
        self._worst[:] = self._next_worst
        self._active = self._active[self._kept[self._active]]
        self._speed_up()
        if self._is_free:  # the centre c of the proximal point method moves to b
            self._bias += (self._gain * self._balance).astype(self._bias.dtype)
        is_last = self.epoch >= self.demand.epochs
        is_due = self.epoch - self._checked_at >= self._between_checks
        if self.estimate <= self._threshold or not len(self._active) or is_last or is_due:
            self._check()
            self.finished |= is_last

    def _speed_up(self) -> None:
        """At the end of an epoch: a step that speeds up convergence, if there is one."""

    def _check(self) -> None:
        """Measure the true gap; where it is too large, go on with all rows."""
        self._measure()
        self._checked_at = self.epoch
        self._trace.append(EpochPoint(self.epoch, float(self.primal.sum()), float(self.dual.sum())))
        if self.converged.all():
            self.finished = True
            return
        relative = float(_quotient(self.gap, self.primal).max())
        self._slow = 0 if relative < _GOOD_PROGRESS * self._least_gap else self._slow + 1
        self.creeps = self._slow >= self._patience and self.epoch < self.demand.epochs
        self._futile = 0 if relative < _PROGRESS * self._least_gap else self._futile + 1
        self._least_gap = min(self._least_gap, relative)
        if self._futile >= _FUTILE_CHECKS:
            self._give_up()
        # Estimate and truth differ by what the rows left out and a free intercept hide.
        self._threshold = max(0.5 * min(self._threshold, self.estimate), 0.01 * self.demand.tol)
        self._active = np.arange(len(self._problem))
        self._kept[:] = True
        self._worst[:] = np.inf

    def _give_up(self) -> None:
        """Rounding prevents progress: switch to float64, or finish if that is in use."""
        if self.beta.dtype == np.float64:
            self.finished = True
            return
        self._go_to_float64()
        self._futile = 0

    def _go_to_float64(self) -> None:
        if self.beta.dtype != np.float64:
            for name in ("beta", "_W", "_bias", "_worst", "_next_worst"):
                setattr(self, name, getattr(self, name).astype(np.float64))

    def _measure(self) -> None:
        """Make beta feasible and compute W from it, in float64, and both objectives.

        Sets: _exact (d, L), primal, dual, violation (K,).
        """
        K = self._n_machines
        if self._is_free:
            self._make_balanced()
        self._compute_weights()
        self._W[:] = self._exact
        sums = np.zeros((3, self.beta.shape[1]))  # losses, the dual's linear part, violation
        bias = self._bias.astype(np.float64)
        for start, end in self._pieces():
            self._examine(start, end, self._exact, bias, sums)
        squared_norm = np.einsum("jl,jl->l", self._exact, self._exact)
        bias_term = np.zeros(len(bias))
        if not self._is_free and self._gain > 0.0:
            bias_term = bias**2 / (2.0 * self._gain)
        self.primal = (0.5 * squared_norm + bias_term + sums[0])[:K]
        self.dual = (-0.5 * squared_norm - bias_term + sums[1])[:K]
        self.violation = sums[2, :K]
        self._measured_at = self.epoch, self._cursor

    @property
    def gap(self) -> np.ndarray:
        return np.maximum(self.primal - self.dual, 0.0)

    @property
    def converged(self) -> np.ndarray:
        return self.gap <= self.demand.tol * np.abs(self.primal)

    def result(self) -> LinearResult:
        """The current point with its measured objectives and gap."""
        if self._measured_at != (self.epoch, self._cursor):
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
        """A free intercept demands that beta adds up to zero."""
        sums = self.beta.sum(axis=0, dtype=np.float64)
        for lane in np.flatnonzero(sums[: self._n_machines]).tolist():
            self.beta[:, lane] = balanced(self.beta[:, lane], *self._bounds(lane))
        self._balance[:] = 0.0

    def _compute_weights(self) -> None:
        """_exact = X' beta"""
        if self._exact is None:
            self._exact = on_large_pages(self._W.shape, np.float64)
        self._exact[:] = 0.0
        for start, end in self._pieces():
            self._weigh(start, end, self._exact)

    def _pieces(self) -> list[tuple[int, int]]:
        m = len(self._problem)
        step = max(1, int(_WORK_AT_ONCE / self._cost))
        return [(start, min(start + step, m)) for start in range(0, m, step)]

    def machines(self) -> list[Callable[[], LinearProblem]]:
        """For each machine, a function that returns its problem."""
        raise NotImplementedError

    def _bounds(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _descent(self) -> DescentState:
        """What the compiled steps write to."""
        return DescentState(
            self.beta, self._W, self._bias, self._balance, self._worst, self._next_worst,
            self._kept, self._sums,
        )  # fmt: skip

    def _visit(self, start: int, end: int) -> None:
        raise NotImplementedError

    def _weigh(self, start: int, end: int, W: np.ndarray) -> None:
        raise NotImplementedError

    def _examine(
        self, start: int, end: int, W: np.ndarray, bias: np.ndarray, sums: np.ndarray
    ) -> None:
        raise NotImplementedError


class _SingleBlock(_Block):
    """One machine with any loss; now and then a step on the face of its free variables."""

    _patience = 3
    _between_checks = 25

    def __init__(self, problem: LinearProblem, demand: LinearDemand) -> None:
        super().__init__(problem, demand, 1, 1, np.float64)
        self._given = (problem.X, read_only(problem.rows), read_only(problem.norms), problem.loss)
        self._single = problem
        self._faces = FaceSteps(problem, self._gain)

    def _speed_up(self) -> None:
        if self.epoch % _EPOCHS_BETWEEN_FACES or self.estimate <= self._threshold:
            return
        point = self.beta[:, 0], self._W[:, 0], float(self._bias[0])
        found = self._faces.step(self._active, *point)
        if found is not None:
            self.beta[:, 0], self._W[:, 0], self._bias[0] = found
            self._balance[0] = self.beta.sum()

    def machines(self) -> list[Callable[[], LinearProblem]]:
        return [lambda: self._single]

    def _bounds(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        return self._single.loss.low, self._single.loss.high

    def _visit(self, start: int, end: int) -> None:
        visit_one(*self._given, self._gain, self._active, start, end, self._descent())

    def _weigh(self, start: int, end: int, W: np.ndarray) -> None:
        X, rows = self._given[:2]
        weigh_one(X, rows, start, end, self.beta, W)

    def _examine(
        self, start: int, end: int, W: np.ndarray, bias: np.ndarray, sums: np.ndarray
    ) -> None:
        X, rows, _, loss = self._given
        examine_one(X, rows, loss, start, end, self.beta, W, bias, sums)


class _LaneBlock(_Block):
    """Up to LANES one-vs-rest machines."""

    _patience = 1
    _between_checks = 5

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
        self._own = machines

    def machines(self) -> list[Callable[[], LinearProblem]]:
        return [partial(self._all.machine, k) for k in self._own]

    def _bounds(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        """In the precision of beta, which rounds C."""
        far = np.full(len(self._problem), np.inf)
        high = far if self._all.squared else self._all.C.astype(self.beta.dtype)
        return -high, high

    def _visit(self, start: int, end: int) -> None:
        visit_lanes(*self._given, self._gain, self._active, start, end, self._descent())

    def _weigh(self, start: int, end: int, W: np.ndarray) -> None:
        X, rows = self._given[:2]
        weigh_lanes(X, rows, start, end, self.beta, W)

    def _examine(
        self, start: int, end: int, W: np.ndarray, bias: np.ndarray, sums: np.ndarray
    ) -> None:
        X, rows, _, targets = self._given
        examine_lanes(X, rows, targets, start, end, self.beta, W, bias, sums)


def _zeros(shape: tuple[int, int], kind: Any) -> np.ndarray:
    """Zeros on large pages, where they are looked up at random."""
    array = on_large_pages(shape, kind)
    array[:] = 0.0
    return array


def _quotient(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0.0, part / whole, 0.0)


def _cells_of(problem: LinearProblem | OneVsRest) -> float:
    """Entries of X that a pass reads, at least one a row."""
    X = problem.X
    if X.is_dense:
        return float(len(problem)) * problem.n_features
    return float(np.diff(X.indptr)[problem.rows].sum()) + len(problem)


def free_gain(problem: LinearProblem | OneVsRest) -> float:
    """As much curvature as a row has, but enough for b to move by one if all rows pull at it."""
    if isinstance(problem, OneVsRest):
        total = np.inf if problem.squared else float(problem.C.sum())
    else:
        total = float(np.maximum(problem.loss.high, -problem.loss.low).sum())
    gain = max(float(problem.norms.mean()), 1.0 / total if total > 0.0 else 0.0)
    return gain if 0.0 < gain < np.inf else 1.0
