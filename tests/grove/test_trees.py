"""Whole trees: against the textbook's, against scikit-learn's, and against themselves."""

from __future__ import annotations

import dataclasses
import pickle
import random

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier as PeerClassifier
from sklearn.tree import DecisionTreeRegressor as PeerRegressor
from sklearn.utils.fixes import parse_version
from tests.oracles import trees as oracle

import margrove
from margrove import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.datasets import load_breast_cancer, load_diabetes, load_iris, load_restaurant
from margrove.grove.criteria import CRITERIA
from margrove.grove.grow.assembly import assemble
from margrove.grove.grow.tree_builder import TreeBuilder, columns_of
from margrove.grove.serve.tree_arrays import OBLIQUE, subtree
from margrove.grove.serve.tree_walk import leaves_of
from margrove.grove.table.binning import bin_columns, midpoint


def same_trees(a, b) -> bool:
    names = ("kind", "feature", "threshold", "children", "missing_child", "weight", "value")
    return all(np.array_equal(getattr(a, n), getattr(b, n), equal_nan=True) for n in names)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "squared_error"])
@pytest.mark.parametrize("seed", range(5))
def test_trees_are_the_textbooks(criterion, seed) -> None:
    rng = random.Random(seed)
    table = [[rng.randint(0, 4) for _ in range(40)] for _ in range(3)]
    is_class = criterion in oracle.CLASS_CRITERIA
    targets = [rng.randint(0, 2) if is_class else float(rng.randint(0, 5)) for _ in range(40)]
    weights = [float(rng.randint(1, 3)) for _ in range(40)]
    cls = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    X = np.array(table, dtype=float).T
    model = cls(criterion=criterion, max_depth=4).fit(X, targets, sample_weight=weights)
    root = oracle.grow(table, targets, weights, criterion, max_depth=4)
    expected = list(oracle.preorder(root))
    found = model.arrays_
    assert len(found) == len(expected)
    assert model.predict(X).tolist() == pytest.approx(
        [float(oracle.predict(root, list(row))) for row in X], rel=1e-12
    )


@pytest.mark.parametrize("seed", range(8))
def test_multiway_trees_are_the_textbooks(seed) -> None:
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]
    rows = [[rng.choice("uvwxyz"[: 2 + j]) for j in range(4)] for _ in range(60)]
    labels = [rng.choice("NY") for _ in rows]
    root = oracle.id3(rows, labels, names)
    model = DecisionTreeClassifier(criterion="entropy", split="multiway").fit(rows, labels)
    expected = [oracle.classify(root, row) for row in rows]
    found = model.predict(rows).tolist()
    tied = [max(p) < 1 and p[0] == p[1] for p in model.predict_proba(rows).tolist()]
    differ = [e != f for e, f, t in zip(expected, found, tied, strict=True) if not t]
    assert sum(differ) == 0
    assert names[model.arrays_.feature[0]] == root.attribute
    assert model.arrays_.decrease[0] / 60 == pytest.approx(float(root.gains[root.attribute]))


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_depth": 3}, {"min_samples_leaf": 5}, {"max_leaf_nodes": 7}, {"ccp_alpha": 0.01},
     {"min_impurity_decrease": 0.01}, {"min_samples_split": 0.1}, {"criterion": "entropy"}],
    ids=str,
)  # fmt: skip
def test_training_accuracy_and_size_are_scikit_learns(settings) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(**settings).fit(X, y)
    peers = [PeerClassifier(random_state=seed, **settings).fit(X, y) for seed in range(20)]
    sizes = [peer.tree_.node_count for peer in peers]
    scores = [peer.score(X, y) for peer in peers]
    assert min(sizes) <= len(model.arrays_) <= max(sizes)
    assert min(scores) - 1e-12 <= model.score(X, y) <= max(scores) + 1e-12


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_regression_is_scikit_learns(criterion) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).astype(np.float32).astype(np.float64)
    y = np.abs(X[:, 0]) + rng.random(300)
    model = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, y)
    peer = PeerRegressor(criterion=criterion, max_depth=4, random_state=0).fit(X, y)
    assert model.tree_.feature.tolist() == peer.tree_.feature.tolist()
    assert np.allclose(model.tree_.impurity, peer.tree_.impurity)
    assert np.allclose(model.tree_.value, peer.tree_.value)
    assert np.allclose(model.predict(X), peer.predict(X))
    assert np.allclose(model.feature_importances_, peer.feature_importances_)


