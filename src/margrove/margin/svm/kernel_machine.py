"""The base class of kernel machines: parameters, training set, kernel expansions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import CanonicalForm, Table, check_table, like_fitted, sound_structure
from margrove._runtime import Estimator, resolve_n_jobs
from margrove.exceptions import InvalidDataError
from margrove.margin.decisions import require_shape
from margrove.margin.kernels import (
    Kernel,
    Points,
    Precomputed,
    TrainingObjects,
    bounded_sums,
    kernel_class,
    kernel_sums_at,
    largest_value,
    needs_nonnegative,
    resolve_kernel,
    signed_sums,
)
from margrove.margin.svm.data_warnings import (
    require_valid_function,
    warn_of_degenerate_kernel,
    warn_of_indefinite_kernel,
    warn_of_unequal_features,
)

__all__ = ["KERNEL_PARAMETERS", "KernelMachine", "TrainingSet"]

KERNEL_PARAMETERS: dict[str, list[Any]] = {
    "kernel": [str, callable, Kernel],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
}

# Sparse tables with many nonzeros are faster as dense tables, if they are not large. Few rows need
# more of them, because their Gram matrix is computed at once.
_DENSE_ENOUGH, _DENSE_ENOUGH_OF_FEW, _FEW_ROWS = 1 / 64, 1 / 16, 1000
_SMALL_ENOUGH = 12_000_000

_FEW_PAIRS = 500_000  # fewer kernel values take less time than starting a thread


@dataclass(frozen=True)
class TrainingSet:
    """The rows that a machine learns from.

    X       the checked table, all rows
    form    its canonical form
    rows    int64 (m,) one row of X for each group, in the order of the learner
    order   int64 (m,) the group of each of these rows
    scale   1, or a power of two for extreme features, whose squares would overflow or vanish
    kernel  the kernel with its parameters, of the scaled rows
    points  the scaled rows as float64 points of the kernel
    """

    X: Any
    form: CanonicalForm
    rows: np.ndarray
    order: np.ndarray
    scale: float
    kernel: Kernel
    points: Points

    def shared_out(self, values: np.ndarray) -> np.ndarray:
        """Divide a value of each learnt row (m, ...) among the rows of X (n, ...)."""
        of_group = np.empty_like(values)
        of_group[self.order] = values
        return self.form.share_out(of_group)

    def summed(self, values: np.ndarray) -> np.ndarray:
        """Add up a value of each row of X (n,) for each learnt row (m,)."""
        kept = self.form.group_of >= 0
        of_group = np.bincount(
            self.form.group_of[kept], weights=values[kept], minlength=len(self.order)
        )
        return of_group[self.order]


class KernelMachine(Estimator):
    """A machine f(x) = sum_i c_i K(x_i, x) + b."""

    kernel: str | Kernel | Callable[[Any, Any], Any]
    degree: int
    gamma: float | Literal["scale", "auto"]
    coef0: float
    n_jobs: int | None
    kernel_: Kernel
    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: Any
    _objects: TrainingObjects  # if X is not a table of numbers

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.positive_only = needs_nonnegative(self.kernel)
        return tags

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"

    def _check_training_table(self, X: Any) -> Table:
        if not self._is_precomputed():
            return check_table(X, self)
        if sp.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported. Use X.toarray().")
        table = check_table(X, self, accept_sparse=False)
        return Table(_symmetric(table.X), table.feature_names)

    def _resolved_kernel(self, X: Any, weight: np.ndarray) -> Kernel:
        return resolve_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            X=X,
            weight=weight,
        )

    def _training_set(self, X: Any, form: CanonicalForm, order: np.ndarray) -> TrainingSet:
        rows = form.rows[order]
        chosen_class = kernel_class(self.kernel)
        can_be_scaled = chosen_class is not None and chosen_class.can_be_scaled()
        scale = _exact_scale(X) if can_be_scaled else 1.0
        distinct = _compact(_scaled(X[form.rows], scale))
        kernel = self._resolved_kernel(distinct, form.weight)
        if scale != 1.0 and not isinstance(self.gamma, str):
            kernel = kernel.on_scaled(scale)
        chosen = distinct[order]
        points = kernel.points(chosen, shift=kernel.centre(chosen))
        points = Points(points.X, points.squared_norms, rows)
        kernel.require_finite(points)
        require_valid_function(kernel, points)
        warn_of_unequal_features(chosen, kernel)
        warn_of_degenerate_kernel(kernel, points)
        warn_of_indefinite_kernel(kernel, points)
        return TrainingSet(X, form, rows, order, scale, kernel, points)

    def _expansion(self, X: Any, coef: np.ndarray, edges: np.ndarray | None = None) -> np.ndarray:
        """K(X, support vectors) @ coef for checked rows; see `kernel_sums`."""
        return kernel_sums_at(*self._prepared(X), coef, edges, n_threads=self._threads_for(X))

    def _signed_expansion(self, X: Any, coef: np.ndarray, offset: float) -> np.ndarray:
        """The expansion plus an offset, of which only the signs are exact for many rows."""
        given, n_threads = (*self._prepared(X), coef), self._threads_for(X)
        if X.shape[0] * len(self.support_) < _FEW_PAIRS:
            return kernel_sums_at(*given, n_threads=n_threads) + offset
        return signed_sums(*given, offset, n_threads=n_threads)

    def _bounded_expansion(self, X: Any, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The expansions of few checked rows up to a bound, or None; see `bounded_sums`."""
        if self._scale() != 1.0:
            return None
        return bounded_sums(self.kernel_, X, self.support_vectors_, self.dual_coef_, edges)

    def _checked_rows(self, X: Any) -> Any:
        self._require_fitted()
        if "_objects" in vars(self):
            X = self._objects.gram(X)
        X = like_fitted(X, self, accept_sparse=not isinstance(self.kernel_, Precomputed))
        if not isinstance(self.kernel_, Precomputed):
            require_shape(self, "support_vectors_", (len(self.support_), X.shape[1]))
        return X

    def _prepared(self, X: Any) -> tuple[Kernel, Any, float, np.ndarray | None, Points]:
        """The kernel, the rows, their scale, the origin and the support vectors."""
        return self.kernel_, X, self._scale(), *self._support_points(X)

    def _threads_for(self, X: Any) -> int:
        is_small = X.shape[0] * len(self.support_) < _FEW_PAIRS
        return 1 if is_small else resolve_n_jobs(self.n_jobs, unset="all")

    def _scale(self) -> float:
        return float(getattr(self, "feature_scale_", 1.0))

    def _support_points(self, X: Any) -> tuple[np.ndarray | None, Points]:
        """The common origin of X and the support vectors, and the support vectors as points."""
        kernel, n = self.kernel_, len(self.support_)
        if isinstance(kernel, Precomputed):  # only their columns are needed
            return None, Points(np.empty((n, 0)), np.zeros(n), self.support_)
        vectors = self.support_vectors_
        if sp.issparse(vectors):
            vectors = sound_structure(vectors)
        vectors = _scaled(vectors, self._scale())
        shift = kernel.centre(vectors, X) if n else None
        return shift, kernel.points(vectors, shift=shift)


