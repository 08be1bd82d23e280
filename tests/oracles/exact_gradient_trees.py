"""A regression tree by trying every split of every node, in fractions."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

EPSILON = Fraction(float(np.finfo(float).eps))


@dataclass
class Node:
    """rows that take part; what they are split by (None: a leaf), and the number of a child."""

    rows: list[int]
    depth: int
    samples: int
    weight: Fraction
    impurity: Fraction
    decrease: Fraction = Fraction(0)
    feature: int | None = None
    below: float = np.nan
    above: float = np.nan
    left: int = -1

    @property
    def threshold(self) -> float:
        return 0.5 * self.below + 0.5 * self.above


def variance(rows, target, weight):
    total = sum(weight[i] for i in rows)
    mean = sum(weight[i] * target[i] for i in rows) / total
    return sum(weight[i] * (target[i] - mean) ** 2 for i in rows) / total


def best_split(X, rows, target, weight, samples, *, min_samples_leaf, min_weight_leaf):
    """(gain, feature, below, above, left, right), the first of the best; None if there is none."""
    best = None
    for feature in range(X.shape[1]):
        values = sorted({X[i, feature] for i in rows})
        for below, above in pairwise(values):
            sides = ([i for i in rows if X[i, feature] <= below],
                     [i for i in rows if X[i, feature] > below])  # fmt: skip
            weights = [sum(weight[i] for i in side) for side in sides]
            counts = [sum(samples[i] for i in side) for side in sides]
            if min(counts) < min_samples_leaf or min(weights) < min_weight_leaf:
                continue
            sums = [sum(weight[i] * target[i] for i in side) for side in sides]
            score = sum(own * own / mass for own, mass in zip(sums, weights, strict=True))
            gain = score - sum(sums) ** 2 / sum(weights)
            if gain > 0 and (best is None or gain > best[0]):
                best = (gain, feature, below, above, *sides)
    return best


def grow(
    X,
    gradient,
    weight=None,
    samples=None,
    rows=None,
    *,
    max_depth=3,
    min_samples_split=2,
    min_samples_leaf=1,
    min_weight_leaf=0.0,
):
    """The nodes, level by level."""
    n = len(X)
    counts = [1] * n if samples is None else [int(own) for own in samples]
    given = [Fraction(1)] * n if weight is None else [Fraction(float(own)) for own in weight]
    masses = [own * count for own, count in zip(given, counts, strict=True)]
    target = [-Fraction(float(own)) for own in gradient]
    chosen = [i for i in (range(n) if rows is None else rows) if masses[i] > 0]
    limit = EPSILON * min(1, max(abs(target[i]) for i in chosen)) ** 2

    def new_node(own, depth):
        return Node(own, depth, sum(counts[i] for i in own), sum(masses[i] for i in own),
                    variance(own, target, masses))  # fmt: skip

    nodes, queue = [new_node(chosen, 0)], deque([0])
    while queue:
        node = nodes[queue.popleft()]
        if node.depth == max_depth or node.samples < min_samples_split or node.impurity <= limit:
            continue
        best = best_split(
            X,
            node.rows,
            target,
            masses,
            counts,
            min_samples_leaf=min_samples_leaf,
            min_weight_leaf=Fraction(min_weight_leaf),
        )
        if best is None:
            continue
        node.decrease, node.feature, node.below, node.above = best[:4]
        node.left = len(nodes)
        queue += [len(nodes), len(nodes) + 1]
        nodes += [new_node(side, node.depth + 1) for side in best[4:]]
    return nodes


def leaf_of(nodes, x):
    number = 0
    while nodes[number].left >= 0:
        node = nodes[number]
        number = node.left + int(x[node.feature] > node.threshold)
    return number
