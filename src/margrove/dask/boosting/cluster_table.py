"""The table of a boosting fit: tasks on its partitions, and worker groups that hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import dask
import numpy as np

from margrove.dask.boosting.bin_refinement import refined_columns
from margrove.dask.boosting.bins import (
    ColumnCodes,
    columns_of_partitions,
    whole_weight_bits,
    whole_weights,
)
from margrove.dask.boosting.coded_partitions import code_partition
from margrove.dask.boosting.leader import borders_of_runs, runs_of_rows
from margrove.dask.boosting.remote_rows import (
    PartitionRows,
    distinct_rows,
    facts_of_partition,
    hash_rows,
    rows_by_partition,
    stand_in_for_nan,
    used_categories,
)
from margrove.dask.cluster import (
    available_workers,
    gathered,
    run_on_workers,
    wait_for_results,
    wait_until_removed,
    with_retries,
)
from margrove.dask.collective import WorkerGroup
from margrove.dask.partitions import (
    Partitions,
    Shard,
    assign_workers,
    pieces_of_rows,
    release_memory,
)
from margrove.ensemble.gradient import SoFar
from margrove.grove.serve import Kind

__all__ = ["BoostingTable"]

Prepare = Callable[[Any, Sequence[tuple[int, int]]], None]

# Tasks get the numbers and weights of their rows, 16 bytes a row, on purpose.
_SENDS_ROWS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
# Above so many rows distinct values are not gathered, see `bin_refinement`.
_MANY_ROWS = 2_000_000
_FEW_COLUMNS = 4096  # up to which a sample of rows is taken
_PROGRAM = "margrove.dask.boosting.worker_program:BoostingProgram"


class BoostingTable:
    """Partitions of a table on workers, and the tasks of a boosting fit on them."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._groups: list[Any] = []
        self._coded: list[Any] = []

    @property
    def shape(self) -> tuple[int, int]:
        return self._partitions.n_rows, self._partitions.n_features

    def close(self) -> None:
        while self._groups:
            self._groups.pop().close()

    # -- tasks --

    def _offsets(self) -> np.ndarray:
        return self._partitions.offsets

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._partitions.client.submit(function, *arguments, pure=False)

    def _map(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        *,
        stores: bool = False,
    ) -> list[Any]:
        """Futures of function(partition, *arguments) for each partition."""
        with dask.config.set(_SENDS_ROWS):
            return self._partitions.map_each(function, arguments, stores=stores)

    def _results(self, futures: list[Any]) -> list[Any]:
        return gathered(self._partitions.client, futures)

    def _on_partitions(
        self, function: Callable[..., Any], rows: Sequence[PartitionRows], *arguments: Any
    ) -> list[Any]:
        return self._results(
            self._map(function, [(partition_rows, *arguments) for partition_rows in rows])
        )

    def hashes(self, rows: np.ndarray, renumbered: dict[int, np.ndarray]) -> np.ndarray:
        """uint64: hashes of the content of rows, which ascend; copies of a row are hashed once."""
        distinct, places = distinct_rows(rows)
        partition_rows = rows_by_partition(distinct, self._offsets())
        facts = self._on_partitions(facts_of_partition, partition_rows)
        has_infinity = any(fact.has_infinity for fact in facts)
        found = self._on_partitions(
            hash_rows, partition_rows, renumbered, has_infinity, stand_in_for_nan(facts)
        )
        hashes: np.ndarray = np.concatenate(found)[places]
        return hashes

    def used_categories(self, rows: np.ndarray, columns: Sequence[int]) -> dict[int, np.ndarray]:
        """The numbers of the categories that occur in some rows, by column."""
        partition_rows = rows_by_partition(rows, self._offsets())
        found = self._on_partitions(used_categories, partition_rows, list(columns))
        return {
            column: np.unique(np.concatenate([used[k] for used in found]))
            for k, column in enumerate(columns)
        }

    def columns(
        self,
        rows: np.ndarray,
        weight: np.ndarray | None,
        renumbered: dict[int, np.ndarray],
        n_categories: np.ndarray,
        max_bins: int,
    ) -> list[ColumnCodes]:
        """The codes of all columns."""
        offsets = self._offsets()
        weights: list[np.ndarray | None] = [None] * (len(offsets) - 1)
        if weight is not None:
            integers = whole_weights(weight, whole_weight_bits(weight))
            weights = list(np.split(integers, np.searchsorted(rows, offsets[1:-1])))
        partition_rows = rows_by_partition(rows, offsets)
        if len(rows) > _MANY_ROWS and len(n_categories) <= _FEW_COLUMNS:
            return refined_columns(
                self._map, self._submit, self._results, partition_rows, len(rows), weights,
                renumbered, n_categories, max_bins,
            )  # fmt: skip
        found = columns_of_partitions(
            self._map, self._submit, partition_rows, weights, renumbered, n_categories, max_bins
        )
        return [column for block in self._results(found) for column in block]

    def code(
        self,
        train: np.ndarray,
        held_out: np.ndarray,
        columns: Sequence[ColumnCodes],
        renumbered: dict[int, np.ndarray],
        so_far: SoFar,
        kind: Kind,
    ) -> None:
        """Code all partitions, for the worker groups that are opened later."""
        offsets = self._offsets()
        partition_rows = rows_by_partition(distinct_rows(train)[0], offsets)
        cuts = np.searchsorted(held_out, offsets)
        held_out_rows = [
            held_out[cuts[k] : cuts[k + 1]] - offsets[k] for k in range(len(partition_rows))
        ]
        arguments = [
            (rows, others, columns, renumbered, so_far, kind)
            for rows, others in zip(partition_rows, held_out_rows, strict=True)
        ]
        self._coded = self._map(code_partition, arguments, stores=True)

    # -- groups --

    def open_group(self, train: np.ndarray, prepare: Prepare, lost: str | None = None) -> Any:
        """A worker group that holds these rows, after `prepare(group, runs)`.

        runs are the ranges of the table's rows on each worker; lost is the worker that the last
        group has lost.
        """
        client = self._partitions.client
        self.close()
        if self._partitions.on_disk:
            wait_for_results(client, self._coded)
            run_on_workers(client, list(available_workers(client)), release_memory)
        if lost is not None:
            wait_until_removed(client, lost)

        def attempt(workers: list[str]) -> Any:
            runs = self._runs(train, len(workers))
            group = self._new_group(runs, workers)
            try:
                prepare(group, runs)
            except BaseException:
                group.close()
                raise
            return group

        group = with_retries(attempt, client)
        self._groups.append(group)
        return group

    def _runs(self, train: np.ndarray, n_workers: int) -> list[tuple[int, int]]:
        return runs_of_rows(train, borders_of_runs(len(train), n_workers), self.shape[0])

    def _new_group(self, runs: list[tuple[int, int]], workers: list[str]) -> Any:
        lengths = self._partitions.lengths
        pieces = [pieces_of_rows(lengths, start, stop) for start, stop in runs]
        hosts = assign_workers(pieces, workers, self._partitions.holders())
        shards = [
            Shard(host, start, stop, shard_pieces)
            for host, (start, stop), shard_pieces in zip(hosts, runs, pieces, strict=True)
        ]
        coded = replace(self._partitions, X=self._coded, y=None, weight=None)
        group = WorkerGroup(self._partitions.client, shards, coded, _PROGRAM)
        return group.__enter__()
