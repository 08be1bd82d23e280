"""AdaBoost on a Dask cluster.

Rounds follow one another, and one of stumps takes about twenty milliseconds for half a million
rows of fifty columns, most of which no other worker could take over. So one worker boosts, with all
rows.
"""

from __future__ import annotations

from margrove.dask.whole_fits import FitOnOneWorker
from margrove.ensemble import adaboost, adaboost_regressor

__all__ = ["AdaBoostClassifier", "AdaBoostRegressor"]


class AdaBoostClassifier(FitOnOneWorker, adaboost.AdaBoostClassifier):
    """`margrove.AdaBoostClassifier` on Dask collections.

    A worker that has room for it gets all rows and boosts as one machine would; if it is lost,
    another one does so from the beginning. The model is, bit for bit, the local one. Parameters
    and attributes are those of `margrove.AdaBoostClassifier`; callbacks and `margrove.watch` do
    not hear of single rounds.

    Examples
    --------
    >>> import dask.array as da, distributed
    >>> from margrove.dask import AdaBoostClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with distributed.Client(processes=False, dashboard_address=":0") as client:
    ...     X_parts, y_parts = da.from_array(X, (50, 4)), da.from_array(y, 50)
    ...     model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X_parts, y_parts)
    >>> len(model.to_local())
    10
    """


class AdaBoostRegressor(FitOnOneWorker, adaboost_regressor.AdaBoostRegressor):
    """`margrove.AdaBoostRegressor` on Dask collections; see `AdaBoostClassifier`."""
