"""Epochs of perceptrons: the order in which rows are presented, and early stopping."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel

__all__ = ["EarlyStopping", "Visits", "end_epoch", "shuffle"]


class Visits(NamedTuple):
    """The m rows of an epoch, in the order of presentation.

    rows, codes     int64 (m,) the number of each row in X, and its class
    weight, norms   float64 (m,) weights and squared norms
    """

    rows: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    norms: np.ndarray

    def permuted(self, order: np.ndarray) -> Visits:
        return Visits(self.rows[order], self.codes[order], self.weight[order], self.norms[order])

    @classmethod
    def empty(cls, m: int) -> Visits:
        return cls(np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m), np.empty(m))


@kernel(bare=True)
def shuffle(order, seed, epoch):
    """order <- a permutation that depends on (seed, epoch) only: Fisher-Yates with splitmix64."""
    state = (seed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + epoch * np.uint64(
        0xD1B54A32D192ED03
    )
    for i in range(len(order)):
        order[i] = i
    for i in range(len(order) - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        high = (z ^ (z >> np.uint64(31))) >> np.uint64(32)
        j = np.int64((high * np.uint64(i + 1)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]


class EarlyStopping:
    """Stops each of K problems once its loss has not improved by `tol` for `patience` epochs.

    converged    bool (K,)
    n_iter       int64 (K,) epochs that each problem ran
    best         float64 (K,) the least loss so far
    bad_epochs   int64 (K,) epochs since the last improvement
    """

    def __init__(self, n_problems: int, tol: float | None, patience: int) -> None:
        self.tol = np.nan if tol is None else float(tol)
        self.patience = patience
        self.best = np.full(n_problems, np.inf)
        self.bad_epochs = np.zeros(n_problems, dtype=np.int64)
        self.converged = np.zeros(n_problems, dtype=bool)
        self.n_iter = np.zeros(n_problems, dtype=np.int64)

    def of_problems(self, some: slice) -> tuple[np.ndarray, ...]:
        """The arrays that `end_epoch` changes, for some of the problems."""
        arrays = self.best, self.bad_epochs, self.converged, self.n_iter
        return tuple(array[some] for array in arrays)

    def end_epoch(
        self, epoch: int, current: np.ndarray, settled: np.ndarray, some: slice = slice(None)
    ) -> None:
        """Record the loss (K,) of an epoch, and which problems cannot change any more."""
        end_epoch(epoch, current, settled, self.tol, self.patience, *self.of_problems(some))


@kernel(bare=True)
def end_epoch(epoch, current, settled, tol, patience, best, bad_epochs, converged, n_iter):
    """See `EarlyStopping.end_epoch`; tol is NaN if the loss does not matter."""
    for k in range(len(converged)):
        is_running = not converged[k]
        improved = current[k] <= best[k] - tol
        if is_running:
            n_iter[k] = epoch
            bad_epochs[k] = 0 if improved or np.isnan(tol) else bad_epochs[k] + 1
            converged[k] = settled[k] or bad_epochs[k] >= patience
        if not np.isnan(tol):
            best[k] = min(best[k], current[k])
