"""Trees of histogram boosting: split node by node in one compiled loop, on one core or several.

A row has a gradient g and a hessian h: whole numbers, which add up to the same in any order, so
that neither threads nor the order of rows show in a tree. They are packed into words of 11 bits
each, see `gradient_words`, or, where gradients differ too much in size for that, summed with up to
40 bits. The value of a leaf is worked out from gradients of 50 bits.

Of two children, the histogram of the smaller one is counted, and that of the other is what is left
of their parent's. Cores share a step by features, each counting and searching its own; the rows of
a large node are shared instead, and their counts put together.
"""

from __future__ import annotations

import math

import numpy as np

from margrove._runtime.jit import kernel
from margrove._runtime.prefetch import fetch, row_ahead
from margrove._runtime.team import (
    await_order,
    call_up,
    dismiss,
    enlist,
    meet,
    report,
    ring,
    size_of_order,
    wait_for_reports,
)
from margrove.ensemble.gradient.hist.histograms import (
    count_small,
    subtract,
)
from margrove.ensemble.gradient.hist.nodes import (
    ADDED,
    ASSISTS,
    COPIES,
    COUNT,
    DEPTH,
    END,
    GAIN,
    GROWING,
    GROWN,
    HESSIAN,
    HIGH,
    IS_LOPSIDED,
    IS_PACKED,
    IS_WIDE,
    JOB,
    LARGE,
    LARGEST_VALUE,
    LEADS,
    LEFT,
    LEFT_COUNT,
    LEFT_G,
    LEFT_H,
    LEVEL_BY_LEVEL,
    LOW,
    MIDDLE,
    MISSING_LEFT,
    N_FREE,
    N_FRONTIER,
    N_LEAVES,
    N_NODES,
    NODE,
    PHASE,
    PLACE,
    PLANTED,
    SHARERS,
    SLOT,
    SMALL,
    SMALL_FIRST,
    START,
    STEP,
    TOO_LOPSIDED,
    TOTAL_G,
    TOTAL_H,
    VALUE,
    BoostedTree,
    share_of,
)
from margrove.ensemble.gradient.hist.packed_words import (
    BITS,
    SAMPLES_OF_A_WORD,
    packed_word,
)
from margrove.ensemble.gradient.hist.partitioning import (
    code_of,
    goes_left_of,
    part_rows,
    say_who_goes_left,
)
from margrove.ensemble.gradient.hist.split_search import (
    MISSING_UNSEEN,
    gain_of_node,
    search_features,
    unit_of_gain,
    value_of,
)

__all__ = ["add_to_others", "add_values", "begin", "grow"]

_WIDE_BITS = 40
_BITS_OF_SUMS = 61
_LEAST_MEAN = 4  # of packed gradients and hessians: with less, too many of them would be 0
_FEW_SAMPLES = 1024  # which are never packed: one of them may be a thousand times the others
_MOST_COPIES = 16  # samples that a row may stand for in a packed word
_ROWS_TO_PART = 16000  # of a node that cores part together
_COST_OF_FEATURE = 16  # of a search, besides its cells

# steps that are shared
_NOTHING, _PLANT, _PART, _LOOK, _SUM_UP = range(5)


# -- one leads, others help --


def begin(tree: BoostedTree) -> None:
    """Forget what was grown before."""
    tree.state[PHASE], tree.state[JOB] = PLANTED, _PLANT


@kernel(bare=True)
def grow(bell, call, team, role, table, source, rules, tree, room, work):
    """Grow a tree, or go on for about so many cells; the phase that it is in afterwards.

    A new one is prepared by `begin`. If it is TOO_LOPSIDED, begin again with room for whole numbers
    g and h in the source. `role` is ALONE, or that in a team (see `team`); ASSISTS does its share
    of the steps until the leader needs no help.
    """
    state = tree.state
    order, rank, size = np.int64(0), np.int64(0), np.int64(1)
    if role == ASSISTS:
        rank = enlist(team)
        if rank < 0:
            return np.int64(-1)
    elif role == LEADS:
        state[STEP] = 0
        ring(bell, call)
    while True:
        if role == ASSISTS:
            order = await_order(team, order)
            size = size_of_order(order)
            if order < 0:
                report(team)
                return np.int64(-1)
        elif state[JOB] == _NOTHING or work <= 0.0:
            break
        elif role == LEADS and _is_worth_sharing(tree):
            state[STEP] += 1
            size = call_up(team, state[STEP])
        else:
            size = np.int64(1)
        if rank < size:
            _do(team, rank, size, table, source, rules, tree, room)
        if role == ASSISTS:
            if rank < size:
                report(team)
            continue
        if size > 1:
            wait_for_reports(team, size - 1)
        work -= float(_cells_of_job(table, tree))
        state[JOB] = _next_job(table, rules, tree, room)
    if role == LEADS:
        dismiss(team)
    return state[PHASE]


