"""The bootstrap against its formulas, and the distribution of its resamples."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from contextlib import contextmanager
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracles import bootstrap as oracle

from margrove import Perceptron, watch
from margrove.ensemble.bootstrap import draws as bootstrap_draws
from margrove.ensemble.bootstrap.draws import plan_resampling
from margrove.ensemble.bootstrap.intervals import interval_of
from margrove.ensemble.bootstrap.statistic import BootstrapResult, bootstrap
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
)

METHODS = ["percentile", "basic", "bca"]
HEIGHTS = np.random.default_rng(7).gamma(3.0, size=23)


def plan(n_rows, n_resamples=50, seed=5, scheme="ordinary", **options):
    return plan_resampling(n_rows, n_resamples=n_resamples, seed=seed, scheme=scheme, **options)


def rows_of(n_rows, n_resamples=50, seed=0, scheme="ordinary", **options) -> np.ndarray:
    """The rows of each resample; all have the same number of rows."""
    made = plan(n_rows, n_resamples, seed, scheme, **options)
    return np.stack([made.resample(b).rows for b in range(n_resamples)])


@contextmanager
def all_warnings():
    """All warnings, in order."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield told


# -- the lecture ---------------------------------------------------------------------------------


def test_the_median_of_the_lecture() -> None:
    """S_mean = 1/B sum median(B_b), S_var = 1/B sum (median(B_b) - S_mean)^2."""
    x = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    result = bootstrap(x, np.median, n_resamples=300, random_state=0)
    medians = []
    for b in range(300):
        drawn = sorted(x[row] for row in plan(6, 300, seed=0).resample(b).rows)
        medians.append((drawn[2] + drawn[3]) / 2)
    assert result.resamples.tolist() == medians
    assert result.estimate == 6.0
    assert result.mean == pytest.approx(oracle.mean(medians), rel=1e-14)
    assert result.variance == pytest.approx(oracle.variance(medians), rel=1e-13)


def test_the_variance_of_the_median_is_that_of_all_resamples_there_are() -> None:
    """With three points all 27 resamples can be listed."""
    x = [0.0, 1.0, 5.0]
    medians = [Fraction(int(np.median(drawn))) for drawn in product(x, repeat=3)]
    centre = sum(medians) / 27
    exact = sum((m - centre) ** 2 for m in medians) / 27
    n = 20_000
    result = bootstrap(
        x, np.median, n_resamples=n, random_state=1, vectorized=True, method="percentile"
    )
    fourth = sum((m - centre) ** 4 for m in medians) / 27
    assert abs(result.mean - float(centre)) < 4 * np.sqrt(float(exact) / n)
    assert abs(result.variance - float(exact)) < 4 * np.sqrt(float(fourth - exact**2) / n)


# -- figures and intervals -----------------------------------------------------------------------


def test_moments_are_those_of_numpy() -> None:
    result = bootstrap(HEIGHTS, np.mean, random_state=3)
    assert result.mean == np.mean(result.resamples)
    assert result.variance == np.var(result.resamples)
    assert result.standard_error == np.sqrt(result.variance)
    assert result.bias == result.mean - result.estimate
    assert result.estimate == np.mean(HEIGHTS)


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=12),
    st.sampled_from([np.mean, np.std, np.median]),
    st.floats(0.5, 0.99),
    st.integers(0, 2**32 - 1),
)
@example([131073, 131073, 319543, 319543], np.std, 0.5, 0)  # jackknife values of rounding only
@settings(max_examples=40)
def test_intervals_are_the_textbooks(data, statistic, level, seed) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = bootstrap(
            data, statistic, n_resamples=60, confidence_level=level, random_state=seed
        )
    values, theta = result.resamples.tolist(), result.estimate
    if min(values) == max(values):
        return
    scale = max(map(abs, values))
    jackknife = [float(statistic(data[:i] + data[i + 1 :])) for i in range(len(data))]
    expected = {
        "percentile": oracle.percentile_interval(values, level),
        "basic": oracle.basic_interval(values, theta, level),
    }
    if max(jackknife) - min(jackknife) <= 1e-13 * max(map(abs, jackknife)):
        assert result.acceleration == 0.0
    else:
        a = oracle.acceleration([jackknife])
        assert result.acceleration == pytest.approx(a, rel=1e-6, abs=1e-9)
        if 0 < sum(v <= theta for v in values) + sum(v < theta for v in values) < 120:
            expected["bca"] = oracle.bca_interval(values, theta, [jackknife], level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for method, interval in expected.items():
            assert result.interval(method) == pytest.approx(interval, rel=1e-9, abs=1e-7 * scale)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("statistic", [np.mean, np.std, np.median, scipy.stats.skew])
def test_scipy_makes_the_same_intervals_of_the_same_resamples(method, statistic) -> None:
    ours = bootstrap(HEIGHTS, statistic, n_resamples=400, method=method, random_state=2)
    theirs = scipy.stats.bootstrap(
        (HEIGHTS,), statistic, n_resamples=0, method=method,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=ours.resamples),
    )  # fmt: skip
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-12)
    assert ours.standard_error * np.sqrt(400 / 399) == pytest.approx(theirs.standard_error)


