"""All machines of a grid of C and gamma over all folds, as one process.

Rows that are alike stand once; a fold is a vector of weights over them, zero for those that it
holds out. So duplicates are merged inside the training part of a fold, and nowhere else. A *path*
is one machine of one fold and one kernel over all C. Paths are spread over threads; when the last
machine of a fold and a kernel is done, the fold's held-out rows are judged by all of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime import run_tiles
from margrove.margin.solvers.dual import (
    BROKEN_OFF,
    PathMachine,
    PathPoint,
    PathResults,
    follow_path,
)
from margrove.select.machines.gram_series import GramSeries

__all__ = ["FoldMachine", "FoldPaths", "MachinePath", "PathRule", "PathSearch"]

_SLICE_SECONDS = 0.25  # threads wait for each other at its end, and Ctrl-C for all of them
_SLICE_STEPS = 20_000
_LEAST_BUDGET = 2_000_000
_BUDGET_A_VARIABLE = 1000


@dataclass(frozen=True)
class FoldMachine:
    """The dual problem of one machine in one fold, but for C; see `DualProblem`.

    runs    where its points stand among all: slices, one after the other
    rows    int64 (m,) the point behind each variable, counted within the runs
    y, p    float64 (m,)
    weight  float64 (m,) the upper bounds, in units of C
    """

    runs: tuple[slice, ...]
    rows: np.ndarray
    y: np.ndarray
    p: np.ndarray
    weight: np.ndarray

    @property
    def n_points(self) -> int:
        return sum(run.stop - run.start for run in self.runs)

    def tile(self, K: np.ndarray) -> np.ndarray:
        """Its part of the Gram matrix."""
        if self.n_points == len(K):
            return K
        return np.ascontiguousarray(
            np.block([[K[above, beside] for beside in self.runs] for above in self.runs])
        )

    def coefficients(self, alphas: np.ndarray) -> np.ndarray:
        """(n_points, n_C): what each point weighs in f(x) = sum_i c_i K(x_i, x) - rho."""
        coef = np.zeros((self.n_points, len(alphas)))
        signed = (alphas * self.y).T
        if len(self.rows) > self.n_points:  # a regression has two variables a point
            half = len(self.rows) // 2
            coef[self.rows[:half]] = signed[:half] + signed[half:]
        else:
            coef[self.rows] = signed
        return coef


@dataclass(frozen=True)
class PathRule:
    """Ascending prices, the tolerance of every machine, and the most steps it may take."""

    Cs: np.ndarray
    tol: float
    max_iter: int = -1

    def budget(self, n_variables: int) -> int:
        if self.max_iter >= 0:
            return self.max_iter
        return max(_LEAST_BUDGET, _BUDGET_A_VARIABLE * n_variables)


class MachinePath:
    """One machine over all C: arrays with one entry, or row, for each."""

    def __init__(self, machine: FoldMachine, rule: PathRule) -> None:
        n_points, n_variables, n_prices = machine.n_points, len(machine.y), len(rule.Cs)
        self.machine = machine
        self._rule = rule
        self._at = PathPoint.at_start(np.zeros(n_variables), np.zeros(n_points))
        self.alphas: Any = np.zeros((n_prices, n_variables))
        self.rhos = np.zeros(n_prices)
        self.violations = np.full(n_prices, np.inf)
        self.objectives = np.zeros(n_prices)
        self.steps = np.zeros(n_prices, dtype=np.int64)
        self.endings = np.zeros(n_prices, dtype=np.int8)
        self.seconds = 0.0

    def advance(self, tile: np.ndarray) -> bool:
        """Follow the path for some steps more; returns whether it is done."""
        start = time.perf_counter()
        machine, rule = self.machine, self._rule
        variables = PathMachine(machine.rows, machine.y, machine.p, machine.weight)
        found = PathResults(
            self.alphas, self.rhos, self.violations, self.objectives, self.steps, self.endings
        )
        budget = rule.budget(len(machine.y))
        is_done = follow_path(
            tile, variables, rule.Cs, rule.tol, budget, _SLICE_STEPS, self._at, found
        )
        self.seconds += time.perf_counter() - start
        return bool(is_done)

    def compress(self) -> None:
        """Store the solutions as a sparse matrix."""
        self.alphas = sp.csr_array(self.alphas)
        self._at = PathPoint.at_start(np.empty(0), np.empty(0))

    @property
    def converged(self) -> np.ndarray:
        return self.endings != BROKEN_OFF


FoldPaths = Sequence[MachinePath | None]  # of all machines of a fold and a kernel


class PathSearch:
    """Every path of every kernel; see `slices.Process`. A round is a path.

    folds  the machines of each fold, in the same order for all, None for what a fold lacks
    judge  is told of (kernel, fold, K, paths) when a fold's machines of a kernel are all there
    """

    unit = "path"

    def __init__(
        self,
        series: GramSeries,
        n_kernels: int,
        folds: Sequence[Sequence[FoldMachine | None]],
        rule: PathRule,
        judge: Callable[[int, int, np.ndarray, FoldPaths], None],
        *,
        n_threads: int,
    ) -> None:
        self._series = series
        self._judge = judge
        self._folds = folds
        self._rule = rule
        self.paths: list[list[list[MachinePath | None]]] = [
            [[None] * len(machines) for machines in folds] for _ in range(n_kernels)
        ]
        n_machines = [sum(machine is not None for machine in fold) for fold in folds]
        self._left = [list(n_machines) for _ in range(n_kernels)]
        self.total: int | None = sum(map(sum, self._left))
        self._waiting = _batches(n_kernels, folds)
        self._hands = [_Hand() for _ in range(n_threads)]
        self._lock = threading.Lock()
        self.rounds = 0

    @property
    def finished(self) -> bool:
        return self.rounds == self.total

    def figures(self) -> dict[str, float]:
        return {}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Let every thread follow paths for one slice."""
        deadline = time.monotonic() + _SLICE_SECONDS
        n_threads = len(self._hands)
        run_tiles(lambda place: self._follow(self._hands[place], deadline), n_threads, n_threads)
        return work

    def _follow(self, hand: _Hand, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not hand.paths:
                if not self._fill(hand):
                    return
            elif hand.paths[0][1].advance(hand.tile):
                fold, _ = hand.paths.pop(0)
                self._end(hand.kernel, fold)

    def _fill(self, hand: _Hand) -> bool:
        """Take the next batch in hand; False if there is none."""
        with self._lock:
            if not self._waiting:
                return False
            batch = self._waiting.pop(0)
        for fold in batch.folds:
            machine = self._folds[fold][batch.machine]
            if machine is not None:
                path = MachinePath(machine, self._rule)
                self.paths[batch.kernel][fold][batch.machine] = path
                hand.paths.append((fold, path))
        hand.kernel = batch.kernel
        if hand.paths:
            hand.tile = hand.paths[0][1].machine.tile(self._series.borrow(batch.kernel))
        return True

    def _end(self, kernel: int, fold: int) -> None:
        with self._lock:
            self._left[kernel][fold] -= 1
            is_last = self._left[kernel][fold] == 0
        if is_last:
            paths = self.paths[kernel][fold]
            self._judge(kernel, fold, self._series.borrow(kernel), paths)
            self._series.give_back(kernel)
            for path in paths:
                if path is not None:
                    path.compress()
        with self._lock:
            self.rounds += 1


@dataclass(frozen=True)
class _Batch:
    """Paths of one machine and one kernel in some folds, which share a tile."""

    kernel: int
    machine: int
    folds: tuple[int, ...]


@dataclass
class _Hand:
    """What a thread has in hand: (fold, path) pairs still to be followed."""

    kernel: int = -1
    tile: Any = None
    paths: list[tuple[int, MachinePath]] = field(default_factory=list)


def _batches(n_kernels: int, folds: Sequence[Sequence[FoldMachine | None]]) -> list[_Batch]:
    """One machine's tile is all of K, and folds are the unit; many machines' are copied once."""
    n_machines, everywhere = len(folds[0]), tuple(range(len(folds)))
    together = [everywhere] if n_machines > 1 else [(fold,) for fold in everywhere]
    return [
        _Batch(kernel, machine, some)
        for kernel in range(n_kernels)
        for machine in range(n_machines)
        for some in together
    ]
