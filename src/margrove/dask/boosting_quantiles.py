"""Bins of columns whose distinct values are too many to be brought together: found by refinement.

See `margrove.ensemble.gradient_cells`: what the parts of a table have counted adds up to what the
table has. Two passes over the rows, as a rule, and some thousand numbers a column from each part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from margrove.dask.boosting_bins import ColumnCodes, codes_of_column, column_tiles
from margrove.dask.boosting_rows import PartRows, new_numbers
from margrove.ensemble import gradient_cells as cells_module
from margrove.ensemble.gradient_cells import (
    CellCounter,
    Cells,
    ValueFinder,
    cells_to_open,
    merged_cells,
    merged_values,
    splitters_of,
    with_values,
    without_empty,
)

__all__ = ["refined_columns"]

_COLUMNS_AT_ONCE = 8  # of which workers hold what some parts say
_BLOCKS_AT_ONCE = 3  # of such columns: workers do one while we fetch another
_PARTS_AT_ONCE = 8  # whose cells are added up by one task

Stretches = list[tuple[np.ndarray, np.ndarray]]


# -- on the workers --


def sample_part(
    part: Any, rows: PartRows, step: int, renumbered: dict[int, np.ndarray]
) -> np.ndarray:
    """Every so many rows."""
    own = rows.of(part)[::step]
    X = np.array(own.toarray() if hasattr(own, "toarray") else own, dtype=np.float64)
    for column, numbers in renumbered.items():
        X[:, column] = new_numbers(X[:, column], numbers)
    return X


def cells_of_part(
    part: Any,
    rows: PartRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
    splitters: list[np.ndarray],
) -> list[Cells]:
    """What a part has in the cells of columns first .. last - 1."""
    counters = [CellCounter(own, is_weighted=weight is not None) for own in splitters[first:last]]
    return _counted(counters, column_tiles(part, rows, renumbered, first, last), first, weight)


def values_of_part(
    part: Any,
    rows: PartRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
    opened: Stretches,
) -> list[Cells]:
    """The values that a part has in some cells."""
    finders = [ValueFinder(*own, is_weighted=weight is not None) for own in opened[first:last]]
    return _counted(finders, column_tiles(part, rows, renumbered, first, last), first, weight)


def _counted(
    counters: Sequence[CellCounter | ValueFinder],
    tiles: Iterable[tuple[int, int, np.ndarray]],
    first: int,
    weight: np.ndarray | None,
) -> list[Cells]:
    for column, start, values in tiles:
        own = None if weight is None else weight[start : start + len(values)]
        counters[column - first].add(values, own)
    return [own.cells() for own in counters]


def all_cells(pieces: Sequence[list[Cells]]) -> list[Cells]:
    """Those of several parts, column by column."""
    return [merged_cells(own) for own in zip(*pieces, strict=True)]


def all_values(pieces: Sequence[list[Cells]]) -> list[Cells]:
    return [merged_values(own) for own in zip(*pieces, strict=True)]


# -- on the client --


def refined_columns(
    map_each: Callable[..., list[Any]],
    submit: Callable[..., Any],
    results: Callable[[list[Any]], list[Any]],
    rows: Sequence[PartRows],
    n_rows: int,
    weights: Sequence[np.ndarray | None],
    renumbered: dict[int, np.ndarray],
    n_categories: np.ndarray,
    max_bins: int,
) -> list[ColumnCodes]:
    """What the codes of all columns stand for; see `columns_of_parts` for the functions."""
    step = -(-n_rows // cells_module.N_SPLITTERS)
    sample = np.concatenate(
        results(map_each(sample_part, [(own, step, renumbered) for own in rows]))
    )
    own_rows = [submit(_same, own) for own in rows]
    own_weights = [None if own is None else submit(_same, own) for own in weights]
    d = len(n_categories)

    def ask(function: Callable[..., Any], merge: Callable[..., Any], told: Any) -> list[Cells]:
        """Some columns after the others: what parts say of one takes memory on the workers."""
        found: list[Cells] = []
        waiting: deque[list[Any]] = deque()
        sent = submit(_same, told)
        for first in range(0, d, _COLUMNS_AT_ONCE):
            last = min(first + _COLUMNS_AT_ONCE, d)
            own = zip(own_rows, own_weights, strict=True)
            pieces = map_each(function, [(*pair, renumbered, first, last, sent) for pair in own])
            while len(pieces) > 1:
                groups = range(0, len(pieces), _PARTS_AT_ONCE)
                pieces = [submit(merge, pieces[k : k + _PARTS_AT_ONCE]) for k in groups]
            waiting.append(pieces)
            if len(waiting) == _BLOCKS_AT_ONCE:
                found += results(waiting.popleft())[0]
        return found + [own for pieces in waiting for own in results(pieces)[0]]

    splitters = [_splitters(sample[:, j], int(n)) for j, n in enumerate(n_categories)]
    cells = [without_empty(own) for own in ask(cells_of_part, all_cells, splitters)]
    while True:
        opened = [cells_to_open(own, max_bins) for own in cells]
        if not any(own.any() for own in opened):
            break
        stretches = [
            (own.lows[chosen], own.highs[chosen]) for own, chosen in zip(cells, opened, strict=True)
        ]
        values = ask(values_of_part, all_values, stretches)
        triples = zip(cells, opened, values, strict=True)
        cells = [with_values(*triple) for triple in triples]
    return [
        codes_of_column(own.lows, own.highs, own.rows, own.weight, own.n_missing, int(n), max_bins)
        for own, n in zip(cells, n_categories, strict=True)
    ]


def _same(thing: Any) -> Any:
    """What many tasks need travels once, and is made again when it is lost."""
    return thing


def _splitters(sample: np.ndarray, n_categories: int) -> np.ndarray:
    return np.arange(float(n_categories)) if n_categories else splitters_of(sample)
