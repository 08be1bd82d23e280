"""Exact trees of gradient boosting against a search of all splits of every node."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor as PeerTree
from tests.oracles import exact_gradient_trees as oracle

from margrove import DecisionTreeRegressor
from margrove.ensemble.gradient.exact import tables as exact_tables
from margrove.ensemble.gradient.exact import trees as exact
from margrove.grove.grow.search.scores import SQUARED
from margrove.grove.serve.forest_walk import add_values, leaves_of_rows
from margrove.grove.serve.packed_trees import Kind
from margrove.grove.serve.unfolding import unfolded
from margrove.grove.table.binning import bin_columns

ARRAYS = ("left", "features", "codes", "next_codes", "n_node_samples", "leaf_of_rows")
NUMBERS = Kind(SQUARED, (), 1, np.zeros(16, np.int64))  # of 16 columns at most


def table(seed, n=60):
    """Columns of many values and of few, one that is nearly always zero, one that is another one
    turned around, and one that is constant."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(n, 2)), rng.integers(0, 6, (n, 2)), rng.random(n) < 0.15]
    rare = np.where(rng.random(n) < 0.7, 0.0, rng.normal(size=n))
    return np.c_[X, -X[:, 0], np.ones(n), rare]


def gradients(seed, n, kind="any"):
    rng = np.random.default_rng(seed + 1000)
    return rng.integers(-3, 4, n).astype(float) if kind == "whole" else rng.normal(size=n)


def trees_of(X, *, n_threads=1, **limits):
    settings = {"max_depth": 3, "min_samples_split": 2, "min_samples_leaf": 1,
                "min_weight_leaf": 0.0} | limits  # fmt: skip
    return exact.ExactTrees(bin_columns(X), n_threads=n_threads, **settings)


def grown(X, gradient, weight=None, samples=None, rows=None, **settings):
    return trees_of(X, **settings).grow(gradient, weight, samples, rows)


def use_few_bins(monkeypatch) -> None:
    """Make small tables have bins with several codes."""
    monkeypatch.setattr(exact_tables, "_FEWEST_BINS", 2)
    monkeypatch.setattr(exact_tables, "_BINS_OF_ROOT", 0.7)


def assert_as_the_oracle(tree, nodes, X) -> None:
    assert tree.n_nodes == len(nodes)
    assert tree.left.tolist() == [node.left for node in nodes]
    assert tree.features.tolist() == [-1 if node.left < 0 else node.feature for node in nodes]
    thresholds = [node.threshold for node in nodes]
    assert np.array_equal(tree.thresholds, thresholds, equal_nan=True)
    for k, node in enumerate(nodes):
        if node.left >= 0:
            values = np.unique(X[:, node.feature])
            assert values[tree.codes[k]] == node.below
            assert values[tree.next_codes[k]] == node.above
    assert tree.n_node_samples.tolist() == [node.samples for node in nodes]
    assert np.allclose(tree.weights, [float(node.weight) for node in nodes], rtol=1e-12)
    close = {"rtol": 1e-9, "atol": 1e-12 * float(nodes[0].impurity)}
    assert np.allclose(tree.impurity, [float(node.impurity) for node in nodes], **close)
    assert np.allclose(tree.decrease, [float(node.decrease) for node in nodes], **close)
    assert tree.leaf_of_rows.tolist() == [oracle.leaf_of(nodes, x) for x in X]


def assert_same(one, other) -> None:
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.thresholds, other.thresholds, equal_nan=True)
    assert np.array_equal(one.impurity, other.impurity)
    assert np.array_equal(one.decrease, other.decrease)


@pytest.mark.nojit
@pytest.mark.parametrize("few_bins", [False, True])
@pytest.mark.parametrize("kind", ["whole", "any"])
@pytest.mark.parametrize("seed", range(4))
def test_every_split_of_every_node(seed, kind, few_bins, monkeypatch) -> None:
    if few_bins:
        use_few_bins(monkeypatch)
    X, g = table(seed), gradients(seed, 60, kind)
    tree = grown(X, g)
    assert_as_the_oracle(tree, oracle.grow(X, g), X)
    assert tree.n_nodes > 7


