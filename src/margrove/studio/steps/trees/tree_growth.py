"""A grown tree, its rows, and the order of its splits: the largest gain first.

An intermediate tree is the grown one, pruned by `margrove.prune` at all later splits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np

from margrove.grove.prune import child_sums, prune, validation_losses
from margrove.grove.read import NodeReading, read_tree
from margrove.grove.serve import LEAF, TreeArrays

__all__ = ["Growth"]


@dataclass(frozen=True, eq=False)
class Growth:
    """A fitted tree and its training rows.

    model   DecisionTreeClassifier or DecisionTreeRegressor
    X       (n, d) numbers, or categories as text
    y       (n,)
    """

    model: Any
    X: np.ndarray
    y: np.ndarray

    @property
    def arrays(self) -> TreeArrays:
        found: TreeArrays = self.model.arrays_
        return found

    @cached_property
    def order(self) -> list[int]:
        """Nodes in the order of their splits: always the open node with the largest gain."""
        tree = self.arrays
        heap: list[tuple[float, int]] = []
        ordered: list[int] = []

        def push(node: int) -> None:
            if tree.kind[node] != LEAF:
                heappush(heap, (-float(tree.decrease[node]), node))

        push(0)
        while heap:
            _, node = heappop(heap)
            ordered.append(node)
            for child in tree.children_of(node).tolist():
                push(child)
        return ordered

    def after(self, number: int) -> Any:
        """The tree with only the first `number` splits."""
        if number == len(self.order):
            return self.model
        return prune(self.model, "nodes", nodes=self.order[number:])

    def number_of(self, node: int, number: int) -> int:
        """The number that a node of the grown tree has in the tree after `number` splits."""
        is_split = np.zeros(len(self.arrays), dtype=bool)
        is_split[self.order[:number]] = True
        is_kept = np.append(True, is_split[self.arrays.parent[1:]])
        return int(is_kept[:node].sum())

    @cached_property
    def nodes(self) -> tuple[NodeReading, ...]:
        """All nodes as value objects."""
        return read_tree(self.model).nodes

    @cached_property
    def leaves(self) -> np.ndarray:
        """The leaf of each row."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the rows have no feature names
            return np.asarray(self.model.apply(self.X))

    def rows_of(self, node: int) -> np.ndarray:
        """The rows that reach a node; the numbers of its subtree are consecutive."""
        found: np.ndarray = np.flatnonzero(
            (self.leaves >= node) & (self.leaves < self.arrays.ends[node])
        )
        return found

    def gain_of(self, node: int) -> float:
        """By how much the split of a node lowers the impurity of its rows."""
        return float(self.arrays.decrease[node] / self.arrays.weight[node])

    def losses(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Mean losses of some rows after 0, 1, 2, ... splits: mistakes, or squared errors."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            of_nodes = validation_losses(self.model, X, y)
        change = child_sums(self.arrays, of_nodes) - of_nodes
        total = of_nodes[0] + np.concatenate([[0.0], np.cumsum(change[self.order])])
        found: np.ndarray = np.maximum(total, 0.0) / max(1, len(y))
        return found
