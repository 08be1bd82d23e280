"""The best split of a node: its features are searched one after the other.

For a feature, the rows of a node are *entries* in the order of its values, see `SortedRows`. The
caller brings them: a subtree keeps them sorted, a large node or a forest sorts them.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.nodes import random_below
from margrove.grove.grow.search.buffers import MISSING_LEFT, POSITION, SortedRows
from margrove.grove.grow.search.scores import (
    ABSOLUTE,
    ENTROPY,
    GAIN_RATIO,
    GINI,
    SQUARED,
    float_log,
    weighted_log,
)
from margrove.grove.grow.search.split_search import (
    order_of_groups,
    search_absolute,
    search_classes,
    search_groups,
    search_numbers,
)
from margrove.grove.grow.search.split_search_fast import search_feature_fast
from margrove.grove.table import bits_of, code_of

__all__ = [
    "ENTRY_MASK",
    "ENTRY_SHIFT",
    "drawn_between",
    "exponent_of_errors",
    "find_best_split",
    "keep_split",
    "make_subset",
    "new_subset",
    "search_feature",
    "search_in_orders",
    "set_bit",
]

ENTRY_SHIFT, ENTRY_MASK = np.uint32(16), np.int64(0xFFFF)  # of the entries of a subtree
_MOST_ORDERS = 64  # of categories that are tried, one for each of the first classes


@kernel(inner=True)
def find_best_split(entries, columns, rows, targets, rules, nodes, node, base, buffers, general):
    """Find the best split over the features, in order or in random order; how many were searched.

    It stops after `max_features` features that are not constant.

    entries uint32 (d, m): of a subtree, whose places are places in `rows`. general: GeneralBuffers,
    or None where every feature of the tree is a case for `split_search_fast`. The best split is in
    the buffers, its codes are in the node.
    """
    d, record = len(columns.n_codes), nodes.record
    start, end = record.start[node], record.end[node]
    features, best = buffers.features, buffers.best
    samples_features = rules.max_features < d
    state = np.uint64(record.key[node])
    if samples_features:
        for j in range(d):
            features[j] = j
    is_usual = True
    if general is not None:
        if rules.criterion == GAIN_RATIO:
            if samples_features:
                for j in range(d):
                    state, k = random_below(state, d - j)
                    features[j], features[j + k] = features[j + k], features[j]
            _search_ratios(entries, columns, rows, targets, rules, nodes, node, base, general)
            return d
        is_usual = (
            targets.plain
            and len(targets.starts) == 2
            and len(rules.monotone) == 0
            and not rules.random
            and rules.min_weight <= 1
            and (
                rules.criterion == GINI or rules.criterion == ENTROPY or rules.criterion == SQUARED
            )
        )
    looked_at, fast_feature = 0, -1
    for j in range(d):
        if samples_features:
            state, k = random_below(state, d - j)
            features[j], features[j + k] = features[j + k], features[j]
        feature = features[j]
        run = entries[feature]
        if run[start] >> ENTRY_SHIFT == run[end - 1] >> ENTRY_SHIFT:
            continue
        looked_at += 1
        is_fast = is_usual
        if general is not None:
            is_fast &= not columns.categorical[feature] and not columns.has_missing[feature]
            if not is_fast:
                in_order = SortedRows(run, start, end, end, ENTRY_SHIFT, ENTRY_MASK)
                search_feature(in_order, feature, columns, rows, targets, rules, nodes, node,
                               general)  # fmt: skip
        if is_fast and search_feature_fast(
            run, start, end, targets.labels, targets.numbers, rules, nodes.stats[node],
            buffers.offset, feature, buffers,
        ):  # fmt: skip
            fast_feature = feature
            best[MISSING_LEFT] = 0
            if general is not None:
                general.counts[0] = 0
        if looked_at >= rules.max_features and best[0] >= 0:
            break
    if fast_feature >= 0 and best[0] == fast_feature:  # looked up once, since memory is slow
        run, after = entries[fast_feature], start + best[POSITION]
        record.code[node] = code_of(columns, best[0], rows[run[after - 1] & ENTRY_MASK])
        record.next_code[node] = code_of(columns, best[0], rows[run[after] & ENTRY_MASK])
        record.random_threshold[node] = np.nan
    return looked_at


@kernel(inner=True)
def _search_ratios(entries, columns, rows, targets, rules, nodes, node, base, buffers):
    """C4.5: of the splits whose gain is at least average, the one with the best gain ratio."""
    d = len(columns.n_codes)
    start, end = nodes.record.start[node], nodes.record.end[node]
    weight = nodes.record.weight[node]
    n_found, looked_at, total = 0, 0, 0.0
    for j in range(d):
        buffers.records[j, 0] = -1.0
    for k in range(d):
        feature = buffers.features[k]
        buffers.best[0] = -1
        in_order = SortedRows(entries[feature], start, end, end, ENTRY_SHIFT, ENTRY_MASK)
        if search_feature(in_order, feature, columns, rows, targets, rules, nodes, node, buffers):
            looked_at += 1
        if buffers.best[0] >= 0:
            gain = max(buffers.score[0] - base, 0.0)
            buffers.records[feature, 0] = gain
            buffers.records[feature, 1] = _split_information(
                buffers.best[2], weight, rules.counted, rules.table, rules.scale
            )
            n_found += 1
            total += gain
        if looked_at >= rules.max_features and n_found:
            break
    buffers.best[0] = -1
    chosen, best_ratio = -1, 0.0
    for j in range(d):
        gain = buffers.records[j, 0]
        if gain < 0.0 or gain < total / n_found * (1.0 - 1e-9):
            continue
        ratio = gain / buffers.records[j, 1]
        if chosen < 0 or ratio > best_ratio * (1.0 + 1e-12):
            chosen, best_ratio = j, ratio
    if chosen >= 0:  # the winner once more, for its place
        in_order = SortedRows(entries[chosen], start, end, end, ENTRY_SHIFT, ENTRY_MASK)
        search_feature(in_order, chosen, columns, rows, targets, rules, nodes, node, buffers)


@kernel(inner=True)
def _split_information(left, weight, counted, table, scale):
    """The entropy of the shares of both children, times the weight."""
    if counted:
        return (
            weighted_log(weight, table, scale)
            - weighted_log(left, table, scale)
            - weighted_log(weight - left, table, scale)
        ) / scale
    return float_log(float(weight)) - float_log(float(left)) - float_log(float(weight - left))


@kernel(bare=True)
def search_feature(sorted_rows, feature, columns, rows, targets, rules, nodes, node, buffers):
    """Search one feature of any kind; whether it counts as looked at, which is: not constant.

    sorted_rows: all rows of the node, as if none was missing. Entries hold places of the targets,
    and rows[place] is the row of the columns.
    """
    entries, shift, mask = sorted_rows.entries, sorted_rows.shift, sorted_rows.mask
    start, end = sorted_rows.start, sorted_rows.end
    last_rank = entries[end - 1] >> shift
    if entries[start] >> shift == last_rank:
        return False
    record, best = nodes.record, buffers.best
    if columns.categorical[feature] or (len(targets.starts) > 2 and rules.criterion != ABSOLUTE):
        _search_by_groups(sorted_rows, feature, columns, rows, targets, rules, nodes, node, buffers)
        return True
    stop = end
    if columns.has_missing[feature]:
        last = rows[entries[end - 1] & mask]
        if code_of(columns, feature, last) == columns.n_codes[feature]:
            while entries[stop - 1] >> shift == last_rank:
                stop -= 1
    in_order = SortedRows(entries, start, stop, end, shift, mask)
    only, drawn = -1, np.nan
    if rules.random:
        only, drawn = _draw(in_order, feature, columns, rows, nodes, node)
    for missing_left in range(2 if stop < end else 1):
        if rules.criterion == ABSOLUTE:
            found = search_absolute(in_order, feature, missing_left == 1, only, targets, rules,
                                    nodes, node, buffers)  # fmt: skip
        elif len(targets.labels) > 0:
            found = search_classes(in_order, feature, missing_left == 1, only, targets, rules,
                                   nodes, node, buffers)  # fmt: skip
        else:
            found = search_numbers(in_order, feature, missing_left == 1, only, targets, rules,
                                   nodes, node, buffers)  # fmt: skip
        if found:
            after = start + best[POSITION]
            record.random_threshold[node] = drawn
            record.code[node] = code_of(columns, feature, rows[entries[after - 1] & mask])
            record.next_code[node] = columns.n_codes[feature]
            if after < end:
                record.next_code[node] = code_of(columns, feature, rows[entries[after] & mask])
            buffers.counts[0] = 0
    return True


@kernel(inner=True)
def _draw(sorted_rows, feature, columns, rows, nodes, node):
    """A threshold between the extremes, and the first entry beyond it."""
    entries, mask = sorted_rows.entries, sorted_rows.mask
    start, stop = sorted_rows.start, sorted_rows.stop
    base = columns.first[feature]
    low = columns.values[base + code_of(columns, feature, rows[entries[start] & mask])]
    high = columns.values[base + code_of(columns, feature, rows[entries[stop - 1] & mask])]
    if not low < high:
        return -2, np.nan
    drawn = drawn_between(low, high, feature, nodes.record.key[node])
    a, b = start, stop - 1  # value(a) <= drawn < value(b)
    while b - a > 1:
        middle = (a + b) // 2
        if columns.values[base + code_of(columns, feature, rows[entries[middle] & mask])] <= drawn:
            a = middle
        else:
            b = middle
    return b, drawn


@kernel(inner=True)
def _draw_among_groups(codes, n_groups, feature, columns, nodes, node):
    """Draw a threshold between the lowest and the highest code, and the first group beyond it."""
    base = columns.first[feature]
    low, high = columns.values[base + codes[0]], columns.values[base + codes[n_groups - 1]]
    if not low < high:
        return -1, np.nan
    drawn = drawn_between(low, high, feature, nodes.record.key[node])
    a, b = 0, n_groups - 1
    while b - a > 1:
        middle = (a + b) // 2
        if columns.values[base + codes[middle]] <= drawn:
            a = middle
        else:
            b = middle
    return b, drawn


@kernel(inner=True, inlined=True)
def drawn_between(low, high, feature, key):
    """A number in [low, high) that depends on the node's key and the feature only."""
    state = np.uint64(key) ^ (np.uint64(feature + 1) * np.uint64(0xD1342543DE82EF95))
    _, bits = random_below(state, 1 << 52)
    share = bits / float(1 << 52)
    drawn = low * (1.0 - share) + high * share
    return drawn if low <= drawn < high else low


