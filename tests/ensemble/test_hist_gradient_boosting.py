"""The estimators of histogram gradient boosting."""

from __future__ import annotations

import copy
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier as PeerClassifier
from sklearn.ensemble import HistGradientBoostingRegressor as PeerRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, check_scoring, mean_absolute_error, r2_score
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit
from tests.interrupts import lines_until_interrupt
from threadpoolctl import threadpool_limits

import margrove
from margrove import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from margrove.ensemble.gradient import boosted_trees as gradient_boosted
from margrove.ensemble.gradient import early_stopping as gradient_monitor
from margrove.ensemble.gradient import hist_boosting as hist_gradient_boosting
from margrove.ensemble.gradient import history as gradient_history
from margrove.ensemble.gradient.hist import local_trees
from margrove.ensemble.gradient.hist import rounds as gradient_rounds
from margrove.ensemble.gradient.hist import trees as gradient_trees
from margrove.ensemble.gradient.losses import (
    GRADIENT_LOSSES,
    GradientLoss,
    Quantile,
    gradient_loss_of,
    register_gradient_loss,
)
from margrove.exceptions import DataWarning, InterruptedFitWarning

DIABETES = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def _divisions_are_silent():
    """Division by zero is silent, as in compiled code."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yield


def regressor(**settings):
    return HistGradientBoostingRegressor(**({"max_iter": 10, "random_state": 0} | settings))


def classifier(**settings):
    return HistGradientBoostingClassifier(**({"max_iter": 10, "random_state": 0} | settings))


def raw_of(model, X):
    """Raw scores, (scores, rows)."""
    return model._raw(X)


def assert_same_trees(one, other, n=None) -> None:
    """The first n rounds are equal bit for bit."""
    n = len(one) if n is None else n
    assert n == len(one) or n == len(other)
    for mine, yours in zip(one._rounds[:n], other._rounds[:n], strict=True):
        for tree, twin in zip(mine, yours, strict=True):
            assert np.array_equal(tree.nodes, twin.nodes)
            assert np.array_equal(tree.words, twin.words)


def with_holes(X, seed=0, share=0.1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


# -- what is learnt --------------------------------------------------------------------------------


LEARNERS = {
    "squared_error": (regressor(), DIABETES),
    "absolute_error": (regressor(loss="absolute_error"), DIABETES),
    "quantile": (regressor(loss="quantile", quantile=0.8), DIABETES),
    "huber": (regressor(loss="huber"), DIABETES),
    "poisson": (regressor(loss="poisson"), DIABETES),
    "gamma": (regressor(loss="gamma"), DIABETES),
    "two classes": (classifier(), CANCER),
    "three classes": (classifier(min_samples_leaf=5), IRIS),
    "exponential": (classifier(loss="exponential"), CANCER),
}


def learner(name):
    model, (X, y) = LEARNERS[name]
    return clone(model), X, y


@pytest.mark.parametrize("name", LEARNERS)
def test_the_history_is_that_of_the_stages(name) -> None:
    model, X, y = learner(name)
    model.set_params(max_iter=6).fit(X, y)
    history, targets = model.history_, y.astype(float)
    assert (history.rounds, history.outcome) == (6, "finished")
    assert history.training_loss.shape == (7,)
    stages = [raw.copy() for raw in model._staged_raw(X)]
    assert np.array_equal(stages[-1], raw_of(model, X))
    before = np.repeat(model._scores.start[:, None], len(y), axis=1)
    for t, raw in enumerate([before, *stages]):
        loss = model._loss.for_round(targets, raw, None)
        assert history.training_loss[t] == pytest.approx(loss.value(targets, raw, None), rel=1e-12)
    leaves = [sum(tree.n_leaves for tree in own) for own in model._rounds]
    assert history.n_leaves.tolist() == leaves
    if name in ("squared_error", "two classes"):
        assert (np.diff(history.training_loss) < 0.0).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_predictions_are_the_scores_of_the_training(name, monkeypatch) -> None:
    processes = []

    class Kept(gradient_rounds.GradientRounds):
        def __init__(self, *given, **settings):
            super().__init__(*given, **settings)
            processes.append(self)

    monkeypatch.setattr(hist_gradient_boosting, "GradientRounds", Kept)
    model, X, y = learner(name)
    X = with_holes(X)
    for settings in ({}, {"subsample": 0.5}, {"max_iter": 14, "warm_start": True}):
        model.set_params(**settings).fit(X, y)
        assert np.array_equal(raw_of(model, X), processes[-1].raw)
    if isinstance(model, HistGradientBoostingClassifier):
        assert np.array_equal(np.atleast_2d(model.decision_function(X).T), processes[-1].raw)


def test_the_squared_error_of_the_training_set_never_rises() -> None:
    X, y = DIABETES
    for settings in (
        {"max_iter": 150},
        {"max_iter": 60, "learning_rate": 1.0},
        {"max_iter": 60, "l2_regularization": 10.0, "max_leaf_nodes": None},
    ):
        losses = regressor(min_samples_leaf=3, **settings).fit(X, y).history_.training_loss
        assert (np.diff(losses) <= 1e-12 * losses[0]).all()
        assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("name", ["two classes", "three classes", "exponential"])
def test_stages_of_classes(name) -> None:
    model, X, y = learner(name)
    model.fit(X, y)
    assert np.array_equal(list(model.staged_decision_function(X))[-1], model.decision_function(X))
    shares = list(model.staged_predict_proba(X))
    assert np.array_equal(shares[-1], model.predict_proba(X))
    assert len(shares) == model.n_iter_ == len(model) == 10
    for own, found in zip(shares, model.staged_predict(X), strict=True):
        assert own.sum(axis=1) == pytest.approx(1.0)
        assert (model.classes_[np.argmax(own, axis=1)] == found).mean() > 0.99
    assert list(model.staged_score(X, y))[-1] == model.score(X, y) > 0.95
    assert np.allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert model.n_trees_per_iteration_ == (3 if name == "three classes" else 1)


def test_stages_of_numbers() -> None:
    X, y = DIABETES
    model = regressor(loss="poisson").fit(X, y)
    stages = list(model.staged_predict(X))
    assert np.array_equal(stages[-1], model.predict(X))
    assert list(model.staged_score(X, y)) == [r2_score(y, own) for own in stages]


@pytest.mark.nojit
def test_small_fits_by_hand() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    given = {"learning_rate": 1.0, "max_iter": 1, "min_samples_leaf": 1, "max_leaf_nodes": 2}
    model = regressor(**given).fit(X, [1.0, 2.0, 6.0, 7.0])
    assert model.predict(X).tolist() == [1.5, 1.5, 6.5, 6.5]
    assert model.predict([[1.4], [1.6], [np.nan]]).tolist()[:2] == [1.5, 6.5]
    model = classifier(**given).fit(X, ["no", "no", "no", "yes"])
    start = math.log(1 / 3)
    p = 0.25
    steps = [-p / (p * (1 - p)), (1 - p) / (p * (1 - p))]
    expected = start + np.array([steps[0]] * 3 + [steps[1]])
    assert model.decision_function(X) == pytest.approx(expected, rel=1e-9)
    assert model.predict(X).tolist() == ["no", "no", "no", "yes"]
    assert model.feature_importances_.tolist() == [1.0]


@pytest.mark.nojit
def test_adaboosts_loss() -> None:
    """The first step of each leaf, from derivatives of exp(-s raw) with signs s."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] + rng.normal(size=80) > 0.3).astype(int)
    given = {"loss": "exponential", "max_iter": 2, "min_samples_leaf": 5, "learning_rate": 0.5}
    model = classifier(**given).fit(X, y)
    raw = np.full(80, 0.5 * math.log(y.mean() / (1 - y.mean())))
    signs = 2 * y - 1
    for t, stage in enumerate(model.staged_decision_function(X)):
        leaves, expected = model.apply(X)[:, t], raw.copy()
        for leaf in np.unique(leaves):
            own = leaves == leaf
            sizes = np.exp(-signs[own] * raw[own])
            expected[own] += 0.5 * (signs[own] * sizes).sum() / sizes.sum()
        assert stage == pytest.approx(expected, rel=1e-9)
        raw = stage
    assert model.predict_proba(X)[:, 1] == pytest.approx(expit(2 * raw))


