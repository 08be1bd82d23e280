"""The codes of columns whose values are spread over many partitions: exactly those of one table.

Distinct values and their weights are found partition by partition, and put together column by
column, on whichever worker the scheduler chooses: neither a worker nor the client holds more than a
block of columns. Weights are whole numbers, so that their sums do not depend on the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.dask.boosting.remote_rows import PartitionRows, new_numbers
from margrove.ensemble.gradient.hist import (
    BYTES_OF_A_LIST,
    BYTES_OF_AN_ENTRY,
    MOST_BINS,
    RARE,
    CodedColumn,
    GradientBins,
    GradientTable,
    bin_categories,
    bin_numbers,
    code_values,
    lay_out,
)
from margrove.grove.table import code_column, copy_columns

__all__ = [
    "ColumnCodes",
    "bins_of",
    "blocks_of_columns",
    "bundles_of",
    "coded_columns",
    "codes_of_column",
    "column_tiles",
    "columns_of_partitions",
    "distinct_values",
    "empty_table",
    "find_conflicts",
    "merged_columns",
    "whole_weight_bits",
    "whole_weights",
]

_COLUMNS_AT_ONCE = 8  # a cache line of float64
_CELLS_AT_ONCE = 1 << 18  # of values that are in the cache while they are looked at
_MOST_TASKS = 4096  # that look for distinct values
_MOST_SPARSE = 4096  # sparse columns of which it is found out who can share a byte


@dataclass(frozen=True)
class ColumnCodes:
    """What the codes of a column stand for, see `GradientBins`.

    omitted     the commonest code where others are rare, -1 elsewhere
    n_entries   rows that have another one
    """

    lows: np.ndarray
    highs: np.ndarray
    of_categories: np.ndarray | None
    omitted: int
    n_entries: int

    @property
    def size(self) -> int:
        return len(self.lows) + 1


@dataclass(frozen=True)
class _Distinct:
    """Distinct values of a column, ascending; rows and weight of each, and rows without."""

    values: np.ndarray
    rows: np.ndarray
    weight: np.ndarray | None
    n_missing: int


def whole_weight_bits(weight: np.ndarray) -> int:
    """By how many bits weights are moved to become whole, see `gradient.hist.tables`."""
    return 52 - len(weight).bit_length() - int(np.frexp(float(weight.max()))[1])


def whole_weights(weight: np.ndarray, bits: int) -> np.ndarray:
    return np.asarray(np.rint(np.ldexp(weight, bits)))


# -- on the workers --


def column_tiles(
    partition: Any, rows: PartitionRows, renumbered: dict[int, np.ndarray], first: int, last: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """The columns first .. last - 1 of some rows of a partition, in tiles of rows.

    Yields a column, the position of the first row of the tile, and its values float64; the next
    tile is written over them.

    renumbered {column: float64 (categories + 1,)}: new numbers of categories.
    """
    if sp.issparse(partition):
        X = rows.of(partition)[:, first:last].tocsc()
        for k in range(last - first):
            values, entries = np.zeros(X.shape[0]), slice(X.indptr[k], X.indptr[k + 1])
            values[X.indices[entries]] = X.data[entries]
            yield first + k, 0, new_numbers(values, renumbered.get(first + k))
        return
    X = np.ascontiguousarray(partition)
    n = X.shape[0] if rows.rows is None else len(rows.rows)
    step = min(max(_CELLS_AT_ONCE // max(last - first, 1), 1), max(n, 1))
    buffer = np.empty((last - first) * step)
    for start in range(0, n, step):
        stop = min(start + step, n)
        some = X[start:stop] if rows.rows is None else X[rows.rows[start:stop]]
        tile = buffer[: (last - first) * (stop - start)].reshape(last - first, stop - start)
        copy_columns(some, first, tile)
        for k in range(last - first):
            yield first + k, start, new_numbers(tile[k], renumbered.get(first + k))


def distinct_values(
    partition: Any,
    rows: PartitionRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
) -> list[_Distinct] | None:
    """Of the columns first .. last - 1 of some rows of a partition; None without rows."""
    if partition.shape[0] == 0 or (rows.rows is not None and len(rows.rows) == 0):
        return None
    tiles: list[list[np.ndarray]] = [[] for _ in range(first, last)]
    for j, _, values in column_tiles(partition, rows, renumbered, first, last):
        tiles[j - first].append(values.copy())
    found = []
    for column in tiles:
        codes, distinct, _ = code_column(np.concatenate(column))
        n = len(distinct)
        counts = np.bincount(codes, minlength=n + 1)
        heavy = None if weight is None else np.bincount(codes, weights=weight, minlength=n)[:n]
        found.append(_Distinct(distinct, counts[:n], heavy, int(counts[n])))
    return found


def merged_columns(
    pieces: Sequence[list[_Distinct] | None], n_categories: np.ndarray, max_bins: int
) -> list[ColumnCodes]:
    """Put the values of all partitions together, and decide which share a code."""
    filled = [piece for piece in pieces if piece is not None]
    return [
        _merged([piece[k] for piece in filled], int(n_categories[k]), max_bins)
        for k in range(len(n_categories))
    ]


def _merged(pieces: list[_Distinct], n_categories: int, max_bins: int) -> ColumnCodes:
    together = np.concatenate([piece.values for piece in pieces])
    codes, values, _ = (
        code_column(together) if len(together) else (np.empty(0, int), together, False)
    )
    n = len(values)
    rows = np.bincount(codes, weights=np.concatenate([piece.rows for piece in pieces]), minlength=n)
    weight = rows
    if pieces[0].weight is not None:
        heavy = np.concatenate([piece.weight for piece in pieces if piece.weight is not None])
        weight = np.bincount(codes, weights=heavy, minlength=n)
    n_missing = sum(piece.n_missing for piece in pieces)
    return codes_of_column(values, values, rows, weight, n_missing, n_categories, max_bins)


def codes_of_column(
    lows: np.ndarray,
    highs: np.ndarray,
    rows: np.ndarray,
    weight: np.ndarray,
    n_missing: int,
    n_categories: int,
    max_bins: int,
) -> ColumnCodes:
    """Decide which values share a code.

    Values ascend, and have rows and weight; several which share one anyway may be given as one,
    from the lowest to the highest.
    """
    places, of_categories = np.arange(len(lows)), None
    if n_categories:
        found = bin_categories(places, lows, n_categories, max_bins, weight)
        codes, lows, of_categories = found
        highs = lows
    else:
        codes, starts, ends = bin_numbers(places, places, max_bins, weight)
        lows, highs = lows[starts], highs[ends]
    sizes = np.bincount(codes, weights=rows, minlength=len(lows) + 1)
    sizes[len(lows)] += n_missing
    omitted, total = int(np.argmax(sizes)), float(sizes.sum())
    n_entries = int(total - sizes[omitted])
    if n_entries >= RARE * total:
        omitted = -1
    return ColumnCodes(lows, highs, of_categories, omitted, n_entries)


def coded_columns(
    partition: Any,
    rows: PartitionRows,
    columns: Sequence[ColumnCodes],
    renumbered: dict[int, np.ndarray],
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Some rows of a partition as codes.

    Returns uint8 (n, dense columns), and of each sparse column the rows int32 that have another
    code than the omitted one, with these codes.
    """
    n = partition.shape[0] if rows.rows is None else len(rows.rows)
    dense = [j for j, column in enumerate(columns) if column.omitted < 0]
    places = {j: place for place, j in enumerate(dense)}
    codes = np.empty((n, len(dense)), np.uint8)
    no_entries = np.empty(0, np.int32), np.empty(0, np.uint8)
    entries = {j: [no_entries] for j in range(len(columns)) if j not in places}
    for j, start, values in column_tiles(partition, rows, renumbered, 0, len(columns)):
        tile_codes = _codes(values, columns[j])
        if j in places:
            codes[start : start + len(tile_codes), places[j]] = tile_codes
        else:
            found = np.flatnonzero(tile_codes != columns[j].omitted).astype(np.int32)
            entries[j].append((found + np.int32(start), tile_codes[found]))
    return codes, [
        (np.concatenate([one for one, _ in pairs]), np.concatenate([other for _, other in pairs]))
        for pairs in entries.values()
    ]


