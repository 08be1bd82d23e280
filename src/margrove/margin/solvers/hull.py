"""Maximum margins as geometry: the nearest points of the two classes' convex hulls.

    minimise 1/2 || sum_+ b_i phi(x_i) - sum_- b_i phi(x_i) ||^2
    subject to  sum_+ b = sum_- b = total,   0 <= b_i <= u_i

With u_i >= total these are the convex hulls: the hard margin's plane is orthogonal to the segment
between their nearest points, at its midpoint. Smaller bounds reduce the hulls until they are
apart: that is the nu-SVC (Crisp and Burges, "A geometric interpretation of nu-SVM classifiers",
2000; Bennett and Bredensteiner, "Duality and geometry in SVM classifiers", 2000).

**Algorithm.** With s = y b and f = Ks the problem is: minimise 1/2 s'Ks over two boxes cut by a
plane each. Two moves alternate, as in More and Toraldo, "On the solution of large quadratic
programming problems with bound constraints" (1991):

    project   towards the projection of s - eta f onto the hulls, with the exact best step; eta
              after Barzilai and Borwein. It settles which weights are at a bound; the projection
              is that of Dai and Fletcher (2006).
    face      conjugate gradients among the weights strictly inside their bounds. They end at the
              nearest points of the face, or at the first bound in the way.

Faces are finitely many and the objective falls, so the right face is met; on it conjugate
gradients converge fast. All weights move together, where decomposition methods change two. Where
float64 allows no more progress it ends, and the result says that it has not converged.

**Soft margin.** A C-SVC with bounds C c_i, max c = 1, is a pair of hulls with bounds mu c_i and
total 1: alpha = (C / mu) b. Which mu? If r is half the gap between the classes' offsets, the
margin is 1 when (C / mu) r = 1. As mu grows the hulls grow and r falls, down to 0 where they
meet, so h(mu) = mu / C - r(mu) rises strictly and has one root, however large C is. r may jump,
namely where no weight is inside its bounds; a candidate with weights next to a bound moved onto
it is therefore tried as well. What counts is the C-SVC's own KKT violation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._jit import kernel
from margrove._slices import step_capacity
from margrove.exceptions import InvalidDataError, NotSeparableError
from margrove.margin.problems import DualProblem, c_svc
from margrove.margin.solvers.result import SolverResult, TracePoint

__all__ = [
    "HardMarginProcess",
    "HullDistance",
    "HullProcess",
    "HullStep",
    "SoftMarginProcess",
    "hard_margin",
    "kkt_interval",
    "kkt_offset",
    "project",
    "row_sums",
    "soft_margin",
    "svc_result",
]

_EPS = float(np.finfo(np.float64).eps)
_STEPS_PER_SWEEP = 50
_PATIENCE = 20  # sweeps without progress in the objective or the violation
_DOUBTFUL = 1000.0  # the squared distance is then known to three digits at best
_TERMS_SHOWN = 3


@dataclass(frozen=True)
class HullStep:
    """One move of the two nearest points, by all of the `moved` weights at once."""

    step: int
    on_face: bool
    moved: int
    objective: float
    violation: float


@dataclass(frozen=True)
class HullDistance:
    """How far apart two hulls are, and the distance below which rounding could have made them so.

    distance <= bound means that they are not told from hulls that meet; `is_doubtful` that the
    distance is above the bound, but by so little that the margin has less than three digits.
    """

    distance: float
    bound: float
    is_doubtful: bool


class HullProcess:
    """The nearest points of two reduced hulls, given as a `nu_svc` problem; see `_slices.Process`.

    K    float64 (n, n), the Gram matrix
    tol  on the largest KKT violation within a class, in the units of f = K(alpha * y)
    """

    unit = "sweep"
    s: np.ndarray  # y b
    f: np.ndarray  # K s, and like the next two in units of the largest |K|
    objective: float
    violation: float
    intervals: list[tuple[float, float]]  # of the KKT conditions, a class each

    def __init__(
        self, K: np.ndarray, problem: DualProblem, *, tol: float = 1e-6, max_sweeps: int = 10_000
    ) -> None:
        if not problem.keeps_sum or problem.p.any() or K.shape != (len(problem),) * 2:
            raise ValueError("Hulls are the problem of nu_svc, with one row of K a variable.")
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
        self._turns = 0  # moves of the same kind in succession
        self.steps = 0
        self._trace: list[TracePoint] = []
        self._records: list[HullStep] = []
        self._capacity = step_capacity()
        self._stuck = False
        self._best = (np.inf, np.inf, 0)  # objective, violation, and the sweep that had them
        self._refresh()

    # -- what `drive` asks for --

    @property
    def rounds(self) -> int:
        return self.steps // _STEPS_PER_SWEEP

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
        self._turns += 1
        self._measure()
        if self._is_solved() or self.violation <= self._floor or self.steps % _STEPS_PER_SWEEP == 0:
            self._refresh()
            self._stuck |= self.violation <= self._floor
        if self.steps % _STEPS_PER_SWEEP == 0:
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
        # Without curvature the objective is linear: any longer step would do.
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
        if float(move @ residual) <= 0.0:  # rounding has the better of it: start again
            move = residual
        self._direction, self._squared_residual = move, max(squared, 1e-300)
        product = row_sums(self.K, move) / self.largest
        curvature, descent = float(move @ product), float(move @ residual)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move > 0, self._high - self.s, self._low - self.s) / move
        room[move == 0.0] = np.inf
        reach = float(room.min())
        if descent < reach * curvature:
            self.s = self._within_bounds(self.s + (descent / curvature) * move)
            self.f = self.f + (descent / curvature) * product
        elif reach < np.inf:
            bound = np.where(move > 0, self._high, self._low)
            self.s = np.where(room <= reach, bound, self._within_bounds(self.s + reach * move))
            self.f = self.f + reach * product
            self._direction = None
        return int(np.count_nonzero(move))

    def _choose_next_move(self, free: np.ndarray, was_on_face: bool) -> None:
        """Stay on the face while most of the violation is there, and until a bound is hit."""
        now = (self.s > self._low) & (self.s < self._high)
        spread = max(
            (float(np.ptp(self.f[m[now[m]]])) for m in self._classes if now[m].any()), default=0.0
        )
        is_face_worthwhile = spread > 0.1 * self.violation
        if was_on_face:
            stay = self._direction is not None and self._turns < 4 * int(now.sum()) + 20
            if not (stay and is_face_worthwhile):
                self._direction, self._turns = None, 0
        elif is_face_worthwhile and (self._turns >= 10 or bool((free == now).all())):
            self._direction, self._turns = np.zeros(len(self.s)), 0

    # -- what the weights amount to --

    def _within_bounds(self, s: np.ndarray) -> np.ndarray:
        return np.clip(s, self._low, self._high)

    def _projected(self, z: np.ndarray) -> np.ndarray:
        s = np.empty(len(z))
        for members, total, sign in zip(self._classes, self._sums, (1.0, -1.0), strict=True):
            s[members] = sign * project(sign * z[members], 0.0, self._u[members], total)
        return s

    def _fresh_f(self) -> np.ndarray:
        """f from scratch, without the rounding of all the moves."""
        return row_sums(self.K, self.s) / self.largest

    def _refresh(self) -> None:
        self.f = self._fresh_f()
        self._measure()

    def _measure(self) -> None:
        self.objective = 0.5 * float(self.s @ self.f)
        self.intervals = [kkt_interval(*self._moving(m, self.f)) for m in self._classes]
        self.violation = _violation(self.intervals)

    def _moving(self, members: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, ...]:
        """The values of a class, and which of its weights y b can rise and fall."""
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
        elif self.rounds - sweep >= _PATIENCE:
            self._stuck = True

    def result(self) -> SolverResult:
        """In the scaling of the problem; rho and r are half the sum and difference of offsets."""
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


class HardMarginProcess(HullProcess):
    """The C-SVC without an upper bound on alpha, from the nearest points of the full hulls.

    For weights b the best multiple of them is alpha = 2 b / distance^2, where the functional
    margin of the nearest points is 1. `tol` is on the KKT violation of the C-SVC.

    The hulls meet, as far as float64 can tell, if distance^2 <= 16 n eps max|K|: that much the
    rounding of n products can add up to. `result` then raises `NotSeparableError`.
    """

    def __init__(
        self, K: np.ndarray, signs: np.ndarray, *, tol: float = 1e-6, max_sweeps: int = 10_000
    ) -> None:
        self._svc = c_svc(signs, np.full(len(signs), np.inf))
        super().__init__(K, _hulls(signs, self._svc.u, None), tol=tol, max_sweeps=max_sweeps)

    @property
    def _bound(self) -> float:
        return 16.0 * len(self.s) * _EPS

    @property
    def separation(self) -> HullDistance:
        is_doubtful = self._bound < 2.0 * self.objective <= _DOUBTFUL * self._bound
        return HullDistance(self.distance, float(np.sqrt(self._bound * self.largest)), is_doubtful)

    def _is_solved(self) -> bool:
        # An error v of f is at most 6 v / distance^2 for the C-SVC: both offsets and the scale.
        squared = 2.0 * self.objective
        return squared <= self._bound or 8.0 * self.violation < self._tol * squared

    def result(self) -> SolverResult:
        squared = 2.0 * self.objective
        if squared < -self._bound:
            raise InvalidDataError(
                "The Gram matrix is not positive semidefinite: the squared distance between two "
                f"points is {squared * self.largest:g}. There is no margin to measure."
            )
        if squared <= self._bound:
            raise _not_separable(self.s, self.separation)
        alpha = np.abs(self.s) / (self.objective * self.largest)
        f = row_sums(self.K, alpha * self._svc.y)
        return svc_result(self._svc, alpha, f, self._tol, self.steps, self._trace)


class SoftMarginProcess:
    """The C-SVC with finite bounds C (n,), by a search for the reduction of the hulls.

    A round is one pair of reduced hulls, started from the nearest points of the last.
    """

    unit = "reduction"

    def __init__(
        self,
        K: np.ndarray,
        signs: np.ndarray,
        C: np.ndarray,
        *,
        tol: float = 1e-6,
        max_sweeps: int = 10_000,
        max_reductions: int = 200,
    ) -> None:
        if not np.isfinite(C).all():
            raise ValueError("An infinite C is a hard margin: use HardMarginProcess.")
        self._svc = c_svc(signs, C)
        self._K = np.ascontiguousarray(K, dtype=np.float64)
        self._tol = tol
        self._max_sweeps = max_sweeps
        self.total: int | None = max_reductions
        self._C = float(self._svc.u.max())
        self._shares = self._svc.u / self._C
        self._fullest = 1.0 / float(self._shares.min())  # from here on the hulls are whole
        self._root = _Root()
        self._best: SolverResult | None = None
        self._steps = 0
        self._records: list[HullStep] = []
        self._trace: list[TracePoint] = []
        self._ended = False
        smaller = min(float(self._shares[signs == sign].sum()) for sign in (1, -1))
        self._reduce(1.0 / smaller if smaller > 0.0 else 1.0, None)

    @property
    def rounds(self) -> int:
        return len(self._trace)

    @property
    def finished(self) -> bool:
        return self._ended

    def figures(self) -> dict[str, float]:
        best = np.inf if self._best is None else self._best.violation
        return {"mu": self._mu, "violation": best}

    def read_steps(self) -> list[HullStep]:
        records, self._records = self._records + self._hulls.read_steps(), []
        return records

    def advance(self, work: float) -> float:
        spent = self._hulls.advance(work)
        if self._hulls.finished:
            spent += self._judge()
        return spent

    def result(self) -> SolverResult:
        best = self._best or self._worth(self._scaled())
        return replace(best, iterations=self._steps, trace=list(self._trace))

    def _reduce(self, mu: float, start: np.ndarray | None) -> None:
        self._mu = mu
        hulls = _hulls(self._svc.y, mu * self._shares, start)
        tol = self._tol * mu / (8.0 * self._C)
        self._hulls = HullProcess(self._K, hulls, tol=tol, max_sweeps=self._max_sweeps)

    def _judge(self) -> float:
        """Take the solution of these hulls if it is one of the C-SVC, else reduce anew."""
        hulls = self._hulls
        self._steps += hulls.steps
        self._records += hulls.read_steps()
        alpha = self._scaled()
        snapped = _moved_onto_bounds(self._svc, alpha, self._root.resolution(len(alpha)))
        found = [self._worth(alpha), self._worth(snapped)] + ([self._best] if self._best else [])
        best = self._best = min(found, key=lambda result: result.violation)
        self._root.narrow(self._mu, self._excess())
        mu = self._root.guess(self._mu - self._C * hulls.largest * self._excess(), self._fullest)
        self._trace.append(TracePoint(self._steps, best.objective, best.violation))
        self._ended = best.converged or mu is None or self.rounds >= (self.total or 0)
        if mu is not None and not self._ended:
            self._reduce(mu, hulls.s)
        return 4.0 * len(alpha) ** 2

    def _scaled(self) -> np.ndarray:
        weights = np.abs(self._hulls.s)
        at_bound = weights >= self._mu * self._shares  # rounding must not take them off it
        return np.where(at_bound, self._svc.u, weights * (self._C / self._mu))

    def _worth(self, alpha: np.ndarray) -> SolverResult:
        f = row_sums(self._hulls.K, alpha * self._svc.y)
        return svc_result(self._svc, alpha, f, self._tol, self._steps, [])

    def _excess(self) -> float:
        """h = mu / C - r, for the r nearest to mu / C that these hulls' offsets allow."""
        (low_plus, high_plus), (low_minus, high_minus) = self._hulls.intervals
        ends = (low_plus - high_minus) / 2.0, (high_plus - low_minus) / 2.0
        wanted = self._mu / self._C / self._hulls.largest
        return wanted - float(np.clip(wanted, min(ends), max(ends)))


