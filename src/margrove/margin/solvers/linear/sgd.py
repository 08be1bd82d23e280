"""Averaged stochastic gradient descent for linear machines, for streams and for fast fits.

    minimise  l/2 ||w||^2 + mean_i loss(t_i - w.x_i - b)            l = 1 / (C n)

Pegasos (Shalev-Shwartz, Singer, Srebro and Cotter 2011) takes a step along the subgradient of one
row after the other. Two changes make it robust. Steps are implicit (Kulis and Bartlett 2010): they
use the subgradient of the row's loss after the step, so that no step can overshoot, however long
the row is. And the result is the average of the iterates, with larger weights for later ones
(Shamir and Zhang 2013). The length of the steps,

    1 / (R^2 sqrt(1 + s / 1000) + l s),

falls with the number s of rows seen, from the inverse of their mean squared norm R^2 to the
1 / (l s) of Pegasos. In a stream n is the number of rows seen so far.

Iterate and average are stored as  w = a V  and  p (U + q V),  so that a step reads only the
nonzeros of its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import kernel
from margrove.exceptions import NumericalOverflowError
from margrove.margin.solvers.linear.result import EpochPoint, LinearDemand, LinearResult
from margrove.margin.solvers.perceptron import shuffle

__all__ = ["SgdRows", "SgdState", "StochasticProcess"]

_LATER_COUNT_MORE = 3.0
_STEADY_ROWS = 1000.0
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class SgdRows:
    """The rows of a fit or of a batch, and the loss.

    targets   float64 (m,): class codes, or targets of a regression
    weight    float64 (m,): the weight of each row
    C         the penalty on the error of a row of weight one
    """

    X: Rows
    n_features: int
    rows: np.ndarray
    norms: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    n_machines: int
    C: float
    squared: bool
    tube: float
    is_regression: bool
    bias_gain: float  # 0: none, s^2: LIBLINEAR's constant feature of size s
    is_bias_free: bool


class PresentedRows(NamedTuple):
    """The part of `SgdRows` that the compiled steps read, for m rows.

    X, rows, norms   the table, the number (m,) of each row in it, and their squared norms (m,)
    targets, weight  float64 (m,)
    gain, is_free    the change of the intercept by a step (0: no intercept), and whether it is not
                     penalised
    """

    X: Rows
    rows: np.ndarray
    norms: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    is_regression: bool
    squared: bool
    tube: float
    gain: float
    is_free: bool


@dataclass
class SgdState:
    """The iterate and the average of K machines: w = a V, mean = p (U + q V).

    V, U (d, K); bias, mean_bias (K,); scales = (a, p, q, rows seen); length = R^2
    """

    V: np.ndarray
    U: np.ndarray
    bias: np.ndarray
    mean_bias: np.ndarray
    scales: np.ndarray
    length: float

    @classmethod
    def zeros(cls, n_features: int, n_machines: int, length: float) -> SgdState:
        shape = (n_features, n_machines)
        scales = np.array([1.0, 1.0, 0.0, 0.0])
        nothing = np.zeros(n_machines), np.zeros(n_machines)
        return cls(np.zeros(shape), np.zeros(shape), *nothing, scales, length)

    @classmethod
    def at(cls, coef: np.ndarray, intercept: np.ndarray, length: float) -> SgdState:
        """The state at the result of another solver; the average starts there."""
        state = cls.zeros(coef.shape[1], coef.shape[0], length)
        state.V[:], state.U[:] = coef.T, coef.T
        state.bias[:] = state.mean_bias[:] = intercept
        return state

    def copy(self) -> SgdState:
        return SgdState(
            self.V.copy(),
            self.U.copy(),
            self.bias.copy(),
            self.mean_bias.copy(),
            self.scales.copy(),
            self.length,
        )

    @property
    def seen(self) -> float:
        return float(self.scales[3])

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, d) and intercepts (K,) of the average."""
        _, p, q, _ = self.scales
        return np.ascontiguousarray((p * (self.U + q * self.V)).T), self.mean_bias.copy()


