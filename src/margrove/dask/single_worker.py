"""Fits on one worker with all rows, for sequential learners.

A worker with enough memory gets all rows, and fits the ordinary estimator, so the model is the
local one. It does not depend on the worker: if the worker is lost, another one starts again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import seed_of
from margrove._runtime import readable_bytes, watch
from margrove.dask.cluster import (
    gathered,
    is_wanted,
    known_workers,
    threads_of_worker,
    warm_kernels,
    with_retries,
)
from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.partitions import Partitions, is_collection, loaded, partitions_of
from margrove.dask.registrations import (
    Registration,
    pickled,
    register_on_worker,
    registrations_of,
    unpickled,
)
from margrove.exceptions import ClusterError

__all__ = ["SingleWorkerEstimator", "join_rows"]

_COPIES = 3.0  # of the rows in memory: as they arrive, joined, and as tables of the learner


class SingleWorkerEstimator(ClusterEstimator):
    """Mixin of estimators that are fitted by one worker, which gets all rows."""

    _kernels = "AdaBoost"  # an entry of `margrove._runtime.warmup.PARTS`

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        self._check_parameters()  # type: ignore[attr-defined]
        partitions = partitions_of(X, y, sample_weight, client, self, keep_frames=True)
        validation, rest = _validation_partitions(others, client, self)
        with_retries(lambda workers: warm_kernels(client, workers, self._kernels), client)
        given = {"X": partitions.X, "y": partitions.y, "sample_weight": partitions.weight}
        local, needed = self._as_sent(), _needed_bytes(client, partitions)
        sent = pickled(local), registrations_of(local), given | validation, rest

        def attempt(workers: list[str]) -> _Found:
            able = _workers_with_memory(client, workers, partitions.n_rows, needed)
            task = client.submit(
                _fit_all_rows, *sent, workers=able, allow_other_workers=False, pure=False
            )
            try:
                (found,) = gathered(client, [task], workers=able)
            finally:
                if client.status == "running":
                    task.cancel()
            result: _Found = found
            return result

        found = with_retries(attempt, client)
        for message, category in found.warnings:
            warnings.warn(message, category, stacklevel=4)
        self._commit(found.attributes)  # type: ignore[attr-defined]

    def _as_sent(self) -> Any:
        """The local estimator; a random generator becomes a seed, so that it advances here."""
        local = self.to_local()
        is_generator = isinstance(local.random_state, (np.random.Generator, np.random.RandomState))
        is_first = getattr(local, "early_stopping", False) != "cv" and not local.warm_start
        if is_generator and is_first:
            local.random_state = seed_of(local.random_state)
        return local


@dataclass(frozen=True)
class _Found:
    attributes: dict[str, Any]
    warnings: list[tuple[str, type[Warning]]]


def _validation_partitions(
    others: dict[str, Any], client: Any, estimator: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Validation rows of the cluster as futures, and the other arguments of `fit`."""
    X_val = others.get("X_val")
    if X_val is None or not is_collection(X_val):
        return {}, others
    rest = dict(others)
    names = ("X_val", "y_val", "sample_weight_val")
    X, y, weight = (rest.pop(name, None) for name in names)
    partitions = partitions_of(X, y, weight, client, estimator, keep_frames=True)
    return dict(zip(names, (partitions.X, partitions.y, partitions.weight), strict=True)), rest


def _needed_bytes(client: Any, partitions: Partitions) -> float:
    return _COPIES * float(sum(gathered(client, partitions.map(_n_bytes))))


def _workers_with_memory(client: Any, workers: list[str], n_rows: int, needed: float) -> list[str]:
    """Workers with memory for all rows; an error if there are none."""
    known = known_workers(client)
    limits = {
        address: float(known.get(address, {}).get("memory_limit") or 0) for address in workers
    }
    able = [worker for worker, limit in limits.items() if not limit or limit >= needed]
    if not able:
        raise ClusterError(
            f"This learner needs all {n_rows} rows on one worker, about "
            f"{readable_bytes(needed)}, and the largest worker may use "
            f"{readable_bytes(max(limits.values()))}. Use a worker with more memory, fewer "
            "columns or float32; or HistGradientBoostingClassifier or -Regressor, which do not "
            "need all rows on one worker."
        )
    return able


def _n_bytes(partition: Any) -> int:
    if sp.issparse(partition):
        return int(partition.data.nbytes + partition.indices.nbytes + partition.indptr.nbytes)
    if isinstance(partition, np.ndarray):
        return int(partition.nbytes)
    return int(partition.memory_usage(deep=True).sum())


# -- on the worker --


class _TaskCancelled:
    """An event for `watch` that is set when the task is cancelled."""

    @staticmethod
    def is_set() -> bool:
        return not is_wanted()


def _fit_all_rows(
    content: bytes,
    registrations: list[Registration],
    given: dict[str, list[Any] | None],
    rest: dict[str, Any],
) -> _Found:
    """Fit the pickled local estimator; returns its fitted attributes and its warnings."""
    register_on_worker(registrations)
    model = unpickled(content, "the estimator")
    everything = {
        name: join_rows(partitions) for name, partitions in given.items() if partitions is not None
    }
    X, y = everything.pop("X"), everything.pop("y", None)
    if model.n_jobs is None:
        model.n_jobs = threads_of_worker()
    with warnings.catch_warnings(record=True) as caught, watch(cancel=_TaskCancelled()):
        warnings.simplefilter("always")
        model.fit(X, y, **everything, **rest)
    attributes = {name: getattr(model, name) for name in model._committed}
    return _Found(attributes, [(str(warning.message), warning.category) for warning in caught])


def join_rows(partitions: list[Any]) -> Any:
    """One table or vector of partitions in their order; empty ones do not affect its type."""
    filled = [loaded(partition) for partition in partitions if partition.shape[0]] or [
        loaded(partitions[0])
    ]
    if len(filled) == 1:
        return filled[0]
    if sp.issparse(filled[0]):
        return sp.csr_array(sp.vstack(filled, format="csr"))
    if isinstance(filled[0], np.ndarray):
        return np.concatenate(filled)
    return _joined_frames(filled)


def _joined_frames(frames: list[Any]) -> Any:
    """Frames one after the other; categorical columns stay categorical."""
    import pandas as pd  # type: ignore[import-untyped]

    joint = pd.concat(frames, ignore_index=True)
    for position in range(joint.shape[1]):
        columns = [frame.iloc[:, position] for frame in frames]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            union = pd.api.types.union_categoricals(columns, ignore_order=True)
            joint.isetitem(position, pd.Series(union, index=joint.index))
    return joint
