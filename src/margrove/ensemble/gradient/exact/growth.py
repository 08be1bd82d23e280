"""Nodes of an exact tree: the root, splits level by level, and where all rows end up."""

from __future__ import annotations

import numpy as np

from margrove._runtime.jit import (
    kernel,
)
from margrove.ensemble.gradient.exact.nodes import (
    BESIDE,
    CODE,
    DEPTH,
    END,
    FEATURE,
    FEW_ROWS,
    FIRST,
    INHERITS,
    IS_OPEN,
    LAST,
    LEFT,
    N_FREE,
    N_NODES,
    NEXT_CODE,
    PACKED,
    PACKED_LEFT,
    SLOT,
    SPAN,
    START,
    SUM,
    WEIGHT,
)
from margrove.ensemble.gradient.exact.split_search import (
    asked_of,
    count,
    n_rows,
    scatter_at_most,
    search,
    search_few,
    subtract,
)
from margrove.grove.grow.scores import (
    SQUARED,
    consider,
)
from margrove.grove.table.columns import (
    code_of,
)
from margrove.grove.table.targets import (
    BITS_OF_SUMS,
    bits_of,
)

__all__ = [
    "finish",
    "grow_alone",
    "plant",
    "search_span",
    "split_span",
    "take_better",
    "walk_others",
]


@kernel(bare=True)
def plant(gradient, samples, is_counted, scale, rules, chosen, words, nodes):
    """Targets in whole numbers, and a root of the chosen rows."""
    is_weighted = len(words.weight) > 0
    target, weight, packed = np.int64(0), np.int64(0), np.int64(0)
    for p in range(len(chosen)):
        row = np.uint64(chosen[p])
        nodes.rows[p] = chosen[p]
        nodes.node_of[row] = 0
        copies = samples[row] if len(samples) else np.int64(1)
        mass = words.weight[row] if is_weighted else copies
        real = -gradient[row] * scale.first * scale.second
        if is_counted:
            whole = mass * np.int64(np.rint(real))
        else:
            whole = np.int64(np.rint(float(mass) * real))
        share = real * scale.share
        square = np.int64(np.ceil(float(mass) * (share * share * scale.square)))
        word = (square << rules.bits) + copies
        words.pairs[np.uint64(2) * row], words.pairs[np.uint64(2) * row + np.uint64(1)] = (
            whole,
            word,
        )
        target += whole
        weight += mass
        packed += word
    nodes.state[N_NODES], nodes.state[FIRST], nodes.state[LAST] = 1, 0, 1
    nodes.state[N_FREE] = len(nodes.free) - 1
    for slot in range(len(nodes.free) - 1):
        nodes.free[slot] = slot + 1
    root = np.int64(0)
    plant_child(rules, nodes, root, root, root, len(chosen), target, weight, packed)
    nodes.whole[root, SLOT] = 0


@kernel(bare=True)
def grow_alone(group, codes, words, rules, nodes, room):
    """Span after span, as long as there is room for all children."""
    state = nodes.state
    while state[FIRST] < state[LAST]:
        if state[N_NODES] + 2 * (state[LAST] - state[FIRST]) > len(nodes.whole):
            return
        search_nodes(group, codes, words, rules, nodes, room)
        split_nodes(codes, words, rules, nodes, room)


@kernel(bare=True)
def search_span(group, codes, words, rules, nodes, room):
    search_nodes(group, codes, words, rules, nodes, room)


@kernel(bare=True)
def split_span(codes, words, rules, nodes, room):
    split_nodes(codes, words, rules, nodes, room)


@kernel(inner=True)
def search_nodes(group, codes, words, rules, nodes, room):
    """The best splits of the nodes whose turn it is, by the features of a group."""
    first, last = nodes.state[FIRST], nodes.state[LAST]
    whole = nodes.whole
    for place in range(first, last):
        node, sibling = in_turn(whole, place)
        room.best[node - first, 0] = -1
        room.best_score[node - first] = -np.inf
        if is_rest(whole[node]):
            subtract(whole, room, sibling, node)
        elif is_large(whole[node]) or is_rest(whole[sibling]):
            count(group, words, nodes, room, node)
        if is_large(whole[node]):
            search(group, words, rules, nodes, room, node)
        elif whole[node, IS_OPEN]:
            search_few(group, codes, words, rules, nodes, room, node)


@kernel(inner=True)
def in_turn(whole, place):
    """A node and its sibling; of the two, the one of fewer rows comes first."""
    if place == 0:
        return place, place
    left = place - 1 + place % 2
    is_left_large = n_rows(whole[left]) > n_rows(whole[left + 1])
    node = place if not is_left_large else 2 * left + 1 - place
    return node, 2 * left + 1 - node


