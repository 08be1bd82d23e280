"""One node and one feature of a forest's tree: the codes are gathered and sorted when asked for.

A tree that looks at few features of each node does not keep all its rows sorted by all of them, as
`subtree` does. It gathers the codes of the node's rows, and then either counts, one cell for each
code and class, or sorts, whichever is less work. What it finds is what `split_search_fast` finds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.nodes import random_below
from margrove.grove.grow.scores import GINI, SQUARED, consider, weighted_log

__all__ = ["Desk", "differs", "gather", "new_desk", "search_by_count", "search_by_draw",
           "search_in_order", "sort_codes"]  # fmt: skip

_BY_ROW = 256  # rows of a node, up to which their codes are better looked up row by row
_FEW = 24  # that insertion sorts fastest
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Desk(NamedTuple):
    """Room for the rows of one node, in their order, and for one search.

    labels int32, weight int64, numbers int64: of the rows. codes uint32: of one feature. keys,
    spare uint64: code and place, to be sorted. cells int64: counts. left int64: zeros, of classes.
    found int64 (2,): code and next code of the best split; drawn float64 (1,): its threshold.
    by_rows: whether each row is one sample, whatever its weight; counts int64: rows by code, then.
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
    drawn: np.ndarray
    by_rows: bool
    counts: np.ndarray


def new_desk(n_rows: int, n_stats: int, *, is_class: bool, by_rows: bool = False) -> Desk:
    return Desk(
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
        by_rows,
        np.empty(2 * n_rows if by_rows else 0, np.int64),
    )


@kernel(inner=True, inlined=True)
def gather(columns, feature, rows, start, n, codes):
    """The codes of a node's rows; the smallest and the largest."""
    width, place = columns.width[feature], columns.place[feature]
    if width == 0:
        if n <= _BY_ROW and len(columns.by_row) > 0:
            return _gather_by_row(columns.by_row, place, rows, start, n, codes)
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
def _gather_by_row(by_row, place, rows, start, n, codes):
    least, most = np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(np.uint64(n)):
        code = np.uint32(by_row[np.uint64(rows[np.uint64(start) + i]), np.uint64(place)])
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
def sort_codes(codes, n, least, most, desk):
    """(code - least, place) of all rows, by code and then by place, in desk.keys."""
    keys = desk.keys
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
        cells = desk.cells
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
    _sort_by_digits(keys, desk.spare, desk.cells, n, span)


@kernel(inner=True)
def _sort_by_digits(keys, spare, cells, n, span):
    """By the code's bytes, the lowest first; two passes at least, so that the end is in `keys`."""
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
            own = (source[i] >> shift) & low
            target[np.uint64(cells[own])] = source[i]
            cells[own] += 1
        digit += 1


@kernel(inner=True, inlined=True)
def search_by_count(desk, n, least, most, rules, total, weight, squares, offset, feature, best,
                    score):  # fmt: skip
    """Search one feature by a histogram; whether it is the best so far."""
    if len(desk.labels) > 0:
        return _count_classes(desk, n, least, most, rules, total, weight, squares, feature, best,
                              score)  # fmt: skip
    return _count_numbers(desk, n, least, most, rules, total[0], weight, offset[0], feature, best,
                          score)  # fmt: skip


