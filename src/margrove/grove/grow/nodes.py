"""The nodes of a growing tree as rows of three arrays, which compiled code fills.

Children are made together: the right one stands after the left one. What a finished tree looks like
is another matter, see `tree_arrays`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel

__all__ = ["Nodes", "new_nodes", "with_room"]

# columns of `whole`
(
    START, END, DEPTH, PARENT, LEFT, FEATURE, CODE, NEXT_CODE, MISSING_LEFT, WEIGHT, SAMPLES,
    SUBSET, KEY, BALANCED, N_WHOLE,
) = range(15)  # fmt: skip
# columns of `real`
DECREASE, LOW, HIGH, ERROR_LEFT, DRAWN, N_REAL = range(6)


class Nodes(NamedTuple):
    """whole int64, real float64: see the names of the columns. stats int64: sums of the statistics.
    centre, exponent, value: of each output of a regression. subsets uint32: sets of codes, as bits.

    START, END        entries of the node
    LEFT              left child, -1 for a leaf
    MISSING_LEFT      whether missing values go left; -1 where there were none
    FEATURE           -1 for none; CODE: the largest code that goes left, NEXT_CODE: the smallest
                      that does not; SUBSET: where the set of codes that go left begins, -1 for none
    KEY               what random numbers of the node derive from
    DECREASE          of the score, by the split
    LOW, HIGH         bounds of the value, from monotone constraints of ancestors
    ERROR_LEFT        of a leaf: what is left of the loss, in units of weight
    DRAWN             a threshold that was drawn at random, else NaN
    """

    whole: np.ndarray
    real: np.ndarray
    stats: np.ndarray
    centre: np.ndarray
    exponent: np.ndarray
    value: np.ndarray
    subsets: np.ndarray


def new_nodes(capacity: int, n_stats: int, n_numbers: int, n_words: int) -> Nodes:
    return Nodes(
        np.zeros((capacity, N_WHOLE), np.int64),
        np.zeros((capacity, N_REAL)),
        np.zeros((capacity, n_stats), np.int64),
        np.zeros((capacity, n_numbers)),
        np.zeros((capacity, n_numbers), np.int64),
        np.zeros((capacity, n_numbers)),
        np.zeros(n_words, np.uint32),
    )


def with_room(nodes: Nodes, used: int, capacity: int, n_words: int) -> Nodes:
    """The same nodes in larger arrays."""
    grown = new_nodes(capacity, nodes.stats.shape[1], nodes.centre.shape[1], n_words)
    for old, new in zip(nodes[:-1], grown[:-1], strict=True):
        new[:used] = old[:used]
    grown.subsets[: len(nodes.subsets)] = nodes.subsets
    return grown


@kernel(bare=True, inlined=True)
def begin_child(nodes, child, parent, start, end, branch):
    """A child takes over what it inherits."""
    whole, real = nodes.whole, nodes.real
    whole[child, START] = start
    whole[child, END] = end
    whole[child, DEPTH] = whole[parent, DEPTH] + 1
    whole[child, PARENT] = parent
    whole[child, LEFT] = -1
    whole[child, FEATURE] = -1
    whole[child, SUBSET] = -1
    whole[child, BALANCED] = 0
    whole[child, KEY] = whole[parent, KEY] * 6364136223846793005 + 2 * branch + 1442695040888963407
    real[child, LOW] = real[parent, LOW]
    real[child, HIGH] = real[parent, HIGH]
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
