"""Warnings about data and kernels that make a machine useless, and checks of user kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.exceptions import DataWarning, InvalidDataError
from margrove.margin.kernels import (
    RBF,
    CallableKernel,
    Kernel,
    Laplacian,
    Points,
    Precomputed,
    gram,
)

__all__ = [
    "require_valid_function",
    "sampling_step",
    "warn_of_degenerate_kernel",
    "warn_of_indefinite_kernel",
    "warn_of_unequal_features",
    "warn_of_unequal_scales",
]

_UNEQUAL = 1e7
_NARROW = 32
_SAMPLE = 8
_EIGEN_SAMPLE = 200
_ROWS_CHECKED = 1000


def warn_of_unequal_features(X: Any, kernel: Kernel) -> None:
    """Warn if the range of one feature is many orders of magnitude larger than that of another."""
    if sp.issparse(X) or isinstance(kernel, Precomputed | CallableKernel):
        return
    # NumPy takes ten times as long for columns of narrow rows.
    columns = np.ascontiguousarray(X.T) if X.shape[1] <= _NARROW else X.T
    spread = columns.max(axis=1) - columns.min(axis=1)
    widest, narrowest = float(spread.max()), float(spread.min())
    if widest == 0.0:
        _warn("All features are constant, so that all rows are equal.")
        return
    if narrowest == 0.0:
        narrowest = float(spread[spread > 0].min())
    if widest > _UNEQUAL * narrowest:
        _warn(
            f"Feature {int(spread.argmax())} is {widest / narrowest:.1e} times as wide as feature "
            f"{int(np.argmin(np.where(spread > 0, spread, np.inf)))}, which then has no effect on "
            "the kernel. Scale the features, for example with StandardScaler."
        )


def warn_of_unequal_scales(X: Any) -> None:
    """The same warning for linear machines, on a sample of the rows, to be fast."""
    step = sampling_step(X.shape[0])
    sample = X[::step]
    if sp.issparse(sample):
        largest = np.zeros(X.shape[1])
        np.maximum.at(largest, sample.indices, np.abs(sample.data))
    else:
        largest = np.abs(sample).max(axis=0, initial=0.0)
    if step == 1 and not sp.issparse(X) and not (sample != sample[:1]).any():
        _warn("All features are constant, so that all rows are equal.")
        return
    widest = float(largest.max(initial=0.0))
    narrowest = float(largest[largest > 0].min(initial=np.inf))
    if widest > _UNEQUAL * narrowest:
        _warn(
            f"Feature {int(largest.argmax())} is {widest / narrowest:.1e} times as large as "
            f"feature {int(np.argmin(np.where(largest > 0, largest, np.inf)))}, whose weight is "
            "then penalised much more. Scale the features, for example with StandardScaler."
        )


def sampling_step(n_rows: int) -> int:
    """The step between the rows that are checked for columns of unequal scales."""
    return max(1, n_rows // _ROWS_CHECKED)


def warn_of_degenerate_kernel(kernel: Kernel, points: Points) -> None:
    """Warn if gamma makes the kernel constant (too small) or the identity (too large)."""
    gamma = getattr(kernel, "gamma", 1.0)
    if gamma < 1e-200:
        _warn(f"The kernel is constant on these data: gamma={gamma:g} is too small.")
        return
    if not isinstance(kernel, RBF | Laplacian) or sp.issparse(points.X) or len(points) < 2:
        return
    sample = points.X[:: max(1, len(points) // (2 * _SAMPLE))][: 2 * _SAMPLE]
    difference = sample[::2, None] - sample[None, 1::2]
    power = 2 if isinstance(kernel, RBF) else 1
    with np.errstate(over="ignore"):
        exponents = kernel.gamma * (np.abs(difference) ** power).sum(axis=2)
    apart = exponents[exponents > 0]
    if len(apart) and apart.max() < 1e-14:
        _warn(f"The kernel is constant on these data: gamma={kernel.gamma:g} is too small.")
    elif len(apart) and apart.min() > 600.0:
        _warn(
            f"The kernel is the identity on these data: gamma={kernel.gamma:g} is so large that no "
            "two rows are similar, and the machine only memorises."
        )


def require_valid_function(kernel: Kernel, points: Points) -> None:
    """Raise InvalidDataError if a user's kernel is not deterministic or not symmetric."""
    if not isinstance(kernel, CallableKernel):
        return
    sample = np.unique(np.linspace(0, len(points) - 1, 2 * _SAMPLE).astype(np.int64))
    chosen = points.take(sample)
    values, again = gram(kernel, chosen, chosen), gram(kernel, chosen, chosen)
    called = getattr(kernel.function, "__name__", repr(kernel.function))
    tolerance = 1e-8 * float(np.abs(values).max())
    if np.abs(values - again).max() > tolerance:
        raise InvalidDataError(
            f"The kernel function {called} returns other values for the same rows when it is "
            "called again. A kernel must be deterministic."
        )
    if np.abs(values - values.T).max() > tolerance:
        raise InvalidDataError(
            f"The kernel function {called} is not symmetric: K(x, z) differs from K(z, x) by up to "
            f"{np.abs(values - values.T).max():.3g}."
        )


def warn_of_indefinite_kernel(kernel: Kernel, points: Points) -> None:
    """Warn if the Gram matrix has a negative eigenvalue, because the dual is not convex then."""
    if kernel.positive_definite:
        return
    sample = np.linspace(0, len(points) - 1, min(len(points), _EIGEN_SAMPLE)).astype(np.int64)
    chosen = points.take(np.unique(sample))
    eigenvalues = np.linalg.eigvalsh(gram(kernel, chosen, chosen))
    if eigenvalues[0] < -1e-8 * max(eigenvalues[-1], 0.0):
        _warn(
            f"{kernel!r} is not positive semidefinite on these data: on {len(chosen)} rows the "
            f"smallest eigenvalue of the Gram matrix is {eigenvalues[0]:.3g}. The solution found "
            "is a local one."
        )


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=6)