@kernel(inner=True, inlined=True)
def _count_classes(desk, n, least, most, rules, total, weight, squares, feature, best, score):
    n_classes = len(total)
    span = most - least + 1
    cells, codes, labels, weights, left = (
        desk.cells, desk.codes, desk.labels, desk.weight, desk.left,
    )  # fmt: skip
    gini, table, scale = rules.criterion == GINI, rules.table, rules.scale
    smallest = rules.min_samples_leaf
    for k in range(span * n_classes):
        cells[k] = 0
    low, width = np.uint32(least), np.uint64(n_classes)
    for i in range(np.uint64(n)):
        cells[np.uint64(codes[i] - low) * width + np.uint64(labels[i])] += weights[i]
    by_rows = desk.by_rows and smallest > 1
    if by_rows:
        for k in range(span):
            desk.counts[k] = 0
        for i in range(np.uint64(n)):
            desk.counts[np.uint64(codes[i] - low)] += 1
    squares_left, squares_right = 0, squares
    weight_left, samples_left, n_samples = 0, 0, n if by_rows else weight
    bar = score[0] - 1e-13 * abs(score[0]) if best[0] >= 0 else -np.inf
    found, pending = False, False
    for k in range(n_classes):
        left[k] = 0
    for code in range(span):
        here = 0
        for k in range(n_classes):
            own = cells[code * n_classes + k]
            here += own
        if here == 0:
            continue
        if pending:  # the best split so far ends where the next rows begin
            desk.found[1] = least + code
            pending = False
        for k in range(n_classes):
            own = cells[code * n_classes + k]
            if own:
                before = left[k]
                after = total[k] - before
                left[k] = before + own
                if gini:
                    squares_left += own * (2 * before + own)
                    squares_right -= own * (2 * after - own)
                else:
                    squares_left += weighted_log(before + own, table, scale) - weighted_log(
                        before, table, scale
                    )
                    squares_right += weighted_log(after - own, table, scale) - weighted_log(
                        after, table, scale
                    )
        weight_left += here
        samples_left += desk.counts[code] if by_rows else here
        weight_right = weight - weight_left
        if n_samples - samples_left < smallest or weight_right == 0:
            break
        if samples_left < smallest:
            continue
        if gini:
            whole = squares_left
            value = squares_left / weight_left + squares_right / weight_right
        else:
            whole = (
                squares_left
                + squares_right
                - weighted_log(weight_left, table, scale)
                - weighted_log(weight_right, table, scale)
            )
            value = whole / scale
        if value < bar:
            continue
        if consider(
            rules.criterion, True, np.int64(whole), np.int64(weight_left), np.int64(squares_right),
            np.int64(weight_right), value, feature, np.int64(least + code), best, score,
        ):  # fmt: skip
            bar = score[0] - 1e-13 * abs(score[0])
            desk.found[0] = least + code
            found, pending = True, True
    for k in range(n_classes):
        left[k] = 0
    if pending:
        desk.found[1] = _next_code(codes, n, desk.found[0])
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
def _count_numbers(desk, n, least, most, rules, total, weight, offset, feature, best, score):
    span = most - least + 1
    cells, codes, numbers, weights = desk.cells, desk.codes, desk.numbers, desk.weight
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
        here = cells[2 * code + 1]
        if here == 0:
            continue
        if pending:
            desk.found[1] = least + code
            pending = False
        sum_left += cells[2 * code] - here * offset
        weight_left += here
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
            desk.found[0] = least + code
            found, pending = True, True
    if pending:
        desk.found[1] = _next_code(codes, n, desk.found[0])
    return found


@kernel(inner=True, inlined=True)
def search_in_order(desk, n, least, rules, total, weight, squares, offset, feature, best, score):
    """Search one feature by its sorted keys; whether it is the best so far."""
    if len(desk.labels) > 0:
        return _order_classes(desk, n, least, rules, total, weight, squares, feature, best, score)
    return _order_numbers(desk, n, least, rules, total[0], weight, offset[0], feature, best, score)


@kernel(inner=True, inlined=True)
def _order_classes(desk, n, least, rules, total, weight, squares, feature, best, score):
    keys, labels, weights, left = desk.keys, desk.labels, desk.weight, desk.left
    gini, table, scale = rules.criterion == GINI, rules.table, rules.scale
    smallest = rules.min_samples_leaf
    squares_left, squares_right = 0, squares
    weight_left = 0
    bar = score[0] - 1e-13 * abs(score[0]) if best[0] >= 0 else -np.inf
    found = False
    code = keys[0] >> _SHIFT
    moved = n - 1
    for p in range(n - 1):
        i = keys[p] & _MASK
        k, own = np.uint64(labels[i]), weights[i]
        before = left[k]
        after = total[k] - before
        left[k] = before + own
        if gini:
            squares_left += own * (2 * before + own)
            squares_right -= own * (2 * after - own)
        else:
            squares_left += weighted_log(before + own, table, scale) - weighted_log(
                before, table, scale
            )
            squares_right += weighted_log(after - own, table, scale) - weighted_log(
                after, table, scale
            )
        weight_left += own
        here, code = code, keys[p + 1] >> _SHIFT
        if here == code:
            continue
        weight_right = weight - weight_left
        samples_left = p + 1 if desk.by_rows else weight_left
        if (n if desk.by_rows else weight) - samples_left < smallest:
            moved = p + 1
            break
        if samples_left < smallest:
            continue
        if gini:
            whole = squares_left
            value = squares_left / weight_left + squares_right / weight_right
        else:
            whole = (
                squares_left
                + squares_right
                - weighted_log(weight_left, table, scale)
                - weighted_log(weight_right, table, scale)
            )
            value = whole / scale
        if value < bar:
            continue
        if consider(
            rules.criterion, True, np.int64(whole), np.int64(weight_left), np.int64(squares_right),
            np.int64(weight_right), value, feature, np.int64(here) + least, best, score,
        ):  # fmt: skip
            bar = score[0] - 1e-13 * abs(score[0])
            desk.found[0] = np.int64(here) + least
            desk.found[1] = np.int64(code) + least
            found = True
    for p in range(moved):
        left[np.uint64(labels[keys[p] & _MASK])] = 0
    return found