# -- scikit-learn's --------------------------------------------------------------------------------


def peer_of(model):
    kind = PeerClassifier if isinstance(model, HistGradientBoostingClassifier) else PeerRegressor
    known = kind().get_params()
    return kind(**{name: own for name, own in model.get_params().items() if name in known})


AGREEMENTS = {
    "numbers": ({}, DIABETES),
    "level of detail": ({"max_leaf_nodes": 8, "l2_regularization": 5.0, "max_bins": 20}, DIABETES),
    "depth": ({"max_depth": 3, "max_leaf_nodes": None, "learning_rate": 0.3}, DIABETES),
    "missing": ({}, (with_holes(DIABETES[0]), DIABETES[1])),
    "poisson": ({"loss": "poisson"}, DIABETES),
    "gamma": ({"loss": "gamma"}, DIABETES),
    "medians": ({"loss": "absolute_error"}, DIABETES),
    "quantiles": ({"loss": "quantile", "quantile": 0.8}, DIABETES),
    "monotonic": ({"monotonic_cst": [0, 0, 1, 1] + [0] * 6}, DIABETES),
    "interactions": ({"interaction_cst": [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]}, DIABETES),
    "two classes": ({}, CANCER),
    "three classes": ({"min_samples_leaf": 5}, IRIS),
    "balanced": ({"class_weight": "balanced", "max_iter": 10}, CANCER),
}


@pytest.mark.parametrize("name", AGREEMENTS)
def test_scikit_learn_comes_to_the_same_loss(name) -> None:
    settings, (X, y) = AGREEMENTS[name]
    is_number = X.shape[0] == len(DIABETES[1])
    settings = {"max_iter": 25, "early_stopping": False} | settings
    model = (regressor if is_number else classifier)(**settings).fit(X, y)
    with threadpool_limits(1):
        peer = peer_of(model).fit(X, y)
        raw = peer._raw_predict(X)
    raw = np.ascontiguousarray(np.reshape(raw, (len(y), -1)).T)
    weight = None
    if settings.get("class_weight"):
        weight = np.where(y == 1, 1 / (y == 1).mean(), 1 / (y == 0).mean()) / 2
    targets = y.astype(float)
    before = np.repeat(model._scores.start[:, None], len(y), axis=1)
    ours, theirs, start = (
        model._loss.value(targets, own, weight) for own in (raw_of(model, X), raw, before)
    )
    # Leaves of little hessian are avoided here: what is left of the loss may be more.
    assert start - ours == pytest.approx(start - theirs, rel=0.03)
    assert is_number or ours < 0.5 * start


def test_scikit_learn_comes_to_the_same_loss_with_categories() -> None:
    rng = np.random.default_rng(0)
    n = 1500
    labels = rng.integers(0, 12, n)
    X = np.c_[labels, rng.normal(size=n)].astype(float)
    y = rng.normal(size=12)[labels] + 0.3 * X[:, 1] + 0.2 * rng.normal(size=n)
    settings = {"categorical_features": [0], "max_iter": 30, "early_stopping": False}
    model = regressor(**settings).fit(X, y)
    with threadpool_limits(1):
        theirs = peer_of(model).fit(X, y).predict(X)
    ours, theirs = (np.mean((own - y) ** 2) for own in (model.predict(X), theirs))
    assert ours == pytest.approx(theirs, rel=0.03)
    assert ours < 0.1 * np.var(y)


def test_negative_categories_are_missing() -> None:
    """As in scikit-learn, only for numeric columns."""
    rng = np.random.default_rng(0)
    labels = rng.integers(-2, 6, 800)
    X = np.c_[labels, rng.normal(size=800)].astype(float)
    y = rng.normal(size=9)[labels] + 0.1 * X[:, 1]
    gaps = X.copy()
    gaps[labels < 0, 0] = np.nan
    settings = {"categorical_features": [0], "max_iter": 20}
    model, other = (regressor(**settings).fit(given, y) for given in (X, gaps))
    assert model.categories_[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert_same_trees(model, other)
    new = np.c_[[-1.0, -7.0, np.nan], np.zeros(3)]
    assert len(set(model.predict(new))) == 1
    named = pd.DataFrame({"a": pd.Categorical(labels), "b": X[:, 1]})
    assert regressor(max_iter=3).fit(named, y).categories_[0].tolist() == list(range(-2, 6))


# -- tables of all kinds ---------------------------------------------------------------------------


def assert_same_model(one, other, X) -> None:
    assert np.array_equal(raw_of(one, X), raw_of(other, X))


def test_sparse_matrices_are_dense_ones() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12)) * (rng.random((600, 12)) < np.linspace(0.02, 0.6, 12))
    y = X[:, 11] + 2 * X[:, 3] + 0.1 * rng.normal(size=600)
    weight = rng.integers(1, 4, 600)
    for given in ({}, {"sample_weight": weight}):
        dense = regressor(max_bins=30).fit(X, y, **given)
        sparse = regressor(max_bins=30).fit(sp.csr_matrix(X), y, **given)
        assert_same_trees(dense, sparse)
        assert np.array_equal(dense.predict(X), sparse.predict(sp.csc_matrix(X)))
        assert np.array_equal(dense.apply(X), sparse.apply(sp.csr_array(X)))
    early = {"early_stopping": True, "max_iter": 30, "subsample": 0.7, "random_state": 3}
    dense, sparse = (regressor(**early).fit(own, y) for own in (X, sp.csr_matrix(X)))
    assert np.array_equal(dense.validation_score_, sparse.validation_score_)
    assert_same_trees(dense, sparse)


