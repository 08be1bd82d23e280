"""The mixin of all estimators on a cluster: local estimators that take Dask collections."""

from __future__ import annotations

from functools import wraps
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from margrove.dask.cluster import client_of, explained_errors
from margrove.dask.partitions import collection_of, is_collection, is_delayed_list

__all__ = ["ClusterEstimator"]

_LAZY = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "apply",
    "transform",
    "score",
)


class ClusterEstimator:
    """Mixin, the first base of an estimator whose second base is the local class.

    A subclass defines `_fit_on_cluster`, and no `__init__`, so that its parameters are those of the
    local class. `_fit_on_cluster` commits the attributes that the local `fit` would commit.
    """

    def __init_subclass__(cls, **settings: Any) -> None:
        for name in _LAZY:
            if name not in vars(cls) and hasattr(cls.local_class(), name):
                setattr(cls, name, _lazily(cls, name))
        super().__init_subclass__(**settings)

    @classmethod
    def local_class(cls) -> Any:
        """The ordinary estimator of the same name."""
        return next(parent for parent in cls.__mro__ if not issubclass(parent, ClusterEstimator))

    def to_local(self) -> Any:
        """The ordinary estimator with the same parameters, fitted if this one is.

        Returns
        -------
        estimator
            It does not depend on Dask, and shares the arrays of this one.
        """
        local = self.local_class()(**self.get_params(deep=False))  # type: ignore[attr-defined]
        local.__setstate__(self.__getstate__())
        return local

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, client: Any = None, **others: Any
    ) -> Self:
        """Fit to Dask collections on their cluster; to anything else as the local class does.

        Parameters
        ----------
        X : dask array or dataframe (n_samples, n_features), or whatever the local class takes
            Or a list of delayed arrays or dataframes, the parts of the table.
        y : dask array or series, list of delayed arrays or series, or array-like (n_samples,)
        sample_weight : likewise, optional
        client : distributed.Client, optional
            By default the current one.
        **others
            Further arguments of the local `fit`.

        Returns
        -------
        self
        """
        given = (X, y, sample_weight, *others.values())
        if any(is_collection(value) or is_delayed_list(value) for value in given):
            client = client_of(client)
            with client.as_current(), explained_errors(client):
                X, y, sample_weight, *rest = (collection_of(value, client) for value in given)
                others = dict(zip(others, rest, strict=True))
                self._fit_on_cluster(X, y, sample_weight, client, **others)
            return self
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        super().fit(X, y, **weights, **others)  # type: ignore[misc]
        return self

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        raise NotImplementedError


def _lazily(cls: Any, name: str) -> Any:
    """A method that passes Dask collections to `predictions`, other tables to the local class."""
    local = getattr(cls.local_class(), name)

    @wraps(local)
    def method(self: Any, X: Any, *arguments: Any, **settings: Any) -> Any:
        if is_collection(X):
            from margrove.dask import predictions

            return getattr(predictions, name)(self.to_local(), X, *arguments, **settings)
        return getattr(super(cls, self), name)(X, *arguments, **settings)

    def has_it(self: Any) -> bool:
        getattr(super(cls, self), name)  # its error says why it is not there
        return True

    return available_if(has_it)(method)
