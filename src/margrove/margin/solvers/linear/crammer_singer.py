"""Crammer and Singer's machine for many classes: one problem instead of one for each class.

    minimise  1/2 sum_m ||w_m||^2 + k/2 sum_m b_m^2
              + sum_i C_i max(0, max_{m != y_i}  1 + f_m(x_i) - f_{y_i}(x_i))

with f_m(x) = w_m.x + b_m; Crammer and Singer (2001). Its dual has a vector alpha_i for each row,
with w_m = sum_i alpha_im x_i, alpha_im <= C_i for m = y_i and <= 0 for the others, and
sum_m alpha_im = 0. Keerthi, Sundararajan, Chang, Hsieh and Lin, "A sequential dual method for
large scale multi-class linear SVMs" (2008): for one row after the other, in a new order each epoch,
alpha_i becomes the exact minimum with all other rows fixed, which takes a sort of its K gradients.

**The intercepts** are as in `dual_coordinate_descent`. Free intercepts require sum_i alpha_im = 0
for each class m. Near the solution this holds approximately. To prove how good the solution is, the
matrix of the amounts that pass between any two classes is scaled by matrix balancing (Osborne
1960), after which it holds exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import kernel
from margrove.margin.linear import OneVsRest
from margrove.margin.solvers.linear.dual_coordinate_blocks import free_gain
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult
from margrove.margin.solvers.perceptron import shuffle

__all__ = ["CrammerSingerProcess"]

_WORK_AT_ONCE = 100_000_000  # multiply-adds between two checks for an interrupt
_PROGRESS = 0.99
_MOST_IDLE_CHECKS = 100
_EPOCHS_BETWEEN_CHECKS = 20
_BALANCING_SWEEPS = 200


class JointRows(NamedTuple):
    """m rows of X, their classes and their C: rows and codes int64 (m,), C float64 (m,)."""

    X: Rows
    rows: np.ndarray
    codes: np.ndarray
    C: np.ndarray


class JointPoint(NamedTuple):
    """Dual variables of K classes, and the weights and sums computed from them, all float64.

    alpha (m, K), W (d, K) the sum of alpha x over the rows, bias (K,), balance (K,) sums of alpha
    """

    alpha: np.ndarray
    W: np.ndarray
    bias: np.ndarray
    balance: np.ndarray


class CrammerSingerProcess:
    """Epochs of exact steps, one for each row; see `slices.Process`."""

    unit = "epoch"

    def __init__(
        self, problem: OneVsRest, demand: LinearDemand, *, start: np.ndarray | None = None
    ) -> None:
        self._problem = problem
        self._demand = demand
        self.total: int | None = demand.epochs
        m, K = len(problem), problem.n_machines
        self._given = JointRows(
            problem.X,
            read_only(problem.rows),
            read_only(problem.codes),
            read_only(problem.C),
        )
        self._norms = read_only(problem.norms)
        self._is_free = problem.bias_price == 0.0
        self._gain = free_gain(problem) if self._is_free else 1.0 / problem.bias_price
        self._alpha = np.zeros((m, K)) if start is None else start.copy()
        self._W = np.zeros((problem.n_features, K))
        self._bias = np.zeros(K)
        self._balance = np.zeros(K)
        self._active = np.arange(m)
        self._kept = np.ones(m, dtype=np.bool_)
        self._sums = np.zeros(3)  # losses, the rows' shares of the gap, the largest violation
        self._worst = np.inf
        cells = problem.n_features if problem.X.is_dense else len(problem.X.data) / max(1, m)
        self._cost = 2.0 * K * (cells + 10.0)
        self._cursor = 0
        self.rounds = 0
        self._threshold = demand.tol
        self._checked_at = 0
        self._idle_checks = 0
        self._least_gap = np.inf
        self._is_done = False
        self._best: LinearResult | None = None
        self._trace: list[EpochPoint] = []
        self.estimate = np.inf
        if start is not None:
            self._W = self._weights()
            self._balance = self._alpha.sum(axis=0)
            self._bias = np.zeros(K) if self._is_free else self._gain * self._balance

    @property
    def finished(self) -> bool:
        return self._is_done

    def figures(self) -> dict[str, float]:
        return {"relative gap": self.estimate}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        if self._cursor == 0:
            order = np.empty(len(self._active), dtype=np.int64)
            shuffle(order, np.uint64(self._demand.seed), np.uint64(self.rounds))
            self._active = self._active[order]
            self._sums[:] = 0.0
        end = min(len(self._active), self._cursor + max(1, int(work / self._cost)))
        point = JointPoint(self._alpha, self._W, self._bias, self._balance)
        _visit(
            self._given, self._norms, self._gain, self._active, self._cursor, end, point,
            self._worst, self._kept, self._sums,
        )  # fmt: skip
        done = self._cost * (end - self._cursor)
        self._cursor = end
        if end == len(self._active):
            self._end_epoch()
        return done

    def _end_epoch(self) -> None:
        self._cursor = 0
        self.rounds += 1
        losses, shares, self._worst = (float(value) for value in self._sums)
        primal = 0.5 * float(np.einsum("jk,jk->", self._W, self._W)) + losses
        self.estimate = shares / primal if primal > 0.0 else 0.0
        self._active = self._active[self._kept[self._active]]
        if self._is_free:
            self._bias = self._bias + self._gain * self._balance
        is_last = self.rounds >= self._demand.epochs
        is_due = self.rounds - self._checked_at >= _EPOCHS_BETWEEN_CHECKS
        if self.estimate <= self._threshold or not len(self._active) or is_last or is_due:
            self._check()
            self._is_done |= is_last

    def _check(self) -> None:
        found = self.measured()
        self._checked_at = self.rounds
        self._trace.append(EpochPoint(self.rounds, float(found.primal[0]), float(found.dual[0])))
        if self._best is None or found.gap[0] <= self._best.gap[0]:
            self._best = found
        if found.converged[0]:
            self._is_done = True
            return
        relative = float(found.gap[0] / max(found.primal[0], 1e-300))
        self._idle_checks = 0 if relative < _PROGRESS * self._least_gap else self._idle_checks + 1
        self._least_gap = min(self._least_gap, relative)
        self._is_done = self._idle_checks >= _MOST_IDLE_CHECKS
        self._threshold = max(0.5 * min(self._threshold, self.estimate), 0.01 * self._demand.tol)
        self._active = np.arange(len(self._problem))
        self._kept[:] = True
        self._worst = np.inf

    def measured(self) -> LinearResult:
        """The current point, with alpha made feasible and W computed from it."""
        if self._is_free:
            self._make_balanced()
        self._W = self._weights()
        sums = np.zeros(3)
        for start, end in self._ranges():
            _examine(self._given, start, end, self._alpha, self._W, self._bias, sums)
        squared = 0.5 * float(np.einsum("jk,jk->", self._W, self._W))
        if not self._is_free and self._gain > 0.0:
            squared += float(self._bias @ self._bias) / (2.0 * self._gain)
        primal, dual = squared + float(sums[0]), float(sums[1]) - squared
        return LinearResult(
            coef=np.ascontiguousarray(self._W.T),
            intercept=self._bias.copy(),
            primal=np.array([primal]),
            dual=np.array([dual]),
            violation=sums[2:].copy(),
            beta=self._alpha.copy(),
            epochs=self.rounds,
            converged=np.array([primal - dual <= self._demand.tol * abs(primal)]),
            trace=list(self._trace),
        )

    def result(self) -> LinearResult:
        return self._best if self._best is not None else self.measured()

    def _make_balanced(self) -> None:
        """Scale the amounts between classes so that alpha of each class adds up to zero."""
        codes, K = self._problem.codes, self._problem.n_machines
        passed = np.zeros((K, K))  # amounts from class to class
        for k in range(K):
            passed[k] = -np.minimum(self._alpha[codes == k], 0.0).sum(axis=0)
        factors = balancing_factors(passed)
        np.minimum(self._alpha, 0.0, out=self._alpha)
        self._alpha *= factors[codes]
        self._alpha[np.arange(len(codes)), codes] = -self._alpha.sum(axis=1)
        self._balance[:] = 0.0

    def _weights(self) -> np.ndarray:
        W = np.zeros(self._W.shape)
        X, rows = self._given.X, self._given.rows
        for start, end in self._ranges():
            _weigh(X, rows, start, end, self._alpha, W)
        return W

    def _ranges(self) -> list[tuple[int, int]]:
        m = len(self._problem)
        step = max(1, int(_WORK_AT_ONCE / self._cost))
        return [(start, min(start + step, m)) for start in range(0, m, step)]


def balancing_factors(passed: np.ndarray) -> np.ndarray:
    """Factors <= 1 for a matrix >= 0, after which the sums of row k and column k are equal.

    Osborne's iteration scales row and column k by s_k and 1 / s_k. A class whose row or column is
    zero gets factors of zero.
    """
    kept = passed.copy()
    np.fill_diagonal(kept, 0.0)
    while True:
        has_row, has_column = kept.sum(axis=1) > 0.0, kept.sum(axis=0) > 0.0
        one_way = has_row != has_column
        if not one_way.any():
            break
        kept[one_way], kept[:, one_way] = 0.0, 0.0
    scale = np.ones(len(kept))
    for _ in range(_BALANCING_SWEEPS):
        for k in np.flatnonzero(kept.any(axis=1)):
            out = scale[k] * float(kept[k] @ (1.0 / scale))
            into = float(scale @ kept[:, k]) / scale[k]
            if out > 0.0 and into > 0.0:
                scale[k] *= np.sqrt(into / out)
        scaled = scale[:, None] * kept / scale
        error = np.abs(scaled.sum(axis=1) - scaled.sum(axis=0)).max(initial=0.0)
        if error <= 1e-14 * scaled.sum():
            break
    factors = np.where(kept > 0.0, scale[:, None] / scale, 0.0)
    largest = float(factors.max(initial=0.0))
    return np.asarray(factors / largest if largest > 1.0 else factors)


@kernel(fast_sums=True)
def _values(X, row, W, values):
    """values += x W"""
    if X.is_dense:
        for j in range(X.dense.shape[1]):
            x = X.dense[row, j]
            for k in range(len(values)):
                values[k] += x * W[j, k]
    else:
        for p in range(X.indptr[row], X.indptr[row + 1]):
            x, j = X.data[p], X.indices[p]
            for k in range(len(values)):
                values[k] += x * W[j, k]


@kernel
def _add(X, row, steps, W):
    """W += x' steps"""
    if X.is_dense:
        for j in range(X.dense.shape[1]):
            x = X.dense[row, j]
            for k in range(len(steps)):
                W[j, k] += x * steps[k]
    else:
        for p in range(X.indptr[row], X.indptr[row + 1]):
            x, j = X.data[p], X.indices[p]
            for k in range(len(steps)):
                W[j, k] += x * steps[k]


