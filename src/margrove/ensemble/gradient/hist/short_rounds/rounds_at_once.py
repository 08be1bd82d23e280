"""Several rounds of boosting in one compiled call.

For a table of few rows, a round takes less time than the Python around it. So gradients, trees,
scores and losses of several rounds are computed in one call. This works for the usual losses, if
all rows and all features are used in every round, and if nothing is decided between two rounds.
Only trees by sorted lists are grown so: the loop of `trees` would be compiled a second time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel, pool_words
from margrove.ensemble.gradient.hist import nodes
from margrove.ensemble.gradient.hist.binning import GradientTable
from margrove.ensemble.gradient.hist.local_trees import TreeBuffers
from margrove.ensemble.gradient.hist.packing import (
    Meanings,
    most_words,
    new_grown_trees,
    pack_tree,
    packed_trees,
)
from margrove.ensemble.gradient.hist.short_rounds.coded_losses import derive_by_code
from margrove.ensemble.gradient.hist.short_rounds.few_rows import (
    grow_few,
    sorted_lists,
)
from margrove.ensemble.gradient.losses import (
    RowSums,
    mean_of_sums,
    row_sums,
    rows_of_share,
    sum_rows,
)
from margrove.ensemble.gradient.training_data import TrainingRows
from margrove.grove.serve import PackedTree

__all__ = ["RoundsAtOnce", "cost_of_round"]

_MOST_NODES, _MOST_WORDS = 1 << 16, 1 << 20  # of the trees of a call


class Rows(NamedTuple):
    """The rows of all rounds.

    y              float64 (n,); weight float64 (n,), empty without weights
    raw            float64 (scores, n), to which trees are added; scores are the same for reading
    gradient, hessian    float64 (scores, n); losses float64 (n,): buffers
    """

    y: np.ndarray
    weight: np.ndarray
    raw: np.ndarray
    scores: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    losses: np.ndarray


def cost_of_round(table: GradientTable, n_scores: int, max_leaves: int) -> float:
    """The approximate cost of a round, in units of `trees`."""
    levels = 1 + (max_leaves - 1).bit_length()
    per_tree = table.n_rows * (30 + len(table.features) * levels) + 2 * table.n_cells * max_leaves
    return float(n_scores * per_tree)


class RoundsAtOnce:
    """Runs rounds in compiled code, on the arrays of `GradientRounds`.

    loss     its code, see `code_of_loss`
    source   of the first score, without arrays for integers
    """

    def __init__(
        self,
        table: GradientTable,
        meanings: Meanings,
        buffers: TreeBuffers,
        rows: TrainingRows,
        loss: int,
        source: nodes.Source,
        rules: nodes.GrowthRules,
        raw: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        losses: np.ndarray,
    ) -> None:
        self._table, self._meanings, self._buffers = table, meanings, buffers
        self._rules, self._loss, self._weight = rules, loss, rows.total_weight
        n = table.n_rows
        self._source = source._replace(
            packed=buffers.packed, g=np.empty(n, np.int64), h=np.empty(n, np.int64)
        )
        weight = np.empty(0) if rows.weight is None else rows.weight
        self._rows = Rows(
            read_only(rows.y), read_only(weight), raw, read_only(raw), gradient, hessian, losses
        )
        self._call: tuple[int, RowSums] | None = None  # the last one: its first round, and sums
        self._lists = sorted_lists(table, buffers.space.groups)
        self.cost = cost_of_round(table, len(raw), rules.max_leaves)
        k, self._max_nodes = len(raw), 2 * rules.max_leaves - 1
        n_words = max(k * most_words(self._max_nodes, meanings), 1)
        self._most = max(1, min(_MOST_NODES // (k * self._max_nodes), _MOST_WORDS // n_words))

    def run(self, first: int, n_rounds: int) -> tuple[list[list[PackedTree]], list[float]]:
        """The trees of rounds from `first` on, at most so many, and the loss before each round."""
        n_rounds, k, n = min(n_rounds, self._most), len(self._rows.raw), self._table.n_rows
        grown = new_grown_trees(k * n_rounds, self._max_nodes, self._meanings)
        sums = row_sums(self._weight, n, n_rounds)
        self._call = first, sums
        n_cores = self._buffers.n_cores
        _run(
            pool_words(n_cores), n_cores, self._table, self._lists,
            (self._loss, rows_of_share(k)), self._rows, sums, self._source,
            self._rules, self._buffers.tree, self._buffers.space, self._meanings, grown, n_rounds,
        )  # fmt: skip
        flat = packed_trees(grown, k * n_rounds)
        rounds = [flat[start : start + k] for start in range(0, len(flat), k)]
        return rounds, [mean_of_sums(sums, number) for number in range(n_rounds)]

    def loss_before(self, first: int) -> float | None:
        """The loss before round `first`, if a call from there on was interrupted when the scores
        had its trees already; else None."""
        if self._call is None or self._call[0] != first or not self._call[1].is_written[0]:
            return None
        return mean_of_sums(self._call[1], 0)


@kernel(bare=True)
def _run(pool, n_threads, table, lists, loss, rows, sums, source, rules, tree, space,
         meanings, grown, n_rounds):  # fmt: skip
    n_scores = len(rows.raw)
    for number in range(n_rounds):
        derive_by_code(*loss, rows.y, rows.scores, rows.weight, rows.gradient, rows.hessian,
                       rows.losses)  # fmt: skip
        sum_rows(rows.losses, sums, number)
        for score in range(n_scores):
            wide = nodes.Source(
                source.rows, rows.gradient[score], rows.hessian[score], source.copies,
                rows.raw[score], source.packed, source.g, source.h,
            )  # fmt: skip
            grow_few(pool, n_threads, table, lists, wide, rules, tree, space)
            pack_tree(tree, meanings, grown, number * n_scores + score)