@kernel(inner=True)
def _search_by_groups(sorted_rows, feature, columns, rows, targets, rules, nodes, node, buffers):
    """Search the groups of a categorical feature, or of any feature with several outputs."""
    entries, shift, mask = sorted_rows.entries, sorted_rows.shift, sorted_rows.mask
    start, end = sorted_rows.start, sorted_rows.end
    is_class = len(targets.labels) > 0
    n_outputs = len(targets.starts) - 1
    n_stats = len(buffers.left)
    stats = buffers.group_stats
    n_groups = 0
    for p in range(start, end):
        row = entries[p] & mask
        if p == start or entries[p] >> shift != entries[p - 1] >> shift:
            for k in range(n_stats):
                stats[n_groups, k] = 0
            buffers.group_weight[n_groups] = 0
            buffers.group_samples[n_groups] = 0
            buffers.group_code[n_groups] = code_of(columns, feature, rows[row])
            n_groups += 1
        g = n_groups - 1
        buffers.group_weight[g] += targets.weight[row]
        buffers.group_samples[g] += targets.samples[row]
        for o in range(n_outputs):
            if is_class:
                stats[g, targets.labels[row * n_outputs + o]] += targets.weight[row]
            else:
                stats[g, o] += targets.numbers[row * n_outputs + o]
    if rules.criterion == ABSOLUTE:
        _search_by_medians(sorted_rows, n_groups, feature, columns, targets, rules, nodes, node,
                           buffers)  # fmt: skip
    else:
        search_in_orders(n_groups, feature, columns, targets, rules, nodes, node, buffers)


