"""The nodes of an exact tree while it grows, and all that is needed to split them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import record_type

__all__ = [
    "FEW_ROWS",
    "NODE",
    "SPAN",
    "SPLIT",
    "STATE",
    "ExactTree",
    "LeftSums",
    "Rules",
    "Scale",
    "SearchedNode",
    "Words",
    "Workspace",
]

FEW_ROWS = 32  # of a node, which are sorted rather than counted
SPAN = 512  # nodes that are searched in one go

NODE = record_type(
    [
        ("start", np.int64),  # its rows are rows[start:end] of the tree
        ("end", np.int64),
        ("depth", np.int64),
        ("left", np.int64),  # the left child, next to which is the right one; -1: a leaf
        ("feature", np.int64),
        ("code", np.int64),  # the highest one in the node that goes left
        ("next_code", np.int64),  # the lowest one that goes right
        ("target", np.int64),  # sums of all rows
        ("weight", np.int64),
        ("packed", np.int64),  # samples | squares << bits
        ("is_open", np.int64),  # whether it may be split
        ("slot", np.int64),  # of its histogram
        ("inherits", np.int64),  # whether the histogram of its parent is in that slot
        ("gain", np.float64),  # of its split
    ]
)

STATE = record_type(
    [
        ("n_nodes", np.int64),
        ("first", np.int64),  # of the nodes that are searched next
        ("last", np.int64),  # the one after the last of these
        ("n_free", np.int64),  # slots without a histogram
    ]
)

SPLIT = record_type(
    [
        ("feature", np.int64),  # -1: there is no split
        ("code", np.int64),  # the highest one that goes left
        ("next_code", np.int64),  # -1 where the two codes beside the split are not known
        ("left_target", np.int64),  # around `SearchedNode.centre`
        ("right_target", np.int64),
        ("left_weight", np.int64),
        ("right_weight", np.int64),
        ("left_packed", np.int64),
        ("score", np.float64, (1,)),
        ("candidate", np.int64, (6,)),  # what `scores.consider` compares with
    ]
)


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


class ExactTree(NamedTuple):
    """A tree while it grows, level by level; children lie side by side.

    nodes        NODE (nodes,)
    rows, spare  int32 (n,)  by nodes
    node_of      int32 (n,)  where each row is; -1: it takes no part
    free         int64  slots without a histogram
    state        STATE (1,)
    """

    nodes: np.recarray
    rows: np.ndarray
    spare: np.ndarray
    node_of: np.ndarray
    free: np.ndarray
    state: np.recarray


class Workspace(NamedTuple):
    """What the search of a group of features needs.

    sums, weights    int64 (slots + 1, 2 cells), (slots + 1, cells or 0)  histograms; the last one
                     is for those that are not kept
    keys             int64  rows in their order
    best             SPLIT (SPAN,)  the best splits of the nodes that are searched
    """

    sums: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    best: np.recarray


class SearchedNode(NamedTuple):
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


class LeftSums(NamedTuple):
    """Sums of the rows that go left: of targets, packed samples and weights."""

    target: int
    packed: int
    weight: int
