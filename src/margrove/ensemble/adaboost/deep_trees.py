"""A learner for trees of any depth, grown like the trees of a forest.

The builder of forests needs whole weights whose squares fit into 64 bits. So the weights of
boosting are rounded to multiples of 2^-31 of their sum; the error of a tree is computed with the
exact weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margrove.ensemble.adaboost.members import TreeMembers, answers_of_trees
from margrove.grove import CRITERIA, DecisionTree, TreeTraining, number_of_leaves
from margrove.grove.grow import ForestTreeBuilder, columns_of
from margrove.grove.serve import Kind, PackedTree
from margrove.grove.table import TreeTable, bin_columns, class_targets

__all__ = ["MOST_ROWS", "DeepTreeLearner"]

MOST_ROWS = 200_000  # for more rows, rounded weights are not precise enough
_UNITS = 2**31  # the sum of all weights


class DeepTreeLearner:
    """A learner for classification trees; see `weak_learners` for the protocol.

    Each row is one sample, and all values of X are numbers that are not missing.
    """

    def __init__(
        self,
        template: DecisionTree,
        table: TreeTable,
        labels: np.ndarray,
        n_classes: int,
        answer: str,
        *,
        n_threads: int,
    ) -> None:
        self._table, self._answer = table, answer
        self._data = bin_columns(table.X, max_bins=template.max_bins, n_threads=n_threads)
        self.kind = Kind(CRITERIA[template.criterion].code, (n_classes,), 1, table.n_categories)
        n = len(labels)
        self._samples = np.ones(n, np.int64)
        self._scale = float(_UNITS - 2 * n)
        even = np.full(n, int(self._scale / n), np.int64)
        targets = class_targets(
            labels[:, None], [n_classes], even / self._scale, self._samples
        )._replace(weight=even, counted=True, plain=False, unit=1.0 / self._scale)
        rows = np.arange(n)
        training = TreeTraining(table, targets, rows, 1.0, rows[:0])
        rules = template._rules(training, self._data)
        self._builder = ForestTreeBuilder(
            self._data,
            columns_of(self._data),
            targets,
            rules,
            table.n_categories,
            max_leaves=number_of_leaves(template.max_leaf_nodes, n),
            weights_count=False,
            row_is_sample=True,
        )
        self._tree: PackedTree | None = None

    @property
    def extremes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each column, the lowest and the highest value of each code."""
        return list(self._data.extremes)

    @property
    def finished(self) -> bool:
        return self._tree is not None

    def begin(self, number: int, weights: np.ndarray, targets: np.ndarray | None) -> None:
        units = np.maximum(np.rint(weights[0] * self._scale), 1.0).astype(np.int64)
        self._builder.start(units, self._samples, 0)
        self._tree = None

    def advance(self, work: float) -> float:
        done = self._builder.advance(work)
        if self._builder.finished:
            self._tree = self._builder.packed()
        return done

    def answers(self) -> np.ndarray:
        return answers_of_trees(self._trees, self._table.X, self.kind, self._answer)

    def add_to(self, members: TreeMembers) -> TreeMembers:
        return replace(members, trees=(*members.trees, self._trees))

    @property
    def _trees(self) -> list[PackedTree]:
        if self._tree is None:
            raise RuntimeError("The tree has not grown yet.")
        return [self._tree]