@kernel(inner=True)
def _is_worth_sharing(tree):
    node = tree.state[NODE]
    is_small = tree.whole[node, END] - tree.whole[node, START] < _ROWS_TO_PART
    return tree.state[JOB] != _PART or not is_small


@kernel(inner=True)
def _cells_of_job(table, tree):
    """What a step costs, about."""
    job, whole = tree.state[JOB], tree.whole
    if job == _LOOK:
        node = tree.state[SMALL]
        return (whole[node, END] - whole[node, START]) * len(table.features) + table.first[-1]
    if job == _PART:
        return whole[tree.state[NODE], END] - whole[tree.state[NODE], START]
    return 4 * len(tree.rows)


@kernel(inner=True)
def _next_job(table, rules, tree, room):
    """What is to be done after the step that has just been done, once that is written down."""
    state = tree.state
    job = state[JOB]
    if job == _PLANT:
        if state[PHASE] == TOO_LOPSIDED:
            return _NOTHING
        state[SMALL], state[LARGE] = 0, -1
        _allow_features_of_children(table, rules, tree, room)
        return _LOOK
    if job == _SUM_UP:
        state[PHASE] = ADDED
        return _NOTHING
    if job == _LOOK:
        _join_children(table, rules, tree, room)
    else:
        _write_children(rules, tree, state[NODE], state[MIDDLE])
        if state[SMALL] >= 0:
            _allow_features_of_children(table, rules, tree, room)
            return _LOOK
    if state[N_FRONTIER] > 0 and state[N_LEAVES] < rules.max_leaves:
        state[NODE] = _take_next(rules, tree)
        say_who_goes_left(table, tree, state[NODE], room.goes_left)
        return _PART
    state[PHASE] = GROWN
    return _SUM_UP if rules.adds else _NOTHING


@kernel(inner=True)
def _do(team, rank, size, table, source, rules, tree, room):
    job = tree.state[JOB]
    if job == _PLANT:
        _plant(team, rank, size, source, rules, tree, room)
    elif job == _PART:
        part_rows(team, rank, size, table, tree, room)
    elif job == _LOOK:
        _look(team, rank, size, table, source, rules, tree, room)
    else:
        _sum_up(team, rank, size, source, rules, tree, room)


@kernel(inner=True)
def _first_place(table, rank, size):
    """Where the places of a core begin: all have about as many cells, and bytes are not shared."""
    d = len(table.features)
    wanted = ((table.first[d] + _COST_OF_FEATURE * d) * rank) // size
    low, high = 0, d
    while low < high:
        middle = (low + high) // 2
        if table.first[middle] + _COST_OF_FEATURE * middle < wanted:
            low = middle + 1
        else:
            high = middle
    if low < d and table.columns[low] >= 0:
        column = table.columns[low]
        if low > table.places_at[column]:
            low = table.places_at[column + 1]
    return low


# -- the root --


@kernel(inner=True)
def _plant(team, rank, size, source, rules, tree, room):
    """Gradients as whole numbers, and a root of all rows."""
    n = len(source.rows)
    start, end = share_of(n, rank, size), share_of(n, rank + 1, size)
    _survey(source, start, end, room.largest[rank], room.counts[rank])
    meet(team, size)
    largest_g, largest_h, count, copies = 0.0, 0.0, np.int64(0), np.int64(1)
    for other in range(size):
        largest_g = max(largest_g, room.largest[other, 0])
        largest_h = max(largest_h, room.largest[other, 1])
        count += room.counts[other, 0]
        copies = max(copies, room.counts[other, 1])
    is_wide = len(source.g) > 0
    bits = _bits_of_gradients(tree, is_wide, count)
    g_scale, h_scale = _power_for(largest_g, bits), _power_for(largest_h, bits)
    meet(team, size)  # all have read what is overwritten now
    if is_wide:
        _write_wide(source, start, end, g_scale, h_scale, tree.rows, room.counts[rank])
    else:
        _write_packed(source, start, end, g_scale, h_scale, tree.rows, room.counts[rank])
    meet(team, size)
    if rank > 0:
        return
    g, h, size_of_g = np.int64(0), np.int64(0), np.int64(0)
    for other in range(size):
        g += room.counts[other, 0]
        h += room.counts[other, 1]
        size_of_g += room.counts[other, 2]
    _judge(rules, tree, n, is_wide, largest_g, largest_h, count, copies, g, h, size_of_g)


