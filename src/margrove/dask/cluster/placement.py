"""Tasks with preferred workers, so that neighbouring partitions are computed on one worker."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import distributed

__all__ = ["PlacedTasks", "compute_neighbours_together", "preferring", "revive_placed_tasks"]

_PLACED: weakref.WeakKeyDictionary[Any, weakref.WeakSet[PlacedTasks]] = weakref.WeakKeyDictionary()


class PlacedTasks:
    """The tasks of some delayed values that prefer workers; to be kept as long as their results.

    If the preferred worker is gone, Dask runs a task elsewhere. There is one exception: a task
    that becomes ready while there is no worker at all waits for the preferred one for ever, even
    if others come. These are the tasks that read data, as others become ready where their data
    are. So the tasks are submitted again when all preferred workers are gone.
    """

    def __init__(
        self, client: distributed.Client, values: Sequence[Any], workers: Collection[str]
    ) -> None:
        self._keys = {key for value in values for key in dict(value.__dask_graph__())}
        self._workers = set(workers)
        _PLACED.setdefault(client, weakref.WeakSet()).add(self)

    def revive(self, client: distributed.Client, available: Collection[str]) -> None:
        """Submit the tasks again if none of their workers is left."""
        if not self._workers or not self._workers.isdisjoint(available):
            return
        client.retry([distributed.Future(key, client) for key in self._keys])
        self._workers = set(available)


def compute_neighbours_together(
    client: distributed.Client, tuples: Sequence[Any], n_items: int, workers: Sequence[str]
) -> tuple[list[list[Any]], PlacedTasks]:
    """Compute delayed tuples, a run of neighbours on each worker.

    Returns
    -------
    futures : n_items lists
        The i-th list has the i-th item of each tuple.
    placed : PlacedTasks
    """
    n_runs = max(1, len(workers))
    borders = [k * len(tuples) // n_runs for k in range(n_runs + 1)]
    found: list[list[Any]] = [[] for _ in range(n_items)]
    for k, (start, stop) in enumerate(itertools.pairwise(borders)):
        wanted = [delayed[i] for i in range(n_items) for delayed in tuples[start:stop]]
        flat = client.compute(wanted, **preferring(workers[k : k + 1]))
        for i in range(n_items):
            found[i] += flat[i * (stop - start) : (i + 1) * (stop - start)]
    return found, PlacedTasks(client, tuples, workers)


def preferring(workers: Sequence[str]) -> dict[str, Any]:
    """Arguments of `Client.submit`: run on one of these workers, or on others if they are lost."""
    return {"workers": list(workers), "allow_other_workers": True} if workers else {}


def revive_placed_tasks(client: distributed.Client, available: Collection[str]) -> None:
    """Submit again what prefers workers that are all gone; `available` are those that are left."""
    for placed in list(_PLACED.get(client, ())):
        placed.revive(client, available)
