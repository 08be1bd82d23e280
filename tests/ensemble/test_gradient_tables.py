"""Binned tables of histogram boosting: bins of about equal weight, by rows and by columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.gradient_trees import codes_by_rows, codes_of

from margrove.ensemble.gradient.hist.binning import tables as gradient_tables
from margrove.ensemble.gradient.hist.binning.tables import (
    COLUMNS_OF_A_BLOCK,
    MOST_BINS,
    bins_and_table,
)

NUMBERS = np.zeros(50, np.int64)


def coded(X, n_categories=None, **settings):
    """Bins and codes (n, d); `by_rows` and `by_columns` of the table must agree."""
    n_categories = NUMBERS[: X.shape[1]] if n_categories is None else np.asarray(n_categories)
    bins, table = bins_and_table(X, n_categories, **settings)
    codes = codes_of(table)
    assert np.array_equal(codes, codes_by_rows(table))
    return bins, codes, table


def assert_same_bins(one, other) -> None:
    assert np.array_equal(one.n_codes, other.n_codes)
    for j in range(one.n_features):
        assert np.array_equal(one.lows[j], other.lows[j])
        assert np.array_equal(one.highs[j], other.highs[j])
        assert np.array_equal(one.codes[j], other.codes[j])


def assert_codes_say_where_values_lie(bins, codes, X) -> None:
    for j in range(X.shape[1]):
        missing = np.isnan(X[:, j])
        assert (codes[missing, j] == bins.n_codes[j]).all()
        own = codes[~missing, j]
        assert (own < bins.n_codes[j]).all()
        lows, highs = bins.lows[j], bins.highs[j]
        assert (lows <= highs).all()
        assert (highs[:-1] < lows[1:]).all()
        assert (lows[own] <= X[~missing, j]).all()
        assert (X[~missing, j] <= highs[own]).all()
        assert np.array_equal(np.unique(own), np.arange(bins.n_codes[j]))


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_few_values_have_a_code_each() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(-3, 4, 60), rng.choice([-np.inf, -1.5, 0.0, 1e300, np.inf], 60),
              np.full(60, 7.5), np.full(60, np.nan)].astype(float)  # fmt: skip
    X[rng.random(60) < 0.2, 0] = np.nan
    bins, codes, _ = coded(X)
    assert bins.n_codes.tolist() == [7, 5, 1, 0]
    assert_codes_say_where_values_lie(bins, codes, X)
    for j in range(4):
        values, ranks = np.unique(X[:, j], return_inverse=True)
        assert np.array_equal(codes[:, j], ranks)  # NaN comes last
        assert np.array_equal(bins.lows[j], values[~np.isnan(values)])
        assert np.array_equal(bins.highs[j], bins.lows[j])


@st.composite
def columns(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(1, 400))
    values = [rng.normal(size=n), rng.normal(size=n).round(1), rng.pareto(0.7, n).round(1),
              rng.integers(0, 3, n), rng.choice([0.0, np.inf, -np.inf, 1.0], n),
              np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n))]  # fmt: skip
    X = np.stack(values, axis=1)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    return X, draw(st.integers(2, MOST_BINS))


@given(columns())
@settings(max_examples=60)
def test_bins_are_never_too_many_and_hold_what_they_say(case) -> None:
    X, max_bins = case
    bins, codes, _ = coded(X, max_bins=max_bins)
    assert bins.n_codes.max() <= max_bins
    assert_codes_say_where_values_lie(bins, codes, X)
    for j in range(X.shape[1]):
        n_values = len(np.unique(X[~np.isnan(X[:, j]), j]))
        assert bins.n_codes[j] == n_values or n_values > max_bins


@pytest.mark.parametrize("max_bins", [2, 16, 255])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_hold_about_equal_weight(max_bins, weighted) -> None:
    rng = np.random.default_rng(max_bins)
    x = rng.normal(size=(5000, 1))
    weight = rng.random(5000) + 0.5 if weighted else np.ones(5000)
    bins, codes, _ = coded(x, max_bins=max_bins, weight=weight if weighted else None)
    assert bins.n_codes[0] == max_bins
    held = np.bincount(codes[:, 0], weights=weight)
    fair = weight.sum() / max_bins
    assert np.abs(held - fair).max() <= weight.max()


@pytest.mark.parametrize("seed", range(8))
def test_heavy_values_have_a_bin_of_their_own(seed) -> None:
    rng = np.random.default_rng(seed)
    max_bins, n_heavy = 24, 4
    light = rng.normal(size=1500)
    heavy = rng.choice(light, n_heavy, replace=False)
    x = np.concatenate([light, np.repeat(heavy, 200)])[:, None]
    bins, codes, _ = coded(x, max_bins=max_bins)
    assert bins.n_codes[0] <= max_bins
    for own in heavy:
        code = codes[np.flatnonzero(x[:, 0] == own)[0], 0]
        assert (x[codes[:, 0] == code] == own).all()
    held = np.bincount(codes[:, 0])
    is_light = held < 200
    fair = len(light) / (max_bins - n_heavy)
    assert held[is_light].max() <= 2 * fair + 1


@given(columns(), st.integers(0, 10**6))
@settings(max_examples=30)
def test_weights_are_rows_repeated(case, seed) -> None:
    X, max_bins = case
    times = np.random.default_rng(seed).integers(1, 5, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    bins, codes, _ = coded(X, max_bins=max_bins, weight=times.astype(float))
    others, repeated, _ = coded(X[rows], max_bins=max_bins)
    assert_same_bins(bins, others)
    assert np.array_equal(codes[rows], repeated)


@given(columns(), st.integers(0, 10**6), st.sampled_from([None, "whole", "any"]))
@settings(max_examples=40)
def test_the_order_of_rows_does_not_matter(case, seed, weights) -> None:
    X, max_bins = case
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    weight = {None: None, "whole": rng.integers(1, 9, len(X)) * 1.0, "any": rng.random(len(X))}
    one = coded(X, max_bins=max_bins, weight=weight[weights])
    mixed = None if weights is None else weight[weights][order]
    other = coded(X[order], max_bins=max_bins, weight=mixed)
    assert_same_bins(one[0], other[0])
    assert np.array_equal(one[1][order], other[1])


@pytest.mark.parametrize("seed", [24, 68, 187, 337, 887, 966])
def test_weights_add_up_to_the_same_in_any_order(seed) -> None:
    """Sums of tenths are rounded differently in each order, and reach limits exactly."""
    rng = np.random.default_rng(seed)
    x, weight = rng.integers(0, 9, 30) * 1.0, rng.integers(1, 30, 30) / 10
    one = coded(x[:, None], max_bins=6, weight=weight)
    other = coded(x[::-1, None].copy(), max_bins=6, weight=weight[::-1].copy())
    assert_same_bins(one[0], other[0])
    few = np.where(np.arange(30) % 4, 0.0, x + 1)[:, None]
    dense, sparse = (coded(own, max_bins=4, weight=weight)[0] for own in (few, sp.csr_matrix(few)))
    assert_same_bins(dense, sparse)


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 20)) < 0.2, 0.0, rng.normal(size=(500, 20)))
    for own in (X, sp.csr_matrix(X)):
        one, other = (bins_and_table(own, NUMBERS[:20], max_bins=40, n_threads=k) for k in (1, 3))
        assert_same_bins(one[0], other[0])
        for name in one[1]._fields:
            assert np.array_equal(getattr(one[1], name), getattr(other[1], name))


# -- sparse matrices -------------------------------------------------------------------------------


@st.composite
def sparse_tables(draw):
    """Columns with no, few, many or only stored entries; some entries are zero or missing."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(1, 300))
    shares = np.array([0.0, 0.02, 0.1, 0.25, 0.32, 0.6, 1.0])
    is_stored = rng.random((n, len(shares))) < shares
    values = rng.normal(size=is_stored.shape).round(draw(st.integers(0, 3)))
    values[rng.random(values.shape) < draw(st.sampled_from([0.0, 0.1]))] = np.nan
    rows, cols = np.nonzero(is_stored)
    matrix = sp.csr_matrix((values[rows, cols], (rows, cols)), is_stored.shape)
    return matrix, draw(st.integers(2, 60)), rng


