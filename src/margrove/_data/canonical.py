"""The canonical form of a training set: the law behind `sample_weight`.

    weight k = the row repeated k times        weight 0 = the row removed
    the order of the rows does not matter

A learner that draws random numbers or stops at a tolerance obeys this exactly only if it never
sees the difference. So it trains on the canonical form: rows of weight zero dropped, identical
(row, target) pairs merged with summed weights, in an order that depends on their content alone.

No copy of X is made: the form is a list of representative rows, their weights, and the way back.
Rows are sorted by a 64-bit hash of their content, which is fast and, being a fixed pseudo-random
order, also a good first shuffle. Equal hashes are compared value by value, so a collision can cost
time but never an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from margrove._data.rows import kernel_rows
from margrove._jit import kernel
from margrove._threads import run_tiles

__all__ = ["CanonicalForm", "canonical_form", "given_order"]

_ROWS_PER_TILE = 16_384


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
        """Spread a figure of each group (m, ...) over its rows (n, ...), in proportion to weight.

        The sum over rows is the sum over groups, and no row exceeds a bound that is proportional
        to its weight if no group did.
        """
        kept = self.group_of >= 0
        shares = np.zeros((len(self.group_of), *values.shape[1:]), dtype=np.float64)
        group = self.group_of[kept]
        fraction = self.row_weight[kept] / self.weight[group]
        shares[kept] = values[group] * fraction.reshape(-1, *([1] * (values.ndim - 1)))
        return shares


def given_order(weight: np.ndarray) -> CanonicalForm:
    """The rows of nonzero weight as they stand, unmerged: for learners told to keep the order."""
    rows = np.flatnonzero(weight > 0)
    group_of = np.full(len(weight), -1, dtype=np.int64)
    group_of[rows] = np.arange(len(rows))
    return CanonicalForm(rows, weight[rows], group_of, weight)


def canonical_form(
    X: Any, target: np.ndarray, weight: np.ndarray, *, n_threads: int = 1
) -> CanonicalForm:
    """Find the canonical form of checked data.

    X       dense or CSR, as `_data.check_table` returns it
    target  int64 codes or float64 (n,)
    weight  float64 (n,), >= 0
    """
    rows = np.flatnonzero(weight > 0)
    view = kernel_rows(X)
    target_bits = (np.asarray(target) + 0).view(np.uint64)  # adding 0 turns -0.0 into 0.0
    hashes = np.empty(len(rows), dtype=np.uint64)

    def hash_tile(tile: int) -> None:
        part = slice(tile * _ROWS_PER_TILE, (tile + 1) * _ROWS_PER_TILE)
        _hash_rows(view, target_bits, rows[part], hashes[part])

    run_tiles(hash_tile, -(-len(rows) // _ROWS_PER_TILE), n_threads)
    order = np.argsort(hashes)
    rows, hashes = rows[order], hashes[order]
    new_group = np.ones(len(rows), dtype=bool)
    if _mark_groups(view, target_bits, rows, hashes, new_group):
        rows = _sort_collisions(X, target, rows, hashes)
        _mark_groups(view, target_bits, rows, hashes, new_group)
    return _grouped(rows, new_group, weight)


def _grouped(rows: np.ndarray, new_group: np.ndarray, weight: np.ndarray) -> CanonicalForm:
    starts = np.flatnonzero(new_group)
    group_of = np.full(len(weight), -1, dtype=np.int64)
    if len(starts) == len(rows):
        group_of[rows] = np.arange(len(rows))
        return CanonicalForm(rows, weight[rows], group_of, weight)
    group = np.cumsum(new_group) - 1
    # Float sums depend on their order; within a group, the weights' own order is canonical.
    rows = rows[np.lexsort((weight[rows], group))]
    group_of[rows] = group
    return CanonicalForm(rows[starts], np.add.reduceat(weight[rows], starts), group_of, weight)


def _sort_collisions(
    X: Any, target: np.ndarray, rows: np.ndarray, hashes: np.ndarray
) -> np.ndarray:
    """Rows of equal hash but different content, put in lexicographic order. Practically never."""
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


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1 = np.uint64(30)
_SHIFT_2 = np.uint64(27)
_SHIFT_3 = np.uint64(31)


@kernel
def _scramble(bits):
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    bits = (bits ^ (bits >> _SHIFT_1)) * _MIX_1
    bits = (bits ^ (bits >> _SHIFT_2)) * _MIX_2
    return bits ^ (bits >> _SHIFT_3)


@kernel
def _hash_rows(X, target_bits, rows, out):
    """out[k] = hash of row rows[k] and its target.

    A sum over nonzero cells, so dense and sparse rows of equal content have equal hashes and
    explicit zeros, their sign and the order of entries do not matter.
    """
    cell = np.empty(1, np.float64)
    bits = cell.view(np.uint64)
    for k in range(len(rows)):
        i = rows[k]
        total = target_bits[i] * _GOLDEN
        if X.is_dense:
            for j in range(X.dense.shape[1]):
                value = np.float64(X.dense[i, j])
                if value != 0.0:
                    cell[0] = value
                    total += _scramble(bits[0] + np.uint64(j + 1) * _GOLDEN)
        else:
            for p in range(X.indptr[i], X.indptr[i + 1]):
                if X.data[p] != 0.0:
                    cell[0] = np.float64(X.data[p])
                    total += _scramble(bits[0] + np.uint64(X.indices[p] + 1) * _GOLDEN)
        out[k] = _scramble(total)


@kernel
def _mark_groups(X, target_bits, rows, hashes, new_group):
    """new_group[k] = row k differs from row k - 1; True if equal hashes hide a difference."""
    collision = False
    for k in range(1, len(rows)):
        new_group[k] = True
        if hashes[k] == hashes[k - 1]:
            if target_bits[rows[k]] == target_bits[rows[k - 1]] and _same_row(
                X, rows[k], rows[k - 1]
            ):
                new_group[k] = False
            else:
                collision = True
    return collision


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
