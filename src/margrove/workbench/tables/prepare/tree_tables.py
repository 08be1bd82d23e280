"""Numbers and labels as trees take them: a frame of the library that the table came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove._data import LabelCells, NumberCells
from margrove._runtime import require_memory
from margrove.workbench.tables.prepare.column_encoders import TreeColumn

__all__ = ["as_tree_table"]


def as_tree_table(columns: Sequence[TreeColumn], names: list[str], library: str) -> Any:
    """A frame of a library: "polars", "pandas", "pyarrow"; for others, an array.

    Labels are categories or texts of the frame, None where they are missing.
    """
    make = _MAKERS.get(library)
    return _array(columns) if make is None else make(columns, names)


def _array(columns: Sequence[TreeColumn]) -> np.ndarray:
    n_rows = len(columns[0])
    require_memory(8 * n_rows * len(columns), f"The table of {n_rows} rows", "Use fewer.")
    if all(isinstance(own, NumberCells) for own in columns):
        numbers = np.empty((n_rows, len(columns)))
        for j, own in enumerate(columns):
            assert isinstance(own, NumberCells)
            numbers[:, j] = own.values
        return numbers
    cells = np.empty((n_rows, len(columns)), dtype=object)
    for j, own in enumerate(columns):
        cells[:, j] = _objects(own) if isinstance(own, LabelCells) else own.values
    return cells


def _objects(cells: LabelCells) -> np.ndarray:
    labels = np.empty(len(cells.labels) + 1, dtype=object)
    labels[:-1] = cells.labels
    return labels[cells.codes]


def _polars(columns: Sequence[TreeColumn], names: list[str]) -> Any:
    import polars as pl

    return pl.DataFrame(
        [
            pl.Series(name, _objects(own).tolist(), dtype=pl.String)
            if isinstance(own, LabelCells)
            else pl.Series(name, own.values)
            for name, own in zip(names, columns, strict=True)
        ]
    )


def _pandas(columns: Sequence[TreeColumn], names: list[str]) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(own.codes, categories=own.labels)
            if isinstance(own, LabelCells)
            else own.values
            for name, own in zip(names, columns, strict=True)
        }
    )


def _pyarrow(columns: Sequence[TreeColumn], names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(_objects(own).tolist(), pa.string())
            if isinstance(own, LabelCells)
            else pa.array(own.values)
            for name, own in zip(names, columns, strict=True)
        }
    )


_MAKERS = {"polars": _polars, "pandas": _pandas, "pyarrow": _pyarrow}
