"""The best split of a node by one feature, for forests: codes are gathered when asked for.

A tree that looks at few features of each node does not keep all its rows sorted by all of them, as
`subtree` does. It gathers the codes of the node's rows, and then either counts, one cell for each
code and class, or sorts, whichever is less work. It finds the splits of
`split_search_fast`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.search.node_search import drawn_between
from margrove.grove.grow.search.scores import GINI, SQUARED, consider, weighted_log

__all__ = ["LocalRows", "differs", "gather", "new_local_rows", "search_by_count",
           "search_by_draw", "search_in_order", "sort_codes"]  # fmt: skip

_FEW_ROWS = 256  # rows of a node, up to which their codes are better looked up row by row
_FEW = 24  # that insertion sorts fastest
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class LocalRows(NamedTuple):
    """Copies of what the rows of one node have, in their order, and the arrays of a search.

    labels int32, weight int64, numbers int64    of the rows
    codes          uint32  of the rows, by one feature
    keys, spare    uint64  code << 32 | place in the node, to be sorted
    cells          int64  sums by code, or by code and class
    left           int64 (n_classes,)  zeros between two searches
    found          int64 (2,)  code and next code of the best split
    random_threshold    float64 (1,)  its threshold, if it was drawn
    row_is_sample        whether each row is one sample, whatever its weight
    counts         int64  rows by code, if so
    """

    labels: np.ndarray
    weight: np.ndarray
    numbers: np.ndarray
    codes: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    cells: np.ndarray
    left: np.ndarray
    found: np.ndarray
    random_threshold: np.ndarray
    row_is_sample: bool
    counts: np.ndarray


def new_local_rows(
    n_rows: int, n_stats: int, *, is_class: bool, row_is_sample: bool = False
) -> LocalRows:
    """Arrays for nodes of at most so many rows."""
    return LocalRows(
        np.empty(n_rows if is_class else 0, np.int32),
        np.empty(n_rows, np.int64),
        np.empty(0 if is_class else n_rows, np.int64),
        np.empty(n_rows, np.uint32),
        np.empty(n_rows, np.uint64),
        np.empty(n_rows, np.uint64),
        np.empty(4 * n_rows + 1024, np.int64),
        np.zeros(n_stats, np.int64),
        np.zeros(2, np.int64),
        np.zeros(1),
        row_is_sample,
        np.empty(2 * n_rows if row_is_sample else 0, np.int64),
    )


@kernel(inner=True, inlined=True)
def gather(columns, feature, rows, start, n, codes):
    """The codes of a node's rows; the smallest and the largest."""
    width, place = columns.width[feature], columns.place[feature]
    if width == 0:
        if n <= _FEW_ROWS and len(columns.row_major) > 0:
            return _gather_row_major(columns.row_major, place, rows, start, n, codes)
        return _gather(columns.narrow[place], rows, start, n, codes)
    if width == 1:
        return _gather(columns.medium[place], rows, start, n, codes)
    return _gather(columns.wide[place], rows, start, n, codes)


@kernel(inner=True, inlined=True)
def _gather(column, rows, start, n, codes):
    least, most = np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(np.uint64(n)):
        code = np.uint32(column[np.uint64(rows[np.uint64(start) + i])])
        codes[i] = code
        least = min(least, code)
        most = max(most, code)
    return np.int64(least), np.int64(most)


@kernel(inner=True, inlined=True)
def _gather_row_major(row_major, place, rows, start, n, codes):
    least, most = np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(np.uint64(n)):
        code = np.uint32(row_major[np.uint64(rows[np.uint64(start) + i]), np.uint64(place)])
        codes[i] = code
        least = min(least, code)
        most = max(most, code)
    return np.int64(least), np.int64(most)


@kernel(inner=True, inlined=True)
def differs(columns, feature, rows, start, n):
    """Whether the rows of a node have different codes."""
    width, place = columns.width[feature], columns.place[feature]
    if width == 0:
        return _differs(columns.narrow[place], rows, start, n)
    if width == 1:
        return _differs(columns.medium[place], rows, start, n)
    return _differs(columns.wide[place], rows, start, n)


