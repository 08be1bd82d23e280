"""The program of a worker for linear machines: sums over its rows, tile by tile.

Rows in memory are one tile, rows on disk are many. Each tile keeps its values and dual variables. X
is read tile by tile for each method that needs it. Reading dominates the time of these methods, so
`measure` also computes the curvature, which is needed next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import distributed
import numpy as np

from margrove.dask.collective import reduced
from margrove.dask.linear.plan import LinearPlan
from margrove.dask.linear.row_sums import RowSums
from margrove.dask.partitions import ShardRows
from margrove.margin.solvers.linear import MOST_FEATURES

__all__ = ["LinearProgram", "worst_of"]

_NUMBERS_OF_A_ROW = 9  # numbers for each row and machine, if rows are in memory
_BYTES_OF_A_ROW = 48  # the same in bytes, if rows are on disk
_SHARE = 0.3  # of a worker's memory for these, unless there is only one machine
_MOST_NUMBERS = 4_000_000  # of curvature that is computed in advance


class LinearProgram:
    """The rows of one worker; see `collective.worker_group`, and `RowSums` for the methods."""

    takes = "tiles"

    def __init__(self, tiles: list[ShardRows]) -> None:
        self._tiles = [RowSums(tile) for tile in tiles]
        self._is_on_disk = any(tile.problem.is_on_disk for tile in self._tiles)
        self._n_rows = sum(tile.n_rows for tile in tiles)
        self._cancelled = tiles[0].cancelled
        self._curvatures: dict[int, dict[str, np.ndarray]] = {}
        self._looks_ahead = False

    # -- all tiles, one after the other --

    def _each(self, *, with_rows: bool) -> Iterator[RowSums]:
        for tile in self._tiles:
            if self._cancelled.is_set():
                raise InterruptedError("The call was cancelled.")
            if with_rows or tile.needs_rows:
                with tile.problem.in_memory():
                    yield tile
            else:
                yield tile

    def _summed(self, method: str, *arguments: Any, with_rows: bool = False) -> Any:
        total: Any = None
        for tile in self._each(with_rows=with_rows):
            total = _plus(total, getattr(tile, method)(*arguments))
        return total

    def _done(self, method: str, *arguments: Any, with_rows: bool = False) -> None:
        for tile in self._each(with_rows=with_rows):
            getattr(tile, method)(*arguments)

    # -- facts and plan --

    def summarise(self, of_classes: bool, step: int) -> list[dict[str, Any]]:
        """Facts of each tile; reduced as a list."""
        return [tile.problem.summarise(of_classes, step) for tile in self._each(with_rows=True)]

    def largest(self) -> float:
        """The largest absolute value of X; reduced as a maximum."""
        return max(tile.problem.largest() for tile in self._each(with_rows=True))

    def set_plan(self, plan: LinearPlan) -> Any:
        self._plan = plan
        total: Any = None
        for tile in self._tiles:
            total = _plus(total, tile.problem.set_plan(plan))
        return total

    def machines_at_once(self) -> int:
        """How many machines fit into memory; reduced as a minimum."""
        if not self._is_on_disk:
            return max(1, self._plan.n_features // _NUMBERS_OF_A_ROW)
        limit = distributed.get_worker().memory_manager.memory_limit
        n_machines = _SHARE * limit / (_BYTES_OF_A_ROW * self._n_rows) if limit else np.inf
        return max(1, int(min(n_machines, self._plan.n_machines)))

    # -- steps of machines --

    def begin(self, machines: list[int], coef: np.ndarray, intercept: np.ndarray) -> None:
        d = self._plan.n_features
        fits = d <= MOST_FEATURES and d * d * len(machines) <= _MOST_NUMBERS
        self._looks_ahead = self._is_on_disk and fits
        self._curvatures = {}
        self._done("begin", machines, coef, intercept)

    def set_weights(self, machines: list[int], coef: np.ndarray, intercept: np.ndarray) -> None:
        for tile in self._tiles:  # the rows that this needs are read by the next method
            tile.set_weights(machines, coef, intercept)

    def measure(self, machines: list[int], widths: np.ndarray, recentre: bool = False) -> Any:
        total: Any = None
        ahead: Any = None
        for tile in self._each(with_rows=True):
            total = _plus(total, tile.measure(machines, widths, recentre))
            if self._looks_ahead:
                ahead = _plus(ahead, tile.curvature(machines))
                tile.forget_curved()
        if self._looks_ahead:
            for place, k in enumerate(machines):
                self._curvatures[k] = {name: sums[place] for name, sums in ahead.items()}
        return total

    def curvature(self, machines: list[int], columns: np.ndarray | None = None) -> Any:
        if not self._looks_ahead:
            return self._summed("curvature", machines, columns, with_rows=True)
        known = [self._curvatures[k] for k in machines]
        found = {name: np.stack([sums[name] for sums in known]) for name in known[0]}
        if columns is not None:
            found["square"] = found["square"][:, columns[:, None], columns]
            found["cross"] = found["cross"][:, columns]
        return found

    def curved_squares(self, machines: list[int]) -> Any:
        return self._summed("curved_squares", machines, with_rows=True)

    def curved_products(self, machines: list[int], steps: np.ndarray) -> Any:
        return self._summed("curved_products", machines, steps, with_rows=True)

    def set_direction(self, machines: list[int], steps: np.ndarray, bias_steps: np.ndarray) -> None:
        self._done("set_direction", machines, steps, bias_steps, with_rows=True)

    def set_bias_direction(self, machines: list[int], bias_steps: np.ndarray) -> None:
        self._done("set_bias_direction", machines, bias_steps)

    def slopes_along(self, machines: list[int], lengths: np.ndarray, widths: np.ndarray) -> Any:
        return self._summed("slopes_along", machines, lengths, widths)

    def losses_along(self, machines: list[int], lengths: np.ndarray) -> Any:
        return self._summed("losses_along", machines, lengths)

    def move(self, machines: list[int], lengths: np.ndarray) -> None:
        self._done("move", machines, lengths)

    # -- the certificate --

    def keep_duals(self, machines: list[int], factors: np.ndarray) -> None:
        self._done("keep_duals", machines, factors)

    def violations(self, machines: list[int]) -> np.ndarray:
        """The largest violation and its row, (k, 2); reduced as a list."""
        return worst_of([tile.violations(machines) for tile in self._each(with_rows=False)])

    def rows_of(self, k: int) -> dict[str, np.ndarray]:
        """See `RowSums.rows_of`; reduced as a list."""
        tiles = [tile.rows_of(k) for tile in self._each(with_rows=False)]
        return {name: np.concatenate([rows[name] for rows in tiles]) for name in tiles[0]}


def _plus(total: Any, more: Any) -> Any:
    return more if total is None else reduced("sum", [total, more])


def worst_of(violations: list[np.ndarray]) -> np.ndarray:
    """The largest violation of each machine and its row, from (k, 2) of tiles or workers."""
    each = np.array(violations)
    worst: np.ndarray = each[each[:, :, 0].argmax(axis=0), np.arange(each.shape[1])]
    return worst
