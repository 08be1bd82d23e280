"""Grids over a view: cells, and the points in their centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.studio.content import StudioError, View

__all__ = ["Cells", "as_float32", "as_grid", "cells_of"]

_MOST_CELLS = 400  # along an axis


@dataclass(frozen=True)
class Cells:
    """Centres of cells: `x` of the columns from the left, `y` of the rows from the bottom up."""

    x: np.ndarray
    y: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y), len(self.x)

    @property
    def points(self) -> np.ndarray:
        """All centres, shape (rows * columns, 2), row by row from the bottom up."""
        return np.column_stack([np.tile(self.x, len(self.y)), np.repeat(self.y, len(self.x))])

    def coarser(self, most: int) -> tuple[int, int]:
        """Rows and columns of a grid with at most `most` of each."""
        return min(self.shape[0], most), min(self.shape[1], most)


def cells_of(view: View, grid: Any) -> Cells:
    """The cells of a view; `grid` is [rows, columns].

    Examples
    --------
    >>> from margrove.studio.pictures import cells_of
    >>> from margrove.studio.content.scenes import View
    >>> cells_of(View((0.0, 4.0), (0.0, 1.0)), [2, 4]).points.tolist()[:5]
    [[0.5, 0.25], [1.5, 0.25], [2.5, 0.25], [3.5, 0.25], [0.5, 0.75]]
    """
    rows, columns = _checked(grid)
    return Cells(_centres(*view.x, columns), _centres(*view.y, rows))


def as_grid(values: np.ndarray, dtype: Any = np.float32) -> dict[str, Any]:
    """Values of shape (rows, columns) or more as the page expects them."""
    return {
        "values": np.ascontiguousarray(values, dtype=dtype).ravel(),
        "shape": list(values.shape),
    }


def as_float32(values: np.ndarray | None) -> np.ndarray | None:
    """The values as the page expects them; None stays None."""
    return None if values is None else np.asarray(values, dtype=np.float32)


def _checked(grid: Any) -> tuple[int, int]:
    is_pair = isinstance(grid, (list, tuple)) and len(grid) == 2
    if not is_pair or not all(
        isinstance(size, int) and not isinstance(size, bool) and 2 <= size <= _MOST_CELLS
        for size in grid
    ):
        raise StudioError(f"grid must be [rows, columns], each from 2 to {_MOST_CELLS}.")
    return grid[0], grid[1]


def _centres(low: float, high: float, n: int) -> np.ndarray:
    return low + (np.arange(n) + 0.5) * ((high - low) / n)