@kernel(inner=True)
def is_rest(node):
    """Whether the histogram of a node is what its sibling leaves of their parent's."""
    return is_large(node) and node[INHERITS]


@kernel(inner=True)
def is_large(node):
    """Whether a node is searched by its histogram."""
    return node[IS_OPEN] and n_rows(node) > FEW_ROWS


@kernel(bare=True)
def take_better(nodes, other, room):
    """Of each node, the better of the best splits of two groups of features goes to `room`."""
    for place in range(nodes.state[LAST] - nodes.state[FIRST]):
        own = other.best[place]
        if own[0] >= 0 and consider(
            SQUARED, False, own[1], own[2], own[3], own[4], other.best_score[place], own[0],
            own[5], room.best[place], room.best_score[place:],
        ):  # fmt: skip
            room.best[place, PACKED_LEFT] = own[PACKED_LEFT]
            room.best[place, BESIDE] = own[BESIDE]


@kernel(inner=True)
def split_nodes(codes, words, rules, nodes, room):
    """Part the rows of the nodes that were searched."""
    first, last = nodes.state[FIRST], nodes.state[LAST]
    for node in range(first, last):
        if nodes.whole[node, IS_OPEN]:
            best = room.best[node - first]
            if best[0] >= 0 and is_worth_it(words, rules, nodes, node, best):
                split(codes, rules, nodes, node, best)
            else:
                give_back(nodes, nodes.whole[node, SLOT])
    nodes.state[FIRST] = last
    nodes.state[LAST] = min(nodes.state[N_NODES], last + SPAN)


@kernel(inner=True)
def is_worth_it(words, rules, nodes, node, best):
    """Whether a split gains more than rounding; its gain is kept."""
    own = nodes.whole[node]
    asked = asked_of(own, node)
    wa, wb = float(best[2]), float(best[4])
    apart = abs(float(best[1]) - asked.drift * wa)
    gain = apart * apart * (wa + wb) / (wa * wb)
    nodes.gain[node] = gain
    # A whole number may be wrong by a half, of each sample.
    n_left = float(best[PACKED_LEFT] & rules.mask)
    n_right = float(own[PACKED] & rules.mask) - n_left
    rounding = 0.25 * (n_left * n_left / wa + n_right * n_right / wb)
    if gain <= rounding or apart <= 2.0 * asked.slack:
        return False
    nothing = rules.nothing * (wa + wb)
    return gain > nothing or scatter_of(words, rules, nodes, node) > nothing


@kernel(inner=True)
def scatter_of(words, rules, nodes, node):
    """The sum of squares around the mean; of whole numbers too, for the sake of their order."""
    mask, is_weighted = rules.mask, len(words.weight) > 0
    own = nodes.whole[node]
    mean = own[SUM] / own[WEIGHT]
    most = scatter_at_most(own[SUM], own[WEIGHT], own[PACKED], rules) / own[WEIGHT]
    if most == 0.0:
        return 0.0
    factor = 2.0 ** float(BITS_OF_SUMS - bits_of(most))
    total = np.int64(0)
    for p in range(own[START], own[END]):
        row = np.uint64(nodes.rows[p])
        at = np.uint64(2) * row
        packed = words.pairs[at + np.uint64(1)]
        weight = float(words.weight[row] if is_weighted else packed & mask)
        apart = float(words.pairs[at]) - weight * mean
        total += np.int64(np.rint(apart * apart / weight * factor))
    return float(total) / factor


@kernel(inner=True)
def split(codes, rules, nodes, node, best):
    """Part the rows of a node and make its children."""
    whole, state = nodes.whole, nodes.state
    feature, left = best[0], state[N_NODES]
    place = codes.place[feature]
    if codes.width[feature] == 0:
        middle, code, next_code = part(codes.narrow[place], best, nodes, node, left)
    elif codes.width[feature] == 1:
        middle, code, next_code = part(codes.medium[place], best, nodes, node, left)
    else:
        middle, code, next_code = part(codes.wide[place], best, nodes, node, left)
    own = whole[node]
    own[LEFT], own[FEATURE], own[CODE], own[NEXT_CODE] = left, feature, code, next_code
    state[N_NODES] += 2
    target = best[1] + asked_of(own, node).centre * best[2]
    depth = own[DEPTH] + 1
    plant_child(rules, nodes, depth, left, own[START], middle, target, best[2], best[PACKED_LEFT])
    plant_child(rules, nodes, depth, left + 1, middle, own[END], own[SUM] - target, best[4],
                own[PACKED] - best[PACKED_LEFT])  # fmt: skip
    is_left_large = 2 * (middle - own[START]) > own[END] - own[START]
    large = left if is_left_large else left + 1
    small = 2 * left + 1 - large
    if is_large(whole[large]):
        whole[large, SLOT] = own[SLOT]
        whole[large, INHERITS] = own[SLOT] < len(nodes.free)
    else:
        give_back(nodes, own[SLOT])
    if is_large(whole[small]) and state[N_FREE] > 0:
        state[N_FREE] -= 1
        whole[small, SLOT] = nodes.free[state[N_FREE]]


