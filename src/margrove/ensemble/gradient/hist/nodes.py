"""The arrays of a tree of histogram boosting while it grows.

Nodes, splits and counters are structured arrays: `nodes.gain[i]` is the gain of node i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import first_records, kernel, record_type, records
from margrove.ensemble.gradient.hist.binning import GradientTable

__all__ = [
    "ADDED",
    "BEST_FIRST",
    "COST_OF_FEATURE",
    "GROWING",
    "GROWN",
    "LARGEST_VALUE",
    "LEAST_CHUNK",
    "LEVEL_BY_LEVEL",
    "NEW",
    "NODE",
    "SMALL_FIRST",
    "SPLIT",
    "STATE",
    "TOO_UNEVEN",
    "BoostedTree",
    "GrowthRules",
    "Source",
    "Workspace",
    "new_tree",
    "new_workspace",
    "share_of",
    "tiles_of_rows",
]

LARGEST_VALUE = 1e290  # limit of a leaf value, so that sums are finite

# phases of a tree
NEW, GROWING, GROWN, ADDED, TOO_UNEVEN = range(5)
# orders in which leaves are split
BEST_FIRST, LEVEL_BY_LEVEL, SMALL_FIRST = range(3)
_WORDS_OF_A_SET = 8  # of 32 bits, one for each code
_CACHE_LINE = 16  # words: two cache lines, as processors fetch them in pairs

LEAST_CHUNK = 2048  # rows that a worker takes at a time, at least
_ROWS_OF_A_TILE, _TILES_OF_A_THREAD = 8192, 4
# Features are searched in groups.
COST_OF_FEATURE = 16  # in addition to its cells
_CELLS_OF_A_GROUP, _MOST_GROUPS = 256, 128


_SPLIT_FIELDS = [
    ("place", np.int64),  # place of the feature in the table; -1 if there is no split
    ("code", np.int64),  # the highest code that goes left
    ("missing_left", np.int64),  # whether rows without a value go left
    ("is_set", np.int64),  # whether `codes_left` is used instead of `code`
    ("codes_left", np.uint32, (_WORDS_OF_A_SET,)),  # a bit for each code
    ("left_g", np.int64),  # sums of the rows that go left
    ("left_h", np.int64),
    ("left_count", np.int64),
    ("gain", np.float64),  # in units of `BoostedTree.units[2]`
]

SPLIT = record_type(_SPLIT_FIELDS)

NODE = record_type(
    [
        ("left", np.int64),  # the left child, followed by the right one; -1 for a leaf
        *_SPLIT_FIELDS,
        ("start", np.int64),  # its rows are rows[start:end] of the tree
        ("end", np.int64),
        ("depth", np.int64),
        ("total_g", np.int64),  # sums over its rows
        ("total_h", np.int64),
        ("count", np.int64),  # number of samples
        ("slot", np.int64),  # slot of its histogram
        ("is_packed", np.int64),  # whether the histogram consists of packed words
        ("low", np.float64),  # bounds of its value
        ("high", np.float64),
        ("value", np.float64),  # of a leaf
        ("hessian", np.float64),  # of a leaf
    ]
)

STATE = record_type(
    [
        ("phase", np.int64),
        ("job", np.int64),  # the next step, see `trees`
        ("n_nodes", np.int64),
        ("n_leaves", np.int64),
        ("n_frontier", np.int64),  # number of leaves for which a split was found
        ("n_free", np.int64),  # number of free slots
        ("node", np.int64),  # the node that is being split
        ("counted", np.int64),  # which of its children is counted: 0 or 1; -1 for none
        ("n_workers", np.int64),  # number of workers that have counted it
        ("chunk", np.int64),  # how many rows a worker took at a time
        ("small", np.int64),  # its children by the number of rows; -1 if they are not searched
        ("large", np.int64),
        ("n_searchers", np.int64),  # number of groups of features in the last search
        ("copies", np.int64),  # the largest number of samples that a row represents
        ("is_wide", np.int64),  # whether gradients are not packed into words
        ("is_uneven", np.int64),  # whether they differ too much in size to be packed
    ]
)


class GrowthRules(NamedTuple):
    """The growth rules.

    order                     the order in which leaves are split
    max_leaves, max_depth     limits of the tree
    min_samples, min_hessian  minimum of a leaf
    min_worth                 a child must have the share of the hessian that this number of samples
                              of its node would have
    l2                        regularization
    longest_step              longer steps grow only like a logarithm
    rate                      factor on the values
    tried, seed               the share of features that are searched for a node, and its seed
    adds                      whether leaf values are computed, and added to the scores
    signs                     int64 (d,) by place, -1, 0 or 1: monotonic constraints; may be empty
    sets                      bool (sets, d) by place: features that may be on one path; may be
                              empty
    """

    order: int
    max_leaves: int
    max_depth: int
    min_samples: int
    min_hessian: float
    min_worth: float
    l2: float
    longest_step: float
    rate: float
    tried: float
    seed: int
    adds: bool
    signs: np.ndarray
    sets: np.ndarray


class Source(NamedTuple):
    """The data that a tree is grown on.

    rows       int32 (m,) ascending: the rows of the tree
    gradient, hessian    float64 (n,)
    copies     int64 (n,) the number of samples that each row represents; empty: one each
    raw        float64 (n,)  the scores to which leaf values are added
    packed     int64 (n,)  gradients and hessians as packed integers
    g, h       int64 (n,)  the same as separate integers; arrays that are not used are empty
    """

    rows: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    copies: np.ndarray
    raw: np.ndarray
    packed: np.ndarray
    g: np.ndarray
    h: np.ndarray


class BoostedTree(NamedTuple):
    """A tree while it grows.

    nodes      NODE (nodes,)
    open_sets  bool (nodes, sets)  sets of features by which a node may still be split
    rows       int32 (m,)  rows sorted by leaves; spare int32 (m,) is a buffer
    frontier   int64 (nodes,)  leaves for which a split was found
    free       int64 (slots,)  free slots
    state      STATE (1,)
    units      float64 (3,)  the real values of g = 1, h = 1 and gain = 1
    scales     float64 (2,)  factors for the more precise sums of leaves
    """

    nodes: np.recarray
    open_sets: np.ndarray
    rows: np.ndarray
    spare: np.ndarray
    frontier: np.ndarray
    free: np.ndarray
    state: np.recarray
    units: np.ndarray
    scales: np.ndarray

    @property
    def n_nodes(self) -> int:
        return int(self.state.n_nodes[0])

    @property
    def grown_nodes(self) -> np.recarray:
        """The nodes in use."""
        return first_records(self.nodes, self.n_nodes)


class Workspace(NamedTuple):
    """Buffers for growing a tree.

    sums       int64 (slots, 3, cells)  histograms of g, h and samples
    partial    int64 (workers - 1, 3, cells)  histograms of some of the rows
    words      int64 (workers, cells)  packed sums of some of the rows
    fill       int64 (workers, 16)  see `histograms`
    counts     int64 (workers, 16), largest float64 (workers, 16): results about some of the rows
    queue      int64 (16,)  the next chunk of rows that a worker takes
    lefts      int64 (chunks + 1,)  rows of a node that go left, before each chunk of its rows
    groups     int64 (groups + 1,)  the first place of each group of features
    scratch    float64 (groups, 4, 256), order int64 (groups, 256): for the search
    best       SPLIT (groups, 2)  the best splits of two nodes
    allowed    bool (2, d)  places by which two nodes may be split; shuffle int64 (d,)
    ends       int64 (leaves,)  the leaves in the order of their rows
    stack      int64 (leaves,)
    leaf_sums  int64 (2 nodes,)  sums of gradients and hessians
    goes_left  uint8 (256,)  for each code of a feature
    """

    sums: np.ndarray
    partial: np.ndarray
    words: np.ndarray
    fill: np.ndarray
    counts: np.ndarray
    largest: np.ndarray
    queue: np.ndarray
    lefts: np.ndarray
    groups: np.ndarray
    scratch: np.ndarray
    order: np.ndarray
    best: np.recarray
    allowed: np.ndarray
    shuffle: np.ndarray
    ends: np.ndarray
    stack: np.ndarray
    leaf_sums: np.ndarray
    goes_left: np.ndarray


def new_tree(n_rows: int, max_leaves: int, n_slots: int, n_sets: int) -> BoostedTree:
    n_nodes = 2 * max_leaves + 1
    return BoostedTree(
        nodes=records(n_nodes, NODE),
        open_sets=np.zeros((n_nodes, n_sets), np.bool_),
        rows=np.empty(n_rows, np.int32),
        spare=np.empty(n_rows, np.int32),
        frontier=np.zeros(n_nodes, np.int64),
        free=np.zeros(n_slots, np.int64),
        state=records(1, STATE),
        units=np.ones(3),
        scales=np.ones(2),
    )


def new_workspace(table: GradientTable, max_leaves: int, n_slots: int, n_cores: int) -> Workspace:
    cells, d = table.n_cells, len(table.features)
    groups = _groups_of_features(table) if n_cores > 1 else np.array([0, d])
    n_groups = len(groups) - 1
    return Workspace(
        sums=np.zeros((n_slots, 3, cells), np.int64),
        partial=np.zeros((n_cores - 1, 3, cells), np.int64),
        words=np.zeros((n_cores, cells), np.int64),
        fill=np.zeros((n_cores, _CACHE_LINE), np.int64),
        counts=np.zeros((n_cores, _CACHE_LINE), np.int64),
        largest=np.zeros((n_cores, _CACHE_LINE)),
        queue=np.zeros(_CACHE_LINE, np.int64),
        lefts=np.zeros(table.n_rows // LEAST_CHUNK + 2, np.int64),
        groups=groups,
        scratch=np.zeros((n_groups, 4, 256)),
        order=np.zeros((n_groups, 256), np.int64),
        best=records((n_groups, 2), SPLIT),
        allowed=np.ones((2, d), np.bool_),
        shuffle=np.zeros(d, np.int64),
        ends=np.zeros(max_leaves + 1, np.int64),
        stack=np.zeros(max_leaves + 1, np.int64),
        leaf_sums=np.zeros(2 * (2 * max_leaves + 1), np.int64),
        goes_left=np.zeros(256, np.uint8),
    )


def _groups_of_features(table: GradientTable) -> np.ndarray:
    """int64 (groups + 1,): the first place of each group; searching a group takes about as long as
    searching a feature of many codes."""
    d = len(table.features)
    costs = np.asarray(table.first) + COST_OF_FEATURE * np.arange(d + 1)
    n_groups = max(1, min(int(costs[-1]) // _CELLS_OF_A_GROUP, _MOST_GROUPS))
    wanted = costs[-1] * np.arange(1, n_groups) // n_groups
    inner = np.searchsorted(costs, wanted)
    return np.unique(np.concatenate([[0], inner, [d]])).astype(np.int64)


@kernel(inner=True)
def share_of(total, rank, size):
    """Where the share of a worker begins."""
    return (total * rank) // size


@kernel(inner=True)
def tiles_of_rows(n_rows, n_threads):
    """The number of tiles of a region over rows in which each row takes a nanosecond or so."""
    if n_threads == 1:
        return np.int64(1)
    return max(
        np.int64(1), min(np.int64(_TILES_OF_A_THREAD * n_threads), n_rows // _ROWS_OF_A_TILE)
    )
