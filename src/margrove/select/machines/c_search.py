"""What the searches over C share: once fitted they are the machine that they chose."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from margrove._runtime import Estimator
from margrove.select.machines.grid_cells import Cells

__all__ = ["ClassifierSearch", "PriceSearch"]


class PriceSearch(Estimator):
    """A search that predicts with its `best_estimator_`."""

    best_estimator_: Any
    cells_: Cells

    def predict(self, X: Any) -> np.ndarray:
        """What the best machine says of each row.

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
                f"This {type(self).__name__} was fitted with refit=False, so that there is no "
                "machine to ask. Use refit='best', or fit one with best_params_."
            )
        return self.best_estimator_


class ClassifierSearch(ClassifierMixin, PriceSearch):
    """A search over classifiers: classes, decisions and probabilities of the best one."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed values of the best machine: how clearly each row belongs to a class.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        return np.asarray(self._best().decision_function(X))
