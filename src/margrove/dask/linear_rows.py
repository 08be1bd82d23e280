"""What one member of a gang does for a linear machine: sums over the rows that it holds.

The objective of `margrove.margin.linear_problems` is a sum over rows, and so are its gradient, its
curvature and its dual: members add up their own rows, the gang adds up the members, and the client
takes the steps (`linear_newton`, `linear_l1`). Rows, decision values and dual variables never
leave their member; what travels for a machine of d features is d x d numbers a step, or d.

Conventions: m rows of weight > 0, d features, machines are asked for by number. Replies are stacked
over the machines that were asked for, k of them, and are summed by the gang unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import kernel_rows
from margrove.margin.linear_certificate import _AT_BOUND, _losses, _violation
from margrove.margin.linear_problems import LossOfRows, OneVsRest, tube_loss
from margrove.margin.solvers.normal_equations import NormalEquations
from margrove.margin.solvers.primal_newton import _pulls, smoothed_rows, total_loss

__all__ = ["GROUPS_OF_KINKED", "GROUPS_OF_SMOOTH", "LinearPlan", "LinearRows"]

# Dual variables are added up by groups: positive ones, then negative ones; of a loss with a kink
# each of them as those between their bounds and those at one.
GROUPS_OF_SMOOTH, GROUPS_OF_KINKED = 2, 4
_TILE_CELLS = 1_000_000


@dataclass(frozen=True)
class LinearPlan:
    """How rows become a problem in the units of the solver, the same for all members.

    model             an unfitted estimator with the parameters of the fit
    scale             of the features, a power of two
    classes, factors  of a classifier; None for regression
    exponents         powers of two that bring tiny weights, as given and as counted, to about one
    centre, factor    targets are (t - centre) * factor
    n_features        d
    n_jobs            the estimator's; a member takes no more threads than its worker has
    """

    model: Any
    kind: str
    scale: float
    bias_price: float
    n_features: int
    n_jobs: int | None
    exponents: tuple[int, int] = (0, 0)
    classes: np.ndarray | None = None
    factors: np.ndarray | None = None
    centre: float = 0.0
    factor: float = 1.0

    @property
    def n_machines(self) -> int:
        if self.classes is None or len(self.classes) == 2:
            return 1
        return len(self.classes)

    @property
    def is_smooth(self) -> bool:
        return str(self.model.loss).startswith("squared")


class LinearRows:
    """The rows of one member; see `margrove.dask.gang`."""

    def __init__(self, shard: Any) -> None:
        self._X = shard.X
        self._y = shard.y
        self._given_weight = shard.weight
        self._start = int(shard.start)
        self._n_threads = int(shard.n_threads)
        self._machines: dict[int, MachineRows] = {}

    def describe(self, of_classes: bool, step: int) -> dict[str, Any]:
        """Facts of these rows, for the client to make a plan of; combined as a list."""
        from margrove.dask.linear_facts import facts_of_rows

        return facts_of_rows(
            self._X, self._y, self._given_weight, self._start, of_classes=of_classes, step=step
        )

    def largest(self) -> float:
        """The largest absolute value of X; combined as a maximum."""
        from margrove.margin.kernel_blocks import largest_value

        return largest_value(self._X)

    def settle(self, plan: LinearPlan) -> np.ndarray:
        """Make the problem; the number of rows and the sum of |target|."""
        from margrove.dask.linear_facts import codes_and_prices, targets_and_prices

        self._plan = plan
        if plan.classes is not None:
            rows, self._codes, self._prices = codes_and_prices(self._y, self._given_weight, plan)
            spread = 0.0
        else:
            rows, self._targets, self._prices = targets_and_prices(
                self._y, self._given_weight, plan
            )
            spread = float(np.abs(self._targets).sum())
        self._rows = rows
        X = self._X if plan.scale == 1.0 else self._X * plan.scale
        self._view = kernel_rows(X)
        self._matrix = X if len(rows) == X.shape[0] else X[rows]
        self._threads = self._n_threads
        if plan.n_jobs is not None and plan.n_jobs > 0:
            self._threads = min(self._threads, plan.n_jobs)
        self.sums = NormalEquations(self._view, plan.n_features, rows, n_threads=self._threads)
        return np.array([len(rows), spread])

    def begin(self, machines: list[int], coef: np.ndarray, intercept: np.ndarray) -> None:
        """Forget all machines but these, and put them at given weights."""
        self._machines = {}
        for k, w, b in zip(machines, coef, intercept, strict=True):
            self._machines[k] = MachineRows(self.sums, self._loss_of(k), self._plan.is_smooth)
            self._machines[k].put(w, float(b))

    def _loss_of(self, k: int) -> LossOfRows:
        plan = self._plan
        if plan.classes is None:
            epsilon = min(float(plan.model.epsilon) * plan.factor, 1e300)
            return tube_loss(self._targets, self._prices, epsilon, squared=plan.is_smooth)
        norms = np.empty(0)
        problem = OneVsRest(
            self._view, plan.n_features, self._rows, norms, self._codes, self._prices,
            plan.n_machines, plan.is_smooth, plan.bias_price,
        )  # fmt: skip
        return problem.machine(k).loss

    # -- steps of machines --

    def put(self, machines: list[int], coef: np.ndarray, intercept: np.ndarray) -> None:
        """Values of given weights, without the rounding of all the steps that led there."""
        for k, w, b in zip(machines, coef, intercept, strict=True):
            self._machines[k].put(w, float(b))

    def measure(
        self, machines: list[int], widths: np.ndarray, recentre: bool = False
    ) -> dict[str, np.ndarray]:
        """Losses and dual variables where the machines are; see `MachineRows.measure`."""
        found = []
        for k, width in zip(machines, widths, strict=True):
            if recentre:
                self._machines[k].recentre()
            found.append(self._machines[k].measure(float(width)))
        return {name: np.stack([own[name] for own in found]) for name in found[0]}

    def curvature(
        self, machines: list[int], columns: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """X'DX (k, d, d), X'D1 (k, d) and 1'D1 (k,), of all features or of some."""
        chosen = [self._machines[k] for k in machines]
        cross = self._crossed(chosen)
        if columns is None:
            squares = [self.sums.curvature(own.curved) for own in chosen]
        else:
            squares = [_weighted_square(self._matrix, columns, own.curved) for own in chosen]
            cross = cross[:, columns]
        total = np.array([own.curved.sum() for own in chosen])
        return {"square": np.stack(squares), "cross": cross, "total": total}

    def curved_squares(self, machines: list[int]) -> dict[str, np.ndarray]:
        """The diagonals (k, d) of X'DX, X'D1 (k, d) and 1'D1 (k,)."""
        chosen = [self._machines[k] for k in machines]
        weights = np.stack([own.curved for own in chosen], axis=1)
        return {
            "squares": _squares(self._matrix, weights).T,
            "cross": self._crossed(chosen),
            "total": weights.sum(axis=0),
        }

    def curved_products(self, machines: list[int], steps: np.ndarray) -> np.ndarray:
        """X'DX p (k, d) of a direction (k, d) each."""
        products = [
            self._machines[k].curved * self.sums.products(step)
            for k, step in zip(machines, steps, strict=True)
        ]
        return self.sums.combinations(np.stack(products, axis=1)).T

    def _crossed(self, chosen: list[MachineRows]) -> np.ndarray:
        return self.sums.combinations(np.stack([own.curved for own in chosen], axis=1)).T

    def aim(self, machines: list[int], steps: np.ndarray, bias_steps: np.ndarray) -> None:
        """Directions (k, d) and (k,) to look along and to go."""
        for k, step, bias_step in zip(machines, steps, bias_steps, strict=True):
            self._machines[k].aim(step, float(bias_step))

    def aim_bias(self, machines: list[int], bias_steps: np.ndarray) -> None:
        """Directions of the intercept alone."""
        for k, bias_step in zip(machines, bias_steps, strict=True):
            self._machines[k].aim_bias(float(bias_step))

    def look(self, machines: list[int], lengths: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """Slope and curvature (k, 2) of the losses along the directions, at some lengths."""
        return np.array(
            [
                self._machines[k].look(float(length), float(width))
                for k, length, width in zip(machines, lengths, widths, strict=True)
            ]
        )

    def losses_along(self, machines: list[int], lengths: np.ndarray) -> np.ndarray:
        """The summed loss (k,) at some lengths of the directions."""
        return np.array(
            [
                self._machines[k].loss_along(float(length))
                for k, length in zip(machines, lengths, strict=True)
            ]
        )

    def go(self, machines: list[int], lengths: np.ndarray) -> None:
        for k, length in zip(machines, lengths, strict=True):
            self._machines[k].go(float(length))

    # -- the proof --

    def keep(self, machines: list[int], factors: np.ndarray) -> None:
        """The dual variables, their groups (k, g) scaled, are the best so far."""
        for k, own in zip(machines, factors, strict=True):
            self._machines[k].keep(own)

    def violations(self, machines: list[int]) -> np.ndarray:
        """The largest violation of the optimality conditions and its row, (k, 2), as a list."""
        found = [self._machines[k].violation() for k in machines]
        return np.array([[worst, self._rows[row] + self._start if row >= 0 else -1]
                         for worst, row in found])  # fmt: skip

    def rows_of(self, k: int) -> dict[str, np.ndarray]:
        """What a certificate says of each row of weight > 0; combined as a list."""
        return self._machines[k].of_rows() | {"rows": self._rows + self._start}


class MachineRows:
    """One machine over the rows of a member: its losses, its values, its dual variables."""

    def __init__(self, sums: NormalEquations, loss: LossOfRows, is_smooth: bool) -> None:
        self._sums, self._loss, self._is_smooth = sums, loss, is_smooth
        self._values = np.zeros(len(sums))
        self._moves = self._values
        self._centre = np.zeros(len(sums))
        self._beta = self._kept = self._centre
        self.curved = self._centre

    def put(self, w: np.ndarray, b: float) -> None:
        self._values = self._sums.products(w) + b

    def recentre(self) -> None:
        """The bend of the next measure is about where the dual variables are now."""
        self._centre = self._beta

    def measure(self, width: float) -> dict[str, np.ndarray]:
        """Sets: _beta, curved.

        totals     (3,): losses, what the bend adds to the gap, curvature
        masses, linear, quadratic   (g,): of each group of dual variables their absolute sum and
                   the two parts of the dual objective
        combined   (g, d): X' of each group
        """
        m = len(self._sums)
        beta, self.curved = np.empty(m), np.empty(m)
        signed, sums = np.empty((m, 2)), np.zeros(8)
        smoothed_rows(
            *self._loss, self._values, self._centre, width, beta, self.curved, signed, sums
        )
        self._beta = beta
        parts = {"totals": np.array([sums[0], sums[7], self.curved.sum()])}
        if self._is_smooth:
            columns = signed
            parts |= {"masses": sums[1:3], "linear": sums[3:5], "quadratic": sums[5:7]}
        else:
            is_free = self._is_free(beta)
            columns = np.zeros((m, GROUPS_OF_KINKED))
            for side in range(2):
                columns[:, 2 * side] = np.where(is_free, signed[:, side], 0.0)
                columns[:, 2 * side + 1] = np.where(is_free, 0.0, signed[:, side])
            masses = np.abs(columns).sum(axis=0)
            linear = self._loss.target @ columns - self._loss.tube * masses
            parts |= {"masses": masses, "linear": linear, "quadratic": np.zeros(GROUPS_OF_KINKED)}
        return parts | {"combined": self._sums.combinations(columns).T}

    def _is_free(self, beta: np.ndarray) -> np.ndarray:
        """Between the bounds."""
        return (beta > self._loss.low) & (beta < self._loss.high)

    def aim(self, step: np.ndarray, bias_step: float) -> None:
        self._moves = self._sums.products(step) + bias_step

    def aim_bias(self, bias_step: float) -> None:
        self._moves = np.full(len(self._values), bias_step)

    def look(self, length: float, width: float) -> tuple[float, float]:
        first, second = _pulls(*self._loss, self._values, self._moves, length, self._centre, width)
        return float(first), float(second)

    def loss_along(self, length: float) -> float:
        return float(total_loss(*self._loss, self._values + length * self._moves))

    def go(self, length: float) -> None:
        self._values = self._values + length * self._moves

    def keep(self, factors: np.ndarray) -> None:
        beta = self._beta
        if self._is_smooth:
            up, down = factors
        else:
            free = self._is_free(beta)
            up = np.where(free, factors[0], factors[1])
            down = np.where(free, factors[2], factors[3])
        self._kept = np.where(beta > 0.0, up, down) * beta

    def violation(self) -> tuple[float, int]:
        """The largest, and the place of its row."""
        if not len(self._kept):
            return 0.0, -1
        return _violation(self._loss, self._kept, self._loss.target - self._values)

    def of_rows(self) -> dict[str, np.ndarray]:
        """In the units of the solver: dual variables, values, and what they miss by."""
        loss, beta = self._loss, self._kept
        bound = np.maximum(loss.high, -loss.low)
        at_bound = np.isfinite(bound) & (np.abs(beta) >= bound * (1 - _AT_BOUND)) & (beta != 0)
        slack = _losses(loss, loss.target - self._values)[0] if len(beta) else beta
        return {"alpha": beta, "decision": self._values, "errors": slack, "is_bounded": at_bound}


def _weighted_square(X: Any, columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """X'DX of some columns."""
    rows = np.flatnonzero(weight)
    chosen = X[rows][:, columns]
    root = np.sqrt(weight[rows])
    if sp.issparse(chosen):
        scaled = sp.diags_array(root) @ chosen
        return np.asarray((scaled.T @ scaled).toarray())
    chosen = chosen * root[:, None]
    return np.asarray(chosen.T @ chosen)


def _squares(X: Any, weights: np.ndarray) -> np.ndarray:
    """The squares of X's columns, summed with weights (m, k): (d, k)."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).T @ weights)
    total = np.zeros((X.shape[1], weights.shape[1]))
    step = max(1, _TILE_CELLS // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        total += (X[first : first + step] ** 2).T @ weights[first : first + step]
    return total
