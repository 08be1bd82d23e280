"""The search for the best split of a node, from its histogram.

The worth of a split is

    G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2)

in integer gradients and hessians. It is twice the decrease of the loss by Newton steps of both
children. With monotonic constraints the values of the children are clipped at bounds, and the worth
is the decrease of the loss with these values.

The sums of a small node are packed, see `packed_words`.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.gradient.hist.packed_words import sums_of_cell, unpacked

__all__ = ["MISSING_UNSEEN", "begin_search", "gain_of_node", "is_even", "limits_of_node",
           "place_of_largest", "search_feature", "search_features", "unit_of_gain", "value_of",
           "write_gains"]  # fmt: skip

MISSING_UNSEEN = 2  # the node has no missing values: they will go to the larger child
_SMOOTH = 10.0  # added to hessians, which shrinks the means of categories with few rows
_BARELY = 1.0 + 1e-12  # a smaller relative gain may be a rounding error


@kernel(inner=True)
def value_of(g, h, rules, units, low, high):
    """The Newton step of a node, clipped at its bounds."""
    total = float(h) * units[1] + rules.l2
    value = -(float(g) * units[0]) / total if total > 0.0 else 0.0
    return min(max(value, low), high)


@kernel(inner=True)
def _worth(g, h, value, rules, units):
    """Twice the decrease of the loss if a node has this value."""
    return -value * (2.0 * float(g) * units[0] + (float(h) * units[1] + rules.l2) * value)


@kernel(inner=True)
def gain_of_node(node, rules, units):
    """The worth of a node without a split, in the unit of the worth of splits."""
    g, h = node.total_g, node.total_h
    if len(rules.signs) > 0:
        return _worth(g, h, value_of(g, h, rules, units, node.low, node.high), rules, units)
    total = float(h) + rules.l2 / units[1]
    return float(g) * float(g) / total if total > 0.0 else 0.0


@kernel(inner=True)
def unit_of_gain(rules, units):
    """The real value of a gain of 1, at most 1e300."""
    return 1.0 if len(rules.signs) > 0 else min(units[0] * (units[0] / units[1]), 1e300)


@kernel(inner=True)
def search_features(table, rules, units, node, sums, first, last, allowed, scratch, order, best):
    """Find the best split of a node by the features at the places first .. last - 1.

    node NODE; sums int64 (3, cells): its histogram, if packed only the first row; allowed bool
    (d,); scratch float64 (4, 256); order int64 (256,); best SPLIT: the result.
    """
    begin_search(rules, units, node, best)
    limits, is_packed = limits_of_node(rules, units, node), node.is_packed == 1
    for place in range(first, last):
        if not allowed[place]:
            continue
        if table.is_category[place] or len(rules.signs) > 0:
            search_feature(table, rules, units, node, place, sums, scratch, order, best)
            continue
        cell, n_codes = table.first[place], table.n_codes[place]
        if place >= table.n_dense:
            count = sums_of_cell(sums, is_packed, cell + table.omitted[place])[2]
            if node.count - count < rules.min_samples:  # on the side without the omitted code
                continue
        is_missing = sums_of_cell(sums, is_packed, cell + n_codes)[2] > 0
        if n_codes == 2 and not is_missing:
            g, h, count = sums_of_cell(sums, is_packed, cell)
            most = worth_of_left(limits, float(g), float(h), float(count))
            if most > best.gain or (most == best.gain and is_even(table, place, most, best)):
                best.gain = most
                _write_best(best, place, 0, MISSING_UNSEEN, sums, is_packed, cell, n_codes)
            continue
        for side in range(2 if is_missing else 1):
            missing = side if is_missing else MISSING_UNSEEN
            # A tuple of arrays is not passed on: that takes as long as some cells.
            found = _search_numbers(sums, is_packed, cell, n_codes, missing, limits, scratch)
            if found < 0:
                continue
            most = scratch[3, found]
            if most > best.gain or (most == best.gain and is_even(table, place, most, best)):
                best.gain = most
                _write_best(best, place, found, missing, sums, is_packed, cell, n_codes)


@kernel(inner=True)
def begin_search(rules, units, node, best):
    """No split is found yet, and a split must be worth more than none."""
    best.place = -1
    best.gain = gain_of_node(node, rules, units) * _BARELY


@kernel(inner=True)
def search_feature(table, rules, units, node, place, sums, scratch, order, best):
    """Replace the best split if one by a feature of categories, or within bounds, is better."""
    if table.is_category[place]:
        _search_categories(table, rules, units, node, place, sums, scratch[0], order, best)
        return
    rest = table.first[place] + table.n_codes[place]
    is_missing = sums_of_cell(sums, node.is_packed == 1, rest)[2] > 0
    for side in range(2 if is_missing else 1):
        missing = side if is_missing else MISSING_UNSEEN
        _search_within_bounds(table, rules, units, node, place, missing, sums, best)


@kernel(inner=True)
def is_even(table, place, worth, best):
    """Whether a split is worth the same as the best, but has a lower feature number."""
    return (
        best.place >= 0
        and worth == best.gain
        and table.features[place] < table.features[best.place]
    )


@kernel(inlined=True)
def _worth_of_steps(left_g, right_g, left_h, right_h):
    return (left_g * left_g * right_h + right_g * right_g * left_h) / (left_h * right_h)


@kernel(inner=True)
def _search_numbers(sums, is_packed, first, n_codes, missing, limits, scratch):
    """The code of the best split of a numeric feature, or -1, by several simple loops that are
    vectorised; its worth is in scratch[3]."""
    last = n_codes if missing == 0 else n_codes - 1
    _add_up_from_left(sums, is_packed, first, n_codes, last, missing, scratch)
    write_gains(limits, last, scratch)
    return place_of_largest(scratch[3], last)


@kernel(inner=True)
def limits_of_node(rules, units, node):
    """What `write_gains` needs to know about a node: its sums of g, h and samples, the least number
    of samples and hessian of a child, and l2."""
    h, count = node.total_h, node.count
    return (
        float(node.total_g),
        float(h),
        float(count),
        float(rules.min_samples),
        _least_hessian(h, count, rules, units),
        rules.l2 / units[1],
    )


@kernel(inner=True)
def write_gains(limits, n, scratch):
    """Write scratch[3, :n]: the worth of splits of a node by scratch[:3, :n], the sums of g, h and
    samples of the rows that go left; -1 for those that are not allowed. See `limits_of_node`."""
    gs, hs, ns, gains = scratch[0], scratch[1], scratch[2], scratch[3]
    for code in range(n):
        gains[code] = worth_of_left(limits, gs[code], hs[code], ns[code])


@kernel(inlined=True)
def worth_of_left(limits, g, h, count):
    """The worth of a split by the sums of the rows that go left; -1 if it is not allowed."""
    all_g, all_h, all_n, least_n, least_h, l2 = limits
    worth = _worth_of_steps(g, all_g - g, h + l2, (all_h - h) + l2)
    is_allowed = (count >= least_n) & (all_n - count >= least_n)
    is_allowed &= (h >= least_h) & (all_h - h >= least_h)
    return worth if is_allowed else -1.0


@kernel(inner=True)
def place_of_largest(gains, n):
    """The first place of the largest of n gains; -1 if no split is allowed."""
    # Floats >= 0 have the same order as their bits, whose maximum is found much faster.
    bits, largest = gains.view(np.int64), np.int64(-1)
    for code in range(n):
        largest = max(largest, bits[code])
    if largest < 0:
        return -1
    found = 0
    while bits[found] != largest:
        found += 1
    return found


@kernel(inner=True)
def _add_up_from_left(sums, is_packed, first, n_codes, last, missing, scratch):
    """Write scratch[:3, code]: cumulative sums of g, h and samples."""
    gs, hs, ns = scratch[0], scratch[1], scratch[2]
    if is_packed:
        words = scratch[3].view(np.int64)
        word = sums[0, first + n_codes] if missing == 1 else np.int64(0)
        for code in range(last):
            word += sums[0, first + code]
            words[code] = word
        for code in range(last):
            g, h, count = unpacked(words[code])
            gs[code], hs[code], ns[code] = float(g), float(h), float(count)
        return
    g, h, count = np.int64(0), np.int64(0), np.int64(0)
    if missing == 1:
        g, h, count = sums_of_cell(sums, False, first + n_codes)
    for code in range(last):
        g += sums[0, first + code]
        h += sums[1, first + code]
        count += sums[2, first + code]
        gs[code], hs[code], ns[code] = float(g), float(h), float(count)


@kernel(inner=True)
def _write_best(best, place, code, missing, sums, is_packed, first, n_codes):
    """Store a split at a code, and the sums of the rows that go left."""
    best.place, best.code, best.missing_left, best.is_set = place, code, missing, 0
    g, h, count = np.int64(0), np.int64(0), np.int64(0)
    if missing == 1:
        g, h, count = sums_of_cell(sums, is_packed, first + n_codes)
    for lower in range(code + 1):
        more_g, more_h, more = sums_of_cell(sums, is_packed, first + lower)
        g, h, count = g + more_g, h + more_h, count + more
    best.left_g, best.left_h, best.left_count = g, h, count


@kernel(inner=True)
def _least_hessian(h, count, rules, units):
    """The minimum hessian of a child, which includes the share of `min_worth` samples of the node.

    Rows that are already predicted with certainty have almost no hessian. A leaf of such rows and a
    few others would make a huge step.
    """
    share = rules.min_worth * float(h) / float(count)
    return max(rules.min_hessian / units[1], share, 1e-300)


@kernel(inner=True)
def _is_allowed(h, count, rules, least_h):
    return count >= rules.min_samples and float(h) >= least_h


@kernel(inner=True)
def _search_within_bounds(table, rules, units, node, place, missing, sums, best):
    g, h, count, is_packed = node.total_g, node.total_h, node.count, node.is_packed == 1
    first, n_codes = table.first[place], table.n_codes[place]
    left_g, left_h, left_n = np.int64(0), np.int64(0), np.int64(0)
    if missing == 1:
        left_g, left_h, left_n = sums_of_cell(sums, is_packed, first + n_codes)
    least_h = _least_hessian(h, count, rules, units)
    for code in range(n_codes if missing == 0 else n_codes - 1):
        more_g, more_h, more = sums_of_cell(sums, is_packed, first + code)
        left_g, left_h, left_n = left_g + more_g, left_h + more_h, left_n + more
        if not _is_allowed(left_h, left_n, rules, least_h) or not _is_allowed(
            h - left_h, count - left_n, rules, least_h
        ):
            continue
        worth = _worth_of_pair(left_g, left_h, g - left_g, h - left_h, node, rules.signs[place],
                               rules, units)  # fmt: skip
        if worth > best.gain or is_even(table, place, worth, best):
            best.gain = worth
            _write_best(best, place, code, missing, sums, is_packed, first, n_codes)


@kernel(inner=True)
def _worth_of_pair(left_g, left_h, right_g, right_h, node, sign, rules, units):
    """The worth of two children with clipped values, which may be negative; -inf if they violate
    the constraint."""
    left = value_of(left_g, left_h, rules, units, node.low, node.high)
    right = value_of(right_g, right_h, rules, units, node.low, node.high)
    if float(sign) * (right - left) < 0.0:
        return -np.inf
    return _worth(left_g, left_h, left, rules, units) + _worth(
        right_g, right_h, right, rules, units
    )


@kernel(inner=True)
def _search_categories(table, rules, units, node, place, sums, means, order, best):
    """Consider the splits of a categorical feature: sorted by mean gradient, the first ones go
    left. Missing values are one more category."""
    first, n_codes = table.first[place], table.n_codes[place]
    g, h, count, is_packed = node.total_g, node.total_h, node.count, node.is_packed == 1
    n = _in_order(sums, is_packed, first, n_codes + 1, units, means, order)
    is_bound = len(rules.signs) > 0
    l2, least_h = rules.l2 / units[1], _least_hessian(h, count, rules, units)
    left_g, left_h, left_n = np.int64(0), np.int64(0), np.int64(0)
    found = -1
    for p in range(n - 1):
        more_g, more_h, more = sums_of_cell(sums, is_packed, first + order[p])
        left_g, left_h, left_n = left_g + more_g, left_h + more_h, left_n + more
        if not _is_allowed(left_h, left_n, rules, least_h) or not _is_allowed(
            h - left_h, count - left_n, rules, least_h
        ):
            continue
        right_g, right_h = g - left_g, h - left_h
        if is_bound:
            worth = _worth_of_pair(left_g, left_h, right_g, right_h, node, 0, rules, units)
        else:
            worth = _worth_of_steps(float(left_g), float(right_g), float(left_h) + l2,
                                    float(right_h) + l2)  # fmt: skip
        is_first = found < 0 and is_even(table, place, worth, best)
        if worth > best.gain or is_first:
            best.gain = worth
            found = p
            best.left_g, best.left_h, best.left_count = left_g, left_h, left_n
    if found < 0:
        return
    best.place, best.code, best.is_set = place, 0, 1
    is_missing = sums_of_cell(sums, is_packed, first + n_codes)[2] > 0
    best.missing_left = 0 if is_missing else MISSING_UNSEEN
    for word in range(len(best.codes_left)):
        best.codes_left[word] = np.uint32(0)
    for p in range(found + 1):
        code = order[p]
        if code == n_codes:
            best.missing_left = 1
        best.codes_left[code // 32] |= np.uint32(1) << np.uint32(code % 32)


@kernel(inner=True)
def _in_order(sums, is_packed, first, n_codes, units, means, order):
    """Sort the codes that have rows by ascending mean gradient; returns their number."""
    n = 0
    for code in range(n_codes):
        g, h, count = sums_of_cell(sums, is_packed, first + code)
        if count == 0:
            continue
        mean = float(g) / (float(h) + _SMOOTH / units[1])
        if math.isnan(mean):
            mean = 0.0
        free = n
        while free > 0 and means[free - 1] > mean:
            means[free], order[free] = means[free - 1], order[free - 1]
            free -= 1
        means[free], order[free] = mean, code
        n += 1
    return n
