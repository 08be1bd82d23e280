"""Compiled loops of partial dependence: rows through trees in which some features are set by hand.

Branches about the features that are set are followed by all rows, for the time being: which of them
counts is asked of the grid, once all rows are through. So rows and points of the grid meet at the
leaves only, and a tree costs rows plus points, not rows times points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.grove.serve import LEAF, THRESHOLD, branch_of

__all__ = [
    "add_answers",
    "add_arrivals",
    "add_dependence",
    "branches_of_values",
    "expected_arrivals",
]


class Waiting(NamedTuple):
    """Nodes that are still to be visited, and the part of a row that comes to each.

    nodes   int64 (N,)
    parts   float64 (N,)
    """

    nodes: np.ndarray
    parts: np.ndarray


@kernel
def add_arrivals(X, is_set, questions, share, arriving):
    """Count the rows that come to each leaf if features that are set have any value."""
    kind, feature, children = questions.kind, questions.feature, questions.children
    first_child, n_children = questions.first_child, questions.n_children
    stack, parts = np.empty(len(kind), np.int64), np.empty(len(kind))
    for i in range(X.shape[0]):
        stack[0], parts[0] = 0, 1.0
        size = 1
        while size:
            size -= 1
            node, part = stack[size], parts[size]
            if kind[node] == LEAF:
                arriving[node] += part
                continue
            first = first_child[node]
            branch = np.int64(-1)
            if not is_set[feature[node]]:
                branch = _branch(X[i], node, questions)
            if branch >= 0:
                stack[size], parts[size] = children[first + branch], part
                size += 1
                continue
            for k in range(n_children[node]):
                child = children[first + k]
                stack[size] = child
                parts[size] = part if is_set[feature[node]] else part * share[child]
                size += 1


@kernel
def expected_arrivals(is_set, feature, parent, share):
    """The same for the training rows, of which only the shares of the branches are known."""
    arriving = np.ones(len(parent))
    for node in range(1, len(parent)):
        own = 1.0 if is_set[feature[parent[node]]] else share[node]
        arriving[node] = arriving[parent[node]] * own
    return arriving


@kernel
def add_dependence(points, columns, is_set, questions, share, parent, arriving, value, found):
    """Add what the rows that arrive would say at each point (one row of `points`)."""
    kind, feature = questions.kind, questions.feature
    n_nodes, n_outputs = value.shape
    asks = np.zeros(n_nodes, np.bool_)  # about a feature that is set, here or below
    said = np.zeros((n_nodes, n_outputs))
    for node in range(n_nodes - 1, -1, -1):
        if kind[node] == LEAF:
            for v in range(n_outputs):
                said[node, v] = arriving[node] * value[node, v]
        elif is_set[feature[node]]:
            asks[node] = True
        if node > 0:
            asks[parent[node]] |= asks[node]
            for v in range(n_outputs):
                said[parent[node], v] += said[node, v]
    x = np.zeros(len(is_set))
    waiting = Waiting(np.empty(n_nodes, np.int64), np.empty(n_nodes))
    stack, parts = waiting
    for g in range(len(points)):
        for k in range(len(columns)):
            x[columns[k]] = points[g, k]
        stack[0], parts[0] = 0, 1.0
        size = 1
        while size:
            size -= 1
            node, part = stack[size], parts[size]
            if not asks[node]:
                for v in range(n_outputs):
                    found[g, v] += part * said[node, v]
                continue
            is_asked = is_set[feature[node]]
            size = _push(x, is_asked, node, part, questions, share, waiting, size)


@kernel(inner=True)
def _branch(x, node, questions):
    """The branch that a row takes; -1 for all of them."""
    found = np.int64(-1)
    if questions.kind[node] == THRESHOLD:
        own = x[questions.feature[node]]
        if own == own:  # noqa: PLR0124
            found = np.int64(own > questions.threshold[node])
    else:
        found = np.int64(branch_of(x, node, questions))
    return found if found >= 0 else np.int64(questions.missing_child[node])


@kernel(inner=True)
def _push(x, is_asked, node, part, questions, share, waiting, size):
    """The branch of x on the stack, all of them with their shares where it is missing; without
    asking, all of them as they are. How high the stack is then."""
    branch = np.int64(-1)
    if is_asked:
        branch = _branch(x, node, questions)
    first, children = questions.first_child[node], questions.children
    if branch >= 0:
        waiting.nodes[size], waiting.parts[size] = children[first + branch], part
        return size + 1
    for k in range(questions.n_children[node]):
        child = children[first + k]
        waiting.nodes[size + k] = child
        waiting.parts[size + k] = part * share[child] if is_asked else part
    return size + questions.n_children[node]


@kernel
def branches_of_values(values, column, questions):
    """The branch of each value at all nodes that ask for a column, (values, nodes)."""
    nodes = np.flatnonzero(questions.feature == column)
    found = np.empty((len(values), len(nodes)), np.int64)
    x = np.zeros(column + 1)
    for g in range(len(values)):
        x[column] = values[g]
        for k in range(len(nodes)):
            found[g, k] = branch_of(x, nodes[k], questions)
    return found


@kernel
def add_answers(X, points, columns, cells, questions, share, value, found):
    """Add what a tree says of each row at each point, (n, points, outputs).

    The tree is asked for some points only: `cells` tells which of `points` any other is like.
    """
    kind, n_outputs = questions.kind, value.shape[1]
    x, answers = np.empty(X.shape[1]), np.empty((len(points), n_outputs))
    waiting = Waiting(np.empty(len(kind), np.int64), np.empty(len(kind)))
    stack, parts = waiting
    for i in range(X.shape[0]):
        x[:] = X[i]
        for c in range(len(points)):
            for k in range(len(columns)):
                x[columns[k]] = points[c, k]
            answers[c] = 0.0
            stack[0], parts[0] = 0, 1.0
            size = 1
            while size:
                size -= 1
                node, part = stack[size], parts[size]
                if kind[node] == LEAF:
                    for v in range(n_outputs):
                        answers[c, v] += part * value[node, v]
                    continue
                size = _push(x, True, node, part, questions, share, waiting, size)
        for g in range(len(cells)):
            for v in range(n_outputs):
                found[i, g, v] += answers[cells[g], v]