class _Root:
    """The root of a rising function, from its lower end: regula falsi, bisection where it lags."""

    def __init__(self) -> None:
        self._below: tuple[float, float] | None = None
        self._above: tuple[float, float] | None = None
        self._width = np.inf
        self._lagged = False

    def narrow(self, x: float, h: float) -> None:
        if h < 0.0:
            self._below = (x, h)
        else:
            self._above = (x, h)
        if self._below is not None and self._above is not None:
            width = self._above[0] - self._below[0]
            self._lagged = not self._lagged and width > 0.5 * self._width
            self._width = width

    def resolution(self, n: int) -> float:
        """Weights this close to a bound, as a share of it, may be there for want of precision."""
        if self._below is None or self._above is None:
            return 1e-12
        return max(1e-12, min(1e-3, n * self._width / self._above[0]))

    def guess(self, upper: float, cap: float) -> float | None:
        """Where to look next; `upper` is known not to be below the root. None: no float is left."""
        if self._below is None:
            return None
        (a, low) = self._below
        if self._above is None:
            return cap if a < cap < upper else (upper if upper > a else None)
        (b, high) = self._above
        x = float(np.sqrt(a) * np.sqrt(b)) if self._lagged else a - low * (b - a) / (high - low)
        return x if a < x < b else None


