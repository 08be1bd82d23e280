"""The nodes of an exact tree on its way, and all that is needed to split them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Asked", "Nodes", "Room", "Rules", "Scale", "Words"]

FEW_ROWS = 32  # of a node, which are sorted rather than counted
SPAN = 512  # nodes that are searched in one go

# columns of `Nodes.whole`
(START, END, DEPTH, LEFT, FEATURE, CODE, NEXT_CODE, SUM, WEIGHT, PACKED, IS_OPEN, SLOT, INHERITS,
 N_COLUMNS) = range(14)  # fmt: skip
# places in `Nodes.state`
N_NODES, FIRST, LAST, N_FREE = range(4)
# places in `Room.best` after those of `scores.consider`
PACKED_LEFT, BESIDE = 6, 7


class Words(NamedTuple):
    """The rows in whole numbers.

    pairs     int64 (2 n,)  of each row the sum of its targets, and samples | squares << bits, where
              the squares are rounded up
    weight    int64 (n,), or empty: the samples are the weights
    """

    pairs: np.ndarray
    weight: np.ndarray


class Rules(NamedTuple):
    """When and how nodes are split.

    max_depth, min_split, min_leaf, min_weight    in whole numbers
    bits, mask    of samples in a word
    square        what a whole square is worth in squares of whole sums
    nothing       variance up to which a node is not split
    """

    max_depth: int
    min_split: int
    min_leaf: int
    min_weight: int
    bits: int
    mask: int
    square: float
    nothing: float


class Scale(NamedTuple):
    """What targets are multiplied by, in two steps, as one may be beyond floating point; what makes
    one of the largest, and the square of that a whole number."""

    first: float
    second: float
    share: float
    square: float


class Nodes(NamedTuple):
    """The nodes of a tree, level by level; children lie side by side.

    whole        int64 (nodes, 13)  see the names of the columns
    gain         float64 (nodes,)
    rows, spare  int32 (n,)  by nodes
    node_of      int32 (n,)  where each row is; -1: it takes no part
    free         int64  slots without a histogram
    state        int64 (4,)  nodes; the first of those to be searched next, and the one after the
                 last; how many slots are free
    """

    whole: np.ndarray
    gain: np.ndarray
    rows: np.ndarray
    spare: np.ndarray
    node_of: np.ndarray
    free: np.ndarray
    state: np.ndarray


class Room(NamedTuple):
    """What the search of a group of features needs.

    sums, weights    int64 (slots + 1, 2 cells), (slots + 1, cells or 0)  histograms; the last one
                     is for those that are not kept
    keys             int64  rows in their order
    best, best_score    int64 (nodes, 8), float64 (nodes,)  see `scores.consider`; then the packed
                     samples of the left, and the next code, -1 where the two codes beside the
                     split are not known
    """

    sums: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    best: np.ndarray
    best_score: np.ndarray


class Asked(NamedTuple):
    """A node that is searched.

    Sums are taken around `centre`, which is nearly its mean: so the gains tell the children apart
    and not the node from zero. What is left is `rest` in all, and `drift` a unit of weight; `slack`
    is how wrong a sum around the very mean may be in floating point.
    """

    node: int
    packed: int
    weight: int
    centre: int
    rest: int
    drift: float
    slack: float
