"""Newton's method for linear machines with few features.

    minimise  P(w, b) = 1/2 ||w||^2 + k/2 b^2 + sum_i loss_i(t_i - w.x_i - b)

(see `linear.problems`). Squared losses have a piecewise linear gradient, for which Newton steps
with an exact line search end after finitely many steps (Mangasarian 2002, Keerthi and DeCoste
2005). The other losses have a kink. They are replaced by

    smooth_i(r) = max_beta  beta r - e |beta| - (s / 2C_i) (beta - c_i)^2      l_i <= beta <= h_i

which is smooth over a width s around the kink, with centre c_i. Its gradient is the maximiser
beta_i, the dual variable. When the smoothed problem is solved well enough, c moves to beta and s
shrinks: this is the method of multipliers (Hestenes, Powell 1969), whose inner problems are solved
by semismooth Newton steps (Li, Sun and Toh 2018). Only rows within the smoothed range have
curvature, and towards the end these are few, so that a step costs little more than reading X twice.

After each step beta is made feasible for the dual; its objective proves how good (w, b) is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from margrove._runtime import kernel
from margrove.margin.linear import LinearProblem, LossOfRows, balanced, row_dual, row_loss
from margrove.margin.solvers.linear.normal_equations import NormalEquations, reading_order
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult

__all__ = [
    "MOST_FEATURES",
    "NEWTON",
    "NewtonProcess",
    "NewtonRule",
    "pulls_along",
    "smoothed_rows",
    "solved",
    "total_loss",
]

MOST_FEATURES = 1500  # with more, the systems take too long to factorise


class NewtonRule(NamedTuple):
    """The constants of the method, on one machine or on a cluster.

    shrink       factor on the smoothing width, when the smoothed problem is solved
    solved       it is solved when this share of the gap is due to the smoothing
    least_width  the smallest smoothing width, as a share of the residuals
    patience     the maximum number of steps without progress
    slope_left   share of the initial slope at which a line search ends
    most_trials  the maximum number of trials of a line search
    growth       the largest growth of a step from one trial to the next
    """

    shrink: float = 0.3
    solved: float = 0.5
    least_width: float = 1e-9
    patience: int = 25
    slope_left: float = 0.05
    most_trials: int = 60
    growth: float = 8.0


NEWTON = NewtonRule()


class NewtonProcess:
    """Newton steps over one machine; see `slices.Process`."""

    unit = "step"

    def __init__(
        self,
        problem: LinearProblem,
        demand: LinearDemand,
        *,
        start: LinearResult | None = None,
        n_threads: int = 1,
    ) -> None:
        self._problem = problem
        self._demand = demand
        self.total: int | None = demand.epochs
        self._order = reading_order(problem.X, problem.n_features, problem.rows)
        self._sums = NormalEquations(
            problem.X, problem.n_features, problem.rows[self._order], n_threads=n_threads
        )
        self._loss = problem.loss.in_order(self._order)
        self._has_bias = bool(np.isfinite(problem.bias_price))
        self._price = problem.bias_price if self._has_bias else 0.0
        self._w = np.zeros(problem.n_features)
        self._b = 0.0
        self._values = np.zeros(len(problem))
        self._centre = np.zeros(len(problem))
        self._reach = _width_of(self._loss)  # the size of the residuals
        self._width = 0.0 if problem.is_smooth else self._reach
        if start is not None:
            self._begin_at(start)
        self.rounds = 0
        self._idle = 0
        self._dual = -np.inf
        self._primal = np.inf
        self._best: tuple[np.ndarray, float] = (self._w, self._b)
        self._beta = np.zeros(len(problem))
        self._best_beta = self._beta
        self._trace: list[EpochPoint] = []
        self._stuck = False
        self._measure()

    def _begin_at(self, start: LinearResult) -> None:
        """Start at the solution of a similar problem, with a small smoothing width."""
        self._w = start.coef[0]
        self._b = float(start.intercept[0]) if self._has_bias else 0.0
        self._values = self._sums.products(self._w) + self._b
        self._centre = np.clip(start.beta[self._order, 0], self._loss.low, self._loss.high)
        self._width *= NEWTON.shrink

    @property
    def converged(self) -> bool:
        return self._primal - self._dual <= self._demand.tol * abs(self._primal)

    @property
    def finished(self) -> bool:
        return self.converged or self._stuck or self.rounds >= self._demand.epochs

    def figures(self) -> dict[str, float]:
        return {"relative gap": self._gap() / max(abs(self._primal), 1e-300)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One Newton step."""
        step, bias_step, slope = self._direction()
        if slope < 0.0:
            moves = self._sums.products(step)
            if self._has_bias:
                moves += bias_step
            length = self._line_search(step, bias_step, moves, slope)
            self._w = self._w + length * step
            self._b = self._b + length * bias_step
            self._values = self._values + length * moves
        if self._has_bias and self._price == 0.0:
            self._settle_bias()
        self.rounds += 1
        before = self._gap()
        self._measure()
        if self.converged:
            self._measure_afresh()
        progress = self._gap() < 0.98 * before
        self._idle = 0 if progress else self._idle + 1
        self._stuck = self._idle > NEWTON.patience
        if not self._problem.is_smooth:
            if self._smoothing_gap >= NEWTON.solved * self._current_gap or not slope < 0.0:
                self._move_centre()
        elif not slope < 0.0:
            self._stuck = True
        return float(len(self._sums)) * self._problem.n_features

    def result(self) -> LinearResult:
        w, b = self._best
        values = self._sums.products(w) + b
        beta = np.empty(len(self._order))
        beta[self._order] = self._best_beta
        return LinearResult(
            coef=w[None].copy(),
            intercept=np.array([b]),
            primal=np.array([self._primal]),
            dual=np.array([self._dual]),
            violation=np.array([_violation(*self._loss, self._best_beta, values)]),
            beta=beta[:, None],
            epochs=self.rounds,
            converged=np.array([self.converged]),
            trace=list(self._trace),
        )

    # -- a step --

    def _measure(self) -> None:
        """Sets: _beta, _curved, _signed (X' of beta's two signs), and both objectives."""
        m = len(self._sums)
        self._beta = np.empty(m)
        self._curved = np.empty(m)
        signed = np.empty((m, 2))
        sums = np.zeros(8)
        smoothed_rows(
            *self._loss, self._values, self._centre, self._width, self._beta, self._curved, signed,
            sums,
        )  # fmt: skip
        self._signed = self._sums.combinations(signed)
        self._balance = float(sums[1] - sums[2])
        primal = 0.5 * float(self._w @ self._w) + 0.5 * self._price * self._b**2 + float(sums[0])
        if primal < self._primal:
            self._primal, self._best = primal, (self._w, self._b)
        self._current_gap = primal - self._offer_dual(sums)
        self._smoothing_gap = float(sums[7])
        self._trace.append(EpochPoint(self.rounds, self._primal, self._dual))

    def _measure_afresh(self) -> None:
        """Go to the best point and measure it without the accumulated rounding of the steps."""
        self._w, self._b = self._best
        self._values = self._sums.products(self._w) + self._b
        self._primal = np.inf
        self._measure()

    def _offer_dual(self, sums: np.ndarray) -> float:
        """Make beta feasible, keep it if it is the best dual point so far, return its objective."""
        positive, negative = float(sums[1]), float(sums[2])
        up = down = 1.0
        bias_term = 0.0
        if self._has_bias and self._price == 0.0:
            up = min(1.0, negative / positive) if positive > 0.0 else 1.0
            down = min(1.0, positive / negative) if negative > 0.0 else 1.0
        elif self._has_bias:
            bias_term = 0.5 * self._balance**2 / self._price
        w = up * self._signed[:, 0] + down * self._signed[:, 1]
        linear = up * sums[3] + down * sums[4]
        quadratic = up**2 * sums[5] + down**2 * sums[6]
        dual = float(linear - quadratic - 0.5 * (w @ w) - bias_term)
        beta = self._beta
        if up != down:
            beta = np.where(self._beta > 0.0, up * self._beta, down * self._beta)
            # Preferred if it is about as good, because rows at a bound stay there.
            other = balanced(self._beta, self._loss.low, self._loss.high)
            other_dual = self._dual_of(other)
            good_enough = max(self._demand.tol * abs(self._primal), 2.0 * (self._primal - dual))
            if self._primal - other_dual <= good_enough:
                dual, beta = other_dual, other
        if dual > self._dual:
            self._dual, self._best_beta = dual, beta
        return dual

    def _dual_of(self, beta: np.ndarray) -> float:
        """The dual objective of a beta with sum zero."""
        target, _, _, damping, tube = self._loss
        w = self._sums.combinations(beta[:, None])[:, 0]
        linear = target @ beta - tube * np.abs(beta).sum()
        return float(linear - 0.5 * (damping @ beta**2) - 0.5 * (w @ w))

    def _gap(self) -> float:
        return max(self._primal - self._dual, 0.0)

    def _direction(self) -> tuple[np.ndarray, float, float]:
        """The Newton step of w and b, and the slope along it."""
        d = len(self._w)
        system = np.empty((d + 1, d + 1))
        system[:d, :d] = self._sums.curvature(self._curved)
        system[np.arange(d), np.arange(d)] += 1.0
        gradient = np.empty(d + 1)
        gradient[:d] = self._w - self._signed.sum(axis=1)
        if self._has_bias:
            system[d, :d] = self._sums.combinations(self._curved[:, None])[:, 0]
            system[:d, d] = system[d, :d]
            system[d, d] = self._price + self._curved.sum()
            gradient[d] = self._price * self._b - self._balance
            if system[d, d] == 0.0:  # no row has curvature: b has a slope only
                system[d, d] = 1.0
        else:
            system[d], system[:, d], system[d, d], gradient[d] = 0.0, 0.0, 1.0, 0.0
        step = solved(system, -gradient)
        return step[:d], float(step[d]), float(gradient @ step)

    def _line_search(
        self, step: np.ndarray, bias_step: float, moves: np.ndarray, slope: float
    ) -> float:
        """The step length at which the slope (rising, piecewise linear) is nearly zero."""
        linear = float(self._w @ step) if len(step) else 0.0
        linear += self._price * self._b * bias_step
        quadratic = float(step @ step) + self._price * bias_step**2
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(NEWTON.most_trials):
            pulls = pulls_along(*self._loss, self._values, moves, length, self._centre, self._width)
            at_length = linear + length * quadratic - pulls[0]
            if abs(at_length) <= -NEWTON.slope_left * slope:
                break
            if at_length < 0.0:
                low = length
            else:
                high = length
            curvature = quadratic + pulls[1]
            guess = length - at_length / curvature if curvature > 0.0 else np.inf
            if np.isinf(high):
                guess = min(guess, NEWTON.growth * length)
            if not low < guess < high:
                guess = 0.5 * (low + high)
            if guess == length:
                break
            length = guess
        return length

    def _settle_bias(self) -> None:
        """The best b for this w, if no row has curvature, so that Newton's method cannot find b.

        This is a line search that does not read X.
        """
        no_step, ones = np.zeros(0), np.ones(len(self._values))
        pull, curvature = pulls_along(
            *self._loss, self._values, ones, 0.0, self._centre, self._width
        )
        if pull != 0.0 and curvature == 0.0:
            direction = 1.0 if pull > 0.0 else -1.0
            start = direction * self._reach
            length = self._line_search(no_step, start, start * ones, -pull * start)
            self._b += length * start
            self._values = self._values + length * start

    def _move_centre(self) -> None:
        self._centre = self._beta
        self._width = max(self._width * NEWTON.shrink, NEWTON.least_width * self._reach)
        self._measure()


