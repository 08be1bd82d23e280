"""Proximal Newton steps for the L1 penalty with few features.

    minimise  F(w, b) = ||w||_1 + k |b| + sum_i loss_i(t_i - w.x_i - b)        squared losses only

(see `margin.linear.problems` for losses and k). In each step the losses are replaced by their
quadratic model, whose curvature X'DX is a d x d matrix. The step minimises this model plus the
penalty, by coordinate descent on the matrix only (Friedman, Hastie and Tibshirani 2010; Lee, Sun
and Saunders 2014). A line search ensures that F falls.

**Duality gap.** beta_i, the slope of the loss, scaled until |X'beta|_j <= 1 for all features, is a
feasible point of the dual  max sum_i t_i beta_i - e |beta_i| - d_i beta_i^2 / 2;  if b is free,
also sum_i beta_i = 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from margrove._runtime import ALONE, Collective, kernel
from margrove.margin.linear import LinearProblem
from margrove.margin.solvers.linear.newton.l1_rows import L1Rows
from margrove.margin.solvers.linear.newton.newton_steps import solved
from margrove.margin.solvers.linear.newton.row_tiles import TiledProblem, tiled
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult

__all__ = ["L1NewtonProcess", "best_l1_dual", "is_empty_too_early", "l1_violation"]

_NO_VIOLATION = 1e-9


class L1NewtonRule(NamedTuple):
    """The constants of the method.

    sweeps         the maximum number of sweeps over the coordinates of one model
    work_at_once   multiply-adds between two checks for an interrupt
    inner_share    sweeps end when the gain of a sweep is below this share of the tolerance
    armijo         share of the expected decrease that a step must achieve
    most_halvings  the maximum number of halvings of a step
    patience       the maximum number of steps without progress
    """

    sweeps: int = 1000
    work_at_once: int = 50_000_000
    inner_share: float = 1e-3
    armijo: float = 0.01
    most_halvings: int = 40
    patience: int = 20


L1_NEWTON = L1NewtonRule()


class L1NewtonProcess:
    """Proximal Newton steps over one machine; see `slices.Process`."""

    unit = "step"

    def __init__(
        self,
        problem: LinearProblem | TiledProblem,
        demand: LinearDemand,
        *,
        start: np.ndarray | None = None,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> None:
        self._n_features = problem.n_features
        self._demand = demand
        self.total: int | None = demand.epochs
        self._rows = L1Rows(tiled(problem), n_threads=n_threads, collective=collective)
        self._has_bias = bool(np.isfinite(problem.bias_price))
        # The penalty of each weight, the intercept's last.
        self._penalty = np.ones(problem.n_features + 1)
        self._penalty[-1] = problem.bias_price if self._has_bias else 0.0
        self._w = np.zeros(problem.n_features + 1)
        if start is not None:
            self._w[:] = start
            self._w[-1] *= self._has_bias
            self._rows.set_values(self._w)
        self.rounds = 0
        self._dual = -np.inf
        self._trace: list[EpochPoint] = []
        self._idle = 0
        self._stuck = False
        self._measure()

    @property
    def converged(self) -> bool:
        if self._primal - self._dual > self._demand.tol * abs(self._primal):
            return False
        return not is_empty_too_early(self._gradient, self._w, self._penalty, self._has_bias)

    @property
    def finished(self) -> bool:
        return self.converged or self._stuck or self.rounds >= self._demand.epochs

    def figures(self) -> dict[str, float]:
        return {"relative gap": (self._primal - self._dual) / max(abs(self._primal), 1e-300)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One proximal Newton step."""
        step, expected = self._direction()
        before = self._primal - self._dual
        moved = expected < 0.0 and self._move(step, expected)
        self.rounds += 1
        self._measure()
        self._idle = 0 if self._primal - self._dual < 0.99 * before else self._idle + 1
        self._stuck = not moved or self._idle > L1_NEWTON.patience
        return float(len(self._rows)) * self._n_features

    def result(self) -> LinearResult:
        violation = np.array([self._violation()])
        return replace(self.result_so_far(), beta=self._rows.best_beta(), violation=violation)

    def result_so_far(self) -> LinearResult:
        """The same without dual variables and violation."""
        return LinearResult(
            coef=self._w[None, :-1].copy(),
            intercept=self._w[-1:].copy(),
            primal=np.array([self._primal]),
            dual=np.array([self._dual]),
            violation=np.full(1, np.nan),
            beta=np.empty((0, 1)),
            epochs=self.rounds,
            converged=np.array([self.converged]),
            trace=list(self._trace),
        )

    def _measure(self) -> None:
        """Sets: _gradient of the losses, and both objectives."""
        sums, combined, self._gradient = self._rows.measure()
        self._primal = float(self._penalty @ np.abs(self._w)) + float(sums[0])
        price = self._penalty[-1] if self._has_bias else np.inf
        dual, up, down = best_l1_dual(combined, sums, price)
        if dual > self._dual:
            self._dual = dual
            self._rows.keep_beta(up, down)
        self._trace.append(EpochPoint(self.rounds, self._primal, self._dual))

    def _direction(self) -> tuple[np.ndarray, float]:
        """The step that minimises the model plus the penalty, and the expected change of F."""
        d = self._n_features
        system = self._rows.squares()
        if not self._has_bias:
            system[d], system[:, d] = 0.0, 0.0
        diagonal = np.diagonal(system)
        tiny = np.where(diagonal > 0.0, 1e-12 * diagonal, 1.0)
        system[np.arange(d + 1), np.arange(d + 1)] += tiny
        new = self._w.copy()
        goal = L1_NEWTON.inner_share * self._demand.tol * abs(self._primal)
        n_variables = d + 1 if self._has_bias else d
        slopes = self._gradient.copy()  # of the model, at `new`
        at_once = min(L1_NEWTON.sweeps, max(1, int(L1_NEWTON.work_at_once / n_variables**2)))
        for _ in range(0, L1_NEWTON.sweeps, at_once):  # interrupts are noticed in between
            if descend_parabola(system, slopes, self._penalty, new, n_variables, goal, at_once):
                break
        new = self._polished(system, new)
        step = new - self._w
        expected = float(self._gradient @ step) + float(
            self._penalty @ (np.abs(new) - np.abs(self._w))
        )
        return step, expected

    def _polished(self, system: np.ndarray, new: np.ndarray) -> np.ndarray:
        """The exact minimum over the nonzero weights, if it does not change their signs.

        Coordinate descent is slow if features are nearly dependent.
        """
        signs = np.sign(new) * (self._penalty > 0.0)
        nonzero = np.flatnonzero(new if self._penalty[-1] > 0.0 else np.append(new[:-1], 1.0))
        nonzero = nonzero if self._has_bias else nonzero[nonzero < len(new) - 1]
        if not len(nonzero):
            return new
        slopes = self._gradient + system @ (new - self._w) + self._penalty * signs
        polished = new.copy()
        polished[nonzero] += solved(system[np.ix_(nonzero, nonzero)], -slopes[nonzero])
        return polished if (np.sign(polished) * signs >= 0.0).all() else new

    def _move(self, step: np.ndarray, expected: float) -> bool:
        """Halve the step until F falls enough; False if it does not."""
        self._rows.set_moves(step)
        length = 1.0
        for _ in range(L1_NEWTON.most_halvings):
            w = self._w + length * step
            primal = float(self._penalty @ np.abs(w)) + self._rows.loss_along(length)
            if primal <= self._primal + L1_NEWTON.armijo * length * expected:
                self._w = w
                self._rows.move(length)
                return True
            length *= 0.5
        return False

    def _violation(self) -> float:
        """The largest violation of the optimality conditions."""
        return l1_violation(self._gradient, self._w, self._penalty, self._has_bias)


