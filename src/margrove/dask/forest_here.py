"""Shards of a forest's rows in this process, without a cluster: to compile loops, and for tests."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from margrove.dask.forest_codes import MergedColumns, codes_at, values_at
from margrove.dask.forest_shard import ForestShard
from margrove.dask.forest_sharded import ShardedGrower
from margrove.dask.members import combined
from margrove.dask.shards import ShardRows
from margrove.ensemble.forest.training_data import ForestTraining
from margrove.grove.table.binning import BinnedDataset

__all__ = ["GangHere", "ShardsHere", "run_all_loops"]


class GangHere:
    """Members one after the other; see `Gang`."""

    def __init__(self, members: list[ForestShard]) -> None:
        self._members, self.n_members = members, len(members)
        self.workers = [f"member {rank}" for rank in range(len(members))]

    def ask(self, method: str, *arguments: Any, combine: str = "sum") -> Any:
        return self.ask_each(method, [arguments] * self.n_members, combine)

    def ask_each(self, method: str, arguments: list[tuple[Any, ...]], combine: str = "sum") -> Any:
        pairs = zip(self._members, arguments, strict=True)
        replies = [getattr(member, method)(*own) for member, own in pairs]
        return replies if combine == "list" else combined(combine, replies)


class ShardsHere:
    """Rows dealt out at random; see `ShardsOnCluster`."""

    def __init__(self, training: ForestTraining, n_members: int) -> None:
        self._data, self._n_members = training.data, n_members
        self._columns = MergedColumns(self._data.lows, self._data.highs, self._data.has_missing)
        self.merged = self._columns.is_merged
        self._gone = threading.Event()

    def known(self, *, everything: bool) -> BinnedDataset:
        data = self._data
        narrow, medium, wide = (own[:, :0] for own in data.codes[:3])
        known = [
            low if everything or is_category else np.empty(0)
            for low, is_category in zip(data.lows, data.categorical, strict=True)
        ]
        codes = data.codes._replace(narrow=narrow, medium=medium, wide=wide)
        return replace(data, codes=codes, n_rows=0, lows=known, highs=known)

    def values_at(self, features: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return values_at(self._columns, features, codes)

    def codes_at(self, features: np.ndarray, values: np.ndarray) -> np.ndarray:
        return codes_at(self._columns, features, values)

    def new_key(self) -> bytes:
        return b"of no importance"

    def memory(self) -> float:
        return 0.0

    def open(self, prepare: Any, lost: str | None) -> Any:
        self.close()
        self._gone = threading.Event()
        rng = np.random.default_rng(0)
        columns = (self._data.column(j)[:, None] for j in range(self._data.n_features))
        cells = np.concatenate(
            [np.ascontiguousarray(own).view(np.uint8) for own in columns], axis=1
        )
        host = rng.integers(0, self._n_members, len(cells))
        places = [rng.permutation(np.flatnonzero(host == k)) for k in range(self._n_members)]
        members = [
            ForestShard(ShardRows(cells[own], None, None, 0, len(own), 1, self._gone))
            for own in places
        ]
        gang = self._gang(members)
        prepare(gang, places)
        return gang

    def _gang(self, members: list[ForestShard]) -> Any:
        return GangHere(members)

    def close(self) -> None:
        self._gone.set()


class _GrowerHere(ShardedGrower):
    """Every node of more than twenty rows is a large one."""

    fewest_rows, subtrees_a_member = 20, 2**31

    def _find_shards(self, training: ForestTraining) -> Any:
        return ShardsHere(training, 1)


class _Growers:
    """Remembers whom it has made, to end what they have begun."""

    def __init__(self) -> None:
        self._made: list[_GrowerHere] = []

    def kind_of(self, training: ForestTraining) -> Any:
        return self._make

    def _make(self, *given: Any, **options: Any) -> _GrowerHere:
        self._made.append(_GrowerHere(*given, **options))
        return self._made[-1]

    def close(self) -> None:
        for grower in self._made:
            grower._end_gang()


def run_all_loops() -> None:
    """Small forests of all kinds, so that what members and clients run is compiled."""
    from margrove.ensemble.forest.estimators import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    X = np.random.default_rng(0).random((80, 3))
    weight = 1.0 + np.arange(80) % 3
    with_gaps = np.where(X < 0.1, np.nan, np.round(X, 1))
    whole: dict[str, Any] = {
        "n_estimators": 20, "bootstrap": True, "oob_score": True, "random_state": 0,
    }  # fmt: skip
    kinds: tuple[Any, ...] = (
        RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor,
    )  # fmt: skip
    for kind in kinds:
        for table, settings in ((X, {}), (with_gaps, {"categorical_features": [0]})):
            model, growers = kind(**(whole | settings)), _Growers()
            model._kind_of_grower = growers.kind_of
            model.fit(table, np.arange(80) % 3, weight)
            growers.close()
