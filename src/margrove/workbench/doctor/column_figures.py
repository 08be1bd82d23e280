"""Figures of all columns of a table at once: what is missing, how many values, how far apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from margrove._data import CodedTable

__all__ = ["ColumnFigures", "figures_of"]


@dataclass(frozen=True)
class ColumnFigures:
    """Arrays (d,); all but the first two are of the finite values.

    missing, infinite   cells
    distinct            different values
    commonest           rows of the most frequent value
    low, high           NaN where there is no value
    mean, std
    is_whole            whether all values are integers
    """

    missing: np.ndarray
    infinite: np.ndarray
    distinct: np.ndarray
    commonest: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    is_whole: np.ndarray

    @classmethod
    def joined(cls, parts: list[ColumnFigures]) -> ColumnFigures:
        names = list(cls.__dataclass_fields__)
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def figures_of(table: CodedTable) -> ColumnFigures:
    """Figures of each column; one sort a column, nothing else takes time."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of columns without values
        if table.is_sparse:
            return _of_sparse(table)
        if not table.n_columns or not table.n_rows:
            return _of_nothing(table.n_columns)
        return ColumnFigures.joined([_of_block(block) for _, block in table.blocks()])


def _of_nothing(d: int) -> ColumnFigures:
    zeros, none = np.zeros(d, np.int64), np.full(d, np.nan)
    return ColumnFigures(zeros, zeros, zeros, zeros, none, none, none, none, zeros > 0)


def _of_block(V: np.ndarray) -> ColumnFigures:
    """V float64 (k, n), one column a row."""
    k, n = V.shape
    missing = np.isnan(V).sum(axis=1)
    is_finite = np.isfinite(V)
    there = is_finite.sum(axis=1)
    S = np.sort(V if there.min() == n else np.where(is_finite, V, np.nan), axis=1)  # NaN last
    begins = np.ones((k, n), dtype=bool)
    begins[:, 1:] = S[:, 1:] != S[:, :-1]
    distinct = begins.sum(axis=1) - (n - there)  # each NaN differs from the next
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, k * n))
    first_of_row = np.searchsorted(starts, np.arange(k) * n)
    commonest = np.where(there > 0, np.maximum.reduceat(lengths, first_of_row), 0)
    low = np.where(there > 0, S[:, 0], np.nan)
    high = np.where(there > 0, S[np.arange(k), np.maximum(there - 1, 0)], np.nan)
    mean, std = _moments(S, low, high)
    is_whole = (there > 0) & ((np.floor(S) == S) | np.isnan(S)).all(axis=1)
    return ColumnFigures(
        missing, n - there - missing, distinct, commonest, low, high, mean, std, is_whole
    )


def _moments(S: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation, in units in which nothing overflows."""
    unit = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(unit > 0, unit, 1.0)[:, None]
    scaled = S / unit
    return np.nanmean(scaled, axis=1) * unit[:, 0], np.nanstd(scaled, axis=1) * unit[:, 0]


def _of_sparse(table: CodedTable) -> ColumnFigures:
    """From the stored entries; all others are zero."""
    X = table.X.tocsc()
    n, d = X.shape
    column = np.repeat(np.arange(d), np.diff(X.indptr))
    data = X.data + 0.0
    is_finite = np.isfinite(data)
    missing = np.bincount(column[np.isnan(data)], minlength=d)
    infinite = np.bincount(column[np.isinf(data)], minlength=d)
    kept = is_finite & (data != 0)
    column, data = column[kept], data[kept]
    stored = np.bincount(column, minlength=d)
    zeros = n - missing - infinite - stored
    order = np.lexsort((data, column))
    column, data = column[order], data[order]
    begins = np.ones(len(data), dtype=bool)
    begins[1:] = (column[1:] != column[:-1]) | (data[1:] != data[:-1])
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(data)))
    commonest = zeros.copy()
    np.maximum.at(commonest, column[starts], lengths)
    low, high = np.where(zeros > 0, 0.0, np.inf), np.where(zeros > 0, 0.0, -np.inf)
    np.minimum.at(low, column, data)
    np.maximum.at(high, column, data)
    there = stored + zeros
    mean, std = _sparse_moments(column, data, there, zeros, np.maximum(np.abs(low), np.abs(high)))
    fractions = np.bincount(column[data != np.floor(data)], minlength=d)
    has_values = there > 0
    return ColumnFigures(
        missing,
        infinite,
        np.bincount(column[starts], minlength=d) + (zeros > 0),
        commonest,
        np.where(has_values, low, np.nan),
        np.where(has_values, high, np.nan),
        mean,
        std,
        has_values & (fractions == 0),
    )


def _sparse_moments(
    column: np.ndarray, data: np.ndarray, there: np.ndarray, zeros: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    d = len(there)
    unit = np.where(np.isfinite(unit) & (unit > 0), unit, 1.0)
    scaled = data / unit[column]
    mean = np.bincount(column, weights=scaled, minlength=d) / there
    off = np.bincount(column, weights=(scaled - mean[column]) ** 2, minlength=d)
    std = np.sqrt((off + zeros * mean**2) / there)
    return mean * unit, std * unit
