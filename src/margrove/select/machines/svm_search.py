"""Cross-validation of kernel machines over C and gamma, with the work shared.

In one process, threads follow the paths (`PathSearch`). With several worker processes, the paths of
one kernel, or of one kernel and fold, are a task (`SpreadSearch`). A path over all C is never
split, because each machine starts from the one before. The machines of a fold are not split either,
because they are scored together. Each task computes its Gram matrix from the points that all tasks
share, with the arithmetic of `GramSeries`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from margrove._runtime import (
    drive,
    resolve_n_jobs,
    single_threaded_blas,
    spread,
    tasks_wanted,
    workers_wanted,
)
from margrove.exceptions import NumericalOverflowError
from margrove.margin.kernels import Kernel, Points
from margrove.select.held_out import Fold, FoldScorer
from margrove.select.machines.cell_race import CellRace
from margrove.select.machines.gram_series import GramSeries
from margrove.select.machines.grid_cells import Cells
from margrove.select.machines.machine_paths import (
    FoldMachine,
    FoldPaths,
    MachinePath,
    PathRule,
    PathSearch,
)
from margrove.select.machines.svm_problems import SvmTask

__all__ = ["default_gamma", "search_cells"]

_KERNELS_PER_WORKER = 2  # from this number on, all folds of a kernel are one task


def default_gamma(task: SvmTask) -> float:
    """The value of `gamma="scale"` for these rows, before they were scaled."""
    training = task.training
    gamma = float(getattr(training.kernel, "gamma", 1.0))
    # The kernel is for scaled rows. Only the kernel knows how its gamma changes with the scale.
    one = replace(training.kernel, gamma=1.0)  # type: ignore[call-arg]
    factor = float(getattr(one.on_scaled(training.scale), "gamma", 1.0))
    if not 1e-280 < factor < 1e280:
        raise NumericalOverflowError(
            "The features of X are so large or so small that gamma overflows. Scale "
            "them, for example with sklearn.preprocessing.StandardScaler."
        )
    return gamma / factor


def _kernels(task: SvmTask, gammas: np.ndarray) -> list[Kernel]:
    """The kernel of each gamma for the scaled rows, checked to be finite there."""
    training = task.training
    if np.isnan(gammas).any():
        return [training.kernel]
    kernels = [
        replace(training.kernel, gamma=float(gamma)).on_scaled(training.scale)  # type: ignore[call-arg]
        for gamma in gammas
    ]
    for kernel in kernels:
        kernel.require_finite(training.points)
    return kernels


def search_cells(
    estimator: Any,
    task: SvmTask,
    Cs: np.ndarray,
    gammas: np.ndarray,
    folds: list[Fold],
    fold_scorer: FoldScorer,
) -> tuple[Cells, PathSearch | SpreadSearch]:
    """Solve and score the cells; `estimator` has tol, max_iter, n_jobs and verbose.

    An estimator with `drop=True` has cells left out that cannot win; its paths are not tasks.
    """
    kernels = _kernels(task, gammas)
    machines = [task.machines(fold) for fold in folds]
    rule = PathRule(Cs, float(estimator.tol), int(estimator.max_iter))
    points = task.training.points
    search: PathSearch | SpreadSearch
    drops = getattr(estimator, "drop", False)
    if len(kernels) * len(folds) > 1 and not drops and tasks_wanted(estimator):
        n_workers = workers_wanted(estimator.n_jobs)
        search = SpreadSearch(points, kernels, machines, rule, fold_scorer, n_workers=n_workers)
        drive(search, estimator, verbose=int(estimator.verbose))
        return Cells.of_paths(Cs, gammas, search.paths, fold_scorer), search
    n_threads = resolve_n_jobs(estimator.n_jobs, unset="all")
    next_legs = None
    if drops:
        next_legs = CellRace(
            fold_scorer,
            keeps_standard_error=estimator.refit == "1se",
            splits_paths=len(machines[0]) == 1,
        ).next_legs
    with single_threaded_blas():
        series = GramSeries(
            kernels, points, n_loans=len(folds), n_threads=n_threads, holds_all=drops
        )
        search = PathSearch(
            series, len(kernels), machines, rule, fold_scorer,
            n_threads=n_threads, next_legs=next_legs,
        )  # fmt: skip
        drive(search, estimator, verbose=int(estimator.verbose))
    return Cells.of_paths(Cs, gammas, search.paths, fold_scorer), search


# -- paths as tasks of worker processes --


@dataclass(frozen=True)
class _Shared:
    """The data of all tasks; `fold_scorer` has no scores yet."""

    points: Points
    kernels: Sequence[Kernel]
    folds: Sequence[Sequence[FoldMachine | None]]
    rule: PathRule
    fold_scorer: FoldScorer


@dataclass(frozen=True)
class _ScoredFold:
    """The paths of all machines of a fold and a kernel, their scores (n_C,) and judging time."""

    paths: list[MachinePath | None]
    scores: np.ndarray
    seconds: float


class SpreadSearch:
    """`PathSearch` with the paths followed by worker processes."""

    unit = "path"

    def __init__(
        self,
        points: Points,
        kernels: Sequence[Kernel],
        folds: Sequence[Sequence[FoldMachine | None]],
        rule: PathRule,
        fold_scorer: FoldScorer,
        *,
        n_workers: int,
    ) -> None:
        self._shared = _Shared(points, kernels, folds, rule, fold_scorer.without_scores())
        self._fold_scorer = fold_scorer
        self._n_workers = n_workers
        self._calls = _calls(len(kernels), len(folds), n_workers)
        self._n_done = 0
        self._results: Iterator[list[_ScoredFold]] | None = None
        self.paths: list[list[list[MachinePath | None]]] = [
            [[None] * len(machines) for machines in folds] for _ in kernels
        ]
        n_machines = sum(machine is not None for fold in folds for machine in fold)
        self.total: int | None = len(kernels) * n_machines
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
        if self._results is None:
            self._results = spread(_follow_paths, self._shared, self._calls, self._n_workers)
        kernel, folds = self._calls[self._n_done]
        for fold, scored in zip(folds, next(self._results), strict=True):
            self._take(kernel, fold, scored)
        self._n_done += 1
        return work

    def _take(self, kernel: int, fold: int, scored: _ScoredFold) -> None:
        for machine, path in zip(self._shared.folds[fold], scored.paths, strict=True):
            if path is not None and machine is not None:
                path.machine = machine
                self.rounds += 1
        self.paths[kernel][fold] = scored.paths
        self._fold_scorer.scores[:, kernel, fold] = scored.scores
        self._fold_scorer.seconds[kernel, fold] = scored.seconds


def _calls(n_kernels: int, n_folds: int, n_workers: int) -> list[tuple[int, tuple[int, ...]]]:
    """The kernel and the folds of each task."""
    all_folds = tuple(range(n_folds))
    if n_kernels >= _KERNELS_PER_WORKER * n_workers:
        return [(kernel, all_folds) for kernel in range(n_kernels)]
    return [(kernel, (fold,)) for kernel in range(n_kernels) for fold in all_folds]


def _follow_paths(shared: _Shared, kernel: int, folds: tuple[int, ...]) -> list[_ScoredFold]:
    """Follow the paths of one kernel in some folds, in a worker process."""
    fold_scorer = (
        shared.fold_scorer.without_scores()
    )  # tasks that run in one process share `shared`

    def score_fold(_: int, place: int, K: np.ndarray, paths: FoldPaths, part: slice) -> None:
        fold_scorer(kernel, folds[place], K, paths, part)

    machines = [shared.folds[fold] for fold in folds]
    with single_threaded_blas():
        series = GramSeries(
            [shared.kernels[kernel]], shared.points, n_loans=len(folds), n_threads=1
        )
        search = PathSearch(series, 1, machines, shared.rule, score_fold, n_threads=1)
        while not search.finished:
            search.advance(0.0)
    found = []
    for fold, paths in zip(folds, search.paths[0], strict=True):
        for path in paths:
            if path is not None:
                path.machine = cast(Any, None)  # not sent back: the receiver has it
        seconds = float(fold_scorer.seconds[kernel, fold])
        found.append(_ScoredFold(paths, fold_scorer.scores[:, kernel, fold].copy(), seconds))
    return found
