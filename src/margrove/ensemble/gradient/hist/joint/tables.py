"""The binned table of rows that are with several members of a collective.

The bins are exactly those of one table with all rows: see `bin_refinement`, whose counts of rows
add up over members. All members have the same layout. A member has one byte for each cell of its
rows, a third of what `tables` takes, where a second copy makes local fits faster; the values of its
rows are read in tiles, and need not be in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime import Collective, require_memory, run_tiles
from margrove.ensemble.gradient.hist.binning import (
    RARE,
    CellCounter,
    Cells,
    CodedColumn,
    GradientBins,
    GradientTable,
    ValueFinder,
    bin_categories,
    bin_numbers,
    bins_of,
    cells_to_open,
    choose_bundles,
    code_values,
    fill_bundle,
    layout_of,
    lists_of,
    merged_values,
    splitters_of,
    with_values,
    without_empty,
)
from margrove.ensemble.gradient.pieced_rows import PiecedRows
from margrove.grove.table import copy_columns

__all__ = ["joint_bins_and_table"]

_MOST_SPLITTERS, _FEWEST_SPLITTERS = 8192, 256
_CELLS_OF_A_SAMPLE = 1 << 23
_COLUMNS_AT_ONCE = 64  # whose cells are counted together
_CELLS_OF_A_TILE = 1 << 18  # values in a tile, which stays in the processor's cache
_MOST_COMPARED = 4096  # sparse columns up to which it is tested which of them can share a byte
_NO_CODES, _NO_ROWS = np.empty(0, np.uint8), np.empty(0, np.int32)


def joint_bins_and_table(
    rows: PiecedRows,
    n_categories: np.ndarray,
    *,
    max_bins: int,
    weight: np.ndarray | None,
    n_threads: int,
    collective: Collective,
    copies: np.ndarray | None = None,
    least_samples: int = 0,
) -> tuple[GradientBins, GradientTable]:
    """The bins of all rows, and the table of the rows of this member; see `bins_and_table`.

    Rows are not counted by their copies, so with copies no column is left out.
    """
    n, d = rows.shape
    require_memory(1.0 * n * d, "The codes of all columns", "Drop columns, or use more workers.")
    weight = None if weight is None else _whole_weights(weight, collective)
    columns, n_entries = _columns(rows, n_categories, max_bins, weight, n_threads, collective)
    least_rows = least_samples if copies is None else 0
    kept = [
        j for j, column in enumerate(columns) if column.omitted < 0 or n_entries[j] >= least_rows
    ]
    table = _table(
        rows,
        columns,
        kept,
        sum(n_entries[j] for j in kept),
        n_categories > 0,
        n_threads,
        collective,
    )
    return bins_of(columns), table


def _whole_weights(weight: np.ndarray, collective: Collective) -> np.ndarray:
    """Weights as whole numbers, see `tables`."""
    largest, n = np.array([weight.max(initial=0.0)]), np.array([len(weight)])
    collective.max(largest)
    collective.sum(n)
    bits = 52 - int(n[0]).bit_length() - int(np.frexp(largest[0])[1])
    return np.asarray(np.rint(np.ldexp(weight, bits)))


# -- bins --


def _columns(
    rows: PiecedRows,
    n_categories: np.ndarray,
    max_bins: int,
    weight: np.ndarray | None,
    n_threads: int,
    collective: Collective,
) -> tuple[list[CodedColumn], list[int]]:
    """All columns, without codes of rows; and for each the number of codes that are not omitted."""
    n_all, d = np.array([rows.shape[0]]), rows.n_columns
    collective.sum(n_all)
    n_splitters = max(_FEWEST_SPLITTERS, min(_MOST_SPLITTERS, _CELLS_OF_A_SAMPLE // max(d, 1)))
    sample = rows.every(max(1, int(n_all[0]) // n_splitters))
    found: list[tuple[CodedColumn, int]] = []
    for first in range(0, d, _COLUMNS_AT_ONCE):
        block = slice(first, min(first + _COLUMNS_AT_ONCE, d))
        splitters = _splitters(sample[:, block], n_categories[block], collective)
        own = _refined(
            rows, block, splitters, n_categories[block].tolist(), max_bins, weight, n_threads,
            collective,
        )  # fmt: skip
        of_members = _joined(collective.gather(own))
        found += [of_members[k] for k in range(block.stop - first)]
    return [column for column, _ in found], [n for _, n in found]


def _splitters(sample: Any, n_categories: np.ndarray, collective: Collective) -> list[np.ndarray]:
    """The values that divide each column into cells: those of a sample, or all categories."""
    own = np.asarray(sample.toarray() if sp.issparse(sample) else sample, np.float64)
    values = np.concatenate(collective.gather(own))
    return [
        np.arange(float(n)) if n else splitters_of(values[:, k])
        for k, n in enumerate(n_categories.tolist())
    ]


def _refined(
    rows: PiecedRows,
    block: slice,
    splitters: list[np.ndarray],
    n_categories: list[int],
    max_bins: int,
    weight: np.ndarray | None,
    n_threads: int,
    collective: Collective,
) -> dict[int, tuple[CodedColumn, int]]:
    """Some of the columns, from cells such that no bin begins inside of one; see `refined_cells`.

    All members count the rows of all columns, but each looks after some of the columns only. It
    looks at one after the other, because a column may have many cells.
    """
    has_weight, n_columns = weight is not None, len(splitters)
    counters = {k: CellCounter(splitters[k], is_weighted=has_weight) for k in range(n_columns)}
    counted = _counted(rows, block, counters, weight, n_threads)
    summed = _summed_cells([counted[k] for k in range(n_columns)], collective)
    unfinished: dict[int, tuple[Cells, np.ndarray]] = {}
    columns = {}

    def look_at(k: int, cells: Cells) -> None:
        opened = cells_to_open(cells, max_bins)
        if opened.any():
            unfinished[k] = cells, opened
        else:
            columns[k] = _column_of(cells, n_categories[k], max_bins)

    for k in range(collective.rank, n_columns, collective.size):
        look_at(k, without_empty(summed[k]))
    while True:
        own = {k: (cells.lows[at], cells.highs[at]) for k, (cells, at) in unfinished.items()}
        limits = _joined(collective.gather(own))
        if not limits:
            return columns
        finders = {k: ValueFinder(*limits[k], is_weighted=has_weight) for k in sorted(limits)}
        values = _counted(rows, block, finders, weight, n_threads)
        for k in finders:
            of_members = collective.gather(values.pop(k))
            if k in unfinished:
                cells, opened = unfinished.pop(k)
                look_at(k, with_values(cells, opened, merged_values(of_members)))


def _joined(of_members: Sequence[dict[int, Any]]) -> dict[int, Any]:
    return {k: value for own in of_members for k, value in own.items()}


def _counted(
    rows: PiecedRows,
    block: slice,
    counters: Mapping[int, CellCounter | ValueFinder],
    weight: np.ndarray | None,
    n_threads: int,
) -> dict[int, Cells]:
    """What the counters of some columns of the block find in all rows."""
    chosen = list(counters)
    for start, values in _column_tiles(rows, block):
        own = None if weight is None else weight[start : start + values.shape[1]]

        def count(place: int, values: np.ndarray = values, own: np.ndarray | None = own) -> None:
            k = chosen[place]
            counters[k].add(values[k], own)

        run_tiles(count, len(chosen), n_threads)
    return {k: counter.cells() for k, counter in counters.items()}


def _column_tiles(rows: PiecedRows, block: slice) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, values float64 (columns, rows)) of tiles; the next one overwrites the last."""
    n_columns = block.stop - block.start
    step = max(_CELLS_OF_A_TILE // n_columns, 1)
    buffer = np.empty(n_columns * step)
    for first, last in rows.tiles(step):
        values = buffer[: n_columns * (last - first)].reshape(n_columns, last - first)
        _copy(rows[first:last], block, values)
        yield first, values


def _copy(X: Any, block: slice, values: np.ndarray) -> None:
    """Write some columns of a tile, one after the other."""
    if not sp.issparse(X):
        copy_columns(np.ascontiguousarray(X), block.start, values)
        return
    X = X[:, block].tocsc()
    values[:] = 0.0
    for k in range(len(values)):
        entries = slice(X.indptr[k], X.indptr[k + 1])
        values[k, X.indices[entries]] = X.data[entries]


def _summed_cells(own: Sequence[Cells], collective: Collective) -> list[Cells]:
    """The cells of all members together."""
    ends = np.cumsum([len(cells.lows) for cells in own])
    limits = np.stack([np.concatenate([-cells.lows for cells in own]),
                       np.concatenate([cells.highs for cells in own])])  # fmt: skip
    counts = np.stack([np.concatenate([cells.rows for cells in own]),
                       np.concatenate([cells.weight for cells in own])])  # fmt: skip
    n_missing = np.array([cells.n_missing for cells in own])
    collective.max(limits)
    collective.sum(counts)
    collective.sum(n_missing)
    found = []
    for k, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        own_cells = slice(start, end)
        found.append(
            Cells(-limits[0, own_cells], limits[1, own_cells], counts[0, own_cells],
                  counts[1, own_cells], int(n_missing[k]))
        )  # fmt: skip
    return found


def _column_of(cells: Cells, n_categories: int, max_bins: int) -> tuple[CodedColumn, int]:
    """A column without codes of rows; and the number of rows with a code that is not omitted."""
    lows, highs, places = cells.lows, cells.highs, np.arange(len(cells.lows))
    of_categories = None
    if n_categories:
        codes, lows, of_categories = bin_categories(
            places, lows, n_categories, max_bins, cells.weight
        )
        highs = lows
    else:
        codes, starts, ends = bin_numbers(places, places, max_bins, cells.weight)
        lows, highs = lows[starts], highs[ends]
    sizes = np.bincount(codes, weights=cells.rows, minlength=len(lows) + 1)
    sizes[len(lows)] += cells.n_missing
    omitted, total = int(np.argmax(sizes)), float(sizes.sum())
    n_entries = int(total - sizes[omitted])
    if n_entries >= RARE * total:
        return CodedColumn(_NO_CODES, None, -1, lows, highs, of_categories), 0
    return CodedColumn(_NO_CODES, _NO_ROWS, omitted, lows, highs, of_categories), n_entries


# -- the table --


def _table(
    rows: PiecedRows,
    columns: list[CodedColumn],
    kept: list[int],
    n_entries: int,
    is_category: np.ndarray,
    n_threads: int,
    collective: Collective,
) -> GradientTable:
    dense = [j for j in kept if columns[j].omitted < 0]
    sparse = [j for j in kept if columns[j].omitted >= 0]
    n, coded = rows.shape[0], list(columns)
    codes = np.empty((n, len(dense)), np.uint8)
    entries = _write_codes(rows, columns, dense, sparse, codes, n_threads)
    for j, (entry_rows, entry_codes) in zip(sparse, entries, strict=True):
        old = columns[j]
        coded[j] = CodedColumn(
            entry_codes, entry_rows, old.omitted, old.lows, old.highs, old.of_categories
        )
    bundles: list[list[int]] = []
    if sparse and len(sparse) <= _MOST_COMPARED:
        n_all, meets = np.array([n]), _meetings([coded[j] for j in sparse], n)
        collective.sum(n_all)
        collective.max(meets)
        sizes = [len(columns[j].lows) + 1 for j in sparse]
        chosen = choose_bundles(
            sizes, lambda k, _, bundle: bool(meets[k, bundle].any()), n_entries, int(n_all[0])
        )
        bundles = [[sparse[k] for k in bundle] for bundle in chosen]
    bundled = [j for bundle in bundles for j in bundle]
    listed = [] if bundled else sparse
    features = np.array(dense + bundled + listed, np.int64)
    layout = layout_of(columns, dense, bundles, listed)
    by_rows = codes
    if bundles:
        by_rows = np.empty((n, len(dense) + len(bundles)), np.uint8)
        by_rows[:, : len(dense)] = codes
        for k, bundle in enumerate(bundles, start=len(dense)):
            bundle_codes = np.empty(n, np.uint8)
            fill_bundle(coded, bundle, bundle_codes)
            by_rows[:, k] = bundle_codes
    places = np.full(len(columns), -1, np.int64)
    places[features] = np.arange(len(features))
    return GradientTable(
        n_rows=n,
        n_dense=len(dense),
        features=features,
        places=places,
        by_rows=by_rows,
        by_columns=np.empty((by_rows.shape[1], 0), np.uint8),
        n_codes=np.array([len(columns[j].lows) for j in features], np.int64),
        omitted=np.array([columns[j].omitted for j in features], np.int64),
        is_category=is_category[features],
        **layout,
        **lists_of([coded[j] for j in listed], n, layout["first"][len(dense) + len(bundled) :]),
    )


def _write_codes(
    rows: PiecedRows,
    columns: list[CodedColumn],
    dense: list[int],
    sparse: list[int],
    codes: np.ndarray,
    n_threads: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Write the codes of dense columns; returns (rows, codes) of each sparse column, without the
    omitted code."""
    d = len(columns)
    tiles = list(rows.tiles(max(_CELLS_OF_A_TILE // max(d, 1), 1)))
    found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in tiles]

    def code(tile: int) -> None:
        first, last = tiles[tile]
        values = np.empty((d, last - first))
        _copy(rows[first:last], slice(0, d), values)
        for place, j in enumerate(dense):
            codes[first:last, place] = _codes(values[j], columns[j])
        for j in sparse:
            own = _codes(values[j], columns[j])
            entries = np.flatnonzero(own != columns[j].omitted).astype(np.int32)
            found[tile].append((entries + np.int32(first), own[entries]))

    run_tiles(code, len(tiles), n_threads)
    nothing = [(_NO_ROWS, _NO_CODES)]
    return [
        (np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs]))
        for pairs in ([*nothing, *(of_tile[k] for of_tile in found)] for k in range(len(sparse)))
    ]


def _codes(values: np.ndarray, column: CodedColumn) -> np.ndarray:
    if column.of_categories is None:
        return code_values(values, column.lows)
    is_missing = np.isnan(values)
    codes = column.of_categories[np.where(is_missing, 0.0, values).astype(np.int64)]
    return np.where(is_missing, len(column.lows), codes).astype(np.uint8)


def _meetings(columns: list[CodedColumn], n: int) -> np.ndarray:
    """uint8 (s, s): 1 for pairs of sparse columns with entries in the same row."""
    starts = np.cumsum([0] + [len(column.codes) for column in columns])
    rows: Any = np.concatenate([column.rows for column in columns])
    entries = sp.csc_matrix((np.ones(len(rows), np.int32), rows, starts), shape=(n, len(columns)))
    return np.asarray((entries.T @ entries).toarray() > 0, dtype=np.uint8)
