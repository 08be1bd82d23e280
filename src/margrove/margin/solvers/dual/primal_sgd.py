"""Stochastic subgradient steps on the primal problem of the soft margin.

    minimise over w, b   lambda / 2 ||w||^2 + sum_n c_n max(0, 1 - y_n (w.phi(x_n) + b))

with lambda = 1 / C and c_n = C_n / C, C = max C_n. Multiplied by C this is the machine of the dual
problem, 1/2 ||w||^2 + sum_n C_n xi_n, with the same minimiser.

**Steps** of Shalev-Shwartz, Singer, Srebro and Cotter, "Pegasos" (2011), for the mean: divided by
sum c, the penalty is L / 2 ||w||^2 with L = 1 / sum C_n. The step at time t has length 1 / (L t),
so that w is (1 / (L t)) times the sum of all subgradients. With w = sum_i alpha_i y_i phi(x_i) and
each row visited once in an epoch, after e epochs

    alpha_i = C_i * (share of its e visits at which row i violated the margin)

which lies between 0 and C_i, as the dual requires.

**The bias** is not penalised, and a step length of 1 / (L t) makes no sense for it. The proximal
point method (Rockafellar 1976) gives it a penalty that vanishes: with (b - b0)^2 / (2 gamma) added
to 1/2 ||w||^2, b is one more weight, b = b0 + gamma y'alpha. After epoch e the centre b0 moves by
10 / (10 + e) gamma y'alpha: it stays only if y'alpha = 0, and then the penalty is zero. (Refitting
b exactly before each step is worse: a row is visited when the effect of its last step has decayed
most, so the visits are not a fair sample of the losses at that b.) With a bias the problem does not
depend on the origin, so the rows are centred, where their norms are smallest.

**Averages.** The result is the mean of the iterates at the ends of the epochs since the last power
of two (the last half of them, or more), moved to the nearest point with y'alpha = 0, with the best
b for it. Its duality gap, relative to its primal objective, decides when to stop. The method
reaches gaps of 1e-2, or 1e-3 if C is small. The gap falls at best like one over the number of
epochs, and alpha changes in steps of C / epochs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, step_capacity
from margrove.margin.solvers.dual.coordinate_descent import projected_gradient
from margrove.margin.solvers.dual.hull import project, row_sums, svc_result
from margrove.margin.solvers.dual.result import SolverResult, TracePoint
from margrove.margin.solvers.perceptron import shuffle
from margrove.margin.svm import DualProblem

__all__ = ["SubgradientProcess", "SubgradientStep", "best_bias", "primal_objective"]

_EPOCHS_BETWEEN_CHECKS = 5
_NO_GAP = 8.0 * float(np.finfo(np.float64).eps)


class SubgradientSums(NamedTuple):
    """The sums that the compiled steps over n rows update.

    visits   float64 (n,) how often each row violated the margin, times its C
    sums     float64 (n,) K(visits * y)
    balance  float64 (1,) visits.y
    """

    visits: np.ndarray
    sums: np.ndarray
    balance: np.ndarray


@dataclass(frozen=True)
class SubgradientStep:
    """A visit to a row that violated the margin, and `value` = y f(x) before the step."""

    epoch: int
    row: int
    value: float


class SubgradientProcess:
    """Epochs of stochastic subgradient steps; see `slices.Process`.

    K        float64 (n, n), the Gram matrix
    problem  of `c_svc`, with or without a bias, with finite bounds; its start is not used
    tol_gap  on (primal - dual) / primal of the averaged solution
    """

    unit = "epoch"

    def __init__(
        self,
        K: np.ndarray,
        problem: DualProblem,
        *,
        tol_gap: float = 1e-2,
        max_epochs: int = 5000,
        seed: int = 0,
        names: np.ndarray | None = None,
    ) -> None:
        if problem.keeps_sum or (problem.p != -1.0).any() or K.shape != (len(problem),) * 2:
            raise ValueError(
                "SubgradientProcess solves problems of c_svc, with a row of K for each variable."
            )
        if not np.isfinite(problem.u).all():
            raise ValueError("The soft margin's primal problem needs a finite C.")
        self._K = read_only(np.ascontiguousarray(K, dtype=np.float64))
        self._problem = problem
        self._y, self._C = read_only(problem.y), read_only(problem.u)
        self._tol_gap = tol_gap
        self._seed = seed
        self._names = (np.arange(len(K)) if names is None else names)[problem.rows]
        self.total: int | None = max_epochs
        n = len(problem)
        self._visits = np.zeros(n)  # how often each row violated, times C_n
        self._sums = np.zeros(n)  # K(visits * y): f is this times n / steps
        self._balance = np.zeros(1)  # visits.y
        self._centre = 0.0
        self._gamma = 0.0
        self._K_of_steps = self._K
        if problem.has_bias:  # the solution does not depend on the origin
            self._K_of_steps = read_only(_centred(self._K))
            typical = max(0.0, float(np.median(np.diag(self._K_of_steps))))
            self._gamma = 0.1 * typical + 0.3 / float(problem.u.sum())
        self._order = np.arange(n)
        self._cursor = 0
        self._epoch = 0
        self._total = np.zeros(n)  # of the iterates since epoch _since
        self._since = 0
        self._trace: list[TracePoint] = []
        self._records = np.empty((step_capacity(), 3))
        self._n_records = np.zeros(1, dtype=np.int64)
        self._best, self.gap = self._measured(np.zeros(n))

    # -- the interface of `slices.Process` --

    @property
    def rounds(self) -> int:
        return self._epoch

    @property
    def finished(self) -> bool:
        return bool(self.gap < max(self._tol_gap, _NO_GAP)) or self._epoch >= (self.total or 0)

    def figures(self) -> dict[str, float]:
        return {"gap": self.gap, "violation": self._best.violation}

    def read_steps(self) -> list[SubgradientStep]:
        records = self._records[: self._n_records[0]].tolist()
        self._n_records[0] = 0
        return [
            SubgradientStep(int(epoch), int(self._names[int(i)]), value)
            for epoch, i, value in records
        ]

    def advance(self, work: float) -> float:
        problem, before = self._problem, self._cursor
        if self._cursor == 0:
            shuffle(self._order, np.uint64(self._seed), np.uint64(self._epoch))
        cost = len(problem) + 10.0
        count = max(1, int(min(work / cost, float(len(problem)))))
        self._cursor = _visit(
            self._K_of_steps, self._y, self._C, self._gamma, self._centre, self._order,
            self._cursor, min(len(problem), self._cursor + count), self._epoch,
            SubgradientSums(self._visits, self._sums, self._balance), self._records,
            self._n_records,
        )  # fmt: skip
        done = self._cursor - before
        if self._cursor == len(problem):
            self._end_epoch()
        return done * cost

    # -- epochs --

    def _end_epoch(self) -> None:
        self._cursor = 0
        self._epoch += 1
        imbalance = float(self._balance[0]) / self._epoch
        self._centre += 10.0 / (10.0 + self._epoch) * self._gamma * imbalance
        if self._epoch & (self._epoch - 1) == 0:  # a power of two: drop the iterates before it
            self._since, self._total = self._epoch - 1, np.zeros(len(self._total))
        self._total += self._visits / self._epoch
        if self._epoch % _EPOCHS_BETWEEN_CHECKS == 0 or self._epoch >= (self.total or 0):
            self._check()

    def _check(self) -> None:
        """Keep the average if its gap is the smallest so far."""
        found, gap = self._measured(self._total / (self._epoch - self._since))
        self._trace.append(TracePoint(found.iterations, found.objective, found.violation))
        if gap < self.gap:
            self.gap, self._best = gap, found

    def _measured(self, alpha: np.ndarray) -> tuple[SolverResult, float]:
        """The nearest feasible dual point with the best bias of the primal, and its gap."""
        problem = self._problem
        at_bound = alpha > (1.0 - 1e-12) * problem.u  # up to the rounding of the mean
        alpha = np.where(at_bound, problem.u, alpha)
        if problem.has_bias:
            low = np.where(problem.y > 0, 0.0, -problem.u)
            alpha = np.abs(project(problem.y * alpha, low, low + problem.u, 0.0))
        f = row_sums(self._K, alpha * problem.y)
        result = svc_result(problem, alpha, f, 0.0, self._epoch * len(alpha), [])
        if problem.has_bias:
            result = replace(result, rho=-best_bias(f, problem.y, problem.u))
        else:
            violation = float(np.abs(projected_gradient(problem, alpha, f)).max())
            result = replace(result, rho=0.0, violation=violation)
        primal = primal_objective(problem, alpha, f, -result.rho)
        return result, (primal + result.objective) / primal if primal > 0.0 else 0.0

    def result(self) -> SolverResult:
        """The best average so far; converged if its gap is below `tol_gap`."""
        return replace(self._best, converged=self.gap < self._tol_gap, trace=list(self._trace))


def primal_objective(problem: DualProblem, alpha: np.ndarray, f: np.ndarray, bias: float) -> float:
    """1/2 ||w||^2 + sum_n C_n max(0, 1 - y_n (f_n + b)) of w = sum alpha y phi, f = K(alpha y)."""
    losses = np.maximum(0.0, 1.0 - problem.y * (f + bias))
    return 0.5 * float((alpha * problem.y) @ f) + float(problem.u @ losses)


def _centred(K: np.ndarray) -> np.ndarray:
    """The Gram matrix of the rows, centred in feature space."""
    means = K.mean(axis=0)
    return np.asarray(K - means - (means - means.mean())[:, None])


def best_bias(f: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """The b that minimises sum_n weight_n max(0, 1 - y_n (f_n + b)).

    The loss of row n has a kink at b = y_n - f_n, where the slope rises by its weight. The slope
    starts at minus the weight of the positive rows, so the best b is a weighted quantile of the
    kinks.
    """
    kinks = y - f
    order = np.argsort(kinks, kind="stable")
    reached = int(np.searchsorted(np.cumsum(weight[order]), weight[y > 0].sum()))
    return float(kinks[order[min(reached, len(f) - 1)]])


@kernel
def _visit(K, y, C, gamma, centre, order, start, end, epoch, totals, records, n_records):
    """Subgradient steps on order[start:end]; returns where it stopped, early if records are full.

    K: float64 (n, n); y, C: float64 (n,). records: float64 (r, 3), empty without a listener, of
    which n_records[0] are used.
    """
    visits, sums, balance = totals
    n = len(order)
    for t in range(start, end):
        if records.shape[0] > 0 and n_records[0] == records.shape[0]:
            return t
        i = order[t]
        steps = epoch * n + t
        scale = n / steps if steps > 0 else 0.0
        value = y[i] * (scale * (sums[i] + gamma * balance[0]) + centre)
        if value >= 1.0:
            continue
        signed = C[i] * y[i]
        visits[i] += C[i]
        balance[0] += signed
        for j in range(n):
            sums[j] += signed * K[i, j]
        if records.shape[0] > 0:
            m = n_records[0]
            records[m, 0], records[m, 1], records[m, 2] = epoch, i, value
            n_records[0] = m + 1
    return end
