"""Monotonic constraints as users write them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from margrove.grove.table.encoding import TreeTable

__all__ = ["monotonic_signs"]

_SHOWN = 5  # unknown names in a message


def monotonic_signs(given: Any, table: TreeTable, estimator: Any) -> np.ndarray:
    """+1, -1 or 0 for each feature, int8 (d,), from an array or from a dict of names."""
    d = table.X.shape[1]
    if isinstance(given, dict):
        given = _by_position(given, table.feature_names, estimator)
    signs = np.asarray(given)
    if signs.dtype.kind not in "iufb":
        raise ValueError(f"monotonic_cst must hold -1, 0 or 1. Got {given!r}.")
    if signs.shape != (d,):
        raise ValueError(
            f"monotonic_cst has shape {signs.shape} but the input data X has {d} features."
        )
    if not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            "monotonic_cst must be None or an array-like of -1, 0 or 1. "
            f"Got {sorted(set(signs.tolist()))}."
        )
    if np.any(signs[list(table.categories)] != 0):
        raise ValueError(
            "Categorical features cannot have monotonic constraints: they have no order. Set "
            "monotonic_cst to 0 for them."
        )
    return signs.astype(np.int8)


def _by_position(given: dict[Any, Any], names: np.ndarray | None, estimator: Any) -> list[Any]:
    if names is None:
        raise ValueError(
            f"{type(estimator).__name__} was not fitted on data with feature names. Pass "
            "monotonic_cst as an integer array instead."
        )
    unknown = sorted((name for name in given if name not in names), key=str)
    if unknown:
        shown = unknown[:_SHOWN] + ["..."] * (len(unknown) > _SHOWN)
        raise ValueError(
            f"monotonic_cst contains {len(unknown)} unexpected feature names: {shown}."
        )
    for name, sign in given.items():
        if not isinstance(sign, Real) or sign not in (-1, 0, 1):
            raise ValueError(f"monotonic_cst[{name!r}] must be either -1, 0 or 1. Got {sign!r}.")
    return [given.get(name, 0) for name in names]
