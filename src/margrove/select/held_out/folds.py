"""Folds of a cross-validation: the training and test rows of each."""

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

_DEFAULT_FOLDS = 5


class Fold(NamedTuple):
    """Indices of the training rows and of the test rows, int64."""

    train: np.ndarray
    test: np.ndarray


def fold_splitter(n_folds: int, *, stratified: bool, grouped: bool, seed: int) -> Any:
    """A scikit-learn splitter: shuffled, with classes in equal shares and groups kept together."""
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
    """Shuffled folds. Strata (codes, or None) keep their shares; rows of a group stay together."""
    splitter = fold_splitter(
        n_folds, stratified=strata is not None, grouped=groups is not None, seed=seed
    )
    for train, test in splitter.split(np.zeros((n_rows, 1)), strata, groups):
        yield Fold(train, test)


def strata_of(y: np.ndarray, n_folds: int) -> np.ndarray:
    """Class codes to stratify by; classes with fewer rows than folds are merged into one stratum.

    If these are still fewer rows than folds, the smallest of the other classes joins them.
    """
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

    None is five folds, or as many as the largest class has rows. For None and numbers, rows of
    weight zero are left out.
    """
    kept = np.flatnonzero(weight > 0)
    if cv is None:
        counts = np.bincount(target[kept]) if classifier else np.array([len(kept)])
        cv = max(2, min(_DEFAULT_FOLDS, int(counts.max())))
    if isinstance(cv, Integral):
        splitter = check_cv(cv, target[kept], classifier=classifier)
        kept_groups = None if groups is None else np.asarray(groups)[kept]
        with warnings.catch_warnings():  # a class with fewer rows than folds is allowed here
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            splits = list(splitter.split(kept, target[kept], kept_groups))
        return [_checked_fold(k, kept[train], kept[test]) for k, (train, test) in enumerate(splits)]
    splitter = check_cv(list(cv) if isinstance(cv, Iterable) else cv, target, classifier=classifier)
    return [
        _checked_fold(k, _with_weight(train, weight), _with_weight(test, weight))
        for k, (train, test) in enumerate(splitter.split(X, target, groups))
    ]


def _with_weight(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    rows = np.arange(len(weight))[np.asarray(rows)]  # also of masks and negative indices
    return rows[weight[rows] > 0]


def _checked_fold(number: int, train: np.ndarray, test: np.ndarray) -> Fold:
    if not len(train) or not len(test):
        purpose = "train" if not len(train) else "test"
        raise InvalidDataError(
            f"Fold {number} of cv has no rows of positive weight to {purpose} on. Use fewer folds, "
            "or check sample_weight."
        )
    return Fold(train, test)
