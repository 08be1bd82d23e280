"""A table in pieces that are read when they are needed, for example from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["PieceOfRows", "PiecedRows", "renumbered"]

_ROWS_OF_A_TILE = 1 << 14


@dataclass(frozen=True)
class PieceOfRows:
    """Some rows of a larger table.

    read(first, last)   rows first .. last - 1: an array or a CSR matrix
    n_rows              the number of rows that can be read
    chosen              integers, ascending: the rows that belong to the piece; None for all
    """

    read: Callable[[int, int], Any]
    n_rows: int
    chosen: np.ndarray | None = None

    def __len__(self) -> int:
        return self.n_rows if self.chosen is None else len(self.chosen)

    def rows(self, first: int, last: int) -> Any:
        if self.chosen is None:
            return self.read(first, last)
        numbers = self.chosen[first:last]
        if not len(numbers):
            return self.read(0, 0)
        begin = int(numbers[0])
        return self.read(begin, int(numbers[-1]) + 1)[numbers - begin]


@dataclass(frozen=True)
class PiecedRows:
    """A table of numbers, NaN for missing ones, whose rows are those of some pieces.

    new_numbers   for columns of categories that are numbered anew, see `renumbered`
    """

    pieces: Sequence[PieceOfRows]
    n_columns: int
    new_numbers: Mapping[int, np.ndarray] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        return sum(map(len, self.pieces)), self.n_columns

    def __getitem__(self, rows: slice) -> Any:
        """Consecutive rows, as an array or a CSR matrix."""
        start, stop, _ = rows.indices(self.shape[0])
        found, begin = [], 0
        for piece in self.pieces:
            first, last = max(start - begin, 0), min(stop - begin, len(piece))
            if first < last:
                own = renumbered(piece.rows(first, last), self.new_numbers)
                found.append(own.astype(np.float64, copy=False))
            begin += len(piece)
        if not found:
            return np.empty((0, self.n_columns))
        return found[0] if len(found) == 1 else _stacked(found)

    def tiles(self, n_rows: int) -> Iterator[tuple[int, int]]:
        """(first row, row after the last) of tiles of at most `n_rows`, each within a piece."""
        begin = 0
        for piece in self.pieces:
            for first in range(0, len(piece), n_rows):
                yield begin + first, begin + min(first + n_rows, len(piece))
            begin += len(piece)

    def every(self, step: int) -> Any:
        """Every `step`-th row of each piece."""
        tile = max(step, _ROWS_OF_A_TILE // step * step)
        # Copies, because a view would keep the whole tile in memory.
        found = [self[first:last][::step].copy() for first, last in self.tiles(tile)]
        return _stacked(found) if found else np.empty((0, self.n_columns))


def renumbered(X: Any, new_numbers: Mapping[int, np.ndarray]) -> Any:
    """Rows with other numbers of categories: {column: float64 (categories + 1,), the last NaN}."""
    if not new_numbers:
        return X
    X = X.copy()
    for column, numbers in new_numbers.items():
        values = X[:, column]
        X[:, column] = numbers[np.where(np.isnan(values), -1, values).astype(np.int64)]
    return X


def _stacked(tables: Sequence[Any]) -> Any:
    if any(sp.issparse(table) for table in tables):
        return sp.vstack(tables, format="csr")
    return np.concatenate(tables)
