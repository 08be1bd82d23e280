"""The root of a tree: gradients and hessians as integers, and a node with all rows.

Sums of integers do not depend on their order, so neither threads nor the order of rows change a
tree. The integers have 11 bits and are packed into words, see `packed_words`. If gradients differ
too much in size for that, the integers have up to 40 bits and are not packed.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.gradient.hist.nodes import GROWING, TOO_UNEVEN
from margrove.ensemble.gradient.hist.packed_words import BITS, SAMPLES_OF_A_WORD, packed_word
from margrove.ensemble.gradient.hist.split_search import unit_of_gain

__all__ = [
    "FEW_SAMPLES",
    "bits_of_gradients",
    "find_largest",
    "is_packed_node",
    "may_be_packed",
    "power_for",
    "start_root",
    "write_packed",
    "write_wide",
]

_WIDE_BITS = 40
_BITS_OF_SUMS = 61
_LEAST_MEAN = 4  # of packed gradients and hessians: below it, too many of them would be 0
FEW_SAMPLES = 1024  # are never packed, because one may be a thousand times larger than the others
_MOST_COPIES = 16  # limit of the samples that a row may represent in a packed word


@kernel(inner=True)
def find_largest(source, start, end, largest, counts):
    """Write largest float64 (2,), of gradients and hessians, and counts int64 (2,): the number of
    samples, and the largest number that a row represents."""
    largest_g, largest_h, count, copies = 0.0, 0.0, np.int64(0), np.int64(1)
    for p in range(start, end):
        row = np.uint64(source.rows[p])
        largest_g = max(largest_g, abs(source.gradient[row]))
        largest_h = max(largest_h, source.hessian[row])
    if len(source.copies):
        for p in range(start, end):
            times = source.copies[np.uint64(source.rows[p])]
            count += times
            copies = max(copies, times)
    else:
        count = end - start
    largest[0], largest[1] = largest_g, largest_h
    counts[0], counts[1] = count, copies


@kernel(inner=True)
def bits_of_gradients(tree, is_wide, count):
    """The number of bits of gradients as integers."""
    bits = BITS
    if is_wide and tree.state[0].is_uneven == 1:
        bits = min(_WIDE_BITS, _BITS_OF_SUMS - _length_in_bits(count))
    return bits


@kernel(inner=True)
def _length_in_bits(number):
    length = 0
    while number > 0:
        number >>= 1
        length += 1
    return length


@kernel(inner=True)
def power_for(largest, bits):
    """The largest power of two whose product with `largest` has at most `bits` bits."""
    if largest == 0.0:
        return 1.0
    return math.ldexp(1.0, min(bits - math.frexp(largest)[1], 1000))


@kernel(inner=True)
def write_packed(source, start, end, g_scale, h_scale, rows, totals):
    """Write packed integers, and totals int64 (3,): sums of g, h and abs(g)."""
    total_g, total_h, size_of_g = np.int64(0), np.int64(0), np.int64(0)
    has_copies = len(source.copies) > 0
    for p in range(start, end):
        rows[p] = source.rows[p]
        row = np.uint64(source.rows[p])
        g = np.int64(np.rint(source.gradient[row] * g_scale))
        h = np.int64(np.rint(source.hessian[row] * h_scale))
        times = source.copies[row] if has_copies else np.int64(1)
        source.packed[row] = times * packed_word(g, h, 1)
        total_g += times * g
        total_h += times * h
        size_of_g += times * abs(g)
    totals[0], totals[1], totals[2] = total_g, total_h, size_of_g


@kernel(inner=True)
def write_wide(source, start, end, g_scale, h_scale, rows, totals):
    """Write separate integers, and totals int64 (3,): sums of g, h, and 0."""
    total_g, total_h = np.int64(0), np.int64(0)
    has_copies = len(source.copies) > 0
    for p in range(start, end):
        rows[p] = source.rows[p]
        row = np.uint64(source.rows[p])
        times = source.copies[row] if has_copies else np.int64(1)
        source.g[row] = times * np.int64(np.rint(source.gradient[row] * g_scale))
        source.h[row] = times * np.int64(np.rint(source.hessian[row] * h_scale))
        total_g += source.g[row]
        total_h += source.h[row]
    totals[0], totals[1], totals[2] = total_g, total_h, 0


@kernel(inner=True)
def may_be_packed(count, copies):
    """Whether packed integers can be precise enough, by the number of samples."""
    return count > FEW_SAMPLES and copies <= _MOST_COPIES


@kernel(inner=True)
def start_root(rules, tree, n, is_wide, largest, counts, totals):
    """Write the root of n rows if the integers are precise enough; else the tree is TOO_UNEVEN.

    For `largest` and `counts` see `find_largest`, for `totals` see `write_packed`.
    """
    state = tree.state[0]
    count, copies = counts[0], counts[1]
    is_uneven = totals[2] < _LEAST_MEAN * count and largest[0] > 0.0
    is_uneven |= totals[1] < _LEAST_MEAN * count and largest[1] > 0.0
    is_uneven |= count <= FEW_SAMPLES
    if not is_wide and (is_uneven or not may_be_packed(count, copies)):
        state.phase, state.is_uneven = TOO_UNEVEN, np.int64(is_uneven)
        return
    bits = bits_of_gradients(tree, is_wide, count)
    state.is_wide, state.copies = np.int64(is_wide), copies
    tree.units[0] = 1.0 / power_for(largest[0], bits)
    tree.units[1] = 1.0 / power_for(largest[1], bits)
    tree.units[2] = unit_of_gain(rules, tree.units)
    wide = _BITS_OF_SUMS - _length_in_bits(count)
    tree.scales[0], tree.scales[1] = power_for(largest[0], wide), power_for(largest[1], wide)
    _write_root(tree, n, totals[0], totals[1], count)


@kernel(inner=True)
def _write_root(tree, n, g, h, count):
    root, state = tree.nodes[0], tree.state[0]
    root.start, root.end, root.depth = 0, n, 0
    root.left = root.place = -1
    root.total_g, root.total_h, root.count = g, h, count
    root.is_packed = is_packed_node(tree, 0)
    root.low, root.high = -np.inf, np.inf
    for k in range(tree.open_sets.shape[1]):
        tree.open_sets[0, k] = True
    n_slots = len(tree.free)
    for k in range(n_slots):
        tree.free[k] = n_slots - 1 - k
    state.n_free = n_slots - 1
    root.slot = 0
    state.n_nodes, state.n_leaves, state.n_frontier = 1, 1, 0
    state.phase = GROWING


@kernel(inner=True)
def is_packed_node(tree, node):
    """Whether the histogram of a node consists of packed words."""
    is_small = tree.nodes.count[node] <= SAMPLES_OF_A_WORD
    return np.int64(is_small and tree.state[0].is_wide == 0)