def _width_of(loss: LossOfRows) -> float:
    """The size of the residuals: 2 for classes, the spread of the targets for regression.

    At w = 0 all rows are then within the smoothed range, and the first step is least squares. The
    spread is not used for classes, because it is tiny if one class is rare.
    """
    if loss.low[0] == 0.0 or loss.high[0] == 0.0:
        return 2.0
    spread = float(np.abs(loss.target - np.median(loss.target)).mean())
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


@kernel
def smoothed_rows(
    target, low, high, damping, tube, values, centre, width, beta, curved, signed, sums
):  # fmt: skip
    """Write beta, curvature and the two signs of beta of each row.

    sums (8,): losses, the sum of positive betas, the sum of negative ones (as a positive number),
    the linear part of the dual of either sign, its quadratic part of either sign, the part of the
    gap that is due to the smoothing.
    """
    for i in range(len(values)):
        residual = target[i] - values[i]
        cost = row_loss(residual, low[i], high[i], damping[i], tube)
        sums[0] += cost
        damping_i = damping[i]
        if width > 0.0:
            damping_i = width / max(high[i], -low[i])
        shifted = residual + damping_i * centre[i] if width > 0.0 else residual
        dual = row_dual(shifted, low[i], high[i], damping_i, tube)
        beta[i] = dual
        curved[i] = 1.0 / damping_i if dual != 0.0 and low[i] < dual < high[i] else 0.0
        signed[i, 0], signed[i, 1] = max(dual, 0.0), min(dual, 0.0)
        linear = target[i] * dual - tube * abs(dual)
        quadratic = 0.5 * damping[i] * dual * dual
        sums[7] += cost - (dual * residual - tube * abs(dual) - quadratic)
        if dual > 0.0:
            sums[1] += dual
            sums[3] += linear
            sums[5] += quadratic
        else:
            sums[2] -= dual
            sums[4] += linear
            sums[6] += quadratic


