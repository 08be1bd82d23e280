"""Sums of one worker over its rows, for linear machines.

The objective of `margrove.margin.linear.problems` is a sum over rows, and so are its gradient, its
curvature and its dual: workers sum over their own rows, the worker group sums over the workers, and
the client takes the steps (`newton`, `l1_newton`). A worker with rows in memory has one tile, a
worker with rows on disk has many and sums over them (`worker_program`). Rows, decision values and
dual variables never leave their worker; for a machine of d features, d x d or d numbers are sent
a step.

Conventions: m rows of weight > 0, d features, machines by number. Replies are stacked over the k
machines of a request, and are summed by the worker group unless a docstring says otherwise.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.dask.linear.machine_rows import MachineRows
from margrove.dask.linear.problem_rows import ProblemRows
from margrove.dask.partitions import ShardRows
from margrove.margin.linear import LossOfRows

__all__ = ["RowSums"]

_TILE_CELLS = 1_000_000


class RowSums:
    """Machines over all rows of a worker in memory, or over a tile of those on disk."""

    def __init__(self, shard: ShardRows) -> None:
        self.problem = ProblemRows(shard)
        self._machines: dict[int, MachineRows] = {}

    @property
    def needs_rows(self) -> bool:
        """Whether the next method needs X, even if it does not in general."""
        return any(machine.needs_rows for machine in self._machines.values())

    # -- steps of machines --

    def begin(self, machines: list[int], coef: np.ndarray, intercept: np.ndarray) -> None:
        """Replace all machines by these, with given weights."""
        self._machines = {}
        for k, w, b in zip(machines, coef, intercept, strict=True):
            loss = partial(self.problem.loss_of, k)
            if not self.problem.is_on_disk:
                loss = partial(_identity, loss())
            self._machines[k] = MachineRows(self.problem, loss)
            self._machines[k].set_weights(w, float(b))

    def set_weights(self, machines: list[int], coef: np.ndarray, intercept: np.ndarray) -> None:
        """Set weights; values are computed from them, without accumulated rounding errors."""
        for k, w, b in zip(machines, coef, intercept, strict=True):
            self._machines[k].set_weights(w, float(b))

    def measure(
        self, machines: list[int], widths: np.ndarray, recentre: bool = False
    ) -> dict[str, np.ndarray]:
        """Losses and dual variables of the machines; see `MachineRows.measure`. Needs X."""
        found = []
        for k, width in zip(machines, widths, strict=True):
            if recentre:
                self._machines[k].recentre()
            found.append(self._machines[k].measure(float(width)))
        return {name: np.stack([sums[name] for sums in found]) for name in found[0]}

    def curvature(
        self, machines: list[int], columns: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """X'DX (k, d, d), X'D1 (k, d) and 1'D1 (k,), of all features or of some. Needs X."""
        chosen = [self._machines[k] for k in machines]
        cross = self._crossed(chosen)
        if columns is None:
            squares = [self.problem.sums.curvature(machine.curved) for machine in chosen]
        else:
            squares = [
                _weighted_square(self.problem.matrix, columns, machine.curved) for machine in chosen
            ]
            cross = cross[:, columns]
        total = np.array([machine.curved.sum() for machine in chosen])
        return {"square": np.stack(squares), "cross": cross, "total": total}

    def forget_curved(self) -> None:
        """Free the curvature, which is not needed before the next `measure`."""
        for machine in self._machines.values():
            machine.forget_curved()

    def curved_squares(self, machines: list[int]) -> dict[str, np.ndarray]:
        """The diagonals (k, d) of X'DX, X'D1 (k, d) and 1'D1 (k,). Needs X."""
        chosen = [self._machines[k] for k in machines]
        weights = np.stack([machine.curved for machine in chosen], axis=1)
        return {
            "squares": _squares(self.problem.matrix, weights).T,
            "cross": self._crossed(chosen),
            "total": weights.sum(axis=0),
        }

    def curved_products(self, machines: list[int], steps: np.ndarray) -> np.ndarray:
        """X'DX p (k, d) of a direction (k, d) each. Needs X."""
        products = [
            self._machines[k].curved * self.problem.sums.products(step)
            for k, step in zip(machines, steps, strict=True)
        ]
        return self.problem.sums.combinations(np.stack(products, axis=1)).T

    def _crossed(self, chosen: list[MachineRows]) -> np.ndarray:
        return self.problem.sums.combinations(
            np.stack([machine.curved for machine in chosen], axis=1)
        ).T

    def set_direction(self, machines: list[int], steps: np.ndarray, bias_steps: np.ndarray) -> None:
        """Set the directions (k, d) and (k,) of line searches and moves. Needs X."""
        for k, step, bias_step in zip(machines, steps, bias_steps, strict=True):
            self._machines[k].set_direction(step, float(bias_step))

    def set_bias_direction(self, machines: list[int], bias_steps: np.ndarray) -> None:
        """Set directions that change only the intercept."""
        for k, bias_step in zip(machines, bias_steps, strict=True):
            self._machines[k].set_bias_direction(float(bias_step))

    def slopes_along(
        self, machines: list[int], lengths: np.ndarray, widths: np.ndarray
    ) -> np.ndarray:
        """Slope and curvature (k, 2) of the losses along the directions, at some lengths."""
        return np.array(
            [
                self._machines[k].slopes_along(float(length), float(width))
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

    def move(self, machines: list[int], lengths: np.ndarray) -> None:
        for k, length in zip(machines, lengths, strict=True):
            self._machines[k].move(float(length))

    # -- the certificate --

    def keep_duals(self, machines: list[int], factors: np.ndarray) -> None:
        """Keep the dual variables, with groups scaled by factors (k, g), as the best so far."""
        for k, machine_factors in zip(machines, factors, strict=True):
            self._machines[k].keep_duals(machine_factors)

    def violations(self, machines: list[int]) -> np.ndarray:
        """The largest violation of the optimality conditions and its row, (k, 2), as a list."""
        found = [self._machines[k].violation() for k in machines]
        numbers = self.problem.numbers
        return np.array([[worst, numbers[row] if row >= 0 else -1] for worst, row in found])

    def rows_of(self, k: int) -> dict[str, np.ndarray]:
        """Values of the certificate for each row of weight > 0; reduced as a list."""
        return self._machines[k].of_rows() | {"rows": self.problem.numbers}


def _identity(loss: LossOfRows) -> LossOfRows:
    return loss


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