def _exact_scale(X: Any) -> float:
    """1 for features of ordinary size, else the power of two that scales the largest to about 1."""
    largest = largest_value(X)
    if largest == 0.0 or 1e-9 < largest < 1e9:
        return 1.0
    return float(np.ldexp(1.0, max(-1000, min(1000, -int(np.frexp(largest)[1])))))


def _scaled(X: Any, scale: float) -> Any:
    return X if scale == 1.0 else X * scale


def _compact(X: Any) -> Any:
    """float64 rows, dense if that is faster."""
    if sp.issparse(X):
        cells = X.shape[0] * X.shape[1]
        least = _DENSE_ENOUGH_OF_FEW if X.shape[0] <= _FEW_ROWS else _DENSE_ENOUGH
        if cells <= _SMALL_ENOUGH and X.nnz >= least * cells:
            X = X.toarray()
    return X.astype(np.float64, copy=False)


def _symmetric(K: np.ndarray) -> np.ndarray:
    if K.shape[0] != K.shape[1]:
        raise InvalidDataError(
            "Precomputed metric requires shape (n_queries, n_indexed): in fit X must be the square "
            f"Gram matrix of the training rows. Got shape {K.shape}."
        )
    difference = np.abs(K - K.T).max()
    if difference > 1e-8 * np.abs(K).max():
        i, j = np.unravel_index(int(np.argmax(np.abs(K - K.T))), K.shape)
        raise InvalidDataError(
            f"The precomputed Gram matrix is not symmetric: X[{i}, {j}] = {K[i, j]:g} but "
            f"X[{j}, {i}] = {K[j, i]:g}. Pass (X + X.T) / 2 if that is meant."
        )
    return (K + K.T) / 2
