"""Values of C and gamma to search: numbers as given, or so many on a logarithmic scale."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["GRID", "check_grid", "logarithmic"]

GRID: list[Any] = ["array-like", Integral]  # what `Cs` and `gammas` may be


def check_grid(name: str, given: Any, owner: str) -> np.ndarray | int:
    """A whole number of values, or the values themselves, ascending and without repeats."""
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


def logarithmic(low: float, high: float, count: int) -> np.ndarray:
    """Evenly spaced powers of ten; a single value is the middle."""
    return np.logspace(low, high, count) if count > 1 else np.array([10.0 ** ((low + high) / 2)])