@given(sparse_tables(), st.sampled_from([None, "whole", "any"]))
@settings(max_examples=60)
def test_sparse_matrices_have_the_codes_of_dense_ones(case, weights) -> None:
    matrix, max_bins, rng = case
    n = matrix.shape[0]
    weight = {None: None, "whole": rng.integers(1, 9, n) * 1.0, "any": rng.random(n) + 0.01}
    given = {"max_bins": max_bins, "weight": weight[weights]}
    bins, codes, table = coded(matrix, **given)
    others, dense, _ = coded(matrix.toarray(), **given)
    assert_same_bins(bins, others)
    assert np.array_equal(codes, dense)
    assert table.n_codes[table.places].tolist() == bins.n_codes.tolist()


def assert_is_in_order(table) -> None:
    """The arrays of a table are consistent."""
    d, n_columns = len(table.features), len(table.cells_at)
    assert np.array_equal(table.places[table.features], np.arange(d))
    assert (table.omitted[: table.n_dense] == -1).all()
    assert (table.omitted[table.n_dense :] >= 0).all()
    assert (np.diff(table.first) > table.n_codes).all()
    assert table.n_cells == table.first[-1]
    listed = np.arange(table.places_at[-1], d)
    expected = np.full(len(listed), -1)
    if len(table.by_columns) > n_columns:  # with bytes for partitioning
        expected = np.arange(n_columns, len(table.by_columns))
    assert np.array_equal(table.columns[listed], expected)
    assert (table.bytes_at[listed] == 0).all()
    for k in range(n_columns):
        own = np.flatnonzero(table.columns == k)
        assert np.array_equal(own, np.arange(table.places_at[k], table.places_at[k + 1]))
        assert np.array_equal(table.bytes_at[own], table.first[own] - table.cells_at[k])
    for k in range(len(table.list_starts) - 1):
        rows = table.list_rows[table.list_starts[k] : table.list_starts[k + 1]]
        assert (np.diff(rows) > 0).all()