def test_the_acceleration_of_strata_is_that_of_scipys_several_samples() -> None:
    x, y = HEIGHTS[:14], np.exp(HEIGHTS[14:])

    def difference(x, y, axis=-1):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    is_x = np.arange(23) < 14
    result = bootstrap(
        (np.concatenate([x, y]), is_x),
        lambda values, is_x: difference(values[is_x], values[~is_x]),
        stratify=is_x,
        random_state=0,
    )
    theirs = scipy.stats.bootstrap(
        (x, y), difference, n_resamples=0, method="BCa", vectorized=True,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=result.resamples),
    )  # fmt: skip
    assert (result.low, result.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-12)
    without = [
        [difference(np.delete(x, i), y) for i in range(14)],
        [difference(x, np.delete(y, i)) for i in range(9)],
    ]
    assert result.acceleration == pytest.approx(oracle.acceleration(without), rel=1e-10)


def test_the_acceleration_of_groups_leaves_out_whole_groups() -> None:
    groups = np.arange(23) % 6
    result = bootstrap(HEIGHTS, np.mean, groups=groups, random_state=0)
    without = [HEIGHTS[groups != group].mean() for group in range(6)]
    assert result.acceleration == pytest.approx(oracle.acceleration([without]), rel=1e-10)


def test_the_acceleration_of_a_series_leaves_out_blocks() -> None:
    result = bootstrap(HEIGHTS, np.mean, block_length=5, random_state=0)
    without = [np.delete(HEIGHTS, slice(k, k + 5)).mean() for k in range(0, 23, 5)]
    assert result.acceleration == pytest.approx(oracle.acceleration([without]), rel=1e-10)


def test_intervals_cover_the_mean_as_often_as_they_should() -> None:
    n_rows, n_trials, level = 30, 400, 0.9
    rng = np.random.default_rng(11)
    hits = dict.fromkeys(METHODS, 0)
    for trial in range(n_trials):
        result = bootstrap(
            rng.normal(size=n_rows), np.mean, n_resamples=400, confidence_level=level,
            vectorized=True, random_state=trial,
        )  # fmt: skip
        for method in METHODS:
            low, high = result.interval(method)
            hits[method] += low < 0.0 < high
    # the resamples' standard error has 1/n in place of 1/(n - 1), and the normal is not Student's t
    z = oracle.NORMAL.inv_cdf((1 + level) / 2) * np.sqrt((n_rows - 1) / n_rows)
    expected = 2 * scipy.stats.t.cdf(z, n_rows - 1) - 1
    noise = np.sqrt(expected * (1 - expected) / n_trials)
    for method in METHODS:
        assert abs(hits[method] / n_trials - expected) < 4 * noise, method


def test_the_standard_error_of_the_mean() -> None:
    """Over all resamples there are, it is sigma / sqrt(n), with 1/n in sigma."""
    for scheme in ("ordinary", "balanced"):
        result = bootstrap(
            HEIGHTS, np.mean, n_resamples=20_000, resampling=scheme, vectorized=True,
            method="percentile", random_state=0,
        )  # fmt: skip
        assert result.standard_error == pytest.approx(HEIGHTS.std() / np.sqrt(23), rel=0.02)


def test_another_level_or_method_needs_no_new_resamples() -> None:
    made = {m: bootstrap(HEIGHTS, np.std, method=m, random_state=4) for m in METHODS}
    for method in METHODS:
        assert made["bca"].interval(method) == (made[method].low, made[method].high)
        narrow, wide = made["bca"].interval(method, 0.5), made["bca"].interval(method, 0.99)
        assert wide.low < narrow.low < narrow.high < wide.high
    with pytest.raises(ValueError, match=r"acceleration.*method='bca'"):
        made["basic"].interval("bca")
    with pytest.raises(ValueError, match="'method' parameter of interval"):
        made["bca"].interval("t")
    with pytest.raises(ValueError, match="'confidence_level' parameter of interval"):
        made["bca"].interval(confidence_level=95)


def test_statistics_of_several_numbers() -> None:
    table = np.c_[HEIGHTS, HEIGHTS**2, -HEIGHTS]

    def moments(rows):
        return np.array([rows.mean(axis=0), rows.std(axis=0)])

    for method in METHODS:
        result = bootstrap(table, moments, n_resamples=80, method=method, random_state=1)
        assert result.resamples.shape == (80, 2, 3)
        assert np.array_equal(result.estimate, moments(table))
        for i, j in np.ndindex(2, 3):
            one = bootstrap(
                table, lambda rows, at=(i, j): moments(rows)[at],
                n_resamples=80, method=method, random_state=1,
            )  # fmt: skip
            assert (result.low[i, j], result.high[i, j]) == (one.low, one.high)
            assert (result.bias[i, j], result.variance[i, j]) == (one.bias, one.variance)


# -- resamples -----------------------------------------------------------------------------------


