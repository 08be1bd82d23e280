"""The best split of a node of an exact tree, between all values, at the price of a histogram.

A node is searched in a histogram. Where a feature has many codes, neighbours share a bin, and the
histogram alone tells nearly always that no split inside of a bin can be the best: with the sum s,
the weight w and the scatter V of the targets in a bin, and the weights A and C on its two sides, a
split inside it gains at most

    (sqrt(the larger gain of the splits before and after the bin) + sqrt(e))^2,
    e = V w W / max((A + w) (C + w), 4 A C)                             (W = A + w + C)

as the sum of a part of the bin, of weight u, differs by at most sqrt(V u (w - u) / w) from u s / w.
The few bins that might hold something better are read row by row, in the order of their values.
So the splits are those between all values, at the price of a histogram. Nodes of few rows need
none: their rows are sorted.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime.jit import (
    kernel,
)
from margrove.ensemble.gradient.exact.nodes import (
    BESIDE,
    END,
    FIRST,
    PACKED,
    PACKED_LEFT,
    SLOT,
    START,
    SUM,
    WEIGHT,
    Asked,
)
from margrove.grove.grow.scores import (
    SQUARED,
    consider,
)
from margrove.grove.table.columns import (
    code_of,
)

__all__ = ["asked_of", "count", "n_rows", "search", "search_few", "subtract"]


@kernel(inner=True)
def asked_of(own, node):
    centre = np.int64(np.rint(own[SUM] / own[WEIGHT]))
    rest = own[SUM] - centre * own[WEIGHT]
    drift, slack = rest / own[WEIGHT], 4e-16 * abs(rest)
    return Asked(node, own[PACKED], own[WEIGHT], centre, rest, drift, slack)


@kernel(inner=True)
def search(group, words, rules, nodes, room, node):
    own = nodes.whole[node]
    place = node - nodes.state[FIRST]
    best, best_score = room.best[place], room.best_score[place:]
    asked = asked_of(own, node)
    sums, weights = room.sums[own[SLOT]], room.weights[own[SLOT]]
    for k in range(len(group.features)):
        read_bins(group, k, asked, rules, sums, weights, best, best_score)
    if len(group.members):
        for k in range(len(group.features)):
            if group.inside[group.first[k + 1]] > group.inside[group.first[k]]:
                look_inside(group, k, asked, rules, words, nodes, sums, weights, room, best,
                            best_score)  # fmt: skip


@kernel(inner=True)
def count(group, words, nodes, room, node):
    """The histogram of a node, in its slot."""
    start, end, slot = nodes.whole[node, START], nodes.whole[node, END], nodes.whole[node, SLOT]
    sums, weights = room.sums[slot], room.weights[slot]
    for cell in range(len(sums)):
        sums[cell] = 0
    for cell in range(len(weights)):
        weights[cell] = 0
    count_pairs(group, nodes.rows, start, end, words.pairs, sums)
    if len(weights):
        count_weights(group, nodes.rows, start, end, words.weight, weights)
    fill_omitted(group, nodes.whole[node], sums, weights)


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
        own = weight[row]
        for k in range(n_dense):
            weights[np.uint64(group.first[k]) + np.uint64(group.dense[row, k])] += own
        for q in range(group.starts[row], group.starts[row + np.uint64(1)]):
            weights[np.uint64(group.entries[q])] += own


@kernel(inner=True)
def fill_omitted(group, node, sums, weights):
    """The commonest bins of sparse features: what the others leave of the node."""
    for k in range(group.dense.shape[1], len(group.features)):
        at = group.omitted[k]
        target, packed, weight = node[SUM], node[PACKED], node[WEIGHT]
        for cell in range(group.first[k], group.first[k + 1]):
            target -= sums[2 * cell]
            packed -= sums[2 * cell + 1]
        sums[2 * at], sums[2 * at + 1] = target, packed
        if len(weights):
            for cell in range(group.first[k], group.first[k + 1]):
                weight -= weights[cell]
            weights[at] = weight


@kernel(inner=True)
def subtract(whole, room, small, large):
    """What is left of the parent's histogram, in its place."""
    sums, other = room.sums[whole[large, SLOT]], room.sums[whole[small, SLOT]]
    for cell in range(len(sums)):
        sums[cell] -= other[cell]
    weights, lighter = room.weights[whole[large, SLOT]], room.weights[whole[small, SLOT]]
    for cell in range(len(weights)):
        weights[cell] -= lighter[cell]


