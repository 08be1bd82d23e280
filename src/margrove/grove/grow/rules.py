"""When a node is not split, and which splits are allowed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel

__all__ = ["Rules", "may_split"]


class Rules(NamedTuple):
    """The limits of a tree, as compiled code reads them.

    criterion, counted     codes of `search.scores`; whether weights are whole numbers
    table, scale           logarithms in fixed point: `search.scores.log_table`
    min_samples_split, min_samples_leaf     samples
    min_weight             of a leaf, in units of the targets' weights
    max_depth, greedy_depth    beyond the latter a split halves the rows, whatever it gains
    min_decrease           of the score, in units of weight
    max_features           looked at for a split
    random                 whether thresholds are drawn
    monotone               int8 (d,) or (0,)  +1, -1, 0
    at_zero                whether zeros among the targets stay zeros: they are not centred then
    seed                   uint64
    """

    criterion: int
    counted: bool
    table: np.ndarray
    scale: float
    min_samples_split: int
    min_samples_leaf: int
    min_weight: int
    max_depth: int
    greedy_depth: int
    min_decrease: float
    max_features: int
    random: bool
    monotone: np.ndarray
    at_zero: bool
    seed: int


@kernel(bare=True, inlined=True)
def may_split(nodes, node, pure, rules):
    """Whether a node that has been summed up is large and impure enough to be searched."""
    weight, samples = nodes.record.weight[node], nodes.record.samples[node]
    return not (
        pure
        or nodes.record.depth[node] >= rules.max_depth
        or samples < rules.min_samples_split
        or samples < 2 * rules.min_samples_leaf
        or weight < 2 * rules.min_weight
    )
