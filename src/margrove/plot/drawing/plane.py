"""The plane of two features that a picture shows: the values of the others, and a grid over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import csc_median_axis_0

from margrove._data import Table
from margrove._runtime import require_memory
from margrove.exceptions import InvalidDataError
from margrove.facts import Outline

__all__ = ["Plane", "plane_of", "range_of"]

_FEW_FEATURES = 3  # the values of as many others fit into a title
_FIXED = {"medians": "at their medians", "as given": "fixed as given"}
_PADDING = 0.08  # beside the data, as a share of their range


@dataclass(frozen=True)
class Plane:
    """A plane through feature space along two axes.

    features  the two columns
    labels    their names
    fixed     float64 (n_features,)  the values of the other features
    note      the same in words; "" if there are no others
    """

    features: tuple[int, int]
    labels: tuple[str, str]
    fixed: np.ndarray
    note: str

    def project(self, X: Any) -> np.ndarray:
        """The rows of X as points of the plane (n, 2)."""
        columns = X[:, list(self.features)]
        return np.asarray(columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64)

    def rows(self, x: np.ndarray, y: np.ndarray, *, sparse: bool) -> Any:
        """All points of the grid x times y, as rows with all features; x changes fastest."""
        n_features, n_points = len(self.fixed), len(x) * len(y)
        columns = np.arange(n_features)
        if sparse:
            columns = np.union1d(np.flatnonzero(self.fixed), self.features)
        require_memory(
            2.0 * 8 * n_points * len(columns),
            f"A grid of {n_points} points with {n_features} features",
            "Use a smaller resolution.",
        )
        values = np.tile(self.fixed[columns], (n_points, 1))
        values[:, np.searchsorted(columns, self.features[0])] = np.tile(x, len(y))
        values[:, np.searchsorted(columns, self.features[1])] = np.repeat(y, len(x))
        if not sparse:
            return values
        pointers = np.arange(n_points + 1) * len(columns)
        cells = (values.ravel(), np.tile(columns, n_points), pointers)
        return sp.csr_array(cells, shape=(n_points, n_features))


def plane_of(model: Outline, table: Table, features: Any, at: Any) -> Plane:
    """The plane of two features at fixed values of the others, all checked."""
    names = model.feature_names
    if names is None and table.feature_names is not None:
        names = tuple(str(name) for name in table.feature_names)
    first, second = _two_features(features, model.n_features, names)
    labels = [names[k] if names is not None else f"feature {k}" for k in range(model.n_features)]
    fixed, source = _fixed_row(table.X, at)
    others = [k for k in range(model.n_features) if k not in (first, second)]
    note = ""
    if 0 < len(others) <= _FEW_FEATURES:
        note = ", ".join(f"{labels[k]} = {fixed[k]:.4g}" for k in others) + f" ({source})"
    elif others:
        note = f"the other {len(others)} features {_FIXED.get(source, source)}"
    return Plane((first, second), (labels[first], labels[second]), fixed, note)


def range_of(points: np.ndarray, *, not_negative: bool = False) -> list[tuple[float, float]]:
    """The range of each coordinate, with some padding."""
    ranges = []
    for low, high in zip(points.min(axis=0), points.max(axis=0), strict=True):
        padding = _PADDING * (high - low) or max(1.0, abs(low)) * 0.5
        start = max(0.0, low - padding) if not_negative else low - padding
        ranges.append((float(start), float(high + padding)))
    return ranges


def _two_features(features: Any, n_features: int, names: Sequence[str] | None) -> tuple[int, int]:
    if n_features < 2:
        raise InvalidDataError(
            "decision_boundary draws two features against each other, but the model has 1. Draw "
            "its curve: x = np.linspace(low, high), plt.plot(x, model.predict(x[:, None]))."
        )
    if isinstance(features, str) or not hasattr(features, "__len__") or len(features) != 2:
        raise ValueError(
            f"features must be two columns, by number or by name, such as (0, 1). Got {features!r}."
        )
    first, second = (_column(feature, n_features, names) for feature in features)
    if first == second:
        raise ValueError(f"features must be two different columns. Got {features!r}.")
    return first, second


def _column(feature: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"features has {feature!r}, but the model was fitted to columns without names. Use "
                f"numbers from 0 to {n_features - 1}, or fit it to a dataframe."
            )
        if feature not in names:
            shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"features has {feature!r}, but the columns are {shown}.")
        return list(names).index(feature)
    if not isinstance(feature, Integral) or isinstance(feature, bool):
        raise ValueError(f"features must be numbers or names of columns. Got {feature!r}.")
    if not 0 <= int(feature) < n_features:
        raise ValueError(
            f"features has {feature}, but the columns are numbered from 0 to {n_features - 1}."
        )
    return int(feature)


def _fixed_row(X: Any, at: Any) -> tuple[np.ndarray, str]:
    """The values of the other features, and their source in words."""
    n_rows, n_features = X.shape
    if at is None:
        return _medians(X), "medians"
    if isinstance(at, Integral) and not isinstance(at, bool):
        if not -n_rows <= at < n_rows:
            raise ValueError(
                f"at={at} is not a row of X, which has {n_rows}. Use 0 to {n_rows - 1}, or an "
                f"array of {n_features} values."
            )
        row = int(at) % n_rows
        values = X[[row]]
        dense = values.toarray() if sp.issparse(values) else np.asarray(values)
        return dense[0].astype(np.float64), f"as in row {row}"
    try:
        given = np.asarray(at, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (n_features,) or not np.isfinite(given).all():
        raise ValueError(
            f"at must be the number of a row of X, an array of {n_features} finite values, one for "
            f"each feature, or None for the medians. Got {at!r}."
        )
    return given, "as given"


def _medians(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return np.asarray(csc_median_axis_0(sp.csc_matrix(X)), dtype=np.float64)
    return np.asarray(np.median(X, axis=0), dtype=np.float64)