class StochasticProcess:
    """Epochs over some rows; see `slices.Process`.

    With one epoch (`demand.epochs`) it learns from one batch of a stream. Otherwise it stops when
    the objective of the average falls by less than the share `demand.tol` from one epoch to the
    next.
    """

    unit = "epoch"

    def __init__(
        self,
        data: SgdRows,
        demand: LinearDemand,
        state: SgdState,
        *,
        total_weight: float | None = None,
    ) -> None:
        self._data = data
        self._demand = demand
        self._stream = state
        self.total: int | None = demand.epochs
        weight = float(data.weight.sum()) if total_weight is None else total_weight
        self._decay = 1.0 / max(data.C * weight, 1e-300)
        self._presented = PresentedRows(
            data.X, read_only(data.rows), read_only(data.norms), read_only(data.targets),
            read_only(data.weight), data.is_regression, data.squared, data.tube, data.bias_gain,
            data.is_bias_free,
        )  # fmt: skip
        self._order = np.arange(len(data.rows))
        self._cursor = 0
        self._key = int(state.seen)
        self.rounds = 0
        self._last = np.inf
        self._primal: np.ndarray | None = None
        self.converged = False
        self._trace: list[EpochPoint] = []
        cells = len(data.X.data) / max(1, len(data.X.indptr) - 1) + 1.0
        self._cost = 4.0 * data.n_machines * (data.n_features if data.X.is_dense else cells) + 20.0

    @property
    def finished(self) -> bool:
        return self.converged or self.rounds >= self._demand.epochs

    def figures(self) -> dict[str, float]:
        return {"rows": self._stream.seen}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        if self._cursor == 0:
            self._shuffle()
        count = min(max(1, int(work / self._cost)), _ROWS_AT_ONCE)
        end = min(len(self._order), self._cursor + count)
        state = self._stream
        _present(
            self._presented, self._decay, state.length, self._order, self._cursor, end, state.V,
            state.U, state.bias, state.mean_bias, state.scales,
        )  # fmt: skip
        if not np.isfinite(state.scales).all() or not np.isfinite(state.bias).all():
            raise NumericalOverflowError(
                "The weights grew beyond floating point. Scale the features, for example with "
                "StandardScaler."
            )
        done = self._cost * (end - self._cursor)
        self._cursor = end
        if end == len(self._order):
            self._cursor = 0
            self.rounds += 1
            if self._demand.epochs > 1:
                self._check_progress()
        return done

    def _shuffle(self) -> None:
        shuffle(self._order, np.uint64(self._demand.seed), np.uint64(self._key + self.rounds))

    def _check_progress(self) -> None:
        """Stop if the last epoch has lowered the objective too little."""
        self._primal = self._objectives()
        total = float(self._primal.sum())
        self._trace.append(EpochPoint(self.rounds, total, 0.0))
        self.converged = self._last - total <= self._demand.tol * total
        self._last = min(self._last, total)

    def _objectives(self) -> np.ndarray:
        """1/2 ||w||^2 + C sum loss of each machine's average."""
        data = self._data
        coef, intercept = self._stream.mean()
        losses = np.zeros(len(coef))
        W = np.ascontiguousarray(coef.T)
        for start in range(0, len(data.rows), _ROWS_AT_ONCE):
            end = min(start + _ROWS_AT_ONCE, len(data.rows))
            _add_losses(self._presented, start, end, W, intercept, losses)
        return 0.5 * np.einsum("kj,kj->k", coef, coef) + data.C * losses

    def result(self) -> LinearResult:
        """The average; there are no dual variables, so the dual bound is zero."""
        coef, intercept = self._stream.mean()
        primal = self._objectives()
        K = len(coef)
        return LinearResult(
            coef=coef,
            intercept=intercept,
            primal=primal,
            dual=np.zeros(K),
            violation=np.full(K, np.inf),
            beta=np.zeros((len(self._data.rows), K)),
            epochs=self.rounds,
            converged=np.full(K, self.converged),
            trace=list(self._trace),
        )


@kernel
def _excess(residual, target, is_regression, tube):
    """The signed amount by which the residual exceeds the tube (or the margin)."""
    if is_regression:
        if residual > tube:
            return residual - tube
        if residual < -tube:
            return residual + tube
        return 0.0
    return max(residual, 0.0) if target > 0.0 else min(residual, 0.0)


