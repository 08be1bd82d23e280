"""Predictions of single members of an ensemble."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from margrove.studio.content import View
from margrove.studio.pictures.grids import Cells, cells_of

__all__ = ["MOST_MEMBERS", "classes_of_members", "curves_of_members", "members_of"]

MOST_MEMBERS = 12
_COARSE = 48  # cells along an axis

# Members of gradient boosting predict changes of a score, neither classes nor values.
_WITH_MEMBERS = (
    "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier",
    "ExtraTreesRegressor", "BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier",
    "AdaBoostRegressor",
)  # fmt: skip


def members_of(model: Any, most: int = MOST_MEMBERS) -> list[Any]:
    """The first members of an ensemble; [] for other models, or if there is only one."""
    if type(model).__name__ not in _WITH_MEMBERS:
        return []
    members = model.estimators_
    n = min(most, len(members))
    return [members[k] for k in range(n)] if n > 1 else []


def classes_of_members(model: Any, view: View, cells: Cells) -> np.ndarray | None:
    """Classes that members predict on a coarser grid, uint8 (members, rows, columns)."""
    members = members_of(model)
    if not members or not all(hasattr(member, "classes_") for member in members):
        return None
    coarse = cells_of(view, cells.coarser(_COARSE))
    points = coarse.points
    found = np.empty((len(members), *coarse.shape), dtype=np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for member, predicted in zip(members, found, strict=True):
            predicted[:] = _classes(model, member, points).reshape(coarse.shape)
    return found


def curves_of_members(model: Any, x: np.ndarray) -> np.ndarray | None:
    """Values that members predict at positions x, shape (members, positions)."""
    members = members_of(model)
    if not members:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.stack([np.asarray(member.predict(x[:, None])) for member in members])


def _classes(model: Any, member: Any, points: np.ndarray) -> np.ndarray:
    """Classes that a member predicts; some members know codes instead of classes."""
    predicted = np.asarray(member.predict(points)).astype(np.int64)
    if np.isin(member.classes_, model.classes_).all():
        return predicted
    found: np.ndarray = np.asarray(model.classes_)[predicted]
    return found
