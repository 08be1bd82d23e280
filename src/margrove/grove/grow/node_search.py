"""All that growing does with one node, in compiled code: sum it up, search it, end it.

The rows of a node are a run of a list. For a feature they are *entries*, rank and row packed into
one integer, in the order of the rank; whoever calls brings them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.nodes import (
    CODE,
    DECREASE,
    DRAWN,
    END,
    ERROR_LEFT,
    FEATURE,
    HIGH,
    KEY,
    LOW,
    MISSING_LEFT,
    NEXT_CODE,
    PARENT,
    SAMPLES,
    START,
    SUBSET,
    WEIGHT,
    random_below,
)  # fmt: skip
from margrove.grove.grow.scores import (
    ABSOLUTE,
    ENTROPY,
    GAIN_RATIO,
    GINI,
    POISSON,
    SQUARED,
    excess_of,
    float_log,
    score_of_node,
    weighted_log,
)
from margrove.grove.grow.split_search import (
    BEST_SIZE,
    order_of_groups,
    search_absolute,
    search_classes,
    search_groups,
    search_numbers,
    sort_by,
)
from margrove.grove.grow.split_search import (
    MISSING_LEFT as BEST_MISSING_LEFT,
)
from margrove.grove.grow.split_search import (
    POSITION as BEST_POSITION,
)
from margrove.grove.grow.split_search_fast import search_plain_feature
from margrove.grove.table import BITS_OF_SUMS, bits_of, code_of, fitting_exponent, quantise

__all__ = ["Basic", "Scratch", "bound_children", "end_node", "keep_split", "make_subset",
           "new_basic", "new_scratch", "search_feature", "search_generally", "search_in_orders",
           "set_bit", "sum_up", "write_subset"]  # fmt: skip

_MOST_ORDERS = 64  # of categories that are tried, one for each of the first classes
_NARROWER = 6  # bits that a node's targets may be narrower before they get a scale of their own


class Basic(NamedTuple):
    """Room for one search at a time: sums of both sides, the node's mean, the best split so far."""

    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    features: np.ndarray
    best: np.ndarray
    score: np.ndarray


class Scratch(NamedTuple):
    """The same, and what only some searches need.

    group_...: sums of groups; order, means, spare: for sorting; chosen: the codes that go left,
    their number + 1 in counts[0]; ranks ... group_order: for medians, the first two a row for each
    output; records: for gain ratios.
    """

    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    features: np.ndarray
    best: np.ndarray
    score: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group_stats: np.ndarray
    group_weight: np.ndarray
    group_samples: np.ndarray
    group_code: np.ndarray
    order: np.ndarray
    means: np.ndarray
    spare: np.ndarray
    chosen: np.ndarray
    counts: np.ndarray
    ranks: np.ndarray
    by_rank: np.ndarray
    tree_weight: np.ndarray
    tree_sum: np.ndarray
    errors: np.ndarray
    again: np.ndarray
    group_order: np.ndarray
    records: np.ndarray


def new_basic(n_features: int, n_stats: int) -> Basic:
    return Basic(
        np.zeros(n_stats, np.int64),
        np.zeros(n_stats, np.int64),
        np.zeros(n_stats, np.int64),
        np.arange(n_features),
        np.zeros(BEST_SIZE, np.int64),
        np.zeros(1),
    )