@kernel(inner=True)
def _search_by_medians(sorted_rows, n_groups, feature, columns, targets, rules, nodes, node,
                       buffers):  # fmt: skip
    """Categories in the order of the means of each output; for medians, others may be better."""
    entries, shift, mask = sorted_rows.entries, sorted_rows.shift, sorted_rows.mask
    start, end = sorted_rows.start, sorted_rows.end
    best = buffers.best
    for which in range(min(len(targets.starts) - 1, _MOST_ORDERS)):
        order_of_groups(buffers.group_stats, buffers.group_weight, n_groups, which,
                        buffers.group_order, buffers.means, buffers.spare)  # fmt: skip
        again, count, group = buffers.again, 0, -1
        for p in range(start, end):  # groups are runs: where each begins
            if p == start or entries[p] >> shift != entries[p - 1] >> shift:
                group += 1
                buffers.spare[group] = p
        for k in range(n_groups):
            p = buffers.spare[buffers.group_order[k]]
            rank = entries[p] >> shift
            while p < end and entries[p] >> shift == rank:
                again[count] = (np.uint64(k) << np.uint64(32)) | np.uint64(entries[p] & mask)
                count += 1
                p += 1
        position = best[POSITION]
        if best[0] == feature:
            best[POSITION] = 0  # of equally good orders the first
        in_order = SortedRows(again, 0, count, count, np.uint64(32), np.int64(0xFFFFFFFF))
        if search_absolute(in_order, feature, False, -1, targets, rules, nodes, node, buffers):
            last = np.int64(again[best[POSITION] - 1] >> np.uint64(32))
            best[POSITION] = last + 1
            for k in range(n_groups):
                buffers.order[k] = buffers.group_order[k]
            _keep_groups(n_groups, n_groups, feature, columns, nodes, node, buffers)
        else:
            best[POSITION] = position


