"""Pruned trees are the best that can be had, and the same that others find."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.tree
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, LeaveOneOut
from tests.oracles import pruning as oracle

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.datasets import load_iris, make_moons
from margrove.grove.prune.cost_complexity import cost_complexity_path, prune_by_cost_complexity
from margrove.grove.prune.held_out_losses import validation_losses
from margrove.grove.prune.pruning import cross_validated_alpha, prune
from margrove.grove.prune.pruning_rules import (
    _split_bits,
    minimum_description_length,
    pessimistic,
    prune_nodes,
    reduced_error,
    simplify,
)
from margrove.grove.serve.tree_arrays import LEAF, MULTIWAY, OBLIQUE, SUBSET, THRESHOLD, TreeArrays
from margrove.grove.serve.tree_walk import leaves_of

IRIS, SPECIES = load_iris(return_X_y=True)
XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
PARITY = (XOR[:, 0] != XOR[:, 1]).astype(int)


# -- trees to prune ------------------------------------------------------------------------------


def tree_of(parent, **given) -> TreeArrays:
    """A tree with this shape; what a test does not care about is made up."""
    parent = np.asarray(parent, np.int64)
    n = len(parent)
    lists = [np.flatnonzero(parent == node) for node in range(n)] if n < 5000 else None
    if lists is None:  # a large tree: children are sorted by parent already
        order = np.argsort(parent[1:], kind="stable") + 1
        n_children, children = np.bincount(parent[1:], minlength=n), order
    else:
        n_children = np.array([len(own) for own in lists])
        children = np.concatenate(lists)
    inner = n_children > 0
    made_up = {
        "kind": np.where(inner, np.where(n_children == 2, THRESHOLD, MULTIWAY), LEAF),
        "feature": np.where(inner, 0, -1),
        "threshold": np.where(n_children == 2, 0.5, np.nan),
        "missing_child": np.zeros(n),
        "set_start": np.zeros(n),
        "set_size": np.where(inner, n_children, 0),
        "words": np.empty(0),
        "branches": np.arange(n_children.max(initial=0)),
        "coef": np.empty((0, 1)),
        "weight": np.ones(n),
        "n_samples": np.ones(n),
        "value": np.tile([0.5, 0.5], (n, 1)),
        "impurity": np.zeros(n),
        "decrease": np.zeros(n),
    } | given
    dtypes = {"kind": np.int8, "feature": np.int32, "missing_child": np.int32,
              "set_start": np.int64, "set_size": np.int64, "words": np.uint32,
              "branches": np.int32, "n_samples": np.int64}  # fmt: skip
    fields = {
        name: np.ascontiguousarray(values, dtype=dtypes.get(name, np.float64))
        for name, values in made_up.items()
    }
    return TreeArrays(
        parent=parent,
        n_children=n_children.astype(np.int32),
        first_child=(np.cumsum(n_children) - n_children).astype(np.int64),
        children=children.astype(np.int64),
        **fields,
    )


def random_parents(rng, n_splits, most_children=2) -> np.ndarray:
    """Split random leaves, then number the nodes in preorder."""
    children = [[]]
    for _ in range(n_splits):
        leaves = [node for node, own in enumerate(children) if not own]
        k = int(rng.integers(2, most_children + 1))
        children[rng.choice(leaves)] = list(range(len(children), len(children) + k))
        children += [[] for _ in range(k)]
    parent, waiting = [], [(0, -1)]
    while waiting:
        node, above = waiting.pop()
        waiting += [(child, len(parent)) for child in reversed(children[node])]
        parent.append(above)
    return np.array(parent)


def random_class_tree(rng, n_splits, n_classes, most_children=2, **given) -> TreeArrays:
    """Leaves with a few rows of each class; the nodes above have what is below."""
    parent = random_parents(rng, n_splits, most_children)
    is_leaf = np.bincount(parent[1:], minlength=len(parent)) == 0
    counts = np.where(is_leaf[:, None], rng.integers(0, 4, (len(parent), n_classes)), 0)
    counts[is_leaf, rng.integers(0, n_classes, is_leaf.sum())] += 1
    for node in reversed(range(1, len(parent))):
        counts[parent[node]] += counts[node]
    weight = counts.sum(axis=1)
    shares = counts / weight[:, None]
    gini = 1 - (shares**2).sum(axis=1)
    return tree_of(parent, weight=weight, n_samples=weight, value=shares, impurity=gini, **given)


def from_sklearn(fitted) -> TreeArrays:
    """The same tree; scikit-learn's nodes may be in any order, ours are in preorder."""
    given = fitted.tree_
    order, parent, waiting = [], [], [(0, -1)]
    while waiting:
        node, above = waiting.pop()
        if given.children_left[node] >= 0:
            waiting.append((given.children_right[node], len(order)))
            waiting.append((given.children_left[node], len(order)))
        order.append(node)
        parent.append(above)
    value = given.value[order].reshape(len(order), -1)
    inner = given.children_left[order] >= 0
    return tree_of(
        parent,
        feature=np.where(inner, given.feature[order], -1),
        threshold=np.where(inner, given.threshold[order], np.nan),
        weight=given.weighted_n_node_samples[order],
        n_samples=given.n_node_samples[order],
        impurity=given.impurity[order],
        value=value,
    )


def chain(n_splits) -> np.ndarray:
    """Parents of a tree as deep as it can be: each split has a leaf and the next split."""
    parent = np.empty(2 * n_splits + 1, np.int64)
    parent[0] = -1
    parent[1::2] = parent[2::2] = np.arange(0, 2 * n_splits, 2)
    return parent


def xor_tree() -> DecisionTreeClassifier:
    model = DecisionTreeClassifier().fit(XOR, PARITY)
    assert model.arrays_.decrease[0] == pytest.approx(0, abs=1e-12)  # nothing is gained at the root
    assert model.get_n_leaves() == 4
    return model


def dyadic_tree(rng, n_splits, most_children=2, low=0) -> TreeArrays:
    """Costs are multiples of 1/8, so that sums are exact and ties are ties."""
    parent = random_parents(rng, n_splits, most_children)
    costs = np.zeros(len(parent))
    for node in reversed(range(len(parent))):
        below = costs[parent == node]
        rise = rng.integers(low, 4) / 8
        costs[node] = max(below.sum() + rise, 0) if len(below) else rng.integers(0, 4) / 8
    return tree_of(parent, impurity=costs)  # all weights are 1


