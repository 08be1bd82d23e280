"""Leaves of numbers whose rows lie on many workers; `node_search.end_node` for many machines.

A leaf of classes is its sums, which are known. Of numbers, the mean is found to the last digit, and
then the loss that is left: two round trips more, and a third where that is summed generally.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from margrove.dask.forest_frames import LeafRule
from margrove.dask.forest_ground import Ground, Place
from margrove.dask.forest_sums import fitting_exponent
from margrove.grove.grow.nodes import ERROR_LEFT, HIGH, LOW, WEIGHT
from margrove.grove.table.targets import BITS_OF_SUMS

__all__ = ["end_leaves"]

_DOUBT = 1e-9  # of a sum of weights that were added up in another order


def end_leaves(ground: Ground, places: list[Place], *, is_quick: bool) -> Iterator[None]:
    """is_quick: whether losses are squares, summed as `sapling` does."""
    for tree, node in places:
        tree.nodes.real[node, ERROR_LEFT] = 0.0
    if ground.frame.is_class or not places:
        return
    jobs, rules = _leaves_to_be_measured(ground, places, is_quick=is_quick)
    if rules:
        sums = ground.gang.ask("sum_above", rules)
        yield
        for k, ((tree, node), rule) in enumerate(zip(jobs, rules, strict=True)):
            weight = int(tree.nodes.whole[node, WEIGHT])
            above = float(int(sums[k])) / float(weight) / rule.factor
            high = float(tree.extremes[node][1][rule.output])
            value = min(max(rule.low + above, rule.low), high)
            tree.nodes.value[node, rule.output] = value
            rules[k] = replace(rule, above=above)
        yield from (_end_quickly if is_quick else _end_generally)(ground, jobs, rules)
    for tree, node in places:
        low, high = tree.nodes.real[node, LOW], tree.nodes.real[node, HIGH]
        tree.nodes.value[node] = np.minimum(np.maximum(tree.nodes.value[node], low), high)


def _leaves_to_be_measured(
    ground: Ground, places: list[Place], *, is_quick: bool
) -> tuple[list[Place], list[LeafRule]]:
    """One for each output that varies; the others are done."""
    jobs, rules = [], []
    for tree, node in places:
        lows, highs = tree.extremes[node]
        weight = int(tree.nodes.whole[node, WEIGHT])
        for o, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
            if low == high:
                tree.nodes.value[node, o] = low
                continue
            factor = 2.0 ** float(fitting_exponent(high - low, weight))
            jobs.append((tree, node))
            rules.append(LeafRule(tree.number, node, o, low, factor, is_quick=is_quick))
    return jobs, rules


def _end_quickly(ground: Ground, jobs: list[Place], rules: list[LeafRule]) -> Iterator[None]:
    for k, ((tree, node), rule) in enumerate(zip(jobs, rules, strict=True)):
        high, weight = float(tree.extremes[node][1][0]), int(tree.nodes.whole[node, WEIGHT])
        largest = max(high - rule.low - rule.above, rule.above)
        scale = 2.0 ** float(fitting_exponent(1.0, weight))
        rules[k] = replace(rule, largest=largest, scale=scale)
    found = ground.gang.ask("sum_losses", rules)
    yield
    for (tree, node), rule, whole in zip(jobs, rules, found.tolist(), strict=True):
        left = float(whole) / rule.scale * rule.largest * rule.largest
        tree.nodes.real[node, ERROR_LEFT] = left


def _end_generally(ground: Ground, jobs: list[Place], rules: list[LeafRule]) -> Iterator[None]:
    parts = ground.gang.ask("largest_losses", rules, combine="list")
    yield
    largest = np.max([own[0] for own in parts], axis=0)
    totals = np.sum([own[1] for own in parts], axis=0)
    measured = []
    for k, (rule, total) in enumerate(zip(rules, totals.tolist(), strict=True)):
        if not 0.0 < largest[k] < math.inf:
            tree, node = jobs[k]
            tree.nodes.real[node, ERROR_LEFT] += float(largest[k]) * 0.0
            continue
        bits = _bits_of_total(ground, rule, total)
        scale = 2.0 ** float(BITS_OF_SUMS - bits)
        measured.append((jobs[k], replace(rule, largest=float(largest[k]), scale=scale)))
    if not measured:
        return
    found = ground.gang.ask("sum_losses", [rule for _, rule in measured])
    yield
    for ((tree, node), rule), whole in zip(measured, found.tolist(), strict=True):
        left = float(whole) / rule.scale * rule.largest * ground.targets.unit
        tree.nodes.real[node, ERROR_LEFT] += left


def _bits_of_total(ground: Ground, rule: LeafRule, total: float) -> int:
    """Of the given weights of a leaf, which one machine adds up row by row."""
    unit = ground.targets.unit
    near = [math.frexp(total * (1.0 + doubt) / unit)[1] for doubt in (-_DOUBT, _DOUBT)]
    if near[0] != near[1]:
        parts = ground.gang.ask("places_of", rule.tree, rule.node, combine="list")
        real = ground.targets.real[np.sort(np.concatenate(parts))]
        total = float(np.cumsum(real)[-1])
    return math.frexp(total / unit)[1]
