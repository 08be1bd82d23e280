"""All kernel machines of a grid of C and gamma over all folds, as one process.

Equal rows are one point. A fold is a vector of weights over the points, zero for those that it
holds out, so duplicates are merged among the training rows of a fold only. A *path* is one machine
of one fold and one kernel over all C. Paths are spread over threads; when the last machine of a
fold and a kernel is done, all of them are scored on the held-out rows of the fold.
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

_SLICE_SECONDS = 0.25  # at the end of a slice threads wait for each other, and Ctrl-C is handled
_SLICE_STEPS = 20_000
_MIN_STEPS = 2_000_000
_STEPS_PER_VARIABLE = 1000


@dataclass(frozen=True)
class FoldMachine:
    """The dual problem of one machine in one fold, without C; see `DualProblem`.

    runs    its points as slices of all points
    rows    int64 (m,) the point of each variable, numbered within the runs
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
        """The rows and columns of its points in the Gram matrix, (n_points, n_points)."""
        if self.n_points == len(K):
            return K
        return np.ascontiguousarray(
            np.block([[K[above, beside] for beside in self.runs] for above in self.runs])
        )

    def coefficients(self, alphas: np.ndarray) -> np.ndarray:
        """The c_i of f(x) = sum_i c_i K(x_i, x) - rho for each C, float64 (n_points, n_C)."""
        coef = np.zeros((self.n_points, len(alphas)))
        signed = (alphas * self.y).T
        if len(self.rows) > self.n_points:  # a regression has two variables for each point
            half = len(self.rows) // 2
            coef[self.rows[:half]] = signed[:half] + signed[half:]
        else:
            coef[self.rows] = signed
        return coef


@dataclass(frozen=True)
class PathRule:
    """Ascending C, the tolerance of every machine, and the most steps that it may take."""

    Cs: np.ndarray
    tol: float
    max_iter: int = -1

    def step_limit(self, n_variables: int) -> int:
        if self.max_iter >= 0:
            return self.max_iter
        return max(_MIN_STEPS, _STEPS_PER_VARIABLE * n_variables)


class MachinePath:
    """One machine over all C: arrays with one entry, or one row, for each C."""

    def __init__(self, machine: FoldMachine, rule: PathRule) -> None:
        n_points, n_variables, n_Cs = machine.n_points, len(machine.y), len(rule.Cs)
        self.machine = machine
        self._rule = rule
        self._at = PathPoint.at_start(np.zeros(n_variables), np.zeros(n_points))
        self.alphas: Any = np.zeros((n_Cs, n_variables))
        self.rhos = np.zeros(n_Cs)
        self.violations = np.full(n_Cs, np.inf)
        self.objectives = np.zeros(n_Cs)
        self.steps = np.zeros(n_Cs, dtype=np.int64)
        self.endings = np.zeros(n_Cs, dtype=np.int8)
        self.seconds = 0.0

    def advance(self, tile: np.ndarray) -> bool:
        """Take some more steps along the path; returns whether it is done."""
        start = time.perf_counter()
        machine, rule = self.machine, self._rule
        variables = PathMachine(machine.rows, machine.y, machine.p, machine.weight)
        found = PathResults(
            self.alphas, self.rhos, self.violations, self.objectives, self.steps, self.endings
        )
        step_limit = rule.step_limit(len(machine.y))
        is_done = follow_path(
            tile, variables, rule.Cs, rule.tol, step_limit, _SLICE_STEPS, self._at, found
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

    folds       the machines of each fold, in the same order, None where a fold has no such machine
    score_fold  called with (kernel, fold, K, paths) when a fold's machines of a kernel are done
    """

    unit = "path"

    def __init__(
        self,
        series: GramSeries,
        n_kernels: int,
        folds: Sequence[Sequence[FoldMachine | None]],
        rule: PathRule,
        score_fold: Callable[[int, int, np.ndarray, FoldPaths], None],
        *,
        n_threads: int,
    ) -> None:
        self._series = series
        self._score_fold = score_fold
        self._folds = folds
        self._rule = rule
        self.paths: list[list[list[MachinePath | None]]] = [
            [[None] * len(machines) for machines in folds] for _ in range(n_kernels)
        ]
        n_machines = [sum(machine is not None for machine in fold) for fold in folds]
        self._n_left = [list(n_machines) for _ in range(n_kernels)]
        self.total: int | None = sum(map(sum, self._n_left))
        self._queue = _batches(n_kernels, folds)
        self._workers = [_ThreadState() for _ in range(n_threads)]
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
        n_threads = len(self._workers)
        run_tiles(lambda place: self._follow(self._workers[place], deadline), n_threads, n_threads)
        return work

    def _follow(self, thread: _ThreadState, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not thread.paths:
                if not self._fill(thread):
                    return
            elif thread.paths[0][1].advance(thread.tile):
                fold, _ = thread.paths.pop(0)
                self._end(thread.kernel, fold)

    def _fill(self, thread: _ThreadState) -> bool:
        """Give a thread its next batch; False if there is none."""
        with self._lock:
            if not self._queue:
                return False
            batch = self._queue.pop(0)
        for fold in batch.folds:
            machine = self._folds[fold][batch.machine]
            if machine is not None:
                path = MachinePath(machine, self._rule)
                self.paths[batch.kernel][fold][batch.machine] = path
                thread.paths.append((fold, path))
        thread.kernel = batch.kernel
        if thread.paths:
            thread.tile = thread.paths[0][1].machine.tile(self._series.borrow(batch.kernel))
        return True

    def _end(self, kernel: int, fold: int) -> None:
        with self._lock:
            self._n_left[kernel][fold] -= 1
            is_last = self._n_left[kernel][fold] == 0
        if is_last:
            paths = self.paths[kernel][fold]
            self._score_fold(kernel, fold, self._series.borrow(kernel), paths)
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
class _ThreadState:
    """The paths of a thread that are not done yet, as (fold, path), and the tile they share."""

    kernel: int = -1
    tile: Any = None
    paths: list[tuple[int, MachinePath]] = field(default_factory=list)


def _batches(n_kernels: int, folds: Sequence[Sequence[FoldMachine | None]]) -> list[_Batch]:
    """A batch is one fold if the only tile is K itself; else all folds, which share a copy."""
    n_machines, all_folds = len(folds[0]), tuple(range(len(folds)))
    fold_groups = [all_folds] if n_machines > 1 else [(fold,) for fold in all_folds]
    return [
        _Batch(kernel, machine, group)
        for kernel in range(n_kernels)
        for machine in range(n_machines)
        for group in fold_groups
    ]
