"""A tree of a forest, grown in one compiled loop on whichever rows were drawn.

It is the tree that `tree_builder` grows from the same rows, weights and seed: random numbers
belong to
nodes, sums are whole numbers, ties go to the lowest feature and code. Only the way is another, for
trees that look at a few features of each node; see `split_search_rows`. A `Sapling` is room for
one tree at
a time and serves a worker for tree after tree.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.node_search import (
    Scratch,
    bound_children,
    end_node,
    keep_split,
    make_subset,
    new_basic,
    new_scratch,
    search_feature,
    sum_up,
)
from margrove.grove.grow.nodes import (
    BALANCED,
    CODE,
    DECREASE,
    DEPTH,
    DRAWN,
    END,
    ERROR_LEFT,
    FEATURE,
    KEY,
    LEFT,
    MISSING_LEFT,
    NEXT_CODE,
    PARENT,
    SAMPLES,
    START,
    SUBSET,
    WEIGHT,
    Nodes,
    begin_child,
    new_nodes,
    random_below,
    with_room,
)
from margrove.grove.grow.scores import ENTROPY, GINI, SQUARED, weighted_log
from margrove.grove.grow.split_search import MISSING_LEFT as BEST_MISSING_LEFT
from margrove.grove.grow.split_search import Rules
from margrove.grove.grow.split_search_rows import (
    Desk,
    differs,
    gather,
    new_desk,
    search_by_count,
    search_by_draw,
    search_in_order,
    sort_codes,
)
from margrove.grove.grow.subtree import (
    N_FRONTIER,
    N_LEAVES,
    N_NODES,
    N_PROGRESS,
    N_WORDS,
    may_split,
    plant,
    put_node,
    take_node,
)
from margrove.grove.serve import Cuts, PackedTree, cuts_of, pack
from margrove.grove.table import BinnedDataset, Columns, Targets, code_of, fitting_exponent

__all__ = ["Sapling"]

_SHIFT = np.uint64(32)
_MASK = np.int64(0xFFFFFFFF)
_NARROWER = 6  # see `split_search_fast`
# what `progress` counts besides: nodes to be examined, and the first of them
N_NEW, NEWEST = N_PROGRESS, N_PROGRESS + 1


class Sapling:
    """Room for one tree; `start` it, `advance` it until `finished`, take its `packed` form."""

    def __init__(
        self,
        data: BinnedDataset,
        columns: Columns,
        targets: Targets,
        rules: Rules,
        n_categories: np.ndarray,
        *,
        max_leaves: int = 0,
        cuts: Cuts | None = None,
        weights_count: bool = True,
        by_rows: bool = False,
    ) -> None:
        """weights_count: whether a row's weight is the number of samples that it stands for;
        by_rows: whether each row is one sample, of classes whose weights are whole and sum to less
        than 2^31."""
        n, d = data.n_rows, data.n_features
        n_stats = int(targets.starts[-1])
        is_class = len(targets.labels) > 0
        self._columns, self._rules, self._max_leaves = columns, rules, max_leaves
        self._n_categories = n_categories
        self._cuts = cuts_of(data) if cuts is None else cuts
        self._targets = targets._replace(numbers=np.zeros_like(targets.numbers))
        self._rows = np.empty(n, np.int32)
        self._spare = np.empty(n, np.int32)
        self._weights_count = weights_count
        self._quick = is_quick(targets, rules) and (by_rows or weights_count)
        self._swaps = np.zeros(d, np.int64)
        self._basic = new_basic(d, n_stats)
        self._desk: Desk = new_desk(n, n_stats, is_class=is_class, by_rows=by_rows)
        self._general: Scratch | None = None
        self._identity = np.empty(0, np.int64)
        self._largest_set = 0
        if not self._quick or columns.categorical.any() or columns.has_missing.any():
            n_groups = n if len(targets.starts) > 2 else 0
            if columns.categorical.any():
                most = int(columns.n_codes[columns.categorical].max())
                self._largest_set = most // 32 + 1
                n_groups = max(n_groups, min(n, most + 1))
            self._general = new_scratch(self._basic, n, n_groups, rules.criterion)
            self._identity = np.arange(n)
        n_numbers = 0 if is_class else len(targets.starts) - 1
        self._nodes: Nodes = new_nodes(1024, n_stats, n_numbers, 64 * self._largest_set)
        self._heap = np.zeros(1026, np.int64)
        self._progress = np.zeros(N_PROGRESS + 2, np.int64)

    def start(
        self, weight: np.ndarray, samples: np.ndarray, key: int, rules: Rules | None = None
    ) -> None:
        """A new tree: weight int64 (n,) of the rows, in the targets' units; 0 is left out.

        rules, where they are other ones than those of the last tree, differ in bounds only.
        """
        self._rules = self._rules if rules is None else rules
        self._targets = self._targets._replace(weight=weight, samples=samples)
        n_rows = _rows_of(weight, self._rows)
        plant(self._nodes, n_rows, np.int64(np.uint64(key).view(np.int64)))
        self._progress[:] = 0
        self._progress[N_NODES] = self._progress[N_LEAVES] = self._progress[N_NEW] = 1

    @property
    def finished(self) -> bool:
        return bool(self._progress[N_FRONTIER] == 0 and self._progress[N_NEW] == 0)

    @property
    def n_balanced(self) -> int:
        """How many splits were made to halve a node, not to gain."""
        return int(self._nodes.whole[: self._progress[N_NODES], BALANCED].sum())

    def advance(self, work: float) -> float:
        """Do about so many elementary operations; how many were done."""
        done = 0.0
        while done < work and not self.finished:
            self._make_room()
            done += _grow(
                self._rows, self._spare, self._columns, self._identity, self._targets, self._rules,
                self._quick, self._max_leaves, self._largest_set, self._nodes, self._heap,
                self._progress, self._swaps, self._basic, self._desk, self._general, work - done,
            )  # fmt: skip
        return done

    def packed(self) -> PackedTree:
        """The finished tree."""
        return pack(
            self._nodes, int(self._progress[N_NODES]), self._targets, self._rules, self._cuts,
            self._columns, self._n_categories, weights_count=self._weights_count,
        )  # fmt: skip

    def _make_room(self) -> None:
        used, words = int(self._progress[N_NODES]), int(self._progress[N_WORDS])
        capacity, n_words = len(self._nodes.whole), len(self._nodes.subsets)
        if capacity < used + 4:
            capacity = 2 * used + 64
        if n_words < words + 4 * self._largest_set:
            n_words = 2 * words + 64 * self._largest_set
        if capacity > len(self._nodes.whole) or n_words > len(self._nodes.subsets):
            self._nodes = with_room(self._nodes, used, capacity, n_words)
        if len(self._heap) < capacity + 2:
            self._heap = np.concatenate([self._heap, np.zeros(capacity + 2, np.int64)])


def is_quick(targets: Targets, rules: Rules) -> bool:
    """Whether `split_search_rows` does, for features that are numbers and all there."""
    return bool(
        targets.counted
        and len(targets.starts) == 2
        and len(rules.monotone) == 0
        and rules.min_weight <= rules.min_samples_leaf
        and rules.criterion in (GINI, ENTROPY, SQUARED)
    )


@kernel
def _rows_of(weight, rows):
    count = 0
    for row in range(len(weight)):
        rows[count] = row
        count += weight[row] > 0
    return count


@kernel(bare=True)
def _grow(rows, spare, columns, identity, targets, rules, quick, max_leaves, largest_set, nodes,
          heap, progress, swaps, basic, desk, general, work):  # fmt: skip
    """Examine and split nodes until the work is done, the room used up or nothing left."""
    best_first = max_leaves > 0
    whole, real = nodes.whole, nodes.real
    done = 0.0
    while done < work:
        if progress[N_NEW] > 0:  # the right child first: the left one is split next
            node = progress[NEWEST]
            if progress[N_WORDS] + 2 * largest_set > len(nodes.subsets):
                break
            done += _examine(rows, columns, identity, targets, rules, quick, nodes, node, progress,
                             swaps, basic, desk, general)  # fmt: skip
            progress[NEWEST] -= 1
            progress[N_NEW] -= 1
            if whole[node, FEATURE] >= 0:
                put_node(heap, whole, real, progress, node, best_first)
            elif general is None:
                _end(whole, real, nodes.value, node, rows, targets.raw, targets.weight)
            else:
                end_node(nodes, node, rows, targets, rules)
            continue
        if progress[N_FRONTIER] == 0 or progress[N_NODES] + 2 > len(whole):
            break
        node = take_node(heap, whole, real, progress, best_first)
        if best_first and progress[N_LEAVES] >= max_leaves:
            whole[node, FEATURE] = -1
            end_node(nodes, node, rows, targets, rules)
            continue
        middle = _part(rows, spare, columns, whole, nodes.subsets, node)
        first = progress[N_NODES]
        progress[N_NODES] += 2
        progress[N_LEAVES] += 1
        whole[node, LEFT] = first
        begin_child(nodes, first, node, whole[node, START], middle, 0)
        begin_child(nodes, first + 1, node, middle, whole[node, END], 1)
        if general is not None and len(rules.monotone) > 0:
            bound_children(nodes, node, first, rows, targets, rules)
        progress[NEWEST], progress[N_NEW] = first + 1, 2
    return done


@kernel(inner=True, inlined=True)
def _examine(rows, columns, identity, targets, rules, quick, nodes, node, progress, swaps, basic,
             desk, general):  # fmt: skip
    """Sum a node up and find its best split; the work done."""
    whole, real = nodes.whole, nodes.real
    start, end = whole[node, START], whole[node, END]
    n = end - start
    whole[node, FEATURE] = -1
    basic.best[0] = -1
    squares = 0
    if quick:
        pure, base, squares = _sum_up(whole, nodes.stats, nodes.centre, nodes.exponent, nodes.value,
                                      node, rows, targets, rules, basic.offset, desk)  # fmt: skip
    elif general is not None:
        pure, base = sum_up(nodes, node, rows, targets, rules, general)
    else:
        pure, base = True, 0.0
    if not may_split(whole, node, pure, rules):
        return 2.0 * n
    if whole[node, DEPTH] >= rules.greedy_depth:
        _halve(rows, columns, whole, real, node, rules, targets, desk)
        if general is not None and whole[node, FEATURE] >= 0:
            progress[N_WORDS] = make_subset(nodes, node, progress[N_WORDS], columns)
        return float(n) * len(columns.n_codes)
    looked_at = _search(rows, columns, identity, targets, rules, quick, nodes, node, squares, swaps,
                        basic, desk, general)  # fmt: skip
    if general is not None:
        progress[N_WORDS] = keep_split(
            nodes, node, base, progress[N_WORDS], columns, targets, rules, general
        )
    elif basic.best[0] >= 0:
        _keep(whole, real, nodes.exponent, node, base, rules, basic.best[0], basic.score[0])
    return float(n) * (3.0 + 2.0 * looked_at)


@kernel(inner=True, inlined=True)
def _keep(whole, real, exponent, node, base, rules, feature, score):
    """The best split found becomes the node's, if it is good enough."""
    decrease = max(score - base, 0.0)
    if rules.criterion == SQUARED:
        decrease *= 2.0 ** float(-2 * exponent[node, 0])
    if decrease < rules.min_decrease * (1.0 - 1e-12):
        return
    whole[node, FEATURE] = feature
    whole[node, MISSING_LEFT] = 0
    whole[node, SUBSET] = -1
    real[node, DECREASE] = decrease


