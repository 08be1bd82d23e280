"""The record of the rounds of gradient boosting, and warnings about failures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove.ensemble.gradient.losses import GradientLoss
from margrove.exceptions import ConvergenceWarning, DataWarning
from margrove.grove.serve import PackedTree

__all__ = ["GradientHistory", "history_of", "progress_of", "warn_of_failure"]

_CLEARLY = 0.1  # relative increase of the loss that is worth a warning


@dataclass(frozen=True)
class GradientHistory:
    """The record of the rounds.

    training_loss      float64 (rounds + 1,)  before the first round and after each
    validation_score   float64 (rounds + 1,)  likewise with early stopping, otherwise empty; NaN for
                       earlier rounds without early stopping
    n_leaves           int64 (rounds,)  number of leaves of all trees of a round
    outcome            "finished", "stopped early", "max_time", "interrupt" or "callback"
    """

    training_loss: np.ndarray
    validation_score: np.ndarray
    n_leaves: np.ndarray
    outcome: str

    @property
    def rounds(self) -> int:
        return len(self.n_leaves)

    def in_units_of(
        self, scale: float, loss: GradientLoss, *, scores_are_losses: bool
    ) -> GradientHistory:
        """The history with losses of targets divided by `scale`."""
        if scale == 1.0:
            return self
        with np.errstate(over="ignore"):
            unit = np.float64(scale) ** -loss.degree
            scores = self.validation_score
            if scores_are_losses:
                scores = _times(scores, unit)
            losses = _times(self.training_loss, unit)
            return replace(self, training_loss=losses, validation_score=scores)


def _times(losses: np.ndarray, unit: np.float64) -> np.ndarray:
    """losses * unit, where 0 stays 0 even if the unit is infinite."""
    return np.multiply(losses, unit, out=np.zeros_like(losses), where=losses != 0.0)


def history_of(
    process: Any, rounds: list[list[PackedTree]], outcome: str, scale: float
) -> GradientHistory:
    """The history of a process whose targets were divided by `scale`."""
    scores = [] if process.monitor is None else process.monitor.scores[: len(rounds) + 1]
    unseen = len(rounds) + 1 - len(scores) if scores else 0  # rounds before there was a monitor
    by_loss = process.monitor is None or process.monitor.scores_are_losses
    return GradientHistory(
        process.all_losses(),
        np.array([np.nan] * unseen + scores),
        np.array([sum(tree.n_leaves for tree in trees) for trees in rounds], np.int64),
        outcome,
    ).in_units_of(1.0 / scale, process.loss, scores_are_losses=by_loss)


def progress_of(process: Any, n_rounds: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(losses, scores) in the units of the process, for a later warm start."""
    scores = [] if process.monitor is None else process.monitor.scores[: n_rounds + 1]
    return tuple(process.all_losses().tolist()), tuple(scores)


def warn_of_failure(
    name: str, rounds: list[list[PackedTree]], history: GradientHistory, *, stacklevel: int = 3
) -> None:
    """Warn about a model that is constant, or whose training loss has increased."""
    if rounds and all(len(tree) == 1 for trees in rounds for tree in trees):
        warnings.warn(
            f"{name} has found no split and predicts the same for every row. Lower "
            "min_samples_leaf, or check whether y varies and X is informative about y.",
            DataWarning,
            stacklevel=stacklevel,
        )
    first, last = history.training_loss[0], history.training_loss[-1]
    if np.isfinite(first) and last - first > _CLEARLY * abs(first):
        warnings.warn(
            f"The training loss of {name} has increased from {first:.6g} to {last:.6g}: steps are "
            "too long. Lower learning_rate, or raise l2_regularization or min_samples_leaf.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
