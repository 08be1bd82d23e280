"""Bins by refinement are those of all distinct values, whatever the sample."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ensemble.odd_columns import KINDS, column

from margrove.dask.boosting import bin_refinement as quantiles
from margrove.dask.boosting.bins import columns_of_partitions
from margrove.dask.boosting.remote_rows import rows_by_partition
from margrove.ensemble.gradient.hist import bin_refinement as gradient_cells


def bins_by(X, weight, n_categories, max_bins, lengths, *, n_splitters=None):
    """The codes of X in partitions: by all distinct values, or by refinement."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    partitions = [X[start:end] for start, end in itertools.pairwise(ends)]
    weights = [None] * len(partitions) if weight is None else np.split(weight, ends[1:-1])
    rows = rows_by_partition(np.arange(len(X)), ends)

    def map_each(function, arguments):
        return [
            function(partition, *others)
            for partition, others in zip(partitions, arguments, strict=True)
        ]

    def submit(function, *arguments):
        return function(*arguments)

    if n_splitters is None:
        found = columns_of_partitions(map_each, submit, rows, weights, {}, n_categories, max_bins)
        return [column for block in found for column in block]
    usual, gradient_cells.N_SPLITTERS = gradient_cells.N_SPLITTERS, n_splitters
    try:
        return quantiles.refined_columns(
            map_each, submit, list, rows, len(X), weights, {}, n_categories, max_bins
        )
    finally:
        gradient_cells.N_SPLITTERS = usual


def require_same_bins(X, weight, n_categories, max_bins, lengths, n_splitters):
    wanted = bins_by(X, weight, n_categories, max_bins, lengths)
    found = bins_by(X, weight, n_categories, max_bins, lengths, n_splitters=n_splitters)
    for codes, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(codes.lows, other.lows)
        np.testing.assert_array_equal(codes.highs, other.highs)
        np.testing.assert_array_equal(codes.of_categories, other.of_categories)
        assert (codes.omitted, codes.n_entries) == (other.omitted, other.n_entries)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    n=st.integers(1, 600),
    max_bins=st.sampled_from([2, 3, 16, 255]),
    n_splitters=st.sampled_from([1, 2, 10, 100]),
    is_weighted=st.booleans(),
)
def test_any_column(seed, kinds, n, max_bins, n_splitters, is_weighted):
    rng = np.random.default_rng(seed)
    X = np.column_stack([column(kind, n, rng) for kind in kinds])
    weight = rng.integers(1, 1000, n).astype(float) if is_weighted else None
    lengths = [n // 3, 0, n // 2, n - n // 3 - n // 2]
    none = np.zeros(len(kinds), np.int64)
    require_same_bins(X, weight, none, max_bins, lengths, n_splitters)


def test_a_heavy_value_that_the_sample_has_missed():
    X = np.arange(1000.0)[:, None] / 7
    X[1:900:2] = 3.14159  # every second row, where the sample has the others
    require_same_bins(X, None, np.zeros(1, np.int64), 10, [1000], 500)


def test_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 400, 2000), rng.integers(0, 3, 2000)]).astype(float)
    X[::9, 0] = np.nan
    require_same_bins(X, None, np.array([400, 3]), 255, [500, 1500], 16)


def test_few_values_are_brought_together():
    rng = np.random.default_rng(0)
    counter = gradient_cells.CellCounter(np.sort(rng.random(8192)))
    counter.add(rng.random(100_000))
    cells = gradient_cells.without_empty(counter.cells())
    chosen = gradient_cells.cells_to_open(cells, 255)
    assert cells.rows[chosen].sum() < 0.1 * 100_000