@kernel(inner=True, inlined=True)
def _search(rows, columns, identity, targets, rules, quick, nodes, node, squares, swaps, basic,
            desk, general):  # fmt: skip
    """Features in turn, or as drawn, until enough have been looked at; how many."""
    whole, real = nodes.whole, nodes.real
    start, end = whole[node, START], whole[node, END]
    n, d = end - start, len(columns.n_codes)
    drawn = rules.max_features < d
    state = np.uint64(whole[node, KEY])
    features, best = basic.features, basic.best
    looked_at, tried = 0, 0
    is_perfect = False
    pure_score = float(whole[node, WEIGHT]) if rules.criterion == GINI else 0.0
    for j in range(d):
        tried = j + 1
        if drawn:
            state, k = random_below(state, d - j)
            features[j], features[j + k] = features[j + k], features[j]
            swaps[j] = j + k
        feature = features[j]
        if is_perfect and feature > best[0]:  # nothing is better, and ties go to the lower
            looked_at += differs(columns, feature, rows, start, n)
            if looked_at >= rules.max_features:
                break
            continue
        least, most = gather(columns, feature, rows, start, n, desk.codes)
        if least == most:
            continue
        looked_at += 1
        is_plain = (
            quick
            and not columns.categorical[feature]
            and not (columns.has_missing[feature] and most == columns.n_codes[feature])
        )
        if is_plain:
            if _search_plain(columns, rules, nodes.stats[node], whole[node, WEIGHT],
                             np.uint64(whole[node, KEY]), n, least, most, squares, basic, desk,
                             feature):  # fmt: skip
                whole[node, CODE], whole[node, NEXT_CODE] = desk.found[0], desk.found[1]
                real[node, DRAWN] = desk.drawn[0] if rules.random else np.nan
                best[BEST_MISSING_LEFT] = 0
                if general is not None:
                    general.counts[0] = 0
                is_perfect = len(desk.labels) > 0 and basic.score[0] == pure_score
        elif general is not None:
            sort_codes(desk.codes, n, least, most, desk)
            for p in range(n):  # the rows themselves instead of their places
                key = desk.keys[p]
                row = rows[start + np.int64(key & np.uint64(0xFFFFFFFF))]
                desk.keys[p] = (key >> _SHIFT << _SHIFT) | np.uint64(row)
            search_feature(desk.keys, 0, n, _SHIFT, _MASK, feature, columns, identity, targets,
                           rules, nodes, node, general)  # fmt: skip
        if looked_at >= rules.max_features and best[0] >= 0:
            break
    if drawn:
        for j in range(tried - 1, -1, -1):
            features[j], features[swaps[j]] = features[swaps[j]], features[j]
    return looked_at