def new_scratch(basic: Basic, n_rows: int, n_groups: int, criterion: int) -> Scratch:
    n_stats = len(basic.left)
    ranked = n_rows if criterion == ABSOLUTE else 0
    sorted_things = max(ranked, n_groups)
    return Scratch(
        *basic,
        lower=np.zeros(n_stats),
        upper=np.zeros(n_stats),
        group_stats=np.zeros((n_groups, n_stats), np.int64),
        group_weight=np.zeros(n_groups, np.int64),
        group_samples=np.zeros(n_groups, np.int64),
        group_code=np.zeros(n_groups, np.int64),
        order=np.zeros(sorted_things, np.int64),
        means=np.zeros(sorted_things),
        spare=np.zeros(sorted_things, np.int64),
        chosen=np.zeros(n_groups, np.int64),
        counts=np.zeros(1, np.int64),
        ranks=np.zeros((n_stats, ranked), np.int64),
        by_rank=np.zeros((n_stats, ranked), np.int64),
        tree_weight=np.zeros(ranked + 1, np.int64),
        tree_sum=np.zeros(ranked + 1, np.int64),
        errors=np.zeros(ranked, np.int64),
        again=np.zeros(ranked, np.uint64),
        group_order=np.zeros(n_groups, np.int64),
        records=np.zeros((len(basic.features) if criterion == GAIN_RATIO else 0, 2)),
    )


@kernel(bare=True)
def sum_up(nodes, node, rows, targets, rules, scratch):
    """Statistics of a node, in whole numbers; returns (whether it is pure, score of the node)."""
    start, end = nodes.whole[node, START], nodes.whole[node, END]
    stats = nodes.stats[node]
    weight, samples = 0, 0
    stats[:] = 0
    is_class = len(targets.labels) > 0
    n_outputs = len(targets.starts) - 1
    for p in range(start, end):
        row = rows[p]
        weight += targets.weight[row]
        samples += targets.samples[row]
    nodes.whole[node, WEIGHT] = weight
    nodes.whole[node, SAMPLES] = samples
    pure, base = True, 0.0
    if is_class:
        for p in range(start, end):
            row = rows[p]
            for o in range(n_outputs):
                stats[targets.labels[row * n_outputs + o]] += targets.weight[row]
        for o in range(n_outputs):
            most = 0
            for k in range(targets.starts[o], targets.starts[o + 1]):
                most = max(most, stats[k])
            pure &= most == weight
    else:
        pure, base = _sum_up_numbers(nodes, node, rows, targets, rules, scratch)
    if rules.criterion == SQUARED:
        for o in range(n_outputs):
            own = float(stats[o] - weight * scratch.offset[o])
            base += own * own / weight
        return pure, base
    if not is_class:
        return pure, base
    return pure, score_of_node(
        rules.criterion, rules.counted, stats, targets.starts, weight, rules.table, rules.scale,
    )  # fmt: skip


@kernel(inner=True)
def _sum_up_numbers(nodes, node, rows, targets, rules, scratch):
    """Sums of numbers, on a scale that suits the node; whether all targets are equal.

    And, for the absolute error, the score of the node.
    """
    start, end = nodes.whole[node, START], nodes.whole[node, END]
    stats, weight = nodes.stats[node], nodes.whole[node, WEIGHT]
    n_outputs = len(targets.starts) - 1
    lower, upper = scratch.lower, scratch.upper
    pure, widest = True, 0.0
    for o in range(n_outputs):
        low, high = np.inf, -np.inf
        for p in range(start, end):
            own = targets.raw[rows[p] * n_outputs + o]
            low = min(low, own)
            high = max(high, own)
        lower[o], upper[o] = low, high
        pure &= low == high
        middle = 0.0 if rules.at_zero and low <= 0.0 else 0.5 * low + 0.5 * high
        widest = max(widest, abs(low - middle), abs(high - middle))
    room = fitting_exponent(widest, weight) - nodes.exponent[node, 0]
    if nodes.whole[node, PARENT] < 0 or (widest > 0.0 and room > _NARROWER):
        quantise(targets, rows, start, end, lower, upper, rules.at_zero,
                 nodes.centre[node], nodes.exponent[node])  # fmt: skip
    for o in range(n_outputs):
        for p in range(start, end):
            stats[o] += targets.numbers[rows[p] * n_outputs + o]
        scratch.offset[o] = np.int64(np.rint(float(stats[o]) / float(weight)))
        unit = 2.0 ** float(-nodes.exponent[node, o])
        mean = nodes.centre[node, o] + float(stats[o]) / float(weight) * unit
        nodes.value[node, o] = min(max(mean, lower[o]), upper[o])
    if rules.criterion == ABSOLUTE:
        return pure, -_rank_targets(nodes, node, rows, targets, scratch)
    return pure, 0.0


