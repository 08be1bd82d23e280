"""What a loss of gradient boosting is: values and derivatives in the raw scores, row by row.

Targets are float64 (n,), of classes their numbers 0, 1, ...; raw scores and derivatives are
C-contiguous float64 (n_scores, n). Definitions are those of scikit-learn's losses: halves where
it has halves, without the terms that no score changes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._jit import kernel
from margrove.exceptions import InvalidDataError

__all__ = ["LARGEST_EXPONENT", "GradientLoss", "bounded", "bounded_exp",
           "require_open_interval", "unbounded_exp"]  # fmt: skip

LARGEST = 1e302  # of a derivative: a million of them still have a finite sum
LARGEST_EXPONENT = 695.0  # whose exponential is just below

_LARGEST_OF_EXP = 709.7827  # beyond, the exponential is more than float64 holds
_TILE = 8192  # rows whose losses are in the cache when they are added up


class GradientLoss(ABC):
    """A loss; its parameters are fields of a frozen dataclass."""

    name: str

    @property
    def for_classes(self) -> bool:
        """Whether targets are numbers of classes."""
        return False

    @property
    def n_scores(self) -> int:
        """Raw scores a row has, which is also the number of trees of a round."""
        return 1

    @property
    def is_constant_hessian(self) -> bool:
        """Whether every second derivative is taken for 1, before weights."""
        return False

    @property
    def differs_from_mean(self) -> bool:
        """Whether a Newton step is no good, and `leaf_value` tells what a leaf is worth.

        Trees are then grown as for squared errors, with weights for second derivatives.
        """
        return False

    @staticmethod
    def of_functions(
        value: Callable[[float, float], float],
        gradient: Callable[[float, float], float],
        hessian: Callable[[float, float], float],
        *,
        link_inverse: Callable[[float], float] | None = None,
        start: Callable[[np.ndarray, np.ndarray], float] | None = None,
        leaf_value: Callable[[np.ndarray, np.ndarray], float] | None = None,
        for_classes: bool = False,
        name: str = "own",
    ) -> GradientLoss:
        """A loss of your own; see `register_gradient_loss` for what the functions are."""
        from margrove.ensemble.gradient_losses.own import OwnLoss, OwnTwoClassLoss

        kind = OwnTwoClassLoss if for_classes else OwnLoss
        return kind(name, value, gradient, hessian, link_inverse, start, leaf_value)

    def with_classes(self, n_classes: int) -> GradientLoss:
        """The loss for so many classes."""
        if self.for_classes and n_classes > 2:
            raise InvalidDataError(
                f"loss={self.name!r} is for two classes, but y has {n_classes}. "
                "Use loss='log_loss', or one classifier for each class."
            )
        return self

    def for_round(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> GradientLoss:
        """The loss of the round that begins with these scores; most never change."""
        return self

    def check_targets(self, y: Any) -> np.ndarray:
        """Targets as float64 (n,), or an error that names the first row which does not fit."""
        targets = np.ascontiguousarray(y, dtype=np.float64)
        if targets.ndim != 1:
            raise InvalidDataError(
                f"y has shape {targets.shape}, but loss={self.name!r} needs one target a row. "
                "Fit one model for each column."
            )
        self._refuse(targets, ~np.isfinite(targets), "finite numbers", "Drop these rows")
        return targets

    @abstractmethod
    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The raw scores before the first round, (n_scores,): the same for any order of rows."""

    def gradients(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        gradient: np.ndarray,
        hessian: np.ndarray,
        start: int,
        end: int,
    ) -> None:
        """Write first and second derivatives of the rows start .. end - 1, times their weights."""
        self.write_derivatives(read_only(y), read_only(raw), gradient, hessian, start, end)
        if weight is not None:
            _times_weights(read_only(weight), gradient, hessian, start, end)

    def value(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> float:
        """The weighted mean of the losses; rows of weight 0 do not count, whatever they lose."""
        total = float(len(y)) if weight is None else float(weight.sum())
        if total == 0.0:
            return 0.0
        # Divided by a power of two beforehand: the mean may be finite where the sum is not.
        mantissa, exponent = math.frexp(total)
        y, raw = read_only(y), read_only(raw)
        weight = read_only(np.empty(0) if weight is None else weight)
        losses, sums = np.empty(min(len(y), _TILE)), np.zeros(2)
        for start in range(0, len(y), _TILE):
            end = min(start + _TILE, len(y))
            self.write_losses(y, raw, start, end, losses)
            _add_up(losses, weight, start, end, 0.5**exponent, sums)
        return float((sums[0] + sums[1]) / mantissa)

    @abstractmethod
    def write_losses(
        self, y: np.ndarray, raw: np.ndarray, start: int, end: int, losses: np.ndarray
    ) -> None:
        """Write the losses of the rows start .. end - 1 from losses[0] on."""

    @abstractmethod
    def write_derivatives(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        start: int,
        end: int,
    ) -> None:
        """Write first and second derivatives of the rows start .. end - 1, without weights."""

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        """Predictions (n,), or probabilities of the classes (n, classes)."""
        return raw[0].copy()

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        """What is best added to the scores of a leaf's rows, from y - raw."""
        raise NotImplementedError

    def _refuse(self, y: np.ndarray, bad: np.ndarray, needs: str, way_out: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidDataError(
                f"y is {float(y[row])!r} in row {row} ({np.count_nonzero(bad)} such rows), but "
                f"loss={self.name!r} needs {needs}. {way_out}."
            )


def require_open_interval(name: str, given: float, low: float, high: float) -> None:
    if not low < given < high:
        raise ValueError(
            f"{name} must be between {low:g} and {high:g}, both excluded. Got {given!r} instead."
        )


@kernel
def bounded(derivative):
    return min(max(derivative, -LARGEST), LARGEST)


@kernel
def bounded_exp(exponent):
    return math.exp(min(exponent, LARGEST_EXPONENT))


@kernel
def unbounded_exp(exponent):
    """Infinity where it is too large, also without the compiler."""
    return math.exp(exponent) if exponent < _LARGEST_OF_EXP else math.inf


@kernel
def _times_weights(weight, gradient, hessian, start, end):
    for k in range(len(gradient)):
        for i in range(start, end):
            gradient[k, i] = bounded(gradient[k, i] * weight[i])
            hessian[k, i] = bounded(hessian[k, i] * weight[i])


@kernel
def _add_up(losses, weight, start, end, scale, sums):
    """Add to sums[0], and what that loses to rounding to sums[1]."""
    total, lost = sums[0], sums[1]
    for i in range(start, end):
        term = losses[i - start] * scale
        if len(weight):
            if weight[i] == 0.0:
                continue
            term *= weight[i]
        added = total + term
        if math.isfinite(added):
            part = added - total
            lost += (total - (added - part)) + (term - part)
        total = added
    sums[0], sums[1] = total, lost
