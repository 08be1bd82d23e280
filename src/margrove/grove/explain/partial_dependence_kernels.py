"""Compiled loops of partial dependence: rows walk through trees in which some features are set.

At splits by features that are set, every row takes all branches first. Which branch counts depends
on the point of the grid only, and is decided after all rows have walked. So rows and points meet at
the leaves only, and a tree costs rows plus points, not rows times points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, region
from margrove.grove.serve import LEAF, THRESHOLD, branch_of

__all__ = [
    "ROWS_OF_A_TILE",
    "add_answers",
    "add_arrivals",
    "add_dependence",
    "branches_of_values",
    "expected_arrivals",
]

ROWS_OF_A_TILE = 64


class NodeStack(NamedTuple):
    """Nodes that are still to be visited, and the share of a row that arrives at each.

    nodes    int64 (N,)
    shares   float64 (N,)
    """

    nodes: np.ndarray
    shares: np.ndarray


@kernel
def add_arrivals(X, is_set, questions, share, arriving):
    """arriving[leaf] += the rows that reach a leaf for some values of the features that are set."""
    kind, feature, children = questions.kind, questions.feature, questions.children
    first_child, n_children = questions.first_child, questions.n_children
    stack, shares = np.empty(len(kind), np.int64), np.empty(len(kind))
    for i in range(X.shape[0]):
        stack[0], shares[0] = 0, 1.0
        size = 1
        while size:
            size -= 1
            node, of_row = stack[size], shares[size]
            if kind[node] == LEAF:
                arriving[node] += of_row
                continue
            first = first_child[node]
            branch = np.int64(-1)
            if not is_set[feature[node]]:
                branch = _branch(X[i], node, questions)
            if branch >= 0:
                stack[size], shares[size] = children[first + branch], of_row
                size += 1
                continue
            for k in range(n_children[node]):
                child = children[first + k]
                stack[size] = child
                shares[size] = of_row if is_set[feature[node]] else of_row * share[child]
                size += 1


@kernel
def expected_arrivals(is_set, feature, parent, share):
    """float64 (N,): the share of the training rows that arrive, from the shares of the branches."""
    arriving = np.ones(len(parent))
    for node in range(1, len(parent)):
        factor = 1.0 if is_set[feature[parent[node]]] else share[node]
        arriving[node] = arriving[parent[node]] * factor
    return arriving


@region
def add_dependence(
    tile, size, points, columns, is_set, questions, share, parent, arriving, value, found
):
    """found[g] += the mean prediction at point g, for `size` of the points.

    points is (points, features that are set).
    """
    kind, feature = questions.kind, questions.feature
    n_nodes, n_outputs = value.shape
    depends = np.zeros(n_nodes, np.bool_)  # whether the node or one below splits by a set feature
    sums = np.zeros((n_nodes, n_outputs))  # of the leaves below
    for node in range(n_nodes - 1, -1, -1):
        if kind[node] == LEAF:
            for v in range(n_outputs):
                sums[node, v] = arriving[node] * value[node, v]
        elif is_set[feature[node]]:
            depends[node] = True
        if node > 0:
            depends[parent[node]] |= depends[node]
            for v in range(n_outputs):
                sums[parent[node], v] += sums[node, v]
    x = np.zeros(len(is_set))
    stack = NodeStack(np.empty(n_nodes, np.int64), np.empty(n_nodes))
    nodes, shares = stack
    for g in range(tile * size, min((tile + 1) * size, len(points))):
        for k in range(len(columns)):
            x[columns[k]] = points[g, k]
        nodes[0], shares[0] = 0, 1.0
        size = 1
        while size:
            size -= 1
            node, of_row = nodes[size], shares[size]
            if not depends[node]:
                for v in range(n_outputs):
                    found[g, v] += of_row * sums[node, v]
                continue
            is_decided = is_set[feature[node]]
            size = _push(x, is_decided, node, of_row, questions, share, stack, size)


@kernel(inner=True)
def _branch(x, node, questions):
    """The branch that row x takes; -1 for all of them."""
    found = np.int64(-1)
    if questions.kind[node] == THRESHOLD:
        cell = x[questions.feature[node]]
        if cell == cell:  # noqa: PLR0124
            found = np.int64(cell > questions.threshold[node])
    else:
        found = np.int64(branch_of(x, node, questions))
    return found if found >= 0 else np.int64(questions.missing_child[node])


@kernel(inner=True)
def _push(x, is_decided, node, of_row, questions, share, stack, size):
    """Push the child that x goes to, or all children; returns the new size of the stack.

    If x is missing, children get their shares of the row. If is_decided is False, the node splits
    by a feature of the rows, which have walked already: all children get the whole row.
    """
    branch = np.int64(-1)
    if is_decided:
        branch = _branch(x, node, questions)
    first, children = questions.first_child[node], questions.children
    if branch >= 0:
        stack.nodes[size], stack.shares[size] = children[first + branch], of_row
        return size + 1
    for k in range(questions.n_children[node]):
        child = children[first + k]
        stack.nodes[size + k] = child
        stack.shares[size + k] = of_row * share[child] if is_decided else of_row
    return size + questions.n_children[node]


@kernel
def branches_of_values(values, column, questions):
    """int64 (values, nodes): the branch of each value at all nodes that split by a column."""
    nodes = np.flatnonzero(questions.feature == column)
    found = np.empty((len(values), len(nodes)), np.int64)
    x = np.zeros(column + 1)
    for g in range(len(values)):
        x[column] = values[g]
        for k in range(len(nodes)):
            found[g, k] = branch_of(x, nodes[k], questions)
    return found


@region
def add_answers(tile, X, points, columns, cells, questions, share, value, first, found):
    """Add the prediction of a tree for some rows at each point to found, (n, points, outputs).

    It is added from output `first` on. `points` are those that the tree distinguishes; cells[g] is
    the one that point g of the grid equals.
    """
    kind, n_outputs = questions.kind, value.shape[1]
    x, answers = np.empty(X.shape[1]), np.empty((len(points), n_outputs))
    stack = NodeStack(np.empty(len(kind), np.int64), np.empty(len(kind)))
    nodes, shares = stack
    for i in range(tile * ROWS_OF_A_TILE, min((tile + 1) * ROWS_OF_A_TILE, len(X))):
        x[:] = X[i]
        for c in range(len(points)):
            for k in range(len(columns)):
                x[columns[k]] = points[c, k]
            answers[c] = 0.0
            nodes[0], shares[0] = 0, 1.0
            size = 1
            while size:
                size -= 1
                node, of_row = nodes[size], shares[size]
                if kind[node] == LEAF:
                    for v in range(n_outputs):
                        answers[c, v] += of_row * value[node, v]
                    continue
                size = _push(x, True, node, of_row, questions, share, stack, size)
        for g in range(len(cells)):
            for v in range(n_outputs):
                found[i, g, first + v] += answers[cells[g], v]
