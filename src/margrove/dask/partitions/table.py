"""Dask collections as aligned partitions: rows, targets and weights, checked on the workers.

Partitions are results of the graphs of the collections. What is lost with a worker is computed
again from its source; no data exist only because this process has sent them.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import distributed
import joblib
import numpy as np
from dask.delayed import delayed

from margrove._data import feature_names
from margrove.dask.cluster import (
    PlacedTasks,
    client_of,
    compute_neighbours_together,
    gathered,
    preferring,
    wait_for_results,
    with_retries,
)
from margrove.dask.partitions.blocks import (
    blocks_beside,
    blocks_of,
    checked_table,
    is_dataframe,
    is_frame_of_floats,
)
from margrove.dask.partitions.checks import (
    Form,
    PartitionCheck,
    checked_partition,
    joined,
    vector_of,
)
from margrove.dask.partitions.disk_storage import (
    PartitionOnDisk,
    is_on_disk,
    loaded,
    release_memory,
)
from margrove.exceptions import InvalidDataError

__all__ = ["Partitions", "partitions_of"]

# Beyond this number neighbours are joined, because each partition is work for the scheduler.
_MAX_PARTITIONS = 4096


@dataclass(frozen=True)
class Partitions:
    """A table in partitions on the workers, in the order of its rows.

    X, y, weight     futures, one a partition; y and weight None if they were not given
    lengths          int64, the number of rows of each partition, which may be 0
    form             the form of partitions of X: "dense" (float64 or float32, C-contiguous), "csr",
                     or "frame" (pandas, or an array of strings, with `keep_frames`)
    on_disk          whether some partitions of X are `PartitionOnDisk`, because memory is short
    placed           the tasks that make the partitions, if they prefer workers
    """

    X: list[Any]
    y: list[Any] | None
    weight: list[Any] | None
    lengths: np.ndarray
    n_features: int
    feature_names: np.ndarray | None
    client: Any
    form: Form = "dense"
    on_disk: bool = False
    placed: PlacedTasks | None = None

    @property
    def n_rows(self) -> int:
        return int(self.lengths.sum())

    @property
    def offsets(self) -> np.ndarray:
        """int64 (n_partitions + 1,): the first row of each partition, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of an estimator about the table."""
        known: dict[str, Any] = {"n_features_in_": self.n_features}
        if self.feature_names is not None:
            known["feature_names_in_"] = self.feature_names
        return known

    def gather_y(self) -> np.ndarray:
        """All targets, in order, on this machine."""
        assert self.y is not None
        return joined(gathered(self.client, self.y))

    def gather_weight(self) -> np.ndarray | None:
        """All weights, float64, in order, on this machine; None if none were given."""
        return None if self.weight is None else joined(gathered(self.client, self.weight))

    def holders(self) -> list[tuple[str, ...]]:
        """The workers that hold each partition of X; those that were lost are made again first."""
        wait_for_results(self.client, self.X)
        holders = self.client.who_has(self.X)
        return [tuple(holders.get(future.key, ())) for future in self.X]

    def worker_restrictions(self) -> Sequence[tuple[str, ...]]:
        """The workers that tasks of each partition should prefer; () for any worker.

        Partitions on disk look small to Dask, which would move them, so tasks prefer the holders.
        Submit them with `allow_other_workers=True`: a holder may be lost.
        """
        return self.holders() if self.on_disk else [()] * len(self.X)

    def map(self, function: Callable[..., Any], *arguments: Any, stores: bool = False) -> list[Any]:
        """Futures of `function(partition of X, *arguments)`, one a partition.

        Pass large arguments as futures.

        stores: the results are partitions, too, and are stored on disk if the partitions are.
        """
        return self.map_each(function, [arguments] * len(self.X), stores=stores)

    def map_each(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        *,
        stores: bool = False,
    ) -> list[Any]:
        """Like `map`, with separate arguments for each partition.

        A worker runs a task on each of its threads, so each task gets one thread.
        """
        name = f"{getattr(function, '__name__', 'task').strip('_')}-{secrets.token_hex(8)}"
        holders = self.worker_restrictions()
        return [
            self.client.submit(
                _on_one_thread,
                function,
                partition,
                stores,
                *partition_arguments,
                key=f"{name}-{k}",
                pure=False,
                **preferring(holders[k]),
            )
            for k, (partition, partition_arguments) in enumerate(
                zip(self.X, arguments, strict=True)
            )
        ]

    def with_X(self, X: Sequence[Any], form: Form = "dense") -> Partitions:  # noqa: N802
        """The same targets and weights with other rows, as `map` makes them."""
        return replace(self, X=list(X), form=form)

    @property
    def futures(self) -> list[Any]:
        """All futures: of rows, targets and weights."""
        return [*self.X, *(self.y or ()), *(self.weight or ())]


def _on_one_thread(
    function: Callable[..., Any], partition: Any, stores: bool, *arguments: Any
) -> Any:
    with joblib.parallel_config(backend="threading", n_jobs=1):
        found = function(loaded(partition), *arguments)
    if not is_on_disk(partition):
        return found
    if stores:
        found = PartitionOnDisk(found)
    release_memory()
    return found


def partitions_of(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    client: distributed.Client | None = None,
    estimator: Any = None,
    *,
    keep_frames: bool | Literal["labels"] = False,
    allow_nan: bool = True,
) -> Partitions:
    """Compute and check a table on the cluster, partition by partition, and keep it there.

    Parameters
    ----------
    X : dask array (n_samples, n_features) or dask dataframe
        Chunks may be of unknown sizes; chunks of columns are joined.
    y, sample_weight : dask array or series, array-like, or None
        In the partitions of X, or in chunks of known sizes; or local arrays.
    client : distributed.Client, optional
    estimator : estimator, optional
        The estimator that error messages name.
    keep_frames : bool or "labels", default=False
        Keep dataframes and strings (`partitions.encoding` turns them into numbers), or only those
        that may contain labels; otherwise all columns must be numbers.
    allow_nan : bool, default=True
        Otherwise NaN and infinity are errors.

    Returns
    -------
    Partitions
    """
    client = client_of(client)
    X = checked_table(X)
    names = feature_names(X._meta) if is_dataframe(X) else None
    columns = tuple(X.columns) if is_dataframe(X) else None
    rows = blocks_of(X)
    workers = with_retries(lambda workers: workers, client)
    check = PartitionCheck(
        columns,
        names,
        keep_frames is True or (keep_frames == "labels" and not is_frame_of_floats(X)),
        allow_nan,
        type(estimator).__name__,
        share_of_worker=min(len(rows), _MAX_PARTITIONS) / len(workers),
    )
    targets, target_is_local = blocks_beside(y, X, "y")
    weights, weight_is_local = blocks_beside(sample_weight, X, "sample_weight")
    at_once = -(-len(rows) // _MAX_PARTITIONS)
    made = [
        delayed(checked_partition, nout=4, pure=False)(
            rows[k : k + at_once],
            targets and targets[k : k + at_once],
            weights and weights[k : k + at_once],
            k,
            check,
        )
        for k in range(0, len(rows), at_once)
    ]
    futures, placed = compute_neighbours_together(client, made, 4, [] if _is_placed(X) else workers)
    facts = gathered(client, futures[3], "partition {} of X")
    partitions = _assembled(
        futures[0], facts, names, client,
        y=None if y is None else futures[1],
        weight=None if sample_weight is None else futures[2],
        placed=placed,
    )  # fmt: skip
    if target_is_local:
        partitions = replace(partitions, y=_split_like(y, partitions, "y"))
    if weight_is_local:
        partitions = replace(
            partitions, weight=_split_like(sample_weight, partitions, "sample_weight")
        )
    return partitions


def _is_placed(X: Any) -> bool:
    """Whether the collection is persisted on the cluster, or its tasks are bound to workers."""
    graph = X.__dask_graph__()
    if any(layer.annotations for layer in getattr(graph, "layers", {}).values()):
        return True
    return any(isinstance(value, distributed.Future) for value in dict(graph).values())


def _assembled(
    X: list[Any],
    facts: list[tuple[int, int, Form, str, bool]],
    names: np.ndarray | None,
    client: Any,
    **others: Any,
) -> Partitions:
    filled = [k for k, fact in enumerate(facts) if fact[0]]
    if not filled:
        raise InvalidDataError(
            "Found array with 0 sample(s) while a minimum of 1 is required: all partitions of X "
            "are empty."
        )
    first = facts[filled[0]]
    for k in filled:
        if facts[k][1:3] != first[1:3]:
            raise InvalidDataError(
                f"Partition {k} of X has {facts[k][1]} columns ({facts[k][2]}), but partition "
                f"{filled[0]} has {first[1]} ({first[2]}). Make all partitions alike."
            )
    if len({facts[k][3] for k in filled}) > 1:  # as one array they would all be float64
        X = [client.submit(_as_float64, partition, pure=False) for partition in X]
    lengths = np.array([fact[0] for fact in facts], dtype=np.int64)
    return Partitions(
        X=X, lengths=lengths, n_features=first[1], feature_names=names, client=client,
        form=first[2], on_disk=any(fact[4] for fact in facts), **others,
    )  # fmt: skip


def _as_float64(partition: Any) -> Any:
    found = loaded(partition).astype(np.float64)
    return PartitionOnDisk(found) if is_on_disk(partition) else found


def _split_like(values: Any, partitions: Partitions, name: str) -> list[Any]:
    """A local array in the partitions of X; it is in the graph, so it is never lost."""
    array = (
        vector_of(values, partitions.n_rows, name) if len(values) == partitions.n_rows else values
    )
    if len(array) != partitions.n_rows:
        raise InvalidDataError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{partitions.n_rows} rows, {name} has {len(array)}."
        )
    if name == "sample_weight":
        array = np.ascontiguousarray(array, dtype=np.float64)
    borders = partitions.offsets
    return [
        partitions.client.submit(np.array, array[start:stop], pure=False)
        for start, stop in itertools.pairwise(borders)
    ]
