"""Random forests and extremely randomised trees on a Dask cluster."""

from __future__ import annotations

from typing import Any

from margrove.dask.cluster import warm_kernels, with_retries
from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.forest.rows import ClusterRows
from margrove.dask.partitions import encoded, partitions_of
from margrove.ensemble.forest import estimators as local

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]


class ClusterForest(ClusterEstimator):
    """The mixin of the four forests: the local fit, with rows that are on a cluster."""

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        if others:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(others))!r}")
        self._check_parameters()  # type: ignore[attr-defined]
        self._check_combination()  # type: ignore[attr-defined]
        partitions = partitions_of(X, y, sample_weight, client, self, keep_frames="labels")
        with_retries(lambda workers: warm_kernels(client, workers, "forests"), client)
        found = encoded(partitions, self, self.categorical_features)  # type: ignore[attr-defined]
        weight = partitions.gather_weight()
        rows = ClusterRows(found, self._bare(), weight)
        try:
            self._fit_rows(rows, None if y is None else partitions.gather_y(), weight)  # type: ignore[attr-defined]
        finally:
            rows.close()

    def _bare(self) -> Any:
        """An unfitted forest for the workers, without parameters that only the client needs."""
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        unused = {"oob_score": False, "random_state": 0, "n_jobs": 1, "warm_start": False}
        return self.local_class()(**(given | unused))


class RandomForestClassifier(ClusterForest, local.RandomForestClassifier):
    """`margrove.RandomForestClassifier` on Dask collections.

    Workers code their own partitions. Then each worker holds the whole table as codes, one or two
    bytes a cell, and grows some of the trees. If this does not fit into the memory of a worker,
    `fit` raises an error; with `max_bins=255` a code is one byte. The forest is, bit for bit, the
    local one of the same `random_state`, even if workers are lost. Parameters and attributes are
    those of `margrove.RandomForestClassifier`; `n_jobs` has no effect on a cluster.

    Examples
    --------
    >>> import dask.array as da, distributed
    >>> from margrove.dask import RandomForestClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with distributed.Client(processes=False, dashboard_address=":0") as client:
    ...     X_dask, y_dask = da.from_array(X, (50, 4)), da.from_array(y, 50)
    ...     model = RandomForestClassifier(10, random_state=0).fit(X_dask, y_dask)
    >>> len(model.to_local().trees_)
    10
    """


class RandomForestRegressor(ClusterForest, local.RandomForestRegressor):
    """`margrove.RandomForestRegressor` on Dask collections; see `RandomForestClassifier`."""


class ExtraTreesClassifier(ClusterForest, local.ExtraTreesClassifier):
    """`margrove.ExtraTreesClassifier` on Dask collections; see `RandomForestClassifier`."""


class ExtraTreesRegressor(ClusterForest, local.ExtraTreesRegressor):
    """`margrove.ExtraTreesRegressor` on Dask collections; see `RandomForestClassifier`."""
