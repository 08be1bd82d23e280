"""Bins of columns with too many distinct values to gather them: found by refinement.

See `gradient.hist.bin_refinement`: counts of the partitions add up to those of the table. It
usually takes two passes over the rows, and a few thousand numbers a column from each partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np

from margrove.dask.boosting.bins import ColumnCodes, codes_of_column, column_tiles
from margrove.dask.boosting.remote_rows import PartitionRows, new_numbers
from margrove.ensemble.gradient.hist import (
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
from margrove.ensemble.gradient.hist import (
    bin_refinement as cells_module,
)

__all__ = ["refined_columns"]

_COLUMNS_AT_ONCE = 8  # in a block, of which workers hold the cells of some partitions
_BLOCKS_AT_ONCE = 3  # workers count one block while the client examines another
_PARTITIONS_AT_ONCE = 8  # whose cells one task adds up

Intervals = list[tuple[np.ndarray, np.ndarray]]


# -- on the workers --


def sample_partition(
    partition: Any, rows: PartitionRows, step: int, renumbered: dict[int, np.ndarray]
) -> np.ndarray:
    """Every `step`-th of some rows of a partition, float64."""
    sample = rows.of(partition)[::step]
    X = np.array(sample.toarray() if hasattr(sample, "toarray") else sample, dtype=np.float64)
    for column, numbers in renumbered.items():
        X[:, column] = new_numbers(X[:, column], numbers)
    return X


def cells_of_partition(
    partition: Any,
    rows: PartitionRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
    splitters: list[np.ndarray],
) -> list[Cells]:
    """Counts and weights of a partition in the cells of columns first .. last - 1."""
    counters = [
        CellCounter(column_splitters, is_weighted=weight is not None)
        for column_splitters in splitters[first:last]
    ]
    return _counted(counters, column_tiles(partition, rows, renumbered, first, last), first, weight)


def values_of_partition(
    partition: Any,
    rows: PartitionRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
    opened: Intervals,
) -> list[Cells]:
    """The distinct values of a partition in the cells that are to be opened."""
    finders = [ValueFinder(*intervals, is_weighted=weight is not None) for intervals in opened]
    return _counted(finders, column_tiles(partition, rows, renumbered, first, last), first, weight)


def _counted(
    counters: Sequence[CellCounter | ValueFinder],
    tiles: Iterable[tuple[int, int, np.ndarray]],
    first: int,
    weight: np.ndarray | None,
) -> list[Cells]:
    for column, start, values in tiles:
        weight_of_tile = None if weight is None else weight[start : start + len(values)]
        counters[column - first].add(values, weight_of_tile)
    return [counter.cells() for counter in counters]


def all_cells(pieces: Sequence[list[Cells]]) -> list[Cells]:
    """The cells of several partitions, merged column by column."""
    return [merged_cells(column_cells) for column_cells in zip(*pieces, strict=True)]


def all_values(pieces: Sequence[list[Cells]]) -> list[Cells]:
    return [merged_values(column_cells) for column_cells in zip(*pieces, strict=True)]


def filled_cells(cells: list[Cells]) -> list[Cells]:
    return [without_empty(column_cells) for column_cells in cells]


def intervals_to_open(cells: list[Cells], max_bins: int) -> Intervals:
    found = []
    for column_cells in cells:
        opened = cells_to_open(column_cells, max_bins)
        found.append((column_cells.lows[opened], column_cells.highs[opened]))
    return found


def opened_cells(cells: list[Cells], values: list[Cells], max_bins: int) -> list[Cells]:
    """The cells, with the values of those that were opened."""
    return [
        with_values(column_cells, cells_to_open(column_cells, max_bins), found)
        for column_cells, found in zip(cells, values, strict=True)
    ]


def columns_of_cells(
    cells: list[Cells], n_categories: np.ndarray, max_bins: int
) -> list[ColumnCodes]:
    return [
        codes_of_column(
            column_cells.lows,
            column_cells.highs,
            column_cells.rows,
            column_cells.weight,
            column_cells.n_missing,
            int(n),
            max_bins,
        )
        for column_cells, n in zip(cells, n_categories, strict=True)
    ]


# -- on the client --


def refined_columns(
    map_each: Callable[..., list[Any]],
    submit: Callable[..., Any],
    results: Callable[[list[Any]], list[Any]],
    rows: Sequence[PartitionRows],
    n_rows: int,
    weights: Sequence[np.ndarray | None],
    renumbered: dict[int, np.ndarray],
    n_categories: np.ndarray,
    max_bins: int,
) -> list[ColumnCodes]:
    """The codes of all columns; see `columns_of_partitions` for the functions.

    Cells stay on the workers. Columns are processed in blocks, only some of them at a time, because
    the cells of a block take memory there.
    """
    step = -(-n_rows // cells_module.N_SPLITTERS)
    sample = np.concatenate(
        results(
            map_each(
                sample_partition, [(partition_rows, step, renumbered) for partition_rows in rows]
            )
        )
    )
    splitters = submit(
        _identity, [_splitters(sample[:, j], int(n)) for j, n in enumerate(n_categories)]
    )
    sent_rows = [submit(_identity, partition_rows) for partition_rows in rows]
    sent_weights = [None if weight is None else submit(_identity, weight) for weight in weights]
    ends = range(0, len(n_categories), _COLUMNS_AT_ONCE)
    blocks = [(first, min(first + _COLUMNS_AT_ONCE, len(n_categories))) for first in ends]

    def all_partitions(function: Any, merge: Any, block: tuple[int, int], argument: Any) -> Any:
        pairs = zip(sent_rows, sent_weights, strict=True)
        pieces = map_each(function, [(*pair, renumbered, *block, argument) for pair in pairs])
        while len(pieces) > 1:
            groups = range(0, len(pieces), _PARTITIONS_AT_ONCE)
            pieces = [submit(merge, pieces[k : k + _PARTITIONS_AT_ONCE]) for k in groups]
        return pieces[0]

    def refined(block: tuple[int, int]) -> Generator[Any, bool, Any]:
        """Yields the future of the cells to open, and is sent whether there are any."""
        cells = submit(
            filled_cells, all_partitions(cells_of_partition, all_cells, block, splitters)
        )
        while True:
            intervals = submit(intervals_to_open, cells, max_bins)
            if not (yield intervals):
                return submit(columns_of_cells, cells, n_categories[slice(*block)], max_bins)
            values = all_partitions(values_of_partition, all_values, block, intervals)
            cells = submit(opened_cells, cells, values, max_bins)

    columns: dict[int, Any] = {}
    waiting, under_way = deque(enumerate(map(refined, blocks))), deque[tuple[int, Any, Any]]()
    while waiting or under_way:
        if waiting and len(under_way) < _BLOCKS_AT_ONCE:
            k, block = waiting.popleft()
            under_way.append((k, block, next(block)))
            continue
        k, block, intervals = under_way.popleft()
        has_more = any(len(lows) for lows, _ in results([intervals])[0])
        try:
            under_way.append((k, block, block.send(has_more)))
        except StopIteration as end:
            columns[k] = end.value
    return [
        column
        for block_columns in results([columns[k] for k in sorted(columns)])
        for column in block_columns
    ]


def _identity(thing: Any) -> Any:
    """A task that makes a future of a value, so that it is sent once and can be recomputed."""
    return thing


def _splitters(sample: np.ndarray, n_categories: int) -> np.ndarray:
    return np.arange(float(n_categories)) if n_categories else splitters_of(sample)