@kernel(inner=True, inlined=True)
def _search_plain(columns, rules, total, weight, key, n, least, most, squares, basic, desk,
                  feature):  # fmt: skip
    """Draw, count or sort, whichever is asked for or least work."""
    if rules.random:
        return search_by_draw(desk, n, least, most, columns, rules, key, total, weight,
                              basic.offset, feature, basic.best, basic.score)  # fmt: skip
    n_cells = (most - least + 1) * (len(total) if len(desk.labels) > 0 else 2)
    if n_cells <= 2 * n:
        return search_by_count(desk, n, least, most, rules, total, weight, squares, basic.offset,
                               feature, basic.best, basic.score)  # fmt: skip
    sort_codes(desk.codes, n, least, most, desk)
    return search_in_order(desk, n, least, rules, total, weight, squares, basic.offset, feature,
                           basic.best, basic.score)  # fmt: skip


@kernel(inner=True, inlined=True)
def _sum_up(whole, stats, centre, exponent, value, node, rows, targets, rules, offset, desk):
    """Put the rows on the desk; (whether they are pure, score of the node, sum of squares)."""
    start, end = whole[node, START], whole[node, END]
    if len(targets.labels) == 0:
        pure, base = _sum_up_numbers(whole, stats, centre, exponent, value, node, rows,
                                     targets.weight, targets.raw, targets.numbers, offset,
                                     desk)  # fmt: skip
        return pure, base, 0
    own = stats[node]
    for k in range(len(own)):
        own[k] = 0
    total = 0
    for i in range(end - start):
        row = np.uint64(rows[start + i])
        label, weight = targets.labels[row], targets.weight[row]
        desk.labels[i] = label
        desk.weight[i] = weight
        own[np.uint64(label)] += weight
        total += weight
    whole[node, WEIGHT] = total
    whole[node, SAMPLES] = end - start if desk.by_rows else total
    gini = rules.criterion == GINI
    squares, most = 0, 0
    for k in range(len(own)):
        most = max(most, own[k])
        squares += own[k] * own[k] if gini else weighted_log(own[k], rules.table, rules.scale)
    base = (
        squares / total
        if gini
        else (squares - weighted_log(total, rules.table, rules.scale)) / rules.scale
    )
    return most == total, base, squares


