"""Trees of histogram boosting: grown leaf by leaf, in one compiled loop.

A row has a gradient g and a hessian h. As whole numbers they are packed into one word,

    g of 12 bits and a sign | h of 11 bits | 1

with room for the sums of 8192 rows; such sums are then unpacked and added up in int64. Whole
numbers add up to the same in any order, so neither threads nor the order of rows show in a tree.
Where gradients differ too much in size for 12 bits, they are summed unpacked, with 40 bits. The
value of a leaf is worked out from gradients of 50 bits.

Of two children, the histogram of the smaller one is counted, and that of the other is what is left
of their parent's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._jit import kernel
from margrove._threads import run_tiles
from margrove.ensemble.gradient_tables import BINS, GradientGroup
from margrove.grove.packed import FEATURE_AT, MISSING_AT, SET_AT, Cuts, PackedTree

__all__ = ["GrowthRules", "Leaves", "Room", "Words", "add_values", "grow", "grow_together",
           "new_leaves", "new_room", "pack_words", "packed", "plant", "write_values"]  # fmt: skip

ROWS_AT_ONCE = 8192  # whose words add up without overflow
G_BITS, H_BITS, N_BITS = 11, 11, 14
_H_AT, _G_AT = 14, 39  # places in a word
_H_MASK = (1 << (_G_AT - _H_AT)) - 1
_N_MASK = (1 << _H_AT) - 1
_SMOOTH = 10.0  # hessian that categories of few rows are drawn to the mean by

# columns of `Leaves.whole`
(START, END, DEPTH, LEFT, FEATURE, CODE, MISSING_LEFT, IS_SET, SLOT, TOTAL_G, TOTAL_H,
 N_COLUMNS) = range(12)  # fmt: skip
# columns of `Leaves.real`
GAIN, VALUE, HESSIAN = range(3)
# places in `Leaves.state`
N_NODES, N_LEAVES, N_FRONTIER = range(3)


class GrowthRules(NamedTuple):
    """max_leaves, max_depth; min_samples, min_hessian: of a leaf; l2: regularization; g_unit,
    h_unit: what a whole number of each is worth; wide: whether words are not packed."""

    max_leaves: int
    max_depth: int
    min_samples: int
    min_hessian: float
    l2: float
    g_unit: float
    h_unit: float
    wide: bool


class Words(NamedTuple):
    """Gradients and hessians in whole numbers: packed int64 (n,), or g and h int64 (n,) each."""

    packed: np.ndarray
    g: np.ndarray
    h: np.ndarray


class Leaves(NamedTuple):
    """The nodes of a tree on its way.

    whole      int64 (nodes, 11), real float64 (nodes, 3): see the names of the columns
    sets       uint32 (nodes, 8)  codes that go left
    rows       int32 (n,)  by leaves
    spare      int32 (n,)
    frontier   int64 (nodes,)  leaves that have a split
    state      int64 (3,)  nodes, leaves, size of the frontier
    """

    whole: np.ndarray
    real: np.ndarray
    sets: np.ndarray
    rows: np.ndarray
    spare: np.ndarray
    frontier: np.ndarray
    state: np.ndarray


class Room(NamedTuple):
    """What the search of a group of features needs.

    sums            int64 (slots, cells, 3)  of g, h and rows, for each leaf
    words           int64 (cells,)  packed sums on the way
    order, means    int64, float64 (256,)  categories in turn
    best, gain, chosen    int64 (2, 4), float64 (2,), uint32 (2, 8)  the best splits of two nodes
    """

    sums: np.ndarray
    words: np.ndarray
    order: np.ndarray
    means: np.ndarray
    best: np.ndarray
    gain: np.ndarray
    chosen: np.ndarray


def new_leaves(n_rows: int, max_leaves: int) -> Leaves:
    nodes = 2 * max_leaves + 1
    return Leaves(
        np.zeros((nodes, N_COLUMNS), np.int64),
        np.zeros((nodes, 3)),
        np.zeros((nodes, 8), np.uint32),
        np.empty(n_rows, np.int32),
        np.empty(n_rows, np.int32),
        np.zeros(nodes, np.int64),
        np.zeros(3, np.int64),
    )


def new_room(n_cells: int, max_leaves: int) -> Room:
    return Room(
        np.zeros((max_leaves + 1, n_cells, 3), np.int64),
        np.zeros(n_cells, np.int64),
        np.zeros(BINS, np.int64),
        np.zeros(BINS),
        np.zeros((2, 4), np.int64),
        np.zeros(2),
        np.zeros((2, 8), np.uint32),
    )


@kernel(bare=True)
def pack_words(gradient, hessian, g_scale, h_scale, start, end, packed):
    """One word a row; |gradient| g_scale <= 2^11 and hessian h_scale <= 2^11."""
    for i in range(start, end):
        g = np.int64(np.rint(gradient[i] * g_scale))
        h = np.int64(np.rint(hessian[i] * h_scale))
        packed[i] = (g << _G_AT) + (h << _H_AT) + 1


@kernel(bare=True)
def count_rows(group, rows, start, end, words, packed, sums):
    """The histogram of a node, for a group of features, in sums (cells, 3)."""
    n_dense, size = group.dense.shape[1], group.size
    has_entries = len(group.bins) > 0
    for cell in range(size):
        sums[cell, 0] = sums[cell, 1] = sums[cell, 2] = 0
    for begin in range(start, end, ROWS_AT_ONCE):
        for cell in range(size):
            words[cell] = 0
        for p in range(begin, min(begin + ROWS_AT_ONCE, end)):
            row = np.uint64(rows[p])
            word = packed[row]
            for k in range(n_dense):
                code = np.uint64(group.dense[row, np.uint64(k)])
                words[np.uint64(k * BINS) + code] += word
            if has_entries:
                for q in range(group.starts[row], group.starts[row + np.uint64(1)]):
                    words[np.uint64(group.bins[q])] += word
        for cell in range(size):
            word = words[cell]
            if word != 0:
                count = word & _N_MASK
                h = (word >> _H_AT) & _H_MASK
                sums[cell, 0] += (word - (h << _H_AT) - count) >> _G_AT
                sums[cell, 1] += h
                sums[cell, 2] += count


@kernel(bare=True)
def count_rows_widely(group, rows, start, end, g, h, sums):
    """The same without packing."""
    n_dense, size = group.dense.shape[1], group.size
    for cell in range(size):
        sums[cell, 0] = sums[cell, 1] = sums[cell, 2] = 0
    for p in range(start, end):
        row = np.uint64(rows[p])
        for k in range(n_dense):
            cell = np.uint64(k * BINS) + np.uint64(group.dense[row, np.uint64(k)])
            sums[cell, 0] += g[row]
            sums[cell, 1] += h[row]
            sums[cell, 2] += 1
        for q in range(group.starts[row], group.starts[row + np.uint64(1)]):
            cell = np.uint64(group.bins[q])
            sums[cell, 0] += g[row]
            sums[cell, 1] += h[row]
            sums[cell, 2] += 1


@kernel(inner=True)
def fill_omitted(group, sums, g, h, count):
    """The commonest codes of sparse features: what the others leave of the node."""
    for k in range(len(group.features)):
        if group.omitted[k] < 0:
            continue
        at = group.first[k] + group.omitted[k]
        rest_g, rest_h, rest = g, h, count
        for cell in range(group.first[k], group.first[k] + group.n_codes[k] + 1):
            if cell != at:
                rest_g -= sums[cell, 0]
                rest_h -= sums[cell, 1]
                rest -= sums[cell, 2]
        sums[at, 0], sums[at, 1], sums[at, 2] = rest_g, rest_h, rest


@kernel(inner=True)
def gain_of(g, h, rules):
    real = g * rules.g_unit
    return real * real / (h * rules.h_unit + rules.l2 + 1e-300)


@kernel(inner=True)
def is_allowed(h, count, rules):
    return count >= rules.min_samples and h * rules.h_unit >= rules.min_hessian


@kernel(bare=True)
def search_node(group, sums, g, h, count, rules, order, means, best, best_gain, best_set):
    """The best split of a node by a group of features.

    best: feature, code, missing_left, whether it is a set; -1 for none. best_gain float64 (1,).
    """
    best[0] = -1
    best_gain[0] = gain_of(g, h, rules) * (1.0 + 1e-12)
    for k in range(len(group.features)):
        if group.is_category[k]:
            _search_categories(group, k, sums, g, h, count, rules, order, means, best, best_gain,
                               best_set)  # fmt: skip
            continue
        missing = group.first[k] + group.n_codes[k]
        is_missing = sums[missing, 2] > 0
        _search_numbers(group, k, sums, g, h, count, rules, False, is_missing, best, best_gain)
        if is_missing:
            _search_numbers(group, k, sums, g, h, count, rules, True, True, best, best_gain)


@kernel(inner=True)
def _search_numbers(group, k, sums, g, h, count, rules, missing_left, is_missing, best, best_gain):
    first, n_codes = group.first[k], group.n_codes[k]
    g_left, h_left, n_left = np.int64(0), np.int64(0), np.int64(0)
    if missing_left:
        g_left, h_left, n_left = (
            sums[first + n_codes, 0], sums[first + n_codes, 1], sums[first + n_codes, 2],
        )  # fmt: skip
    feature = group.features[k]
    last = n_codes if is_missing and not missing_left else n_codes - 1
    for code in range(last):
        cell = first + code
        if sums[cell, 2] == 0:
            continue
        g_left += sums[cell, 0]
        h_left += sums[cell, 1]
        n_left += sums[cell, 2]
        if count - n_left < rules.min_samples:
            break
        if not is_allowed(h_left, n_left, rules) or not is_allowed(
            h - h_left, count - n_left, rules
        ):
            continue
        gain = gain_of(g_left, h_left, rules) + gain_of(g - g_left, h - h_left, rules)
        if gain > best_gain[0] or (gain == best_gain[0] and best[0] > feature):
            best_gain[0] = gain
            best[0], best[1], best[2], best[3] = feature, code, np.int64(missing_left), 0


@kernel(inner=True)
def _search_categories(group, k, sums, g, h, count, rules, order, means, best, best_gain, best_set):
    """Categories by their mean gradient; those that go left are the first ones of that order."""
    first, n_codes = group.first[k], group.n_codes[k]
    n = 0
    for code in range(n_codes + 1):  # missing is one of them
        if sums[first + code, 2] > 0:
            own = sums[first + code, 0] * rules.g_unit
            mean = own / (sums[first + code, 1] * rules.h_unit + _SMOOTH)
            free = n
            while free > 0 and means[free - 1] > mean:
                means[free], order[free] = means[free - 1], order[free - 1]
                free -= 1
            means[free], order[free] = mean, code
            n += 1
    g_left, h_left, n_left = np.int64(0), np.int64(0), np.int64(0)
    chosen = -1
    feature = group.features[k]
    for p in range(n - 1):
        cell = first + order[p]
        g_left += sums[cell, 0]
        h_left += sums[cell, 1]
        n_left += sums[cell, 2]
        if count - n_left < rules.min_samples:
            break
        if not is_allowed(h_left, n_left, rules) or not is_allowed(
            h - h_left, count - n_left, rules
        ):
            continue
        gain = gain_of(g_left, h_left, rules) + gain_of(g - g_left, h - h_left, rules)
        if gain > best_gain[0] or (gain == best_gain[0] and best[0] > feature):
            best_gain[0] = gain
            chosen = p
    if chosen < 0:
        return
    best[0], best[1], best[2], best[3] = feature, 0, 0, 1
    for word in range(len(best_set)):
        best_set[word] = np.uint32(0)
    for p in range(chosen + 1):
        code = order[p]
        if code == n_codes:
            best[2] = 1
        best_set[code // 32] |= np.uint32(1) << np.uint32(code % 32)


@kernel(bare=True)
def plant(leaves, rows, words, wide):
    """A root of some rows."""
    n = len(rows)
    for p in range(n):
        leaves.rows[p] = rows[p]
    whole = leaves.whole
    whole[0, START], whole[0, END], whole[0, DEPTH], whole[0, SLOT] = 0, n, 0, 0
    whole[0, LEFT] = whole[0, FEATURE] = -1
    whole[0, TOTAL_G], whole[0, TOTAL_H] = _totals(leaves.rows, 0, n, words, wide)
    leaves.state[N_NODES], leaves.state[N_LEAVES], leaves.state[N_FRONTIER] = 1, 1, 0


@kernel(inner=True)
def _totals(rows, start, end, words, wide):
    g, h = np.int64(0), np.int64(0)
    for p in range(start, end):
        row = np.uint64(rows[p])
        if wide:
            g += words.g[row]
            h += words.h[row]
        else:
            word = words.packed[row]
            own = (word >> _H_AT) & _H_MASK
            g += (word - (own << _H_AT) - 1) >> _G_AT
            h += own
    return g, h


@kernel(bare=True)
def grow(group, columns, n_codes, words, rules, leaves, room):
    """Split leaves, the one that gains most at a time, until there are enough.

    All features are in one group; columns uint8 (d, n) and n_codes int64 (d,) are of all.
    """
    look(group, words, rules, leaves, room, 0, -1)
    join(rules, leaves, room, 0, -1)
    while leaves.state[N_FRONTIER] > 0 and leaves.state[N_LEAVES] < rules.max_leaves:
        small, large = split(columns, n_codes, words, rules, leaves)
        if small >= 0:
            look(group, words, rules, leaves, room, small, large)
            join(rules, leaves, room, small, large)


def grow_together(
    groups: list[GradientGroup],
    columns: np.ndarray,
    n_codes: np.ndarray,
    words: Words,
    rules: GrowthRules,
    leaves: Leaves,
    rooms: list[Room],
    n_threads: int,
) -> None:
    """The same on several cores, each with groups of features of its own."""

    def look_at(small: int, large: int) -> None:
        def work(k: int) -> None:
            look(groups[k], words, rules, leaves, rooms[k], small, large)

        run_tiles(work, len(groups), n_threads)
        for room in rooms[1:]:
            take_better(room, rooms[0])
        join(rules, leaves, rooms[0], small, large)

    look_at(0, -1)
    while leaves.state[N_FRONTIER] > 0 and leaves.state[N_LEAVES] < rules.max_leaves:
        small, large = split(columns, n_codes, words, rules, leaves)
        if small >= 0:
            look_at(small, large)


@kernel(bare=True)
def split(columns, n_codes, words, rules, leaves):
    """Part the rows of the best leaf; the smaller and the larger child, -1 if neither is to be
    split any further."""
    whole, state = leaves.whole, leaves.state
    node = _take_best(leaves)
    feature = whole[node, FEATURE]
    middle = _part(columns[feature], n_codes[feature], leaves, node)
    first = state[N_NODES]
    whole[node, LEFT] = first
    state[N_NODES] += 2
    state[N_LEAVES] += 1
    for side in range(2):
        child = first + side
        whole[child, START] = whole[node, START] if side == 0 else middle
        whole[child, END] = middle if side == 0 else whole[node, END]
        whole[child, DEPTH] = whole[node, DEPTH] + 1
        whole[child, LEFT] = whole[child, FEATURE] = -1
    if state[N_LEAVES] >= rules.max_leaves or not _may_go_on(whole, first, rules):
        return -1, -1
    n_left = middle - whole[node, START]
    small = first if 2 * n_left <= whole[node, END] - whole[node, START] else first + 1
    large = 2 * first + 1 - small
    whole[large, SLOT], whole[small, SLOT] = whole[node, SLOT], state[N_LEAVES] - 1
    g, h = _totals(leaves.rows, whole[small, START], whole[small, END], words, rules.wide)
    whole[small, TOTAL_G], whole[small, TOTAL_H] = g, h
    whole[large, TOTAL_G] = whole[node, TOTAL_G] - g
    whole[large, TOTAL_H] = whole[node, TOTAL_H] - h
    return small, large


@kernel(bare=True)
def look(group, words, rules, leaves, room, small, large):
    """Histograms and best splits of two children by a group of features; or of a root."""
    whole = leaves.whole
    _count(group, words, rules, leaves, room, small)
    if large >= 0:
        _subtract(room.sums[whole[large, SLOT]], room.sums[whole[small, SLOT]])
    for k in range(2):
        node = small if k == 0 else large
        room.best[k, 0] = -1
        if node < 0:
            continue
        count = whole[node, END] - whole[node, START]
        if count >= 2 * rules.min_samples and whole[node, DEPTH] < rules.max_depth:
            search_node(group, room.sums[whole[node, SLOT]], whole[node, TOTAL_G],
                        whole[node, TOTAL_H], count, rules, room.order, room.means, room.best[k],
                        room.gain[k:], room.chosen[k])  # fmt: skip


@kernel(bare=True)
def take_better(other, room):
    """Of both nodes, the better of the splits that two groups have found goes to `room`."""
    for k in range(2):
        if other.best[k, 0] < 0:
            continue
        is_better = room.best[k, 0] < 0 or other.gain[k] > room.gain[k]
        is_even = other.gain[k] == room.gain[k] and other.best[k, 0] < room.best[k, 0]
        if is_better or is_even:
            room.gain[k] = other.gain[k]
            for column in range(4):
                room.best[k, column] = other.best[k, column]
            for word in range(8):
                room.chosen[k, word] = other.chosen[k, word]


@kernel(bare=True)
def join(rules, leaves, room, small, large):
    """Leaves for which a split was found join the frontier."""
    whole = leaves.whole
    for k in range(2):
        node = small if k == 0 else large
        if node < 0 or room.best[k, 0] < 0:
            continue
        whole[node, FEATURE], whole[node, CODE] = room.best[k, 0], room.best[k, 1]
        whole[node, MISSING_LEFT], whole[node, IS_SET] = room.best[k, 2], room.best[k, 3]
        base = gain_of(whole[node, TOTAL_G], whole[node, TOTAL_H], rules)
        leaves.real[node, GAIN] = room.gain[k] - base
        for word in range(8):
            leaves.sets[node, word] = room.chosen[k, word]
        leaves.frontier[leaves.state[N_FRONTIER]] = node
        leaves.state[N_FRONTIER] += 1


@kernel(inner=True)
def _may_go_on(whole, first, rules):
    """Whether one of two children is large enough to be split."""
    if whole[first, DEPTH] >= rules.max_depth:
        return False
    largest = 0
    for child in range(first, first + 2):
        largest = max(largest, whole[child, END] - whole[child, START])
    return largest >= 2 * rules.min_samples


@kernel(inner=True)
def _count(group, words, rules, leaves, room, node):
    start, end = leaves.whole[node, START], leaves.whole[node, END]
    sums = room.sums[leaves.whole[node, SLOT]]
    if rules.wide:
        count_rows_widely(group, leaves.rows, start, end, words.g, words.h, sums)
    else:
        count_rows(group, leaves.rows, start, end, room.words, words.packed, sums)
    fill_omitted(group, sums, leaves.whole[node, TOTAL_G], leaves.whole[node, TOTAL_H], end - start)


@kernel(inner=True)
def _subtract(sums, others):
    for cell in range(len(sums)):
        for k in range(3):
            sums[cell, k] -= others[cell, k]


@kernel(inner=True)
def _take_best(leaves):
    """The leaf whose split gains most; of equals the oldest."""
    best = 0
    for k in range(1, leaves.state[N_FRONTIER]):
        own, other = leaves.frontier[k], leaves.frontier[best]
        gain, most = leaves.real[own, GAIN], leaves.real[other, GAIN]
        if gain > most or (gain == most and own < other):
            best = k
    node = leaves.frontier[best]
    leaves.state[N_FRONTIER] -= 1
    leaves.frontier[best] = leaves.frontier[leaves.state[N_FRONTIER]]
    return node


@kernel(inner=True)
def _part(column, missing, leaves, node):
    """Rows that go left come first, all in their order; where the others begin."""
    whole, rows, spare = leaves.whole, leaves.rows, leaves.spare
    start, end = whole[node, START], whole[node, END]
    code, is_set = whole[node, CODE], whole[node, IS_SET] == 1
    missing_left = whole[node, MISSING_LEFT] == 1
    left, right = np.uint64(start), np.uint64(0)
    one = np.uint64(1)
    for p in range(start, end):
        row = rows[p]
        own = np.int64(column[np.uint64(row)])
        if is_set:
            on_left = np.uint64(
                (leaves.sets[node, own // 32] >> np.uint32(own % 32)) & np.uint32(1)
            )
        else:
            on_left = np.uint64(own <= code or (missing_left and own == missing))
        rows[left] = row
        spare[right] = row
        left += on_left
        right += one - on_left
    for p in range(right):
        rows[left + np.uint64(p)] = spare[p]
    return np.int64(left)


@kernel(bare=True)
def write_values(leaves, gradient, hessian, g_scale, h_scale, l2, rate):
    """The value of each leaf by sums of 50 bits; |gradient| g_scale and hessian h_scale sum up to
    less than 2^62."""
    for node in range(leaves.state[N_NODES]):
        if leaves.whole[node, LEFT] >= 0:
            continue
        g, h = np.int64(0), np.int64(0)
        for p in range(leaves.whole[node, START], leaves.whole[node, END]):
            row = np.uint64(leaves.rows[p])
            g += np.int64(np.rint(gradient[row] * g_scale))
            h += np.int64(np.rint(hessian[row] * h_scale))
        leaves.real[node, HESSIAN] = float(h) / h_scale
        total = leaves.real[node, HESSIAN] + l2
        leaves.real[node, VALUE] = -rate * (float(g) / g_scale) / total if total > 0.0 else 0.0


@kernel(bare=True)
def add_values(leaves, raw):
    """raw[i] += the value of row i's leaf."""
    for node in range(leaves.state[N_NODES]):
        if leaves.whole[node, LEFT] < 0:
            value = leaves.real[node, VALUE]
            for p in range(leaves.whole[node, START], leaves.whole[node, END]):
                raw[np.uint64(leaves.rows[p])] += value


