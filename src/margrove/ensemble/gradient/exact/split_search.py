"""The search for the best split of a node of an exact tree.

A node is searched in a histogram. If a feature has many codes, neighbours share a bin. The
histogram alone almost always proves that no split inside of a bin is the best: with the sum s, the
weight w and the scatter V of the targets in a bin, and the weights A and C on its two sides, a
split inside it gains at most

    (sqrt(the larger gain of the splits before and after the bin) + sqrt(e))^2,
    e = V w W / max((A + w) (C + w), 4 A C)                             (W = A + w + C)

because the sum of a subset of the bin with weight u differs by at most sqrt(V u (w - u) / w) from
u s / w. The few bins that may contain a better split are read row by row, sorted by their values.
So all splits between different values are considered, at the cost of a histogram. For nodes of few
rows, the rows are sorted instead.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.gradient.exact.nodes import LeftSums, SearchedNode
from margrove.grove.grow.search import SQUARED, consider
from margrove.grove.table import code_of

__all__ = [
    "consider_split",
    "count",
    "n_rows",
    "scatter_at_most",
    "search",
    "search_few",
    "searched_node",
    "subtract",
]


@kernel(inner=True)
def searched_node(record, node):
    centre = np.int64(np.rint(record.target / record.weight))
    rest = record.target - centre * record.weight
    drift, slack = rest / record.weight, 4e-16 * abs(rest)
    return SearchedNode(node, record.packed, record.weight, centre, rest, drift, slack)


@kernel(inner=True)
def search(group, words, rules, tree, space, node):
    """Find the best split of a node by its histogram."""
    record, best = tree.nodes[node], space.best[node - tree.state[0].first]
    searched = searched_node(record, node)
    sums, weights = space.sums[record.slot], space.weights[record.slot]
    for k in range(len(group.features)):
        search_between_bins(group, k, searched, rules, sums, weights, best)
    if len(group.members):
        for k in range(len(group.features)):
            if group.inside[group.first[k + 1]] > group.inside[group.first[k]]:
                search_inside_bins(group, k, searched, rules, words, tree.node_of, sums, weights,
                                   space.keys, best)  # fmt: skip


@kernel(inner=True)
def count(group, words, tree, space, node):
    """Compute the histogram of a node in its slot."""
    record = tree.nodes[node]
    sums, weights = space.sums[record.slot], space.weights[record.slot]
    for cell in range(len(sums)):
        sums[cell] = 0
    for cell in range(len(weights)):
        weights[cell] = 0
    count_pairs(group, tree.rows, record.start, record.end, words.pairs, sums)
    if len(weights):
        count_weights(group, tree.rows, record.start, record.end, words.weight, weights)
    fill_omitted(group, record, sums, weights)


@kernel(inner=True)
def count_pairs(group, rows, start, end, pairs, sums):
    n_dense = group.dense.shape[1]
    has_entries = len(group.entries) > 0
    one, two = np.uint64(1), np.uint64(2)
    for p in range(start, end):
        row = np.uint64(rows[p])
        target, packed = pairs[two * row], pairs[two * row + one]
        for k in range(n_dense):
            at = two * (np.uint64(group.first[k]) + np.uint64(group.dense[row, k]))
            sums[at] += target
            sums[at + one] += packed
        if has_entries:
            for q in range(group.starts[row], group.starts[row + one]):
                at = two * np.uint64(group.entries[q])
                sums[at] += target
                sums[at + one] += packed


@kernel(inner=True)
def count_weights(group, rows, start, end, weight, weights):
    n_dense = group.dense.shape[1]
    for p in range(start, end):
        row = np.uint64(rows[p])
        mass = weight[row]
        for k in range(n_dense):
            weights[np.uint64(group.first[k]) + np.uint64(group.dense[row, k])] += mass
        for q in range(group.starts[row], group.starts[row + np.uint64(1)]):
            weights[np.uint64(group.entries[q])] += mass


@kernel(inner=True)
def fill_omitted(group, node, sums, weights):
    """Fill the omitted bins of sparse features: the sums of the node minus the other bins."""
    for k in range(group.dense.shape[1], len(group.features)):
        at = group.omitted[k]
        target, packed, weight = node.target, node.packed, node.weight
        for cell in range(group.first[k], group.first[k + 1]):
            target -= sums[2 * cell]
            packed -= sums[2 * cell + 1]
        sums[2 * at], sums[2 * at + 1] = target, packed
        if len(weights):
            for cell in range(group.first[k], group.first[k + 1]):
                weight -= weights[cell]
            weights[at] = weight


@kernel(inner=True)
def subtract(nodes, space, small, large):
    """The histogram of the parent minus that of the smaller child, in place."""
    sums, other = space.sums[nodes.slot[large]], space.sums[nodes.slot[small]]
    for cell in range(len(sums)):
        sums[cell] -= other[cell]
    weights, lighter = space.weights[nodes.slot[large]], space.weights[nodes.slot[small]]
    for cell in range(len(weights)):
        weights[cell] -= lighter[cell]


@kernel(inner=True)
def search_between_bins(group, k, searched, rules, sums, weights, best):
    """Consider the splits between the bins of a feature."""
    mask, is_weighted = rules.mask, len(weights) > 0
    left, packed_left, weight_left = np.int64(0), np.int64(0), np.int64(0)
    first, end = group.first[k], group.first[k + 1]
    pairs = sums[2 * first : 2 * end]
    enough = to_beat(best, searched)
    for at in range(end - first - 1):
        left += pairs[2 * at]
        packed_left += pairs[2 * at + 1]
        weight_left = weight_left + weights[first + at] if is_weighted else packed_left & mask
        # A split after an empty bin is equal to the one before it, and does not improve on it.
        if may_beat(left, weight_left, searched, enough) and is_better(
            left, packed_left, weight_left, searched, rules, group.features[k],
            group.last_code[first + at], best,
        ):  # fmt: skip
            enough = to_beat(best, searched)
            cell, following = first + at, first + at + 1
            while sums[2 * following + 1] == 0:
                following += 1
            is_shared = is_many(group, cell) or is_many(group, following)
            best.next_code = -1 if is_shared else group.last_code[following]


@kernel(inner=True)
def is_many(group, cell):
    """Whether a bin has several codes."""
    return group.inside[cell + 1] > group.inside[cell]


@kernel(inner=True)
def apart_of(left, weight_left, searched):
    """The difference of the sum on the left from its weight times the mean of the node."""
    return abs(float(left - searched.centre * weight_left) - searched.drift * float(weight_left))


@kernel(inner=True)
def to_beat(best, searched):
    """The gain of the best split so far for a unit of weight, or slightly less."""
    if best.feature < 0:
        return 0.0
    wa, wb = float(best.left_weight), float(best.right_weight)
    apart = max(abs(float(best.left_target) - searched.drift * wa) - searched.slack, 0.0)
    return apart * apart / (wa * wb) * (1.0 - 1e-12)


@kernel(inner=True)
def may_beat(left, weight_left, searched, enough):
    """Whether a split may gain more than `enough` for a unit of weight."""
    wa, slack = float(weight_left), searched.slack
    apart = apart_of(left, weight_left, searched) + slack
    return apart * apart > enough * (wa * (float(searched.weight) - wa)) + slack * slack


@kernel(inner=True)
def is_better(left, packed_left, weight_left, searched, rules, feature, code, best):
    """Whether a split is allowed and the best so far; then it is stored."""
    samples_left = packed_left & rules.mask
    samples_right = (searched.packed & rules.mask) - samples_left
    weight_right = searched.weight - weight_left
    if (
        min(samples_left, samples_right) < rules.min_leaf
        or min(weight_left, weight_right) < rules.min_weight
    ):
        return False
    target = left - searched.centre * weight_left
    other = searched.rest - target
    a, b, wa, wb = float(target), float(other), float(weight_left), float(weight_right)
    score = (a * a * wb + b * b * wa) / (wa * wb)
    if not consider_split(target, weight_left, other, weight_right, score, feature, code, best):
        return False
    best.left_packed = packed_left
    return True


@kernel(inner=True)
def consider_split(target, weight, other, other_weight, score, feature, code, best):
    """Whether a split is better than the best so far; then it is stored.

    `target` and `weight` belong to the left child, `other` and `other_weight` to the right one.
    """
    if not consider(
        SQUARED, False, target, weight, other, other_weight, score, feature, code, best.candidate,
        best.score,
    ):  # fmt: skip
        return False
    best.feature, best.code = feature, code
    best.left_target, best.left_weight = target, weight
    best.right_target, best.right_weight = other, other_weight
    return True


@kernel(inner=True)
def search_inside_bins(group, k, searched, rules, words, node_of, sums, weights, keys, best):
    """Consider splits inside of bins that may be better than the best so far; see the module."""
    mask, is_weighted = rules.mask, len(weights) > 0
    weight = float(searched.weight)
    left, packed_left, weight_left = np.int64(0), np.int64(0), np.int64(0)
    first, end = group.first[k], group.first[k + 1]
    pairs, inside = sums[2 * first : 2 * end], group.inside[first : end + 1]
    enough = to_beat(best, searched) * (1.0 - 1e-9)
    for at in range(end - first):
        target, packed = pairs[2 * at], pairs[2 * at + 1]
        more = weights[first + at] if is_weighted else packed & mask
        if inside[at + 1] > inside[at] and packed & mask > 1:
            wa, w = float(weight_left), float(more)
            wc = weight - wa - w
            before = apart_of(left, weight_left, searched) + searched.slack
            after = apart_of(left + target, weight_left + more, searched) + searched.slack
            side = max(
                before * before / (wa * (w + wc)) if wa > 0.0 else 0.0,
                after * after / ((wa + w) * wc) if wc > 0.0 else 0.0,
            )
            sides = max((wa + w) * (wc + w), 4.0 * wa * wc)
            extra = scatter_at_most(target, more, packed, rules) / sides
            if (
                2.0 * (side + extra) >= enough
                and side + extra + 2.0 * np.sqrt(side * extra) >= enough
            ):
                before_bin = LeftSums(left, packed_left, weight_left)
                search_inside_bin(group, k, first + at, before_bin, searched, rules, words,
                                  node_of, keys, best)  # fmt: skip
                enough = to_beat(best, searched) * (1.0 - 1e-9)
        left += target
        packed_left += packed
        weight_left += more


@kernel(inner=True)
def scatter_at_most(target, weight, packed, rules):
    """An upper bound of the sum of squares around the mean times the weight, from the squares that
    were rounded up."""
    squares = float(packed >> rules.bits) * rules.square * (1.0 + 1e-12)
    return max(squares * float(weight) - float(target) * float(target), 0.0)


@kernel(inner=True)
def search_inside_bin(group, k, cell, left, searched, rules, words, node_of, keys, best):
    """Consider the splits between the codes of one bin; left: sums of all bins before it."""
    low, top = np.uint32(0x7FFFFFFF), np.uint32(31)
    code = group.last_code[cell - 1] + 1 if cell > group.first[k] else np.int64(0)
    n = np.uint64(0)
    for at in range(group.inside[cell], group.inside[cell + 1]):
        entry = group.members[at]
        row = entry & low
        keys[n] = (code << 32) | np.int64(row)
        code += np.int64(entry >> top)
        n += np.uint64(node_of[np.uint64(row)] == searched.node)
    search_sorted_rows(keys, np.int64(n), left, searched, rules, words, group.features[k], best)


@kernel(inner=True)
def search_sorted_rows(keys, n, left, searched, rules, words, feature, best):
    """Consider the splits between the codes of n rows; keys are code << 32 | row, ascending; left:
    sums of all rows before them."""
    mask, is_weighted = rules.mask, len(words.weight) > 0
    target_left, packed_left, weight_left = left.target, left.packed, left.weight
    enough = to_beat(best, searched)
    for p in range(n - 1):
        row = np.uint64(keys[p] & 0xFFFFFFFF)
        target_left += words.pairs[np.uint64(2) * row]
        packed_left += words.pairs[np.uint64(2) * row + np.uint64(1)]
        weight_left = weight_left + words.weight[row] if is_weighted else packed_left & mask
        if (
            may_beat(target_left, weight_left, searched, enough)
            and keys[p] >> 32 != keys[p + 1] >> 32
            and is_better(
                target_left, packed_left, weight_left, searched, rules, feature, keys[p] >> 32,
                best,
            )
        ):  # fmt: skip
            enough = to_beat(best, searched)
            best.next_code = keys[p + 1] >> 32


@kernel(inner=True)
def search_few(group, codes, words, rules, tree, space, node):
    """Find the best split of a node of few rows, which are sorted by each feature."""
    record, best = tree.nodes[node], space.best[node - tree.state[0].first]
    searched = searched_node(record, node)
    start, n = record.start, record.end - record.start
    keys, zeros = space.keys, LeftSums(np.int64(0), np.int64(0), np.int64(0))
    for k in range(len(group.features)):
        feature = group.features[k]
        for p in range(n):
            row = np.int64(tree.rows[start + p])
            key = (code_of(codes, feature, row) << 32) | row
            free = p
            while free > 0 and keys[free - 1] > key:
                keys[free] = keys[free - 1]
                free -= 1
            keys[free] = key
        if keys[0] >> 32 != keys[n - 1] >> 32:
            search_sorted_rows(keys, n, zeros, searched, rules, words, feature, best)


@kernel(inner=True)
def n_rows(node):
    return node.end - node.start
