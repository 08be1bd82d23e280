"""The data that the trees of a forest are grown from: the table as codes, targets, samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove._data import canonical_form
from margrove.ensemble.bootstrap import (
    CumulativeWeights,
    multiplicities,
    multiplicities_of_samples,
    units_left_out,
)
from margrove.grove.table import (
    BinnedDataset,
    Targets,
    TreeTable,
    bin_columns,
    in_order,
    refuse_infinity,
    whole_weights,
)

__all__ = [
    "ForestTraining",
    "SampledRows",
    "Sampler",
    "bin_in_order",
    "codes_of_rows",
    "row_order",
    "weights_of_rows",
]


@dataclass(frozen=True)
class SampledRows:
    """The sample of each tree as a recipe of few bytes, from which it can be drawn again.

    A *place* is a position in `rows`; equal rows share a place.

    seed       the seed of the forest
    rows       int32 or int64 (m,)  rows of nonzero weight, in the order of the cumulative weights
    weight     float64 (m,), None if all are 1
    n_draws    number of draws for each tree; None without bootstrap
    n_rows     number of rows of the table
    group_of   int32 (n_rows,)  place of each row, -1 for none; None if it follows from `rows`
    """

    seed: int
    rows: np.ndarray
    weight: np.ndarray | None
    n_draws: int | None
    n_rows: int
    group_of: np.ndarray | None = None

    @property
    def cumulative(self) -> CumulativeWeights:
        """The cumulative weights of the places."""
        return CumulativeWeights(np.ones(len(self.rows)) if self.weight is None else self.weight)

    @property
    def places(self) -> np.ndarray:
        """The place of each row of the table; -1 for rows of weight 0."""
        if self.group_of is not None:
            return self.group_of
        places = np.full(self.n_rows, -1, np.int64)
        places[self.rows] = np.arange(len(self.rows))
        return places

    def multiplicities(self, tree: int) -> np.ndarray:
        """How often each place is in the sample of a tree, int64 (m,)."""
        if self.n_draws is None:
            return np.ones(len(self.rows), np.int64)
        return multiplicities(self.cumulative, self.seed, tree, self.n_draws)

    def sample(self, tree: int) -> np.ndarray:
        """The sample of a tree as row numbers, each as often as it was drawn."""
        return np.repeat(self.rows, self.multiplicities(tree))


def row_order(
    table: TreeTable, target: np.ndarray, weight: np.ndarray, *, bootstrap: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, their weights, place of each row): in canonical order with bootstrap, else as given.

    With bootstrap, rows that are equal and have equal targets are merged and their weights added.
    So a weight of 2 is the same as two copies, and the order of the rows does not matter.
    """
    if not bootstrap:
        return np.arange(len(weight)), weight, np.arange(len(weight))
    codes = target if target.ndim == 1 else codes_of_rows(target)
    form = canonical_form(table.X, codes, weight)
    return form.rows, form.weight, form.group_of


def codes_of_rows(target: np.ndarray) -> np.ndarray:
    """Targets of several outputs, (n, n_outputs), as one code for each row, int64 (n,), sorted."""
    _, codes = np.unique(target, axis=0, return_inverse=True)
    return codes.reshape(-1).astype(np.int64)


def bin_in_order(
    table: TreeTable,
    rows: np.ndarray,
    estimator: Any,
    *,
    weight: np.ndarray,
    max_bins: int | None,
    n_threads: int,
) -> BinnedDataset:
    """The codes of the table, with the rows in the given order."""
    data = bin_columns(
        table.X,
        categorical=table.is_categorical,
        max_bins=max_bins,
        weight=weight,
        n_threads=n_threads,
    )
    if data.has_infinity:
        refuse_infinity(table.X, estimator, table.feature_names)
    if len(rows) == data.n_rows and np.array_equal(rows, np.arange(len(rows))):
        return data
    taken = in_order(data.codes, rows, n_threads)
    return replace(data, codes=taken, n_rows=len(rows))


@dataclass(frozen=True)
class ForestTraining:
    """The training data of a forest; data and targets have the order of `sampled.rows`.

    table      the checked table, with rows in the given order, without rows of weight 0
    order      int64 (m,)  rows of the table in the order of codes and targets
    targets    targets and weights of all rows
    factors    float64 (m,) class weights of the rows; None if all are 1
    balanced   whether class weights are computed for each tree
    scale      the number by which the targets were divided
    """

    table: TreeTable
    order: np.ndarray
    data: BinnedDataset
    targets: Targets
    sampled: SampledRows
    factors: np.ndarray | None
    balanced: bool
    scale: float = 1.0


