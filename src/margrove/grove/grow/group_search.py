"""The best splits of large nodes, through histograms of their codes.

Tiles are pairs of a node and a feature; the rows of the largest nodes are cut into parts first,
whose histograms are added up. Sums are whole numbers, so neither shows in the splits, which are
those of `search.node_search`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, kernel, region
from margrove.grove.grow.node_sums import NearRows, NodeSums
from margrove.grove.grow.nodes import Nodes, new_nodes, random_below
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search import (
    ABSOLUTE,
    CUSTOM,
    ENTROPY,
    GAIN_RATIO,
    GINI,
    MISSING_LEFT,
    SQUARED,
    GeneralBuffers,
    SortedRows,
    consider,
    keep_split,
    scan_classes,
    scan_numbers,
    search_feature,
    search_in_orders,
)
from margrove.grove.table import Columns, Targets, code_of, sorted_by_digits

__all__ = ["CELLS_OF_SPARSE", "GroupSearch", "best_ratio", "shuffle", "sorted_entries"]

CELLS_OF_SPARSE = 16  # cells of a histogram for each row, from which on rows are sorted instead
_ROWS_OF_PART = 1 << 16
_CELLS_OF_PART = 1 << 14
_FEW_CELLS = 1 << 12  # of a histogram that is kept four times
_WORK_AT_ONCE = 5e7  # rows times features of one region, for each thread: some 50 ms
_HALF_WORD = np.uint64(32)
_ALL_BITS = np.int64(0xFFFFFFFF)


class _Pairs(NamedTuple):
    """Pair k is feature[k] of the node with number node[k], which is the slot[k]-th of the batch.

    first    where the histograms of its parts begin; -1: it has none
    """

    node: np.ndarray
    slot: np.ndarray
    feature: np.ndarray
    first: np.ndarray


class _Found(NamedTuple):
    """The best split of each pair, see `search.buffers`.

    nodes       a node for each pair, in which the search leaves codes
    chosen      int64: chosen[at[k]:] are the codes of pair k that go left
    varies      whether the feature is not constant in the node
    """

    nodes: Nodes
    best: np.ndarray
    score: np.ndarray
    counts: np.ndarray
    chosen: np.ndarray
    at: np.ndarray
    varies: np.ndarray


class GroupSearch:
    """Searches nodes of many rows, with any built-in criterion that sums of groups are enough for,
    and without random thresholds."""

    def __init__(self, columns: Columns, targets: Targets, rules: Rules, n_threads: int) -> None:
        self._columns, self._targets, self._rules = columns, targets, rules
        self._n_threads = n_threads
        self._identity = np.empty(0, np.int64)
        n_codes = columns.n_codes + 1
        self._cells = n_codes * int(targets.starts[-1])
        room = np.where(columns.categorical, n_codes, 0)
        self._room = int(room.sum())
        self._chosen_at = np.cumsum(room) - room

    def search(
        self, nodes: Nodes, which: np.ndarray, sums: NodeSums, rows: np.ndarray, near: NearRows,
        n_words: int,
    ) -> int:  # fmt: skip
        """Find and keep the best splits of some nodes; words of subsets in use."""
        d, count = len(self._columns.n_codes), self._rules.max_features
        slots = np.repeat(np.arange(len(which)), d)
        features = np.empty((len(which), d), np.int64)
        _list_features(features, nodes.record, which, self._rules)
        pairs = _Pairs(which[slots], slots, features.ravel(), np.full(len(slots), -1))
        found = self._new_found(nodes, pairs)
        if self._needs_identity(nodes, which) and not len(self._identity):
            self._identity = np.arange(self._columns.narrow.shape[1])
        # No search ends before it has looked at `count` features that vary.
        at = np.zeros(len(which), np.int64)
        wanted = np.full(len(which), min(count, d))
        while wanted.any():
            number = np.arange(wanted.sum()) - np.repeat(np.cumsum(wanted) - wanted, wanted)
            todo = np.repeat(np.arange(len(which)) * d + at, wanted) + number
            self._search_pairs(nodes, pairs, todo, sums, rows, near, found)
            at += wanted
            if count >= d:
                break
            wanted = self._still_wanted(found, at, count)
        return self._keep(nodes, which, pairs, found, sums.base, n_words)

    def _new_found(self, nodes: Nodes, pairs: _Pairs) -> _Found:
        n, d = len(pairs.node), len(self._columns.n_codes)
        return _Found(
            new_nodes(n, nodes.stats.shape[1], nodes.centre.shape[1], 0),
            np.full((n, 7), -1, np.int64),
            np.zeros((n, 1)),
            np.zeros((n, 1), np.int64),
            np.empty(self._room * (n // d), np.int64),
            pairs.slot * self._room + self._chosen_at[pairs.feature],
            np.zeros(n, np.int64),
        )

    def _needs_identity(self, nodes: Nodes, which: np.ndarray) -> bool:
        record = fields_of(nodes.record)
        fewest = (record["end"][which] - record["start"][which]).min()
        return bool(self._cells.max() > CELLS_OF_SPARSE * fewest)

    def _still_wanted(self, found: _Found, at: np.ndarray, count: int) -> np.ndarray:
        """How many more features of each node have to be searched."""
        d = len(self._columns.n_codes)
        looked_at = found.varies.reshape(-1, d).sum(axis=1)
        has_split = (found.best[:, 0] >= 0).reshape(-1, d).any(axis=1)
        wanted = np.where((looked_at >= count) & has_split, 0, np.maximum(count - looked_at, 1))
        return np.minimum(wanted, d - at)

    def _search_pairs(
        self, nodes: Nodes, pairs: _Pairs, todo: np.ndarray, sums: NodeSums, rows: np.ndarray,
        near: NearRows, found: _Found,
    ) -> None:  # fmt: skip
        """Search some pairs, in regions of a length that interrupts can wait for."""
        record = fields_of(nodes.record)
        size = (record["end"] - record["start"])[pairs.node[todo]]
        todo, size = _largest_first(todo, size)
        done = np.cumsum(size)
        begin = 0
        while begin < len(todo):
            work = (done[begin - 1] if begin else 0) + _WORK_AT_ONCE * self._n_threads
            end = max(begin + 1, int(np.searchsorted(done, work)))
            some = todo[begin:end]
            parts = self._parts(nodes, pairs, some, size[begin:end], rows, near)
            _search_pair(len(some), self._n_threads, some, pairs, parts, self._columns, rows,
                         self._identity, self._targets, near, self._rules, nodes, sums.offset,
                         found)  # fmt: skip
            begin = end

    def _parts(
        self, nodes: Nodes, pairs: _Pairs, some: np.ndarray, size: np.ndarray, rows: np.ndarray,
        near: NearRows,
    ) -> np.ndarray:  # fmt: skip
        """The histograms of the parts of the largest nodes among some pairs."""
        features = pairs.feature[some]
        has_parts = (size >= 2 * _ROWS_OF_PART) & (self._cells[features] <= _CELLS_OF_PART)
        pairs.first[some] = -1
        if not has_parts.any():
            return np.empty(0, np.int64)
        chosen = some[has_parts]
        n_parts = -(-size[has_parts] // _ROWS_OF_PART)
        cells = (self._cells + 2 * (self._columns.n_codes + 1))[features[has_parts]]
        pairs.first[chosen] = np.cumsum(n_parts * cells) - n_parts * cells
        owner = np.repeat(chosen, n_parts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
        parts = np.empty(int((n_parts * cells).sum()), np.int64)
        _group_part(len(owner), self._n_threads, owner, number, pairs, self._columns, rows,
                    self._targets, near, nodes.record, parts)  # fmt: skip
        return parts

    def _keep(
        self, nodes: Nodes, which: np.ndarray, pairs: _Pairs, found: _Found, base: np.ndarray,
        n_words: int,
    ) -> int:  # fmt: skip
        """The best of the features' best splits become the nodes'."""
        known = self._rules.criterion
        if known == GAIN_RATIO:
            winners = self._best_ratios(nodes, which, pairs, found, base)
        else:
            if len(self._targets.starts) > 2 and len(self._targets.raw) and known != ABSOLUTE:
                known = CUSTOM  # sums over outputs have no exact form
            winners = np.empty(len(which), np.int64)
            _choose(winners, pairs.feature, found, known, self._rules.counted)
        return int(
            _keep_winners(winners, nodes, which, base, n_words, self._columns, self._targets,
                          self._rules, found)
        )  # fmt: skip

    def _best_ratios(
        self, nodes: Nodes, which: np.ndarray, pairs: _Pairs, found: _Found, base: np.ndarray
    ) -> np.ndarray:
        winners = np.full(len(which), -1)
        d = len(self._columns.n_codes)
        for slot, node in enumerate(which.tolist()):
            of_node = np.arange(slot * d, (slot + 1) * d)
            of_node = of_node[found.best[of_node, 0] >= 0]
            of_node = of_node[np.argsort(pairs.feature[of_node])]
            if len(of_node):
                weight = int(fields_of(nodes.record)["weight"][node])
                gains = np.maximum(found.score[of_node, 0] - base[slot], 0.0)
                lefts = found.best[of_node, 2]
                winners[slot] = of_node[best_ratio(gains.tolist(), lefts.tolist(), weight)]
        return winners


def _largest_first(todo: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """So that all threads end at about the same time."""
    order = np.argsort(-size, kind="stable")
    return todo[order], size[order]


def best_ratio(gains: list[float], lefts: list[int], weight: int) -> int:
    """C4.5's choice; see `node_search`."""
    average = sum(gains) / len(gains)
    winner, best = -1, 0.0
    for k, (gain, left) in enumerate(zip(gains, lefts, strict=True)):
        shares = np.array([left, weight - left]) / weight
        ratio = gain / (-weight * float((shares * np.log2(shares)).sum()))
        if gain >= average * (1.0 - 1e-9) and (winner < 0 or ratio > best * (1.0 + 1e-12)):
            winner, best = k, ratio
    return max(winner, 0)