@pytest.mark.nojit
def test_columns_of_one_common_code_leave_it_out() -> None:
    rng = np.random.default_rng(1)
    X = np.c_[rng.random(100) < 0.1, rng.normal(size=100), rng.random(100) > 0.1,
              np.where(rng.random(100) < 0.8, np.nan, 3.0), np.ones(100)].astype(float)  # fmt: skip
    for own in (X, sp.csr_matrix(X)):
        _, codes, table = coded(own)
        assert_is_in_order(table)
        assert table.features[0] == 1
        if own is X:
            assert table.n_dense == 1
            commonest = [np.argmax(np.bincount(codes[:, j])) for j in table.features[1:]]
            assert table.omitted[1:].tolist() == commonest


@pytest.mark.nojit
def test_columns_that_never_meet_share_a_byte() -> None:
    rng = np.random.default_rng(0)
    n = 400
    labels = rng.integers(0, 30, n)
    X = np.where(labels[:, None] == np.arange(30), rng.integers(1, 4, (n, 30)), 0.0)
    X = np.c_[X, np.full(n, 7.0), np.full(n, np.nan)]  # nor do constant columns
    for own in (X, sp.csr_matrix(X)):
        bins, codes, table = coded(own)
        assert_is_in_order(table)
        assert_codes_say_where_values_lie(bins, codes, X)
        dense = table.n_dense  # in sparse matrices zero is the most frequent value
        assert len(table.by_columns) == dense + 1
        assert len(table.list_rows) == 0


@pytest.mark.parametrize("most_bytes", [0, 1 << 24])
def test_columns_that_meet_often_are_lists(most_bytes, monkeypatch) -> None:
    monkeypatch.setattr(gradient_tables, "_MOST_BYTES_OF_LISTS", most_bytes)
    rng = np.random.default_rng(0)
    X = rng.integers(1, 4, (500, 30)) * (rng.random((500, 30)) < 0.1)
    X[:, 3] = rng.integers(0, 9, 500)
    for own in (X.astype(float), sp.csr_matrix(X.astype(float))):
        bins, codes, table = coded(own)
        assert_is_in_order(table)
        assert_codes_say_where_values_lie(bins, codes, X.astype(float))
        assert len(table.cells_at) == table.by_rows.shape[1] == table.n_dense == 1
        assert len(table.by_columns) == (30 if most_bytes else 1)
        assert (
            len(table.list_rows) == len(table.entries) == np.count_nonzero(X[:, np.arange(30) != 3])
        )


