"""Scores of boosted trees by definition: one row, one tree, one node at a time."""

from __future__ import annotations

import math


def node_of(tree, number):
    """The parts of a node of a `PackedTree`."""
    first, link = tree.nodes[2 * number : 2 * number + 2]
    return {
        "number": float(first.view("float64")),
        "left": int(link) % 2**32,
        "feature": int(link) // 2**32 % 2**28,
        "has_set": int(link) // 2**60 % 2 == 1,
        "missing_left": int(link) // 2**61 % 2 == 1,
    }


def goes_left(tree, node, value, n_categories):
    if math.isnan(value):
        return node["missing_left"]
    if not node["has_set"]:
        return value <= node["number"]
    if value >= n_categories[node["feature"]]:
        return node["missing_left"]
    word = int(tree.words[int(node["number"]) + int(value) // 32])
    return word // 2 ** (int(value) % 32) % 2 == 1


def leaf_of(tree, row, n_categories):
    number = 0
    while True:
        node = node_of(tree, number)
        if node["left"] == number:
            return number
        left = goes_left(tree, node, float(row[node["feature"]]), n_categories)
        number = node["left"] + (0 if left else 1)


def leaves(rounds, rows, n_categories):
    """[row][tree]"""
    trees = [tree for own in rounds for tree in own]
    return [[leaf_of(tree, row, n_categories) for tree in trees] for row in rows]


def scores(rounds, rows, n_categories, start):
    """[score][row], with the trees added one after the other."""
    found = [[float(own) for _ in rows] for own in start]
    for trees in rounds:
        for k, tree in enumerate(trees):
            for i, row in enumerate(rows):
                found[k][i] += node_of(tree, leaf_of(tree, row, n_categories))["number"]
    return found
