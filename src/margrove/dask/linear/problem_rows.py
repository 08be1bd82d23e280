"""Rows of one worker as a problem: X, and the loss of each row.

X on disk is in memory only inside `with rows.in_memory()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from margrove._data import kernel_rows
from margrove.dask.linear.plan import LinearPlan
from margrove.dask.linear.row_summaries import (
    codes_and_prices,
    prices_of_classes,
    summary_of_rows,
    targets_and_prices,
)
from margrove.dask.partitions import RowsOnDisk, ShardRows
from margrove.margin.kernels import largest_value
from margrove.margin.linear import LossOfRows, hinge_loss, tube_loss
from margrove.margin.solvers.linear import NormalEquations

__all__ = ["ProblemRows"]


class ProblemRows:
    """All rows of a worker in memory, or a tile of those on disk.

    While X is in memory, and there is a plan:

    sums     NormalEquations of the rows of weight > 0
    matrix   X of these rows
    """

    def __init__(self, shard: ShardRows) -> None:
        self._source = shard.X
        self.is_on_disk = isinstance(shard.X, RowsOnDisk)
        self._X: Any = None if self.is_on_disk else shard.X
        self.sums: Any = None
        self.matrix: Any = None
        self._y, self._weight = shard.y, shard.weight
        self._start, self._n = int(shard.start), int(shard.X.shape[0])
        self._n_threads = int(shard.n_threads)
        self._plan: LinearPlan | None = None
        self._targets: np.ndarray | None = None
        self._prices: np.ndarray | None = None
        self._chosen: np.ndarray | None = None

    @contextmanager
    def in_memory(self) -> Iterator[None]:
        """A block in which X is in memory."""
        if not self.is_on_disk:
            yield
            return
        self._X = self._source.read()
        if self._plan is not None:
            self._view_rows()
        try:
            yield
        finally:
            self._X = self.matrix = self.sums = None

    def _view_rows(self) -> None:
        plan, rows = self.plan, self.rows
        X = self._X if plan.scale == 1.0 else self._X * plan.scale
        self.matrix = X if len(rows) == X.shape[0] else X[rows]
        n_threads = self._n_threads
        if plan.n_jobs is not None and plan.n_jobs > 0:
            n_threads = min(n_threads, plan.n_jobs)
        self.sums = NormalEquations(kernel_rows(X), plan.n_features, rows, n_threads=n_threads)

    # -- before there is a plan --

    def summarise(self, of_classes: bool, step: int) -> dict[str, Any]:
        """The summary of the rows, from which the client makes a plan."""
        return summary_of_rows(
            self._X, self._y, self._weight, self._start, of_classes=of_classes, step=step
        )

    def largest(self) -> float:
        """The largest absolute value of X."""
        return largest_value(self._X)

    # -- with a plan --

    @property
    def plan(self) -> LinearPlan:
        assert self._plan is not None
        return self._plan

    def set_plan(self, plan: LinearPlan) -> np.ndarray:
        """Set up the problem; returns the number of rows and the sum of |target|.

        For rows on disk only what is slow to compute is kept: targets, and prices without weights,
        are computed from y, which Dask keeps anyway.
        """
        self._plan = plan
        spread = 0.0
        rows: np.ndarray
        if plan.classes is not None:
            rows, codes, prices = codes_and_prices(self._y, self._weight, plan)
            self._codes = codes.astype(np.min_scalar_type(len(plan.classes)))
            if self.is_on_disk and self._weight is None:
                self._prices_of_classes = prices_of_classes(plan)
            else:
                self._prices = prices
        else:
            rows, targets, prices = targets_and_prices(self._y, self._weight, plan)
            spread = float(np.abs(targets).sum())
            if not self.is_on_disk:
                self._targets, self._prices = targets, prices
        self.n_rows = len(rows)
        if not self.is_on_disk or len(rows) < self._n:
            self._chosen = rows
        if not self.is_on_disk:
            self._view_rows()
        return np.array([len(rows), spread])

    @property
    def rows(self) -> np.ndarray:
        """The rows of weight > 0, as positions in this tile."""
        return np.arange(self._n) if self._chosen is None else self._chosen

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of these rows in the table."""
        return self.rows + self._start

    def loss_of(self, k: int) -> LossOfRows:
        """The losses of one machine."""
        plan = self.plan
        if plan.classes is None:
            if self._targets is None or self._prices is None:
                _, targets, prices = targets_and_prices(self._y, self._weight, plan)
            else:
                targets, prices = self._targets, self._prices
            epsilon = min(float(plan.model.epsilon) * plan.factor, 1e300)
            return tube_loss(targets, prices, epsilon, squared=plan.is_smooth)
        prices = self._prices_of_classes[self._codes] if self._prices is None else self._prices
        positive = self._codes == (1 if plan.n_machines == 1 else k)
        return hinge_loss(np.where(positive, 1.0, -1.0), prices, squared=plan.is_smooth)
