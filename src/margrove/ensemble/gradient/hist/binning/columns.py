"""Columns as codes: at most 255 bins of numbers, or categories, and one code for missing values.

A column that has the same code in most rows is sparse: that code is omitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.gradient.hist.binning.bin_refinement import code_values, refined_cells
from margrove.grove.table import are_few_integers, binning

__all__ = [
    "ALL_ZERO",
    "RARE",
    "CodedColumn",
    "bin_categories",
    "bin_numbers",
    "code_column",
    "code_numbers",
    "code_sparse_column",
    "without_most_frequent",
]

_MANY_ROWS = 1 << 17  # columns with more rows are not sorted, see `bin_refinement`
RARE = 0.3  # the most frequent code is omitted if less than this share of rows has others


@dataclass(frozen=True)
class CodedColumn:
    """A coded column.

    codes           uint8, of all rows or of `rows`
    rows            int32, or None for all; other rows have the code `omitted`
    lows, highs     the smallest and the largest value of each code
    of_categories   int64, the code of each category; None for numbers
    """

    codes: np.ndarray
    rows: np.ndarray | None
    omitted: int
    lows: np.ndarray
    highs: np.ndarray
    of_categories: np.ndarray | None


ALL_ZERO = CodedColumn(
    np.empty(0, np.uint8), np.empty(0, np.int32), 0, np.zeros(1), np.zeros(1), None
)


def code_column(
    values: np.ndarray, n_categories: int, max_bins: int, weight: np.ndarray | None
) -> CodedColumn:
    """Code a column: values float64 (n,), where NaN is missing; n_categories is 0 for numbers."""
    return without_most_frequent(*code_numbers(values, n_categories, max_bins, weight))


def code_numbers(
    values: np.ndarray,
    n_categories: int,
    max_bins: int,
    weight: np.ndarray | None,
    *,
    may_be_whole: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """(codes, lows, highs, codes of categories) of a column, see `CodedColumn`."""
    is_large = len(values) > _MANY_ROWS and not n_categories
    if is_large and not (may_be_whole and are_few_integers(values)):
        codes, lows, highs = _refined_numbers(values, max_bins, weight)
        return codes, lows, highs, None
    codes, distinct, _ = binning.code_column(values)
    if n_categories:
        codes, numbers, of_categories = bin_categories(
            codes, distinct, n_categories, max_bins, weight
        )
        lows = highs = numbers
    else:
        of_categories = None
        codes, lows, highs = bin_numbers(codes, distinct, max_bins, weight)
    return codes, lows, highs, of_categories


def without_most_frequent(
    codes: np.ndarray, lows: np.ndarray, highs: np.ndarray, of_categories: np.ndarray | None
) -> CodedColumn:
    """The coded column, without the most frequent code if other codes are rare."""
    sizes = np.bincount(codes, minlength=1)
    omitted = int(np.argmax(sizes))
    if len(codes) - sizes[omitted] >= RARE * len(codes):
        return CodedColumn(codes, None, -1, lows, highs, of_categories)
    rows = np.flatnonzero(codes != omitted).astype(np.int32)
    return CodedColumn(codes[rows], rows, omitted, lows, highs, of_categories)


def code_sparse_column(
    data: np.ndarray, rows: np.ndarray, n: int, max_bins: int, weight: np.ndarray | None
) -> CodedColumn:
    """Code a column of a sparse matrix, where values that are not stored are zero."""
    if len(data) >= RARE * n:
        values = np.zeros(n)
        values[rows] = data
        return code_column(values, 0, max_bins, weight)
    # Zero is appended, with the weight of all rows that are not stored.
    values = np.append(np.asarray(data, np.float64), 0.0)
    stored = np.ones(len(data)) if weight is None else weight[rows]
    total = float(n) if weight is None else float(weight.sum())
    codes, distinct, _ = binning.code_column(values)
    weights = np.append(stored, max(total - stored.sum(), 0.0))
    codes, lows, highs = bin_numbers(codes, distinct, max_bins, weights)
    zero = int(codes[-1])
    others = np.flatnonzero(codes[:-1] != zero)
    return CodedColumn(codes[others], rows[others].astype(np.int32), zero, lows, highs, None)


def bin_numbers(
    codes: np.ndarray, values: np.ndarray, max_bins: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(codes, lows, highs) of at most `max_bins` bins of about equal weight."""
    if len(values) <= max_bins:
        return codes.astype(np.uint8), values, values
    counts = np.bincount(codes, weights=weight, minlength=len(values))[: len(values)]
    begins = _begins_of_bins(counts.astype(np.float64), max_bins)
    starts = np.flatnonzero(begins)
    table = np.append(np.cumsum(begins) - 1, len(starts)).astype(np.uint8)
    ends = np.append(starts[1:], len(values)) - 1
    return table[codes], values[starts], values[ends]


