"""Proximal Newton steps for the L1 penalty, for a machine whose rows are on a cluster.

    minimise  F(w, b) = ||w||_1 + k |b| + sum_i loss_i(t_i - w.x_i - b)        squared losses only

The method and its certificate are those of `margin.solvers.linear.l1_newton`: workers sum up
losses, gradient and curvature of their rows (`row_sums`), and the client minimises the parabola
plus the penalty. If there are many features, a step changes only some of them: those with nonzero
weights, and those whose gradient exceeds the penalty most. The certificate is always one of all
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.dask.linear.plan import LinearPlan
from margrove.margin.solvers.linear import (
    L1_NEWTON,
    MOST_FEATURES,
    EpochPoint,
    LinearDemand,
    LinearResult,
    best_l1_dual,
    descend_parabola,
    solved,
)

__all__ = ["ClusterL1Newton"]

_TIGHT = 1e-7
_MORE_FEATURES = 500  # candidates of a step, besides features with nonzero weights


class ClusterL1Newton:
    """Proximal Newton steps over one machine; see `margrove._runtime.slices.Process`."""

    unit = "step"

    def __init__(
        self,
        group: Any,
        plan: LinearPlan,
        demand: LinearDemand,
        machine: int,
        *,
        start: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self._group, self._plan, self._demand, self._number = group, plan, demand, machine
        self.total: int | None = demand.epochs
        self._has_bias = bool(np.isfinite(plan.bias_price))
        # The penalty of each weight, the intercept's last.
        self._penalty = np.ones(plan.n_features + 1)
        self._penalty[-1] = plan.bias_price if self._has_bias else 0.0
        self._w = np.zeros(plan.n_features + 1)
        if start is not None:
            self._w[:-1], self._w[-1] = start[0][0], start[1][0] * self._has_bias
        self.rounds = 0
        self._dual = -np.inf
        self._idle = 0
        self._stuck = False
        self._trace: list[EpochPoint] = []
        group.call("begin", [machine], self._w[None, :-1], self._w[-1:], reduce="none")
        self._measure()

    @property
    def converged(self) -> bool:
        return self._primal - self._dual <= self._demand.tol * abs(self._primal)

    @property
    def finished(self) -> bool:
        return self.converged or self._stuck or self.rounds >= self._demand.epochs

    def figures(self) -> dict[str, float]:
        return {"relative gap": (self._primal - self._dual) / max(abs(self._primal), 1e-300)}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """One proximal Newton step."""
        columns = self._columns()
        step, expected = self._direction(columns)
        before = self._primal - self._dual
        moved = expected < 0.0 and self._move(step, expected)
        self.rounds += 1
        self._measure()
        self._idle = 0 if self._primal - self._dual < 0.99 * before else self._idle + 1
        self._stuck = not moved or self._idle > L1_NEWTON.patience
        return work

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        return self._w[None, :-1].copy(), self._w[-1:].copy()

    def result(self) -> LinearResult:
        return LinearResult(
            coef=self._w[None, :-1].copy(),
            intercept=self._w[-1:].copy(),
            primal=np.array([self._primal]),
            dual=np.array([self._dual]),
            violation=np.zeros(1),  # computed by the workers; see `fit`
            beta=np.empty((0, 1)),
            epochs=self.rounds,
            converged=np.array([self.converged]),
            trace=list(self._trace),
        )

    def _measure(self) -> None:
        """Sets: _gradient of the losses, and both objectives."""
        replies = self._group.call("measure", [self._number], np.zeros(1), reduce="sum")
        sums_of_machine = {name: values[0] for name, values in replies.items()}
        combined = sums_of_machine["combined"].T
        masses = sums_of_machine["masses"]
        self._gradient = -np.append(combined.sum(axis=1), masses[0] - masses[1])
        self._primal = float(self._penalty @ np.abs(self._w)) + float(sums_of_machine["totals"][0])
        price = self._penalty[-1] if self._has_bias else np.inf
        sums = np.concatenate(
            [
                sums_of_machine["totals"][:1],
                masses,
                sums_of_machine["linear"],
                sums_of_machine["quadratic"],
            ]
        )
        dual, up, down = best_l1_dual(combined, sums, price)
        if dual > self._dual:
            self._dual = dual
            factors = np.array([[up, down]])
            self._group.call("keep_duals", [self._number], factors, reduce="none")
        self._trace.append(EpochPoint(self.rounds, self._primal, self._dual))

    def _columns(self) -> np.ndarray | None:
        """The features that the next step may change; None for all."""
        if self._plan.n_features <= MOST_FEATURES:
            return None
        w = self._w[:-1]
        nonzero = np.flatnonzero(w)
        n_candidates = max(_MORE_FEATURES, len(nonzero))
        excess = np.where(w == 0.0, np.abs(self._gradient[:-1]) - 1.0, -np.inf)
        candidates = np.argsort(-excess, kind="stable")[:n_candidates]
        return np.sort(np.concatenate([nonzero, candidates[excess[candidates] > 0.0]]))

    def _direction(self, columns: np.ndarray | None) -> tuple[np.ndarray, float]:
        """The step that minimises parabola plus penalty, and the expected decrease of F."""
        replies = self._group.call("curvature", [self._number], columns, reduce="sum")
        chosen = np.arange(self._plan.n_features) if columns is None else columns
        c = len(chosen)
        system = np.zeros((c + 1, c + 1))
        system[:c, :c] = replies["square"][0]
        if self._has_bias:
            system[c, :c] = system[:c, c] = replies["cross"][0]
            system[c, c] = replies["total"][0]
        diagonal = np.diagonal(system)
        tiny = np.where(diagonal > 0.0, 1e-12 * diagonal, 1.0)
        system[np.arange(c + 1), np.arange(c + 1)] += tiny
        places = np.append(chosen, self._plan.n_features)
        parabola = _Parabola(
            system, self._gradient[places], self._penalty[places], self._w[places], self._has_bias
        )
        # Steps cost messages, sweeps do not; with some features only, loose sweeps do not converge.
        tol = self._demand.tol if columns is None else min(self._demand.tol, _TIGHT)
        new = parabola.minimum(L1_NEWTON.inner_share * tol * abs(self._primal))
        step = np.zeros_like(self._w)
        step[places] = new - self._w[places]
        after = np.abs(self._w + step) - np.abs(self._w)
        return step, float(self._gradient @ step) + float(self._penalty @ after)

    def _move(self, step: np.ndarray, expected: float) -> bool:
        """Halve the step until F falls by a sufficient share of the expected decrease."""
        machines = [self._number]
        self._group.call("set_direction", machines, step[None, :-1], step[-1:], reduce="none")
        length = 1.0
        for _ in range(L1_NEWTON.most_halvings):
            w = self._w + length * step
            losses = self._group.call("losses_along", machines, np.array([length]), reduce="sum")
            primal = float(self._penalty @ np.abs(w)) + float(losses[0])
            if primal <= self._primal + L1_NEWTON.armijo * length * expected:
                self._w = w
                self._group.call("move", machines, np.array([length]), reduce="none")
                return True
            length *= 0.5
        return False


class _Parabola:
    """1/2 z'Az + g'z + penalty'|w + z| over the change z of weights w, the intercept's last."""

    def __init__(
        self,
        system: np.ndarray,
        gradient: np.ndarray,
        penalty: np.ndarray,
        w: np.ndarray,
        has_bias: bool,
    ) -> None:
        self._system, self._gradient, self._penalty, self._w = system, gradient, penalty, w
        self._has_bias = has_bias

    def minimum(self, goal: float) -> np.ndarray:
        """The approximate weights w + z: another sweep would gain no more than `goal`."""
        new = self._w.copy()
        n_variables = len(new) if self._has_bias else len(new) - 1
        slopes = self._gradient.copy()  # of the parabola, at `new`
        at_once = (
            min(L1_NEWTON.sweeps, max(1, int(L1_NEWTON.work_at_once / n_variables**2)))
            if n_variables
            else 1
        )
        for _ in range(
            0, L1_NEWTON.sweeps, at_once
        ):  # in pieces, between which interrupts are handled
            if descend_parabola(
                self._system, slopes, self._penalty, new, n_variables, goal, at_once
            ):
                break
        return self._polished(new)

    def _polished(self, new: np.ndarray) -> np.ndarray:
        """The exact minimum over the nonzero weights, if it does not change their signs."""
        signs = np.sign(new) * (self._penalty > 0.0)
        nonzero = np.flatnonzero(new if self._penalty[-1] > 0.0 else np.append(new[:-1], 1.0))
        nonzero = nonzero if self._has_bias else nonzero[nonzero < len(new) - 1]
        if not len(nonzero):
            return new
        slopes = self._gradient + self._system @ (new - self._w) + self._penalty * signs
        polished = new.copy()
        polished[nonzero] += solved(self._system[np.ix_(nonzero, nonzero)], -slopes[nonzero])
        return polished if (np.sign(polished) * signs >= 0.0).all() else new
