"""Histogram gradient boosting on a Dask cluster: the models of `margrove`, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import is_checkpointed
from margrove.dask.boosting.bins import bins_of
from margrove.dask.boosting.cluster_table import BoostingTable
from margrove.dask.boosting.leader import BoostingLeader
from margrove.dask.boosting.remote_rows import DrawsByHash, RemoteRows
from margrove.dask.boosting.rounds import ClusterRounds, RemoteMonitor
from margrove.dask.boosting.worker_program import BoostingSetup
from margrove.dask.cluster import warm_kernels, with_retries
from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.partitions import encoded, partitions_of
from margrove.ensemble.gradient import (
    GradientData,
    HeldOut,
    HistBoosting,
    Monitor,
    RowDraws,
    SoFar,
    kind_of,
)
from margrove.ensemble.gradient import (
    hist_estimators as local,
)
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.grove.serve import TreeForm
from margrove.grove.table import TreeTable

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]

_VALIDATION = ("X_val", "y_val", "sample_weight_val")
_KERNELS = "gradient boosting in shards"
_NO_ROWS = np.empty(0, np.int64)


class _ClusterBoosting(ClusterEstimator, HistBoosting):
    """Fits of both estimators on a cluster: the rows stay on the workers."""

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        validation = [others.pop(name, None) for name in _VALIDATION]
        if others:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(others))!r}")
        self._check_parameters()
        self._check_validation(*validation)
        validation = [_on_this_machine(values) for values in validation]
        with_retries(lambda workers: warm_kernels(client, workers, _KERNELS), client)
        partitions = partitions_of(X, y, sample_weight, client, self, keep_frames="labels")
        table = encoded(partitions, self, self.categorical_features)
        self._fit_with(
            BoostingTable(table.partitions),
            X,
            None if partitions.y is None else partitions.gather_y(),
            partitions.gather_weight(),
            partitions.feature_names,
            table.categories,
            validation,
        )

    def _fit_with(
        self,
        cluster_table: Any,
        X: Any,
        y: np.ndarray | None,
        weight: np.ndarray | None,
        names: np.ndarray | None,
        categories: dict[int, np.ndarray],
        validation: list[Any],
    ) -> None:
        """Fit to the rows of a `BoostingTable`."""
        n, d = cluster_table.shape
        rows = RemoteRows(np.arange(n), d)
        given = self._data(TreeTable(rows, names, {}), y, weight)
        categories, renumbered = _categories_of(cluster_table, given, categories, n)
        given = replace(given, table=TreeTable(given.X, names, categories))
        others = dict(
            zip(_VALIDATION, validation, strict=True),
            sample_weight=weight,
        )
        self.__dict__["_cluster_table"] = cluster_table, renumbered
        try:
            if is_checkpointed():  # checkpoints compare the content of X, here its hashes
                X = cluster_table.hashes(rows.rows, {})
            self._boost(given, X, y, others)
        finally:
            self.__dict__.pop("_cluster_table", None)
            cluster_table.close()

    def _row_draws(self, given: GradientData, seed: int) -> RowDraws:
        known = vars(self).get("_cluster_table")
        if known is None:
            return super()._row_draws(given, seed)
        return DrawsByHash(given, known[0].hashes(given.X.rows, known[1]), seed)

    def _process(
        self,
        given: GradientData,
        held_out: HeldOut | None,
        so_far: SoFar,
        seed: int,
        stops_early: bool,
    ) -> Any:
        known = vars(self).get("_cluster_table")
        if known is None:
            return super()._process(given, held_out, so_far, seed, stops_early)
        cluster_table, renumbered = known
        loss, kind = self._loss_for(given), kind_of(given.table.n_categories)
        settings = self._settings(given, loss, seed)
        rows, n_categories = given.training_rows, given.table.n_categories
        columns = cluster_table.columns(
            given.X.rows, rows.total_weight, renumbered, n_categories, self.max_bins
        )
        held_out_X = held_out.X if held_out is not None else None
        held_out_rows = held_out_X.rows if isinstance(held_out_X, RemoteRows) else _NO_ROWS
        cluster_table.code(given.X.rows, held_out_rows, columns, renumbered, so_far, kind)
        setup = BoostingSetup(columns, n_categories > 0, kind, so_far)
        leader = BoostingLeader(cluster_table.open_group, given, held_out_rows, setup)
        monitor = None
        if stops_early:
            monitor = self._monitor_of(leader, given, held_out, so_far, loss, kind)
        return ClusterRounds(
            leader,
            bins_of(columns),
            rows,
            loss,
            settings,
            self.max_iter - len(so_far.rounds),
            first_round=len(so_far.rounds),
            draw=self._draws(given, seed),
            monitor=monitor,
            losses=so_far.losses,
            form=TreeForm(kind, given.X.shape[1]),
        )

    def _monitor_of(
        self,
        leader: BoostingLeader,
        given: GradientData,
        held_out: HeldOut | None,
        so_far: SoFar,
        loss: GradientLoss,
        kind: Any,
    ) -> Monitor:
        if held_out is not None and not isinstance(held_out.X, RemoteRows):
            return self._monitor(given, held_out, so_far, loss, kind)
        score = None
        if self.scoring != "loss":
            y, weight = given.y, given.training_rows.total_weight
            if held_out is not None:
                y, weight = held_out.y, held_out.weight
            X = self._rows_to_score(leader, held_out, len(y))
            score = self._scorer(given, HeldOut(X, y, weight), loss)
        return RemoteMonitor(
            kind,
            held_out,
            np.empty((loss.n_scores, 0)),
            score=score,
            n_iter_no_change=self.n_iter_no_change,
            tol=self.tol,
            scores=so_far.scores,
        )

    def _rows_to_score(
        self, leader: BoostingLeader, held_out: HeldOut | None, n: int
    ) -> np.ndarray:
        """The X for `scoring`; most scorers use only predictions, and get no rows."""
        is_user_function = callable(self.scoring) and not hasattr(self.scoring, "_score_func")
        if not is_user_function:
            return np.empty((n, 0))
        if held_out is None:
            raise ValueError(
                "scoring is a function of X, y and the model, and the rows of X, which are on the "
                "workers, are not gathered with validation_fraction=None. Use a scorer of "
                "sklearn.metrics.make_scorer, or a fraction for validation_fraction."
            )
        return np.asarray(leader.held_out_rows())


def _categories_of(
    cluster_table: Any, given: GradientData, categories: dict[int, np.ndarray], n_rows: int
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Labels without those that occur only in rows of weight 0, and their new numbers."""
    if not categories or given.n_rows == n_rows:
        return categories, {}
    used = cluster_table.used_categories(given.X.rows, sorted(categories))
    kept, renumbered = {}, {}
    for column, labels in categories.items():
        kept[column] = labels[used[column]]
        numbers = np.full(len(labels) + 1, np.nan)  # the last one for missing values
        numbers[used[column]] = np.arange(len(used[column]))
        renumbered[column] = numbers
    return kept, renumbered


