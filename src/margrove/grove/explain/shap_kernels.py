"""Compiled loops of SHAP values: a row's path through a tree if only some features are known.

For a leaf with the features F on its path, let z_j be the product of the shares of the training
rows that take the branches of the path at splits by feature j, and o_j be 1 if the row takes all of
them, else 0. If the features S are known, these contribute o and the others z:

    v(S)   =  sum over leaves of  value  prod_{j in S} o_j  prod_{j not in S} z_j
    phi_j  =  sum over leaves of  value (o_j - z_j)  integral from 0 to 1 of
              prod_{k in F, k != j} (z_k (1 - t) + o_k t)  dt

because Shapley's weight of a set S is the integral of t^|S| (1 - t)^(|F| - 1 - |S|). The product is
a polynomial of degree |F| - 1, which Gauss-Legendre quadrature integrates exactly with |F| / 2
points. At each point, products are formed on the way down and summed on the way up, so a row costs
a few operations for each node and point, and no sum cancels. Eight rows walk at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, region
from margrove.grove.serve import LEAF, THRESHOLD, branch_of

__all__ = [
    "GROUPS_OF_A_TILE",
    "ROWS_AT_ONCE",
    "Paths",
    "QuadratureRule",
    "add_interventional_values",
    "add_path_values",
    "paths_of",
    "quadrature_rule",
]  # fmt: skip

ROWS_AT_ONCE = 8
GROUPS_OF_A_TILE = 4
_LEAST_SHARE = 1e-290  # its inverse is finite


class Paths(NamedTuple):
    """The paths from the root to the N nodes of a tree.

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
    """Points t and weights of an integral from 0 to 1, each repeated ROWS_AT_ONCE times.

    All are float64 (width,).

    late         t
    rest         1 - t
    sizes        the weights
    of_failing   -weight / (1 - t): the gain of a row with o = 0
    """

    late: np.ndarray
    rest: np.ndarray
    sizes: np.ndarray
    of_failing: np.ndarray


class Levels(NamedTuple):
    """The state at each level of the current path.

    product   float64 (levels, width)  of the factors on the path
    factor    float64 (levels, width)  of the level's own branch: z (1 - t) + o t
    gain      float64 (levels, width)  weight (o - z) / factor
    passes    float64 (levels, ROWS_AT_ONCE)  o of each row
    branch    int64 (levels, ROWS_AT_ONCE)  which branch each row takes
    """

    product: np.ndarray
    factor: np.ndarray
    gain: np.ndarray
    passes: np.ndarray
    branch: np.ndarray


def quadrature_rule(points: np.ndarray, weights: np.ndarray) -> QuadratureRule:
    late, sizes = np.repeat(points, ROWS_AT_ONCE), np.repeat(weights, ROWS_AT_ONCE)
    rest = 1.0 - late
    return QuadratureRule(late, rest, sizes, -sizes / rest)


@kernel
def paths_of(parent, feature, depth, share, n_features):
    """Four results about the paths from the root to each node.

    above      int64 (N,): the last node above it whose branch is a split by the same feature, or -1
    passing    float64 (N,): the share z of all branches by this feature on the path
    arriving   float64 (N,): the share of all branches on the path
    most       the largest number of features on a path
    """
    n_nodes = len(parent)
    above = np.full(n_nodes, -1, np.int64)
    passing, arriving = np.ones(n_nodes), np.ones(n_nodes)
    latest, before = np.full(n_features, -1, np.int64), np.full(depth.max() + 1, -1, np.int64)
    path, n_distinct = np.zeros(depth.max() + 1, np.int64), np.zeros(depth.max() + 1, np.int64)
    most, level = 0, 0
    for node in range(1, n_nodes):
        while level >= depth[node]:  # leave the nodes of the path before
            latest[feature[parent[path[level]]]] = before[level]
            level -= 1
        level = depth[node]
        of_split = feature[parent[node]]
        above[node] = before[level] = latest[of_split]
        passing[node] = share[node] * (passing[above[node]] if above[node] >= 0 else 1.0)
        arriving[node] = arriving[parent[node]] * share[node]
        n_distinct[level] = n_distinct[level - 1] + (above[node] < 0)
        most = max(most, n_distinct[level])
        latest[of_split], path[level] = node, node
    return above, passing, arriving, most


@region
def add_path_values(tile, X, questions, paths, value, rule, first, phi, shared):
    """Add a tree's values to phi (groups, d, outputs, ROWS_AT_ONCE), from output `first` on.

    A group is so many rows of X. shared[tile] becomes the first row that takes several branches, if
    there is one.
    """
    kind, feature = questions.kind, questions.feature
    parent, depth, above, passing = paths.parent, paths.depth, paths.above, paths.passing
    n_nodes, n_outputs = value.shape
    width = len(rule.late)
    n_levels = depth.max() + 1
    levels = Levels(
        np.ones((n_levels, width)),
        np.empty((n_levels, width)),
        np.zeros((n_levels, width)),
        np.zeros((n_levels, ROWS_AT_ONCE)),
        np.zeros((n_levels, ROWS_AT_ONCE), np.int64),
    )
    product, gain, branch = levels.product, levels.gain, levels.branch
    total = np.zeros((n_levels, n_outputs, width))
    path = np.zeros(n_levels, np.int64)
    for group in range(GROUPS_OF_A_TILE * tile, min(GROUPS_OF_A_TILE * (tile + 1), len(phi))):
        level = 0
        for node in range(n_nodes):
            while level >= depth[node] and level > 0:
                _leave(feature[parent[path[level]]], depth[above[path[level]]],
                       above[path[level]] >= 0, level, gain, total, first, phi[group])  # fmt: skip
                level -= 1
            level = depth[node]
            path[level] = node
            if node > 0:
                last = depth[above[node]] if above[node] >= 0 else -1
                _enter(paths.position[node], last, level, passing[node], rule, levels)
            if kind[node] == LEAF:
                for v in range(n_outputs):
                    of_leaf = value[node, v]
                    for k in range(width):
                        total[level, v, k] = of_leaf * product[level, k]
                continue
            for v in range(n_outputs):
                for k in range(width):
                    total[level, v, k] = 0.0
            for row in range(ROWS_AT_ONCE):  # of the last rows, some walk again
                i = min(group * ROWS_AT_ONCE + row, len(X) - 1)
                found = _branch(X, i, node, questions)
                if found < 0:
                    shared[tile] = i
                    return
                branch[level, row] = found
        while level > 0:
            _leave(feature[parent[path[level]]], depth[above[path[level]]],
                   above[path[level]] >= 0, level, gain, total, first, phi[group])  # fmt: skip
            level -= 1


