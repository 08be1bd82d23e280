"""Tables as exact trees read them: bins of rank codes row by row, and rows by their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import (
    kernel,
    run_tiles,
)
from margrove.ensemble.adaboost import (
    groups_of_equal_cost,
)
from margrove.grove.table import (
    BinnedDataset,
)

__all__ = ["ENTRIES_AT_ONCE", "FeatureGroup", "read_groups"]

_BINS_OF_ROOT = 2.5  # times the root of the number of rows: bins of a feature of many codes
_FEWEST_BINS = 128
_RARE = 0.5  # share of other codes up to which the commonest is left out
_ENTRIES_OF_A_CORE = 1 << 20  # from which on several cores share a tree
ENTRIES_AT_ONCE = 1 << 22  # that are counted without a look at the keyboard


class FeatureGroup(NamedTuple):
    """Some neighbouring features; a core works on one group at a time.

    features    int64 (m,)  their numbers: the dense ones first
    first       int64 (m + 1,)  the cells (bins) of feature k are first[k] .. first[k + 1]
    last_code   int64 (cells,)  the highest code of each bin
    dense       uint16 (n, dense features)  bins
    starts      int64 (n + 1,)  entries[starts[i] : starts[i + 1]] are cells of row i
    entries     uint32
    omitted     int64 (m,)  the cell without entries, -1 for dense features
    inside      int64 (cells + 1,)  where the rows of a cell are in `members`: if it has many codes
    members     uint32  rows by rising code; the last of each code has the highest bit
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
    """Features that differ between rows, in groups of about equal cost."""
    n = data.n_rows
    features = np.flatnonzero(data.n_codes > 1)
    sizes = [np.bincount(data.column(int(j)), minlength=data.n_codes[j]) for j in features]
    rest = np.array([n - own.max() for own in sizes], np.int64)
    is_rare = rest <= _RARE * n
    cost = np.where(is_rare, rest, n)
    most = max(n_threads, int(cost.sum()) // (8 * ENTRIES_AT_ONCE))
    parts = groups_of_equal_cost(cost, _ENTRIES_OF_A_CORE, most) or [np.empty(0, np.int64)]
    groups: list[FeatureGroup | None] = [None] * len(parts)

    def build(k: int) -> None:
        part = np.concatenate([parts[k][~is_rare[parts[k]]], parts[k][is_rare[parts[k]]]])
        n_dense = int((~is_rare[part]).sum())
        groups[k] = _group(data, features[part], [sizes[j] for j in part], n_dense)

    run_tiles(build, len(parts), n_threads)
    return [group for group in groups if group is not None]


def _group(
    data: BinnedDataset, features: np.ndarray, sizes: list[np.ndarray], n_dense: int
) -> FeatureGroup:
    n = data.n_rows
    most = max(_FEWEST_BINS, int(_BINS_OF_ROOT * n**0.5))
    bins = [_bins_of(own, most) for own in sizes]
    n_bins = np.array([own[-1] + 1 for own in bins], np.int64)
    first = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    last_codes = [np.append(np.flatnonzero(np.diff(own)), len(own) - 1) for own in bins]
    last_code = np.concatenate([np.empty(0, np.int64), *last_codes])
    dense = np.empty((n, n_dense), np.uint16)
    rows_and_cells = []
    omitted = np.full(len(features), -1, np.int64)
    members, inside = [], [np.zeros(1, np.int64)]
    for k, j in enumerate(features):
        column = data.column(int(j))
        own = bins[k][column]
        if k < n_dense:
            dense[:, k] = own
        else:
            commonest = int(bins[k][np.argmax(sizes[k])])
            omitted[k] = first[k] + commonest
            rows = np.flatnonzero(own != commonest)
            rows_and_cells.append((rows, first[k] + own[rows]))
        found, ends = _members(column, sizes[k], bins[k])
        members.append(found)
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
    """The bin of each code: as many rows in each as it takes to have few enough bins."""
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


@kernel
def _fill_bins(sizes, most, bins):
    """Neighbouring codes share a bin while it has `most` rows at most; how many bins there are."""
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
    """The rows of bins of several codes, and where those of each bin end."""
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
