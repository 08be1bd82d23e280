"""Searches over C and gamma: every cell equals a cold fit, and scores are scikit-learn's."""

from __future__ import annotations

import pickle
import threading
from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove
from margrove import SVC, SVCCV, SVR, SVRCV, LinearSVC, LinearSVCCV, LinearSVR, svm_path
from margrove.datasets import load_iris
from margrove.exceptions import (
    ConvergenceWarning,
    FitCancelled,
    InvalidDataError,
    NumericalOverflowError,
)
from margrove.tune import GridSearchCV

CS = np.logspace(-2, 3, 6)
GAMMAS = np.logspace(-3, 1, 5)


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(120, 6, n_informative=4, flip_y=0.2, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def cold_scores(machine, X, y, grid, cv):
    plain = sklearn.model_selection.GridSearchCV(machine, grid, cv=cv, refit=False).fit(X, y)
    return plain.cv_results_


def violation_of(K, y, p, u, alpha):
    """The KKT violation by its definition."""
    f = K @ (y * alpha) + y * p
    up = np.where(y > 0, alpha < u, alpha > 0)
    low = np.where(y > 0, alpha > 0, alpha < u)
    return f[low].max() - f[up].min() if up.any() and low.any() else 0.0


# -- right ---------------------------------------------------------------------------------------


def test_all_scores_are_those_of_cold_fits(noisy):
    X, y = noisy
    model = SVCCV(CS, GAMMAS, cv=5, tol=1e-6).fit(X, y)
    cold = cold_scores(SVC(tol=1e-6), X, y, {"C": CS, "gamma": GAMMAS}, 5)
    for k in range(5):
        np.testing.assert_allclose(
            model.cv_results_[f"split{k}_test_score"], cold[f"split{k}_test_score"], atol=1e-12
        )
    np.testing.assert_array_equal(model.cv_results_["rank_test_score"], cold["rank_test_score"])
    assert model.cv_results_["params"] == [dict(cell) for cell in cold["params"]]


def test_scores_agree_with_scikit_learn(iris):
    X, y = iris
    model = SVCCV(CS, GAMMAS, cv=5, tol=1e-6).fit(X, y)
    peer = cold_scores(sklearn.svm.SVC(tol=1e-6), X, y, {"C": CS, "gamma": GAMMAS}, 5)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], peer["mean_test_score"], atol=1 / 150 + 1e-12
    )
    differing = model.cv_results_["mean_test_score"] != peer["mean_test_score"]
    assert differing.sum() <= 1  # a row on the boundary


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes(iris, multi_class):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SVCCV(CS, [0.1, 1.0], cv=3, tol=1e-6, multi_class=multi_class).fit(X, names)
    cold = cold_scores(
        SVC(tol=1e-6, multi_class=multi_class), X, names, {"C": CS, "gamma": [0.1, 1.0]}, 3
    )
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold["mean_test_score"], atol=1e-12
    )
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert set(model.predict(X)) <= set(names)


def test_every_solution_is_optimal_to_its_tolerance(noisy):
    """Recomputed from the definition, with a separate Gram matrix."""
    X, y = noisy
    model = SVCCV(np.logspace(-2, 4, 10), GAMMAS, cv=3).fit(X, y)
    worst = 0.0
    for g, gamma in enumerate(model.gammas_):
        for k in range(3):
            (path,) = model.paths_[g][k]
            machine = path.machine
            for c, C in enumerate(model.Cs_):
                alpha = path.alphas[[c]].toarray()[0]
                signs, bounds = machine.y, C * machine.weight
                assert np.all((alpha >= 0) & (alpha <= bounds))
                assert abs(signs @ alpha) <= 1e-9 * max(1.0, alpha.sum())
                rows = fold_rows(model, X, y, k, machine)
                K = np.exp(-gamma * squared_distances(X[rows]))
                found = violation_of(K, signs, machine.p, bounds, alpha)
                worst = max(worst, found)
                objective = 0.5 * (signs * alpha) @ K @ (signs * alpha) - alpha.sum()
                assert path.objectives[c] == pytest.approx(objective, rel=1e-9, abs=1e-9)
    assert worst < 1.0001e-3
    assert worst == pytest.approx(model.cv_results_["kkt_violation"].max(), rel=1e-3)


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def fold_rows(model, X, y, fold, machine):
    """The rows behind the variables of a binary machine without repeated rows."""
    train, _ = list(StratifiedKFold(3).split(X, y))[fold]
    # Points stand class after class, in canonical order, which depends on content alone.
    from margrove._data import canonical_form

    form = canonical_form(X, y.astype(np.int64), np.ones(len(y)))
    order = form.rows[np.argsort(y[form.rows], kind="stable")]
    assert set(order[machine.rows]) == set(train)
    return order[machine.rows]


