"""Trees for boosting: grown by levels, as in forests, or one by one; all are equal."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from margrove import AdaBoostClassifier, DecisionTreeClassifier
from margrove.ensemble.adaboost.level_trees import LevelLearner, rows_of_a_bin
from margrove.ensemble.adaboost.members import TreeMembers
from margrove.ensemble.adaboost.stump_tables import ROWS_OF_A_BIN, read_stump_table
from margrove.grove.prune.pruning import prune


def table(seed, n=300, n_classes=3):
    """Columns of many values and of few, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(n, 3)), rng.integers(0, 4, (n, 3)), rng.integers(0, 2, (n, 2))]
    score = X[:, 0] + X[:, 3] - X[:, 6] + 0.5 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X.astype(float), np.searchsorted(edges, score)


def boosted(X, y, *, weight=None, rounds=12, algorithm="samme", **settings):
    base = DecisionTreeClassifier(**settings)
    return AdaBoostClassifier(base, n_estimators=rounds, algorithm=algorithm).fit(X, y, weight)


def assert_same_trees(a, b) -> None:
    assert len(a) == len(b) > 1
    for own, other in zip(a, b, strict=True):
        first, second = own.arrays_, other.arrays_
        assert np.array_equal(first.feature, second.feature)
        assert np.array_equal(first.threshold, second.threshold, equal_nan=True)
        assert np.array_equal(first.children, second.children)
        assert np.array_equal(first.n_samples, second.n_samples)
        assert np.array_equal(first.missing_child, second.missing_child)
        assert np.allclose(first.value, second.value, atol=1e-12)
        assert np.allclose(first.impurity, second.impurity, atol=1e-12)
        assert np.allclose(first.decrease, second.decrease, atol=1e-10)
    assert np.allclose(a.estimator_weights_, b.estimator_weights_, rtol=1e-9)
    assert np.allclose(a.estimator_errors_, b.estimator_errors_, rtol=1e-9)


ONE_BY_ONE = {"min_weight_fraction_leaf": 1e-300}  # this changes how trees are grown, not the trees


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("algorithm", ["samme", "real"])
def test_levels_grow_the_trees_of_the_estimator(criterion, n_classes, algorithm) -> None:
    X, y = table(n_classes, n_classes=n_classes)
    settings = {"max_depth": 3, "criterion": criterion, "algorithm": algorithm}
    by_levels = boosted(X, y, **settings)
    assert_same_trees(by_levels, boosted(X, y, **settings, **ONE_BY_ONE))
    sparse = boosted(sp.csr_array(X), y, **settings)
    assert np.array_equal(by_levels.decision_function(X), sparse.decision_function(X))


@pytest.mark.parametrize("weights", ["whole", "any"])
def test_levels_with_weights(weights) -> None:
    X, y = table(7)
    rng = np.random.default_rng(7)
    weight = rng.integers(1, 4, len(y)).astype(float) if weights == "whole" else rng.random(len(y))
    settings = {"max_depth": 4, "weight": weight}
    assert_same_trees(boosted(X, y, **settings), boosted(X, y, **settings, **ONE_BY_ONE))


@pytest.mark.parametrize("max_depth", [2, 4, 6])
def test_levels_on_several_threads_and_groups(max_depth, monkeypatch) -> None:
    from margrove.ensemble.adaboost import stump_tables

    X, y = table(3, n=2000)
    one = boosted(X, y, max_depth=max_depth, rounds=4)
    monkeypatch.setattr(stump_tables, "_LISTED_BELOW", 1.0)
    monkeypatch.setattr(stump_tables, "_BINS_OF_A_GROUP", 4)
    monkeypatch.setattr(stump_tables, "_ENTRIES_OF_A_CELL", 0.1)
    monkeypatch.setattr(stump_tables, "_ENTRIES_OF_A_THREAD", 1)
    base = DecisionTreeClassifier(max_depth=max_depth)
    several = AdaBoostClassifier(base, n_estimators=4, n_jobs=2)
    several._threads = lambda X: 2
    several.fit(X, y)
    assert len(stump_tables.read_stump_table(X).features.starts) > 1
    assert np.array_equal(one.decision_function(X), several.decision_function(X))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
