"""Forests in shards of their rows without a cluster; what members say travels as on sockets."""

from __future__ import annotations

import pickle
from typing import Any

from margrove.dask.cluster import GangBroken
from margrove.dask.forest_here import GangHere, ShardsHere
from margrove.dask.forest_sharded import ShardedGrower


class _Gang(GangHere):
    """Breaks once it has been asked often enough; each number of `breaks_at` serves one gang."""

    def __init__(self, members: list[Any], breaks_at: list[int]) -> None:
        super().__init__(members)
        self._left = breaks_at.pop(0) if breaks_at else None
        self.asked: list[str] = []

    def ask_each(self, method: str, arguments: list[Any], combine: str = "sum") -> Any:
        self.asked.append(method)
        if self._left is not None and len(self.asked) > self._left:
            raise GangBroken("A worker is lost.", self.workers[0])
        found = super().ask_each(method, pickle.loads(pickle.dumps(arguments)), combine)
        return pickle.loads(pickle.dumps(found))


class _Shards(ShardsHere):
    def __init__(self, training: Any, n_members: int, breaks_at: list[int]) -> None:
        super().__init__(training, n_members)
        self._breaks_at = breaks_at
        self.gangs: list[_Gang] = []

    def _gang(self, members: list[Any]) -> Any:
        self.gangs.append(_Gang(members, self._breaks_at))
        return self.gangs[-1]

    def open(self, prepare: Any, lost: str | None) -> Any:
        while True:
            try:
                return super().open(prepare, lost)
            except GangBroken:  # as `persistently` does
                continue


def in_shards(
    kind: Any,
    n_members: int,
    settings: dict[str, Any],
    *data: Any,
    small: int = 30,
    breaks_at: Any = (),
) -> tuple[Any, Any]:
    """A forest of this kind, fitted on shards of its rows; and these."""
    made: list[_Shards] = []

    class Grower(ShardedGrower):
        fewest_rows, subtrees_a_member = small, 2**31

        def _find_shards(self, training: Any) -> Any:
            made.append(_Shards(training, n_members, list(breaks_at)))
            return made[-1]

    model = kind(**settings)
    model._kind_of_grower = lambda _: Grower
    try:
        model.fit(*data)
    finally:
        made[-1].close()
        del model._kind_of_grower
    return model, made[-1]
