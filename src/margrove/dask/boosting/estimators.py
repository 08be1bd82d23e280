"""Histogram gradient boosting on a Dask cluster: the models of `margrove`, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import ALONE, Collective, is_checkpointed, readable_bytes
from margrove.dask.boosting.program import Task
from margrove.dask.boosting.remote_rows import RemoteRows, with_places
from margrove.dask.boosting.rounds import ClusterRounds
from margrove.dask.cluster import known_workers, warm_kernels, with_retries, workers_of
from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.partitions import Partitions, encoded, partitions_of
from margrove.dask.registrations import pickled, registrations_of
from margrove.ensemble.gradient import (
    GradientData,
    HeldOut,
    HistBoosting,
    Monitor,
    RowDraws,
    SoFar,
    kind_of,
    uses_rows,
)
from margrove.ensemble.gradient import hist_estimators as local
from margrove.exceptions import ClusterError
from margrove.grove.serve import TreeForm
from margrove.grove.table import TreeTable

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]

_VALIDATION = ("X_val", "y_val", "sample_weight_val")
_KERNELS = "gradient boosting on several machines"
_BYTES_A_ROW, _BYTES_A_SCORE = 25, 10  # at least, on its worker: target, places, scores, gradients
_BYTES_OF_A_WORKER = 250e6  # Python, Dask and the compiled code


class _ClusterBoosting(ClusterEstimator, HistBoosting):
    """Fits of both estimators on a cluster: the rows stay on the workers."""

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        validation = {name: _on_this_machine(others.pop(name, None)) for name in _VALIDATION}
        if others:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(others))!r}")
        self._check_parameters()
        self._check_validation(*validation.values())
        with_retries(lambda workers: warm_kernels(client, workers, _KERNELS), client)
        partitions = partitions_of(X, y, sample_weight, client, self, keep_frames="labels")
        table = encoded(partitions, self, self.categorical_features)
        rows = RemoteRows(table.partitions, np.arange(partitions.n_rows))
        targets = None if y is None else partitions.gather_y()
        weight = partitions.gather_weight()
        given = self._data(TreeTable(rows, partitions.feature_names, {}), targets, weight)
        given = _with_categories(given, table.categories)
        compared = rows.hashes() if is_checkpointed() else X  # checkpoints compare the content of X
        self._boost(given, compared, targets, {"sample_weight": weight, **validation})

    def _row_draws(self, data: GradientData, seed: int, collective: Collective = ALONE) -> RowDraws:
        if isinstance(data.X, RemoteRows):
            data = with_places(data)
        return super()._row_draws(data, seed, collective)

    def _process(
        self,
        given: GradientData,
        held_out: HeldOut | None,
        so_far: SoFar,
        seed: int,
        stops_early: bool,
        collective: Collective = ALONE,
    ) -> Any:
        if not isinstance(given.X, RemoteRows):
            return super()._process(given, held_out, so_far, seed, stops_early, collective)
        loss, kind = self._loss_for(given), kind_of(given.table.n_categories)
        self._settings(given, loss, seed)  # their errors are raised here
        self._require_known_rows(held_out, stops_early=stops_early)
        _require_memory(given.X.partitions, loss.n_scores)
        if self.subsample < 1.0:
            given = with_places(given)
        return ClusterRounds(
            self._task(given, so_far, seed, stops_early=stops_early),
            given,
            held_out,
            loss,
            self._monitor_of_reports(so_far, loss.n_scores, kind) if stops_early else None,
            self.max_iter - len(so_far.rounds),
            TreeForm(kind, given.X.shape[1]),
        )

    def _task(self, given: GradientData, so_far: SoFar, seed: int, *, stops_early: bool) -> Task:
        unused = {"random_state": 0, "verbose": 0, "warm_start": False}
        model = self.local_class()(**(self.get_params(deep=False) | unused))
        return Task(
            given.X.shape[1],
            pickled(model),
            registrations_of(model),
            so_far,
            seed,
            stops_early,
            given.table.feature_names,
            given.table.categories,
            given.X.new_numbers,
            given.classes,
            given.scale,
        )

    def _monitor_of_reports(self, so_far: SoFar, n_scores: int, kind: Any) -> Monitor:
        """The rule when to stop, for scores that the workers report."""
        return Monitor(
            kind,
            None,
            np.empty((n_scores, 0)),
            score=None if self.scoring == "loss" else _of_workers,
            n_iter_no_change=self.n_iter_no_change,
            tol=self.tol,
            scores=so_far.scores,
        )

    def _require_known_rows(self, held_out: HeldOut | None, *, stops_early: bool) -> None:
        """Refuse a scoring function that may use X, if it is to score all training rows."""
        if stops_early and held_out is None and uses_rows(self.scoring):
            raise ValueError(
                "scoring is a function of X, y and the model, and the rows of X, which are on the "
                "workers, are not gathered with validation_fraction=None. Use a scorer of "
                "sklearn.metrics.make_scorer, or a fraction for validation_fraction."
            )

    def _run(self, process: Any, *arguments: Any, **settings: Any) -> Any:
        try:
            return super()._run(process, *arguments, **settings)
        finally:
            if isinstance(process, ClusterRounds):
                process.close()


def _require_memory(partitions: Partitions, n_scores: int) -> None:
    """ClusterError if the workers cannot even hold what boosting keeps of each row.

    Codes of cells come on top. How many bytes they take is known when they are made.
    """
    known = known_workers(partitions.client)
    workers = workers_of(partitions.client)
    limits = [float(known.get(address, {}).get("memory_limit") or 0) for address in workers]
    a_row = _BYTES_A_ROW + _BYTES_A_SCORE * n_scores
    needed = float(partitions.n_rows) * a_row / len(workers) + _BYTES_OF_A_WORKER
    if min(limits) and needed > max(limits):
        raise ClusterError(
            f"{partitions.n_rows} rows on {len(workers)} workers need {readable_bytes(needed)} a "
            f"worker ({a_row} bytes a row, and codes of the cells besides), but workers may use "
            f"{readable_bytes(max(limits))}. Use more workers, or workers with more memory, or a "
            "sample of the rows."
        )


def _of_workers(raw: np.ndarray) -> float:
    raise RuntimeError("Scores of rows on workers are computed there.")


def _with_categories(given: GradientData, categories: dict[int, np.ndarray]) -> GradientData:
    """The data with labels, without those that occur only in rows of weight 0."""
    rows, names = given.X, given.table.feature_names
    if not categories or given.n_rows == rows.partitions.n_rows:
        return replace(given, table=TreeTable(rows, names, categories))
    used = rows.used_categories(sorted(categories))
    kept, new_numbers = {}, {}
    for column, labels in categories.items():
        kept[column] = labels[used[column]]
        numbers = np.full(len(labels) + 1, np.nan)  # the last one for missing values
        numbers[used[column]] = np.arange(len(used[column]))
        new_numbers[column] = numbers
    return replace(given, table=TreeTable(replace(rows, new_numbers=new_numbers), names, kept))


def _on_this_machine(rows: Any) -> Any:
    return rows.compute() if hasattr(rows, "__dask_graph__") else rows


class HistGradientBoostingRegressor(_ClusterBoosting, local.HistGradientBoostingRegressor):
    """Gradient boosting of regression trees on a Dask cluster.

    Parameters, attributes and results are those of `margrove.HistGradientBoostingRegressor`: a
    fit to Dask collections gives, bit for bit, the model of one machine with all rows, for any
    number of workers and partitions. Every worker runs the rounds on its rows, and all of them add
    up their sums. Targets, weights and 8 bytes a row for random draws pass through the client.
    Losing a worker costs only time.

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

    Parameters, attributes and results are those of `margrove.HistGradientBoostingClassifier`; see
    `HistGradientBoostingRegressor` for what is different on a cluster.

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
