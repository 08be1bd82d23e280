"""A table in partitions as rank codes, the same as `grove.table.binning` makes from all rows.

    rank       each partition is coded separately: its distinct values, and ranks among them
    merge      the distinct values of all partitions, column by column, are those of the table;
               with max_bins, neighbours share a code according to their weights
    translate  ranks within a partition become ranks within the table, by a lookup table

Each step depends only on the content of the partitions, so that Dask can repeat what was lost with
a worker. Weights that are whole numbers are added up in any order, others in the order of the rows,
as `numpy.bincount` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import scan_rows
from margrove.grove.table import BinnedDataset, Codes, bin_columns, bins_of_counts, empty_codes

__all__ = [
    "ColumnSummary",
    "Counting",
    "MergedColumns",
    "PartitionCodes",
    "RankedPartition",
    "kind_of_codes",
    "layout_of",
    "merge_columns",
    "pick_columns",
    "rank_partition",
    "scan_partition",
    "summary_of",
    "translate",
]

_KINDS = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True)
class Counting:
    """How the weights of values are counted for bins.

    max_bins      of a column; None if every value has its own code
    is_weighted   whether rows have weights
    is_whole      whether sums of the weights are exact in any order
    shift         exponent of the power of two by which weights are multiplied
    """

    max_bins: int | None
    is_weighted: bool = False
    is_whole: bool = True
    shift: int = 0

    def moderate(self, weight: np.ndarray) -> np.ndarray:
        return np.minimum(np.ldexp(weight, self.shift), 1e290)


@dataclass(frozen=True)
class RankedPartition:
    """The rows of nonzero weight of a partition, coded separately; weights as given, or None."""

    data: BinnedDataset
    weight: np.ndarray | None


@dataclass(frozen=True)
class ColumnFacts:
    """One column of one partition.

    values        float64, sorted, distinct
    has_missing   whether a value is missing
    counts        float64, the weight of each value; None if it is not needed
    codes         positions in `values` of each row, if weights are added up in that order
    """

    values: np.ndarray
    has_missing: bool
    counts: np.ndarray | None = None
    codes: np.ndarray | None = None


@dataclass(frozen=True)
class MergedColumns:
    """The values of the codes of some columns, as in `BinnedDataset`; has_missing bool (k,)."""

    lows: list[np.ndarray]
    highs: list[np.ndarray]
    has_missing: np.ndarray


@dataclass(frozen=True)
class ColumnSummary:
    """What the client needs to know about the values of the codes of some columns.

    n_codes       int64 (k,)
    has_missing   bool (k,)
    is_infinite   bool (k,)  whether a column has infinite values
    n_bytes       of all values
    """

    n_codes: np.ndarray
    has_missing: np.ndarray
    is_infinite: np.ndarray
    n_bytes: int

    @classmethod
    def joined(cls, runs: list[ColumnSummary]) -> ColumnSummary:
        """The summary of runs of columns together."""
        return cls(
            np.concatenate([run.n_codes for run in runs]),
            np.concatenate([run.has_missing for run in runs]),
            np.concatenate([run.is_infinite for run in runs]),
            sum(run.n_bytes for run in runs),
        )


def summary_of(block: MergedColumns) -> ColumnSummary:
    pairs = list(zip(block.lows, block.highs, strict=True))
    ends = [[low[0], high[-1]] if len(low) else [0.0] for low, high in pairs]
    return ColumnSummary(
        np.array([len(low) for low in block.lows], dtype=np.int64),
        block.has_missing,
        np.array([bool(np.isinf(of_column).any()) for of_column in ends]),
        sum(low.nbytes + (0 if low is high else high.nbytes) for low, high in pairs),
    )


@dataclass(frozen=True)
class PartitionCodes:
    """The codes of a partition among all values of the table; rows of nonzero weight only."""

    codes: Codes
    n_rows: int


def scan_partition(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of the rows, uint64, and whether each row has a missing value."""
    found = scan_rows(X)
    return found.hashes, np.isnan(found.squared_norms)  # of rows without NaN it is a number


def rank_partition(X: Any, weight: np.ndarray | None) -> RankedPartition:
    """Code a partition among its own values."""
    if weight is not None and not (weight > 0).all():
        kept = np.flatnonzero(weight > 0)
        X, weight = X[kept], weight[kept]
    return RankedPartition(bin_columns(X) if X.shape[0] else _nothing(X.shape[1]), weight)


