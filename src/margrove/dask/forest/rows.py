"""The rows of a forest's fit on a cluster: what the fit asks about X, computed on the workers.

The client computes the order of the rows, the targets and the random draws, from a hash, a target
and a weight of each row. The rows themselves, and their codes, stay on the workers.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import canonical_form_by_hash
from margrove._runtime import readable_bytes
from margrove.dask.cluster import ClusterError, gathered, known_workers, workers_of
from margrove.dask.forest.grower import ClusterGrower, worker_setup
from margrove.dask.forest.rank_codes import (
    ColumnSummary,
    Counting,
    kind_of_codes,
    layout_of,
    merge_columns,
    pick_columns,
    rank_partition,
    scan_partition,
    summary_of,
    translate,
)
from margrove.dask.forest.tree_tasks import TreeTasks
from margrove.dask.partitions import EncodedPartitions
from margrove.ensemble.forest import (
    ForestGrower,
    ForestTraining,
    LeafSamples,
    LocalRows,
    Sampler,
    codes_of_rows,
)
from margrove.exceptions import InvalidDataError
from margrove.grove.serve import Kind, PackedTree
from margrove.grove.table import BinnedDataset, TreeTable

__all__ = ["ClusterRows", "canonical_by_hash"]

_MOST_TASKS = 4000  # that merge columns
_BYTES_A_ROW = 120.0  # of a worker table besides its codes: targets, weights, draws
_BYTES_A_THREAD = 60.0  # a row, for each tree that grows at the same time


@dataclass(frozen=True)
class _ShapeOnly:
    """The shape of an array whose rows are on the workers, in its place."""

    shape: tuple[int, int]


class ClusterRows(LocalRows):
    """The rows of a table in partitions; see `LocalRows`.

    Parameters
    ----------
    found : EncodedPartitions
        Categories as numbers, NaN for missing values.
    forest : a local forest, for its parameters
    weight : float64 array (n_rows,) or None
    """

    takes_registered_criteria = False

    def __init__(self, found: EncodedPartitions, forest: Any, weight: np.ndarray | None) -> None:
        self.X = self
        self._partitions, self._forest = found.partitions, forest
        self._client = found.partitions.client
        shape = _ShapeOnly((found.partitions.n_rows, found.partitions.n_features))
        self.table = TreeTable(shape, found.partitions.feature_names, found.categories)
        self._largest_weight = None if weight is None else float(np.max(weight, initial=0.0))
        self._kept: np.ndarray | None = None
        self._tasks: TreeTasks | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A hash of each row, by which checkpoints compare the table."""
        return np.concatenate([hashes for hashes, _ in self._scanned()])

    def _scanned(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return gathered(self._client, self._partitions.map(scan_partition))

    def of_rows(self, kept: np.ndarray | slice) -> ClusterRows:
        if isinstance(kept, slice):
            return self
        some = copy.copy(self)
        shape = _ShapeOnly((len(kept), self._partitions.n_features))
        some.table = TreeTable(shape, self.table.feature_names, self.table.categories)
        some._kept = kept
        return some

    def ordered(
        self, target: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not self._forest.bootstrap:
            return super().ordered(target, weight)
        codes = target if target.ndim == 1 else codes_of_rows(target)
        hashes, has_nan = (np.concatenate(arrays) for arrays in zip(*self._scanned(), strict=True))
        if self._kept is not None:
            hashes, has_nan = hashes[self._kept], has_nan[self._kept]
        return canonical_by_hash(hashes, has_nan, codes, weight)

    def coded(self, order: np.ndarray, weight: np.ndarray) -> ClusterCodes:
        """Code the partitions on their workers; `order` are the rows that trees are grown on."""
        client, partitions = self._client, self._partitions
        max_bins, categorical = self._forest.max_bins, self.table.is_categorical
        counting = self._counting(weight, max_bins)
        weights = partitions.weight or [None] * len(partitions.X)
        ranked = partitions.map_each(rank_partition, [(of_rows,) for of_rows in weights])

        def submit(function: Any, *arguments: Any) -> Any:
            return client.submit(function, *arguments, pure=False)

        blocks = [
            submit(
                merge_columns,
                [submit(pick_columns, one, columns, categorical, counting) for one in ranked],
                max_bins,
            )
            for columns in self._columns_at_once()
        ]
        summaries = gathered(client, [submit(summary_of, block) for block in blocks])
        summary = ColumnSummary.joined(summaries)
        if summary.is_infinite.any():
            self._refuse_infinity(int(np.argmax(summary.is_infinite)))
        self._require_memory(summary, len(order))
        nothing = [np.empty(0)] * len(summary.n_codes)
        return ClusterCodes(
            layout_of(summary.n_codes, 0),
            len(order),
            summary.n_codes,
            nothing,
            nothing,
            summary.has_missing,
            categorical,
            blocks,
            [submit(translate, one, blocks) for one in ranked],
        )

    def _columns_at_once(self) -> list[list[int]]:
        """Runs of columns: one for each worker, or fewer if there are many partitions."""
        d, n_partitions = self._partitions.n_features, len(self._partitions.X)
        n_workers = len(known_workers(self._client)) or 1
        n_blocks = int(np.clip(n_workers, 1, max(1, min(d, _MOST_TASKS // n_partitions))))
        return [run.tolist() for run in np.array_split(np.arange(d), n_blocks)]

    def _counting(self, weight: np.ndarray, max_bins: int | None) -> Counting:
        largest = self._largest_weight
        if largest is None:
            return Counting(max_bins)
        shift = 1 - int(np.frexp(largest)[1]) if largest < 1e-150 else 0
        is_whole = bool(np.all(weight == np.floor(weight))) and float(weight.sum()) < 2.0**53
        return Counting(max_bins, True, is_whole, shift)

    def _refuse_infinity(self, column: int) -> None:
        found = gathered(self._client, self._partitions.map(_first_infinity, column))
        partition = next((k for k, row in enumerate(found) if row is not None), 0)
        row = int(self._partitions.offsets[partition]) + (found[partition] or 0)
        names = self.table.feature_names
        name = repr(str(names[column])) if names is not None else str(column)
        raise InvalidDataError(
            f"Input X contains infinity (row {row}, in partition {partition}, column {name}) or a "
            f"value too large for dtype('float64'). {type(self._forest).__name__} takes NaN as "
            "missing; replace infinity by a large number."
        )

    def _require_memory(self, summary: ColumnSummary, n_rows: int) -> None:
        """Refuse tables whose codes, their copies and values do not fit a worker's memory."""
        cell = np.array([1, 2, 4])[kind_of_codes(summary.n_codes)]
        codes = float(cell.sum()) * n_rows
        workers = known_workers(self._client)
        for address in workers_of(self._client):
            facts = workers.get(address, {"nthreads": 1})
            limit = float(facts.get("memory_limit") or 0)
            needed = 2.0 * codes + _BYTES_A_ROW * n_rows + 3.0 * summary.n_bytes
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

    def grower(self, training: ForestTraining, *given: Any, **options: Any) -> ForestGrower:
        data, wants_out_of_bag = training.data, options["out_of_bag"] is not None
        assert isinstance(data, ClusterCodes)
        setup = worker_setup(self._forest, training, wants_out_of_bag=wants_out_of_bag)
        self._tasks = TreeTasks(self._client, setup, data.blocks, data.pieces)
        return ClusterGrower(self._tasks, training, *given, **options)

    def leaf_samples(
        self, training: ForestTraining, sampler: Sampler, trees: list[PackedTree], kind: Kind
    ) -> LeafSamples:
        assert self._tasks is not None
        found = self._tasks.leaf_samples(dict(enumerate(trees)))
        y = training.targets.raw * training.scale
        samples = [found[number] for number in range(len(trees))]
        return LeafSamples(
            y[np.argsort(y, kind="stable")],
            [sample.starts[0] for sample in samples],
            [sample.ranks[0] for sample in samples],
            [sample.weights[0] for sample in samples],
        )

    def close(self) -> None:
        """Cancel the tasks of this fit, and release its tables."""
        if self._tasks is not None:
            self._tasks.close()


@dataclass(frozen=True)
class ClusterCodes(BinnedDataset):
    """Codes on the workers; the client knows only how many there are.

    blocks   futures of `MergedColumns`: the values of the codes
    pieces   futures of `PartitionCodes`, the codes of each partition
    """

    blocks: list[Any]
    pieces: list[Any]


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