def kept_nodes(tree, small) -> np.ndarray:
    """The nodes of a pruned tree, as numbers of the tree before; both are walked together."""
    found, waiting = [], [(0, 0)]
    while waiting:
        old, new = waiting.pop()
        found.append((new, old))
        if small.n_children[new]:
            pairs = zip(tree.children_of(old), small.children_of(new), strict=True)
            waiting += [(int(a), int(b)) for a, b in pairs]
    numbers = np.array(sorted(found))
    assert numbers[:, 0].tolist() == list(range(len(small)))
    return numbers[:, 1]


def leaves_kept(tree, small) -> list[int]:
    """The leaves of a pruned tree as numbers of the tree before, and that nothing else changed."""
    old = kept_nodes(tree, small)
    assert old[0] == 0
    np.testing.assert_array_equal(small.value, tree.value[old])
    np.testing.assert_array_equal(small.weight, tree.weight[old])
    inner = small.n_children > 0
    np.testing.assert_array_equal(small.threshold[inner], tree.threshold[old[inner]])
    return sorted(old[~inner].tolist())


# -- cost-complexity -----------------------------------------------------------------------------


def merged_ties(alphas, impurities):
    """The last entry of each run of alphas that are equal but for rounding."""
    last = np.append(np.diff(alphas) > 1e-10 * (1 + alphas[-1]), True)
    return np.asarray(alphas)[last], np.asarray(impurities)[last]


def sklearn_models():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 4))
    target = noise[:, 0] ** 2 + rng.normal(size=300)
    weight = rng.exponential(size=300)
    labels = (target > 1).astype(int) + (noise[:, 1] > 0)
    tree = sklearn.tree
    return {
        "iris": (tree.DecisionTreeClassifier(random_state=0), IRIS, SPECIES, None),
        "entropy": (tree.DecisionTreeClassifier(criterion="entropy"), noise, labels, weight),
        "weights": (tree.DecisionTreeClassifier(), noise, labels, weight),
        "regression": (tree.DecisionTreeRegressor(), noise, target, weight),
        "absolute": (tree.DecisionTreeRegressor(criterion="absolute_error"), noise, target, None),
        "best first": (tree.DecisionTreeRegressor(max_leaf_nodes=30), noise, target, None),
        "outputs": (tree.DecisionTreeRegressor(), noise, np.c_[target, noise[:, 1]], None),
        "random": (tree.ExtraTreeClassifier(random_state=1), noise, labels, None),
        "a leaf": (tree.DecisionTreeRegressor(), noise, np.ones(300), None),
    }


