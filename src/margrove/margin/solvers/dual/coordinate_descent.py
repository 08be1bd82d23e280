"""Dual coordinate descent, for machines without a bias.

    minimise  1/2 a'Qa + p'a     subject to  0 <= a_i <= u_i          Q_ij = y_i y_j K_ij

Without a bias there is no y'a = d, so variables can change one by one. Hsieh, Chang, Lin, Keerthi
and Sundararajan, "A dual coordinate descent method for large-scale linear SVM" (2008):

    for i in a new order each epoch:
        G_i = y_i f(x_i) + p_i                  f = K(a * y), kept up to date
        a_i <- clip(a_i - G_i / Q_ii, 0, u_i)   the exact minimum along this coordinate

After each epoch, alpha moves further along the change of the epoch, to the lowest point within the
bounds: the pattern move of Hooke and Jeeves (1961). K times this change is known already, and if K
is nearly singular the move saves thousands of epochs.

A coordinate without curvature, Q_ii <= 0, goes to the bound with the lower objective, or stays if
this bound is infinite. The largest projected gradient (G_i, or 0 if a bound blocks its direction)
is zero at a solution and decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, step_capacity
from margrove.margin.solvers.dual.faces import descend_on_faces
from margrove.margin.solvers.dual.hull import row_sums
from margrove.margin.solvers.dual.result import SolverResult, TracePoint
from margrove.margin.solvers.perceptron import shuffle
from margrove.margin.svm import DualProblem

__all__ = ["CoordinateProcess", "CoordinateStep", "projected_gradient"]

_EPS = float(np.finfo(np.float64).eps)
_EPOCHS_BETWEEN_REFRESHES = 50
_EPOCHS_BETWEEN_FACES = 200
_POINTS_IN_TRACE = 200


class DualVariables(NamedTuple):
    """The arrays of a `DualProblem` that the compiled steps read, all (m,)."""

    y: np.ndarray
    p: np.ndarray
    u: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class CoordinateStep:
    """One coordinate step: the variable, its gradient before, and its change.

    Variable -1 is a pattern move: all variables moved by `change` times their change in the epoch.
    """

    epoch: int
    variable: int
    gradient: float
    change: float


class CoordinateProcess:
    """Epochs of coordinate steps; see `slices.Process`.

    K        float64 (n, n), the Gram matrix of the data
    problem  without a bias, such as those of `c_svc` and `epsilon_svr`
    tol      on the largest projected gradient
    """

    unit = "epoch"

    def __init__(
        self,
        K: np.ndarray,
        problem: DualProblem,
        *,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        seed: int = 0,
        names: np.ndarray | None = None,
    ) -> None:
        if problem.has_bias or problem.keeps_sum:
            raise ValueError(
                "Coordinate descent is for problems without a bias and without a fixed sum."
            )
        if K.ndim != 2 or K.shape[0] != K.shape[1] or problem.rows.max() >= len(K):
            raise ValueError(f"K must be square, with a row for every row. Got shape {K.shape}.")
        self._K = read_only(np.ascontiguousarray(K, dtype=np.float64))
        self._problem = problem
        self._given = DualVariables(
            *map(read_only, (problem.y, problem.p, problem.u, problem.rows))
        )
        self._tol = tol
        self._seed = seed
        self._names = (np.arange(len(K)) if names is None else names)[problem.rows]
        self.total: int | None = max_epochs
        self._largest = max(float(self._K.max()), -float(self._K.min()))
        self.alpha = problem.start.copy()
        self._order = np.arange(len(problem))
        self._cursor = 0
        self._epoch = 0
        self._steps = np.zeros(1, dtype=np.int64)
        self._steps_before = -1
        self._trace: list[TracePoint] = []
        capacity = step_capacity()
        self._records = np.empty((capacity + 1 if capacity else 0, 4))
        self._n_records = np.zeros(1, dtype=np.int64)
        self._stuck = False
        self._f = self._fresh_f()
        self._last = (self.alpha.copy(), self._f.copy())
        self._measure()

    # -- the interface of `slices.Process` --

    @property
    def rounds(self) -> int:
        return self._epoch

    @property
    def finished(self) -> bool:
        return self.violation < self._tol or self._stuck or self._epoch >= (self.total or 0)

    def figures(self) -> dict[str, float]:
        return {"violation": self.violation, "support vectors": float((self.alpha > 0).sum())}

    def read_steps(self) -> list[CoordinateStep]:
        records = self._records[: self._n_records[0]].tolist()
        self._n_records[0] = 0
        names = np.append(self._names, -1)  # -1: all variables
        return [
            CoordinateStep(int(epoch), int(names[int(i)]), g, change)
            for epoch, i, g, change in records
        ]

    def advance(self, work: float) -> float:
        problem, before = self._problem, self._cursor
        if self._cursor == 0:
            shuffle(self._order, np.uint64(self._seed), np.uint64(self._epoch))
        count = max(1, int(min(work / (len(self._K) + 10.0), float(len(problem)))))
        self._cursor = _visit(
            self._K, self._given, self._order, self._cursor,
            min(len(problem), self._cursor + count), self.alpha, self._f, self._epoch, self._steps,
            self._records, self._n_records,
        )  # fmt: skip
        done = self._cursor - before
        if self._cursor == len(problem):
            self._end_epoch()
        return done * (len(self._K) + 10.0)

    # -- epochs --

    def _end_epoch(self) -> None:
        self._cursor = 0
        self._pattern_move()
        self._epoch += 1
        if self._epoch % _EPOCHS_BETWEEN_FACES == 0:
            self._step_on_faces()
        self._measure()
        floor = 8.0 * _EPS * (self._largest * float(self.alpha.sum()) + self._longest_p())
        if self.violation < max(self._tol, floor) or self._epoch % _EPOCHS_BETWEEN_REFRESHES == 0:
            self._f = self._fresh_f()
            self._measure()
            self._stuck = self.violation < floor  # the rest is rounding
        self._last = (self.alpha.copy(), self._f.copy())
        self._stuck |= int(self._steps[0]) == self._steps_before  # no variable has moved
        self._steps_before = int(self._steps[0])
        if len(self._trace) < _POINTS_IN_TRACE or self.finished:
            point = TracePoint(int(self._steps[0]), self._objective(self._f), self.violation)
            self._trace.append(point)

    def _pattern_move(self) -> None:
        """Move further along the change of this epoch, as far as the objective falls."""
        problem, (alpha, f) = self._problem, self._last
        move, product = self.alpha - alpha, self._f - f
        slope = float((problem.y * self._f[problem.rows] + problem.p) @ move)
        curvature = float((problem.y * product[problem.rows]) @ move)
        with np.errstate(divide="ignore", invalid="ignore"):
            to_bound = np.where(move > 0.0, problem.u - self.alpha, -self.alpha) / move
        longest = float(to_bound[move != 0.0].min(initial=np.inf))
        step = min(longest, -slope / curvature) if curvature > 0.0 else 0.0
        if 0.0 < step < np.inf:
            self.alpha = np.clip(self.alpha + step * move, 0.0, problem.u)
            self._f = self._f + step * product
            if len(self._records):
                self._records[self._n_records[0]] = self._epoch, -1, slope, step
                self._n_records[0] += 1

    def _step_on_faces(self) -> None:
        """Newton steps, because coordinate steps can be slow; they are not reported as steps."""
        problem = self._problem
        K = self._K[np.ix_(problem.rows, problem.rows)]
        f = self._fresh_f()[problem.rows] + problem.y * problem.p
        self.alpha = descend_on_faces(K, problem.y, problem.u, self.alpha, f, [])
        self._f = self._fresh_f()

    def _longest_p(self) -> float:
        return float(np.abs(self._problem.p).max())

    def _fresh_f(self) -> np.ndarray:
        """f = K(alpha y), computed without the accumulated rounding of the steps."""
        return row_sums(self._K, self._problem.coefficients(self.alpha, len(self._K)))

    def _measure(self) -> None:
        gradient = projected_gradient(self._problem, self.alpha, self._f)
        self.violation = float(np.abs(gradient).max())

    def _objective(self, f: np.ndarray) -> float:
        problem = self._problem
        quadratic = float((self.alpha * problem.y) @ f[problem.rows])
        return 0.5 * quadratic + float(problem.p @ self.alpha)

    def result(self) -> SolverResult:
        f = self._fresh_f()
        violation = float(np.abs(projected_gradient(self._problem, self.alpha, f)).max())
        return SolverResult(
            alpha=self.alpha.copy(),
            rho=0.0,
            r=0.0,
            objective=self._objective(f),
            violation=violation,
            iterations=int(self._steps[0]),
            converged=violation < self._tol,
            trace=list(self._trace),
        )


def projected_gradient(problem: DualProblem, alpha: np.ndarray, f: np.ndarray) -> np.ndarray:
    """The gradient, zero if a bound blocks the descent direction; f = K(alpha * y)."""
    gradient = problem.y * f[problem.rows] + problem.p
    is_blocked = ((alpha <= 0.0) & (gradient > 0.0)) | ((alpha >= problem.u) & (gradient < 0.0))
    return np.where(is_blocked, 0.0, gradient)


@kernel
def _visit(K, variables, order, start, end, alpha, f, epoch, steps, records, n_records):
    """Coordinate steps on order[start:end]; returns where it stopped, early if records are full.

    K: float64 (n, n); `variables` are m `DualVariables`, alpha float64 (m,) their values and f
    float64 (n,) the products K(alpha y). steps[0] counts the variables that moved. records:
    float64 (r, 4), empty without a listener, of which n_records[0] are used.
    """
    y, p, u, rows = variables
    for t in range(start, end):
        if (
            records.shape[0] > 0 and n_records[0] >= records.shape[0] - 1
        ):  # the last one is for the pattern move
            return t
        i = order[t]
        row = rows[i]
        gradient = y[i] * f[row] + p[i]
        target = _lowest(alpha[i], gradient, K[row, row], u[i])
        change = target - alpha[i]
        if change == 0.0:
            continue
        alpha[i] = target
        steps[0] += 1
        signed = change * y[i]
        for j in range(len(f)):
            f[j] += signed * K[row, j]
        if records.shape[0] > 0:
            m = n_records[0]
            records[m, 0], records[m, 1] = epoch, i
            records[m, 2], records[m, 3] = gradient, change
            n_records[0] = m + 1
    return end


@kernel
def _lowest(a, gradient, curvature, bound):
    """The value a + d in [0, bound] with the smallest G d + Q d^2 / 2."""
    if curvature > 0.0:
        target = min(max(a - gradient / curvature, 0.0), bound)
    elif bound == np.inf:
        target = 0.0 if gradient > 0.0 else a
    else:
        down, up = -a, bound - a
        falls = gradient * down + 0.5 * curvature * down * down
        rises = gradient * up + 0.5 * curvature * up * up
        target = a
        if falls < min(rises, 0.0):
            target = 0.0
        elif rises < 0.0:
            target = bound
    return target if target < np.inf else a