@kernel(inner=True)
def read_bins(group, k, asked, rules, sums, weights, best, best_score):
    """The splits between the bins of a feature."""
    mask, is_weighted = rules.mask, len(weights) > 0
    left, packed_left, weight_left = np.int64(0), np.int64(0), np.int64(0)
    first, end = group.first[k], group.first[k + 1]
    pairs = sums[2 * first : 2 * end]
    enough = to_beat(best, asked)
    for at in range(end - first - 1):
        left += pairs[2 * at]
        packed_left += pairs[2 * at + 1]
        weight_left = weight_left + weights[first + at] if is_weighted else packed_left & mask
        # An empty bin is as good as the one before it, which is no improvement.
        if may_beat(left, weight_left, asked, enough) and is_better(
            left, packed_left, weight_left, asked, rules, group.features[k],
            group.last_code[first + at], best, best_score,
        ):  # fmt: skip
            enough = to_beat(best, asked)
            cell, following = first + at, first + at + 1
            while sums[2 * following + 1] == 0:
                following += 1
            is_shared = is_many(group, cell) or is_many(group, following)
            best[BESIDE] = -1 if is_shared else group.last_code[following]


@kernel(inner=True)
def is_many(group, cell):
    """Whether a bin has several codes."""
    return group.inside[cell + 1] > group.inside[cell]


@kernel(inner=True)
def apart_of(left, weight_left, asked):
    """By how much the sum of a part differs from what its weight has by the mean of the node."""
    return abs(float(left - asked.centre * weight_left) - asked.drift * float(weight_left))


@kernel(inner=True)
def to_beat(best, asked):
    """The gain of the best split so far, a unit of weight, or a little less."""
    if best[0] < 0:
        return 0.0
    wa, wb = float(best[2]), float(best[4])
    apart = max(abs(float(best[1]) - asked.drift * wa) - asked.slack, 0.0)
    return apart * apart / (wa * wb) * (1.0 - 1e-12)


@kernel(inner=True)
def may_beat(left, weight_left, asked, enough):
    """Whether a split may gain more than `enough`, a unit of weight."""
    wa, slack = float(weight_left), asked.slack
    apart = apart_of(left, weight_left, asked) + slack
    return apart * apart > enough * (wa * (float(asked.weight) - wa)) + slack * slack


@kernel(inner=True)
def is_better(left, packed_left, weight_left, asked, rules, feature, code, best, best_score):
    """Whether a split is allowed and the best so far; then it is kept."""
    samples_left = packed_left & rules.mask
    samples_right = (asked.packed & rules.mask) - samples_left
    weight_right = asked.weight - weight_left
    if (
        min(samples_left, samples_right) < rules.min_leaf
        or min(weight_left, weight_right) < rules.min_weight
    ):
        return False
    own = left - asked.centre * weight_left
    other = asked.rest - own
    a, b, wa, wb = float(own), float(other), float(weight_left), float(weight_right)
    score = (a * a * wb + b * b * wa) / (wa * wb)
    if not consider(
        SQUARED, False, own, weight_left, other, weight_right, score, feature, code, best,
        best_score,
    ):  # fmt: skip
        return False
    best[PACKED_LEFT] = packed_left
    return True


