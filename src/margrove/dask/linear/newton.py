"""Newton's method for linear machines whose rows are on a cluster, with the L2 penalty.

    minimise  P(w, b) = 1/2 ||w||^2 + k/2 b^2 + sum_i loss_i(t_i - w.x_i - b)

The method is that of `margrove.margin.solvers.linear.newton`: squared losses have a piecewise
linear gradient. Losses with a kink are smoothed around it, and whenever the smoothed problem is
solved, the smoothing is centred at the dual variables and made narrower (the method of
multipliers). It needs only sums over the rows, which the workers compute (`row_sums`); the client
takes the steps. Several machines take steps together, so that one round of messages serves all.

With few features, systems are summed up, d x d numbers a step, and factorised by the client. With
many features they are solved by conjugate gradients, for which d numbers are sent an iteration.

After each step the dual variables, scaled to be feasible, bound the distance of (w, b) from the
optimum. They stay with the rows: for each group of them (positive or negative, at a bound or not)
workers send the sums of the dual objective, so that the client can scale a group by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from margrove.dask.linear.line_search import LineSearch, conjugate_gradients
from margrove.dask.linear.machine_rows import GROUPS_OF_KINKED, GROUPS_OF_SMOOTH
from margrove.dask.linear.plan import LinearPlan
from margrove.margin.solvers.linear import (
    NEWTON,
    EpochPoint,
    LinearDemand,
    LinearResult,
    solved,
)

__all__ = ["ClusterNewton", "Point", "System"]

System = Literal["direct", "gradients"]

_NUMBERS_AT_ONCE = 4_000_000  # of systems that travel in one message
_LEAST_RESIDUAL = 1e-8  # of conjugate gradients, relative to the gradient


@dataclass
class Point:
    """The state of one machine on the client: its weights and its bounds."""

    number: int
    w: np.ndarray
    b: float
    width: float
    primal: float = np.inf
    dual: float = -np.inf
    best: tuple[np.ndarray, float] = (np.empty(0), 0.0)
    steps: int = 0
    idle: int = 0
    stuck: bool = False
    current_gap: float = np.inf
    of_bend: float = 0.0
    curved: float = 0.0
    balance: float = 0.0
    pull: np.ndarray = field(default_factory=lambda: np.empty(0))  # X'beta
    trace: list[EpochPoint] = field(default_factory=list)

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    def has_converged(self, tol: float) -> bool:
        return self.primal - self.dual <= tol * abs(self.primal)


class ClusterNewton:
    """Newton steps over the machines of one batch; see `margrove._runtime.slices.Process`."""

    unit = "step"

    def __init__(
        self,
        group: Any,
        plan: LinearPlan,
        demand: LinearDemand,
        machines: Sequence[int],
        reach: float,
        *,
        system: System,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """`reach` is the order of the residuals; `start` are weights (k, d) and intercepts."""
        self._group, self._plan, self._demand = group, plan, demand
        self._system = system
        self._reach = reach
        self._has_bias = bool(np.isfinite(plan.bias_price))
        self._price = plan.bias_price if self._has_bias else 0.0
        self.total: int | None = demand.epochs
        coef = np.zeros((len(machines), plan.n_features)) if start is None else start[0]
        intercept = np.zeros(len(machines)) if start is None else start[1]
        intercept = intercept if self._has_bias else np.zeros(len(machines))
        width = 0.0 if plan.is_smooth else reach
        self.points = [
            Point(k, w, float(b), width, best=(w, float(b)))
            for k, w, b in zip(machines, coef, intercept, strict=True)
        ]
        group.call("begin", list(machines), coef, intercept, reduce="none")
        self._measure(self.points)

    @property
    def rounds(self) -> int:
        return max(point.steps for point in self.points)

    @property
    def finished(self) -> bool:
        return not self._active()

    def figures(self) -> dict[str, float]:
        worst = max(point.gap / max(abs(point.primal), 1e-300) for point in self.points)
        return {"relative gap": worst}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One Newton step of each machine that is not solved yet."""
        active = self._active()
        before = [point.gap for point in active]
        slopes = self._step(active)
        self._settle_biases(active)
        for point in active:
            point.steps += 1
        done = [point for point in active if point.has_converged(self._demand.tol)]
        if done:
            self._measure_afresh(done)
        to_move = []
        for point, gap, slope in zip(active, before, slopes, strict=True):
            point.idle = 0 if point.gap < 0.98 * gap else point.idle + 1
            point.stuck = point.idle > NEWTON.patience
            falls = slope < 0.0
            if self._plan.is_smooth:
                point.stuck |= not falls
            elif point.of_bend >= NEWTON.solved * point.current_gap or not falls:
                to_move.append(point)
        self._move_centres([point for point in to_move if self._wants_more(point)])
        return work

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The best weights so far, (k, d), and intercepts, (k,)."""
        coef = np.stack([point.best[0] for point in self.points])
        return coef, np.array([point.best[1] for point in self.points])

    def result(self) -> LinearResult:
        """The result of this batch; dual variables stay on the workers."""
        self._go_to_best(self.points)
        coef, intercept = self.weights()
        return LinearResult(
            coef=coef,
            intercept=intercept,
            primal=np.array([point.primal for point in self.points]),
            dual=np.array([point.dual for point in self.points]),
            violation=np.zeros(len(self.points)),  # computed by the workers; see `fit`
            beta=np.empty((0, len(self.points))),
            epochs=self.rounds,
            converged=np.array([point.has_converged(self._demand.tol) for point in self.points]),
            trace=list(self.points[0].trace) if len(self.points) == 1 else [],
        )

    def _active(self) -> list[Point]:
        return [point for point in self.points if self._wants_more(point)]

    def _wants_more(self, point: Point) -> bool:
        over = point.stuck or point.steps >= self._demand.epochs
        return not over and not point.has_converged(self._demand.tol)

    # -- objectives --

    def _measure(self, points: list[Point], *, recentre: bool = False) -> None:
        """Sets for each point: pull, balance, current_gap, of_bend, curved, both objectives."""
        if not points:
            return
        widths = np.array([point.width for point in points])
        replies = self._group.call("measure", _numbers(points), widths, recentre, reduce="sum")
        better, factors = [], []
        for k, point in enumerate(points):
            duals = _Duals(
                *(replies[name][k] for name in ("masses", "linear", "quadratic", "combined"))
            )
            loss, point.of_bend, point.curved = (float(number) for number in replies["totals"][k])
            point.pull = duals.combined.sum(axis=0)
            point.balance = duals.balance
            primal = 0.5 * float(point.w @ point.w) + 0.5 * self._price * point.b**2 + loss
            if primal < point.primal:
                point.primal, point.best = primal, (point.w, point.b)
            dual, scaling = self._feasible(duals, point.primal)
            point.current_gap = primal - dual
            if dual > point.dual:
                point.dual = dual
                better.append(point)
                factors.append(scaling)
            point.trace.append(EpochPoint(point.steps, point.primal, point.dual))
        if better:
            self._group.call("keep_duals", _numbers(better), np.stack(factors), reduce="none")

    def _feasible(self, duals: _Duals, primal: float) -> tuple[float, np.ndarray]:
        """The dual objective of dual variables made feasible, and the factors that do it."""
        factors = np.ones(len(duals.masses))
        if not self._has_bias:
            return duals.objective(factors), factors
        if self._price > 0.0:
            return duals.objective(factors) - 0.5 * duals.balance**2 / self._price, factors
        heavier = duals.side(duals.balance > 0.0)
        if duals.balance == 0.0:
            return duals.objective(factors), factors
        factors[heavier] = 1.0 - abs(duals.balance) / duals.masses[heavier].sum()
        dual = duals.objective(factors)
        free = heavier.start  # preferred if about as good, since rows at a bound stay there
        if len(duals.masses) == GROUPS_OF_KINKED and duals.masses[free] >= abs(duals.balance):
            other = np.ones(len(duals.masses))
            other[free] = 1.0 - abs(duals.balance) / duals.masses[free]
            its_dual = duals.objective(other)
            if primal - its_dual <= max(self._demand.tol * abs(primal), 2.0 * (primal - dual)):
                return its_dual, other
        return dual, factors

    def _measure_afresh(self, points: list[Point]) -> None:
        """Go to the best point and measure it again, without accumulated rounding errors."""
        self._go_to_best(points)
        for point in points:
            point.primal = np.inf
        self._measure(points)

    def _go_to_best(self, points: list[Point]) -> None:
        for point in points:
            point.w, point.b = point.best
        coef, intercept = _weights(points)
        self._group.call("set_weights", _numbers(points), coef, intercept, reduce="none")

    def _move_centres(self, points: list[Point]) -> None:
        for point in points:
            point.width = max(point.width * NEWTON.shrink, NEWTON.least_width * self._reach)
        self._measure(points, recentre=True)

    # -- a step --

    def _step(self, points: list[Point]) -> list[float]:
        """Take a Newton step for each point; returns the slopes at the start."""
        gradients = [self._gradient(point) for point in points]
        if self._system == "direct":
            steps = self._direct_steps(points, gradients)
        else:
            steps = self._gradient_steps(points, gradients)
        slopes = [float(gradient @ step) for gradient, step in zip(gradients, steps, strict=True)]
        going = [k for k, slope in enumerate(slopes) if slope < 0.0]
        if going:
            chosen = [points[k] for k in going]
            along = np.stack([steps[k] for k in going])
            self._group.call(
                "set_direction", _numbers(chosen), along[:, :-1], along[:, -1], reduce="none"
            )
            self._search(chosen, along, np.array([slopes[k] for k in going]))
        self._measure([points[k] for k in going])
        return slopes

    def _gradient(self, point: Point) -> np.ndarray:
        bias = self._price * point.b - point.balance if self._has_bias else 0.0
        return np.append(point.w - point.pull, bias)

    def _direct_steps(self, points: list[Point], gradients: list[np.ndarray]) -> list[np.ndarray]:
        d = self._plan.n_features
        at_once = max(1, _NUMBERS_AT_ONCE // (d + 1) ** 2)
        steps = []
        for first in range(0, len(points), at_once):
            chosen = points[first : first + at_once]
            replies = self._group.call("curvature", _numbers(chosen), reduce="sum")
            for k, gradient in enumerate(gradients[first : first + at_once]):
                system = np.empty((d + 1, d + 1))
                system[:d, :d] = replies["square"][k]
                system[np.arange(d), np.arange(d)] += 1.0
                bias = self._bias_curvature(float(replies["total"][k]))
                system[d, :d] = system[:d, d] = replies["cross"][k] if self._has_bias else 0.0
                system[d, d] = bias
                steps.append(solved(system, -gradient))
        return steps

    def _bias_curvature(self, total: float) -> float:
        """The curvature in b; 1 if it is zero, or if there is no intercept."""
        curvature = self._price + total if self._has_bias else 0.0
        return curvature if curvature > 0.0 else 1.0

    def _gradient_steps(self, points: list[Point], gradients: list[np.ndarray]) -> list[np.ndarray]:
        replies = self._group.call("curved_squares", _numbers(points), reduce="sum")
        cross = replies["cross"] if self._has_bias else np.zeros_like(replies["cross"])
        bias = np.array([self._bias_curvature(float(total)) for total in replies["total"]])
        diagonal = np.column_stack([replies["squares"] + 1.0, bias])

        def multiplied(chosen: np.ndarray, steps: np.ndarray) -> np.ndarray:
            numbers = [points[k].number for k in chosen]
            inner = self._group.call("curved_products", numbers, steps[:, :-1], reduce="sum")
            last = (cross[chosen] * steps[:, :-1]).sum(axis=1) + bias[chosen] * steps[:, -1]
            weights = inner + steps[:, :-1] + cross[chosen] * steps[:, -1:]
            return np.column_stack([weights, last])

        relative = [point.gap / max(abs(point.primal), 1e-300) for point in points]
        goals = np.clip(np.sqrt(relative), _LEAST_RESIDUAL, 0.1)
        return list(conjugate_gradients(multiplied, diagonal, -np.stack(gradients), goals))

    def _search(self, points: list[Point], steps: np.ndarray, slopes: np.ndarray) -> None:
        """Go to where the slope along each step, which is piecewise linear, is nearly zero."""
        searches = [
            LineSearch(
                straight=float(point.w @ step[:-1]) + self._price * point.b * float(step[-1]),
                bend=float(step[:-1] @ step[:-1]) + self._price * float(step[-1]) ** 2,
                first_slope=float(slope),
            )
            for point, step, slope in zip(points, steps, slopes, strict=True)
        ]
        for _ in range(NEWTON.most_trials):
            active = [k for k, search in enumerate(searches) if not search.is_over]
            if not active:
                break
            pulls = self._group.call(
                "slopes_along",
                [points[k].number for k in active],
                np.array([searches[k].length for k in active]),
                np.array([points[k].width for k in active]),
                reduce="sum",
            )
            for k, (first, second) in zip(active, pulls, strict=True):
                searches[k].update(float(first), float(second))
        lengths = np.array([search.length for search in searches])
        self._group.call("move", _numbers(points), lengths, reduce="none")
        for point, step, length in zip(points, steps, lengths, strict=True):
            point.w = point.w + length * step[:-1]
            point.b = point.b + float(length * step[-1])

    def _settle_biases(self, points: list[Point]) -> None:
        """Find the best b for this w if no row has curvature, so that Newton cannot determine b."""
        if not self._has_bias or self._price > 0.0:
            return
        loose = [point for point in points if point.balance != 0.0 and point.curved == 0.0]
        if not loose:
            return
        ways = np.array([np.copysign(self._reach, point.balance) for point in loose])
        self._group.call("set_bias_direction", _numbers(loose), ways, reduce="none")
        steps = np.zeros((len(loose), self._plan.n_features + 1))
        steps[:, -1] = ways
        slopes = np.array([-point.balance * way for point, way in zip(loose, ways, strict=True)])
        self._search(loose, steps, slopes)
        self._measure(loose)


@dataclass(frozen=True)
class _Duals:
    """Sums over groups of dual variables, g of them; see `MachineRows.measure`."""

    masses: np.ndarray
    linear: np.ndarray
    quadratic: np.ndarray
    combined: np.ndarray

    @property
    def balance(self) -> float:
        """The sum of all dual variables."""
        half = len(self.masses) // 2
        return float(self.masses[:half].sum() - self.masses[half:].sum())

    def side(self, positive: bool) -> slice:
        half = len(self.masses) // 2
        return slice(0, half) if positive else slice(half, GROUPS_OF_SMOOTH * half)

    def objective(self, factors: np.ndarray) -> float:
        """The dual objective of the scaled groups, without the term of the intercept."""
        w = factors @ self.combined
        return float(factors @ self.linear - factors**2 @ self.quadratic - 0.5 * (w @ w))


def _numbers(points: Sequence[Point]) -> list[int]:
    return [point.number for point in points]


def _weights(points: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    coef = np.stack([point.w for point in points])
    return coef, np.array([point.b for point in points])