@kernel
def _list_features(features, record, which, rules):
    """The features of each node in the order in which they are looked at, as in a subtree."""
    d = features.shape[1]
    for k in range(len(which)):
        for j in range(d):
            features[k, j] = j
        if rules.max_features < d:
            shuffle(features[k], np.uint64(record.key[which[k]]))


@kernel(bare=True)
def shuffle(features, state):
    """Shuffle features by the random numbers that begin with a state."""
    for j in range(len(features)):
        state, k = random_below(state, len(features) - j)
        features[j], features[j + k] = features[j + k], features[j]


# -- histograms --


@region
def _group_part(tile, owner, number, pairs, columns, rows, targets, near, record, parts):
    """The histogram of one part of a pair: statistics, then weights, then samples of the codes."""
    pair = owner[tile]
    feature = pairs.feature[pair]
    n_codes, n_stats = columns.n_codes[feature] + 1, targets.starts[-1]
    size = n_codes * (n_stats + 2)
    at = pairs.first[pair] + number[tile] * size
    cells = parts[at : at + size]
    cells[:] = 0
    node = pairs.node[pair]
    begin = record.start[node] + number[tile] * _ROWS_OF_PART
    end = min(begin + _ROWS_OF_PART, record.end[node])
    stats = cells[: n_codes * n_stats].reshape((n_codes, n_stats))
    weights = cells[n_codes * n_stats : n_codes * (n_stats + 1)]
    samples = cells[n_codes * (n_stats + 1) :]
    _group(columns, feature, rows, begin, end, targets, near, stats, weights, samples)


