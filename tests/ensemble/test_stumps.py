"""Boosted stumps: the compiled rounds against brute force, the general path and scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier as Theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier as TheirTree
from tests.oracles.boosted_stumps import best_stumps, boost

import margrove
from margrove import AdaBoostClassifier, DecisionTreeClassifier
from margrove.ensemble.adaboost.members import StumpMembers, TreeMembers
from margrove.exceptions import InvalidDataError

CRITERIA = ("gini", "entropy", "error")


def stump(criterion="gini", **more):
    return DecisionTreeClassifier(max_depth=1, criterion=criterion, **more)


def boosted(X, y, weight=None, *, criterion="gini", general=False, n_estimators=15, **settings):
    base = stump(criterion, **({"max_leaf_nodes": 2} if general else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = AdaBoostClassifier(base, n_estimators=n_estimators, **settings).fit(X, y, weight)
    assert isinstance(model._members, TreeMembers if general else StumpMembers)
    return model


def splits(model):
    """The feature and threshold of each member; none for a leaf."""
    roots = [(int(m.arrays_.feature[0]), float(m.arrays_.threshold[0])) for m in model]
    return [root if root[0] >= 0 else (-1, np.inf) for root in roots]


def assert_same(one, other, tolerance=1e-9):
    assert splits(one) == splits(other)
    assert one.estimator_errors_ == pytest.approx(other.estimator_errors_, abs=tolerance)
    assert one.estimator_weights_ == pytest.approx(other.estimator_weights_, rel=1e-7)
    assert one.history_.training_error == pytest.approx(other.history_.training_error, abs=1e-9)
    assert one.history_.outcome == other.history_.outcome


def table(kind, seed=0, n=60):
    """A table of each kind that has its own code."""
    rng = np.random.default_rng(seed)
    many, few = rng.standard_normal((n, 3)), rng.integers(0, 4, (n, 3)).astype(float)
    sparse = np.where(rng.random((n, 6)) < 0.3, rng.integers(-3, 4, (n, 6)), 0).astype(float)
    return {
        "many values": many,
        "few values": few,
        "mixed": np.c_[many[:, :1], few, many[:, 1:]],
        "one feature": many[:, :1],
        "one of two values": (few[:, :1] > 1).astype(float),
        "constant features": np.c_[np.ones(n), few[:, :1], np.zeros(n), many[:, :1]],
        "negative": -np.abs(many),
        "sparse": sp.csr_array(sparse),
        "negative sparse": sp.csr_array(-np.abs(sparse)),
        "full columns": sp.csr_array(np.c_[sparse, few + 1, -few - 1, many]),
        "empty columns": sp.csr_array(np.c_[np.zeros(n), sparse, np.zeros(n)]),
    }[kind]


KINDS = ("many values", "few values", "mixed", "one feature", "one of two values",
         "constant features", "negative", "sparse", "negative sparse", "full columns",
         "empty columns")  # fmt: skip


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def labels_for(X, n_classes, seed=1):
    rng = np.random.default_rng(seed)
    noisy = dense(X).sum(axis=1) + rng.standard_normal(X.shape[0])
    return np.digitize(noisy, np.quantile(noisy, np.arange(1, n_classes) / n_classes))


def weights_of(kind, n):
    rng = np.random.default_rng(2)
    return {"none": None, "whole": rng.integers(1, 5, n), "fractional": rng.random(n)}[kind]


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(60)
def test_each_round_has_the_stump_of_brute_force(kind, criterion, n_classes, weights) -> None:
    """Any stump is allowed that is equally good up to rounding; D are the weights of the model."""
    X = table(kind)
    y, weight = labels_for(X, n_classes), weights_of(weights, X.shape[0])
    try:
        model = boosted(X, y, weight, criterion=criterion, n_estimators=12)
    except InvalidDataError:
        assert not boost(dense(X), y, 1, criterion=criterion, sample_weight=weight)
        return
    stages = model.staged_weights(X, y, weight)
    for t, (found, D) in enumerate(zip(splits(model), stages, strict=False)):
        best = best_stumps(dense(X), y, D, n_classes, criterion)
        said = next((s for f, h, s in best if f == found[0] and np.isclose(h, found[1])), None)
        assert said is not None, f"round {t}: {found}"
        error = D[model[t].predict(X) != y].sum()
        assert model.estimator_errors_[t] == pytest.approx(error, abs=1e-9)
        if len(best) == 1:
            assert D[said != y].sum() == pytest.approx(error, abs=1e-9)


@pytest.mark.parametrize("algorithm", ["samme", "m1"])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", ["iris", "two of iris", "wine", "cancer"])
def test_the_compiled_rounds_are_those_of_the_general_path(name, criterion, algorithm) -> None:
    loader = {"wine": load_wine, "cancer": load_breast_cancer}.get(name, load_iris)
    X, y = loader(return_X_y=True)
    y = y == 1 if name == "two of iris" else y
    settings = {"criterion": criterion, "algorithm": algorithm, "n_estimators": 40}
    one, other = boosted(X, y, **settings), boosted(X, y, general=True, **settings)
    assert_same(one, other)
    assert one.decision_function(X) == pytest.approx(other.decision_function(X), abs=1e-9)
    assert one.predict_proba(X) == pytest.approx(other.predict_proba(X), abs=1e-9)
    assert one.feature_importances_ == pytest.approx(other.feature_importances_, abs=1e-9)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    assert one.decision_function(holes) == pytest.approx(other.decision_function(holes), abs=1e-9)


def test_a_subclass_goes_the_general_way_to_the_same_result() -> None:
    class Own(DecisionTreeClassifier):
        pass

    X, y = load_iris(return_X_y=True)
    one = AdaBoostClassifier(stump(), n_estimators=20).fit(X, y)
    other = AdaBoostClassifier(Own(max_depth=1), n_estimators=20).fit(X, y)
    assert isinstance(other[0], Own)
    assert other.estimator_errors_ == pytest.approx(one.estimator_errors_, abs=1e-9)
    assert other.decision_function(X) == pytest.approx(one.decision_function(X), abs=1e-9)


@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_scikit_learn(seed, n_classes, learning_rate) -> None:
    X = np.random.default_rng(seed).standard_normal((300, 5))
    y = labels_for(X, n_classes, seed)
    ours = boosted(X, y, n_estimators=30, learning_rate=learning_rate)
    theirs = Theirs(TheirTree(max_depth=1), n_estimators=30, learning_rate=learning_rate)
    theirs.fit(X, y)
    n = len(ours)  # they keep rounds that are barely better than chance
    assert n == len(theirs.estimators_)
    assert ours.estimator_weights_ == pytest.approx(theirs.estimator_weights_[:n], rel=1e-6)
    assert ours.estimator_errors_ == pytest.approx(theirs.estimator_errors_[:n], abs=1e-9)
    assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-9)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-9)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.feature_importances_ == pytest.approx(theirs.feature_importances_, abs=1e-6)


@given(
    st.integers(0, 10**6), st.integers(2, 4), st.sampled_from(CRITERIA), st.booleans(),
    st.sampled_from(["none", "whole", "fractional"]),
)  # fmt: skip
@settings(max_examples=60)
def test_small_tables_full_of_ties(seed, n_classes, criterion, sparse, weights) -> None:
    """It finds any of the equally good stumps, and the weights D are right."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    X = rng.integers(-2, 3, (n, int(rng.integers(1, 4)))).astype(float)
    y = rng.integers(0, n_classes, n)
    y = np.unique(y, return_inverse=True)[1]
    K, weight = int(y.max()) + 1, weights_of(weights, n)
    data = sp.csr_array(X) if sparse else X
    try:
        model = boosted(data, y, weight, criterion=criterion, n_estimators=8)
    except InvalidDataError:
        assert not boost(X, y, 1, criterion=criterion, sample_weight=weight)
        return
    for t, D in enumerate(model.staged_weights(data, y, weight)):
        if t < len(model):
            feature, threshold = splits(model)[t]
            best = best_stumps(X, y, D, K, criterion)
            assert any(f == feature and h == threshold for f, h, _ in best)


