"""Figures of all columns of a table: missing values, distinct values, means and spreads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from margrove._data import CodedTable

__all__ = ["ColumnFigures", "figures_of"]


@dataclass(frozen=True)
class ColumnFigures:
    """Arrays (d,), one entry for each column; all but the first two are about finite values.

    missing, infinite   number of such cells
    distinct            number of different values
    commonest           number of rows with the most frequent value
    low, high           smallest and largest value, NaN if there is none
    mean, std           mean and standard deviation
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
    def joined(cls, blocks: list[ColumnFigures]) -> ColumnFigures:
        names = list(cls.__dataclass_fields__)
        return cls(*(np.concatenate([getattr(block, name) for block in blocks]) for name in names))


def figures_of(table: CodedTable) -> ColumnFigures:
    """The figures of each column. The time is that of sorting each column once."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about columns without values
        if table.is_sparse:
            return _of_sparse(table)
        if not table.n_columns or not table.n_rows:
            return _without_values(table.n_columns)
        return ColumnFigures.joined([_of_block(block) for _, block in table.blocks()])


def _without_values(d: int) -> ColumnFigures:
    zeros, none = np.zeros(d, np.int64), np.full(d, np.nan)
    return ColumnFigures(zeros, zeros, zeros, zeros, none, none, none, none, zeros > 0)


def _of_block(V: np.ndarray) -> ColumnFigures:
    """The figures of k columns, the rows of V float64 (k, n)."""
    k, n = V.shape
    missing = np.isnan(V).sum(axis=1)
    is_finite = np.isfinite(V)
    n_values = is_finite.sum(axis=1)
    S = np.sort(V if n_values.min() == n else np.where(is_finite, V, np.nan), axis=1)  # NaN last
    begins = np.ones((k, n), dtype=bool)
    begins[:, 1:] = S[:, 1:] != S[:, :-1]
    distinct = begins.sum(axis=1) - (n - n_values)  # each NaN differs from the next
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, k * n))
    first_of_row = np.searchsorted(starts, np.arange(k) * n)
    commonest = np.where(n_values > 0, np.maximum.reduceat(lengths, first_of_row), 0)
    low = np.where(n_values > 0, S[:, 0], np.nan)
    high = np.where(n_values > 0, S[np.arange(k), np.maximum(n_values - 1, 0)], np.nan)
    mean, std = _moments(S, low, high)
    is_whole = (n_values > 0) & ((np.floor(S) == S) | np.isnan(S)).all(axis=1)
    return ColumnFigures(
        missing, n - n_values - missing, distinct, commonest, low, high, mean, std, is_whole
    )


def _moments(S: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation, scaled by the largest value so that nothing overflows."""
    unit = np.maximum(np.abs(low), np.abs(high))
    unit = np.where(unit > 0, unit, 1.0)[:, None]
    scaled = S / unit
    return np.nanmean(scaled, axis=1) * unit[:, 0], np.nanstd(scaled, axis=1) * unit[:, 0]


def _of_sparse(table: CodedTable) -> ColumnFigures:
    """The figures of sparse columns, from their stored entries; all other cells are zero."""
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
    n_values = stored + zeros
    mean, std = _sparse_moments(
        column, data, n_values, zeros, np.maximum(np.abs(low), np.abs(high))
    )
    fractions = np.bincount(column[data != np.floor(data)], minlength=d)
    has_values = n_values > 0
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
    column: np.ndarray, data: np.ndarray, n_values: np.ndarray, zeros: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    d = len(n_values)
    unit = np.where(np.isfinite(unit) & (unit > 0), unit, 1.0)
    scaled = data / unit[column]
    mean = np.bincount(column, weights=scaled, minlength=d) / n_values
    squares = np.bincount(column, weights=(scaled - mean[column]) ** 2, minlength=d)
    std = np.sqrt((squares + zeros * mean**2) / n_values)
    return mean * unit, std * unit