@kernel(bare=True)
def search_in_orders(n_groups, feature, columns, targets, rules, nodes, node, buffers):
    """Search the groups of a feature, which buffers holds by ascending code."""
    is_class = len(targets.labels) > 0
    n_stats = len(buffers.left)
    order = buffers.order
    categorical = columns.categorical[feature]
    is_missing_last = buffers.group_code[n_groups - 1] == columns.n_codes[feature]
    two_classes = is_class and n_stats == 2
    n_orders = (1 if two_classes else min(n_stats, _MOST_ORDERS)) if categorical else 1
    missing = -1 if categorical or not is_missing_last else n_groups - 1
    n_ordered = n_groups if missing < 0 else n_groups - 1
    only, drawn = -1, np.nan
    if rules.random and not categorical:
        only, drawn = _draw_among_groups(buffers.group_code, n_ordered, feature, columns, nodes,
                                         node)  # fmt: skip
    for which in range(n_orders):
        if categorical:
            statistic = 1 if two_classes else which
            order_of_groups(buffers.group_stats, buffers.group_weight, n_groups, statistic, order,
                            buffers.means, buffers.spare)  # fmt: skip
        else:
            for g in range(n_groups):
                order[g] = g
        for missing_left in range(1 if missing < 0 else 2):
            if not search_groups(n_ordered, missing, missing_left == 1, only, feature, targets,
                                 rules, nodes, node, buffers):  # fmt: skip
                continue
            _keep_groups(n_groups, n_ordered, feature, columns, nodes, node, buffers)
            nodes.record.random_threshold[node] = drawn


