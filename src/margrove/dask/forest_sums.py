"""Nodes summed up from what members say of their parts; `node_search.sum_up` for many machines."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from margrove.dask.forest_ground import Ground, Place, Trunk
from margrove.ensemble.forest.shards import score_of_sums
from margrove.grove.grow.node_search import _NARROWER
from margrove.grove.grow.nodes import FEATURE, PARENT, SAMPLES, WEIGHT
from margrove.grove.grow.scores import SQUARED
from margrove.grove.table.targets import _LARGEST_EXPONENT, BITS_OF_SUMS

__all__ = ["Summary", "fitting_exponent", "sum_up_nodes"]


@dataclass(frozen=True)
class Summary:
    """What a search needs to know of a node: whether it is pure, its score, and its mean in units
    of the numbers, int64 (n_stats,)."""

    pure: bool
    base: float
    offset: np.ndarray


def sum_up_nodes(ground: Ground, places: list[Place]) -> Generator[None, None, list[Summary]]:
    """Two round trips for numbers, one for classes."""
    asked = [(tree.number, node) for tree, node in places]
    parts = ground.gang.ask("sum_up", asked, combine="list")
    yield
    whole = np.sum([own[0] for own in parts], axis=0)
    lows = np.min([own[1] for own in parts], axis=0)
    highs = np.max([own[2] for own in parts], axis=0)
    for (tree, node), sums in zip(places, whole, strict=True):
        tree.nodes.whole[node, WEIGHT], tree.nodes.whole[node, SAMPLES] = sums[:2]
        tree.nodes.whole[node, FEATURE] = -1
    if ground.frame.is_class:
        return [
            _of_classes(ground, tree, node, sums)
            for (tree, node), sums in zip(places, whole[:, 2:], strict=True)
        ]
    powers = []
    for (tree, node), low, high in zip(places, lows, highs, strict=True):
        tree.extremes[node] = low, high
        powers.append(_new_scale(ground, tree, node, low, high))
    centres = np.array([tree.nodes.centre[node] for tree, node in places])
    sums = ground.gang.ask("sum_numbers", asked, centres, powers)
    yield
    return [
        _of_numbers(ground, tree, node, own) for (tree, node), own in zip(places, sums, strict=True)
    ]


def _of_classes(ground: Ground, tree: Trunk, node: int, sums: np.ndarray) -> Summary:
    rules, starts = tree.rules, ground.targets.starts
    weight = int(tree.nodes.whole[node, WEIGHT])
    tree.nodes.stats[node] = sums
    pure = all(
        sums[starts[o] : starts[o + 1]].max() == weight for o in range(ground.frame.n_outputs)
    )
    base = score_of_sums(rules.criterion, bool(rules.counted), np.ascontiguousarray(sums), starts,
                         weight, rules.table, rules.scale)  # fmt: skip
    return Summary(pure, float(base), np.zeros(len(sums), np.int64))


def _new_scale(
    ground: Ground, tree: Trunk, node: int, low: np.ndarray, high: np.ndarray
) -> int | None:
    """The power of two of a new scale for the targets, if they need one; sets their centre."""
    nodes, at_zero = tree.nodes, bool(tree.rules.at_zero)
    weight = int(nodes.whole[node, WEIGHT])
    middle = np.where(at_zero & (low <= 0.0), 0.0, 0.5 * low + 0.5 * high)
    widest = float(max(np.abs(low - middle).max(), np.abs(high - middle).max()))
    power = fitting_exponent(widest, weight)
    is_narrow = widest > 0.0 and power - int(nodes.exponent[node, 0]) > _NARROWER
    if nodes.whole[node, PARENT] >= 0 and not is_narrow:
        return None
    nodes.centre[node], nodes.exponent[node] = middle, power
    return power


def _of_numbers(ground: Ground, tree: Trunk, node: int, sums: np.ndarray) -> Summary:
    nodes = tree.nodes
    low, high = tree.extremes[node]
    weight = int(nodes.whole[node, WEIGHT])
    nodes.stats[node] = sums
    offset = np.zeros(len(sums), np.int64)
    base = 0.0
    for o in range(len(sums)):
        total = int(sums[o])
        offset[o] = np.int64(np.rint(float(total) / float(weight)))
        unit = 2.0 ** float(-nodes.exponent[node, o])
        mean = float(nodes.centre[node, o]) + float(total) / float(weight) * unit
        nodes.value[node, o] = min(max(mean, float(low[o])), float(high[o]))
        if tree.rules.criterion == SQUARED:
            rest = float(total - weight * int(offset[o]))
            base += rest * rest / float(weight)
    return Summary(bool((low == high).all()), base, offset)


def fitting_exponent(largest: float, total_weight: int) -> int:
    """See `targets.fitting_exponent`."""
    if not largest > 0.0:
        return 0
    bits = math.frexp(largest)[1] + math.frexp(float(total_weight))[1]
    return min(BITS_OF_SUMS - bits, _LARGEST_EXPONENT)
