"""Rows of two features with their classes, for the pictures of the lectures."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from margrove._data import check_labels, check_table
from margrove.exceptions import InvalidDataError
from margrove.facts import Plain, frozen, require_whole

__all__ = ["PlaneRows", "grid_over", "plane_rows", "require_number"]

_PADDING = 0.08  # beside the data, as a share of their range


@dataclass(frozen=True, kw_only=True, eq=False)
class PlaneRows(Plain):
    """Rows in a plane.

    Attributes
    ----------
    points : ndarray of shape (n_samples, 2)
    codes : ndarray of int
        The class of each row, by its place in `classes`.
    classes : tuple of str
        In the order of `classes_`; of two, the second is the positive one.
    names : tuple of two str
        Of the features.
    """

    points: np.ndarray
    codes: np.ndarray
    classes: tuple[str, ...]
    names: tuple[str, str]

    @property
    def signs(self) -> np.ndarray:
        """-1 for the first class, +1 for the second."""
        return np.where(self.codes == 1, 1.0, -1.0)


def plane_rows(X: Any, y: Any, what: str, *, most_classes: int | None = 2) -> PlaneRows:
    """X and y, checked: two features, and from two to `most_classes` classes."""
    given = check_table(X, None, accept_sparse=False)
    points = np.asarray(given.X, dtype=np.float64)
    if points.shape[1] != 2:
        raise InvalidDataError(
            f"{what} draws a plane, so X must have two features. Got {points.shape[1]}. Choose two "
            "columns."
        )
    labels = check_labels(y, len(points))
    n_classes = len(labels.classes)
    if n_classes < 2 or (most_classes is not None and n_classes > most_classes):
        wanted = "two classes" if most_classes == 2 else "two classes or more"
        raise InvalidDataError(f"{what} needs {wanted} in y. Got {n_classes}.")
    names = ("x1", "x2")
    if given.feature_names is not None:
        names = (str(given.feature_names[0]), str(given.feature_names[1]))
    return PlaneRows(
        points=frozen(points),
        codes=frozen(labels.codes),
        classes=tuple(str(label) for label in labels.classes.tolist()),
        names=names,
    )


def grid_over(points: np.ndarray, resolution: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid around the points: coordinates along both axes, and all its points as rows."""
    n = require_whole("resolution", resolution, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    padding = np.where(high > low, _PADDING * (high - low), 0.5)
    x, y = np.linspace(low - padding, high + padding, n).T
    return x, y, np.column_stack([np.tile(x, n), np.repeat(y, n)])


def require_number(name: str, value: Any) -> float:
    """The value as a float; a ValueError that names the argument if it is not a finite number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number. Got {value!r}.")
    return float(value)
