"""Who works for a fit of gradient boosting: parts of a table on workers, tasks, and gangs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask
import numpy as np

from margrove.dask.boosting_bins import (
    ColumnCodes,
    columns_of_parts,
    whole_weight_bits,
    whole_weights,
)
from margrove.dask.boosting_crew import borders_of_runs, runs_of_rows
from margrove.dask.boosting_rows import (
    PartRows,
    hash_rows,
    part_rows,
    stand_in_for_nan,
    survey_part,
    used_categories,
)
from margrove.dask.gang import Gang
from margrove.dask.parts import Parts
from margrove.dask.persistence import _wait_until_missed, persistently
from margrove.dask.shards import Shard, _hosts, _pieces
from margrove.dask.waiting import gathered

__all__ = ["Workforce"]

Prepare = Callable[[Any, Sequence[tuple[int, int]]], None]

# Tasks are sent which rows of their part count, and how much: 16 bytes a row are meant to be.
_SENDS_ROWS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
_PROGRAM = "margrove.dask.boosting_shard:BoostingShard"


class Workforce:
    """Parts of a table, and the workers that have them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._gangs: list[Any] = []

    @property
    def shape(self) -> tuple[int, int]:
        return self._parts.n_rows, self._parts.n_features

    def close(self) -> None:
        while self._gangs:
            self._gangs.pop().close()

    # -- tasks --

    def _offsets(self) -> np.ndarray:
        return self._parts.offsets

    def _part_futures(self) -> list[Any]:
        return self._parts.X

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._parts.client.submit(function, *arguments, pure=False)

    def _results(self, futures: list[Any]) -> list[Any]:
        return gathered(self._parts.client, futures)

    def _on_parts(
        self, function: Callable[..., Any], rows: Sequence[PartRows], *arguments: Any
    ) -> list[Any]:
        pairs = zip(self._part_futures(), rows, strict=True)
        with dask.config.set(_SENDS_ROWS):
            made = [self._submit(function, part, own, *arguments) for part, own in pairs]
        return self._results(made)

    def hashes(self, rows: np.ndarray, renumbered: dict[int, np.ndarray]) -> np.ndarray:
        """Of the content of rows, ascending; copies of a row are hashed once."""
        distinct, places = np.unique(rows, return_inverse=True)
        own = part_rows(distinct, self._offsets())
        facts = self._on_parts(survey_part, own)
        has_infinity = any(fact.has_infinity for fact in facts)
        found = self._on_parts(hash_rows, own, renumbered, has_infinity, stand_in_for_nan(facts))
        hashes: np.ndarray = np.concatenate(found)[places]
        return hashes

    def used_categories(self, rows: np.ndarray, columns: Sequence[int]) -> dict[int, np.ndarray]:
        """Numbers of the categories that rows have, by column."""
        own = part_rows(rows, self._offsets())
        found = self._on_parts(used_categories, own, list(columns))
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
        """What the codes of all columns stand for."""
        offsets = self._offsets()
        weights: list[np.ndarray | None] = [None] * (len(offsets) - 1)
        if weight is not None:
            whole = whole_weights(weight, whole_weight_bits(weight))
            weights = list(np.split(whole, np.searchsorted(rows, offsets[1:-1])))
        with dask.config.set(_SENDS_ROWS):
            found = columns_of_parts(
                self._submit, self._part_futures(), part_rows(rows, offsets), weights, renumbered,
                n_categories, max_bins,
            )  # fmt: skip
        return [column for block in self._results(found) for column in block]

    # -- gangs --

    def open_gang(self, train: np.ndarray, prepare: Prepare, lost: str | None = None) -> Any:
        """A gang whose members have these rows, once `prepare(gang, runs)` is done.

        runs are those of the table's rows that members have; lost is the worker that the last gang
        has lost.
        """
        client = self._parts.client
        self.close()
        if lost is not None:
            _wait_until_missed(client, lost)

        def attempt(workers: list[str]) -> Any:
            runs = self._runs(train, len(workers))
            gang = self._new_gang(runs, workers)
            try:
                prepare(gang, runs)
            except BaseException:
                gang.close()
                raise
            return gang

        gang = persistently(attempt, client)
        self._gangs.append(gang)
        return gang

    def _runs(self, train: np.ndarray, n_members: int) -> list[tuple[int, int]]:
        return runs_of_rows(train, borders_of_runs(len(train), n_members), self.shape[0])

    def _new_gang(self, runs: list[tuple[int, int]], workers: list[str]) -> Any:
        lengths = self._parts.lengths
        pieces = [_pieces(lengths, start, stop) for start, stop in runs]
        hosts = _hosts(pieces, workers, self._parts.where())
        shards = [
            Shard(host, start, stop, own)
            for host, (start, stop), own in zip(hosts, runs, pieces, strict=True)
        ]
        gang = Gang(self._parts.client, shards, self._parts, _PROGRAM)
        return gang.__enter__()