def l1_violation(gradient: np.ndarray, w: np.ndarray, penalty: np.ndarray, has_bias: bool) -> float:
    """The largest violation of the optimality conditions, of weights and (last) intercept."""
    outside = np.maximum(np.abs(gradient) - penalty, 0.0)
    misses = np.where(w == 0.0, outside, np.abs(gradient + np.sign(w) * penalty))
    return float(misses.max() if has_bias else misses[:-1].max(initial=0.0))


def is_empty_too_early(
    gradient: np.ndarray, w: np.ndarray, penalty: np.ndarray, has_bias: bool
) -> bool:
    """Whether all weights are zero although the optimum has nonzero weights.

    Just above the smallest such C (`sklearn.svm.l1_min_c`), zero weights are within any tolerance
    of the best objective, but users want to know which features come first.
    """
    return not w[:-1].any() and l1_violation(gradient, w, penalty, has_bias) > _NO_VIOLATION


def best_l1_dual(
    combined: np.ndarray, sums: np.ndarray, bias_price: float
) -> tuple[float, float, float]:
    """The dual objective of the feasible beta, and the factors of its positive and negative part.

    combined (d, 2) are X' of the two parts, sums as of `smoothed_rows`.
    """
    positive, negative = float(sums[1]), float(sums[2])
    up = down = 1.0
    if bias_price == 0.0:
        up = min(1.0, negative / positive) if positive > 0.0 else 1.0
        down = min(1.0, positive / negative) if negative > 0.0 else 1.0
    largest = float(np.abs(up * combined[:, 0] + down * combined[:, 1]).max(initial=0.0))
    if 0.0 < bias_price < np.inf:
        largest = max(largest, abs(positive - negative) / bias_price)
    linear = float(up * sums[3] + down * sums[4])
    quadratic = float(up**2 * sums[5] + down**2 * sums[6])
    longest = 1.0 / largest if largest > 0.0 else np.inf
    factor = min(longest, 0.5 * linear / quadratic) if quadratic > 0.0 and linear > 0.0 else 0.0
    return factor * linear - factor**2 * quadratic, factor * up, factor * down


@kernel
def descend_parabola(system, slopes, penalty, new, n_variables, goal, most_sweeps):
    """Sweeps over the coordinates of a quadratic model plus a penalty; True if the gain is small.

    slopes are those of the model at `new`, kept up to date.
    """
    for _ in range(most_sweeps):
        gain = 0.0
        for j in range(n_variables):
            curvature = system[j, j]
            target = curvature * new[j] - slopes[j]
            if target > penalty[j]:
                value = (target - penalty[j]) / curvature
            elif target < -penalty[j]:
                value = (target + penalty[j]) / curvature
            else:
                value = 0.0
            change = value - new[j]
            if change != 0.0:
                gain += 0.5 * curvature * change * change
                new[j] = value
                for k in range(n_variables):
                    slopes[k] += change * system[k, j]
        if gain <= goal:
            return True
    return False