@pytest.mark.parametrize("name", sklearn_models())
def test_the_path_is_scikit_learns(name) -> None:
    peer, X, y, weight = sklearn_models()[name]
    theirs = peer.cost_complexity_pruning_path(X, y, sample_weight=weight)
    tree = from_sklearn(peer.fit(X, y, sample_weight=weight))
    ours = cost_complexity_path(tree)
    alphas, impurities = merged_ties(ours.ccp_alphas, ours.impurities)
    their_alphas, their_impurities = merged_ties(theirs.ccp_alphas, theirs.impurities)
    np.testing.assert_allclose(alphas, their_alphas, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(impurities, their_impurities, rtol=1e-9, atol=1e-14)
    if name in ("iris", "regression", "best first"):  # nothing is tied up and down
        np.testing.assert_allclose(ours.ccp_alphas, theirs.ccp_alphas, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", sklearn_models())
def test_pruned_trees_are_scikit_learns(name) -> None:
    peer, X, y, weight = sklearn_models()[name]
    peer.set_params(random_state=0)
    tree = from_sklearn(peer.fit(X, y, sample_weight=weight))
    alphas = cost_complexity_path(tree).ccp_alphas
    between = (alphas[1:] + alphas[:-1])[:: max(1, len(alphas) // 10)] / 2
    for alpha in [0.0, *between, 2 * alphas[-1] + 1]:
        pruned = from_sklearn(peer.set_params(ccp_alpha=alpha).fit(X, y, sample_weight=weight))
        ours = prune_by_cost_complexity(tree, alpha)
        for field in ("parent", "feature", "threshold", "weight", "value"):
            np.testing.assert_array_equal(getattr(ours, field), getattr(pruned, field), field)


@pytest.mark.nojit
def test_the_path_is_that_of_pruning_step_by_step() -> None:
    rng = np.random.default_rng(1)
    n_entries = set()
    for trial in range(150):
        tree = dyadic_tree(rng, int(rng.integers(0, 9)), most_children=2 + trial % 3)
        costs = [Fraction(cost) for cost in tree.impurity]
        steps = oracle.weakest_link_path(tree, costs)
        path = cost_complexity_path(tree)
        assert path.ccp_alphas.tolist() == pytest.approx([float(a) for a, _, _ in steps])
        assert path.impurities.tolist() == pytest.approx([float(r) for _, r, _ in steps])
        assert path.n_leaves.tolist() == [len(leaves) for _, _, leaves in steps]
        n_entries.add(len(steps))
    assert len(n_entries) > 5


@pytest.mark.nojit
def test_each_alpha_has_the_best_of_all_prunings() -> None:
    rng = np.random.default_rng(2)
    n_prunings = []
    for trial in range(60):
        tree = dyadic_tree(rng, int(rng.integers(1, 8)), 2 + trial % 2, low=-2)
        costs = tree.impurity.tolist()
        nothing = [0] * len(tree)
        n_prunings.append(len(oracle.prunings(tree)))
        alphas = cost_complexity_path(tree).ccp_alphas
        for alpha in {*alphas[alphas > 0], *(alphas + 1 / 64), 1e-9}:
            # ties between alphas that are no binary fractions are decided by exact arithmetic
            price = (
                Fraction(float(alpha)).limit_denominator(1000) if alpha > 1e-6 else Fraction(alpha)
            )
            best, smallest = oracle.least(tree, list(map(Fraction, costs)), nothing, price)
            leaves = leaves_kept(tree, prune_by_cost_complexity(tree, float(alpha)))
            assert sum(map(Fraction, [costs[n] for n in leaves])) + price * len(leaves) == best
            assert leaves == smallest
    assert max(n_prunings) > 20


def test_the_path_is_nested_and_ascends() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        tree = random_class_tree(rng, 25, 3, most_children=3)
        path = cost_complexity_path(tree)
        assert path.ccp_alphas[0] == 0
        assert np.all(np.diff(path.ccp_alphas) >= 0)
        assert np.all(np.diff(path.impurities) >= -1e-15)
        assert np.all(np.diff(path.n_leaves) < 0)
        assert path.n_leaves[[0, -1]].tolist() == [tree.n_leaves, 1]
        assert path.impurities[-1] == pytest.approx(tree.impurity[0])
        bigger = set(range(len(tree)))
        for alpha, n_leaves, after in zip(
            path.ccp_alphas, path.n_leaves, [*path.ccp_alphas[1:], np.inf], strict=True
        ):
            small = prune_by_cost_complexity(tree, alpha)
            assert leaves_kept(tree, small)
            kept = set(kept_nodes(tree, small).tolist())
            assert kept <= bigger
            bigger = kept
            if after > alpha > 0:
                assert small.n_leaves == n_leaves


def test_a_tie_with_the_node_above_is_one_step() -> None:
    # both splits have (R(t) - R(T_t)) / (leaves - 1) = 1/4, and 0.1 + 0.2 has rounding in it
    tree = tree_of([-1, 0, 1, 1, 0], impurity=[0.6, 0.3, 0.1, 0.1 - 1e-17, 0.2])
    path = cost_complexity_path(tree)
    np.testing.assert_allclose(path.ccp_alphas, [0, 0.1])
    assert path.n_leaves.tolist() == [3, 1]


def test_splits_that_gain_nothing_have_alpha_zero() -> None:
    tree = tree_of([-1, 0, 0], impurity=[0.3, 0.1, 0.2 + 1e-17])
    path = cost_complexity_path(tree)
    assert path.ccp_alphas.tolist() == [0, 0]
    assert prune_by_cost_complexity(tree, 0.0).n_leaves == 2  # as in scikit-learn
    assert prune_by_cost_complexity(tree, 1e-300).n_leaves == 1


def test_a_node_with_one_child_goes_with_it() -> None:
    tree = tree_of([-1, 0, 1, 1], impurity=[0.5, 0.5, 0.0, 0.125])
    path = cost_complexity_path(tree)
    np.testing.assert_allclose(path.ccp_alphas, [0, 0.375])
    assert path.n_leaves.tolist() == [2, 1]


def test_a_deep_chain_and_a_large_tree_take_no_time() -> None:
    n_splits = 200_000
    costs = np.zeros(2 * n_splits + 1)
    costs[::2] = np.arange(n_splits, -1, -1.0) ** 1.5  # the deeper the split, the less it gains
    path = cost_complexity_path(tree_of(chain(n_splits), impurity=costs))
    assert len(path.ccp_alphas) == n_splits + 1
    assert np.all(np.diff(path.ccp_alphas) > 0)
    np.testing.assert_allclose(path.ccp_alphas[1:], np.diff(costs[::2][::-1]), rtol=1e-6)
    costs[::2] = np.arange(n_splits, -1, -1.0) ** 0.5  # the more: all goes at once
    path = cost_complexity_path(tree_of(chain(n_splits), impurity=costs))
    np.testing.assert_allclose(path.ccp_alphas, [0, costs[0] / n_splits])


@pytest.mark.parametrize("alpha", [-1, np.nan, "0.1", None, True])
def test_alphas_that_are_none(alpha) -> None:
    with pytest.raises(ValueError, match="ccp_alpha must be a number that is at least 0"):
        prune(xor_tree(), ccp_alpha=alpha)


# -- reduced error -------------------------------------------------------------------------------


def losses_around(rng, tree) -> np.ndarray:
    """A split helps a little, hurts a little, or neither."""
    losses = rng.integers(0, 9, len(tree)).astype(float)
    for node in reversed(range(len(tree))):
        if tree.n_children[node]:
            losses[node] = max(losses[tree.children_of(node)].sum() + rng.integers(-2, 3), 0)
    return losses


@pytest.mark.nojit
def test_removals_are_those_of_the_greedy_loop() -> None:
    rng = np.random.default_rng(4)
    n_removed = []
    for trial in range(300):
        tree = tree_of(random_parents(rng, int(rng.integers(0, 12)), 2 + trial % 3))
        losses = losses_around(rng, tree)
        found = reduced_error(tree, losses)
        removed, history, n_leaves = oracle.greedy_reduced_error(tree, losses.tolist())
        assert found.removed.tolist() == removed
        assert found.losses.tolist() == history
        assert found.n_leaves.tolist() == n_leaves
        assert leaves_kept(tree, found.tree) == oracle.leaves_left(tree, set(removed))
        n_removed.append(len(removed))
    assert min(n_removed) == 0
    assert max(n_removed) > 4


def test_the_validation_error_never_gets_larger() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        tree = tree_of(random_parents(rng, 7, 3))
        losses = rng.exponential(size=len(tree)) * np.where(tree.n_children > 0, 3, 1)
        found = reduced_error(tree, losses)
        left = [losses[leaf] for leaf in leaves_kept(tree, found.tree)]
        assert np.all(np.diff(found.losses) <= 1e-12)
        assert found.losses[-1] == pytest.approx(sum(left))
        best, _ = oracle.least(tree, losses.tolist(), [0] * len(tree))
        assert best <= found.losses[-1] + 1e-12
        assert found.losses[-1] <= losses[tree.kind == LEAF].sum()


def test_greedy_is_not_optimal() -> None:
    """The root helps more than either child, and less than both."""
    tree = tree_of([-1, 0, 1, 1, 0, 4, 4])
    losses = np.array([7, 3, 3, 3, 3, 3, 3.0])
    found = reduced_error(tree, losses)
    assert found.removed.tolist() == [0]
    assert found.losses.tolist() == [12, 7]
    assert oracle.least(tree, losses.tolist(), [0] * 7)[0] == 6


def test_what_neither_helps_nor_hurts_is_removed() -> None:
    tree = tree_of([-1, 0, 1, 1, 0])
    found = reduced_error(tree, np.array([4.0, 2, 1, 1, 1]))
    assert found.removed.tolist() == [1]
    assert found.losses.tolist() == [3, 3]
    found = reduced_error(tree, np.zeros(5))  # no row came by
    assert found.removed.tolist() == [1, 0]
    assert found.n_leaves.tolist() == [3, 2, 1]
    uneven = np.array([4.0, 0.3, 0.1, 0.1 + 0.1, 1])  # 0.1 + 0.2 is not 0.3
    assert reduced_error(tree, uneven).removed.tolist() == [1]


def test_a_deep_chain_is_reduced_quickly() -> None:
    n_splits = 200_000
    tree = tree_of(chain(n_splits))
    losses = np.ones(len(tree))
    found = reduced_error(tree, losses)  # the root has loss 1, all leaves together n + 1
    assert found.removed.tolist() == [0]
    assert found.losses.tolist() == [n_splits + 1, 1]
    losses[::2] = np.arange(n_splits, -1, -1) + 1  # each split saves nothing
    found = reduced_error(tree, losses)
    assert found.removed.tolist() == list(range(2 * n_splits - 2, -1, -2))
    assert set(found.losses) == {n_splits + 1}


@pytest.mark.parametrize("losses", [[1.0, 2.0], [1.0, np.nan, 2.0], [[1.0], [2.0], [3.0]]])
def test_losses_must_fit_the_tree(losses) -> None:
    with pytest.raises(ValueError, match=r"losses must be finite .* 3 nodes"):
        reduced_error(tree_of([-1, 0, 0]), losses)


# -- validation losses ---------------------------------------------------------------------------


def test_losses_of_classes_row_by_row() -> None:
    rng = np.random.default_rng(6)
    model = DecisionTreeClassifier(max_depth=6).fit(IRIS[::2], SPECIES[::2])
    weight = rng.integers(0, 3, len(IRIS[1::2])).astype(float)
    landed = [[(leaf, 1.0)] for leaf in model.apply(IRIS[1::2])]
    tree = model.arrays_
    expected = oracle.row_by_row_losses(tree, landed, SPECIES[1::2], weight, is_class=True)
    assert validation_losses(model, IRIS[1::2], SPECIES[1::2], weight).tolist() == expected
    own = validation_losses(tree, IRIS[1::2], SPECIES[1::2], weight, is_class=True)
    assert own.tolist() == expected
    named = np.array(["setosa", "versicolor", "virginica"])
    model = DecisionTreeClassifier(max_depth=6).fit(IRIS[::2], named[SPECIES[::2]])
    found = validation_losses(model, IRIS[1::2], named[SPECIES[1::2]], weight)
    assert found.tolist() == expected
    unknown = validation_losses(model, IRIS[1::2], ["rose"] * 75)
    assert unknown[0] == 75


def test_losses_of_numbers_row_by_row() -> None:
    rng = np.random.default_rng(7)
    X, weight = rng.normal(size=(200, 3)), rng.exponential(size=100)
    y = 1e6 + X[:, 0] + rng.normal(size=200)
    model = DecisionTreeRegressor().fit(X[:100], y[:100])
    landed = [[(leaf, 1.0)] for leaf in model.apply(X[100:])]
    expected = oracle.row_by_row_losses(model.arrays_, landed, y[100:], weight, is_class=False)
    found = validation_losses(model, X[100:], y[100:], weight)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    both = DecisionTreeRegressor().fit(X[:100], np.c_[y, -y][:100])
    two = validation_losses(both, X[100:], np.c_[y, -X[:, 1]][100:], weight)
    landed = [[(leaf, 1.0)] for leaf in both.apply(X[100:])]
    expected = [
        oracle.row_by_row_losses(
            dataclasses.replace(both.arrays_, value=both.arrays_.value[:, [k]]),
            landed, target, weight, is_class=False,
        )
        for k, target in enumerate([y[100:], -X[100:, 1]])
    ]  # fmt: skip
    np.testing.assert_allclose(two, np.mean(expected, axis=0), rtol=1e-9)


def test_losses_of_several_outputs_are_averaged() -> None:
    y = np.c_[PARITY, XOR[:, 0]]
    model = DecisionTreeClassifier().fit(XOR, y)
    assert model.n_outputs_ == 2
    losses = validation_losses(model, XOR, y)
    assert losses[0] == (10 + 10) / 2
    assert losses[model.arrays_.kind == LEAF].sum() == 0
    wrong = np.c_[1 - PARITY, XOR[:, 0]]
    assert validation_losses(model, XOR, wrong)[model.arrays_.kind == LEAF].sum() == 10
    with pytest.raises(ValueError, match="each of the 2 outputs"):
        validation_losses(model, XOR, PARITY)


@pytest.mark.nojit
def test_rows_that_take_all_branches_count_by_their_shares() -> None:
    # the root asks for one of three categories; category 1 is asked for a number as well
    tree = tree_of(
        [-1, 0, 0, 2, 2, 0],
        kind=[MULTIWAY, LEAF, THRESHOLD, LEAF, LEAF, LEAF],
        feature=[0, -1, 1, -1, -1, -1],
        missing_child=[-1, 0, -1, 0, 0, 0],
        set_size=[3, 0, 0, 0, 0, 0],
        branches=[0, 1, 2],
        weight=[10, 2, 6, 1, 5, 2],
        value=[[0.6, 0.4], [1, 0], [0.5, 0.5], [0, 1], [0.6, 0.4], [0.25, 0.75]],
    )
    nan = np.nan
    X = np.array([[0, 0], [1, 0], [1, 1], [2, 0], [nan, 0], [1, nan], [nan, nan], [7, 0]])
    landed = [
        [(1, 1)], [(3, 1)], [(4, 1)], [(5, 1)], [(1, 0.2), (3, 0.6), (5, 0.2)],
        [(3, 1 / 6), (4, 5 / 6)], [(1, 0.2), (3, 0.1), (4, 0.5), (5, 0.2)],
        [(1, 0.2), (3, 0.6), (5, 0.2)],
    ]  # fmt: skip
    y, weight = np.array([0, 0, 1, 1, 0, 1, 0, 1]), np.arange(1.0, 9)
    expected = oracle.row_by_row_losses(tree, landed, y, weight, is_class=True)
    found = validation_losses(tree, X, y, weight, is_class=True)
    np.testing.assert_allclose(found, expected)
    assert expected[0] == pytest.approx(weight[y == 1].sum())  # every row came by in whole


def test_losses_name_what_does_not_fit() -> None:
    model = xor_tree()
    with pytest.raises(ValueError, match="is_class must be True or False"):
        validation_losses(model.arrays_, XOR, PARITY)
    with pytest.raises(ValueError, match="y must have a row for each of the 20 rows of X"):
        validation_losses(model.arrays_, XOR, PARITY[:3], is_class=True)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        validation_losses(model, XOR, PARITY[:3])
    with pytest.raises(ValueError, match=r"n_classes must have .* sum must be 2"):
        validation_losses(model.arrays_, XOR, PARITY, is_class=True, n_classes=[3])


# -- confidence limits ---------------------------------------------------------------------------


def weight_charged(charge, confidence) -> float:
    """How large a leaf without a mistake is that is charged so much: m (1 - confidence^(1/m))."""
    low, high = 0.0, 1e9
    for _ in range(200):
        m = (low + high) / 2
        if m * -math.expm1(math.log(confidence) / m) < charge:
            low = m
        else:
            high = m
    return low


@pytest.mark.parametrize(
    ("errors", "n", "confidence"), [(0, 6, 0.25), (1, 16, 0.25), (3, 9, 0.1), (40, 100, 0.6)]
)
def test_limits_are_those_of_the_binomial_distribution(errors, n, confidence) -> None:
    """The node is kept if leaves below it are charged a little less, else pruned."""
    charge = n * oracle.binomial_limit(errors, n, confidence)
    for factor, n_leaves in [(1 + 1e-9, 1), (1 - 1e-9, 100)]:
        small = weight_charged(charge * factor / 100, confidence)
        tree = tree_of(
            [-1] + [0] * 100,
            weight=[n] + [small] * 100,
            value=[[1 - errors / n, errors / n]] + [[1, 0]] * 100,
        )
        assert pessimistic(tree, confidence, tolerance=0).n_leaves == n_leaves


def test_quinlans_example() -> None:
    """C4.5, page 41: leaves (6, 0), (9, 0), (1, 0) are charged 3.273, the leaf (16, 1) less."""
    charged = [n * oracle.binomial_limit(0, n, 0.25) for n in (6, 9, 1)]
    assert [round(oracle.binomial_limit(0, n, 0.25), 3) for n in (6, 9, 1)] == [0.206, 0.143, 0.75]
    assert sum(charged) == pytest.approx(3.273, abs=2e-3)
    tree = tree_of(
        [-1, 0, 0, 0],
        weight=[16, 6, 9, 1],
        value=[[15 / 16, 1 / 16], [1, 0], [1, 0], [0, 1]],
    )
    assert pessimistic(tree).n_leaves == 1
    # with more rows the exception is worth its leaf
    many = dataclasses.replace(tree, weight=tree.weight * 100)
    assert pessimistic(many).n_leaves == 3


@pytest.mark.nojit
def test_pessimistic_pruning_has_the_least_charge() -> None:
    rng = np.random.default_rng(8)
    sizes = set()
    for trial in range(60):
        tree = random_class_tree(rng, int(rng.integers(1, 7)), 2 + trial % 2, 2 + trial % 3)
        confidence = [0.05, 0.25, 0.5][trial % 3]
        counts = np.rint(tree.weight[:, None] * tree.value).astype(int)
        charged = [
            own.sum()
            * oracle.binomial_limit(int(own.sum() - own.max()), int(own.sum()), confidence)
            for own in counts
        ]
        best, _ = oracle.least(tree, charged, [0] * len(tree))
        leaves = leaves_kept(tree, pessimistic(tree, confidence, tolerance=0))
        assert sum(charged[leaf] for leaf in leaves) == pytest.approx(best, rel=1e-9)
        assert pessimistic(tree, confidence).n_leaves <= len(leaves)
        sizes.add((len(leaves) == 1, len(leaves) == tree.n_leaves))
    assert len(sizes) > 2


def test_less_confidence_prunes_more() -> None:
    X, y = make_moons(300, noise=0.35, random_state=0, return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    sizes = [prune(model, "pessimistic", confidence=c).get_n_leaves() for c in (0.01, 0.25, 0.9)]
    assert sizes[0] < sizes[1] < sizes[2] <= model.get_n_leaves()


@pytest.mark.parametrize("confidence", [0, 1, -0.1, np.nan, "a", None])
def test_confidence_must_be_a_probability(confidence) -> None:
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        prune(xor_tree(), "pessimistic", confidence=confidence)


# -- description length --------------------------------------------------------------------------


def split_bits(tree, n_features) -> list[float]:
    """As the docstring says, node by node."""
    bits = []
    for node, kind in enumerate(tree.kind):
        n = int(tree.n_samples[node])
        feature = math.log2(n_features)
        if kind == THRESHOLD:
            bits.append(1 + feature + math.log2(max(n - 1, 1)))
        elif kind == SUBSET:
            s = max(min(int(tree.set_size[node]), n), 2)
            bits.append(1 + feature + math.log2(2 ** (s - 1) - 1))
        elif kind == MULTIWAY:
            bits.append(1 + feature)
        elif kind == OBLIQUE:
            m = int((tree.coef[tree.set_start[node]] != 0).sum())
            planes = sum(math.comb(n - 1, i) for i in range(1, m + 1))
            bits.append(1 + math.log2(math.comb(n_features, m)) + math.log2(max(planes, 1)))
        else:
            bits.append(0)
    return bits


@pytest.mark.nojit
def test_description_length_is_the_least_of_all_prunings() -> None:
    rng = np.random.default_rng(9)
    sizes = set()
    for trial in range(80):
        n_classes, n_features = 2 + trial % 2, [1, 5, 1000][trial % 3]
        tree = random_class_tree(rng, int(rng.integers(1, 7)), n_classes, 2 + trial % 3)
        inner = tree.kind == THRESHOLD
        kinds = np.array([THRESHOLD, SUBSET, OBLIQUE])[rng.integers(0, 3, len(tree))]
        coef = (rng.random((1, n_features)) < 0.5).astype(float)
        coef[0, 0] = 1.0
        tree = dataclasses.replace(
            tree,
            kind=np.where(inner, kinds, tree.kind).astype(np.int8),
            coef=coef,
            set_size=rng.integers(2, 9, len(tree)),
        )
        if rng.random() < 0.5:  # more rows: larger trees are worth their bits
            tree = dataclasses.replace(tree, weight=tree.weight * 20, n_samples=tree.n_samples * 20)
        counts = np.rint(tree.weight[:, None] * tree.value).astype(int).tolist()
        leaf_bits = [1 + oracle.krichevsky_trofimov_bits(own) for own in counts]
        own = np.where(tree.kind != LEAF, 1 + _split_bits(tree, n_features), 0)
        np.testing.assert_allclose(own, split_bits(tree, n_features), rtol=1e-9)
        best, smallest = oracle.least(tree, leaf_bits, split_bits(tree, n_features))
        leaves = leaves_kept(tree, minimum_description_length(tree, n_classes, n_features))
        found = sum(leaf_bits[leaf] for leaf in leaves)
        found += sum(
            split_bits(tree, n_features)[node] for node in oracle.inner_left(tree, set(leaves))
        )
        assert found == pytest.approx(best, rel=1e-9)
        assert len(leaves) == len(smallest)
        sizes.add((len(leaves) == 1, len(leaves) == tree.n_leaves))
    assert len(sizes) > 2


def test_the_leaf_code_is_the_stochastic_complexity_of_large_leaves() -> None:
    for counts in ([700, 300], [500, 400, 600]):
        n, k = sum(counts), len(counts)
        asymptotic = (
            sum(c * math.log(n / c) for c in counts)
            + (k - 1) / 2 * math.log(n / (2 * math.pi))
            + math.log(math.pi ** (k / 2) / math.gamma(k / 2))
        ) / math.log(2)
        assert oracle.krichevsky_trofimov_bits(counts) == pytest.approx(asymptotic, abs=0.02)


def test_more_features_make_splits_dearer() -> None:
    X, y = make_moons(300, noise=0.35, random_state=0, return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y).arrays_
    sizes = [minimum_description_length(tree, 2, d).n_leaves for d in (2, 10**30)]
    assert 1 <= sizes[1] < sizes[0] < tree.n_leaves


def test_description_length_names_what_does_not_fit() -> None:
    tree = xor_tree().arrays_
    with pytest.raises(ValueError, match="n_classes must be 2"):
        minimum_description_length(tree, 3, 2)
    for n_features in (1, 0, 2.5, None):
        with pytest.raises(ValueError, match=r"n_features must be .* at least 2"):
            minimum_description_length(tree, 2, n_features)


@pytest.mark.parametrize("method", ["pessimistic", "mdl"])
def test_methods_that_count_mistakes_want_classes(method) -> None:
    numbers = DecisionTreeRegressor().fit(XOR, PARITY)
    two = DecisionTreeClassifier().fit(XOR, np.c_[PARITY, PARITY])
    for model in (numbers, two):
        with pytest.raises(ValueError, match=f"{method}.* for classifiers with one output"):
            prune(model, method)
    with pytest.raises(ValueError, match="for classifiers with one output"):
        pessimistic(numbers.arrays_)


# -- chosen nodes --------------------------------------------------------------------------------


@pytest.mark.nojit
def test_chosen_nodes_become_leaves() -> None:
    tree = tree_of([-1, 0, 1, 1, 0, 4, 5, 5, 4])
    assert leaves_kept(tree, prune_nodes(tree, [5])) == [2, 3, 5, 8]
    assert leaves_kept(tree, prune_nodes(tree, np.array([4, 5, 6], np.uint8))) == [2, 3, 4]
    assert leaves_kept(tree, prune_nodes(tree, 0)) == [0]
    assert leaves_kept(tree, prune_nodes(tree, [])) == [2, 3, 6, 7, 8]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([3], "nodes has 3, but .* from 0 to 2"),
        ([-1], "nodes has -1"),
        ([0.5], "nodes must be a list of node numbers"),
        ([True, False, False], r"np\.flatnonzero\(mask\)"),
        ([[0]], "nodes must be a list"),
        ("0", "nodes must be a list"),
    ],
)
def test_nodes_that_are_not_there(nodes, message) -> None:
    with pytest.raises(ValueError, match=message):
        prune_nodes(tree_of([-1, 0, 0]), nodes)


# -- leaves that say the same --------------------------------------------------------------------


@pytest.mark.nojit
def test_merging_goes_on_as_long_as_it_can() -> None:
    rng = np.random.default_rng(10)
    sizes = set()
    for trial in range(150):
        tree = random_class_tree(rng, int(rng.integers(0, 10)), 2 + trial % 2, 2 + trial % 3)
        leaves = leaves_kept(tree, simplify(tree, is_class=True))
        assert leaves == oracle.merged(tree, tree.value.argmax(axis=1).tolist(), own=True)
        sizes.add(len(leaves))
        numbers = dataclasses.replace(tree, value=rng.integers(0, 2, (len(tree), 1)) * 0.1)
        small = simplify(numbers, is_class=False)
        expected = oracle.merged(numbers, numbers.value[:, 0].tolist(), own=False)
        kept = kept_nodes(numbers, small)
        assert sorted(kept[small.kind == LEAF].tolist()) == expected
    assert len(sizes) > 5


def test_simplifying_changes_no_prediction() -> None:
    X, y = make_moons(400, noise=0.3, random_state=1, return_X_y=True)
    model = DecisionTreeClassifier(min_samples_leaf=10).fit(X, y)
    small = prune(model, "simplify")
    assert small.get_n_leaves() < model.get_n_leaves()
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    rng = np.random.default_rng(2)
    target = np.c_[rng.integers(0, 3, 400) * 0.1, np.ones(400) / 3]
    numbers = DecisionTreeRegressor(max_depth=3).fit(X, y * 0.1)
    flat = prune(numbers, "nodes", nodes=[])
    value = np.full_like(flat.arrays_.value, 0.1 / 3)
    value[0] = 0.1  # what a merged node predicts is what its leaves did
    flat.arrays_ = dataclasses.replace(flat.arrays_, value=value)
    assert prune(flat, "simplify").predict(X).tolist() == [0.1 / 3] * 400
    two = DecisionTreeRegressor(max_depth=6).fit(X, target)
    np.testing.assert_array_equal(prune(two, "simplify").predict(X), two.predict(X))


def test_outputs_must_all_agree() -> None:
    value = [[0.6, 0.4, 0.8, 0.2], [0.9, 0.1, 0.9, 0.1], [0.7, 0.3, 0.4, 0.6]]
    tree = tree_of([-1, 0, 0], value=value)
    assert simplify(tree, is_class=True, n_classes=[2, 2]).n_leaves == 2
    agreeing = dataclasses.replace(tree, value=tree.value[[0, 1, 1]])
    assert simplify(agreeing, is_class=True, n_classes=[2, 2]).n_leaves == 1
    other = tree_of([-1, 0, 0], value=[[0.4, 0.6], [0.6, 0.4], [0.6, 0.4]])
    assert simplify(other, is_class=True).n_leaves == 2  # or predictions would change
    model = DecisionTreeClassifier().fit(XOR, np.c_[PARITY, XOR[:, 0]])
    assert prune(model, "simplify").get_n_leaves() == 4


# -- fitted models -------------------------------------------------------------------------------


def test_splits_that_gain_nothing_are_kept_for_what_is_below() -> None:
    """XOR: no question about one feature helps, two in a row tell all."""
    model = xor_tree()
    alphas = cost_complexity_path(model.arrays_).ccp_alphas
    np.testing.assert_allclose(alphas, [0, 0.5 / 3])
    for small in (
        prune(model, ccp_alpha=0.16),
        prune(model, "reduced_error", X=XOR[:8], y=PARITY[:8]),
        prune(model, "simplify"),
        prune(model, "pessimistic"),
    ):
        assert small.get_n_leaves() == 4
        assert small.score(XOR, PARITY) == 1
    assert prune(model, ccp_alpha=0.17).get_n_leaves() == 1


def test_the_given_model_stays_as_it_is() -> None:
    model = DecisionTreeClassifier().fit(IRIS, SPECIES)
    before = {
        field.name: getattr(model.arrays_, field.name).copy()
        for field in dataclasses.fields(model.arrays_)
    }
    options = {
        "cost_complexity": {"ccp_alpha": 0.02},
        "reduced_error": {"X": IRIS[::3], "y": SPECIES[::3]},
        "pessimistic": {"confidence": 0.1},
        "mdl": {},
        "nodes": {"nodes": [2]},
        "simplify": {},
    }
    for method, given in options.items():
        small = prune(model, method, **given)
        assert type(small) is DecisionTreeClassifier
        assert leaves_kept(model.arrays_, small.arrays_)
        assert small.get_n_leaves() <= model.get_n_leaves()
        assert small.predict(IRIS).shape == (150,)
        np.testing.assert_allclose(small.predict_proba(IRIS).sum(axis=1), 1)
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(model.arrays_, name), values)


def test_ccp_alpha_of_the_estimator_is_the_same_pruning() -> None:
    X, y = make_moons(200, noise=0.3, random_state=3, return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    pruned = DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y).arrays_
    ours = prune(model, ccp_alpha=0.01).arrays_
    assert 1 < ours.n_leaves < model.get_n_leaves()
    np.testing.assert_array_equal(ours.threshold, pruned.threshold)
    np.testing.assert_array_equal(ours.parent, pruned.parent)


def test_reduced_error_helps_on_the_rows_it_was_given() -> None:
    X, y = make_moons(600, noise=0.4, random_state=4, return_X_y=True)
    model = DecisionTreeClassifier().fit(X[:300], y[:300])
    small = prune(model, "reduced_error", X=X[300:450], y=y[300:450])
    assert small.score(X[300:450], y[300:450]) > model.score(X[300:450], y[300:450])
    assert small.score(X[450:], y[450:]) > model.score(X[450:], y[450:])
    record = reduced_error(model.arrays_, validation_losses(model, X[300:450], y[300:450]))
    assert record.losses[0] == pytest.approx(150 * (1 - model.score(X[300:450], y[300:450])))
    assert record.losses[-1] == pytest.approx(150 * (1 - small.score(X[300:450], y[300:450])))
    assert record.n_leaves[-1] == small.get_n_leaves()


def test_weights_of_validation_rows_are_repetitions() -> None:
    X, y = make_moons(300, noise=0.4, random_state=5, return_X_y=True)
    model = DecisionTreeClassifier().fit(X[:150], y[:150])
    weight = np.random.default_rng(0).integers(0, 4, 150)
    weighted = prune(model, "reduced_error", X=X[150:], y=y[150:], sample_weight=weight)
    repeated = prune(
        model, "reduced_error", X=np.repeat(X[150:], weight, axis=0), y=np.repeat(y[150:], weight)
    )
    np.testing.assert_array_equal(weighted.arrays_.parent, repeated.arrays_.parent)
    np.testing.assert_array_equal(weighted.arrays_.value, repeated.arrays_.value)


def test_categories_and_missing_values_are_walked_as_predict_does() -> None:
    rng = np.random.default_rng(11)
    X = np.empty((400, 2), dtype=object)
    X[:, 0] = rng.choice(["a", "b", "c", "d"], 400)
    X[:, 1] = rng.normal(size=400)
    X[rng.random(400) < 0.2, 1] = np.nan
    y = np.isin(X[:, 0], ["a", "c"]) ^ (rng.random(400) < 0.2)
    model = DecisionTreeClassifier().fit(X[:200], y[:200])
    losses = validation_losses(model, X[200:], y[200:])
    assert losses[model.arrays_.kind == LEAF].sum() == (model.predict(X[200:]) != y[200:]).sum()
    small = prune(model, "reduced_error", X=X[200:], y=y[200:])
    assert small.get_n_leaves() < model.get_n_leaves()
    assert (small.predict(X[200:]) != y[200:]).sum() < losses[model.arrays_.kind == LEAF].sum()


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("nonsense", {}, "method must be one of 'cost_complexity', .*Got 'nonsense'"),
        (None, {}, "method must be one of"),
        ("cost_complexity", {}, "'cost_complexity' needs ccp_alpha"),
        ("cost_complexity", {"alpha": 1}, "has no option 'alpha': it takes ccp_alpha"),
        ("reduced_error", {"X": XOR}, "'reduced_error' needs y"),
        ("reduced_error", {}, "'reduced_error' needs X and y"),
        ("simplify", {"a\n": 1}, r"no option 'a\\n': it takes no options"),
    ],
)
def test_refusals_name_the_way_out(method, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        prune(xor_tree(), method, **options)


def test_only_our_fitted_trees_can_be_pruned() -> None:
    with pytest.raises(NotFittedError, match="DecisionTreeClassifier instance is not fitted"):
        prune(DecisionTreeClassifier(), ccp_alpha=0.1)
    for model in (
        SVC().fit(XOR, PARITY),
        sklearn.tree.DecisionTreeClassifier().fit(XOR, PARITY),
        3,
    ):
        with pytest.raises(ValueError, match="model must be one of this library's decision trees"):
            prune(model, ccp_alpha=0.1)


# -- cross-validation ----------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers", "outputs"])
def test_errors_are_those_of_refitting_with_every_alpha(kind, weighted) -> None:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(90, 3))
    y = X[:, 0] + rng.normal(size=90)
    weight = rng.integers(0, 4, 90).astype(float) if weighted else None
    estimator = DecisionTreeRegressor(ccp_alpha=0.3)  # which is not to be used
    if kind == "classes":
        estimator, y = DecisionTreeClassifier(), np.where(y > 0.3, "yes", "no")
    elif kind == "outputs":
        y = np.c_[y, X[:, 1]]
    folds = list(KFold(4).split(X))
    found = cross_validated_alpha(estimator, X, y, cv=folds, sample_weight=weight)
    assert len(found.alphas) > 8
    every = np.ones(90) if weight is None else weight
    errors = np.empty((4, len(found.alphas)))
    sums = np.array([every[test].sum() for _, test in folds])
    for j, alpha in enumerate(found.alphas):
        estimator.set_params(ccp_alpha=alpha)
        for fold, (train, test) in enumerate(folds):
            predicted = estimator.fit(X[train], y[train], sample_weight=every[train]).predict(
                X[test]
            )
            loss = predicted != y[test] if kind == "classes" else (predicted - y[test]) ** 2
            loss = loss.reshape(len(test), -1).mean(axis=1)
            errors[fold, j] = (every[test] * loss).sum()
        assert estimator.fit(X, y, sample_weight=weight).get_n_leaves() == found.n_leaves[j]
    np.testing.assert_allclose(found.mean_errors, errors.sum(axis=0) / every.sum())
    if not weighted:
        spread = np.std(errors / sums[:, None], axis=0, ddof=1) / 2
        folds_equal = np.ptp(sums) <= 1
        assert folds_equal
        np.testing.assert_allclose(found.standard_errors, spread, rtol=0.1)


