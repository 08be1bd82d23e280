"""AdaBoostRegressor against the textbook, against scikit-learn, and against its own promises."""

from __future__ import annotations

import copy
import math
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_regression
from sklearn.ensemble import AdaBoostRegressor as Peer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor as PeerTree
from tests.interrupts import lines_until_interrupt
from tests.oracles.boosting_r2 import adaboost_r2, predict

import margrove
from margrove import AdaBoostRegressor, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.ensemble.adaboost import boosted_ensemble as boosted
from margrove.ensemble.adaboost import members as fitted_members
from margrove.ensemble.adaboost import r2_rounds as boosting_r2
from margrove.ensemble.adaboost import regressor as adaboost_regressor
from margrove.ensemble.adaboost import weak_learners
from margrove.ensemble.adaboost.weighted_medians import StagedMedians, weighted_medians
from margrove.exceptions import (
    ConvergenceWarning,
    FitCancelled,
    InterruptedFitWarning,
    InvalidDataError,
)

LOSSES = ("linear", "square", "exponential")
X, Y = make_friedman1(120, n_features=6, noise=1.0, random_state=0)
TREE = DecisionTreeRegressor(max_depth=3)


def model_of(n_estimators=8, **settings):
    return AdaBoostRegressor(**{"n_estimators": n_estimators, "random_state": 0} | settings)


def same(one, other):
    """Whether two models have the same bits."""
    return (
        np.array_equal(one.estimator_weights_, other.estimator_weights_)
        and np.array_equal(one.estimator_errors_, other.estimator_errors_)
        and np.array_equal(one.predict(X), other.predict(X))
        and all(
            np.array_equal(getattr(one.history_, name), getattr(other.history_, name))
            for name in ("average_loss", "beta", "normaliser", "training_error", "outcome")
        )
    )


# -- the textbook ----------------------------------------------------------------------------------


def by_tree(X, y, D):
    return DecisionTreeRegressor(max_depth=3).fit(X, y, D).predict


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("depth", [1, 3])
def test_weights_and_errors_are_those_of_the_textbook(loss, depth) -> None:
    ways = {"fit": by_tree} if depth == 3 else {}
    expected = adaboost_r2(X[:60], Y[:60], 8, loss, **ways)
    tree = DecisionTreeRegressor(max_depth=depth)
    model = model_of(estimator=tree, loss=loss, resample=False).fit(X[:60], Y[:60])
    assert len(model) == len(expected)
    losses = [one.average_loss for one in expected]
    beta = np.array([one.beta for one in expected])
    assert np.allclose(model.estimator_errors_, losses, rtol=1e-9)
    assert np.allclose(model.estimator_weights_, np.log(1 / beta), rtol=1e-9)
    assert np.allclose(model.history_.beta, beta, rtol=1e-9)
    assert np.allclose(model.predict(X), predict(expected, X))


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_given_are_weights_to_start_from(loss) -> None:
    weight = np.random.default_rng(0).random(len(Y))
    expected = adaboost_r2(X, Y, 6, loss, weight, by_tree)
    model = model_of(6, loss=loss, resample=False).fit(X, Y, weight)
    losses = [one.average_loss for one in expected]
    assert np.allclose(model.estimator_errors_, losses, rtol=1e-8)


def test_any_estimator_is_boosted_alike() -> None:
    """Trees of this library grow on one table, or are fitted one by one like other estimators."""

    class Stranger(DecisionTreeRegressor):
        pass

    one, other = (
        model_of(estimator=kind(max_depth=3), resample=False).fit(X, Y)
        for kind in (DecisionTreeRegressor, Stranger)
    )
    assert np.allclose(one.estimator_errors_, other.estimator_errors_, rtol=1e-9)
    drawn = [
        model_of(estimator=kind(max_depth=3, min_samples_leaf=4)).fit(X, Y)
        for kind in (DecisionTreeRegressor, Stranger)
    ]
    assert np.allclose(drawn[0].estimator_errors_, drawn[1].estimator_errors_, rtol=1e-9)
    assert np.allclose(drawn[0].predict(X), drawn[1].predict(X))


def test_the_record() -> None:
    model = model_of(10, loss="square", learning_rate=0.7).fit(X, Y)
    history = model.history_
    assert history.outcome == "complete"
    assert len(history) == len(model) == 10
    assert np.array_equal(history.average_loss, model.estimator_errors_)
    assert np.allclose(model.estimator_weights_, -0.7 * np.log(history.beta))
    errors = [np.abs(found - Y).mean() for found in model.staged_predict(X)]
    assert np.allclose(history.training_error, errors)
    assert np.all((history.normaliser > 0) & (history.normaliser < 1))