def hard_margin(
    K: np.ndarray, signs: np.ndarray, *, tol: float = 1e-6, max_sweeps: int = 10_000
) -> tuple[SolverResult, HullDistance]:
    """Solve `c_svc` with C = inf; raises `NotSeparableError` with the hulls' common point."""
    process = HardMarginProcess(K, signs, tol=tol, max_sweeps=max_sweeps)
    while not process.finished:
        process.advance(np.inf)
    return process.result(), process.separation


def soft_margin(
    K: np.ndarray, signs: np.ndarray, C: np.ndarray, *, tol: float = 1e-6, max_sweeps: int = 10_000
) -> SolverResult:
    """Solve `c_svc` with finite bounds C (n,)."""
    process = SoftMarginProcess(K, signs, C, tol=tol, max_sweeps=max_sweeps)
    while not process.finished:
        process.advance(np.inf)
    return process.result()


def svc_result(
    problem: DualProblem,
    alpha: np.ndarray,
    f: np.ndarray,
    tol: float,
    iterations: int,
    trace: list[TracePoint],
) -> SolverResult:
    """What alpha is worth as a solution of a `c_svc` problem with a bias; f = K(alpha * y)."""
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
    """The largest value that can fall and the smallest that can rise: in order at a solution.

    Values are the derivatives with respect to y_i alpha_i, and it is that which rises or falls.
    """
    largest = float(values[can_fall].max(initial=-np.inf))
    smallest = float(values[can_rise].min(initial=np.inf))
    return largest, smallest