def weighted_and_copied(kind, n_classes):
    X, rng = table(kind), np.random.default_rng(4)
    y, weight = labels_for(X, n_classes), rng.integers(0, 4, X.shape[0])
    rows = np.repeat(np.arange(X.shape[0]), weight)
    return boosted(X, y, weight), boosted(X[rows], y[rows])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_is_so_many_copies(kind, n_classes) -> None:
    """A row of weight zero does not count."""
    one, other = weighted_and_copied(kind, n_classes)
    assert_same(one, other, 1e-12)
    assert np.array_equal(one.estimator_errors_, other.estimator_errors_)
    assert np.array_equal(one.estimator_weights_, other.estimator_weights_)


@pytest.mark.parametrize("kind", ["mixed", "full columns"])
def test_the_order_of_rows_does_not_matter(kind) -> None:
    X = table(kind, n=200)
    y, order = labels_for(X, 3), np.random.default_rng(5).permutation(200)
    assert_same(boosted(X, y), boosted(X[order], y[order]))


def large():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((30_000, 24))
    X[:, ::3] = np.round(X[:, ::3])
    return X, X[:, :6].sum(axis=1) + rng.standard_normal(30_000) > 0


def test_the_number_of_threads_changes_nothing() -> None:
    X, y = large()
    one, two = (boosted(X, y, n_jobs=k) for k in (1, 2))
    assert splits(one) == splits(two)
    for name in ("estimator_errors_", "estimator_weights_"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert one.decision_function(X[:99]).tobytes() == two.decision_function(X[:99]).tobytes()


def test_slices_and_listeners_change_nothing() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    alone, told, steps = boosted(X, y, n_estimators=300), [], []
    with margrove.watch(on_progress=lambda progress: told.append(progress.done)):
        watched = boosted(X, y, n_estimators=300)
    with margrove.watch(on_step=steps.append):
        stepped = boosted(X, y, n_estimators=300)
    for other in (watched, stepped):
        assert alone.estimator_errors_.tobytes() == other.estimator_errors_.tobytes()
        assert splits(alone) == splits(other)
    assert told[-1] == 300
    assert [step.number for step in steps] == list(range(1, 301))
    assert [step.error for step in steps] == alone.estimator_errors_.tolist()
    assert [step.training_error for step in steps] == alone.history_.training_error.tolist()


def test_large_whole_weights_are_as_good_as_small_ones() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = X.sum(axis=1) + np.random.default_rng(1).standard_normal(300) > 0
    ones = boosted(X, y, n_estimators=100)
    many = boosted(X, y, np.full(300, 2**22), n_estimators=100)
    assert many.estimator_errors_ == pytest.approx(ones.estimator_errors_, abs=1e-9)


def test_ten_thousand_rounds() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = rng.integers(0, 2, 60)
    model = boosted(X, y, n_estimators=10_000)
    assert len(model) == 10_000
    for t, D in enumerate(model.staged_weights(X, y)):
        if t % 97 == 0 or t > 9_990:
            assert np.isfinite(D).all()
            assert (D >= 0).all()
            assert D.sum() == pytest.approx(1.0)
        if t < 10_000 and t % 97 == 0:
            error = D[model[t].predict(X) != y].sum()
            assert model.estimator_errors_[t] == pytest.approx(error, abs=1e-8)
