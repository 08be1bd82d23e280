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

Machines over the same rows take their steps together, so that X is read once for all of them.

All that is needed of rows are sums and maxima. If they are those of all members of a collective,
all members take the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import ALONE, Collective, run_tiles
from margrove.margin.linear import LinearProblem, OneVsRest
from margrove.margin.solvers.linear.newton.conjugate_gradients import conjugate_gradients
from margrove.margin.solvers.linear.newton.line_search import Line
from margrove.margin.solvers.linear.newton.machine_rows import MachineRows
from margrove.margin.solvers.linear.newton.newton_steps import NEWTON, NewtonMachine, spread_of
from margrove.margin.solvers.linear.newton.row_tiles import TiledProblem, tiled
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult, merged_traces

__all__ = ["MOST_FEATURES", "NewtonProcess"]

MOST_FEATURES = 1500  # with more, the systems take too long to factorise
_IDLE_ROUNDS = 5  # after which X'DX is summed afresh
_LEAST_RESIDUAL, _LARGEST_RESIDUAL = 1e-8, 0.1  # of conjugate gradients
_LARGE_SYSTEM = 150  # features from which on systems of several machines are solved on threads


class NewtonProcess:
    """Newton steps over some machines of a problem, by default over all; see `slices.Process`."""

    unit = "step"

    def __init__(
        self,
        problem: LinearProblem | OneVsRest | TiledProblem,
        demand: LinearDemand,
        *,
        machines: range | None = None,
        start: LinearResult | None = None,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> None:
        rows = tiled(problem)
        machines = range(rows.n_machines) if machines is None else machines
        self._demand = demand
        self.total: int | None = demand.epochs
        self._n_threads = n_threads
        self._is_smooth, self._by_gradients = rows.is_smooth, rows.by_gradients
        self._is_alone = collective is ALONE
        self._rows = MachineRows(rows, machines, n_threads=n_threads, collective=collective)
        reach = self._width_of(problem, of_classes=rows.of_classes)
        self._machines = [
            NewtonMachine(
                number=number,
                w=np.zeros(problem.n_features),
                price=problem.bias_price,
                reach=reach,
                width=0.0 if self._is_smooth else reach,
                tol=demand.tol,
            )
            for number in range(len(machines))
        ]
        if start is not None:
            self._begin_at(start)
        self._measure(self._machines)

    def _begin_at(self, start: LinearResult) -> None:
        """Start at the solution of a similar problem.

        If the dual variables of its rows are known, too, with a small smoothing width.
        """
        for machine in self._machines:
            machine.w = start.coef[machine.number]
            machine.b = float(start.intercept[machine.number]) if machine.has_bias else 0.0
            if not self._is_smooth and self._is_alone:
                machine.width *= NEWTON.shrink
                machine.centre_slot = 1
                self._rows.set_beta(machine.number, 1, start.beta[:, machine.number])
        self._rows.set_values(*_points(self._machines))

    @property
    def rounds(self) -> int:
        return max(machine.rounds for machine in self._machines)

    @property
    def n_finished(self) -> int:
        return len(self._machines) - len(self._running())

    def rounds_of_machines(self) -> list[int]:
        return [machine.rounds for machine in self._machines]

    @property
    def finished(self) -> bool:
        return not self._running()

    def _running(self) -> list[NewtonMachine]:
        most = self._demand.epochs
        return [
            machine
            for machine in self._machines
            if not machine.converged and not machine.is_stuck and machine.rounds < most
        ]

    def figures(self) -> dict[str, float]:
        return {"relative gap": max(machine.relative_gap for machine in self._machines)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One Newton step of each machine that is not finished."""
        running = self._running()
        if not running:
            return 0.0
        self._set_directions(running)
        moving = [machine for machine in running if machine.slope < 0.0]
        lengths = {}
        if moving:
            numbers = _numbers(moving)
            steps = np.stack([machine.step for machine in moving])
            bias_steps = np.array([machine.bias_step for machine in moving])
            self._rows.set_moves(numbers, steps, bias_steps)
            lengths = self._search(moving, [machine.line_of_step() for machine in moving])
            for machine in moving:
                machine.move(lengths[machine.number])
        before = [machine.gap for machine in running]
        for machine in running:
            machine.rounds += 1
        self._measure(running, lengths)
        self._settle_biases([machine for machine in running if machine.lacks_bias])
        self._measure_afresh([machine for machine in running if machine.converged])
        for machine, gap in zip(running, before, strict=True):
            machine.end_round(gap)
            if machine.idle == _IDLE_ROUNDS:
                self._rows.forget_squares(machine.number)
        if not self._is_smooth:
            self._move_centres(
                [each for each in running if each.is_smoothed_solved and not each.converged]
            )
        return float(len(self._rows)) * len(running) * len(running[0].w)

    def result(self) -> LinearResult:
        machines, found = self._machines, self.result_so_far()
        numbers = _numbers(machines)
        self._rows.set_moves(numbers, found.coef, found.intercept)
        slots = np.array([machine.best_slot for machine in machines])
        beta, violation = self._rows.best(
            numbers, slots, np.stack([machine.factors for machine in machines])
        )
        return replace(found, beta=beta, violation=violation)

    def result_so_far(self) -> LinearResult:
        """The same without dual variables and violations, which need a pass over the rows."""
        machines = self._machines
        _, w, b = _points(machines, best=True)
        return LinearResult(
            coef=w,
            intercept=b,
            primal=np.array([machine.primal for machine in machines]),
            dual=np.array([machine.dual for machine in machines]),
            violation=np.full(len(machines), np.nan),
            beta=np.empty((0, len(machines))),
            epochs=self.rounds,
            converged=np.array([machine.converged for machine in machines]),
            trace=merged_traces([machine.trace for machine in machines]),
        )

    # -- a step --

    def _measure(
        self, machines: Sequence[NewtonMachine], lengths: dict[int, float] | None = None
    ) -> None:
        """Move the values by a share of the moves, and measure both objectives there."""
        if not machines:
            return
        for machine in machines:
            machine.take_slot(self._rows.n_slots, is_smooth=self._is_smooth)
        sums, combined = self._rows.measure(
            _numbers(machines),
            np.array([(lengths or {}).get(machine.number, 0.0) for machine in machines]),
            *_smoothing(machines),
            np.array([machine.slot for machine in machines]),
        )
        for k, machine in enumerate(machines):
            machine.take(sums[k], combined[k])

    def _measure_afresh(self, machines: Sequence[NewtonMachine]) -> None:
        """Go to the best points and measure them without the accumulated rounding of the steps."""
        if not machines:
            return
        for machine in machines:
            machine.go_to_best()
        self._rows.set_values(*_points(machines))
        self._measure(machines)

    def _set_directions(self, machines: Sequence[NewtonMachine]) -> None:
        if self._by_gradients:
            self._set_directions_by_gradients(machines)
            return
        squares = self._rows.squares(_numbers(machines), _smoothing(machines)[0])
        if len(machines) == 1:
            machines[0].set_direction(squares[0])
            return
        is_large = len(machines[0].w) >= _LARGE_SYSTEM

        def solve(k: int) -> None:
            machines[k].set_direction(squares[k])

        run_tiles(solve, len(machines), self._n_threads if is_large else 1)

    def _set_directions_by_gradients(self, machines: Sequence[NewtonMachine]) -> None:
        numbers, curved = _numbers(machines), self._rows.curved
        gradients = np.stack([machine.gradient() for machine in machines])
        widths = _smoothing(machines)[0]
        scale = 1.0 / np.where(widths > 0.0, widths, 1.0)[:, None]
        ridge = np.ones_like(gradients)
        ridge[:, -1] = [machine.price for machine in machines]
        diagonal = ridge + scale * curved.diagonals(numbers)
        # Without an intercept, or where it has a slope only, its equation is b = -gradient.
        lone = np.array([not machine.has_bias for machine in machines]) | (diagonal[:, -1] <= 0.0)
        diagonal[lone, -1] = ridge[lone, -1] = 1.0

        def multiplied(which: np.ndarray, vectors: np.ndarray) -> np.ndarray:
            inner = vectors.copy()
            inner[lone[which], -1] = 0.0
            inner = scale[which] * curved.products(numbers[which], inner)
            inner[lone[which], -1] = 0.0
            return np.asarray(ridge[which] * vectors + inner)

        goals = np.array([np.sqrt(machine.relative_gap) for machine in machines])
        goals = np.clip(goals, _LEAST_RESIDUAL, _LARGEST_RESIDUAL)
        steps = conjugate_gradients(multiplied, diagonal, -gradients, goals)
        for machine, step, gradient in zip(machines, steps, gradients, strict=True):
            machine.set_step(step, gradient)

    def _search(self, machines: Sequence[NewtonMachine], lines: Sequence[Line]) -> dict[int, float]:
        """The lengths of the steps of machines, whose moves are set."""
        numbers = _numbers(machines)
        lengths = self._rows.search(numbers, lines, *_smoothing(machines))
        return dict(zip(numbers.tolist(), lengths, strict=True))

    def _width_of(self, problem: Any, *, of_classes: bool) -> float:
        """The size of the residuals: 2 for classes, the spread of the targets for regression.

        At w = 0 all rows are then within the smoothed range, and the first step is least squares.
        The spread is not used for classes, because it is tiny if one class is rare.
        """
        if of_classes:
            return 2.0
        if self._is_alone and isinstance(problem, LinearProblem):
            return spread_of(problem.loss.target)
        spread = self._rows.mean_deviation()
        return spread if spread > 0.0 else 1.0

    def _settle_biases(self, machines: Sequence[NewtonMachine]) -> None:
        """The best b for this w, where no row has curvature, so that Newton's method cannot find b.

        This is a line search that does not read X.
        """
        if not machines:
            return
        lines = [machine.line_of_bias() for machine in machines]
        for machine in machines:
            self._rows.set_bias_moves(machine.number, machine.bias_step)
        lengths = self._search(machines, lines)
        for machine in machines:
            machine.b += lengths[machine.number] * machine.bias_step
        self._measure(machines, lengths)

    def _move_centres(self, machines: Sequence[NewtonMachine]) -> None:
        for machine in machines:
            machine.move_centre()
        self._measure(machines)


def _numbers(machines: Sequence[NewtonMachine]) -> np.ndarray:
    return np.array([machine.number for machine in machines], np.int64)


def _points(
    machines: Sequence[NewtonMachine], *, best: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of machines, and their current or best w (a, d) and b (a,)."""
    points = [machine.best if best else (machine.w, machine.b) for machine in machines]
    return _numbers(machines), np.stack([w for w, _ in points]), np.array([b for _, b in points])


def _smoothing(machines: Sequence[NewtonMachine]) -> tuple[np.ndarray, np.ndarray]:
    """The widths of the smoothing, and the places of its centres."""
    widths = np.array([machine.width for machine in machines])
    return widths, np.array([machine.centre_slot for machine in machines])