@pytest.mark.nojit
def test_a_resample_depends_on_the_seed_and_its_number_only() -> None:
    few, many = plan(17, 10), plan(17, 1000)
    assert np.array_equal(few.resample(7).rows, many.resample(7).rows)
    assert not np.array_equal(few.resample(7).rows, few.resample(8).rows)
    assert not np.array_equal(few.resample(7).rows, plan(17, 10, seed=6).resample(7).rows)


def test_ordinary_draws_are_uniform_and_independent() -> None:
    drawn = rows_of(11, 4000, seed=9)
    counts = np.bincount(drawn.ravel(), minlength=11)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    pairs = np.bincount((drawn[:, :-1] * 11 + drawn[:, 1:]).ravel(), minlength=121)
    assert scipy.stats.chisquare(pairs).pvalue > 1e-3
    across = np.bincount((drawn[:-1] * 11 + drawn[1:]).ravel(), minlength=121)
    assert scipy.stats.chisquare(across).pvalue > 1e-3


@pytest.mark.nojit
@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_balanced_resamples_hold_each_row_equally_often(n_rows, n_resamples, seed) -> None:
    made = plan(n_rows, n_resamples, seed, "balanced")
    drawn = np.concatenate([made.resample(b).rows for b in range(n_resamples)])
    assert np.bincount(drawn, minlength=n_rows).tolist() == [n_resamples] * n_rows


def test_balanced_resamples_have_no_bias_of_the_mean() -> None:
    result = bootstrap(HEIGHTS, np.mean, resampling="balanced", random_state=0)
    assert abs(result.bias) < 1e-14 * HEIGHTS.max()
    assert abs(bootstrap(HEIGHTS, np.mean, random_state=0).bias) > 1e-4


def test_balanced_resamples_of_fewer_rows_groups_and_strata() -> None:
    drawn = rows_of(12, 30, scheme="balanced", n_draws=8)
    assert np.bincount(drawn.ravel()).tolist() == [20] * 12
    with pytest.raises(ValueError, match=r"not a multiple of 12. Use n_resamples=36"):
        rows_of(12, 31, scheme="balanced", n_draws=8)
    strata = np.arange(12) % 3
    drawn = rows_of(12, 30, scheme="balanced", stratify=strata)
    assert np.bincount(drawn.ravel()).tolist() == [30] * 12
    assert np.array_equal(strata[drawn], np.broadcast_to(strata, (30, 12)))
    drawn = rows_of(12, 30, scheme="balanced", groups=strata)
    assert np.bincount(drawn.ravel()).tolist() == [30] * 12


def test_balanced_draws_vary_like_ordinary_ones() -> None:
    """The count of a row is hypergeometric: variance (1 - 1/n) (1 - 1/B) N / (N - 1), N = n B."""
    n, B = 20, 2000
    drawn = rows_of(n, B, seed=3, scheme="balanced")
    counts = np.stack([np.bincount(rows, minlength=n) for rows in drawn])
    exact = n * (1 / n) * (1 - 1 / n) * (n * B - n) / (n * B - 1)
    assert counts.var() == pytest.approx(exact, rel=0.03)
    lag = np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]
    assert abs(lag) < 4 / np.sqrt(n * B)


def test_strata_keep_their_sizes() -> None:
    strata = np.array(list("abacabadab"))
    drawn = rows_of(10, 40, stratify=strata)
    assert np.array_equal(strata[drawn], np.broadcast_to(strata, (40, 10)))
    assert len({tuple(rows) for rows in drawn}) > 30


def test_groups_stay_whole() -> None:
    groups = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
    made = plan(10, 60, groups=groups)
    sizes = set()
    for b in range(60):
        rows = made.resample(b).rows
        counts = np.bincount(rows, minlength=10)
        for group in range(4):
            assert len(set(counts[groups == group])) == 1
        assert sum(counts[[0, 1, 3, 6]]) == 4  # as many groups as there are
        sizes.add(len(rows))
    assert len(sizes) > 3


def test_groups_within_strata() -> None:
    groups, strata = [0, 0, 1, 1, 2, 3, 3, 4], [0, 0, 0, 0, 1, 1, 1, 1]
    made = plan(8, 40, groups=groups, stratify=strata)
    for b in range(40):
        counts = np.bincount(made.resample(b).rows, minlength=8)
        assert counts[0] + counts[2] == 2
        assert counts[4] + counts[5] + counts[7] == 3
    with pytest.raises(ValueError, match="stratify splits a group: rows 0 and 1"):
        bootstrap(HEIGHTS[:8], np.mean, groups=groups, stratify=[0, 1, 0, 0, 1, 1, 1, 1])


@pytest.mark.parametrize(("length", "n_draws"), [(1, None), (4, None), (5, 7), (13, None)])
def test_blocks_of_a_series_are_consecutive_and_wrap_around(length, n_draws) -> None:
    drawn = rows_of(13, 600, block_length=length, n_draws=n_draws)
    assert drawn.shape == (600, n_draws or 13)
    for start in range(0, drawn.shape[1], length):
        block = drawn[:, start : start + length]
        assert (np.diff(block, axis=1) % 13 == 1).all()
    assert scipy.stats.chisquare(np.bincount(drawn[:, 0], minlength=13)).pvalue > 1e-3