def frame(n=400):
    rng = np.random.default_rng(0)
    colours = np.array(["red", "green", "blue", "violet"])[rng.integers(0, 4, n)]
    sizes = rng.normal(size=n)
    y = np.select([colours == "red", colours == "blue"], [2.0, -1.0], 0.5) + sizes
    return pd.DataFrame({"colour": pd.Categorical(colours), "size": sizes}), y


def test_frames_with_categories() -> None:
    table, y = frame()
    model = regressor(max_iter=40, learning_rate=0.3).fit(table, y)
    assert model.score(table, y) > 0.97
    assert model.feature_names_in_.tolist() == ["colour", "size"]
    assert model.is_categorical_.tolist() == [True, False]
    assert set(model.categories_[0]) == {"red", "green", "blue", "violet"}
    numbers = table.assign(colour=table["colour"].cat.codes.astype(float)).to_numpy()
    plain = regressor(max_iter=40, learning_rate=0.3, categorical_features=[0]).fit(numbers, y)
    assert np.array_equal(plain.predict(numbers), model.predict(table))
    pairs = {"colour": pl.Series(table["colour"].astype(str).tolist(), dtype=pl.Categorical),
             "size": table["size"].to_numpy()}  # fmt: skip
    polar = pl.DataFrame(pairs)
    other = regressor(max_iter=40, learning_rate=0.3).fit(polar, y)
    assert np.array_equal(other.predict(polar), model.predict(table))
    words = table.astype({"colour": str})
    named = regressor(max_iter=40, learning_rate=0.3, categorical_features=["colour"])
    assert np.array_equal(named.fit(words, y).predict(words), model.predict(table))


