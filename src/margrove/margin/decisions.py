"""Decision values from fitted attributes, with checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove._data import like_fitted, require_finite, sound_structure
from margrove._runtime import largest_columns, resolve_n_jobs, row_products
from margrove.exceptions import NumericalOverflowError

__all__ = [
    "SparseCoefficients",
    "decided_classes",
    "dense_coefficients",
    "finite_decisions",
    "linear_decisions",
    "n_problems_of",
    "require_shape",
]

_FEW_CELLS = 20_000  # a smaller table takes less time than starting a thread
_MANY_CELLS = 500_000  # a larger table is worth all cores, where n_jobs=None allows them


def require_shape(estimator: Any, name: str, expected: tuple[int, ...]) -> None:
    """Raise ValueError if a fitted attribute was altered, before compiled code uses it."""
    value = getattr(estimator, name)
    shape = value.shape if hasattr(value, "shape") else np.shape(value)
    if shape != expected:
        raise ValueError(
            f"The fitted state was altered: {name} has shape {shape}, expected {expected}. Fit the "
            "estimator again."
        )


def dense_coefficients(estimator: Any) -> np.ndarray:
    """`coef_` as a dense array, also after `sparsify`."""
    coef = estimator.coef_
    return np.asarray(sound_structure(coef).toarray() if sp.issparse(coef) else coef)


class SparseCoefficients:
    """A mixin for linear classifiers whose weights can be stored as a sparse matrix."""

    coef_: Any

    def sparsify(self) -> Self:
        """Convert `coef_` to a sparse matrix, which is smaller after an L1 penalty.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Convert `coef_` back to a dense array.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.coef_ = dense_coefficients(self)
        return self


def linear_decisions(estimator: Any, X: Any, *, unset: Literal["one", "all"] = "one") -> np.ndarray:
    """X @ coef_.T + intercept_ for the X of `predict`; see `finite_decisions`.

    `unset` says what n_jobs=None means for a large table.
    """
    check_is_fitted(estimator)
    X = like_fitted(X, estimator, allow_nan=True)
    coef = dense_coefficients(estimator)
    n_problems = n_problems_of(estimator.classes_) if hasattr(estimator, "classes_") else 1
    require_shape(estimator, "intercept_", (n_problems,))
    shape = (n_problems, X.shape[1]) if hasattr(estimator, "classes_") else (X.shape[1],)
    require_shape(estimator, "coef_", shape)
    unset = unset if X.size > _MANY_CELLS else "one"
    n_threads = resolve_n_jobs(estimator.n_jobs, unset=unset) if X.size > _FEW_CELLS else 1
    weights = coef.reshape(n_problems, -1).T
    values = row_products(X, weights, estimator.intercept_, n_threads=n_threads)

    def require_finite_cells() -> None:
        require_finite(X, getattr(estimator, "feature_names_in_", None), estimator)

    # A cell that is not finite makes the values of its row not finite.
    return finite_decisions(values, require_finite_cells)


def decided_classes(estimator: Any, values: np.ndarray) -> np.ndarray:
    """The class of each row by its decision values (n,) or (n, K)."""
    codes = (values > 0).astype(np.int64) if values.ndim == 1 else largest_columns(values)
    return np.asarray(estimator.classes_.take(codes))


def n_problems_of(classes: np.ndarray) -> int:
    """The number of one-vs-rest problems; two classes are one problem, "is it the second?"."""
    return 1 if len(classes) == 2 else len(classes)


def finite_decisions(
    values: np.ndarray, require_finite_cells: Callable[[], None] | None = None
) -> np.ndarray:
    """Decision values (n, K), or (n,) for one problem; raises NumericalOverflowError.

    `require_finite_cells` raises an error if X is the reason; without it X was checked before.
    """
    if not np.isfinite(values).all():
        if require_finite_cells is not None:
            require_finite_cells()
        row = int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise NumericalOverflowError(
            f"The decision value of row {row} of X is beyond floating point. Scale X as the "
            "training data were scaled."
        )
    return values.ravel() if values.shape[1] == 1 else values