def test_objectives_are_those_of_cold_fits(noisy):
    X, y = noisy
    path = svm_path(SVC(tol=1e-8), X, y, np.logspace(-2, 4, 7))
    for number, point in enumerate(path.points):
        cold = SVC(C=point.C, tol=1e-8).fit(X, y)
        warm = path.machine(number)
        assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-9)
        assert warm.certificate_.violation < 1e-8
        np.testing.assert_allclose(
            warm.decision_function(X), cold.decision_function(X), atol=1e-6 * max(1, point.C)
        )


def test_repeated_rows_are_merged_inside_folds_only(noisy):
    """Rows with a copy in another fold: merging across folds would leak."""
    X, y = noisy
    twice, labels = np.vstack([X, X]), np.concatenate([y, y])
    cv = KFold(4, shuffle=True, random_state=0)
    model = SVCCV(CS, GAMMAS, cv=cv, tol=1e-6).fit(twice, labels)
    cold = cold_scores(SVC(tol=1e-6), twice, labels, {"C": CS, "gamma": GAMMAS}, cv)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold["mean_test_score"], atol=1e-12
    )
    (path,) = model.paths_[0][0]
    assert len(path.machine.rows) < 180  # of the 180 rows of a fold, twins are one
    assert path.machine.weight.sum() == 180


def test_weights_count_as_copies(noisy):
    X, y = noisy
    times = np.random.default_rng(0).integers(0, 4, len(y))
    groups = np.arange(len(y)) % 3
    weighted = SVCCV(CS, GAMMAS, cv=GroupKFold(3)).fit(X, y, sample_weight=times, groups=groups)
    copied = SVCCV(CS, GAMMAS, cv=GroupKFold(3)).fit(
        X.repeat(times, axis=0), y.repeat(times), groups=groups.repeat(times)
    )
    # GroupKFold balances by counting rows, so that its folds may be in another order.
    np.testing.assert_allclose(
        np.sort(weighted.scores_, axis=2), np.sort(copied.scores_, axis=2), atol=1e-12
    )
    assert weighted.best_params_ == copied.best_params_


def test_rows_of_weight_zero_are_as_good_as_absent(noisy):
    X, y = noisy
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    with_them = SVCCV(CS, GAMMAS, cv=4).fit(X, y, sample_weight=weight)
    without = SVCCV(CS, GAMMAS, cv=4).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(with_them.scores_, without.scores_)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0}])
def test_class_weights_are_those_of_each_fold(noisy, class_weight):
    X, y = noisy
    X, y = X[y + np.arange(len(y)) % 3 > 0], y[y + np.arange(len(y)) % 3 > 0]
    machine = SVC(tol=1e-6, class_weight=class_weight)
    model = SVCCV(CS, GAMMAS, cv=3, tol=1e-6, class_weight=class_weight, scoring="accuracy")
    cold = cold_scores(machine, X, y, {"C": CS, "gamma": GAMMAS}, 3)
    np.testing.assert_allclose(
        model.fit(X, y).cv_results_["mean_test_score"], cold["mean_test_score"], atol=1e-12
    )


@pytest.mark.parametrize("scoring", ["f1", "roc_auc", "balanced_accuracy"])
def test_scorers(noisy, scoring):
    X, y = noisy
    model = SVCCV(CS, GAMMAS, cv=3, tol=1e-8, scoring=scoring).fit(X, y)
    cold = sklearn.model_selection.GridSearchCV(
        SVC(tol=1e-8), {"C": CS, "gamma": GAMMAS}, cv=3, scoring=scoring, refit=False
    ).fit(X, y)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold.cv_results_["mean_test_score"], atol=1e-3
    )


