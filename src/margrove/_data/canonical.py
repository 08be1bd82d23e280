"""The canonical form of a training set: the rules behind `sample_weight`.

    weight k = the row repeated k times        weight 0 = the row removed
    the order of the rows does not matter

A learner that draws random numbers or stops at a tolerance follows these rules exactly only if it
gets the same input in all these cases. So it trains on the canonical form: rows of weight zero are
dropped, identical (row, target) pairs are merged and their weights added, and the order depends on
the content only.

X is not copied: the form is a list of representative rows, their weights, and the group of every
row. Rows are sorted by a 64-bit hash of their content, which is fast and, as a pseudo-random order,
also a good first shuffle. Rows with equal hashes are compared value by value, so a collision can
cost time but never changes a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from margrove._data.rows import RowScan, kernel_rows, scan_rows
from margrove._runtime import kernel

__all__ = ["CanonicalForm", "canonical_form", "canonical_form_by_hash", "given_order"]


@dataclass(frozen=True)
class CanonicalForm:
    """Groups of identical weighted rows.

    rows         int64 (m,)  one original row of each group, in canonical order
    weight       float64 (m,)  the summed weight of each group, > 0
    group_of     int64 (n,)  the group of each original row; -1 for rows of weight zero
    row_weight   float64 (n,)  the weights as given
    """

    rows: np.ndarray
    weight: np.ndarray
    group_of: np.ndarray
    row_weight: np.ndarray

    def share_out(self, values: np.ndarray) -> np.ndarray:
        """Divide a value of each group (m, ...) among its rows (n, ...), in proportion to weight.

        The sum over rows is the sum over groups. If no group exceeds a bound proportional to its
        weight, no row does.
        """
        kept = self.group_of >= 0
        shares = np.zeros((len(self.group_of), *values.shape[1:]), dtype=np.float64)
        group = self.group_of[kept]
        fraction = self.row_weight[kept] / self.weight[group]
        shares[kept] = values[group] * fraction.reshape(-1, *([1] * (values.ndim - 1)))
        return shares


def given_order(weight: np.ndarray) -> CanonicalForm:
    """The rows of nonzero weight in their given order, not merged."""
    rows = np.flatnonzero(weight > 0)
    group_of = np.full(len(weight), -1, dtype=np.int64)
    group_of[rows] = np.arange(len(rows))
    return CanonicalForm(rows, weight[rows], group_of, weight)


def canonical_form(
    X: Any,
    target: np.ndarray,
    weight: np.ndarray,
    scan: RowScan | None = None,
) -> CanonicalForm:
    """Find the canonical form of checked data.

    X       dense or CSR, as `check_table` returns it
    target  int64 codes or float64 (n,)
    weight  float64 (n,), >= 0
    scan    the scan of X, if there is one already
    """
    rows = np.flatnonzero(weight > 0)
    target_bits = _bits(target)
    row_hashes = (scan or scan_rows(X)).hashes
    rows, hashes = _sorted_by_hash(rows, _pair_hashes(row_hashes, target_bits, rows))
    new_group = np.ones(len(rows), dtype=bool)
    same_hash = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    if len(same_hash):
        view = kernel_rows(X)
        _mark_differences(view, target_bits, rows, same_hash, new_group)
        if new_group[same_hash].any():
            rows = _sort_collisions(X, target, rows, hashes)
            _mark_differences(view, target_bits, rows, same_hash, new_group)
    return _grouped(rows, new_group, weight)


def canonical_form_by_hash(
    hashes: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    is_unique: np.ndarray | None = None,
) -> CanonicalForm:
    """Find the canonical form of rows of which only the hashes are known; all rows are kept.

    hashes      uint64 (n,), of the rows, as `scan_rows` computes them
    target      int64 codes or float64 (n,)
    weight      float64 (n,), >= 0
    is_unique   bool (n,): rows that are equal to no other, such as rows with NaN

    Other rows with equal hash and target count as equal.
    """
    rows = np.arange(len(weight))
    rows, sorted_pairs = _sorted_by_hash(rows, _pair_hashes(hashes, _bits(target), rows))
    new_group = np.append(True, sorted_pairs[1:] != sorted_pairs[:-1])
    if is_unique is not None:
        new_group |= is_unique[rows]
    return _grouped(rows, new_group, weight)


def _bits(target: np.ndarray) -> np.ndarray:
    """The bits of the targets, uint64 (n,); adding 0 turns -0.0 into 0.0."""
    return (np.asarray(target) + 0).view(np.uint64)


def _pair_hashes(row_hashes: np.ndarray, target_bits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Hashes of the (row, target) pairs of some rows, evenly spread over all 64 bits."""
    hashes = np.empty(len(rows), dtype=np.uint64)
    _write_pair_hashes(row_hashes, target_bits, rows, hashes)
    return hashes