def test_missing_and_unknown_categories() -> None:
    table, y = frame()
    table.loc[:80, "colour"] = None
    y[:81] += 5.0
    model = regressor(max_iter=40, learning_rate=0.3).fit(table, y)
    assert model.score(table, y) > 0.95
    unknown = pd.DataFrame({"colour": ["pink", None], "size": [0.0, 0.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = model.predict(unknown)
    assert found[0] == found[1] > 4.0


def test_more_categories_than_codes() -> None:
    rng = np.random.default_rng(0)
    n, n_categories = 6000, 700
    labels = np.minimum(rng.geometric(0.01, n) - 1, n_categories - 1)
    effect = rng.normal(size=n_categories)
    X, y = labels[:, None].astype(float), effect[labels]
    model = regressor(categorical_features=[0], max_iter=60, learning_rate=0.3, min_samples_leaf=2,
                      max_bins=64)  # fmt: skip
    with pytest.warns(DataWarning, match="the 63 most frequent ones have their own bin"):
        model.fit(X, y)
    found = model.predict(X)
    counts = np.bincount(labels, minlength=n_categories)
    frequent = np.argsort(-counts, kind="stable")[:63]
    rare = np.setdiff1d(np.flatnonzero(counts), frequent)
    assert len(rare) > 100
    assert len(np.unique(found[np.isin(labels, rare)])) == 1
    own = np.isin(labels, frequent)
    assert np.mean((found[own] - y[own]) ** 2) < 0.05 * np.var(y[own])


@pytest.mark.parametrize("is_class", [False, True])
def test_infinity_constants_and_holes(is_class) -> None:
    rng = np.random.default_rng(0)
    X = np.c_[rng.choice([-np.inf, -1.0, 2.0, np.inf], 300), np.ones(300), np.full(300, np.nan),
              with_holes(rng.normal(size=(300, 1)), share=0.4)]  # fmt: skip
    y = (X[:, 0] > 0) + 2.0 * np.isnan(X[:, 3])
    model = (classifier if is_class else regressor)(max_iter=60, learning_rate=0.3).fit(X, y)
    assert model.score(X, y) > 0.999
    assert model.feature_importances_[1:3].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["squared_error", "absolute_error", "quantile"])
@pytest.mark.parametrize("exponent", [-1060, -600, 600, 1010])
def test_targets_at_the_edge_of_floating_point(name, exponent) -> None:
    model, X, y = learner(name)
    plain = clone(model).fit(X, y)
    model.fit(X, np.ldexp(y, exponent))
    found = model.predict(X)
    assert np.isfinite(found).all()
    if exponent > -1000:
        assert np.array_equal(found, np.ldexp(plain.predict(X), exponent))
    else:  # floating point has few digits here
        assert np.allclose(found, np.ldexp(plain.predict(X), exponent), rtol=1e-3)
    power = 2 if name == "squared_error" else 1
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(plain.history_.training_loss, power * exponent)
    assert np.allclose(model.history_.training_loss, expected, rtol=1e-3, equal_nan=False)
    model.set_params(warm_start=True, max_iter=12).fit(X, np.ldexp(y, exponent))
    assert np.isfinite(model.predict(X)).all()


def test_nothing_to_learn_is_said() -> None:
    with pytest.warns(DataWarning, match="has found no split"):
        model = regressor().fit(np.ones((50, 2)), np.arange(50.0))
    assert model.predict([[1.0, 1.0]]) == pytest.approx([24.5])
    assert model.feature_importances_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "settings", [{}, {"loss": "exponential"}, {"early_stopping": True, "scoring": "accuracy"}]
)
def test_one_class_is_always_predicted(settings) -> None:
    X, y = IRIS[0], np.array(["only"] * 150)
    with pytest.warns(DataWarning, match="whether y varies"):
        model = classifier(**settings).fit(X, y)
    assert model.classes_.tolist() == ["only"]
    assert np.array_equal(model.predict(X), y)
    assert np.array_equal(model.predict_proba(X), np.ones((150, 1)))
    assert np.array_equal(next(model.staged_predict_proba(X)), np.ones((150, 1)))
    assert model.decision_function(X).shape == (150,)


# -- weights, order, threads -----------------------------------------------------------------------


WAYS = {
    "plain": {},
    "subsample": {"subsample": 0.6},
    "features": {"max_features": 0.4},
    "early": {"early_stopping": True, "max_iter": 30, "n_iter_no_change": 3},
    "level": {"growth": "level", "max_leaf_nodes": 9},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name", ["squared_error", "absolute_error", "two classes", "three classes"]
)
def test_weights_are_rows_repeated_or_removed(name, way) -> None:
    model, X, y = learner(name)
    model.set_params(**WAYS[way])
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    one, other = clone(model).fit(X, y, weight), clone(model).fit(X[rows], y[rows])
    assert_same_trees(one, other)
    assert_same_model(one, other, X)


def test_heavy_weights_are_rows_repeated() -> None:
    model, X, y = learner("three classes")
    weight = np.random.default_rng(2).integers(1, 41, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    one, other = clone(model).fit(X, y, weight), clone(model).fit(X[rows], y[rows])
    assert_same_model(one, other, X)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["squared_error", "quantile", "two classes", "three classes"])
def test_the_order_of_rows_does_not_matter(name, way) -> None:
    model, X, y = learner(name)
    model.set_params(**WAYS[way])
    weight = np.random.default_rng(1).random(len(y))
    order = np.random.default_rng(2).permutation(len(y))
    for own, mixed in ((None, None), (weight, weight[order])):
        one = clone(model).fit(X, y, own)
        other = clone(model).fit(X[order], y[order], mixed)
        assert_same_trees(one, other)
        assert_same_model(one, other, X)
        assert np.allclose(one.validation_score_, other.validation_score_, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["squared_error", "two classes"])
def test_the_unit_of_weights_does_not_matter(name) -> None:
    model, X, y = learner(name)
    weight = np.random.default_rng(1).random(len(y)) + 0.1
    one, two, three = (clone(model).fit(X, y, k * weight) for k in (1.0, 4.0, 3.0))
    assert_same_model(one, two, X)
    assert np.allclose(
        raw_of(one, X), raw_of(three, X), rtol=0.05, atol=0.05 * np.ptp(raw_of(one, X))
    )
    assert three.history_.training_loss == pytest.approx(one.history_.training_loss, rel=0.02)


def test_class_weights_are_factors_of_weights() -> None:
    X, y = CANCER
    by_class = classifier(class_weight={0: 0.7, 1: 2.3}).fit(X, y)
    by_row = classifier().fit(X, y, np.where(y == 1, 2.3, 0.7))
    assert_same_trees(by_class, by_row)
    balanced = classifier(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    by_row = classifier().fit(X, y, (len(y) / (2 * counts))[y])
    assert_same_trees(balanced, by_row)
    assert (
        balanced.predict_proba(X)[:, 0].mean()
        > classifier().fit(X, y).predict_proba(X)[:, 0].mean()
    )


def large_table(n=20_000):
    rng = np.random.default_rng(0)
    X = with_holes(rng.normal(size=(n, 4)), share=0.05)
    y = (np.nan_to_num(X[:, 0] * X[:, 1]) + rng.normal(size=n) > 0).astype(int)
    return X, y


@pytest.mark.parametrize("way", WAYS)
def test_threads_do_not_matter(way, monkeypatch) -> None:
    monkeypatch.setattr(gradient_rounds, "available_cores", lambda: 3)
    X, y = large_table()
    settings = {"max_iter": 4, "max_bins": 60, "early_stopping": False} | WAYS[way]
    models = [classifier(n_jobs=k, **settings).fit(X, y) for k in (1, 2, 3)]
    for other in models[1:]:
        assert_same_trees(models[0], other)
        assert np.array_equal(models[0].history_.training_loss, other.history_.training_loss)
        assert np.array_equal(models[0].validation_score_, other.validation_score_)


def test_no_setting_makes_kernels_compile_anew() -> None:
    """Arrays of another order or type would compile kernels again, for 15 seconds."""
    X, y = with_holes(DIABETES[0]), DIABETES[1]
    regressor().fit(X, y)
    known = len(gradient_trees.grow.signatures)
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    for settings in (
        {"interaction_cst": "pairwise"},
        {"monotonic_cst": [1] + [0] * 9},
        {"loss": "absolute_error"},
        {"subsample": 0.5, "max_features": 0.5},
    ):
        regressor(max_iter=2, **settings).fit(X, y)
    regressor(max_iter=2).fit(sp.csr_matrix(DIABETES[0]), y, weight)
    regressor(max_iter=2, early_stopping=True).fit(np.asfortranarray(X), y, weight * 0.3)
    regressor(max_iter=2).fit(X, np.where(np.arange(len(y)) == 0, 1e9, y), weight * 100)
    assert len(gradient_trees.grow.signatures) == known


# -- constraints -----------------------------------------------------------------------------------


MONOTONIC = {
    "squared_error": regressor(),
    "absolute_error": regressor(loss="absolute_error"),
    "quantile": regressor(loss="quantile", quantile=0.7),
    "huber": regressor(loss="huber"),
    "poisson": regressor(loss="poisson"),
    "log_loss": classifier(),
    "exponential": classifier(loss="exponential"),
}


@pytest.mark.parametrize("growth", ["leaf", "level"])
@pytest.mark.parametrize("name", MONOTONIC)
def test_predictions_only_rise_or_fall(name, growth) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    trend = np.sin(3 * X[:, 0]) + X[:, 0] - np.cos(2 * X[:, 1]) - X[:, 1] + X[:, 0] * X[:, 2]
    X = with_holes(X, share=0.15)
    model = clone(MONOTONIC[name]).set_params(max_iter=30, min_samples_leaf=5, growth=growth)
    y = trend + 0.3 * rng.normal(size=700)
    if isinstance(model, HistGradientBoostingClassifier):
        y = y > 0.2
    elif name == "poisson":
        y = np.exp(y / 2)
    grid = np.concatenate([[-np.inf], np.linspace(-3, 3, 61), [np.inf]])
    for signs in ([1, -1, 0], [-1, 1, 0]):
        bound = clone(model).set_params(monotonic_cst=signs).fit(X, y)
        free = clone(model).fit(X, y)
        broken = 0
        for feature, sign in enumerate(signs[:2]):
            for context in X[:40]:
                rows = np.tile(context, (len(grid), 1))
                rows[:, feature] = grid
                assert (sign * np.diff(raw_of(bound, rows)[0]) >= 0.0).all()
                broken += (sign * np.diff(raw_of(free, rows)[0]) < 0.0).any()
        assert broken > 40  # a model without the constraint violates it
    assert len(np.unique(raw_of(bound, X))) > 20


def test_monotonic_constraints_by_name() -> None:
    table, y = frame()
    by_name = regressor(monotonic_cst={"size": 1}).fit(table, y)
    assert_same_trees(by_name, regressor(monotonic_cst=[0, 1]).fit(table, y))
    free = regressor(monotonic_cst=[0, 0]).fit(table, y)
    assert_same_trees(free, regressor().fit(table, y))
    for given, message in (
        ({"size": 1, "b": 1, "a": 1}, r"2 unexpected feature names: \['a', 'b'\]"),
        ({"size": 2}, r"monotonic_cst\['size'\] must be either -1, 0 or 1\. Got 2\."),
        ({"size": "+"}, r"monotonic_cst\['size'\] must be either -1, 0 or 1\. Got '\+'\."),
    ):
        with pytest.raises(ValueError, match=message):
            regressor(monotonic_cst=given).fit(table, y)
    with pytest.raises(ValueError, match="Regressor was not fitted on data with feature names"):
        regressor(monotonic_cst={"size": 1}).fit(*DIABETES)


def features_of_paths(model):
    """The features on the path to each leaf of each tree."""
    for t in range(len(model)):
        tree = model.tree(t)
        for node in np.flatnonzero(tree.feature < 0):
            used, above = set(), tree.parent[node]
            while above >= 0:
                used.add(int(tree.feature[above]))
                above = tree.parent[above]
            yield frozenset(used)


@pytest.mark.parametrize(
    ("given", "sets"),
    [
        ("no_interactions", [{j} for j in range(6)]),
        ("pairwise", [{i, j} for i in range(6) for j in range(i)]),
        ([[0, 1], (1, 2, 3)], [{0, 1}, {1, 2, 3}, {4, 5}]),
        ([{0, 1, 2, 3, 4, 5}], [set(range(6))]),
        ([], [set(range(6))]),
    ],
)
def test_features_of_a_path_are_of_one_set(given, sets) -> None:
    X, y = DIABETES[0][:, 2:8], DIABETES[1]
    model = regressor(interaction_cst=given, max_iter=15).fit(X, y)
    paths = set(features_of_paths(model))
    assert all(any(path <= own for own in sets) for path in paths)
    assert max(map(len, paths)) == 1 or max(map(len, sets)) > 1
    free = set(features_of_paths(regressor(max_iter=15).fit(X, y)))
    assert len(sets) == 1 or not all(any(path <= own for own in sets) for path in free)


def test_a_share_of_the_features_is_tried() -> None:
    X, y = DIABETES
    settings = {"max_features": 0.1, "max_iter": 40, "max_leaf_nodes": 2}
    model = regressor(**settings).fit(X, y)
    roots = [int(model.tree(t).feature[0]) for t in range(40)]
    assert len(set(roots)) >= 8  # one feature is drawn each time, whatever its gain
    assert_same_trees(model, regressor(**settings).fit(X, y))
    other = regressor(**settings).set_params(random_state=1).fit(X, y)
    assert [int(other.tree(t).feature[0]) for t in range(40)] != roots
    best = regressor(max_iter=1, max_leaf_nodes=2).fit(X, y)
    assert {int(best.tree(0).feature[0])} < set(roots)


def test_subsamples() -> None:
    X, y = DIABETES
    model = regressor(subsample=0.5, max_iter=6, min_samples_leaf=5).fit(X, y)
    assert {int(model.tree(t).n_samples[0]) for t in range(6)} == {221}
    assert_same_trees(model, regressor(subsample=0.5, max_iter=6, min_samples_leaf=5).fit(X, y))
    thresholds = {tuple(model.tree(t).threshold[:3]) for t in range(6)}
    assert len(thresholds) == 6
    targets, raw = y.astype(float), raw_of(model, X)
    expected = model._loss.value(targets, raw, None)  # also of rows that were left out
    assert model.history_.training_loss[-1] == pytest.approx(expected, rel=1e-12)


# -- early stopping --------------------------------------------------------------------------------


def halves(X, y):
    return X[::2], y[::2], X[1::2], y[1::2]


STOPS = {"early_stopping": True, "n_iter_no_change": 3, "max_iter": 100, "learning_rate": 0.3}


@pytest.mark.parametrize(
    "name", ["squared_error", "absolute_error", "two classes", "three classes"]
)
def test_stopping_with_given_rows(name) -> None:
    model, X, y = learner(name)
    X, y, X_val, y_val = halves(X, y)
    model.set_params(**STOPS).fit(X, y, X_val=X_val, y_val=y_val)
    n = model.n_iter_
    assert n < 100
    assert model.history_.outcome == "stopped early"
    assert model.do_early_stopping_
    whole = clone(model).set_params(early_stopping=False).fit(X, y)
    assert_same_trees(model, whole, n)
    assert (whole.n_iter_, whole.history_.outcome) == (100, "finished")
    targets = y_val.astype(float)
    raws = [np.repeat(model._scores.start[:, None], len(y_val), axis=1)]
    raws += [raw.copy() for raw in model._staged_raw(X_val)]
    expected = [-model._loss.value(targets, raw, None) for raw in raws]
    assert model.validation_score_ == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(model.train_score_, -model.history_.training_loss)
    assert len(model.train_score_) == n + 1
    stops = [peer_of(model)._should_stop(expected[:k]) for k in range(1, n + 2)]
    assert stops.index(True) == n


def test_rows_are_set_apart() -> None:
    X, y = CANCER
    seen = []

    def score(model, X, y):
        seen.append((X, y))
        return accuracy_score(y, model.predict(X))

    for share, size in ((0.1, 57), (57, 57), (0.25, 143), (1, 1)):
        seen.clear()
        model = classifier(**STOPS, validation_fraction=share, scoring=score).fit(X, y)
        X_held, y_held = seen[0]
        assert len(y_held) == size
        assert len(seen) == model.n_iter_ + 1
        if size > 10:
            assert np.abs(np.bincount(y_held) - size * np.bincount(y) / len(y)).max() < 1.0
        held = {tuple(row) for row in X_held}
        rest = np.array([tuple(row) not in held for row in X])
        assert (~rest).sum() == size
        alone = classifier(max_iter=model.n_iter_, learning_rate=0.3).fit(X[rest], y[rest])
        assert_same_trees(model, alone)


@pytest.mark.parametrize("splitter", [ShuffleSplit(1, test_size=0.3, random_state=1),
                                      TimeSeriesSplit(3)])  # fmt: skip
def test_a_splitter_sets_rows_apart(splitter) -> None:
    X, y = DIABETES
    train, test = next(splitter.split(X))
    model = regressor(**STOPS, validation_fraction=splitter).fit(X, y)
    other = regressor(**STOPS).fit(X[train], y[train], X_val=X[test], y_val=y[test])
    assert_same_trees(model, other)
    assert np.array_equal(model.validation_score_, other.validation_score_)


def test_the_training_set_may_tell() -> None:
    X, y = DIABETES
    model = regressor(**(STOPS | {"tol": 60.0}), validation_fraction=None).fit(X, y)
    assert 1 < model.n_iter_ < 100
    assert np.array_equal(model.validation_score_, -model.history_.training_loss)
    whole = regressor(max_iter=model.n_iter_, learning_rate=0.3).fit(X, y)
    assert_same_trees(model, whole)
    model = regressor(**(STOPS | {"tol": 0.02}), validation_fraction=None, scoring=None).fit(X, y)
    expected = [r2_score(y, own) for own in model.staged_predict(X)]
    assert model.validation_score_[1:] == pytest.approx(expected)
    assert model.history_.outcome == "stopped early"


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", None, "neg_log_loss"])
def test_scoring_of_classes(scoring) -> None:
    X, y = CANCER
    names = np.array(["benign", "malign"])[y]
    X, names, X_val, names_val = halves(X, names)
    model = classifier(**STOPS, scoring=scoring).fit(X, names, X_val=X_val, y_val=names_val)
    assert 3 <= model.n_iter_ < 100
    scorer = check_scoring(model, scoring)
    assert model.validation_score_[-1] == pytest.approx(scorer(model, X_val, names_val))
    if scoring in ("accuracy", None):
        shares = [(own == names_val).mean() for own in model.staged_predict(X_val)]
        assert model.validation_score_[1:] == pytest.approx(shares)


def test_scoring_of_numbers_with_weights() -> None:
    X, y, X_val, y_val = halves(*DIABETES)
    weight = np.random.default_rng(0).random(len(y_val))
    for unit in (1.0, 2.0**400):  # which is taken out of targets before they are boosted
        given = {"X_val": X_val, "y_val": unit * y_val, "sample_weight_val": weight}
        model = regressor(**STOPS, scoring="neg_mean_absolute_error").fit(X, unit * y, **given)
        expected = [-mean_absolute_error(y_val, own / unit, sample_weight=weight)
                    for own in model.staged_predict(X_val)]  # fmt: skip
        assert model.validation_score_[1:] / unit == pytest.approx(expected)
        by_loss = regressor(**STOPS).fit(X, unit * y, **given)
        expected = [-0.5 * np.average((own / unit - y_val) ** 2, weights=weight)
                    for own in by_loss.staged_predict(X_val)]  # fmt: skip
        assert by_loss.validation_score_[1:] / unit**2 == pytest.approx(expected)
        assert by_loss.n_iter_ < 100


def test_auto_stops_early_with_many_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_001, 2)), rng.normal(size=10_001)
    assert not regressor(max_iter=2).fit(X[1:], y[1:]).do_early_stopping_
    model = regressor(max_iter=2).fit(X, y)
    assert model.do_early_stopping_
    assert model.validation_score_.shape == (3,)
    assert regressor(max_iter=2).fit(X[1:], y[1:]).validation_score_.shape == (0,)
    weight = np.ones(len(y) - 2)
    weight[0] = 3.0  # samples count, not rows
    assert regressor(max_iter=2).fit(X[2:], y[2:], weight).do_early_stopping_
    assert not regressor(max_iter=2, early_stopping=False).fit(X, y).do_early_stopping_