@pytest.mark.filterwarnings("ignore:.*positive semidefinite")
@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian"])
def test_other_kernels(noisy, kernel):
    X, y = noisy
    grid = {"C": CS[:4]} if kernel == "linear" else {"C": CS[:4], "gamma": [0.01, 0.1]}
    model = SVCCV(CS[:4], [0.01, 0.1], cv=3, tol=1e-6, kernel=kernel).fit(X, y)
    cold = cold_scores(SVC(tol=1e-6, kernel=kernel), X, y, grid, 3)
    allowance = 1 / 40 if kernel == "sigmoid" else 1e-12  # which has more than one optimum
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold["mean_test_score"], atol=allowance
    )
    assert set(model.best_params_) == set(grid)


def test_a_precomputed_gram_matrix(noisy):
    X, y = noisy
    K = np.exp(-0.1 * squared_distances(X))
    given = SVCCV(CS, cv=3, kernel="precomputed").fit(K, y)
    named = SVCCV(CS, [0.1], cv=3).fit(X, y)
    np.testing.assert_array_equal(given.scores_, named.scores_)
    assert given.predict(K).shape == y.shape


def test_regression_agrees_with_cold_fits():
    X, y = make_regression(80, 4, noise=5.0, random_state=0)
    y = y / 10
    model = SVRCV(CS, GAMMAS, cv=4, tol=1e-6).fit(X, y)
    cold = cold_scores(SVR(tol=1e-6), X, y, {"C": CS, "gamma": GAMMAS}, 4)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold["mean_test_score"], atol=1e-5
    )
    assert model.best_params_ == cold["params"][int(np.argmin(cold["rank_test_score"]))]
    np.testing.assert_array_equal(
        model.predict(X), SVR(tol=1e-6, **model.best_params_).fit(X, y).predict(X)
    )


def test_linear_machines_along_their_path(noisy):
    X, y = noisy
    model = LinearSVCCV(CS, cv=4, tol=1e-8).fit(X, y)
    cold = cold_scores(LinearSVC(tol=1e-8), X, y, {"C": CS}, 4)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold["mean_test_score"], atol=1e-12
    )
    assert model.cv_results_["relative_gap"].max() < 1e-8
    np.testing.assert_array_equal(model.coef_, model.best_estimator_.coef_)


def test_unchanged_cells_are_those_without_bounded_variables(noisy):
    X, y = noisy
    model = SVCCV(np.logspace(-2, 6, 9), [10.0], cv=3).fit(X, y)
    ending = model.cv_results_["ending"]
    assert {"unchanged", "converged"} == set(ending)
    for c in np.flatnonzero(ending == "unchanged"):
        for k in range(3):
            (path,) = model.paths_[0][k]
            now, before = path.alphas[[c]].toarray(), path.alphas[[c - 1]].toarray()
            np.testing.assert_array_equal(now, before)
            assert now.max() < model.Cs_[c - 1]
        np.testing.assert_array_equal(model.scores_[c], model.scores_[c - 1])


# -- the choice ----------------------------------------------------------------------------------


def test_the_best_cell_is_refitted(noisy):
    X, y = noisy
    model = SVCCV(CS, GAMMAS).fit(X, y)
    c, g = divmod(model.best_index_, len(GAMMAS))
    assert model.best_params_ == {"C": CS[c], "gamma": GAMMAS[g]}
    assert model.best_score_ == model.cells_.means.max() == model.scores_[c, g].mean()
    plain = SVC(**model.best_params_).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))


def test_one_standard_error_prefers_small_prices(noisy):
    X, y = noisy
    best = SVCCV(CS, GAMMAS).fit(X, y)
    careful = SVCCV(CS, GAMMAS, refit="1se").fit(X, y)
    error = best.scores_.reshape(30, 5)[best.best_index_].std(ddof=1) / np.sqrt(5)
    good = best.cells_.means >= best.best_score_ - error
    assert careful.C_ == CS[good.any(axis=1).argmax()] <= best.C_
    assert careful.gamma_ == GAMMAS[good[good.any(axis=1).argmax()].argmax()]