def test_tree_in_scikit_learns_clothes() -> None:
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(np.float64)
    model = DecisionTreeClassifier().fit(X, y)
    peer = model.to_sklearn()
    assert isinstance(peer, PeerClassifier)
    assert np.array_equal(peer.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(peer.apply(X), model.apply(X))
    assert (peer.decision_path(X) != model.decision_path(X)).nnz == 0
    assert np.allclose(peer.feature_importances_, model.feature_importances_)
    assert model.tree_.node_count == peer.tree_.node_count
    assert model.tree_.max_depth == peer.get_depth() == model.get_depth()
    assert np.array_equal(model.tree_.predict(X), peer.tree_.predict(X.astype(np.float32)))


def test_several_outputs() -> None:
    X, y = load_iris(return_X_y=True)
    both = np.column_stack([y, y == 1])
    model = DecisionTreeClassifier(max_depth=3).fit(X, both)
    peer = PeerClassifier(max_depth=3, random_state=0).fit(X, both)
    assert model.predict(X).shape == (150, 2)
    assert np.mean(model.predict(X) == both) == pytest.approx(np.mean(peer.predict(X) == both))
    assert np.allclose(model.tree_.impurity[0], peer.tree_.impurity[0])
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, 100.0 * X[:, 2]])
    model = DecisionTreeRegressor(max_depth=3).fit(X, both)
    peer = PeerRegressor(max_depth=3, random_state=0).fit(X, both)
    assert np.allclose(model.predict(X), peer.predict(X))
    assert np.allclose(model.tree_.impurity, peer.tree_.impurity)


