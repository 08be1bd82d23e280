"""The best split of a node by one feature.

Two forms of the same search. *Entries* are the rows of the node in the order of the feature, each
packed with its rank into one integer; they are moved from the right child to the left one by one.
*Groups* are sums of statistics, one for each code (a histogram): for large nodes, for categories in
any order, and for several outputs.

A found split is kept in two small arrays,

    best    feature, four numbers of `scores.consider`, position, side of missing values
    score   the score

position counts entries, or groups in their order, that go left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.scores import (
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
    "BEST_SIZE",
    "ROUNDING_OF_SQUARES",
    "Rules",
    "is_far",
    "order_of_groups",
    "score_of_classes",
    "search_absolute",
    "search_classes",
    "search_groups",
    "search_numbers",
]  # fmt: skip

BEST_SIZE = 7
ROUNDING_OF_SQUARES = 6e-16  # a step, of the largest sum of squares
POSITION, MISSING_LEFT = 5, 6


class Rules(NamedTuple):
    """When to stop, and which splits are allowed.

    criterion, counted     codes of `scores`; whether weights are whole
    table, scale           logarithms in fixed point
    min_samples_split, min_samples_leaf     samples
    min_weight             of a leaf, in units of the targets' weights
    max_depth, greedy_depth    the latter: beyond it, splits are balanced, not good
    min_decrease           of the score, in units of weight
    max_features           looked at for a split
    random                 whether thresholds are drawn
    monotone               int8 (d,) or (0,)  +1, -1, 0
    at_zero                whether zeros among the targets stay zeros: they are not centred then
    seed                   uint64
    """

    criterion: int
    counted: bool
    table: np.ndarray
    scale: float
    min_samples_split: int
    min_samples_leaf: int
    min_weight: int
    max_depth: int
    greedy_depth: int
    min_decrease: float
    max_features: int
    random: bool
    monotone: np.ndarray
    at_zero: bool
    seed: int


@kernel(inner=True)
def _allowed(direction, low, high, left_value, right_value):
    """Whether children respect a monotone constraint, and the bounds inherited from ancestors."""
    if direction > 0 and left_value > right_value:
        return False
    if direction < 0 and left_value < right_value:
        return False
    return low <= left_value <= high and low <= right_value <= high


@kernel(inner=True)
def search_classes(
    entries, start, stop, end, shift, mask, labels, weight, samples, rules, total, node_weight,
    node_samples, missing_left, only, low, high, feature, left, right, best, score,
):  # fmt: skip
    """One output of classes. Entries start .. stop have values, stop .. end are missing.

    Returns whether a better split than `best` was found, which then is there.
    """
    criterion, counted = rules.criterion, rules.counted
    n_classes = len(total)
    gini = criterion == GINI and counted
    near_gini = criterion == GINI and not counted
    entropy = counted and (criterion == ENTROPY or criterion == GAIN_RATIO)
    constrained = len(rules.monotone) > 0
    table, scale = rules.table, rules.scale
    squares_left, squares_right = 0, 0
    near_left, near_right = 0.0, 0.0
    logs_left, logs_right = 0, 0
    for k in range(n_classes):
        left[k] = 0
        right[k] = total[k]
        if gini:
            squares_right += total[k] * total[k]
        elif near_gini:
            near_right += float(total[k]) * float(total[k])
        elif entropy:
            logs_right += weighted_log(total[k], table, scale)
    weight_left = 0
    samples_left = 0
    found = False
    n_moves = end - start if missing_left else stop - start
    slack = ROUNDING_OF_SQUARES * near_right * float(n_moves)
    first = stop if missing_left else start
    for move in range(n_moves):
        p = first + move
        if p >= end:  # missing ones went first
            p += start - end
        row = entries[p] & mask
        k, w = labels[row], weight[row]
        before_left, before_right = left[k], right[k]
        left[k] = before_left + w
        right[k] = before_right - w
        if gini:
            squares_left += w * (2 * before_left + w)
            squares_right -= w * (2 * before_right - w)
        elif near_gini:
            own = float(w)
            near_left += own * (2.0 * float(before_left) + own)
            near_right -= own * (2.0 * float(before_right) - own)
        elif entropy:
            logs_left += weighted_log(before_left + w, table, scale) - weighted_log(
                before_left, table, scale
            )
            logs_right += weighted_log(before_right - w, table, scale) - weighted_log(
                before_right, table, scale
            )
        weight_left += w
        samples_left += samples[row]
        if p >= stop:
            continue
        if p + 1 < stop:
            if entries[p + 1] >> shift == entries[p] >> shift:
                continue
        elif missing_left or stop == end:
            break
        if only >= 0 and p + 1 != only:
            continue
        if node_samples - samples_left < rules.min_samples_leaf:
            break
        weight_right = node_weight - weight_left
        if (
            samples_left < rules.min_samples_leaf
            or weight_left < rules.min_weight
            or weight_right < rules.min_weight
        ):
            continue
        if constrained and not _allowed(
            rules.monotone[feature], low, high, left[1] / weight_left, right[1] / weight_right
        ):
            continue
        if near_gini and best[0] >= 0 and is_far(
            near_left, near_right, slack, weight_left, weight_right, score[0]
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
            criterion,
            counted,
            np.int64(a),
            np.int64(weight_left),
            np.int64(b),
            np.int64(weight_right),
            value,
            feature,
            np.int64(p + 1 - start),
            best,
            score,
        ):
            best[MISSING_LEFT] = 1 if missing_left else 0
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
    """From scratch, where sums cannot be kept up to date: (score, whole score)."""
    value = 0.0
    if criterion == GINI:
        own, other = 0.0, 0.0
        for k in range(len(left)):
            here, there = float(left[k]), float(total[k] - left[k])
            own += here * here
            other += there * there
        return own / weight_left + other / weight_right, 0
    if criterion == ERROR:
        most_left, most_right = left[0], total[0] - left[0]
        for k in range(len(left)):
            most_left = max(most_left, left[k])
            most_right = max(most_right, total[k] - left[k])
        return float(most_left + most_right), most_left + most_right
    for k in range(len(left)):
        value += float_log(float(left[k])) + float_log(float(total[k] - left[k]))
    return value - float_log(float(weight_left)) - float_log(float(weight_right)), 0


@kernel(inner=True)
def search_numbers(
    entries, start, stop, end, shift, mask, numbers, weight, samples, rules, total, node_weight,
    node_samples, offset, centre, exponent, missing_left, only, low, high, feature, best, score,
):  # fmt: skip
    """One output of numbers; `offset` is the node's mean in units of the numbers."""
    criterion = rules.criterion
    constrained = len(rules.monotone) > 0
    sum_left, weight_left, samples_left = 0, 0, 0
    found = False
    n_moves = end - start if missing_left else stop - start
    first = stop if missing_left else start
    for move in range(n_moves):
        p = first + move
        if p >= end:
            p += start - end
        row = entries[p] & mask
        sum_left += numbers[row]
        weight_left += weight[row]
        samples_left += samples[row]
        if p >= stop:
            continue
        if p + 1 < stop:
            if entries[p + 1] >> shift == entries[p] >> shift:
                continue
        elif missing_left or stop == end:
            break
        if only >= 0 and p + 1 != only:
            continue
        if node_samples - samples_left < rules.min_samples_leaf:
            break
        weight_right = node_weight - weight_left
        if (
            samples_left < rules.min_samples_leaf
            or weight_left < rules.min_weight
            or weight_right < rules.min_weight
        ):
            continue
        sum_right = total - sum_left
        if constrained:
            unit = 2.0 ** float(-exponent)
            left_value = centre + float(sum_left) / float(weight_left) * unit
            right_value = centre + float(sum_right) / float(weight_right) * unit
            if not _allowed(rules.monotone[feature], low, high, left_value, right_value):
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
            np.int64(weight_right), value, feature, np.int64(p + 1 - start), best, score,
        ):  # fmt: skip
            best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(inner=True)