def _nothing(d: int) -> BinnedDataset:
    """A partition without rows."""
    values = [np.empty(0)] * d
    no_codes = np.zeros(d, np.int64)
    nowhere = np.zeros(d, dtype=bool)
    return BinnedDataset(layout_of(no_codes, 0), 0, no_codes, values, values, nowhere, nowhere)


def pick_columns(
    ranked: RankedPartition, columns: Sequence[int], categorical: np.ndarray, counting: Counting
) -> tuple[list[ColumnFacts], np.ndarray | None]:
    """Facts about some columns of a partition, and its weights if they are needed."""
    wants_codes = counting.max_bins is not None and not counting.is_whole
    weight = counting.moderate(ranked.weight) if ranked.weight is not None else None
    facts = [
        _facts(ranked.data, j, weight, counting, may_merge=not categorical[j]) for j in columns
    ]
    return facts, weight if wants_codes else None


def _facts(
    data: BinnedDataset, j: int, weight: np.ndarray | None, counting: Counting, *, may_merge: bool
) -> ColumnFacts:
    values, missing = data.lows[j], bool(data.has_missing[j])
    if counting.max_bins is None or not may_merge:
        return ColumnFacts(values, missing)
    if counting.is_whole:
        counts = np.bincount(data.column(j), weights=weight, minlength=len(values))
        return ColumnFacts(values, missing, counts[: len(values)].astype(np.float64))
    return ColumnFacts(values, missing, codes=data.column(j))


def merge_columns(
    partitions: list[tuple[list[ColumnFacts], np.ndarray | None]], max_bins: int | None
) -> MergedColumns:
    """Merge the facts of all partitions, in their order, about the same columns."""
    weights = [weight for _, weight in partitions]
    lows: list[np.ndarray] = []
    highs: list[np.ndarray] = []
    missing = []
    for facts in zip(*(partition_facts for partition_facts, _ in partitions), strict=True):
        values = np.unique(np.concatenate([fact.values for fact in facts]))
        missing.append(any(fact.has_missing for fact in facts))
        knows_weights = facts[0].counts is not None or facts[0].codes is not None
        if max_bins is None or not knows_weights or len(values) <= max_bins:
            lows.append(values)
            highs.append(values)
            continue
        starts, ends = bins_of_counts(_weights_of_values(values, facts, weights), max_bins)
        lows.append(values[starts])
        highs.append(values[ends])
    return MergedColumns(lows, highs, np.array(missing, dtype=bool))


def _weights_of_values(
    values: np.ndarray, facts: Sequence[ColumnFacts], weights: list[np.ndarray | None]
) -> np.ndarray:
    counts = np.zeros(len(values) + 1)
    for fact, weight in zip(facts, weights, strict=True):
        places = np.searchsorted(values, fact.values)
        if fact.counts is not None:
            counts[places] += fact.counts
        elif fact.codes is not None and weight is not None:
            np.add.at(counts, np.append(places, len(values))[fact.codes], weight)
    return counts[:-1]


def kind_of_codes(n_codes: np.ndarray) -> np.ndarray:
    """int8 (d,): the width of each column's codes, as `Codes` has it."""
    return np.where(n_codes < 256, 0, np.where(n_codes < 65536, 1, 2)).astype(np.int8)


def layout_of(n_codes: np.ndarray, n_rows: int) -> Codes:
    """Empty arrays for the codes of `n_rows` rows."""
    return empty_codes(kind_of_codes(n_codes), n_rows)


def translate(ranked: RankedPartition, blocks: list[MergedColumns]) -> PartitionCodes:
    """The codes of a partition in the whole table; blocks are runs of columns in order."""
    data = ranked.data
    highs = [high for block in blocks for high in block.highs]
    n_codes = np.array([len(high) for high in highs], dtype=np.int64)
    codes = layout_of(n_codes, data.n_rows)
    arrays = codes[:3]
    for j, high in enumerate(highs):
        kind = codes.width[j]
        code = np.append(np.searchsorted(high, data.lows[j]), len(high)).astype(_KINDS[kind])
        arrays[kind][codes.place[j]] = code[data.column(j)]
    return PartitionCodes(codes, data.n_rows)
