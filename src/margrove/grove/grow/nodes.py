"""The nodes of a growing tree, as arrays that compiled code fills.

The two children of a node are made together: the right one has the number after the left one.
`margrove.grove.serve.TreeArrays` is the form of a finished tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, record_type, records, words_of

__all__ = [
    "NODE",
    "Nodes",
    "begin_child",
    "begin_root",
    "new_nodes",
    "random_below",
    "with_room",
]

NODE = record_type(
    [
        ("start", np.int64),  # its rows are a run of the builder's list of rows
        ("end", np.int64),
        ("depth", np.int64),
        ("parent", np.int64),  # -1: the root
        ("left", np.int64),  # the left child; -1: a leaf
        ("feature", np.int64),  # that splits the node; -1: none
        ("code", np.int64),  # the largest code that goes left
        ("next_code", np.int64),  # the smallest code that does not
        ("subset", np.int64),  # where the set of codes that go left begins; -1: no set
        ("missing_left", np.int64),  # whether missing values go left; -1: there were none
        ("balanced", np.int64),  # whether the split halves the rows, whatever it gains
        ("weight", np.int64),  # of the rows, in units of the targets
        ("samples", np.int64),  # that the rows stand for
        ("key", np.int64),  # from which the random numbers of the node derive
        ("decrease", np.float64),  # of the score, by the split
        ("low", np.float64),  # bounds of the value, from monotone constraints of ancestors
        ("high", np.float64),
        ("error_left", np.float64),  # of a leaf: the loss that is left, in units of weight
        ("random_threshold", np.float64),  # a threshold that was drawn at random; NaN: none
    ]
)


class Nodes(NamedTuple):
    """Nodes 0 .. capacity - 1; a row of each array belongs to a node, except in `subsets`.

    record     NODE (capacity,)  `nodes.record.feature[i]` is the feature of node i
    stats      int64 (capacity, n_stats)  sums of the statistics
    centre     float64, exponent int64, value float64 (capacity, n_outputs)  of a regression: zero
               point and scale of the whole numbers, and the mean or median
    subsets    uint32 (n_words,)  sets of codes, a bit for each code
    """

    record: np.recarray
    stats: np.ndarray
    centre: np.ndarray
    exponent: np.ndarray
    value: np.ndarray
    subsets: np.ndarray


def new_nodes(capacity: int, n_stats: int, n_numbers: int, n_words: int) -> Nodes:
    """Arrays for so many nodes. n_numbers: outputs of a regression, 0 for classes."""
    return Nodes(
        records(capacity, NODE),
        np.zeros((capacity, n_stats), np.int64),
        np.zeros((capacity, n_numbers)),
        np.zeros((capacity, n_numbers), np.int64),
        np.zeros((capacity, n_numbers)),
        np.zeros(n_words, np.uint32),
    )


def with_room(nodes: Nodes, used: int, capacity: int, n_words: int) -> Nodes:
    """The same nodes in larger arrays."""
    grown = new_nodes(capacity, nodes.stats.shape[1], nodes.centre.shape[1], n_words)
    words_of(grown.record)[:used] = words_of(nodes.record)[:used]
    for old, new in zip(nodes[1:-1], grown[1:-1], strict=True):
        new[:used] = old[:used]
    grown.subsets[: len(nodes.subsets)] = nodes.subsets
    return grown


@kernel(bare=True)
def begin_root(nodes, n_rows, key):
    """Node 0 becomes the root over all rows."""
    record = nodes.record
    record.start[0], record.end[0] = 0, n_rows
    record.parent[0], record.depth[0], record.key[0] = -1, 0, key
    record.left[0], record.feature[0], record.subset[0] = -1, -1, -1
    record.low[0], record.high[0] = -np.inf, np.inf


@kernel(bare=True, inlined=True)
def begin_child(nodes, child, parent, start, end, branch):
    """A new node over rows start .. end inherits from its parent. branch: 0 left, 1 right."""
    record = nodes.record
    record.start[child] = start
    record.end[child] = end
    record.depth[child] = record.depth[parent] + 1
    record.parent[child] = parent
    record.left[child] = -1
    record.feature[child] = -1
    record.subset[child] = -1
    record.balanced[child] = 0
    record.key[child] = record.key[parent] * 6364136223846793005 + 2 * branch + 1442695040888963407
    record.low[child] = record.low[parent]
    record.high[child] = record.high[parent]
    for o in range(nodes.centre.shape[1]):
        nodes.centre[child, o] = nodes.centre[parent, o]
        nodes.exponent[child, o] = nodes.exponent[parent, o]


@kernel(inner=True)
def random_below(state, bound):
    """The next state (uint64) and a number in 0 .. bound - 1: splitmix64."""
    state += np.uint64(0x9E3779B97F4A7C15)
    bits = state
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return state, np.int64((bits >> np.uint64(11)) % np.uint64(bound))