def test_very_many_rows_are_recorded_in_part(monkeypatch) -> None:
    whole = model_of(4).fit(X, Y)
    monkeypatch.setattr(boosting_r2, "_FEW_ROWS", 50)
    monkeypatch.setattr(boosting_r2, "_CELLS_OF_RECORD", 1)
    part = model_of(4).fit(X, Y)
    assert np.array_equal(part.predict(X), whole.predict(X))
    assert np.allclose(part.history_.training_error, whole.history_.training_error, rtol=0.3)
    assert not np.array_equal(part.history_.training_error, whole.history_.training_error)


# -- medians ---------------------------------------------------------------------------------------


def test_medians_are_those_of_scikit_learn() -> None:
    model = model_of(20).fit(X, Y)
    peer = Peer(n_estimators=20)
    peer.estimators_, peer.estimator_weights_ = list(model), model.estimator_weights_
    assert np.array_equal(model.predict(X), peer._get_median_predict(X, 20))
    for t, found in enumerate(model.staged_predict(X)):
        assert np.array_equal(found, peer._get_median_predict(X, t + 1))


def test_medians_after_each_member() -> None:
    rng = np.random.default_rng(0)
    answers, weights = rng.integers(0, 4, (50, 30)).astype(float), rng.integers(0, 3, 30) / 2
    weights[0] = 1.0
    medians = StagedMedians(50)
    for t in range(30):
        found = medians.add(t, answers[:, t], weights[t])
        assert np.array_equal(found, weighted_medians(answers[:, : t + 1], weights[: t + 1]))


def test_a_half_is_enough() -> None:
    answers = np.array([[3.0, 1.0], [1.0, 3.0]])
    assert weighted_medians(answers, np.ones(2)).tolist() == [1.0, 1.0]
    assert weighted_medians(answers, np.array([1.0, 2.0])).tolist() == [1.0, 3.0]
    assert weighted_medians(answers[:, :1], np.zeros(1)).tolist() == [3.0, 1.0]


# -- scikit-learn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [make_friedman1, make_regression])
@pytest.mark.sampled(3)
def test_as_good_as_scikit_learn(make, loss) -> None:
    scores = []
    for seed in range(8):
        data, y = make(1200, 10, noise=1.0, random_state=seed)
        settings = {"n_estimators": 25, "loss": loss, "random_state": seed}
        models = [
            AdaBoostRegressor(**settings),
            AdaBoostRegressor(resample=False, **settings),
            Peer(**settings),
        ]
        scores.append([m.fit(data[:200], y[:200]).score(data[200:], y[200:]) for m in models])
    drawn, weighted, peer = np.mean(scores, axis=0)
    assert drawn > peer - 0.02
    assert weighted > peer - 0.05


@pytest.mark.parametrize("base", [PeerTree(max_depth=3), KNeighborsRegressor(5)])
@pytest.mark.parametrize("resample", [True, False])
def test_estimators_of_others(base, resample) -> None:
    """An estimator without sample_weight always gets samples."""
    model = model_of(20, estimator=base, resample=resample).fit(X, Y)
    peer = Peer(base, n_estimators=20, random_state=0).fit(X, Y)
    assert model.score(X, Y) == pytest.approx(peer.score(X, Y), abs=0.05)
    assert type(model.estimators_[0]) is type(base)
    if hasattr(model[0], "feature_importances_"):
        assert model.feature_importances_.sum() == pytest.approx(1.0)
    else:
        with pytest.raises(AttributeError, match="importances"):
            model.feature_importances_  # noqa: B018


def test_members_and_scores() -> None:
    model = model_of(5).fit(X, Y)
    assert len(model.estimators_) == len(list(model)) == 5
    assert isinstance(model[-1], DecisionTreeRegressor)
    assert model[-1].get_depth() == 3
    assert [m.get_depth() for m in model.estimators_[1:3]] == [3, 3]
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    scores = list(model.staged_score(X, Y))
    assert len(scores) == 5
    assert scores[-1] == pytest.approx(model.score(X, Y))
    for ask in (model_of().predict, lambda data: next(model_of().staged_predict(data)), len):
        with pytest.raises(NotFittedError):
            ask(X if ask is not len else model_of())


# -- the law of weights ----------------------------------------------------------------------------


