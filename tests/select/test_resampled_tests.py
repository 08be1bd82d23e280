"""Tests of differences follow their papers, and keep their level where naive tests do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, fbeta_score, get_scorer, make_scorer
from tests.oracles import comparing as oracle

from margrove.datasets import load_iris
from margrove.select.compare.resampled_tests import (
    bootstrap_test,
    corrected_interval,
    corrected_t_test,
    holm,
    percentile_interval,
    resample_folds,
    resample_rows,
)
from margrove.select.compare.row_scores import row_scorer_of

RNG = np.random.default_rng(5)


# -- the corrected t-test ------------------------------------------------------------------------


@pytest.mark.parametrize("n_folds", [2, 5, 10, 100])
@pytest.mark.parametrize("overlap", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_t_test_is_the_formula_of_the_paper(n_folds, overlap, level) -> None:
    first, second = RNG.uniform(size=(2, n_folds))
    found = corrected_t_test(first, second, overlap, level)
    found_values = (found.mean, *found.interval, found.p)
    assert found_values == pytest.approx(
        oracle.corrected_t(first, second, overlap, level), rel=1e-9
    )


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_the_unit_of_scores_does_not_matter(scale) -> None:
    first, second = RNG.uniform(size=(2, 8))
    there, here = (corrected_t_test(s * first, s * second, 0.25) for s in (scale, 1.0))
    assert there.p == pytest.approx(here.p)
    assert there.interval == pytest.approx(scale * np.array(here.interval), rel=1e-9)


def test_without_overlap_it_is_the_paired_t_test() -> None:
    first, second = RNG.uniform(size=(2, 12))
    found = corrected_t_test(first, second, 0.0)
    plain = stats.ttest_rel(first, second)
    assert found.p == pytest.approx(plain.pvalue)
    assert tuple(found.interval) == pytest.approx(tuple(plain.confidence_interval(0.95)))


@pytest.mark.nojit
def test_two_folds_by_hand() -> None:
    # differences 0 and 2: mean 1, variance 2, se^2 = (1/2 + 1) 2 = 3; t with one degree of freedom
    # is Cauchy's distribution: p = 1 - 2/pi arctan(1 / sqrt 3) = 1 - 1/3
    assert corrected_t_test([1.0, 3.0], [1.0, 1.0], 1.0).p == pytest.approx(2 / 3)


@pytest.mark.nojit
def test_exchanging_the_models_turns_the_sign() -> None:
    first, second = RNG.uniform(size=(2, 10))
    there, back = corrected_t_test(first, second, 0.25), corrected_t_test(second, first, 0.25)
    assert back.mean == -there.mean
    assert back.p == there.p
    assert back.interval == pytest.approx((-there.interval.high, -there.interval.low))


@pytest.mark.parametrize("n_folds", [2, 10])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e150])
def test_scores_that_are_equal_do_not_differ(n_folds, scale) -> None:
    scores = scale * RNG.uniform(size=n_folds)
    found = corrected_t_test(scores, scores.copy(), 0.25)
    assert found == (0.0, (0.0, 0.0), 1.0)


@pytest.mark.nojit
def test_rounding_is_no_difference() -> None:
    first = np.array([0.1 + 0.2, 0.7, 0.9])
    assert corrected_t_test(first, [0.3, 0.7, 0.9], 0.25).p == 1.0


@pytest.mark.parametrize("n_folds", [2, 5, 10])
def test_a_constant_difference_is_judged_by_its_signs(n_folds) -> None:
    second = np.linspace(0.3, 0.8, n_folds)  # differences of 0.1, but for rounding
    found = corrected_t_test(second + 0.1, second, 0.25)
    assert found.mean == pytest.approx(0.1)
    assert found.interval == ((found.mean, found.mean) if n_folds > 5 else (-np.inf, np.inf))
    assert found.p == stats.binomtest(n_folds, n_folds).pvalue


@pytest.mark.nojit
def test_interval_of_one_score() -> None:
    scores = RNG.uniform(size=10)
    error = np.sqrt((0.1 + 0.25) * scores.var(ddof=1))
    wanted = stats.t.interval(0.9, 9, loc=scores.mean(), scale=error)
    assert tuple(corrected_interval(scores, 0.25, 0.9)) == pytest.approx(wanted)
    assert corrected_interval([0.5] * 6, 0.25) == (0.5, 0.5)
    assert corrected_interval([0.5] * 5, 0.25) == (-np.inf, np.inf)
    assert corrected_interval([0.5] * 5, 0.25, 0.9) == (0.5, 0.5)


def _null_data_set(rng):
    """Two features that are equally informative about the classes."""
    y = rng.integers(2, size=60)
    return rng.normal(size=(60, 2)) + 0.5 * y[:, None], y


def _cross_validated_differences(rng, repeats, n_folds):
    """Scores of two learners, each with a threshold between the class means of one feature."""
    X, y = _null_data_set(rng)
    differences = []
    for _ in range(repeats):
        fold_of = rng.permutation(len(y)) % n_folds
        for fold in range(n_folds):
            train, test = fold_of != fold, fold_of == fold
            means = [X[train][y[train] == label].mean(axis=0) for label in (0, 1)]
            side = np.sign(means[1] - means[0])
            right = (side * (X[test] - (means[0] + means[1]) / 2) > 0) == (y[test, None] == 1)
            differences.append(np.subtract(*right.mean(axis=0)))
    return np.array(differences)


def test_the_corrected_test_keeps_its_level_and_the_naive_one_does_not() -> None:
    """Under the null about 5 % of p-values are below 0.05; the naive test rejects far too often."""
    rng = np.random.default_rng(0)
    n_data_sets, repeats, n_folds = 300, 4, 5
    naive = corrected = 0
    for _ in range(n_data_sets):
        d = _cross_validated_differences(rng, repeats, n_folds)
        nothing = np.zeros(len(d))
        naive += corrected_t_test(d, nothing, 0.0).p < 0.05
        corrected += corrected_t_test(d, nothing, 1 / (n_folds - 1)).p < 0.05
    assert naive / n_data_sets > 0.25
    assert 0.01 <= corrected / n_data_sets <= 0.09


# -- many pairs ----------------------------------------------------------------------------------


@pytest.mark.nojit
def test_holm_by_hand() -> None:
    # sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, and none below the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_holm_is_closed_testing(p_values) -> None:
    assert holm(p_values) == pytest.approx(oracle.holm_by_closure(p_values))


# -- resamples -----------------------------------------------------------------------------------


def test_rows_are_resampled_for_all_models_at_once() -> None:
    rows = RNG.uniform(size=(80, 2))
    weights = RNG.uniform(0.5, 2.0, size=80)
    both = np.column_stack([rows, rows[:, 0]]) * weights[:, None]
    found = resample_rows(both, weights, None, 4000, seed=1)
    assert found.shape == (4000, 3)
    assert np.array_equal(found[:, 0], found[:, 2])
    means = np.average(rows, axis=0, weights=weights)
    assert found[:, :2].mean(axis=0) == pytest.approx(means, abs=0.003)
    deviation = np.sqrt(np.sum((weights[:, None] * (rows - means)) ** 2, axis=0)) / weights.sum()
    assert found[:, :2].std(axis=0) == pytest.approx(deviation, rel=0.05)
    # paired: the spread of the difference is that of the differences of rows
    d = rows[:, 0] - rows[:, 1]
    expected = np.sqrt(np.sum((weights * (d - d @ weights / weights.sum())) ** 2)) / weights.sum()
    assert np.std(found[:, 0] - found[:, 1]) == pytest.approx(expected, rel=0.05)


def test_groups_are_resampled_whole() -> None:
    groups = np.repeat(np.arange(16), 5)
    rows = RNG.normal(size=16)[groups][:, None]
    ones = np.ones(80)
    by_row = resample_rows(rows, ones, None, 1000, seed=0).std()
    by_group = resample_rows(rows, ones, groups, 1000, seed=0).std()
    assert by_group == pytest.approx(np.sqrt(5) * by_row, rel=0.1)


def test_what_does_not_vary_is_resampled_without_a_word() -> None:
    weights = RNG.uniform(size=20)
    found = resample_rows(np.column_stack([weights, 0.0 * weights]), weights, None, 100, seed=0)
    assert np.array_equal(found, np.tile([1.0, 0.0], (100, 1)))
    assert np.array_equal(resample_folds(np.ones((5, 1)), 0.25, 100, 0), np.ones((100, 1)))


def test_folds_are_stretched_for_their_overlap() -> None:
    scores = RNG.uniform(size=(10, 2))
    plain = resample_folds(scores, 0.0, 2000, seed=3)
    stretched = resample_folds(scores, 0.25, 2000, seed=3)
    assert plain.std(axis=0) == pytest.approx(scores.std(axis=0) / np.sqrt(10), rel=0.06)
    centre = scores.mean(axis=0)
    assert stretched - centre == pytest.approx(np.sqrt(3.5) * (plain - centre))


def test_p_of_resamples_by_hand() -> None:
    differences = np.array([-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    found = bootstrap_test(0.3, 1.0 + differences, np.ones(9), 0.8)
    assert found.p == pytest.approx(2 * (1 + 2) / (1 + 9))
    assert found.interval == pytest.approx(np.quantile(differences, [0.1, 0.9]))
    assert found.mean == 0.3
    same = bootstrap_test(1e-17, np.ones(9), np.ones(9))
    assert same == (0.0, (0.0, 0.0), 1.0)
    assert percentile_interval(differences, 0.8) == pytest.approx(
        np.quantile(differences, [0.1, 0.9])
    )


# -- scores of rows ------------------------------------------------------------------------------

IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "scoring",
    ["accuracy", "neg_log_loss", "r2", "neg_mean_squared_error", "neg_mean_absolute_error"],
)
def test_the_mean_over_rows_is_the_score(scoring, weighted) -> None:
    if scoring in ("accuracy", "neg_log_loss"):
        X, y = IRIS, np.array(["a", "b", "c"])[SPECIES]
        model = LogisticRegression(C=1e-3).fit(X, y)
    else:
        X, y = make_regression(60, 3, noise=20.0, random_state=0)
        model = LinearRegression().fit(X, y)
    weight = RNG.uniform(size=len(y)) if weighted else np.ones(len(y))
    scorer = get_scorer(scoring)
    rows = row_scorer_of(scorer).of_model(model, X, y, weight)
    wanted = scorer(model, X, y, sample_weight=weight)
    assert np.average(rows, weights=weight) == pytest.approx(wanted, rel=1e-10)


def test_several_targets_and_a_constant_one() -> None:
    X, y = make_regression(60, 3, n_targets=2, noise=20.0, random_state=0)
    y = np.column_stack([y, np.ones(60)])
    model = LinearRegression().fit(X, y)
    scorer = get_scorer("r2")
    rows = row_scorer_of(scorer).of_model(model, X, y, np.ones(60))
    assert rows.mean() == pytest.approx(scorer(model, X, y))


def test_other_scores_are_not_taken_for_means() -> None:
    assert row_scorer_of(get_scorer("roc_auc")) is None
    assert row_scorer_of(get_scorer("f1_macro")) is None
    assert row_scorer_of(make_scorer(fbeta_score, beta=2)) is None
    assert row_scorer_of(make_scorer(accuracy_score, normalize=False)) is None
    assert row_scorer_of(make_scorer(accuracy_score, greater_is_better=False)) is None
    assert row_scorer_of(lambda model, X, y: 0.0) is None
