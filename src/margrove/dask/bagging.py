"""Bagging on a Dask cluster: one worker gets all rows."""

from __future__ import annotations

from margrove.dask.single_worker import SingleWorkerEstimator
from margrove.ensemble.bagging import estimators as bagging

__all__ = ["BaggingClassifier", "BaggingRegressor"]


class BaggingClassifier(SingleWorkerEstimator, bagging.BaggingClassifier):
    """`margrove.BaggingClassifier` on Dask collections: one worker gets all rows.

    For trees, `RandomForestClassifier(max_features=None)` is also bagging, and uses all workers.
    """

    _kernels = "bags"


class BaggingRegressor(SingleWorkerEstimator, bagging.BaggingRegressor):
    """`margrove.BaggingRegressor` on Dask collections; see `BaggingClassifier`."""

    _kernels = "bags"