# -- going on --------------------------------------------------------------------------------------


GOING_ON = {
    "plain": {},
    "subsample": {"subsample": 0.6},
    "features": {"max_features": 0.4, "random_state": None},
    "early": {"early_stopping": True, "n_iter_no_change": 4},
    "early by accuracy": {"early_stopping": True, "n_iter_no_change": 6, "scoring": None},
    "early on training": {"early_stopping": True, "validation_fraction": None, "subsample": 0.8},
}


@pytest.mark.parametrize("way", GOING_ON)
@pytest.mark.parametrize(
    "name", ["squared_error", "absolute_error", "two classes", "three classes"]
)
def test_a_warm_start_goes_on_as_if_nothing_had_been(name, way) -> None:
    model, X, y = learner(name)
    model.set_params(learning_rate=0.2, **GOING_ON[way])
    if model.random_state is None:
        model.set_params(random_state=np.random.RandomState(3))
    first = clone(model).set_params(max_iter=4, warm_start=True).fit(X, y)
    assert first.n_iter_ == 4
    first = pickle.loads(pickle.dumps(first))
    first.set_params(max_iter=15).fit(X, y)
    if isinstance(model.random_state, np.random.RandomState):
        model.set_params(random_state=np.random.RandomState(3))
    whole = clone(model).set_params(max_iter=15).fit(X, y)
    assert_same_trees(first, whole)
    assert_same_model(first, whole, X)
    for own in ("training_loss", "validation_score", "n_leaves"):
        mine, yours = getattr(first.history_, own), getattr(whole.history_, own)
        assert np.allclose(mine, yours, rtol=1e-12, atol=0), own
    assert first.history_.outcome == whole.history_.outcome


