"""AdaBoost: the lecture's example, identities that hold in every round, and the benchmark."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, make_hastie_10_2
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.boosting import adaboost

from margrove import AdaBoostClassifier, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.exceptions import InvalidDataError

ALGORITHMS = ("discrete", "samme", "m1", "real", "gentle", "logit")
VOTING = ("discrete", "samme", "m1")
OF_MANY = ALGORITHMS[1:]


def fitted(X, y, weight=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return AdaBoostClassifier(**({"random_state": 0} | settings)).fit(X, y, weight)


# -- the lecture -----------------------------------------------------------------------------------

HEIGHTS = [2, 4, 5, 10, 6, 7, 1, 9, 8, 3]
TEN = np.c_[np.arange(1.0, 11.0), HEIGHTS]
SIGNS = np.array([1, 1, -1, 1, -1, 1, -1, 1, -1, -1])


def test_the_ten_points_of_the_lecture() -> None:
    base = DecisionTreeClassifier(max_depth=1, criterion="error")
    model = AdaBoostClassifier(base, n_estimators=3).fit(TEN, SIGNS)
    history = model.history_
    assert np.round(history.error, 2).tolist() == [0.30, 0.21, 0.14]
    assert history.beta == pytest.approx([0.42, 0.65, 0.92], abs=0.0051)
    assert history.training_error[-1] == 0.0
    assert np.array_equal(model.predict(TEN), SIGNS)
    textbook, scores = adaboost(TEN, SIGNS, 3)
    assert np.array_equal(np.sign(scores), SIGNS)
    for t, expected in enumerate(textbook):
        root = model[t].arrays_
        assert (root.feature[0], root.threshold[0]) == (expected.feature, expected.threshold)
        assert history.error[t] == pytest.approx(expected.eps)
        assert history.beta[t] == pytest.approx(expected.beta)
    assert model.decision_function(TEN) * history.beta.sum() / 2 == pytest.approx(scores)


def test_of_equal_stumps_the_lowest_feature_then_the_lowest_threshold() -> None:
    x = np.array([0.0, 1, 2, 3])
    y = np.array([0, 1, 0, 1])  # a split after the first row is as good as one before the last
    base = DecisionTreeClassifier(max_depth=1, criterion="error")
    model = fitted(np.c_[x, x, x], y, estimator=base, n_estimators=1)
    assert (model[0].arrays_.feature[0], model[0].arrays_.threshold[0]) == (0, 0.5)


# -- identities ------------------------------------------------------------------------------------


@st.composite
def problems(draw, most_classes=2):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) if draw(st.booleans()) else rng.integers(0, 5, (n, d)) * 1.0
    K = draw(st.integers(2, most_classes))
    y = rng.integers(0, K, n)
    y[:K] = np.arange(K)
    weight = draw(st.sampled_from([None, rng.integers(1, 4, n), rng.random(n) + 0.01]))
    return X, y, weight


def attempt(X, y, weight, **settings):
    """Fit a model, or return None if the first member is no better than chance."""
    try:
        return fitted(X, y, weight, **settings)
    except InvalidDataError:
        return None


@pytest.mark.parametrize("depth", [1, 2])
@given(problems())
@settings(max_examples=30)
def test_what_holds_in_every_round_of_two_classes(depth, problem) -> None:
    X, y, weight = problem
    base = DecisionTreeClassifier(max_depth=depth)
    model = attempt(X, y, weight, estimator=base, n_estimators=30, algorithm="discrete")
    if model is None:
        return
    history, signs = model.history_, 2 * y - 1
    D = list(model.staged_weights(X, y, weight))
    assert len(D) == len(model) + 1
    for t, (before, after) in enumerate(pairwise(D)):
        assert before.sum() == pytest.approx(1.0)
        assert np.isfinite(before).all()
        assert (before >= 0).all()
        h = 2 * model[t].predict(X) - 1
        eps = 0.5 - 0.5 * (before * signs * h).sum()
        assert history.error[t] == pytest.approx(eps, abs=1e-9)
        if eps > 1e-6:  # a perfect member has weight one
            assert after[h != signs].sum() == pytest.approx(0.5, abs=1e-6)
    assert (history.training_error <= history.bound * (1 + 1e-9)).all()
    assert (history.bound <= history.edge_bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("algorithm", OF_MANY)
@given(problems(most_classes=4))
@settings(max_examples=15)
def test_what_holds_of_every_algorithm(algorithm, problem) -> None:
    X, y, weight = problem
    model = attempt(X, y, weight, n_estimators=10, algorithm=algorithm)
    if model is None:
        return
    stages = list(model.staged_score(X, y, weight))
    clear = np.abs(np.diff(np.sort(model._scores(X)[0], axis=1)[:, -2:])).min() > 1e-9
    if clear:  # otherwise rounding decides ties
        assert 1 - model.history_.training_error[-1] == pytest.approx(stages[-1], abs=1e-9)
        assert np.array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    last = list(model.staged_decision_function(X))[-1]
    assert last == pytest.approx(model.decision_function(X), abs=1e-9)
    shares = model.predict_proba(X)
    assert list(model.staged_predict_proba(X))[-1] == pytest.approx(shares, abs=1e-9)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    for D in model.staged_weights(X, y, weight):
        assert np.isfinite(D).all()
        assert (D >= 0).all()
        assert D.sum(axis=0) == pytest.approx(1.0)
    margins = model.margins(X, y)
    is_right = model.predict(X) == y
    assert is_right[margins > 1e-9].all()
    assert not is_right[margins < -1e-9].any()
    if algorithm in VOTING:
        assert np.abs(margins).max() <= 1 + 1e-12


@pytest.mark.parametrize("algorithm", ["m1", "gentle", "real"])
def test_the_bound_holds_with_more_classes(algorithm) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 4, (20, 2)) * 1.0, rng.integers(0, 4, 20)
        model = attempt(X, y, None, algorithm=algorithm, n_estimators=10)
        if model is not None:
            history = model.history_
            assert not (history.training_error > history.bound * (1 + 1e-9)).any()


def test_one_real_member_gives_its_own_shares() -> None:
    X, y = load_iris(return_X_y=True)
    base = DecisionTreeClassifier(max_depth=2)
    model = fitted(X, y, estimator=base, algorithm="real", n_estimators=1)
    assert model.predict_proba(X) == pytest.approx(model[0].predict_proba(X), abs=1e-9)


def test_one_real_member_gives_its_own_shares_of_two_classes() -> None:
    X, y = load_iris(return_X_y=True)
    base = DecisionTreeClassifier(max_depth=2)
    model = fitted(X, y == 1, estimator=base, algorithm="real", n_estimators=1)
    assert model.predict_proba(X) == pytest.approx(model[0].predict_proba(X), abs=1e-9)


# -- stopping --------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2])
def test_a_perfect_member_is_the_last(depth) -> None:
    X = np.arange(6.0)[:, None]
    base = DecisionTreeClassifier(max_depth=depth)
    model = AdaBoostClassifier(base).fit(X, X[:, 0] > 2)
    assert len(model) == 1
    assert np.isfinite(model.estimator_weights_).all()
    assert model.history_.outcome == "perfect"
    assert model.score(X, X[:, 0] > 2) == 1.0


@pytest.mark.parametrize("depth", [1, 2])
def test_chance_is_named_or_warned_of(depth) -> None:
    base = DecisionTreeClassifier(max_depth=depth)
    X = np.zeros((8, 2))
    with pytest.raises(InvalidDataError, match="DecisionTreeClassifier is no better than chance"):
        AdaBoostClassifier(base).fit(X, np.arange(8) % 2)
    model = AdaBoostClassifier(base)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 rounds"):
        model.fit(X, np.arange(8) < 3)
    assert len(model) == len(model.history_) == 1
    assert model.history_.outcome == "no better than chance"


def test_early_stopping_keeps_the_best() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 2, 300)
    for base in (None, DecisionTreeClassifier(max_depth=2)):
        settings = {"estimator": base, "n_estimators": 400}
        model = fitted(X, y, early_stopping=True, n_iter_no_change=5, **settings)
        errors = model.history_.validation_error
        assert model.history_.outcome == "early stopping"
        assert len(model) == np.argmin(errors) + 1 == len(errors) - 5
        assert len(model.estimator_weights_) == len(model.estimator_errors_) == len(model)
        other = AdaBoostClassifier(**settings, early_stopping=True, n_iter_no_change=5)
        other.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
        expected = 1 - np.array(list(other.staged_score(X[200:], y[200:])))
        assert other.history_.validation_error[: len(other)] == pytest.approx(expected)
        chosen = fitted(X, y, early_stopping="cv", cv=3, **(settings | {"n_estimators": 30}))
        assert len(chosen.cv_errors_) == 30
        assert len(chosen) == np.argmin(chosen.cv_errors_) + 1


# -- going on --------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algorithm", OF_MANY)
def test_a_warm_start_is_as_one_go(algorithm, n_classes, depth) -> None:
    X, y = load_iris(return_X_y=True)
    y = y if n_classes == 3 else y == 1
    kind = DecisionTreeRegressor if algorithm in ("gentle", "logit") else DecisionTreeClassifier
    settings = {"estimator": kind(max_depth=depth), "algorithm": algorithm}
    once = fitted(X, y, n_estimators=9, **settings)
    model = fitted(X, y, n_estimators=4, warm_start=True, **settings)
    model.set_params(n_estimators=9).fit(X, y)
    assert model.predict_proba(X).tobytes() == once.predict_proba(X).tobytes()
    for name in ("error", "training_error"):
        assert getattr(model.history_, name).tobytes() == getattr(once.history_, name).tobytes()
    assert model.estimator_weights_.tobytes() == once.estimator_weights_.tobytes()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_warm_start_looks_at_every_member(depth) -> None:
    X, y = load_iris(return_X_y=True)
    validation = {"X_val": X[::2], "y_val": y[::2]}
    settings = {"estimator": DecisionTreeClassifier(max_depth=depth), "random_state": 0}
    once = AdaBoostClassifier(n_estimators=9, **settings).fit(X, y, **validation)
    model = AdaBoostClassifier(n_estimators=4, warm_start=True, **settings).fit(X, y)
    model.set_params(n_estimators=9).fit(X, y, **validation)
    assert np.array_equal(model.history_.validation_error, once.history_.validation_error)


# -- the benchmark of Friedman, Hastie and Tibshirani ----------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("algorithm", "expected", "within"),
    [("real", 0.058, 0.006), ("gentle", 0.058, 0.006), ("logit", 0.058, 0.006),
     ("discrete", 0.114, 0.008)],
)  # fmt: skip
def test_ten_normal_numbers(algorithm, expected, within) -> None:
    errors, of_one = [], []
    for seed in range(3):
        X, y = make_hastie_10_2(12_000, random_state=seed)
        model = fitted(X[:2000], y[:2000], algorithm=algorithm, n_estimators=400)
        stages = list(model.staged_score(X[2000:], y[2000:]))
        of_one.append(1 - stages[0])
        errors.append(1 - stages[-1])
    assert np.mean(errors) == pytest.approx(expected, abs=within)
    assert np.mean(of_one) == pytest.approx(0.458, abs=0.005)


def test_cancer_is_learnt_by_all() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    for algorithm in ALGORITHMS:
        model = fitted(X[::2], y[::2], algorithm=algorithm, n_estimators=50)
        assert model.score(X[1::2], y[1::2]) > 0.92
