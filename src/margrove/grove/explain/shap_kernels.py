"""Compiled loops of SHAP values: a row's way through a tree, if only some features are known.

For a leaf with the features F on its path, let z_j be the share of the training rows that pass all
its questions about feature j, one after the other, and o_j whether the row does, 1 or 0. Of all
features known, S contribute o and the others z:

    v(S)   =  sum over leaves of  value  prod_{j in S} o_j  prod_{j not in S} z_j
    phi_j  =  sum over leaves of  value (o_j - z_j)  integral from 0 to 1 of
              prod_{k in F, k != j} (z_k (1 - t) + o_k t)  dt

because Shapley's weight of a set S is the integral of t^|S| (1 - t)^(|F| - 1 - |S|). The product is
a polynomial of degree |F| - 1, which Gauss and Legendre's rule integrates exactly with |F| / 2
points. At each of them products are formed on the way down, and sums of them on the way up, so that
a row costs a few operations for each node and point, and no sum cancels. Rows go eight abreast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.serve import LEAF, THRESHOLD, branch_of

__all__ = [
    "ABREAST",
    "QuadratureRule",
    "Ways",
    "add_interventional_values",
    "add_path_values",
    "paths_of",
    "quadrature_rule",
]  # fmt: skip

ABREAST = 8
_LEAST_SHARE = 1e-290  # of which the inverse is finite


class Ways(NamedTuple):
    """The ways from the root to the N nodes of a tree.

    parent     int64 (N,)
    depth      int64 (N,)
    position   int64 (N,)  which branch of its parent leads to a node
    above      int64 (N,), passing float64 (N,): see `paths_of`
    """

    parent: np.ndarray
    depth: np.ndarray
    position: np.ndarray
    above: np.ndarray
    passing: np.ndarray


class QuadratureRule(NamedTuple):
    """Points t and weights of an integral from 0 to 1, each ABREAST times: float64 (width,).

    late         t
    rest         1 - t
    sizes        the weights
    of_failing   -weight / (1 - t): what a row that fails all questions gains
    """

    late: np.ndarray
    rest: np.ndarray
    sizes: np.ndarray
    of_failing: np.ndarray


class Levels(NamedTuple):
    """What is known at each level of the way that is gone at the moment.

    product   float64 (levels, width)  of the factors on the way
    factor    float64 (levels, width)  of the level's own branch: z (1 - t) + o t
    gain      float64 (levels, width)  weight (o - z) / factor
    passes    float64 (levels, ABREAST)  o of each row
    branch    int64 (levels, ABREAST)  which branch each row takes
    """

    product: np.ndarray
    factor: np.ndarray
    gain: np.ndarray
    passes: np.ndarray
    branch: np.ndarray


def quadrature_rule(points: np.ndarray, weights: np.ndarray) -> QuadratureRule:
    late, sizes = np.repeat(points, ABREAST), np.repeat(weights, ABREAST)
    rest = 1.0 - late
    return QuadratureRule(late, rest, sizes, -sizes / rest)


@kernel
def paths_of(parent, feature, depth, share, n_features):
    """Of each node n but the root, the last node above it whose own branch is about the same
    feature, -1 for none; the share z of all branches about it on the way, and that of all branches
    about anything; last, the largest number of features on a way."""
    n_nodes = len(parent)
    above = np.full(n_nodes, -1, np.int64)
    passing, arriving = np.ones(n_nodes), np.ones(n_nodes)
    latest, before = np.full(n_features, -1, np.int64), np.full(depth.max() + 1, -1, np.int64)
    way, n_distinct = np.zeros(depth.max() + 1, np.int64), np.zeros(depth.max() + 1, np.int64)
    most, level = 0, 0
    for node in range(1, n_nodes):
        while level >= depth[node]:  # leave what the way before went through
            latest[feature[parent[way[level]]]] = before[level]
            level -= 1
        level = depth[node]
        asked = feature[parent[node]]
        above[node] = before[level] = latest[asked]
        passing[node] = share[node] * (passing[above[node]] if above[node] >= 0 else 1.0)
        arriving[node] = arriving[parent[node]] * share[node]
        n_distinct[level] = n_distinct[level - 1] + (above[node] < 0)
        most = max(most, n_distinct[level])
        latest[asked], way[level] = node, node
    return above, passing, arriving, most


@kernel
def add_path_values(X, questions, ways, value, rule, phi):
    """Add a tree's values to phi (groups, d, outputs, ABREAST), for ABREAST rows of X a group.

    The first row that goes down several branches, where there is one, else -1.
    """
    kind, feature = questions.kind, questions.feature
    parent, depth, above, passing = ways.parent, ways.depth, ways.above, ways.passing
    n_nodes, n_outputs = value.shape
    width = len(rule.late)
    n_levels = depth.max() + 1
    levels = Levels(
        np.ones((n_levels, width)),
        np.empty((n_levels, width)),
        np.zeros((n_levels, width)),
        np.zeros((n_levels, ABREAST)),
        np.zeros((n_levels, ABREAST), np.int64),
    )
    product, gain, branch = levels.product, levels.gain, levels.branch
    total = np.zeros((n_levels, n_outputs, width))
    way = np.zeros(n_levels, np.int64)
    for group in range(phi.shape[0]):
        level = 0
        for node in range(n_nodes):
            while level >= depth[node] and level > 0:
                _leave(feature[parent[way[level]]], depth[above[way[level]]],
                       above[way[level]] >= 0, level, gain, total, phi[group])  # fmt: skip
                level -= 1
            level = depth[node]
            way[level] = node
            if node > 0:
                last = depth[above[node]] if above[node] >= 0 else -1
                _enter(ways.position[node], last, level, passing[node], rule, levels)
            if kind[node] == LEAF:
                for v in range(n_outputs):
                    own = value[node, v]
                    for k in range(width):
                        total[level, v, k] = own * product[level, k]
                continue
            for v in range(n_outputs):
                for k in range(width):
                    total[level, v, k] = 0.0
            for row in range(ABREAST):
                i = group * ABREAST + row
                found = _branch(X, i, node, questions)
                if found < 0:
                    return i
                branch[level, row] = found
        while level > 0:
            _leave(feature[parent[way[level]]], depth[above[way[level]]], above[way[level]] >= 0,
                   level, gain, total, phi[group])  # fmt: skip
            level -= 1
    return -1


@kernel(inner=True)
def _branch(X, i, node, questions):
    """The branch that a row takes; -1 for all of them."""
    found = np.int64(-1)
    if questions.kind[node] == THRESHOLD:
        own = X[i, questions.feature[node]]
        if own == own:  # noqa: PLR0124
            found = np.int64(own > questions.threshold[node])
    else:
        found = np.int64(branch_of(X[i], node, questions))
    return found if found >= 0 else np.int64(questions.missing_child[node])


@kernel(inner=True)
def _enter(position, last, level, share, rule, levels):
    """Go down a branch; `last` is the level of the last one about the same feature."""
    late, rest, sizes, of_failing = rule.late, rule.rest, rule.sizes, rule.of_failing
    product, factor, gain = levels.product, levels.factor, levels.gain
    passes, branch = levels.passes, levels.branch
    width = len(late)
    for row in range(ABREAST):
        own = 1.0 if branch[level - 1, row] == position else 0.0
        passes[level, row] = own if last < 0 else own * passes[last, row]
    for k in range(width):
        own = passes[level, k % ABREAST]
        factor[level, k] = share * rest[k] + own * late[k]
        gain[level, k] = (
            sizes[k] * (1.0 - share) / (share * rest[k] + late[k]) if own > 0.0 else of_failing[k]
        )
    if last < 0:
        for k in range(width):
            product[level, k] = product[level - 1, k] * factor[level, k]
        return
    for k in range(width):
        was = factor[last, k]
        inverse = 1.0 / was if was > _LEAST_SHARE else 0.0
        product[level, k] = product[level - 1, k] * (factor[level, k] * inverse)


@kernel(inner=True)
def _leave(asked, last, is_again, level, gain, total, phi):
    """Count what the leaves below a branch say, and hand it up."""
    width = gain.shape[1]
    for v in range(total.shape[1]):
        for row in range(ABREAST):
            counted = 0.0
            for k in range(row, width, ABREAST):
                own = gain[level, k] - gain[last, k] if is_again else gain[level, k]
                counted += own * total[level, v, k]
            phi[asked, v, row] += counted
        for k in range(width):
            total[level - 1, v, k] += total[level, v, k]


@kernel
def add_interventional_values(X, background, questions, value, n_levels, weight_of, phi):
    """Add a tree's values, summed over the rows of the background, to phi (n, d, outputs).

    A leaf counts if each question on the way is passed by the row or by the other one; of features
    that only one of them passes, a by the row and b by the other,

        weight_of[a - 1, b]  speaks for each of the a,   -weight_of[a, b - 1]  for each of the b

    The first row of X, or n + that of the background, that goes down several branches, else -1.
    """
    kind, feature = questions.kind, questions.feature
    first_child, children = questions.first_child, questions.children
    n, n_features = X.shape
    side = np.zeros(n_features, np.int8)  # whose answers count: 1 the row's, 2 the other's
    differing = np.empty(min(n_levels, n_features), np.int64)
    stack, until = np.empty(n_levels + 1, np.int64), np.empty(n_levels + 1, np.int64)
    for i in range(n):
        for b in range(len(background)):
            waiting, size, node = 0, 0, np.int64(0)
            while True:
                while kind[node] != LEAF:
                    asked = feature[node]
                    own, other = np.int64(0), np.int64(0)
                    if side[asked] != 2:
                        own = _branch(X, i, node, questions)
                        if own < 0:
                            return i
                    if side[asked] != 1:
                        other = _branch(background, b, node, questions)
                        if other < 0:
                            return n + b
                    first = first_child[node]
                    if side[asked] == 0 and own != other:
                        stack[waiting], until[waiting] = children[first + other], size
                        waiting += 1
                        differing[size], side[asked] = asked, 1
                        size += 1
                    node = children[first + (other if side[asked] == 2 else own)]
                n_own = 0
                for k in range(size):
                    n_own += side[differing[k]] == 1
                for k in range(size):
                    is_own = side[differing[k]] == 1
                    share = (
                        weight_of[n_own - 1, size - n_own]
                        if is_own
                        else -weight_of[n_own, size - n_own - 1]
                    )
                    for v in range(value.shape[1]):
                        phi[i, differing[k], v] += share * value[node, v]
                if waiting == 0:
                    break
                waiting -= 1
                node = stack[waiting]
                for k in range(until[waiting] + 1, size):
                    side[differing[k]] = 0
                size = until[waiting] + 1
                side[differing[size - 1]] = 2
            for k in range(size):
                side[differing[k]] = 0
    return -1