@kernel(fast_sums=True)
def pulls_along(target, low, high, damping, tube, values, moves, length, centre, width):
    """The sums of beta times move and of curvature times move^2, at values + length * moves."""
    first = 0.0
    second = 0.0
    for i in range(len(values)):
        residual = target[i] - values[i] - length * moves[i]
        damping_i = damping[i]
        if width > 0.0:
            damping_i = width / max(high[i], -low[i])
            residual += damping_i * centre[i]
        dual = row_dual(residual, low[i], high[i], damping_i, tube)
        first += dual * moves[i]
        if dual != 0.0 and low[i] < dual < high[i]:
            second += moves[i] * moves[i] / damping_i
    return first, second


@kernel
def _violation(target, low, high, damping, tube, beta, values):
    """The largest violation of the optimality conditions."""
    worst = 0.0
    for i in range(len(beta)):
        gradient = damping[i] * beta[i] - (target[i] - values[i])
        left = gradient + tube if beta[i] > 0.0 else gradient - tube
        right = gradient - tube if beta[i] < 0.0 else gradient + tube
        if beta[i] > low[i]:
            worst = max(worst, left)
        if beta[i] < high[i]:
            worst = max(worst, -right)
    return worst


@kernel
def total_loss(target, low, high, damping, tube, values):
    """The sum of the losses of all rows."""
    total = 0.0
    for i in range(len(values)):
        total += row_loss(target[i] - values[i], low[i], high[i], damping[i], tube)
    return total