def weights_of_rows(training: ForestTraining) -> np.ndarray:
    """The weight of each row of the table for out-of-bag scores, float64 (n_rows,)."""
    sampled = training.sampled
    places = sampled.places
    weight = np.ones(len(sampled.rows)) if sampled.weight is None else sampled.weight
    sharing = np.bincount(places[places >= 0], minlength=len(weight))
    found: np.ndarray = np.where(places >= 0, (weight / np.maximum(sharing, 1))[places], 0.0)
    return found


class Sampler:
    """Draws the weights of each tree's rows: whole numbers, in units of `unit`.

    n_draws         the size of each sample
    most            upper bound of the sum of a tree's weights, in units
    counted         whether weights are small enough to be counted
    weights_count   whether weights are equal to numbers of samples
    """

    def __init__(self, training: ForestTraining) -> None:
        self._sampled = training.sampled
        self._targets = training.targets
        has_draws = training.sampled.n_draws is not None
        self._cumulative = training.sampled.cumulative if has_draws else None
        self._balanced = training.balanced
        self._factors: np.ndarray | None = None
        self.unit, self.counted, self.weights_count = 1.0, True, True
        self.n_draws = int(training.sampled.n_draws or training.targets.samples.sum())
        self.most = self.n_draws
        if self._cumulative is None:
            self.unit, self.counted = training.targets.unit, training.targets.counted
            self.most = int(training.targets.weight.sum())
            self.weights_count = np.array_equal(training.targets.weight, training.targets.samples)
        elif training.balanced:
            self.unit = 2.0 ** (int(np.frexp(float(self.n_draws))[1]) - 51)
            self.counted, self.most = False, round(self.n_draws / self.unit)
            self.weights_count = False
        elif training.factors is not None:
            most = float(training.factors.max()) * self.n_draws
            units, self.unit, self.counted = whole_weights(np.append(training.factors, most))
            self._factors, self.most = units[:-1], int(units[-1])
            self.weights_count = False
        else:
            self.counted = self.n_draws < 2**31

    def weights(self, tree: int) -> tuple[np.ndarray, np.ndarray]:
        """(weight, samples) of each row, int64 (m,)."""
        if self._cumulative is None:
            return self._targets.weight, self._targets.samples
        samples = multiplicities(self._cumulative, self._sampled.seed, tree, self._sampled.n_draws)
        if self._balanced:
            return self._balanced_weights(samples), samples
        if self._factors is not None:
            return samples * self._factors, samples
        return samples, samples

    @property
    def is_plain(self) -> bool:
        """Whether the weights of all trees are numbers of samples, with the same sum."""
        return self.weights_count and self.unit == 1.0

    def weights_of_trees(self, trees: np.ndarray) -> np.ndarray:
        """The weights of the rows in several trees, int64 (trees, m), where they are plain."""
        if self._cumulative is None:
            return np.repeat(self._targets.weight[None, :], len(trees), axis=0)
        sampled = self._sampled
        return multiplicities_of_samples(self._cumulative, sampled.seed, trees, sampled.n_draws)

    def left_out(self, tree: int) -> np.ndarray:
        """How many units of each row are not in the sample of a tree, int32 (m,)."""
        if self._cumulative is None:
            return np.zeros(len(self._targets.weight), np.int32)
        return units_left_out(self._cumulative, self._sampled.seed, tree, self._sampled.n_draws)

    def _balanced_weights(self, samples: np.ndarray) -> np.ndarray:
        """For each output, all classes in the sample get the same weight, as in scikit-learn."""
        starts = self._targets.starts
        n_outputs = len(starts) - 1
        labels = self._targets.labels.reshape(-1, n_outputs)
        weight = samples.astype(np.float64)
        for o in range(n_outputs):
            codes = labels[:, o] - starts[o]
            counts = np.bincount(codes, weights=samples, minlength=starts[o + 1] - starts[o])
            present = counts > 0
            factors = np.where(present, samples.sum() / np.maximum(counts, 1) / present.sum(), 0.0)
            weight *= factors[codes]
        units = np.rint(weight / self.unit)
        return np.where(samples > 0, np.maximum(units, 1.0), 0.0).astype(np.int64)