def test_without_refit_there_is_nobody_to_ask(noisy):
    model = SVCCV(CS, GAMMAS, refit=False).fit(*noisy)
    assert model.best_params_
    with pytest.raises(AttributeError, match="refit=False"):
        model.predict(noisy[0])


def test_default_widths_follow_the_scale_of_the_data(noisy):
    X, y = noisy
    model, far = SVCCV(3, 4).fit(X, y), SVCCV(3, 4).fit(1000.0 * X, y)
    np.testing.assert_allclose(far.gammas_, model.gammas_ / 1e6, rtol=1e-9)
    np.testing.assert_allclose(far.scores_, model.scores_)
    usual = SVC().fit(X, y).kernel_.gamma
    np.testing.assert_allclose(model.gammas_ / usual, np.logspace(-3, 2, 4))


def test_extreme_features(noisy):
    X, y = noisy
    model, tiny = SVCCV(3, 4).fit(X, y), SVCCV(3, 4).fit(X * 2.0**-200, y)
    np.testing.assert_allclose(tiny.scores_, model.scores_)
    with pytest.raises(NumericalOverflowError, match="Scale"):
        SVCCV(3, 4).fit(X * 2.0**-600, y)


# -- a drop-in -----------------------------------------------------------------------------------


def test_threads_do_not_show(iris):
    X, y = iris
    one, two = (SVCCV(CS, GAMMAS, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    for alone, together in zip(one.paths_, two.paths_, strict=True):
        for a, b in zip(chain(*alone), chain(*together), strict=True):
            np.testing.assert_array_equal(a.alphas.toarray(), b.alphas.toarray())


def test_sparse_and_frames(noisy):
    pd = pytest.importorskip("pandas")
    X, y = noisy
    X = np.where(np.abs(X) < 1, 0, X)
    dense = SVCCV(CS, GAMMAS).fit(X, y)
    sparse = SVCCV(CS, GAMMAS).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.scores_, dense.scores_, atol=1 / 24 + 1e-12)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = SVCCV(CS, GAMMAS).fit(frame, y)
    np.testing.assert_array_equal(named.scores_, dense.scores_)
    assert list(named.feature_names_in_) == list("abcdef")


def test_pickles_leave_the_machines_of_the_folds_behind(noisy):
    X, y = noisy
    model = SVCCV(CS, GAMMAS).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "paths_")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.scores_, model.scores_)
    clone(model)