@kernel(inner=True, inlined=True)
def _differs(column, rows, start, n):
    code = column[np.uint64(rows[start])]
    i = 1
    while i < n and column[np.uint64(rows[start + i])] == code:
        i += 1
    return i < n


@kernel(inner=True, inlined=True)
def sort_codes(codes, n, least, most, local):
    """(code - least, place) of all rows, by code and then by place, in local.keys."""
    keys = local.keys
    low = np.uint32(least)
    if n <= _FEW:
        for i in range(n):
            key = (np.uint64(codes[i] - low) << _SHIFT) | np.uint64(i)
            free = i
            while free > 0 and keys[free - 1] > key:
                keys[free] = keys[free - 1]
                free -= 1
            keys[free] = key
        return
    span = most - least + 1
    if span <= 2 * n + 256:
        cells = local.cells
        for k in range(span + 1):
            cells[k] = 0
        for i in range(n):
            cells[np.uint64(codes[i] - low) + np.uint64(1)] += 1
        for k in range(span):
            cells[k + 1] += cells[k]
        for i in range(n):
            code = np.uint64(codes[i] - low)
            place = cells[code]
            keys[np.uint64(place)] = (code << _SHIFT) | np.uint64(i)
            cells[code] = place + 1
        return
    for i in range(n):
        keys[i] = (np.uint64(codes[i] - low) << _SHIFT) | np.uint64(i)
    _sort_by_digits(keys, local.spare, local.cells, n, span)


@kernel(inner=True)
def _sort_by_digits(keys, spare, cells, n, span):
    """By the code's bytes, the lowest first; an even number of passes, so it ends in `keys`."""
    digit, low = 0, np.uint64(255)
    while digit < 2 or span >> (8 * digit) > 0 or digit % 2:
        source, target = (keys, spare) if digit % 2 == 0 else (spare, keys)
        shift = np.uint64(32 + 8 * digit)
        for k in range(257):
            cells[k] = 0
        for i in range(n):
            cells[((source[i] >> shift) & low) + np.uint64(1)] += 1
        for k in range(256):
            cells[k + 1] += cells[k]
        for i in range(n):
            byte = (source[i] >> shift) & low
            target[np.uint64(cells[byte])] = source[i]
            cells[byte] += 1
        digit += 1


@kernel(inner=True, inlined=True)
def _move(gini, moved, in_left, in_right, table, scale):
    """What weight of one class that goes from right to left adds to the sums of both sides."""
    if gini:
        return moved * (2 * in_left + moved), -moved * (2 * in_right - moved)
    return (
        weighted_log(in_left + moved, table, scale) - weighted_log(in_left, table, scale),
        weighted_log(in_right - moved, table, scale) - weighted_log(in_right, table, scale),
    )


@kernel(inner=True, inlined=True)
def _score_of_children(gini, squares_left, squares_right, weight_left, weight_right, table, scale):
    """The score of two children by the sums of their classes, and its exact number."""
    if gini:
        return squares_left / weight_left + squares_right / weight_right, squares_left
    exact = (
        squares_left
        + squares_right
        - weighted_log(weight_left, table, scale)
        - weighted_log(weight_right, table, scale)
    )
    return exact / scale, exact


@kernel(inner=True, inlined=True)
def search_by_count(local, n, least, most, rules, total, weight, squares, feature, buffers):
    """Search one feature by a histogram; whether it is the best so far."""
    if len(local.labels) > 0:
        return _count_classes(local, n, least, most, rules, total, weight, squares, feature,
                              buffers.best, buffers.score)  # fmt: skip
    return _count_numbers(local, n, least, most, rules, total[0], weight, buffers.offset[0],
                          feature, buffers.best, buffers.score)  # fmt: skip


