"""Each split is the best there is: fitted stumps against every candidate, in exact fractions."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from tests.oracles.trees import (
    CLASS_CRITERIA,
    CRITERIA,
    best_split,
    branches_of,
    decreases,
    impurity,
    random_node,
)

from margrove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.serve.tree_walk import leaves_of

# Sums are kept to 61 bits: a target that is 10^-17 of another one in the same node counts as zero.
# Squared errors do not notice; medians, and means of which logarithms are taken, may.
UNEVEN = {"absolute_error", "poisson", "gamma"}
N_NODES = [250, pytest.param(1250, marks=pytest.mark.nightly)]  # times eight criteria


def stump(node, criterion, **settings):
    cls = DecisionTreeClassifier if criterion in CLASS_CRITERIA else DecisionTreeRegressor
    mask = [j in node.categorical for j in range(len(node.table))]
    given = mask if any(mask) else None
    model = cls(criterion=criterion, max_depth=1, categorical_features=given, **settings)
    X = np.array(node.rows)
    model.fit(X, node.targets, sample_weight=node.weights)
    return model, leaves_of(model.arrays_, model._rows(X)) == 1


def nodes_of(criterion, count, **kind):
    rng = random.Random(criterion)
    for _ in range(count):
        node = random_node(rng, criterion, **kind)
        if criterion not in UNEVEN or "targets: mixed" not in node.traits:
            yield node


def as_float(number):
    try:
        return float(number)
    except OverflowError:
        return math.inf


@pytest.mark.parametrize("count", N_NODES)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_thousands_of_random_nodes(criterion, count) -> None:
    for node in nodes_of(criterion, count):
        model, goes_left = stump(node, criterion)
        best = best_split(node.table, node.targets, node.weights, criterion)
        expected = as_float(impurity(criterion, node.targets, node.weights))
        arrays = model.arrays_
        if len(set(node.targets)) == 1:
            assert len(arrays) == 1
            assert arrays.impurity[0] == 0.0
            continue
        if 1e-290 < expected < 1e290:
            assert arrays.impurity[0] == pytest.approx(expected, rel=1e-9)
        if len(arrays) == 1:
            assert not best.splits
            continue
        left = tuple(np.flatnonzero(goes_left).tolist())
        feature = int(arrays.feature[0])
        first_feature, first_split = best.splits[0]
        if feature == first_feature and left in branches_of(first_split, node.table[feature]):
            continue
        # Only where a score is not rational, or targets are hopelessly uneven, by a hair.
        own = [
            candidate
            for candidate in decreases(node.table, node.targets, node.weights, criterion)
            if candidate.feature == feature
            and left in branches_of(candidate.split, node.table[feature])
        ]
        assert own
        assert as_float((best.decrease - own[0].decrease) / best.decrease) < 1e-12


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "squared_error"])
def test_subsets_of_categories(criterion) -> None:
    """Ordered by share or mean, the best subset is a prefix; for more classes nearly always."""
    missed = tried = 0
    for node in nodes_of(criterion, 400, categories=True):
        model, goes_left = stump(node, criterion)
        arrays = model.arrays_
        if len(arrays) == 1:
            continue
        best = best_split(
            node.table, node.targets, node.weights, criterion, categorical=node.categorical
        )
        left = tuple(np.flatnonzero(goes_left).tolist())
        own = [
            candidate
            for candidate in decreases(
                node.table, node.targets, node.weights, criterion, categorical=node.categorical
            )
            if left in branches_of(candidate.split, node.table[candidate.feature])
        ]
        gap = (
            as_float((best.decrease - max(one.decrease for one in own)) / best.decrease)
            if best.decrease
            else 0.0
        )
        tried += 1
        if criterion == "squared_error" or (len(set(node.targets)) == 2 and criterion != "error"):
            assert gap < 1e-12
        missed += gap >= 1e-12
    assert tried > 200
    assert missed <= 0.02 * tried


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_splits_of_several_outputs(criterion) -> None:
    """What a split is worth is the mean over the outputs."""
    rng, n_split = random.Random(0), 0
    for node in nodes_of(criterion, 200):
        shuffled = rng.sample(node.targets, len(node.targets))
        outputs = [node.targets, shuffled, [-target for target in node.targets]]
        kept = [row for row, weight in enumerate(node.weights or [1] * len(shuffled)) if weight]
        model, goes_left = stump(replace(node, targets=np.array(outputs).T), criterion)
        arrays = model.arrays_
        expected = [as_float(impurity(criterion, own, node.weights)) for own in outputs]
        if 1e-290 < max(expected) < 1e290:
            assert arrays.impurity[0] == pytest.approx(np.mean(expected), rel=1e-9)
        found = [decreases(node.table, own, node.weights, criterion) for own in outputs]
        worth = [sum(one.decrease for one in same) for same in zip(*found, strict=True)]
        if len(arrays) == 1:
            assert not worth or all(len({own[row] for row in kept}) == 1 for own in outputs)
            continue
        left = tuple(np.flatnonzero(goes_left).tolist())
        own = [
            amount
            for amount, candidate in zip(worth, found[0], strict=True)
            if candidate.feature == arrays.feature[0]
            and left in branches_of(candidate.split, node.table[candidate.feature])
        ]
        assert own
        assert as_float(max(worth) - own[0]) <= 1e-12 * as_float(max(worth))
        n_split += 1
    assert n_split > 100


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_an_output_that_is_there_twice(criterion, splitter) -> None:
    """The same tree, and the same draws: each leaf is the median or mean of each output."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), rng.integers(1, 9, 300) / 8
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 6, 300)
    model = DecisionTreeRegressor(
        criterion=criterion, splitter=splitter, random_state=0, min_samples_leaf=5,
        categorical_features=[3],
    )  # fmt: skip
    once = model.fit(X, y).arrays_
    twice = model.fit(X, np.column_stack([y, y])).arrays_
    assert np.array_equal(once.feature, twice.feature)
    assert np.array_equal(once.threshold, twice.threshold, equal_nan=True)
    assert np.array_equal(once.words, twice.words)
    assert twice.value == pytest.approx(np.repeat(once.value, 2, axis=1), rel=1e-12)
    assert twice.impurity == pytest.approx(once.impurity, rel=1e-9, abs=1e-12)
    leaves = leaves_of(once, model._rows(X))
    middle = np.median if criterion == "absolute_error" else np.mean
    for leaf in np.unique(leaves):
        assert twice.value[leaf] == pytest.approx([middle(y[leaves == leaf])] * 2)
