"""Losses of predictions, by row and over all pairs of a target and a prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import is_classifier

__all__ = ["Loss", "RowLoss", "loss_of", "no_information_error", "row_losses"]

Loss = Callable[[Any, Any], Any]

_MOST_PAIRS = 2**25  # of targets and predictions for which a callable loss is evaluated
_PAIRS_AT_ONCE = 2**18


class RowLoss(NamedTuple):
    """Losses by row; `over_pairs` computes the mean over all pairs, if there is a formula."""

    by_row: Loss
    over_pairs: Callable[[np.ndarray, np.ndarray], float] | None = None


def _misclassified(y_true: np.ndarray, y_pred: np.ndarray) -> np.ndarray:
    return np.asarray(y_true != y_pred, dtype=np.float64)


def _misclassified_pairs(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """1 - sum over classes of (share among targets) * (share among predictions)."""
    _, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    n_classes = int(codes.max()) + 1
    targets = np.bincount(codes[: len(y_true)], minlength=n_classes)
    predictions = np.bincount(codes[len(y_true) :], minlength=n_classes)
    return 1.0 - float(targets @ predictions) / (len(y_true) * len(y_pred))


def _squared(y_true: np.ndarray, y_pred: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # `row_losses` raises an error for infinite losses
        squares = (np.asarray(y_true, np.float64) - np.asarray(y_pred, np.float64)) ** 2
    return squares if squares.ndim == 1 else squares.mean(axis=1)


def _squared_pairs(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    offset = y_true.mean(axis=0) - y_pred.mean(axis=0)
    return float(np.mean(y_true.var(axis=0) + y_pred.var(axis=0) + offset**2))


def loss_of(estimator: Any, scoring: Literal["error"] | Loss | None) -> RowLoss:
    """The loss given by `scoring`: a callable, or the usual loss of this kind of estimator."""
    if callable(scoring):
        return RowLoss(scoring)
    if is_classifier(estimator):
        return RowLoss(_misclassified, _misclassified_pairs)
    return RowLoss(_squared, _squared_pairs)


def row_losses(loss: RowLoss, target: np.ndarray, prediction: np.ndarray, what: str) -> np.ndarray:
    """A finite loss for each row, float64 (n,); `what` names the rows in errors."""
    losses = np.asarray(loss.by_row(target, prediction))
    if losses.shape != (len(target),) or losses.dtype.kind not in "biuf":
        raise ValueError(
            f"scoring must return a number for each row, for {what} of shape ({len(target)},). Got "
            f"shape {losses.shape} of {losses.dtype} instead. It must not average over rows."
        )
    if not np.isfinite(losses).all():
        raise ValueError(
            f"The loss of {np.count_nonzero(~np.isfinite(losses))} of {what} is NaN or infinite. "
            "Check the predictions of the estimator, and that scoring can handle them."
        )
    return losses.astype(np.float64, copy=False)


def no_information_error(loss: RowLoss, target: np.ndarray, prediction: np.ndarray) -> float:
    """gamma: the mean loss of all targets with all predictions."""
    if loss.over_pairs is not None:
        return loss.over_pairs(target, prediction)
    n_rows = len(target)
    chosen = prediction if prediction.ndim > 1 else np.sort(prediction)
    most = max(1, _MOST_PAIRS // n_rows)
    if n_rows > most:
        chosen = chosen[((np.arange(most) + 0.5) * n_rows / most).astype(np.int64)]
    total = 0.0
    at_once = max(1, _PAIRS_AT_ONCE // n_rows)
    for first in range(0, len(chosen), at_once):
        batch = chosen[first : first + at_once]
        targets = np.concatenate([target] * len(batch))
        losses = row_losses(loss, targets, np.repeat(batch, n_rows, axis=0), "pairs of rows")
        total += float(losses.sum())
    return total / (n_rows * len(chosen))
