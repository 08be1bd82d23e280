"""Dual coordinate descent for linear machines, many classes in one pass.

    maximise  -1/2 ||X'beta||^2 - (sum_i beta_i)^2 / 2k
              + sum_i  t_i beta_i - e |beta_i| - 1/2 d_i beta_i^2

(see `margin.linear.problems`). Hsieh, Chang, Lin, Keerthi and Sundararajan, "A dual coordinate
descent method for large-scale linear SVM" (2008); Ho and Lin (2012) for regression:

    for i in a new order each epoch:
        g      = w.x_i + b - t_i + d_i beta_i
        beta_i <- the lowest point of its parabola within the bounds;     update w and b

**The intercept.** With the penalty k, b = (sum_i beta_i) / k. A free intercept, k = 0, is a
sequence of penalised ones, each relative to the previous one: min P(w, b) + (b - c)^2 / 2g, c <- b,
the proximal point method of Rockafellar (1976). c moves once in an epoch.

**Many classes** share the pass: weights are feature-major (d, LANES), so that a nonzero reads a
cache line or two for sixteen one-vs-rest machines, which then take the step of the row together.
One thread solves a block of sixteen machines (`dual_coordinate_blocks`).

**Shrinking.** A row is left out until the rest is solved if none of its variables would move, by a
margin as large as the largest violation of the previous epoch.

**Stopping** is on the duality gap. The share of each row in the gap is measured when it is visited.
When the sum of the shares is small enough, the gap is recomputed: beta is made feasible (its sum is
zero if b is free), w is computed from it in float64, and primal and dual are evaluated over all
rows.

**Slow machines.** Coordinate descent is slow if rows are similar or C is large. Machines that share
the pass are then solved one by one, each with its own list of active rows, and with steps on the
face of its free variables (`faces`). If that is slow as well and there are few features, Newton
steps (`newton`) follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from margrove._runtime import SLICE_SECONDS, is_watched_by_rounds, run_tiles, single_threaded_blas
from margrove.margin.linear import LinearProblem, OneVsRest
from margrove.margin.solvers.linear.dual_coordinate_blocks import Block, LaneBlock, SingleBlock
from margrove.margin.solvers.linear.dual_coordinate_loops import LANES
from margrove.margin.solvers.linear.newton import MOST_FEATURES, NewtonProcess
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult, better

__all__ = ["CoordinateDescent"]


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
        may_be_hard: bool = False,
    ) -> None:
        """`may_be_hard` ends it early if no row can be left out; for one machine."""
        self.total: int | None = demand.epochs
        self._n_threads = n_threads
        if isinstance(problem, LinearProblem):
            self._blocks: list[Block | _MachineSequence] = [
                SingleBlock(problem, demand, may_be_hard=may_be_hard)
            ]
            machines = [range(1)]
        else:
            machines = _blocks_of(problem.n_machines)
            self._blocks = [LaneBlock(problem, demand, numbers) for numbers in machines]
        if start is not None:
            for block, numbers in zip(self._blocks, machines, strict=True):
                assert isinstance(block, Block)
                block.start_from(start.of_machines(numbers))

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
        """Run a slice of each block; a thread whose blocks are done does not wait long."""
        running = [k for k, block in enumerate(self._blocks) if not block.finished]
        done = [0.0] * len(running)
        deadline, by_rounds = time.monotonic() + SLICE_SECONDS, is_watched_by_rounds()

        def run(number: int) -> None:
            k = running[number]
            while not self._blocks[k].finished:
                done[number] += self._blocks[k].advance(work, by_rounds=by_rounds)
                self._blocks[k] = _continued(self._blocks[k])
                if len(running) == 1 or time.monotonic() > deadline:
                    return

        # One BLAS thread for the last of several blocks, too, so that its sums are the same.
        with single_threaded_blas() if len(self._blocks) > 1 else nullcontext():
            run_tiles(run, len(running), self._n_threads)
        return max(done)

    def result(self) -> LinearResult:
        return LinearResult.stacked([block.result() for block in self._blocks])


def _continued(block: Block | _MachineSequence) -> Block | _MachineSequence:
    """The block, or a faster process in its place if it is slow."""
    if not isinstance(block, Block) or not block.is_slow:
        return block
    is_single = not isinstance(block, LaneBlock)
    if is_single and (block.demand.epochs <= block.epoch or block.n_features > MOST_FEATURES):
        return block
    reached = block.result()
    starts = [reached.of_machines(range(k, k + 1)) for k in range(len(block.machines()))]
    return _MachineSequence(block, starts, block.epoch, block.estimate)


def _from_coordinates(
    problem: LinearProblem, demand: LinearDemand, *, start: LinearResult
) -> CoordinateDescent:
    return CoordinateDescent(problem, demand, start=start)


class _MachineSequence:
    """Solves the machines of a block one after the other, from the point that it has reached."""

    def __init__(
        self, block: Block, starts: list[LinearResult], epoch: int, estimate: float
    ) -> None:
        self._problems = block.machines()
        self._method: Callable[..., Any] = NewtonProcess
        if isinstance(block, LaneBlock):
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

    def advance(self, work: float, *, by_rounds: bool = False) -> float:
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
        current = [] if self._process is None else [self._process.result()]
        known = self._done + current
        found = LinearResult.stacked(known + self._starts[len(known) :])
        return replace(found, epochs=self.epoch)


def _blocks_of(n_machines: int) -> list[range]:
    """Machines in as few blocks of at most LANES as possible, of nearly equal size."""
    n_blocks = -(-n_machines // LANES)
    edges = np.linspace(0, n_machines, n_blocks + 1).round().astype(int).tolist()
    return [range(first, end) for first, end in pairwise(edges)]