@pytest.mark.parametrize("criterion", sorted(set(CRITERIA) - {"log_loss", "friedman_mse"}))
@pytest.mark.parametrize("block", [300, pytest.param(60, marks=pytest.mark.nightly), 0])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_size_of_blocks_does_not_show(criterion, n_outputs, block) -> None:
    """Large nodes are searched by other loops than small ones, and split alike."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (600, 5)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4] = rng.integers(0, 9, 600)
    y = rng.integers(0, 3, 600) if CRITERIA[criterion].for_classes else rng.integers(1, 9, 600) / 4
    if n_outputs > 1:
        y = np.column_stack([y, rng.permutation(y)])
    cls = DecisionTreeClassifier if CRITERIA[criterion].for_classes else DecisionTreeRegressor
    model = cls(criterion=criterion, categorical_features=[4], min_samples_leaf=3)
    whole = model.fit(X, y).arrays_
    table = margrove.grove.table.encoding.read_table(X, model, [4])
    training = model._training(table, y, None)[0]
    data = bin_columns(table.X, categorical=table.is_categorical)
    rules = model._rules(training, data)
    grower = TreeBuilder(
        columns_of(data), training.targets, rules, training.rows, most_rows=block, n_threads=2
    )
    while not grower.finished:
        grower.advance(1e5)
    parts = assemble(grower.result(), data, training.targets, rules, table.n_categories)
    assert same_trees(whole, parts)
    assert np.array_equal(whole.decrease, parts.decrease)


def test_missing_values_and_unknown_categories() -> None:
    X, y = load_restaurant(return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    assert model.score(X, y) == 1.0
    strange = X.astype(object).copy()
    strange[:, 4] = "Crowded"
    with pytest.warns(margrove.exceptions.DataWarning, match="'Crowded'") as caught:
        found = model.predict(strange)
    assert len(caught) == 1
    strange[:, 4] = None
    assert np.array_equal(model.predict(strange), found)  # an unknown category is a missing value


def test_c45_shares_rows_out() -> None:
    """A row without a value goes down all branches, with the shares of the others."""
    X = [["a"], ["a"], ["a"], ["b"], [None]]
    y = [0, 0, 0, 1, 1]
    model = DecisionTreeClassifier(criterion="entropy", split="multiway").fit(X, y)
    tree = model.arrays_
    assert tree.weight.tolist() == [5.0, 3.75, 1.25]
    assert np.allclose(tree.value, [[0.6, 0.4], [0.8, 0.2], [0.0, 1.0]])
    assert np.allclose(model.predict_proba([[None]]), [[0.6, 0.4]])
    assert np.allclose(model.predict_proba([["a"], ["b"]]), [[0.8, 0.2], [0.0, 1.0]])
    known = 3 * 0.0 + 1 * 0.0  # both branches are pure where values are known
    before = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert tree.decrease[0] == pytest.approx(4 * before - known)


@pytest.mark.parametrize("learner", ["svm", "perceptron", "prototypes"])
def test_oblique_splits(learner) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X @ [1.0, 2.0, -1.0] > 0.2).astype(int)
    model = DecisionTreeClassifier(splitter="oblique", oblique_learner=learner).fit(X, y)
    straight = DecisionTreeClassifier().fit(X, y)
    assert model.score(X, y) == 1.0
    assert len(model.arrays_) < 0.7 * len(straight.arrays_)
    assert model.arrays_.kind[0] == OBLIQUE
    root = model.arrays_
    left = X @ root.coef[0] <= root.threshold[0]
    assert left.sum() == root.n_samples[1]
    assert root.decrease[0] >= straight.arrays_.decrease[0]
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_oblique_regression_and_missing_values() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(splitter="oblique", max_depth=2).fit(X, y)
    straight = DecisionTreeRegressor(max_depth=2).fit(X, y)
    assert model.score(X, y) > straight.score(X, y)
    X[::3, 2] = np.nan
    model = DecisionTreeRegressor(splitter="oblique", max_depth=2).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_stopping_at_chance() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    noise = rng.integers(0, 2, 400)
    assert DecisionTreeClassifier(significance=1e-6).fit(X, noise).get_n_leaves() == 1
    y = (X[:, 0] > 0).astype(int)
    model = DecisionTreeClassifier(significance=0.01).fit(X, y)
    assert model.score(X, y) == 1.0
    from scipy.stats import chi2_contingency

    y = np.where(rng.random(400) < 0.7, y, 1 - y)
    model = DecisionTreeClassifier(significance=0.05).fit(X, y)
    free = DecisionTreeClassifier().fit(X, y)
    assert len(model.arrays_) < len(free.arrays_)
    tree = model.arrays_
    for node in np.flatnonzero(tree.n_children):
        children = tree.children_of(node)
        table = tree.value[children] * tree.weight[children][:, None]
        assert chi2_contingency(table, correction=False).pvalue <= 0.05
    regression = DecisionTreeRegressor(significance=1e-6).fit(X, rng.standard_normal(400))
    assert regression.get_n_leaves() == 1


def test_stopping_at_an_error() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(max_error=0.05).fit(X, y).arrays_
    errors = 1.0 - tree.value.max(axis=1)
    assert np.all(errors[tree.n_children > 0] > 0.05)
    full = DecisionTreeClassifier().fit(X, y).arrays_
    stopped = subtree(full, (full.n_children > 0) & (1.0 - full.value.max(axis=1) <= 0.05))
    assert same_trees(tree, stopped)


def test_early_stopping_holds_rows_out() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1000, 5))
    y = ((X[:, 0] > 0) ^ (rng.random(1000) < 0.2)).astype(int)
    model = DecisionTreeClassifier(early_stopping=True, random_state=0, validation_fraction=0.3)
    model.fit(X, y)
    assert 2 <= model.get_n_leaves() <= 10
    assert model.arrays_.n_samples[0] == 700
    with pytest.raises(ValueError, match="early_stopping"):
        model.fit(X[:3], y[:3])


def test_a_registered_criterion() -> None:
    def gini_again(sums, weight):
        return 1.0 - np.sum((sums / weight) ** 2)

    def variance(sums, weight):
        return sums[1] / weight - (sums[0] / weight) ** 2

    margrove.register_criterion("gini_again", gini_again)
    margrove.register_criterion("variance", variance, for_classes=False)
    try:
        X, y = load_restaurant(return_X_y=True)
        own = DecisionTreeClassifier(criterion="gini_again").fit(X, y).arrays_
        assert same_trees(own, DecisionTreeClassifier().fit(X, y).arrays_)
        X, y = load_diabetes(return_X_y=True)
        X[::5, 2] = np.nan
        own = DecisionTreeRegressor(criterion="variance", max_depth=3).fit(X, y).arrays_
        theirs = DecisionTreeRegressor(max_depth=3).fit(X, y).arrays_
        assert same_trees(own, theirs)
        assert np.allclose(own.impurity, theirs.impurity)
        with pytest.raises(ValueError, match="exists already"):
            margrove.register_criterion("variance", variance)
    finally:
        del CRITERIA["gini_again"], CRITERIA["variance"]
    with pytest.raises(ValueError, match="'criterion' parameter"):
        DecisionTreeRegressor(criterion="variance").fit(X, y)


def test_permutation_importances_do_not_favour_many_values() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 600), rng.standard_normal(600)])
    y = np.where(rng.random(600) < 0.8, X[:, 0], 1 - X[:, 0]).astype(int)
    model = DecisionTreeClassifier(min_samples_leaf=2).fit(X[:400], y[:400])
    assert model.feature_importances_[1] > 0.3  # a number without meaning
    found = margrove.permutation_importances(model, X[400:], y[400:])
    assert abs(found.mean[1]) < 0.1 < found.mean[0]


def test_midpoints_are_safe() -> None:
    biggest, tiny = np.finfo(float).max, 5e-324
    for a, b in [(-biggest, biggest), (biggest / 2, biggest), (1.0, np.nextafter(1.0, 2.0)),
                 (0.0, tiny), (-tiny, 0.0), (1e9, 1e9 + 1e-7)]:  # fmt: skip
        middle = midpoint(a, b)
        assert a <= middle < b
    X = np.array([[-biggest], [biggest]])
    assert DecisionTreeClassifier().fit(X, [0, 1]).predict(X).tolist() == [0, 1]


def test_bins_merge_neighbours() -> None:
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_bins=8).fit(X, y).arrays_
    for j in range(10):
        cuts = tree.threshold[tree.feature == j]
        assert 1 <= len({int((X[:, j] <= cut).sum()) for cut in cuts}) <= 7
    exact = DecisionTreeRegressor(max_bins=60000).fit(X, y).arrays_
    assert same_trees(exact, DecisionTreeRegressor().fit(X, y).arrays_)


def test_walks_agree_whatever_the_layout() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y).arrays_
    expected = leaves_of(tree, X)
    with_gap = np.where(np.arange(X.shape[0])[:, None] == 7, np.nan, X)  # takes the slow way
    others = np.arange(len(X)) != 7
    assert np.array_equal(leaves_of(tree, with_gap)[others], expected[others])
    assert np.array_equal(leaves_of(tree, np.asfortranarray(X)), expected)
    assert np.array_equal(leaves_of(tree, X, n_threads=3), expected)


@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 40}, {"split": "multiway"}], ids=str)
@pytest.mark.parametrize("block", [65_536, 100])
def test_looking_at_a_growing_tree_does_not_stop_it(settings, block) -> None:
    """Callbacks may ask for the tree as it stands, which is a sound one at any moment."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 20, (500, 4)).astype(float), rng.integers(0, 3, 500)
    expected = DecisionTreeClassifier(**settings).fit(X, y).arrays_
    model = DecisionTreeClassifier(**settings)
    table = margrove.grove.table.encoding.read_table(X, model, None)
    training = model._training(table, y, None)[0]
    data = bin_columns(table.X)
    rules = model._rules(training, data)
    if settings.get("split"):
        grower = model._grower(training, data, rules, 1)
    else:
        grower = TreeBuilder(
            columns_of(data), training.targets, rules, training.rows, most_rows=block,
            max_leaves=settings.get("max_leaf_nodes", 0), n_threads=1,
        )  # fmt: skip
    sizes = []
    while not grower.finished:
        grower.advance(2000.0)
        found = grower.result()
        if not hasattr(found, "kind"):
            found = assemble(found, data, training.targets, rules, table.n_categories)
        found.require_sound()
        assert np.isfinite(found.value).all()
        sizes.append(len(found))
    assert sizes == sorted(sizes)
    assert same_trees(expected, found)


