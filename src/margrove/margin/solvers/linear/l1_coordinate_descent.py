"""Coordinate descent over features for the L1 penalty, for sparse data with many of them.

    minimise  F(w, b) = ||w||_1 + k |b| + sum_i loss_i(t_i - w.x_i - b)        squared losses only

Yuan, Chang, Hsieh and Lin, "A comparison of optimization methods and software for large-scale
L1-regularized linear classification" (2010), section 4: for one feature after the other, in a new
order each epoch, a Newton step on the quadratic model of the losses plus the penalty, halved until
F falls enough. Values w.x_i + b are kept up to date, so that a step reads its column only. Features
whose weight is zero and will stay zero, by a margin as large as the largest violation of the
previous epoch, are left out until the rest is solved. The intercept is one more column, of ones.

The duality gap is that of `l1_newton`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only
from margrove._runtime import kernel
from margrove.margin.linear import LinearProblem, row_dual, row_loss
from margrove.margin.solvers.linear.newton import best_l1_dual, is_empty_too_early, l1_violation
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult
from margrove.margin.solvers.linear.row_losses import smoothed_rows
from margrove.margin.solvers.perceptron import shuffle

__all__ = ["Columns", "L1ColumnsProcess", "columns_of"]

_ARMIJO = 0.01
_MOST_HALVINGS = 20
_EPOCHS_BETWEEN_CHECKS = 5
_MOST_IDLE_CHECKS = 40
_GOOD_PROGRESS = 0.7  # of the gap, between two checks
_MOST_SLOW_CHECKS = 5


class Columns:
    """The columns of some rows of X, as CSC; machines with the same rows share them."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> None:
        self.indptr = read_only(indptr)
        self.indices = read_only(indices)
        self.data = read_only(data)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.indices, self.data


def columns_of(problem: LinearProblem) -> Columns:
    """Copy the rows of a problem into columns."""
    X, rows = problem.X, problem.rows
    if X.is_dense:
        chosen = sp.csc_array(X.dense[rows])
    else:
        shape = (len(X.indptr) - 1, problem.n_features)
        table = sp.csr_array((X.data, X.indices, X.indptr), shape=shape)
        chosen = table[rows].tocsc()
    return Columns(
        chosen.indptr.astype(np.int64, copy=False),
        chosen.indices.astype(np.int32, copy=False),
        chosen.data,
    )


class L1ColumnsProcess:
    """Epochs over the features of one machine; see `slices.Process`."""

    unit = "epoch"

    def __init__(
        self,
        problem: LinearProblem,
        columns: Columns,
        demand: LinearDemand,
        *,
        start: np.ndarray | None = None,
    ) -> None:
        self._problem = problem
        self._columns = columns
        self._demand = demand
        self.total: int | None = demand.epochs
        d = problem.n_features
        self._has_bias = bool(np.isfinite(problem.bias_price))
        self._penalty = np.ones(d + 1)
        self._penalty[-1] = problem.bias_price if self._has_bias else 0.0
        self._w = np.zeros(d + 1)
        self._values = np.zeros(len(problem))
        if start is not None:
            self._w[:] = start
            self._w[-1] *= self._has_bias
            self._values = self._fresh_values()
        filled = np.flatnonzero(np.diff(columns.indptr))
        self._all_columns = np.append(filled, d) if self._has_bias else filled
        self._active = self._all_columns
        self._kept = np.ones(d + 1, dtype=np.bool_)
        self._worst = np.array([np.inf, 0.0])  # of the epoch before, and of this one
        self._cursor = 0
        self.rounds = 0
        self._cost = 4.0 * (len(columns.data) + len(problem)) / (d + 1.0) + 20.0
        self._dual = -np.inf
        self._idle_checks = 0
        self._slow_checks = 0
        self._last_gap = np.inf
        self.is_slow = False
        self._least_gap = np.inf
        self._stuck = False
        self._trace: list[EpochPoint] = []
        self._best_beta = np.zeros(len(problem))
        self._check()

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
        """Do about `work` multiply-adds of an epoch."""
        if self._cursor == 0:
            order = np.empty(len(self._active), dtype=np.int64)
            shuffle(order, np.uint64(self._demand.seed), np.uint64(self.rounds))
            self._active = self._active[order]
            self._worst[1] = 0.0
        end = min(len(self._active), self._cursor + max(1, int(work / self._cost)))
        _visit_columns(
            *self._columns.arrays, self._problem.loss, self._penalty, self._active, self._cursor,
            end, self._w, self._values, self._worst, self._kept,
        )  # fmt: skip
        done = self._cost * (end - self._cursor)
        self._cursor = end
        if end == len(self._active):
            self._end_epoch()
        return done

    def _end_epoch(self) -> None:
        self._cursor = 0
        self.rounds += 1
        is_solved = self._worst[1] <= 0.1 * self._worst[0] or not len(self._active)
        self._worst[0] = self._worst[1]
        self._active = self._active[self._kept[self._active]]
        is_last = self.rounds >= self._demand.epochs
        if is_solved or is_last or self.rounds % _EPOCHS_BETWEEN_CHECKS == 0:
            self._values = self._fresh_values()
            self._check()
            self._active = self._all_columns
            self._kept[:] = True

    def _check(self) -> None:
        """Sets: _gradient, _primal, _dual."""
        m = len(self._problem)
        beta, curved = np.empty(m), np.empty(m)
        signed, sums = np.empty((m, 2)), np.zeros(8)
        loss = self._problem.loss
        smoothed_rows(*loss, self._values, beta, 0.0, beta, curved, signed, sums)
        combined = np.zeros((self._problem.n_features, 2))
        _combine_columns(*self._columns.arrays, signed, combined)
        self._gradient = -np.append(combined.sum(axis=1), beta.sum())
        self._primal = float(self._penalty @ np.abs(self._w)) + float(sums[0])
        price = self._penalty[-1] if self._has_bias else np.inf
        dual, up, down = best_l1_dual(combined, sums, price)
        if dual > self._dual:
            self._dual, self._best_beta = dual, np.where(beta > 0.0, up, down) * beta
        gap = self._primal - self._dual
        self._idle_checks = 0 if gap < 0.99 * self._least_gap else self._idle_checks + 1
        self._least_gap = min(gap, self._least_gap)
        self._stuck = self._idle_checks > _MOST_IDLE_CHECKS
        slow = gap >= _GOOD_PROGRESS * self._last_gap
        self._slow_checks = self._slow_checks + 1 if slow else 0
        self._last_gap = gap
        self.is_slow = self._slow_checks > _MOST_SLOW_CHECKS
        self._trace.append(EpochPoint(self.rounds, self._primal, self._dual))

    def _fresh_values(self) -> np.ndarray:
        """X w + b, computed without the accumulated rounding of the steps."""
        values = np.full(len(self._problem), self._w[-1])
        _add_columns(*self._columns.arrays, self._w, values)
        return values

    def result(self) -> LinearResult:
        violation = l1_violation(self._gradient, self._w, self._penalty, self._has_bias)
        return LinearResult(
            coef=self._w[None, :-1].copy(),
            intercept=self._w[-1:].copy(),
            primal=np.array([self._primal]),
            dual=np.array([self._dual]),
            violation=np.array([violation]),
            beta=self._best_beta[:, None],
            epochs=self.rounds,
            converged=np.array([self.converged]),
            trace=list(self._trace),
        )