@kernel(inner=True)
def _rank_targets(nodes, node, rows, targets, scratch):
    """Ranks of the targets within the node, their medians as its value; its absolute error."""
    start, end = nodes.whole[node, START], nodes.whole[node, END]
    own, order = scratch.means, scratch.order
    n_outputs, n = len(targets.starts) - 1, end - start
    factor = 2.0 ** float(_exponent_of_errors(nodes, node))
    error = 0
    for o in range(n_outputs):
        ranks, by_rank = scratch.ranks[o], scratch.by_rank[o]
        for p in range(start, end):
            own[p - start] = targets.raw[rows[p] * n_outputs + o]
        sort_by(own, n, order, scratch.spare)
        below, value, middle = 0, 0.0, -1
        for r in range(n):
            row = rows[start + order[r]]
            ranks[row] = r
            by_rank[r] = np.int64(np.rint((own[order[r]] - nodes.centre[node, o]) * factor))
            below += targets.weight[row]
            if middle < 0 and 2 * below >= nodes.whole[node, WEIGHT]:
                middle = r
                value = own[order[r]]
                if 2 * below == nodes.whole[node, WEIGHT] and r + 1 < n:
                    value = 0.5 * value + 0.5 * own[order[r + 1]]
        nodes.value[node, o] = value
        for r in range(n):
            row = rows[start + order[r]]
            error += targets.weight[row] * abs(by_rank[r] - by_rank[middle])
    return float(error)


@kernel(inner=True)
def _exponent_of_errors(nodes, node):
    """Of the units of absolute errors: their sum over the outputs fits int64, too."""
    return nodes.exponent[node, 0] - (bits_of(float(nodes.exponent.shape[1])) - 1)


@kernel(inner=True)
def search_generally(entries, shift, mask, columns, rows, targets, rules, nodes, node, base,
                     scratch):  # fmt: skip
    """Features in turn, or as drawn, until enough have been looked at."""
    d = len(columns.n_codes)
    start, end = nodes.whole[node, START], nodes.whole[node, END]
    features = scratch.features
    drawn = rules.max_features < d
    state = np.uint64(nodes.whole[node, KEY])
    if drawn:
        for j in range(d):
            features[j] = j
    if rules.criterion == GAIN_RATIO:
        if drawn:
            for j in range(d):
                state, k = random_below(state, d - j)
                features[j], features[j + k] = features[j + k], features[j]
        _search_ratios(entries, shift, mask, columns, rows, targets, rules, nodes, node, base,
                       scratch)  # fmt: skip
        return
    looked_at = 0
    plain = (
        targets.plain
        and len(targets.starts) == 2
        and len(rules.monotone) == 0
        and not rules.random
        and rules.min_weight <= 1
        and (rules.criterion == GINI or rules.criterion == ENTROPY or rules.criterion == SQUARED)
    )
    for j in range(d):
        if drawn:
            state, k = random_below(state, d - j)
            features[j], features[j + k] = features[j + k], features[j]
        feature = features[j]
        own = entries[feature]
        if own[start] >> shift == own[end - 1] >> shift:
            continue
        looked_at += 1
        if plain and not columns.categorical[feature] and not columns.has_missing[feature]:
            if search_plain_feature(
                own, start, end, targets.labels, targets.numbers, rules, nodes.stats[node],
                scratch.offset, feature, scratch.left, scratch.right, scratch.best, scratch.score,
            ):  # fmt: skip
                after = start + scratch.best[BEST_POSITION]
                nodes.whole[node, CODE] = code_of(columns, feature, rows[own[after - 1] & mask])
                nodes.whole[node, NEXT_CODE] = code_of(columns, feature, rows[own[after] & mask])
                nodes.real[node, DRAWN] = np.nan
                scratch.best[BEST_MISSING_LEFT] = 0
                scratch.counts[0] = 0
        else:
            search_feature(own, start, end, shift, mask, feature, columns, rows, targets, rules,
                           nodes, node, scratch)  # fmt: skip
        if looked_at >= rules.max_features and scratch.best[0] >= 0:
            break