def test_blocks_keep_what_neighbours_have_in_common() -> None:
    rng = np.random.default_rng(0)
    walk = np.convolve(rng.normal(size=420), np.ones(20) / 20, mode="valid")
    rows = bootstrap(walk, np.mean, method="percentile", random_state=0).standard_error
    blocks = bootstrap(walk, np.mean, block_length=40, method="percentile", random_state=0)
    assert blocks.standard_error > 2 * rows


def test_fewer_draws_than_rows() -> None:
    assert rows_of(20, n_draws=6).shape == (50, 6)
    small = bootstrap(
        HEIGHTS, np.mean, n_draws=6, n_resamples=4000, vectorized=True, random_state=0
    )
    assert small.standard_error == pytest.approx(HEIGHTS.std() / np.sqrt(6), rel=0.05)


def test_bayesian_weights_are_uniform_on_the_simplex() -> None:
    made = plan(5, 4000, scheme="bayesian")
    weights = np.stack([made.resample(b).weights for b in range(4000)])
    assert (weights > 0).all()
    assert np.allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    # each weight of a uniform point of the simplex is Beta(1, n - 1)
    assert scipy.stats.kstest(weights[:, 2], scipy.stats.beta(1, 4).cdf).pvalue > 1e-3
    assert np.corrcoef(weights.T)[0, 1] == pytest.approx(-0.25, abs=0.06)


def test_bayesian_bootstrap_of_the_mean() -> None:
    """Its variance is sum (x - mean)^2 / n / (n + 1) (Rubin 1981)."""
    result = bootstrap(
        HEIGHTS, np.average, resampling="bayesian", n_resamples=8000, vectorized=True,
        random_state=0,
    )  # fmt: skip
    assert result.estimate == pytest.approx(HEIGHTS.mean(), rel=1e-14)
    assert result.variance == pytest.approx(HEIGHTS.var() / 24, rel=0.06)
    ordinary = bootstrap(HEIGHTS, np.mean, random_state=0)
    assert result.acceleration == pytest.approx(ordinary.acceleration, rel=1e-9)


def test_bayesian_weights_of_strata_and_groups() -> None:
    strata, groups = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 2, 2])
    by_stratum = plan(5, scheme="bayesian", stratify=strata)
    by_group = plan(5, scheme="bayesian", groups=groups)
    for b in range(50):
        weights = by_stratum.resample(b).weights
        assert weights[:3].sum() == pytest.approx(0.6, abs=1e-15)
        weights = by_group.resample(b).weights
        assert weights[1] == weights[2]
        assert weights[3] == weights[4]
        assert weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_bayesian_statistics_must_take_weights() -> None:
    with pytest.raises(TypeError, match=r"keyword 'weights'.*median has the parameters \(a, axis"):
        bootstrap(HEIGHTS, np.median, resampling="bayesian")

    with pytest.raises(TypeError) as told:  # its signature cannot be read
        bootstrap(HEIGHTS, max, resampling="bayesian")
    assert told.value.__notes__ == ["The statistic was being computed for the data."]

    def any_keywords(rows, **options):
        return np.average(rows, **options)

    assert bootstrap(HEIGHTS, any_keywords, resampling="bayesian", random_state=0).low > 0


# -- how the statistic is called -----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"resampling": "balanced"},
        {"stratify": np.arange(23) % 4},
        {"groups": np.arange(23) // 4},
        {"block_length": 6},
        {"n_draws": 9},
    ],
)
def test_threads_and_batches_do_not_change_a_bit(options) -> None:
    one = bootstrap(HEIGHTS, np.std, n_resamples=120, random_state=6, **options)
    for changed in ({"n_jobs": 2}, {"n_jobs": 5}):
        other = bootstrap(HEIGHTS, np.std, n_resamples=120, random_state=6, **options, **changed)
        assert other.resamples.tobytes() == one.resamples.tobytes()
        assert (other.low, other.high, other.bias) == (one.low, one.high, one.bias)
    batch = bootstrap(
        HEIGHTS, np.std, n_resamples=120, random_state=6, vectorized=True, n_jobs=2, **options
    )
    assert np.allclose(batch.resamples, one.resamples, rtol=1e-13, atol=0)
    assert (batch.low, batch.high) == pytest.approx((one.low, one.high), rel=1e-12)


def test_vectorized_statistics_see_resamples_first_and_rows_last(monkeypatch) -> None:
    monkeypatch.setattr("margrove.ensemble.bootstrap.evaluation._CELLS_OF_A_BATCH", 1000)
    shapes = set()
    x, table = HEIGHTS, np.c_[HEIGHTS, HEIGHTS**2]

    def statistic(x, table, axis):
        assert axis == -1
        shapes.add((x.shape, table.shape))
        return table.mean(axis=axis) - np.median(x, axis=axis)[:, None]

    result = bootstrap((x, table), statistic, vectorized=True, n_resamples=40, random_state=0)
    assert shapes == {
        ((1, 23), (1, 2, 23)),
        ((14, 23), (14, 2, 23)),
        ((12, 23), (12, 2, 23)),
        ((14, 22), (14, 2, 22)),
        ((9, 22), (9, 2, 22)),
    }

    def plain(x, table):
        return table.mean(axis=0) - np.median(x)

    slow = bootstrap((x, table), plain, n_resamples=40, random_state=0)
    assert np.allclose(result.resamples, slow.resamples, rtol=1e-13, atol=0)
    assert np.allclose(result.acceleration, slow.acceleration, rtol=1e-9, atol=0)


