"""The best split of a node by one feature, for every criterion and kind of feature.

Two forms of the same search. *Entries* are the rows of the node in the order of the feature; they
move from the right child to the left one by one. *Groups* are sums of statistics, one for each code
(a histogram): for large nodes, for categories in any order, and for several outputs.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.search.buffers import MISSING_LEFT
from margrove.grove.grow.search.scores import (
    ABSOLUTE,
    CUSTOM,
    ENTROPY,
    ERROR,
    GAIN_RATIO,
    GINI,
    POISSON,
    SQUARED,
    consider,
    deviance_score,
    float_log,
    weighted_log,
)

__all__ = [
    "ROUNDING_OF_SQUARES",
    "is_far",
    "order_of_groups",
    "score_of_classes",
    "search_absolute",
    "search_classes",
    "search_groups",
    "search_numbers",
    "sort_by",
]  # fmt: skip

ROUNDING_OF_SQUARES = 6e-16  # a step, of the largest sum of squares
_ALLOWED, _SKIP, _STOP = 0, 1, 2


@kernel(inner=True)
def _is_allowed(direction, low, high, left_value, right_value):
    """Whether children respect a monotone constraint, and the bounds inherited from ancestors."""
    if direction > 0 and left_value > right_value:
        return False
    if direction < 0 and left_value < right_value:
        return False
    return low <= left_value <= high and low <= right_value <= high


@kernel(inner=True, inlined=True)
def _is_too_small(samples, weight_left, weight_right, rules):
    """Whether the left child has too few samples, or one of the two too little weight."""
    return (
        samples < rules.min_samples_leaf
        or weight_left < rules.min_weight
        or weight_right < rules.min_weight
    )


@kernel(inner=True, inlined=True)
def _threshold_status(sorted_rows, p, missing_left, only):
    """Whether there can be a threshold after entry p: _ALLOWED, _SKIP or _STOP.

    only: the entry after the one allowed threshold; -1: all are allowed.
    """
    entries, shift = sorted_rows.entries, sorted_rows.shift
    if p >= sorted_rows.stop:
        return _SKIP
    if p + 1 < sorted_rows.stop:
        if entries[p + 1] >> shift == entries[p] >> shift:
            return _SKIP
    elif missing_left or sorted_rows.stop == sorted_rows.end:
        return _STOP
    if only >= 0 and p + 1 != only:
        return _SKIP
    return _ALLOWED


@kernel(inner=True, inlined=True)
def search_classes(sorted_rows, feature, missing_left, only, targets, rules, nodes, node, buffers):
    """Classes, one output; whether a better split than `buffers.best` was found.

    missing_left: whether rows without a value go left. only: the entry after the one allowed
    threshold; -1: all are allowed.
    """
    entries, start, end = sorted_rows.entries, sorted_rows.start, sorted_rows.end
    labels, weights, samples = targets.labels, targets.weight, targets.samples
    total, left, right = nodes.stats[node], buffers.left, buffers.right
    node_weight, node_samples = nodes.record.weight[node], nodes.record.samples[node]
    criterion, counted = rules.criterion, rules.counted
    gini = criterion == GINI and counted
    near_gini = criterion == GINI and not counted
    entropy = counted and (criterion == ENTROPY or criterion == GAIN_RATIO)
    table, scale = rules.table, rules.scale
    squares_left, squares_right = 0, 0
    near_left, near_right = 0.0, 0.0
    logs_left, logs_right = 0, 0
    for k in range(len(total)):
        left[k] = 0
        right[k] = total[k]
        if gini:
            squares_right += total[k] * total[k]
        elif near_gini:
            near_right += float(total[k]) * float(total[k])
        elif entropy:
            logs_right += weighted_log(total[k], table, scale)
    weight_left, samples_left = 0, 0
    found = False
    n_moves = end - start if missing_left else sorted_rows.stop - start
    slack = ROUNDING_OF_SQUARES * near_right * float(n_moves)
    first = sorted_rows.stop if missing_left else start
    for move in range(n_moves):
        p = first + move
        if p >= end:  # missing ones went first
            p += start - end
        row = entries[p] & sorted_rows.mask
        k, w = labels[row], weights[row]
        before_left, before_right = left[k], right[k]
        left[k] = before_left + w
        right[k] = before_right - w
        if gini:
            squares_left += w * (2 * before_left + w)
            squares_right -= w * (2 * before_right - w)
        elif near_gini:
            near_left += float(w) * (2.0 * float(before_left) + float(w))
            near_right -= float(w) * (2.0 * float(before_right) - float(w))
        elif entropy:
            logs_left += weighted_log(before_left + w, table, scale)
            logs_left -= weighted_log(before_left, table, scale)
            logs_right += weighted_log(before_right - w, table, scale)
            logs_right -= weighted_log(before_right, table, scale)
        weight_left += w
        samples_left += samples[row]
        status = _threshold_status(sorted_rows, p, missing_left, only)
        if status == _SKIP:
            continue
        if status == _STOP or node_samples - samples_left < rules.min_samples_leaf:
            break
        weight_right = node_weight - weight_left
        if _is_too_small(samples_left, weight_left, weight_right, rules):
            continue
        if len(rules.monotone) > 0 and not _is_allowed(
            rules.monotone[feature], nodes.record.low[node], nodes.record.high[node],
            left[1] / weight_left, right[1] / weight_right,
        ):  # fmt: skip
            continue
        if near_gini and buffers.best[0] >= 0 and is_far(
            near_left, near_right, slack, weight_left, weight_right, buffers.score[0]
        ):  # fmt: skip
            continue
        a, b = squares_left, squares_right
        if gini:
            value = a / weight_left + b / weight_right
        elif entropy:
            a = logs_left + logs_right
            a -= weighted_log(weight_left, table, scale) + weighted_log(weight_right, table, scale)
            value = a / scale
        else:
            value, a = score_of_classes(criterion, left, total, weight_left, weight_right)
        if consider(
            criterion, counted, np.int64(a), np.int64(weight_left), np.int64(b),
            np.int64(weight_right), value, feature, np.int64(p + 1 - start), buffers.best,
            buffers.score,
        ):  # fmt: skip
            buffers.best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(inner=True)
def is_far(squares_left, squares_right, slack, weight_left, weight_right, best):
    """Whether a Gini score is below the best for sure.

    The sums of squares may each be wrong by `slack`: they were kept up to date in floating point.
    """
    left, right = float(weight_left), float(weight_right)
    near = squares_left * right + squares_right * left + slack * (left + right)
    return near < best * (left * right)


@kernel(inner=True)
def score_of_classes(criterion, left, total, weight_left, weight_right):
    """Score of two children from their sums, and the exact number behind it (0: there is none)."""
    value = 0.0
    if criterion == GINI:
        squares_left, squares_right = 0.0, 0.0
        for k in range(len(left)):
            in_left, in_right = float(left[k]), float(total[k] - left[k])
            squares_left += in_left * in_left
            squares_right += in_right * in_right
        return squares_left / weight_left + squares_right / weight_right, 0
    if criterion == ERROR:
        most_left, most_right = left[0], total[0] - left[0]
        for k in range(len(left)):
            most_left = max(most_left, left[k])
            most_right = max(most_right, total[k] - left[k])
        return float(most_left + most_right), most_left + most_right
    for k in range(len(left)):
        value += float_log(float(left[k])) + float_log(float(total[k] - left[k]))
    return value - float_log(float(weight_left)) - float_log(float(weight_right)), 0


@kernel(inner=True, inlined=True)
def search_numbers(sorted_rows, feature, missing_left, only, targets, rules, nodes, node, buffers):
    """Numbers, one output; see `search_classes`."""
    entries, start, end = sorted_rows.entries, sorted_rows.start, sorted_rows.end
    numbers, weights, samples = targets.numbers, targets.weight, targets.samples
    node_weight, node_samples = nodes.record.weight[node], nodes.record.samples[node]
    total, offset = nodes.stats[node, 0], buffers.offset[0]
    centre, exponent = nodes.centre[node, 0], nodes.exponent[node, 0]
    criterion = rules.criterion
    sum_left, weight_left, samples_left = 0, 0, 0
    found = False
    n_moves = end - start if missing_left else sorted_rows.stop - start
    first = sorted_rows.stop if missing_left else start
    for move in range(n_moves):
        p = first + move
        if p >= end:
            p += start - end
        row = entries[p] & sorted_rows.mask
        sum_left += numbers[row]
        weight_left += weights[row]
        samples_left += samples[row]
        status = _threshold_status(sorted_rows, p, missing_left, only)
        if status == _SKIP:
            continue
        if status == _STOP or node_samples - samples_left < rules.min_samples_leaf:
            break
        weight_right = node_weight - weight_left
        if _is_too_small(samples_left, weight_left, weight_right, rules):
            continue
        sum_right = total - sum_left
        if len(rules.monotone) > 0:
            unit = 2.0 ** float(-exponent)
            left_value = centre + float(sum_left) / float(weight_left) * unit
            right_value = centre + float(sum_right) / float(weight_right) * unit
            if not _is_allowed(rules.monotone[feature], nodes.record.low[node],
                               nodes.record.high[node], left_value, right_value):  # fmt: skip
                continue
        if criterion == SQUARED:
            a = sum_left - weight_left * offset
            b = sum_right - weight_right * offset
            value = float(a) * float(a) / weight_left + float(b) * float(b) / weight_right
        else:
            a, b = sum_left, sum_right
            if centre == 0.0 and (a <= 0 or b <= 0) and criterion == POISSON:  # all zeros
                continue
            value = deviance_score(
                criterion, a, weight_left, total, node_weight, offset, centre, exponent
            )
            value += deviance_score(
                criterion, b, weight_right, total, node_weight, offset, centre, exponent
            )
        if consider(
            criterion, rules.counted, np.int64(a), np.int64(weight_left), np.int64(b),
            np.int64(weight_right), value, feature, np.int64(p + 1 - start), buffers.best,
            buffers.score,
        ):  # fmt: skip
            buffers.best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(inner=True, inlined=True)
def search_groups(
    n_ordered, missing, missing_left, only, feature, targets, rules, nodes, node, buffers
):
    """Splits between the groups of `buffers.order`; whether a better one was found.

    n_ordered: groups in that order. missing: the group of missing values, or -1. only: how many
    groups go left, if that is given; else -1.
    """
    best, score, left, right = buffers.best, buffers.score, buffers.left, buffers.right
    total, node_weight = nodes.stats[node], nodes.record.weight[node]
    n_outputs = len(targets.starts) - 1
    weight_left, samples_left = 0, 0
    for k in range(len(total)):
        left[k] = 0
    found = False
    for step in range(-1 if missing_left else 0, n_ordered):
        group = missing if step < 0 else buffers.order[step]
        for k in range(len(total)):
            left[k] += buffers.group_stats[group, k]
        weight_left += buffers.group_weight[group]
        samples_left += buffers.group_samples[group]
        if step < 0:
            continue
        if step == n_ordered - 1 and (missing_left or missing < 0):
            break
        if only >= 0 and step + 1 != only:
            continue
        if nodes.record.samples[node] - samples_left < rules.min_samples_leaf:
            break
        weight_right = node_weight - weight_left
        if _is_too_small(samples_left, weight_left, weight_right, rules):
            continue
        for k in range(len(total)):
            right[k] = total[k] - left[k]
        if len(rules.monotone) > 0 and not _are_groups_allowed(
            weight_left, weight_right, feature, targets, rules, nodes, node, buffers
        ):
            continue
        value, a, b = _score_of_groups(
            weight_left, weight_right, targets, rules, nodes, node, buffers
        )
        if best[0] >= 0 and value < score[0] - 1e-12 * abs(score[0]):
            continue  # the usual case, without a second look
        # Sums over several outputs have no single exact form.
        is_sum = n_outputs > 1 and rules.criterion == SQUARED
        if value > -np.inf and consider(
            CUSTOM if is_sum else rules.criterion, rules.counted, np.int64(a),
            np.int64(weight_left), np.int64(b), np.int64(weight_right), value, feature,
            np.int64(step + 1), best, score,
        ):  # fmt: skip
            best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(inner=True)
def _are_groups_allowed(weight_left, weight_right, feature, targets, rules, nodes, node, buffers):
    """Whether the children, whose sums are in the buffers, respect a monotone constraint."""
    left, right = buffers.left, buffers.right
    if len(targets.labels) > 0:
        left_value, right_value = left[1] / weight_left, right[1] / weight_right
    else:
        unit, centre = 2.0 ** float(-nodes.exponent[node, 0]), nodes.centre[node, 0]
        left_value = centre + float(left[0]) / float(weight_left) * unit
        right_value = centre + float(right[0]) / float(weight_right) * unit
    return _is_allowed(rules.monotone[feature], nodes.record.low[node], nodes.record.high[node],
                       left_value, right_value)  # fmt: skip


@kernel(inner=True, inlined=True)
def _score_of_groups(weight_left, weight_right, targets, rules, nodes, node, buffers):
    """Score of the children whose sums are in the buffers, and its two exact numbers.

    The score is -inf where a split is not allowed: a child of zeros has no Poisson deviance.
    """
    left, right, total = buffers.left, buffers.right, nodes.stats[node]
    node_weight, starts = nodes.record.weight[node], targets.starts
    criterion, is_class = rules.criterion, len(targets.labels) > 0
    a, b, value = 0, 0, 0.0
    for o in range(len(starts) - 1):
        if is_class and criterion == GINI and rules.counted:
            for k in range(starts[o], starts[o + 1]):
                a += left[k] * left[k]
                b += right[k] * right[k]
            value = a / weight_left + b / weight_right
        elif is_class and rules.counted and (criterion == ENTROPY or criterion == GAIN_RATIO):
            for k in range(starts[o], starts[o + 1]):
                a += weighted_log(left[k], rules.table, rules.scale)
                a += weighted_log(right[k], rules.table, rules.scale)
            a -= weighted_log(weight_left, rules.table, rules.scale)
            a -= weighted_log(weight_right, rules.table, rules.scale)
            value = a / rules.scale
        elif is_class:
            score, exact = score_of_classes(
                criterion, left[starts[o] : starts[o + 1]], total[starts[o] : starts[o + 1]],
                weight_left, weight_right,
            )  # fmt: skip
            value += score
            a += exact
        elif criterion == SQUARED:
            a = left[o] - weight_left * buffers.offset[o]
            b = right[o] - weight_right * buffers.offset[o]
            value += float(a) * float(a) / weight_left + float(b) * float(b) / weight_right
        else:
            centre, exponent = nodes.centre[node, o], nodes.exponent[node, o]
            if criterion == POISSON and centre == 0.0 and (left[o] <= 0 or right[o] <= 0):
                return -np.inf, 0, 0
            value += deviance_score(criterion, left[o], weight_left, total[o], node_weight,
                                    buffers.offset[o], centre, exponent)  # fmt: skip
            value += deviance_score(criterion, right[o], weight_right, total[o], node_weight,
                                    buffers.offset[o], centre, exponent)  # fmt: skip
    return value, a, b


@kernel(bare=True)
def sort_by(keys, n, order, spare):
    """order[:n] such that keys[order] ascends, equal ones in their order: merge sort."""
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            a, b = begin, middle
            for p in range(begin, end):
                if b >= end or (a < middle and keys[order[a]] <= keys[order[b]]):
                    spare[p] = order[a]
                    a += 1
                else:
                    spare[p] = order[b]
                    b += 1
        for p in range(n):
            order[p] = spare[p]
        width *= 2


@kernel(inner=True)
def order_of_groups(stats, weights, n_groups, which, order, means, spare):
    """Sort groups by the mean of one statistic; equal ones keep their order.

    The best subset of two classes, or of numbers, is a beginning of this order.
    """
    for g in range(n_groups):
        means[g] = stats[g, which] / weights[g]
    sort_by(means, n_groups, order, spare)


@kernel(inner=True)
def search_absolute(sorted_rows, feature, missing_left, only, targets, rules, nodes, node, buffers):
    """Absolute error: the sum over the outputs, around the medians of both children.

    buffers.ranks[o, row] is the rank of a row's target in the node, by_rank[o, r] the target in
    whole units, the same for all outputs; errors[q] becomes the error if q + 1 entries go left.
    """
    entries, mask = sorted_rows.entries, sorted_rows.mask
    start, stop, end = sorted_rows.start, sorted_rows.stop, sorted_rows.end
    node_weight, node_samples = nodes.record.weight[node], nodes.record.samples[node]
    found = False
    n_missing = end - stop
    errors = buffers.errors
    errors[: end - start] = 0
    for o in range(len(buffers.ranks)):
        _add_errors(sorted_rows, buffers.ranks[o], buffers.by_rank[o, : end - start],
                    targets.weight, missing_left, buffers.tree_weight[: end - start + 1],
                    buffers.tree_sum[: end - start + 1], errors)  # fmt: skip
    weight_left, samples_left = 0, 0
    for q in range(end - start - 1):
        p = start + q
        is_missing = q < n_missing if missing_left else p >= stop
        if missing_left:
            p = stop + q if q < n_missing else start + q - n_missing
        row = entries[p] & mask
        weight_left += targets.weight[row]
        samples_left += targets.samples[row]
        status = _SKIP if is_missing else _threshold_status(sorted_rows, p, missing_left, only)
        if status == _SKIP:
            continue
        if status == _STOP:
            break
        weight_right = node_weight - weight_left
        if (
            min(samples_left, node_samples - samples_left) < rules.min_samples_leaf
            or min(weight_left, weight_right) < rules.min_weight
        ):
            continue
        if consider(
            ABSOLUTE, True, np.int64(errors[q]), np.int64(weight_left), np.int64(0),
            np.int64(weight_right), -float(errors[q]), feature, np.int64(p + 1 - start),
            buffers.best, buffers.score,
        ):  # fmt: skip
            buffers.best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(inner=True)
def _add_errors(sorted_rows, ranks, by_rank, weights, missing_left, tree_weight, tree_sum, errors):
    """The errors of one output: medians come from binary indexed trees over the ranks."""
    start, stop, end = sorted_rows.start, sorted_rows.stop, sorted_rows.end
    length, n_missing = end - start, end - stop
    # of the left children first, then of the right ones, back to front
    for backwards in range(2):
        tree_weight[:] = 0
        tree_sum[:] = 0
        total_weight, total_sum = 0, 0
        for move in range(length):
            q = length - 1 - move if backwards else move
            p = start + q
            if missing_left:  # the missing ones are first
                p = stop + q if q < n_missing else start + q - n_missing
            row = sorted_rows.entries[p] & sorted_rows.mask
            weight, target = weights[row], by_rank[ranks[row]]
            r = ranks[row] + 1
            while r < len(tree_weight):
                tree_weight[r] += weight
                tree_sum[r] += weight * target
                r += r & -r
            total_weight += weight
            total_sum += weight * target
            at, weight_below, sum_below = _median(tree_weight, tree_sum, total_weight)
            middle = by_rank[min(at, len(by_rank) - 1)]
            error = middle * weight_below - sum_below
            error += (total_sum - sum_below) - middle * (total_weight - weight_below)
            if not backwards:
                errors[q] += error
            elif q > 0:
                errors[q - 1] += error


@kernel(inner=True)
def _median(tree_weight, tree_sum, total):
    """How many ranks lie wholly below the middle of the weight, their weight and their sum."""
    size = len(tree_weight) - 1
    step = 1
    while 2 * step <= size:
        step *= 2
    at, weight, amount = 0, 0, 0
    while step:
        if at + step <= size and 2 * (weight + tree_weight[at + step]) < total:
            at += step
            weight += tree_weight[at]
            amount += tree_sum[at]
        step //= 2
    return at, weight, amount