def packed(leaves: Leaves, cuts: Cuts, n_categories: np.ndarray) -> PackedTree:
    """The tree as ensembles keep it: gains are its decreases, and rows its weights."""
    n = int(leaves.state[N_NODES])
    whole, real = leaves.whole[:n], leaves.real[:n]
    inner = whole[:, LEFT] >= 0
    is_set = inner & (whole[:, IS_SET] == 1)
    sizes = np.where(is_set, n_categories[np.maximum(whole[:, FEATURE], 0)] // 32 + 1, 0)
    places = np.cumsum(sizes) - sizes
    words = np.zeros(int(sizes.sum()), np.uint32)
    nodes = np.empty(2 * n, np.int64)
    _write_nodes(whole, real, leaves.sets, cuts, places, nodes, words)
    counts = (whole[:, END] - whole[:, START]).astype(np.int32)
    return PackedTree(
        nodes,
        counts,
        np.empty((0, 1)),
        words,
        impurity=np.zeros(n),
        decrease=np.where(inner, real[:, GAIN], 0.0),
    )


@kernel
def _write_nodes(whole, real, sets, cuts, places, nodes, words):
    """Two words a node, see `grove.packed`."""
    numbers = nodes.view(np.float64)
    for node in range(len(whole)):
        left = whole[node, LEFT]
        if left < 0:
            numbers[2 * node] = real[node, VALUE]
            nodes[2 * node + 1] = node
            continue
        feature, code = whole[node, FEATURE], whole[node, CODE]
        goes_left = whole[node, MISSING_LEFT] == 1
        link = left | (feature << FEATURE_AT) | (np.int64(goes_left) << MISSING_AT)
        first = cuts.first[feature]
        if whole[node, IS_SET] == 1:
            numbers[2 * node] = float(places[node])
            link |= np.int64(1) << SET_AT
            for own in range(cuts.first[feature + 1] - first):
                if (sets[node, own // 32] >> np.uint32(own % 32)) & np.uint32(1):
                    category = np.int64(cuts.lows[first + own])
                    words[places[node] + category // 32] |= np.uint32(1) << np.uint32(category % 32)
        elif first + code + 1 >= cuts.first[feature + 1]:
            numbers[2 * node] = (
                np.inf
            )  # all that is there on the left, what is missing on the right
        else:
            below, above = cuts.highs[first + code], cuts.lows[first + code + 1]
            middle = 0.5 * below + 0.5 * above
            numbers[2 * node] = middle if below <= middle < above else below
        nodes[2 * node + 1] = link
