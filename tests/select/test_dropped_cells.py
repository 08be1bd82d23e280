"""`drop=True`: the same choice as that of the complete grid, with fewer cells solved."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold

from margrove import SVCCV, SVRCV
from margrove.exceptions import ConvergenceWarning

CS = np.logspace(-2, 3, 6)
GAMMAS = np.logspace(-3, 1, 5)


def table(n=150, seed=0, n_classes=2, noise=0.1):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=noise, class_sep=1.5, random_state=seed
    )


def both(X, y, kind=SVCCV, **settings_):
    complete = kind(CS, GAMMAS, **settings_).fit(X, y)
    return complete, kind(CS, GAMMAS, drop=True, **settings_).fit(X, y)


def assert_same_choice(complete, short):
    assert short.best_params_ == complete.best_params_
    assert short.best_score_ == complete.best_score_
    assert short.best_index_ == complete.best_index_
    is_known = ~np.isnan(short.scores_)
    np.testing.assert_array_equal(short.scores_[is_known], complete.scores_[is_known])


def test_dropped_cells_are_nan_and_rank_last():
    complete, short = both(*table())
    assert_same_choice(complete, short)
    is_dropped = short.cv_results_["ending"] == "dropped"
    assert 0 < is_dropped.sum() < 30
    means = short.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(np.isnan(means), is_dropped)
    np.testing.assert_array_equal(np.isnan(short.cv_results_["kkt_violation"]), is_dropped)
    ranks = short.cv_results_["rank_test_score"]
    assert set(ranks[is_dropped]) == {30 - is_dropped.sum() + 1}
    assert ranks[short.best_index_] == 1
    assert short.cv_results_["n_steps"].sum() < complete.cv_results_["n_steps"].sum()
    np.testing.assert_array_equal(short.predict(table()[0]), complete.predict(table()[0]))


def test_what_was_dropped_could_not_win():
    complete, short = both(*table())
    is_dropped = (short.cv_results_["ending"] == "dropped").reshape(6, 5)
    assert complete.cells_.means[is_dropped].max() < short.best_score_


@given(
    st.integers(30, 160), st.integers(0, 10**6), st.integers(2, 4), st.floats(0.0, 0.6),
    st.integers(2, 6), st.sampled_from(["best", "1se"]), st.sampled_from([None, "f1_macro"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_random_tables(n, seed, n_classes, noise, n_folds, refit, scoring):
    X, y = table(n, seed, n_classes, noise)
    X = np.round(X, 1 + seed % 3)  # with ties
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    if np.bincount(y).min() < n_folds:
        return
    assert_same_choice(*both(X, y, cv=folds, refit=refit, scoring=scoring))


@pytest.mark.parametrize("refit", ["best", "1se"])
def test_many_rows_are_dropped_by_chance_too(refit):
    X, y = table(600, seed=3, noise=0.3)
    complete, short = both(X, y, refit=refit)
    assert_same_choice(complete, short)
    known = ~np.isnan(short.scores_)
    n_known = known.sum(axis=2)
    best_other = np.where(known, short.scores_, 1.0).mean(axis=2)
    assert ((n_known < 5) & (best_other > short.best_score_)).any()  # the bound would keep these


def test_threads_do_not_show():
    X, y = table(200, n_classes=3)
    one, two = (SVCCV(CS, GAMMAS, drop=True, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.cv_results_["ending"], two.cv_results_["ending"])


def test_the_choice_is_that_of_scikit_learn():
    X, y = table(200)
    short = SVCCV(CS, GAMMAS, drop=True, cv=4, tol=1e-6).fit(X, y)
    peer = sklearn.model_selection.GridSearchCV(
        sklearn.svm.SVC(tol=1e-6), {"C": CS, "gamma": GAMMAS}, cv=4
    ).fit(X, y)
    assert short.best_score_ == pytest.approx(peer.best_score_, abs=1e-12)
    assert short.best_params_ == peer.best_params_


def test_regressions_are_dropped_by_the_bound():
    X, y = make_regression(100, 4, noise=1.0, random_state=0)
    complete, short = both(X, y / y.std(), SVRCV, epsilon=0.05)
    assert_same_choice(complete, short)
    assert "dropped" in short.cv_results_["ending"]


def test_scores_without_a_known_maximum_drop_nothing():
    X, y = table()
    scorer = make_scorer(lambda truth, found: 10.0 * np.mean(truth == found))
    complete, short = both(X, y, scoring=scorer)
    np.testing.assert_array_equal(short.scores_, complete.scores_)
    assert "dropped" not in short.cv_results_["ending"]


def test_negative_errors_are_at_most_zero():
    X, y = make_regression(100, 4, noise=1.0, random_state=0)
    complete, short = both(X, y / y.std(), SVRCV, scoring="neg_mean_squared_error")
    assert_same_choice(complete, short)


def test_weights_count():
    X, y = table(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    complete = SVCCV(CS, GAMMAS).fit(X, y, sample_weight=weight)
    short = SVCCV(CS, GAMMAS, drop=True).fit(X, y, sample_weight=weight)
    assert_same_choice(complete, short)


def test_a_machine_that_is_broken_off_warns_as_usual():
    X, y = table()
    with pytest.warns(ConvergenceWarning, match="broken off"):
        SVCCV(CS, GAMMAS, drop=True, max_iter=1, refit=False).fit(X, y)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_drop_is_a_boolean(value):
    with pytest.raises(ValueError, match="drop"):
        SVCCV(drop=value).fit(*table())