@kernel
def _visit(data, norms, gain, active, start, end, point, worst, kept, sums):
    """Exact steps on the rows active[start:end].

    kept: bool (m,), whether a row is visited in the next pass, given the largest violation `worst`
    of the last pass. sums: float64 (3,), losses, shares of the gap, the largest violation.
    """
    X, rows, codes, C = data
    alpha, W, bias, balance = point
    K = alpha.shape[1]
    gradient = np.empty(K)
    level = np.empty(K)
    steps = np.empty(K)
    for t in range(start, end):
        i = active[t]
        code = codes[i]
        gradient[:] = bias
        _values(X, rows[i], W, gradient)
        highest = -np.inf
        lowest = np.inf
        share = 0.0
        for k in range(K):
            if k != code:
                gradient[k] += 1.0
            highest = max(highest, gradient[k])
            share += alpha[i, k] * gradient[k]
            if alpha[i, k] < (C[i] if k == code else 0.0):
                lowest = min(lowest, gradient[k])
        loss = C[i] * (highest - gradient[code])
        sums[0] += loss
        sums[1] += loss + share
        violation = highest - lowest if lowest < np.inf else 0.0
        sums[2] = max(sums[2], violation)
        is_idle = True
        for k in range(K):
            if k != code and (alpha[i, k] != 0.0 or gradient[k] > gradient[code] - worst):
                is_idle = False
                break
        kept[i] = not is_idle
        if violation <= 0.0:
            continue
        _best_for_row(gradient, alpha[i], norms[i] + gain, C[i], code, level, steps)
        moved = False
        for k in range(K):
            new = steps[k]
            steps[k] = new - alpha[i, k]
            moved |= steps[k] != 0.0
            alpha[i, k] = new
        if moved:
            for k in range(K):
                balance[k] += steps[k]
                bias[k] += gain * steps[k]
            _add(X, rows[i], steps, W)


