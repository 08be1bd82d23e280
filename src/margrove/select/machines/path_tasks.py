"""The paths of a grid as tasks of other processes: one for each kernel, or kernel and fold.

What cannot be taken apart stays together: a path over all C, of which each machine starts from the
one before, and the machines of a fold, which are judged together. Each task computes its Gram
matrix by itself, from the points that all of them share, by the arithmetic of `GramSeries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from margrove._runtime import single_threaded_blas, spread
from margrove.margin.kernels import Kernel, Points
from margrove.select.held_out import Judge
from margrove.select.machines.gram_series import GramSeries
from margrove.select.machines.machine_paths import (
    FoldMachine,
    FoldPaths,
    MachinePath,
    PathRule,
    PathSearch,
)

__all__ = ["SpreadSearch"]

_ENOUGH = 2  # kernels for each worker, for which folds stay together


@dataclass(frozen=True)
class _Shared:
    """What all tasks need; `judge` has no scores yet."""

    points: Points
    kernels: Sequence[Kernel]
    folds: Sequence[Sequence[FoldMachine | None]]
    rule: PathRule
    judge: Judge


@dataclass(frozen=True)
class _Followed:
    """All machines of a fold and a kernel, and how they were judged."""

    paths: list[MachinePath | None]
    scores: np.ndarray
    seconds: float


class SpreadSearch:
    """Every path of every kernel; see `PathSearch`. A round is a path."""

    unit = "path"

    def __init__(
        self,
        points: Points,
        kernels: Sequence[Kernel],
        folds: Sequence[Sequence[FoldMachine | None]],
        rule: PathRule,
        judge: Judge,
        *,
        n_workers: int,
    ) -> None:
        self._shared = _Shared(points, kernels, folds, rule, judge.bare())
        self._judge = judge
        self._n_workers = n_workers
        self._calls = _calls(len(kernels), len(folds), n_workers)
        self._n_done = 0
        self._coming: Iterator[list[_Followed]] | None = None
        self.paths: list[list[list[MachinePath | None]]] = [
            [[None] * len(machines) for machines in folds] for _ in kernels
        ]
        a_kernel = sum(machine is not None for fold in folds for machine in fold)
        self.total: int | None = len(kernels) * a_kernel
        self.rounds = 0

    @property
    def finished(self) -> bool:
        return self.rounds == self.total

    def figures(self) -> dict[str, float]:
        return {}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Wait for the next task to be done."""
        if self._coming is None:
            self._coming = spread(_followed, self._shared, self._calls, self._n_workers)
        found = next(self._coming)
        kernel, folds = self._calls[self._n_done]
        for fold, own in zip(folds, found, strict=True):
            self._take(kernel, fold, own)
        self._n_done += 1
        return work

    def _take(self, kernel: int, fold: int, own: _Followed) -> None:
        for machine, path in zip(self._shared.folds[fold], own.paths, strict=True):
            if path is not None and machine is not None:
                path.machine = machine
                self.rounds += 1
        self.paths[kernel][fold] = own.paths
        self._judge.scores[:, kernel, fold] = own.scores
        self._judge.seconds[kernel, fold] = own.seconds


def _calls(n_kernels: int, n_folds: int, n_workers: int) -> list[tuple[int, tuple[int, ...]]]:
    """The kernel and the folds of each task."""
    everywhere = tuple(range(n_folds))
    if n_kernels >= _ENOUGH * n_workers:
        return [(kernel, everywhere) for kernel in range(n_kernels)]
    return [(kernel, (fold,)) for kernel in range(n_kernels) for fold in everywhere]


def _followed(shared: _Shared, kernel: int, folds: tuple[int, ...]) -> list[_Followed]:
    """Follow the paths of one kernel in some folds, in a worker process."""
    judge = shared.judge.bare()  # tasks of one process share what they are given

    def judged(_: int, place: int, K: np.ndarray, paths: FoldPaths) -> None:
        judge(kernel, folds[place], K, paths)

    machines = [shared.folds[fold] for fold in folds]
    with single_threaded_blas():
        series = GramSeries(
            [shared.kernels[kernel]], shared.points, n_loans=len(folds), n_threads=1
        )
        search = PathSearch(series, 1, machines, shared.rule, judged, n_threads=1)
        while not search.finished:
            search.advance(0.0)
    found = []
    for fold, paths in zip(folds, search.paths[0], strict=True):
        for path in paths:
            if path is not None:
                path.machine = cast(Any, None)  # it is known where the path is sent to
        seconds = float(judge.seconds[kernel, fold])
        found.append(_Followed(paths, judge.scores[:, kernel, fold].copy(), seconds))
    return found
