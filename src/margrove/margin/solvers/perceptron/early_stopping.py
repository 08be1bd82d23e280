"""When a learner that need not converge should stop: the same rule for all perceptrons."""

from __future__ import annotations

import numpy as np

__all__ = ["Patience"]


class Patience:
    """Stops each of K problems once its loss has not improved by `tol` for `patience` epochs.

    converged  bool (K,)
    n_iter     int64 (K,) epochs that each problem ran
    """

    def __init__(self, n_problems: int, tol: float | None, patience: int) -> None:
        self._tol = tol
        self._patience = patience
        self._best = np.full(n_problems, np.inf)
        self._bad_epochs = np.zeros(n_problems, dtype=np.int64)
        self.converged = np.zeros(n_problems, dtype=bool)
        self.n_iter = np.zeros(n_problems, dtype=np.int64)

    def end_epoch(self, epoch: int, current: np.ndarray, settled: np.ndarray) -> None:
        """Note the loss (K,) of an epoch, and which problems can never change again."""
        running = ~self.converged
        self.n_iter[running] = epoch
        self.converged |= running & settled
        if self._tol is None:
            return
        improved = current <= self._best - self._tol
        self._bad_epochs[running & ~improved] += 1
        self._bad_epochs[running & improved] = 0
        self._best = np.minimum(self._best, current)
        self.converged |= running & (self._bad_epochs >= self._patience)