@kernel(inner=True)
def _bits_of_gradients(tree, is_wide, count):
    """As whole numbers."""
    bits = BITS
    if is_wide and tree.state[IS_LOPSIDED] == 1:
        bits = min(_WIDE_BITS, _BITS_OF_SUMS - _length_in_bits(count))
    return bits


@kernel(inner=True)
def _judge(rules, tree, n, is_wide, largest_g, largest_h, count, copies, g, h, size_of_g):
    """Whether whole numbers do for the gradients; if so, the root."""
    state = tree.state
    is_lopsided = size_of_g < _LEAST_MEAN * count and largest_g > 0.0
    is_lopsided |= h < _LEAST_MEAN * count and largest_h > 0.0
    is_lopsided |= count <= _FEW_SAMPLES
    if not is_wide and (is_lopsided or copies > _MOST_COPIES):
        state[PHASE], state[IS_LOPSIDED] = TOO_LOPSIDED, np.int64(is_lopsided)
        return
    bits = _bits_of_gradients(tree, is_wide, count)
    state[IS_WIDE], state[COPIES] = np.int64(is_wide), copies
    tree.units[0] = 1.0 / _power_for(largest_g, bits)
    tree.units[1] = 1.0 / _power_for(largest_h, bits)
    tree.units[2] = unit_of_gain(rules, tree.units)
    wide = _BITS_OF_SUMS - _length_in_bits(count)
    tree.scales[0], tree.scales[1] = _power_for(largest_g, wide), _power_for(largest_h, wide)
    _write_root(tree, n, g, h, count)


@kernel(inner=True)
def _write_root(tree, n, g, h, count):
    whole, real, state = tree.whole, tree.real, tree.state
    whole[0, START], whole[0, END], whole[0, DEPTH] = 0, n, 0
    whole[0, LEFT] = whole[0, PLACE] = -1
    whole[0, TOTAL_G], whole[0, TOTAL_H], whole[0, COUNT] = g, h, count
    whole[0, IS_PACKED] = _is_packed(tree, 0)
    real[0, LOW], real[0, HIGH] = -np.inf, np.inf
    for k in range(tree.open_sets.shape[1]):
        tree.open_sets[0, k] = True
    n_slots = len(tree.free)
    for k in range(n_slots):
        tree.free[k] = n_slots - 1 - k
    state[N_FREE] = n_slots - 1
    whole[0, SLOT] = 0
    state[N_NODES], state[N_LEAVES], state[N_FRONTIER] = 1, 1, 0
    state[PHASE] = GROWING


@kernel(inner=True)
def _is_packed(tree, node):
    """Whether the histogram of a node is one of words."""
    is_small = tree.whole[node, COUNT] <= SAMPLES_OF_A_WORD
    return np.int64(is_small and tree.state[IS_WIDE] == 0)


@kernel(inner=True)
def _length_in_bits(number):
    length = 0
    while number > 0:
        number >>= 1
        length += 1
    return length


@kernel(inner=True)
def _power_for(largest, bits):
    """The largest power of two that keeps products with numbers up to this within so many bits."""
    if largest == 0.0:
        return 1.0
    return math.ldexp(1.0, min(bits - math.frexp(largest)[1], 1000))


@kernel(inner=True)
def _survey(source, start, end, largest, counts):
    """The largest gradient and hessian; samples, and the most that a row stands for."""
    largest_g, largest_h, count, copies = 0.0, 0.0, np.int64(0), np.int64(1)
    for p in range(start, end):
        row = np.uint64(source.rows[p])
        largest_g = max(largest_g, abs(source.gradient[row]))
        largest_h = max(largest_h, source.hessian[row])
    if len(source.copies):
        for p in range(start, end):
            own = source.copies[np.uint64(source.rows[p])]
            count += own
            copies = max(copies, own)
    else:
        count = end - start
    largest[0], largest[1] = largest_g, largest_h
    counts[0], counts[1] = count, copies