def test_altered_arrays_are_an_error() -> None:
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.arrays_.feature[0] = 2**30
    for name, wrong in {"children": 0, "parent": 2**40, "missing_child": 9, "kind": 7}.items():
        array = np.full_like(getattr(model.arrays_, name), wrong)
        broken = model._with_arrays(dataclasses.replace(model.arrays_, **{name: array}))
        with pytest.raises(ValueError, match="not sound"):
            broken.predict(X)
    with pytest.raises(ValueError, match="3 values a node"):
        model._with_arrays(
            dataclasses.replace(model.arrays_, value=model.arrays_.value[:, :2].copy())
        ).predict(X)
    with pytest.raises(ValueError, match="must have 4 features"):
        model.tree_.apply(np.zeros((5, 1)))


def test_large_nodes_of_the_absolute_error_with_rows_left_out() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    weight = np.r_[np.zeros(300), np.ones(100)]
    model = DecisionTreeRegressor(criterion="absolute_error", max_depth=2)
    with_zeros = model.fit(X, X[:, 0], weight).arrays_
    without = model.fit(X[300:], X[300:, 0]).arrays_
    assert same_trees(with_zeros, without)


def test_a_sparse_table_walks_through_scikit_learns_arrays() -> None:
    rng = np.random.default_rng(0)
    X = sp.csc_array(rng.standard_normal((60, 5)) * (rng.random((60, 5)) < 0.4))
    model = DecisionTreeRegressor().fit(X, np.arange(60.0))
    for given in (X, X.tocsr(), X.tocsr().astype(np.float32)):
        leaves = model.tree_.apply(given)
        assert np.array_equal(leaves, model.apply(given))
        assert np.array_equal(model.tree_.predict(given)[:, 0], model.predict(given))
    assert len(set(leaves)) > 20


