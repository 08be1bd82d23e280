"""The usual case, in loops with nothing else in them: one output, each row counts once.

Gini, entropy or squared error, thresholds of numbers that are all there, no constraints. What is
beyond that is in `node_search`; both fill in the same `Nodes`.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.nodes import (
    CODE,
    DECREASE,
    DRAWN,
    END,
    ERROR_LEFT,
    FEATURE,
    KEY,
    MISSING_LEFT,
    NEXT_CODE,
    PARENT,
    SAMPLES,
    START,
    SUBSET,
    WEIGHT,
    random_below,
)  # fmt: skip
from margrove.grove.grow.scores import GINI, SQUARED, consider
from margrove.grove.grow.split_search import POSITION
from margrove.grove.table import code_of, fitting_exponent

__all__ = ["end_plainly", "keep_plainly", "search_plain_feature", "search_plainly",
           "sum_up_plainly"]  # fmt: skip

_SHIFT = np.uint32(16)
_NARROWER = 6  # bits that a node's targets may be narrower before they get a scale of their own


@kernel(inner=True)
def sum_up_plainly(whole, stats, centre, exponent, value, node, places, labels, numbers, raw,
                   criterion, table, scale, offset):  # fmt: skip
    """Statistics of a node, in whole numbers; returns (whether it is pure, score of the node)."""
    start, end = whole[node, START], whole[node, END]
    n = end - start
    whole[node, WEIGHT] = n
    whole[node, SAMPLES] = n
    if len(labels) == 0:
        return _sum_up_numbers(whole, stats, centre, exponent, value, node, places, numbers, raw,
                               offset)  # fmt: skip
    n_classes = stats.shape[1]
    for k in range(n_classes):
        stats[node, k] = 0
    for p in range(start, end):
        stats[node, labels[places[p]]] += 1
    squares, most = 0, 0
    for k in range(n_classes):
        own = stats[node, k]
        most = max(most, own)
        squares += own * own if criterion == GINI else table[own]
    base = squares / n if criterion == GINI else (squares - table[n]) / scale
    return most == n, base


@kernel(inner=True)
def _sum_up_numbers(whole, stats, centre, exponent, value, node, places, numbers, raw, offset):
    start, end = whole[node, START], whole[node, END]
    n = end - start
    low, high = np.inf, -np.inf
    for p in range(start, end):
        own = raw[places[p]]
        low = min(low, own)
        high = max(high, own)
    middle = 0.5 * low + 0.5 * high
    widest = max(middle - low, high - middle)
    power = fitting_exponent(widest, n)
    is_narrow = widest > 0.0 and power - exponent[node, 0] > _NARROWER
    if whole[node, PARENT] < 0 or is_narrow:
        centre[node, 0] = middle
        exponent[node, 0] = power
        factor = 2.0 ** float(power)
        for p in range(start, end):
            numbers[places[p]] = np.int64(np.rint((raw[places[p]] - middle) * factor))
    total = 0
    for p in range(start, end):
        total += numbers[places[p]]
    stats[node, 0] = total
    offset[0] = np.int64(np.rint(float(total) / float(n)))
    mean = centre[node, 0] + float(total) / float(n) * 2.0 ** float(-exponent[node, 0])
    value[node, 0] = min(max(mean, low), high)
    rest = float(total - n * offset[0])
    return low == high, rest * rest / n


@kernel(inner=True)
def search_plainly(entries, whole, real, stats, node, columns, rows, labels, numbers, rules, offset,
                   left, right, features, best, score):  # fmt: skip
    """Features in turn, or as drawn, until enough have been looked at; how many."""
    d = len(columns.n_codes)
    start, end = whole[node, START], whole[node, END]
    drawn = rules.max_features < d
    state = np.uint64(whole[node, KEY])
    if drawn:
        for j in range(d):
            features[j] = j
    looked_at = 0
    for j in range(d):
        if drawn:
            state, k = random_below(state, d - j)
            features[j], features[j + k] = features[j + k], features[j]
        feature = features[j]
        own = entries[feature]
        if own[start] >> _SHIFT == own[end - 1] >> _SHIFT:
            continue
        looked_at += 1
        search_plain_feature(own, start, end, labels, numbers, rules, stats[node], offset, feature,
                             left, right, best, score)  # fmt: skip
        if looked_at >= rules.max_features and best[0] >= 0:
            break
    return looked_at


@kernel(inner=True)
def search_plain_feature(own, start, end, labels, numbers, rules, total, offset, feature, left,
                         right, best, score):  # fmt: skip
    """Search one feature that is not constant; whether it is the best so far."""
    if len(labels) > 0:
        return _search_classes(
            own, start, end, labels, rules.criterion, rules.table, rules.scale,
            rules.min_samples_leaf, total, feature, left, right, best, score,
        )  # fmt: skip
    return _search_numbers(own, start, end, numbers, rules.min_samples_leaf, total[0], offset[0],
                           feature, best, score)  # fmt: skip


@kernel(inner=True)
def _search_classes(entries, start, end, labels, criterion, table, scale, smallest, total, feature,
                    left, right, best, score):  # fmt: skip
    """By Gini or entropy: the loop in which fits spend their time."""
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
        own, rank = rank, entries[p + 1] >> np.uint32(16)
        if own == rank:
            continue
        if counts_only:
            squares_left, squares_right = 0, 0
            for k in range(len(total)):
                here, there = left[k], total[k] - left[k]
                squares_left += here * here if gini else table[here]
                squares_right += there * there if gini else table[there]
        n_left = p + 1 - start
        n_right = n - n_left
        if gini:
            value = squares_left / n_left + squares_right / n_right
        else:
            whole = squares_left + squares_right - table[n_left] - table[n_right]
            value = whole / scale
        if value < bar or n_left < smallest or n_right < smallest:
            continue
        a = squares_left if gini else whole
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
        own, rank = rank, entries[p + 1] >> np.uint32(16)
        if own == rank:
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


@kernel(inner=True)
def keep_plainly(entries, whole, real, exponent, node, base, columns, rows, rules, best, score):
    """The best split found becomes the node's, if it is good enough."""
    if best[0] < 0:
        return
    decrease = max(score[0] - base, 0.0)
    if rules.criterion == SQUARED:
        decrease *= 2.0 ** float(-2 * exponent[node, 0])
    if decrease < rules.min_decrease * (1.0 - 1e-12):
        return
    feature = best[0]
    after = whole[node, START] + best[POSITION]
    last = entries[feature, after - 1] & np.int64(0xFFFF)
    following = entries[feature, after] & np.int64(0xFFFF)
    whole[node, CODE] = code_of(columns, feature, rows[last])
    whole[node, NEXT_CODE] = code_of(columns, feature, rows[following])
    whole[node, FEATURE] = feature
    whole[node, MISSING_LEFT] = 0
    whole[node, SUBSET] = -1
    real[node, DECREASE] = decrease
    real[node, DRAWN] = np.nan


@kernel(inner=True)
def end_plainly(whole, real, value, node, places, raw):
    """A leaf: of a regression, its mean to the last digit and the squared error that is left."""
    real[node, ERROR_LEFT] = 0.0
    if len(raw) == 0:
        return
    start, end = whole[node, START], whole[node, END]
    low, high = np.inf, -np.inf
    for p in range(start, end):
        own = raw[places[p]]
        low = min(low, own)
        high = max(high, own)
    value[node, 0] = low
    if low == high:
        return
    n = end - start
    factor = 2.0 ** float(fitting_exponent(high - low, n))
    total = 0
    for p in range(start, end):
        total += np.int64(np.rint((raw[places[p]] - low) * factor))
    above = float(total) / float(n) / factor  # of the mean above the lowest, before it is rounded
    value[node, 0] = min(max(low + above, low), high)
    largest = max(high - low - above, above)
    scale = 2.0 ** float(fitting_exponent(1.0, n))
    whole_error = 0
    for p in range(start, end):
        share = (raw[places[p]] - low - above) / largest
        whole_error += np.int64(np.rint(share * share * scale))
    real[node, ERROR_LEFT] = float(whole_error) / scale * largest * largest