@kernel(inner=True)
def _write_packed(source, start, end, g_scale, h_scale, rows, counts):
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
    counts[0], counts[1], counts[2] = total_g, total_h, size_of_g


@kernel(inner=True)
def _write_wide(source, start, end, g_scale, h_scale, rows, counts):
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
    counts[0], counts[1], counts[2] = total_g, total_h, 0


# -- a split --


@kernel(inner=True)
def _place_of_next(rules, tree):
    """Where in the frontier the leaf is that is split next: that which gains most (of equals the
    oldest), or the oldest, or the last one."""
    frontier, state = tree.frontier, tree.state
    best = state[N_FRONTIER] - 1
    if rules.order != SMALL_FIRST:
        for k in range(state[N_FRONTIER] - 1):
            own, other = frontier[k], frontier[best]
            gain, most = tree.real[own, GAIN], tree.real[other, GAIN]
            is_older = own < other
            if rules.order == LEVEL_BY_LEVEL:
                best = k if is_older else best
            elif gain > most or (gain == most and is_older):
                best = k
    return best


@kernel(inner=True)
def _take_next(rules, tree):
    frontier, state = tree.frontier, tree.state
    best = _place_of_next(rules, tree)
    node = frontier[best]
    state[N_FRONTIER] -= 1
    frontier[best] = frontier[state[N_FRONTIER]]
    return node


@kernel(inner=True)
def _write_children(rules, tree, node, middle):
    """The children of a node; SMALL and LARGE are those that may be split further, or -1."""
    whole, real, state = tree.whole, tree.real, tree.state
    first = state[N_NODES]
    whole[node, LEFT] = first
    state[N_NODES] += 2
    state[N_LEAVES] += 1
    may_go_on = state[N_LEAVES] < rules.max_leaves and whole[node, DEPTH] + 1 < rules.max_depth
    for side in range(2):
        child = first + side
        whole[child, START] = whole[node, START] if side == 0 else middle
        whole[child, END] = middle if side == 0 else whole[node, END]
        whole[child, DEPTH] = whole[node, DEPTH] + 1
        whole[child, LEFT] = whole[child, PLACE] = -1
        for total, left in ((TOTAL_G, LEFT_G), (TOTAL_H, LEFT_H), (COUNT, LEFT_COUNT)):
            own = whole[node, left]
            whole[child, total] = own if side == 0 else whole[node, total] - own
        whole[child, IS_PACKED] = _is_packed(tree, child)
        real[child, LOW], real[child, HIGH] = real[node, LOW], real[node, HIGH]
    _bound_children(rules, tree, node, first)
    for k in range(tree.open_sets.shape[1]):
        is_open = tree.open_sets[node, k] and rules.sets[k, whole[node, PLACE]]
        tree.open_sets[first, k] = tree.open_sets[first + 1, k] = is_open
    largest = max(whole[first, COUNT], whole[first + 1, COUNT])
    if not may_go_on or largest < 2 * rules.min_samples:
        tree.free[state[N_FREE]] = whole[node, SLOT]
        state[N_FREE] += 1
        state[SMALL] = state[LARGE] = -1
        return
    n_left = middle - whole[node, START]
    small = first if 2 * n_left <= whole[node, END] - whole[node, START] else first + 1
    large = 2 * first + 1 - small
    state[N_FREE] -= 1
    whole[large, SLOT], whole[small, SLOT] = whole[node, SLOT], tree.free[state[N_FREE]]
    state[SMALL], state[LARGE] = small, large


@kernel(inner=True)
def _bound_children(rules, tree, node, first):
    """Children of a monotonic split keep to their side of the middle of their values."""
    if len(rules.signs) == 0:
        return
    sign = rules.signs[tree.whole[node, PLACE]]
    if sign == 0:
        return
    low, high = tree.real[node, LOW], tree.real[node, HIGH]
    middle = 0.0
    for child in range(first, first + 2):
        own = tree.whole[child]
        middle += 0.5 * value_of(own[TOTAL_G], own[TOTAL_H], rules, tree.units, low, high)
    lower, higher = (first, first + 1) if sign > 0 else (first + 1, first)
    tree.real[lower, HIGH] = tree.real[higher, LOW] = middle


# -- the search --


@kernel(inner=True)
def _allow_features_of_children(table, rules, tree, room):
    if tree.open_sets.shape[1] == 0 and rules.tried >= 1.0:
        return
    for k in range(2):
        node = tree.state[SMALL] if k == 0 else tree.state[LARGE]
        if node >= 0:
            _allow_features(table, rules, tree, room, node, k)


