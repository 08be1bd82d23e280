"""Codes in shards of rows on the workers of a cluster, and gangs of those who hold them."""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import dask
import numpy as np

from margrove._runtime.memory import require_memory
from margrove.dask.cluster import machines_of
from margrove.dask.forest_codes import codes_at, values_at
from margrove.dask.forest_here import run_all_loops
from margrove.dask.forest_table import ClusterTable, CodesOnCluster
from margrove.dask.gang import Gang
from margrove.dask.persistence import _wait_until_missed, persistently
from margrove.dask.shards import plan_shards
from margrove.dask.waiting import gathered
from margrove.ensemble.forest.training_data import ForestTraining
from margrove.grove.table.binning import BinnedDataset

__all__ = ["ShardsOnCluster"]

_PROGRAM = "margrove.dask.forest_shard:ForestShard"
_WARM: weakref.WeakSet[Any] = weakref.WeakSet()  # clients whose workers have compiled all loops
_LARGE_QUESTIONS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # large trees

Prepare = Callable[[Any, list[np.ndarray]], None]


class ShardsOnCluster:
    """The codes of a `ClusterTable` as bytes, row by row, part by part."""

    def __init__(self, table: ClusterTable, data: CodesOnCluster, order: np.ndarray) -> None:
        self._data, self._client = data, table.parts.client
        self._parts = replace(
            table.parts, X=data.pieces, y=None, weight=None, lengths=table.kept_lengths
        )
        kind = np.int32 if len(order) < 2**31 else np.int64
        self._place_of = np.full(table.X.shape[0], -1, kind)
        self._place_of[order] = np.arange(len(order))
        self._gang: Any = None

    @classmethod
    def of(cls, training: ForestTraining) -> ShardsOnCluster:
        table, data = training.table, training.data
        assert isinstance(table, ClusterTable)
        assert isinstance(data, CodesOnCluster)
        made = cls(table, data, training.order)
        table.held.append(made)
        return made

    @property
    def merged(self) -> np.ndarray:
        """bool (d,): whether codes stand for several values."""
        return self._data.merged

    def known(self, *, everything: bool) -> BinnedDataset:
        """Categories, or what all codes stand for; no rows."""
        data = self._data
        if everything:
            require_memory(
                16.0 * float(data.n_codes.sum()),
                "What the codes of all columns stand for, which thresholds are drawn from,",
                "Set max_bins=255.",
            )
        lows, highs = list(data.lows), list(data.highs)
        wanted = [
            (k, own)
            for k, own in enumerate(data.runs)
            if everything or data.categorical[np.array(own, dtype=np.int64)].any()
        ]
        blocks = gathered(self._client, [data.blocks[k] for k, _ in wanted])
        for block, (_, own) in zip(blocks, wanted, strict=True):
            for j, low, high in zip(own, block.lows, block.highs, strict=True):
                if everything or data.categorical[j]:
                    lows[j], highs[j] = low, high
        return replace(data.without_rows(), lows=lows, highs=highs)

    def values_at(self, features: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest values of codes."""
        lows, highs = np.empty(len(codes)), np.empty(len(codes))
        for which, own in self._asked(values_at, features, codes):
            lows[which], highs[which] = own
        return lows, highs

    def codes_at(self, features: np.ndarray, values: np.ndarray) -> np.ndarray:
        """See `forest_codes.codes_at`."""
        codes = np.empty(len(values), np.int64)
        for which, own in self._asked(codes_at, features, values):
            codes[which] = own
        return codes

    def _asked(
        self, question: Callable[..., Any], features: np.ndarray, what: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Any]]:
        """Which of the features each block has, and its answers."""
        block_of, place_of = (np.empty(self._data.n_features, np.int64) for _ in range(2))
        for k, columns in enumerate(self._data.runs):
            block_of[columns], place_of[columns] = k, np.arange(len(columns))
        asked = block_of[features]
        parts = [(int(k), np.flatnonzero(asked == k)) for k in np.unique(asked)]
        with dask.config.set(_LARGE_QUESTIONS):
            futures = [
                self._client.submit(
                    question, self._data.blocks[k], place_of[features[own]], what[own], pure=False
                )
                for k, own in parts
            ]
        answers = gathered(self._client, futures)
        return zip((own for _, own in parts), answers, strict=True)

    def new_key(self) -> bytes:
        return secrets.token_bytes(32)

    def memory(self) -> float:
        """What the smallest worker may use; 0 if nobody has said."""
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        limits = (float(facts.get("memory_limit") or 0) for facts in known.values())
        return min((limit for limit in limits if limit), default=0.0)

    def open(self, prepare: Prepare, lost: str | None) -> Any:
        """A gang that is ready, once `prepare(gang, places of its members' rows)` is done.

        lost: whom the last gang has lost.
        """
        self.close()
        if lost is not None:
            _wait_until_missed(self._client, lost)
        self._gang = persistently(lambda workers: self._attempt(workers, prepare), self._client)
        return self._gang

    def _warm_up(self, workers: list[str]) -> None:
        """Have loops compiled once on each machine, not by all of its workers at the same time."""
        if self._client in _WARM:
            return
        first = [group[0] for group in machines_of(self._client, workers).values()]
        tasks = [
            self._client.submit(run_all_loops, workers=[one], allow_other_workers=True, pure=False)
            for one in first
        ]
        gathered(self._client, tasks)
        _WARM.add(self._client)

    def _attempt(self, workers: list[str], prepare: Prepare) -> Any:
        self._warm_up(workers)
        parts = self._parts
        shards = plan_shards(parts.lengths, workers, parts.where())
        gang = Gang(self._client, shards, parts, _PROGRAM)
        gang.__enter__()
        try:
            prepare(gang, [self._place_of[shard.start : shard.stop] for shard in shards])
        except BaseException:
            gang.close()
            raise
        return gang

    def close(self) -> None:
        if self._gang is not None:
            self._gang.close()
            self._gang = None
