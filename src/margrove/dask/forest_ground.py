"""The trees that grow on shards of their rows, as the client knows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from margrove.dask.forest_frames import Frame
from margrove.grove.grow.forest_tree_builder import is_quick
from margrove.grove.grow.nodes import DEPTH, SAMPLES, WEIGHT, Nodes, with_room
from margrove.grove.grow.split_search import Rules
from margrove.grove.table.columns import Columns
from margrove.grove.table.targets import Targets

__all__ = ["Ground", "Place", "Subtree", "Trunk"]

Subtree = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Ground:
    """What trunks grow on.

    gang         members are `ForestShard`
    frame        what they know
    columns      no rows; values of all codes where thresholds are drawn
    targets      of all rows
    small        rows of a node, up to which it is left to one worker
    most_guests  rows that one worker is sent at a time
    """

    gang: Any
    frame: Frame
    columns: Columns
    targets: Targets
    rules_of: Callable[[int], Rules]
    small: int
    most_guests: int

    def draws_threshold_of(self, feature: int) -> bool:
        """Not of categories, and not for several outputs."""
        is_number = not self.columns.categorical[feature]
        return bool(self.frame.rules.random and is_number and self.frame.n_outputs == 1)

    @property
    def is_quick(self) -> bool:
        """Whether `sapling` ends leaves in its own way."""
        columns, frame = self.columns, self.frame
        return (
            is_quick(self.targets, frame.rules)
            and frame.weights_count
            and not (columns.categorical.any() or columns.has_missing.any())
        )


@dataclass
class Trunk:
    """A tree without what is left to others.

    rows      of all members, by node
    new       nodes of which nothing is known yet; ready: those whose split is known
    guests    nodes that others are to grow; grown: what they made of them
    extremes  lowest and highest targets of a node, for each output
    """

    number: int
    rules: Rules
    nodes: Nodes
    rows: dict[int, int]
    used: int = 1
    words: int = 0
    n_leaves: int = 1
    new: list[int] = field(default_factory=lambda: [0])
    ready: list[tuple[float, int]] = field(default_factory=list)
    guests: list[int] = field(default_factory=list)
    grown: dict[int, Subtree] = field(default_factory=dict)
    extremes: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def may_split(self, node: int, pure: bool) -> bool:
        """See `block.may_split`."""
        whole, rules = self.nodes.whole[node], self.rules
        return not (
            pure
            or whole[DEPTH] >= rules.max_depth
            or whole[SAMPLES] < max(rules.min_samples_split, 2 * rules.min_samples_leaf)
            or whole[WEIGHT] < 2 * rules.min_weight
        )

    def make_room(self, n_nodes: int, n_words: int) -> None:
        capacity, words = len(self.nodes.whole), len(self.nodes.subsets)
        if self.used + n_nodes > capacity or self.words + n_words > words:
            self.nodes = with_room(
                self.nodes,
                self.used,
                max(capacity, 2 * (self.used + n_nodes)),
                max(words, 2 * (self.words + n_words)),
            )


Place = tuple[Trunk, int]  # a node of a tree
