"""The best split of a node of a sparse table, from what its rows store.

Another search reads every row of the node for every feature. Here the codes that the
rows of the node store are brought together by feature and sorted; all other rows have the code of
zero, and what they sum up to is what remains. The splits are those that `find_best_split` finds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._data import kernel_rows
from margrove._runtime import kernel
from margrove.grove.grow.nodes import random_below
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search.buffers import MISSING_LEFT
from margrove.grove.grow.search.scores import ENTROPY, GINI, SQUARED, consider, weighted_log
from margrove.grove.table import Columns, Targets, code_of

__all__ = ["SparseRows", "SparseSearch", "find_best_split_sparse", "new_sparse_search",
           "sparse_rows_of"]  # fmt: skip

_FEW_STORED = 0.2  # of all cells
_CODE_AT, _PLACE = np.uint64(32), np.uint64(0xFFFFFFFF)


class SparseRows(NamedTuple):
    """The codes of a table row after row, without those of zero.

    start     int64 (n + 1,)  row i has feature[start[i]:start[i + 1]] and code[...]
    feature   int32
    code      uint32
    zero      int64 (d,)  the code of zero in each column, or any where all rows store a value; of
              dense tables the code of the lowest value
    """

    start: np.ndarray
    feature: np.ndarray
    code: np.ndarray
    zero: np.ndarray


class SparseSearch(NamedTuple):
    """The rows, and the buffers of one search.

    ends    int64 (d,)  where the entries of each feature end, in `keys`
    keys    uint64  code << 32 | place of what the rows of a node store, feature after feature
    zeros   int64 (n_stats,)  what rows of zero sum up to
    found   int64 (2,)  the codes on both sides of the split
    """

    rows: SparseRows
    ends: np.ndarray
    keys: np.ndarray
    zeros: np.ndarray
    found: np.ndarray


def sparse_rows_of(X: Any, columns: Columns, targets: Targets, rules: Rules) -> SparseRows | None:
    """The rows of a CSR table, or of a dense one of which most cells have the lowest value of their
    column, for the search of this module; None where it does not serve."""
    n, d = X.shape
    is_usual = (
        len(targets.starts) == 2
        and len(rules.monotone) == 0
        and not rules.random
        and (rules.criterion == SQUARED or (rules.criterion in (GINI, ENTROPY) and rules.counted))
        and not columns.categorical.any()
        and not columns.has_missing.any()
    )
    is_sparse = sp.issparse(X)
    if not is_usual or not (is_sparse or len(columns.narrow) == d):
        return None
    n_stored = X.nnz if is_sparse else int(np.count_nonzero(columns.narrow))
    if n_stored > _FEW_STORED * n * d:
        return None
    found = SparseRows(
        np.zeros(n + 1, np.int64),
        np.empty(n_stored, np.int32),
        np.empty(n_stored, np.uint32),
        np.zeros(d, np.int64),
    )
    if is_sparse:
        rows = kernel_rows(X)
        _find_zeros(rows.indptr, rows.indices, columns, found.zero)
        _list_codes(rows.indptr, rows.indices, columns, found)
    else:
        _list_cells(columns.narrow, columns.place, found)
    return found


@kernel
def _list_cells(narrow, place, found):
    """The codes of all rows of a dense table, without those of the lowest values."""
    start, n = found.start, narrow.shape[1]
    for j in range(len(place)):
        codes = narrow[place[j]]
        for i in range(n):
            start[i + 1] += codes[i] != 0
    for i in range(n):
        start[i + 1] += start[i]
    for j in range(len(place)):
        codes = narrow[place[j]]
        for i in range(n):
            at = np.uint64(start[i])
            if codes[i] != 0:
                found.feature[at] = j
                found.code[at] = codes[i]
                start[i] += 1
    for i in range(n, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


@kernel
def _find_zeros(indptr, indices, columns, zero):
    """The code that each column has in the first row that does not store it."""
    unknown, n_unknown = np.arange(len(zero)), len(zero)
    stored_by = np.full(len(zero), -1, np.int64)
    for row in range(len(indptr) - 1):
        for p in range(indptr[row], indptr[row + 1]):
            stored_by[indices[p]] = row
        count = 0
        for k in range(n_unknown):
            feature = unknown[k]
            if stored_by[feature] == row:
                unknown[count] = feature
                count += 1
            else:
                zero[feature] = code_of(columns, feature, row)
        n_unknown = count


@kernel
def _list_codes(indptr, indices, columns, found):
    """The codes of all rows, without those of zero."""
    count = 0
    for row in range(len(indptr) - 1):
        for p in range(indptr[row], indptr[row + 1]):
            feature = indices[p]
            code = code_of(columns, feature, row)
            found.feature[count] = feature
            found.code[count] = np.uint32(code)
            count += code != found.zero[feature]
        found.start[row + 1] = count


@kernel
def new_sparse_search(sparse, rows, n_stats):
    """The search for a subtree over these rows."""
    n_stored = 0
    for row in rows:
        n_stored += sparse.start[row + 1] - sparse.start[row]
    return SparseSearch(
        sparse, np.zeros(len(sparse.zero), np.int64), np.empty(n_stored, np.uint64),
        np.zeros(n_stats, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


@kernel(inner=True)
def find_best_split_sparse(sparse, rows, places, targets, rules, nodes, node, buffers):
    """Find the best split over the features, in order or in random order; the work done.

    rows[places[...]] are the rows of the table. The best split is in the buffers, its codes are in
    the node.
    """
    record = nodes.record
    start, end = record.start[node], record.end[node]
    d, ends = len(sparse.ends), sparse.ends
    n_stored = _bring_together(sparse, rows, places, start, end)
    features = buffers.features
    samples_features = rules.max_features < d
    state = np.uint64(record.key[node])
    if samples_features:
        for j in range(d):
            features[j] = j
    looked_at = 0
    for j in range(d):
        if samples_features:
            state, k = random_below(state, d - j)
            features[j], features[j + k] = features[j + k], features[j]
        feature = features[j]
        first, last = ends[feature - 1] if feature > 0 else 0, ends[feature]
        if first == last:
            continue
        is_one_code = _sort(sparse.keys, first, last)
        if is_one_code and last - first == end - start:
            continue
        looked_at += 1
        if _search(sparse, first, last, feature, targets, rules, nodes, node, buffers):
            record.code[node], record.next_code[node] = sparse.found[0], sparse.found[1]
            record.random_threshold[node] = np.nan
            buffers.best[MISSING_LEFT] = 0
        if looked_at >= rules.max_features and buffers.best[0] >= 0:
            break
    return float(4 * n_stored + d)


@kernel(inner=True)
def _bring_together(sparse, rows, places, start, end):
    """Write the keys of a node, feature after feature; how many."""
    given, ends, keys = sparse.rows, sparse.ends, sparse.keys
    for j in range(len(ends)):
        ends[j] = 0
    for p in range(start, end):
        row = rows[places[p]]
        for e in range(given.start[row], given.start[row + 1]):
            ends[np.uint64(given.feature[e])] += 1
    total = 0
    for j in range(len(ends)):
        count = ends[j]
        ends[j] = total
        total += count
    for p in range(start, end):
        place = places[p]
        row = rows[place]
        for e in range(given.start[row], given.start[row + 1]):
            feature = np.uint64(given.feature[e])
            code = np.uint64(given.code[e])
            keys[np.uint64(ends[feature])] = (code << _CODE_AT) | np.uint64(place)
            ends[feature] += 1
    return total


@kernel(inner=True)
def _sort(keys, first, last):
    """Sort keys[first:last], unless all have one code; whether they have."""
    code, is_one_code = keys[first] >> _CODE_AT, True
    for p in range(first, last):
        is_one_code &= keys[p] >> _CODE_AT == code
    if is_one_code:
        return True
    gap = 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort, with the gaps of Knuth
        for p in range(first + gap, last):
            key, at = keys[p], p
            while at >= first + gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                at -= gap
            keys[at] = key
        gap //= 3
    return False


@kernel(inner=True)
def _search(sparse, first, last, feature, targets, rules, nodes, node, buffers):
    """Search one feature that is not constant; whether it is the best so far.

    Codes ascend, and rows of zero come where their code belongs.
    """
    record, keys, zeros = nodes.record, sparse.keys, sparse.zeros
    total, left, best, score = nodes.stats[node], buffers.left, buffers.best, buffers.score
    weights, samples, labels, numbers = (
        targets.weight, targets.samples, targets.labels, targets.numbers,
    )  # fmt: skip
    node_weight, node_samples = record.weight[node], record.samples[node]
    n, zero = record.end[node] - record.start[node], sparse.rows.zero[feature]
    is_class, gini = len(labels) > 0, rules.criterion == GINI
    table, scale = rules.table, rules.scale
    n_zeros, weight_zeros, samples_zeros = n - (last - first), node_weight, node_samples
    squares_left, squares_right = 0, 0  # or n log2 n
    for k in range(len(total)):
        left[k], zeros[k] = 0, total[k]
        squares_right += total[k] * total[k] if gini else (
            weighted_log(total[k], table, scale) if is_class else 0
        )  # fmt: skip
    if n_zeros > 0:
        for p in range(first, last):
            place = np.uint64(keys[p] & _PLACE)
            weight_zeros -= weights[place]
            samples_zeros -= samples[place]
            if is_class:
                zeros[np.uint64(labels[place])] -= weights[place]
            else:
                zeros[0] -= numbers[place]
    found, position, weight_left, samples_left = False, 0, 0, 0
    bar = score[0] - 1e-13 * abs(score[0]) if best[0] >= 0 else -np.inf
    p = first
    while True:
        if n_zeros > 0 and (p == last or np.int64(keys[p] >> _CODE_AT) > zero):
            code = zero
            position += n_zeros
            weight_left += weight_zeros
            samples_left += samples_zeros
            n_zeros = 0
            squares_left, squares_right = 0, 0
            for k in range(len(total)):
                left[k] += zeros[k]
                right = total[k] - left[k]
                if gini:
                    squares_left += left[k] * left[k]
                    squares_right += right * right
                elif is_class:
                    squares_left += weighted_log(left[k], table, scale)
                    squares_right += weighted_log(right, table, scale)
        else:
            code = np.int64(keys[p] >> _CODE_AT)
            if n_zeros == 0 and np.int64(keys[last - 1] >> _CODE_AT) == code:
                return found  # nothing is left for the right child
            while p < last and np.int64(keys[p] >> _CODE_AT) == code:
                place = np.uint64(keys[p] & _PLACE)
                w = weights[place]
                p += 1
                position += 1
                weight_left += w
                samples_left += samples[place]
                if not is_class:
                    left[0] += numbers[place]
                    continue
                k = np.uint64(labels[place])
                in_left, in_right = left[k], total[k] - left[k]
                left[k] = in_left + w
                if gini:
                    squares_left += w * (2 * in_left + w)
                    squares_right -= w * (2 * in_right - w)
                else:
                    squares_left += weighted_log(in_left + w, table, scale)
                    squares_left -= weighted_log(in_left, table, scale)
                    squares_right += weighted_log(in_right - w, table, scale)
                    squares_right -= weighted_log(in_right, table, scale)
        if p == last and n_zeros == 0:  # they were the last ones
            return found
        weight_right = node_weight - weight_left
        if (
            min(samples_left, node_samples - samples_left) < rules.min_samples_leaf
            or min(weight_left, weight_right) < rules.min_weight
        ):
            continue
        a, b = squares_left, squares_right
        if gini:
            value = a / weight_left + b / weight_right
        elif is_class:
            a += b
            a -= weighted_log(weight_left, table, scale) + weighted_log(weight_right, table, scale)
            value = a / scale
        else:
            a = left[0] - weight_left * buffers.offset[0]
            b = total[0] - left[0] - weight_right * buffers.offset[0]
            value = float(a) * float(a) / weight_left + float(b) * float(b) / weight_right
        if value < bar:
            continue
        if consider(
            rules.criterion, rules.counted, np.int64(a), np.int64(weight_left), np.int64(b),
            np.int64(weight_right), value, feature, np.int64(position), best, score,
        ):  # fmt: skip
            sparse.found[0], sparse.found[1] = code, zero
            if n_zeros == 0 or (p < last and np.int64(keys[p] >> _CODE_AT) < zero):
                sparse.found[1] = np.int64(keys[p] >> _CODE_AT)
            bar = score[0] - 1e-13 * abs(score[0])
            found = True
