"""Grown trees as packed trees for prediction: thresholds and categories instead of codes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.gradient.hist.binning import GradientBins, GradientTable
from margrove.ensemble.gradient.hist.nodes import BoostedTree
from margrove.grove.serve import FEATURE_AT, MISSING_AT, SET_AT, PackedTree

__all__ = ["GrownTrees", "Meanings", "meanings_of", "most_words", "new_grown_trees", "pack_tree",
           "packed", "packed_trees"]  # fmt: skip

_NO_VALUES = np.empty((0, 1))
_LARGEST_GAIN = 1e300


class Meanings(NamedTuple):
    """The values of the codes of all features.

    features         int64 (d,)  the feature at each place
    first            int64 (d + 1,)  where the codes of a feature begin in lows and highs
    lows, highs      float64
    category_first   int64 (d + 1,)  where its categories begin in category_codes
    category_codes   int64
    """

    features: np.ndarray
    first: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    category_first: np.ndarray
    category_codes: np.ndarray


def meanings_of(bins: GradientBins, table: GradientTable) -> Meanings:
    none = np.empty(0, np.int64)
    categories = [none if codes is None else codes for codes in bins.codes]
    return Meanings(
        table.features,
        np.concatenate([[0], np.cumsum(bins.n_codes)]).astype(np.int64),
        np.concatenate([*bins.lows, np.empty(0)]),
        np.concatenate([*bins.highs, np.empty(0)]),
        np.cumsum([0] + [len(codes) for codes in categories]).astype(np.int64),
        np.concatenate([*categories, none]),
    )


def packed(tree: BoostedTree, meanings: Meanings) -> PackedTree:
    """The packed tree; gains become its decreases, and numbers of samples its weights."""
    n = tree.n_nodes
    nodes = np.empty(2 * n, np.int64)
    samples, gains = np.empty(n, np.int64), np.empty(n)
    words = np.zeros(_n_words(tree, meanings), np.uint32)
    _write_nodes(tree, meanings, nodes, samples, gains, words)
    return PackedTree(nodes, samples, _NO_VALUES, words, impurity=np.zeros(n), decrease=gains)


class GrownTrees(NamedTuple):
    """The arrays of several packed trees, one after the other.

    ends     int64 (trees + 1, 2)  where the nodes and the words of each tree begin and end
    nodes    int64 (2 nodes,), samples int64 (nodes,), gains float64 (nodes,), words uint32
    """

    ends: np.ndarray
    nodes: np.ndarray
    samples: np.ndarray
    gains: np.ndarray
    words: np.ndarray


def most_words(max_nodes: int, meanings: Meanings) -> int:
    """How many words the sets of a tree have at most."""
    categories = int(np.diff(meanings.category_first).max(initial=0))
    return (categories // 32 + 1) * (max_nodes // 2) if categories else 0


def new_grown_trees(n_trees: int, max_nodes: int, meanings: Meanings) -> GrownTrees:
    """Memory for trees of at most so many nodes."""
    return GrownTrees(
        np.zeros((n_trees + 1, 2), np.int64),
        np.empty(2 * n_trees * max_nodes, np.int64),
        np.empty(n_trees * max_nodes, np.int64),
        np.empty(n_trees * max_nodes),
        np.zeros(n_trees * most_words(max_nodes, meanings), np.uint32),
    )


def packed_trees(grown: GrownTrees, n_trees: int) -> list[PackedTree]:
    """The first trees, which get memory of their own size."""
    n_nodes, n_words = grown.ends[n_trees].tolist()
    nodes, samples = grown.nodes[: 2 * n_nodes].copy(), grown.samples[:n_nodes].copy()
    gains, words = grown.gains[:n_nodes].copy(), grown.words[:n_words].copy()
    impurity, trees = np.zeros(n_nodes), []
    first, first_word = 0, 0
    for last, last_word in grown.ends[1 : n_trees + 1].tolist():
        trees.append(
            PackedTree(
                nodes[2 * first : 2 * last],
                samples[first:last],
                _NO_VALUES,
                words[first_word:last_word],
                impurity=impurity[first:last],
                decrease=gains[first:last],
            )
        )
        first, first_word = last, last_word
    return trees


@kernel(inner=True)
def pack_tree(tree, meanings, grown, number):
    """Pack a tree as the one of this number."""
    first, first_word = grown.ends[number, 0], grown.ends[number, 1]
    last = first + tree.state[0].n_nodes
    last_word = first_word + _n_words(tree, meanings)
    grown.ends[number + 1, 0], grown.ends[number + 1, 1] = last, last_word
    _write_nodes(
        tree, meanings, grown.nodes[2 * first : 2 * last], grown.samples[first:last],
        grown.gains[first:last], grown.words[first_word:last_word],
    )  # fmt: skip


@kernel(bare=True)
def _n_words(tree, meanings):
    total = 0
    for node in range(tree.state[0].n_nodes):
        record = tree.nodes[node]
        if record.left >= 0 and record.is_set == 1:
            feature = meanings.features[record.place]
            first = meanings.category_first
            total += (first[feature + 1] - first[feature]) // 32 + 1
    return total


@kernel(bare=True)
def _write_nodes(tree, meanings, nodes, samples, gains, words):
    """Write two words for each node, see `grove.serve.packed_trees`."""
    numbers = nodes.view(np.float64)
    place = 0
    for node in range(tree.state[0].n_nodes):
        record = tree.nodes[node]
        samples[node] = record.count
        gains[node] = 0.0
        if record.left < 0:
            numbers[2 * node] = record.value
            nodes[2 * node + 1] = node
            continue
        gains[node] = min(record.gain * tree.units[2], _LARGEST_GAIN)
        feature = meanings.features[record.place]
        link = record.left | (feature << FEATURE_AT) | ((record.missing_left & 1) << MISSING_AT)
        if record.is_set == 1:
            numbers[2 * node] = float(place)
            link |= np.int64(1) << SET_AT
            place += _write_set(record, meanings, feature, words[place:])
        else:
            numbers[2 * node] = _threshold(meanings, feature, record.code)
        nodes[2 * node + 1] = link


@kernel(inner=True)
def _write_set(node, meanings, feature, words):
    """Write the bits of categories that go left; those without rows go with missing values."""
    first, last = meanings.category_first[feature], meanings.category_first[feature + 1]
    for category in range(last - first):
        code = meanings.category_codes[first + category]
        if code < 0:
            is_left = node.missing_left == 1
        else:
            is_left = (node.codes_left[code // 32] >> np.uint32(code % 32)) & np.uint32(1) == 1
        if is_left:
            words[category // 32] |= np.uint32(1) << np.uint32(category % 32)
    return (last - first) // 32 + 1


@kernel(inner=True)
def _threshold(meanings, feature, code):
    """The midpoint to the next code; infinity if only missing values go right."""
    at = meanings.first[feature] + code
    if at + 1 >= meanings.first[feature + 1]:
        return np.inf
    below, above = meanings.highs[at], meanings.lows[at + 1]
    middle = 0.5 * below + 0.5 * above
    return middle if below <= middle < above else below
