"""Folds of a cross-validation, as rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from margrove.exceptions import InvalidDataError

__all__ = ["Fold", "folds_of"]

_USUAL = 5


@dataclass(frozen=True)
class Fold:
    """Rows to learn from and rows to be judged by; those of weight zero are in neither."""

    train: np.ndarray
    test: np.ndarray


def folds_of(
    cv: Any, X: Any, target: np.ndarray, weight: np.ndarray, groups: Any, *, classifier: bool
) -> list[Fold]:
    """The folds that `cv` means: None, a number, a splitter or pairs of rows.

    For None and numbers, rows of weight zero are as good as absent. None is five folds, or as many
    as there are rows of the largest class.
    """
    kept = np.flatnonzero(weight > 0)
    if cv is None:
        counts = np.bincount(target[kept]) if classifier else np.array([len(kept)])
        cv = max(2, min(_USUAL, int(counts.max())))
    if isinstance(cv, Integral):
        splitter = check_cv(cv, target[kept], classifier=classifier)
        own_groups = None if groups is None else np.asarray(groups)[kept]
        with warnings.catch_warnings():  # a class with fewer rows than folds is no fault here
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits = list(splitter.split(kept, target[kept], own_groups))
        return [_sound(k, kept[train], kept[test]) for k, (train, test) in enumerate(splits)]
    splitter = check_cv(list(cv) if isinstance(cv, Iterable) else cv, target, classifier=classifier)
    return [
        _sound(k, _weighted(train, weight), _weighted(test, weight))
        for k, (train, test) in enumerate(splitter.split(X, target, groups))
    ]


def _weighted(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    rows = np.arange(len(weight))[np.asarray(rows)]  # masks and negative numbers too
    return rows[weight[rows] > 0]


def _sound(number: int, train: np.ndarray, test: np.ndarray) -> Fold:
    if not len(train) or not len(test):
        which = "learn from" if not len(train) else "be judged by"
        raise InvalidDataError(
            f"Fold {number} of cv has no rows of positive weight to {which}. Use fewer folds, or "
            "check sample_weight."
        )
    return Fold(train, test)