@kernel(inner=True, inlined=True)
def _count_classes(local, n, least, most, rules, total, weight, squares, feature, best, score):
    n_classes = len(total)
    span = most - least + 1
    cells, codes, labels, weights, left = (
        local.cells, local.codes, local.labels, local.weight, local.left,
    )  # fmt: skip
    gini, table, scale = rules.criterion == GINI, rules.table, rules.scale
    smallest = rules.min_samples_leaf
    for k in range(span * n_classes):
        cells[k] = 0
    low, width = np.uint32(least), np.uint64(n_classes)
    for i in range(np.uint64(n)):
        cells[np.uint64(codes[i] - low) * width + np.uint64(labels[i])] += weights[i]
    row_is_sample = local.row_is_sample and smallest > 1
    if row_is_sample:
        for k in range(span):
            local.counts[k] = 0
        for i in range(np.uint64(n)):
            local.counts[np.uint64(codes[i] - low)] += 1
    squares_left, squares_right = 0, squares
    weight_left, samples_left, n_samples = 0, 0, n if row_is_sample else weight
    bar = score[0] - 1e-13 * abs(score[0]) if best[0] >= 0 else -np.inf
    found, pending = False, False
    for k in range(n_classes):
        left[k] = 0
    for code in range(span):
        at_code = 0
        for k in range(n_classes):
            at_code += cells[code * n_classes + k]
        if at_code == 0:
            continue
        if pending:  # the best split so far ends where the next rows begin
            local.found[1] = least + code
            pending = False
        for k in range(n_classes):
            moved = cells[code * n_classes + k]
            if moved:
                more, less = _move(gini, moved, left[k], total[k] - left[k], table, scale)
                squares_left += more
                squares_right += less
                left[k] += moved
        weight_left += at_code
        samples_left += local.counts[code] if row_is_sample else at_code
        weight_right = weight - weight_left
        if n_samples - samples_left < smallest or weight_right == 0:
            break
        if samples_left < smallest:
            continue
        value, exact = _score_of_children(
            gini, squares_left, squares_right, weight_left, weight_right, table, scale
        )
        if value < bar:
            continue
        if consider(
            rules.criterion, True, np.int64(exact), np.int64(weight_left), np.int64(squares_right),
            np.int64(weight_right), value, feature, np.int64(least + code), best, score,
        ):  # fmt: skip
            bar = score[0] - 1e-13 * abs(score[0])
            local.found[0] = least + code
            found, pending = True, True
    for k in range(n_classes):
        left[k] = 0
    if pending:
        local.found[1] = _next_code(codes, n, local.found[0])
    return found


@kernel(inner=True, inlined=True)
def _last_code(codes, n, code):
    last = np.uint32(0)
    for i in range(n):
        if codes[i] <= np.uint32(code):
            last = max(last, codes[i])
    return np.int64(last)


@kernel(inner=True, inlined=True)
def _next_code(codes, n, code):
    following = np.uint32(0xFFFFFFFF)
    for i in range(n):
        if codes[i] > np.uint32(code):
            following = min(following, codes[i])
    return np.int64(following)


@kernel(inner=True, inlined=True)
def _count_numbers(local, n, least, most, rules, total, weight, offset, feature, best, score):
    span = most - least + 1
    cells, codes, numbers, weights = local.cells, local.codes, local.numbers, local.weight
    smallest = rules.min_samples_leaf
    total -= weight * offset
    for k in range(2 * span):
        cells[k] = 0
    low, two = np.uint32(least), np.uint64(2)
    for i in range(np.uint64(n)):
        cell = np.uint64(codes[i] - low) * two
        cells[cell] += numbers[i]
        cells[cell + np.uint64(1)] += weights[i]
    bar = score[0] * (1.0 - 1e-13) if best[0] >= 0 else -1.0
    sum_left, weight_left = 0, 0
    found, pending = False, False
    for code in range(span):
        at_code = cells[2 * code + 1]
        if at_code == 0:
            continue
        if pending:
            local.found[1] = least + code
            pending = False
        sum_left += cells[2 * code] - at_code * offset
        weight_left += at_code
        weight_right = weight - weight_left
        if weight_right < smallest or weight_right == 0:
            break
        if weight_left < smallest:
            continue
        sum_right = total - sum_left
        a, b = float(sum_left), float(sum_right)
        value = a * a / weight_left + b * b / weight_right
        if value < bar:
            continue
        if consider(
            SQUARED, True, np.int64(sum_left), np.int64(weight_left), np.int64(sum_right),
            np.int64(weight_right), value, feature, np.int64(least + code), best, score,
        ):  # fmt: skip
            bar = score[0] * (1.0 - 1e-13)
            local.found[0] = least + code
            found, pending = True, True
    if pending:
        local.found[1] = _next_code(codes, n, local.found[0])
    return found


