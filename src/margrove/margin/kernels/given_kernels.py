"""Kernels that users give: a Gram matrix, or a function of two matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only
from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.margin.kernels.kernel import Kernel, Points

__all__ = ["CallableKernel", "Precomputed", "write_values"]

_DIAGONAL_BLOCK = 64


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the Gram matrix itself: (n, n) in fit, (m, n) in predict."""

    name: ClassVar[str] = "precomputed"
    positive_definite: ClassVar[bool] = False

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        out[:] = A.X[:, B.columns]

    def diagonal(self, A: Points) -> np.ndarray:
        return np.asarray(A.X[np.arange(len(A)), A.columns], dtype=np.float64)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function of two matrices, called with read-only blocks of rows."""

    name: ClassVar[str] = "callable"
    positive_definite: ClassVar[bool] = False
    function: Callable[[Any, Any], Any] = None  # type: ignore[assignment]

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        write_values(self.function, self.function(_protected(A.X), _protected(B.X)), out)

    def diagonal(self, A: Points) -> np.ndarray:
        values = np.empty(len(A))
        for start in range(0, len(A), _DIAGONAL_BLOCK):  # few calls of a function that may be slow
            part = A.take(slice(start, start + _DIAGONAL_BLOCK))
            square = np.empty((len(part), len(part)))
            self.block(part, part, square)
            values[start : start + len(part)] = np.diag(square)
        return values


def write_values(function: Callable[[Any, Any], Any], values: Any, out: np.ndarray) -> None:
    """Write what a user's function returned, dense or sparse, into `out`, or say what is wrong."""
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    called = getattr(function, "__name__", repr(function))
    if values.shape != out.shape:
        raise InvalidDataError(
            f"The kernel function {called} returned an array of shape {values.shape} for "
            f"{len(out)} and {out.shape[1]} rows. It must return shape {out.shape}."
        )
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InvalidDataError(
            f"The kernel function {called} returned values that are not finite numbers "
            f"(dtype {values.dtype})."
        )
    with np.errstate(over="ignore"):
        out[:] = values
    if not np.isfinite(out).all():
        raise NumericalOverflowError(
            f"The kernel function {called} returned values beyond {out.dtype}. Pass X as "
            "float64, or scale the kernel."
        )


def _protected(X: Any) -> Any:
    return X if sp.issparse(X) else read_only(X)