@kernel(inner=True, inlined=True)
def _sum_up_numbers(whole, stats, centre, exponent, value, node, rows, weight, raw, numbers, offset,
                    desk):  # fmt: skip
    start, end = whole[node, START], whole[node, END]
    low, high, total = np.inf, -np.inf, 0
    for i in range(end - start):
        row = np.uint64(rows[start + i])
        own = raw[row]
        low = min(low, own)
        high = max(high, own)
        desk.weight[i] = weight[row]
        total += weight[row]
    whole[node, WEIGHT] = total
    whole[node, SAMPLES] = total
    middle = 0.5 * low + 0.5 * high
    widest = max(middle - low, high - middle)
    power = fitting_exponent(widest, total)
    is_narrow = widest > 0.0 and power - exponent[node, 0] > _NARROWER
    if whole[node, PARENT] < 0 or is_narrow:
        centre[node, 0] = middle
        exponent[node, 0] = power
        factor = 2.0 ** float(power)
        for i in range(end - start):
            row = np.uint64(rows[start + i])
            numbers[row] = weight[row] * np.int64(np.rint((raw[row] - middle) * factor))
    whole_sum = 0
    for i in range(end - start):
        own_number = numbers[np.uint64(rows[start + i])]
        desk.numbers[i] = own_number
        whole_sum += own_number
    stats[node, 0] = whole_sum
    offset[0] = np.int64(np.rint(float(whole_sum) / float(total)))
    mean = centre[node, 0] + float(whole_sum) / float(total) * 2.0 ** float(-exponent[node, 0])
    value[node, 0] = min(max(mean, low), high)
    rest = float(whole_sum - total * offset[0])
    return low == high, rest * rest / total