def search_groups(
    stats, weights, samples, order, n_ordered, missing, is_class, rules, starts, total,
    node_weight, node_samples, offset, centre, exponent, missing_left, only, low, high, feature,
    left, right, best, score,
):  # fmt: skip
    """Splits between groups in an order; `missing` is the group of missing values, or -1.

    `only`: how many groups go left, if that is given already; else -1.
    """
    criterion, counted = rules.criterion, rules.counted
    n_outputs = len(starts) - 1
    constrained = len(rules.monotone) > 0
    n_stats = len(total)
    weight_left, samples_left = 0, 0
    for k in range(n_stats):
        left[k] = 0
    found = False
    for step in range(-1 if missing_left else 0, n_ordered):
        group = missing if step < 0 else order[step]
        for k in range(n_stats):
            left[k] += stats[group, k]
        weight_left += weights[group]
        samples_left += samples[group]
        if step < 0:
            continue
        if step == n_ordered - 1 and (missing_left or missing < 0):
            break
        if only >= 0 and step + 1 != only:
            continue
        if node_samples - samples_left < rules.min_samples_leaf:
            break
        weight_right = node_weight - weight_left
        if (
            samples_left < rules.min_samples_leaf
            or weight_left < rules.min_weight
            or weight_right < rules.min_weight
        ):
            continue
        for k in range(n_stats):
            right[k] = total[k] - left[k]
        if constrained:
            if is_class:
                left_value, right_value = left[1] / weight_left, right[1] / weight_right
            else:
                unit = 2.0 ** float(-exponent[0])
                left_value = centre[0] + float(left[0]) / float(weight_left) * unit
                right_value = centre[0] + float(right[0]) / float(weight_right) * unit
            if not _allowed(rules.monotone[feature], low, high, left_value, right_value):
                continue
        a, b, value = 0, 0, 0.0
        valid = True
        for o in range(n_outputs):
            if is_class and criterion == GINI and counted:
                for k in range(starts[o], starts[o + 1]):
                    a += left[k] * left[k]
                    b += right[k] * right[k]
                value = a / weight_left + b / weight_right
            elif is_class and counted and (criterion == ENTROPY or criterion == GAIN_RATIO):
                for k in range(starts[o], starts[o + 1]):
                    a += weighted_log(left[k], rules.table, rules.scale)
                    a += weighted_log(right[k], rules.table, rules.scale)
                a -= weighted_log(weight_left, rules.table, rules.scale)
                a -= weighted_log(weight_right, rules.table, rules.scale)
                value = a / rules.scale
            elif is_class:
                own, whole = score_of_classes(
                    criterion,
                    left[starts[o] : starts[o + 1]],
                    total[starts[o] : starts[o + 1]],
                    weight_left,
                    weight_right,
                )
                value += own
                a += whole
            elif criterion == SQUARED:
                a = left[o] - weight_left * offset[o]
                b = right[o] - weight_right * offset[o]
                value += float(a) * float(a) / weight_left + float(b) * float(b) / weight_right
            else:
                valid &= criterion != POISSON or centre[o] != 0.0 or (left[o] > 0 and right[o] > 0)
                value += deviance_score(
                    criterion,
                    left[o],
                    weight_left,
                    total[o],
                    node_weight,
                    offset[o],
                    centre[o],
                    exponent[o],
                )
                value += deviance_score(
                    criterion,
                    right[o],
                    weight_right,
                    total[o],
                    node_weight,
                    offset[o],
                    centre[o],
                    exponent[o],
                )
        if best[0] >= 0 and value < score[0] - 1e-12 * abs(score[0]):
            continue  # the usual case, without a second look
        # Sums over several outputs have no single exact form.
        known = CUSTOM if n_outputs > 1 and criterion == SQUARED else criterion
        if valid and consider(
            known, counted, np.int64(a), np.int64(weight_left), np.int64(b),
            np.int64(weight_right), value, feature, np.int64(step + 1), best, score,
        ):  # fmt: skip
            best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(bare=True)