@pytest.mark.nojit
@pytest.mark.parametrize("few_bins", [False, True])
@pytest.mark.parametrize("weights", ["whole", "any", "some zero"])
@pytest.mark.parametrize("with_samples", [False, True])
@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.sampled(8)
def test_weights_samples_and_rows(weights, with_samples, with_rows, few_bins, monkeypatch) -> None:
    if few_bins:
        use_few_bins(monkeypatch)
    rng = np.random.default_rng(3)
    n = 70
    X, g = table(5, n), gradients(5, n)
    weight = rng.integers(1, 5, n).astype(float) if weights == "whole" else rng.random(n)
    if weights == "some zero":
        weight[rng.random(n) < 0.3] = 0.0
    samples = rng.integers(0, 4, n) if with_samples else None
    rows = np.flatnonzero(rng.random(n) < 0.8).astype(np.int32) if with_rows else None
    limits = {"min_samples_leaf": 4, "min_samples_split": 9, "min_weight_leaf": 1.3}
    for given in (None, weight):
        tree = grown(X, g, given, samples, rows, **limits)
        assert_as_the_oracle(tree, oracle.grow(X, g, given, samples, rows, **limits), X)
        assert tree.n_nodes > 3


@pytest.mark.nojit
@pytest.mark.parametrize(
    "limits",
    [
        {"max_depth": 1},
        {"max_depth": 6},
        {"min_samples_split": 30},
        {"min_samples_leaf": 12},
        {"min_weight_leaf": 11.0},
        {"max_depth": 50, "min_samples_leaf": 3},
    ],
)
def test_limits(limits) -> None:
    X, g = table(8), gradients(8, 60)
    assert_as_the_oracle(grown(X, g, **limits), oracle.grow(X, g, **limits), X)


def test_a_leaf_may_weigh_just_enough() -> None:
    X, g = np.arange(20.0)[:, None], np.r_[np.zeros(10), np.ones(10)]
    tree = grown(X, g, np.full(20, 0.1), min_weight_leaf=1.0, max_depth=2)
    assert tree.codes[0] == 9
    assert grown(X, g, np.full(20, 0.1), min_weight_leaf=1.001).n_nodes == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_are_rows_repeated(weighted) -> None:
    rng = np.random.default_rng(0)
    n = 400
    X, g, samples = table(1, n), gradients(1, n), rng.integers(1, 4, n)
    weight = rng.random(n) if weighted else None
    again = np.repeat(np.arange(n), samples)
    one = grown(X, g, weight, samples, min_samples_leaf=7)
    other = grown(X[again], g[again], None if weight is None else weight[again], min_samples_leaf=7)
    for name in ARRAYS[:-1]:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.leaf_of_rows[again], other.leaf_of_rows)
    assert np.allclose(one.impurity, other.impurity, rtol=1e-9)


def means_of(tree, target, weight=None):
    leaf = tree.leaf_of_rows
    mass = np.ones(len(target)) if weight is None else weight
    sums = np.bincount(leaf, mass * target, tree.n_nodes)
    return sums / np.maximum(np.bincount(leaf, mass, tree.n_nodes), 1e-300)


@pytest.mark.parametrize("n", [300, 3000, 20_000])
@pytest.mark.parametrize("max_depth", [3, 8])
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_of_peers(n, max_depth, weighted) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5)).astype(np.float32).astype(float)
    X = np.c_[X, rng.integers(0, 40, (n, 2)), np.where(rng.random((n, 2)) < 0.8, 0, X[:, :2])]
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * X[:, 5] + rng.normal(size=n)
    weight = rng.random(n) + 0.1 if weighted else None
    tree = grown(X, -y, weight, max_depth=max_depth, min_samples_leaf=3)
    limits = {"max_depth": max_depth, "min_samples_leaf": 3}
    peer = PeerTree(**limits, random_state=0).fit(X, y, weight)
    assert tree.n_nodes == peer.tree_.node_count
    assert np.allclose(means_of(tree, y, weight)[tree.leaf_of_rows], peer.predict(X), atol=1e-9)
    own = DecisionTreeRegressor(**limits).fit(X, y, weight).arrays_
    arrays = unfolded(tree.packed(means_of(tree, y, weight)), NUMBERS)
    assert np.array_equal(arrays.feature, own.feature)
    assert np.array_equal(arrays.threshold, own.threshold, equal_nan=True)
    assert np.array_equal(arrays.children, own.children)
    assert np.array_equal(arrays.n_samples, own.n_samples)
    assert np.allclose(arrays.impurity, own.impurity, rtol=1e-8)
    assert np.allclose(arrays.decrease, own.decrease, rtol=1e-8)


