"""The most even split of a node, for trees that have become too deep for greedy splits.

A column that numbers the rows, with classes that alternate, makes each greedy split remove one
row. Beyond `Rules.greedy_depth` a node is cut where its rows come closest to halves instead.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.table import code_of

__all__ = ["halve"]


@kernel(bare=True)
def halve(nodes, node, places, rows, columns, targets, rules):
    """Split a node where its rows come closest to halves, if its children may be so small.

    places[start:end] are the node's rows in the targets; rows[place] is the row of the columns,
    or rows is None where both have the same numbers. Categories are cut by their codes.
    """
    record = nodes.record
    start, end = record.start[node], record.end[node]
    n = end - start
    feature, last, most_even = -1, 0, 0
    for j in range(len(columns.n_codes)):
        code, n_below = _middle_code(places, start, end, rows, columns, j)
        n_up_to = _count_up_to(places, start, end, rows, columns, j, code)
        if min(n_below, n - n_below) > most_even and n_up_to > n // 2:
            feature, last, most_even = j, code - 1, min(n_below, n - n_below)
        if min(n_up_to, n - n_up_to) > most_even:
            feature, last, most_even = j, code, min(n_up_to, n - n_up_to)
    if feature < 0:
        return
    samples, weight = 0, 0
    highest_left, lowest_right = -1, columns.n_codes[feature]
    for p in range(start, end):
        place = places[p]
        code = _code_at(place, rows, columns, feature)
        if code <= last:
            samples += targets.samples[place]
            weight += targets.weight[place]
            highest_left = max(highest_left, code)
        else:
            lowest_right = min(lowest_right, code)
    if (
        min(samples, record.samples[node] - samples) < rules.min_samples_leaf
        or min(weight, record.weight[node] - weight) < rules.min_weight
    ):
        return
    record.feature[node], record.balanced[node] = feature, 1
    record.subset[node], record.missing_left[node] = -1, 0
    record.code[node], record.next_code[node] = highest_left, lowest_right
    record.decrease[node], record.random_threshold[node] = 0.0, np.nan


@kernel(inner=True)
def _code_at(place, rows, columns, feature):
    if rows is None:
        return code_of(columns, feature, place)
    return code_of(columns, feature, rows[place])


@kernel(inner=True)
def _count_up_to(places, start, end, rows, columns, feature, code):
    """How many rows have this code or a smaller one."""
    count = 0
    for p in range(start, end):
        count += _code_at(places[p], rows, columns, feature) <= code
    return count


@kernel(inner=True)
def _middle_code(places, start, end, rows, columns, feature):
    """The smallest code that half of the rows do not exceed; how many rows are below it."""
    half = (end - start) // 2
    low, high = 0, columns.n_codes[feature]
    n_below = 0
    while low < high:
        middle = (low + high) // 2
        count = _count_up_to(places, start, end, rows, columns, feature, middle)
        if count >= half:
            high = middle
        else:
            low, n_below = middle + 1, count
    return low, n_below