@kernel(inner=True)
def _search_ratios(entries, shift, mask, columns, rows, targets, rules, nodes, node, base,
                   scratch):  # fmt: skip
    """C4.5: of the splits whose gain is at least average, the one with the best gain ratio."""
    d = len(columns.n_codes)
    start, end = nodes.whole[node, START], nodes.whole[node, END]
    weight = nodes.whole[node, WEIGHT]
    n_found, looked_at, total = 0, 0, 0.0
    for j in range(d):
        scratch.records[j, 0] = -1.0
    for k in range(d):
        feature = scratch.features[k]
        scratch.best[0] = -1
        if search_feature(entries[feature], start, end, shift, mask, feature, columns, rows,
                          targets, rules, nodes, node, scratch):  # fmt: skip
            looked_at += 1
        if scratch.best[0] >= 0:
            gain = max(scratch.score[0] - base, 0.0)
            scratch.records[feature, 0] = gain
            scratch.records[feature, 1] = _split_information(
                scratch.best[2], weight, rules.counted, rules.table, rules.scale
            )
            n_found += 1
            total += gain
        if looked_at >= rules.max_features and n_found:
            break
    scratch.best[0] = -1
    chosen, best_ratio = -1, 0.0
    for j in range(d):
        gain = scratch.records[j, 0]
        if gain < 0.0 or gain < total / n_found * (1.0 - 1e-9):
            continue
        ratio = gain / scratch.records[j, 1]
        if chosen < 0 or ratio > best_ratio * (1.0 + 1e-12):
            chosen, best_ratio = j, ratio
    if chosen >= 0:  # the winner once more, for its place
        search_feature(entries[chosen], start, end, shift, mask, chosen, columns, rows, targets,
                       rules, nodes, node, scratch)  # fmt: skip


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
def search_feature(entries, start, end, shift, mask, feature, columns, rows, targets, rules, nodes,
                   node, scratch):  # fmt: skip
    """Search one feature; entries hold places in `rows`, which holds rows of the columns.

    Returns whether it is worth looking at (not constant) and, in scratch, the best split so far.
    """
    first_rank, last_rank = entries[start] >> shift, entries[end - 1] >> shift
    if first_rank == last_rank:
        return False
    best, score = scratch.best, scratch.score
    low, high = nodes.real[node, LOW], nodes.real[node, HIGH]
    total, weight = nodes.stats[node], nodes.whole[node, WEIGHT]
    samples = nodes.whole[node, SAMPLES]
    is_class = len(targets.labels) > 0
    if columns.categorical[feature] or (len(targets.starts) > 2 and rules.criterion != ABSOLUTE):
        _search_feature_by_groups(entries, start, end, shift, mask, feature, columns, rows, targets,
                                  rules, nodes, node, scratch)  # fmt: skip
        return True
    stop = end
    if columns.has_missing[feature]:
        last = rows[entries[end - 1] & mask]
        if code_of(columns, feature, last) == columns.n_codes[feature]:
            while entries[stop - 1] >> shift == last_rank:
                stop -= 1
    only, drawn = -1, np.nan
    if rules.random:
        only, drawn = _draw(entries, start, stop, mask, feature, columns, rows, nodes, node)
    for missing_left in range(2 if stop < end else 1):
        if rules.criterion == ABSOLUTE:
            found = search_absolute(
                entries, start, stop, end, shift, mask, scratch.ranks, scratch.by_rank,
                targets.weight, targets.samples, rules, weight, samples, missing_left == 1, only,
                feature, scratch.tree_weight[: end - start + 1],
                scratch.tree_sum[: end - start + 1], scratch.errors, best, score,
            )  # fmt: skip
        elif is_class:
            found = search_classes(
                entries, start, stop, end, shift, mask, targets.labels, targets.weight,
                targets.samples, rules, total, weight, samples, missing_left == 1, only, low, high,
                feature, scratch.left, scratch.right, best, score,
            )  # fmt: skip
        else:
            found = search_numbers(
                entries, start, stop, end, shift, mask, targets.numbers, targets.weight,
                targets.samples, rules, total[0], weight, samples, scratch.offset[0],
                nodes.centre[node, 0], nodes.exponent[node, 0], missing_left == 1, only, low, high,
                feature, best, score,
            )  # fmt: skip
        if found:
            nodes.real[node, DRAWN] = drawn
            last = rows[entries[start + best[BEST_POSITION] - 1] & mask]
            nodes.whole[node, CODE] = code_of(columns, feature, last)
            after = start + best[BEST_POSITION]
            nodes.whole[node, NEXT_CODE] = columns.n_codes[feature]
            if after < end:
                nodes.whole[node, NEXT_CODE] = code_of(
                    columns, feature, rows[entries[after] & mask]
                )
            scratch.counts[0] = 0
    return True


