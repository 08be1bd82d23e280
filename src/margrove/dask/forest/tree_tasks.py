"""Tasks that grow trees: any worker may run them, and Dask repeats what is lost with a worker.

All tasks of a fit depend on its table (`WorkerTable`), which one worker makes. Dask gives each
worker tasks as long as it has a free thread, and sends it the table before its first one. Results
do not depend on the worker.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import dask
import distributed

from margrove.dask.cluster import (
    ClusterError,
    gathered,
    preferring,
    wait_for_workers,
    workers_of,
)
from margrove.dask.forest.worker_table import (
    OutOfBagLeaves,
    WorkerSetup,
    leaf_samples,
    make_worker_table,
    out_of_bag_leaves,
)
from margrove.ensemble.forest import LeafSamples
from margrove.exceptions import FitCancelled
from margrove.grove.serve import PackedTree

__all__ = ["TreeTasks"]

_CHECK_SECONDS = 1.0  # between two checks of which workers there are
_TASKS_A_THREAD = 3  # under way: more than two, for Dask to regard the table as shared by all
_MAX_LOSSES = 10  # of the setup, in a row
_LARGE_TASKS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # large trees
_WHAT = (
    "trees, which need the whole table as codes (max_bins=255 makes them one byte a cell, if they "
    "do not fit into memory)"
)


class TreeTasks:
    """The tasks of a fit that are under way.

    Parameters
    ----------
    client : distributed.Client
    setup : WorkerSetup
    blocks, pieces : futures of MergedColumns and PartitionCodes
    """

    def __init__(
        self, client: distributed.Client, setup: WorkerSetup, blocks: list[Any], pieces: list[Any]
    ) -> None:
        self._client, self._setup = client, setup
        self._codes = blocks, pieces
        self._name = f"margrove-forest-{secrets.token_hex(8)}"
        self._numbers = itertools.count()
        self._table: Any = None
        self._submitted: dict[Any, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._found: defaultdict[Callable[..., Any], list[Any]] = defaultdict(list)
        self._n_threads, self._checked_at = 1, float("-inf")
        self._losses = 0

    @property
    def n_threads(self) -> int:
        """The number of threads of all workers together."""
        if time.monotonic() - self._checked_at >= _CHECK_SECONDS:
            self._n_threads = sum(wait_for_workers(self._client).values())
            self._checked_at = time.monotonic()
        return self._n_threads

    @property
    def n_wanted(self) -> int:
        """How many more tasks keep all workers busy."""
        return max(0, _TASKS_A_THREAD * self.n_threads - len(self._submitted))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run function(table, *arguments) on one of the workers; `poll` returns its result."""
        # The tasks of a fit form a group of their own: so Dask sees that they share one table.
        key = (f"{function.__name__}-{self._name}", next(self._numbers))
        chosen = dask.config.get("margrove.workers", None) is not None
        where = preferring(workers_of(self._client)) if chosen else {}
        with dask.config.set(_LARGE_TASKS):
            future = self._client.submit(
                function, self._shared_table(), *arguments, key=key, pure=False, **where
            )
        self._submitted[future] = function, arguments

    def _shared_table(self) -> Any:
        if self._table is None:
            setup = self._sent_setup()
            key = (f"table-{self._name}", next(self._numbers))
            self._table = self._client.submit(
                make_worker_table, setup, *self._codes, key=key, pure=False
            )
        return self._table

    def _sent_setup(self) -> Any:
        """The future of the setup on a worker; sent again if that worker is lost meanwhile."""
        for _ in range(_MAX_LOSSES):
            wait_for_workers(self._client)
            with suppress(OSError):
                return self._client.scatter(self._setup, hash=False)
            time.sleep(1.0)
        raise ClusterError("Workers were lost each time that a forest was sent to them.")

    def poll(self, function: Callable[..., Any], seconds: float) -> list[Any]:
        """The results of tasks of this function since the last call; waits some seconds for one."""
        assert self.n_threads
        if self._submitted:
            self._collect(0.0 if self._found[function] else seconds)
        return self._found.pop(function, [])

    def _collect(self, seconds: float) -> None:
        try:
            with self._client.as_current():
                waited = distributed.wait(
                    list(self._submitted), timeout=seconds, return_when="FIRST_COMPLETED"
                )
            done = list(waited.done)
            results = gathered(self._client, self._without_cancelled(done), _WHAT)
        except TimeoutError:
            return
        except (CancelledError, ClusterError) as error:
            self._start_again(error)
            return
        self._losses = 0
        for future, result in zip(done, results, strict=True):
            self._found[self._submitted.pop(future)[0]].append(result)

    def _without_cancelled(self, done: list[Any]) -> list[Any]:
        """Submit tasks again that Dask has cancelled on one worker to run them on another."""
        for future in list(done):
            if future.status == "error" and isinstance(future.exception(), FitCancelled):
                done.remove(future)
                function, arguments = self._submitted.pop(future)
                self.submit(function, *arguments)
        return done

    def _start_again(self, error: BaseException) -> None:
        """Send the setup again, which was lost with its worker, and submit all tasks again."""
        is_lost = any(future.status in ("cancelled", "lost") for future in self._submitted)
        self._losses += 1
        if not is_lost or self._client.status != "running" or self._losses > _MAX_LOSSES:
            raise error
        tasks = list(self._submitted.values())
        self._submitted, self._table = {}, None
        for function, arguments in tasks:
            self.submit(function, *arguments)

    def out_of_bag_leaves(self, trees: dict[int, PackedTree]) -> dict[int, OutOfBagLeaves]:
        """The leaves of the out-of-bag rows of trees, by their numbers."""
        return self._run_on_trees(out_of_bag_leaves, trees)

    def leaf_samples(self, trees: dict[int, PackedTree]) -> dict[int, LeafSamples]:
        """The targets in the leaves of trees, by their numbers."""
        return self._run_on_trees(leaf_samples, trees)

    def _run_on_trees(self, function: Any, trees: dict[int, PackedTree]) -> dict[int, Any]:
        for number, tree in trees.items():
            self.submit(function, {number: tree})
        found: dict[int, Any] = {}
        while not trees.keys() <= found.keys():
            for answer in self.poll(function, _CHECK_SECONDS):
                found |= answer
        return found

    def close(self) -> None:
        """Cancel all tasks, and release the table."""
        if self._submitted and self._client.status == "running":
            self._client.cancel(list(self._submitted))
        self._submitted, self._table = {}, None
