"""The usual case of large nodes: thresholds of a histogram, in loops with nothing else in them.

One output, each row counts once; Gini, entropy or squared error, numbers without missing values, no
constraints. `split_search.search_groups` has everything else, and finds the same splits.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.search.scores import GINI, SQUARED, consider

__all__ = ["scan_classes", "scan_numbers"]


@kernel(hidden=True)
def scan_classes(cells, n_codes, total, n, rules, feature, best, score, codes):
    """The best split by Gini or entropy, of n rows; whether they have different codes.

    cells int32: rows by code and class. best, score: see `buffers`. codes: the largest code that
    goes left, and the smallest that does not.
    """
    criterion, table, scale = rules.criterion, rules.table, rules.scale
    gini, smallest, n_classes = criterion == GINI, rules.min_samples_leaf, len(total)
    left = np.zeros(n_classes, np.int64)
    squares_left, squares_right = np.int64(0), np.int64(0)
    for k in range(n_classes):
        squares_right += total[k] * total[k] if gini else table[total[k]]
    n_left = np.int64(0)
    bar, pending = -np.inf, False
    for code in range(n_codes):
        at_code = np.int64(0)
        for k in range(n_classes):
            at_code += cells[code * n_classes + k]
        if at_code == 0:
            continue
        if at_code == n:
            return False
        if pending:
            codes[1] = code
            pending = False
        for k in range(n_classes):
            moved = np.int64(cells[code * n_classes + k])
            if moved:
                before, after = left[k], left[k] + moved
                left[k] = after
                in_right = total[k] - before
                if gini:
                    squares_left += moved * (before + after)
                    squares_right -= moved * (2 * in_right - moved)
                else:
                    squares_left += table[after] - table[before]
                    squares_right += table[in_right - moved] - table[in_right]
        n_left += at_code
        n_right = n - n_left
        if n_right < smallest or n_right == 0:
            break
        if n_left < smallest:
            continue
        exact = squares_left
        if gini:
            value = squares_left / n_left + squares_right / n_right
        else:
            exact = squares_left + squares_right - table[n_left] - table[n_right]
            value = exact / scale
        if value < bar:
            continue
        if consider(criterion, True, exact, n_left, squares_right, n_right, value, feature, code,
                    best, score):  # fmt: skip
            bar = score[0] - 1e-13 * abs(score[0])
            codes[0] = code
            pending = True
    if pending:
        codes[1] = _next_with_classes(cells, n_classes, codes[0])
    return True


@kernel(inner=True)
def _next_with_classes(cells, n_classes, code):
    following = (code + 1) * n_classes
    while cells[following] == 0:
        following += 1
    return following // n_classes


@kernel(inner=True)
def scan_numbers(sums, counts, total, n, offset, rules, feature, best, score, codes):
    """The best split by squared error; sums and counts of the rows by code. See `scan_classes`."""
    smallest = rules.min_samples_leaf
    total -= n * offset
    sum_left, n_left = np.int64(0), np.int64(0)
    bar, pending = -1.0, False
    for code in range(len(counts)):
        if counts[code] == 0:
            continue
        if counts[code] == n:
            return False
        if pending:
            codes[1] = code
            pending = False
        sum_left += sums[code] - counts[code] * offset
        n_left += counts[code]
        n_right = n - n_left
        if n_right < smallest or n_right == 0:
            break
        if n_left < smallest:
            continue
        sum_right = total - sum_left
        a, b = float(sum_left), float(sum_right)
        value = a * a / n_left + b * b / n_right
        if value < bar:
            continue
        if consider(SQUARED, True, sum_left, n_left, sum_right, n_right, value, feature, code, best,
                    score):  # fmt: skip
            bar = score[0] * (1.0 - 1e-13)
            codes[0] = code
            pending = True
    if pending:
        following = codes[0] + 1
        while counts[following] == 0:
            following += 1
        codes[1] = following
    return True