MEMBERS = {
    "trees": None,
    "deep trees": DecisionTreeRegressor(min_samples_leaf=3, max_features=2),
    "medians": DecisionTreeRegressor(max_depth=3, criterion="absolute_error"),
    "random thresholds": DecisionTreeRegressor(max_depth=4, splitter="random"),
    "few leaves": DecisionTreeRegressor(max_leaf_nodes=5, min_weight_fraction_leaf=0.05),
    "others": KNeighborsRegressor(3),
}


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("resample", [True, False])
def test_weight_k_is_the_row_k_times(name, resample) -> None:
    """Weight 0 removes a row, and neither order nor threads change a bit."""
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, len(Y))
    rows = rng.permutation(np.repeat(np.arange(len(Y)), weight))
    model = model_of(estimator=MEMBERS[name], resample=resample)
    weighted = clone(model).fit(X, Y, weight)
    repeated = clone(model).set_params(n_jobs=2).fit(X[rows], Y[rows])
    assert same(weighted, repeated)
    assert not np.array_equal(weighted.predict(X), clone(model).fit(X, Y).predict(X))


def test_threads_and_order_do_not_matter_for_many_cells() -> None:
    data, y = make_friedman1(3000, 10, random_state=0)
    order = np.random.default_rng(0).permutation(3000)
    models = [model_of(4, n_jobs=1).fit(data, y), model_of(4, n_jobs=3).fit(data[order], y[order])]
    assert np.array_equal(models[0].predict(data), models[1].predict(data))


def test_labels_missing_values_and_sparse_tables() -> None:
    frame = pd.DataFrame({"size": X[:, 3].copy(), "kind": np.where(X[:, 0] < 0.5, "a", "b")})
    frame.loc[::7, "size"] = np.nan
    model = model_of().fit(frame, Y)
    order = np.random.default_rng(0).permutation(len(Y))
    again = model_of().fit(frame.iloc[order], Y[order])
    assert list(model.feature_names_in_) == ["size", "kind"]
    assert np.array_equal(model.predict(frame), again.predict(frame))
    assert model.score(frame, Y) > 0.2
    zeros = np.where(X < 0.3, 0.0, X)
    dense, sparse = model_of().fit(zeros, Y), model_of().fit(sp.csr_array(zeros), Y)
    assert np.array_equal(dense.predict(zeros), sparse.predict(sp.csc_array(zeros)))


# -- endings ---------------------------------------------------------------------------------------


def test_a_perfect_member_is_the_last() -> None:
    steps = np.digitize(X[:, 3], [0.5]).astype(float)
    model = model_of(resample=False).fit(X, steps)
    assert model.history_.outcome == "perfect"
    assert model.estimator_weights_.tolist() == [1.0]
    assert model.estimator_errors_.tolist() == [0.0]
    assert model.history_.beta.tolist() == [0.0]
    assert np.array_equal(model.predict(X), steps)


def test_numbers_that_are_all_alike() -> None:
    model = model_of().fit(X, np.full(len(Y), 7.0))
    assert (len(model), model.history_.outcome) == (1, "perfect")
    assert np.array_equal(model.predict(X), np.full(len(Y), 7.0))


def test_a_weak_first_member_is_kept_as_in_scikit_learn() -> None:
    y = np.array([0.0, 1.0] * 20)
    data = np.zeros((40, 1))
    with pytest.warns(ConvergenceWarning, match="first round: .* of its DecisionTreeRegressor"):
        model = model_of(resample=False).fit(data, y)
    peer = Peer(random_state=0).fit(data, y)
    assert model.history_.outcome == "loss too large"
    assert len(model) == len(peer.estimators_) == 1
    assert model.estimator_weights_.tolist() == [0.0] == peer.estimator_weights_[:1].tolist()
    assert model.estimator_errors_[0] == 1.0  # all rows have the same error
    assert np.array_equal(model.predict(data), np.full(40, 0.5))
    assert [found[0] for found in model.staged_predict(data)] == [0.5]


def test_a_weak_later_member_is_left_out() -> None:
    rng = np.random.default_rng(0)
    data, y = rng.random((40, 2)), rng.exponential(size=40)
    tree = DecisionTreeRegressor(max_depth=2)
    with pytest.warns(ConvergenceWarning, match=r"after 9 rounds.*not below 0\.5.*left out"):
        model = model_of(50, estimator=tree, resample=False).fit(data, y)

    def by_tree(X, y, D):
        return clone(tree).fit(X, y, D).predict

    assert len(adaboost_r2(data, y, 50, fit=by_tree)) == len(model) == 9
    assert model.history_.outcome == "loss too large"
    assert model.estimator_errors_.max() < 0.5