def test_a_warm_start_with_given_rows() -> None:
    X, y, X_val, y_val = halves(*DIABETES)
    given = {"X_val": X_val, "y_val": y_val}
    first = regressor(**(STOPS | {"max_iter": 2}), warm_start=True).fit(X, y, **given)
    first.set_params(max_iter=100).fit(X, y, **given)
    whole = regressor(**STOPS).fit(X, y, **given)
    assert_same_trees(first, whole)
    assert np.array_equal(first.validation_score_, whole.validation_score_)
    n = first.n_iter_
    assert n < 100
    again = clone(first).set_params(max_iter=n).fit(X, y, **given)
    again.fit(X, y, **given)  # no more rounds are wanted
    assert_same_trees(again, whole)


def test_a_warm_start_needs_the_same_data() -> None:
    X, y = IRIS
    model = classifier(warm_start=True, min_samples_leaf=5).fit(X, y)
    with pytest.raises(ValueError, match=r"max_iter=5 must be larger than or equal to n_iter_=10"):
        model.set_params(max_iter=5).fit(X, y)
    model.set_params(max_iter=12)
    with pytest.raises(ValueError, match="needs the classes of the last fit"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match="which had 4 features"):
        model.fit(X[:, :3], y)
    assert model.n_iter_ == 10
    assert model.fit(X, y).n_iter_ == 12


@pytest.mark.parametrize("name", ["squared_error", "quantile", "two classes", "three classes"])
def test_the_end_of_the_time_is_no_end(name) -> None:
    model, X, y = learner(name)
    model.set_params(max_iter=40, subsample=0.7, warm_start=True)
    whole = clone(model).fit(X, y)
    model.set_params(max_time=1e-9)
    seen = set()
    for _ in range(3):
        with pytest.warns(ConvergenceWarning, match="used up max_time"):
            model.fit(X, y)
        assert model.history_.outcome == "max_time"
        assert len(model.history_.training_loss) == model.n_iter_ + 1
        assert_same_trees(model, whole, model.n_iter_)
        seen.add(model.n_iter_)
    assert len(seen) == 3
    model.set_params(max_time=None).fit(X, y)
    assert_same_trees(model, whole)
    assert model.history_.outcome == "finished"
    assert np.allclose(model.history_.training_loss, whole.history_.training_loss, rtol=1e-12)


