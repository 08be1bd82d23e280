"""The rows of a problem in tiles, with what a process keeps of each row.

Rows in memory are one tile. Rows in files are many: a pass reads one after the other, and only some
40 bytes a row and machine stay in memory. On a cluster each member has the tiles of its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from margrove._data import Rows
from margrove.margin.linear import LinearProblem, OneVsRest
from margrove.margin.solvers.linear.row_groups import RowGroups, reading_order
from margrove.margin.solvers.linear.row_losses import RowLosses, is_smooth, losses_of

__all__ = ["StoredRows", "Tile", "TiledProblem", "added", "tiled"]


class StoredRows(Protocol):
    """Some rows of a problem whose X is read whenever a pass needs it."""

    def __len__(self) -> int: ...

    def problem(self) -> LinearProblem | OneVsRest:
        """The problem of these rows without their X, made anew."""

    def read(self) -> tuple[Rows, np.ndarray]:
        """X, and the int64 places of the rows in it."""


Source: TypeAlias = LinearProblem | OneVsRest | StoredRows


@dataclass(frozen=True)
class TiledProblem:
    """A problem of which this member has the rows of some tiles, or none.

    n_machines      of one-vs-rest; one for regression
    is_smooth       whether the losses have a gradient everywhere
    of_classes      whether targets are classes
    has_codes       whether tiles are of one-vs-rest, not of one of its machines
    most_together   how many machines may take steps together, for which there is memory
    by_gradients    whether systems are too large to be formed; see `conjugate_gradients`
    keeps_beta      whether results contain the dual variables of all rows
    """

    tiles: Sequence[Source]
    n_features: int
    bias_price: float
    n_machines: int
    is_smooth: bool
    of_classes: bool
    has_codes: bool
    most_together: int = 8
    by_gradients: bool = False
    keeps_beta: bool = True

    def __len__(self) -> int:
        return sum(map(len, self.tiles))

    def machine(self, k: int) -> TiledProblem:
        """The problem of the k-th machine of one-vs-rest."""
        if not self.has_codes:
            return self
        tiles: list[Any] = [
            tile.machine(k) if isinstance(tile, OneVsRest) else _StoredMachine(tile, k)
            for tile in self.tiles
        ]
        return replace(self, tiles=tiles, n_machines=1, has_codes=False)


def _is_stored(source: Any) -> bool:
    return not isinstance(source, LinearProblem | OneVsRest)


class _StoredMachine:
    """The rows of one machine of one-vs-rest."""

    def __init__(self, rows: Any, k: int) -> None:
        self._rows, self._k = rows, k

    def __len__(self) -> int:
        return len(self._rows)

    def problem(self) -> LinearProblem:
        found: LinearProblem = self._rows.problem().machine(self._k)
        return found

    def read(self) -> tuple[Rows, np.ndarray]:
        found: tuple[Rows, np.ndarray] = self._rows.read()
        return found


def tiled(problem: LinearProblem | OneVsRest | TiledProblem) -> TiledProblem:
    """Any problem as one in tiles."""
    if isinstance(problem, TiledProblem):
        return problem
    single = problem if isinstance(problem, LinearProblem) else None
    return TiledProblem(
        tiles=[problem] if len(problem) else [],
        n_features=problem.n_features,
        bias_price=problem.bias_price,
        n_machines=1 if isinstance(problem, LinearProblem) else problem.n_machines,
        is_smooth=is_smooth(problem),
        of_classes=single is None or 0.0 in (single.loss.low[0], single.loss.high[0]),
        has_codes=single is None,
    )


class Tile:
    """The rows of a tile, and what is kept of them for K machines.

    values, moves   float64 (K, m)  X w + b, and its change by a step
    beta            float64 (n_slots, K, m)  dual variables
    flags           uint8 (2, K, m)  which rows have curvature; see `BorderedSquares`
    """

    def __init__(
        self, source: Any, n_features: int, n_machines: int, n_slots: int, n_threads: int
    ) -> None:
        self._source, self._n_features = source, n_features
        self._n_machines, self._n_threads = n_machines, n_threads
        m = len(source)
        self.is_stored = _is_stored(source)
        if not self.is_stored:
            self._order = reading_order(source.X, n_features, source.rows)
            self._losses = losses_of(source, self._order)
            self._groups = self._groups_of(source.X, source.rows[self._order])
        self.values = np.zeros((n_machines, m))
        self.moves = np.empty((n_machines, m))
        self.beta = np.zeros((n_slots, n_machines, m))
        self.flags = np.zeros((2, n_machines, m), np.uint8)

    def __len__(self) -> int:
        return len(self._source)

    @property
    def order(self) -> np.ndarray:
        """The order of the rows here, as places in the problem."""
        return np.arange(len(self)) if self.is_stored else self._order

    def losses(self) -> RowLosses:
        """The losses of the rows; those of stored rows are computed anew."""
        if self.is_stored:
            return losses_of(self._source.problem(), self.order)
        return self._losses

    def groups(self) -> RowGroups:
        """The rows of X, read if they are stored."""
        return self._groups_of(*self._source.read()) if self.is_stored else self._groups

    def _groups_of(self, X: Rows, rows: np.ndarray) -> RowGroups:
        return RowGroups(
            X, self._n_features, rows, n_columns=self._n_machines, n_threads=self._n_threads
        )


def added(total: np.ndarray | None, part: np.ndarray) -> np.ndarray:
    """The sum over tiles so far, with one more; of one tile it is the same array."""
    return part if total is None else total + part