@kernel(inner=True)
def _keep_groups(n_groups, n_ordered, feature, columns, nodes, node, buffers):
    """Write a split between groups as codes: a threshold in the node, or a set in the buffers."""
    best, order = buffers.best, buffers.order
    position = best[POSITION]
    nodes.record.random_threshold[node] = np.nan
    if not columns.categorical[feature]:
        nodes.record.code[node] = buffers.group_code[order[position - 1]]
        nodes.record.next_code[node] = columns.n_codes[feature]
        if position < n_ordered:
            nodes.record.next_code[node] = buffers.group_code[order[position]]
        buffers.counts[0] = 0
        return
    samples = 0
    for g in range(position):
        samples += buffers.group_samples[order[g]]
    first, last = 0, position
    if 2 * samples > nodes.record.samples[node]:  # the heavier side is the one of "all others"
        first, last = position, n_groups
    best[MISSING_LEFT] = 0
    n_chosen = 0
    for g in range(first, last):
        code = buffers.group_code[order[g]]
        if code == columns.n_codes[feature]:
            best[MISSING_LEFT] = 1
        else:
            buffers.chosen[n_chosen] = code
            n_chosen += 1
    buffers.counts[0] = n_chosen + 1  # 0 means: no set, but a threshold


@kernel(bare=True)
def keep_split(nodes, node, base, n_words, columns, targets, rules, buffers):
    """The best split found becomes the node's, if it is good enough; words of subsets in use."""
    best = buffers.best
    if best[0] < 0:
        return n_words
    decrease = buffers.score[0] - base
    if rules.criterion == SQUARED:
        unit = 2.0 ** float(-nodes.exponent[node, 0])
        decrease *= unit * unit
    elif rules.criterion == ABSOLUTE:
        decrease *= 2.0 ** float(-exponent_of_errors(nodes, node))
    decrease = max(decrease * targets.unit, 0.0)
    if decrease < rules.min_decrease * (1.0 - 1e-12):
        return n_words
    feature = best[0]
    nodes.record.decrease[node] = decrease
    nodes.record.feature[node] = feature
    nodes.record.missing_left[node] = best[MISSING_LEFT]
    nodes.record.subset[node] = -1
    if buffers.counts[0]:
        n_words = new_subset(nodes, node, n_words, columns.n_codes[feature])
        for k in range(buffers.counts[0] - 1):
            set_bit(nodes.subsets, nodes.record.subset[node], buffers.chosen[k])
    return n_words


@kernel(bare=True)
def make_subset(nodes, node, n_words, columns):
    """A split of categories at a code, as a set of codes."""
    feature = nodes.record.feature[node]
    if columns.categorical[feature]:
        n_words = new_subset(nodes, node, n_words, columns.n_codes[feature])
        for code in range(nodes.record.code[node] + 1):
            set_bit(nodes.subsets, nodes.record.subset[node], code)
    return n_words


@kernel(bare=True)
def new_subset(nodes, node, n_words, n_codes):
    """Start an empty set of codes for the node; words of sets in use."""
    nodes.record.subset[node] = n_words
    for k in range(n_codes // 32 + 1):
        nodes.subsets[n_words + k] = 0
    return n_words + n_codes // 32 + 1


@kernel(bare=True)
def set_bit(subsets, begin, code):
    subsets[begin + code // 32] |= np.uint32(1) << np.uint32(code % 32)


@kernel(inner=True)
def exponent_of_errors(nodes, node):
    """Exponent of the unit of absolute errors, such that sums over the outputs fit int64."""
    return nodes.exponent[node, 0] - (bits_of(float(nodes.exponent.shape[1])) - 1)
