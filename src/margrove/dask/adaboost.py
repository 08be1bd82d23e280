"""AdaBoost on a Dask cluster: rounds are sequential, so one worker gets all rows."""

from __future__ import annotations

from margrove.dask.single_worker import SingleWorkerEstimator
from margrove.ensemble.adaboost import classifier, regressor

__all__ = ["AdaBoostClassifier", "AdaBoostRegressor"]


class AdaBoostClassifier(SingleWorkerEstimator, classifier.AdaBoostClassifier):
    """`margrove.AdaBoostClassifier` on Dask collections.

    A worker with enough memory gets all rows and fits as one machine would; callbacks and
    `margrove.watch` do not get single rounds. The model is, bit for bit, the local one, even if
    workers are lost. Parameters and attributes are those of `margrove.AdaBoostClassifier`.

    Examples
    --------
    >>> import dask.array as da, distributed
    >>> from margrove.dask import AdaBoostClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with distributed.Client(processes=False, dashboard_address=":0") as client:
    ...     X_dask, y_dask = da.from_array(X, (50, 4)), da.from_array(y, 50)
    ...     model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X_dask, y_dask)
    >>> len(model.to_local())
    10
    """


class AdaBoostRegressor(SingleWorkerEstimator, regressor.AdaBoostRegressor):
    """`margrove.AdaBoostRegressor` on Dask collections; see `AdaBoostClassifier`."""