@kernel(inner=True)
def _draw(entries, start, stop, mask, feature, columns, rows, nodes, node):
    """A threshold between the extremes, and the first entry beyond it."""
    base = columns.first[feature]
    low = columns.values[base + code_of(columns, feature, rows[entries[start] & mask])]
    high = columns.values[base + code_of(columns, feature, rows[entries[stop - 1] & mask])]
    if not low < high:
        return -2, np.nan
    drawn = _drawn_between(low, high, feature, nodes.whole[node, KEY])
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
    """The same of groups, by ascending code."""
    base = columns.first[feature]
    low, high = columns.values[base + codes[0]], columns.values[base + codes[n_groups - 1]]
    if not low < high:
        return -1, np.nan
    drawn = _drawn_between(low, high, feature, nodes.whole[node, KEY])
    a, b = 0, n_groups - 1
    while b - a > 1:
        middle = (a + b) // 2
        if columns.values[base + codes[middle]] <= drawn:
            a = middle
        else:
            b = middle
    return b, drawn


@kernel(inner=True)
def _drawn_between(low, high, feature, key):
    """A number from low on and below high, which belongs to the node and the feature."""
    own = np.uint64(key) ^ (np.uint64(feature + 1) * np.uint64(0xD1342543DE82EF95))
    _, bits = random_below(own, 1 << 52)
    share = bits / float(1 << 52)
    drawn = low * (1.0 - share) + high * share
    return drawn if low <= drawn < high else low


@kernel(inner=True)
def _search_feature_by_groups(entries, start, end, shift, mask, feature, columns, rows, targets,
                              rules, nodes, node, scratch):  # fmt: skip
    """Categories in the orders that promise most, or several outputs."""
    is_class = len(targets.labels) > 0
    n_outputs = len(targets.starts) - 1
    n_stats = len(scratch.left)
    stats = scratch.group_stats
    n_groups = 0
    for p in range(start, end):
        row = entries[p] & mask
        if p == start or entries[p] >> shift != entries[p - 1] >> shift:
            for k in range(n_stats):
                stats[n_groups, k] = 0
            scratch.group_weight[n_groups] = 0
            scratch.group_samples[n_groups] = 0
            scratch.group_code[n_groups] = code_of(columns, feature, rows[row])
            n_groups += 1
        g = n_groups - 1
        scratch.group_weight[g] += targets.weight[row]
        scratch.group_samples[g] += targets.samples[row]
        for o in range(n_outputs):
            if is_class:
                stats[g, targets.labels[row * n_outputs + o]] += targets.weight[row]
            else:
                stats[g, o] += targets.numbers[row * n_outputs + o]
    if rules.criterion == ABSOLUTE:
        _search_by_medians(entries, start, end, shift, mask, n_groups, feature, columns, targets,
                           rules, nodes, node, scratch)  # fmt: skip
    else:
        search_in_orders(n_groups, feature, columns, targets, rules, nodes, node, scratch)