@kernel
def _entry(indptr, indices, data, j, p):
    """The p-th entry of column j: its row and value; column d is all ones."""
    if j == len(indptr) - 1:
        return p, 1.0
    return np.int64(indices[indptr[j] + p]), np.float64(data[indptr[j] + p])


@kernel
def _visit_columns(
    indptr, indices, data, loss, penalty, active, start, end, w, values, worst, kept
):  # fmt: skip
    """Newton steps along the features active[start:end]."""
    target, low, high, damping, tube = loss
    d = len(indptr) - 1
    for t in range(start, end):
        j = active[t]
        length = len(values) if j == d else indptr[j + 1] - indptr[j]
        slope = 0.0
        curvature = 1e-12
        for p in range(length):
            i, x = _entry(indptr, indices, data, j, p)
            beta = row_dual(target[i] - values[i], low[i], high[i], damping[i], tube)
            if beta != 0.0:
                slope -= beta * x
                curvature += x * x / damping[i]
        old, price = w[j], penalty[j]
        if old > 0.0:
            violation = abs(slope + price)
        elif old < 0.0:
            violation = abs(slope - price)
        else:
            violation = max(abs(slope) - price, 0.0)
            kept[j] = abs(slope) > price - worst[0]
        worst[1] = max(worst[1], violation)
        if violation == 0.0:
            continue
        wanted = curvature * old - slope
        if wanted > price:
            new = (wanted - price) / curvature
        elif wanted < -price:
            new = (wanted + price) / curvature
        else:
            new = 0.0
        step = new - old
        expected = slope * step + price * (abs(new) - abs(old))
        for _ in range(_MOST_HALVINGS):
            change = price * (abs(old + step) - abs(old))
            for p in range(length):
                i, x = _entry(indptr, indices, data, j, p)
                before = target[i] - values[i]
                change += row_loss(before - step * x, low[i], high[i], damping[i], tube)
                change -= row_loss(before, low[i], high[i], damping[i], tube)
            if change <= _ARMIJO * expected:
                break
            step *= 0.5
            expected *= 0.5
        else:
            continue
        w[j] = old + step
        for p in range(length):
            i, x = _entry(indptr, indices, data, j, p)
            values[i] += step * x


@kernel
def _combine_columns(indptr, indices, data, B, out):
    """X'B"""
    for j in range(len(indptr) - 1):
        for p in range(indptr[j], indptr[j + 1]):
            for c in range(B.shape[1]):
                out[j, c] += data[p] * B[indices[p], c]


@kernel
def _add_columns(indptr, indices, data, w, values):
    """values += X w"""
    for j in range(len(indptr) - 1):
        if w[j] != 0.0:
            for p in range(indptr[j], indptr[j + 1]):
                values[indices[p]] += w[j] * data[p]
