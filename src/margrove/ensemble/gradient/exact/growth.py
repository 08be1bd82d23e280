"""Growth of an exact tree: the root, splitting nodes level by level, and the leaf of each row."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel, region, share_tiles
from margrove.ensemble.gradient.exact.nodes import FEW_ROWS, SPAN, TILE_ROWS
from margrove.ensemble.gradient.exact.split_search import (
    consider_split,
    count,
    n_rows,
    scatter_at_most,
    search,
    search_few,
    searched_node,
    subtract,
)
from margrove.grove.table import BITS_OF_SUMS, bits_of, code_of

__all__ = [
    "find_limits",
    "finish",
    "grow_alone",
    "make_root",
    "search_span",
    "split_span",
    "start_tree",
    "take_better",
    "walk_others",
]

_ROWS_SHARED = 4 * TILE_ROWS  # of a node that several threads partition
_LEFT, _TARGET, _WEIGHT, _PACKED, _HIGHEST, _LOWEST, _SCATTER = range(7)  # sums of a tile


@kernel(bare=True)
def start_tree(n_chosen, rules, tree):
    """Write the root, after `make_root`."""
    target, weight, packed = np.int64(0), np.int64(0), np.int64(0)
    for tile in range(-(-n_chosen // TILE_ROWS)):
        target += tree.sums[tile, _TARGET]
        weight += tree.sums[tile, _WEIGHT]
        packed += tree.sums[tile, _PACKED]
    state = tree.state[0]
    state.n_nodes, state.first, state.last = 1, 0, 1
    state.n_free = len(tree.free) - 1
    for slot in range(len(tree.free) - 1):
        tree.free[slot] = slot + 1
    root = np.int64(0)
    write_node(rules, tree, root, root, root, n_chosen, target, weight, packed)
    tree.nodes.slot[root] = 0


@region(bare=True)
def make_root(tile, gradient, samples, is_counted, scale, rules, chosen, words, tree):
    """Write the targets of a tile of the chosen rows as integers, and their sums; the root, if
    this is the only tile."""
    is_weighted = len(words.weight) > 0
    target, weight, packed = np.int64(0), np.int64(0), np.int64(0)
    for p in range(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, len(chosen))):
        row = np.uint64(chosen[p])
        tree.rows[p] = chosen[p]
        tree.node_of[row] = 0
        copies = samples[row] if len(samples) else np.int64(1)
        mass = words.weight[row] if is_weighted else copies
        real = -gradient[row] * scale.first * scale.second
        if is_counted:
            integer = mass * np.int64(np.rint(real))
        else:
            integer = np.int64(np.rint(float(mass) * real))
        share = real * scale.share
        square = np.int64(np.ceil(float(mass) * (share * share * scale.square)))
        word = (square << rules.bits) + copies
        words.pairs[np.uint64(2) * row], words.pairs[np.uint64(2) * row + np.uint64(1)] = (
            integer,
            word,
        )
        target += integer
        weight += mass
        packed += word
    sums = tree.sums[tile]
    sums[_TARGET], sums[_WEIGHT], sums[_PACKED] = target, weight, packed
    if len(chosen) <= TILE_ROWS:
        start_tree(len(chosen), rules, tree)


@kernel(bare=True)
def grow_alone(pool, group, codes, words, rules, tree, space):
    """Search and split span after span, as long as the nodes array is large enough."""
    state = tree.state[0]
    while state.first < state.last:
        if state.n_nodes + 2 * (state.last - state.first) > len(tree.nodes):
            return
        search_nodes(group, codes, words, rules, tree, space)
        split_nodes(pool, 1, codes, words, rules, tree, space)


@kernel(bare=True)
def search_span(group, codes, words, rules, tree, space):
    search_nodes(group, codes, words, rules, tree, space)


@kernel(bare=True)
def split_span(pool, n_threads, codes, words, rules, tree, space):
    split_nodes(pool, n_threads, codes, words, rules, tree, space)


@kernel(inner=True)
def search_nodes(group, codes, words, rules, tree, space):
    """Find the best splits of the next nodes by the features of a group."""
    nodes, first, last = tree.nodes, tree.state[0].first, tree.state[0].last
    for place in range(first, last):
        node, sibling = smaller_first(nodes, place)
        best = space.best[node - first]
        best.feature = best.candidate[0] = -1
        best.score[0] = -np.inf
        if inherits_histogram(nodes[node]):
            subtract(nodes, space, sibling, node)
        elif is_large(nodes[node]) or inherits_histogram(nodes[sibling]):
            count(group, words, tree, space, node)
        if is_large(nodes[node]):
            search(group, words, rules, tree, space, node)
        elif nodes.is_open[node]:
            search_few(group, codes, words, rules, tree, space, node)


@kernel(inner=True)
def smaller_first(nodes, place):
    """A node and its sibling: of two siblings, the one with fewer rows is searched first."""
    if place == 0:
        return place, place
    left = place - 1 + place % 2
    is_left_large = n_rows(nodes[left]) > n_rows(nodes[left + 1])
    node = place if not is_left_large else 2 * left + 1 - place
    return node, 2 * left + 1 - node


@kernel(inner=True)
def inherits_histogram(node):
    """Whether the histogram of a node is that of its parent minus that of its sibling."""
    return is_large(node) and node.inherits


@kernel(inner=True)
def is_large(node):
    """Whether a node is searched by its histogram."""
    return node.is_open and n_rows(node) > FEW_ROWS


@kernel(bare=True)
def take_better(tree, other, space):
    """For each node, replace the best split in `space` if that of `other` is better."""
    for place in range(tree.state[0].last - tree.state[0].first):
        split, best = other.best[place], space.best[place]
        if split.feature >= 0 and consider_split(
            split.left_target, split.left_weight, split.right_target, split.right_weight,
            split.score[0], split.feature, split.code, best,
        ):  # fmt: skip
            best.left_packed, best.next_code = split.left_packed, split.next_code


@kernel(inner=True)
def split_nodes(pool, n_threads, codes, words, rules, tree, space):
    """Split the nodes that were searched, if it is worth it."""
    state = tree.state[0]
    first, last = state.first, state.last
    for node in range(first, last):
        if tree.nodes.is_open[node]:
            best = space.best[node - first]
            if best.feature >= 0 and is_worth_it(pool, n_threads, words, rules, tree, node, best):
                split_node(pool, n_threads, codes, rules, tree, node, best)
            else:
                free_slot(tree, tree.nodes.slot[node])
    state.first = last
    state.last = min(state.n_nodes, last + SPAN)


@kernel(inner=True)
def is_worth_it(pool, n_threads, words, rules, tree, node, best):
    """Whether a split gains more than rounding errors; its gain is stored in the node."""
    record = tree.nodes[node]
    searched = searched_node(record, node)
    wa, wb = float(best.left_weight), float(best.right_weight)
    apart = abs(float(best.left_target) - searched.drift * wa)
    gain = apart * apart * (wa + wb) / (wa * wb)
    record.gain = gain
    # The rounding error is at most one half for each sample.
    n_left = float(best.left_packed & rules.mask)
    n_right = float(record.packed & rules.mask) - n_left
    rounding = 0.25 * (n_left * n_left / wa + n_right * n_right / wb)
    if gain <= rounding or apart <= 2.0 * searched.slack:
        return False
    nothing = rules.nothing * (wa + wb)
    if gain > nothing:
        return True
    return scatter_of(pool, n_threads, words, rules, tree, node) > nothing


@kernel(inner=True)
def scatter_of(pool, n_threads, words, rules, tree, node):
    """The sum of squares around the mean, summed as integers, so the order does not matter."""
    record = tree.nodes[node]
    mean = record.target / record.weight
    most = scatter_at_most(record.target, record.weight, record.packed, rules) / record.weight
    if most == 0.0:
        return 0.0
    factor = 2.0 ** float(BITS_OF_SUMS - bits_of(most))
    start, end = record.start, record.end
    n_tiles = -(-(end - start) // TILE_ROWS)
    share_tiles(pool, n_tiles, n_threads, add_scatter,
                (words, rules.mask, tree, start, end, mean, factor))  # fmt: skip
    total = np.int64(0)
    for tile in range(n_tiles):
        total += tree.sums[tile, _SCATTER]
    return float(total) / factor


@kernel(inner=True)
def add_scatter(tile, words, mask, tree, start, end, mean, factor):
    """Sum squares around the mean, as integers, over a tile of the rows start .. end - 1."""
    is_weighted = len(words.weight) > 0
    total = np.int64(0)
    for p in range(start + tile * TILE_ROWS, min(start + (tile + 1) * TILE_ROWS, end)):
        row = np.uint64(tree.rows[p])
        at = np.uint64(2) * row
        packed = words.pairs[at + np.uint64(1)]
        weight = float(words.weight[row] if is_weighted else packed & mask)
        apart = float(words.pairs[at]) - weight * mean
        total += np.int64(np.rint(apart * apart / weight * factor))
    tree.sums[tile, _SCATTER] = total


@kernel(inner=True)
def split_node(pool, n_threads, codes, rules, tree, node, best):
    """Partition the rows of a node and write its children."""
    nodes, record, state = tree.nodes, tree.nodes[node], tree.state[0]
    feature, left = best.feature, state.n_nodes
    place = codes.place[feature]
    if codes.width[feature] == 0:
        middle, code, next_code = partition(
            pool, n_threads, codes.narrow[place], best, tree, node, left
        )
    elif codes.width[feature] == 1:
        middle, code, next_code = partition(
            pool, n_threads, codes.medium[place], best, tree, node, left
        )
    else:
        middle, code, next_code = partition(
            pool, n_threads, codes.wide[place], best, tree, node, left
        )
    record.left, record.feature, record.code, record.next_code = left, feature, code, next_code
    state.n_nodes += 2
    target = best.left_target + searched_node(record, node).centre * best.left_weight
    depth = record.depth + 1
    write_node(rules, tree, depth, left, record.start, middle, target, best.left_weight,
               best.left_packed)  # fmt: skip
    write_node(rules, tree, depth, left + 1, middle, record.end, record.target - target,
               best.right_weight, record.packed - best.left_packed)  # fmt: skip
    is_left_large = 2 * (middle - record.start) > record.end - record.start
    large = left if is_left_large else left + 1
    small = 2 * left + 1 - large
    if is_large(nodes[large]):
        nodes.slot[large] = record.slot
        nodes.inherits[large] = record.slot < len(tree.free)
    else:
        free_slot(tree, record.slot)
    if is_large(nodes[small]) and state.n_free > 0:
        state.n_free -= 1
        nodes.slot[small] = tree.free[state.n_free]


@kernel(inner=True)
def write_node(rules, tree, depth, node, start, end, target, weight, packed):
    """Write a node without children, and without a histogram slot of its own."""
    record = tree.nodes[node]
    record.start, record.end, record.depth = start, end, depth
    record.target, record.weight, record.packed = target, weight, packed
    record.left = record.feature = record.code = record.next_code = -1
    record.is_open = is_open(record, rules)
    record.slot, record.inherits = len(tree.free), 0


@kernel(inner=True)
def is_open(node, rules):
    samples = node.packed & rules.mask
    return (
        node.depth < rules.max_depth
        and samples >= max(rules.min_split, 2 * rules.min_leaf)
        and node.weight >= 2 * rules.min_weight
    )


@kernel(inner=True)
def free_slot(tree, slot):
    if slot < len(tree.free):
        tree.free[tree.state[0].n_free] = slot
        tree.state[0].n_free += 1


@kernel(inner=True)
def partition(pool, n_threads, column, best, tree, node, left):
    """Move rows that go left to the front; returns where the others begin, and the codes next to
    the split."""
    if n_threads > 1 and n_rows(tree.nodes[node]) >= _ROWS_SHARED:
        return partition_in_tiles(pool, n_threads, column, best, tree, node, left)
    rows, spare, one = tree.rows, tree.spare, np.uint64(1)
    start, end, limit = tree.nodes.start[node], tree.nodes.end[node], best.code
    at_left, at_right = np.uint64(start), np.uint64(0)
    for p in range(start, end):
        row = rows[p]
        is_right = np.uint64(np.int64(column[np.uint64(row)]) > limit)
        rows[at_left] = row
        spare[at_right] = row
        at_left += one - is_right
        at_right += is_right
        tree.node_of[np.uint64(row)] = left + np.int64(is_right)
    middle = np.int64(at_left)
    for p in range(end - middle):
        rows[middle + p] = spare[p]
    if best.next_code >= 0:
        return middle, limit, best.next_code
    code, next_code = np.int64(-1), np.int64(1) << 32
    for p in range(start, middle):
        code = max(code, np.int64(column[np.uint64(rows[p])]))
    for p in range(middle, end):
        next_code = min(next_code, np.int64(column[np.uint64(rows[p])]))
    return middle, code, next_code


@kernel(inner=True)
def partition_in_tiles(pool, n_threads, column, best, tree, node, left):
    """The same, by several threads."""
    start, end, limit = tree.nodes.start[node], tree.nodes.end[node], best.code
    n_tiles = -(-(end - start) // TILE_ROWS)
    share_tiles(pool, n_tiles, n_threads, count_left, (column, tree, start, end, limit))
    middle = start
    for tile in range(n_tiles):
        middle += tree.sums[tile, _LEFT]
    to_left, to_right = start, middle
    for tile in range(n_tiles):
        sums = tree.sums[tile]
        size = min(TILE_ROWS, end - start - tile * TILE_ROWS)
        n_left = sums[_LEFT]
        sums[_LEFT], sums[_TARGET] = to_left, to_right
        to_left += n_left
        to_right += size - n_left
    share_tiles(pool, n_tiles, n_threads, move_rows, (column, tree, start, end, limit, left))
    share_tiles(pool, n_tiles, n_threads, copy_back, (tree, start, end))
    if best.next_code >= 0:
        return middle, limit, best.next_code
    code, next_code = np.int64(-1), np.int64(1) << 32
    for tile in range(n_tiles):
        code = max(code, tree.sums[tile, _HIGHEST])
        next_code = min(next_code, tree.sums[tile, _LOWEST])
    return middle, code, next_code


@kernel(inner=True)
def count_left(tile, column, tree, start, end, limit):
    """Count the rows of a tile that go left."""
    n_left = np.int64(0)
    for p in range(start + tile * TILE_ROWS, min(start + (tile + 1) * TILE_ROWS, end)):
        n_left += np.int64(np.int64(column[np.uint64(tree.rows[p])]) <= limit)
    tree.sums[tile, _LEFT] = n_left


@kernel(inner=True)
def move_rows(tile, column, tree, start, end, limit, left):
    """Write the rows of a tile to their new places in the spare array."""
    sums, one = tree.sums[tile], np.uint64(1)
    at_left, at_right = np.uint64(sums[_LEFT]), np.uint64(sums[_TARGET])
    highest, lowest = np.int64(-1), np.int64(1) << 32
    for p in range(start + tile * TILE_ROWS, min(start + (tile + 1) * TILE_ROWS, end)):
        row = tree.rows[p]
        code = np.int64(column[np.uint64(row)])
        is_right = np.uint64(code > limit)
        tree.spare[at_right if is_right else at_left] = row
        at_left += one - is_right
        at_right += is_right
        tree.node_of[np.uint64(row)] = left + np.int64(is_right)
        highest = max(highest, code if code <= limit else np.int64(-1))
        lowest = min(lowest, code if code > limit else np.int64(1) << 32)
    sums[_HIGHEST], sums[_LOWEST] = highest, lowest


@kernel(inner=True)
def copy_back(tile, tree, start, end):
    for p in range(start + tile * TILE_ROWS, min(start + (tile + 1) * TILE_ROWS, end)):
        tree.rows[p] = tree.spare[p]


@kernel(bare=True)
def finish(pool, n_threads, cuts, words, rules, tree, threshold, error):
    """Write thresholds, and sums of squares around the means."""
    nodes = tree.nodes
    for node in range(tree.state[0].n_nodes - 1, -1, -1):
        left = nodes.left[node]
        if left < 0:
            nodes.gain[node] = 0.0
            threshold[node] = np.nan
            error[node] = scatter_of(pool, n_threads, words, rules, tree, node)
            continue
        first = cuts.first[nodes.feature[node]]
        below = cuts.lows[first + nodes.code[node]]
        above = cuts.lows[first + nodes.next_code[node]]
        middle = 0.5 * below + 0.5 * above
        threshold[node] = middle if below <= middle < above else below
        error[node] = error[left] + error[left + 1] + nodes.gain[node]


@kernel(bare=True)
def find_limits(cuts, tree, threshold, limit):
    """Write the highest code that goes left in each node."""
    nodes = tree.nodes
    for node in range(tree.state[0].n_nodes):
        if nodes.left[node] >= 0:
            first = cuts.first[nodes.feature[node]]
            low, high = nodes.code[node], nodes.next_code[node]
            while high - low > 1:
                middle = (low + high) // 2
                if cuts.lows[first + middle] <= threshold[node]:
                    low = middle
                else:
                    high = middle
            limit[node] = low


@region(bare=True)
def walk_others(tile, codes, tree, limit):
    """Find the leaves of rows that the tree was not grown on."""
    nodes = tree.nodes
    for i in range(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, len(tree.node_of))):
        if tree.node_of[i] < 0:
            node = np.int64(0)
            while nodes.left[node] >= 0:
                is_right = code_of(codes, nodes.feature[node], i) > limit[node]
                node = nodes.left[node] + np.int64(is_right)
            tree.node_of[i] = node