@kernel(inner=True, inlined=True)
def search_in_order(local, n, least, rules, total, weight, squares, feature, buffers):
    """Search one feature by its sorted keys; whether it is the best so far."""
    if len(local.labels) > 0:
        return _order_classes(local, n, least, rules, total, weight, squares, feature, buffers.best,
                              buffers.score)  # fmt: skip
    return _order_numbers(local, n, least, rules, total[0], weight, buffers.offset[0], feature,
                          buffers.best, buffers.score)  # fmt: skip


@kernel(inner=True, inlined=True)
def _order_classes(local, n, least, rules, total, weight, squares, feature, best, score):
    keys, labels, weights, left = local.keys, local.labels, local.weight, local.left
    gini, table, scale = rules.criterion == GINI, rules.table, rules.scale
    smallest = rules.min_samples_leaf
    squares_left, squares_right = 0, squares
    weight_left = 0
    bar = score[0] - 1e-13 * abs(score[0]) if best[0] >= 0 else -np.inf
    found = False
    code = keys[0] >> _SHIFT
    n_moved = n - 1
    for p in range(n - 1):
        i = keys[p] & _MASK
        k, moved = np.uint64(labels[i]), weights[i]
        more, less = _move(gini, moved, left[k], total[k] - left[k], table, scale)
        squares_left += more
        squares_right += less
        left[k] += moved
        weight_left += moved
        last, code = code, keys[p + 1] >> _SHIFT
        if last == code:
            continue
        weight_right = weight - weight_left
        samples_left = p + 1 if local.row_is_sample else weight_left
        if (n if local.row_is_sample else weight) - samples_left < smallest:
            n_moved = p + 1
            break
        if samples_left < smallest:
            continue
        value, exact = _score_of_children(
            gini, squares_left, squares_right, weight_left, weight_right, table, scale
        )
        if value < bar:
            continue
        if consider(
            rules.criterion, True, np.int64(exact), np.int64(weight_left), np.int64(squares_right),
            np.int64(weight_right), value, feature, np.int64(last) + least, best, score,
        ):  # fmt: skip
            bar = score[0] - 1e-13 * abs(score[0])
            local.found[0] = np.int64(last) + least
            local.found[1] = np.int64(code) + least
            found = True
    for p in range(n_moved):
        left[np.uint64(labels[keys[p] & _MASK])] = 0
    return found


@kernel(inner=True, inlined=True)
def _order_numbers(local, n, least, rules, total, weight, offset, feature, best, score):
    keys, numbers, weights = local.keys, local.numbers, local.weight
    smallest = rules.min_samples_leaf
    total -= weight * offset
    sum_left, weight_left = 0, 0
    bar = score[0] * (1.0 - 1e-13) if best[0] >= 0 else -1.0
    found = False
    code = keys[0] >> _SHIFT
    for p in range(n - 1):
        i = keys[p] & _MASK
        sum_left += numbers[i] - weights[i] * offset
        weight_left += weights[i]
        last, code = code, keys[p + 1] >> _SHIFT
        if last == code:
            continue
        weight_right = weight - weight_left
        if weight_right < smallest:
            break
        if weight_left < smallest:
            continue
        sum_right = total - sum_left
        a, b = float(sum_left), float(sum_right)
        value = a * a / weight_left + b * b / weight_right
        if value < bar:
            continue
        if consider(
            SQUARED, True, np.int64(sum_left), np.int64(weight_left), np.int64(sum_right),
            np.int64(weight_right), value, feature, np.int64(last) + least, best, score,
        ):  # fmt: skip
            bar = score[0] * (1.0 - 1e-13)
            local.found[0] = np.int64(last) + least
            local.found[1] = np.int64(code) + least
            found = True
    return found


