"""SHAP values and partial dependence by their definitions: all sets, one row, one tree at a time.

Trees come as `TreeArrays`, rows as lists of numbers (categories by their number, NaN is missing).
"""

from __future__ import annotations

import math
from itertools import combinations

LEAF, THRESHOLD, SUBSET, MULTIWAY = 0, 1, 2, 3


def branch(arrays, node, value):
    """The branch that a value takes."""
    known = not math.isnan(value)
    if known and arrays.kind[node] == THRESHOLD:
        return 0 if value <= arrays.threshold[node] else 1
    if not known or value >= arrays.set_size[node]:
        return int(arrays.missing_child[node])
    place = int(arrays.set_start[node])
    if arrays.kind[node] == MULTIWAY:
        found = int(arrays.branches[place + int(value)])
        return found if found >= 0 else int(arrays.missing_child[node])
    word = int(arrays.words[place + int(value) // 32])
    return 0 if word >> (int(value) % 32) & 1 else 1


def expectation(arrays, row, known, node=0):
    """What the tree says if only the features in `known` are: branches with their shares else."""
    if arrays.kind[node] == LEAF:
        return arrays.value[node].tolist()
    children = [int(child) for child in arrays.children_of(node)]
    feature = int(arrays.feature[node])
    if feature in known:
        return expectation(arrays, row, known, children[branch(arrays, node, row[feature])])
    weights = [float(arrays.weight[child]) for child in children]
    parts = [expectation(arrays, row, known, child) for child in children]
    whole = math.fsum(weights)
    return [
        math.fsum(w * part[v] for w, part in zip(weights, parts, strict=True)) / whole
        for v in range(len(parts[0]))
    ]


def answer(arrays, row):
    return expectation(arrays, row, range(len(row)))


def mixed(arrays, row, background, known):
    """The mean answer over the background, with the features in `known` from the row."""
    rows = [
        [own if j in known else other for j, (own, other) in enumerate(zip(row, b, strict=True))]
        for b in background
    ]
    answers = [answer(arrays, own) for own in rows]
    return [math.fsum(column) / len(answers) for column in zip(*answers, strict=True)]


def shapley(game, d):
    """Shapley's values of a game: a function of sets that gives a list of numbers, [d][outputs]."""
    worth = {
        frozenset(own): game(frozenset(own))
        for size in range(d + 1)
        for own in combinations(range(d), size)
    }
    n_outputs = len(worth[frozenset()])
    values = [[0.0] * n_outputs for _ in range(d)]
    for j in range(d):
        for own, before in worth.items():
            if j in own:
                continue
            share = 1.0 / (d * math.comb(d - 1, len(own)))
            for v, after in enumerate(worth[own | {j}]):
                values[j][v] += share * (after - before[v])
    return values


def shap_values(trees, row, background=None):
    """Of a sum of trees, [d][outputs]."""
    d = len(row)
    total = None
    for arrays in trees:
        if background is None:
            own = shapley(lambda known, a=arrays: expectation(a, row, known), d)
        else:
            own = shapley(lambda known, a=arrays: mixed(a, row, background, known), d)
        total = own if total is None else _added(total, own)
    return total


def _added(one, other):
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)]


def partial_dependence(trees, rows, features, point):
    """The mean answer of a sum of trees if all rows had these values of the features."""
    changed = [list(row) for row in rows]
    for row in changed:
        for feature, value in zip(features, point, strict=True):
            row[feature] = value
    answers = [[answer(arrays, row) for row in changed] for arrays in trees]
    n_outputs = len(answers[0][0])
    return [
        math.fsum(own[v] for of_tree in answers for own in of_tree) / len(rows)
        for v in range(n_outputs)
    ]


def recursion(trees, d, features, point):
    """The same, with training rows that go down branches with their shares."""
    row = [0.0] * d
    for feature, value in zip(features, point, strict=True):
        row[feature] = value
    parts = [expectation(arrays, row, set(features)) for arrays in trees]
    return [math.fsum(column) for column in zip(*parts, strict=True)]
