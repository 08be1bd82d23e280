"""Linear machines of ascending C by warm starts, fold by fold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._runtime import (
    SLICE_SECONDS,
    run_tiles,
    single_threaded_blas,
    spread,
    tasks_wanted,
    unwatched,
    workers_wanted,
)
from margrove.select.held_out import Fold
from margrove.select.machines.grid_cells import Cells

__all__ = ["LinearGrid", "SpreadWarmPaths", "WarmPaths", "warm_paths"]


@dataclass(frozen=True)
class LinearGrid:
    """A linear machine, the values of C, and the rows, folds and scorer that compare them."""

    machine: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray
    folds: list[Fold]
    Cs: np.ndarray
    scorer: Any


def warm_paths(grid: LinearGrid, estimator: Any, n_threads: int) -> WarmPaths:
    """The paths of all folds, in worker processes if the settings of the estimator ask for it."""
    if len(grid.folds) > 1 and tasks_wanted(estimator):
        return SpreadWarmPaths(grid, workers_wanted(estimator.n_jobs))
    return WarmPaths(grid, n_threads)


class WarmPaths:
    """The path of every fold of a linear machine; see `slices.Process`. A round is a machine."""

    unit = "machine"

    def __init__(self, grid: LinearGrid, n_threads: int) -> None:
        machine, folds, Cs = grid.machine, grid.folds, grid.Cs
        self._grid = grid
        self._folds, self._Cs = folds, Cs
        self._models = [clone(machine).set_params(warm_start=True, n_jobs=1) for _ in folds]
        self._n_threads = n_threads
        shape = (len(Cs), 1, len(folds))
        self._scores = np.full(shape, np.nan)
        self._gaps, self._n_iter = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        self._fit_seconds, self._score_seconds = np.zeros(shape), np.zeros(shape)
        self._done = [0] * len(folds)
        self.total: int | None = len(folds) * len(Cs)

    @property
    def rounds(self) -> int:
        return sum(self._done)

    @property
    def finished(self) -> bool:
        return self.rounds == self.total

    def figures(self) -> dict[str, float]:
        return {}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Let every thread fit machines of a fold for one slice, at least one machine each."""
        unfinished = [k for k, done in enumerate(self._done) if done < len(self._Cs)]
        folds = unfinished[: self._n_threads]
        deadline = time.monotonic() + SLICE_SECONDS

        def follow(place: int) -> None:
            with unwatched():
                fold = folds[place]
                while self._done[fold] < len(self._Cs):
                    self._next(fold)
                    if time.monotonic() > deadline:
                        return

        run_tiles(follow, len(folds), self._n_threads)
        return work

    def _next(self, fold: int) -> None:
        """Fit and score the next machine of a fold."""
        c, model = self._done[fold], self._models[fold]
        X, y, all_weights = self._grid.X, self._grid.y, self._grid.weight
        train, test = self._folds[fold].train, self._folds[fold].test
        start = time.perf_counter()
        model.set_params(C=float(self._Cs[c])).fit(X[train], y[train], all_weights[train])
        fitted = time.perf_counter()
        weight = all_weights[test]
        given = {} if np.all(weight == weight[0]) else {"sample_weight": weight}
        self._scores[c, 0, fold] = self._grid.scorer(model, X[test], y[test], **given)
        found = model._record.result
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(found.primal > 0, found.gap / found.primal, 0.0)
        self._gaps[c, 0, fold] = relative.max()
        self._n_iter[c, 0, fold] = int(np.max(model.n_iter_))
        self._fit_seconds[c, 0, fold] = fitted - start
        self._score_seconds[c, 0, fold] = time.perf_counter() - fitted
        self._done[fold] += 1

    def cells(self) -> Cells:
        proofs = {"relative_gap": self._gaps.max(axis=2), "n_iter": self._n_iter.sum(axis=2)}
        return Cells(
            self._Cs,
            np.array([np.nan]),
            self._scores,
            self._fit_seconds,
            self._score_seconds,
            proofs,
        )


class SpreadWarmPaths(WarmPaths):
    """`WarmPaths` with one task of a worker process for each fold."""

    def __init__(self, grid: LinearGrid, n_workers: int) -> None:
        super().__init__(grid, 1)
        self._n_workers = n_workers
        self._results: Iterator[dict[str, np.ndarray]] | None = None

    def advance(self, work: float) -> float:
        """Wait for the next fold to be done."""
        if self._results is None:
            calls = [(fold,) for fold in range(len(self._folds))]
            self._results = spread(_fold_path, self._grid, calls, self._n_workers)
        fold = self._done.index(0)
        for name, values in next(self._results).items():
            getattr(self, name)[:, :, fold] = values
        self._done[fold] = len(self._Cs)
        return work


_FOLD_FIGURES = ("_scores", "_gaps", "_n_iter", "_fit_seconds", "_score_seconds")


def _fold_path(grid: LinearGrid, fold: int) -> dict[str, np.ndarray]:
    """The figures of one fold, each of shape (n_C, 1), computed in a worker process."""
    with single_threaded_blas():
        paths = WarmPaths(replace(grid, folds=[grid.folds[fold]]), 1)
        while not paths.finished:
            paths.advance(0.0)
    return {name: getattr(paths, name)[:, :, 0] for name in _FOLD_FIGURES}
