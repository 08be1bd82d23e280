"""Monotonic constraints, as users write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.grove.encoding import TreeTable

__all__ = ["monotonic_signs"]


def monotonic_signs(given: Any, table: TreeTable) -> np.ndarray:
    """+1, -1 or 0 for each feature, int8 (d,), from an array or from a dict of names."""
    d = table.X.shape[1]
    if isinstance(given, dict):
        names = table.feature_names
        if names is None:
            raise ValueError("monotonic_cst as a dict needs an X whose columns have names.")
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(f"monotonic_cst names {unknown[0]!r}, which X does not have.")
        given = [given.get(name, 0) for name in names]
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
        raise ValueError("monotonic_cst must be 0 for categorical features: they have no order.")
    return signs.astype(np.int8)