def _sorted_by_hash(rows: np.ndarray, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(rows) < 2**_BUCKET_BITS:  # too few to fill the buckets
        order = np.argsort(hashes, kind="stable")
        return rows[order], hashes[order]
    starts = np.zeros(2**_BUCKET_BITS + 1, dtype=np.int64)
    sorted_rows, sorted_hashes = np.empty_like(rows), np.empty_like(hashes)
    if not _sort_by_hash(hashes, rows, starts, sorted_hashes, sorted_rows):
        order = np.argsort(hashes, kind="stable")
        return rows[order], hashes[order]
    return sorted_rows, sorted_hashes


def _grouped(rows: np.ndarray, new_group: np.ndarray, weight: np.ndarray) -> CanonicalForm:
    starts = np.flatnonzero(new_group)
    group_of = np.full(len(weight), -1, dtype=np.int64)
    if len(starts) == len(rows):
        group_of[rows] = np.arange(len(rows))
        return CanonicalForm(rows, weight[rows], group_of, weight)
    group = np.cumsum(new_group) - 1
    # Float sums depend on their order; within a group, weights are added in ascending order.
    rows = rows[np.lexsort((weight[rows], group))]
    group_of[rows] = group
    return CanonicalForm(rows[starts], np.add.reduceat(weight[rows], starts), group_of, weight)


def _sort_collisions(
    X: Any, target: np.ndarray, rows: np.ndarray, hashes: np.ndarray
) -> np.ndarray:
    """Sort rows of equal hash but different content lexicographically; there are hardly any."""
    rows = rows.copy()
    edges = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1], True])
    for start, end in pairwise(edges):
        if end - start > 1:
            run = rows[start:end]
            block = X[run]
            block = block.toarray() if hasattr(block, "toarray") else block
            keys = np.column_stack([block + 0.0, np.asarray(target)[run]])
            rows[start:end] = run[np.lexsort(keys.T[::-1])]
    return rows


_BUCKET_BITS = 16
_LARGEST_BUCKET = 4096


@kernel(bare=True)
def _write_pair_hashes(row_hashes, target_bits, rows, hashes):
    for k in range(len(rows)):
        row = rows[k]
        hashes[k] = _scrambled(_scrambled(target_bits[row] + np.uint64(1)) + row_hashes[row])


@kernel(scalar=True)
def _scrambled(bits):
    """`scramble` for one number."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@kernel
def _sort_by_hash(hashes, rows, starts, sorted_hashes, sorted_rows):
    """Sort (hash, row) pairs: into buckets by the upper bits, then each bucket by insertion.

    starts: zeros (2^_BUCKET_BITS + 1,). Hashes are evenly spread, so buckets are small, unless a
    row is repeated very often: then nothing is sorted and False is returned.
    """
    shift = np.uint64(64 - _BUCKET_BITS)
    for k in range(len(hashes)):
        starts[np.int64(hashes[k] >> shift) + 1] += 1
    for bucket in range(1, len(starts)):
        if starts[bucket] > _LARGEST_BUCKET:
            return False
        starts[bucket] += starts[bucket - 1]
    for k in range(len(hashes)):
        bucket = np.int64(hashes[k] >> shift)
        # The bucket is filled from its start, in the order of the input.
        place = starts[bucket]
        starts[bucket] = place + 1
        sorted_hashes[place] = hashes[k]
        sorted_rows[place] = rows[k]
    begin = 0
    for bucket in range(len(starts) - 1):
        end = starts[bucket]
        for place in range(begin + 1, end):
            value, row = sorted_hashes[place], sorted_rows[place]
            free = place
            while free > begin and sorted_hashes[free - 1] > value:
                sorted_hashes[free] = sorted_hashes[free - 1]
                sorted_rows[free] = sorted_rows[free - 1]
                free -= 1
            sorted_hashes[free] = value
            sorted_rows[free] = row
        begin = end
    return True


@kernel
def _mark_differences(X, target_bits, rows, same_hash, new_group):
    """new_group[k] = whether row k differs from row k - 1, for each k of `same_hash`."""
    for k in same_hash:
        a, b = rows[k], rows[k - 1]
        new_group[k] = target_bits[a] != target_bits[b] or not _same_row(X, a, b)


@kernel
def _same_row(X, a, b):
    if X.is_dense:
        for j in range(X.dense.shape[1]):  # noqa: SIM110
            if X.dense[a, j] != X.dense[b, j]:
                return False
        return True
    p, q = X.indptr[a], X.indptr[b]
    end_p, end_q = X.indptr[a + 1], X.indptr[b + 1]
    while True:
        while p < end_p and X.data[p] == 0.0:
            p += 1
        while q < end_q and X.data[q] == 0.0:
            q += 1
        if p == end_p or q == end_q:
            return p == end_p and q == end_q
        if X.indices[p] != X.indices[q] or X.data[p] != X.data[q]:
            return False
        p += 1
        q += 1