@kernel(hidden=True)
def _group(columns, feature, rows, begin, end, targets, near, stats, weights, samples):
    """Add rows[begin:end] to the statistics, weights and samples of their codes."""
    place = columns.place[feature]
    if columns.width[feature] == 0:
        _add_rows(columns.narrow[place], rows, begin, end, targets, near, stats, weights, samples)
    elif columns.width[feature] == 1:
        _add_rows(columns.medium[place], rows, begin, end, targets, near, stats, weights, samples)
    else:
        _add_rows(columns.wide[place], rows, begin, end, targets, near, stats, weights, samples)


@kernel(hidden=True)
def _add_rows(codes, rows, begin, end, targets, near, stats, weights, samples):
    n_stats = stats.shape[1]
    if len(near.labels) > 0:
        size = stats.size
        copies = 4 if size <= _FEW_CELLS else 1
        cells = np.zeros(copies * size, np.int32)
        _count(codes, rows, begin, end, near.labels, n_stats, size if copies == 4 else 0, cells)
        for code in range(len(weights)):
            for k in range(n_stats):
                count = np.int64(0)
                for copy in range(copies):
                    count += cells[copy * size + code * n_stats + k]
                stats[code, k] += count
                weights[code] += count
                samples[code] += count
    elif len(near.numbers) > 0:
        for p in range(np.uint64(begin), np.uint64(end)):
            code = np.uint64(codes[np.uint64(rows[p])])
            stats[code, np.uint64(0)] += near.numbers[p]
            weights[code] += 1
        for code in range(len(weights)):
            samples[code] = weights[code]
    else:
        _add_any(codes, rows, begin, end, targets, stats, weights, samples)