def test_statistics_that_do_not_return_a_value_for_each_resample_of_a_batch() -> None:
    with pytest.raises(ValueError, match=r"must return 1 values for 1 resamples.*Got shape \(\)"):
        bootstrap(HEIGHTS, lambda rows, axis: rows.mean(), vectorized=True)


def test_rows_of_a_tuple_stay_together() -> None:
    x = np.arange(30)

    def both(x, y, frame, matrix):
        assert (y == -x).all()
        assert (frame["name"].to_numpy() == [f"row {i}" for i in x]).all()
        assert (matrix.toarray()[:, 0] == x).all()
        return x.sum()

    frame = pd.DataFrame({"name": [f"row {i}" for i in x]}, index=x[::-1])
    matrix = sp.coo_array(x[:, None])
    assert bootstrap((x, -x, frame, matrix), both, n_resamples=20).estimate == x.sum()


@pytest.mark.parametrize(
    "data",
    [
        HEIGHTS.tolist(),
        pd.Series(HEIGHTS, index=np.arange(23) % 2),
        pd.DataFrame({"height": HEIGHTS}),
        pl.Series("height", HEIGHTS),
        pl.DataFrame({"height": HEIGHTS}),
        pl.LazyFrame({"height": HEIGHTS}),
        HEIGHTS.astype(">f8"),
        np.repeat(HEIGHTS, 2)[::2],
    ],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_all_kinds_of_tables(data) -> None:
    expected = bootstrap(HEIGHTS, np.median, n_resamples=50, random_state=0)
    for vectorized in (False, True):

        def median(rows, axis=None):
            values = np.median(np.asarray(rows), axis=axis)
            return values[:, 0] if np.ndim(values) == 2 else values

        result = bootstrap(data, median, n_resamples=50, random_state=0, vectorized=vectorized)
        assert np.array_equal(result.resamples, expected.resamples)
        assert (result.low, result.high) == (expected.low, expected.high)


def test_frames_stay_frames() -> None:
    frame = pl.DataFrame({"x": HEIGHTS, "name": [str(k) for k in range(23)]})
    result = bootstrap(frame, lambda rows: rows["x"].mean(), n_resamples=30, random_state=0)
    assert result.estimate == pytest.approx(HEIGHTS.mean())
    mixed = [["red", 2.0], ["blue", 3.5], ["red", 4.0]]
    result = bootstrap(mixed, lambda rows: sum(rows[:, 1]), n_resamples=30, random_state=0)
    assert result.estimate == 9.5


def test_statistics_may_spoil_their_rows() -> None:
    data = HEIGHTS.copy()

    def spoil(rows, weights=None):
        found = np.sort(rows)[3]
        rows[:] = np.nan
        return found

    for scheme in ("ordinary", "bayesian"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            bootstrap(data, spoil, n_resamples=20, resampling=scheme)
    assert np.array_equal(data, HEIGHTS)


def test_numbers_of_other_types() -> None:
    assert bootstrap([1, 2, 3], sum, random_state=0).estimate == 6.0
    assert bootstrap([1, 2, 3], lambda rows: Fraction(int(rows.sum()), 3)).estimate == 2.0
    assert bootstrap([True, False, True], np.mean, random_state=0).estimate == 2 / 3
    for strange in (None, "high", 1j, {}, []):
        with pytest.raises(TypeError, match="must return a number or an array of numbers"):
            bootstrap(HEIGHTS, lambda rows, strange=strange: strange)


def test_the_context_of_the_caller_reaches_all_threads() -> None:
    def ratio(rows):
        return np.float64(rows.sum()) / np.float64(0.0)

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        bootstrap(HEIGHTS, ratio, n_jobs=2)
    seen = set()

    def where(rows):
        seen.add((threading.get_ident(), np.geterr()["over"]))
        return np.sort(rows)[len(rows) // 2]

    with np.errstate(over="raise"):
        bootstrap(np.arange(20_000.0), where, n_resamples=60, method="percentile", n_jobs=3)
    assert {setting for _, setting in seen} == {"raise"}


# -- what goes wrong -----------------------------------------------------------------------------


def test_errors_of_the_statistic_name_the_resample() -> None:
    def fails(rows):
        if len(set(rows)) < len(rows) and rows[0] == HEIGHTS[0]:
            raise LookupError("no such row")
        return rows.mean()

    for n_jobs in (1, 3):
        with pytest.raises(LookupError, match="no such row") as told:
            bootstrap(HEIGHTS, fails, random_state=0, n_jobs=n_jobs)
        number = int(told.value.__notes__[0].split("resample ")[1].rstrip("."))
        assert plan(23, 1000, seed=0).resample(number).rows[0] == 0
    with pytest.raises(ZeroDivisionError) as told:
        bootstrap(HEIGHTS, lambda rows: 1 / 0)
    assert told.value.__notes__ == ["The statistic was being computed for the data."]
    with pytest.raises(ZeroDivisionError) as told:
        bootstrap(HEIGHTS, lambda rows: 1 / (len(rows) - 22))
    assert "without row 0, for method='bca'" in told.value.__notes__[0]
    with pytest.raises(ValueError, match=r"same shape. For the data it was \(23,\), for resample"):
        bootstrap(HEIGHTS, np.unique)


def test_nan_is_counted_and_left_out() -> None:
    def sometimes(rows):
        return np.nan if rows[0] < 1.5 else rows.mean()

    with pytest.warns(DataWarning, match=r"of the 200 resamples is NaN \(first: resample") as told:
        result = bootstrap(HEIGHTS, sometimes, n_resamples=200, random_state=0)
    assert told[0].filename == __file__
    n_nan = np.isnan(result.resamples).sum()
    assert f"statistic of {n_nan} of" in str(told[0].message)
    kept = result.resamples[~np.isnan(result.resamples)]
    assert result.mean == kept.mean()
    assert result.variance == kept.var()
    assert result.interval("percentile") == pytest.approx(tuple(np.quantile(kept, [0.025, 0.975])))


def test_nan_everywhere_and_in_the_jackknife() -> None:
    with pytest.warns(DataWarning) as told:
        result = bootstrap(HEIGHTS, lambda rows: np.nan, n_resamples=20)
    assert "20 of the 20 resamples is NaN" in str(told[0].message)
    assert np.isnan([result.low, result.high, result.mean, result.variance]).all()

    def without_the_first(rows):
        return np.nan if len(rows) == 22 and rows[0] != HEIGHTS[0] else rows.mean()

    with pytest.warns(DataWarning, match=r"For 1 of the 23 rows.*NaN or infinite"):
        result = bootstrap(HEIGHTS, without_the_first, random_state=0)
    values = [np.delete(HEIGHTS, i).mean() for i in range(1, 23)]
    assert result.acceleration == pytest.approx(oracle.acceleration([values]))


def test_infinity_keeps_its_place_in_the_order() -> None:
    def inverse(rows):
        return np.inf if rows[0] < 1.5 else 1.0 / rows[0]

    with pytest.warns(DataWarning, match=r"is infinity \(first: .*the variance is infinite"):
        result = bootstrap(HEIGHTS, inverse, random_state=0, method="percentile")
    assert (result.mean, result.variance, result.high) == (np.inf, np.inf, np.inf)
    assert np.isfinite(result.low)


@pytest.mark.parametrize("method", METHODS)
def test_a_statistic_that_is_always_the_same(method) -> None:
    with pytest.warns(DataWarning, match="All resamples gave the same value, so") as told:
        result = bootstrap([0.1] * 7, np.mean, method=method)
    assert told[0].filename == __file__
    assert len(told) == 1
    assert result.low == result.high == result.estimate
    assert result.variance == 0.0
    with pytest.warns(DataWarning, match=r"numbers 1 of the 2 of the statistic"):
        result = bootstrap(HEIGHTS, lambda rows: [rows.mean(), len(rows)], method=method)
    assert result.low[1] == result.high[1] == 23
    assert result.low[0] < result.estimate[0] < result.high[0]


def test_bca_without_a_place_for_the_estimate() -> None:
    def different(rows):
        return len(np.unique(rows))

    with all_warnings() as told:
        result = bootstrap(HEIGHTS, different, random_state=0)
    assert [warning.category for warning in told] == [DataWarning, DataWarning]
    # the statistic is 22 without any of the rows
    assert "Leaving out a single row, group or block never changes" in str(told[0].message)
    assert "lies beyond that of all resamples" in str(told[1].message)
    assert result.estimate == 23
    assert (result.low, result.high) == result.interval("percentile", 0.95)


def test_bca_beyond_the_pole_of_its_formula_keeps_the_limit_before() -> None:
    """z / (1 - a z) increases up to its pole z = 1 / a, and is negative beyond it."""
    values = np.sort(np.random.default_rng(0).normal(size=(200, 1)), axis=0)
    middle = np.median(values, axis=0)
    for a, end in ((0.6, 1), (-0.6, 0)):
        interval = interval_of("bca", 0.95, values, middle, np.array([a]))
        assert interval[end, 0] == values[-end]
        assert values[0, 0] <= interval[0, 0] < interval[1, 0] <= values[-1, 0]
    before = interval_of("bca", 0.95, values, middle, np.array([0.5]))
    assert before[1, 0] == pytest.approx(values[-1, 0], rel=1e-6)


def test_numbers_at_the_edge_of_floating_point() -> None:
    plain = bootstrap(HEIGHTS, np.median, random_state=0)
    for exponent in (-1000, 1015):
        scaled = np.ldexp(HEIGHTS, exponent)
        if exponent > 0:
            with pytest.warns(DataWarning, match="variance overflows"):
                result = bootstrap(scaled, np.median, random_state=0)
        else:
            result = bootstrap(scaled, np.median, random_state=0)
        for name in ("mean", "standard_error", "low", "high", "bias"):
            assert getattr(result, name) == np.ldexp(getattr(plain, name), exponent), name
        assert result.interval("basic") == tuple(np.ldexp(plain.interval("basic"), exponent))


class Interrupting:
    """A mean that is interrupted at the k-th call in the main thread."""

    def __init__(self, at: int) -> None:
        self.calls_left = at

    def __call__(self, rows) -> float:
        if threading.current_thread() is threading.main_thread():
            self.calls_left -= 1
            if self.calls_left < 0:
                raise KeyboardInterrupt
        else:
            time.sleep(0.001)  # and leave enough to the main thread
        return float(rows.mean())


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_interrupt_keeps_the_resamples_done(n_jobs) -> None:
    whole = bootstrap(HEIGHTS, np.mean, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        bootstrap(HEIGHTS, Interrupting(60), n_jobs=n_jobs)
    with all_warnings() as told:
        result = bootstrap(
            HEIGHTS, Interrupting(60), on_interrupt="keep", random_state=0, n_jobs=n_jobs
        )
    assert [warning.category for warning in told] == [InterruptedFitWarning, DataWarning]
    assert "Bootstrap was interrupted after" in str(told[0].message)
    assert told[0].filename == told[1].filename == __file__
    assert "this is the percentile interval" in str(told[1].message)
    assert 20 <= len(result.resamples) < 1000
    assert set(result.resamples) <= set(whole.resamples)
    assert result.method == "percentile"
    assert result.acceleration is None
    assert result.variance == np.var(result.resamples)
    if n_jobs == 1:
        assert np.array_equal(result.resamples, whole.resamples[: len(result.resamples)])


def test_an_interrupt_of_the_jackknife_keeps_all_resamples() -> None:
    with all_warnings() as told:
        result = bootstrap(
            HEIGHTS, Interrupting(110), on_interrupt="keep", random_state=0, n_resamples=100
        )
    assert [warning.category for warning in told] == [InterruptedFitWarning, DataWarning]
    assert "(resamples 100, standard error" in str(told[0].message)
    assert len(result.resamples) == 100
    assert result.method == "percentile"


def test_an_interrupt_before_the_first_resample_has_nothing_to_keep() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedFitWarning)
        with pytest.raises(KeyboardInterrupt):
            bootstrap(HEIGHTS, Interrupting(1), on_interrupt="keep")


def test_time_that_is_up() -> None:
    with (
        pytest.warns(ConvergenceWarning, match=r"used up max_time=1e-09 s after .* of 100023 ev"),
        pytest.warns(DataWarning, match="the percentile interval. Raise max_time"),
    ):
        result = bootstrap(HEIGHTS, np.mean, n_resamples=100_000, max_time=1e-9)
    assert 1 <= len(result.resamples) < 100_000


def test_watching_and_cancelling() -> None:
    told = []
    with watch(on_progress=told.append):
        bootstrap(HEIGHTS, np.mean, random_state=0)
    assert told[-1].learner == "Bootstrap"
    assert told[-1].done == told[-1].total == 1023
    told.clear()

    def slope(x, y):
        return Perceptron(max_iter=2, tol=None).fit(x, y).coef_[0, 0]

    with watch(on_progress=told.append), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bootstrap(
            (HEIGHTS[:, None], HEIGHTS > 2), slope, stratify=HEIGHTS > 2, n_resamples=20, n_jobs=2
        )
    assert {progress.learner for progress in told} == {"Bootstrap"}
    event = threading.Event()
    event.set()
    with watch(cancel=event), pytest.raises(FitCancelled):
        bootstrap(HEIGHTS, np.mean)
    with pytest.warns(DataWarning, match="percentile interval"), watch(on_progress=lambda _: True):
        assert len(bootstrap(HEIGHTS, np.mean).resamples) >= 1


def test_a_progress_bar_on_standard_error(capsys) -> None:
    bootstrap(HEIGHTS, np.mean, random_state=0, verbose=1)
    assert "Bootstrap, evaluations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], ValueError, "data has no rows. At least two"),
        ([1.0], ValueError, "data has one row. At least two"),
        (3.0, ValueError, r"data has no rows: 3.0"),
        ((), ValueError, "data is an empty tuple"),
        ((1.0, 2.0, 3.0), ValueError, r"data\[0\] has no rows: 1.0.*a tuple means several"),
        (([1, 2], [1, 2, 3]), ValueError, r"same number of rows. Got \[2, 3\]"),
        ([[1, 2], [3]], ValueError, "data cannot be converted to an array"),
        ("text", TypeError, "data must be an array.*Got str"),
        ({1.0, 2.0}, TypeError, "Got set instead"),
        ({"a": [1, 2]}, TypeError, "Got dict instead"),
        ((k for k in range(3)), TypeError, "Got generator instead"),
        (np.ma.masked_equal([1, 2, 3], 2), TypeError, "data is a masked array"),
        (None, ValueError, "data has no rows: None"),
    ],
)
def test_data_that_cannot_be_resampled(data, error, message) -> None:
    with pytest.raises(error, match=message):
        bootstrap(data, np.mean)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 1}, "'n_resamples' parameter of bootstrap must be an int"),
        ({"n_resamples": 10.0}, "'n_resamples' parameter"),
        ({"n_resamples": True}, "'n_resamples' parameter"),
        ({"n_draws": 0}, "'n_draws' parameter"),
        ({"n_draws": 24}, "n_draws must be at most the number of rows, 23. Got 24"),
        ({"n_draws": 5, "stratify": np.arange(23) % 2}, "n_draws=5 cannot be combined with strat"),
        ({"n_draws": 5, "groups": np.arange(23) % 2}, "only 2 groups to draw from"),
        ({"method": "BCa"}, "'method' parameter of bootstrap must be a str among"),
        ({"confidence_level": 1.0}, "'confidence_level' parameter"),
        ({"confidence_level": np.nan}, "'confidence_level' parameter"),
        ({"confidence_level": 95}, "'confidence_level' parameter"),
        ({"resampling": "wild"}, "'resampling' parameter"),
        ({"resampling": "bayesian", "n_draws": 3}, "n_draws=3 cannot be combined with resampling"),
        ({"resampling": "balanced", "block_length": 3}, "block_length needs resampling='ordinary'"),
        ({"block_length": 0}, "'block_length' parameter"),
        ({"block_length": 24}, "block_length must be at most the number of rows, 23"),
        ({"block_length": 2, "groups": np.arange(23)}, "block_length is for one ordered series"),
        ({"stratify": [1, 2]}, r"stratify must hold one label for each of the 23 rows.*\(2,\)"),
        ({"stratify": np.arange(23)}, "stratify has 23 strata of one unit each"),
        ({"stratify": [None] + [1] * 22}, "stratify has no label in row 0"),
        ({"stratify": [1.0] * 22 + [np.nan]}, "stratify has no label in row 22"),
        ({"groups": [1] * 23}, "groups puts all rows into one group"),
        ({"groups": np.ones((23, 2))}, r"groups must hold one label.*\(23, 2\)"),
        ({"groups": np.array([1, "a"] * 11 + [1], object)}, "groups mixes labels"),
        ({"vectorized": 2}, "'vectorized' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter must not be 0"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
        ({"random_state": -1}, "'random_state' parameter"),
        ({"random_state": 2**32}, "'random_state' parameter"),
        ({"max_time": 0}, "'max_time' parameter"),
        ({"on_interrupt": "stop"}, "'on_interrupt' parameter"),
        ({"statistic": "mean"}, "'statistic' parameter of bootstrap must be a callable"),
    ],
)
def test_arguments_are_refused_before_any_work(options, message) -> None:
    calls = []
    given = {"statistic": lambda rows, weights=None: calls.append(1) or rows.mean(), **options}
    with pytest.raises((ValueError, TypeError), match=message):
        bootstrap(HEIGHTS, **given)
    assert not calls