@kernel(inner=True)
def look_inside(group, k, asked, rules, words, nodes, sums, weights, room, best, best_score):
    """The splits inside of bins that may be better than the best so far; see the module."""
    mask, is_weighted = rules.mask, len(weights) > 0
    weight = float(asked.weight)
    left, packed_left, weight_left = np.int64(0), np.int64(0), np.int64(0)
    first, end = group.first[k], group.first[k + 1]
    pairs, inside = sums[2 * first : 2 * end], group.inside[first : end + 1]
    enough = to_beat(best, asked) * (1.0 - 1e-9)
    for at in range(end - first):
        own, packed = pairs[2 * at], pairs[2 * at + 1]
        more = weights[first + at] if is_weighted else packed & mask
        if inside[at + 1] > inside[at] and packed & mask > 1:
            wa, w = float(weight_left), float(more)
            wc = weight - wa - w
            before = apart_of(left, weight_left, asked) + asked.slack
            after = apart_of(left + own, weight_left + more, asked) + asked.slack
            side = max(
                before * before / (wa * (w + wc)) if wa > 0.0 else 0.0,
                after * after / ((wa + w) * wc) if wc > 0.0 else 0.0,
            )
            sides = max((wa + w) * (wc + w), 4.0 * wa * wc)
            extra = scatter_at_most(own, more, packed, rules) / sides
            if (
                2.0 * (side + extra) >= enough
                and side + extra + 2.0 * np.sqrt(side * extra) >= enough
            ):
                read_inside(group, k, first + at, left, packed_left, weight_left, asked, rules,
                            words, nodes.node_of, room, best, best_score)  # fmt: skip
                enough = to_beat(best, asked) * (1.0 - 1e-9)
        left += own
        packed_left += packed
        weight_left += more


@kernel(inner=True)
def scatter_at_most(target, weight, packed, rules):
    """By the squares that were rounded up: of squares around the mean, times the weight."""
    squares = float(packed >> rules.bits) * rules.square * (1.0 + 1e-12)
    return max(squares * float(weight) - float(target) * float(target), 0.0)


@kernel(inner=True)
def read_inside(
    group, k, cell, left, packed_left, weight_left, asked, rules, words, node_of, room, best,
    best_score,
):  # fmt: skip
    """The splits between the codes of one bin."""
    low, top = np.uint32(0x7FFFFFFF), np.uint32(31)
    code = group.last_code[cell - 1] + 1 if cell > group.first[k] else np.int64(0)
    n = np.uint64(0)
    for at in range(group.inside[cell], group.inside[cell + 1]):
        entry = group.members[at]
        row = entry & low
        room.keys[n] = (code << 32) | np.int64(row)
        code += np.int64(entry >> top)
        n += np.uint64(node_of[np.uint64(row)] == asked.node)
    read_in_order(room.keys, np.int64(n), left, packed_left, weight_left, asked, rules, words,
                  group.features[k], best, best_score)  # fmt: skip


@kernel(inner=True)
def read_in_order(
    keys, n, left, packed_left, weight_left, asked, rules, words, feature, best, best_score
):
    """The splits between the codes of n rows: keys are code << 32 | row, rising."""
    mask, is_weighted = rules.mask, len(words.weight) > 0
    enough = to_beat(best, asked)
    for p in range(n - 1):
        row = np.uint64(keys[p] & 0xFFFFFFFF)
        left += words.pairs[np.uint64(2) * row]
        packed_left += words.pairs[np.uint64(2) * row + np.uint64(1)]
        weight_left = weight_left + words.weight[row] if is_weighted else packed_left & mask
        if (
            may_beat(left, weight_left, asked, enough)
            and keys[p] >> 32 != keys[p + 1] >> 32
            and is_better(
                left, packed_left, weight_left, asked, rules, feature, keys[p] >> 32, best,
                best_score,
            )
        ):  # fmt: skip
            enough = to_beat(best, asked)
            best[BESIDE] = keys[p + 1] >> 32


@kernel(inner=True)
def search_few(group, codes, words, rules, nodes, room, node):
    """The best split of a node of few rows, which are sorted by each feature."""
    own = nodes.whole[node]
    asked = asked_of(own, node)
    place = node - nodes.state[FIRST]
    start, n = own[START], own[END] - own[START]
    keys, nothing = room.keys, np.int64(0)
    for k in range(len(group.features)):
        feature = group.features[k]
        for p in range(n):
            row = np.int64(nodes.rows[start + p])
            key = (code_of(codes, feature, row) << 32) | row
            free = p
            while free > 0 and keys[free - 1] > key:
                keys[free] = keys[free - 1]
                free -= 1
            keys[free] = key
        if keys[0] >> 32 != keys[n - 1] >> 32:
            read_in_order(keys, n, nothing, nothing, nothing, asked, rules, words, feature,
                          room.best[place], room.best_score[place:])  # fmt: skip


@kernel(inner=True)
def n_rows(node):
    return node[END] - node[START]