@pytest.mark.parametrize("n_histograms", [1, 3, 10_000])
def test_grown_to_the_end(n_histograms, monkeypatch) -> None:
    """If histograms of only a few nodes are kept, the others are counted again."""
    n = 3000
    X, g = table(9, n), gradients(9, n)
    trees = trees_of(X, max_depth=2**31)
    cells = sum(len(group.last_code) for group in trees._groups)
    monkeypatch.setattr(exact, "_BYTES_OF_HISTOGRAMS", 24 * cells * n_histograms)
    tree = grown(X, g, max_depth=2**31)
    own = DecisionTreeRegressor().fit(X, -g).arrays_
    assert tree.n_nodes == len(own) > 2 * n - 100
    assert np.allclose(means_of(tree, g)[tree.leaf_of_rows], g)
    arrays = unfolded(tree.packed(-means_of(tree, g)), NUMBERS)
    assert np.array_equal(arrays.feature, own.feature)
    assert np.array_equal(arrays.threshold, own.threshold, equal_nan=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_depth", [3, 12])
def test_threads_and_groups_do_not_show(weighted, max_depth, monkeypatch) -> None:
    n = 3000
    X = np.c_[table(4, n), table(5, n)]
    g, weight = gradients(4, n, "whole"), gradients(6, n) ** 2 if weighted else None
    one = grown(X, g, weight, max_depth=max_depth)
    monkeypatch.setattr(exact_tables, "_ENTRIES_OF_A_CORE", 1000)
    for n_threads in (2, 5):
        trees = trees_of(X, n_threads=n_threads, max_depth=max_depth)
        assert len(trees._groups) == n_threads
        assert_same(one, trees.grow(g, weight, None, None))
    for module in (exact, exact_tables):
        monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 1000)
    trees = trees_of(X, max_depth=max_depth)
    assert len(trees._groups) > 1
    assert_same(one, trees.grow(g, weight, None, None))


@pytest.mark.parametrize("weighted", [False, True])
def test_order_of_rows_does_not_show(weighted) -> None:
    n = 2000
    X, g = table(2, n), gradients(2, n)
    weight = gradients(3, n) ** 2 if weighted else None
    order = np.random.default_rng(0).permutation(n)
    one = grown(X, g, weight, max_depth=6)
    other = grown(X[order], g[order], None if weight is None else weight[order], max_depth=6)
    for name in ARRAYS[:-1]:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.leaf_of_rows[order], other.leaf_of_rows)
    assert np.array_equal(one.impurity, other.impurity)
    assert np.array_equal(one.decrease, other.decrease)


def test_trees_of_one_table_do_not_meddle() -> None:
    """A tree does not depend on trees grown before it or at the same time."""
    n = 1500
    X, weight = table(7, n), gradients(0, n) ** 2
    rows = np.arange(0, n, 3, dtype=np.int32)
    asked = [(gradients(k, n), weight if k % 2 else None, None, rows if k % 3 else None)
             for k in range(12)]  # fmt: skip
    trees = trees_of(X, max_depth=5)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda own: trees.grow(*own), asked))
    for own, tree in zip(asked, found, strict=True):
        assert_same(tree, trees_of(X, max_depth=5).grow(*own))


def test_rows_out_of_bag_follow_the_thresholds() -> None:
    n = 900
    X, g = table(6, n), gradients(6, n)
    rows = np.flatnonzero(np.random.default_rng(1).random(n) < 0.2).astype(np.int32)
    tree = grown(X, g, rows=rows, max_depth=6)
    packed = tree.packed(np.zeros(tree.n_nodes))
    found = np.empty(n, np.int32)
    leaves_of_rows(packed, X, NUMBERS, found, has_nan=False)
    assert np.array_equal(tree.leaf_of_rows, found)
    alone = grown(X[rows], g[rows], max_depth=6)
    assert np.array_equal(alone.features, tree.features)
    assert np.array_equal(alone.thresholds, tree.thresholds, equal_nan=True)
    assert np.array_equal(alone.n_node_samples, tree.n_node_samples)
    assert np.array_equal(alone.leaf_of_rows, tree.leaf_of_rows[rows])
    assert np.array_equal(alone.impurity, tree.impurity)