@kernel
def _target_of(value, k, n_machines, is_regression):
    """The target of machine k: the value of a regression, or +-1 for class codes."""
    if is_regression:
        return value
    positive = value == (1.0 if n_machines == 1 else k)
    return 1.0 if positive else -1.0


@kernel(fast_sums=True)
def _present(data, decay, length, order, start, end, V, U, bias, mean_bias, scales):
    """Steps on the rows order[start:end] of `PresentedRows`; V to scales as in `SgdState`."""
    X, rows, norms, targets, weight, is_regression, squared, tube, gain, is_free = data
    K = V.shape[1]
    values = np.empty(K)
    steps = np.empty(K)
    for t in range(start, end):
        i = order[t]
        row = rows[i]
        a, p, q, seen = scales[0], scales[1], scales[2], scales[3]
        seen += weight[i]
        eta = weight[i] / (length * np.sqrt(1.0 + seen / _STEADY_ROWS) + decay * seen)
        a *= max(1.0 - eta * decay, 1e-3)
        values[:] = 0.0
        if X.is_dense:
            for j in range(X.dense.shape[1]):
                x = X.dense[row, j]
                for k in range(K):
                    values[k] += x * V[j, k]
        else:
            for r in range(X.indptr[row], X.indptr[row + 1]):
                x, j = X.data[r], X.indices[r]
                for k in range(K):
                    values[k] += x * V[j, k]
        moved = False
        curvature = norms[i] + gain
        for k in range(K):
            target = _target_of(targets[i], k, K, is_regression)
            excess = _excess(target - a * values[k] - bias[k], target, is_regression, tube)
            if squared:
                step = 2.0 * eta * excess / (1.0 + 2.0 * eta * curvature)
            else:
                reach = abs(excess) / curvature if curvature > 0.0 else 0.0
                step = min(eta, reach) * np.sign(excess)
            steps[k] = step / a
            moved |= step != 0.0
            if gain > 0.0:
                bias[k] = (bias[k] if is_free else bias[k] * (1.0 - eta * decay)) + gain * step
        if moved:
            if X.is_dense:
                for j in range(X.dense.shape[1]):
                    x = X.dense[row, j]
                    for k in range(K):
                        V[j, k] += x * steps[k]
                        U[j, k] -= q * x * steps[k]
            else:
                for r in range(X.indptr[row], X.indptr[row + 1]):
                    x, j = X.data[r], X.indices[r]
                    for k in range(K):
                        V[j, k] += x * steps[k]
                        U[j, k] -= q * x * steps[k]
        share = weight[i] * (1.0 + _LATER_COUNT_MORE) / (seen + _LATER_COUNT_MORE)
        share = min(share, 0.9)
        p *= 1.0 - share
        q += share * a / p
        for k in range(K):
            mean_bias[k] += share * (bias[k] - mean_bias[k])
        if p < 1e-100 or a < 1e-100:  # rescale, against underflow
            for j in range(V.shape[0]):
                for k in range(K):
                    U[j, k] = p * (U[j, k] + q * V[j, k])
                    V[j, k] *= a
            a, p, q = 1.0, 1.0, 0.0
        scales[0], scales[1], scales[2], scales[3] = a, p, q, seen


@kernel(fast_sums=True)
def _add_losses(data, start, end, W, intercept, losses):
    """losses (K,) += those of the rows start to end of `PresentedRows`, for weights W (d, K)."""
    X, rows, _, targets, weight, is_regression, squared, tube, _, _ = data
    K = W.shape[1]
    values = np.empty(K)
    for i in range(start, end):
        row = rows[i]
        values[:] = intercept
        if X.is_dense:
            for j in range(X.dense.shape[1]):
                for k in range(K):
                    values[k] += X.dense[row, j] * W[j, k]
        else:
            for r in range(X.indptr[row], X.indptr[row + 1]):
                for k in range(K):
                    values[k] += X.data[r] * W[X.indices[r], k]
        for k in range(K):
            target = _target_of(targets[i], k, K, is_regression)
            excess = abs(_excess(target - values[k], target, is_regression, tube))
            losses[k] += weight[i] * (excess * excess if squared else excess)
