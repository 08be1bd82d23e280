"""How trees are grown: settings, and the sizes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["GradientSettings", "TreeSizes"]

_MOST_LEAVES = 2**20
_SLOTS_OF_A_PATH = 48  # enough for the pending larger children of at most 2^31 rows


@dataclass(frozen=True)
class GradientSettings:
    """How trees are grown; most names are those of scikit-learn's parameters.

    tried    the share of features that are searched for the split of a node
    signs    int64 (d,) for each feature, -1, 0 or 1, or None: monotonic constraints
    sets     bool (sets, d), or None: features that may be on one path
    """

    learning_rate: float = 0.1
    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    min_hessian: float = 1e-3
    tried: float = 1.0
    level_wise: bool = False
    signs: np.ndarray | None = None
    sets: np.ndarray | None = None
    seed: int = 0

    def sizes(self, n_rows: int, n_samples: int) -> TreeSizes:
        """The sizes of trees on so many rows, which represent so many samples."""
        n_sets = 0 if self.sets is None else len(self.sets)
        most = max(min(n_samples // max(self.min_samples_leaf, 1), n_rows, _MOST_LEAVES), 1)
        if self.max_depth is not None:
            most = min(most, 2 ** min(self.max_depth, 20))
        limit = self.max_leaf_nodes
        if limit is not None and limit < most:
            return TreeSizes(limit, limit + 1, True, n_sets)
        return TreeSizes(most, min(most + 1, _SLOTS_OF_A_PATH), False, n_sets)


@dataclass(frozen=True)
class TreeSizes:
    """Sizes of the memory for a tree.

    max_leaves   the largest number of leaves
    n_slots      the number of histograms
    is_tight     whether max_leaves is the limit, not the number of rows
    n_sets       the number of sets of features that may be on one path
    """

    max_leaves: int
    n_slots: int
    is_tight: bool
    n_sets: int