# -- interrupts ------------------------------------------------------------------------------------


MODULES = (gradient_rounds, local_trees, gradient_monitor, gradient_boosted, gradient_history,
           hist_gradient_boosting)  # fmt: skip
FILES = tuple(module.__file__ for module in MODULES)


def fit_interrupted(model, X, y, moment):
    return lines_until_interrupt(model.fit, X, y, files=FILES, moment=moment)


@pytest.mark.parametrize("name", ["early", "medians", "three classes"])
@pytest.mark.sampled(1)
def test_an_interrupt_at_any_line_of_boosting(name) -> None:
    """The old model stays, or the new one has the first rounds of an uninterrupted fit."""
    model, X, y = learner({"early": "squared_error", "medians": "absolute_error"}.get(name, name))
    model.set_params(max_iter=4, n_jobs=1, on_interrupt="keep", warm_start=True, subsample=0.8)
    if name == "early":
        model.set_params(early_stopping=True)
    whole = clone(model)
    n_lines = len(fit_interrupted(whole, X, y, -1))
    kept = set()
    for moment in np.linspace(0, n_lines - 1, 150).astype(int):
        other = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterruptedFitWarning)
            fit_interrupted(other, X, y, moment)
        if not hasattr(other, "_rounds"):
            continue
        n = other.n_iter_
        kept.add(n)
        assert_same_trees(other, whole, n)
        assert len(other.history_.training_loss) == n + 1
        assert len(other.validation_score_) == (n + 1 if name == "early" else 0)
        expected = whole.history_.training_loss[: n + 1]
        assert np.allclose(other.history_.training_loss, expected, rtol=1e-12)
        other.fit(X, y)
        assert_same_trees(other, whole)
        assert np.allclose(other.validation_score_, whole.validation_score_, rtol=1e-12)
    assert kept == {1, 2, 3, 4}


def test_an_interrupt_of_several_threads(monkeypatch) -> None:
    monkeypatch.setattr(local_trees, "_CELLS_TO_SHARE_A_TREE", 1)
    monkeypatch.setattr(gradient_rounds, "available_cores", lambda: 2)
    X, y = DIABETES
    model = regressor(max_iter=6, n_jobs=2, on_interrupt="keep", warm_start=True)
    whole = clone(model)
    n_lines = len(fit_interrupted(whole, X, y, -1))
    for moment in np.linspace(n_lines // 4, n_lines - 1, 12).astype(int):
        other = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterruptedFitWarning)
            fit_interrupted(other, X, y, moment)
        if hasattr(other, "_rounds"):
            assert_same_trees(other, whole, other.n_iter_)
            assert_same_trees(other.fit(X, y), whole)


def test_who_watches_may_end_it() -> None:
    X, y = DIABETES
    told = []

    def enough(progress):
        told.append(progress)
        return progress.done >= 3

    with margrove.watch(on_progress=enough):
        model = regressor().fit(X, y)
    assert model.n_iter_ == 3
    assert model.history_.outcome == "callback"
    assert told[-1].figures["loss"] == model.history_.training_loss[2]
    assert_same_trees(model, regressor().fit(X, y), 3)


# -- as an estimator -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_copies_predict_the_same(name) -> None:
    model, X, y = learner(name)
    model.fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, y)):
        assert np.array_equal(other.predict(X), model.predict(X))
        assert np.array_equal(other.apply(X), model.apply(X))
        assert np.array_equal(other.history_.training_loss, model.history_.training_loss)
        assert np.array_equal(other.feature_importances_, model.feature_importances_)
    assert not hasattr(clone(model), "history_")


@pytest.mark.parametrize("labels", [["a", "b", "c"], [10, 20, 30], [-1.0, 0.0, 2.0]])
def test_labels_of_all_kinds(labels) -> None:
    X, y = IRIS
    plain = classifier(min_samples_leaf=5).fit(X, y)
    named = classifier(min_samples_leaf=5).fit(X, np.array(labels)[y])
    assert named.classes_.tolist() == labels
    assert np.array_equal(named.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(named.predict(X), np.array(labels)[plain.predict(X)])


@pytest.mark.parametrize("name", ["squared_error", "two classes", "three classes"])
def test_leaves_and_trees_add_up_to_predictions(name) -> None:
    model, X, y = learner(name)
    X = with_holes(X)
    model.fit(X, y)
    leaves = model.apply(X)
    k = model.n_trees_per_iteration_
    assert leaves.shape == ((len(y), 10) if k == 1 else (len(y), 10, 3))
    leaves = leaves.reshape(len(y), 10, k)
    raw = np.repeat(model._scores.start[:, None], len(y), axis=1)
    for t in range(10):
        for score in range(k):
            tree = model.tree(t, score)
            own = leaves[:, t, score]
            assert (tree.n_children[own] == 0).all()
            assert np.array_equal(np.unique(own), np.flatnonzero(tree.n_children == 0))
            counts = np.bincount(own, minlength=len(tree))
            assert np.array_equal(counts[np.unique(own)], tree.n_samples[np.unique(own)])
            raw[score] += tree.value[own, 0]
    assert np.array_equal(raw, raw_of(model, X))


def test_importances() -> None:
    X, y = CANCER
    model = classifier(max_iter=20).fit(X, y)
    gains, splits = np.zeros(30), np.zeros(30)
    for t in range(20):
        tree = model.tree(t)
        inner = tree.n_children > 0
        np.add.at(gains, tree.feature[inner], tree.decrease[inner])
        np.add.at(splits, tree.feature[inner], 1.0)
    assert model.feature_importances_ == pytest.approx(gains / gains.sum())
    assert model.importances("split") == pytest.approx(splits / splits.sum())
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="kind must be 'gain' or 'split'"):
        model.importances("weight")


def test_gains_are_twice_what_the_loss_falls_by() -> None:
    """For squared errors with full steps this is exact, except for gradients of few bits."""
    X, y = DIABETES
    model = regressor(learning_rate=1.0, max_iter=3).fit(X, y)
    falls = -np.diff(model.history_.training_loss) * len(y)
    gains = [model.tree(t).decrease.sum() for t in range(3)]
    assert gains == pytest.approx(2 * falls, rel=0.01)


# -- losses of one's own ---------------------------------------------------------------------------


def own_value(y, raw):
    return 0.5 * (raw - y) ** 2


def own_gradient(y, raw):
    return raw - y


def own_hessian(y, raw):
    return 1.0