@kernel
def _best_for_row(gradient, old, curvature, C, code, level, new):
    """new <- the alpha of a row that minimises the dual, with all other rows fixed.

    The entry of the row's class is computed from the other entries, so that their sum is exactly 0.
    """
    K = len(old)
    highest = -1
    for k in range(K):
        new[k] = 0.0
        if k != code and (highest < 0 or gradient[k] > gradient[highest]):
            highest = k
    if curvature * C <= 1e-14 * (1.0 + abs(gradient[code]) + abs(gradient[highest])):
        if gradient[highest] > gradient[code]:  # practically no curvature: one of the bounds
            new[code], new[highest] = C, -C
        return
    for k in range(K):
        gradient[k] -= curvature * old[k]
        level[k] = gradient[k] + (curvature * C if k == code else 0.0)
    level.sort()
    total = level[K - 1] - curvature * C
    count = 1
    while count < K and total < count * level[K - 1 - count]:
        total += level[K - 1 - count]
        count += 1
    total /= count
    given = 0.0
    for k in range(K):
        if k != code:
            new[k] = min(0.0, (total - gradient[k]) / curvature)
            given -= new[k]
    if given > C:
        for k in range(K):
            new[k] *= C / given
        given = C
    new[code] = given


@kernel
def _weigh(X, rows, start, end, alpha, W):
    """W += X'alpha of the rows start .. end"""
    for i in range(start, end):
        _add(X, rows[i], alpha[i], W)


@kernel
def _examine(data, start, end, alpha, W, bias, sums):
    """sums <- losses, the linear part of the dual, the largest violation."""
    X, rows, codes, C = data
    K = alpha.shape[1]
    gradient = np.empty(K)
    for i in range(start, end):
        code = codes[i]
        gradient[:] = bias
        _values(X, rows[i], W, gradient)
        highest = -np.inf
        lowest = np.inf
        for k in range(K):
            if k != code:
                gradient[k] += 1.0
            highest = max(highest, gradient[k])
            if alpha[i, k] < (C[i] * (1.0 - 1e-9) if k == code else 0.0):
                lowest = min(lowest, gradient[k])
        sums[0] += C[i] * (highest - gradient[code])
        sums[1] += alpha[i, code]
        if lowest < np.inf:
            sums[2] = max(sums[2], highest - lowest)
