"""Columns of all rows, where a table came in parts: coded, counted, and given to who boosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from margrove._runtime.threads import run_tiles
from margrove.ensemble.adaboost.stump_tables import (
    _ROWS_OF_A_BIN,
    FeatureGroup,
    StumpColumns,
    StumpTable,
    _dense_group,
    _no_columns,
    _of_sparse,
    _sparse_group,
)
from margrove.grove.grow.tree_builder import columns_of
from margrove.grove.table.binning import BinnedDataset, _stacked, bin_columns

__all__ = [
    "Block",
    "ColumnFacts",
    "ColumnRun",
    "coded_block",
    "columns_of_sides",
    "cut_columns",
    "facts_of",
    "run_of_columns",
    "stump_table",
]

Block: TypeAlias = Any  # neighbouring columns of all rows: `BinnedDataset`, or a csc_array


@dataclass(frozen=True)
class ColumnFacts:
    """Of each column: what `stump_tables` says that it costs; whether it has what it may not."""

    cost: np.ndarray
    is_odd: np.ndarray


def cut_columns(part: Any, first: int, last: int, kept: np.ndarray | None) -> Any:
    """Some columns of a part, of the rows that count."""
    own = part[:, first:last]
    own = own if kept is None else own[kept]
    return own if sp.issparse(own) else np.ascontiguousarray(own)


def coded_block(pieces: list[Any]) -> Block:
    if not sp.issparse(pieces[0]):
        return bin_columns(np.concatenate(pieces))
    block = sp.csc_array(sp.vstack(pieces, format="csr"))
    block.sum_duplicates()
    block.eliminate_zeros()
    return block


def facts_of(block: Block) -> ColumnFacts:
    if not isinstance(block, BinnedDataset):
        found = [_values_of(block, j) for j in range(block.shape[1])]
        odd = [not np.isfinite(own).all() for own in found]
        n_codes = np.array([len(own) for own in found], dtype=np.int64)
        return ColumnFacts(np.asarray(np.diff(block.indptr) + n_codes), np.array(odd))
    n = block.n_rows
    largest = [int(np.bincount(block.column(j)).max()) for j in range(block.n_features)]
    odd = [
        bool(missing) or (len(low) > 0 and not np.isfinite(low[[0, -1]]).all())
        for low, missing in zip(block.lows, block.has_missing, strict=True)
    ]
    is_ordered = block.n_codes * _ROWS_OF_A_BIN > n
    cost = np.where(is_ordered, n, n - np.array(largest) + block.n_codes)
    return ColumnFacts(cost, np.array(odd))


def _values_of(block: sp.csc_array, j: int) -> np.ndarray:
    """The distinct ones, zero among them unless no row has it."""
    own = block.data[block.indptr[j] : block.indptr[j + 1]]
    return np.unique(own if len(own) == block.shape[0] else np.append(own, 0.0))


@dataclass(frozen=True)
class ColumnRun:
    """The columns of one member, and the groups that they are searched in.

    `shape` and `flags` are those of an array, for who puts rows together: this is never cut.
    """

    number: int
    data: Block
    first: int
    groups: list[np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        if isinstance(self.data, BinnedDataset):
            return self.data.n_rows, self.data.n_features
        n, d = self.data.shape
        return int(n), int(d)

    @property
    def flags(self) -> Any:
        return SimpleNamespace(writeable=True, c_contiguous=True)


def run_of_columns(
    number: int, blocks: list[Any], starts: list[int], groups: list[np.ndarray]
) -> ColumnRun:
    """The columns of neighbouring groups, out of the blocks that they are in."""
    first, last = int(groups[0][0]), int(groups[-1][-1]) + 1
    pieces = [
        (block, max(first - start, 0), last - start)
        for block, start in zip(blocks, starts, strict=True)
    ]
    if isinstance(blocks[0], BinnedDataset):
        return ColumnRun(number, _together(pieces), first, groups)
    cut = [block[:, begin:end] for block, begin, end in pieces]
    return ColumnRun(number, sp.csc_array(sp.hstack(cut, format="csc")), first, groups)


def _together(pieces: list[tuple[BinnedDataset, int, int]]) -> BinnedDataset:
    columns, lows = [], []
    for block, begin, end in pieces:
        for j in range(begin, min(end, block.n_features)):
            columns.append(block.column(j))
            lows.append(block.lows[j])
    n, none = pieces[0][0].n_rows, np.zeros(len(columns), dtype=bool)
    n_codes = np.array([len(low) for low in lows], dtype=np.int64)
    return BinnedDataset(_stacked(columns, n), n, n_codes, lows, lows, none, none)


def stump_table(run: ColumnRun, n_threads: int) -> StumpTable:
    """That of the run's columns; groups call their features by the numbers of the whole table."""
    groups: list[Any] = [None] * len(run.groups)
    own = [group - run.first for group in run.groups]
    make, columns, values = (
        _dense_columns(run.data)
        if isinstance(run.data, BinnedDataset)
        else _sparse_columns(run.data)
    )

    def build(k: int) -> None:
        groups[k] = make(own[k])._replace(features=run.groups[k].astype(np.int64))

    run_tiles(build, len(groups), n_threads)
    return StumpTable(run.shape[0], groups, columns, values)


_Made = tuple[Callable[[np.ndarray], FeatureGroup], StumpColumns, list[np.ndarray]]


def _dense_columns(data: BinnedDataset) -> _Made:
    is_ordered = data.n_codes * _ROWS_OF_A_BIN > data.n_rows
    most = np.zeros(data.n_features, np.int64)
    for j in np.flatnonzero(~is_ordered).tolist():
        most[j] = np.argmax(np.bincount(data.column(j), minlength=1))
    columns = columns_of(data)

    def make(features: np.ndarray) -> FeatureGroup:
        return _dense_group(data, columns, features, is_ordered, most)

    return make, _stump_columns(columns, data.n_features), list(data.lows)


def _sparse_columns(X: sp.csc_array) -> _Made:
    table = _of_sparse(X)
    n_codes = np.array([len(own) for own in table.values], dtype=np.int64)
    codes = table.columns.codes
    zeros = np.where(np.diff(X.indptr) < X.shape[0], table.columns.zeros, -2)  # -2: no row is there

    def make(features: np.ndarray) -> FeatureGroup:
        return _sparse_group(X, codes, features, n_codes, zeros)

    return make, table.columns, table.values


def _stump_columns(dense: Any, n_features: int) -> StumpColumns:
    return StumpColumns(
        dense, np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint32),
        np.zeros(n_features, np.int64),
    )  # fmt: skip


def columns_of_sides(n: int, n_features: int) -> StumpColumns:
    """Columns of which all that is known is on which side of the stump at hand each row is.

    Each feature is the same column, of codes that are smallest on the left and largest on the
    right.
    """
    dense = _no_columns()._replace(
        wide=np.zeros((1, n), np.uint32),
        width=np.full(n_features, 2, np.int8),
        place=np.zeros(n_features, np.int64),
    )
    return _stump_columns(dense, n_features)
