"""The best split of a node of a forest's tree: features are searched one after the other.

Few features of each node are looked at, so the rows of a node are not kept in the order of each.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.nodes import random_below
from margrove.grove.grow.search.buffers import MISSING_LEFT, SortedRows
from margrove.grove.grow.search.node_search import search_feature
from margrove.grove.grow.search.scores import GINI
from margrove.grove.grow.search.split_search_forest import (
    differs,
    gather,
    search_by_count,
    search_by_draw,
    search_in_order,
    sort_codes,
)

__all__ = ["find_best_split_forest"]

_SHIFT = np.uint64(32)
_MASK = np.int64(0xFFFFFFFF)
_ONE, _SIX, _LAST_SIX = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel(inner=True, inlined=True)
def find_best_split_forest(arrays, columns, targets, rules, is_fast, nodes, node, squares, general):
    """Find the best split over the features, in order or in random order; how many were searched.

    arrays: those of the builder. It stops after `max_features` features that are not constant. The
    best split is in the buffers, its codes are in the node.
    """
    record, rows, local = nodes.record, arrays.rows, arrays.local
    start, end = record.start[node], record.end[node]
    n, d = end - start, len(columns.n_codes)
    samples_features = rules.max_features < d
    total, weight, key = nodes.stats[node], record.weight[node], np.uint64(record.key[node])
    state = key
    features, best = arrays.buffers.features, arrays.buffers.best
    looked_at, tried = 0, 0
    is_perfect = False
    pure_score = float(weight) if rules.criterion == GINI else 0.0
    knows_constant = len(arrays.constant) > 0
    slot = np.uint64(_inherit_constant(arrays.constant, record, node) if knows_constant else 0)
    for j in range(d):
        tried = j + 1
        if samples_features:
            state, k = random_below(state, d - j)
            features[j], features[j + k] = features[j + k], features[j]
            arrays.swaps[j] = j + k
        feature = features[j]
        if knows_constant and _has_bit(arrays.constant, slot, np.uint64(feature)):
            continue
        if is_perfect and feature > best[0]:  # nothing is better, and ties go to the lower
            looked_at += differs(columns, feature, rows, start, n)
            if looked_at >= rules.max_features:
                break
            continue
        least, most = gather(columns, feature, rows, start, n, local.codes)
        if least == most:
            if knows_constant:
                bit = np.uint64(feature)
                arrays.constant[slot, bit >> _SIX] |= _ONE << (bit & _LAST_SIX)
            continue
        looked_at += 1
        has_gaps = columns.has_missing[feature] and most == columns.n_codes[feature]
        if is_fast and not columns.categorical[feature] and not has_gaps:
            if _search_feature_fast(columns, rules, total, weight, key, n, least, most, squares,
                                    feature, arrays.buffers, local):  # fmt: skip
                record.code[node], record.next_code[node] = local.found[0], local.found[1]
                record.random_threshold[node] = (
                    local.random_threshold[0] if rules.random else np.nan
                )
                best[MISSING_LEFT] = 0
                if general is not None:
                    general.counts[0] = 0
                is_perfect = len(local.labels) > 0 and arrays.buffers.score[0] == pure_score
        elif general is not None:
            sort_codes(local.codes, n, least, most, local)
            for p in range(n):  # the rows themselves instead of their places
                entry = local.keys[p]
                row = rows[start + np.int64(entry & np.uint64(0xFFFFFFFF))]
                local.keys[p] = (entry >> _SHIFT << _SHIFT) | np.uint64(row)
            in_order = SortedRows(local.keys, 0, n, n, _SHIFT, _MASK)
            search_feature(in_order, feature, columns, arrays.identity, targets, rules, nodes, node,
                           general)  # fmt: skip
        if looked_at >= rules.max_features and best[0] >= 0:
            break
    if samples_features:
        for j in range(tried - 1, -1, -1):
            k = arrays.swaps[j]
            features[j], features[k] = features[k], features[j]
    return looked_at


@kernel(inner=True, inlined=True)
def _has_bit(words, row, bit):
    return (words[row, bit >> _SIX] >> (bit & _LAST_SIX)) & _ONE


@kernel(inner=True)
def _inherit_constant(constant, record, node):
    """The slot of a node; what is constant in its parent is so in the node."""
    parent, depth = record.parent[node], record.depth[node]
    if parent < 0:
        for word in range(constant.shape[1]):
            constant[0, word] = np.uint64(0)
        return np.int64(0)
    slot = 2 * depth + np.int64(record.left[parent] != node)
    above = 0
    if depth > 1:
        above = 2 * (depth - 1) + np.int64(record.left[record.parent[parent]] != parent)
    for word in range(constant.shape[1]):
        constant[slot, word] = constant[above, word]
    return slot


@kernel(inner=True, inlined=True)
def _search_feature_fast(columns, rules, total, weight, key, n, least, most, squares, feature,
                         buffers, local):  # fmt: skip
    """Draw a threshold, count codes or sort them, whichever is asked for or least work."""
    if rules.random:
        return search_by_draw(local, n, least, most, columns, rules, total, weight, key, feature,
                              buffers)  # fmt: skip
    n_cells = (most - least + 1) * (len(total) if len(local.labels) > 0 else 2)
    if n_cells <= 2 * n:
        return search_by_count(local, n, least, most, rules, total, weight, squares, feature,
                               buffers)  # fmt: skip
    sort_codes(local.codes, n, least, most, local)
    return search_in_order(local, n, least, rules, total, weight, squares, feature, buffers)