def test_a_rare_class_may_be_missing_from_a_fold(iris):
    X, y = iris
    rows = np.r_[0:50, 50:100, 100:102]
    cv = PredefinedSplit(np.where(np.arange(102) >= 100, 0, np.arange(102) % 3))
    model = SVCCV(CS, [0.5], cv=cv, tol=1e-6).fit(X[rows], y[rows])
    cold = cold_scores(SVC(tol=1e-6, gamma=0.5), X[rows], y[rows], {"C": CS}, cv)
    assert any(None in paths for paths in model.paths_[0])
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], cold["mean_test_score"], atol=1e-12
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"Cs": [0.0, 1.0]}, "Cs.*positive"),
        ({"Cs": []}, "Cs.*positive"),
        ({"Cs": 0}, "Cs.*at least 1"),
        ({"Cs": [np.inf]}, "Cs.*positive"),
        ({"gammas": [np.nan]}, "gammas.*positive"),
        ({"gammas": "scale"}, "gammas"),
        ({"refit": "worst"}, "refit"),
        ({"cv": 1}, "n_splits|cv"),
        ({"tol": 0.0}, "tol"),
        ({"scoring": "neg_log_loss"}, "predict_proba|probabilities"),
    ],
)
def test_bad_settings(noisy, settings, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        SVCCV(**({"Cs": 2, "gammas": 2} | settings)).fit(*noisy)


def test_a_fold_with_one_class_is_refused(iris):
    X, y = iris
    with pytest.raises(InvalidDataError, match="fold"):
        SVCCV(2, 2, cv=KFold(2)).fit(X[:100], y[:100])


def test_a_failed_search_leaves_the_old_one(noisy):
    X, y = noisy
    model = SVCCV(CS, GAMMAS).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_cancelling(noisy):
    event = threading.Event()
    event.set()
    model = SVCCV(CS, GAMMAS)
    with margrove.watch(cancel=event), pytest.raises(FitCancelled):
        model.fit(*noisy)
    assert not hasattr(model, "scores_")


def test_too_few_steps_are_said(noisy):
    with pytest.warns(ConvergenceWarning, match="broken off"):
        model = SVCCV(CS, GAMMAS, max_iter=3, refit=False).fit(*noisy)
    assert (model.cv_results_["ending"] == "broken off").any()


# -- GridSearchCV --------------------------------------------------------------------------------


def test_grid_search_shares_and_agrees(noisy):
    X, y = noisy
    grid = {"C": CS, "gamma": GAMMAS}
    ours = GridSearchCV(SVC(tol=1e-6), grid, cv=4).fit(X, y)
    plain = sklearn.model_selection.GridSearchCV(SVC(tol=1e-6), grid, cv=4).fit(X, y)
    assert ours.shared_
    assert set(ours.cv_results_) == set(plain.cv_results_)
    for name, column in plain.cv_results_.items():
        if "time" not in name and name != "params":
            np.testing.assert_allclose(
                np.asarray(ours.cv_results_[name], float), np.asarray(column, float), atol=1e-12
            )
    assert ours.cv_results_["params"] == plain.cv_results_["params"]
    assert (ours.best_params_, ours.best_index_) == (plain.best_params_, plain.best_index_)
    np.testing.assert_array_equal(ours.predict(X), plain.predict(X))


@pytest.mark.parametrize("machine", [SVR(tol=1e-6), LinearSVR(tol=1e-9, random_state=0)])
def test_grid_search_of_regressions(machine):
    X, y = make_regression(60, 4, noise=5.0, random_state=0)
    grid = {"svm__C": CS[:4], "svm__epsilon": [0.1, 1.0]}
    if isinstance(machine, SVR):
        grid["svm__gamma"] = [0.01, 0.1]
    pipeline = sklearn.pipeline.Pipeline([("scale", StandardScaler()), ("svm", machine)])
    ours = GridSearchCV(pipeline, grid, cv=3).fit(X, y / 20)
    plain = sklearn.model_selection.GridSearchCV(pipeline, grid, cv=3).fit(X, y / 20)
    assert ours.shared_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-5
    )


