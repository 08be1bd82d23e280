"""A tree that the client grows from sums of all workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove.ensemble.gradient.hist import (
    SAMPLES_OF_A_WORD,
    GradientTable,
    begin,
    nodes,
)
from margrove.ensemble.gradient.hist import (
    leader as kernels,
)

__all__ = ["RemoteTree", "Survey", "TreeBuffers"]

_BYTES_OF_SUMS = 1 << 28  # of one tree
_MOST_AT_ONCE = 256  # nodes that are split together
_MOST_LEAVES = 2**20
_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class Survey:
    """The range of the gradients of a score over all rows.

    largest   float64 (2,)  gradient and hessian, absolute
    counts    int64 (2,)  samples, and the most samples that one row stands for
    """

    largest: np.ndarray
    counts: np.ndarray


class TreeBuffers:
    """The arrays of a growing tree, which the next tree reuses."""

    def __init__(
        self, table: GradientTable, max_leaves: int, n_slots: int, n_sets: int, *, is_tight: bool
    ) -> None:
        most = max(_BYTES_OF_SUMS // max(24 * table.n_cells, 1), 4)
        if is_tight:
            n_entries = min(max_leaves, most)
        else:
            n_entries = int(min(max_leaves, _MOST_AT_ONCE, max(most // 4, 1)))
            n_slots = min(max_leaves + 1, n_slots + 2 * n_entries)
        self.table, self.is_tight, self.max_leaves = table, is_tight, max_leaves
        self.tree = nodes.new_tree(0, max_leaves, n_slots, n_sets)
        self.space = nodes.new_workspace(table, max_leaves, n_slots, 1)
        self.known = kernels.new_expansions(table, max_leaves, n_entries, _MOST_AT_ONCE)

    @staticmethod
    def bytes_of(table: GradientTable, max_leaves: int, n_slots: int) -> float:
        return 24.0 * table.n_cells * (n_slots + max_leaves)


class RemoteTree:
    """One tree, from its root to its leaves."""

    def __init__(
        self,
        buffers: TreeBuffers,
        rules: nodes.GrowthRules,
        score: int,
        n_rows: int,
        survey: Survey,
    ) -> None:
        self.score, self.rules, self._buffers = score, rules, buffers
        self.tree = buffers.tree
        self._n_rows, self.survey = n_rows, survey
        self.is_wide, self.is_grown = False, False
        begin(self.tree)
        # Every node that can be split is split, so the order does not matter, unless features are
        # drawn by the number of the node.
        is_free = not buffers.is_tight and rules.tried >= 1.0 and buffers.max_leaves < _MOST_LEAVES
        self._in_any_order = is_free

    # -- the root --

    def scales(self) -> np.ndarray:
        """The factors that turn gradients and hessians into whole numbers."""
        found = np.empty(2)
        kernels.choose_scales(
            self.tree, self.is_wide, self.survey.largest, self.survey.counts, found
        )
        return found

    @property
    def root_in_words(self) -> bool:
        return not self.is_wide and int(self.survey.counts[0]) <= SAMPLES_OF_A_WORD

    def accept_root(self, totals: np.ndarray, sums: np.ndarray) -> bool:
        """Set the sums of the root; returns False if wider whole numbers are needed."""
        buffers, survey = self._buffers, self.survey
        phase = kernels.begin_root(
            self.rules, self.tree, buffers.known, self._n_rows, self.is_wide, survey.largest,
            survey.counts, totals,
        )  # fmt: skip
        if phase == nodes.TOO_UNEVEN:
            self.is_wide = True
            return False
        kernels.search_root(buffers.table, self.rules, self.tree, buffers.space, sums)
        self.continue_growth(_NOTHING)
        return True

    # -- nodes --

    def orders(self) -> tuple[np.ndarray, int]:
        """Orders for the workers, and the size of the reply."""
        known = self._buffers.known
        waiting = known.waiting[0]
        return known.orders[: int(waiting.n_orders)], int(waiting.reply_size)

    def continue_growth(self, reply: np.ndarray) -> None:
        """Split nodes as far as the replies of the workers allow."""
        buffers = self._buffers
        self.is_grown = bool(
            kernels.go_on(
                buffers.table, self.rules, self.tree, buffers.space, buffers.known,
                self._in_any_order, reply,
            )
        )  # fmt: skip
        if self.is_grown and self._in_any_order:
            kernels.in_usual_order(self.tree, buffers.known)

    # -- leaves --

    @property
    def leaves(self) -> np.ndarray:
        return np.flatnonzero(self.tree.grown_nodes.left < 0)

    def handles_of(self, leaves: np.ndarray) -> np.ndarray:
        """The numbers of leaves on the workers."""
        return self._buffers.known.handles[leaves].copy()

    def write_values(self, leaves: np.ndarray, sums: np.ndarray) -> None:
        kernels.write_values(self.rules, self.tree, leaves, sums)
