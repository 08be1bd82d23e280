"""Checks on the way from fitted attributes to decision values."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.exceptions import NumericalOverflowError

__all__ = ["finite_decisions", "require_shape"]


def require_shape(estimator: Any, name: str, expected: tuple[int, ...]) -> None:
    """Refuse fitted attributes that somebody has altered, before compiled code meets them."""
    value = getattr(estimator, name)
    shape = value.shape if hasattr(value, "shape") else np.shape(value)
    if shape != expected:
        raise ValueError(
            f"The fitted state was altered: {name} has shape {shape}, expected {expected}. Fit the "
            "estimator again."
        )


def finite_decisions(values: np.ndarray) -> np.ndarray:
    """Decision values (n, K), as a vector for one problem; overflow is an error, never a guess."""
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise NumericalOverflowError(
            f"The decision value of row {row} of X is beyond floating point. Scale X as the "
            "training data were scaled."
        )
    return values.ravel() if values.shape[1] == 1 else values
