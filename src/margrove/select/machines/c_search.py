"""What the searches over C share: the values to try, and predictions of the best machine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from margrove._runtime import Estimator
from margrove.select.machines.grid_cells import Cells

__all__ = ["GRID", "ClassifierSearch", "Search", "check_grid", "log_grid"]

GRID: list[Any] = ["array-like", Integral]  # what `Cs` and `gammas` may be


def check_grid(name: str, given: Any, owner: str) -> np.ndarray | int:
    """The number of values, or the values themselves as ascending float64 without duplicates."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"The {name!r} parameter of {owner} must be at least 1. Got {given}.")
        return int(given)
    values = list(np.ravel(np.asarray(given, dtype=object)))
    good = [
        isinstance(v, Real) and not isinstance(v, bool) and 0 < float(v) < np.inf for v in values
    ]
    if not values or not all(good):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number of values or a list of positive "
            f"finite numbers. Got {given!r} instead."
        )
    return np.unique(np.asarray(values, dtype=np.float64))


def log_grid(low: float, high: float, count: int) -> np.ndarray:
    """`count` values from 10^low to 10^high, evenly in log10; a single value is the middle."""
    return np.logspace(low, high, count) if count > 1 else np.array([10.0 ** ((low + high) / 2)])


class Search(Estimator):
    """A search that predicts with its `best_estimator_`."""

    best_estimator_: Any
    cells_: Cells

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the best machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._best().predict(X))

    def _best(self) -> Any:
        check_is_fitted(self)
        if "best_estimator_" not in vars(self):
            raise AttributeError(
                f"This {type(self).__name__} was fitted with refit=False, so it has no "
                "best_estimator_. Use refit='best', or fit a machine with best_params_."
            )
        return self.best_estimator_


class ClassifierSearch(ClassifierMixin, Search):
    """A search over classifiers: adds the decision values of the best one."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of the best machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return np.asarray(self._best().decision_function(X))