@kernel(inner=True)
def _search_by_medians(entries, start, end, shift, mask, n_groups, feature, columns, targets, rules,
                       nodes, node, scratch):  # fmt: skip
    """Categories by the means of each output; no order is sure to be the best one for medians."""
    best = scratch.best
    for which in range(min(len(targets.starts) - 1, _MOST_ORDERS)):
        order_of_groups(scratch.group_stats, scratch.group_weight, n_groups, which,
                        scratch.group_order, scratch.means, scratch.spare)  # fmt: skip
        again, count, group = scratch.again, 0, -1
        for p in range(start, end):  # groups are runs: where each begins
            if p == start or entries[p] >> shift != entries[p - 1] >> shift:
                group += 1
                scratch.spare[group] = p
        for k in range(n_groups):
            p = scratch.spare[scratch.group_order[k]]
            rank = entries[p] >> shift
            while p < end and entries[p] >> shift == rank:
                again[count] = (np.uint64(k) << np.uint64(32)) | np.uint64(entries[p] & mask)
                count += 1
                p += 1
        position = best[BEST_POSITION]
        if best[0] == feature:
            best[BEST_POSITION] = 0  # of equally good orders the first
        if search_absolute(
            again, 0, count, count, np.uint64(32), np.int64(0xFFFFFFFF), scratch.ranks,
            scratch.by_rank, targets.weight, targets.samples, rules, nodes.whole[node, WEIGHT],
            nodes.whole[node, SAMPLES], False, -1, feature, scratch.tree_weight[: count + 1],
            scratch.tree_sum[: count + 1], scratch.errors, best, scratch.score,
        ):  # fmt: skip
            last = np.int64(again[best[BEST_POSITION] - 1] >> np.uint64(32))
            best[BEST_POSITION] = last + 1
            for k in range(n_groups):
                scratch.order[k] = scratch.group_order[k]
            _keep_groups(n_groups, n_groups, feature, columns, nodes, node, scratch)
        else:
            best[BEST_POSITION] = position


@kernel(bare=True)
def search_in_orders(n_groups, feature, columns, targets, rules, nodes, node, scratch):
    """Search the groups of a feature, which scratch holds by ascending code."""
    is_class = len(targets.labels) > 0
    n_stats = len(scratch.left)
    best, score, order = scratch.best, scratch.score, scratch.order
    total, weight = nodes.stats[node], nodes.whole[node, WEIGHT]
    categorical = columns.categorical[feature]
    is_missing_last = scratch.group_code[n_groups - 1] == columns.n_codes[feature]
    two_classes = is_class and n_stats == 2
    n_orders = (1 if two_classes else min(n_stats, _MOST_ORDERS)) if categorical else 1
    missing = -1 if categorical or not is_missing_last else n_groups - 1
    n_ordered = n_groups if missing < 0 else n_groups - 1
    only, drawn = -1, np.nan
    if rules.random and not categorical:
        only, drawn = _draw_among_groups(scratch.group_code, n_ordered, feature, columns, nodes,
                                         node)  # fmt: skip
    for which in range(n_orders):
        if categorical:
            statistic = 1 if two_classes else which
            order_of_groups(scratch.group_stats, scratch.group_weight, n_groups, statistic, order,
                            scratch.means, scratch.spare)  # fmt: skip
        else:
            for g in range(n_groups):
                order[g] = g
        for missing_left in range(1 if missing < 0 else 2):
            if not search_groups(
                scratch.group_stats, scratch.group_weight, scratch.group_samples, order, n_ordered,
                missing, is_class, rules, targets.starts, total, weight,
                nodes.whole[node, SAMPLES], scratch.offset, nodes.centre[node],
                nodes.exponent[node], missing_left == 1, only, nodes.real[node, LOW],
                nodes.real[node, HIGH], feature, scratch.left, scratch.right, best, score,
            ):  # fmt: skip
                continue
            _keep_groups(n_groups, n_ordered, feature, columns, nodes, node, scratch)
            nodes.real[node, DRAWN] = drawn


