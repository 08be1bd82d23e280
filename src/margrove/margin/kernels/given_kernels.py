"""Kernels that users give: a Gram matrix, or a function.

A function of two matrices is called with blocks of rows. A function of other objects (texts, trees,
molecules) is called once with all training objects, and once with all objects to predict and all
training objects; the machine then works on the Gram matrix, which must fit into memory.
scikit-learn calls every function in the second way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only
from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.margin.kernels.kernel import Kernel, Points

__all__ = ["CallableKernel", "Precomputed", "TrainingObjects", "takes_objects"]

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
        _write_values(self.function, self.function(_protected(A.X), _protected(B.X)), out)

    def diagonal(self, A: Points) -> np.ndarray:
        values = np.empty(len(A))
        for start in range(0, len(A), _DIAGONAL_BLOCK):  # few calls of a function that may be slow
            points = A.take(slice(start, start + _DIAGONAL_BLOCK))
            square = np.empty((len(points), len(points)))
            self.block(points, points, square)
            values[start : start + len(points)] = np.diag(square)
        return values


def _write_values(function: Callable[[Any, Any], Any], values: Any, out: np.ndarray) -> None:
    """Write the values of a user's function, dense or sparse, into `out`, or raise an error."""
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


def takes_objects(kernel: Any, X: Any) -> bool:
    """Whether the kernel is a function and X a sequence of objects that are not rows of numbers."""
    if not callable(kernel) or isinstance(kernel, Kernel):
        return False
    if not isinstance(X, (list, tuple, np.ndarray)) or len(X) == 0:
        return False
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return False
    first = X[0]
    return isinstance(first, (str, bytes)) or (not np.isscalar(first) and np.ndim(first) == 0)


@dataclass(frozen=True)
class TrainingObjects:
    """The training objects, and the kernel function of pairs of objects."""

    function: Callable[[Any, Any], Any]
    objects: Any

    def gram(self, objects: Any) -> np.ndarray:
        """The checked Gram matrix (len(objects), n) of some objects and the training objects."""
        K = np.empty((len(objects), len(self.objects)))
        _write_values(self.function, self.function(objects, self.objects), K)
        return K
