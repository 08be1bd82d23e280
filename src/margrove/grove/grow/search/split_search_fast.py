"""The usual case, in loops with nothing else in them: one output, each row counts once.

Gini, entropy or squared error, thresholds of numbers without missing values, no constraints.
`split_search` has everything else, and finds the same splits.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.search.scores import GINI, SQUARED, consider

__all__ = ["keep_split_fast", "search_feature_fast"]


@kernel(inner=True, inlined=True)
def search_feature_fast(entries, start, end, labels, numbers, rules, total, offset, feature,
                        buffers):  # fmt: skip
    """Search one feature that is not constant; whether it is the best so far.

    entries uint32: rank << 16 | place, of a subtree's rows in the order of the feature.
    """
    if len(labels) > 0:
        return _search_classes(entries, start, end, labels, rules, total, feature, buffers)
    return _search_numbers(entries, start, end, numbers, rules.min_samples_leaf, total[0],
                           offset[0], feature, buffers.best, buffers.score)  # fmt: skip


@kernel(inner=True, inlined=True)
def _search_classes(entries, start, end, labels, rules, total, feature, buffers):
    """By Gini or entropy: the loop in which fits spend their time."""
    criterion, table, scale = rules.criterion, rules.table, rules.scale
    smallest = rules.min_samples_leaf
    left, right, best, score = buffers.left, buffers.right, buffers.best, buffers.score
    gini = criterion == GINI
    squares_left, squares_right = 0, 0
    for k in range(len(total)):
        left[k] = 0
        right[k] = total[k]
        squares_right += total[k] * total[k] if gini else table[total[k]]
    n = end - start
    bar = score[0] - 1e-13 * abs(score[0]) if best[0] >= 0 else -np.inf
    found = False
    rank = entries[start] >> np.uint32(16)
    # Many rows of a few values: count only, and sum up where the value changes.
    n_values = np.int64(entries[end - 1] >> np.uint32(16)) - np.int64(rank)
    counts_only = n > 2 * len(total) * n_values
    for p in range(start, end - 1):
        k = labels[np.uint64(entries[p] & np.uint32(0xFFFF))]
        before_left = left[k]
        left[k] = before_left + 1
        if not counts_only:
            before_right = right[k]
            right[k] = before_right - 1
            if gini:
                squares_left += 2 * before_left + 1
                squares_right -= 2 * before_right - 1
            else:
                squares_left += table[before_left + 1] - table[before_left]
                squares_right += table[before_right - 1] - table[before_right]
        last_rank, rank = rank, entries[p + 1] >> np.uint32(16)
        if last_rank == rank:
            continue
        if counts_only:
            squares_left, squares_right = 0, 0
            for k in range(len(total)):
                in_left, in_right = left[k], total[k] - left[k]
                squares_left += in_left * in_left if gini else table[in_left]
                squares_right += in_right * in_right if gini else table[in_right]
        n_left = p + 1 - start
        n_right = n - n_left
        if gini:
            value = squares_left / n_left + squares_right / n_right
        else:
            exact = squares_left + squares_right - table[n_left] - table[n_right]
            value = exact / scale
        if value < bar or n_left < smallest or n_right < smallest:
            continue
        a = squares_left if gini else exact
        if consider(
            criterion, True, np.int64(a), np.int64(n_left), np.int64(squares_right),
            np.int64(n_right), value, feature, np.int64(n_left), best, score,
        ):  # fmt: skip
            bar = score[0] - 1e-13 * abs(score[0])
            found = True
    return found


@kernel(inner=True)
def _search_numbers(entries, start, end, numbers, smallest, total, offset, feature, best, score):
    """By squared error, around the node's mean."""
    n = end - start
    total -= n * offset
    bar = score[0] * (1.0 - 1e-13) if best[0] >= 0 else -1.0
    sum_left = 0
    found = False
    rank = entries[start] >> np.uint32(16)
    for p in range(start, end - 1):
        sum_left += numbers[np.uint64(entries[p] & np.uint32(0xFFFF))] - offset
        last_rank, rank = rank, entries[p + 1] >> np.uint32(16)
        if last_rank == rank:
            continue
        n_left = p + 1 - start
        n_right = n - n_left
        sum_right = total - sum_left
        a, b = float(sum_left), float(sum_right)
        value = a * a / n_left + b * b / n_right
        if value < bar or n_left < smallest or n_right < smallest:
            continue
        if consider(
            SQUARED, True, np.int64(sum_left), np.int64(n_left), np.int64(sum_right),
            np.int64(n_right), value, feature, np.int64(n_left), best, score,
        ):  # fmt: skip
            bar = score[0] * (1.0 - 1e-13)
            found = True
    return found


@kernel(inner=True, inlined=True)
def keep_split_fast(nodes, node, base, rules, feature, score):
    """The best split found becomes the node's, if it decreases the impurity enough.

    Its codes are in the node already. base: score of the node itself.
    """
    if feature < 0:
        return
    decrease = max(score - base, 0.0)
    if rules.criterion == SQUARED:
        decrease *= 2.0 ** float(-2 * nodes.exponent[node, 0])
    if decrease < rules.min_decrease * (1.0 - 1e-12):
        return
    record = nodes.record
    record.feature[node] = feature
    record.missing_left[node] = 0
    record.subset[node] = -1
    record.decrease[node] = decrease
