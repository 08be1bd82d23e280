"""Maximum margins by geometry: the nearest points of the convex hulls of two classes.

    minimise 1/2 || sum_+ b_i phi(x_i) - sum_- b_i phi(x_i) ||^2
    subject to  sum_+ b = sum_- b = total,   0 <= b_i <= u_i

With u_i >= total these are the convex hulls: the hyperplane of the hard margin is orthogonal to the
segment between their nearest points, at its midpoint. Smaller bounds reduce the hulls until they
are disjoint: that is the nu-SVC (Crisp and Burges, "A geometric interpretation of nu-SVM
classifiers", 2000; Bennett and Bredensteiner, "Duality and geometry in SVM classifiers", 2000).

**Algorithm.** With s = y b and f = Ks the problem is: minimise 1/2 s'Ks over two boxes, each
intersected with a hyperplane. Two moves alternate, as in More and Toraldo, "On the solution of
large quadratic programming problems with bound constraints" (1991):

    project   towards the projection of s - eta f onto the hulls, with the exact best step; eta
              after Barzilai and Borwein. This finds the weights at a bound; the projection is that
              of Dai and Fletcher (2006).
    face      conjugate gradients among the weights strictly inside their bounds, up to the nearest
              points of the face, or to the first bound.

There are finitely many faces and the objective falls, so the right face is found; on it conjugate
gradients converge fast. All weights move together, while decomposition methods change two. If
float64 allows no further progress, the process ends, and the result has `converged=False`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, step_capacity
from margrove.margin.solvers.dual.result import SolverResult, TracePoint
from margrove.margin.svm import DualProblem

__all__ = [
    "STEPS_PER_SWEEP",
    "HullProcess",
    "HullStep",
    "kkt_interval",
    "kkt_offset",
    "project",
    "row_sums",
    "svc_result",
]

_EPS = float(np.finfo(np.float64).eps)
STEPS_PER_SWEEP = 50
_MOST_IDLE_SWEEPS = 20  # without progress in the objective or the violation


@dataclass(frozen=True)
class HullStep:
    """One move of the two nearest points; `moved` weights change at once."""

    step: int
    on_face: bool
    moved: int
    objective: float
    violation: float


class HullProcess:
    """The nearest points of two reduced hulls, given as a `nu_svc` problem; see `slices.Process`.

    K    float64 (n, n), the Gram matrix
    tol  on the largest KKT violation within a class, in the units of f = K(alpha * y)
    """

    unit = "sweep"
    s: np.ndarray  # y b
    f: np.ndarray  # K s; f, objective and violation are in units of the largest |K|
    objective: float
    violation: float
    intervals: list[tuple[float, float]]  # of the KKT conditions, one for each class

    def __init__(
        self, K: np.ndarray, problem: DualProblem, *, tol: float = 1e-6, max_sweeps: int = 10_000
    ) -> None:
        if not problem.keeps_sum or problem.p.any() or K.shape != (len(problem),) * 2:
            raise ValueError(
                "HullProcess solves problems of nu_svc, with a row of K for each variable."
            )
        self.K = read_only(np.ascontiguousarray(K, dtype=np.float64))
        self._tol = tol
        self.total: int | None = max_sweeps
        self._u = problem.u
        self._low = np.where(problem.y > 0, 0.0, -problem.u)
        self._high = np.where(problem.y > 0, problem.u, 0.0)
        self._classes = [np.flatnonzero(problem.y == sign) for sign in (1.0, -1.0)]
        self._sums = [float(problem.start[members].sum()) for members in self._classes]
        # In units of the largest |K|, squares of f stay finite.
        self.largest = max(float(self.K.max()), -float(self.K.min())) or 1.0
        self.s = self._projected(problem.y * problem.start)
        self._eta = 1.0
        self._direction: np.ndarray | None = None  # of the conjugate gradients, on a face
        self._squared_residual = 1.0
        self._n_same_moves = 0  # moves of the same kind in succession
        self.steps = 0
        self._trace: list[TracePoint] = []
        self._records: list[HullStep] = []
        self._capacity = step_capacity()
        self._stuck = False
        self._best = (np.inf, np.inf, 0)  # objective, violation, and the sweep that had them
        self._refresh()

    # -- the interface of `slices.Process` --

    @property
    def rounds(self) -> int:
        return self.steps // STEPS_PER_SWEEP

    @property
    def finished(self) -> bool:
        return self._stuck or self._is_solved() or self.rounds >= (self.total or 0)

    def figures(self) -> dict[str, float]:
        return {"distance": self.distance, "violation": self.violation * self.largest}

    def read_steps(self) -> list[HullStep]:
        records, self._records = self._records, []
        return records

    def advance(self, work: float) -> float:
        spent, sweep = 0.0, self.rounds
        while spent < work and self.rounds == sweep and not self.finished:
            if self._capacity and len(self._records) >= self._capacity:
                break
            spent += self._step()
        return spent

    # -- moves --

    def _step(self) -> float:
        on_face = self._direction is not None
        before = self.s
        free = (before > self._low) & (before < self._high)
        moved = self._move_on_face(free) if on_face else self._move_by_projection()
        self.steps += 1
        self._n_same_moves += 1
        self._measure()
        if self._is_solved() or self.violation <= self._floor or self.steps % STEPS_PER_SWEEP == 0:
            self._refresh()
            self._stuck |= self.violation <= self._floor
        if self.steps % STEPS_PER_SWEEP == 0:
            self._end_sweep()
        if self._capacity:
            objective, violation = self.objective * self.largest, self.violation * self.largest
            self._records.append(HullStep(self.steps, on_face, moved, objective, violation))
        self._choose_next_move(free, on_face)
        return (moved + 20.0) * len(self.s)

    def _move_by_projection(self) -> int:
        target = self._projected(self.s - self._eta * self.f)
        move = target - self.s
        product = row_sums(self.K, move) / self.largest
        slope, curvature = float(self.f @ move), float(move @ product)
        step = 1.0 if -slope >= curvature else max(0.0, -slope / curvature)
        self.s = target if step == 1.0 else self._within_bounds(self.s + step * move)
        self.f = self.f + step * product
        length = float(move @ move)
        # Without curvature the objective is linear, and any longer step is better.
        self._eta = length / curvature if curvature > 1e-10 * length else 1e10
        return int(np.count_nonzero(move))

    def _move_on_face(self, free: np.ndarray) -> int:
        residual = np.zeros(len(self.s))
        for members in self._classes:
            inside = members[free[members]]
            if len(inside):
                residual[inside] = self.f[inside].mean() - self.f[inside]
        squared = float(residual @ residual)
        assert self._direction is not None
        move = residual + (squared / self._squared_residual) * self._direction
        if float(move @ residual) <= 0.0:  # rounding dominates: start again
            move = residual
        self._direction, self._squared_residual = move, max(squared, 1e-300)
        product = row_sums(self.K, move) / self.largest
        curvature, descent = float(move @ product), float(move @ residual)
        with np.errstate(divide="ignore", invalid="ignore"):
            to_bound = np.where(move > 0, self._high - self.s, self._low - self.s) / move
        to_bound[move == 0.0] = np.inf
        longest = float(to_bound.min())
        if descent < longest * curvature:
            self.s = self._within_bounds(self.s + (descent / curvature) * move)
            self.f = self.f + (descent / curvature) * product
        elif longest < np.inf:
            bound = np.where(move > 0, self._high, self._low)
            moved = self._within_bounds(self.s + longest * move)
            self.s = np.where(to_bound <= longest, bound, moved)
            self.f = self.f + longest * product
            self._direction = None
        return int(np.count_nonzero(move))

    def _choose_next_move(self, free: np.ndarray, was_on_face: bool) -> None:
        """Stay on the face while most of the violation is there, until a bound is reached."""
        now = (self.s > self._low) & (self.s < self._high)
        spread = max(
            (float(np.ptp(self.f[m[now[m]]])) for m in self._classes if now[m].any()), default=0.0
        )
        is_face_worthwhile = spread > 0.1 * self.violation
        if was_on_face:
            stay = self._direction is not None and self._n_same_moves < 4 * int(now.sum()) + 20
            if not (stay and is_face_worthwhile):
                self._direction, self._n_same_moves = None, 0
        elif is_face_worthwhile and (self._n_same_moves >= 10 or bool((free == now).all())):
            self._direction, self._n_same_moves = np.zeros(len(self.s)), 0

    # -- objective and violation --

    def _within_bounds(self, s: np.ndarray) -> np.ndarray:
        return np.clip(s, self._low, self._high)

    def _projected(self, z: np.ndarray) -> np.ndarray:
        s = np.empty(len(z))
        for members, total, sign in zip(self._classes, self._sums, (1.0, -1.0), strict=True):
            s[members] = sign * project(sign * z[members], 0.0, self._u[members], total)
        return s

    def _fresh_f(self) -> np.ndarray:
        """f = K s, computed without the accumulated rounding of the moves."""
        return row_sums(self.K, self.s) / self.largest

    def _refresh(self) -> None:
        self.f = self._fresh_f()
        self._measure()

    def _measure(self) -> None:
        self.objective = 0.5 * float(self.s @ self.f)
        self.intervals = [kkt_interval(*self._moving(m, self.f)) for m in self._classes]
        self.violation = _violation(self.intervals)

    def _moving(self, members: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, ...]:
        """The values f of a class, and which of its weights y b can rise and which can fall."""
        s = self.s[members]
        return f[members], s < self._high[members], s > self._low[members]

    @property
    def _floor(self) -> float:
        """Differences of f below this are rounding."""
        return 8.0 * _EPS * max(self._sums)

    @property
    def distance(self) -> float:
        return float(np.sqrt(max(0.0, 2.0 * self.objective * self.largest)))

    def _is_solved(self) -> bool:
        return self.violation * self.largest < self._tol

    def _end_sweep(self) -> None:
        point = TracePoint(self.steps, self.objective * self.largest, self.violation * self.largest)
        self._trace.append(point)
        objective, violation, sweep = self._best
        if self.objective < objective - 1e-12 * abs(objective) or self.violation < 0.9 * violation:
            better = min(objective, self.objective), min(violation, self.violation)
            self._best = (*better, self.rounds)
        elif self.rounds - sweep >= _MOST_IDLE_SWEEPS:
            self._stuck = True

    def result(self) -> SolverResult:
        """The current point; rho and r are half the sum and half the difference of the offsets."""
        f = self._fresh_f()
        intervals = [kkt_interval(*self._moving(m, f)) for m in self._classes]
        violation = self.largest * _violation(intervals)
        positive, negative = (self.largest * kkt_offset(*self._moving(m, f)) for m in self._classes)
        return SolverResult(
            alpha=np.abs(self.s),
            rho=(positive + negative) / 2.0,
            r=(positive - negative) / 2.0,
            objective=0.5 * float(self.s @ f) * self.largest,
            violation=violation,
            iterations=self.steps,
            converged=violation < self._tol,
            trace=list(self._trace),
        )


def svc_result(
    problem: DualProblem,
    alpha: np.ndarray,
    f: np.ndarray,
    tol: float,
    iterations: int,
    trace: list[TracePoint],
) -> SolverResult:
    """alpha as the result of a `c_svc` problem with a bias; f = K(alpha * y)."""
    values = f - problem.y  # y_i times the gradient
    can_rise = np.where(problem.y > 0, alpha < problem.u, alpha > 0.0)
    can_fall = np.where(problem.y > 0, alpha > 0.0, alpha < problem.u)
    violation = _violation([kkt_interval(values, can_rise, can_fall)])
    return SolverResult(
        alpha=alpha,
        rho=kkt_offset(values, can_rise, can_fall),
        r=0.0,
        objective=0.5 * float((alpha * problem.y) @ f) - float(alpha.sum()),
        violation=violation,
        iterations=iterations,
        converged=violation < tol,
        trace=list(trace),
    )


def kkt_interval(
    values: np.ndarray, can_rise: np.ndarray, can_fall: np.ndarray
) -> tuple[float, float]:
    """The largest value that can fall and the smallest that can rise, in this order at a solution.

    Values are the derivatives with respect to y_i alpha_i; `can_rise` and `can_fall` say whether
    y_i alpha_i can.
    """
    largest = float(values[can_fall].max(initial=-np.inf))
    smallest = float(values[can_rise].min(initial=np.inf))
    return largest, smallest


def _violation(intervals: list[tuple[float, float]]) -> float:
    return max(0.0, *(largest - smallest for largest, smallest in intervals))


def kkt_offset(values: np.ndarray, can_rise: np.ndarray, can_fall: np.ndarray) -> float:
    """The multiplier of sum y alpha: the mean value of the free variables, else the midpoint."""
    free = can_rise & can_fall
    if free.any():
        return float(values[free].mean())
    largest, smallest = kkt_interval(values, can_rise, can_fall)
    if not np.isfinite(largest):
        return smallest
    if not np.isfinite(smallest):
        return largest
    return (largest + smallest) / 2.0


def project(z: np.ndarray, low: Any, high: Any, total: float) -> np.ndarray:
    """The nearest x to z with low <= x <= high and sum x = total, which must be feasible.

    x = clip(z - theta), whose sum is a piecewise linear, falling function of theta.
    """
    low, high = np.broadcast_to(low, z.shape), np.broadcast_to(high, z.shape)
    edges = np.concatenate([z - low, z - high])
    entering = np.concatenate([np.ones(len(z)), -np.ones(len(z))])
    order = np.argsort(-edges, kind="stable")
    order = order[np.isfinite(edges[order])]  # an infinite bound has no breakpoint
    edges, moving = edges[order], np.cumsum(entering[order])
    sums = np.concatenate([[0.0], np.cumsum(moving[:-1] * -np.diff(edges))]) + low.sum()
    at = max(0, int(np.searchsorted(sums, total)) - 1)
    theta = edges[at] - (total - sums[at]) / max(1.0, moving[at])
    x = np.clip(z - theta, low, high)
    for _ in range(2):  # the precision of theta is that of the largest z; correct the sum
        inside = (x > low) & (x < high)
        if inside.any():
            x[inside] += (total - x.sum()) / np.count_nonzero(inside)
            x = np.clip(x, low, high)
    return x


def row_sums(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """K @ weights, in an order that does not depend on threads, without zero weights."""
    out = np.zeros(len(K))
    _add_rows(K, weights, out)
    return out


@kernel
def _add_rows(K, weights, out):
    """out += K @ weights for symmetric K"""
    for j in range(len(weights)):
        weight = weights[j]
        if weight != 0.0:
            for i in range(len(out)):
                out[i] += weight * K[j, i]
