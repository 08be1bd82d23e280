"""Newton steps of one machine: what needs no rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from margrove._runtime import kernel
from margrove.margin.solvers.linear.newton.line_search import Line
from margrove.margin.solvers.linear.newton.row_passes import (
    LINEAR,
    LOSS,
    MASSES,
    N_CURVED,
    N_SUMS,
    QUADRATIC,
    SMOOTHING,
)
from margrove.margin.solvers.linear.result import EpochPoint

_MASSES = slice(MASSES, MASSES + 4)
_ROUNDING = 1e-16

__all__ = [
    "NEWTON",
    "NewtonMachine",
    "NewtonRule",
    "make_system",
    "offered_dual",
    "set_gradient",
    "solved",
    "spread_of",
]


class NewtonRule(NamedTuple):
    """The constants of the method.

    shrink       factor on the smoothing width, when the smoothed problem is solved
    solved       it is solved when this share of the gap is due to the smoothing
    least_width  the smallest smoothing width, as a share of the residuals
    patience     the maximum number of steps without progress
    """

    shrink: float = 0.3
    solved: float = 0.5
    least_width: float = 1e-9
    patience: int = 25


NEWTON = NewtonRule()


@dataclass
class NewtonMachine:
    """The point of a machine and its best objectives.

    price          the penalty of the intercept: 0 for a free one, inf for none
    reach, width   the size of the residuals, and the width of the smoothing
    sums           of the rows at this point; see `row_passes`
    signed         (d, parts)  X' of each part of the dual variables
    slot           the place of the dual variables of the rows at this point
    centre_slot    of the centre of the smoothing
    best_slot      of the best dual variables; these times `factors`, by part, are feasible
    """

    number: int
    w: np.ndarray
    price: float
    reach: float
    width: float
    tol: float
    b: float = 0.0
    rounds: int = 0
    idle: int = 0
    is_stuck: bool = False
    primal: float = np.inf
    dual: float = -np.inf
    slot: int = 0
    centre_slot: int = 0
    best_slot: int = 0
    slope: float = 0.0
    bias_step: float = 0.0
    factors: np.ndarray = field(default_factory=lambda: np.ones(4))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(N_SUMS))
    trace: list[EpochPoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.has_bias = bool(np.isfinite(self.price))
        self.is_free = self.price == 0.0
        self.price = self.price if self.has_bias else 0.0
        self.best: tuple[np.ndarray, float] = (self.w, self.b)
        self.signed = np.zeros((len(self.w), 2))
        self.step = np.zeros(len(self.w))
        self.is_smoothed_solved = False
        self._balance = 0.0
        self._current_gap = np.inf

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), 1e-300)

    @property
    def converged(self) -> bool:
        return self.primal - self.dual <= self.tol * abs(self.primal)

    @property
    def lacks_bias(self) -> bool:
        """Whether b is free and can be improved, but no row has curvature."""
        return self.is_free and self._balance != 0.0 and self.sums[N_CURVED] == 0.0

    # -- objectives --

    def take_slot(self, n_slots: int, *, is_smooth: bool) -> None:
        """Choose a place for the next dual variables."""
        taken = {self.best_slot} if is_smooth else {self.best_slot, self.centre_slot}
        self.slot = next(slot for slot in range(n_slots) if slot not in taken)

    def take(self, sums: np.ndarray, signed: np.ndarray) -> None:
        """Measure both objectives with the sums of the rows, signed (parts, d)."""
        self.sums, self.signed = sums, signed
        positive, negative, up, down = sums[_MASSES].tolist()
        self._balance = positive - negative + up - down
        primal = 0.5 * float(self.w @ self.w) + 0.5 * self.price * self.b**2 + float(sums[LOSS])
        if primal < self.primal:
            self.primal, self.best = primal, (self.w, self.b)
        self._current_gap = primal - self._offer_dual()
        self.trace.append(EpochPoint(self.rounds, self.primal, self.dual))

    def _offer_dual(self) -> float:
        """Make beta feasible, keep it if it is the best dual point so far, return its objective."""
        factors = np.empty(4)
        dual = float(
            offered_dual(
                self.sums, self.signed, self.is_free, self.price, self._balance, self.primal,
                self.tol, factors,
            )
        )  # fmt: skip
        if dual > self.dual:
            self.dual, self.best_slot, self.factors = dual, self.slot, factors
        return dual

    # -- steps --

    def set_direction(self, squares: np.ndarray) -> None:
        """The Newton step of w and b, and the slope along it, overwriting X'DX."""
        gradient = np.empty(len(squares))
        make_system(
            squares, gradient, self.width, self.w, self.b, self.price, self._balance, self.signed,
            self.has_bias,
        )  # fmt: skip
        self.set_step(solved(squares, -gradient), gradient)

    def gradient(self) -> np.ndarray:
        """The gradient (d + 1,), the intercept's last; 0 there without one."""
        of_bias = self.price * self.b - self._balance if self.has_bias else 0.0
        return np.append(self.w - self.signed.sum(axis=0), of_bias)

    def set_step(self, step: np.ndarray, gradient: np.ndarray) -> None:
        self.step, self.bias_step = step[:-1], float(step[-1])
        self.slope = float(gradient @ step)

    def line_of_step(self) -> Line:
        """The line along the step."""
        linear = float(self.w @ self.step) + self.price * self.b * self.bias_step
        quadratic = float(self.step @ self.step) + self.price * self.bias_step**2
        return Line(self.slope, linear, quadratic)

    def line_of_bias(self) -> Line:
        """The line of b alone: towards the sum of dual variables, as far as residuals reach."""
        self.bias_step = self.reach if self._balance > 0.0 else -self.reach
        return Line(-self._balance * self.bias_step, 0.0, 0.0)

    def move(self, length: float) -> None:
        self.w = self.w + length * self.step
        self.b += length * self.bias_step

    def go_to_best(self) -> None:
        self.w, self.b = self.best
        self.primal = np.inf

    def move_centre(self) -> None:
        self.centre_slot = self.slot
        self.width = max(self.width * NEWTON.shrink, NEWTON.least_width * self.reach)

    def end_round(self, gap_before: float) -> None:
        """Look at the progress since the gap before."""
        self.idle = 0 if self.gap < 0.98 * gap_before else self.idle + 1
        is_downhill = self.slope < 0.0
        is_smooth = self.width == 0.0
        self.is_stuck = self.idle > NEWTON.patience or (is_smooth and not is_downhill)
        solved_enough = self.sums[SMOOTHING] >= NEWTON.solved * self._current_gap
        self.is_smoothed_solved = bool(solved_enough) or not is_downhill


