"""Numbers and labels as a table for trees: a frame of the same library as the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove._data import LabelCells, NumberCells
from margrove._runtime import require_memory
from margrove.workbench.tables.prepare.column_encoders import TreeColumn

__all__ = ["as_tree_table"]


def as_tree_table(columns: Sequence[TreeColumn], names: list[str], library: str) -> Any:
    """A frame of "polars", "pandas" or "pyarrow"; for other libraries, an array.

    Labels are categories or texts of the frame, None where they are missing.
    """
    make = _MAKERS.get(library)
    return _array(columns) if make is None else make(columns, names)


def _array(columns: Sequence[TreeColumn]) -> np.ndarray:
    n_rows = len(columns[0])
    require_memory(8 * n_rows * len(columns), f"The table of {n_rows} rows", "Use fewer.")
    if all(isinstance(column, NumberCells) for column in columns):
        numbers = np.empty((n_rows, len(columns)))
        for j, column in enumerate(columns):
            assert isinstance(column, NumberCells)
            numbers[:, j] = column.values
        return numbers
    cells = np.empty((n_rows, len(columns)), dtype=object)
    for j, column in enumerate(columns):
        cells[:, j] = _objects(column) if isinstance(column, LabelCells) else column.values
    return cells


def _objects(cells: LabelCells) -> np.ndarray:
    labels = np.empty(len(cells.labels) + 1, dtype=object)
    labels[:-1] = cells.labels
    return labels[cells.codes]


def _polars(columns: Sequence[TreeColumn], names: list[str]) -> Any:
    import polars as pl

    return pl.DataFrame(
        [
            pl.Series(name, _objects(column).tolist(), dtype=pl.String)
            if isinstance(column, LabelCells)
            else pl.Series(name, column.values)
            for name, column in zip(names, columns, strict=True)
        ]
    )


def _pandas(columns: Sequence[TreeColumn], names: list[str]) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(column.codes, categories=column.labels)
            if isinstance(column, LabelCells)
            else column.values
            for name, column in zip(names, columns, strict=True)
        }
    )


def _pyarrow(columns: Sequence[TreeColumn], names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(_objects(column).tolist(), pa.string())
            if isinstance(column, LabelCells)
            else pa.array(column.values)
            for name, column in zip(names, columns, strict=True)
        }
    )


_MAKERS = {"polars": _polars, "pandas": _pandas, "pyarrow": _pyarrow}