def _on_this_machine(rows: Any) -> Any:
    return rows.compute() if hasattr(rows, "__dask_graph__") else rows


class HistGradientBoostingRegressor(_ClusterBoosting, local.HistGradientBoostingRegressor):
    """Gradient boosting of regression trees on a Dask cluster.

    Parameters, attributes and results are those of `margrove.HistGradientBoostingRegressor`: a
    fit to Dask collections gives, bit for bit, the model of one machine with all rows, for any
    number of workers and partitions. Rows stay on the workers. Targets, weights, and 8 bytes a row
    for random draws are sent to the client, which grows the trees from sums of the workers. Losing
    a worker costs only time.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from margrove.dask import HistGradientBoostingRegressor
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.random.random((1_000_000, 10), chunks=(100_000, 10))
    >>> model = HistGradientBoostingRegressor().fit(X, X[:, 0])  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    dask.array<...>
    """


class HistGradientBoostingClassifier(_ClusterBoosting, local.HistGradientBoostingClassifier):
    """Gradient boosting of classification trees on a Dask cluster.

    Parameters, attributes and results are those of `margrove.HistGradientBoostingClassifier`: a
    fit to Dask collections gives, bit for bit, the model of one machine with all rows, for any
    number of workers and partitions. Rows stay on the workers. Targets, weights, and 8 bytes a row
    for random draws are sent to the client, which grows the trees from sums of the workers. Losing
    a worker costs only time.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from margrove.dask import HistGradientBoostingClassifier
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.random.random((1_000_000, 10), chunks=(100_000, 10))
    >>> model = HistGradientBoostingClassifier().fit(X, X[:, 0] > 0.5)  # doctest: +SKIP
    >>> model.predict_proba(X)  # doctest: +SKIP
    dask.array<...>
    """
