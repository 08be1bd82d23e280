"""Grows the trees of a forest by a registered criterion: see `register_criterion`."""

from __future__ import annotations

import numpy as np

from margrove.grove.grow import Rules, TreeBuilder, assemble
from margrove.grove.grow.search import CustomSearch
from margrove.grove.serve import Kind, PackedTree, packed_of
from margrove.grove.table import BinnedDataset, Columns, Targets

__all__ = ["RegisteredTree"]


class RegisteredTree:
    """Grows tree after tree: `start`, then `advance` until `finished`, then `packed`.

    The tree is equal to a single decision tree with the same rows, weights and random numbers.
    """

    n_balanced = 0  # this search never halves nodes: see `GREEDY_DEPTH`

    def __init__(
        self,
        data: BinnedDataset,
        columns: Columns,
        targets: Targets,
        rules: Rules,
        kind: Kind,
        search: CustomSearch,
        *,
        max_leaves: int = 0,
    ) -> None:
        self._data, self._columns, self._rules, self._kind = data, columns, rules, kind
        self._targets = targets._replace(numbers=np.zeros_like(targets.numbers), plain=False)
        self._search, self._max_leaves = search, max_leaves
        self._grower: TreeBuilder | None = None

    def start(self, weight: np.ndarray, samples: np.ndarray, key: int, rules: Rules) -> None:
        """Start a tree: weight int64 (n,) in units of the targets; rows of weight 0 are ignored."""
        self._rules = rules._replace(seed=int(np.uint64(key).view(np.int64)))
        self._targets = self._targets._replace(
            weight=weight, samples=samples, real=weight * self._targets.unit
        )
        self._grower = TreeBuilder(
            self._columns,
            self._targets,
            self._rules,
            np.flatnonzero(weight),
            max_leaves=self._max_leaves,
            custom=self._search,
        )

    @property
    def _started(self) -> TreeBuilder:
        if self._grower is None:
            raise TypeError("No tree was started.")
        return self._grower

    @property
    def finished(self) -> bool:
        return self._started.finished

    def advance(self, work: float) -> float:
        """Search the split of a node, or split one."""
        return self._started.advance(work)

    def packed(self) -> PackedTree:
        """The finished tree."""
        arrays = assemble(
            self._started.result(), self._data, self._targets, self._rules, self._kind.n_categories
        )
        return packed_of(arrays, self._kind)