@kernel(inner=True)
def _join_children(table, rules, tree, room):
    """What all cores have found together."""
    state = tree.state
    for rank in range(1, state[SHARERS]):
        _take_better(table, room, rank)
    for k in range(1, -1, -1):  # the small one last: it may be the first to be split
        node = state[SMALL] if k == 0 else state[LARGE]
        if node >= 0:
            _join(rules, tree, room, node, k)


@kernel(inner=True)
def _allow_features(table, rules, tree, room, node, k):
    """Which features a node may be split by: those of open sets, and of these some at random."""
    allowed = room.allowed[k]
    n_sets = tree.open_sets.shape[1]
    d = len(allowed)
    if n_sets > 0:
        for place in range(d):
            allowed[place] = False
        for own in range(n_sets):
            if tree.open_sets[node, own]:
                for place in range(d):
                    allowed[place] |= rules.sets[own, place]
    if rules.tried >= 1.0:
        return
    n = 0
    for feature in range(d):  # in their own order, which places are not
        place = table.places[feature]
        if n_sets == 0 or allowed[place]:
            room.shuffle[n] = place
            n += 1
        allowed[place] = False
    key = np.uint64(rules.seed) + np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    for turn in range(math.ceil(rules.tried * n)):
        key += np.uint64(0xD1B54A32D192ED03)
        drawn = turn + np.int64(_scrambled(key) % np.uint64(n - turn))
        chosen = room.shuffle[drawn]
        room.shuffle[drawn] = room.shuffle[turn]
        allowed[chosen] = True


@kernel(inner=True)
def _scrambled(key):
    """splitmix64"""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel(inner=True)
def _look(team, rank, size, table, source, rules, tree, room):
    """A core's share: histograms and best splits by its own features."""
    whole, state = tree.whole, tree.state
    small, large = state[SMALL], state[LARGE]
    first, last = _first_place(table, rank, size), _first_place(table, rank + 1, size)
    count_small(team, rank, size, table, source, tree, room, first, last)
    if large >= 0:
        subtract(room.sums[whole[large, SLOT]], whole[state[NODE], IS_PACKED] == 1,
                  room.sums[whole[small, SLOT]], whole[small, IS_PACKED] == 1,
                  whole[large, IS_PACKED] == 1, table.first[first], table.first[last])  # fmt: skip
    _search_children(rank, table, rules, tree, room, first, last)
    if rank == 0:
        state[SHARERS] = size


@kernel(inner=True)
def _search_children(rank, table, rules, tree, room, first, last):
    """The best splits of both children by the features at some places."""
    whole = tree.whole
    for k in range(2):
        node = tree.state[SMALL] if k == 0 else tree.state[LARGE]
        room.best[rank, k, 0] = -1
        if node < 0 or whole[node, COUNT] < 2 * rules.min_samples:
            continue
        if whole[node, DEPTH] >= rules.max_depth:
            continue
        search_features(table, room.sums[whole[node, SLOT]], whole[node, IS_PACKED] == 1,
                        whole[node, TOTAL_G], whole[node, TOTAL_H], whole[node, COUNT],
                        tree.real[node, LOW], tree.real[node, HIGH], rules, tree.units, first, last,
                        room.allowed[k], room.scratch[rank], room.order[rank], room.best[rank, k],
                        room.gain[rank, k:], room.chosen[rank, k])  # fmt: skip


@kernel(inner=True)
def _take_better(table, room, rank):
    """The better one of the splits that two cores have found goes to the leader's."""
    for k in range(2):
        own, other = room.best[0, k], room.best[rank, k]
        if other[0] < 0:
            continue
        gain, most = room.gain[rank, k], room.gain[0, k]
        is_even = gain == most and table.features[other[0]] < table.features[own[0]]
        if own[0] < 0 or gain > most or is_even:
            room.gain[0, k] = gain
            for column in range(7):
                own[column] = other[column]
            for word in range(8):
                room.chosen[0, k, word] = room.chosen[rank, k, word]


