"""What every solver of linear machines returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["EpochPoint", "LinearDemand", "LinearResult", "better"]


@dataclass(frozen=True)
class LinearDemand:
    """How good a solution must be, and how long it may take.

    tol      on the duality gap relative to the primal objective, of each machine
    epochs   most passes over the data, or most Newton steps
    """

    tol: float = 1e-4
    epochs: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class EpochPoint:
    """Objectives of all machines together after so many epochs, where they were measured."""

    epoch: int
    primal: float
    dual: float


@dataclass(frozen=True)
class LinearResult:
    """Solutions of K machines, with the proof of how good they are.

    coef, intercept   float64 (K, d) and (K,)
    primal, dual      float64 (K,)  objectives; the best possible ones lie between them
    violation         float64 (K,)  the largest violation of the optimality conditions
    beta              float64 (m, K)  dual variables, from which another fit can start
    epochs            passes over the data, or Newton steps; the most of any machine
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

    def part(self, machines: range) -> LinearResult:
        """Some of the machines, without the trace."""
        own = slice(machines.start, machines.stop)
        return LinearResult(
            self.coef[own], self.intercept[own], self.primal[own], self.dual[own],
            self.violation[own], self.beta[:, own], self.epochs, self.converged[own],
        )  # fmt: skip

    @classmethod
    def stacked(cls, parts: Sequence[LinearResult]) -> LinearResult:
        """The machines of several results as one."""
        return cls(
            coef=np.concatenate([part.coef for part in parts]),
            intercept=np.concatenate([part.intercept for part in parts]),
            primal=np.concatenate([part.primal for part in parts]),
            dual=np.concatenate([part.dual for part in parts]),
            violation=np.concatenate([part.violation for part in parts]),
            beta=np.concatenate([part.beta for part in parts], axis=1, dtype=np.float64),
            epochs=max(part.epochs for part in parts),
            converged=np.concatenate([part.converged for part in parts]),
            trace=_merged([part.trace for part in parts]),
        )


def better(found: LinearResult, other: LinearResult | None) -> LinearResult:
    """Of two results of one machine, the one with the smaller gap."""
    return found if other is None or found.gap[0] <= other.gap[0] else other


def _merged(traces: list[list[EpochPoint]]) -> list[EpochPoint]:
    """Sums over machines, each as it was when it was last measured."""
    epochs = sorted({point.epoch for trace in traces for point in trace})
    merged = []
    for epoch in epochs:
        latest = [[point for point in trace if point.epoch <= epoch][-1:] for trace in traces]
        if all(latest):
            primal = sum(point[0].primal for point in latest)
            merged.append(EpochPoint(epoch, primal, sum(point[0].dual for point in latest)))
    return merged
