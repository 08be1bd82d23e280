"""The nodes of a tree of histogram boosting on its way, and all that is needed to split them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime.jit import kernel
from margrove.ensemble.gradient.hist.tables import GradientTable

__all__ = [
    "ADDED",
    "ALONE",
    "ASSISTS",
    "BEST_FIRST",
    "CODE",
    "COPIES",
    "COUNT",
    "DEPTH",
    "END",
    "GAIN",
    "GROWING",
    "GROWN",
    "HESSIAN",
    "HIGH",
    "IS_LOPSIDED",
    "IS_PACKED",
    "IS_SET",
    "IS_WIDE",
    "JOB",
    "LARGE",
    "LARGEST_VALUE",
    "LEADS",
    "LEFT",
    "LEFT_COUNT",
    "LEFT_G",
    "LEFT_H",
    "LEVEL_BY_LEVEL",
    "LOW",
    "MIDDLE",
    "MISSING_LEFT",
    "NODE",
    "N_FREE",
    "N_FRONTIER",
    "N_LEAVES",
    "N_NODES",
    "PHASE",
    "PLACE",
    "PLANTED",
    "SHARERS",
    "SLOT",
    "SMALL",
    "SMALL_FIRST",
    "START",
    "STEP",
    "TOO_LOPSIDED",
    "TOTAL_G",
    "TOTAL_H",
    "VALUE",
    "BoostedTree",
    "GrowthRules",
    "Room",
    "Source",
    "new_room",
    "new_tree",
    "share_of",
]

LARGEST_VALUE = 1e290  # of a leaf: sums of them are finite

# columns of `BoostedTree.whole`
(START, END, DEPTH, LEFT, PLACE, CODE, MISSING_LEFT, IS_SET, SLOT, TOTAL_G, TOTAL_H, COUNT, LEFT_G,
 LEFT_H, LEFT_COUNT, IS_PACKED, N_COLUMNS) = range(17)  # fmt: skip
# columns of `BoostedTree.real`
GAIN, VALUE, HESSIAN, LOW, HIGH, N_REAL = range(6)
# places in `BoostedTree.state`
(PHASE, N_NODES, N_LEAVES, N_FRONTIER, IS_WIDE, COPIES, N_FREE, STEP, JOB, SMALL, LARGE, NODE,
 MIDDLE, SHARERS, IS_LOPSIDED, N_STATE) = range(16)  # fmt: skip
# phases
PLANTED, GROWING, GROWN, ADDED, TOO_LOPSIDED = range(5)
# order in which leaves are split
BEST_FIRST, LEVEL_BY_LEVEL, SMALL_FIRST = range(3)
ALONE, LEADS, ASSISTS = range(3)


class GrowthRules(NamedTuple):
    """order: of splitting; max_leaves, max_depth; min_samples, min_hessian: of a leaf; min_worth:
    samples of a node whose share of the hessian a child must have; l2: regularization;
    longest_step: beyond which values grow like a logarithm only; rate: factor of the values; tried:
    the share of features that a node may be split by; seed of the draw of these; adds: whether the
    values of the leaves are written, and added to the scores.

    signs        int64 (d,) by place, -1, 0 or 1: which way predictions may go; empty without
    sets         bool (sets, d) by place: features that may be on one path; empty without
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
    """What a tree is grown on.

    rows       int32 (m,) ascending: the rows that count
    gradient, hessian    float64 (n,)
    copies     int64 (n,) samples that each row stands for, or empty: one each
    raw        float64 (n,)  what the leaves say is added to
    packed     int64 (n,), g, h int64 (n,): whole numbers, packed or not; what is not used is empty
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
    """A tree on its way.

    whole      int64 (nodes, 16), real float64 (nodes, 5): see the names of the columns
    sets       uint32 (nodes, 8)  codes that go left
    open_sets  bool (nodes, sets)  sets of features that a node may still be split by
    rows       int32 (m,)  by leaves; spare int32 (m,)
    frontier   int64 (nodes,)  leaves that have a split
    free       int64 (slots,)  histograms that are not in use
    state      int64 (15,)  see the names of the places
    units      float64 (3,)  what a whole number of g and h, and a gain of 1, is worth
    scales     float64 (2,)  factors of the wider sums of leaves
    """

    whole: np.ndarray
    real: np.ndarray
    sets: np.ndarray
    open_sets: np.ndarray
    rows: np.ndarray
    spare: np.ndarray
    frontier: np.ndarray
    free: np.ndarray
    state: np.ndarray
    units: np.ndarray
    scales: np.ndarray


class Room(NamedTuple):
    """What a search needs; the first index of arrays for each core is its rank.

    sums       int64 (slots, 3, cells)  of g, h and samples, for each leaf
    partial    int64 (cores, 3, cells)  of some rows
    words      int64 (cores, cells)  packed sums on the way
    scratch    float64 (cores, 4, 256), order int64 (cores, 256): of a search
    best       int64 (cores, 2, 7), gain float64 (cores, 2), chosen uint32 (cores, 2, 8): the best
               splits of two nodes
    allowed    bool (2, d)  places that two nodes may be split by; shuffle int64 (d,)
    counts     int64 (cores, 4)  results of a core
    largest    float64 (cores, 2)
    leaf_sums  int64 (cores, nodes, 2)
    goes_left  uint8 (256,)  of the codes of a feature
    """

    sums: np.ndarray
    partial: np.ndarray
    words: np.ndarray
    scratch: np.ndarray
    order: np.ndarray
    best: np.ndarray
    gain: np.ndarray
    chosen: np.ndarray
    allowed: np.ndarray
    shuffle: np.ndarray
    counts: np.ndarray
    largest: np.ndarray
    leaf_sums: np.ndarray
    goes_left: np.ndarray


def new_tree(n_rows: int, max_leaves: int, n_slots: int, n_sets: int) -> BoostedTree:
    nodes = 2 * max_leaves + 1
    return BoostedTree(
        np.zeros((nodes, N_COLUMNS), np.int64),
        np.zeros((nodes, N_REAL)),
        np.zeros((nodes, 8), np.uint32),
        np.zeros((nodes, n_sets), np.bool_),
        np.empty(n_rows, np.int32),
        np.empty(n_rows, np.int32),
        np.zeros(nodes, np.int64),
        np.zeros(n_slots, np.int64),
        np.zeros(N_STATE, np.int64),
        np.ones(3),
        np.ones(2),
    )


def new_room(table: GradientTable, max_leaves: int, n_slots: int, n_cores: int) -> Room:
    cells, d = table.n_cells, len(table.features)
    shared = n_cores if n_cores > 1 else 0
    return Room(
        np.zeros((n_slots, 3, cells), np.int64),
        np.zeros((shared, 3, cells), np.int64),
        np.zeros((n_cores, cells), np.int64),
        np.zeros((n_cores, 4, 256)),
        np.zeros((n_cores, 256), np.int64),
        np.zeros((n_cores, 2, 7), np.int64),
        np.zeros((n_cores, 2)),
        np.zeros((n_cores, 2, 8), np.uint32),
        np.ones((2, d), np.bool_),
        np.zeros(d, np.int64),
        np.zeros((n_cores, 4), np.int64),
        np.zeros((n_cores, 2)),
        np.zeros((n_cores, 2 * max_leaves + 1, 2), np.int64),
        np.zeros(256, np.uint8),
    )


@kernel(inner=True)
def share_of(total, rank, size):
    """Where the share of a core begins."""
    return (total * rank) // size