@kernel(inner=True, inlined=True)
def search_by_draw(local, n, least, most, columns, rules, total, weight, key, feature, buffers):
    """One threshold, drawn between the extremes; whether it is the best so far."""
    first = columns.first[feature]
    low, high = columns.values[first + least], columns.values[first + most]
    drawn = drawn_between(low, high, feature, key)
    last = _last_code_below(local.codes, n, least, most, columns.values, first, drawn)
    value, a, weight_left, b = _score_at(local, n, last, rules, total, weight, buffers.offset)
    weight_right = weight - weight_left
    if min(weight_left, weight_right) < rules.min_samples_leaf:
        return False
    if consider(
        rules.criterion, True, np.int64(a), np.int64(weight_left), np.int64(b),
        np.int64(weight_right), value, feature, np.int64(last), buffers.best, buffers.score,
    ):  # fmt: skip
        # Where values are merged the threshold is the end of the last bin that has rows.
        local.found[0] = _last_code(local.codes, n, last) if n > _FEW else last
        local.found[1] = local.found[0] + 1
        local.random_threshold[0] = drawn
        return True
    return False


@kernel(inner=True, inlined=True)
def _last_code_below(codes, n, least, most, values, first, threshold):
    """The largest code whose value is not above the threshold; of few rows, that one has."""
    a, b = least, most  # value(a) <= threshold < value(b)
    if n <= _FEW:
        for i in range(n):
            code = np.int64(codes[i])
            if code > a and values[first + code] <= threshold:
                a = code
        return a
    while b - a > 1:
        middle = (a + b) // 2
        if values[first + middle] <= threshold:
            a = middle
        else:
            b = middle
    return a


@kernel(inner=True, inlined=True)
def _sum_left(codes, code, weights, labels, n):
    """The weight up to a code, and that of the second of two classes: sums in vector registers."""
    total, second = 0, 0
    for i in range(np.uint64(n)):
        moved = weights[i] if codes[i] <= code else 0
        total += moved
        second += moved if labels[i] > 0 else 0
    return total, second


@kernel(inner=True, inlined=True)
def _score_at(local, n, last, rules, total, weight, offset):
    """Score of the split after a code, its first exact number, weight on the left, its second."""
    codes, weights, left = local.codes, local.weight, local.left
    code = np.uint32(last)
    weight_left, a, b = 0, 0, 0
    if len(local.labels) == 0:
        for i in range(np.uint64(n)):
            side = np.int64(codes[i] <= code)
            a += side * local.numbers[i]
            weight_left += side * weights[i]
        a -= weight_left * offset[0]
        b = total[0] - weight * offset[0] - a
        value = float(a) * float(a) / weight_left
        value += float(b) * float(b) / (weight - weight_left)
        return value, a, weight_left, b
    gini, table, scale = rules.criterion == GINI, rules.table, rules.scale
    n_classes = len(total)
    if n_classes == 2:
        weight_left, left[1] = _sum_left(codes, code, weights, local.labels, n)
        left[0] = weight_left - left[1]
    else:
        for i in range(np.uint64(n)):
            moved = weights[i] * np.int64(codes[i] <= code)
            left[np.uint64(local.labels[i])] += moved
            weight_left += moved
    for k in range(n_classes):
        in_left = left[k]
        left[k] = 0
        in_right = total[k] - in_left
        a += in_left * in_left if gini else weighted_log(in_left, table, scale)
        b += in_right * in_right if gini else weighted_log(in_right, table, scale)
    value, exact = _score_of_children(gini, a, b, weight_left, weight - weight_left, table, scale)
    return value, exact, weight_left, b