def test_alphas_lie_between_those_of_the_path() -> None:
    model = DecisionTreeClassifier().fit(IRIS, SPECIES)
    path = np.unique(cost_complexity_path(model.arrays_).ccp_alphas)
    found = cross_validated_alpha(DecisionTreeClassifier(), IRIS, SPECIES, random_state=0)
    np.testing.assert_allclose(found.alphas[:-1], np.sqrt(path[1:] * path[:-1]))
    assert found.alphas[-1] == pytest.approx(10 * path[-1])
    assert found.n_leaves.tolist() == [9, 7, 5, 4, 3, 2, 1]
    assert found.ccp_alpha == found.alphas[found.chosen]
    assert found.mean_errors[-1] == pytest.approx(2 / 3)


def test_rules() -> None:
    X, y = make_moons(300, noise=0.35, random_state=2, return_X_y=True)
    estimator = DecisionTreeClassifier()
    careful = cross_validated_alpha(estimator, X, y, random_state=0)
    best = cross_validated_alpha(estimator, X, y, rule="best", random_state=0)
    np.testing.assert_array_equal(careful.mean_errors, best.mean_errors)
    assert best.chosen == best.best == careful.best
    least = best.mean_errors.min()
    assert best.chosen == np.flatnonzero(best.mean_errors == least)[-1]
    within = best.mean_errors <= least + best.standard_errors[best.best]
    assert careful.chosen == np.flatnonzero(within)[-1]
    assert careful.chosen > best.chosen
    assert careful.ccp_alpha > best.ccp_alpha > 0
    whole = estimator.fit(X, y)
    small = prune(whole, ccp_alpha=careful.ccp_alpha)
    assert small.get_n_leaves() == careful.n_leaves[careful.chosen]
    test_X, test_y = make_moons(1000, noise=0.35, random_state=7, return_X_y=True)
    assert small.score(test_X, test_y) > whole.score(test_X, test_y)