def test_sparse_targets_are_a_type_error() -> None:
    y = sp.csr_array(np.eye(3, dtype=int))
    for cls in (DecisionTreeClassifier, DecisionTreeRegressor):
        with pytest.raises(TypeError, match=r"dense data is required.*toarray"):
            cls().fit(np.eye(3), y)


@pytest.mark.parametrize("cls", [DecisionTreeRegressor, RandomForestRegressor, ExtraTreesRegressor])
def test_the_other_name_of_the_squared_error_is_deprecated(cls) -> None:
    if parse_version(sklearn.__version__) < parse_version("1.9"):
        pytest.skip("scikit-learn has not deprecated it")
    with pytest.warns(FutureWarning, match="friedman_mse") as warned:
        model = cls(criterion="friedman_mse")
    assert warned[0].filename == __file__
    assert clone(model).criterion == "squared_error"


def test_the_least_weight_of_a_leaf_is_taken_at_its_word() -> None:
    """9 of 30 rows are 0.3 of the weight; what is a hair more than 0.3 asks for 10."""
    X, y = np.arange(30.0)[:, None], np.arange(30) < 9
    for share, fewest in ((0.3, 9), (0.30000000000000004, 10)):
        model = DecisionTreeClassifier(min_weight_fraction_leaf=share).fit(X, y)
        assert model.arrays_.weight.min() == fewest
        tenths = model.fit(X, y, np.full(30, 0.1)).arrays_  # which do not sum to 3
        assert tenths.n_samples.min() == 9


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_nodes_of_many_rows_are_counted_in_parts(cls, n_jobs) -> None:
    """Rows of weight 2 are summed up by other loops, with the same splits."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 140_000), rng.integers(0, 2000, 140_000)]).astype(float)
    y = ((X[:, 0] + X[:, 1] / 300 + rng.random(140_000)) // 3).astype(int)
    plain = cls(max_depth=4, n_jobs=n_jobs).fit(X, y).arrays_
    doubled = cls(max_depth=4, n_jobs=n_jobs).fit(X, y, np.full(140_000, 2.0)).arrays_
    assert len(plain) > 20
    for name in ("kind", "feature", "threshold", "children"):
        a, b = getattr(plain, name), getattr(doubled, name)
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    assert np.array_equal(2 * plain.n_samples, doubled.n_samples)


def test_few_and_many_rows_find_the_same_leaves_of_a_forest() -> None:
    """Many rows are sorted before they walk, and few rows walk alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 6))
    model = RandomForestClassifier(12, max_depth=6, random_state=0).fit(X, X[:, 0] > X[:, 1])
    whole = model.predict_proba(X)
    for rows in (slice(0, 1), slice(1, 8), slice(4990, 5000)):
        assert np.array_equal(model.predict_proba(X[rows]), whole[rows])
    assert np.array_equal(model.predict(X), model.classes_[np.argmax(whole, axis=1)])
    X[4000, 2] = np.inf
    with pytest.raises(ValueError, match="row 4000"):
        model.predict(X)