def _refined_numbers(
    values: np.ndarray, max_bins: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same as `bin_numbers`, for a column that is not sorted."""
    cells = refined_cells(values, max_bins, weight)
    places = np.arange(len(cells.lows))
    _, starts, ends = bin_numbers(places, places, max_bins, cells.weight)
    lows, highs = cells.lows[starts], cells.highs[ends]
    return code_values(values, lows), lows, highs


@kernel
def _begins_of_bins(counts, max_bins):
    """Which values begin a bin: heavy values have their own bin, others share the rest evenly."""
    begins = np.zeros(len(counts), np.bool_)
    heavy = np.zeros(len(counts), np.bool_)
    rest, bins_left = counts.sum(), max_bins
    is_settled = False
    while not is_settled and bins_left > 1:
        is_settled = True
        limit = rest / bins_left
        for k in range(len(counts)):
            if not heavy[k] and counts[k] >= limit and bins_left > 1:
                heavy[k] = True
                rest -= counts[k]
                bins_left -= 1
                is_settled = False
    limit = max(rest / bins_left, 1e-300)
    filled, last = 0.0, -1
    for k in range(len(counts)):
        if heavy[k]:
            begins[k] = True
            last = -1  # the next value begins a new bin
            continue
        number = int(filled / limit)
        begins[k] = number != last
        last = number
        filled += counts[k]
    return _limited(begins, heavy, max_bins)


@kernel
def _limited(begins, heavy, max_bins):
    """Between heavy values there may be a few bins too many. Then bins of light values, evenly
    spread, are joined to the bin before them; if that is not enough, any bins."""
    for only_light in (True, False):
        extra = np.int64(begins.sum()) - max_bins
        if extra <= 0:
            break
        total = np.int64(0)
        for k in range(1, len(begins)):
            total += np.int64(_may_be_joined(begins, heavy, k, only_light))
        extra = min(extra, total)
        seen = np.int64(0)
        kept = begins.copy()
        for k in range(1, len(begins)):
            if _may_be_joined(kept, heavy, k, only_light):
                begins[k] = (seen + 1) * extra // total == seen * extra // total
                seen += 1
    return begins


@kernel
def _may_be_joined(begins, heavy, k, only_light):
    return begins[k] and not (only_light and (heavy[k] or heavy[k - 1]))


def bin_categories(
    codes: np.ndarray,
    numbers: np.ndarray,
    n_categories: int,
    max_bins: int,
    weight: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A code for each category; if there are too many, rare categories share the last code."""
    of_categories = np.full(n_categories, -1, np.int64)
    numbers = numbers.astype(np.int64)
    new = np.arange(len(numbers) + 1)
    if len(numbers) > max_bins:
        counts = np.bincount(codes, weights=weight, minlength=len(numbers))[: len(numbers)]
        frequent = np.sort(np.lexsort((numbers, -counts))[: max_bins - 1])
        new = np.full(len(numbers) + 1, max_bins - 1)
        new[frequent] = np.arange(len(frequent))
        new[-1] = max_bins
    of_categories[numbers] = new[:-1]
    n_codes = min(len(numbers), max_bins)
    return new.astype(np.uint8)[codes], np.arange(n_codes, dtype=np.float64), of_categories
