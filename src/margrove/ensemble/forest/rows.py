"""Where the rows of a fit are: in this process. `margrove.dask` has them on the workers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from margrove._runtime import processes_wanted, resolve_n_jobs
from margrove.ensemble.forest.grower import ForestGrower, SpreadGrower
from margrove.ensemble.forest.intervals import LeafSamples, keep_leaf_samples
from margrove.ensemble.forest.training_data import ForestTraining, Sampler, bin_in_order, row_order
from margrove.grove.serve import Kind, PackedTree
from margrove.grove.table import BinnedDataset, TreeTable, read_table

__all__ = ["LocalRows"]


class LocalRows:
    """The rows that a forest is grown on: all that a fit asks about X.

    A class with the same methods, for rows elsewhere, can be passed to `Forest._fit_rows`.

    X                            the table as it was given, which checkpoints compare
    table                        the checked table
    takes_registered_criteria    whether criteria of the user are known where trees are grown
    """

    takes_registered_criteria = True

    def __init__(self, X: Any, forest: Any) -> None:
        self.X, self._forest = X, forest
        self.table: TreeTable = read_table(X, forest, forest.categorical_features)

    def of_rows(self, kept: np.ndarray | slice) -> LocalRows:
        """Some of the rows: those of nonzero weight."""
        some = copy.copy(self)
        some.table = self.table.of_rows(kept)
        return some

    def ordered(
        self, target: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, their weights, place of each row) in the order in which samples are drawn."""
        return row_order(self.table, target, weight, bootstrap=self._forest.bootstrap)

    def coded(self, order: np.ndarray, weight: np.ndarray) -> BinnedDataset:
        """The table as codes of bins, with the rows in this order; `weight` has one a row."""
        forest = self._forest
        return bin_in_order(
            self.table, order, forest, weight=weight, max_bins=forest.max_bins,
            n_threads=resolve_n_jobs(forest.n_jobs, unset="all"),
        )  # fmt: skip

    def grower(self, *given: Any, **options: Any) -> ForestGrower:
        """The process that grows the trees; takes the arguments of `ForestGrower`."""
        return (SpreadGrower if processes_wanted() else ForestGrower)(*given, **options)

    def leaf_samples(
        self, training: ForestTraining, sampler: Sampler, trees: list[PackedTree], kind: Kind
    ) -> LeafSamples:
        """The training targets in each leaf."""
        return keep_leaf_samples(
            trees,
            kind,
            training.table.X,
            training.order,
            training.targets.raw * training.scale,
            lambda number: sampler.weights(number)[0],
            resolve_n_jobs(self._forest.n_jobs, unset="all"),
        )