@kernel(inner=True)
def _count(codes, rows, begin, end, labels, n_classes, step, cells):
    """Count codes and labels, row after row in one of four tables that are `step` cells apart.

    Rows that follow each other mostly have the same code and label: in one table, each would wait
    for the last one.
    """
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    width, step = np.uint64(n_classes), np.uint64(step)
    p = np.uint64(begin)
    for _ in range((end - begin) // 4):
        a = np.uint64(codes[np.uint64(rows[p])]) * width + np.uint64(labels[p])
        b = np.uint64(codes[np.uint64(rows[p + one])]) * width + np.uint64(labels[p + one])
        c = np.uint64(codes[np.uint64(rows[p + two])]) * width + np.uint64(labels[p + two])
        d = np.uint64(codes[np.uint64(rows[p + three])]) * width + np.uint64(labels[p + three])
        cells[a] += 1
        cells[b + step] += 1
        cells[c + two * step] += 1
        cells[d + three * step] += 1
        p += four
    while p < np.uint64(end):
        cells[np.uint64(codes[np.uint64(rows[p])]) * width + np.uint64(labels[p])] += 1
        p += one


@kernel(inner=True)
def _add_any(codes, rows, begin, end, targets, stats, weights, samples):
    n_outputs = len(targets.starts) - 1
    is_class = len(targets.labels) > 0
    for p in range(begin, end):
        row = np.uint64(rows[p])
        code = np.uint64(codes[row])
        weight = targets.weight[row]
        weights[code] += weight
        samples[code] += targets.samples[row]
        for o in range(n_outputs):
            cell = row * np.uint64(n_outputs) + np.uint64(o)
            if is_class:
                stats[code, np.uint64(targets.labels[cell])] += weight
            else:
                stats[code, np.uint64(o)] += targets.numbers[cell]


# -- searches --


@region
def _search_pair(tile, some, pairs, parts, columns, rows, identity, targets, near, rules, nodes,
                 offset, found):  # fmt: skip
    """Search one feature of one node."""
    pair = some[tile]
    node, feature = pairs.node[pair], pairs.feature[pair]
    start, end = nodes.record.start[node], nodes.record.end[node]
    _copy_node(nodes, node, found.nodes, pair)
    n_codes, n_stats = columns.n_codes[feature] + 1, nodes.stats.shape[1]
    is_sparse = n_codes * n_stats > CELLS_OF_SPARSE * (end - start)
    if not is_sparse and pairs.first[pair] < 0 and _is_fast(columns, feature, near, rules):
        found.varies[pair] = _search_fast(columns, feature, rows, start, end, near, nodes, node,
                                          offset[pairs.slot[pair]], rules, found, pair)  # fmt: skip
        return
    n_groups = end - start if is_sparse else n_codes
    buffers = _new_buffers(found, pair, offset[pairs.slot[pair]], n_groups, n_stats)
    if is_sparse:
        entries = sorted_entries(columns, feature, rows, start, end)
        in_order = SortedRows(entries, 0, end - start, end - start, _HALF_WORD, _ALL_BITS)
        found.nodes.record.start[pair], found.nodes.record.end[pair] = 0, end - start
        found.varies[pair] = search_feature(in_order, feature, columns, identity, targets, rules,
                                            found.nodes, pair, buffers)  # fmt: skip
        return
    stats, weights, samples = buffers.group_stats, buffers.group_weight, buffers.group_samples
    first = pairs.first[pair]
    if first >= 0:
        _add_parts(parts, first, -(-(end - start) // _ROWS_OF_PART), stats, weights, samples)
    else:
        _group(columns, feature, rows, start, end, targets, near, stats, weights, samples)
    n_found = _close_ranks(stats, weights, samples, buffers.group_code)
    if n_found >= 2:
        found.varies[pair] = 1
        search_in_orders(n_found, feature, columns, targets, rules, found.nodes, pair, buffers)


@kernel(inner=True)
def _copy_node(nodes, node, to, pair):
    """What a search reads of a node."""
    record, copy = nodes.record, to.record
    copy.weight[pair], copy.samples[pair] = record.weight[node], record.samples[node]
    copy.low[pair], copy.high[pair] = record.low[node], record.high[node]
    copy.key[pair] = record.key[node]
    for k in range(nodes.stats.shape[1]):
        to.stats[pair, k] = nodes.stats[node, k]
    for o in range(nodes.centre.shape[1]):
        to.centre[pair, o], to.exponent[pair, o] = nodes.centre[node, o], nodes.exponent[node, o]


@kernel(inner=True)
def _is_fast(columns, feature, near, rules):
    """Whether `split_search_groups` can search a feature: see `subtree.is_fast_case`."""
    criterion = rules.criterion
    is_known = criterion == SQUARED
    if len(near.labels) > 0:
        is_known = criterion in (GINI, ENTROPY)
    elif len(near.numbers) == 0:
        is_known = False
    return (
        is_known
        and len(rules.monotone) == 0
        and rules.min_weight <= 1
        and not columns.categorical[feature]
        and not columns.has_missing[feature]
    )


@kernel(hidden=True)
def _search_fast(columns, feature, rows, start, end, near, nodes, node, offset, rules, found, pair):
    """Count and search one feature of the usual case; whether it is not constant."""
    n_codes, n_classes = columns.n_codes[feature], nodes.stats.shape[1]
    record, best, score = found.nodes.record, found.best[pair], found.score[pair]
    codes = np.empty(2, np.int64)
    if len(near.labels) > 0:
        size = n_codes * n_classes
        copies = 4 if size <= _FEW_CELLS else 1
        cells = np.zeros(copies * size, np.int32)
        _count_codes(columns, feature, rows, start, end, near.labels, n_classes,
                     size if copies == 4 else 0, cells)  # fmt: skip
        for copy in range(1, copies):
            for k in range(size):
                cells[k] += cells[copy * size + k]
        varies = scan_classes(cells, n_codes, nodes.stats[node], end - start, rules, feature, best,
                              score, codes)  # fmt: skip
    else:
        sums, counts = np.zeros(n_codes, np.int64), np.zeros(n_codes, np.int64)
        _sum_codes(columns, feature, rows, start, end, near.numbers, sums, counts)
        varies = scan_numbers(sums, counts, nodes.stats[node, 0], end - start, offset[0], rules,
                              feature, best, score, codes)  # fmt: skip
    if best[0] >= 0:
        best[MISSING_LEFT] = 0
        record.code[pair], record.next_code[pair] = codes[0], codes[1]
        record.random_threshold[pair] = np.nan
    return varies


@kernel(inner=True)
def _count_codes(columns, feature, rows, start, end, labels, n_classes, step, cells):
    place = columns.place[feature]
    if columns.width[feature] == 0:
        _count(columns.narrow[place], rows, start, end, labels, n_classes, step, cells)
    elif columns.width[feature] == 1:
        _count(columns.medium[place], rows, start, end, labels, n_classes, step, cells)
    else:
        _count(columns.wide[place], rows, start, end, labels, n_classes, step, cells)


@kernel(inner=True)
def _sum_codes(columns, feature, rows, start, end, numbers, sums, counts):
    place = columns.place[feature]
    if columns.width[feature] == 0:
        _sum(columns.narrow[place], rows, start, end, numbers, sums, counts)
    elif columns.width[feature] == 1:
        _sum(columns.medium[place], rows, start, end, numbers, sums, counts)
    else:
        _sum(columns.wide[place], rows, start, end, numbers, sums, counts)


@kernel(inner=True)
def _sum(codes, rows, start, end, numbers, sums, counts):
    for p in range(np.uint64(start), np.uint64(end)):
        code = np.uint64(codes[np.uint64(rows[p])])
        sums[code] += numbers[p]
        counts[code] += 1


@kernel(inner=True)
def _add_parts(parts, first, n_parts, stats, weights, samples):
    n_codes, n_stats = stats.shape
    at = first
    for _ in range(n_parts):
        for code in range(n_codes):
            for k in range(n_stats):
                stats[code, k] += parts[at + code * n_stats + k]
        at += n_codes * n_stats
        for code in range(n_codes):
            weights[code] += parts[at + code]
            samples[code] += parts[at + n_codes + code]
        at += 2 * n_codes


@kernel(inner=True)
def _close_ranks(stats, weights, samples, codes):
    """Move the groups that have rows to the front, with their codes; how many."""
    n_found = 0
    for code in range(len(stats)):
        if samples[code] > 0:
            if n_found < code:
                for k in range(stats.shape[1]):
                    stats[n_found, k] = stats[code, k]
                weights[n_found] = weights[code]
                samples[n_found] = samples[code]
            codes[n_found] = code
            n_found += 1
    return n_found


@kernel(hidden=True)
def _new_buffers(found, pair, offset, n_groups, n_stats):
    """Buffers of which best, score, counts and chosen are those of the pair."""
    none = np.empty(0, np.int64)
    return GeneralBuffers(
        np.zeros(n_stats, np.int64), np.zeros(n_stats, np.int64), offset, none, found.best[pair],
        found.score[pair], np.zeros(n_stats), np.zeros(n_stats),
        np.zeros((n_groups, n_stats), np.int64), np.zeros(n_groups, np.int64),
        np.zeros(n_groups, np.int64), np.empty(n_groups, np.int64), np.empty(n_groups, np.int64),
        np.empty(n_groups), np.empty(n_groups, np.int64), found.chosen[found.at[pair] :],
        found.counts[pair], np.empty((0, 0), np.int64), np.empty((0, 0), np.int64), none, none,
        none, np.empty(0, np.uint64), none, np.empty((0, 2)),
    )  # fmt: skip


@kernel
def sorted_entries(columns, feature, rows, start, end):
    """Rows of a node by their codes of a feature: code << 32 | row, sorted."""
    keys = np.empty(end - start, np.uint64)
    for p in range(start, end):
        keys[p - start] = np.uint64(code_of(columns, feature, rows[p]))
    order = sorted_by_digits(keys)
    entries = np.empty(end - start, np.uint64)
    for p in range(end - start):
        entries[p] = (keys[order[p]] << _HALF_WORD) | np.uint64(rows[start + order[p]])
    return entries


# -- choices --


@kernel
def _choose(winners, features, found, criterion, counted):
    """winners[k] = the pair with the best split of the k-th node; -1 if there is none."""
    d = len(features) // len(winners)
    pair_of = np.empty(d, np.int64)
    best, score = np.empty(7, np.int64), np.empty(1)
    for k in range(len(winners)):
        for pair in range(k * d, (k + 1) * d):
            pair_of[features[pair]] = pair
        winners[k] = -1
        best[:] = -1
        score[0] = 0.0
        for feature in range(d):
            pair = pair_of[feature]
            one = found.best[pair]
            if one[0] >= 0 and consider(criterion, counted, one[1], one[2], one[3], one[4],
                                        found.score[pair, 0], feature, one[5], best,
                                        score):  # fmt: skip
                winners[k] = pair


@kernel
def _keep_winners(winners, nodes, which, base, n_words, columns, targets, rules, found):
    """The splits of the winners become the nodes'; words of subsets in use."""
    record, copies = nodes.record, found.nodes.record
    offset = np.empty(0, np.int64)
    for k in range(len(which)):
        node, pair = which[k], winners[k]
        if pair < 0:
            continue
        record.code[node], record.next_code[node] = copies.code[pair], copies.next_code[pair]
        record.random_threshold[node] = copies.random_threshold[pair]
        buffers = _new_buffers(found, pair, offset, 0, 0)
        n_words = keep_split(nodes, node, base[k], n_words, columns, targets, rules, buffers)
    return n_words