@kernel(inner=True)
def _keep_groups(n_groups, n_ordered, feature, columns, nodes, node, scratch):
    """What a split between groups means in codes."""
    best, order = scratch.best, scratch.order
    position = best[BEST_POSITION]
    nodes.real[node, DRAWN] = np.nan
    if not columns.categorical[feature]:
        nodes.whole[node, CODE] = scratch.group_code[order[position - 1]]
        nodes.whole[node, NEXT_CODE] = columns.n_codes[feature]
        if position < n_ordered:
            nodes.whole[node, NEXT_CODE] = scratch.group_code[order[position]]
        scratch.counts[0] = 0
        return
    samples = 0
    for g in range(position):
        samples += scratch.group_samples[order[g]]
    first, last = 0, position
    if 2 * samples > nodes.whole[node, SAMPLES]:  # the heavier side is the one of "all others"
        first, last = position, n_groups
    best[BEST_MISSING_LEFT] = 0
    n_chosen = 0
    for g in range(first, last):
        code = scratch.group_code[order[g]]
        if code == columns.n_codes[feature]:
            best[BEST_MISSING_LEFT] = 1
        else:
            scratch.chosen[n_chosen] = code
            n_chosen += 1
    scratch.counts[0] = n_chosen + 1  # a set, perhaps an empty one


@kernel(bare=True)
def keep_split(nodes, node, base, n_words, columns, targets, rules, scratch):
    """The best split found becomes the node's, if it is good enough; words of subsets in use."""
    best = scratch.best
    if best[0] < 0:
        return n_words
    decrease = scratch.score[0] - base
    if rules.criterion == SQUARED:
        unit = 2.0 ** float(-nodes.exponent[node, 0])
        decrease *= unit * unit
    elif rules.criterion == ABSOLUTE:
        decrease *= 2.0 ** float(-_exponent_of_errors(nodes, node))
    decrease = max(decrease * targets.unit, 0.0)
    if decrease < rules.min_decrease * (1.0 - 1e-12):
        return n_words
    feature = best[0]
    nodes.real[node, DECREASE] = decrease
    nodes.whole[node, FEATURE] = feature
    nodes.whole[node, MISSING_LEFT] = best[BEST_MISSING_LEFT]
    nodes.whole[node, SUBSET] = -1
    if scratch.counts[0]:
        n_words = write_subset(nodes, node, n_words, columns.n_codes[feature])
        for k in range(scratch.counts[0] - 1):
            set_bit(nodes.subsets, nodes.whole[node, SUBSET], scratch.chosen[k])
    return n_words


@kernel(bare=True)
def make_subset(nodes, node, n_words, columns):
    """A split of categories at a code, as a set of codes."""
    feature = nodes.whole[node, FEATURE]
    if columns.categorical[feature]:
        n_words = write_subset(nodes, node, n_words, columns.n_codes[feature])
        for code in range(nodes.whole[node, CODE] + 1):
            set_bit(nodes.subsets, nodes.whole[node, SUBSET], code)
    return n_words


