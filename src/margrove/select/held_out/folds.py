"""Folds of a cross-validation, as rows: the one place that makes them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)

from margrove.exceptions import InvalidDataError

__all__ = ["Fold", "fold_splitter", "folds_of", "k_folds", "strata_of"]

_USUAL = 5


class Fold(NamedTuple):
    """Numbers of the rows to learn from, and of those to be judged by."""

    train: np.ndarray
    test: np.ndarray


def fold_splitter(n_folds: int, *, stratified: bool, grouped: bool, seed: int) -> Any:
    """A splitter of scikit-learn: shuffled, classes in equal shares, groups in one piece."""
    kinds = {
        (True, True): StratifiedGroupKFold,
        (True, False): StratifiedKFold,
        (False, True): GroupKFold,
        (False, False): KFold,
    }
    return kinds[stratified, grouped](n_folds, shuffle=True, random_state=seed)


def k_folds(
    n_rows: int,
    n_folds: int,
    *,
    strata: np.ndarray | None,
    groups: np.ndarray | None,
    seed: int,
) -> Iterator[Fold]:
    """Shuffled folds; strata (codes, or None) keep their shares, rows of a group stay together."""
    splitter = fold_splitter(
        n_folds, stratified=strata is not None, grouped=groups is not None, seed=seed
    )
    for train, test in splitter.split(np.zeros((n_rows, 1)), strata, groups):
        yield Fold(train, test)


def strata_of(y: np.ndarray, n_folds: int) -> np.ndarray:
    """Codes of classes. Those with fewer rows than folds are one stratum, with another's help."""
    codes = np.unique(y, return_inverse=True)[1]
    counts = np.bincount(codes)
    merged = counts < n_folds
    if 0 < counts[merged].sum() < n_folds and not merged.all():
        merged[np.argmin(np.where(merged, len(y), counts))] = True
    return np.where(merged[codes], len(counts), codes)


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
