"""All kernel machines of a grid of C and gamma over all folds, as one process.

Equal rows are one point. A fold is a vector of weights over the points, zero for those that it
holds out, so duplicates are merged among the training rows of a fold only. A *path* is one machine
of one fold and one kernel over all C. Paths are spread over threads; when the last machine of a
fold and a kernel is done, all of them are scored on the held-out rows of the fold.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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

__all__ = ["FoldMachine", "FoldPaths", "Leg", "MachinePath", "PathRule", "PathSearch"]

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

    @cached_property
    def n_points(self) -> int:
        return sum(run.stop - run.start for run in self.runs)

    def tile(self, K: np.ndarray) -> np.ndarray:
        """The rows and columns of its points in the Gram matrix, (n_points, n_points)."""
        if self.n_points == len(K):
            return K
        tile = np.empty((self.n_points, self.n_points))
        stops = np.cumsum([run.stop - run.start for run in self.runs])
        places = [slice(b - (r.stop - r.start), b) for r, b in zip(self.runs, stops, strict=True)]
        for above, rows in zip(places, self.runs, strict=True):
            for beside, columns in zip(places, self.runs, strict=True):
                tile[above, beside] = K[rows, columns]
        return tile

    def coefficients(self, alphas: np.ndarray) -> np.ndarray:
        """The c_i of f(x) = sum_i c_i K(x_i, x) - rho for each C, float64 (n_C, n_points)."""
        coef = np.zeros((len(alphas), self.n_points))
        signed = alphas * self.y
        if len(self.rows) > self.n_points:  # a regression has two variables for each point
            half = len(self.rows) // 2
            coef[:, self.rows[:half]] = signed[:, :half] + signed[:, half:]
        else:
            coef[:, self.rows] = signed
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


@dataclass(frozen=True)
class _Compressed:
    """The entries of a matrix that are not zero, and their places in the flattened matrix.

    A search has thousands of solutions, and SciPy takes 0.2 ms to make a sparse matrix.
    """

    shape: tuple[int, int]
    places: np.ndarray
    entries: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> _Compressed:
        places = np.flatnonzero(matrix)
        return cls(matrix.shape, places.astype(np.int32), matrix.ravel()[places])

    def matrix(self) -> sp.csr_array:
        rows, columns = np.divmod(self.places, self.shape[1])
        return sp.csr_array((self.entries, (rows, columns)), shape=self.shape)


class MachinePath:
    """One machine over all C: arrays with one entry, or one row, for each C."""

    def __init__(self, machine: FoldMachine, rule: PathRule) -> None:
        n_points, n_variables, n_Cs = machine.n_points, len(machine.y), len(rule.Cs)
        self.machine = machine
        self._rule = rule
        self._at: PathPoint | None = PathPoint.at_start(np.zeros(n_variables), np.zeros(n_points))
        self._alphas: Any = np.zeros((n_Cs, n_variables))
        self.n_support = np.zeros(n_Cs, dtype=np.int64)  # counted when it is compressed
        self.rhos = np.zeros(n_Cs)
        self.violations = np.full(n_Cs, np.inf)
        self.objectives = np.zeros(n_Cs)
        self.steps = np.zeros(n_Cs, dtype=np.int64)
        self.endings = np.zeros(n_Cs, dtype=np.int8)
        self.seconds = 0.0

    @property
    def alphas(self) -> Any:
        """The dual variables (n_C, m): an array, or a sparse matrix when it is compressed."""
        if isinstance(self._alphas, _Compressed):
            return self._alphas.matrix()
        return self._alphas

    def advance(self, tile: np.ndarray, end: int) -> bool:
        """Take some more steps towards the `end`-th C; returns whether it is reached."""
        start = time.perf_counter()
        machine, rule = self.machine, self._rule
        variables = PathMachine(machine.rows, machine.y, machine.p, machine.weight)
        found = PathResults(
            self._alphas, self.rhos, self.violations, self.objectives, self.steps, self.endings
        )
        step_limit = rule.step_limit(len(machine.y))
        is_done = follow_path(
            tile, variables, rule.Cs[:end], rule.tol, step_limit, _SLICE_STEPS, self._at, found
        )
        self.seconds += time.perf_counter() - start
        return bool(is_done)

    def compress(self) -> None:
        """Store the solutions without their zeros."""
        if not isinstance(self._alphas, _Compressed):
            self.n_support = np.count_nonzero(self._alphas, axis=1)
            self._alphas = _Compressed.of(self._alphas)
        self._at = None

    @property
    def converged(self) -> np.ndarray:
        return self.endings != BROKEN_OFF


FoldPaths = Sequence[MachinePath | None]  # of all machines of a fold and a kernel


@dataclass(frozen=True)
class Leg:
    """The paths of a kernel in a fold, to be followed to the `end`-th C."""

    kernel: int
    fold: int
    end: int


class PathSearch:
    """Every path of every kernel; see `slices.Process`. A round is a path, or a part of one.

    folds       the machines of each fold, in the same order, None where a fold has no such machine
    score_fold  called with (kernel, fold, K, paths, part) when a fold's machines of a kernel are
                solved for a slice of C
    next_legs   what to follow next, when all legs are done; nothing means the end. By default all
                paths are followed to their ends, one kernel after the other.
    """

    unit = "path"

    def __init__(
        self,
        series: GramSeries,
        n_kernels: int,
        folds: Sequence[Sequence[FoldMachine | None]],
        rule: PathRule,
        score_fold: Callable[[int, int, np.ndarray, FoldPaths, slice], None],
        *,
        n_threads: int,
        next_legs: Callable[[], Sequence[Leg]] | None = None,
    ) -> None:
        self._series = series
        self._score_fold = score_fold
        self._folds = folds
        self._rule = rule
        self.paths: list[list[list[MachinePath | None]]] = [
            [[None] * len(machines) for machines in folds] for _ in range(n_kernels)
        ]
        self._n_machines = [sum(machine is not None for machine in fold) for fold in folds]
        self._n_left = [[0] * len(folds) for _ in range(n_kernels)]
        self._n_scored = np.zeros((n_kernels, len(folds)), dtype=np.int64)
        self._next_legs = next_legs
        self._queue: list[_Batch] = []
        self._workers = [_ThreadState() for _ in range(n_threads)]
        self._lock = threading.Lock()
        self.rounds = 0
        self.finished = False
        every = [Leg(g, k, len(rule.Cs)) for g in range(n_kernels) for k in range(len(folds))]
        self.total: int | None = n_kernels * sum(self._n_machines) if next_legs is None else None
        self._begin(every if next_legs is None else next_legs())

    def figures(self) -> dict[str, float]:
        return {}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Let every thread follow paths for one slice."""
        deadline = time.monotonic() + _SLICE_SECONDS
        n_threads = len(self._workers)
        run_tiles(lambda place: self._follow(self._workers[place], deadline), n_threads, n_threads)
        if not self._queue and not any(worker.paths for worker in self._workers):
            self._begin([] if self._next_legs is None else self._next_legs())
        return work

    def _begin(self, legs: Sequence[Leg]) -> None:
        self.finished = not legs
        for leg in legs:
            self._n_left[leg.kernel][leg.fold] = self._n_machines[leg.fold]
        self._queue = _batches(legs, self._folds)
        if self.finished:
            for path in self._all_paths():
                path.compress()

    def _all_paths(self) -> Iterator[MachinePath]:
        for of_kernel in self.paths:
            for of_fold in of_kernel:
                yield from (path for path in of_fold if path is not None)

    def _follow(self, thread: _ThreadState, deadline: float) -> None:
        while time.monotonic() < deadline:
            if not thread.paths:
                if not self._fill(thread):
                    return
            elif thread.paths[0][1].advance(thread.tile, thread.paths[0][0].end):
                leg, _ = thread.paths.pop(0)
                self._end(leg)

    def _fill(self, thread: _ThreadState) -> bool:
        """Give a thread its next batch; False if there is none."""
        with self._lock:
            if not self._queue:
                return False
            batch = self._queue.pop(0)
        for leg in batch.legs:
            machine = self._folds[leg.fold][batch.machine]
            if machine is not None:
                of_fold = self.paths[leg.kernel][leg.fold]
                path = of_fold[batch.machine] or MachinePath(machine, self._rule)
                of_fold[batch.machine] = path
                thread.paths.append((leg, path))
        if thread.paths:
            K = self._series.borrow(batch.legs[0].kernel)
            thread.tile = thread.paths[0][1].machine.tile(K)
        return True

    def _end(self, leg: Leg) -> None:
        kernel, fold = leg.kernel, leg.fold
        with self._lock:
            self._n_left[kernel][fold] -= 1
            is_last = self._n_left[kernel][fold] == 0
        if is_last:
            paths = self.paths[kernel][fold]
            part = slice(int(self._n_scored[kernel, fold]), leg.end)
            self._score_fold(kernel, fold, self._series.borrow(kernel), paths, part)
            self._n_scored[kernel, fold] = leg.end
            if leg.end == len(self._rule.Cs):
                self._series.give_back(kernel)
                for path in paths:
                    if path is not None:
                        path.compress()
        with self._lock:
            self.rounds += 1


@dataclass(frozen=True)
class _Batch:
    """Paths of one machine and one kernel in some folds, which share a tile."""

    machine: int
    legs: tuple[Leg, ...]


@dataclass
class _ThreadState:
    """The paths of a thread that are not done yet, as (leg, path), and the tile they share."""

    tile: Any = None
    paths: list[tuple[Leg, MachinePath]] = field(default_factory=list)


def _batches(legs: Sequence[Leg], folds: Sequence[Sequence[FoldMachine | None]]) -> list[_Batch]:
    """A batch is one fold if the only tile is K itself; else all folds, which share a copy."""
    n_machines = len(folds[0])
    if n_machines == 1:
        return [_Batch(0, (leg,)) for leg in legs]
    of_kernel: dict[int, list[Leg]] = {}
    for leg in legs:
        of_kernel.setdefault(leg.kernel, []).append(leg)
    return [
        _Batch(machine, tuple(group))
        for group in of_kernel.values()
        for machine in range(n_machines)
    ]
