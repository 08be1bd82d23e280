"""The arrays of an exact tree while it grows."""

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
    "TILE_ROWS",
    "ExactTree",
    "LeftSums",
    "Rules",
    "Scale",
    "SearchedNode",
    "Words",
    "Workspace",
]

FEW_ROWS = 32  # nodes with at most this number of rows are sorted instead of counted
TILE_ROWS = 1 << 14
SPAN = 512  # number of nodes that are searched together

NODE = record_type(
    [
        ("start", np.int64),  # its rows are rows[start:end] of the tree
        ("end", np.int64),
        ("depth", np.int64),
        ("left", np.int64),  # the left child, followed by the right one; -1 for a leaf
        ("feature", np.int64),
        ("code", np.int64),  # the highest code in the node that goes left
        ("next_code", np.int64),  # the lowest code that goes right
        ("target", np.int64),  # sums over its rows
        ("weight", np.int64),
        ("packed", np.int64),  # samples | squares << bits
        ("is_open", np.int64),  # whether it may be split
        ("slot", np.int64),  # slot of its histogram
        ("inherits", np.int64),  # whether the histogram of its parent is in that slot
        ("gain", np.float64),  # gain of its split
    ]
)

STATE = record_type(
    [
        ("n_nodes", np.int64),
        ("first", np.int64),  # the first node that is searched next
        ("last", np.int64),  # the node after the last of these
        ("n_free", np.int64),  # number of free slots
    ]
)

SPLIT = record_type(
    [
        ("feature", np.int64),  # -1 if there is no split
        ("code", np.int64),  # the highest code that goes left
        ("next_code", np.int64),  # -1 if the two codes next to the split are not known
        ("left_target", np.int64),  # around `SearchedNode.centre`
        ("right_target", np.int64),
        ("left_weight", np.int64),
        ("right_weight", np.int64),
        ("left_packed", np.int64),
        ("score", np.float64, (1,)),
        ("candidate", np.int64, (6,)),  # the best split in the format of `consider`
    ]
)


class Words(NamedTuple):
    """The rows as integers.

    pairs     int64 (2 n,)  for each row the sum of its targets, and samples | squares << bits,
              where squares are rounded up
    weight    int64 (n,), or empty if weights are numbers of samples
    """

    pairs: np.ndarray
    weight: np.ndarray


class Rules(NamedTuple):
    """The growth rules.

    max_depth, min_split, min_leaf, min_weight    limits as integers
    bits, mask    bits of the number of samples in a word
    square        the value of 1 in the integer squares, in units of squared integer sums
    nothing       a node with a smaller variance is not split
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
    """Factors on the targets.

    first, second   the scale in two steps, because a single factor may overflow
    share           1 / the largest scaled target
    square          factor on squared shares, which makes them integers
    """

    first: float
    second: float
    share: float
    square: float


class ExactTree(NamedTuple):
    """A tree while it grows, level by level; siblings have consecutive numbers.

    nodes        NODE (nodes,)
    rows, spare  int32 (n,)  rows sorted by nodes, and a buffer
    node_of      int32 (n,)  the node of each row; -1 if the tree is not grown on it
    free         int64  free slots
    state        STATE (1,)
    sums         int64 (tiles, 8)  sums of tiles of rows
    """

    nodes: np.recarray
    rows: np.ndarray
    spare: np.ndarray
    node_of: np.ndarray
    free: np.ndarray
    state: np.recarray
    sums: np.ndarray


class Workspace(NamedTuple):
    """Buffers for the search of a group of features.

    sums, weights    int64 (slots + 1, 2 cells), (slots + 1, cells or 0)  histograms; the last slot
                     is for histograms that are not kept
    keys             int64  buffer for sorted rows
    best             SPLIT (SPAN,)  the best splits of the nodes that are searched
    """

    sums: np.ndarray
    weights: np.ndarray
    keys: np.ndarray
    best: np.recarray


class SearchedNode(NamedTuple):
    """A node that is searched.

    Sums are computed around `centre`, an integer near the mean, so that gains depend on the
    differences between the children only. The sum of the node around it is `rest`, and `drift` for
    a unit of weight. `slack` is the error bound of a sum around the exact mean in floating point.
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