def _codes(values: np.ndarray, column: ColumnCodes) -> np.ndarray:
    if column.of_categories is None:
        return code_values(values, column.lows)
    is_missing = np.isnan(values)
    codes = column.of_categories[np.where(is_missing, 0.0, values).astype(np.int64)]
    return np.where(is_missing, len(column.lows), codes).astype(np.uint8)


def find_conflicts(columns: Sequence[CodedColumn], n: int) -> np.ndarray:
    """uint8 (s, s): which of the sparse columns have entries in the same row."""
    sparse = [column for column in columns if column.rows is not None]
    if not sparse or len(sparse) > _MOST_SPARSE:
        return np.zeros((0, 0), np.uint8)
    starts = np.cumsum([0] + [len(column.codes) for column in sparse])
    rows = np.concatenate([column.rows for column in sparse if column.rows is not None])
    entries = sp.csc_matrix((np.ones(len(rows), np.int32), rows, starts), shape=(n, len(sparse)))
    return np.asarray((entries.T @ entries).toarray() > 0, dtype=np.uint8)


# -- on the client --


def bundles_of(
    columns: Sequence[ColumnCodes], conflicts: np.ndarray, n_rows: int
) -> list[list[int]]:
    """Sparse columns that share a byte, as `gradient.hist.tables.find_bundles` finds them."""
    sparse = [j for j, column in enumerate(columns) if column.omitted >= 0]
    if len(conflicts) != len(sparse):
        return []
    entries = sum(columns[j].n_entries for j in sparse)
    most = int(BYTES_OF_A_LIST + BYTES_OF_AN_ENTRY * entries / max(n_rows, 1))
    bundles: list[list[int]] = []
    sizes: list[int] = []
    taken: list[np.ndarray] = []
    for place, j in enumerate(sparse):
        size = columns[j].size
        for k in range(len(bundles)):
            if sizes[k] + size <= MOST_BINS and not taken[k][place]:
                break
        else:
            if len(bundles) == most or size > MOST_BINS:
                return []
            bundles.append([])
            sizes.append(0)
            taken.append(np.zeros(len(sparse), np.bool_))
            k = len(bundles) - 1
        bundles[k].append(j)
        sizes[k] += size
        taken[k] |= conflicts[place] > 0
    return bundles


