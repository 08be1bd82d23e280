"""Pruning by trying every pruning, or one step at a time with everything computed anew."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product


def children_of(tree):
    """The children of each node, read from the parents."""
    children = [[] for _ in tree.parent]
    for node, above in enumerate(tree.parent.tolist()):
        if above >= 0:
            children[above].append(node)
    return children


def prunings(tree):
    """Every pruning, as the set of nodes that have become leaves; bottom up."""
    children = children_of(tree)
    found = [None] * len(children)
    for node in reversed(range(len(children))):
        if not children[node]:
            found[node] = [frozenset()]
            continue
        below = product(*(found[child] for child in children[node]))
        found[node] = [frozenset([node]), *(frozenset().union(*parts) for parts in below)]
    return found[0]


def leaves_left(tree, pruned):
    """The leaves of a pruned tree, by walking down from the root."""
    children = children_of(tree)
    leaves, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        if node in pruned or not children[node]:
            leaves.append(node)
        else:
            waiting += children[node]
    return sorted(leaves)


def inner_left(tree, pruned):
    """The nodes of a pruned tree that are still split."""
    leaves = leaves_left(tree, pruned)
    return sorted({node for leaf in leaves for node in path_of(tree, leaf)} - set(leaves))


def least(tree, cost_of_leaf, cost_of_split, price=0):
    """The least cost of all prunings, and the smallest pruning that has it."""

    def cost(pruned):
        leaves = leaves_left(tree, pruned)
        own = sum(cost_of_leaf[node] + price for node in leaves)
        return own + sum(cost_of_split[node] for node in inner_left(tree, pruned))

    best = min(prunings(tree), key=lambda p: (cost(p), len(leaves_left(tree, p))))
    return cost(best), leaves_left(tree, best)


def weakest_link_path(tree, costs):
    """(alpha, impurity, leaves) of each step, pruning one node at a time; costs are Fractions."""
    children = children_of(tree)
    pruned = set()
    steps = [(Fraction(0), sum(costs[n] for n in leaves_left(tree, pruned)),
              leaves_left(tree, pruned))]  # fmt: skip
    while len(steps[-1][2]) > 1:
        leaves = steps[-1][2]
        best = None
        for node in inner_left(tree, pruned):
            below = [leaf for leaf in leaves if is_below(tree, leaf, node)]
            rise = costs[node] - sum(costs[leaf] for leaf in below)
            alpha = rise / (len(below) - 1)
            if best is None or alpha < best[0]:
                best = alpha, node
        alpha, node = best
        assert children[node]
        pruned.add(node)
        leaves = leaves_left(tree, pruned)
        steps.append((alpha, sum(costs[leaf] for leaf in leaves), leaves))
    return steps


def is_below(tree, node, top):
    while node > top:
        node = int(tree.parent[node])
    return node == top


def greedy_reduced_error(tree, losses):
    """(removed, losses, leaves): the removal that helps most, over and over, until all hurt."""
    pruned, removed = set(), []
    history = [sum(losses[leaf] for leaf in leaves_left(tree, pruned))]
    counts = [len(leaves_left(tree, pruned))]
    while True:
        options = []
        for node in inner_left(tree, pruned):
            left = leaves_left(tree, pruned | {node})
            options.append((-sum(losses[leaf] for leaf in left), node))
        if not options or -max(options)[0] > history[-1]:
            return removed, history, counts
        loss, node = max(options)
        pruned.add(node)
        removed.append(node)
        history.append(-loss)
        counts.append(len(leaves_left(tree, pruned)))


def path_of(tree, leaf):
    """The nodes from a leaf up to the root."""
    path = []
    while leaf >= 0:
        path.append(leaf)
        leaf = int(tree.parent[leaf])
    return path


def row_by_row_losses(tree, leaves, y, weight, *, is_class):
    """Loss of each node as a leaf; `leaves` has (leaf, share) of every row."""
    losses = [0.0] * len(tree.parent)
    for landed, target, w in zip(leaves, y, weight, strict=True):
        for leaf, share in landed:
            for node in path_of(tree, leaf):
                value = tree.value[node]
                if is_class:
                    loss = float(max(range(len(value)), key=lambda c: value[c]) != target)
                else:
                    loss = (target - value[0]) ** 2
                losses[node] += w * share * loss
    return losses


def binomial_limit(errors, n, confidence):
    """The rate at which so few errors have this probability, by bisection of the binomial sum."""
    low, high = 0.0, 1.0
    if errors >= n:
        return 1.0
    for _ in range(200):
        rate = (low + high) / 2
        chance = sum(math.comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(errors + 1))
        low, high = (rate, high) if chance > confidence else (low, rate)
    return low


def krichevsky_trofimov_bits(counts):
    """Telling the classes of a leaf one after the other, each from those before."""
    seen, bits = [0] * len(counts), 0.0
    for label, count in enumerate(counts):
        for _ in range(count):
            bits -= math.log2((seen[label] + 0.5) / (sum(seen) + 0.5 * len(counts)))
            seen[label] += 1
    return bits


def merged(tree, answers, *, own):
    """Nodes that become leaves as long as any split has only leaves with one answer."""
    children = children_of(tree)
    pruned, answer = set(), list(answers)
    while True:
        leaves = set(leaves_left(tree, pruned))
        for node in inner_left(tree, pruned):
            said = {answer[child] for child in children[node]}
            if (
                set(children[node]) <= leaves
                and len(said) == 1
                and (not own or answer[node] in said)
            ):
                pruned.add(node)
                answer[node] = said.pop()
                break
        else:
            return leaves_left(tree, pruned)