def test_packed_trees_keep_the_values() -> None:
    n = 500
    X, g = table(3, n), gradients(3, n)
    tree = grown(X, g)
    values = np.arange(tree.n_nodes) / 7.0
    packed = tree.packed(values)
    packed.require_sound(NUMBERS, X.shape[1])
    leaves, sums = np.empty(n, np.int32), np.zeros((n, 1))
    leaves_of_rows(packed, X, NUMBERS, leaves, has_nan=False)
    add_values(packed, leaves, NUMBERS, None, sums)
    assert np.array_equal(leaves, tree.leaf_of_rows)
    assert np.array_equal(sums[:, 0], values[tree.leaf_of_rows])
    assert np.array_equal(packed.decrease, tree.decrease)
    assert np.array_equal(packed.samples, tree.n_node_samples)


@pytest.mark.nojit
@pytest.mark.parametrize("power", [-1060, -1000, -300, 300, 980])
@pytest.mark.parametrize("weighted", [False, True])
def test_scale_does_not_show(power, weighted) -> None:
    X, g = table(1), gradients(1, 60, "whole")
    weight = gradients(2, 60) ** 2 if weighted else None
    one, other = grown(X, g, weight), grown(X, np.ldexp(g, power), weight)
    assert one.n_nodes > 7
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    with np.errstate(over="ignore", under="ignore"):
        for name in ("impurity", "decrease"):
            expected = np.minimum(np.ldexp(getattr(one, name), 2 * power), np.finfo(float).max)
            assert np.array_equal(getattr(other, name), expected)


def test_outliers_hide_nothing() -> None:
    """Targets that are small next to the largest one are still distinguished."""
    n = 120
    X, g = table(1, n), gradients(1, n)
    X[0, 0], g[0] = 10.0, 1e9
    tree = grown(X, g, max_depth=4)
    assert_as_the_oracle(tree, oracle.grow(X, g, max_depth=4), X)


@pytest.mark.nojit
def test_nothing_to_split() -> None:
    X = table(0)
    for g in (np.zeros(60), np.full(60, 0.1), np.full(60, 1e300)):
        for weight in (None, np.random.default_rng(0).random(60)):
            tree = grown(X, g, weight)
            assert tree.n_nodes == 1
            assert tree.impurity[0] <= 1e-25 * g[0] ** 2 if g[0] < 1e300 else True
            assert not tree.leaf_of_rows.any()
    assert grown(np.ones((60, 3)), gradients(0, 60)).n_nodes == 1
    assert grown(X, gradients(0, 60), max_depth=0).n_nodes == 1


@pytest.mark.nojit
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_variances_up_to_epsilon_are_none(size) -> None:
    """For targets below one, the limit is proportional to them."""
    eps = np.finfo(float).eps
    X = np.arange(40.0)[:, None]
    g = np.r_[np.zeros(20), np.full(20, size)]
    for own, is_split in ((0.3, False), (3.0, True)):
        step = own * np.sqrt(eps) * min(size, 1.0)
        tree = grown(X, g + np.where(np.arange(40) < 10, 2.0 * step, 0.0))
        assert tree.codes[0] == 19
        assert (tree.left[1] >= 0) == is_split
        assert tree.left[2] < 0


@pytest.mark.nojit
@pytest.mark.parametrize("size", [1e-7, 1e-3, 1.0])
def test_variances_of_probabilities_up_to_epsilon_are_none(size) -> None:
    X = np.arange(40.0)[:, None]
    g = np.r_[np.zeros(20), np.full(20, size)]
    for own, is_split in ((0.3, False), (3.0, True)):
        step = own * np.sqrt(np.finfo(float).eps)
        tree = grown(X, g + np.where(np.arange(40) < 10, 2.0 * step, 0.0), of_classes=True)
        assert tree.codes[0] == 19
        assert (tree.left[1] >= 0) == is_split


@pytest.mark.nojit
def test_splits_without_gain_are_not_made() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert grown(X, np.array([1.0, -1.0, -1.0, 1.0])).n_nodes == 1


@pytest.mark.nojit
def test_what_is_refused() -> None:
    X, g = table(0), gradients(0, 60)
    with pytest.raises(ValueError, match="without missing"):
        trees_of(np.where(X > 1.0, np.nan, X))
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError, match="finite"):
            grown(X, np.where(X[:, 0] == X[0, 0], wrong, g))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        grown(X, g, np.zeros(60))
    with pytest.raises(ValueError, match="no rows of positive weight"):
        grown(X, g, rows=np.empty(0, np.int32))
    with pytest.raises(ValueError, match=r"at most 2\^31 - 1 samples"):
        grown(X, g, samples=np.full(60, 2**30))