def test_time_that_is_too_short_is_enough_for_one_round() -> None:
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = model_of(2000, max_time=1e-9).fit(X, Y)
    assert len(model) >= 1
    assert model.history_.outcome == "interrupted"
    assert np.isfinite(model.predict(X)).all()


# -- going on, coming back -------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("resample", [True, False])
def test_going_on_is_the_same_as_one_go(name, resample) -> None:
    model = model_of(7, estimator=MEMBERS[name], resample=resample, warm_start=True)
    in_parts = clone(model).set_params(n_estimators=3).fit(X, Y)
    assert len(in_parts) == 3
    in_parts.set_params(n_estimators=7, random_state=5).fit(X, Y)
    assert same(in_parts, clone(model).fit(X, Y))


@pytest.mark.filterwarnings("ignore::margrove.exceptions.ConvergenceWarning")
def test_what_has_ended_goes_no_further() -> None:
    steps, two = np.digitize(X[:, 3], [0.5]).astype(float), np.arange(len(Y)) % 2.0
    for data, y in ((X, steps), (np.zeros_like(X), two)):
        model = model_of(3, resample=False, warm_start=True).fit(data, y)
        again = copy.copy(model).set_params(n_estimators=9).fit(data, y)
        assert len(model) == len(again) == 1
        assert again.history_.outcome == model.history_.outcome


def test_going_on_with_something_else_is_refused() -> None:
    model = model_of(4, warm_start=True).fit(X, Y)
    members = model._members
    with pytest.raises(ValueError, match="n_estimators=2 must be larger"):
        model.set_params(n_estimators=2).fit(X, Y)
    model.set_params(n_estimators=6)
    with pytest.raises(ValueError, match="6 features"):
        model.fit(X[:, :3], Y)
    for other in (KNeighborsRegressor(), DecisionTreeRegressor(criterion="absolute_error")):
        with pytest.raises(ValueError, match="the estimator of the last fit"):
            model.set_params(estimator=other).fit(X, Y)
    assert model._members is members


@pytest.mark.parametrize("base", [None, KNeighborsRegressor(3)])
def test_pickles_and_copies(base) -> None:
    model = model_of(estimator=base, warm_start=True).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert same(model, again)
    model.set_params(n_estimators=12).fit(X, Y)
    assert same(model, again.set_params(n_estimators=12).fit(X, Y))
    assert same(copy.deepcopy(model), model)


# -- numbers at the edges --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("power", [-900, -400, 400, 660, 1018])
def test_huge_and_tiny_targets(loss, power) -> None:
    """Targets times a power of two change nothing but the predictions."""
    factor = 2.0**power
    plain = model_of(loss=loss, resample=False).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = model_of(loss=loss, resample=False).fit(X, Y * factor)
        drawn = model_of(loss=loss).fit(X, Y * factor).predict(X)
    assert np.allclose(scaled.estimator_weights_, plain.estimator_weights_, rtol=1e-12)
    assert np.allclose(scaled.predict(X) / factor, plain.predict(X), rtol=1e-12)
    assert np.allclose(scaled.history_.training_error / factor, plain.history_.training_error)
    assert np.abs(drawn / factor - Y).mean() < 3.0
    assert np.isfinite(scaled.estimators_[0].predict(X)).all()


def test_targets_as_far_apart_as_numbers_can_be() -> None:
    y = np.where(X[:, 0] < 0.5, -1.7e308, 1.7e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = model_of(resample=False).fit(X, y)
        assert np.array_equal(model.predict(X), y)


def test_weights_of_any_size() -> None:
    weight = np.random.default_rng(0).random(len(Y))
    plain = model_of(resample=False).fit(X, Y, weight)
    for factor in (2.0**-1000, 2.0**900):
        scaled = model_of(resample=False).fit(X, Y, weight * factor)
        assert np.allclose(scaled.estimator_errors_, plain.estimator_errors_)
    lopsided = model_of().fit(X, Y, np.where(np.arange(len(Y)) < 5, 1e250, 1e-250))
    assert np.isfinite(lopsided.predict(X)).all()
    with pytest.raises(InvalidDataError, match="draws"):
        model_of().fit(X, Y, np.full(len(Y), 2.0**40))


@pytest.mark.filterwarnings("ignore::margrove.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rate", [1e-300, 1e-3, 50.0, 1e308])
@pytest.mark.parametrize("loss", LOSSES)
def test_learning_rates_of_any_size(rate, loss) -> None:
    for resample in (True, False):
        model = model_of(20, learning_rate=rate, loss=loss, resample=resample)
        with np.errstate(all="raise", under="ignore"):
            model.fit(X, Y)
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.estimator_weights_).all()