@pytest.mark.parametrize("max_depth", [1, 3, 6])
def test_levels_of_histograms_are_those_of_orders(criterion, max_depth) -> None:
    X, y = table(5, n=500, n_classes=7)
    weight = np.random.default_rng(5).exponential(size=(1, len(y)))
    trees = []
    for fewest in (0.0, 1e9):  # rows of a bin: all features by histograms, then none
        read = read_stump_table(X, rows_of_a_bin=fewest)
        assert (read.features.place >= 0).all() == (fewest > 0.0)
        learner = LevelLearner(
            read, y, 7, np.ones(len(y), np.int64), "shares",
            criterion=criterion, max_depth=max_depth, n_threads=1,
        )  # fmt: skip
        learner.begin(0, weight / weight.sum(), None)
        while not learner.finished:
            learner.advance(1.0)
        members = learner.add_to(TreeMembers("shares", learner.kind, None, {}))
        trees.append(members.trees[0][0])
    assert len(trees[0]) > max_depth
    for name in ("nodes", "weight", "values", "samples", "impurity", "decrease"):
        assert np.array_equal(getattr(trees[0], name), getattr(trees[1], name)), name


def test_histograms_need_more_rows_the_more_nodes_and_classes_there_are() -> None:
    assert rows_of_a_bin(2, 1) == ROWS_OF_A_BIN
    assert rows_of_a_bin(2, 6) > rows_of_a_bin(2, 3) > ROWS_OF_A_BIN
    assert rows_of_a_bin(11, 6) > rows_of_a_bin(2, 6)


def test_a_learner_of_levels_ends_where_nothing_can_be_split() -> None:
    X, y = np.ones((6, 2)), np.array([0, 1, 0, 1, 1, 1])
    learner = LevelLearner(
        read_stump_table(X), y, 2, np.ones(6, np.int64), "labels",
        criterion="gini", max_depth=3, n_threads=1,
    )  # fmt: skip
    learner.begin(0, np.full((1, 6), 1 / 6), None)
    while not learner.finished:
        learner.advance(1.0)
    assert learner.answers().tolist() == [1] * 6


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("settings", [{"min_samples_leaf": 2}, {"min_samples_split": 7},
                                      {"max_leaf_nodes": 12, "min_samples_leaf": 3}])  # fmt: skip
def test_deep_trees_are_the_trees_of_slightly_rounded_weights(criterion, settings) -> None:
    X, y = table(11, n=400, n_classes=4)
    deep = boosted(X, y, criterion=criterion, rounds=3, **settings)
    others = boosted(X, y, criterion=criterion, rounds=3, **settings, **ONE_BY_ONE)
    first, second = deep.estimators_[0].arrays_, others.estimators_[0].arrays_
    assert np.array_equal(
        first.feature, second.feature
    )  # weights are equal, so rounding is equal too
    assert np.array_equal(first.threshold, second.threshold, equal_nan=True)
    assert np.array_equal(first.n_samples, second.n_samples)
    for tree in deep:
        leaves = tree.arrays_.n_children == 0
        assert tree.arrays_.n_samples[leaves].min() >= settings.get("min_samples_leaf", 1)
    assert np.allclose(deep.estimator_errors_, others.estimator_errors_, atol=0.02)


class PrunedTree(DecisionTreeClassifier):
    """A tree like C4.5: gain ratio and pessimistic pruning."""

    def fit(self, X, y, sample_weight=None):
        weight = sample_weight * len(y) / np.sum(sample_weight)
        super().fit(X, y, weight)
        self.__dict__ = prune(self, "pessimistic").__dict__
        return self


def test_boosted_pruned_trees_go_on_after_the_training_error_is_zero() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = X[::2], X[1::2], y[::2], y[1::2]
    base = PrunedTree(criterion="gain_ratio", min_samples_leaf=2)
    model = AdaBoostClassifier(base, n_estimators=25, algorithm="m1").fit(X, y)
    training = model.history_.training_error
    test = 1.0 - np.array(list(model.staged_score(X_test, y_test)))
    assert len(model) == 25
    assert training[0] > 0.0
    assert training[-1] == 0.0
    at_zero = int(np.argmax(training == 0.0))
    assert test[-1] < 0.5 * test[0]
    assert test[-1] < test[at_zero]
    assert (training <= model.history_.bound + 1e-12).all()
    margins = [model.margins(X, y, rounds).min() for rounds in (at_zero + 1, len(model))]
    assert margins[1] > margins[0] > 0.0