def empty_table(
    columns: Sequence[ColumnCodes], bundles: list[list[int]], is_category: np.ndarray
) -> GradientTable:
    """The layout that the tables of all shards have, without rows."""
    nothing, no_rows = np.empty(0, np.uint8), np.empty(0, np.int32)
    empty_columns = [
        CodedColumn(nothing, None if one.omitted < 0 else no_rows, one.omitted, one.lows, one.highs,
                one.of_categories)
        for one in columns
    ]  # fmt: skip
    return lay_out(empty_columns, bundles, 0, is_category)


def bins_of(columns: Sequence[ColumnCodes]) -> GradientBins:
    return GradientBins(
        [column.lows for column in columns],
        [column.highs for column in columns],
        [column.of_categories for column in columns],
        np.array([len(column.lows) for column in columns], np.int64),
    )


def blocks_of_columns(n_columns: int, n_partitions: int) -> list[tuple[int, int]]:
    """First and last of columns that are looked at together; of many partitions more at once."""
    n_blocks = max(1, min(-(-n_columns // _COLUMNS_AT_ONCE), _MOST_TASKS // max(n_partitions, 1)))
    step = -(-n_columns // n_blocks)
    return [(first, min(first + step, n_columns)) for first in range(0, n_columns, step)]


def columns_of_partitions(
    map_each: Callable[..., list[Any]],
    submit: Callable[..., Any],
    rows: Sequence[PartitionRows],
    weights: Sequence[np.ndarray | None],
    renumbered: dict[int, np.ndarray],
    n_categories: np.ndarray,
    max_bins: int,
) -> list[Any]:
    """Futures of the codes of all columns, block by block.

    `map_each(function, arguments)` and `submit(function, *arguments)` make futures, of all
    partitions and of others.
    """
    found = []
    for first, last in blocks_of_columns(len(n_categories), len(rows)):
        pairs = zip(rows, weights, strict=True)
        pieces = map_each(distinct_values, [(*pair, renumbered, first, last) for pair in pairs])
        found.append(submit(merged_columns, pieces, n_categories[first:last], max_bins))
    return found
