"""A table on a cluster for forests: the order of its rows, and its codes on the workers.

The client computes the order of the rows, the targets and the random draws, from a hash, a target
and a weight of each row. The rows themselves, and their codes, stay on the workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from margrove._data import canonical_form_by_hash
from margrove._runtime import readable_bytes
from margrove.dask.cluster import ClusterError, gathered, workers_of
from margrove.dask.forest.rank_codes import (
    Counting,
    MergedColumns,
    kind_of_codes,
    layout_of,
    merge_columns,
    pick_columns,
    rank_partition,
    scan_partition,
    translate,
)
from margrove.dask.partitions import Partitions
from margrove.ensemble.forest import codes_of_rows
from margrove.exceptions import InvalidDataError
from margrove.grove.table import BinnedDataset, TreeTable

__all__ = ["ClusterCodes", "ForestTable", "ShapeOnly", "canonical_by_hash"]

_MOST_TASKS = 4000  # that merge columns
_BYTES_A_ROW = 120.0  # of a worker table besides its codes: targets, weights, draws
_BYTES_A_THREAD = 60.0  # a row, for each tree that grows at the same time


@dataclass(frozen=True)
class ShapeOnly:
    """The shape of an array whose rows are on the workers, in its place."""

    shape: tuple[int, int]


@dataclass(frozen=True)
class ForestTable(TreeTable):
    """A checked table in partitions.

    partitions       categories as numbers, NaN for missing values
    forest           an unfitted forest, for its parameters
    kept             rows of nonzero weight; None for all
    largest_weight   None without weights
    held             the worker tables of this fit, to be closed after it
    """

    partitions: Partitions
    forest: Any
    kept: np.ndarray | None = None
    largest_weight: float | None = None
    held: list[Any] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        partitions: Partitions,
        forest: Any,
        categories: dict[int, np.ndarray],
        sample_weight: np.ndarray | None,
    ) -> ForestTable:
        largest = None if sample_weight is None else float(np.max(sample_weight, initial=0.0))
        shape = ShapeOnly((partitions.n_rows, partitions.n_features))
        return cls(shape, partitions.feature_names, categories, partitions, forest, None, largest)

    def of_rows(self, rows: np.ndarray | slice) -> ForestTable:
        if isinstance(rows, slice):
            return self
        return replace(self, X=ShapeOnly((len(rows), self.X.shape[1])), kept=rows)

    def close(self) -> None:
        """Release the worker tables of this fit."""
        while self.held:
            self.held.pop().close()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A hash of each row, by which checkpoints compare the table."""
        return np.concatenate([hashes for hashes, _ in self._scanned()])

    def _scanned(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return gathered(self.partitions.client, self.partitions.map(scan_partition))

    def without_rows(self, n_rows: int) -> TreeTable:
        """The table as it is sent to workers: names and labels, no futures."""
        return TreeTable(ShapeOnly((n_rows, self.X.shape[1])), self.feature_names, self.categories)

    def in_canonical_order(
        self, target: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `ensemble.forest.training_data.row_order`."""
        codes = target if target.ndim == 1 else codes_of_rows(target)
        hashes, has_nan = (np.concatenate(arrays) for arrays in zip(*self._scanned(), strict=True))
        if self.kept is not None:
            hashes, has_nan = hashes[self.kept], has_nan[self.kept]
        return canonical_by_hash(hashes, has_nan, codes, weight)

    def coded(
        self, order: np.ndarray, weight: np.ndarray, max_bins: int | None, estimator: str
    ) -> ClusterCodes:
        """Code the partitions on their workers; `order` are the rows that trees are grown on."""
        client, partitions = self.partitions.client, self.partitions
        counting = self._counting(weight, max_bins)
        weights = partitions.weight or [None] * len(partitions.X)
        ranked_partitions = partitions.map_each(
            rank_partition, [(partition_weight,) for partition_weight in weights]
        )
        runs = self._columns_at_once()
        blocks = [
            client.submit(
                merge_columns,
                [
                    client.submit(pick_columns, ranked, columns, self.is_categorical, counting,
                                  pure=False)
                    for ranked in ranked_partitions
                ],
                max_bins,
                pure=False,
            )
            for columns in runs
        ]  # fmt: skip
        facts = gathered(client, [client.submit(_facts_of, block, pure=False) for block in blocks])
        n_codes = np.concatenate([fact.n_codes for fact in facts])
        infinite = np.concatenate([fact.is_infinite for fact in facts])
        if infinite.any():
            self._refuse_infinity(int(np.argmax(infinite)), estimator)
        n_bytes = sum(fact.n_bytes for fact in facts)
        self._require_memory(n_codes, n_bytes, len(order))
        pieces = [
            client.submit(translate, ranked, blocks, pure=False) for ranked in ranked_partitions
        ]
        d = len(n_codes)
        nothing = [np.empty(0)] * d
        return ClusterCodes(
            layout_of(n_codes, 0),
            len(order),
            n_codes,
            nothing,
            nothing,
            np.concatenate([fact.has_missing for fact in facts]),
            self.is_categorical,
            blocks,
            pieces,
            runs,
            np.concatenate([fact.is_merged for fact in facts]),
        )

    def _columns_at_once(self) -> list[list[int]]:
        """Runs of columns: one for each worker, or fewer if there are many partitions."""
        d, n_partitions = self.X.shape[1], len(self.partitions.X)
        n_workers = len(self.partitions.client.nthreads()) or 1
        n_blocks = int(np.clip(n_workers, 1, max(1, min(d, _MOST_TASKS // n_partitions))))
        return [run.tolist() for run in np.array_split(np.arange(d), n_blocks)]

    def _counting(self, weight: np.ndarray, max_bins: int | None) -> Counting:
        if self.largest_weight is None:
            return Counting(max_bins)
        shift = 0
        if self.largest_weight < 1e-150:
            shift = 1 - int(np.frexp(self.largest_weight)[1])
        is_whole = bool(np.all(weight == np.floor(weight))) and float(weight.sum()) < 2.0**53
        return Counting(max_bins, True, is_whole, shift)

    def _refuse_infinity(self, column: int, estimator: str) -> None:
        found = gathered(self.partitions.client, self.partitions.map(_first_infinity, column))
        partition = next((k for k, row in enumerate(found) if row is not None), 0)
        row = int(self.partitions.offsets[partition]) + (found[partition] or 0)
        names = self.feature_names
        name = repr(str(names[column])) if names is not None else str(column)
        raise InvalidDataError(
            f"Input X contains infinity (row {row}, in partition {partition}, column {name}) or a "
            f"value too large for dtype('float64'). {estimator} takes NaN as missing; replace "
            "infinity by a large number."
        )

    def _require_memory(self, n_codes: np.ndarray, n_bytes: int, n_rows: int) -> None:
        """Refuse tables whose codes, their copies and values do not fit a worker's memory."""
        cell = np.array([1, 2, 4])[kind_of_codes(n_codes)]
        codes = float(cell.sum()) * n_rows
        workers = self.partitions.client.scheduler_info(n_workers=-1)["workers"]
        for address in workers_of(self.partitions.client):
            facts = workers.get(address, {"nthreads": 1})
            limit = float(facts.get("memory_limit") or 0)
            needed = 2.0 * codes + _BYTES_A_ROW * n_rows + 3.0 * n_bytes
            needed += _BYTES_A_THREAD * n_rows * int(facts["nthreads"])
            if limit and needed > limit:
                wide = int((cell > 1).sum())
                fewer = (
                    f"Set max_bins=255, with which the {wide} columns of more values take one "
                    "byte a row; or use "
                    if wide
                    else "Use "
                )
                raise ClusterError(
                    f"Forests are grown by workers that hold the whole table as codes: {n_rows} "
                    f"rows of {len(cell)} columns need {readable_bytes(needed)} (codes "
                    f"{readable_bytes(codes)}), and worker {address} may use "
                    f"{readable_bytes(limit)}. {fewer}fewer columns, fewer threads a worker, or "
                    "workers with more memory. HistGradientBoostingClassifier and -Regressor need "
                    "no such copies."
                )


@dataclass(frozen=True)
class ClusterCodes(BinnedDataset):
    """Codes on the workers; the client knows only how many there are.

    blocks       futures of `MergedColumns`: the values of the codes
    pieces       futures of `PartitionCodes`, the codes of each partition
    runs         the columns of each block
    merged       bool (d,)  whether codes contain several values
    """

    blocks: list[Any]
    pieces: list[Any]
    runs: list[list[int]]
    merged: np.ndarray

    def without_rows(self) -> BinnedDataset:
        """The dataset as it is sent to workers: no futures."""
        return BinnedDataset(
            self.codes, self.n_rows, self.n_codes, self.lows, self.highs, self.has_missing,
            self.categorical,
        )  # fmt: skip


@dataclass(frozen=True)
class _Facts:
    n_codes: np.ndarray
    has_missing: np.ndarray
    is_infinite: np.ndarray
    is_merged: np.ndarray
    n_bytes: int


def _facts_of(block: MergedColumns) -> _Facts:
    return _Facts(
        block.n_codes, block.has_missing, block.is_infinite, block.is_merged, block.n_bytes
    )


def _first_infinity(X: Any, column: int) -> int | None:
    values = X[:, [column]].toarray() if hasattr(X, "toarray") else X[:, column]
    rows = np.flatnonzero(np.isinf(values))
    return int(rows[0]) if len(rows) else None


def canonical_by_hash(
    hashes: np.ndarray, has_nan: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`_data.canonical_form` from hashes of rows: (rows, weights, group of each row).

    Rows of equal hashes count as equal. Rows with missing values are never equal to others, as NaN
    is not equal to NaN; they keep their order.
    """
    form = canonical_form_by_hash(hashes, target, weight, is_unique=has_nan)
    return form.rows, form.weight, form.group_of