@kernel(inner=True)
def _branch(X, i, node, questions):
    """The branch that a row takes; -1 for all of them."""
    found = np.int64(-1)
    if questions.kind[node] == THRESHOLD:
        cell = X[i, questions.feature[node]]
        if cell == cell:  # noqa: PLR0124
            found = np.int64(cell > questions.threshold[node])
    else:
        found = np.int64(branch_of(X[i], node, questions))
    return found if found >= 0 else np.int64(questions.missing_child[node])


@kernel(inner=True)
def _enter(position, last, level, share, rule, levels):
    """Go down a branch; `last` is the level of the last branch by the same feature, or -1."""
    late, rest, sizes, of_failing = rule.late, rule.rest, rule.sizes, rule.of_failing
    product, factor, gain = levels.product, levels.factor, levels.gain
    passes, branch = levels.passes, levels.branch
    width = len(late)
    for row in range(ROWS_AT_ONCE):
        takes = 1.0 if branch[level - 1, row] == position else 0.0
        passes[level, row] = takes if last < 0 else takes * passes[last, row]
    for k in range(width):
        passed = passes[level, k % ROWS_AT_ONCE]
        factor[level, k] = share * rest[k] + passed * late[k]
        gain[level, k] = (
            sizes[k] * (1.0 - share) / (share * rest[k] + late[k])
            if passed > 0.0
            else of_failing[k]
        )
    if last < 0:
        for k in range(width):
            product[level, k] = product[level - 1, k] * factor[level, k]
        return
    for k in range(width):
        earlier = factor[last, k]
        inverse = 1.0 / earlier if earlier > _LEAST_SHARE else 0.0
        product[level, k] = product[level - 1, k] * (factor[level, k] * inverse)


@kernel(inner=True)
def _leave(feature, last, is_again, level, gain, total, first, phi):
    """Add the leaves below a branch to phi, and their sums to those of the level above."""
    width = gain.shape[1]
    for v in range(total.shape[1]):
        for row in range(ROWS_AT_ONCE):
            added = 0.0
            for k in range(row, width, ROWS_AT_ONCE):
                change = gain[level, k] - gain[last, k] if is_again else gain[level, k]
                added += change * total[level, v, k]
            phi[feature, first + v, row] += added
        for k in range(width):
            total[level - 1, v, k] += total[level, v, k]


@region
def add_interventional_values(
    tile, size, X, background, questions, value, n_levels, weight_of, first, values, shared
):
    """Add a tree's values for `size` rows to values (n, d, outputs), from output `first` on.

    They are summed over the background. A leaf counts if each branch on its path is taken by the
    row or by the background row. Let a features be such that only the row takes their branches, and
    b such that only the background row does. Then each of the a features gets weight_of[a - 1, b]
    times the leaf's value, and each of the b features -weight_of[a, b - 1] times it.

    shared[tile] becomes the first row of X (or n + the row of the background) that takes several
    branches, if there is one.
    """
    kind, feature = questions.kind, questions.feature
    first_child, children = questions.first_child, questions.children
    n, n_features = X.shape
    side = np.zeros(n_features, np.int8)  # whose value counts: 1 the row's, 2 the background row's
    differing = np.empty(min(n_levels, n_features), np.int64)
    stack, until = np.empty(n_levels + 1, np.int64), np.empty(n_levels + 1, np.int64)
    for i in range(tile * size, min((tile + 1) * size, n)):
        for b in range(len(background)):
            waiting, size, node = 0, 0, np.int64(0)
            while True:
                while kind[node] != LEAF:
                    of_split = feature[node]
                    branch, other = (
                        np.int64(0),
                        np.int64(0),
                    )  # of the row, and of the background row
                    if side[of_split] != 2:
                        branch = _branch(X, i, node, questions)
                        if branch < 0:
                            shared[tile] = i
                            return
                    if side[of_split] != 1:
                        other = _branch(background, b, node, questions)
                        if other < 0:
                            shared[tile] = n + b
                            return
                    start = first_child[node]
                    if side[of_split] == 0 and branch != other:
                        stack[waiting], until[waiting] = children[start + other], size
                        waiting += 1
                        differing[size], side[of_split] = of_split, 1
                        size += 1
                    node = children[start + (other if side[of_split] == 2 else branch)]
                n_of_row = 0
                for k in range(size):
                    n_of_row += side[differing[k]] == 1
                for k in range(size):
                    is_own = side[differing[k]] == 1
                    share = (
                        weight_of[n_of_row - 1, size - n_of_row]
                        if is_own
                        else -weight_of[n_of_row, size - n_of_row - 1]
                    )
                    for v in range(value.shape[1]):
                        values[i, differing[k], first + v] += share * value[node, v]
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