@kernel(bare=True)
def write_subset(nodes, node, n_words, n_codes):
    """An empty set."""
    nodes.whole[node, SUBSET] = n_words
    for k in range(n_codes // 32 + 1):
        nodes.subsets[n_words + k] = 0
    return n_words + n_codes // 32 + 1


@kernel(bare=True)
def set_bit(subsets, begin, code):
    subsets[begin + code // 32] |= np.uint32(1) << np.uint32(code % 32)


@kernel(bare=True)
def end_node(nodes, node, rows, targets, rules):
    """A leaf: its value to the last digit, and the loss that is left."""
    start, end = nodes.whole[node, START], nodes.whole[node, END]
    nodes.real[node, ERROR_LEFT] = 0.0
    if len(targets.raw) == 0:
        return
    n_outputs = len(targets.starts) - 1
    for o in range(n_outputs):
        low, high = np.inf, -np.inf
        for p in range(start, end):
            own = targets.raw[rows[p] * n_outputs + o]
            low = min(low, own)
            high = max(high, own)
        if low == high:
            nodes.value[node, o] = low
            continue
        if rules.criterion != ABSOLUTE:
            power = fitting_exponent(high - low, nodes.whole[node, WEIGHT])
            factor = 2.0 ** float(power)
            total = 0
            for p in range(start, end):
                row = rows[p]
                own = (targets.raw[row * n_outputs + o] - low) * factor
                if targets.counted:
                    total += targets.weight[row] * np.int64(np.rint(own))
                else:
                    total += np.int64(np.rint(targets.weight[row] * own))
            above = float(total) / float(nodes.whole[node, WEIGHT]) / factor
            nodes.value[node, o] = min(max(low + above, low), high)
        else:
            above = nodes.value[node, o] - low
        nodes.real[node, ERROR_LEFT] += _loss_left(
            rows, start, end, targets, o, low, above, rules.criterion
        )
    for o in range(n_outputs):
        nodes.value[node, o] = min(max(nodes.value[node, o], nodes.real[node, LOW]),
                                   nodes.real[node, HIGH])  # fmt: skip


@kernel(inner=True)
def _loss(criterion, distance, value):
    """Of a target at a distance from the value."""
    if criterion == ABSOLUTE:
        return abs(distance)
    if criterion == SQUARED:
        return distance * distance
    if value <= 0.0:
        return 0.0
    excess = excess_of(distance / value, criterion == POISSON)
    return value * excess if criterion == POISSON else excess


@kernel(inner=True)
def _loss_left(rows, start, end, targets, o, low, above, criterion):
    """The sum of the losses in fixed point, so that their order does not matter.

    The value is low + above; the sum itself may be rounded.
    """
    n_outputs = len(targets.starts) - 1
    largest, total = 0.0, 0.0
    for p in range(start, end):
        row = rows[p]
        distance = (targets.raw[row * n_outputs + o] - low) - above
        largest = max(largest, _loss(criterion, distance, low + above))
        total += targets.real[row]
    if not 0.0 < largest < np.inf:
        return largest * 0.0
    scale = 2.0 ** float(BITS_OF_SUMS - bits_of(total / targets.unit))
    whole = 0
    for p in range(start, end):
        row = rows[p]
        distance = (targets.raw[row * n_outputs + o] - low) - above
        share = _loss(criterion, distance, low + above) / largest
        if targets.counted:
            whole += targets.weight[row] * np.int64(np.rint(share * scale))
        else:
            whole += np.int64(np.rint(targets.weight[row] * share * scale))
    return float(whole) / scale * largest * targets.unit


@kernel(bare=True)
def bound_children(nodes, node, first, places, targets, rules):
    """A constrained feature parts the range of values at the middle of the children's."""
    direction = rules.monotone[nodes.whole[node, FEATURE]]
    if direction == 0:
        return
    middle = 0.0
    for child in (first, first + 1):
        total, weight = 0.0, 0.0
        for p in range(nodes.whole[child, START], nodes.whole[child, END]):
            place = places[p]
            own = float(targets.weight[place])
            weight += own
            if len(targets.labels) > 0:
                total += own * (targets.labels[place] == 1)
            else:
                total += own * targets.raw[place]
        middle += 0.5 * total / weight
    lower, upper = (first, first + 1) if direction > 0 else (first + 1, first)
    nodes.real[lower, HIGH] = min(nodes.real[lower, HIGH], middle)
    nodes.real[upper, LOW] = max(nodes.real[upper, LOW], middle)