def sort_by(keys, n, order, spare):
    """order[:n] such that keys[order] ascends, equal ones as they stand: merge sort."""
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
    """Groups by the mean of one statistic; equal ones as they stand. The best subset of two
    classes, or of numbers, is one of the first so many."""
    for g in range(n_groups):
        means[g] = stats[g, which] / weights[g]
    sort_by(means, n_groups, order, spare)


@kernel(inner=True)
def search_absolute(
    entries, start, stop, end, shift, mask, ranks, by_rank, weight, samples, rules, node_weight,
    node_samples, missing_left, only, feature, tree_weight, tree_sum, errors, best, score,
):  # fmt: skip
    """Absolute error: the sum over the outputs, around the medians of both children.

    ranks[o, row] is the rank of a row's target in the node, by_rank[o, r] the target in whole
    units, the same for all outputs; errors[q] becomes the error if q + 1 entries go left.
    """
    found = False
    n_missing = end - stop
    errors[: end - start] = 0
    for o in range(len(ranks)):
        _add_errors(entries, start, stop, end, mask, ranks[o], by_rank[o, : end - start], weight,
                    missing_left, tree_weight, tree_sum, errors)  # fmt: skip
    weight_left, samples_left = 0, 0
    for q in range(end - start - 1):
        p = start + q
        is_missing = q < n_missing if missing_left else p >= stop
        if missing_left:
            p = stop + q if q < n_missing else start + q - n_missing
        row = entries[p] & mask
        weight_left += weight[row]
        samples_left += samples[row]
        if is_missing:
            continue
        if p + 1 < stop:
            if entries[p + 1] >> shift == entries[p] >> shift:
                continue
        elif missing_left or stop == end:
            break
        if only >= 0 and p + 1 != only:
            continue
        weight_right = node_weight - weight_left
        if (
            min(samples_left, node_samples - samples_left) < rules.min_samples_leaf
            or min(weight_left, weight_right) < rules.min_weight
        ):
            continue
        if consider(
            ABSOLUTE, True, np.int64(errors[q]), np.int64(weight_left), np.int64(0),
            np.int64(weight_right), -float(errors[q]), feature, np.int64(p + 1 - start), best,
            score,
        ):  # fmt: skip
            best[MISSING_LEFT] = 1 if missing_left else 0
            found = True
    return found


@kernel(inner=True)
def _add_errors(
    entries, start, stop, end, mask, ranks, by_rank, weight, missing_left, tree_weight, tree_sum,
    errors,
):  # fmt: skip
    """The errors of one output: medians come from binary indexed trees over the ranks."""
    length, n_missing = end - start, end - stop
    # of the left children first, then of the right ones, back to front
    for backwards in range(2):
        tree_weight[:] = 0
        tree_sum[:] = 0
        total_weight, total_sum = 0, 0
        for move in range(length):
            q = length - 1 - move if backwards else move
            p = start + q
            if missing_left:  # the missing ones stand first
                p = stop + q if q < n_missing else start + q - n_missing
            row = entries[p] & mask
            w, own = weight[row], by_rank[ranks[row]]
            r = ranks[row] + 1
            while r < len(tree_weight):
                tree_weight[r] += w
                tree_sum[r] += w * own
                r += r & -r
            total_weight += w
            total_sum += w * own
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
