"""Partitions of a table as codes, and the table that a worker makes of them.

Rows are coded partition by partition, on the workers that hold them. After that their values are
not needed, except those of held-out rows. A worker puts the codes of its rows into a table of one
byte a cell, a third of what `gradient.hist.tables` takes, where a second copy speeds up local fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from margrove.dask.boosting.bins import ColumnCodes, coded_columns, find_conflicts
from margrove.dask.boosting.remote_rows import PartitionRows, renumber
from margrove.dask.partitions import PartitionOnDisk, is_on_disk, loaded
from margrove.ensemble.gradient import SoFar, add_trees
from margrove.ensemble.gradient.hist import (
    CodedColumn,
    GradientTable,
    fill_bundle,
    layout_of,
    lists_of,
)
from margrove.grove.serve import Kind, PackedTree

__all__ = ["CodedPartition", "CodedRows", "code_partition"]

_CELLS_AT_ONCE = 1 << 22  # in a tile of rows that are decoded


@dataclass(frozen=True)
class CodedPartition:
    """The training rows and held-out rows of a partition, as codes.

    n_rows           the number of rows of the partition
    rows             int64 (n,)  training rows, ascending; None for all
    dense            uint8 (n, dense columns)
    sparse           (rows int32, codes uint8) of each sparse column, whose other rows have the
                     omitted code; numbers are positions in `rows`
    raw              float64 (scores, n)  initial scores; None if they are the same for all rows
    held_out         float64 (m, d) or CSR: held-out rows, categories by new numbers
    held_out_rows    int64 (m,), and held_out_raw float64 (scores, m) or None
    """

    n_rows: int
    rows: np.ndarray | None
    dense: np.ndarray
    sparse: list[tuple[np.ndarray, np.ndarray]]
    raw: np.ndarray | None
    held_out: Any
    held_out_rows: np.ndarray
    held_out_raw: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.dense.shape[1] + len(self.sparse)

    def places_of(self, rows: np.ndarray) -> np.ndarray:
        """The positions of training rows among the coded rows."""
        return rows if self.rows is None else np.searchsorted(self.rows, rows)


def code_partition(
    partition: Any,
    train: PartitionRows,
    held_out: np.ndarray,
    columns: Sequence[ColumnCodes],
    renumbered: dict[int, np.ndarray],
    so_far: SoFar,
    kind: Kind,
) -> CodedPartition:
    """Code the training rows of a partition, and keep its held-out rows."""
    held_out_X = renumber(partition[held_out], renumbered)
    dense, sparse = coded_columns(partition, train, columns, renumbered)
    raw = None
    if not so_far.is_constant:
        raw = so_far.raw_of(renumber(train.of(partition), renumbered), kind)
    return CodedPartition(
        partition.shape[0],
        train.rows,
        dense,
        sparse,
        raw,
        held_out_X,
        held_out,
        None if so_far.is_constant else so_far.raw_of(held_out_X, kind),
    )


class CodedRows:
    """The rows of a worker, in pieces of coded partitions.

    pieces   (partition, its first row, the row after the last), in the order of the rows
    """

    def __init__(
        self, pieces: Sequence[tuple[Any, int, int]], columns: Sequence[ColumnCodes]
    ) -> None:
        self._pieces, self._columns = pieces, columns
        self._dense = [j for j, column in enumerate(columns) if column.omitted < 0]
        self._sparse = [j for j, column in enumerate(columns) if column.omitted >= 0]

    def _each(self, rows: np.ndarray) -> Iterator[tuple[CodedPartition, np.ndarray, slice]]:
        """By partition: numbers within it of some rows, ascending, and positions in `rows`."""
        start = 0
        for partition, first, last in self._pieces:
            low, high = np.searchsorted(rows, [start, start + last - first]).tolist()
            if low < high:
                yield loaded(partition), rows[low:high] - start + first, slice(low, high)
            start += last - first

    def _columns_of(self, partition: CodedPartition, places: np.ndarray) -> list[CodedColumn]:
        """Some rows of a partition, column by column."""
        dense, sparse = iter(partition.dense[places].T), iter(partition.sparse)
        found = []
        for column in self._columns:
            rows, codes = None, None
            if column.omitted < 0:
                codes = next(dense)
            else:
                rows, codes = _entries(*next(sparse), places)
            found.append(
                CodedColumn(
                    codes, rows, column.omitted, column.lows, column.highs, column.of_categories
                )
            )
        return found

    # -- codes --

    def conflicts(self, rows: np.ndarray) -> np.ndarray:
        """See `find_conflicts`."""
        found = find_conflicts(self._without_rows(), 0)
        if self._sparse:
            for partition, numbers, _ in self._each(rows):
                coded = self._columns_of(partition, partition.places_of(numbers))
                found = np.maximum(found, find_conflicts(coded, len(numbers)))
        return found

    def _without_rows(self) -> list[CodedColumn]:
        nothing, no_rows = np.empty(0, np.uint8), np.empty(0, np.int32)
        return [
            CodedColumn(nothing, no_rows if column.omitted >= 0 else None, column.omitted,
                        column.lows, column.highs, column.of_categories)
            for column in self._columns
        ]  # fmt: skip

    def table(
        self, rows: np.ndarray, bundles: list[list[int]], is_category: np.ndarray
    ) -> GradientTable:
        """The codes of rows as the kernels of `gradient.hist.shards` read them.

        by_rows is uint8 (n, m), and by_columns is empty; everything else is as in
        `gradient.hist.tables.lay_out`.
        """
        n, dense = len(rows), self._dense
        bundled = [j for bundle in bundles for j in bundle]
        listed = [] if bundled else self._sparse
        features = np.array(dense + bundled + listed, np.int64)
        layout = layout_of(self._without_rows(), dense, bundles, listed)
        by_rows = np.empty((n, len(dense) + len(bundles)), np.uint8)
        lists: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in listed]
        for partition, numbers, positions in self._each(rows):
            places = partition.places_of(numbers)
            by_rows[positions, : len(dense)] = partition.dense[places]
            if bundles or listed:
                coded = self._columns_of(partition, places)
                for k, bundle in enumerate(bundles, start=len(dense)):
                    bundle_codes = np.empty(len(numbers), np.uint8)
                    fill_bundle(coded, bundle, bundle_codes)
                    by_rows[positions, k] = bundle_codes
                for k, j in enumerate(listed):
                    entries: Any = coded[j].rows
                    lists[k].append((entries + np.int32(positions.start), coded[j].codes))
        places_of_features = np.empty(len(self._columns), np.int64)
        places_of_features[features] = np.arange(len(features))
        columns = [_joined(pairs, self._columns[j]) for pairs, j in zip(lists, listed, strict=True)]
        return GradientTable(
            n_rows=n,
            n_dense=len(dense),
            features=features,
            places=places_of_features,
            by_rows=by_rows,
            by_columns=np.empty((by_rows.shape[1], 0), np.uint8),
            n_codes=np.array([len(self._columns[j].lows) for j in features], np.int64),
            omitted=np.array([self._columns[j].omitted for j in features], np.int64),
            is_category=is_category[features],
            **layout,
            **lists_of(columns, n, layout["first"][len(dense) + len(bundled) :]),
        )

    # -- scores --

    def raw(
        self, rows: np.ndarray, so_far: SoFar, rounds: list[list[PackedTree]], kind: Kind
    ) -> np.ndarray:
        """Scores (scores, n) of training rows after these rounds."""
        found = _start(so_far, len(rows), kind)
        for partition, numbers, positions in self._each(rows):
            places = partition.places_of(numbers)
            if partition.raw is not None:
                found[:, positions] = partition.raw[:, places]
            if rounds:
                step = max(1, _CELLS_AT_ONCE // len(self._columns))
                for first in range(0, len(places), step):
                    tile = slice(
                        positions.start + first, min(positions.start + first + step, positions.stop)
                    )
                    X = self._values(partition, places[first : first + step])
                    _add_rounds(rounds, X, kind, found[:, tile])
        return found

    def _values(self, partition: CodedPartition, places: np.ndarray) -> np.ndarray:
        """Rows decoded to values that take the same paths through trees as the original values."""
        X = np.empty((len(places), len(self._columns)))
        for j, column in enumerate(self._columns_of(partition, places)):
            values = _values_of_codes(self._columns[j])
            if column.rows is None:
                X[:, j] = values[column.codes]
            else:
                X[:, j] = values[column.omitted]
                X[column.rows, j] = values[column.codes]
        return X

    # -- held-out rows --

    def held_out(self, rows: np.ndarray) -> list[HeldOutPiece]:
        """Some held-out rows, by partition; on disk if their partition is."""
        found, start = [], 0
        for partition, first, last in self._pieces:
            low, high = np.searchsorted(rows, [start, start + last - first])
            if low < high:
                coded = loaded(partition)
                places = np.searchsorted(coded.held_out_rows, rows[low:high] - start + first)
                X, raw = coded.held_out[places], coded.held_out_raw
                found.append(
                    HeldOutPiece(
                        PartitionOnDisk(X) if is_on_disk(partition) else X,
                        None if raw is None else raw[:, places],
                    )
                )
            start += last - first
        return found


@dataclass(frozen=True)
class HeldOutPiece:
    """Held-out rows, in memory or on disk, and their initial scores; see `CodedPartition`."""

    X: Any
    start: np.ndarray | None

    def raw(self, so_far: SoFar, rounds: list[list[PackedTree]], kind: Kind) -> np.ndarray:
        X = loaded(self.X)
        if self.start is None:
            found = _start(so_far, X.shape[0], kind)
        else:
            found = self.start.copy()
        _add_rounds(rounds, X, kind, found)
        return found


def _start(so_far: SoFar, n: int, kind: Kind) -> np.ndarray:
    """The same initial scores for all rows; an empty array if they differ."""
    if not so_far.is_constant:
        return np.empty((len(so_far.start), n))
    return so_far.raw_of(SimpleNamespace(shape=(n, 0)), kind)


def _add_rounds(rounds: list[list[PackedTree]], X: Any, kind: Kind, raw: np.ndarray) -> None:
    for trees in rounds:
        for score, tree in enumerate(trees):
            add_trees([tree], X, kind, raw[score])


def _entries(
    rows: np.ndarray, codes: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The entries of a sparse column in certain rows, numbered by their positions."""
    if not len(rows):
        return rows, codes
    at = np.minimum(np.searchsorted(rows, places), len(rows) - 1)
    found = np.flatnonzero(rows[at] == places)
    return found.astype(np.int32), codes[at[found]]


def _joined(pieces: list[tuple[np.ndarray, np.ndarray]], column: ColumnCodes) -> CodedColumn:
    rows = np.concatenate([*(rows for rows, _ in pieces), np.empty(0, np.int32)]).astype(np.int32)
    codes = np.concatenate([*(codes for _, codes in pieces), np.empty(0, np.uint8)])
    return CodedColumn(codes, rows, column.omitted, column.lows, column.highs, column.of_categories)


def _values_of_codes(column: ColumnCodes) -> np.ndarray:
    """A value for each code; the last one is NaN, for missing values."""
    if column.of_categories is None:
        return np.append(column.lows, np.nan)
    found = np.full(len(column.lows) + 1, np.nan)
    for category in range(len(column.of_categories) - 1, -1, -1):
        if column.of_categories[category] >= 0:
            found[column.of_categories[category]] = category
    return found
