"""Bins by refinement are equal to the bins of a sorted column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.ensemble.odd_columns import KINDS, column

from margrove.ensemble.gradient.hist.binning import bin_refinement as gradient_cells
from margrove.ensemble.gradient.hist.binning import columns as gradient_columns


def both_ways(monkeypatch, values, max_bins, weight, n_splitters):
    """The column coded by sorting and by refinement."""
    found = []
    for most, splitters in ((1 << 60, 8192), (-1, n_splitters)):
        monkeypatch.setattr(gradient_columns, "_MANY_ROWS", most)
        monkeypatch.setattr(gradient_columns, "are_few_integers", lambda values: False)
        monkeypatch.setattr(gradient_cells, "N_SPLITTERS", splitters)
        found.append(gradient_columns.code_column(values, 0, max_bins, weight))
    return found


def assert_same_columns(one, other) -> None:
    for name in ("codes", "rows", "lows", "highs"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.omitted == other.omitted


@pytest.mark.nojit
@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 1500),
    max_bins=st.sampled_from([2, 3, 16, 255]),
    n_splitters=st.sampled_from([1, 2, 10, 100]),
    is_weighted=st.booleans(),
)
@example(seed=142, kind="infinite", n=1, max_bins=2, n_splitters=1, is_weighted=False)
def test_any_column(seed, kind, n, max_bins, n_splitters, is_weighted) -> None:
    rng = np.random.default_rng(seed)
    values = column(kind, n, rng)
    weight = rng.integers(1, 1000, n).astype(float) if is_weighted else None
    with pytest.MonkeyPatch.context() as patch:
        assert_same_columns(*both_ways(patch, values, max_bins, weight, n_splitters))


def test_a_heavy_value_that_the_sample_has_missed(monkeypatch) -> None:
    values = np.arange(1000.0) / 7
    values[1:900:2] = 3.14159  # every second row; the sample has the others
    assert_same_columns(*both_ways(monkeypatch, values, 10, None, 500))


def test_many_rows_take_that_way(monkeypatch) -> None:
    values = np.random.default_rng(0).standard_normal(gradient_columns._MANY_ROWS + 1)
    refined = gradient_columns.code_column(values, 0, 255, None)
    monkeypatch.setattr(gradient_columns, "_MANY_ROWS", len(values))
    monkeypatch.setattr(gradient_columns, "refined_cells", None)
    assert_same_columns(refined, gradient_columns.code_column(values, 0, 255, None))
    with pytest.raises(TypeError):
        gradient_columns.code_column(np.append(values, 0.5), 0, 255, None)


@given(
    values=st.lists(st.floats(width=16), max_size=40),
    borders=st.lists(st.floats(allow_nan=False, width=16), max_size=40),
)
def test_codes_by_where_bins_begin(values, borders) -> None:
    lows = np.unique(np.array([-np.inf, *borders]))
    values = np.array(values)
    expected = np.where(np.isnan(values), len(lows), np.searchsorted(lows, values, "right") - 1)
    np.testing.assert_array_equal(gradient_cells.code_values(values, lows), expected)