def test_sparse_data_and_batches() -> None:
    with pytest.raises(TypeError, match=r"data is sparse.*vectorized=False"):
        bootstrap(sp.eye_array(5).tocsr(), np.mean, vectorized=True)


def test_seeds_of_every_kind() -> None:
    made = [
        bootstrap(HEIGHTS, np.mean, n_resamples=20, random_state=seed).resamples
        for seed in (0, np.int64(0), np.random.RandomState(0), np.random.default_rng(0), None, None)
    ]
    assert np.array_equal(made[0], made[1])
    assert len({values.tobytes() for values in made}) == 5


def test_one_stratum_of_one_row_never_varies() -> None:
    result = bootstrap(HEIGHTS, np.mean, stratify=[0] + [1] * 22, random_state=0)
    without = [np.delete(HEIGHTS, i).mean() for i in range(1, 23)]
    assert result.acceleration == pytest.approx(oracle.acceleration([without]), rel=1e-10)


def test_a_block_as_long_as_the_series_has_no_jackknife() -> None:
    with pytest.warns(DataWarning, match="acceleration of 0"):
        result = bootstrap(HEIGHTS, lambda rows: rows[0], block_length=23, random_state=0)
    assert result.acceleration == 0.0


def test_results_print_pickle_and_hold_still() -> None:
    result = bootstrap(HEIGHTS, np.mean, random_state=0, n_resamples=50)
    assert repr(result).startswith("BootstrapResult(estimate=")
    assert "method='bca', n_resamples=50)" in repr(result)
    assert "95 % interval" in str(result)
    again = pickle.loads(pickle.dumps(result))
    assert isinstance(again, BootstrapResult)
    assert (again.low, again.high) == (result.low, result.high)
    with pytest.raises(AttributeError):
        result.low = 0.0
    vector = bootstrap(HEIGHTS, lambda rows: rows[:3], n_resamples=50, random_state=0)
    assert repr(vector).count("[") == 5


def test_uniforms_are_inside_their_interval() -> None:
    drawn = bootstrap_draws.uniforms(np.uint64(3), 100_000)
    assert 0.0 < drawn.min() < 1e-3
    assert 1 - 1e-3 < drawn.max() < 1.0
    assert scipy.stats.kstest(drawn, "uniform").pvalue > 1e-3