def test_grid_search_of_a_pipeline_fits_its_steps_inside_the_folds(noisy):
    X, y = noisy
    X = X * np.array([1, 10, 100, 1000, 0.1, 0.01])
    pipeline = make_pipeline(StandardScaler(), SVC(tol=1e-6))
    grid = [
        {"svc__C": CS, "svc__gamma": [0.1, 1.0], "standardscaler__with_mean": [True, False]},
        {"svc__C": [1.0], "svc__kernel": ["linear"]},
    ]
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    ours = GridSearchCV(pipeline, grid, cv=3).fit(X, y, svc__sample_weight=weight)
    plain = sklearn.model_selection.GridSearchCV(pipeline, grid, cv=3)
    plain.fit(X, y, svc__sample_weight=weight)
    assert ours.shared_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-12
    )
    np.testing.assert_array_equal(ours.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize(
    ("estimator", "grid", "settings"),
    [
        (margrove.DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, {}),
        (SVC(), {"C": [1.0], "gamma": ["scale", 0.1]}, {}),
        (SVC(), {"C": [1.0]}, {"return_train_score": True}),
        (SVC(), {"C": [1.0], "gamma": [0.1]}, {"scoring": ["accuracy", "f1"], "refit": "f1"}),
        (sklearn.svm.SVC(), {"C": [1.0]}, {}),
        (SVC(probability=True, gamma=0.1), {"C": [1.0]}, {"scoring": "neg_log_loss"}),
        (make_pipeline(SVC()), {"svc": [SVC(), SVC(C=2.0)]}, {}),
    ],
)
def test_grid_search_of_anything_else_is_scikit_learns(noisy, estimator, grid, settings):
    X, y = noisy
    ours = GridSearchCV(estimator, grid, cv=3, **settings).fit(X, y)
    plain = sklearn.model_selection.GridSearchCV(estimator, grid, cv=3, **settings).fit(X, y)
    assert not ours.shared_
    for name in plain.cv_results_:
        if "test_" in name:
            np.testing.assert_array_equal(ours.cv_results_[name], plain.cv_results_[name])


def test_grid_search_with_errors_is_scikit_learns(iris):
    X, y = iris
    search = GridSearchCV(SVC(gamma=1.0), {"C": [1.0, 2.0]}, cv=KFold(3), error_score=0.25)
    with pytest.warns(sklearn.exceptions.FitFailedWarning):
        search.fit(X[:60], y[:60])
    assert not search.shared_
    assert list(search.cv_results_["split2_test_score"]) == [0.25, 0.25]


def test_grid_search_with_unknown_names_is_refused(noisy):
    with pytest.raises(ValueError, match="prize"):
        GridSearchCV(SVC(), {"prize": [1.0]}).fit(*noisy)


# -- paths ---------------------------------------------------------------------------------------


def test_a_path_as_data(noisy):
    pd = pytest.importorskip("pandas")
    path = svm_path(SVC(), *noisy, Cs=8)
    frame = path.frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(path) == 8
    assert list(frame.columns)[:2] == ["C", "n_support"]
    assert np.all(np.diff(frame["margin"]) <= 1e-6 * frame["margin"][:-1])  # C narrows the margin
    assert np.all(np.diff(frame["objective"]) <= 1e-9)
    last = path.machine(-1)
    assert len(last.support_) == path.points[-1].n_support


def test_a_path_of_several_classes_and_of_numbers(iris):
    X, y = iris
    path = svm_path(SVC(), X, y, [0.1, 10.0])
    for k, C in enumerate([0.1, 10.0]):
        np.testing.assert_array_equal(path.machine(k).predict(X), SVC(C=C).fit(X, y).predict(X))
    numbers = svm_path(SVR(tol=1e-6), X[:, :3], X[:, 3], [0.1, 10.0])
    for k, C in enumerate([0.1, 10.0]):
        np.testing.assert_allclose(
            numbers.machine(k).predict(X[:, :3]),
            SVR(C=C, tol=1e-6).fit(X[:, :3], X[:, 3]).predict(X[:, :3]),
            atol=1e-4,
        )


@pytest.mark.parametrize(
    ("estimator", "error"),
    [(LinearSVC(), TypeError), (SVC(fit_intercept=False), ValueError), (SVC(tol=-1), ValueError)],
)
def test_a_path_of_something_else(noisy, estimator, error):
    with pytest.raises(error):
        svm_path(estimator, *noisy)


def test_pictures(noisy):
    figure = pytest.importorskip("matplotlib.figure")
    axes = svm_path(SVC(), *noisy, Cs=5).plot(axes=figure.Figure().subplots(3))
    assert [len(ax.lines) for ax in axes] == [2, 1, 1]
    search = SVCCV(CS, GAMMAS).fit(*noisy)
    ax = margrove.plot.score_map(search, ax=figure.Figure().subplots())
    (mesh,) = ax.collections
    np.testing.assert_allclose(np.ravel(mesh.get_array()), search.cells_.means.T.ravel())
    line = margrove.plot.score_map(LinearSVCCV(CS).fit(*noisy), ax=figure.Figure().subplots())
    assert line.get_ylabel() == "mean score"
    with pytest.raises(ValueError, match="fit first"):
        margrove.plot.score_map(SVCCV())


@pytest.mark.nojit
def test_a_small_path_without_the_compiler():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((14, 2))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(14) > 0, 1, 0)
    path = svm_path(SVC(gamma=0.5), X, y, [0.1, 10.0, 1000.0])
    for number in range(3):
        assert path.machine(number).certificate_.violation < 1e-3


def test_rows_of_zeros_under_a_polynomial_kernel():
    """Zero rows of K make the system singular; the path still ends."""
    rng = np.random.default_rng(2)
    X = rng.integers(-3, 4, (80, 6)) * (rng.random((80, 6)) < 0.4)
    y = rng.integers(0, 3, 80)
    model = SVCCV([0.01, 1e4], [1.0], kernel="poly", degree=2).fit(X, y)
    assert set(model.cv_results_["ending"]) == {"converged"}
    assert model.cv_results_["n_steps"].max() < 200_000
