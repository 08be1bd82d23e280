"""Loops over some rows of a forest's table, the others being elsewhere.

Samples are drawn as in `resampling`: who is drawn depends on the places of rows on the line alone,
so whoever has some of the rows, in the order of their places, finds out about these without the
others. Losses are summed up in whole numbers, as `node_search` has it, so that sums over parts of a
node add up to the node's.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime.jit import kernel
from margrove.ensemble.bootstrap.resampling import _FEW, _below, _count_left, _mixed
from margrove.grove.grow.node_search import _loss
from margrove.grove.grow.scores import score_of_node

__all__ = ["draw_some", "largest_loss", "score_of_sums", "strike_some", "sum_losses"]


@kernel(inner=True)
def _first_beyond(borders, low, high, unit):
    """The first of borders[low:high], which ascend, that is larger; high if none is."""
    while low < high:
        middle = (low + high) // 2
        if borders[middle] > unit:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def draw_some(begins, ends, n_units, key, n_draws, drawn):
    """Fill `drawn`, zeros (m,): how often rows are drawn that lie on units begins .. ends - 1 of a
    line of n_units; what `resampling.draw` finds for them."""
    stack = np.empty((128, 5), np.int64)
    stack[0] = (0, n_units, 0, len(ends), n_draws)
    size = 1
    while size:
        size -= 1
        a, b, low, high, count = stack[size]
        low = _first_beyond(ends, low, high, a)
        high = _first_beyond(begins, low, high, b - 1)
        if low >= high or count == 0:
            continue
        own = _mixed(_mixed(key, np.uint64(a)), np.uint64(b))
        if begins[low] <= a and b <= ends[low]:
            drawn[low] += count
        elif count <= _FEW:
            for k in range(count):
                own += np.uint64(0x9E3779B97F4A7C15)
                unit = a + np.int64(_below(_mixed(own, np.uint64(k)), np.uint64(b - a)))
                row = _first_beyond(ends, low, high, unit)
                if row < high and begins[row] <= unit:
                    drawn[row] += 1
        else:
            middle = a + (b - a) // 2
            left = _count_left(own, count, np.uint64(middle - a), np.uint64(b - a))
            stack[size] = (middle, b, low, high, count - left)
            stack[size + 1] = (a, middle, low, high, left)
            size += 2


@kernel
def strike_some(begins, ends, n_units, key, n_draws, left_out):
    """left_out[row] -= units of the row that are drawn; what `resampling` strikes out of them."""
    stack = np.empty((128, 5), np.int64)
    stack[0] = (0, n_units, 0, len(ends), n_draws)
    size = 1
    units = np.empty(_FEW, np.int64)
    while size:
        size -= 1
        a, b, low, high, count = stack[size]
        low = _first_beyond(ends, low, high, a)
        high = _first_beyond(begins, low, high, b - 1)
        if low >= high or count == 0:
            continue
        own = _mixed(_mixed(key, np.uint64(a)), np.uint64(b))
        if b - a == 1:
            left_out[low] -= 1
        elif count <= _FEW:
            for k in range(count):
                own += np.uint64(0x9E3779B97F4A7C15)
                units[k] = a + np.int64(_below(_mixed(own, np.uint64(k)), np.uint64(b - a)))
            drawn = np.sort(units[:count])
            for k in range(count):
                if k == 0 or drawn[k] != drawn[k - 1]:
                    row = _first_beyond(ends, low, high, drawn[k])
                    if row < high and begins[row] <= drawn[k]:
                        left_out[row] -= 1
        else:
            middle = a + (b - a) // 2
            left = _count_left(own, count, np.uint64(middle - a), np.uint64(b - a))
            stack[size] = (middle, b, low, high, count - left)
            stack[size + 1] = (a, middle, low, high, left)
            size += 2


@kernel
def largest_loss(raw, low, above, criterion):
    """Of targets, where the value is low + above."""
    largest = 0.0
    for i in range(len(raw)):
        distance = (raw[i] - low) - above
        largest = max(largest, _loss(criterion, distance, low + above))
    return largest


@kernel
def sum_losses(raw, weight, low, above, criterion, largest, scale, counted):
    """The sum of the losses, a whole number: shares of the largest, times the scale."""
    whole = 0
    for i in range(len(raw)):
        distance = (raw[i] - low) - above
        share = _loss(criterion, distance, low + above) / largest
        if counted:
            whole += weight[i] * np.int64(np.rint(share * scale))
        else:
            whole += np.int64(np.rint(weight[i] * share * scale))
    return whole


@kernel
def score_of_sums(criterion, counted, stats, starts, weight, table, scale):
    """The score of a node of classes from the sums of its parts; see `scores`."""
    return score_of_node(criterion, counted, stats, starts, weight, table, scale)