@kernel(bare=True)
def offered_dual(sums, signed, is_free, price, balance, primal, tol, factors):
    """Factors (4,) of the parts of beta that make it feasible, and its dual objective."""
    _scale_sides(sums, is_free, factors)
    bias_term = 0.5 * balance * balance / price if price > 0.0 else 0.0
    dual = _dual_value(factors, sums, signed) - bias_term
    if len(signed) > 2 and is_free:
        # Preferred if it is about as good, because rows at a bound stay there.
        _scale_inside(sums, factors)
        other = _dual_value(factors, sums, signed) - bias_term
        if primal - other <= max(tol * abs(primal), 2.0 * (primal - dual)):
            return other
        _scale_sides(sums, is_free, factors)
    return dual


@kernel(inner=True)
def _dual_value(factors, sums, signed):
    """The dual objective without the term of the intercept."""
    total = 0.0
    for part in range(4):
        total += factors[part] * sums[LINEAR + part]
        total -= factors[part] * factors[part] * sums[QUADRATIC + part]
    for j in range(signed.shape[1]):
        weight, size = 0.0, 0.0
        for part in range(len(signed)):
            weight += factors[part] * signed[part, j]
            size += abs(factors[part] * signed[part, j])
        # With an enormous C the parts may cancel exactly by chance: rounding counts as well.
        weight = abs(weight) + _ROUNDING * size
        total -= 0.5 * weight * weight
    return total


@kernel(inner=True)
def _scale_sides(sums, is_free, factors):
    """Factors of the parts of beta, for a sum of zero: the heavier sign is scaled down."""
    positive, negative = sums[MASSES] + sums[MASSES + 2], sums[MASSES + 1] + sums[MASSES + 3]
    up = min(1.0, negative / positive) if is_free and positive > 0.0 else 1.0
    down = min(1.0, positive / negative) if is_free and negative > 0.0 else 1.0
    factors[0], factors[1], factors[2], factors[3] = up, down, up, down


@kernel(inner=True)
def _scale_inside(sums, factors):
    """The same by scaling only dual variables between their bounds, if that is possible.

    This is `linear.balanced` for the parts of beta.
    """
    total = sums[MASSES] - sums[MASSES + 1] + sums[MASSES + 2] - sums[MASSES + 3]
    heavier = 0 if total > 0.0 else 1
    for part in range(4):
        factors[part] = 1.0
    inside = sums[MASSES + heavier]
    both = inside + sums[MASSES + heavier + 2]
    if inside >= abs(total) and inside > 0.0:
        factors[heavier] = 1.0 - abs(total) / inside
    elif both >= abs(total) and both > 0.0:
        factors[heavier] = factors[heavier + 2] = 1.0 - abs(total) / both


@kernel(bare=True)
def make_system(squares, gradient, width, w, b, price, balance, signed, has_bias):
    """The system of a Newton step in place of X'DX, and the gradient."""
    d = len(w)
    set_gradient(gradient, w, b, price, balance, signed, has_bias)
    if width > 0.0:
        for i in range(d + 1):
            for j in range(d + 1):
                squares[i, j] /= width
    for j in range(d):
        squares[j, j] += 1.0
    if has_bias:
        squares[d, d] += price
        if squares[d, d] <= 0.0:  # no row has curvature: b has a slope only
            squares[d, d] = 1.0
        return
    for j in range(d):
        squares[d, j] = squares[j, d] = 0.0
    squares[d, d] = 1.0


@kernel(inner=True)
def set_gradient(gradient, w, b, price, balance, signed, has_bias):
    """The gradient (d + 1,), the intercept's last; 0 there without one."""
    for j in range(len(w)):
        gradient[j] = w[j]
        for part in range(len(signed)):
            gradient[j] -= signed[part, j]
    gradient[len(w)] = price * b - balance if has_bias else 0.0


def spread_of(target: np.ndarray) -> float:
    """The size of the residuals of regression before the first step; 1 if there are none."""
    middle = len(target) // 2
    spread = float(np.abs(target - np.partition(target, middle)[middle]).sum()) / len(target)
    return spread if spread > 0.0 else 1.0


def solved(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a positive definite system, after scaling its diagonal to ones."""
    scale = 1.0 / np.sqrt(np.diagonal(system))
    scaled = system * scale
    scaled *= scale[:, None]
    jitter = 0.0
    while True:
        if jitter:
            scaled[np.arange(len(scale)), np.arange(len(scale))] = 1.0 + jitter
        _, solution, info = lapack.dposv(scaled, scale * right)
        if info == 0 and np.isfinite(solution).all():
            return np.asarray(scale * solution)
        if jitter > 1.0:
            return np.zeros(len(right))
        jitter = max(1e-14, 100.0 * jitter)