def test_one_row() -> None:
    model = model_of().fit([[1.0]], [3.0])
    assert model.predict([[5.0]]).tolist() == [3.0]


# -- refusals --------------------------------------------------------------------------------------


REFUSED = {
    "n_estimators": [0, 1.5, True, None],
    "learning_rate": [0.0, -1.0, math.nan, "fast"],
    "loss": ["absolute", None],
    "resample": ["yes", None],
    "estimator": [3, "tree"],
    "n_jobs": [1.5, "all"],
    "random_state": [-1, "seed"],
    "max_time": [0, "soon"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_nonsense_is_refused_and_named(name) -> None:
    model = model_of(3).fit(X, Y)
    old = model.predict(X)
    for value in REFUSED[name]:
        with pytest.raises((ValueError, TypeError), match=name):
            copy.copy(model).set_params(**{name: value}).fit(X, Y)
    assert np.array_equal(model.predict(X), old)


class Lost(LinearRegression):
    def predict(self, X):
        return np.full(len(X), np.nan)


def test_members_and_targets_that_will_not_do() -> None:
    for base, message in (
        (DecisionTreeRegressor, "must be an instance"),
        (DecisionTreeClassifier(), "needs a regressor"),
        (DecisionTreeRegressor(max_depth=-1), "max_depth"),
        (DecisionTreeRegressor(criterion="nonsense"), "criterion"),
        (Lost(), "NaN or infinite"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            model_of(estimator=base).fit(X, Y)
    with pytest.raises(InvalidDataError, match="Poisson"):
        model_of(estimator=DecisionTreeRegressor(criterion="poisson")).fit(X, Y - 50)
    with pytest.raises(InvalidDataError, match="infinity"):
        model_of().fit(np.where(X > 0.99, np.inf, X), Y)
    with pytest.raises(ValueError, match="y"):
        model_of().fit(X, np.where(Y > 20, np.nan, Y))


# -- interrupts ------------------------------------------------------------------------------------


FILES = tuple(
    module.__file__
    for module in (adaboost_regressor, boosted, boosting_r2, weak_learners, fitted_members)
)


def fit_interrupted(model, moment):
    return len(lines_until_interrupt(model.fit, X, Y, files=FILES, moment=moment))


@pytest.mark.parametrize("base", [None, PeerTree(max_depth=3)])
@pytest.mark.parametrize("way", ["raise", "keep"])
@pytest.mark.sampled(1)
def test_an_interrupt_at_any_line(base, way) -> None:
    """The old model stays, or the new one has the first members of the one that would have been."""
    model = model_of(4, estimator=base, n_jobs=1, on_interrupt=way)
    old, whole = clone(model).fit(X[:20], Y[:20]), clone(model)
    n_lines, kept = fit_interrupted(whole, -1), set()
    stages = list(whole.staged_predict(X))
    for moment in range(0, n_lines, 1 if way == "keep" and base is None else 5):
        other = copy.copy(old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterruptedFitWarning)
            fit_interrupted(other, moment)
        if other._members is old._members:
            continue
        n = len(other)
        kept.add(n)
        assert np.array_equal(other.estimator_weights_, whole.estimator_weights_[:n])
        assert len(other.history_) == n
        assert np.array_equal(other.predict(X), stages[n - 1])
    assert kept >= ({1, 2, 3} if way == "keep" else set())
    assert way == "keep" or kept <= {4}


def test_listeners_and_cancelling() -> None:
    rounds, seen = [], []
    with margrove.watch(on_step=rounds.append, on_progress=lambda p: seen.append(p.done)):
        model = model_of(5).fit(X, Y)
    assert [one.number for one in rounds] == [1, 2, 3, 4, 5]
    assert [one.error for one in rounds] == model.estimator_errors_.tolist()
    assert set(seen) >= {1, 2, 3, 4, 5}
    assert same(model, model_of(5).fit(X, Y))
    cancel = threading.Event()
    cancel.set()
    members = model._members
    with margrove.watch(cancel=cancel), pytest.raises(FitCancelled):
        model.fit(X, Y)
    assert model._members is members