@kernel(inner=True)
def plant_child(rules, nodes, depth, node, start, end, target, weight, packed):
    """A node without children, and without a slot that is kept."""
    own = nodes.whole[node]
    own[START], own[END], own[DEPTH] = start, end, depth
    own[SUM], own[WEIGHT], own[PACKED] = target, weight, packed
    own[LEFT] = own[FEATURE] = own[CODE] = own[NEXT_CODE] = -1
    own[IS_OPEN] = is_open(own, rules)
    own[SLOT], own[INHERITS] = len(nodes.free), 0


@kernel(inner=True)
def is_open(node, rules):
    samples = node[PACKED] & rules.mask
    return (
        node[DEPTH] < rules.max_depth
        and samples >= max(rules.min_split, 2 * rules.min_leaf)
        and node[WEIGHT] >= 2 * rules.min_weight
    )


@kernel(inner=True)
def give_back(nodes, slot):
    if slot < len(nodes.free):
        nodes.free[nodes.state[N_FREE]] = slot
        nodes.state[N_FREE] += 1


@kernel(inner=True)
def part(column, best, nodes, node, left):
    """The rows that go left first; where the others begin, and the codes beside the split."""
    rows, spare, one = nodes.rows, nodes.spare, np.uint64(1)
    start, end, limit = nodes.whole[node, START], nodes.whole[node, END], best[5]
    at_left, at_right = np.uint64(start), np.uint64(0)
    for p in range(start, end):
        row = rows[p]
        is_right = np.uint64(np.int64(column[np.uint64(row)]) > limit)
        rows[at_left] = row
        spare[at_right] = row
        at_left += one - is_right
        at_right += is_right
        nodes.node_of[np.uint64(row)] = left + np.int64(is_right)
    middle = np.int64(at_left)
    for p in range(end - middle):
        rows[middle + p] = spare[p]
    if best[BESIDE] >= 0:
        return middle, limit, best[BESIDE]
    code, next_code = np.int64(-1), np.int64(1) << 32
    for p in range(start, middle):
        code = max(code, np.int64(column[np.uint64(rows[p])]))
    for p in range(middle, end):
        next_code = min(next_code, np.int64(column[np.uint64(rows[p])]))
    return middle, code, next_code


@kernel(bare=True)
def finish(cuts, words, rules, nodes, threshold, error):
    """Thresholds, and sums of squares around the means."""
    whole = nodes.whole
    for node in range(nodes.state[N_NODES] - 1, -1, -1):
        left = whole[node, LEFT]
        if left < 0:
            nodes.gain[node] = 0.0
            threshold[node] = np.nan
            error[node] = scatter_of(words, rules, nodes, node)
            continue
        first = cuts.first[whole[node, FEATURE]]
        below = cuts.lows[first + whole[node, CODE]]
        above = cuts.lows[first + whole[node, NEXT_CODE]]
        middle = 0.5 * below + 0.5 * above
        threshold[node] = middle if below <= middle < above else below
        error[node] = error[left] + error[left + 1] + nodes.gain[node]


@kernel(bare=True)
def walk_others(codes, cuts, nodes, threshold, limit):
    """Rows that take no part go where their values lead; limit: the highest code that goes left."""
    whole = nodes.whole
    for node in range(nodes.state[N_NODES]):
        if whole[node, LEFT] >= 0:
            first = cuts.first[whole[node, FEATURE]]
            low, high = whole[node, CODE], whole[node, NEXT_CODE]
            while high - low > 1:
                middle = (low + high) // 2
                if cuts.lows[first + middle] <= threshold[node]:
                    low = middle
                else:
                    high = middle
            limit[node] = low
    for i in range(len(nodes.node_of)):
        if nodes.node_of[i] < 0:
            node = np.int64(0)
            while whole[node, LEFT] >= 0:
                is_right = code_of(codes, whole[node, FEATURE], i) > limit[node]
                node = whole[node, LEFT] + np.int64(is_right)
            nodes.node_of[i] = node
