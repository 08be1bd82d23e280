"""Online learners on a cluster: the model is sent from worker to worker, the rows stay.

A learner with `partial_fit` learns from the partitions of a Dask collection in their order, each on
a worker that holds it. The estimator itself is sent from one to the next, a few numbers a feature.
The result is the same as calling `partial_fit` with one partition after the other.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from margrove._data import ClassTable, TrainingLabels, check_weights, merged_classes
from margrove.dask.cluster import client_of, explained_errors, gathered, preferring
from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.partitions import Partitions, is_collection, loaded, partitions_of
from margrove.exceptions import InvalidDataError

__all__ = [
    "OnlineEstimator",
    "PartitionPass",
    "classes_of_partitions",
    "partial_fit_partitions",
    "require_y",
]

_AHEAD = 64  # partitions whose tasks are submitted at a time


def partial_fit_partitions(
    model: Any, X: Any, y: Any, sample_weight: Any, client: Any, classes: Any = None
) -> None:
    """`model.partial_fit` with all partitions, one after the other; commits the attributes."""
    client = client_of(client)
    require_y(model, y)
    with client.as_current(), explained_errors(client):
        partitions = partitions_of(X, y, sample_weight, client, model)
        if classes is None and is_classifier(model) and not hasattr(model, "classes_"):
            classes = classes_of_partitions(partitions, None).classes
        partition_pass = PartitionPass(model_to_send(model, partitions), partitions, classes)
        while not partition_pass.finished:
            partition_pass.advance()
        model._commit(attributes_of(partition_pass.learnt(), partitions))


class OnlineEstimator(ClusterEstimator):
    """Mixin of classifiers with `partial_fit`: partitions of a Dask collection are batches."""

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        client: Any = None,
    ) -> Self:
        """Learn from one more batch; of Dask collections each partition is a batch, in order.

        The model is sent from worker to worker, the rows stay.

        Parameters
        ----------
        X, y, sample_weight
            As `fit` takes them.
        classes : array-like, optional
            All classes that will occur in any batch. By default, those of y in the first call.
        client : distributed.Client, optional
            By default the current one.

        Returns
        -------
        self
        """
        if is_collection(X):
            partial_fit_partitions(self, X, y, sample_weight, client, classes)
            return self
        found: Self = super().partial_fit(X, y, classes, sample_weight)  # type: ignore[misc]
        return found


def require_y(model: Any, y: Any) -> None:
    if y is None:
        raise InvalidDataError(
            f"{type(model).__name__} requires y to be passed, but the target y is None."
        )


def model_to_send(model: Any, partitions: Partitions) -> Any:
    """The local model, without feature names, which partitions do not have."""
    sent = copy.copy(model.to_local())
    vars(sent).pop("_record", None)
    names = vars(sent).pop("feature_names_in_", None)
    ours: Any = partitions.feature_names
    if names is not None and not np.array_equal(names, ours):
        raise InvalidDataError(
            f"The features of X are not those of the earlier batches, {names.tolist()}. Got "
            f"{None if ours is None else ours.tolist()}."
        )
    return sent


def attributes_of(learnt: Any, partitions: Partitions) -> dict[str, Any]:
    """The fitted attributes of a model that was sent, with the feature names again."""
    committed = vars(learnt)["_committed"]
    return partitions.attributes | {name: vars(learnt)[name] for name in committed}


class PartitionPass:
    """One pass over all partitions in order: a chain of tasks, each on a worker with its rows."""

    def __init__(self, model: Any, partitions: Partitions, classes: Any) -> None:
        """`model` is an estimator, or the future of one."""
        self._partitions, self._client = partitions, partitions.client
        self._given = {} if classes is None else {"classes": np.asarray(classes)}
        self.model = model
        self._holders = partitions.worker_restrictions()
        self._planned: list[Any] = []
        self._n_planned = 0
        self.n_done = 0

    @property
    def finished(self) -> bool:
        return self.n_done == len(self._partitions.X)

    def advance(self) -> None:
        """Wait until the model has learnt from the next partition."""
        while self._n_planned < len(self._partitions.X) and len(self._planned) < _AHEAD:
            self._plan_next()
        gathered(self._client, [self._planned.pop(0)[1]])
        self.n_done += 1

    def learnt(self) -> Any:
        """The model after the last partition."""
        return gathered(self._client, [self.model])[0]

    def _plan_next(self) -> None:
        k, partitions = self._n_planned, self._partitions
        targets = None if partitions.y is None else partitions.y[k]
        weights = None if partitions.weight is None else partitions.weight[k]
        self.model = self._client.submit(
            _learn,
            self.model,
            partitions.X[k],
            targets,
            weights,
            k,
            self._given,
            pure=False,
            **preferring(self._holders[k]),
        )
        # The result of this task tells that the model is done, without sending the model.
        self._planned.append((self.model, self._client.submit(_nothing, self.model, pure=False)))
        self._n_planned += 1


def _learn(
    model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, number: int, given: dict[str, Any]
) -> Any:
    """A copy of the model that has learnt from one partition."""
    model = copy.copy(model)
    try:
        return model.partial_fit(loaded(X), y, sample_weight=weight, **given)
    except InvalidDataError as error:
        raise InvalidDataError(f"Partition {number} of X: {error}") from error


def _nothing(model: Any) -> None: ...


def classes_of_partitions(partitions: Partitions, class_weight: Any) -> TrainingLabels:
    """The classes of all partitions, and the factors of `class_weight`.

    A class of a partition counts as one row with the sum of its weights.
    """
    assert partitions.y is not None
    weights = partitions.weight or [None] * len(partitions.y)
    tasks = [
        partitions.client.submit(_class_table, y, weight, pure=False)
        for y, weight in zip(partitions.y, weights, strict=True)
    ]
    return merged_classes(gathered(partitions.client, tasks), class_weight)


def _class_table(y: np.ndarray, weight: np.ndarray | None) -> ClassTable:
    given = np.empty(0)
    if len(y):
        given = check_weights(weight, len(y), allow_all_zero=True)
    return ClassTable.of(y, given)
