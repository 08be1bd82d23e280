"""Losses made of a user's functions.

The functions and the loops around them are compiled once in a process; equal losses share them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import compiled_for_user, run_tiles
from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss, bounded, times_weights
from margrove.ensemble.gradient.losses.two_classes import TwoClassLoss, both_probabilities

__all__ = ["CustomLoss", "CustomTwoClassLoss"]

_FARTHEST = 2.0**60  # limit of the search for the start score


@dataclass(frozen=True)
class CustomLoss(GradientLoss):
    """A loss by functions of (y, raw), see `register_gradient_loss`; the last ones are optional."""

    name: str
    value_at: Callable[[float, float], float]
    gradient_at: Callable[[float, float], float]
    hessian_at: Callable[[float, float], float]
    prediction_at: Callable[[float], float] | None = None
    start_of: Callable[[np.ndarray, np.ndarray], float] | None = None
    leaf_value_of: Callable[[np.ndarray, np.ndarray], float] | None = None
    summary: str = ""

    def __post_init__(self) -> None:
        needed = (
            ("value", self.value_at),
            ("gradient", self.gradient_at),
            ("hessian", self.hessian_at),
        )
        optional = (
            ("link_inverse", self.prediction_at),
            ("start", self.start_of),
            ("leaf_value", self.leaf_value_of),
        )
        for what, given in (*needed, *(pair for pair in optional if pair[1] is not None)):
            if not callable(given):
                raise TypeError(f"{what} must be callable. Got {given!r} instead.")

    def require_numbers(self) -> None:
        """Raise if the functions cannot be compiled or do not return numbers."""
        functions: list[tuple[str, Any, tuple[float, ...]]] = [
            ("value", self.value_at, (1.0, 0.5)),
            ("gradient", self.gradient_at, (1.0, 0.5)),
            ("hessian", self.hessian_at, (1.0, 0.5)),
        ]
        if self.prediction_at is not None:
            functions.append(("link_inverse", self.prediction_at, (0.5,)))
        for what, function, given in functions:
            try:
                float(_compiled(function)(*given))
            except ArithmeticError:
                continue  # it may be defined for other numbers
            except Exception as error:
                reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
                raise TypeError(
                    f"{what} of loss={self.name!r} must take {len(given)} numbers and return one, "
                    f"and be a function that Numba can compile. Got: {reason[0]}"
                ) from error

    @property
    def differs_from_mean(self) -> bool:
        return self.leaf_value_of is not None

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if self.start_of is None:
            return np.array([self._best_constant(y, weight)])
        score = float(self.start_of(read_only(y), read_only(_weight_or_ones(weight, len(y)))))
        if not math.isfinite(score):
            raise ValueError(
                f"start of loss={self.name!r} returned {score!r}. It must return a finite number."
            )
        return np.array([score])

    def leaf_value(self, residuals: np.ndarray, weights: np.ndarray | None) -> float:
        if self.leaf_value_of is None:
            raise NotImplementedError
        return float(self.leaf_value_of(residuals, _weight_or_ones(weights, len(residuals))))

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        if self.prediction_at is None:
            return super().link_inverse(raw)
        predictions = np.empty(raw.shape[1])
        _predictions_by(self.prediction_at)(read_only(raw), predictions)
        return predictions

    def write_rows(
        self, n_shares, n_threads, first, step, y, raw, weight, gradient, hessian, losses
    ) -> None:
        def write(share: int) -> None:
            start = first + share * step
            end = min(start + step, len(y))
            if gradient.size:
                self._write_derivatives(y, raw, gradient, hessian, start, end)
                times_weights(weight[start:end], gradient, hessian, start, end)
            if len(losses):
                self._write_losses(y, raw, start, end, losses[start:end])

        run_tiles(write, n_shares, n_threads)

    def _write_losses(self, y, raw, start, end, losses) -> None:
        row = _losses_by(self.value_at)(y, raw, start, end, losses)
        if row >= 0:
            raise ValueError(
                f"The value of loss={self.name!r} is NaN for y={y[row]!r} and raw={raw[0, row]!r}. "
                "It must return a number for every y and raw."
            )

    def _write_derivatives(self, y, raw, gradient, hessian, start, end) -> None:
        row = self._derivatives(y, raw, gradient, hessian, start, end)
        if row >= 0:
            raise ValueError(
                f"For y={y[row]!r} and raw={raw[0, row]!r}, loss={self.name!r} has the gradient "
                f"{gradient[0, row]!r} and the hessian {hessian[0, row]!r}. The gradient must be "
                "a number, and the hessian a number >= 0; it may be an upper bound of the true one."
            )

    def _derivatives(self, y, raw, gradient, hessian, start, end) -> int:
        loop = _derivatives_by(self.gradient_at, self.hessian_at)
        return int(loop(y, raw, gradient, hessian, start, end))

    def _best_constant(self, y: np.ndarray, weight: np.ndarray | None) -> float:
        """The score at which the sum of the gradients is 0; 0 if there is none."""
        from scipy.optimize import brentq

        raw, gradient, hessian = (np.empty((1, len(y))) for _ in range(3))

        def slope(score: float) -> float:
            raw[:] = score
            row = self._derivatives(read_only(y), read_only(raw), gradient, hessian, 0, len(y))
            if row >= 0:
                return math.nan
            return math.fsum((gradient[0] if weight is None else gradient[0] * weight).tolist())

        at_zero = slope(0.0)
        if at_zero == 0.0:
            return 0.0
        near, far = 0.0, -math.copysign(1.0, at_zero)
        while at_zero * (at_far := slope(far)) > 0.0 and abs(far) < _FARTHEST:
            near, far = far, 2.0 * far
        if not at_zero * at_far < 0.0:
            return far if at_far == 0.0 else 0.0
        return float(brentq(slope, near, far, xtol=1e-14, rtol=1e-14))


@dataclass(frozen=True)
class CustomTwoClassLoss(CustomLoss, TwoClassLoss):
    """A custom loss for targets 0 and 1; predictions are probabilities of the second class."""

    def link_inverse(self, raw: np.ndarray) -> np.ndarray:
        if self.prediction_at is None:
            return both_probabilities(raw[0])
        second = super().link_inverse(raw)
        return np.stack([1.0 - second, second], axis=1)


@functools.lru_cache(maxsize=256)
def _compiled(function: Callable[..., Any]) -> Any:
    return compiled_for_user(function)


def _weight_or_ones(weight: np.ndarray | None, n_rows: int) -> np.ndarray:
    return np.ones(n_rows) if weight is None else weight


@functools.lru_cache(maxsize=64)
def _losses_by(value: Callable[[float, float], float]) -> Any:
    """A compiled loop that writes losses and returns the first row with NaN, or -1."""
    value_at = compiled_for_user(value)

    @compiled_for_user
    def losses_by(y, raw, start, end, losses):
        for i in range(start, end):
            losses[i - start] = value_at(y[i], raw[0, i])
            if math.isnan(losses[i - start]):
                return i
        return -1

    return losses_by


@functools.lru_cache(maxsize=64)
def _derivatives_by(
    gradient: Callable[[float, float], float], hessian: Callable[[float, float], float]
) -> Any:
    """A compiled loop that writes derivatives and returns the first invalid row, or -1."""
    gradient_at, hessian_at = compiled_for_user(gradient), compiled_for_user(hessian)

    @compiled_for_user
    def derivatives_by(y, raw, first, second, start, end):
        for i in range(start, end):
            first[0, i] = gradient_at(y[i], raw[0, i])
            second[0, i] = hessian_at(y[i], raw[0, i])
            if math.isnan(first[0, i]) or not second[0, i] >= 0.0:
                return i
            first[0, i], second[0, i] = bounded(first[0, i]), bounded(second[0, i])
        return -1

    return derivatives_by


@functools.lru_cache(maxsize=64)
def _predictions_by(link_inverse: Callable[[float], float]) -> Any:
    prediction_at = compiled_for_user(link_inverse)

    @compiled_for_user
    def predictions_by(raw, predictions):
        for i in range(len(predictions)):
            predictions[i] = prediction_at(raw[0, i])

    return predictions_by
