"""Studies of forests in plain Python: one row, one tree, one pair at a time.

Trees come as `TreeArrays`, rows as lists of numbers (categories by their number, NaN is missing).
"""

from __future__ import annotations

import math
from itertools import pairwise

LEAF, THRESHOLD, SUBSET = 0, 1, 2
_MASK = (1 << 64) - 1


def mean(values, weights=None):
    weights = [1.0] * len(values) if weights is None else weights
    return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)


# -- random numbers --


def mixed(key, salt):
    bits = (key * 0xD1342543DE82EF95 + salt * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


def permutation(seed, tree, feature, repeat, n):
    """Fisher and Yates, from the last place down."""
    key = mixed(mixed(mixed(seed ^ 0x5851F42D, tree), feature), repeat)
    order = list(range(n))
    for k in range(n - 1, 0, -1):
        other = ((mixed(key, k) >> 32) * (k + 1)) >> 32
        order[k], order[other] = order[other], order[k]
    return order


# -- trees --


def path(arrays, row):
    """The nodes that a row passes, from the root to its leaf."""
    node, passed = 0, [0]
    while arrays.kind[node] != LEAF:
        value = row[arrays.feature[node]]
        if math.isnan(value):
            branch = arrays.missing_child[node]
        elif arrays.kind[node] == THRESHOLD:
            branch = 0 if value <= arrays.threshold[node] else 1
        elif value >= arrays.set_size[node]:
            branch = arrays.missing_child[node]
        else:
            word = int(arrays.words[arrays.set_start[node] + int(value) // 32])
            branch = 0 if word >> (int(value) % 32) & 1 else 1
        node = int(arrays.children[arrays.first_child[node] + branch])
        passed.append(node)
    return passed


def loss(arrays, row, target, n_classes):
    """Share of outputs that are wrong, or mean square of what they are off; target is a list."""
    value = arrays.value[path(arrays, row)[-1]].tolist()
    if not n_classes:
        return mean([(v - t) ** 2 for v, t in zip(value, target, strict=True)])
    wrong, begin = [], 0
    for size, label in zip(n_classes, target, strict=True):
        own = value[begin : begin + size]
        wrong.append(float(own.index(max(own)) != label))
        begin += size
    return mean(wrong)


# -- importances --


def rise(arrays, rows, targets, weights, feature, order, n_classes):
    """Of the mean loss, when the values of a feature are taken from the rows in another order."""
    before, after = [], []
    for i, row in enumerate(rows):
        changed = list(row)
        changed[feature] = rows[order[i]][feature]
        before.append(loss(arrays, row, targets[i], n_classes))
        after.append(loss(arrays, changed, targets[i], n_classes))
    return mean(after, weights) - mean(before, weights)


def expected_rise(arrays, rows, targets, feature, n_classes):
    """Over all permutations: each row gets each row's value equally often."""
    changes = []
    for i, row in enumerate(rows):
        for other in rows:
            changed = list(row)
            changed[feature] = other[feature]
            changes.append(loss(arrays, changed, targets[i], n_classes))
    return mean(changes) - mean(
        [loss(arrays, row, target, n_classes) for row, target in zip(rows, targets, strict=True)]
    )


def impurity_gains(arrays, rows, vectors, weights, n_features, n_outputs):
    """Li et al. 2019, (7); `vectors` are the targets, one-hot for classes."""
    gains = [[] for _ in range(n_features)]
    for row, vector in zip(rows, vectors, strict=True):
        own = [0.0] * n_features
        passed = path(arrays, row)
        for node, child in pairwise(passed):
            step = (arrays.value[child] - arrays.value[node]).tolist()
            own[arrays.feature[node]] += math.fsum(s * v for s, v in zip(step, vector, strict=True))
        for j in range(n_features):
            gains[j].append(own[j] / n_outputs)
    return [mean(of_feature, weights) for of_feature in gains]


# -- pairs of rows --


def proximities(leaves, other_leaves, seen=None):
    """`leaves[i][k]` of row i in tree k; `seen[i][k]` whether the tree has seen it."""
    shares = []
    for i, own in enumerate(leaves):
        line = []
        for j, other in enumerate(other_leaves):
            trees = [k for k in range(len(own)) if not seen or not (seen[i][k] or seen[j][k])]
            shared = sum(own[k] == other[k] for k in trees)
            line.append(shared / len(trees) if trees else math.nan)
        shares.append(line)
    return shares


# -- correlation of trees --


def raw_margins(votes, y, classes):
    """Breiman 2001, definition 4: `votes[b][i]` of tree b for row i."""
    margins = [[] for _ in votes]
    for i, label in enumerate(y):
        counts = {c: sum(own[i] == c for own in votes) for c in classes if c != label}
        strongest = max(counts, key=counts.get) if counts else None
        for own, line in zip(votes, margins, strict=True):
            line.append(float(own[i] == label) - float(own[i] == strongest))
    return margins


def covariance(a, b, weights):
    centre_a, centre_b = mean(a, weights), mean(b, weights)
    products = [(u - centre_a) * (v - centre_b) for u, v in zip(a, b, strict=True)]
    return mean(products, weights)


def correlation(lines, weights):
    """(rho, sigma^2, variance of the mean line): every pair of trees, one after the other."""
    n = len(lines)
    variance = mean([covariance(own, own, weights) for own in lines])
    pairs = [covariance(lines[a], lines[b], weights) for a in range(n) for b in range(a)]
    middle = [mean([own[i] for own in lines]) for i in range(len(lines[0]))]
    return mean(pairs) / variance, variance, covariance(middle, middle, weights)