@pytest.mark.parametrize("n", [300, 9000])  # the larger one is coded in passes
@pytest.mark.parametrize("has_copies", [False, True])
def test_columns_that_cannot_be_split_are_left_out(n, has_copies) -> None:
    """Those of which fewer than `least_samples` samples have another code than the commonest."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, 130))
    for j in range(130):
        rows = rng.choice(n, j % 26, replace=False)
        X[rows, j] = rng.integers(1, 4, len(rows)) if j % 3 else np.nan
    X[:, 5] = rng.normal(size=n)
    X[:, 7] += 2.0  # zero is rare
    copies = rng.integers(1, 4, n) if has_copies else None
    samples = np.ones(n, np.int64) if copies is None else copies
    wanted = [
        j
        for j in range(130)
        if samples.sum() - max(samples[_is_same(X[:, j], v)].sum() for v in np.unique(X[:, j]))
        >= 20
    ]
    for own in (X, sp.csr_matrix(X)):
        given = {"copies": copies, "n_threads": 2}
        whole_bins, whole = bins_and_table(own, np.zeros(130, np.int64), **given)
        bins, table = bins_and_table(own, np.zeros(130, np.int64), least_samples=20, **given)
        kept = np.sort(table.features)
        if own is X:
            assert kept.tolist() == wanted
        else:  # the entries of a sparse matrix are counted, and zero may be rare
            assert set(wanted) <= set(kept.tolist())
        assert 30 < len(kept) < 100
        assert np.array_equal(table.places[table.features], np.arange(len(kept)))
        left_out = np.setdiff1d(np.arange(130), kept)
        assert (table.places[left_out] == -1).all()
        _, short = bins_and_table(own[:, kept], np.zeros(len(kept), np.int64), **given)
        renumbered = table._replace(features=np.searchsorted(kept, table.features))
        assert np.array_equal(codes_of(renumbered), codes_of(short))
        assert np.array_equal(codes_of(renumbered), codes_by_rows(renumbered))
        assert np.array_equal(codes_of(renumbered), codes_of(whole)[:, kept])
        for j in kept:
            assert np.array_equal(bins.lows[j], whole_bins.lows[j])


def _is_same(values, value):
    return np.isnan(values) if np.isnan(value) else values == value


def test_more_columns_than_a_block() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2 * COLUMNS_OF_A_BLOCK + 20))
    bins, codes, table = coded(X, np.zeros(X.shape[1], np.int64))
    assert_is_in_order(table)
    assert (bins.n_codes == 255).all()
    assert table.n_cells > 2 * 2**16
    assert_codes_say_where_values_lie(bins, codes, X)


# -- categories ------------------------------------------------------------------------------------


@pytest.mark.nojit
def test_categories_have_a_code_each() -> None:
    x = np.array([5, 0, 2, 2, np.nan, 5, 7, 0])[:, None]
    bins, codes, table = coded(x, [9])
    assert codes[:, 0].tolist() == [2, 0, 1, 1, 4, 2, 3, 0]
    assert bins.codes[0].tolist() == [0, -1, 1, -1, -1, 2, -1, 3, -1]
    assert table.is_category.tolist() == [True]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_categories", "max_bins"), [(400, 255), (30, 8), (255, 255)])
def test_rare_categories_share_a_code(n_categories, max_bins, weighted) -> None:
    rng = np.random.default_rng(2)
    shares = rng.pareto(1.0, n_categories) + 0.01
    x = rng.choice(n_categories, 8000, p=shares / shares.sum()).astype(float)
    x[: n_categories - 3] = np.arange(n_categories - 3)  # almost all entries are stored
    x[x >= n_categories - 3] = 0
    x[-40:] = np.nan
    weight = rng.integers(1, 6, len(x)) * 1.0 if weighted else np.ones(len(x))
    given = {"max_bins": max_bins, "weight": weight if weighted else None}
    bins, codes, _ = coded(x[:, None], [n_categories], **given)
    there = ~np.isnan(x)
    counts = np.bincount(x[there].astype(int), weights=weight[there], minlength=n_categories)
    known = int((counts > 0).sum())
    assert bins.n_codes[0] == min(known, max_bins)
    assert (codes[~there] == bins.n_codes[0]).all()
    assert (bins.codes[0][counts == 0] == -1).all()
    assert np.array_equal(codes[there, 0], bins.codes[0][x[there].astype(int)])
    if known > max_bins:
        frequent = np.lexsort((np.arange(n_categories), -counts))[: max_bins - 1]
        rare = np.setdiff1d(np.flatnonzero(counts), frequent)
        assert np.array_equal(np.sort(bins.codes[0][frequent]), np.arange(max_bins - 1))
        assert (bins.codes[0][rare] == max_bins - 1).all()
        assert counts[rare].max() <= counts[frequent].min()