@kernel(inner=True, inlined=True)
def _end(whole, real, value, node, rows, raw, weight):
    """A leaf: of a regression, its mean to the last digit and the squared error that is left."""
    real[node, ERROR_LEFT] = 0.0
    if len(raw) == 0:
        return
    start, end = whole[node, START], whole[node, END]
    low, high = np.inf, -np.inf
    for p in range(start, end):
        own = raw[rows[p]]
        low = min(low, own)
        high = max(high, own)
    value[node, 0] = low
    if low == high:
        return
    total = whole[node, WEIGHT]
    factor = 2.0 ** float(fitting_exponent(high - low, total))
    whole_sum = 0
    for p in range(start, end):
        whole_sum += weight[rows[p]] * np.int64(np.rint((raw[rows[p]] - low) * factor))
    above = float(whole_sum) / float(total) / factor  # the lowest, before it is rounded
    value[node, 0] = min(max(low + above, low), high)
    largest = max(high - low - above, above)
    scale = 2.0 ** float(fitting_exponent(1.0, total))
    error = 0
    for p in range(start, end):
        share = (raw[rows[p]] - low - above) / largest
        error += weight[rows[p]] * np.int64(np.rint(share * share * scale))
    real[node, ERROR_LEFT] = float(error) / scale * largest * largest