def _violation(intervals: list[tuple[float, float]]) -> float:
    return max(0.0, *(largest - smallest for largest, smallest in intervals))


def kkt_offset(values: np.ndarray, can_rise: np.ndarray, can_fall: np.ndarray) -> float:
    """The multiplier of sum y alpha: the value of the free variables, else the midpoint."""
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
    """The nearest x to z with low <= x <= high and sum x = total, which must be possible.

    x = clip(z - theta); its sum falls with theta along straight lines between breakpoints.
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
    for _ in range(2):  # theta is as precise as the longest z, the sum has to be as precise as x
        inside = (x > low) & (x < high)
        if inside.any():
            x[inside] += (total - x.sum()) / np.count_nonzero(inside)
            x = np.clip(x, low, high)
    return x


def row_sums(K: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """K @ weights, in an order that no number of threads can change, skipping zeros."""
    out = np.zeros(len(K))
    _add_rows(K, weights, out)
    return out


@kernel
def _add_rows(K, weights, out):
    for j in range(len(weights)):
        weight = weights[j]
        if weight != 0.0:
            for i in range(len(out)):
                out[i] += weight * K[j, i]


def _hulls(signs: np.ndarray, u: np.ndarray, near: np.ndarray | None) -> DualProblem:
    """Both classes sum to one; the start is the point nearest to the signed weights `near`."""
    if not ((signs > 0).any() and (signs < 0).any()):
        raise ValueError("A margin is between two classes, and one of them has no rows.")
    start = np.zeros(len(signs)) if near is None else np.abs(near)
    for members in (signs > 0, signs < 0):
        start[members] = project(start[members], 0.0, u[members], 1.0)
    y = np.asarray(signs, dtype=np.float64)
    zeros = np.zeros(len(y))
    return DualProblem(y=y, p=zeros, u=u, rows=np.arange(len(y)), start=start, keeps_sum=True)


def _moved_onto_bounds(problem: DualProblem, alpha: np.ndarray, near: float) -> np.ndarray:
    """alpha with what is within a share `near` of a bound put there; the free ones balance it."""
    share = alpha / problem.u
    alpha = np.where(share < near, 0.0, np.where(share > 1.0 - near, problem.u, alpha))
    free = (alpha > 0.0) & (alpha < problem.u)
    if free.any():
        signed = problem.y * alpha
        low = np.where(problem.y > 0, 0.0, -problem.u)[free]
        rest = -float(signed[~free].sum())
        signed[free] = project(signed[free], low, low + problem.u[free], rest)
        alpha = np.abs(signed)
    return alpha


def _not_separable(s: np.ndarray, separation: HullDistance) -> NotSeparableError:
    rows = np.flatnonzero(s)
    sides = []
    for sign in (1.0, -1.0):
        members = rows[s[rows] * sign > 0]
        members = members[np.argsort(-np.abs(s[members]), kind="stable")]
        terms = [f"{abs(s[i]):.4g} x[{i}]" for i in members[:_TERMS_SHOWN]]
        more = len(members) - len(terms)
        sides.append(" + ".join(terms) + (f" + {more} more" if more > 0 else ""))
    error = NotSeparableError(
        "No plane separates the classes: in the feature space their convex hulls share the point "
        f"{sides[0]} = {sides[1]} (up to a distance of {separation.distance:.2g}; below "
        f"{separation.bound:.2g} it is rounding). Use a finite C, or a kernel with more features."
    )
    error.rows = rows  # type: ignore[attr-defined]
    error.weights = np.abs(s[rows])  # type: ignore[attr-defined]
    return error
