"""What the rows of a node sum up to, and the value of a leaf.

Sums are whole numbers, so the order of the rows does not matter. There are two forms: one for
everything, and a fast one for one output with whole weights, by Gini, entropy or squared error.
Both give the same numbers.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.search import (
    ABSOLUTE,
    GINI,
    POISSON,
    SQUARED,
    excess_of,
    exponent_of_errors,
    score_of_node,
    sort_by,
    weighted_log,
)
from margrove.grove.table import BITS_OF_SUMS, bits_of, fitting_exponent, quantise

__all__ = [
    "NARROWER",
    "bound_children",
    "make_leaf",
    "make_leaf_fast",
    "sum_node",
    "sum_node_fast",
]

NARROWER = 6  # bits that a node's targets may be narrower before they get a scale of their own


@kernel(bare=True)
def sum_node(nodes, node, rows, targets, rules, buffers):
    """Sum up rows[start:end] of a node; whether it is pure, and its score.

    buffers: GeneralBuffers, in which medians leave the ranks of the targets.
    """
    start, end = nodes.record.start[node], nodes.record.end[node]
    stats = nodes.stats[node]
    weight, samples = 0, 0
    stats[:] = 0
    is_class = len(targets.labels) > 0
    n_outputs = len(targets.starts) - 1
    for p in range(start, end):
        row = rows[p]
        weight += targets.weight[row]
        samples += targets.samples[row]
    nodes.record.weight[node] = weight
    nodes.record.samples[node] = samples
    pure, base = True, 0.0
    if is_class:
        for p in range(start, end):
            row = rows[p]
            for o in range(n_outputs):
                stats[targets.labels[row * n_outputs + o]] += targets.weight[row]
        for o in range(n_outputs):
            most = 0
            for k in range(targets.starts[o], targets.starts[o + 1]):
                most = max(most, stats[k])
            pure &= most == weight
    else:
        pure, base = _sum_numbers(nodes, node, rows, targets, rules, buffers)
    if rules.criterion == SQUARED:
        for o in range(n_outputs):
            rest = float(stats[o] - weight * buffers.offset[o])
            base += rest * rest / weight
        return pure, base
    if not is_class:
        return pure, base
    return pure, score_of_node(
        rules.criterion, rules.counted, stats, targets.starts, weight, rules.table, rules.scale,
    )  # fmt: skip


@kernel(inner=True)
def _sum_numbers(nodes, node, rows, targets, rules, buffers):
    """Sums of numbers, on a scale that suits the node.

    Returns whether all targets are equal and, for the absolute error, the score of the node.
    """
    start, end = nodes.record.start[node], nodes.record.end[node]
    stats, weight = nodes.stats[node], nodes.record.weight[node]
    n_outputs = len(targets.starts) - 1
    lower, upper = buffers.lower, buffers.upper
    pure, widest = True, 0.0
    for o in range(n_outputs):
        low, high = np.inf, -np.inf
        for p in range(start, end):
            target = targets.raw[rows[p] * n_outputs + o]
            low = min(low, target)
            high = max(high, target)
        lower[o], upper[o] = low, high
        pure &= low == high
        middle = 0.0 if rules.at_zero and low <= 0.0 else 0.5 * low + 0.5 * high
        widest = max(widest, abs(low - middle), abs(high - middle))
    room = fitting_exponent(widest, weight) - nodes.exponent[node, 0]
    if nodes.record.parent[node] < 0 or (widest > 0.0 and room > NARROWER):
        quantise(targets, rows, start, end, lower, upper, rules.at_zero,
                 nodes.centre[node], nodes.exponent[node])  # fmt: skip
    for o in range(n_outputs):
        for p in range(start, end):
            stats[o] += targets.numbers[rows[p] * n_outputs + o]
        buffers.offset[o] = np.int64(np.rint(float(stats[o]) / float(weight)))
        unit = 2.0 ** float(-nodes.exponent[node, o])
        mean = nodes.centre[node, o] + float(stats[o]) / float(weight) * unit
        nodes.value[node, o] = min(max(mean, lower[o]), upper[o])
    if rules.criterion == ABSOLUTE:
        return pure, -_rank_targets(nodes, node, rows, targets, buffers)
    return pure, 0.0


@kernel(inner=True)
def _rank_targets(nodes, node, rows, targets, buffers):
    """Ranks of the targets within the node, their medians as its value; its absolute error."""
    start, end = nodes.record.start[node], nodes.record.end[node]
    values, order = buffers.means, buffers.order
    n_outputs, n = len(targets.starts) - 1, end - start
    factor = 2.0 ** float(exponent_of_errors(nodes, node))
    error = 0
    for o in range(n_outputs):
        ranks, by_rank = buffers.ranks[o], buffers.by_rank[o]
        for p in range(start, end):
            values[p - start] = targets.raw[rows[p] * n_outputs + o]
        sort_by(values, n, order, buffers.spare)
        below, value, middle = 0, 0.0, -1
        for r in range(n):
            row = rows[start + order[r]]
            ranks[row] = r
            by_rank[r] = np.int64(np.rint((values[order[r]] - nodes.centre[node, o]) * factor))
            below += targets.weight[row]
            if middle < 0 and 2 * below >= nodes.record.weight[node]:
                middle = r
                value = values[order[r]]
                if 2 * below == nodes.record.weight[node] and r + 1 < n:
                    value = 0.5 * value + 0.5 * values[order[r + 1]]
        nodes.value[node, o] = value
        for r in range(n):
            row = rows[start + order[r]]
            error += targets.weight[row] * abs(by_rank[r] - by_rank[middle])
    return float(error)


@kernel(inner=True, inlined=True)
def sum_node_fast(nodes, node, rows, targets, rules, offset, local):
    """Sum up rows[start:end] of a node, and copy their targets to `local` (LocalRows).

    local may be None; then each row counts once. Returns whether the node is pure, its score, and
    the sum over its classes of the squared weights, or of n log2 n.
    """
    record = nodes.record
    start, end = record.start[node], record.end[node]
    if len(targets.labels) == 0:
        pure, base = _sum_numbers_fast(nodes, node, rows, targets, offset, local)
        return pure, base, 0
    sums = nodes.stats[node]
    for k in range(len(sums)):
        sums[k] = 0
    total = 0
    for i in range(end - start):
        row = np.uint64(rows[start + i])
        label = targets.labels[row]
        weight = np.int64(1)
        if local is not None:
            weight = targets.weight[row]
            local.labels[i] = label
            local.weight[i] = weight
        sums[np.uint64(label)] += weight
        total += weight
    record.weight[node] = total
    record.samples[node] = total
    if local is not None and local.row_is_sample:
        record.samples[node] = end - start
    gini = rules.criterion == GINI
    squares, most = 0, 0
    for k in range(len(sums)):
        most = max(most, sums[k])
        squares += sums[k] * sums[k] if gini else weighted_log(sums[k], rules.table, rules.scale)
    base = (
        squares / total
        if gini
        else (squares - weighted_log(total, rules.table, rules.scale)) / rules.scale
    )
    return most == total, base, squares


@kernel(inner=True, inlined=True)
def _sum_numbers_fast(nodes, node, rows, targets, offset, local):
    record = nodes.record
    start, end = record.start[node], record.end[node]
    raw, numbers = targets.raw, targets.numbers
    low, high, total = np.inf, -np.inf, 0
    for i in range(end - start):
        row = np.uint64(rows[start + i])
        target = raw[row]
        low = min(low, target)
        high = max(high, target)
        weight = np.int64(1)
        if local is not None:
            weight = targets.weight[row]
            local.weight[i] = weight
        total += weight
    record.weight[node] = total
    record.samples[node] = total
    middle = 0.5 * low + 0.5 * high
    widest = max(middle - low, high - middle)
    power = fitting_exponent(widest, total)
    is_narrow = widest > 0.0 and power - nodes.exponent[node, 0] > NARROWER
    if record.parent[node] < 0 or is_narrow:
        nodes.centre[node, 0] = middle
        nodes.exponent[node, 0] = power
        factor = 2.0 ** float(power)
        for i in range(end - start):
            row = np.uint64(rows[start + i])
            weight = np.int64(1)
            if local is not None:
                weight = targets.weight[row]
            numbers[row] = weight * np.int64(np.rint((raw[row] - middle) * factor))
    sum_of_numbers = 0
    for i in range(end - start):
        number = numbers[np.uint64(rows[start + i])]
        if local is not None:
            local.numbers[i] = number
        sum_of_numbers += number
    nodes.stats[node, 0] = sum_of_numbers
    offset[0] = np.int64(np.rint(float(sum_of_numbers) / float(total)))
    unit = 2.0 ** float(-nodes.exponent[node, 0])
    mean = nodes.centre[node, 0] + float(sum_of_numbers) / float(total) * unit
    nodes.value[node, 0] = min(max(mean, low), high)
    rest = float(sum_of_numbers - total * offset[0])
    return low == high, rest * rest / total


@kernel(inner=True, inlined=True)
def make_leaf_fast(nodes, node, rows, raw, weights):
    """A leaf: of a regression, its mean to the last digit and the squared error that is left.

    raw: the targets, empty for classes. weights: None where each row counts once.
    """
    record = nodes.record
    record.error_left[node] = 0.0
    if len(raw) == 0:
        return
    start, end = record.start[node], record.end[node]
    low, high = np.inf, -np.inf
    for p in range(start, end):
        target = raw[rows[p]]
        low = min(low, target)
        high = max(high, target)
    nodes.value[node, 0] = low
    if low == high:
        return
    total = record.weight[node]
    factor = 2.0 ** float(fitting_exponent(high - low, total))
    sum_of_numbers = 0
    for p in range(start, end):
        weight = np.int64(1)
        if weights is not None:
            weight = weights[rows[p]]
        sum_of_numbers += weight * np.int64(np.rint((raw[rows[p]] - low) * factor))
    above = float(sum_of_numbers) / float(total) / factor  # of the mean above the lowest
    nodes.value[node, 0] = min(max(low + above, low), high)
    largest = max(high - low - above, above)
    scale = 2.0 ** float(fitting_exponent(1.0, total))
    error = 0
    for p in range(start, end):
        weight = np.int64(1)
        if weights is not None:
            weight = weights[rows[p]]
        share = (raw[rows[p]] - low - above) / largest
        error += weight * np.int64(np.rint(share * share * scale))
    record.error_left[node] = float(error) / scale * largest * largest


@kernel(bare=True)
def make_leaf(nodes, node, rows, targets, rules):
    """A leaf: its value to the last digit, and the loss that is left, for any criterion."""
    start, end = nodes.record.start[node], nodes.record.end[node]
    nodes.record.error_left[node] = 0.0
    if len(targets.raw) == 0:
        return
    n_outputs = len(targets.starts) - 1
    for o in range(n_outputs):
        low, high = np.inf, -np.inf
        for p in range(start, end):
            target = targets.raw[rows[p] * n_outputs + o]
            low = min(low, target)
            high = max(high, target)
        if low == high:
            nodes.value[node, o] = low
            continue
        if rules.criterion != ABSOLUTE:
            power = fitting_exponent(high - low, nodes.record.weight[node])
            factor = 2.0 ** float(power)
            total = 0
            for p in range(start, end):
                row = rows[p]
                number = (targets.raw[row * n_outputs + o] - low) * factor
                if targets.counted:
                    total += targets.weight[row] * np.int64(np.rint(number))
                else:
                    total += np.int64(np.rint(targets.weight[row] * number))
            above = float(total) / float(nodes.record.weight[node]) / factor
            nodes.value[node, o] = min(max(low + above, low), high)
        else:
            above = nodes.value[node, o] - low
        nodes.record.error_left[node] += _loss_left(
            rows, start, end, targets, o, low, above, rules.criterion
        )
    for o in range(n_outputs):
        nodes.value[node, o] = min(max(nodes.value[node, o], nodes.record.low[node]),
                                   nodes.record.high[node])  # fmt: skip


@kernel(inner=True)
def _loss(criterion, distance, value):
    """Loss of one target at a distance from the value."""
    if criterion == ABSOLUTE:
        return abs(distance)
    if criterion == SQUARED:
        return distance * distance
    if value <= 0.0:
        return 0.0
    excess = excess_of(distance / value, criterion == POISSON)
    return value * excess if criterion == POISSON else excess


@kernel(inner=True)
def _loss_left(rows, start, end, targets, o, low, above, criterion):
    """The sum of the losses in fixed point, so that their order does not matter.

    The value is low + above; the sum itself may be rounded.
    """
    n_outputs = len(targets.starts) - 1
    largest, total = 0.0, 0.0
    for p in range(start, end):
        row = rows[p]
        distance = (targets.raw[row * n_outputs + o] - low) - above
        largest = max(largest, _loss(criterion, distance, low + above))
        total += targets.real[row]
    if not 0.0 < largest < np.inf:
        return largest * 0.0
    scale = 2.0 ** float(BITS_OF_SUMS - bits_of(total / targets.unit))
    loss = 0
    for p in range(start, end):
        row = rows[p]
        distance = (targets.raw[row * n_outputs + o] - low) - above
        share = _loss(criterion, distance, low + above) / largest
        if targets.counted:
            loss += targets.weight[row] * np.int64(np.rint(share * scale))
        else:
            loss += np.int64(np.rint(targets.weight[row] * share * scale))
    return float(loss) / scale * largest * targets.unit


@kernel(bare=True)
def bound_children(nodes, node, first, places, targets, rules):
    """Under a monotone constraint, the middle of the children's means bounds both of them."""
    direction = rules.monotone[nodes.record.feature[node]]
    if direction == 0:
        return
    middle = 0.0
    for child in (first, first + 1):
        total, weight = 0.0, 0.0
        for p in range(nodes.record.start[child], nodes.record.end[child]):
            place = places[p]
            row_weight = float(targets.weight[place])
            weight += row_weight
            if len(targets.labels) > 0:
                total += row_weight * (targets.labels[place] == 1)
            else:
                total += row_weight * targets.raw[place]
        middle += 0.5 * total / weight
    lower, upper = (first, first + 1) if direction > 0 else (first + 1, first)
    nodes.record.high[lower] = min(nodes.record.high[lower], middle)
    nodes.record.low[upper] = max(nodes.record.low[upper], middle)
