"""Machines over C by warm starts, fold by fold: for those that have no path of their own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._slices import SLICE_SECONDS, unwatched
from margrove._threads import run_tiles
from margrove.tune.cells import Cells
from margrove.tune.folds import Fold

__all__ = ["WarmPaths"]


class WarmPaths:
    """The path of every fold of a linear machine; see `_slices.Process`. A round is a machine."""

    unit = "machine"

    def __init__(
        self,
        machine: Any,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray,
        folds: list[Fold],
        Cs: np.ndarray,
        scorer: Any,
        n_threads: int,
    ) -> None:
        self._X, self._y, self._weight = X, y, weight
        self._folds = folds
        self._Cs = Cs
        self._models = [clone(machine).set_params(warm_start=True, n_jobs=1) for _ in folds]
        self._scorer = scorer
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
        """Let every thread go on with some folds for one slice, by at least one machine each."""
        behind = [k for k, done in enumerate(self._done) if done < len(self._Cs)]
        at_hand = behind[: self._n_threads]
        deadline = time.monotonic() + SLICE_SECONDS

        def follow(place: int) -> None:
            with unwatched():
                fold = at_hand[place]
                while self._done[fold] < len(self._Cs):
                    self._next(fold)
                    if time.monotonic() > deadline:
                        return

        run_tiles(follow, len(at_hand), self._n_threads)
        return work

    def _next(self, fold: int) -> None:
        """Fit and judge one machine more of a fold."""
        c, model = self._done[fold], self._models[fold]
        train, test = self._folds[fold].train, self._folds[fold].test
        start = time.perf_counter()
        model.set_params(C=float(self._Cs[c])).fit(
            self._X[train], self._y[train], self._weight[train]
        )
        fitted = time.perf_counter()
        weight = self._weight[test]
        given = {} if np.all(weight == weight[0]) else {"sample_weight": weight}
        self._scores[c, 0, fold] = self._scorer(model, self._X[test], self._y[test], **given)
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