@kernel(inner=True)
def _join(rules, tree, room, node, k):
    """A node for which a split was found joins the frontier; others need no histogram."""
    whole, real, state, best = tree.whole, tree.real, tree.state, room.best[0, k]
    if best[0] < 0:
        tree.free[state[N_FREE]] = whole[node, SLOT]
        state[N_FREE] += 1
        return
    for column in range(4):
        whole[node, PLACE + column] = best[column]
    for column in range(3):
        whole[node, LEFT_G + column] = best[4 + column]
    if best[2] == MISSING_UNSEEN:
        whole[node, MISSING_LEFT] = np.int64(2 * best[6] > whole[node, COUNT])
    base = gain_of_node(whole[node, TOTAL_G], whole[node, TOTAL_H], rules, tree.units,
                        real[node, LOW], real[node, HIGH])  # fmt: skip
    real[node, GAIN] = room.gain[0, k] - base
    for word in range(8):
        tree.sets[node, word] = room.chosen[0, k, word]
    tree.frontier[state[N_FRONTIER]] = node
    state[N_FRONTIER] += 1


# -- what leaves say --


@kernel(inner=True)
def _sum_up(team, rank, size, source, rules, tree, room):
    """The value of each leaf by wide sums, and its addition to the scores of its rows."""
    n, n_nodes = len(tree.rows), tree.state[N_NODES]
    start, end = share_of(n, rank, size), share_of(n, rank + 1, size)
    own = room.leaf_sums[rank]
    for node in range(n_nodes):
        own[node, 0] = own[node, 1] = 0
        begin, stop = max(tree.whole[node, START], start), min(tree.whole[node, END], end)
        if tree.whole[node, LEFT] < 0 and begin < stop:
            _add_up(source, tree.rows, begin, stop, tree.scales, own[node])
    meet(team, size)
    if rank == 0:
        for other in range(1, size):
            for node in range(n_nodes):
                own[node, 0] += room.leaf_sums[other, node, 0]
                own[node, 1] += room.leaf_sums[other, node, 1]
        for node in range(n_nodes):
            if tree.whole[node, LEFT] < 0:
                _write_value(rules, tree, node, own[node])
    meet(team, size)
    _add_to(tree, start, end, source.raw)


@kernel(inner=True)
def _add_up(source, rows, begin, stop, scales, sums):
    g, h = np.int64(0), np.int64(0)
    has_copies = len(source.copies) > 0
    for p in range(begin, stop):
        ahead = np.uint64(row_ahead(rows, p, stop))
        fetch(source.gradient, ahead)
        fetch(source.hessian, ahead)
        row = np.uint64(rows[p])
        times = source.copies[row] if has_copies else np.int64(1)
        g += times * np.int64(np.rint(source.gradient[row] * scales[0]))
        h += times * np.int64(np.rint(source.hessian[row] * scales[1]))
    sums[0], sums[1] = g, h


@kernel(inner=True)
def _write_value(rules, tree, node, sums):
    hessian = float(sums[1]) / tree.scales[1]
    tree.real[node, HESSIAN] = hessian
    total = hessian + rules.l2
    value = -(float(sums[0]) / tree.scales[0]) / total if total > 0.0 else 0.0
    if abs(value) > rules.longest_step:
        beyond = math.log1p(abs(value) - rules.longest_step)
        value = math.copysign(rules.longest_step + beyond, value)
    value = min(max(value, tree.real[node, LOW]), tree.real[node, HIGH])
    tree.real[node, VALUE] = min(max(rules.rate * value, -LARGEST_VALUE), LARGEST_VALUE)


@kernel(inner=True)
def _add_to(tree, start, end, raw):
    for node in range(tree.state[N_NODES]):
        if tree.whole[node, LEFT] < 0:
            value = tree.real[node, VALUE]
            for p in range(max(tree.whole[node, START], start), min(tree.whole[node, END], end)):
                raw[np.uint64(tree.rows[p])] += value


@kernel(bare=True)
def add_values(tree, raw):
    """raw[i] += the value of row i's leaf, for the rows that the tree was grown on."""
    _add_to(tree, 0, len(tree.rows), raw)


@kernel(bare=True)
def add_to_others(table, tree, rows, raw):
    """The same for other rows."""
    for p in range(len(rows)):
        row = np.int64(rows[p])
        node = np.int64(0)
        while tree.whole[node, LEFT] >= 0:
            own = tree.whole[node]
            code = code_of(table, own[PLACE], row)
            is_left = goes_left_of(own, tree.sets[node], code, table.n_codes[own[PLACE]])
            node = own[LEFT] + 1 - np.int64(is_left)
        raw[row] += tree.real[node, VALUE]
