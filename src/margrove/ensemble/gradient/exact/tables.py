"""The table that exact trees are grown on: bins of rank codes by row, and rows sorted by value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from margrove._runtime import kernel, run_tiles
from margrove.ensemble.adaboost import groups_of_equal_cost
from margrove.grove.table import BinnedDataset

__all__ = ["ENTRIES_AT_ONCE", "FeatureGroup", "read_groups"]

_BINS_OF_ROOT = 2.5  # a feature of many codes has this times the root of the rows as bins
_FEWEST_BINS = 128
_RARE = 0.5  # the most frequent code is omitted if at most this share of rows has others
_ENTRIES_OF_A_CORE = 1 << 18  # with more entries, several threads share a tree
ENTRIES_AT_ONCE = 1 << 22  # that are counted between two checks for an interrupt


class FeatureGroup(NamedTuple):
    """Some features; a thread works on one group at a time.

    features    int64 (m,)  their numbers, dense features first
    first       int64 (m + 1,)  the cells (bins) of feature k are first[k] .. first[k + 1]
    last_code   int64 (cells,)  the highest code of each bin
    dense       uint16 (n, dense features)  the bins of dense features
    starts      int64 (n + 1,)  entries[starts[i] : starts[i + 1]] are cells of row i
    entries     uint32
    omitted     int64 (m,)  the cell without entries, -1 for dense features
    inside      int64 (cells + 1,)  members[inside[c] : inside[c + 1]] are the rows of cell c, if it
                has several codes
    members     uint32  rows in ascending order of codes; the highest bit marks the last row of each
                code
    """

    features: np.ndarray
    first: np.ndarray
    last_code: np.ndarray
    dense: np.ndarray
    starts: np.ndarray
    entries: np.ndarray
    omitted: np.ndarray
    inside: np.ndarray
    members: np.ndarray


def read_groups(data: BinnedDataset, n_threads: int) -> list[FeatureGroup]:
    """The features with at least two codes, in groups of about equal cost."""
    n = data.n_rows
    features = np.flatnonzero(data.n_codes > 1)
    sizes: list[Any] = [None] * len(features)

    def count(k: int) -> None:
        j = int(features[k])
        sizes[k] = np.zeros(data.n_codes[j], np.int64)
        _count_codes(data.column(j), sizes[k])

    run_tiles(count, len(features), n_threads)
    rest = np.array([n - size.max() for size in sizes], np.int64)
    is_rare = rest <= _RARE * n
    cost = np.where(is_rare, rest, n)
    most = max(n_threads, int(cost.sum()) // (8 * ENTRIES_AT_ONCE))
    chosen = groups_of_equal_cost(cost, _ENTRIES_OF_A_CORE, most) or [np.empty(0, np.int64)]
    groups: list[FeatureGroup | None] = [None] * len(chosen)

    def build(k: int) -> None:
        is_sparse = is_rare[chosen[k]]
        order = np.concatenate([chosen[k][~is_sparse], chosen[k][is_sparse]])
        n_dense = int((~is_sparse).sum())
        groups[k] = _group(data, features[order], [sizes[j] for j in order], n_dense)

    run_tiles(build, len(chosen), n_threads)
    return [group for group in groups if group is not None]


def _group(
    data: BinnedDataset, features: np.ndarray, sizes: list[np.ndarray], n_dense: int
) -> FeatureGroup:
    n = data.n_rows
    most = max(_FEWEST_BINS, int(_BINS_OF_ROOT * n**0.5))
    bins = [_bins_of(size, most) for size in sizes]
    n_bins = np.array([bin_of[-1] + 1 for bin_of in bins], np.int64)
    first = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    last_codes = [np.append(np.flatnonzero(np.diff(bin_of)), len(bin_of) - 1) for bin_of in bins]
    last_code = np.concatenate([np.empty(0, np.int64), *last_codes])
    dense = np.empty((n, n_dense), np.uint16)
    rows_and_cells = []
    omitted = np.full(len(features), -1, np.int64)
    members, inside = [], [np.zeros(1, np.int64)]
    for k, j in enumerate(features):
        column = data.column(int(j))
        bin_of_row = bins[k][column]
        if k < n_dense:
            dense[:, k] = bin_of_row
        else:
            most_frequent = int(bins[k][np.argmax(sizes[k])])
            omitted[k] = first[k] + most_frequent
            rows = np.flatnonzero(bin_of_row != most_frequent)
            rows_and_cells.append((rows, first[k] + bin_of_row[rows]))
        members_of_feature, ends = _members(column, sizes[k], bins[k])
        members.append(members_of_feature)
        inside.append(inside[-1][-1] + ends)
    rows, cells = (
        np.concatenate([np.empty(0, np.int64), *(pair[side] for pair in rows_and_cells)])
        for side in range(2)
    )
    order = np.argsort(rows, kind="stable")
    return FeatureGroup(
        features.astype(np.int64),
        first,
        last_code,
        dense,
        np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64),
        cells[order].astype(np.uint32),
        omitted,
        np.concatenate(inside),
        np.concatenate([np.empty(0, np.uint32), *members]),
    )


def _bins_of(sizes: np.ndarray, most: int) -> np.ndarray:
    """The bin of each code, int64: about `most` bins of about equal numbers of rows."""
    if len(sizes) <= 2 * most:
        return np.arange(len(sizes))
    low, high = 1, int(sizes.sum())
    bins = np.empty(len(sizes), np.int64)
    while low < high:
        middle = (low + high) // 2
        if _fill_bins(sizes, middle, bins) <= most:
            high = middle
        else:
            low = middle + 1
    _fill_bins(sizes, low, bins)
    return bins


@kernel(bare=True)
def _count_codes(column, counts):
    for i in range(len(column)):
        counts[np.uint64(column[i])] += 1


@kernel
def _fill_bins(sizes, most, bins):
    """Neighbouring codes share a bin of at most `most` rows; returns the number of bins."""
    number, filled = 0, 0
    for code in range(len(sizes)):
        if filled > 0 and filled + sizes[code] > most:
            number += 1
            filled = 0
        bins[code] = number
        filled += sizes[code]
    return number + 1


def _members(
    column: np.ndarray, sizes: np.ndarray, bins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of bins with several codes, and where the rows of each bin end."""
    is_shared = np.bincount(bins) > 1
    kept = np.where(is_shared[bins], sizes, 0)
    ends_of_codes = np.cumsum(kept)
    members = np.empty(int(kept.sum()), np.uint32)
    _write_members(column, is_shared[bins], ends_of_codes - kept, members)
    members[ends_of_codes[is_shared[bins]] - 1] |= np.uint32(0x80000000)
    ends: np.ndarray = ends_of_codes[np.append(np.flatnonzero(np.diff(bins)), len(bins) - 1)]
    return members, ends


@kernel
def _write_members(column, is_kept, places, members):
    for i in range(len(column)):
        code = np.int64(column[i])
        if is_kept[code]:
            members[places[code]] = np.uint32(i)
            places[code] += 1