def test_a_loss_of_ones_own() -> None:
    X, y = DIABETES
    given = {"value": own_value, "gradient": own_gradient, "hessian": own_hessian,
             "start": lambda y, weight: float(np.average(y, weights=weight))}  # fmt: skip
    expected = regressor().fit(X, y)
    try:
        register_gradient_loss("mine", **given)
        named = regressor(loss="mine").fit(X, y)
    finally:
        GRADIENT_LOSSES.pop("mine", None)
    assert np.allclose(named.predict(X), expected.predict(X), rtol=1e-9)
    assert named.history_.training_loss == pytest.approx(expected.history_.training_loss)
    by_object = regressor(loss=GradientLoss.of_functions(**given)).fit(X, y)
    assert_same_trees(by_object, named)


@pytest.mark.nojit
def test_a_loss_as_an_object() -> None:
    X, y = DIABETES[0][:60], DIABETES[1][:60]
    by_name = regressor(loss="quantile", quantile=0.3, max_iter=2).fit(X, y)
    by_object = regressor(loss=Quantile(0.3), max_iter=2).fit(X, y)
    assert_same_trees(by_object, by_name)
    assert by_object._loss == gradient_loss_of("quantile", quantile=0.3)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"loss": "quantile"}, {}, "needs the parameter quantile"),
        ({"loss": "log_loss"}, {}, "loss='log_loss' is for classification"),
        ({"loss": "nothing"}, {}, "loss must be one of"),
        ({"loss": "gamma"}, {"y": -DIABETES[1]}, "loss='gamma' requires strictly positive y"),
        ({}, {"X_val": DIABETES[0]}, "X_val is provided, but y_val was not"),
        ({}, {"y_val": DIABETES[1]}, "y_val is provided, but X_val was not"),
        ({"early_stopping": False}, {"X_val": DIABETES[0], "y_val": DIABETES[1]},
         "while at the same time early_stopping is False"),
        ({"early_stopping": True, "validation_fraction": 442}, {}, "leaves none to train on"),
        ({"interaction_cst": [[0, 10]]}, {}, r"\[0, n_features - 1\] = \[0, 9\]"),
        ({"interaction_cst": [0, 1]}, {}, "must be a sequence of tuples or lists"),
        ({"max_bins": 256}, {}, "'max_bins' parameter"),
        ({"max_features": 0.0}, {}, "'max_features' parameter"),
        ({"subsample": 1.5}, {}, "'subsample' parameter"),
        ({"growth": "depth"}, {}, "'growth' parameter"),
        ({"learning_rate": 0.0}, {}, "'learning_rate' parameter"),
        ({"validation_fraction": 1.5}, {}, "'validation_fraction' parameter"),
    ],
)  # fmt: skip
def test_refusals_of_numbers(settings, given, message) -> None:
    X, y = DIABETES
    given = {"X": X, "y": y} | given
    with pytest.raises(ValueError, match=message):
        regressor(**settings).fit(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([b"a"], "must be an array-like of bool, int or str, got: bytes8."),
        ([0.0], "must be an array-like of bool, int or str, got: float64."),
        (np.array(["a", None, 2.5], object), "bool, int or str, got: NoneType, float."),
        ([0, -1], "must be in [0, n_features - 1] = [0, 1]. Got -1."),
        ([2], "must be in [0, n_features - 1] = [0, 1]. Got 2."),
        ([True], "must have shape (n_features,) = (2,). Got (1,)."),
        (["c"], "not a valid feature name of the training data. Observed feature names: 'a', 'b'."),
    ],
)  # fmt: skip
def test_refusals_of_categorical_features(given, message) -> None:
    table = pd.DataFrame({"a": [0.0, 1.0] * 20, "b": np.arange(40.0)})
    with pytest.raises(ValueError, match=re.escape(message)):
        regressor(categorical_features=given).fit(table, table["b"])


def test_names_of_categories_need_names_of_columns() -> None:
    with pytest.raises(ValueError, match=r"data without feature names\. Got 'a'"):
        regressor(categorical_features=["a"]).fit(*DIABETES)


def test_refusals_of_classes() -> None:
    X, y = IRIS
    with pytest.raises(ValueError, match="not supported for multiclass"):
        classifier(monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    with pytest.raises(ValueError, match="is for two classes, but y has 3"):
        classifier(loss="exponential").fit(X, y)
    with pytest.raises(ValueError, match="loss='squared_error' is for regression"):
        classifier(loss="squared_error").fit(X, y)
    with pytest.raises(ValueError, match="y_val has the class 2, which y does not have"):
        classifier().fit(X[:100], y[:100], X_val=X, y_val=y)


def _rare_words(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of words, a third of which are in fewer than 20 rows; some are missing."""
    rng = np.random.default_rng(n)
    X = rng.integers(1, 4, (n, d)) * (rng.random((n, d)) < np.linspace(0.0, 60 / n, d))
    X = X.astype(float)
    X[rng.integers(0, n, 20), rng.integers(0, d, 20)] = np.nan
    return X, np.nan_to_num(X).sum(axis=1) + rng.random(n)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("n", "settings"),
    [
        (300, {}),
        (30, {}),  # no column can be split
        (2000, {}),
        (300, {"min_samples_leaf": 5, "categorical_features": [0, 10, 39]}),
        (300, {"max_features": 0.3}),
        (300, {"max_features": 0.3, "interaction_cst": "pairwise"}),
        (300, {"interaction_cst": [range(20)]}),
        (300, {"monotonic_cst": [1, -1] * 20}),
        (300, {"subsample": 0.5}),
        (1500, {"early_stopping": True}),
        (300, {"loss": "absolute_error"}),
    ],
)
@pytest.mark.parametrize("weight", ["none", "copies", "numbers"])
def test_columns_that_cannot_be_split_change_nothing(
    n, settings, is_sparse, weight, monkeypatch
) -> None:
    X, y = _rare_words(n, 40)
    given = sp.csr_matrix(X) if is_sparse and "categorical_features" not in settings else X
    rng = np.random.default_rng(1)
    weights = {"none": None, "copies": rng.integers(1, 3, n), "numbers": rng.random(n)}[weight]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = regressor(**settings).fit(given, y, weights)
        usual, n_places = hist_gradient_boosting.bins_and_table, []

        def with_all_columns(*args, least_samples, **others):
            n_places.append(len(usual(*args, least_samples=least_samples, **others)[1].features))
            return usual(*args, **others)

        monkeypatch.setattr(hist_gradient_boosting, "bins_and_table", with_all_columns)
        wanted = regressor(**settings).fit(given, y, weights)
    assert (n_places[0] == 40) == ("max_features" in settings)
    for ours, whole in zip(found._rounds, wanted._rounds, strict=True):
        assert ours[0].nodes.tobytes() == whole[0].nodes.tobytes()
        assert ours[0].decrease.tobytes() == whole[0].decrease.tobytes()
    assert found.history_.training_loss.tobytes() == wanted.history_.training_loss.tobytes()