def test_folds_are_shuffled_by_the_seed() -> None:
    X, y = make_moons(120, noise=0.35, random_state=8, return_X_y=True)
    order = np.argsort(y, kind="stable")  # unshuffled folds of sorted rows would be hopeless
    runs = [
        cross_validated_alpha(DecisionTreeRegressor(), X[order], y[order], random_state=seed)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0].mean_errors, runs[1].mean_errors)
    assert np.any(runs[0].mean_errors != runs[2].mean_errors)
    assert runs[0].mean_errors.min() < 0.2


def test_leaving_one_out_and_other_tables() -> None:
    X, y = make_moons(40, noise=0.2, random_state=9, return_X_y=True)
    expected = cross_validated_alpha(DecisionTreeClassifier(), X, y, cv=LeaveOneOut())
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    for table, labels in (
        (X.tolist(), y.tolist()),
        (frame, pd.Series(y)),
        (sparse.csr_array(X), y),
    ):
        found = cross_validated_alpha(DecisionTreeClassifier(), table, labels, cv=LeaveOneOut())
        np.testing.assert_array_equal(found.mean_errors, expected.mean_errors)
    p = expected.mean_errors
    np.testing.assert_allclose(expected.standard_errors, np.sqrt(p * (1 - p) / 39))


def test_a_tree_that_is_a_leaf_has_one_alpha() -> None:
    found = cross_validated_alpha(DecisionTreeRegressor(), XOR, np.ones(20), cv=2)
    assert found.alphas.tolist() == [0]
    assert found.mean_errors.tolist() == [0]
    assert found.ccp_alpha == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": "worst"}, "rule must be 'one_standard_error' or 'best'"),
        ({"cv": 1}, "cv must be a number of folds from 2 to the 20 rows"),
        ({"cv": 21}, "cv must be a number of folds"),
        ({"cv": 2.5}, "cv must be a number of folds"),
        ({"cv": True}, "cv must be a number of folds"),
        ({"cv": "5"}, "cv must be a number of folds"),
        ({"cv": []}, "cv holds out no row of positive weight"),
        ({"cv": [(np.arange(10), [])]}, "cv holds out no row of positive weight"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"estimator": SVC()}, "estimator must be one of this library's decision trees"),
        ({"estimator": DecisionTreeClassifier}, "estimator must be one of"),
        ({"estimator": SimpleNamespace()}, "estimator must be one of"),
    ],
)
def test_cross_validation_names_what_does_not_fit(given, message) -> None:
    arguments = {"estimator": DecisionTreeClassifier()} | given
    with pytest.raises(ValueError, match=message):
        cross_validated_alpha(arguments.pop("estimator"), XOR, PARITY, **arguments)


def test_walking_agrees_with_the_leaves() -> None:
    """The walk with shares, where no row is shared, ends where `leaves_of` does."""
    model = DecisionTreeClassifier().fit(IRIS, SPECIES)
    tree = model.arrays_
    shared = dataclasses.replace(tree, missing_child=np.full(len(tree), -1, np.int32))
    counts = np.bincount(leaves_of(tree, IRIS), minlength=len(tree))
    wrong = validation_losses(shared, IRIS, np.full(150, 9), is_class=True)  # all rows are wrong
    np.testing.assert_array_equal(wrong[tree.kind == LEAF], counts[tree.kind == LEAF])
    assert wrong[0] == 150