@kernel(inner=True)
def _halve(rows, columns, whole, real, node, rules, targets, desk):
    """The most even split there is, by the number of rows; see `subtree`."""
    start, end = whole[node, START], whole[node, END]
    n = end - start
    feature, code, following, most_even = -1, 0, 0, 0
    for j in range(len(columns.n_codes)):
        least, most = gather(columns, j, rows, start, n, desk.codes)
        if least == most:
            continue
        sort_codes(desk.codes, n, least, most, desk)
        p = q = n // 2
        while p > 0 and desk.keys[p] >> _SHIFT == desk.keys[p - 1] >> _SHIFT:
            p -= 1
        while q < n and desk.keys[q] >> _SHIFT == desk.keys[q - 1] >> _SHIFT:
            q += 1
        for cut in (p, q):
            smaller = min(cut, n - cut)
            if smaller > most_even:
                feature, most_even = j, smaller
                code = np.int64(desk.keys[cut - 1] >> _SHIFT) + least
                following = np.int64(desk.keys[cut] >> _SHIFT) + least
    if feature < 0:
        return
    samples, weight = 0, 0
    for p in range(start, end):
        if code_of(columns, feature, rows[p]) <= code:
            samples += targets.samples[rows[p]]
            weight += targets.weight[rows[p]]
    if (
        min(samples, whole[node, SAMPLES] - samples) < rules.min_samples_leaf
        or min(weight, whole[node, WEIGHT] - weight) < rules.min_weight
    ):
        return
    whole[node, FEATURE], whole[node, BALANCED] = feature, 1
    whole[node, SUBSET], whole[node, MISSING_LEFT] = -1, 0
    whole[node, CODE], whole[node, NEXT_CODE] = code, following
    real[node, DECREASE], real[node, DRAWN] = 0.0, np.nan


@kernel(inner=True, inlined=True)
def _part(rows, spare, columns, whole, subsets, node):
    """Rows of the left child first, then those of the right one, in order; where these begin."""
    start, end = whole[node, START], whole[node, END]
    feature, code = whole[node, FEATURE], whole[node, CODE]
    width, place = columns.width[feature], columns.place[feature]
    if whole[node, SUBSET] >= 0 or columns.has_missing[feature]:
        return _part_generally(rows, spare, columns, whole, subsets, node)
    whole[node, MISSING_LEFT] = -1
    if width == 0:
        return _part_by_code(rows, spare, columns.narrow[place], start, end, code)
    if width == 1:
        return _part_by_code(rows, spare, columns.medium[place], start, end, code)
    return _part_by_code(rows, spare, columns.wide[place], start, end, code)


@kernel(inner=True, inlined=True)
def _part_by_code(rows, spare, column, start, end, code):
    left, right, one = np.uint64(start), np.uint64(0), np.uint64(1)
    last = np.uint32(code)
    for p in range(np.uint64(start), np.uint64(end)):
        row = rows[p]
        goes_right = np.uint64(np.uint32(column[np.uint64(row)]) > last)
        rows[left] = row
        spare[right] = row
        left += one - goes_right
        right += goes_right
    for p in range(right):
        rows[left + p] = spare[p]
    return np.int64(left)


@kernel(inner=True)
def _part_generally(rows, spare, columns, whole, subsets, node):
    start, end = whole[node, START], whole[node, END]
    feature, code, subset = whole[node, FEATURE], whole[node, CODE], whole[node, SUBSET]
    missing_left, missing = whole[node, MISSING_LEFT], columns.n_codes[feature]
    left, right = start, 0
    whole[node, MISSING_LEFT] = -1
    for p in range(start, end):
        row = rows[p]
        own = code_of(columns, feature, row)
        if own == missing:
            goes_left = missing_left == 1
            whole[node, MISSING_LEFT] = missing_left
        elif subset >= 0:
            goes_left = (subsets[subset + own // 32] >> np.uint32(own % 32)) & np.uint32(1) == 1
        else:
            goes_left = own <= code
        if goes_left:
            rows[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    for p in range(right):
        rows[left + p] = spare[p]
    return left
