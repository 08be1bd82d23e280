"""The result of every solver of linear machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

__all__ = ["EpochPoint", "LinearDemand", "LinearResult", "better", "merged_traces"]


@dataclass(frozen=True)
class LinearDemand:
    """Tolerance, limit of epochs, and seed of a solver.

    tol      on the duality gap relative to the primal objective, for each machine
    epochs   the maximum number of passes over the data, or of Newton steps
    seed     of the order in which rows or features are visited
    """

    tol: float = 1e-4
    epochs: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class EpochPoint:
    """The sums of the objectives of all machines after an epoch in which they were measured."""

    epoch: int
    primal: float
    dual: float


@dataclass(frozen=True)
class LinearResult:
    """Solutions of K machines, with objectives that prove how good they are.

    coef, intercept   float64 (K, d) and (K,)
    primal, dual      float64 (K,)  objectives; the optimal value lies between them
    violation         float64 (K,)  the largest violation of the optimality conditions
    beta              float64 (m, K)  dual variables, from which another fit can start
    epochs            passes over the data, or Newton steps; the maximum over the machines
    converged         bool (K,)  whether the gap is below the tolerance
    """

    coef: np.ndarray
    intercept: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    violation: np.ndarray
    beta: np.ndarray
    epochs: int
    converged: np.ndarray
    trace: list[EpochPoint] = field(default_factory=list)

    @property
    def gap(self) -> np.ndarray:
        return np.maximum(self.primal - self.dual, 0.0)

    def of_machines(self, machines: range) -> LinearResult:
        """The result of some of the machines, without the trace."""
        k = slice(machines.start, machines.stop)
        return LinearResult(
            self.coef[k], self.intercept[k], self.primal[k], self.dual[k], self.violation[k],
            self.beta[:, k], self.epochs, self.converged[k],
        )  # fmt: skip

    def with_machines(self, machines: range, other: LinearResult) -> LinearResult:
        """The same with another result of some machines, without dual variables and trace."""
        found = replace(self, epochs=max(self.epochs, other.epochs), trace=[])
        for name in ("coef", "intercept", "primal", "dual", "violation", "converged"):
            values = getattr(self, name).copy()
            values[machines.start : machines.stop] = getattr(other, name)
            found = replace(found, **{name: values})
        return found

    @classmethod
    def stacked(cls, results: Sequence[LinearResult]) -> LinearResult:
        """The machines of several results as one."""
        return cls(
            coef=np.concatenate([each.coef for each in results]),
            intercept=np.concatenate([each.intercept for each in results]),
            primal=np.concatenate([each.primal for each in results]),
            dual=np.concatenate([each.dual for each in results]),
            violation=np.concatenate([each.violation for each in results]),
            beta=np.concatenate([each.beta for each in results], axis=1, dtype=np.float64),
            epochs=max(each.epochs for each in results),
            converged=np.concatenate([each.converged for each in results]),
            trace=merged_traces([each.trace for each in results]),
        )


def better(found: LinearResult, other: LinearResult | None) -> LinearResult:
    """Of two results of one machine, the one with the smaller gap."""
    return found if other is None or found.gap[0] <= other.gap[0] else other


def merged_traces(traces: list[list[EpochPoint]]) -> list[EpochPoint]:
    """The sums over machines, with the last measured objectives of each."""
    if len(traces) == 1:
        return list(traces[0])
    epochs = sorted({point.epoch for trace in traces for point in trace})
    merged = []
    for epoch in epochs:
        latest = [[point for point in trace if point.epoch <= epoch][-1:] for trace in traces]
        if all(latest):
            primal = sum(point[0].primal for point in latest)
            merged.append(EpochPoint(epoch, primal, sum(point[0].dual for point in latest)))
    return merged
