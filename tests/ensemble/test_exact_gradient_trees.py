"""Exact trees of gradient boosting, against every split of every node."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor as PeerTree
from tests.oracles import exact_gradient_trees as oracle

from margrove import DecisionTreeRegressor
from margrove.ensemble import exact_gradient_trees as exact
from margrove.grove.binning import bin_columns
from margrove.grove.packed import Kind, unfolded
from margrove.grove.scores import SQUARED
from margrove.grove.walk import leaves_of_rows

ARRAYS = ("left", "features", "codes", "next_codes", "n_node_samples", "leaf_of_rows")


def table(seed, n=60):
    """Columns of many values and of few, one that is nearly always zero, and one that is another
    one turned around."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(n, 2)), rng.integers(0, 6, (n, 2)), rng.random(n) < 0.15]
    return np.c_[X, -X[:, 0], np.where(rng.random(n) < 0.7, 0.0, rng.normal(size=n))]


def gradients(seed, n, kind):
    rng = np.random.default_rng(seed + 1000)
    return rng.integers(-3, 4, n).astype(float) if kind == "whole" else rng.normal(size=n)


def trees_of(X, *, n_threads=1, **limits):
    settings = {"max_depth": 3, "min_samples_split": 2, "min_samples_leaf": 1,
                "min_weight_leaf": 0.0} | limits  # fmt: skip
    return exact.ExactTrees(bin_columns(X), n_threads=n_threads, **settings)


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
    scale = float(nodes[0].impurity)
    close = {"rtol": 1e-9, "atol": 1e-11 * scale}
    assert np.allclose(tree.impurity, [float(node.impurity) for node in nodes], **close)
    assert np.allclose(tree.decrease, [float(node.decrease) for node in nodes], **close)
    assert tree.leaf_of_rows.tolist() == [oracle.leaf_of(nodes, x) for x in X]


def assert_same(one, other) -> None:
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.impurity, other.impurity)
    assert np.array_equal(one.decrease, other.decrease)


@pytest.mark.nojit
@pytest.mark.parametrize("most_bins", [256, 5])
@pytest.mark.parametrize("kind", ["whole", "any"])
@pytest.mark.parametrize("seed", range(4))
def test_every_split_of_every_node(seed, kind, most_bins, monkeypatch) -> None:
    monkeypatch.setattr(exact, "_MOST_BINS", most_bins)
    X, g = table(seed), gradients(seed, 60, kind)
    tree = trees_of(X).grow(g, None, None, None)
    assert_as_the_oracle(tree, oracle.grow(X, g), X)
    assert tree.n_nodes > 7
