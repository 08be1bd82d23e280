"""Bins of columns whose values are in many partitions: exactly those of one table.

Distinct values and their weights are found partition by partition and merged column by column, on
whichever worker the scheduler chooses. Neither a worker nor the client holds more than a block of
columns. Weights are whole numbers, so that their sums do not depend on the partitions.
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
_CELLS_AT_ONCE = 1 << 18  # values in a tile, which stays in the processor's cache
_MOST_TASKS = 4096  # that find distinct values
_MOST_SPARSE = 4096  # sparse columns up to which it is tested which of them can share a byte


@dataclass(frozen=True)
class ColumnCodes:
    """The values of the codes of a column, see `GradientBins`.

    omitted     the most frequent code if others are rare, otherwise -1
    n_entries   the number of rows with another code
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
    """Distinct values of a column, ascending; rows and weight of each, and missing rows."""

    values: np.ndarray
    rows: np.ndarray
    weight: np.ndarray | None
    n_missing: int


def whole_weight_bits(weight: np.ndarray) -> int:
    """The power of two that turns weights into whole numbers, see `gradient.hist.tables`."""
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
    """Distinct values of columns first .. last - 1 in some rows; None if there are no rows."""
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
        weights = None if weight is None else np.bincount(codes, weights=weight, minlength=n)[:n]
        found.append(_Distinct(distinct, counts[:n], weights, int(counts[n])))
    return found


def merged_columns(
    pieces: Sequence[list[_Distinct] | None], n_categories: np.ndarray, max_bins: int
) -> list[ColumnCodes]:
    """Merge the values of all partitions, and decide which values share a code."""
    filled = [piece for piece in pieces if piece is not None]
    return [
        _merged([piece[k] for piece in filled], int(n_categories[k]), max_bins)
        for k in range(len(n_categories))
    ]


def _merged(pieces: list[_Distinct], n_categories: int, max_bins: int) -> ColumnCodes:
    joined = np.concatenate([piece.values for piece in pieces])
    codes, values, _ = code_column(joined) if len(joined) else (np.empty(0, int), joined, False)
    n = len(values)
    rows = np.bincount(codes, weights=np.concatenate([piece.rows for piece in pieces]), minlength=n)
    weight = rows
    if pieces[0].weight is not None:
        weights = np.concatenate([piece.weight for piece in pieces if piece.weight is not None])
        weight = np.bincount(codes, weights=weights, minlength=n)
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

    Values ascend, each with its rows and weight. Several values that share a code in any case may
    be given as one entry, from the lowest to the highest.
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

    Returns uint8 (n, dense columns), and for each sparse column the rows, int32, whose code is not
    the omitted one, with their codes.
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
        (np.concatenate([rows for rows, _ in pairs]), np.concatenate([codes for _, codes in pairs]))
        for pairs in entries.values()
    ]


def _codes(values: np.ndarray, column: ColumnCodes) -> np.ndarray:
    if column.of_categories is None:
        return code_values(values, column.lows)
    is_missing = np.isnan(values)
    codes = column.of_categories[np.where(is_missing, 0.0, values).astype(np.int64)]
    return np.where(is_missing, len(column.lows), codes).astype(np.uint8)


def find_conflicts(columns: Sequence[CodedColumn], n: int) -> np.ndarray:
    """uint8 (s, s): 1 for pairs of sparse columns with entries in the same row."""
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
    """A table without rows, in the layout of the tables of all shards."""
    nothing, no_rows = np.empty(0, np.uint8), np.empty(0, np.int32)
    empty_columns = [
        CodedColumn(nothing, None if column.omitted < 0 else no_rows, column.omitted, column.lows,
                    column.highs, column.of_categories)
        for column in columns
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
    """Ranges of columns that are processed together; more columns if there are many partitions."""
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

    `map_each(function, arguments)` returns futures for all partitions, and
    `submit(function, *arguments)` one future.
    """
    found = []
    for first, last in blocks_of_columns(len(n_categories), len(rows)):
        pairs = zip(rows, weights, strict=True)
        pieces = map_each(distinct_values, [(*pair, renumbered, first, last) for pair in pairs])
        found.append(submit(merged_columns, pieces, n_categories[first:last], max_bins))
    return found