@kernel(inner=True, inlined=True)
def _order_numbers(desk, n, least, rules, total, weight, offset, feature, best, score):
    keys, numbers, weights = desk.keys, desk.numbers, desk.weight
    smallest = rules.min_samples_leaf
    total -= weight * offset
    sum_left, weight_left = 0, 0
    bar = score[0] * (1.0 - 1e-13) if best[0] >= 0 else -1.0
    found = False
    code = keys[0] >> _SHIFT
    for p in range(n - 1):
        i = keys[p] & _MASK
        own = weights[i]
        sum_left += numbers[i] - own * offset
        weight_left += own
        here, code = code, keys[p + 1] >> _SHIFT
        if here == code:
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
            np.int64(weight_right), value, feature, np.int64(here) + least, best, score,
        ):  # fmt: skip
            bar = score[0] * (1.0 - 1e-13)
            desk.found[0] = np.int64(here) + least
            desk.found[1] = np.int64(code) + least
            found = True
    return found


@kernel(inner=True, inlined=True)
def search_by_draw(desk, n, least, most, columns, rules, key, total, weight, offset, feature, best,
                   score):  # fmt: skip
    """One threshold, drawn between the extremes; whether it is the best so far."""
    first = columns.first[feature]
    low, high = columns.values[first + least], columns.values[first + most]
    _, bits = random_below(
        key ^ (np.uint64(feature + 1) * np.uint64(0xD1342543DE82EF95)), np.int64(1) << 52
    )
    share = bits / float(np.int64(1) << 52)
    drawn = low * (1.0 - share) + high * share
    if not low <= drawn < high:
        drawn = low
    codes, weights = desk.codes, desk.weight
    if n <= _FEW:  # the largest code of the rows below it; else of all there are
        a = least
        for i in range(n):
            own_code = np.int64(codes[i])
            if own_code > a and columns.values[first + own_code] <= drawn:
                a = own_code
    else:
        a, b = least, most  # value(a) <= drawn < value(b)
        while b - a > 1:
            middle = (a + b) // 2
            if columns.values[first + middle] <= drawn:
                a = middle
            else:
                b = middle
    code = np.uint32(a)
    weight_left = 0
    if len(desk.labels) > 0:
        left = desk.left
        for i in range(np.uint64(n)):
            own = weights[i] * np.int64(codes[i] <= code)
            left[np.uint64(desk.labels[i])] += own
            weight_left += own
        weight_right = weight - weight_left
        squares, rest = 0, 0
        for k in range(len(total)):
            here, there = left[k], total[k] - left[k]
            left[k] = 0
            squares += (
                here * here
                if rules.criterion == GINI
                else weighted_log(here, rules.table, rules.scale)
            )
            rest += (
                there * there
                if rules.criterion == GINI
                else weighted_log(there, rules.table, rules.scale)
            )
        if rules.criterion == GINI:
            value = squares / weight_left + rest / weight_right
        else:
            squares += (
                rest
                - weighted_log(weight_left, rules.table, rules.scale)
                - weighted_log(weight_right, rules.table, rules.scale)
            )
            value = squares / rules.scale
    else:
        squares = 0
        for i in range(np.uint64(n)):
            side = np.int64(codes[i] <= code)
            squares += side * desk.numbers[i]
            weight_left += side * weights[i]
        squares -= weight_left * offset[0]
        weight_right = weight - weight_left
        rest = total[0] - weight * offset[0] - squares
        value = float(squares) * float(squares) / weight_left
        value += float(rest) * float(rest) / weight_right
    if min(weight_left, weight_right) < rules.min_samples_leaf:
        return False
    if consider(
        rules.criterion, True, np.int64(squares), np.int64(weight_left), np.int64(rest),
        np.int64(weight_right), value, feature, np.int64(a), best, score,
    ):  # fmt: skip
        # Where values are merged the threshold is the end of the last bin that has rows.
        desk.found[0] = _last_code(codes, n, a) if n > _FEW else a
        desk.found[1] = desk.found[0] + 1
        desk.drawn[0] = drawn
        return True
    return False
